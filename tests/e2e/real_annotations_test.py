"""Real annotation files on slides of their size: pixels and areas as shapely and scikit-image find them, and lines back again."""
import json
import shutil
import subprocess
import unittest

import harness

NOTES = harness.DATA / "wsi/annotations"
CLASSES = "classes: [{name: background, value: 0}, {name: cancer, value: 1, aliases: [unclassified, CaP]}]\n"
# (file, width, height of the slide, outlines that its edges cut): the second has others further down.
FILES = (("qupath-holed.geojson", 14336, 20480, 0), ("imagescope-TCGA-EJ-5518.xml", 49152, 16384, 1))

WHITE = """
import sys, numpy, tifffile
tifffile.imwrite(sys.argv[1], numpy.full((1024, 1024, 3), 255, numpy.uint8), tile=(256, 256), photometric="rgb")
"""

# Prints one line of findings, "ok" when there is none. The drawing is read here by other means than ours.
LOOK = r"""
import json, sys
import xml.etree.ElementTree as tree
import numpy, shapely, skimage.draw, tensorstore
label, source, exported, pixels = sys.argv[1:]
TILE, TILES = 256, 3
def rings_of(path):
    if path.endswith("json"):
        data = json.load(open(path))
        return [f["geometry"]["coordinates"] for f in data.get("features", [data])]
    return [[[(float(v.get("X")), float(v.get("Y"))) for v in region.iter("Vertex")]] for region in tree.parse(path).iter("Region")]
drawn = rings_of(source)
found = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": label + "/0"}}).result()
wrong, near_edges, looked_at = [], 0, 0
height, width = found.shape[1:]
parts = shapely.get_parts([shapely.make_valid(shapely.Polygon(r[0], r[1:])) for r in drawn])
whole = shapely.union_all([p for p in parts if shapely.get_dimensions(p) == 2])
whole = shapely.intersection(whole, shapely.box(0, 0, width, height))
shapely.prepare(whole)
edges = shapely.boundary(whole)
for rings in drawn:
    for ring in rings:
        for x, y in ring[:: max(1, len(ring) // TILES)]:
            top, left = int(y) - TILE // 2, int(x) - TILE // 2
            if top + TILE > height or left + TILE > width:
                continue
            looked_at += 1
            ours = found[0, top:top + TILE, left:left + TILE].read().result() == 1
            yy, xx = numpy.mgrid[top:top + TILE, left:left + TILE] + 0.5
            by_shapely = shapely.contains_xy(whole, xx, yy)
            by_skimage = numpy.zeros(ours.shape, bool)
            for one in drawn:
                inside = numpy.zeros(ours.shape, bool)
                for part in one:
                    inside ^= skimage.draw.polygon2mask(ours.shape, numpy.asarray(part)[:, ::-1] - [top + 0.5, left + 0.5])
                by_skimage |= inside
            # A centre on an edge may fall on either side; the libraries round differently.
            unsure = shapely.distance(edges, shapely.points(xx[ours != by_shapely], yy[ours != by_shapely])) if (ours != by_shapely).any() else numpy.zeros(0)
            near_edges += len(unsure)
            if (unsure > 1e-6).any():
                wrong.append(f"shapely differs near {x}, {y}")
            if (ours != by_skimage).sum() > len(unsure):
                wrong.append(f"scikit-image differs near {x}, {y}")
            if ours.all() or not ours.any():
                wrong.append(f"no edge near {x}, {y}")
if near_edges > 100 or looked_at < 3:
    wrong.append(f"{near_edges} centres on an edge, {looked_at} tiles")
# A pixel counts as a whole or not at all: at most half a pixel of area for each pixel of length.
if abs(int(pixels) - whole.area) > edges.length / 2:
    wrong.append(f"{pixels} pixels are not {whole.area:.0f}")
back = shapely.union_all([shapely.Polygon(r[0], r[1:]) for r in rings_of(exported)])
far = shapely.distance(edges, shapely.points(shapely.get_coordinates(back)[::20])).max()
if far > 0.5 + 1e-6:
    wrong.append(f"a line came back {far} pixels from where it was drawn")
if shapely.symmetric_difference(whole, back).area > edges.length / 2:
    wrong.append("what came back covers something else")
print("; ".join(sorted(set(wrong))) or "ok")
"""


@unittest.skipUnless(NOTES.is_dir(), "no test data")
@unittest.skipUnless(harness.oracles("shapely", "skimage", "tensorstore", "tifffile"), "no other packages to compare with")
class RealAnnotations(harness.Case):
    def store(self, name, width, height):
        """A store as of a white slide of that size: no chunk of it is written."""
        subprocess.run([harness.PYTHON, "-c", WHITE, self.folder / f"{name}.tif"], check=True)
        self.json("ingest", f"{name}.tif", "--out", "stores", "--keep-names", "--assume-mpp", 0.252)
        store = self.folder / f"stores/{name}.ome.zarr"
        for number, level in enumerate(sorted(p for p in store.iterdir() if p.is_dir())):
            shutil.rmtree(level / "c", ignore_errors=True)
            document = json.loads((level / "zarr.json").read_text())
            document["shape"] = [3, height >> number, width >> number]
            (level / "zarr.json").write_text(json.dumps(document))
        root = json.loads((store / "zarr.json").read_text())
        del root["attributes"]["patchbay"]["shards"]  # the list of files, of the small slide
        (store / "zarr.json").write_text(json.dumps(root))
        return store

    def test_files_of_qupath_and_imagescope_are_where_other_packages_find_them(self):
        (self.folder / "classes.yaml").write_text(CLASSES)
        for number, (name, width, height, clipped) in enumerate(FILES):
            with self.subTest(file=name):
                store = self.store(str(number), width, height)
                made = self.json("labels", "import", store, NOTES / name, "--set", "s", "--classes", "classes.yaml")["imported"][0]
                self.assertEqual(made["clipped"], clipped)
                self.json("labels", "export", store, "--set", "s", "--out", "back.geojson", "--force")
                pixels = next(c["pixels"] for c in made["classes"] if c["value"] == 1)
                look = subprocess.run([harness.PYTHON, "-c", LOOK, store / "labels" / made["revision"], NOTES / name,
                                       self.folder / "back.geojson", str(pixels)], text=True, capture_output=True, check=False)
                self.assertEqual(look.stdout.strip(), "ok", look.stderr[-2000:])


if __name__ == "__main__":
    harness.main()
