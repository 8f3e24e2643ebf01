"""Volumes of different spacings or orientations in one run are refused by key, both named, as slides of different um/px are;
patch.spacing brings spacings together, patch.mixed_spacing takes them all."""
import harness


class MixedVolumes(harness.Case):
    def store(self, step, pixel):
        name = f"step-{step}"
        made = self.command("synth", "ct", self.folder / name, "--size", "16x64x48", "--step", step, "--pixel", pixel)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.json("ingest", self.folder / name, "--out", self.folder / f"{name}-stores")
        return next((self.folder / f"{name}-stores").glob("*.zarr"))

    def stream(self, datasets, patch="", expect=0):
        run = self.folder / "run.yaml"
        run.write_text(f"dataset: {[str(path) for path in datasets]}\npatch: {{size: [4, 16, 16]{patch}}}\n"
                       "sampling: {order: sequential}\nbatch: {global_size: 4}\n", encoding="utf-8")
        done = self.command("stream", run, "--digest", "--gpus", "none", "--cpus", 1)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stderr

    def test_spacings_that_differ_are_refused_by_key(self):
        thin, near, thick = self.store(1.5, 0.8), self.store(1.55, 0.8), self.store(5, 0.8)
        said = self.stream([thin, thick], expect=2)
        for part in ("key 'patch.spacing': level 0 has voxels of 1.5 x 0.8 x 0.8 mm, but ", " has 5 x 0.8 x 0.8 mm; ",
                     "by patch.spacing, or ", "patch: {mixed_spacing: true}", thin.name, thick.name):
            self.assertIn(part, said)
        self.stream([thin, near])  # within patch.spacing_tolerance
        self.assertIn("key 'patch.spacing'", self.stream([thin, near], ", spacing_tolerance: 0.01", expect=2))
        self.stream([thin, thick], ", mixed_spacing: true")
        self.stream([thin, thick], ", spacing: [5, 0.8, 0.8]")

    def test_axes_that_run_to_other_sides_are_refused_in_any_spacing(self):
        image = self.folder / "ras.nii"
        harness.nifti(image, (12, 40, 36), (2.0, 1.0, 1.0), lambda z, y, x: 40 * z + 3 * y + x, sides=(1, 1, 1))
        stores = []
        for orientation in ("canonical", "source"):
            self.json("ingest", image, "--out", self.folder / orientation, "--orientation", orientation, "--modality", "CT")
            stores.append(next((self.folder / orientation).glob("*.zarr")))
        for patch in ("", ", spacing: [2, 1, 1]"):
            said = self.stream(stores, patch, expect=2)
            for part in ("key 'dataset': the volume's axes run to LPS, but ", " has RAS; ", "one --orientation",
                         "patch: {mixed_spacing: true}"):
                self.assertIn(part, said)
        self.stream(stores, ", mixed_spacing: true")
        self.stream(stores[1:])


if __name__ == "__main__":
    harness.main()
