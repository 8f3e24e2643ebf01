"""Slides of which only a part was scanned: annotations count from that part or from the slide, and lie where they were drawn."""
import json
import subprocess
import unittest

import harness

CLASSES = "classes: [{name: benign, value: 0}, {name: tumour, value: 1}]\n"
LEFT, TOP, WIDTH, HEIGHT = 300, 200, 900, 700  # the scanned area, on a slide of 1500 x 1200

# A Leica SCN that OpenSlide reads: one image on a collection that is larger, sizes in nm at 500 nm a pixel.
SCN = r"""
import sys, numpy, tifffile
path, left, top, width, height = sys.argv[1], *map(int, sys.argv[2:])
nm = 500
text = f'''<?xml version="1.0"?>
<scn xmlns="http://www.leica-microsystems.com/scn/2010/10/01"><collection sizeX="{1500 * nm}" sizeY="{1200 * nm}"><barcode/>
<image><creationDate>2012-01-01T00:00:00Z</creationDate><device model="Leica SCN400" version="1"/>
<pixels sizeX="{width}" sizeY="{height}"><dimension sizeX="{width}" sizeY="{height}" r="0" ifd="0"/></pixels>
<view sizeX="{width * nm}" sizeY="{height * nm}" offsetX="{left * nm}" offsetY="{top * nm}" spacingZ="0"/>
<scanSettings><objectiveSettings><objective>20</objective></objectiveSettings><illuminationSettings>
<numericalAperture>0.4</numericalAperture><illuminationSource>brightfield</illuminationSource></illuminationSettings>
</scanSettings></image></collection></scn>'''
pixels = numpy.full((height, width, 3), 230, numpy.uint8)
pixels[100:200, 50:250] = 90
tifffile.imwrite(path, pixels, photometric="rgb", tile=(256, 256), metadata=None, description=text, bigtiff=True)
"""

# Prints the box (left, top, right, bottom) of the class 1 and that of the dark pixels in a store's level 0.
LOOK = r"""
import sys, numpy, tensorstore
read = lambda path: tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}).result().read().result()
def box(found):
    y, x = numpy.nonzero(found)
    return [int(v) for v in (x.min(), y.min(), x.max() + 1, y.max() + 1)]
print(box(read(sys.argv[2] + "/0")[0] == 1), box(read(sys.argv[1] + "/0")[0] == 90))
"""


def square(left, top, right, bottom):
    return [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]


@unittest.skipUnless(harness.oracles("numpy", "tifffile", "tensorstore"), "no other packages to compare with")
class ScannedArea(harness.Case):
    def setUp(self):
        super().setUp()
        (self.folder / "classes.yaml").write_text(CLASSES)
        subprocess.run([harness.PYTHON, "-c", SCN, self.folder / "a.scn", *map(str, (LEFT, TOP, WIDTH, HEIGHT))], check=True)
        self.geojson("bounds.geojson", square(50, 100, 250, 200))  # as QuPath draws the dark square

    def geojson(self, name, ring):
        (self.folder / name).write_text(json.dumps({"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [ring]},
                                                    "properties": {"classification": {"name": "tumour"}}}))

    def asap(self, name, ring):
        corners = "".join(f'<Coordinate Order="{i}" X="{x}" Y="{y}"/>' for i, (x, y) in enumerate(ring[:-1]))
        (self.folder / name).write_text(
            '<ASAP_Annotations><Annotations><Annotation Name="1" Type="Polygon" PartOfGroup="tumour"><Coordinates>'
            f'{corners}</Coordinates></Annotation></Annotations></ASAP_Annotations>')

    def store(self, *words):
        made = self.json("ingest", "a.scn", "--out", "stores", "--keep-names", *words)
        self.assertEqual(made["failed"], [])
        return self.folder / "stores/a.ome.zarr"

    def importing(self, store, file, *more):
        return self.json("labels", "import", store, file, "--set", "t", "--classes", "classes.yaml", *more)["imported"][0]

    def test_outlines_lie_where_they_were_drawn_and_go_back_there(self):
        store = self.store("--assume-mpp", 0.5)
        said = json.loads((store / "zarr.json").read_text())["attributes"]["patchbay"]
        self.assertEqual(said["source_bounds"], [TOP, LEFT, HEIGHT, WIDTH])
        self.assertEqual(said["mpp_assumed"], 0.5)
        made = self.importing(store, "bounds.geojson")
        self.assertEqual(made["offset"], [LEFT, TOP])
        look = subprocess.run([harness.PYTHON, "-c", LOOK, store, store / "labels" / made["revision"]], text=True,
                              capture_output=True, check=True)
        there = [LEFT + 50, TOP + 100, LEFT + 250, TOP + 200]
        self.assertEqual(look.stdout.strip(), f"{there} {there}")
        # The same square as other programs and options name it is the same revision, but for the file's digest.
        self.geojson("slide.geojson", square(*there))
        self.asap("slide.xml", square(*there))
        self.asap("bounds.xml", square(50, 100, 250, 200))
        pixels = self.pixels(store, made)
        for file, words in (("slide.geojson", ("--origin", "slide")), ("slide.xml", ()), ("bounds.xml", ("--origin", "bounds"))):
            with self.subTest(file=file):
                self.assertEqual(self.pixels(store, self.importing(store, file, *words)), pixels)
        for words, corner in (((), [50, 100]), (("--origin", "slide"), there[:2])):
            self.json("labels", "export", store, "--set", "t", "--out", "back.geojson", "--force", *words)
            ring = json.loads((self.folder / "back.geojson").read_text())["features"][0]["geometry"]["coordinates"][0]
            self.assertEqual([min(v[0] for v in ring), min(v[1] for v in ring)], corner)
        self.assertIn("--origin", self.command("labels", "export", store, "--set", "t", "--out", "x", "--origin", "else").stderr)

    def pixels(self, store, made):
        said = json.loads((store / "labels" / made["revision"] / "zarr.json").read_text())
        return said["attributes"]["patchbay"]["pixel_digest"]

    def test_bounds_that_a_store_cannot_have_are_refused(self):
        store = self.store()
        document = json.loads((store / "zarr.json").read_text())
        for wrong in ([0, 0, 0, 5], [-1, 0, 5, 5], [0, 0, 5], [800, 0, 700, 5], [0, 0, 1e300, 5], "x", [2**63, 0, 1, 1]):
            document["attributes"]["patchbay"]["source_bounds"] = wrong
            (store / "zarr.json").write_text(json.dumps(document))
            result = self.command("labels", "import", store, "bounds.geojson", "--set", "t", "--classes", "classes.yaml")
            self.assertEqual(result.returncode, 1, wrong)
            self.assertIn("source_bounds is wrong", result.stderr)
            self.assertFalse((store / "labels").exists())


if __name__ == "__main__":
    harness.main()
