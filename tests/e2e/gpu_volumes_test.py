"""CT patches on a CUDA device that the CPU plays: the bytes of the CPU whatever slots, workers and devices make them, resumed,
and whatever ends on the way; volumes whose boxes the device cannot hold. Skips where the build has no such device."""
import pathlib
import re

import gpu_test
import harness

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"

# configs/colorectal.yaml for a phantom, small, every op likely: what is drawn stays, but for the bend of so small a patch.
SMALLER = (("dataset: colon.csv", "dataset: {store}"), (r"\nstores: stores/", ""), (r"\nwhere: [^\n]*", ""),
           (r"\nsplit_column: [^\n]*", ""), (r"\nsplits:.*", ""), ("numerics: cpu", "numerics: {numerics}"),
           (r"size: \[96, 96, 96\]", "size: [8, 12, 11]"), ("patches_per_epoch: 10000", "patches_per_epoch: 14"),
           ("global_size: 16", "global_size: 4"), ("tail: drop", "tail: pad"), ("amplitude_mm: 5", "amplitude_mm: 0.2"),
           (r"p: 0\.\d+", "p: 0.6"))


class GpuVolumes(gpu_test.GpuCase):
    def store(self):
        made = self.command("synth", "ct", self.folder / "p", "--size", "40x60x56", "--seed", 40, "--step", 0.8, "--pixel", 0.9,
                            "--lesions", self.folder / "p.nii")
        self.assertEqual(made.returncode, 0, made.stderr)
        made = self.command("ingest", self.folder / "p", "--out", self.folder / "stores")
        self.assertEqual(made.returncode, 0, made.stderr)
        store = next(p for p in (self.folder / "stores").iterdir() if (p / "zarr.json").exists())
        self.json("labels", "import", store, "p.nii", "--set", "lesions", "--classes", CONFIGS / "classes/lesions.yaml")
        return self.keep(store)

    def config(self, numerics):
        text = (CONFIGS / "colorectal.yaml").read_text(encoding="utf-8")
        for old, new in SMALLER:
            self.assertRegex(text, old)
            text = re.sub(old, new, text, flags=re.S)
        run = self.folder / f"{numerics}.yaml"
        run.write_text(text.replace("{store}", str(self.once("store", self.store))).replace("{numerics}", numerics))
        return run

    def stream(self, numerics, *more, gpus="auto"):
        return self.json("stream", self.config(numerics), "--digest", "--gpus", gpus, "--cpus", 1, *more)

    def expected(self):
        """The CPU's output: result and arrays of the command, and the digest of the images that a trainer takes."""
        return self.once("expected", lambda: (self.saved("cpu", "none"), self.digest(self.config("cpu"), "none", "host")))

    def saved(self, numerics, gpus, *more):
        """The stream's result and the files of its arrays."""
        folder = self.folder / f"saved-{len(list(self.folder.glob('saved-*')))}"
        result = self.stream(numerics, "--save", folder, *more, gpus=gpus)
        return result, {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix == ".npy"}

    def test_slots_workers_and_devices_change_no_byte(self):
        (whole, _), images = self.expected()
        arrays = whole["digest"]
        for self.seed in gpu_test.SEEDS:
            self.assertEqual(self.stream("cuda")["digest"], arrays, f"images, masks and where they lie; seed {self.seed}")
        self.assertEqual(self.digest(self.config("cuda"), "auto", "0"), images, "device slots")
        self.assertEqual(self.digest(self.config("cpu"), "none", "0"), images, "CPU workers, by pinned staging")
        self.devices, self.seed = 2, 2
        self.assertEqual(self.stream("strict")["digest"], arrays, "all workers of two GPUs")
        self.assertEqual(self.digest(self.config("strict"), "auto", "1"), images, "device slots of all workers")

    def test_a_resumed_run_goes_on_with_the_same_bytes(self):
        (_, whole), _ = self.expected()
        said, first = self.saved("cuda", "auto", "--batches", 1)
        _, rest = self.saved("cuda", "auto", "--resume", said["resume_token"], "--batches", 3)
        self.assertTrue(first and rest and not first.keys() & rest.keys())
        self.assertTrue(first | rest == whole, "the resumed run differs")

    def test_a_killed_worker_and_a_lost_device_cost_time_alone(self):
        _, images = self.expected()
        self.assertEqual(self.digest_though_killed(self.config("cuda"), self.folder / "go"), images)
        # In every process: each worker makes a part.
        self.more = {"PATCHBAY_EMULATED_GPU_LOST_AFTER": "60", **self.timeline("ran")}
        self.assertEqual(self.digest(self.config("cuda"), "auto", "host"), images)
        self.assertGreater(self.with_kernels("ran"), 1, "no device was lost")

    def test_a_device_without_room_for_the_boxes_is_named_with_image_and_size(self):
        self.more = {"PATCHBAY_EMULATED_GPU_BYTES": "100000"}
        failed = self.command("stream", self.config("cuda"), "--digest", "--gpus", "auto", "--cpus", 1)
        self.assertEqual(failed.returncode, 1, failed.stderr)
        self.assertRegex(failed.stderr, r"zarr: read \d+ x \d+ x \d+ pixels for a patch: allocate device block: \d+ bytes: "
                                        r"cudaErrorMemoryAllocation: .*make patch.size smaller, or set numerics: cpu")


if __name__ == "__main__":
    harness.main()
