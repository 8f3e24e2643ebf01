"""DICOM whole-slide images: a series of instances is one slide, found, ingested and streamed with the same pixels."""
import csv
import pathlib
import shutil
import struct
import subprocess

import harness

PATIENT = "Doe^Jane^CANARY"
SLIDE = "1.2.840.10008.5.1.4.1.1.77.1.6"
TILE = 128
STEP_UM = 1.5  # from one focal plane to the next

# Arguments: a DICOM file of TILED_FULL, the number of a focal plane, a store: its pixels are that plane's as pydicom reads the frames.
COMPARE = """
import sys, numpy, pydicom, zarr
slide, plane = pydicom.dcmread(sys.argv[1]), int(sys.argv[2])
height, width, tile = slide.TotalPixelMatrixRows, slide.TotalPixelMatrixColumns, slide.Rows
rows, columns = -(-height // tile), -(-width // tile)
assert slide.TotalPixelMatrixFocalPlanes * rows * columns == slide.NumberOfFrames
frames = slide.pixel_array[plane * rows * columns:(plane + 1) * rows * columns]
whole = frames.reshape(rows, columns, tile, tile, 3).transpose(0, 2, 1, 3, 4).reshape(rows * tile, columns * tile, 3)
stored = zarr.open_group(sys.argv[3], mode="r")["0"][:]
assert numpy.array_equal(stored, whole[:height, :width].transpose(2, 0, 1))
"""

# Arguments: a level of a DICOM slide, a store: its pixels are those that wsidicom reads.
COMPARE_WITH_WSIDICOM = """
import sys, numpy, wsidicom, zarr
stored = zarr.open_group(sys.argv[2], mode="r")["0"][:].transpose(1, 2, 0)
with wsidicom.WsiDicom.open(sys.argv[1]) as slide:
    theirs = numpy.asarray(slide.read_region((0, 0), 0, stored.shape[1::-1]).convert("RGB"))
assert theirs.std() > 10 and numpy.array_equal(stored, theirs), numpy.abs(stored.astype(int) - theirs).max()
"""


def element(tag, kind, value):
    value = value.encode() if isinstance(value, str) else value
    value += (b"\0" if kind == b"UI" else b" ") * (len(value) % 2)
    head = struct.pack("<HH", tag >> 16, tag & 0xffff) + kind
    return head + (struct.pack("<HI", 0, len(value)) if kind in (b"SQ", b"OB") else struct.pack("<H", len(value))) + value


def item(value):
    return struct.pack("<HHI", 0xfffe, 0xe000, len(value)) + value


def pixel(level, y, x, plane=0):
    y, x = y << level, x << level
    return bytes(((x // 2 + y // 3 + c * 40 + x * y % 7 + plane * 9) % 200 + 30) & 255 for c in range(3))


def instance(level, number, series="1.2.3.4", image_type="VOLUME", sparse=False, planes=(0,)):
    """An uncompressed level of a slide of 500 x 420 pixels at 0.25 um; planes: numbers of the pixels' planes."""
    height, width = 500 >> level, 420 >> level
    rows, columns = -(-height // TILE), -(-width // TILE)
    frames = [b"".join(pixel(level, row * TILE + y, column * TILE + x, plane) for y in range(TILE) for x in range(TILE))
              for plane in planes for row in range(rows) for column in range(columns)]
    spacing = "\\".join([str(0.00025 * 2**level)] * 2)
    measures = element(0x00180088, b"DS", str(STEP_UM / 1000)) + element(0x00280030, b"DS", spacing)
    data = b"".join([
        element(0x00080008, b"CS", f"ORIGINAL\\PRIMARY\\{image_type}\\NONE"), element(0x00080016, b"UI", SLIDE),
        element(0x0008002a, b"DT", "20240506070809"), element(0x00080070, b"LO", "Maker"), element(0x00081010, b"SH", "CANARY-STATION"),
        element(0x00081090, b"LO", "M 9"),
        element(0x00100010, b"PN", PATIENT), element(0x00100020, b"LO", "CANARY-ID"), element(0x0020000e, b"UI", series),
        element(0x00200013, b"IS", str(number)), element(0x00209311, b"CS", "TILED_SPARSE" if sparse else "TILED_FULL"),
        element(0x00280002, b"US", struct.pack("<H", 3)), element(0x00280004, b"CS", "RGB"),
        element(0x00280006, b"US", struct.pack("<H", 0)), element(0x00280008, b"IS", str(len(frames))),
        element(0x00280010, b"US", struct.pack("<H", TILE)), element(0x00280011, b"US", struct.pack("<H", TILE)),
        element(0x00280100, b"US", struct.pack("<H", 8)), element(0x00280101, b"US", struct.pack("<H", 8)),
        element(0x00280102, b"US", struct.pack("<H", 7)), element(0x00280103, b"US", struct.pack("<H", 0)),
        element(0x00480006, b"UL", struct.pack("<I", width)), element(0x00480007, b"UL", struct.pack("<I", height)),
        element(0x00480303, b"UL", struct.pack("<I", len(planes))),
        element(0x52009229, b"SQ", item(element(0x00289110, b"SQ", item(measures))))])
    if sparse:
        places = ((1 + i // columns * TILE, 1 + i % columns * TILE) for i in range(rows * columns))
        data += element(0x52009230, b"SQ", b"".join(item(element(0x0048021a, b"SQ", item(
            element(0x0048021e, b"SL", struct.pack("<i", x)) + element(0x0048021f, b"SL", struct.pack("<i", y))))) for y, x in places))
    syntax = element(0x00020010, b"UI", "1.2.840.10008.1.2.1")
    return (bytes(128) + b"DICM" + element(0x00020000, b"UL", struct.pack("<I", len(syntax))) + syntax + data
            + element(0x7fe00010, b"OB", b"".join(frames)))


class DicomSlides(harness.Case):
    def series(self, folder):
        """Two levels and a label, in files whose names do not follow the levels."""
        folder = self.folder / folder
        folder.mkdir()
        for name, data in (("b.dcm", instance(0, 1)), ("a", instance(1, 2, sparse=True)),
                           ("label.dcm", instance(2, 3, image_type="LABEL"))):
            (folder / name).write_bytes(data)
        return folder

    def digest(self, dataset, level=0):
        run = self.run_file(dataset, patch=96)
        run.write_text(run.read_text().replace("level: 0", f"level: {level}"))
        return self.json("stream", run, "--digest")["digest"]

    def rows(self, name):
        with open(self.folder / name, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def test_a_series_is_one_slide_everywhere(self):
        folder = self.series("slides")
        seen = self.json("scan", folder, "--out", "slides.csv", "--hash")
        self.assertEqual((seen["rows"], seen["skipped_files"]), (1, {"dcm": 1}))
        (row,) = self.rows("slides.csv")
        self.assertEqual((pathlib.Path(row["path"]).name, row["verdict"], row["height"], row["width"], float(row["mpp"])),
                         ("a", "ok", "500", "420", 0.25))
        done = self.json("ingest", folder, "--out", "stores", "--chunk", 256, "--codec", "lz4")
        self.assertEqual((len(done["stores"]), done["failed"], done["skipped_files"]), (1, [], {"dcm": 1}))
        store = next((self.folder / "stores").glob("*.zarr"))
        shown = self.json("inspect", store)
        self.assertEqual((shown["levels"][0]["shape"], shown["mpp"]), ([3, 500, 420], [0.25, 0.25]))
        seen = self.command("inspect", folder / "b.dcm")
        self.assertIn("scanner       Maker M 9\n", seen.stdout)
        self.assertNotIn("2024", seen.stdout)
        seen = self.command("inspect", folder / "b.dcm", "--phi")
        self.assertIn("scanned       20240506070809\n", seen.stdout)
        self.assertNotIn("CANARY", seen.stdout + seen.stderr)
        for level in (0, 1):
            whole = self.digest(folder, level)
            self.assertEqual(whole, self.digest(folder / "b.dcm", level))
            self.assertEqual(whole, self.digest(folder / "a", level))
            if level == 0:  # the store averages its own level 1
                self.assertEqual(whole, self.digest(store, level))
        # Named twice it is one slide, and without its label the same.
        (folder / "label.dcm").unlink()
        again = self.json("ingest", folder / "b.dcm", folder, "--out", "stores", "--chunk", 256, "--codec", "lz4")
        self.assertEqual([one["already_there"] for one in again["stores"]], [True])
        self.assertEqual(self.json("scan", folder, "--out", "again.csv", "--hash")["rows"], 1)
        self.assertEqual(self.rows("again.csv")[0]["content_hash"], row["content_hash"])
        # Its files are its content, whatever they are called.
        renamed = shutil.copytree(folder, self.folder / "renamed")
        (renamed / "b.dcm").rename(renamed / "0.dcm")
        self.json("scan", renamed, "--out", "renamed.csv", "--hash")
        self.assertEqual(self.rows("renamed.csv")[0]["content_hash"], row["content_hash"])
        (renamed / "a").unlink()
        self.json("scan", renamed, "--out", "part.csv", "--hash")
        self.assertNotEqual(self.rows("part.csv")[0]["content_hash"], row["content_hash"])
        left = [path for path in self.folder.rglob("*") if path.is_file() and path.parent not in (folder, renamed)]
        self.assertGreater(len(left), 5)
        for path in left:
            self.assertNotIn(b"CANARY", path.read_bytes(), path)

    def test_the_tiles_of_a_real_slide_are_kept_and_stream_as_they_are(self):
        slide = harness.DATA / "wsi/cptac-brca-level.dcm"
        if not slide.exists():
            self.skipTest(f"{slide} is not here: set PATCHBAY_TEST_DATA")
        alone = self.folder / "real"
        alone.mkdir()
        shutil.copy(slide, alone)
        self.json("ingest", alone, "--out", "kept", "--codec", "keep")
        store = next((self.folder / "kept").glob("*.zarr"))
        self.assertEqual(self.command("verify", store).returncode, 0)
        self.assertEqual(self.digest(store), self.digest(alone))
        if harness.oracles("numpy", "wsidicom", "zarr"):
            self.json("ingest", alone, "--out", "pixels", "--codec", "lz4")
            store = next((self.folder / "pixels").glob("*.zarr"))
            subprocess.run([harness.PYTHON, "-c", COMPARE_WITH_WSIDICOM, slide, store], check=True)

    def test_a_column_of_the_table_chooses_a_focal_plane(self):
        for name, planes in (("stack", (0, 1)), ("upper", (1,))):
            (self.folder / name).mkdir()
            (self.folder / name / "a.dcm").write_bytes(instance(0, 1, planes=planes))
        (self.folder / "stack/b.dcm").write_bytes(instance(1, 2, planes=(0, 1)))
        slide = self.folder / "stack/a.dcm"
        said = self.command("inspect", slide)
        self.assertIn("focal planes at 0, 1.5 um: a table of slides chooses one by its column focal_plane", said.stderr)
        table, ingest = self.folder / "t.csv", ("ingest", "t.csv", "--out", "stores", "--chunk", 256, "--codec", "lz4", "--keep-names")
        for cell, why in (("x", "t.csv:2: column 'focal_plane': 'x': not the height of a focal plane in um"),
                          ("7", "no focal plane at 7 um; it has 0, 1.5 um")):
            table.write_text(f"path,focal_plane\nstack/a.dcm,{cell}\n")
            refused = self.command(*ingest)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(why, refused.stdout + refused.stderr)
        table.write_text("path,focal_plane,optical_path\nstack/a.dcm,1.5,DAPI\n")
        refused = self.command(*ingest)
        self.assertIn("column 'optical_path': no optical path 'DAPI'; it has one without a name", refused.stdout + refused.stderr)
        table.write_text("path,focal_plane\nstack/a.dcm,1.5\nstack/b.dcm,0\n")
        self.assertIn("another row chooses otherwise of this slide, which becomes one store", self.command(*ingest).stderr)
        table.write_text("path,focal_plane\nstack/a.dcm,1.5\n")
        self.json(*ingest)
        store = self.folder / "stores/a.ome.zarr"
        self.assertEqual(self.digest(store), self.digest(self.folder / "upper/a.dcm"))
        if harness.oracles("numpy", "pydicom", "zarr"):
            subprocess.run([harness.PYTHON, "-c", COMPARE, slide, "1", store], check=True)
        self.assertTrue(self.json(*ingest)["stores"][0]["already_there"])
        table.write_text("path,focal_plane\nstack/a.dcm,0\n")
        self.assertIn("with other settings (focal_plane was 1.5, now 0", self.command(*ingest).stderr)

    def test_a_stream_takes_the_focal_plane_that_the_table_chooses(self):
        for name, planes in (("stack", (0, 1)), ("lower", (0,)), ("upper", (1,))):
            (self.folder / name).mkdir()
            (self.folder / name / "a.dcm").write_bytes(instance(0, 1, planes=planes))
        table, run = self.folder / "t.csv", self.run_file("t.csv", patch=96)
        table.write_text("path\nstack/a.dcm\n")
        refused = self.command("stream", run, "--digest")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("stack/a.dcm: instance 1: frame 17 lies where another does: focal planes at 0, 1.5 um: a table of slides "
                      "chooses one by its column focal_plane", refused.stderr)
        plans = set()
        for cell, plane in (("0", "lower"), ("1.5", "upper")):
            table.write_text(f"path,focal_plane\nstack/a.dcm,{cell}\n")
            run = self.run_file("t.csv", patch=96)
            self.assertEqual(self.json("stream", run, "--digest")["digest"], self.digest(self.folder / plane / "a.dcm"))
            checked = self.json("config", "check", self.run_file("t.csv", patch=96))
            plans.add(checked["plan_digest"])
            (chosen,) = checked["skipped"]["parts_chosen"]
            self.assertEqual(chosen["reason"], f"focal plane at {cell} um")
        self.assertEqual(len(plans), 2)
        self.assertIn("stack/a.dcm: by the table focal plane at 1.5 um\n", self.command("stream", run).stderr)
        self.json("lock", run)
        self.json("stream", run, "--digest")
        table.write_text("path,focal_plane\nstack/a.dcm,0\n")
        self.assertIn("t.csv:2: column 'focal_plane': it is '0', '1.5' in the run's lock", self.command("stream", run).stderr)
        (self.folder / "run.lock").unlink()
        for cell, why in (("7", "column 'focal_plane': no focal plane at 7 um; it has 0, 1.5 um"),
                          ("top", "t.csv:2: column 'focal_plane': 'top': not the height of a focal plane in um")):
            table.write_text(f"path,focal_plane\nstack/a.dcm,{cell}\n")
            self.assertIn(why, self.command("stream", run).stderr)

    def test_instances_that_are_no_slide_are_refused_by_name(self):
        folder = self.series("slides")
        said = self.command("inspect", folder / "label.dcm")
        self.assertIn("a label, overview or thumbnail of a slide is never opened", said.stderr)
        (folder / "c.dcm").write_bytes(instance(0, 7))
        done = self.json("ingest", folder, "--out", "stores", expect=3)
        (failed,) = done["failed"]
        self.assertIn("instances 1 and 7 of the series have 500 x 420 pixels and 500 x 420 pixels: focal planes, optical paths or "
                      "copies: leave one in the folder", failed["reason"])
        self.assertNotIn("CANARY", said.stderr + failed["reason"])


if __name__ == "__main__":
    harness.main()
