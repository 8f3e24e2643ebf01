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
        out = self.folder / name / "stores"
        self.json("ingest", source, "--out", out, "--modality", modality)
        (store,) = out.glob("*.zarr")
        return store

    def labelled(self, *words):
        store = self.volume(*words)
        harness.nifti(self.folder / "mask.nii", (8, 24, 20), (2, 1, 1), lambda z, y, x: (z + y) % 3 if x > 4 else 0, "B")
        (self.folder / "classes.yaml").write_text(CLASSES)
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

    def refused(self, store, ops, *texts):
        done = self.command("config", "check", self.run_of(store, ops))
        self.assertNotEqual(done.returncode, 0)
        for text in texts:
            self.assertIn(text, done.stderr)

    def test_patches_are_those_of_the_formulas_over_the_whole_array(self):
        over = {"image": "zscore: {over: image}", "nonzero": "zscore: {over: nonzero}", "mask": "zscore: {over: mask, mask: tissue}",
                "percentile 0.5 99.5": "percentile: {}", "percentile 2 97.3": "percentile: [2, 97.3]"}
        for words, formulas in ((("mr", "MR"), ("image", "mask", "percentile 0.5 99.5")),
                                (("pet", "PT:SUVbw", 0.0037, "f"), ("nonzero", "mask", "percentile 2 97.3"))):
            store = self.labelled(*words)
            for formula in formulas:
                # Two roundings to float32 of values up to 20 deviations; percentiles of float32 are stored as such.
                self.assertLess(self.off(store, over[formula], formula), 5e-6, (words, formula))
        self.refused(store, "percentile: {range: [0.25, 99]}", "percentile: range: 0.25: of float32 percentiles are counted in tenths")
        self.refused(store, "zscore: {over: mask, mask: other}", f"{store}: no set 'other' (it has tissue)")

    def test_windowed_values_of_ct_count_as_the_window_leaves_them_and_a_body_of_float32_is_counted_too(self):
        window = "window: {range: [-150, 250]}, "
        store = self.volume("ct", "CT", 1, "h", -900)
        self.assertLess(self.off(store, window + "zscore: {over: nonzero}", "window nonzero", -1024), 5e-6)
        floats = self.volume("fractions", "CT", 1.25, "f")
        self.json("stream", self.run_of(floats, window + "zscore: {over: body}", -1024), "--digest", "--gpus", "none", "--cpus", 1)
        self.refused(floats, window + "zscore: {over: image}", "zscore: it is of float32, whose values are counted without a window")

    def test_what_asks_for_hounsfield_units_refuses_others_in_a_run_and_in_a_lock(self):
        store = self.labelled("mr", "MR")
        asks = "it takes Hounsfield units, and the volume's modality is MR; if it is CT, the column"
        self.refused(store, "zscore: {over: body}", f"{store}: zscore: {asks}")
        self.refused(store, "percentile: {range: [1, 3]}", "percentile: range: both percentiles are 0: leave it out with `where`")
        table = self.folder / "t.csv"
        run = self.run_of(table, "ct_normalize: {}")
        run.write_text(run.read_text() + "labels: {set: tissue, mask: true}\n")
        table.write_text(f"path,modality\n{store},\n")
        said = self.command("lock", run).stderr
        self.assertIn(f"lock: ct_normalize: {asks}", said)
        self.assertIn(str(store), said)
        table.write_text(f"path,modality\n{store},CT\n")
        self.assertEqual(self.command("lock", run).returncode, 0)


if __name__ == "__main__":
    harness.main()
