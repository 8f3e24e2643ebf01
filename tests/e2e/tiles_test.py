"""Tiles in a folder by class become one store, which streams them with their classes: the pixels that Pillow reads, none of a neighbour."""
import csv
import subprocess

import harness

SIDE = (24, 40)  # y, x

# Datasets of PNG and JPEG tiles, and the pixels that Pillow reads of those of train and val, in the order of their names.
MAKE = r"""
import pathlib, sys
import numpy
from PIL import Image
height, width = int(sys.argv[1]), int(sys.argv[2])
y, x = numpy.mgrid[0:height, 0:width]
def tile(path, seed, **options):
    rgb = numpy.stack([(x * 5 + seed * 7) % 256, (y * 9 + seed) % 256, (x * y + seed * 31) % 251], -1).astype(numpy.uint8)
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    picture = Image.fromarray(rgb)
    (picture.quantize(64) if options.pop("palette", False) else picture).save(path, **options)
for n in range(120):
    tile(f"train/MUS/{n:03}.jpg", n, subsampling=2 * (n % 2), quality=90)
    tile(f"train/ADI/{n:03}.png", n + 1)
tile("train/TUM/slide, 7/a.PNG", 3, palette=True)
tile("train/TUM/b.jpeg", 4, progressive=True)
tile("val/STR/a.png", 5)
tile("val/TUM/a.png", 6)
pathlib.Path("train/ADI/Thumbs.txt").write_text("no picture")
for root in ("train", "val"):
    files = sorted(p for p in pathlib.Path(root).rglob("*") if p.suffix.lower() in (".png", ".jpg", ".jpeg"))
    numpy.concatenate([numpy.asarray(Image.open(p).convert("RGB"))[None] for p in files]).tofile(f"{root}.bytes")
for n, grey in enumerate((0, 255, 0)):
    pathlib.Path("flat/ALL").mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (width, height), (grey,) * 3).save(f"flat/ALL/{n}.png")
for root in ("sizes", "deep", "alpha", "short", "grey"):
    tile(f"{root}/A/0.png", 1)
    tile(f"{root}/B/1.png", 2)
Image.new("RGB", (width, height + 1)).save("sizes/B/2.png")
Image.fromarray((x * y).astype(numpy.uint16)).save("deep/B/2.png")
Image.new("RGBA", (width, height)).save("alpha/B/2.png")
Image.new("L", (width, height)).save("grey/B/2.png")
whole = pathlib.Path("short/B/1.png").read_bytes()
pathlib.Path("short/B/2.png").write_bytes(whole[:len(whole) // 2])
"""

RUN = """dataset: stores/cohort.csv
patch: {{size: {size}, fill: 255}}
sampling: {{positions: {positions}, order: sequential}}
labels: {{label: {{positions_column: label}}}}
batch: {{global_size: 61, dtype: uint8, layout: nhwc, tail: keep}}
augment: {augment}
"""


class Tiles(harness.Case):
    def setUp(self):
        super().setUp()
        if not harness.oracles("numpy", "PIL"):
            self.skipTest("needs numpy and Pillow in .venv")

    def make(self):
        subprocess.run([harness.PYTHON, "-c", MAKE, *map(str, SIDE)], cwd=self.folder, check=True)

    def config(self, positions="stores/positions.csv", size=SIDE, augment="[]", labels=True):
        text = RUN.format(positions=positions, size=list(size), augment=augment)
        lines = [line for line in text.splitlines() if labels or not line.startswith("labels")]
        (self.folder / "run.yaml").write_text("\n".join(lines) + "\n")
        return "run.yaml"

    def saved(self, folder, array):
        """The bytes of an array's batches behind the headers of their files."""
        raw = [path.read_bytes() for path in sorted((self.folder / folder).glob(f"*-{array}.npy"))]
        return b"".join(part[10 + int.from_bytes(part[8:10], "little"):] for part in raw)

    def rows(self, name):
        with open(self.folder / "stores" / name, newline="", encoding="utf-8") as table:
            return list(csv.DictReader(table))

    def test_a_store_streams_its_tiles_with_their_classes(self):
        self.make()
        ingest = ("ingest", "train", "val", "--out", "stores", "--chunk", "256", "--shard", "256")
        made = self.json(*ingest)
        self.assertEqual(len(made["stores"]), 2)
        rows = self.rows("positions.csv")
        self.assertEqual(len(rows), 244)
        self.assertEqual({row["class"]: row["label"] for row in rows}, {"ADI": "0", "MUS": "1", "STR": "2", "TUM": "3"})
        self.assertEqual([rows[240][c] for c in ("slide_id", "x", "y", "tile")], ["train", "0", str(240 * SIDE[0]), "TUM/b.jpeg"])
        self.assertEqual(rows[241]["tile"], "TUM/slide, 7/a.PNG")
        self.json("stream", self.config(), "--save", "whole")
        pixels = b"".join((self.folder / f"{root}.bytes").read_bytes() for root in ("train", "val"))
        self.assertEqual(self.saved("whole", "image"), pixels)
        labels = self.saved("whole", "label")
        self.assertEqual(list(labels[::8]), [int(row["label"]) for row in rows])
        self.json("stream", self.config("grid", labels=False), "--save", "grid")
        self.assertEqual(self.saved("grid", "image"), pixels)
        self.assertEqual(self.command("verify", "stores").returncode, 0)
        self.assertTrue(all(store["already_there"] for store in self.json(*ingest)["stores"]))
        self.assertEqual(self.rows("positions.csv"), rows)
        self.json("forget", "--slide", "val", "--in", "stores", "--yes")
        self.assertEqual([row["slide_id"] for row in self.rows("cohort.csv")], ["train"])
        self.assertEqual(self.rows("positions.csv"), rows[:242])
        for size, positions, why in ((SIDE, "random", "'sampling.positions': the store has tiles of 24 x 40 pixels, which random patches"),
                                     ((25, 40), "grid", "'patch.size': the store has tiles of 24 x 40 pixels, and a patch would take 25 x 40"),
                                     ((24, 20), "grid", "'patch.size': the store has tiles of 24 x 40 pixels, which a grid takes whole")):
            refused = self.command("config", "check", self.config(positions, size, labels=False))
            self.assertIn(f"key {why}", refused.stderr)
        (self.folder / "own.csv").write_text("slide_id,x,y,label\ntrain,20,24,1\ntrain,0,25,1\n")
        refused = self.command("config", "check", self.config("own.csv", (24, 20)))
        self.assertIn("the patch at x 0, y 25 would cross from one to another", refused.stderr)

    def test_ops_read_nothing_of_the_tiles_beside(self):
        self.make()
        self.json("ingest", "flat", "--out", "stores")
        turned = self.config(augment="[{affine: {p: 1, degrees: [30, 30], scale: [0.5, 0.5]}}, {gaussian_blur: {p: 1, sigma: [2, 2]}}]")
        self.json("stream", turned, "--save", "turned")
        image = self.saved("turned", "image")
        each = len(image) // 3
        self.assertEqual(set(image[each:2 * each]), {255}, "the white tile between two black ones")
        self.assertIn(0, image[:each])

    def test_tiles_that_cannot_be_taken_are_named(self):
        self.make()
        roots = ("sizes", "deep", "alpha", "short", "grey")
        refused = self.command("ingest", *roots, "--out", "stores")
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("verdicts.csv in the output folder names the tile", refused.stderr)
        reasons = {row["source"]: row["reason"] for row in self.rows("verdicts.csv")}
        for root, why in zip(roots, ("25 x 40 pixels, 3 of uint8, and the first tile has 24 x 40 pixels, 3 of uint8", "16 bits a sample",
                                     "save it without an alpha channel", "it ends too early",
                                     "24 x 40 pixels, 1 of uint8, and the first tile has")):
            self.assertIn(why, reasons[str(self.folder / root / "B/2.png")])
        train = self.folder / "train"
        for broken, why in (("link", "train/loop: a link to a folder"), ("inner", "train/ADI/loop: a link to a folder"),
                            ("empty", "train/DEB: no PNG or JPEG picture in the folder of this class"),
                            ("alike", "train/tum: a class beside 'TUM', from which its name differs in case alone"),
                            ("beside", "train/a.png: a picture beside the folders of classes"),
                            ("line", "control characters in its name")):
            with self.subTest(broken=broken):
                path = train / {"link": "loop", "inner": "ADI/loop", "empty": "DEB", "alike": "tum/a.png", "beside": "a.png",
                                "line": "ADI/a\nb.png"}[broken]
                path.parent.mkdir(exist_ok=True)
                if broken in ("link", "inner"):
                    path.symlink_to(train)
                elif broken == "empty":
                    path.mkdir()
                else:
                    path.write_bytes((train / "ADI/000.png").read_bytes())
                self.assertIn(why, self.command("ingest", "train", "--out", "stores").stderr)
                if broken == "empty":
                    path.rmdir()
                else:
                    path.unlink()
                if broken == "alike":
                    path.parent.rmdir()
        (self.folder / "other").mkdir()
        (self.folder / "val").rename(self.folder / "other/train")
        self.assertIn("two datasets of tiles have this folder's name", self.command("ingest", "train", "other/train", "--out", "stores").stderr)
        (self.folder / "stores/cohort.csv").write_text("slide_id,path,split\n")
        taken = self.command("ingest", "train", "--out", "stores")
        self.assertIn("cohort.csv: exists and is not a table of Patchbay's", taken.stderr)


if __name__ == "__main__":
    harness.main()
