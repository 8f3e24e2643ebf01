"""Files of a folder that a command does not read: it says how many of which kind, once, and goes on."""
import csv
import struct

import harness

COUNTS = {"jpg": 2, "other": 1, "txt": 1}
SAID = "skipped: 2 .jpg, 1 other, 1 .txt"


SLIDE, REPORT, SEGMENTATION = "1.2.840.10008.5.1.4.1.1.77.1.6", "1.2.840.10008.5.1.4.1.1.88.11", "1.2.840.10008.5.1.4.1.1.66.4"
STRUCTURES, PRESENTATION = "1.2.840.10008.5.1.4.1.1.481.3", "1.2.840.10008.5.1.4.1.1.11.1"


def dicom(sop_class, series, has_pixels):
    """An explicit little-endian file of 4 x 4 grey pixels, or none."""
    def element(group, number, vr, value):
        if isinstance(value, str):
            value = value.encode() + b"\0" * (len(value) % 2)
        return struct.pack("<HH", group, number) + vr + struct.pack("<H", len(value)) + value
    syntax = element(2, 0x10, b"UI", "1.2.840.10008.1.2.1")
    text = b"\0" * 128 + b"DICM" + element(2, 0, b"UL", struct.pack("<I", len(syntax))) + syntax
    text += element(8, 8, b"CS", "ORIGINAL\\PRIMARY\\VOLUME\\NONE ") + element(8, 0x16, b"UI", sop_class) + element(8, 0x60, b"CS", "SM") + element(0x20, 0x0e, b"UI", series)
    for number, value in ((2, 1), (0x10, 4), (0x11, 4), (0x100, 8)) if has_pixels else ():
        text += element(0x28, number, b"US", struct.pack("<H", value))
    return text + (struct.pack("<HH2sHI", 0x7fe0, 0x10, b"OB", 0, 16) + bytes(16) if has_pixels else b"")


class SkippedFiles(harness.Case):
    def setUp(self):
        super().setUp()
        self.slides = self.folder / "slides"
        (self.slides / "below").mkdir(parents=True)
        self.slide("slides/a.svs", size="900x700")
        for name in ("b.JPG", "below/c.jpg", "below/notes.of_john_doe", "d.txt", ".hidden.txt"):
            (self.slides / name).write_bytes(b"no slide")
        self.run_config = self.run_file(self.slides)

    def expect_said_once(self, *words):
        result = self.command(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        said = (result.stdout + result.stderr).splitlines()
        self.assertEqual(said.count(SAID), 1, said)
        self.assertEqual(sum("skipped" in line for line in said), 1, said)

    def test_commands_on_a_run_say_it(self):
        for words in (["config", "check", self.run_config], ["stream", self.run_config, "--batches", 1],
                      ["preview", self.run_config, "--out", "run.png"], ["lock", self.run_config]):
            with self.subTest(words=words):
                self.expect_said_once(*words)

    def test_commands_on_folders_say_it(self):
        for words in (["ingest", self.slides, "--out", "stores"], ["spectra", self.slides, "--out", "spectra"],
                      ["scan", self.slides, "--out", "table.csv"], ["preview", self.slides, "--out", "slides.png"]):
            with self.subTest(words=words):
                self.expect_said_once(*words)

    def test_programs_are_given_the_counts(self):
        for words in (["config", "check", self.run_config], ["stream", self.run_config, "--batches", 1],
                      ["preview", self.run_config, "--out", "run.png"], ["lock", self.run_config, "--update"],
                      ["ingest", self.slides, "--out", "stores"], ["spectra", self.slides, "--out", "spectra"],
                      ["scan", self.slides, "--out", "table.csv"], ["preview", self.slides, "--out", "slides.png"]):
            with self.subTest(words=words):
                self.assertEqual(self.json(*words)["skipped_files"], COUNTS)

    def test_commands_on_folders_of_stores_say_it_but_not_of_the_tables_of_ingest(self):
        stores = self.store([self.slides / "a.svs"])
        self.assertTrue((stores / "manifest.csv").exists())
        run = self.run_file(stores, name="stores.yaml")
        self.assertNotIn("skipped", self.command("config", "check", run).stdout)
        self.assertNotIn("skipped", self.command("verify", stores).stdout)
        for name in ("b.jpg", "c.jpg", "d.unknown", "e.txt"):
            (stores / name).write_bytes(b"no slide")
        for words in (["config", "check", run], ["verify", stores], ["labels", "tissue", stores],
                      ["labels", "prune", stores, "--no-lock"]):
            with self.subTest(words=words):
                self.expect_said_once(*words)
                words = [*words, "--set", "other"] if words[:2] == ["labels", "tissue"] else words
                self.assertEqual(self.json(*words)["skipped_files"], COUNTS)

    def test_inspect_of_a_folder_of_volumes_says_it(self):
        made = self.command("synth", "ct", self.folder / "series", "--size", "12x32x32")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertNotIn("skipped", self.command("inspect", self.folder / "series").stdout)
        for name in ("b.jpg", "c.jpg", "d.unknown", "e.txt"):
            (self.folder / "series" / name).write_bytes(b"no slice")
        self.expect_said_once("inspect", self.folder / "series")
        self.assertEqual(self.json("inspect", self.folder / "series")["skipped_files"], COUNTS)

    def table(self, name):
        with open(self.folder / name, newline="", encoding="utf-8") as file:
            return {row["path"].rsplit("/", 1)[1]: row for row in csv.DictReader(file)}

    def test_images_that_cannot_be_read_fail_and_other_files_do_not(self):
        for name, sop_class, series, has_pixels in (
                ("wsi-0", SLIDE, "1.2.3", True), ("wsi-1.dcm", SLIDE, "1.2.3", True), ("sr.dcm", REPORT, "1.2.4", False),
                ("seg.dcm", SEGMENTATION, "1.2.5", True), ("rt.dcm", STRUCTURES, "1.2.6", False), ("pr.dcm", PRESENTATION, "1.2.7", False)):
            (self.slides / name).write_bytes(dicom(sop_class, series, has_pixels))
        said = {"jpg": 2, "other": 1, "txt": 1, "dcm": 4}
        reason = "instance ?: TotalPixelMatrixRows (0048,0007) and Columns (0048,0006): 0 x 0, not 1 to 67108864"
        seen = self.json("scan", self.slides, "--out", "slides.csv", expect=3)
        self.assertEqual((seen["rows"], seen["unreadable"], seen["skipped_files"]), (2, 1, said))
        rows = self.table("slides.csv")
        self.assertEqual({name: row["verdict"] for name, row in rows.items()},
                         {"a.svs": "ok", "wsi-0": f"open slide: {self.slides / 'wsi-0'}: {reason}"})
        done = self.json("ingest", self.slides, "--out", "stores", expect=3)
        self.assertEqual([len(done["stores"]), done["skipped_files"]], [1, said])
        (failed,) = done["failed"]
        self.assertTrue(failed["source"].endswith("/wsi-0"))
        self.assertIn(reason, failed["reason"])
        self.assertIn("wsi-0", (self.folder / "stores/failed.csv").read_text())
        # Slides of formats that are not read, and a MetaImage without voxels.
        for name in ("wsi-0", "wsi-1.dcm"):
            (self.slides / name).unlink()
        self.assertEqual(self.json("scan", self.slides, "--out", "good.csv")["rows"], 1)
        for name in ("b.czi", "below/c.isyntax", "ct.mhd"):
            (self.slides / name).write_bytes(b"ObjectType = Image\nNDims = 3\n")
        self.assertEqual(self.json("scan", self.slides, "--out", "formats.csv", expect=3)["unreadable"], 2)
        done = self.json("ingest", self.slides, "--out", "stores", expect=3)
        self.assertEqual(sorted(row["source"].rsplit("/", 1)[1] for row in done["failed"]), ["b.czi", "c.isyntax", "ct.mhd"])

    def test_scan_calls_no_series_uniform_that_ingest_refuses_by_its_header(self):
        root = self.folder / "series"
        voltage = b"\x18\x00\x60\x00DS\x04\x00120 "
        intercept = b"\x28\x00\x52\x10DS\x06\x00-1024 "
        changes = {"plain": [], "inverse": [(b"MONOCHROME2 ", b"MONOCHROME1 ")],
                   "colour": [(b"MONOCHROME2 ", b"RGB         "), (b"\x28\x00\x02\x00US\x02\x00\x01", b"\x28\x00\x02\x00US\x02\x00\x03")],
                   "unsure": [(voltage, voltage.replace(b"\x60", b"\x61"))],
                   "positive": [(voltage, voltage.replace(b"\x60", b"\x61")), (intercept, intercept.replace(b"-1024 ", b"-100  "))]}
        for number, (name, pairs) in enumerate(changes.items()):
            made = self.command("synth", "ct", root / name, "--size", "8x24x24", "--seed", number)
            self.assertEqual(made.returncode, 0, made.stderr)
            for path in (root / name).iterdir():
                data = path.read_bytes()
                for before, after in pairs:
                    self.assertEqual(data.count(before), 1, name)
                    data = data.replace(before, after)
                path.write_bytes(data)
        self.json("scan", root, "--out", "series.csv")
        with open(self.folder / "series.csv", newline="", encoding="utf-8") as file:
            rows = {row["path"].split("#")[0].rsplit("/", 1)[1]: row for row in csv.DictReader(file)}
        self.assertEqual({name: row["verdict"] for name, row in rows.items()},
                         {"plain": "uniform", "inverse": "not-a-volume", "colour": "not-a-volume", "unsure": "unsure", "positive": "not-ct"})
        self.assertIn("MONOCHROME1", rows["inverse"]["reason"])
        self.assertIn("3 samples a pixel, RGB", rows["colour"]["reason"])
        self.assertIn("-200 or less", rows["unsure"]["reason"])
        done = self.json("ingest", root, "--out", "volumes", expect=3)
        self.assertEqual((len(done["stores"]), len(done["failed"])), (2, 3))
        with open(self.folder / "volumes/verdicts.csv", newline="", encoding="utf-8") as file:
            told = {row["source"].rsplit("#", 1)[1][-1]: row["verdict"] for row in csv.DictReader(file)}
        self.assertEqual(sorted(told.values()), ["not-a-volume", "not-a-volume", "not-ct", "uniform", "uniform"])

    def test_a_folder_without_images_says_what_is_in_it(self):
        (self.slides / "a.svs").unlink()
        for words in (["config", "check", self.run_config], ["spectra", self.slides, "--out", "spectra"]):
            result = self.command(*words)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("neither a store nor a slide in this folder (skipped: 2 .jpg, 1 other, 1 .txt)", result.stderr)


if __name__ == "__main__":
    harness.main()
