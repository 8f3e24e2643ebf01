"""Label sets, volumes and references that change under a running cluster: batches are of what was planned, or the stream
ends and names what changed."""
import json
import os
import pathlib
import shutil

import harness
from harness import wait_until

CLASSES = "classes: [{name: benign, value: 0}, {name: tumour, value: 1}]\n"


def square(name, left, side=500):
    ring = [[left, 100], [left + side, 100], [left + side, 100 + side], [left, 100 + side], [left, 100]]
    return {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [ring]},
            "properties": {"classification": {"name": name}}}


class Changed(harness.Case):
    """Streams of `dataset` that end by the name of what changed."""
    def imported(self, drawing, *more):
        """The folder of a new revision of the set `u`."""
        (self.folder / "classes.yaml").write_text(CLASSES, encoding="utf-8")
        row = self.json("labels", "import", self.dataset, drawing, "--set", "u", "--classes", "classes.yaml", *more)["imported"][0]
        return self.dataset / "labels" / row["revision"]

    def ends_after(self, change, run, *said):
        """Streams slowly, changes something in the middle and ends the worker: another has to open it again."""
        cluster = self.up(1)
        saved = self.folder / "saved"
        trainer = self.start("stream", run, "--batches", 5000, "--step-ms", 20, "--save", saved, "--force")
        wait_until(lambda: saved.exists() and len(list(saved.glob("*image.npy"))) >= 3, "3 batches")
        change()
        self.kill(self.pids(cluster, "patchbay-worker")[0])
        self.done(trainer, expect=1)
        text = pathlib.Path(trainer.log).read_text(encoding="utf-8")
        for words in ("changed since it was planned", str(self.dataset), *said):
            self.assertIn(words, text)
        self.down(cluster)
        shutil.rmtree(saved)

    def is_of_another_revision(self, run, first, second, name):
        """A revision's file is exchanged for another's: the stream ends by its name, and nothing is planned."""
        cause = f"its {name} is another file than was written"
        kept = (first / name).read_bytes()
        self.assertNotEqual((second / name).read_bytes(), kept)
        self.ends_after(lambda: (first / name).write_bytes((second / name).read_bytes()), run, "its label set 'u'", cause)
        for words, status in ((("config", "check"), 2), (("stream",), 1)):
            refused = self.command(*words, run)
            self.assertEqual(refused.returncode, status, refused.stderr)
            self.assertIn(f"'u': {cause}", refused.stderr)
        (first / name).write_bytes(kept)
        self.json("stream", run)


class ChangedLabels(Changed):
    def setUp(self):
        super().setUp()
        kept = self.once("store", lambda: self.keep(self.store([self.slide(size="1301x1111")])))
        shutil.copytree(kept, self.folder / "stores")
        self.dataset = next((self.folder / "stores").glob("*.ome.zarr"))
        self.first = self.drawn(square("tumour", 100), square("benign", 700))

    def drawn(self, *features):
        drawing = self.folder / "u.geojson"
        drawing.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
        return self.imported(drawing)

    def run_of(self, labels="{set: u}", sampling="{positions: random, patches_per_epoch: 64, class_weights: {tumour: 1}}"):
        path = self.folder / "run.yaml"
        path.write_text(f"dataset: {self.dataset}\nseed: 3\npatch: {{size: [64, 64], level: 0}}\nsampling: {sampling}\n"
                        f"labels: {labels}\nbatch: {{global_size: 8, dtype: uint8, meta: true}}\n", encoding="utf-8")
        return path

    def prune(self):
        self.drawn(square("tumour", 300), square("benign", 900, 300))
        self.assertEqual(self.command("labels", "prune", self.dataset, "--no-lock").returncode, 0)
        self.assertFalse(self.first.exists())

    def test_places_of_a_revision_that_was_pruned_end_the_stream(self):
        self.ends_after(self.prune, self.run_of(), "its label set 'u'", "is gone")

    def test_masks_of_a_revision_that_was_pruned_end_the_stream(self):
        self.ends_after(self.prune, self.run_of("{set: u, mask: true}", "{order: shuffled}"), "its label set 'u'", "is gone")

    def test_an_index_of_another_revision_ends_the_stream_and_is_not_planned(self):
        second = self.drawn(square("tumour", 300), square("benign", 900, 300))
        first = self.drawn(square("tumour", 100), square("benign", 700))
        self.assertEqual(first, self.first)
        self.is_of_another_revision(self.run_of(), first, second, "positions.index")

    def test_shards_of_another_revision_end_the_stream(self):
        second = self.drawn(square("tumour", 300), square("benign", 900, 300))
        self.drawn(square("tumour", 100), square("benign", 700))

        def exchange():
            for file in sorted(path for path in (second / "0" / "c").rglob("*") if path.is_file()):
                with open(self.first / file.relative_to(second), "r+b") as out:
                    out.write(file.read_bytes())
                    out.truncate()
        cluster = self.up(1)
        run = self.run_of("{set: u, mask: true}", "{order: shuffled}")
        expected = self.folder / "expected"
        self.json("stream", run, "--save", expected)
        saved = self.folder / "saved"
        trainer = self.start("stream", run, "--batches", 5000, "--step-ms", 20, "--save", saved)
        wait_until(lambda: saved.exists() and len(list(saved.glob("*mask.npy"))) >= 3, "3 batches")
        exchange()
        self.kill(self.pids(cluster, "patchbay-worker")[0])
        self.done(trainer, expect=1)
        self.assertIn(str(self.dataset), pathlib.Path(trainer.log).read_text(encoding="utf-8"))
        masks = [path.read_bytes() for path in sorted(expected.glob("*mask.npy"))]
        first_epoch = [path.read_bytes() for path in sorted(saved.glob("*mask.npy"))][:len(masks)]
        self.assertEqual(first_epoch, masks[:len(first_epoch)])
        self.down(cluster)


class ChangedVolumes(Changed):
    def test_a_volume_that_is_swapped_for_another_ends_its_stream(self):
        for name, seed in (("a", 1), ("b", 2)):
            self.assertEqual(self.command("synth", "ct", self.folder / name, "--size", "24x96x90", "--seed", seed).returncode, 0)
            self.json("ingest", self.folder / name, "--out", self.folder / "stores" / name)
        store, other = (next((self.folder / "stores" / name).glob("*.ome.zarr")) for name in "ab")
        run = self.folder / "run.yaml"
        run.write_text(f"dataset: {store}\nseed: 1\npatch: {{size: [8, 32, 32], level: 0}}\n"
                       "batch: {global_size: 4, dtype: float32}\npreprocess: [{window: {range: [-160, 240]}}]\n", encoding="utf-8")
        cluster = self.up(1)
        saved = self.folder / "saved"
        trainer = self.start("stream", run, "--batches", 5000, "--step-ms", 20, "--save", saved)
        wait_until(lambda: saved.exists() and len(list(saved.glob("*image.npy"))) >= 3, "3 batches")
        os.rename(store, self.folder / "aside")
        shutil.move(other, store)
        self.kill(self.pids(cluster, "patchbay-worker")[0])
        self.done(trainer, expect=1)
        text = pathlib.Path(trainer.log).read_text(encoding="utf-8")
        self.assertIn("changed since it was planned", text)
        self.assertIn(str(store), text)
        self.down(cluster)

    def test_components_of_another_revision_end_the_stream_and_are_not_planned(self):
        self.dataset = self.folder / "image.ome.zarr"
        size, spacing, (low, high) = (16, 64, 64), (2, 1, 1), (20, 30)
        for name, value in (("image", lambda z, y, x: 8 * z + x), ("second", lambda z, y, x: int(low < y < high and 40 < x < 50)),
                            ("first", lambda z, y, x: int(low < y < high and 9 < x < 20))):
            harness.nifti(self.folder / f"{name}.nii", size, spacing, value)
        self.json("ingest", self.folder / "image.nii", "--out", self.folder, "--keep-names", "--modality", "CT")
        second, first = (self.imported(self.folder / f"{name}.nii") for name in ("second", "first"))
        run = self.folder / "run.yaml"
        run.write_text(f"dataset: {self.dataset}\nseed: 3\npatch: {{size: [4, 16, 16], level: 0}}\nlabels: {{set: u}}\n"
                       "sampling: {positions: random, patches_per_epoch: 64, oversample_foreground: 0.5, "
                       "foreground: {by: component, classes: [tumour]}}\nbatch: {global_size: 8, dtype: float32}\n", encoding="utf-8")
        self.is_of_another_revision(run, first, second, "components.index")


class ChangedReferences(harness.Case):
    def test_a_stain_reference_that_is_overwritten_changes_no_running_stream_but_the_next(self):
        target = self.folder / "target.svs"
        first, second = (self.slide(f"{seed}.svs", "1301x1111", seed).read_bytes() for seed in (2, 3))
        first, second = (content.ljust(max(len(first), len(second)), b"\0") for content in (first, second))
        target.write_bytes(first)
        times = os.stat(target)

        def overwrite(content):
            with open(target, "r+b") as out:
                out.write(content)
            os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))
        run = self.run_file(self.store([self.slide(size="1301x1111")]))
        run.write_text(run.read_text(encoding="utf-8").replace("preprocess: [", "preprocess: [{stain_normalize: {reference: target.svs}}, "),
                       encoding="utf-8")
        digest = lambda *more: self.json("stream", run, "--digest", "--batches", 40, *more)["digest"]
        cluster = self.up(1)
        planned = digest()
        saved = self.folder / "saved"
        trainer = self.start("stream", run, "--digest", "--json", "--batches", 40, "--step-ms", 25, "--save", saved)
        wait_until(lambda: saved.exists() and len(list(saved.glob("*image.npy"))) >= 3, "3 batches")
        overwrite(second)
        self.kill(self.pids(cluster, "patchbay-worker")[0])
        ended = json.loads(self.done(trainer))
        self.assertEqual(ended["digest"], planned)
        self.await_workers(cluster, 1)
        changed = digest()
        self.assertNotEqual(changed, planned)
        refused = self.command("stream", run, "--resume", ended["resume_token"])
        self.assertEqual(refused.returncode, 1)
        self.assertIn("its stain reference (the picture, or the slides of the cohort) differs", refused.stderr)
        overwrite(first)
        self.assertEqual(digest(), planned)
        self.json("stream", run, "--resume", ended["resume_token"], "--batches", 2)
        self.down(cluster)
        overwrite(second)
        self.assertEqual(digest("--cpus", 1), changed)


if __name__ == "__main__":
    harness.main()
