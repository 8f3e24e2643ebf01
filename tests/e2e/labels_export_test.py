"""Label sets as files for other programs: other packages read them, importing them gives the same pixels, refusals leave nothing."""
import json
import math
import re
import subprocess

import harness

CLASSES = """
classes:
  - {name: benign, value: 0}
  - {name: tumour, value: 3}
  - {name: pen, value: 255}
"""
EXHAUSTIVE = CLASSES + "exhaustive: true\nbackground: benign\n"

# Arguments: the exported file, one with --smooth, um/px, its tolerance in um. Prints "ok".
LOOK = r"""
import json, sys
import shapely
from shapely.geometry import shape
plain, smooth = (json.load(open(path))["features"] for path in sys.argv[1:3])
mpp, tolerance = map(float, sys.argv[3:])
wrong = []
if [f["id"] for f in plain] != [f["id"] for f in smooth]:
    wrong.append("other ids")
for before, after in zip(plain, smooth):
    a, b = shape(before["geometry"]), shape(after["geometry"])
    if not (a.is_valid and b.is_valid):
        wrong.append(f"{before['id']}: {shapely.is_valid_reason(a)}, {shapely.is_valid_reason(b)}")
    for one in (before, after):  # the area is that of the pixels, however the line is drawn
        area = one["properties"]["measurements"]["Area µm^2"]
        if abs(area - a.area * mpp * mpp) > 1e-6 * area:
            wrong.append(f"{before['id']}: {area} um2, and shapely has {a.area * mpp * mpp}")
    if len(a.interiors) != len(b.interiors):
        wrong.append(f"{before['id']}: lost holes")
    # No vertex that is gone is farther from the new line than the tolerance; the new vertices are old ones.
    far = max((b.boundary.distance(shapely.Point(p)) for p in shapely.get_coordinates(a)), default=0)
    if far * mpp > tolerance * (1 + 1e-9):
        wrong.append(f"{before['id']}: {far * mpp} um off")
old, new = (sum(len(shapely.get_coordinates(shape(f["geometry"]))) for f in part) for part in (plain, smooth))
if new * 2 > old:
    wrong.append(f"{new} vertices of {old} left")
print("; ".join(wrong) or "ok")
"""

# Arguments: a TIFF mask, a label image, its level. Prints "ok".
SAME_PIXELS = r"""
import sys, numpy, tensorstore, tifffile
level = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{sys.argv[2]}/{sys.argv[3]}"}}).result().read().result()
print("ok" if numpy.array_equal(tifffile.imread(sys.argv[1]), level[0]) else "other pixels")
"""


def ring(*points):
    return [list(p) for p in [*points, points[0]]]


def circle(x, y, r, corners=90):
    return ring(*((x + r * math.cos(2 * math.pi * i / corners), y + r * math.sin(2 * math.pi * i / corners)) for i in range(corners)))


def feature(name, *rings):
    return {"type": "Feature", "properties": {"classification": {"name": name}}, "geometry": {"type": "Polygon", "coordinates": rings}}


class LabelsExport(harness.Case):
    def setUp(self):
        super().setUp()
        (self.folder / "classes.yaml").write_text(CLASSES)
        (self.folder / "exhaustive.yaml").write_text(EXHAUSTIVE)
        drawn = [feature("tumour", circle(400, 400, 300), circle(350, 380, 60), circle(520, 400, 4)),
                 feature("tumour", circle(900, 300, 5)), feature("benign", circle(900, 600, 120)),
                 feature("pen", circle(930, 640, 50))]
        (self.folder / "a.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": drawn}))
        self.json("ingest", self.slide(size="1301x1111"), "--out", "stores", "--keep-names")
        self.store_path = next(p for p in (self.folder / "stores").iterdir() if p.suffix == ".zarr")

    def importing(self, file, name="s", classes="classes.yaml"):
        return self.json("labels", "import", self.store_path, file, "--set", name, "--classes", classes)["imported"][0]

    def exporting(self, out, *words, name="s"):
        return self.json("labels", "export", self.store_path, "--set", name, "--out", out, *words)

    def pixels(self, row):
        said = json.loads((self.store_path / "labels" / row["revision"] / "zarr.json").read_text())
        return said["attributes"]["patchbay"]["pixel_digest"]

    def features(self, name):
        return json.loads((self.folder / name).read_text())["features"]

    def test_outlines_have_colours_ids_and_areas(self):
        made = self.importing("a.geojson")
        self.exporting("plain.geojson")
        features = self.features("plain.geojson")
        self.assertEqual([f["properties"]["classification"]["name"] for f in features], ["benign", "tumour", "tumour"])
        colours = {f["properties"]["classification"]["name"]: f["properties"]["classification"]["color"] for f in features}
        self.assertEqual(len({tuple(c) for c in colours.values()}), 2)
        self.assertTrue(all(0 <= v <= 255 for c in colours.values() for v in c))
        for f in features:
            self.assertEqual(f["properties"]["objectType"], "annotation")
            self.assertRegex(f["id"], re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"))
        self.assertEqual(len({f["id"] for f in features}), 3)
        self.assertEqual(self.pixels(self.importing("plain.geojson", "again")), self.pixels(made))
        self.exporting("again.geojson", name="again")
        self.assertEqual((self.folder / "again.geojson").read_bytes(), (self.folder / "plain.geojson").read_bytes())
        mpp = self.mpp()
        self.exporting("smooth.geojson", "--smooth", 1.5)
        if harness.oracles("shapely"):
            look = subprocess.run([harness.PYTHON, "-c", LOOK, self.folder / "plain.geojson", self.folder / "smooth.geojson",
                                   str(mpp), "1.5"], text=True, capture_output=True, check=False)
            self.assertEqual(look.stdout.strip(), "ok", look.stderr[-2000:])
        # The small circle has some 78 pixels, the small hole 50; the large one stays.
        self.exporting("large.geojson", "--min-area", 100 * mpp * mpp)
        large = self.features("large.geojson")
        self.assertEqual([len(f["geometry"]["coordinates"]) for f in large], [2, 2])
        self.assertEqual([len(f["geometry"]["coordinates"]) for f in features], [2, 3, 1])
        self.assertEqual(large[0]["id"], features[0]["id"])
        self.importing("smooth.geojson", "smooth")

    def mpp(self):
        document = json.loads((self.store_path / "zarr.json").read_text())
        return document["attributes"]["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"][-1]

    def test_areas_to_leave_out_stay_left_out_where_the_rest_is_background(self):
        made = self.importing("a.geojson", classes="exhaustive.yaml")
        self.exporting("b.geojson")
        self.assertEqual([f["properties"]["classification"]["name"] for f in self.features("b.geojson")], ["tumour", "tumour", "pen"])
        again = self.importing("b.geojson", "again", "exhaustive.yaml")
        self.assertEqual(self.pixels(again), self.pixels(made))
        self.assertEqual(again["classes"][2]["pixels"], made["classes"][2]["pixels"])

    def test_masks_are_of_the_slide_or_of_a_level(self):
        made = self.importing("a.geojson")
        self.assertEqual(self.exporting("full.tif")["size"], [1111, 1301])
        self.assertEqual(self.pixels(self.importing("full.tif", "again")), self.pixels(made))
        levels = sorted(p.name for p in self.store_path.iterdir() if p.name.isdigit())
        for level in levels:
            said = self.exporting(f"{level}.tiff", "--level", level)
            if harness.oracles("tifffile", "tensorstore", "imagecodecs"):
                look = subprocess.run([harness.PYTHON, "-c", SAME_PIXELS, self.folder / f"{level}.tiff",
                                       self.store_path / "labels" / made["revision"], level], text=True, capture_output=True, check=False)
                self.assertEqual(look.stdout.strip(), "ok", look.stderr[-2000:])
        self.assertLess(said["size"][0], 600)
        self.refused(1, "more.tif", "--level", len(levels), says=f"--level {len(levels)}: its levels are 0 to {len(levels) - 1}")

    def refused(self, code, out, *words, says, name="s"):
        before = sorted(p.name for p in self.folder.iterdir())
        done = self.command("labels", "export", self.store_path, "--set", name, "--out", out, *words)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn(says, done.stderr)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), before)

    def test_refusals_leave_nothing(self):
        self.importing("a.geojson")
        self.refused(2, "x", says="--out x: its ending is that of no format: end it in .geojson or .json for geojson; .tif")
        self.refused(2, "x.png", says="no format")
        self.refused(2, "x.png", "--to", "tiff", says="the name says png, and tiff would be written: end it in .tif, .tiff or .btf")
        self.refused(2, "x.tif", "--to", "geojson", says="the name says tiff, and geojson would be written")
        self.refused(2, "x.tif", "--to", "jpeg", says="expected one of geojson, tiff")
        self.refused(2, "x.tif", "--smooth", 2, says="--smooth: an option of geojson, and the format is tiff")
        self.refused(2, "x.geojson", "--level", 1, says="--level: an option of tiff")
        self.refused(2, "x.geojson", "--smooth", 0, says="--smooth")
        self.refused(1, "x.geojson", name="none", says="no set 'none'")
        self.refused(1, "a.geojson", says="a.geojson: it exists; give another name, or --force")
        self.refused(1, "no/x.geojson", says="no/x.geojson")
        self.exporting("a.geojson", "--force")
        self.exporting("x", "--to", "tiff")
        self.assertEqual((self.folder / "x").read_bytes()[:2], b"II")

    def test_a_full_disk_leaves_the_file_that_was_there(self):
        self.importing("a.geojson")
        disk = self.small_disk("8k")
        for name in ("a.tif", "a.geojson"):
            with self.subTest(name=name):
                (disk / name).write_text("old")
                done = self.command("labels", "export", self.store_path, "--set", "s", "--force", "--out", disk / name)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("No space left", done.stderr)
                self.assertEqual([(p.name, p.read_text()) for p in disk.iterdir()], [(name, "old")])
                (disk / name).unlink()


if __name__ == "__main__":
    harness.main()
