"""Places that a table lists, and rows whose stores are the same slide."""
import csv
import json
import subprocess
import unittest

import harness

CONFIG = """
dataset: cohort.csv
stores: stores
patch: {{size: [64, 64], level: {level}}}
sampling: {{positions: coords.csv, order: sequential}}
batch: {{global_size: 8, dtype: uint8, meta: true, tail: pad}}
{more}
"""
LOOK = """
import pathlib, sys
import numpy
folder = pathlib.Path(sys.argv[1])
for path in sorted(folder.glob("*-box.npy")):
    for box, image, ordinal in zip(numpy.load(path), *(numpy.load(str(path).replace("-box", f"-{a}")) for a in ("image_index", "ordinal"))):
        if ordinal >= 0:
            print(image, box[2], box[1])
"""


class Positions(harness.Case):
    def setUp(self):
        super().setUp()
        slides = [self.slide(f"s{i}.svs", "900x700", i) for i in (1, 2)]
        self.json("ingest", *slides, "--out", "stores")
        self.json("scan", *slides, "--out", "all.csv", "--hash")
        with open(self.folder / "all.csv", newline="", encoding="utf-8") as table:
            self.rows = list(csv.DictReader(table))
        for row, fold, site in zip(self.rows, ("train", "val"), ("north", "south")):
            row["fold"], row["site"] = fold, site
        self.ids = [row["slide_id"] for row in self.rows]
        self.table(self.rows)

    def table(self, rows):
        with open(self.folder / "cohort.csv", "w", newline="", encoding="utf-8") as table:
            writer = csv.DictWriter(table, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)

    def places(self, *places, heading="slide_id,x,y"):
        lines = [heading, *(",".join(map(str, place)) for place in places)]
        (self.folder / "coords.csv").write_text("\n".join(lines) + "\n")

    def config(self, level=0, more=""):
        (self.folder / "run.yaml").write_text(CONFIG.format(level=level, more=more))
        return "run.yaml"

    def boxes(self, *words):
        """image, x and y of the patches of an epoch; the command counts the same."""
        out = self.folder / "batches"
        self.counts = self.json("stream", *words, "--save", out, "--force")["counts"]
        done = self.python(LOOK, out)
        return [tuple(map(int, line.split())) for line in done.splitlines()]

    def python(self, script, *words):
        done = subprocess.run([harness.PYTHON, "-c", script, *map(str, words)], text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return done.stdout

    @unittest.skipUnless(harness.oracles("numpy"), "the oracles' Python lacks numpy")
    def test_a_table_s_places_are_the_patches(self):
        a, b = self.ids
        self.places((a, 10, 20), (b, 0, 0), (a, 899, 699), (a, "128.0", 4))
        expected = [(0, 10, 20), (1, 0, 0), (0, 899, 699), (0, 128, 4)]
        self.assertEqual(self.boxes(self.config()), expected)
        self.assertEqual(self.counts, {"slides": {a: 3, b: 1}, "sites": {"north": 3, "south": 1}})
        split = self.config(more="split_column: fold")
        self.assertEqual(self.boxes(split, "--split", "val"), [(0, 0, 0)])
        store = next((self.folder / "stores").glob("*.zarr"))
        width = json.loads((store / "1/zarr.json").read_text())["shape"][-1]
        self.places((b, 7, 8), (a, 10, 20), (b, 7, 8), (b, 64, 0), (a, 0, 1))
        self.assertEqual(self.boxes(self.config()), [(1, 7, 8), (0, 10, 20), (1, 7, 8), (1, 64, 0), (0, 0, 1)])
        split = self.config(more="split_column: fold")
        self.assertEqual(self.boxes(split, "--split", "train"), [(0, 10, 20), (0, 0, 1)])
        self.places((a, 10, 20), (b, 0, 0))
        scaled = self.boxes(self.config(level=1))
        self.assertEqual(scaled[0], (0, int(10 * width / 900 + 0.5), int(20 * width / 900 + 0.5)))

    @unittest.skipUnless(harness.oracles("numpy"), "the oracles' Python lacks numpy")
    def test_places_have_classes(self):
        a, b = self.ids
        self.places((a, 10, 20, 3), (b, 0, 0, ""), (a, 899, 699, 0), (a, 128, 4, 12), heading="slide_id,x,y,grade")
        graded = self.config(more="labels: {label: {positions_column: grade}}")
        self.assertEqual(self.boxes(graded), [(0, 10, 20), (1, 0, 0), (0, 899, 699), (0, 128, 4)])
        labels = self.python("import numpy, pathlib; print([v for p in sorted(pathlib.Path('%s').glob('*-label.npy')) for v in numpy.load(p).tolist()])"
                             % (self.folder / "batches"))
        self.assertEqual(labels.strip(), "[3, 255, 0, 12, 255, 255, 255, 255]", "the last four are padding")
        self.json("lock", graded)
        self.json("stream", graded, "--batches", 1)
        self.places((a, 10, 20, 3), (b, 0, 0, 1), (a, 899, 699, 0), (a, 128, 4, 12), heading="slide_id,x,y,grade")
        changed = self.command("stream", graded, "--batches", 1)
        self.assertNotEqual(changed.returncode, 0)
        self.assertIn("coords.csv", changed.stderr)

    def test_what_is_wrong_with_a_table_is_named(self):
        a, b = self.ids
        for places, heading, cause in (
                ([(a, 900, 0)], "slide_id,x,y", "the table's place x 900, y 0 is not in the slide"),
                ([(a, 1, 2), ("other", 1, 2)], "slide_id,x,y", "coords.csv:3: column 'slide_id': 'other' is in no row of cohort.csv"),
                ([(a, -4, 2)], "slide_id,x,y", "coords.csv:2: column 'x': '-4' is not a whole number"),
                ([(a, 1, 2)], "slide,x,y", "coords.csv:1: no column 'slide_id'")):
            self.places(*places, heading=heading)
            refused = self.command("stream", self.config())
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(cause, refused.stderr)
        self.places((b, 1, 2, 0), heading="slide_id,x,y,level")
        noticed = self.command("config", "check", self.config())
        self.assertEqual(noticed.returncode, 0, noticed.stderr)
        self.assertIn("columns not read: level", noticed.stderr)

    def test_stores_of_one_slide_are_one_content(self):
        stores = sorted((self.folder / "stores").glob("*.zarr"))
        self.json("ingest", "s1.svs", "--out", "again", "--codec-level", "1")
        again = next((self.folder / "again").glob("*.zarr"))
        rows = [{"path": str(path), "slide_id": f"S{i}", "fold": fold}
                for i, (path, fold) in enumerate([*zip(stores, ("train", "train")), (again, "val")])]
        self.table(rows)
        (self.folder / "run.yaml").write_text("dataset: cohort.csv\nsplit_column: fold\npatch: {size: [64, 64]}\n")
        refused = self.command("config", "check", "run.yaml", "--split", "train")
        self.assertEqual(refused.returncode, 2)
        self.assertRegex(refused.stderr, r"cohort.csv:4: column 'path': the content is in the split 'val' here and in 'train' in line [23]")
        rows[2]["fold"] = "train"
        rows.append({"path": "none.svs", "slide_id": "N", "fold": "val"})
        self.table(rows)
        twice = self.command("config", "check", "run.yaml", "--split", "train")
        self.assertRegex(twice.stderr, r"cohort.csv:4: column 'path': the content is that of line [23] too; a slide has one row")


if __name__ == "__main__":
    unittest.main()
