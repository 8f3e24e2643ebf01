"""Masks lie under their tissue: the classes of a patch's pixels follow the image through its geometry."""
import csv
import json
import pathlib
import subprocess
import unittest

import harness

# The class of a pixel is what its red says: 0 to 3. So image and mask of any patch can be compared.
MAKE = r"""
import sys
import numpy, tensorstore, tifffile
store, out, flip = sys.argv[1:]
image = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{store}/0"}}).result().read().result()
mask = image[0] >> 6
tifffile.imwrite(out, 3 - mask if flip == "other" else mask, tile=(256, 256), compression="zlib")
print(*mask.shape)
"""

# Prints "ok" and how many patches had pixels outside the slide.
LOOK = r"""
import pathlib, sys
import numpy
folder, height, width, margin = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:5])
wrong, edges, seen = [], 0, 0
for path in sorted(folder.glob("*-image.npy")):
    batch = {a: numpy.load(str(path).replace("-image.npy", f"-{a}.npy")) for a in ("image", "mask", "label", "ordinal", "box")}
    if batch["mask"].dtype != numpy.uint8 or batch["label"].dtype != numpy.int64:
        wrong.append("dtypes")
    for image, mask, label, ordinal, box in zip(*batch.values()):
        if ordinal < 0:
            if image.any() or (mask != 255).any() or label != 255:
                wrong.append("padding")
            continue
        seen += 1
        inside = mask != 255
        if not numpy.array_equal(mask[inside], image[0][inside] >> 6):
            wrong.append(f"the mask of patch {ordinal} is not its image's")
        if (image[:, ~inside] != 255).any():
            wrong.append(f"pixels of patch {ordinal} are ignored that are inside")
        y, x, h, w = box[1], box[2], box[4], box[5]
        if not margin and (~inside).sum() != h * w - max(0, min(h, height - y)) * max(0, min(w, width - x)):
            wrong.append(f"patch {ordinal}: {(~inside).sum()} ignored pixels")
        edges += int((~inside).any())
        counts = numpy.bincount(mask[inside], minlength=4)
        expected = int(counts.argmax()) if inside.any() and inside.sum() >= 0.5 * mask.size else 255
        if label != expected:
            wrong.append(f"patch {ordinal}: label {label}, not {expected}")
print("; ".join(sorted(set(wrong))[:5]) or f"ok {seen} {edges}")
"""

# Whether mask_1 is mask turned upside down, and every other array is that of a run without it.
INVERSE = r"""
import pathlib, sys
import numpy
one, both = map(pathlib.Path, sys.argv[1:])
wrong, seen = [], 0
for path in sorted(one.glob("*.npy")):
    if (path.read_bytes() != (both / path.name).read_bytes()):
        wrong.append(path.name)
for path in sorted(both.glob("*-mask.npy")):
    mask, other = numpy.load(path), numpy.load(str(path).replace("-mask", "-mask_1"))
    seen += len(mask)
    if not numpy.array_equal(other, numpy.where(mask == 255, 255, 3 - mask)) or len(numpy.unique(mask)) < 4:
        wrong.append(path.name)
print("; ".join(wrong) or f"ok {seen}")
"""

CONFIG = """
dataset: stores
seed: 11
patch: {{size: [128, 128], level: {level}}}
labels: {{set: red, mask: true, label: {{rule: majority, min_fraction: 0.5}}}}
batch: {{global_size: 16, dtype: uint8, meta: true, tail: pad}}
augment: {augment}
"""
TABLE = "classes: [{name: a, value: 0}, {name: b, value: 1}, {name: c, value: 2}, {name: d, value: 3}]"


@unittest.skipUnless(harness.oracles("tensorstore", "tifffile"), "the oracles' Python lacks tensorstore or tifffile")
class LabelBatches(harness.Case):
    def setUp(self):
        super().setUp()
        self.json("ingest", self.slide(size="1100x900"), "--out", "stores", "--keep-names")
        self.store = next(p for p in (self.folder / "stores").iterdir() if p.is_dir() and not p.name.startswith("."))
        (self.folder / "classes.yaml").write_text(TABLE)
        self.run_yaml = self.folder / "run.yaml"

    def oracle(self, script, *words):
        done = subprocess.run([harness.PYTHON, "-c", script, *map(str, words)], text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return done.stdout.split()

    def import_red(self, flip="as it is"):
        size = self.oracle(MAKE, self.store, self.folder / "mask.tif", flip)
        self.json("labels", "import", self.store, "mask.tif", "--set", "red", "--classes", "classes.yaml")
        return size

    def config(self, augment, level=0):
        self.run_yaml.write_text(CONFIG.format(augment=augment, level=level))
        return self.run_yaml

    def test_masks_follow_the_image(self):
        height, width = self.import_red()
        for number, (augment, margin) in enumerate((("[]", 0), ("[flip, rotate90, {crop: {margin: [30, 20]}}]", 1))):
            out = self.folder / f"batches-{number}"
            found = self.json("stream", self.config(augment), "--save", out, "--digest")
            said = self.oracle(LOOK, out, height, width, margin)
            self.assertEqual(said[:2], ["ok", str(8 * 9)], said)
            self.assertGreater(int(said[2]), 0)
            again = self.json("stream", self.run_yaml, "--digest", "--cpus", "1")
            self.assertEqual(found["digest"], again["digest"])

    def test_masks_of_several_sets_follow_the_image(self):
        height, width = self.import_red()
        self.json("stream", self.config("[flip, rotate90]"), "--save", "one", "--batches", 2)
        self.oracle(MAKE, self.store, self.folder / "mask.tif", "other")
        several = self.config("[flip, rotate90]").read_text().replace("set: red", "set: [red, inverse]")
        self.run_yaml.write_text(several)
        missing = self.command("stream", self.run_yaml)
        self.assertNotEqual(missing.returncode, 0)
        self.assertIn("key 'labels.set': 'inverse': ", missing.stderr)
        self.json("labels", "import", self.store, "mask.tif", "--set", "inverse", "--classes", "classes.yaml")
        self.json("stream", self.run_yaml, "--save", "both", "--batches", 2)
        self.assertEqual(self.oracle(INVERSE, self.folder / "one", self.folder / "both"), ["ok", "32"])
        self.assertEqual(self.oracle(LOOK, self.folder / "both", height, width, 0)[0], "ok")

    def test_changed_labels_refuse_a_resume_and_missing_ones_a_start(self):
        missing = self.command("stream", self.config("[]"))
        self.assertNotEqual(missing.returncode, 0)
        self.assertIn("no set 'red'", missing.stderr)
        self.import_red()
        token = self.json("stream", self.run_yaml, "--batches", 1)["resume_token"]
        self.assertEqual(self.command("stream", self.run_yaml, "--resume", token, "--batches", 1).returncode, 0)
        self.import_red("other")
        refused = self.command("stream", self.run_yaml, "--resume", token, "--batches", 1)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("its labels differ", refused.stderr)


# The grid of both validation slides with enough of the tissue set: "ok", how many patches, and how many cells there are.
TISSUE = r"""
import pathlib, sys
import numpy, tensorstore
folder, fraction = pathlib.Path(sys.argv[1]), float(sys.argv[2])
batches = [[numpy.load(str(path).replace("-box", f"-{a}")) for a in ("image_index", "level", "box")]
           for path in sorted(folder.glob("*-box.npy"))]
rows = [row for batch in batches for row in zip(*batch) if row[0] >= 0]
wrong, grid = [], 0
for index, label in enumerate(sys.argv[3:]):
    mask = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{label}/0"}}).result().read().result()[0]
    cells = mask[8::16, 8::16].repeat(16, 0).repeat(16, 1)[:mask.shape[0], :mask.shape[1]]  # the mask in the cells of the set's index
    mask = numpy.pad(cells, ((0, mask.shape[0] - cells.shape[0]), (0, mask.shape[1] - cells.shape[1])))
    mine = [(int(level), *map(int, box)) for i, level, box in rows if i == index]
    source = mine[0][5]  # pixels of level 0 that one patch is made of
    expected = {(y, x) for y in range(0, mask.shape[0], source) for x in range(0, mask.shape[1], source)
                if (mask[y:y + source, x:x + source] == 1).sum() >= fraction * source * source}
    grid += -(-mask.shape[0] // source) * -(-mask.shape[1] // source)
    if sorted((y, x) for _, _, y, x, *_ in mine) != sorted(expected):
        wrong.append(index)
print("differs" if wrong else "ok", len(rows), grid)
"""
# Whether every mask has the stripe that its pixels lie in: a patch of 128 pixels is made of box[5] of level 0.
STRIPES = r"""
import pathlib, sys
import numpy
wrong, seen = 0, 0
for path in sorted(pathlib.Path(sys.argv[1]).glob("*-mask.npy")):
    batch = [numpy.load(str(path).replace("-mask", f"-{a}")) for a in ("mask", "box", "ordinal")]
    for mask, box, ordinal in zip(*batch):
        x = box[2] + (numpy.arange(128) + 0.5) * box[5] / 128
        clear = (x < 1500) & (numpy.abs(x - numpy.rint(x / 375) * 375) > 1)
        rows = box[1] + (numpy.arange(128) + 0.5) * box[4] / 128 < 1300
        if ordinal >= 0:
            seen += 1
            wrong += int((mask[rows][:, clear] != numpy.array([0, 2, 3, 4])[(x[clear] // 375).astype(int)]).any())
print("ok" if seen and not wrong else f"{wrong} of {seen} differ")
"""
# Whether the patches of the first folder are those of the others together, in every array.
SAME = r"""
import hashlib, pathlib, sys
import numpy
def patches(folders):
    found = {}
    for folder in folders:
        for path in sorted((pathlib.Path(sys.argv[1]) / folder).glob("*-ordinal.npy")):
            arrays = [numpy.load(p) for p in sorted(path.parent.glob(path.name.replace("-ordinal", "-*")))]
            for row, ordinal in enumerate(numpy.load(path)):
                found[int(ordinal)] = hashlib.sha256(b"".join(a[row].tobytes() for a in arrays)).hexdigest()
    return found
first, other = patches(sys.argv[2:3]), patches(sys.argv[3:])
print("ok" if first == other else "differs", len(first))
"""
# For a sheet of patches of 260 pixels: "ok" where the mask's colours lie upon the delivered patch;
# and of a sheet of slides: which of the boundaries between stripes are drawn in the colour of the
# class on their right.
SHEETS = r"""
import sys
import numpy
from PIL import Image
colours = {0: (0, 114, 178), 2: (0, 158, 115), 3: (213, 94, 0), 4: (86, 180, 233)}
patches, slides = (numpy.asarray(Image.open(p).convert("RGB")).astype(int) for p in sys.argv[1:3])
inner = slice(3, 257)  # within the frames
classes = set()
for top in range(84, patches.shape[0] - 290, 308):
    before, after = (patches[top:top + 260, 40 + 274 * k:300 + 274 * k][inner, inner] for k in map(int, sys.argv[3:5]))
    explained = (after == before).all(-1)  # ignored
    for value, colour in colours.items():
        over = (before * 145 + numpy.array(colour) * 110) // 255
        hit = (numpy.abs(after - over) <= 1).all(-1)
        if hit.mean() > 0.02:
            classes.add(value)
        explained |= hit
    if explained.mean() < 0.999:
        print("patch at", top, "is not explained:", explained.mean())
drawn = 0
for boundary, value in ((375, 2), (750, 3), (1125, 4)):
    x = round(40 + boundary * 360 / 1300)
    near = slides[118 + 40:118 + 320, x - 1:x + 2]
    drawn += int((numpy.abs(near - numpy.array(colours[value])).sum(-1).min(-1) < 120).mean() > 0.9)
print("ok", len(classes), drawn)
"""
MPPS = {"train-a": 0.25, "train-b": 0.5, "val-a": 0.499, "val-b": 0.35}  # um/px of level 0, by split and site
BLANK = r"""
import sys
import numpy, tifffile
tifffile.imwrite(sys.argv[1], numpy.full((700, 900, 3), 243, numpy.uint8), tile=(256, 256), photometric="rgb")
"""
SMALL = ("--set", "patch.size=[128, 128]", "--set", "sampling.patches_per_epoch=48", "--set", "batch.global_size=16")


@unittest.skipUnless(harness.oracles("tensorstore", "tifffile"), "the oracles' Python lacks tensorstore or tifffile")
class Gleason(harness.Case):
    """configs/gleason.yaml, from slides to batches of both splits."""
    CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"

    def oracle(self, script, *words):
        done = subprocess.run([harness.PYTHON, "-c", script, *map(str, words)], text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return done.stdout.split()

    def cohort(self):
        """Slides of two sites and three resolutions as a table, every one drawn on: stripes of four classes."""
        slides = []
        for seed, (name, mpp) in enumerate(MPPS.items(), 1):
            slides.append(self.slide(f"{name}.svs", "1500x1300", seed))
            said = slides[-1].read_bytes()
            self.assertIn(b"MPP = 0.5000", said)
            slides[-1].write_bytes(said.replace(b"MPP = 0.5000", f"MPP = {mpp:.4f}".encode()))
        self.json("scan", *slides, "--out", "cohort.csv", "--hash")
        with open(self.folder / "cohort.csv", newline="", encoding="utf-8") as table:
            rows = list(csv.DictReader(table))
        for row in rows:
            split, site = pathlib.Path(row["path"]).stem.split("-")
            row.update(patient_id=f"p-{split}-{site}", site=site, fold_0=split, annotation="drawn.geojson")
        with open(self.folder / "cohort.csv", "w", newline="", encoding="utf-8") as table:
            writer = csv.DictWriter(table, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
        names = ("benign", "Gleason 3", "Gleason 4", "Gleason 5")
        self.geojson = {"type": "FeatureCollection", "features": [
            {"type": "Feature", "properties": {"classification": {"name": name}}, "geometry": {
                "type": "Polygon", "coordinates": [[[x, 0], [x + 375, 0], [x + 375, 1300], [x, 1300], [x, 0]]]}}
            for x, name in zip(range(0, 1500, 375), names)]}
        (self.folder / "drawn.geojson").write_text(json.dumps(self.geojson))
        return slides

    def check_training(self, run):
        """The same patches with 1, 2 and 4 workers, in batches of another size, and after a resume."""
        train = ("stream", run, "--split", "train", *SMALL)
        said = self.json(*train, "--save", "train", "--digest", "--cpus", 1)
        for cpus in (2, 4):
            self.assertEqual(self.json(*train, "--digest", "--cpus", cpus)["digest"], said["digest"])
        self.assertEqual(said["batches"], 3)
        self.json(*train, "--set", "batch.global_size=12", "--save", "other-size")
        token = self.json(*train, "--batches", 1, "--save", "resumed")["resume_token"]
        self.json(*train, "--resume", token, "--batches", 2, "--save", "rest")
        self.assertEqual(self.oracle(SAME, self.folder, "train", "other-size"), ["ok", "48"])
        self.assertEqual(self.oracle(SAME, self.folder, "train", "resumed", "rest"), ["ok", "48"])

    def check_resolutions(self, run):
        """One level of images that differ is refused, unless it is asked for; asked for by mpp they are alike."""
        level = ("config", "check", run, "--split", "train", *SMALL, "--set", "patch.mpp=[]")
        refused = self.command(*level)
        self.assertNotEqual(refused.returncode, 0)
        for part in ("key 'patch.level': level 0 has 0.25 um/px", "has 0.5 um/px;", "mixed_mpp: true", "train-a", "train-b"):
            self.assertIn(part, refused.stderr)
        said = self.json(*level, "--set", "patch.mixed_mpp=true")
        self.assertEqual(said["mpp"], [0.25, 0.5])
        self.assertEqual(self.json("config", "check", run, "--split", "train", *SMALL)["mpp"], 0.5)

    def check_preview(self, run, store):
        """Masks lie upon the patches of a sheet, outlines upon its slides."""
        large = ("--set", "patch.size=[260, 260]")
        said = self.json("preview", run, "--split", "val", *large, "--patches", 3, "--out", "patches.png")
        self.assertEqual(said["patches"], 3)
        self.json("preview", store, "--out", "slides.png")
        said = self.oracle(SHEETS, self.folder / "patches.png", self.folder / "slides.png", 1, 4)
        self.assertEqual((said[0], said[2]), ("ok", "3"), said)
        self.assertGreater(int(said[1]), 1)
        self.assertEqual(self.command("preview", run, "--split", "train", *SMALL, "--out", "train.png").returncode, 0)
        refused = self.command("preview", run, "--split", "val", "--set", "labels.set=absent", "--out", "none.png")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("no set 'absent'", refused.stderr)
        self.assertFalse((self.folder / "none.png").exists())

    def test_both_splits_stream_and_validation_has_each_tissue_patch_once(self):
        slides = self.cohort()
        self.oracle(BLANK, self.folder / "blank.tif")
        self.json("ingest", *slides, self.folder / "blank.tif", "--out", "stores", "--keep-names")
        made = self.json("labels", "tissue", "stores")["imported"]
        found = {pathlib.Path(row["store"]).name.split(".")[0]: row for row in made}
        self.assertEqual(sorted(found), ["blank", *MPPS])
        self.assertTrue(found["blank"]["tissue"]["no_tissue"])
        self.assertFalse(found["blank"]["tissue"]["areas"])  # it has no mpp
        for name in MPPS:
            self.assertFalse(found[name]["tissue"]["no_tissue"])
            self.assertTrue(found[name]["tissue"]["areas"])
        again = self.json("labels", "tissue", "cohort.csv", "--stores", "stores")["imported"]
        self.assertEqual([(row["digest"], row["already_there"]) for row in again],
                         [(found[name]["digest"], True) for name in MPPS])
        self.json("labels", "import", "cohort.csv", "--stores", "stores", "--set", "gleason",
                  "--classes", self.CONFIGS / "classes/gleason.yaml")
        run = self.folder / "gleason.yaml"
        run.write_text((self.CONFIGS / "gleason.yaml").read_text())
        self.check_resolutions(run)
        self.check_training(run)
        said = self.json("stream", run, "--split", "val", *SMALL, "--save", "val", "--digest", "--cpus", 1)
        more = self.json("stream", run, "--split", "val", *SMALL, "--digest", "--cpus", 2)
        self.assertEqual(said["digest"], more["digest"])
        labels = [pathlib.Path(found[name]["store"]) / "labels" / found[name]["revision"] for name in MPPS if name.startswith("val")]
        checked = self.oracle(TISSUE, self.folder / "val", 0.1, *labels)
        self.assertEqual(checked[0], "ok", checked)
        patches, grid = map(int, checked[1:])
        self.assertTrue(0 < patches < grid, checked)
        self.assertEqual(self.oracle(STRIPES, self.folder / "val")[0], "ok")
        self.check_preview(run, found["val-a"]["store"])
        run.write_text(run.read_text().replace("min_fraction: 0.1}", "min_fraction: 0.1, set: gleason}"))
        refused = self.command("stream", run, "--split", "val", *SMALL)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("not a mask of tissue", refused.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
