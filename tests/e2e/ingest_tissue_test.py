"""`ingest --tissue` leaves what `labels tissue` would, whatever was killed on the way."""
import csv
import json
import unittest

import harness

GREY = """
import sys, numpy, tifffile
tifffile.imwrite(sys.argv[1], numpy.full((600, 500), 200, numpy.uint8), tile=(256, 256), photometric="minisblack")
"""
MASK = """
import sys, numpy, tifffile
mask = numpy.zeros((1000, 1200), numpy.uint8); mask[100:200, 100:300] = 1
tifffile.imwrite(sys.argv[1], mask, tile=(256, 256))
"""
CLASSES = "classes: [{name: background, value: 0}, {name: tissue, value: 1}]\n"


class IngestTissue(harness.Case):
    def ingest(self, *sources, out, tissue=("--tissue", "clam"), expect=0):
        return self.json("ingest", *sources, "--out", out, "--keep-names", *tissue, expect=expect)

    def current(self, store):
        listed = json.loads((self.folder / store / "labels/zarr.json").read_text())
        return next(r for r in listed["attributes"]["ome"]["labels"] if r.startswith("tissue."))

    def test_a_set_as_the_command_makes_it_and_stores_as_without_it(self):
        slides = [self.slide(f"{n}.svs", "1200x1000", seed) for seed, n in enumerate("ab")]
        plain = self.ingest(*slides, out="plain", tissue=())
        made = self.ingest(*slides, out="stores")
        self.assertEqual([s["digest"] for s in made["stores"]], [s["digest"] for s in plain["stores"]])
        for row in self.json("labels", "tissue", "stores", "--profile", "clam")["imported"]:
            self.assertTrue(row["already_there"])
        # A store that was left without a set gets one: so does what a kill after its last rename leaves.
        again = self.ingest(*slides, out="plain")
        self.assertEqual([s["already_there"] for s in again["stores"]], [True, True])
        for name in "ab":
            self.assertEqual(self.current(f"plain/{name}.ome.zarr"), self.current(f"stores/{name}.ome.zarr"))
            self.assertEqual(self.command("verify", f"plain/{name}.ome.zarr").returncode, 0)

    def test_a_killed_ingest_is_finished_by_the_next(self):
        slide = self.slide("a.svs", "1200x1000")
        whole = self.ingest(slide, out="whole")
        killed = self.start("ingest", slide, "--out", "stores", "--keep-names", "--tissue", "clam")
        harness.wait_until(lambda: (self.folder / "stores/a.ome.zarr").exists(), "the store")
        for program in ("patchbay-worker", "patchbay-scheduler"):
            for pid in self.pids(killed, program):
                self.kill(pid)
        killed.kill()
        killed.wait()
        made = self.ingest(slide, out="stores")
        self.assertEqual(made["stores"][0]["digest"], whole["stores"][0]["digest"])
        self.assertEqual(self.current("stores/a.ome.zarr"), self.current("whole/a.ome.zarr"))
        self.assertEqual(list((self.folder / "stores/a.ome.zarr/labels").glob(".staging*")), [])

    @unittest.skipUnless(harness.oracles("numpy", "tifffile"), "needs tifffile")
    def test_a_mask_from_elsewhere_stays_and_a_slide_without_colours_fails_alone(self):
        slide = self.slide("a.svs", "1200x1000")
        for script, name in ((GREY, "grey.tif"), (MASK, "mask.tif")):
            harness.subprocess.run([harness.PYTHON, "-c", script, self.folder / name], check=True)
        (self.folder / "classes.yaml").write_text(CLASSES)
        self.ingest(slide, out="stores", tissue=())
        own = self.json("labels", "import", "stores/a.ome.zarr", "mask.tif", "--set", "tissue", "--classes", "classes.yaml")
        made = self.ingest(slide, "grey.tif", out="stores", expect=3)
        self.assertEqual(self.current("stores/a.ome.zarr"), own["imported"][0]["revision"])
        self.assertEqual([s["name"] for s in made["stores"]], ["a.ome.zarr", "grey.ome.zarr"])
        self.assertEqual([f["source"].split("/")[-1] for f in made["failed"]], ["grey.tif"])
        self.assertIn("no set of tissue", made["failed"][0]["reason"])
        self.assertIn("1 channel of uint8", made["failed"][0]["reason"])
        with open(self.folder / "stores/failed.csv", newline="") as listed:
            self.assertEqual(len(list(csv.DictReader(listed))), 1)
        self.assertFalse((self.folder / "stores/grey.ome.zarr/labels").exists())


if __name__ == "__main__":
    harness.main()
