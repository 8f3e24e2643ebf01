"""Segmentations of volumes: onto the image's grid from every format, refused where they do not belong, verified."""
import json
import shutil
import struct
import subprocess
import unittest

import harness

TABLE = """
classes:
  - {name: background, value: 0}
  - {name: soft, value: 1}
  - {name: bone, value: 2, aliases: [Cortical bone]}
exhaustive: true
background: background
"""

# Writes masks of the voxels of a store, by Hounsfield units, in other orientations and grids; prints what it expects
# of one that is resampled. Arguments: store, folder.
MAKE = r"""
import gzip, json, pathlib, struct, sys
import numpy, zarr
from scipy import ndimage
store, folder = sys.argv[1], pathlib.Path(sys.argv[2])
group = zarr.open_group(store, mode="r")
hu = numpy.asarray(group["0"])
ras = numpy.array(group.attrs["patchbay"]["affine_ras"])          # matrix for voxel (x, y, z)
classes = ((hu > 0).astype(numpy.uint8) + (hu > 150))             # z, y, x
numpy.save(folder / "classes.npy", classes)

def nifti(path, array, affine, dtype=2):                         # array in z, y, x
    header = bytearray(348)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, 3, *array.shape[::-1], 1, 1, 1, 1)
    struct.pack_into("<2h", header, 70, dtype, {2: 8, 16: 32}[dtype])
    struct.pack_into("<8f", header, 76, 1, *numpy.linalg.norm(affine[:3, :3], axis=0), 0, 0, 0, 0)
    struct.pack_into("<f", header, 108, 352)
    struct.pack_into("<f", header, 112, 1)
    struct.pack_into("<2h", header, 252, 0, 1)
    struct.pack_into("<12f", header, 280, *affine[:3].ravel())
    header[344:348] = b"n+1\0"
    kind = {2: numpy.uint8, 16: numpy.float32}[dtype]
    data = bytes(header) + b"\0" * 4 + numpy.ascontiguousarray(array, kind).tobytes()
    path.write_bytes(gzip.compress(data, 1) if path.name.endswith(".gz") else data)

def flipped(array, affine, axes):                                # axes: 0 = z, 1 = y, 2 = x
    affine = affine.copy()
    for axis in axes:
        column = 2 - axis
        affine[:3, 3] += affine[:3, column] * (array.shape[axis] - 1)
        affine[:3, column] *= -1
    return numpy.flip(array, axes), affine

nifti(folder / "same.nii", classes, ras)
nifti(folder / "flipped.nii.gz", *flipped(classes, ras, (0, 2)), dtype=16)
swapped = ras[:, [2, 1, 0, 3]]                                   # the array's x is z
nifti(folder / "swapped.nii.gz", classes.transpose(2, 1, 0), swapped)
nifti(folder / "part.nii.gz", classes[4:-3, 10:-20, 7:-9],
      ras @ numpy.array([[1, 0, 0, 7], [0, 1, 0, 10], [0, 0, 1, 4], [0, 0, 0, 1.0]]))
far = ras.copy(); far[:3, 3] += 5000
nifti(folder / "far.nii.gz", classes, far)
nifti(folder / "unknown.nii.gz", classes + 3 * (classes == 2), ras)
nifti(folder / "broken.nii.gz", classes * 0.5, ras, dtype=16)
skewed = ras.copy(); skewed[0, 1] += 0.5
nifti(folder / "skewed.nii.gz", classes, skewed)
nifti(folder / "foreground.nii.gz", numpy.where(classes == 2, 255, 0), ras)
# The image's grid and five columns more: 20,000 voxels of soft tissue on the image, 150 beside it; bone where asked.
def wider(name, lost, bone):
    mask = numpy.zeros((22, 130, 118 + 5), numpy.uint8)
    mask[5:15, 20:40, 17:117] = 1
    mask[5:15, 20:35, 119:119 + lost] = 1
    mask[0, 0, bone] = 2
    nifti(folder / name, mask, ras)
wider("near.nii.gz", 1, slice(0, 3))
wider("shifted.nii.gz", 2, slice(0, 3))
wider("gone.nii.gz", 1, slice(119, 122))

# A coarser grid, turned by some degrees: each voxel of the image takes what linear weights of one-hot classes say.
turn = numpy.radians(7)
rotation = numpy.array([[numpy.cos(turn), -numpy.sin(turn), 0], [numpy.sin(turn), numpy.cos(turn), 0], [0, 0, 1]])
coarse = numpy.eye(4)
coarse[:3, :3] = rotation @ ras[:3, :3] @ numpy.diag([1.6, 1.3, 1.2])
coarse[:3, 3] = ras[:3, 3] + ras[:3, :3] @ numpy.array([9.3, -7.2, 1.4])
shape = (17, 88, 80)
k, j, i = numpy.indices(shape)
at = numpy.linalg.inv(ras) @ coarse @ numpy.stack([i, j, k, numpy.ones(shape)]).reshape(4, -1)
small = ndimage.map_coordinates(classes, at[2::-1], order=0, mode="nearest").reshape(shape)
nifti(folder / "turned.nii.gz", small, coarse)
stored = coarse.astype(numpy.float32).astype(numpy.float64)
k, j, i = numpy.indices(classes.shape)
at = (numpy.linalg.inv(stored) @ ras @ numpy.stack([i, j, k, numpy.ones(classes.shape)]).reshape(4, -1))[2::-1]
inside = numpy.all([(a >= -0.5) & (a < n - 0.5) for a, n in zip(at, shape)], axis=0)
weights = numpy.stack([ndimage.map_coordinates((small == c).astype(float), at, order=1, mode="nearest") for c in range(3)])
expected = numpy.where(inside, weights.argmax(0), 0).reshape(classes.shape).astype(numpy.uint8)
ranked = numpy.sort(weights, axis=0)
sure = (~inside | (ranked[-1] - ranked[-2] > 1e-6)).reshape(classes.shape)
border = numpy.min([numpy.minimum(abs(a + 0.5), abs(a - n + 0.5)) for a, n in zip(at, shape)], axis=0)
sure &= (border > 1e-6).reshape(classes.shape)
numpy.save(folder / "turned.npy", expected); numpy.save(folder / "turned_sure.npy", sure)

# Two layers that overlap, as 3D Slicer writes them.
lps = numpy.array(group.attrs["patchbay"]["affine_lps"])
layers = numpy.stack([hu > 0, hu > 150], axis=-1).astype(numpy.uint8)
def nrrd(path, names, layers=layers, text=""):
    vectors = " ".join("(" + ",".join(repr(float(v)) for v in lps[:3, c]) + ")" for c in range(3))
    lines = ["NRRD0004", "type: unsigned char", "dimension: 4", "space: left-posterior-superior",
             "sizes: 2 " + " ".join(map(str, hu.shape[::-1])), f"space directions: none {vectors}",
             "kinds: list domain domain domain", "encoding: gzip",
             "space origin: (" + ",".join(repr(float(v)) for v in lps[:3, 3]) + ")"]
    for n, (name, layer) in enumerate(names):
        lines += [f"Segment{n}_Name:={name}", f"Segment{n}_LabelValue:=1", f"Segment{n}_Layer:={layer}"]
    path.write_bytes("\n".join(lines).encode() + b"\n\n" + gzip.compress(numpy.ascontiguousarray(layers).tobytes(), 1))
nrrd(folder / "two.seg.nrrd", [("Cortical bone", 1), ("soft", 0)])
nrrd(folder / "other.seg.nrrd", [("Cortical bone", 1), ("spleen", 0)])
nrrd(folder / "layer.seg.nrrd", [("Cortical bone", 2)])
print("made")
"""

# Arguments: store, revision's folder, expected classes (.npy), [voxels that are sure]. Prints "ok".
LOOK = r"""
import json, pathlib, sys
import numpy, tensorstore, zarr
store, revision, expected, *sure = sys.argv[1:]
path = f"{store}/labels/{revision}"
group = zarr.open_group(path, mode="r")
image = zarr.open_group(store, mode="r")
expected = numpy.load(expected)
sure = numpy.load(sure[0]) if sure else numpy.ones(expected.shape, bool)
wrong, before = [], None
names = [d["path"] for d in group.attrs["ome"]["multiscales"][0]["datasets"]]
if names != [d["path"] for d in image.attrs["ome"]["multiscales"][0]["datasets"]]:
    wrong.append("levels")
for name in names:
    level = numpy.asarray(group[name])
    if level.shape != image[name].shape or level.dtype != numpy.uint8:
        wrong.append(f"level {name}: shape or type")
    same = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/{name}"}}).result()
    if not numpy.array_equal(level, same.read().result()):
        wrong.append(f"level {name}: zarr-python and TensorStore differ")
    if before is None:
        if not numpy.array_equal(level[sure], expected[sure]):
            wrong.append(f"{(level != expected)[sure].sum()} voxels differ")
    else:
        counts = numpy.zeros((256, *level.shape), numpy.uint8)
        for z in (0, 1):
            for y in (0, 1):
                for x in (0, 1):
                    part = before[z::2, y::2, x::2]
                    for value in numpy.unique(part):
                        counts[value][tuple(map(slice, part.shape))] += part == value
        if not numpy.array_equal(level, counts.argmax(0)):
            wrong.append(f"level {name} is not the mode of the one before")
    before = level
print("; ".join(wrong) or "ok")
"""


class VolumeLabels(harness.Case):
    def setUp(self):
        super().setUp()
        if not harness.oracles("numpy", "scipy", "zarr", "tensorstore", "PIL"):
            self.skipTest("needs NumPy, SciPy, zarr, TensorStore and Pillow")
        self.classes = self.folder / "classes.yaml"
        self.classes.write_text(TABLE, encoding="utf-8")

    def run_python(self, script, *words):
        done = subprocess.run([harness.PYTHON, "-c", script, *map(str, words)], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done.stdout.strip()

    def phantom(self):
        """A store of `synth ct`, and masks of it."""
        made = self.command("synth", "ct", self.folder / "series", "--size", "22x130x118", "--seed", 5)
        self.assertEqual(made.returncode, 0, made.stderr)
        made = self.command("ingest", self.folder / "series", "--out", self.folder / "stores")
        self.assertEqual(made.returncode, 0, made.stderr)
        store = next(p for p in (self.folder / "stores").iterdir() if (p / "zarr.json").exists())
        self.run_python(MAKE, store, self.folder)
        return store

    def imported(self, store, file, name="parts", classes=None, expect=0, clip=False):
        seen = self.json("labels", "import", store, file, "--set", name, "--classes", classes or self.classes,
                         *["--clip"] * clip, expect=expect)
        return seen["imported"][0]

    def refused(self, store, file, *texts, classes=None):
        result = self.command("labels", "import", store, file, "--set", "bad", "--classes", classes or self.classes)
        self.assertEqual(result.returncode, 1, result.stderr)
        for text in texts:
            self.assertIn(text, result.stderr)
        self.assertFalse((store / "labels" / ".staging").exists())
        self.assertFalse(list(store.glob("labels/bad*")))

    def test_masks_of_every_orientation_lie_on_the_image(self):
        store = self.phantom()
        digests = set()
        for name in ("same.nii", "flipped.nii.gz", "swapped.nii.gz", "two.seg.nrrd"):
            row = self.imported(store, self.folder / name)
            self.assertEqual(row["grid"], "same", name)
            self.assertEqual(self.run_python(LOOK, store, row["revision"], self.folder / "classes.npy"), "ok", name)
            if name == "two.seg.nrrd":  # bone lies within soft; the table has it further down, the file first
                self.assertGreater(row["overlapping_voxels"], 1000)
        self.segments_kept_apart(store)
        part = self.imported(store, self.folder / "part.nii.gz")
        self.assertEqual((part["grid"], part["covered_voxels"]), ("same", 15 * 100 * 102))
        self.assertEqual([one["lost_voxels"] for one in part["classes"]], [0, 0, 0])
        turned = self.imported(store, self.folder / "turned.nii.gz", clip=True)
        self.assertEqual(turned["grid"], "resampled")
        self.assertEqual(self.run_python(LOOK, store, turned["revision"], self.folder / "turned.npy",
                                         self.folder / "turned_sure.npy"), "ok")
        again = self.imported(store, self.folder / "turned.nii.gz", clip=True)
        self.assertEqual((again["revision"], again["already_there"]), (turned["revision"], True))
        self.assertEqual(self.command("verify", store).returncode, 0)
        histograms = store / "labels" / turned["revision"] / "histograms.index"
        histograms.write_bytes(histograms.read_bytes()[:-1] + b"x")
        self.assertNotEqual(self.command("verify", store).returncode, 0)

    def segments_kept_apart(self, store):
        """Imports each segment of a file with overlapping segments into a set of its own, whole: each table skips the other one."""
        look = ("import sys, numpy\n"
                "classes = numpy.load(sys.argv[1])\n"
                "for value in (1, 2):\n"
                "    numpy.save(f'{sys.argv[2]}/only{value}.npy', numpy.where(classes >= value, value, 0).astype(numpy.uint8))")
        self.run_python(look, self.folder / "classes.npy", self.folder)
        for value, kept, other in ((1, "soft", "Cortical bone"), (2, "bone", "soft")):
            table = self.folder / f"only-{kept}.yaml"
            lines = [line for line in TABLE.splitlines() if "name:" not in line or kept in line or "background" in line]
            table.write_text("\n".join(lines) + f"\nskip: [{other}]\n", encoding="utf-8")
            row = self.imported(store, self.folder / "two.seg.nrrd", kept, table)
            self.assertEqual(row["overlapping_voxels"], 0)
            self.assertEqual(self.run_python(LOOK, store, row["revision"], self.folder / f"only{value}.npy"), "ok", kept)

    def test_voxels_outside_the_image_are_counted_and_not_lost_unasked(self):
        store = self.phantom()
        near = self.command("labels", "import", store, self.folder / "near.nii.gz", "--set", "near", "--classes", self.classes)
        self.assertEqual(near.returncode, 0, near.stderr)
        self.assertIn("near.nii.gz: voxels outside the image are lost: 150 of 20150 of soft\n", near.stderr)
        self.refused(store, self.folder / "shifted.nii.gz", "'soft' loses 300 of 20300 voxels outside the image: ", "--clip")
        self.refused(store, self.folder / "gone.nii.gz", "'bone' loses 3 of 3 voxels outside the image and has none on it")
        for name, bone in (("shifted.nii.gz", 3), ("gone.nii.gz", 0)):
            row = self.imported(store, self.folder / name, "clipped", clip=True)
            self.assertEqual([one["voxels"] for one in row["classes"]][1:], [20000, bone])
        self.assertEqual([one["lost_voxels"] for one in row["classes"]], [0, 150, 3])
        self.refused(store, self.folder / "far.nii.gz", "outside the image")

    def test_255_is_ignored_only_where_the_table_says_so(self):
        store = self.phantom()
        bone = self.imported(store, self.folder / "same.nii")["classes"][2]["voxels"]
        self.refused(store, self.folder / "foreground.nii.gz", f"does not have: 255 ({bone} voxels); 255 may be a class (`from: 255`)")
        table = self.folder / "table.yaml"
        for line, counts, ignored in (("{name: bone, value: 2, from: 255}", [bone], 0),
                                      ("{name: unclear, value: 255}", [bone], bone),
                                      ("{name: unclear, value: 255, from: 255}\n  - {name: none, value: 255, from: 7}", [bone, 0], bone)):
            table.write_text("classes:\n  - {name: background, value: 0, from: 0}\n"
                             f"  - {line}\nexhaustive: true\nbackground: background\n", encoding="utf-8")
            row = self.imported(store, self.folder / "foreground.nii.gz", "ignoring", table)
            self.assertEqual([one["voxels"] for one in row["classes"]][1:], counts, line)
            self.assertEqual(row["ignored_voxels"], ignored, line)
        # Voxels that the mask does not reach are ignored and of no class.
        table.write_text("classes:\n  - {name: soft, value: 1}\n  - {name: bone, value: 2}\n"
                         "  - {name: rest, value: 0}\n  - {name: unclear, value: 255}\n", encoding="utf-8")
        row = self.imported(store, self.folder / "part.nii.gz", "part", table)
        self.assertEqual((row["classes"][3]["voxels"], row["ignored_voxels"]), (0, 22 * 130 * 118 - 15 * 100 * 102))

    def test_a_preview_shows_three_slices_with_the_labels(self):
        store = self.phantom()
        count = ("import sys, numpy\nfrom PIL import Image\n"
                 "p = numpy.asarray(Image.open(sys.argv[1]).convert('RGB')).astype(int)\n"
                 "green, blue = p[..., 1] - p[..., 2] > 50, p[..., 2] - p[..., 0] > 50\n"
                 "print(int(green.sum()), int(blue.sum()))")
        def tinted(*words):
            done = self.command("preview", store, "--out", self.folder / "sheet.png", "--force", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            return [int(n) for n in self.run_python(count, self.folder / "sheet.png").split()]
        plain = tinted()
        self.assertLess(max(plain), 50)
        self.imported(store, self.folder / "same.nii")
        shown = tinted("--labels", "parts")
        self.assertGreater(min(shown), 500)  # soft tissue and bone, in colours of their own
        self.assertEqual(shown, tinted())
        refused = self.command("preview", store, "--out", self.folder / "no.png", "--labels", "organs")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("organs", refused.stderr)
        self.assertFalse((self.folder / "no.png").exists())

    def test_what_does_not_belong_is_refused_and_leaves_nothing(self):
        store = self.phantom()
        self.refused(store, self.folder / "far.nii.gz", "outside the image")
        self.refused(store, self.folder / "unknown.nii.gz", "the class table does not have: 5 (")
        self.refused(store, self.folder / "broken.nii.gz", "a voxel of 0.5", "whole, 0 to 255")
        self.refused(store, self.folder / "skewed.nii.gz", "skew")
        self.refused(store, self.folder / "other.seg.nrrd", "segments that the class table does not have: spleen")
        self.refused(store, self.folder / "layer.seg.nrrd", "segment 0", "layer")
        cut = self.folder / "cut.nii.gz"
        cut.write_bytes((self.folder / "same.nii").read_bytes()[:5000])
        self.refused(store, cut, "read")
        text = self.folder / "mask.txt"
        text.write_text("no mask\n" * 40, encoding="utf-8")
        self.refused(store, text, "neither NIfTI, NRRD, MHA nor DICOM SEG")
        self.refused(store, next((self.folder / "series").iterdir()), "not a segmentation (SEG)")
        slide = self.store([self.slide("a.svs", "700x600")], "slides")
        slide = next(p for p in slide.iterdir() if (p / "zarr.json").exists())
        self.refused(slide, self.folder / "same.nii", "import labels")
        self.imported(store, self.folder / "same.nii")
        out = self.folder / "out.geojson"
        exported = self.command("labels", "export", store, "--out", out, "--set", "parts")
        self.assertEqual(exported.returncode, 1, exported.stderr)
        self.assertIn("a volume, and geojson is for slides", exported.stderr)
        self.assertFalse(out.exists())

    def test_real_organs_lie_under_their_labels(self):
        data = harness.DATA
        if not (data / "ct/totalsegmentator-body-j2k").is_dir():
            self.skipTest("PATCHBAY_TEST_DATA: no real data")
        numbers = set(range(256)) - {1, 5, 255}
        table = self.folder / "organs.yaml"
        table.write_text("classes:\n"
                         f"  - {{name: background, value: 0, from: {sorted(numbers)}}}\n"
                         "  - {name: spleen, value: 1, from: [1]}\n  - {name: liver, value: 5, from: [5]}\n"
                         "exhaustive: true\nbackground: background\n", encoding="utf-8")
        cases = ((data / "ct/totalsegmentator-body-j2k/dicom", data / "ct/totalsegmentator-body-j2k/example_seg_dicom.nii.gz",
                  {5: (366708, 89.3), 1: (130634, 79.6)}),
                 (data / "nifti/totalsegmentator/example_ct_sm.nii.gz", data / "nifti/totalsegmentator/example_seg.nii.gz",
                  {5: (38634, 45.3), 1: (9452, 32.8)}))
        for number, (image, mask, organs) in enumerate(cases):
            out = self.folder / f"stores-{number}"
            made = self.command("ingest", image, "--out", out, "--modality", "CT")
            self.assertEqual(made.returncode, 0, made.stderr)
            store = next(p for p in out.iterdir() if (p / "zarr.json").exists())
            if image.is_dir():
                self.ends_lie_where_the_files_say(store, image)
            row = self.imported(store, mask, "organs", table)
            self.assertEqual(row["grid"], "same")
            look = ("import json, sys, numpy, zarr\n"
                    "hu = numpy.asarray(zarr.open_group(sys.argv[1], mode='r')['0'])\n"
                    "mask = numpy.asarray(zarr.open_group(sys.argv[2], mode='r')['0'])\n"
                    "print(json.dumps({v: [int((mask == v).sum()), float(hu[mask == v].mean())] for v in (5, 1)}))")
            found = json.loads(self.run_python(look, store, store / "labels" / row["revision"]))
            for value, (voxels, mean) in organs.items():
                self.assertEqual(found[str(value)][0], voxels)
                self.assertAlmostEqual(found[str(value)][1], mean, delta=0.05)
            self.organs_in_augmented_patches(store, {value: mean for value, (_, mean) in organs.items()})

    def ends_lie_where_the_files_say(self, store, series):
        """The first and last slice's first voxel, and the last voxel, through the stored affine, beside what the files say."""
        said = []
        for path in series.iterdir():
            text = path.read_bytes()
            at = text.index(b"\x20\x00\x32\x00DS")
            length = struct.unpack_from("<H", text, at + 6)[0]
            said.append([float(number) for number in text[at + 8:at + 8 + length].split(b"\\")])
        said.sort(key=lambda position: position[2])
        own = json.loads((store / "zarr.json").read_text())["attributes"]["patchbay"]
        at = text.index(b"\x28\x00\x30\x00DS")
        length = struct.unpack_from("<H", text, at + 6)[0]
        y_mm, x_mm = (float(number) for number in text[at + 8:at + 8 + length].split(b"\\"))
        depth, rows, columns = json.loads((store / "0/zarr.json").read_text())["shape"][-3:]
        self.assertEqual(depth, len(said))
        ends = [((0, 0, 0), said[0]), ((0, 0, depth - 1), said[-1])]  # axial: rows along x, columns along y
        for (i, j, k), (x, y, z) in [*ends, ((columns - 1, rows - 1, depth - 1),
                                             (said[-1][0] + (columns - 1) * x_mm, said[-1][1] + (rows - 1) * y_mm, said[-1][2]))]:
            for name, sign in (("affine_lps", 1), ("affine_ras", -1)):
                found = [row[0] * i + row[1] * j + row[2] * k + row[3] for row in own[name][:3]]
                for a, b in zip(found, (sign * x, sign * y, z)):
                    self.assertAlmostEqual(a, b, delta=1e-6)
        self.assertEqual(own["slice_table"]["positions_lps_mm"], said)

    def organs_in_augmented_patches(self, store, means):
        """Cut around the organs, turned by 15 degrees about every axis, shrunk by a fifth and mirrored."""
        run = self.folder / f"{store.stem}.yaml"
        run.write_text(f"dataset: {store}\nnumerics: cpu\nseed: 7678\npatch: {{size: [12, 48, 48]}}\n"
                       "labels: {set: organs, mask: true}\n"
                       "sampling: {positions: random, patches_per_epoch: 24, oversample_foreground: 1}\n"
                       "batch: {global_size: 8, dtype: float32}\n"
                       "augment:\n  - flip: {axes: [z, y, x]}\n"
                       "  - affine: {p: 1, degrees: [15, 15], scale: [1.2, 1.2]}\n", encoding="utf-8")
        saved = self.folder / f"saved-{store.stem}"
        self.json("stream", run, "--gpus", "none", "--cpus", 1, "--save", saved)
        look = ("import json, pathlib, sys, numpy\n"
                "parts = [[numpy.load(p) for p in sorted(pathlib.Path(sys.argv[1]).glob(f'*-{a}.npy'))] for a in ('image', 'mask')]\n"
                "hu, mask = (numpy.concatenate(part) for part in parts)\n"
                "print(json.dumps({v: [int((mask == v).sum()), float(hu[:, 0][mask == v].mean())] for v in (5, 1)}))")
        found = json.loads(self.run_python(look, saved))
        for value, mean in means.items():
            self.assertGreater(found[str(value)][0], 20000)
            # Other voxels of the organ than all of it, and its edges mixed with fat and lung.
            self.assertAlmostEqual(found[str(value)][1], mean, delta=10)

    def test_a_dicom_seg_is_the_mask_of_its_series(self):
        data = harness.DATA / "ct/seg-dcmqi"
        if not data.is_dir():
            self.skipTest("PATCHBAY_TEST_DATA: no real data")
        series = self.folder / "series"
        series.mkdir()
        for path in data.glob("0*.dcm"):
            shutil.copy(path, series)
        made = self.command("ingest", series, "--out", self.folder / "stores")
        self.assertEqual(made.returncode, 0, made.stderr)
        store = next(p for p in (self.folder / "stores").iterdir() if (p / "zarr.json").exists())
        names = self.command("labels", "import", store, data / "liver.dcm", "--set", "liver", "--classes", self.classes)
        self.assertIn("segments that the class table does not have", names.stderr)
        called = names.stderr.split("does not have: ")[1].split("\n")[0].strip()
        self.classes.write_text("classes:\n  - {name: background, value: 0}\n"
                                f"  - {{name: organ, value: 1, aliases: ['{called}']}}\n"
                                "exhaustive: true\nbackground: background\n", encoding="utf-8")
        seg = self.imported(store, data / "liver.dcm", "liver")
        nrrd = self.imported(store, data / "liver_seg.nrrd", "liver-nrrd")
        self.assertEqual((seg["grid"], seg["frame_of_reference"]), ("same", "matches"))
        same = ("import sys, numpy, zarr\n"
                "a, b = (numpy.asarray(zarr.open_group(p, mode='r')['0']) for p in sys.argv[1:])\n"
                "print(numpy.array_equal(a, b), int(a.sum()))")
        equal, voxels = self.run_python(same, store / "labels" / seg["revision"],
                                        store / "labels" / nrrd["revision"]).split()
        self.assertEqual(equal, "True")
        self.assertGreater(int(voxels), 10000)
        # The same file, of another frame of reference, and as a fractional one.
        text = (data / "liver.dcm").read_bytes()
        uid = self.frame_of(text)
        other = self.folder / "other.dcm"
        other.write_bytes(text.replace(uid, uid[:-1] + (b"1" if uid[-1:] != b"1" else b"2")))
        self.refused(store, other, "another frame of reference")
        fraction = self.folder / "fraction.dcm"
        self.assertIn(b"BINARY", text)
        fraction.write_bytes(text.replace(b"\x62\x00\x01\x00CS\x06\x00BINARY", b"\x62\x00\x01\x00CS\x0a\x00FRACTIONAL"))
        self.refused(store, fraction, "fractional")
        cut = self.folder / "cut.dcm"
        cut.write_bytes(text[:-3000])
        self.refused(store, cut, "dicom")

    def test_a_seg_may_have_any_frame_of_reference_of_the_image(self):
        data = harness.DATA / "ct/seg-dcmqi"
        if not data.is_dir():
            self.skipTest("PATCHBAY_TEST_DATA: no real data")
        seg = (data / "liver.dcm").read_bytes()
        frame = self.frame_of(seg)
        series = self.folder / "series"
        series.mkdir()
        for i, path in enumerate(sorted(data.glob("0*.dcm"))):  # the second keeps the segmentation's
            own = frame if i == 1 else frame[:-1] + b"%d" % i
            self.assertEqual(path.read_bytes().count(frame), 1)
            (series / path.name).write_bytes(path.read_bytes().replace(frame, own))
        made = self.command("ingest", series, "--out", self.folder / "stores")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn("warning: ", made.stderr)
        self.assertIn("every slice has a frame of reference of its own", made.stderr)
        store = next(p for p in (self.folder / "stores").iterdir() if (p / "zarr.json").exists())
        self.assertIn("warning       every slice has", self.command("inspect", store).stdout)
        self.assertTrue(self.json("verify", store)["clean"])
        self.classes.write_text("classes:\n  - {name: background, value: 0}\n"
                                "  - {name: organ, value: 1, aliases: ['Liver']}\n"
                                "exhaustive: true\nbackground: background\n", encoding="utf-8")
        self.assertEqual(self.imported(store, data / "liver.dcm", "liver")["frame_of_reference"], "matches")
        other = self.folder / "other.dcm"
        other.write_bytes(seg.replace(frame, frame[:-1] + b"7"))
        self.refused(store, other, "another frame of reference")

    def frame_of(self, text):
        """The value of (0020,0052) in an explicit little-endian file."""
        at = text.index(b"\x20\x00\x52\x00UI")
        length = struct.unpack_from("<H", text, at + 6)[0]
        return text[at + 8:at + 8 + length].rstrip(b"\0")


if __name__ == "__main__":
    harness.main()
