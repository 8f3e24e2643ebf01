"""A CT from DICOM to augmented patches: the same digest from any number of workers, zscore from the body of the whole volume
as SciPy finds it, and what cannot be, refused by key."""
import subprocess

import harness

CONFIG = """dataset: {dataset}
numerics: cpu
seed: 7678
patch: {{size: {size}, fill: -1024}}
sampling: {sampling}
batch: {{global_size: 4, dtype: float32, tail: keep}}
preprocess:
  - window: {{range: [-150, 250]}}
  - {normalise}
"""

AUGMENT = """augment:
  - flip: {axes: [z, y, x]}
  - affine: {p: 0.6, degrees: [-30, 30], scale: [0.7, 1.4]}
  - elastic: {p: 0.6, points: 5, amplitude_mm: 5}
  - gaussian_noise: {p: 0.5, std: [0, 0.1]}
  - gaussian_blur: {p: 0.5, sigma: [0.5, 1.0]}
  - brightness: {p: 0.5, factor: [0.75, 1.25]}
  - contrast: {p: 0.5, factor: [0.75, 1.25]}
  - low_resolution: {p: 0.5, zoom: [0.5, 1.0]}
  - gamma: {p: 0.5, gamma: [0.7, 1.5], retain_stats: true}
"""

# Arguments: store, folder of saved batches, sides of the patch. Prints "ok" and the patches.
LOOK = r"""
import pathlib, sys
import numpy, zarr
from scipy import ndimage
store, folder, *size = sys.argv[1:]
size = tuple(map(int, size))
volume = numpy.asarray(zarr.open_group(store, mode="r")["0"])
ball = ndimage.generate_binary_structure(3, 1)
labels, count = ndimage.label(ndimage.binary_opening(volume > -500, ball), ball)
body = labels == 1 + numpy.argmax(numpy.bincount(labels.ravel())[1:])
body = numpy.stack([ndimage.binary_fill_holes(s) for s in body])
assert 0.05 < body.mean() < 0.95, body.mean()
def windowed(hu):
    return numpy.clip((hu.astype(float) + 150) / 400, 0, 1)
inside = windowed(volume[body])
files = sorted(pathlib.Path(folder).rglob("*.npy"))
files = [f for f in files if "image" in str(f.relative_to(folder))] or files
patches = numpy.concatenate([numpy.load(f) for f in files])
cells = [-(-whole // side) for whole, side in zip(volume.shape, size)]
padded = numpy.pad(volume, [(0, n * s - w) for n, s, w in zip(cells, size, volume.shape)], constant_values=-1024)
expected = numpy.stack([padded[None, z*size[0]:(z+1)*size[0], y*size[1]:(y+1)*size[1], x*size[2]:(x+1)*size[2]]
                        for z in range(cells[0]) for y in range(cells[1]) for x in range(cells[2])])
expected = (windowed(expected) - inside.mean()) / inside.std()
assert patches.shape == expected.shape, (patches.shape, expected.shape)
# In float: two roundings of values within -5..5.
worst = abs(patches - expected).max()
assert worst < 5e-6, worst
print("ok", len(patches))
"""


# Arguments: folders of saved batches: windowed over all of int16's CT range, and normalised to the same. Prints "ok".
SAME = r"""
import pathlib, sys
import numpy
read = lambda folder: numpy.concatenate([numpy.load(f) for f in sorted(pathlib.Path(folder).rglob("*image*.npy"))])
windowed, plain = map(read, sys.argv[1:])
assert windowed.shape == plain.shape == (12, 1, 1, 32, 32), (windowed.shape, plain.shape)
assert plain.std() > 0.02 and abs(windowed - plain).max() < 1e-5, (plain.std(), abs(windowed - plain).max())
print("ok")
"""


class CtOps(harness.Case):
    def ingested(self):
        made = self.command("synth", "ct", self.folder / "dicom", "--size", "24x96x80")
        self.assertEqual(made.returncode, 0, made.stderr)
        done = self.command("ingest", self.folder / "dicom", "--out", self.folder / "stores")
        self.assertEqual(done.returncode, 0, done.stderr)
        return next(path for path in (self.folder / "stores").iterdir() if path.name.endswith(".zarr"))

    def run_of(self, dataset, name, sampling, normalise="zscore: {over: body}", more="", size=(16, 32, 32)):
        path = self.folder / name
        path.write_text(CONFIG.format(dataset=dataset, size=list(size), sampling=sampling, normalise=normalise) + more,
                        encoding="utf-8")
        return path

    def refused(self, run, *texts):
        result = self.command("stream", run, "--digest", "--gpus", "none", "--cpus", 1)
        self.assertNotEqual(result.returncode, 0)
        for text in texts:
            self.assertIn(text, result.stderr)

    def test_augmented_patches_have_one_digest_and_zscore_is_of_the_whole_body(self):
        store = self.ingested()
        run = self.run_of(store, "train.yaml", "{positions: random, patches_per_epoch: 24}", more=AUGMENT)
        digests = {self.json("stream", run, "--digest", "--gpus", "none", "--cpus", cpus)["digest"] for cpus in (1, 2, 4)}
        self.assertEqual(len(digests), 1)
        grid = self.run_of(store, "grid.yaml", "{order: sequential}")
        folder = self.folder / "saved"
        self.json("stream", grid, "--digest", "--gpus", "none", "--cpus", 2, "--save", folder)
        if not harness.oracles("numpy", "scipy", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with SciPy and zarr")
        looked = subprocess.run([harness.PYTHON, "-c", LOOK, store, folder, "16", "32", "32"], text=True,
                                capture_output=True, check=False)
        self.assertEqual(looked.returncode, 0, looked.stderr)
        self.assertRegex(looked.stdout, "^ok ")

    def test_a_patch_of_one_slice_is_turned_alike_with_a_window_and_without(self):
        store = self.ingested()
        more = "augment: [{affine: {p: 1, degrees: [-40, 40], scale: [0.7, 1.4]}}, {elastic: {p: 1, points: 5, amplitude: 3}}]\n"
        text = CONFIG.format(dataset=store, size=[1, 32, 32], sampling="{positions: random, patches_per_epoch: 12}",
                             normalise="normalize: {scale: 4095, mean: [-0.25006105], std: [1]}") + more
        for name, text in (("plain", text.replace("  - window: {range: [-150, 250]}\n", "")),
                           ("windowed", text.replace("[-150, 250]", "[-1024, 3071]").replace(
                               "normalize: {scale: 4095, mean: [-0.25006105], std: [1]}", "brightness: {p: 0}"))):
            (self.folder / f"{name}.yaml").write_text(text, encoding="utf-8")
            self.json("stream", self.folder / f"{name}.yaml", "--digest", "--gpus", "none", "--cpus", 1, "--save", self.folder / name)
        if not harness.oracles("numpy"):
            self.skipTest("needs PATCHBAY_PYTHON with NumPy")
        looked = subprocess.run([harness.PYTHON, "-c", SAME, self.folder / "windowed", self.folder / "plain"], text=True,
                                capture_output=True, check=False)
        self.assertEqual(looked.returncode, 0, looked.stderr)
        self.assertRegex(looked.stdout, "^ok")

    def test_what_cannot_be_is_refused_by_key(self):
        store = self.folder / "old.ome.zarr"
        made = self.command("synth", "volume", store, "--size", "24x64x64")
        self.assertEqual(made.returncode, 0, made.stderr)
        grid = "{order: sequential}"
        self.refused(self.run_of(store, "old.yaml", grid), "zscore: no body histogram", "`patchbay ingest`")
        self.refused(self.run_of(store, "lock.yaml", grid, "ct_normalize: {}"), "lock.yaml:9", "`patchbay lock`")
        self.refused(self.run_of(store, "two.yaml", grid, "normalize: {}", "augment: [{ct_normalize: {lower: 0, upper: 1, mean: 0, std: 1}}]\n"),
                     "at most one of ct_normalize, percentile, zscore and normalize")
        self.refused(self.run_of(store, "axes.yaml", grid, "flip: {axes: [w]}"), "axes.yaml:9", "'w' is not an axis")
        self.refused(self.run_of(store, "fold.yaml", grid, "elastic: {points: 8, amplitude_mm: 9}"), "folds the patch")


if __name__ == "__main__":
    harness.main()
