"""Annotations become label images: the same pixels as shapely and scikit-image find, or a refusal."""
import hashlib
import json
import subprocess
import unittest

import harness

CLASSES = """
classes:
  - {name: benign, value: 0, aliases: [normal]}
  - {name: tumour, value: 3, aliases: [Tumor]}
  - {name: stroma, value: 7}
skip: [Other]
"""

# Run by the Python of the oracles: prints one line of findings, "ok" when there is none.
LOOK = r"""
import json, sys
import numpy, shapely, skimage.draw, tensorstore
label, geojson = sys.argv[1:]
VALUES = {"benign": 0, "normal": 0, "Tumor": 3, "stroma": 7}
read = lambda name: tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{label}/{name}"}}).result().read().result()[0]
found = read("0")
height, width = found.shape
painted = numpy.full(found.shape, 255, numpy.uint8)
near = numpy.zeros(found.shape, bool)
y, x = numpy.mgrid[0:height, 0:width]
wrong = []
features = json.load(open(geojson))["features"]
for value in (0, 3, 7):
    for feature in features:
        if VALUES[feature["properties"]["classification"]["name"]] != value:
            continue
        geometry = feature["geometry"]
        parts = geometry["coordinates"] if geometry["type"] == "MultiPolygon" else [geometry["coordinates"]]
        for rings in parts:
            # Even-odd over all rings: what is in an odd number of them.
            inside = numpy.zeros(found.shape, bool)
            by_skimage = numpy.zeros(found.shape, bool)
            for ring in rings:
                polygon = shapely.make_valid(shapely.Polygon(ring))
                shapely.prepare(polygon)
                inside ^= shapely.contains_xy(polygon, x + 0.5, y + 0.5)
                points = numpy.asarray(ring)[:, ::-1] - 0.5
                by_skimage ^= skimage.draw.polygon2mask(found.shape, points)
                # A centre on an edge may fall on either side; the libraries round differently.
                line = shapely.LineString(ring)
                box = shapely.box(0, 0, width, height)
                band = shapely.buffer(shapely.intersection(line, box), 1e-6)
                shapely.prepare(band)
                near |= shapely.contains_xy(band, x + 0.5, y + 0.5)
            if ((inside != by_skimage) & ~near).any():
                wrong.append("shapely and scikit-image differ")
            painted[inside] = value
differs = (painted != found) & ~near
if differs.any():
    wrong.append(f"{int(differs.sum())} pixels differ, the first at {numpy.argwhere(differs)[0].tolist()}")
if near.sum() > 20000:
    wrong.append("too many pixels lie near an edge")
for level in ("1", "2"):
    coarse = read(level)
    h, w = coarse.shape
    k = round(found.shape[0] / h)
    padded = numpy.full((k * h, k * w), -1, numpy.int32)
    kept = found[:k * h, :k * w]  # the slide's own levels leave out an odd last row
    padded[:kept.shape[0], :kept.shape[1]] = kept
    blocks = padded.reshape(h, k, w, k).transpose(0, 2, 1, 3).reshape(h, w, k * k)
    counts = numpy.stack([(blocks == v).sum(-1) for v in (0, 3, 7, 255)])
    mode = numpy.asarray([0, 3, 7, 255])[counts.argmax(0)]
    if not numpy.array_equal(mode, coarse):
        wrong.append(f"level {level} is not the mode of the one before")
    found = coarse
print("; ".join(wrong) or "ok")
"""


def polygon(*rings):
    return {"type": "Polygon", "coordinates": [[*map(list, r), list(r[0])] for r in rings]}


def feature(name, geometry):
    return {"type": "Feature", "geometry": geometry, "properties": {"classification": {"name": name}}}


HOLED = polygon([(100, 100), (900, 140), (860, 900), (90, 700)], [(300, 300), (500, 310), (420.5, 500.25)])
FEATURES = [
    feature("stroma", polygon([(820.3, 600.7), (1200, 640.2), (1100.9, 1000.1), (700.25, 900)])),  # over the tumour
    feature("Tumor", HOLED),
    feature("normal", {"type": "MultiPolygon", "coordinates": [
        polygon([(1000, 20), (1290, 30), (1100, 300)])["coordinates"],
        polygon([(20, 900), (60, 1105), (300, 1000)])["coordinates"]]}),
    feature("benign", polygon([(1250, 1050), (1400, 1000), (1350, 1200)])),       # past the slide's edges
    feature("Tumor", polygon([(400, 950), (600, 1100), (600, 950), (400, 1100)])),  # a bow tie
    feature("Tumor", polygon([(5000, 5000), (5100, 5000), (5100, 5100)])),          # nowhere
    feature("Tumor", {"type": "Point", "coordinates": [3, 4]}),
]


class Labels(harness.Case):
    def setUp(self):
        super().setUp()
        (self.folder / "classes.yaml").write_text(CLASSES)
        self.geojson = self.folder / "a.geojson"
        self.write(FEATURES)

    def write(self, features):
        self.geojson.write_text(json.dumps({"type": "FeatureCollection", "features": features}))

    def store_of(self, slide):
        self.json("ingest", slide, "--out", "stores", "--keep-names")
        return next(p for p in (self.folder / "stores").iterdir() if p.is_dir() and not p.name.startswith("."))

    def importing(self, store, file, *more, classes="classes.yaml", expect=0):
        return self.json("labels", "import", store, file, "--set", "gleason", "--classes", classes, *more,
                         expect=expect)

    def areas(self, report):
        return {c["name"]: c["pixels"] for c in report["imported"][0]["classes"]}

    def test_pixels_revisions_and_verify(self):
        store = self.store_of(self.slide(size="1301x1111"))
        before = self.json("verify", store)
        dry = self.importing(store, self.geojson, "--dry-run")["imported"][0]
        self.assertFalse((store / "labels").exists())
        report = self.importing(store, self.geojson)["imported"][0]
        for key in ("classes", "clipped", "outside", "self_crossing", "without_area"):
            self.assertEqual(dry[key], report[key])
        self.assertEqual([report[k] for k in ("clipped", "outside", "self_crossing", "without_area")], [1, 1, 1, 1])
        label = store / "labels" / report["revision"]
        if harness.oracles("shapely", "skimage", "tensorstore"):
            look = subprocess.run([harness.PYTHON, "-c", LOOK, str(label), str(self.only_on_slide())], text=True,
                                  capture_output=True, check=False)
            self.assertEqual(look.stdout.strip(), "ok", look.stderr[-2000:])
        after = self.json("verify", store)
        self.assertTrue(after["clean"])
        self.assertEqual([after[k] for k in ("digest", "pixel_digest")], [before[k] for k in ("digest", "pixel_digest")])
        self.assertEqual([s["name"] for s in after["labels"]], [report["revision"]])
        self.assertTrue(self.importing(store, self.geojson)["imported"][0]["already_there"])
        self.exported(store, report)
        self.corrected(store, report)

    def only_on_slide(self):
        """The drawing less what the oracle would have to leave out."""
        path = self.folder / "oracle.geojson"
        kept = [f for f in FEATURES if f["geometry"]["type"] != "Point"]
        path.write_text(json.dumps({"features": kept}))
        return path

    def exported(self, store, report):
        """Importing what was exported gives the same pixels; the index of positions is covered by verify."""
        self.json("labels", "export", store, "--set", "gleason", "--out", "back.geojson")
        again = self.json("labels", "import", store, "back.geojson", "--set", "back", "--classes", "classes.yaml")
        digests = [json.loads((store / "labels" / r / "zarr.json").read_text())["attributes"]["patchbay"]["pixel_digest"]
                   for r in (report["revision"], again["imported"][0]["revision"])]
        self.assertEqual(digests[0], digests[1])
        self.json("labels", "export", store, "--set", "gleason", "--out", "back.tif", "--to", "tiff")
        (self.folder / "values.yaml").write_text(CLASSES.replace("skip:", "  - {name: unseen, value: 255}\nskip:"))
        for table in ("classes.yaml", "values.yaml"):  # 255 of an exported mask is what nobody drew, whatever the table says
            row = self.json("labels", "import", store, "back.tif", "--set", "mask", "--classes", table)["imported"][0]
            said = json.loads((store / "labels" / row["revision"] / "zarr.json").read_text())["attributes"]["patchbay"]
            self.assertEqual(said["pixel_digest"], digests[0])
            self.assertGreater(row["ignored_pixels"], 1000)
        self.assertEqual(row["classes"][3], {"name": "unseen", "value": 255, "outlines": 0, "pixels": 0, "area_mm2": 0.0})
        mask = (self.folder / "back.tif").read_bytes()
        self.assertEqual(mask.count(b"patchbay label set"), 1)
        (self.folder / "foreign.tif").write_bytes(mask.replace(b"patchbay label set", b"somebody's own mask"[:18]))
        refused = self.command("labels", "import", store, "foreign.tif", "--set", "no", "--classes", "classes.yaml")
        self.assertEqual(refused.returncode, 1)
        self.assertIn(f"does not have: 255 ({row['ignored_pixels']} pixels); 255 may be a class (`from: 255`)", refused.stderr)
        foreign = self.json("labels", "import", store, "foreign.tif", "--set", "foreign", "--classes", "values.yaml")["imported"][0]
        self.assertEqual(foreign["classes"][3]["pixels"], foreign["ignored_pixels"])
        self.assertIn("no set 'none'", self.command("labels", "export", store, "--set", "none", "--out", "x.tif").stderr)
        index = store / "labels" / report["revision"] / "positions.index"
        index.write_bytes(index.read_bytes() + b"x")
        self.assertIn("positions.index", self.json("verify", store, expect=1)["bad"][0])
        index.write_bytes(index.read_bytes()[:-1])

    def corrected(self, store, report):
        self.write(FEATURES[:2])
        second = self.importing(store, self.geojson)["imported"][0]
        self.assertNotEqual(second["revision"], report["revision"])
        listed = json.loads((store / "labels" / "zarr.json").read_text())["attributes"]["ome"]["labels"]
        self.assertEqual([r for r in listed if r.startswith("gleason.")], [second["revision"]])
        self.assertEqual(len(self.json("verify", store)["labels"]), 6)
        shard = next(p for p in (store / "labels" / report["revision"] / "0").rglob("*") if p.is_file() and p.name != "zarr.json")
        whole = shard.read_bytes()
        shard.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
        found = self.json("verify", store, expect=1)
        self.assertIn(f"labels/{report['revision']}/", found["bad"][0])
        shard.write_bytes(whole)
        (store / "labels" / "strange").write_text("")
        self.assertIn("labels/strange", self.json("verify", store, expect=1)["bad"][0])

    def test_classes_that_are_ignored_are_counted_apart_from_what_nobody_drew(self):
        store = self.store_of(self.slide(size="1301x1111"))
        (self.folder / "ignored.yaml").write_text(
            CLASSES.replace("skip:", "  - {name: artefact, value: 255, aliases: [pen]}\n  - {name: blur, value: 255}\nskip:"))
        square = lambda y, x, side: polygon([(x, y), (x + side, y), (x + side, y + side), (x, y + side)])
        self.write([feature("Tumor", square(100, 100, 400)), feature("pen", square(450, 450, 100)),
                    feature("pen", square(1000, 1250, 200)), feature("stroma", square(0, 0, 10))])
        row = self.importing(store, self.geojson, classes="ignored.yaml")["imported"][0]
        drawn = {one["name"]: one["pixels"] for one in row["classes"]}
        pen = 100 * 100 + 51 * 111
        self.assertEqual(drawn, {"benign": 0, "tumour": 400 * 400 - 50 * 50, "stroma": 100, "artefact": pen, "blur": 0})
        self.assertEqual(row["ignored_pixels"], 1301 * 1111 - 400 * 400 + 50 * 50 - 100)
        again = self.importing(store, self.geojson, "--dry-run", classes="ignored.yaml")["imported"][0]
        self.assertEqual(again["classes"], row["classes"])

    @unittest.skipUnless((harness.DATA / "wsi/annotations").is_dir(), "no test data")
    def test_real_files(self):
        data = harness.DATA / "wsi"
        store = self.store_of(data / "CMU-1-Small-Region.svs")
        notes = data / "annotations"
        found = self.importing(store, notes / "CMU-1-Small-Region.geojson")
        # A square of 821 px that is skipped, and one cut at the slide's edge, 2220 px.
        self.assertEqual(self.areas(found), {"benign": 0, "tumour": (2220 - 1512) * (2333 - 1512), "stroma": 0})
        self.assertEqual([found["imported"][0][k] for k in ("skipped", "clipped")], [1, 1])
        table = self.folder / "two.yaml"
        table.write_text("classes: [{name: ground, value: 0}, {name: tumour, value: 1, aliases: tumor}, {name: layer, value: 2, aliases: Layer 1}]")
        mask = self.importing(store, notes / "CMU-1-Small-Region-mask.tif", classes=table)
        self.assertEqual(self.areas(mask)["tumour"], 89)
        halo = self.importing(store, notes / "CMU-1-Small-Region-halo.xml", classes=table)
        # Centres within x 1 to 10, y 1 to 40, less those of the tumour that lies on top.
        areas = self.areas(halo)
        self.assertEqual(areas["tumour"] + areas["layer"], 9 * 39)
        other = self.refused(store, notes / "imagescope-TCGA-EJ-5518.xml")
        self.assertIn("another slide's", other)
        self.assertIn("another slide's", self.refused(store, notes / "qupath-holed.geojson", more="unclassified"))

    def refused(self, store, file, *words, more=None):
        table = self.folder / "classes.yaml"
        if more:
            table = self.folder / "more.yaml"
            table.write_text(CLASSES.replace("[Tumor]", f"[Tumor, {more}]"))
        result = self.command("labels", "import", store, file, "--set", "x", "--classes", table, *words)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stdout, "")
        return result.stderr

    def test_a_table_names_files_and_stores(self):
        slides = [self.slide(f"{n}.svs", size="600x500", seed=n) for n in (1, 2, 3)]
        self.json("ingest", *slides[:2], "--out", "stores", "--keep-names")
        digests = [hashlib.sha256(s.read_bytes()).hexdigest() for s in slides]
        self.write([feature("Tumor", polygon([(10, 10), (50, 10), (50, 50), (10, 50)]))])
        (self.folder / "b.geojson").write_text("{")
        table = self.folder / "cohort.csv"
        lines = [f"{s.name},{d},{a}" for s, d, a in zip(slides, digests, ("a.geojson", "b.geojson", ""))]
        table.write_text("path,content_hash,annotation\n" + "\n".join(lines) + "\n")
        words = ("labels", "import", table, "--stores", "stores", "--set", "t", "--classes", "classes.yaml")
        found = self.json(*words, expect=3)
        self.assertEqual([len(found[k]) for k in ("imported", "failed")], [1, 1])
        self.assertEqual(found["imported"][0]["classes"][1]["pixels"], 1600)
        self.assertIn("parse json", found["failed"][0]["reason"])
        self.assertIn("b.geojson: ", self.command(*words).stderr)
        unhashed = self.folder / "unhashed.csv"
        unhashed.write_text(f"path,content_hash,annotation\n{slides[0].name},,a.geojson\n")
        self.assertIn("`patchbay scan --hash`", self.command("labels", "import", unhashed, *words[3:]).stderr)
        table.write_text(table.read_text().replace(f"{digests[2]},", f"{digests[2]},a.geojson"))
        self.assertIn("`patchbay ingest` makes it", self.command(*words).stderr)

    def test_a_job_of_a_cluster_is_waited_for_under_the_names_of_its_files(self):
        slides = [self.slide(f"{n}.svs", size="600x500", seed=n) for n in (1, 2)]
        self.json("ingest", *slides, "--out", "stores", "--keep-names")
        self.write([feature("Tumor", polygon([(10, 10), (50, 10), (50, 50), (10, 50)]))])
        (self.folder / "b.geojson").write_text("{")
        (self.folder / "cohort.csv").write_text("path,content_hash,annotation\nstores/1.ome.zarr,,a.geojson\nstores/2.ome.zarr,,b.geojson\n")
        cluster = self.up(1)
        found = self.json("labels", "import", "cohort.csv", "--set", "t", "--classes", "classes.yaml", expect=3)
        self.assertEqual([len(found[k]) for k in ("imported", "failed")], [1, 1])
        waited = self.json("wait", found["job"], expect=3)
        self.assertEqual(waited["result"], found)
        self.assertTrue(waited["result"]["failed"][0]["file"].endswith("/b.geojson"))
        self.assertIn("b.geojson: ", self.command("wait", found["job"]).stderr)
        self.down(cluster)

    def test_refusals_leave_the_store_as_it_was(self):
        slide = self.slide(size="700x600")
        store = self.store_of(slide)
        self.assertIn("patchbay ingest", self.refused(slide, self.geojson))
        self.assertIn("patchbay ingest", self.refused(self.folder / "none", self.geojson))
        bad = self.folder / "bad.geojson"
        for text, says in (("", "the file is empty"), ("{", "parse json"),
                           (json.dumps({"type": "FeatureCollection", "features": []}), "no annotation in it"),
                           (json.dumps(feature("Tumour", HOLED)), None),
                           (json.dumps(feature("Tumors", HOLED)), "did you mean 'Tumor'"),
                           (json.dumps(feature("Tumor", polygon([(9e3, 9e3), (9e3, 9.1e3), (9.1e3, 9e3)]))),
                            "another slide's")):
            bad.write_text(text)
            if says:
                said = self.refused(store, bad)
                self.assertIn(says, said)
                self.assertIn(str(bad), said)
        small = self.slide("small.svs", size="512x512", seed=3)
        self.assertIn("512 x 512 pixels", self.refused(store, small))
        said = self.refused(store, slide)
        self.assertIn("values that the class table does not have", said)
        self.assertIn("a map of probabilities is made a mask first", said)
        self.assertFalse((store / "labels").exists())
        self.assertTrue(self.json("verify", store)["clean"])
        # Files that a killed import leaves are no part of the store, and the next import clears
        # them.
        left = store / "labels/.staging/set/0/c/0/0"
        left.parent.mkdir(parents=True)
        left.write_bytes(b"half")
        self.assertTrue(self.json("verify", store)["clean"])
        self.importing(store, self.geojson)
        self.assertFalse((store / "labels/.staging").exists())
        self.assertTrue(self.json("verify", store)["clean"])
        for words, says in ((("--set", "A b"), "a name is"), (("--classes", "none.yaml"), "none.yaml")):
            base = {"--set": "x", "--classes": "classes.yaml"} | {words[0]: words[1]}
            done = self.command("labels", "import", store, self.geojson, *[w for kv in base.items() for w in kv])
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
