"""Identifiers of patients are never passed on: identifiers planted in every attribute that is not needed are found in no store,
log, metric or message."""
import pathlib
import struct

import harness

WORD = b"PLANTED"
# Groups of the standard that hold more than pixels, with all of the attributes that confidentiality profiles name, and
# three of private creators.
GROUPS = (0x0008, 0x0009, 0x0010, 0x0011, 0x0012, 0x0018, 0x0019, 0x0020, 0x0032, 0x0038, 0x0040, 0x0042, 0x0044,
          0x0070, 0x0088, 0x0400, 0x3006, 0x300a, 0x300c, 0x300e, 0x4000, 0x4008, 0x4010)
RANGES = ((0x0010, 0x0600), (0x0900, 0x0a00), (0x1000, 0x1600), (0x2100, 0x2200), (0x9000, 0x9600), (0xa000, 0xa800))
# Read, and copied or hashed: what they hold is no identifier (or is tested by itself below).
READ = {(0x0008, 0x0008), (0x0008, 0x0005), (0x0008, 0x0016), (0x0008, 0x0018), (0x0008, 0x0060), (0x0018, 0x0050),
        (0x0018, 0x0060), (0x0018, 0x0088), (0x0018, 0x0090), (0x0018, 0x1100), (0x0018, 0x1120), (0x0018, 0x1151),
        (0x0018, 0x5100), (0x0020, 0x0032), (0x0020, 0x0037)}
# Text that identifies by itself, so that it may only be in the store through a keyed hash.
HASHED = {(0x0010, 0x0010), (0x0010, 0x0020), (0x0020, 0x000d), (0x0020, 0x000e), (0x0020, 0x0052)}
# On the allow-list as short plain texts: what scanners write there, not users.
ALLOWED = {(0x0008, 0x0070), (0x0008, 0x1090), (0x0018, 0x0015), (0x0018, 0x1210)}


def elements(data):
    """(tag, bytes) of the data set of an explicit little-endian file, and what comes before it."""
    at = 132
    while struct.unpack_from("<H", data, at)[0] == 2:
        at = after(data, at)
    head, found = data[:at], []
    while at < len(data):
        end = after(data, at)
        found.append((struct.unpack_from("<HH", data, at), data[at:end]))
        at = end
    return head, found


def after(data, at):
    if data[at + 4:at + 6] in (b"OB", b"OW", b"SQ", b"UN", b"UT"):
        return at + 12 + struct.unpack_from("<I", data, at + 8)[0]
    return at + 8 + struct.unpack_from("<H", data, at + 6)[0]


def text_element(tag, vr, value):
    value += b" " * (len(value) % 2)
    return struct.pack("<HH2sH", *tag, vr, len(value)) + value


def planted(tag):
    """The tag as a word that no other attribute has."""
    return WORD + b"%04X%04X" % tag


def plant(path, part, parts):
    """Adds a planted attribute for every tag of the groups that falls to this part, nested ones too."""
    head, kept = elements(path.read_bytes())
    there = dict(kept)
    for group in GROUPS:
        for low, high in RANGES:
            for element in range(low, high):
                tag = (group, element)
                if tag in READ or tag in ALLOWED or tag in HASHED or tag in there or element % parts != part:
                    continue
                there[tag] = text_element(tag, b"LO", planted(tag))
    there[(0x0010, 0x0010)] = text_element((0x0010, 0x0010), b"PN", planted((0x0010, 0x0010)))
    there[(0x0010, 0x0020)] = text_element((0x0010, 0x0020), b"LO", planted((0x0010, 0x0020)))
    item = text_element((0x0010, 0x1000), b"LO", WORD + b"NESTED")
    item = struct.pack("<HHI", 0xfffe, 0xe000, len(item)) + item
    for tag in ((0x0010, 0x1002), (0x0040, 0x0275)):
        there[tag] = struct.pack("<HH2sHI", *tag, b"SQ", 0, len(item)) + item
    path.write_bytes(head + b"".join(there[tag] for tag in sorted(there)))
    return len(there) - len(kept)


LESIONS = pathlib.Path(__file__).resolve().parents[2] / "configs/classes/lesions.yaml"


class Identifiers(harness.Case):
    def everything_below(self, *folders):
        for folder in folders:
            for path in pathlib.Path(folder).rglob("*"):
                if path.is_file():
                    yield path

    def assertClean(self, folders, texts, allowed=()):
        for path in self.everything_below(*folders):
            if path in allowed:
                continue
            self.assertNotIn(WORD, path.read_bytes(), path)
            self.assertNotIn(WORD, str(path.relative_to(self.folder)).encode(), path)
        for text in texts:
            self.assertNotIn(WORD.decode(), text)

    def series(self, name, fault="none"):
        made = self.command("synth", "ct", self.folder / name, "--size", "6x32x32", "--fault", fault)
        self.assertEqual(made.returncode, 0, made.stderr)
        files = sorted((self.folder / name).iterdir())
        self.assertGreater(sum(plant(path, i, len(files)) for i, path in enumerate(files)), 100_000)
        return self.folder / name

    def test_identifiers_reach_no_store_log_metric_or_message(self):
        good, bad = self.series("good"), self.series("bad", "tilt")
        outputs = []
        cluster = self.up(1)
        for words in (("ingest", good, "--out", self.folder / "stores"),
                      ("ingest", bad, "--out", self.folder / "refused"),
                      ("ingest", good, "--out", self.folder / "named", "--keep-names"),
                      ("inspect", good, "--json"), ("inspect", bad), ("status", "--json"), ("jobs", "--json"), ("logs",)):
            done = self.command(*words)
            outputs += [done.stdout, done.stderr]
            if words[0] == "ingest":
                self.assertEqual(done.returncode, 3 if words[1] == bad else 0, done.stderr)
        stores = [p for p in (self.folder / "stores").iterdir() if (p / "zarr.json").exists()]
        self.assertEqual(len(stores), 1)
        self.assertIn("good", [p.name[:4] for p in (self.folder / "named").iterdir()])
        self.down(cluster)
        outputs.append(pathlib.Path(cluster.log).read_text(encoding="utf-8"))
        self.assertClean([self.folder / name for name in ("stores", "refused", "named", "state", "home")], outputs)

    def test_identifiers_reach_no_table_label_or_picture(self):
        mask = self.folder / "mask.nii"
        made = self.command("synth", "ct", self.folder / "p", "--size", "16x48x48", "--lesions", mask)
        self.assertEqual(made.returncode, 0, made.stderr)
        files = sorted((self.folder / "p").iterdir())
        for i, path in enumerate(files):
            plant(path, i, len(files))
        data = bytearray(mask.read_bytes())
        for at, size in ((14, 18), (148, 80), (228, 24), (328, 16)):  # db_name, descrip, aux_file, intent_name
            data[at:at + size] = WORD.ljust(size, b"\0")[:size]
        mask.write_bytes(data)
        outputs = []

        def run(*words):
            done = self.command(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
            outputs.extend((done.stdout, done.stderr))

        run("ingest", self.folder / "p", "--out", self.folder / "stores")
        (store,) = (self.folder / "stores").glob("*.ome.zarr")
        run("labels", "import", store, mask, "--set", "lesions", "--classes", LESIONS)
        run("scan", self.folder / "p", "--hash", "--out", "table.csv")
        outputs.append((self.folder / "table.csv").read_text(encoding="utf-8"))
        run("inspect", store, "--json")
        run("preview", store, "--out", self.folder / "stores/picture.png")
        data[70:72] = b"\x7f\0"  # a type that there is not
        mask.write_bytes(data)
        refused = self.command("labels", "import", store, mask, "--set", "lesions", "--classes", LESIONS)
        self.assertNotEqual(refused.returncode, 0)
        self.assertClean([self.folder / "stores", self.home], [*outputs, refused.stdout, refused.stderr])

    def test_names_of_source_files_stand_in_no_file_of_the_scheduler(self):
        cluster = self.up(1)
        slide = self.slide(f"{WORD.decode()}.svs", size="900x700")
        done = self.command("ingest", slide, "--out", self.folder / "stores")
        self.assertEqual(done.returncode, 0, done.stderr)
        damaged = self.folder / f"{WORD.decode()}-2.svs"
        damaged.write_bytes(slide.read_bytes()[:5000])
        self.assertEqual(self.command("ingest", damaged, "--out", self.folder / "stores").returncode, 3)
        for dataset in (slide, self.folder / "stores"):
            self.json("stream", self.run_file(dataset), "--cluster", self.home / "operator.key")
        for when in ("while it runs", "after its end"):
            with self.subTest(when):
                self.assertTrue((self.folder / "state/scheduler/journal.db").exists())
                self.assertClean([self.folder / "state"], [])
            if when == "while it runs":
                self.down(cluster)

    def test_a_planted_word_would_be_found(self):
        (self.folder / "stores").mkdir()
        (self.folder / "stores" / "zarr.json").write_bytes(b"{" + planted((0x0010, 0x0010)))
        with self.assertRaises(AssertionError):
            self.assertClean([self.folder / "stores"], [])

    def test_files_that_are_cut_or_damaged_name_nobody(self):
        series = self.series("cut")
        files = sorted(series.iterdir())
        files[2].write_bytes(files[2].read_bytes()[:-700])
        done = self.command("ingest", series, "--out", self.folder / "stores")
        self.assertNotEqual(done.returncode, 0)
        self.assertClean([self.folder / "stores"], [done.stdout, done.stderr])


if __name__ == "__main__":
    harness.main()
