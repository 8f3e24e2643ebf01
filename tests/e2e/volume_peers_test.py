"""Volumes beside nnU-Net, MONAI and TorchIO: two-channel patches at the data's own spacing are nnU-Net's preprocessing, float volumes that
`ingest --spacing` and `patch.spacing` resample are what its resampling makes of them, normalised patches are those of all three. Their arrays
were made by volume_peer_readings.py, with the versions that volume_peer_readings.json has."""
import array
import base64
import json
import math
import pathlib
import sys

import harness
from volume_peer_readings import CASE_SIZE, CASE_SPACING, PERCENTILES, RESAMPLED, STEP, deviation, marked, sparse, whole

READINGS = json.loads(pathlib.Path(__file__).with_name("volume_peer_readings.json").read_text(encoding="utf-8"))
RUN = """dataset: {dataset}
numerics: cpu
patch: {{size: {size}, fill: 0{patch}}}
sampling: {{positions: grid, order: sequential}}
batch: {{global_size: 1, dtype: float32, meta: true}}
preprocess: [{ops}]
"""


def unpacked(reading):
    """Its shape and values."""
    steps = array.array("h", base64.b64decode(reading["steps"]))
    if sys.byteorder == "big":
        steps.byteswap()
    return reading["shape"], [STEP * step for step in steps]


class VolumePeers(harness.Case):
    def patches(self, store, size, ops, patch=""):
        """(box, values) of every patch."""
        run = self.folder / "run.yaml"
        run.write_text(RUN.format(dataset=store, size=list(size), ops=ops, patch=patch), encoding="utf-8")
        saved = self.folder / f"saved-{len(list(self.folder.glob('saved-*')))}"
        self.json("stream", run, "--digest", "--gpus", "none", "--cpus", 1, "--save", saved)
        return [(harness.numbers(pathlib.Path(str(file).replace("-image.npy", "-box.npy")), "q"), harness.numbers(file, "f"))
                for file in sorted(saved.glob("*-image.npy"))]

    def test_two_channel_patches_are_nnunets_preprocessing_at_the_datas_own_spacing(self):
        for channel in (0, 1):
            path = self.folder / f"d/imagesTr/case_000{channel}.nii"
            path.parent.mkdir(parents=True, exist_ok=True)
            harness.nifti(path, CASE_SIZE, CASE_SPACING, lambda z, y, x, of=channel: whole(of, z, y, x))
        (self.folder / "d/labelsTr").mkdir()
        harness.nifti(self.folder / "d/labelsTr/case.nii", CASE_SIZE, CASE_SPACING, lambda z, y, x: int(y > x), "B")
        (self.folder / "d/dataset.json").write_text(json.dumps(
            {"channel_names": {"0": "T1", "1": "T2"}, "labels": {"background": 0, "lesion": 1}, "file_ending": ".nii"}), encoding="utf-8")
        self.json("ingest", "d", "--out", "stores")
        store = next((self.folder / "stores").glob("*.zarr"))
        shape, wanted = unpacked(READINGS["preprocessed"])
        self.assertEqual(shape, [2, *CASE_SIZE])
        size, seen = (3, 6, 5), 0
        for box, values in self.patches(store, size, "zscore: {over: image}"):
            self.assertEqual(box[3:], size)
            at = iter(values)
            for channel in (0, 1):
                for z, y, x in ((z, y, x) for z in range(size[0]) for y in range(size[1]) for x in range(size[2])):
                    place = ((channel * shape[1] + box[0] + z) * shape[2] + box[1] + y) * shape[3] + box[2] + x
                    self.assertAlmostEqual(next(at), wanted[place], delta=1e-3)
                    seen += 1
        self.assertEqual(seen, len(wanted))  # every voxel once

    def test_float_volumes_are_resampled_as_nnunet_does(self):
        for group, (mm, order, volumes) in RESAMPLED.items():
            for name, (size, spacing) in volumes.items():
                harness.nifti(self.folder / f"{name}.nii", size, spacing, deviation, "f")
            self.json("ingest", *(f"{name}.nii" for name in volumes), "--out", group, "--keep-names", "--modality", "MR",
                      "--anisotropic", "separate_z", "--spacing", ",".join(map(str, mm)), "--spacing-order", order)
            table = self.folder / f"{group}.csv"
            table.write_text("\n".join(["path", *(f"{group}/{name}.ome.zarr" for name in volumes)]) + "\n", encoding="utf-8")
            shape = unpacked(READINGS["resampled"][next(iter(volumes))])[0]
            patches = self.patches(table, shape, "", ", mixed_spacing: true")  # sides are rounded
            self.assertEqual(len(patches), len(volumes))
            for name, (_, found) in zip(volumes, patches):
                there, wanted = unpacked(READINGS["resampled"][name])
                self.assertEqual((there, len(found)), (shape, len(wanted)))
                self.assertLess(max(abs(one - other) for one, other in zip(found, wanted)), 1e-3, name)
        # On the way to the patch, linear, but for the voxels that reach beyond the volume.
        self.json("ingest", "thick.nii", "--out", "own", "--modality", "MR")
        shape, wanted = unpacked(READINGS["resampled"]["thick"])
        (_, found), = self.patches(next((self.folder / "own").glob("*.zarr")), shape, "",
                                   f", spacing: {list(mm)}, upsample: true, resample: {{anisotropic: separate_z}}")
        within = [i for i in range(len(wanted)) if 0 < i // shape[2] % shape[1] < shape[1] - 1 and 0 < i % shape[2] < shape[2] - 1]
        self.assertGreater(len(within), len(wanted) / 2)
        self.assertLess(max(abs(found[i] - wanted[i]) for i in within), 1e-3)

    def test_normalised_patches_are_monais_and_torchios(self):
        harness.nifti(self.folder / "v.nii", CASE_SIZE, CASE_SPACING, sparse)
        harness.nifti(self.folder / "m.nii", CASE_SIZE, CASE_SPACING, marked, "B")
        self.json("ingest", "v.nii", "--out", "stores", "--modality", "MR")
        store = next((self.folder / "stores").glob("*.zarr"))
        # A region of nnU-Net is a class of several values.
        (self.folder / "c.yaml").write_text("classes: [{name: background, value: 0, from: [0]}, {name: tissue, value: 1, from: [1, 2]}]\n"
                                            "exhaustive: true\nbackground: background\n", encoding="utf-8")
        row, = self.json("labels", "import", store, "m.nii", "--set", "tissue", "--classes", "c.yaml")["imported"]
        voxels = sum(marked(z, y, x) > 0 for z in range(CASE_SIZE[0]) for y in range(CASE_SIZE[1]) for x in range(CASE_SIZE[2]))
        self.assertEqual(row["classes"][1]["voxels"], voxels)
        for name, ops in (("NormalizeIntensity", "zscore: {over: nonzero}"), ("ScaleIntensityRangePercentiles", f"percentile: {list(PERCENTILES)}"),
                          ("ZNormalization", "zscore: {over: mask, mask: tissue}")):
            shape, wanted = unpacked(READINGS["normalised"][name])
            if name == "ZNormalization":  # by the deviation of a sample, of n - 1
                wanted = [value * math.sqrt(voxels / (voxels - 1)) for value in wanted]
            (_, found), = self.patches(store, shape, ops)
            self.assertEqual(len(found), len(wanted))
            self.assertLess(max(abs(one - other) for one, other in zip(found, wanted)), 1e-3, name)


if __name__ == "__main__":
    harness.main()
