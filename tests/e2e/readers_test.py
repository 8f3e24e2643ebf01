"""Label sets of several readers: agreement as NumPy counts it on the exported masks, and what most of them say."""
import csv
import io
import json
import subprocess
import unittest

import harness

CLASSES = """
classes:
  - {name: benign, value: 0}
  - {name: gleason_3, value: 3}
  - {name: gleason_4, value: 4}
"""
SETS = ("gleason@anna", "gleason@ben", "gleason@cy")

# Prints the pairs of two stores, and over both, as `labels compare --json` has them; and checks the majority.
LOOK = r"""
import itertools, json, sys
import numpy, tifffile
VALUES, NAMES = (0, 3, 4), ("benign", "gleason_3", "gleason_4")

def measures(counts):
    n, same = counts.sum(), numpy.trace(counts)
    rows, columns = counts.sum(1), counts.sum(0)
    by_chance = (rows * columns).sum() / n / n
    dice = {name: float(2 * counts[i, i] / (rows[i] + columns[i])) for i, name in enumerate(NAMES) if rows[i] + columns[i]}
    d = numpy.subtract.outer(numpy.arange(3), numpy.arange(3)) ** 2.0
    return {"pixels": int(n), "agreement": float(same / n), "kappa": float((same / n - by_chance) / (1 - by_chance)),
            "dice": dice, "quadratic": float(1 - (d * counts).sum() / (d * numpy.outer(rows, columns)).sum() * n)}

def counts_of(a, b):
    return numpy.array([[((a == v) & (b == w)).sum() for w in VALUES] for v in VALUES], numpy.float64)

stores, wrong = [], []
for store in sys.argv[1:]:
    masks = [tifffile.imread(f"{store}-{i}.tif") for i in range(3)]
    stores.append([counts_of(a, b) for a, b in itertools.combinations(masks, 2)])
    stack = numpy.stack(masks)
    votes = numpy.stack([(stack == v).sum(0) for v in VALUES])
    top = votes.max(0)
    tied = (votes == top).sum(0) > 1
    most = numpy.array(VALUES, numpy.uint8)[votes.argmax(0)]
    expected = numpy.where((top == 0) | tied, 255, most)
    first = expected.copy()
    for mask in masks[::-1]:
        leads = numpy.take_along_axis(votes, numpy.searchsorted(VALUES, mask).clip(0, 2)[None], 0)[0] == top
        first = numpy.where(tied & (top > 0) & (mask != 255) & leads, mask, first)
    for name, wanted in (("ignore", expected), ("first", first), ("two", numpy.where(top >= 2, expected, 255))):
        if not numpy.array_equal(tifffile.imread(f"{store}-{name}.tif"), wanted):
            wrong.append(f"majority {name} of {store}")
    wrong += [] if tied[top > 0].any() and (stack == 255).any() else [f"{store}: a case without ties or gaps"]
print(json.dumps({"stores": [[measures(c) for c in pairs] for pairs in stores], "all": [measures(sum(c)) for c in zip(*stores)], "wrong": wrong}))
"""


def square(label, x, y, side, **more):
    ring = [[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]
    return {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [ring]}, "properties": {"classification": {"name": label}} | more}


def drawing(reader, slide):
    """Areas that overlap those of the other readers in part."""
    d = 20 * reader + 10 * slide
    return [square("benign", 10, 10, 500), square("gleason_3", 100 + d, 100, 200), square("gleason_4", 220, 160 + 2 * d, 150),
            square(("gleason_3", "gleason_4", "benign")[reader], 300, 20, 60)]


class Readers(harness.Case):
    def setUp(self):
        super().setUp()
        (self.folder / "classes.yaml").write_text(CLASSES)
        self.stores = sorted(self.store([self.slide(f"s{i}.svs", "600x560", i) for i in (0, 1)]).glob("*.zarr"))
        for slide, store in enumerate(self.stores):
            for reader, name in enumerate(SETS):
                self.annotate(store, name, drawing(reader, slide))

    def annotate(self, store, name, features, *words, expect=0):
        path = self.folder / "drawing.geojson"
        path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
        return self.json("labels", "import", store, path, "--set", name, "--classes", "classes.yaml", *words, expect=expect)

    def export(self, store, name, out):
        self.json("labels", "export", store, "--set", name, "--out", out)

    @unittest.skipUnless(harness.oracles("numpy", "tifffile"), "the oracles' Python lacks numpy or tifffile")
    def test_agreement_and_majority_are_those_of_numpy(self):
        for rule, words in (("ignore", ()), ("first", ("--ties", "first")), ("two", ("--min-votes", 2))):
            made = self.json("labels", "majority", *SETS, "--in", "stores", "--set", f"most-{rule}", *words)
            self.assertEqual(len(made["imported"]), 2)
        for i, store in enumerate(self.stores):
            for k, name in enumerate(SETS):
                self.export(store, name, f"m{i}-{k}.tif")
            for rule in ("ignore", "first", "two"):
                self.export(store, f"most-{rule}", f"m{i}-{rule}.tif")
        done = subprocess.run([harness.PYTHON, "-c", LOOK, "m0", "m1"], cwd=self.folder, text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        expected = json.loads(done.stdout)
        self.assertEqual(expected["wrong"], [])
        found = self.json("labels", "compare", *SETS, "--in", "stores")
        self.assertEqual(found["classes"], ["benign", "gleason_3", "gleason_4"])
        for one, wanted in zip([*found["stores"], found], [*expected["stores"], expected["all"]]):
            self.assertEqual([(pair["a"], pair["b"]) for pair in one["pairs"]], [(SETS[0], SETS[1]), (SETS[0], SETS[2]), (SETS[1], SETS[2])])
            for pair, oracle in zip(one["pairs"], wanted):
                self.assertEqual(pair["pixels"], oracle["pixels"])
                for key in ("agreement", "kappa"):
                    self.assertAlmostEqual(pair[key], oracle[key], places=12)
                for name, dice in oracle["dice"].items():
                    self.assertAlmostEqual(pair["dice"][name], dice, places=12)
        weighed = self.json("labels", "compare", *SETS, "--in", "stores", "--weights", "quadratic")
        for pair, oracle in zip(weighed["pairs"], expected["all"]):
            self.assertAlmostEqual(pair["kappa"], oracle["quadratic"], places=12)
        rows = list(csv.DictReader(io.StringIO(self.command("labels", "compare", *SETS, "--in", "stores", "--csv").stdout)))
        self.assertEqual([row["store"] for row in rows[-3:]], ["all"] * 3)
        self.assertAlmostEqual(float(rows[-1]["dice gleason_4"]), expected["all"][2]["dice"]["gleason_4"], places=8)

    def test_sets_that_cannot_be_compared_are_refused(self):
        for words, cause in ((SETS[:1], "name 2 to 16 label sets"), ((SETS[0], SETS[0]), "named twice"),
                             (("a", "b@c@d"), "'b@c@d': a name is lower-case letters")):
            for command, more in (("compare", ()), ("majority", ("--set", "most"))):
                refused = self.command("labels", command, *words, "--in", "stores", *more)
                self.assertEqual(refused.returncode, 2, refused.stderr)
                self.assertIn(cause, refused.stderr)
        missing = self.command("labels", "compare", SETS[0], "other", "--in", "stores")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("gleason@ben", missing.stderr, "the sets that there are")
        own = self.command("labels", "majority", *SETS, "--in", "stores", "--set", SETS[1])
        self.assertIn("it is one of the sets that vote", own.stderr)
        (self.folder / "classes.yaml").write_text(CLASSES.replace("value: 4", "value: 5"))
        self.annotate(self.stores[0], "gleason@dora", drawing(1, 0))
        some = self.command("labels", "majority", SETS[0], "gleason@dora", "--in", "stores", "--set", "most")
        self.assertEqual(some.returncode, 1, some.stderr)
        self.assertIn("the classes of 'gleason@dora' are not those of 'gleason@anna'", some.stderr)
        by_name = self.command("labels", "compare", SETS[0], "gleason@dora", "--in", "stores", "--json")
        self.assertEqual(by_name.returncode, 3, by_name.stderr)
        self.assertEqual(len(json.loads(by_name.stdout)["stores"]), 1, "classes are the same by name")

    def test_classes_come_from_names_and_properties(self):
        features = [square("Ignored", 10, 10, 100, name="benign", metadata={"grade": 4}),
                    square("Ignored", 200, 200, 50, name="gleason_3", metadata={"grade": 3})]
        named = self.annotate(self.stores[0], "by-name", features, "--class-from", "name")["imported"][0]["classes"]
        self.assertEqual([one["pixels"] for one in named], [10000, 2500, 0])
        (self.folder / "classes.yaml").write_text("classes: [{name: '3', value: 3}, {name: '4', value: 4}]\n")
        graded = self.annotate(self.stores[0], "by-grade", features, "--class-from", "metadata.grade")["imported"][0]["classes"]
        self.assertEqual([one["pixels"] for one in graded], [2500, 10000])
        refused = self.annotate(self.stores[0], "by-none", features, "--class-from", "reader", expect=1)
        self.assertIn("'unclassified' are objects without the property 'reader'", json.dumps(refused["failed"]))


if __name__ == "__main__":
    unittest.main()
