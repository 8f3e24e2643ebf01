"""Masks lie under their tissue: the classes of a patch's pixels follow the image through its geometry."""
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
