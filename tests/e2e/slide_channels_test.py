"""Slides of many channels of 16 bits: stores hold their values and names, streams of both are the same, and what needs colours says so."""
import json
import subprocess
import unittest

import harness

NAMES = ["DAPI", "CD8", "CD3", "PanCK"]

# Writes panel.ome.tif, lying.ome.tif (one channel more in its OME-XML) and sheet.tif (JPEG tiles of one channel).
MAKE = r"""
import numpy, tifffile
y, x = numpy.mgrid[0:700, 0:900]
planes = numpy.stack([(x * (c + 3) + y * y // (c + 1)) % 40000 for c in range(4)]).astype(numpy.uint16)
names = ["DAPI", "CD8", "CD3", "PanCK"]
with tifffile.TiffWriter("panel.ome.tif", ome=True) as tif:
    told = {"axes": "CYX", "Channel": {"Name": names}, "PhysicalSizeX": 0.5, "PhysicalSizeY": 0.5}
    options = {"photometric": "minisblack", "tile": (256, 256), "compression": "lzw", "predictor": True}
    tif.write(planes, subifds=1, metadata=told, **options)
    tif.write(numpy.ascontiguousarray(planes[:, ::2, ::2]), subfiletype=1, **options)
numpy.save("planes.npy", planes)
whole = open("panel.ome.tif", "rb").read()
open("lying.ome.tif", "wb").write(whole.replace(b'SizeC="4"', b'SizeC="5"'))
"""
COMPARE = """
import sys, numpy, zarr
store = zarr.open_group(sys.argv[1], mode="r")
planes = numpy.load("planes.npy")
assert store["0"].dtype == "uint16", store["0"].dtype
assert numpy.array_equal(store["0"][:], planes)
assert numpy.array_equal(store["1"][:], planes[:, ::2, ::2])
"""


@unittest.skipUnless(harness.oracles("numpy", "tifffile", "imagecodecs", "zarr"), "needs tifffile and zarr")
class SlideChannels(harness.Case):
    def setUp(self):
        super().setUp()
        subprocess.run([harness.PYTHON, "-c", MAKE], cwd=self.folder, check=True)

    def digest(self, image):
        (self.folder / "run.yaml").write_text(
            f"dataset: {image}\nnumerics: cpu\npatch: {{size: [64, 64], level: 0}}\nsampling: {{order: sequential}}\n"
            "batch: {global_size: 8, dtype: float32, layout: nhwc}\n")
        return self.json("stream", "run.yaml", "--digest")["digest"]

    def test_a_store_has_values_and_names_of_its_slide(self):
        made = self.json("ingest", "panel.ome.tif", "--out", "stores", "--keep-names")
        store = f"stores/{made['stores'][0]['name']}"
        subprocess.run([harness.PYTHON, "-c", COMPARE, store], cwd=self.folder, check=True)
        ome = json.loads((self.folder / store / "zarr.json").read_text())["attributes"]["ome"]
        self.assertEqual([c["label"] for c in ome["omero"]["channels"]], NAMES)
        for image in ("panel.ome.tif", store):
            self.assertEqual(self.json("inspect", image)["channel_names"], NAMES)
            self.assertIn("channels      DAPI, CD8, CD3, PanCK", self.command("inspect", image).stdout)
        self.assertEqual(self.digest("panel.ome.tif"), self.digest(store))
        self.assertEqual(self.command("verify", store).returncode, 0)
        self.assertEqual(self.json("preview", "panel.ome.tif", store, "--out", "sheet.png")["images"], 2)
        refused = self.command("labels", "tissue", store)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("4 channels of uint16: tissue is found by colour", refused.stdout + refused.stderr)

    def test_tiles_that_cannot_be_kept_and_channels_that_are_not_there_are_refused_by_name(self):
        kept = self.command("ingest", "panel.ome.tif", "--out", "kept", "--codec", "keep")
        self.assertEqual(kept.returncode, 3)
        self.assertIn("has no tiles that can be kept, but tiles of compression LZW (5), channels apart",
                      kept.stdout + kept.stderr)
        lying = self.command("inspect", "lying.ome.tif")
        self.assertEqual(lying.returncode, 1)
        self.assertIn("SizeC 5 (OME-XML), and the plane of channel 4 is not in the file's 4 directories", lying.stderr)


if __name__ == "__main__":
    harness.main()
