"""Structures of RTSTRUCT onto a volume's slices, and folders of one mask an organ: voxels are those of another rasteriser, voxel centre by
voxel centre and even-odd; contours that belong to no slice are refused by their structure."""
import gzip
import json
import math
import pathlib
import random
import struct
import subprocess

import dicom_files
import harness

ROWS, COLUMNS, SLICES = 40, 36, 4
TABLE = """
classes:
  - {name: background, value: 0}
  - {name: organ, value: 1}
  - {name: tumour, value: 2, aliases: [GTV 1]}
skip: [markers, empty]
exhaustive: true
background: background
"""

# Arguments: label image, JSON of its slices. Prints "ok".
LOOK = r"""
import json, sys
import numpy, zarr
found = numpy.asarray(zarr.open_group(sys.argv[1], mode="r")["0"])
wanted = numpy.array(json.loads(sys.argv[2]), numpy.uint8)
print("ok" if numpy.array_equal(found, wanted) else f"{found.shape} {wanted.shape} {(found != wanted).sum()} differ")
"""


def setUpModule():
    dicom_files.PLANE.update(rows=ROWS, columns=COLUMNS)


def place(x, y, z):
    """Millimetres of a voxel, between voxels too, of a series of dicom_files."""
    return -10 + 2 * x, -12 + 2 * y, 3 * z


def star(x, y, radius, points, seed):
    draw = random.Random(seed)
    return [(x + radius * draw.uniform(0.3, 1) * math.cos(2 * math.pi * i / points), y + radius * draw.uniform(0.3, 1) * math.sin(2 * math.pi * i / points))
            for i in range(points)]


def is_in(polygons, x, y):
    """Whether an odd number of rays' crossings lie to the right, over all polygons."""
    odd = False
    for polygon in polygons:
        for (ax, ay), (bx, by) in zip(polygon, polygon[1:] + polygon[:1]):
            if (ay > y) != (by > y) and x < (bx - ax) * (y - ay) / (by - ay) + ax:
                odd = not odd
    return odd


def drawn(structures):
    """Slices of class values of [(value, {slice: polygons})], later ones on top."""
    slices = [[[0] * COLUMNS for _ in range(ROWS)] for _ in range(SLICES)]
    for value, by_slice in structures:
        for z, polygons in by_slice.items():
            for y in range(ROWS):
                for x in range(COLUMNS):
                    if is_in(polygons, x, y):
                        slices[z][y][x] = value
    return slices


def contour(polygon, z, kind="CLOSED_PLANAR"):
    """With millimetres rounded to three decimals, as planning systems write them."""
    numbers = [f"{mm:.3f}" for x, y in polygon for mm in place(x, y, z)]
    return {0x30060042: ("CS", kind), 0x30060046: ("IS", len(polygon)), 0x30060050: ("DS", "\\".join(numbers))}


def structure_set(path, structures, frame="1.2.9", implicit=False):
    """structures: {name: contours}"""
    listed = [{0x30060022: ("IS", i + 3), 0x30060024: ("UI", frame), 0x30060026: ("LO", name)} for i, name in enumerate(structures)]
    contours = [{0x30060040: ("SQ", items), 0x30060084: ("IS", i + 3)} for i, items in enumerate(structures.values()) if items]
    dicom_files.write(path, {0x00080016: ("UI", "1.2.840.10008.5.1.4.1.1.481.3"), 0x00080060: ("CS", "RTSTRUCT"), 0x00100020: ("LO", "4711"),
                             0x0020000E: ("UI", "1.2.77"), 0x30060020: ("SQ", listed), 0x30060039: ("SQ", contours)}, implicit)


ORGAN = {z: [star(15, 20, 14, 23, z), star(15, 20, 3, 7, z + 9), star(30, 33, 4, 9, z + 5)] for z in (0, 1, 3)}
TUMOUR = {1: [star(20, 18, 5, 12, 70)], 2: [star(8, 9, 6, 30, 71), star(8, 9, 2, 6, 72)]}


def closed(by_slice, kind="CLOSED_PLANAR"):
    return [contour(polygon, z, kind) for z, polygons in by_slice.items() for polygon in polygons]


def plain_structures():
    """Without what plastimatch passes over: CLOSEDPLANAR_XOR, slices that are left out."""
    return {"GTV 1": closed(TUMOUR), "organ": closed({min(z, 2): polygons for z, polygons in ORGAN.items()})}


def structures():
    return {"GTV 1": closed(TUMOUR, "CLOSEDPLANAR_XOR"), "organ": closed(ORGAN),
            "markers": [contour([(3, 3)], 1, "POINT"), contour([(4, 4)], 2, "POINT"), contour([(1, 1), (9, 2), (4, 4)], 1, "OPEN_PLANAR")],
            "empty": []}


def make_series(folder):
    dicom_files.single(folder, "CT", 1, elements={**dicom_files.rescale(1, -1000), 0x00180060: ("DS", 120)})


class Structures(harness.Case):
    def setUp(self):
        super().setUp()
        make_series(self.folder / "series")
        self.classes = self.folder / "classes.yaml"
        self.classes.write_text(TABLE, encoding="utf-8")

    def store(self, *words, out="stores"):
        self.json("ingest", self.folder / "series", "--out", out, *words)
        return next((self.folder / out).glob("*.zarr"))

    def imported(self, store, file, *words):
        done = self.command("labels", "import", store, file, "--set", "parts", "--classes", self.classes, "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        (row,) = json.loads(done.stdout)["imported"]
        return row, done.stderr

    def refused(self, store, file, *texts):
        done = self.command("labels", "import", store, file, "--set", "bad", "--classes", self.classes)
        self.assertEqual(done.returncode, 1, done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)

    def look(self, store, row, slices):
        if not harness.oracles("numpy", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with NumPy and zarr")
        done = subprocess.run([harness.PYTHON, "-c", LOOK, str(store / "labels" / row["revision"]), json.dumps(slices)],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout, done.returncode), ("ok\n", 0), done.stderr)

    def test_a_voxel_is_in_where_its_centre_is_by_the_even_odd_rule(self):
        store, slices = self.store(), drawn([(1, ORGAN), (2, TUMOUR)])
        for implicit in (False, True):
            structure_set(self.folder / "rs.dcm", structures(), implicit=implicit)
            row, said = self.imported(store, self.folder / "rs.dcm")
            self.look(store, row, slices)
            self.assertEqual((row["format"], row["grid"], row["frame_of_reference"]), ("rtstruct", "same", "matches"))
            self.assertEqual((row["left_out"], row["skipped"]), ({"OPEN_PLANAR": 1, "POINT": 2}, ["markers", "empty"]))
            self.assertIn("2 contours of type POINT left out: they enclose nothing\n", said)
            both = sum(is_in(ORGAN[1], x, y) and is_in(TUMOUR[1], x, y) for y in range(ROWS) for x in range(COLUMNS))
            self.assertEqual(row["overlapping_voxels"], both)
            self.assertGreater(both, 20)
        turned = self.store("--orientation", "source", "--spacing", "1.5,1,1", out="finer")
        row, _ = self.imported(turned, self.folder / "rs.dcm")
        self.assertEqual(row["grid"], "resampled")

    def test_structures_lie_within_a_voxel_of_plastimatchs(self):
        """Its masks were made by plastimatch_readings.py, with the version that plastimatch_readings.json has."""
        readings = json.loads(pathlib.Path(__file__).with_name("plastimatch_readings.json").read_text(encoding="utf-8"))["structures"]
        store = self.store()
        structure_set(self.folder / "rs.dcm", plain_structures())
        kept = {"GTV 1": "{name: tumour, value: 1, aliases: [GTV 1]}", "organ": "{name: organ, value: 1}"}
        for name, rows in readings.items():
            theirs = {(z, y, x) for z, of_slice in enumerate(rows) for y, row in enumerate(of_slice.split())
                      for x, bit in enumerate(f"{int(row, 16):0{COLUMNS}b}") if bit == "1"}
            others = ", ".join(other for other in readings if other != name)
            self.classes.write_text(f"classes: [{{name: background, value: 0}}, {kept[name]}]\nskip: [{others}]\n"
                                    "exhaustive: true\nbackground: background\n", encoding="utf-8")
            self.imported(store, self.folder / "rs.dcm")
            self.json("labels", "export", store, "--set", "parts", "--out", "mask.nii", "--force")
            voxels = (self.folder / "mask.nii").read_bytes()[352:]
            ours = {(i // (ROWS * COLUMNS), i // COLUMNS % ROWS, i % COLUMNS) for i, value in enumerate(voxels) if value}
            self.assertGreater(len(ours & theirs), 50)
            for one, other in ((ours - theirs, theirs), (theirs - ours, ours)):
                for z, y, x in one:
                    self.assertTrue(any((z, y + dy, x + dx) in other for dy in (-1, 0, 1) for dx in (-1, 0, 1)), (name, z, y, x))

    def test_contours_that_belong_to_no_slice_are_refused_by_their_structure(self):
        store, file = self.store(), self.folder / "rs.dcm"
        square = [(4.2, 4.2), (9.1, 4.2), (9.1, 9.3), (4.2, 9.3)]
        ramp = contour(square, 1)
        ramp[0x30060050] = ("DS", "\\".join(f"{mm:.3f}" for i, (x, y) in enumerate(square) for mm in place(x, y, 1 + i / 4)))
        short = contour(square, 1)
        short[0x30060046] = ("IS", 5)
        for item, *texts in ((contour(square, 1.5), "structure 'organ'", "lies", "between its slices"), (ramp, "structure 'organ'", "or across them"),
                             (short, "structure 'organ'", "not 15 numbers"),
                             (contour([(x + 30, y) for x, y in square], 1), "'organ' loses", "--clip")):
            structure_set(file, {"organ": [item]})
            self.refused(store, file, *texts)
        structure_set(file, {"organ": [contour(square, 1)]}, frame="1.2.8")
        self.refused(store, file, "another frame of reference")
        structure_set(file, {"organ": [contour(square, 1.04)]})
        self.assertEqual(self.imported(store, file)[0]["classes"][1]["voxels"], 25)

    def test_a_folder_of_masks_is_one_set(self):
        store, folder = self.store("--orientation", "source"), self.folder / "organs"
        folder.mkdir()
        slices = {"organ": drawn([(1, ORGAN)]), "GTV 1": drawn([(1, TUMOUR)])}
        for name, of in slices.items():
            # Millimetres of NIfTI run to the right and to anterior.
            harness.nifti(folder / f"{name}.nii", (SLICES, ROWS, COLUMNS), (3, 2, 2), lambda z, y, x: of[z][y][x], "B")
            data = bytearray((folder / f"{name}.nii").read_bytes())
            for row, offset in enumerate((10, 12, 0)):
                data[280 + 16 * row + 12:280 + 16 * row + 16] = struct.pack("<f", offset)
            (folder / f"{name}.nii").unlink()
            (folder / f"{name}.nii.gz").write_bytes(gzip.compress(bytes(data)))
        (folder / "statistics.json").write_text("{}")
        row, _ = self.imported(store, folder)
        self.assertEqual((row["format"], row["grid"]), ("folder", "same"))
        self.assertGreater(row["overlapping_voxels"], 20)
        self.look(store, row, drawn([(1, ORGAN), (2, TUMOUR)]))
        harness.nifti(folder / "organ.nii", (SLICES, ROWS, COLUMNS), (3, 2, 2), lambda z, y, x: 1, "B")
        self.refused(store, folder, "two files of the name 'organ'")
        (folder / "organ.nii.gz").unlink()
        self.refused(store, folder, "'organ': on another grid than 'GTV 1'")
        harness.nifti(folder / "organ.nii", (SLICES, ROWS, COLUMNS), (3, 2, 2), lambda z, y, x: 7, "B")
        self.refused(store, folder, "'organ': values other than 0 and 1")


if __name__ == "__main__":
    harness.main()
