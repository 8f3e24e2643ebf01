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
        self.assertIn("its labels differs", refused.stderr)


# Prints how many patches a grid of the tissue set has, and the words of the batches that differ from it.
TISSUE = r"""
import pathlib, sys
import numpy, tensorstore
label, folder, side, fraction = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
mask = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{label}/0"}}).result().read().result()[0]
cells = mask[8::16, 8::16].repeat(16, 0).repeat(16, 1)[:mask.shape[0], :mask.shape[1]]  # what the set's index has
mask = numpy.pad(cells, ((0, mask.shape[0] - cells.shape[0]), (0, mask.shape[1] - cells.shape[1])))
expected = {(y, x) for y in range(0, mask.shape[0], side) for x in range(0, mask.shape[1], side)
            if (mask[y:y + side, x:x + side] == 1).sum() >= fraction * side * side}
boxes = [tuple(map(int, box[1:3])) for path in sorted(folder.glob("*-box.npy"))
         for box, ordinal in zip(numpy.load(path), numpy.load(str(path).replace("-box", "-ordinal"))) if ordinal >= 0]
grid = -(-mask.shape[0] // side) * -(-mask.shape[1] // side)
print("ok" if sorted(boxes) == sorted(expected) else "differs", len(boxes), len(expected), grid)
"""
BLANK = r"""
import sys
import numpy, tifffile
tifffile.imwrite(sys.argv[1], numpy.full((700, 900, 3), 243, numpy.uint8), tile=(256, 256), photometric="rgb")
"""
SMALL = ("--set", "patch.size=[64, 64]", "--set", "sampling.patches_per_epoch=96", "--set", "batch.global_size=16")


@unittest.skipUnless(harness.oracles("tensorstore", "tifffile"), "the oracles' Python lacks tensorstore or tifffile")
class Gleason(harness.Case):
    """configs/gleason.yaml, from slides to batches of both splits."""
    CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"

    def oracle(self, script, *words):
        done = subprocess.run([harness.PYTHON, "-c", script, *map(str, words)], text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return done.stdout.split()

    def cohort(self):
        """Two slides as a table: one of each split, drawn on."""
        slides = [self.slide(f"{split}.svs", "1500x1300", seed) for seed, split in enumerate(("train", "val"), 1)]
        self.json("scan", *slides, "--out", "cohort.csv", "--hash")
        with open(self.folder / "cohort.csv", newline="", encoding="utf-8") as table:
            rows = list(csv.DictReader(table))
        for row in rows:
            split = pathlib.Path(row["path"]).stem
            row.update(patient_id=f"p-{split}", site="a", fold_0=split, annotation="drawn.geojson")
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

    def test_both_splits_stream_and_validation_has_each_tissue_patch_once(self):
        slides = self.cohort()
        self.oracle(BLANK, self.folder / "blank.tif")
        self.json("ingest", *slides, self.folder / "blank.tif", "--out", "stores", "--keep-names")
        made = self.json("labels", "tissue", "stores")["imported"]
        found = {pathlib.Path(row["store"]).name.split(".")[0]: row for row in made}
        self.assertEqual(sorted(found), ["blank", "train", "val"])
        self.assertTrue(found["blank"]["tissue"]["no_tissue"])
        self.assertFalse(found["blank"]["tissue"]["areas"])  # it has no mpp
        for name in ("train", "val"):
            self.assertFalse(found[name]["tissue"]["no_tissue"])
            self.assertTrue(found[name]["tissue"]["areas"])
        again = self.json("labels", "tissue", "cohort.csv", "--stores", "stores")["imported"]
        self.assertEqual([(row["digest"], row["already_there"]) for row in again],
                         [(found[name]["digest"], True) for name in ("train", "val")])
        self.json("labels", "import", "cohort.csv", "--stores", "stores", "--set", "gleason",
                  "--classes", self.CONFIGS / "classes/gleason.yaml")
        run = self.folder / "gleason.yaml"
        run.write_text((self.CONFIGS / "gleason.yaml").read_text())
        for split in ("train", "val"):
            said = self.json("stream", run, "--split", split, *SMALL, "--save", split, "--digest", "--cpus", 1)
            more = self.json("stream", run, "--split", split, *SMALL, "--digest", "--cpus", 2)
            self.assertEqual(said["digest"], more["digest"])
            self.assertGreater(said["batches"], 0)
        label = pathlib.Path(found["val"]["store"]) / "labels" / found["val"]["revision"]
        checked = self.oracle(TISSUE, label, self.folder / "val", 64, 0.1)
        self.assertEqual(checked[0], "ok", checked)
        patches, _, grid = map(int, checked[1:])
        self.assertTrue(0 < patches < grid, checked)
        run.write_text(run.read_text().replace("min_fraction: 0.1}", "min_fraction: 0.1, set: gleason}"))
        refused = self.command("stream", run, "--split", "val", *SMALL)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("not a mask of tissue", refused.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
