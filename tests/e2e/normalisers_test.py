"""zscore and percentile of volumes of any unit, of int16 and float32: the numbers that ingest and labels import counted make the
patches that MONAI's, nnU-Net's and TorchIO's formulas make of the whole array."""
import json
import random
import subprocess

import harness

RUN = """dataset: {dataset}
numerics: cpu
patch: {{size: [8, 24, 20], fill: {fill}}}
sampling: {{order: sequential}}
batch: {{global_size: 1, dtype: float32}}
preprocess: [{ops}]
"""
CLASSES = "classes: [{name: background, value: 0}, {name: soft, value: 1}, {name: hard, value: 2}]\nexhaustive: true\nbackground: background\n"

# Arguments: store, folder of a saved batch, name of the formula. Prints the largest difference. The formulas are those of MONAI 1.3
# (NormalizeIntensity, ScaleIntensityRangePercentiles), nnU-Net 2 (ZScoreNormalization) and TorchIO 0.19 (ZNormalization).
LOOK = r"""
import pathlib, sys
import numpy, zarr
store, folder, formula = sys.argv[1:]
group = zarr.open_group(store, mode="r")
x = numpy.asarray(group["0"]).astype(numpy.float64)
if formula.startswith("window"): x = numpy.clip((x + 150) / 400, 0, 1)
if formula.startswith("percentile"):
    low, high = numpy.percentile(x, [float(p) for p in formula.split()[1:]])
    want = numpy.clip((x - low) / (high - low), 0, 1)
elif "nonzero" in formula:                      # MONAI: the others stay
    want = x.copy()
    want[x != 0] = (x[x != 0] - x[x != 0].mean()) / x[x != 0].std()
elif "mask" in formula:                         # TorchIO: all change
    (labels,) = pathlib.Path(store, "labels").glob("tissue.*")
    mask = numpy.asarray(zarr.open_group(str(labels), mode="r")["0"]) > 0
    want = (x - x[mask].mean()) / x[mask].std()
else:                                           # nnU-Net
    want = (x - x.mean()) / max(x.std(), 1e-8)
(file,) = pathlib.Path(folder).rglob("*image*.npy")
print(abs(numpy.load(file).reshape(x.shape) - want).max())
"""


class Normalisers(harness.Case):
    def setUp(self):
        super().setUp()
        if not harness.oracles("numpy", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with NumPy and zarr")

    def volume(self, name, modality, scale=1, dtype="h", least=0):
        """A store: a third of the voxels is 0, the others lie up to 2000 above `least`, a few far above."""
        numbers = random.Random(3)
        (self.folder / name).mkdir()
        source = self.folder / name / "v.nii"
        harness.nifti(source, (8, 24, 20), (2, 1, 1), lambda z, y, x: scale * numbers.choice(
            (0, least + numbers.randrange(1, 900), least + numbers.randrange(1, 2000), 30_000 if x == y else 7)), dtype)
        harness.nifti(self.folder / "mask.nii", (8, 24, 20), (2, 1, 1), lambda z, y, x: (z + y) % 3 if x > 4 else 0, "B")
        (self.folder / "classes.yaml").write_text(CLASSES)
        out = self.folder / name / "stores"
        self.json("ingest", source, "--out", out, "--modality", modality)
        (store,) = out.glob("*.zarr")
        self.json("labels", "import", store, self.folder / "mask.nii", "--set", "tissue", "--classes", self.folder / "classes.yaml")
        return store

    def run_of(self, store, ops, fill=0):
        run = self.folder / "run.yaml"
        run.write_text(RUN.format(dataset=store, ops=ops, fill=fill))
        return run

    def off(self, store, ops, formula, fill=0):
        """The largest difference from the formula."""
        saved = self.folder / f"saved-{len(list(self.folder.iterdir()))}"
        self.json("stream", self.run_of(store, ops, fill), "--digest", "--gpus", "none", "--cpus", 1, "--save", saved)
        done = subprocess.run([harness.PYTHON, "-c", LOOK, store, saved, formula], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return float(done.stdout)

    def test_patches_are_those_of_the_formulas_over_the_whole_array(self):
        over = {"image": "zscore: {over: image}", "nonzero": "zscore: {over: nonzero}", "mask": "zscore: {over: mask, mask: tissue}",
                "percentile 0.5 99.5": "percentile: {}", "percentile 2 97.3": "percentile: {range: [2, 97.3]}"}
        for name, words, formulas in (("mr", ("MR",), ("nonzero", "mask", "percentile 0.5 99.5")),
                                      ("pet", ("PT:SUVbw", 0.0037, "f"), ("image", "nonzero", "mask", "percentile 2 97.3"))):
            store = self.volume(name, *words)
            for formula in formulas:
                # Two roundings to float32 of values up to 20 deviations; percentiles of float32 are stored as such.
                self.assertLess(self.off(store, over[formula], formula), 5e-6, (name, formula))

    def test_windowed_values_of_ct_count_as_the_window_leaves_them_and_a_body_of_float32_is_counted_too(self):
        store = self.volume("ct", "CT", least=-900)
        window = "window: {range: [-150, 250]}, "
        self.assertLess(self.off(store, window + "zscore: {over: nonzero}", "window nonzero", -1024), 5e-6)
        floats = self.volume("fractions", "CT", 1.25, "f")
        self.json("stream", self.run_of(floats, window + "zscore: {over: body}", -1024), "--digest", "--gpus", "none", "--cpus", 1)
        self.refused(floats, window + "zscore: {over: image}", "zscore: it is of float32, whose values are counted without a window")
        self.refused(floats, "percentile: {range: [0.25, 99]}", "percentile: range: 0.25: of float32 percentiles are counted in tenths")

    def refused(self, store, ops, *texts):
        done = self.command("config", "check", self.run_of(store, ops))
        self.assertNotEqual(done.returncode, 0)
        for text in texts:
            self.assertIn(text, done.stderr)

    def test_what_cannot_be_is_refused_by_key(self):
        store = self.volume("mr", "MR")
        self.refused(store, "zscore: {over: body}", f"{store}: zscore: it takes Hounsfield units, and the volume's modality is MR; if it is CT,")
        self.refused(store, "zscore: {over: mask, mask: other}", str(store), "zscore: ", "label set 'other'", "tissue")
        self.refused(store, "zscore: {over: mask}", "run.yaml:6", "over: mask needs `mask`, the name of a label set")
        self.refused(store, "zscore: {mask: tissue}", "mask: 'tissue': it goes with `over: mask`")
        self.refused(store, "percentile: {range: [50, 50]}", "range: [50, 50]: the low percentile is not below the high one")
        self.refused(store, "percentile: {range: [1, 3]}", "percentile: range: both percentiles are 0: leave it out with `where`")
        self.refused(store, "percentile: {}, zscore: {}", "excludes ", "at most one of ct_normalize, percentile, zscore and normalize")

    def test_ct_normalize_of_a_lock_is_summed_over_hounsfield_units_alone(self):
        store = self.volume("mr", "MR")
        table = self.folder / "t.csv"
        run = self.run_of(table, "ct_normalize: {}")
        run.write_text(run.read_text() + "labels: {set: tissue, mask: true}\n")
        table.write_text(f"path,modality\n{store},\n")
        said = self.command("lock", run).stderr
        self.assertIn("lock: ct_normalize: it takes Hounsfield units, and the volume's modality is MR; if it is CT, the column", said)
        self.assertIn(str(store), said)
        table.write_text(f"path,modality\n{store},CT\n")
        self.assertEqual(self.command("lock", run).returncode, 0)


if __name__ == "__main__":
    harness.main()
