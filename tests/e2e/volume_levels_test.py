"""The levels of a volume with odd sides: OME scale and translation say where every voxel lies, of images and label images,
as zarr-python and TensorStore read them; patch.spacing goes by them; stores with the ratios of their shapes stream alike."""
import json
import pathlib
import subprocess

import harness

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"

SIZE = (12, 141, 45)  # z, y, x
SPACING = (5.0, 3.0, 0.9)

# Arguments: store, label image. The voxels of level 0 are 256 z + 64 y + 16 x: a level's are the same of where they lie.
LOOK = r"""
import json, sys
import numpy as np, zarr
store, label = sys.argv[1:]
def levels(path):
    attributes = json.load(open(f"{path}/zarr.json"))["attributes"]["ome"]["multiscales"][0]
    assert [a["unit"] for a in attributes["axes"]] == ["millimeter"] * 3
    for dataset in attributes["datasets"]:
        kinds = {t["type"]: t[t["type"]] for t in dataset["coordinateTransformations"]}
        assert list(kinds) == ["scale", "translation"], kinds
        yield dataset["path"], np.array(kinds["scale"]), np.array(kinds["translation"])
found, spacing = list(levels(store)), np.array([5.0, 3.0, 0.9])
assert len(found) == 4, found
factors = np.array([1, 2, 4, 8])
for (name, scale, shift), factor in zip(found, factors):
    assert np.allclose(scale, factor * spacing, rtol=1e-6), (name, scale)
    assert np.allclose(shift, (factor - 1) / 2 * spacing, rtol=1e-6), (name, shift)
    array = np.asarray(zarr.open_array(f"{store}/{name}", mode="r"))
    try:
        import tensorstore
        other = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{store}/{name}"}}).result()
        assert (np.asarray(other.read().result()) == array).all()
    except ImportError:
        pass
    whole = tuple(slice(0, side // factor) for side in (12, 141, 45))  # voxels whose block is whole
    index = [np.arange(s.stop) * k + t for s, k, t in zip(whole, scale / spacing, shift / spacing)]
    expected = 256 * index[0][:, None, None] + 64 * index[1][None, :, None] + 16 * index[2][None, None, :]
    assert abs(array[whole] - expected).max() <= 1, name
marked = list(levels(label))
assert [n for n, _, _ in marked] == [n for n, _, _ in found]
assert all((a[1] == b[1]).all() and (a[2] == b[2]).all() for a, b in zip(marked, found))
print("ok")
"""


class VolumeLevels(harness.Case):
    def ingested(self):
        harness.nifti(self.folder / "odd.nii", SIZE, SPACING, lambda z, y, x: 256 * z + 64 * y + 16 * x)
        self.json("ingest", self.folder / "odd.nii", "--out", self.folder / "stores", "--volume-chunk", 32)
        return next((self.folder / "stores").glob("*.zarr"))

    def streamed(self, store, size, spacing, *more):
        run = self.folder / "run.yaml"
        run.write_text(f"dataset: {store}\npatch: {{size: {size}, spacing: {spacing}, fill: -1024}}\nsampling: {{order: sequential}}\n"
                       "batch: {global_size: 1}\n", encoding="utf-8")
        return self.json("stream", run, "--digest", "--gpus", "none", "--cpus", 1, *more)

    def test_scale_and_translation_place_the_voxels_of_every_level(self):
        store = self.ingested()
        harness.nifti(self.folder / "mask.nii", SIZE, SPACING, lambda z, y, x: int(z < 6 and 20 < y < 60), "B")
        self.json("labels", "import", store, "mask.nii", "--set", "lesions", "--classes",
                  CONFIGS / "classes/lesions.yaml")
        self.assertEqual(self.command("verify", store).returncode, 0)
        label = next(path for path in (store / "labels").iterdir() if (path / "0").is_dir())
        if not harness.oracles("numpy", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with NumPy and zarr")
        looked = subprocess.run([harness.PYTHON, "-c", LOOK, store, label], text=True, capture_output=True, check=False)
        self.assertEqual(looked.returncode, 0, looked.stderr)
        self.assertRegex(looked.stdout, "^ok")

    def test_a_level_is_taken_for_its_true_spacing(self):
        store = self.ingested()
        # Level 3 has two slices of 40 mm, not of 30: it is delivered as it is.
        self.streamed(store, [2, 18, 6], [40.0, 24.0, 7.2], "--save", self.folder / "saved")
        if not harness.oracles("numpy", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with NumPy and zarr")
        looked = subprocess.run(
            [harness.PYTHON, "-c", "import sys, numpy, zarr; a = numpy.load(sys.argv[1])[0, 0];"
             "assert (a == numpy.asarray(zarr.open_array(sys.argv[2], mode='r'))).all()",
             next((self.folder / "saved").glob("*image.npy")), store / "3"], text=True, capture_output=True, check=False)
        self.assertEqual(looked.returncode, 0, looked.stderr)

    def test_stores_with_the_ratios_of_their_shapes_stream_as_before(self):
        store = self.ingested()
        asked = ([6, 32, 16], [10.0, 6.0, 1.8]), ([4, 16, 16], [12.0, 7.0, 2.0])
        digests = [self.streamed(store, *each)["digest"] for each in asked]
        path = store / "zarr.json"
        root = json.loads(path.read_text(encoding="utf-8"))
        datasets = root["attributes"]["ome"]["multiscales"][0]["datasets"]
        finest = datasets[0]["coordinateTransformations"][0]["scale"]
        for dataset in datasets:
            shape = json.loads((store / dataset["path"] / "zarr.json").read_text(encoding="utf-8"))["shape"]
            scale = [step * whole / side for step, whole, side in zip(finest, SIZE, shape)]
            dataset["coordinateTransformations"] = [{"type": "scale", "scale": scale}]
        path.write_text(json.dumps(root), encoding="utf-8")
        self.assertEqual([self.streamed(store, *each)["digest"] for each in asked], digests)


if __name__ == "__main__":
    harness.main()
