"""Repairs by consent: a series that is refused names its rules, is taken under them, and its store and `inspect` tell what was done; no rule
acts where the series does not need it. Voxels are those of the slices that a rule keeps."""
import csv
import json
import shutil
import subprocess

import dicom_files
import harness

# Arguments: JSON of [[store, values of the slices, slope, offset]...]. Prints the largest difference.
LOOK = r"""
import json, sys
import numpy, zarr
worst = 0
for store, values, slope, offset in json.loads(sys.argv[1]):
    found = numpy.asarray(zarr.open_group(store, mode="r")["0"])
    assert found.shape[0] == len(values), (store, found.shape)
    worst = max(worst, float(abs(found.reshape(len(values), -1) - (numpy.array(values) * slope + offset)).max()))
print(worst)
"""

TUBE = {**dicom_files.rescale(1, -1000), 0x00180060: ("DS", 120)}
RULES = "frame-of-reference,kernel,copies,localizer,split,rescale,secondary-capture,monochrome1,burned-in"
FOUR, PHASES = (0, 1, 2, 3), {"slices": 8, "at": lambda k: k % 4}
EARLY, LATE = (0, 1, 2, 3), (4, 5, 6, 7)


def kernel(name):
    return {0x00181210: ("SH", name)}


def frame(uid):
    return {0x00200052: ("UI", uid)}


def of_file(elements, **more):
    """A series of which every file has these elements; None takes one away."""
    kept = {tag: value for tag, value in {**TUBE, **elements}.items() if value}
    return {"elements": kept, **more}


# name: the reason, its way through, the rules that act and what they say, the slices of each store, slope and offset of values
CASES = {
    "frames": ({"per_slice": lambda k: frame(f"1.2.{k // 2}")}, "2 of 4 slices differ in frame of reference", "frame-of-reference or split",
               ["frame-of-reference): 2 frames of reference are taken for one"], [FOUR]),
    "kernel": ({"per_slice": lambda k: {} if k == 2 else kernel("SOFT")}, "1 of 4 slices differs in reconstruction kernel", "kernel",
               ["kernel): 2 reconstruction kernels"], [FOUR]),
    "both": ({"per_slice": lambda k: {**frame(f"1.2.{k // 3}"), **kernel("SHARP" if k == 1 else "SOFT")}}, "1 in frame of reference",
             "kernel,frame-of-reference", ["kernel): 2", "frame-of-reference): 2"], [FOUR]),
    "copies": ({}, "8 slices at 4 places, 2 at each", "copies", ["copies): 4 slices left out: at the place and with the pixels of another"], [FOUR]),
    "scout": ({"per_slice": lambda k: {0x00080008: ("CS", "ORIGINAL\\PRIMARY\\LOCALIZER")} if k == 0 else {}}, "1 of 4 files: a localiser",
              "localizer", ["localizer): 1 image left out"], [(1, 2, 3)]),
    "acquisitions": ({"per_slice": lambda k: {0x00200012: ("IS", 10 - k // 4)}, **PHASES}, "8 slices at 4 places", "copies or split",
                     ["split): part 1 of 2, by AcquisitionNumber 9"], [LATE, EARLY]),
    "times": ({"per_slice": lambda k: {0x00080032: ("TM", f"0915{k // 4:02}")}, **PHASES}, "8 slices at 4 places", "copies or split",
              ["split): part 1 of 2, by AcquisitionTime\n"], [EARLY, LATE]),
    "echoes": ({"per_slice": lambda k: {0x00180081: ("DS", 9.5 + k // 4), 0x00200012: ("IS", k)}, **PHASES}, "8 slices at 4 places",
               "copies or split", ["split): part 1 of 2, by EchoTime 9.5"], [EARLY, LATE]),
    "kernels": ({"per_slice": lambda k: kernel("SOFT" if k < 4 else "HARD"), **PHASES}, "4 of 8 slices differ in reconstruction kernel",
                "kernel or split", ["split): part 1 of 2, by ConvolutionKernel\n"], [LATE, EARLY]),
    "two-frames": ({"per_slice": lambda k: frame(f"1.2.{k // 4}"), **PHASES}, "4 of 8 slices differ in frame of reference",
                   "frame-of-reference or split", ["split): part 1 of 2, by FrameOfReferenceUID\n"], [EARLY, LATE]),
    "in-a-file": ({"make": dicom_files.enhanced, "order": (6, 2, 0, 3, 1, 7, 5, 4), "at": lambda k: k % 4,
                   "per_frame": lambda k: {0x00209111: ("SQ", [{0x00209128: ("UL", bytes([1 + k // 4, 0, 0, 0]))}])}}, "8 slices at 4 places",
                  "copies or split", ["split): part 1 of 2, by TemporalPositionIndex 1"], [EARLY, LATE]),
    "us": (of_file({0x00281054: ("LO", "US")}), "a rescale type that is not HU", "rescale", ["rescale): values in arbitrary units"], [FOUR]),
    "plain": (of_file(dict.fromkeys((0x00281052, 0x00281053))), "no rescale slope", "rescale", ["rescale): "], [FOUR], 1, 0),
    "clipped": (of_file({0x00180060: None, **dicom_files.rescale(1, 0)}), "no tube voltage", "rescale", ["rescale): "], [FOUR], 1, 0),
    "voxels": (of_file({0x00180060: None, 0x00280103: ("US", 1), **dicom_files.rescale(1, 0)}), "no tube voltage", "rescale",
               ["rescale): the file says CT"], [FOUR], 1, 0),
    "capture": (of_file({0x00080016: ("UI", "1.2.840.10008.5.1.4.1.1.7")}), "a secondary capture", "secondary-capture", ["secondary-capture): "],
                [FOUR]),
    "inverted": (of_file({0x00280004: ("CS", "MONOCHROME1"), 0x00280101: ("US", 12), 0x00280102: ("US", 11)}), "MONOCHROME1", "monochrome1",
                 ["monochrome1): stored values inverted"], [FOUR], -1, 4095 - 1000),
    "burned": (of_file({0x00280301: ("CS", "YES")}), "burned-in annotation", "burned-in", ["burned-in): annotation may be burned in"], [FOUR]),
    # No rule settles these.
    "no-copy": ({}, "8 slices at 4 places", "copies", [], []),
    "unclear": (PHASES, "8 slices at 4 places", "copies", [], []),
    "sound": ({"per_slice": lambda k: kernel("SOFT")}, "", "", [], [FOUR]),
}


def make_series(folder, names):
    """A folder for each of these series; that of CASES[n] has the UID 1.2.3.n."""
    for number, (name, (words, *_)) in enumerate(CASES.items()):
        if name in names:
            words = dict(words)
            words.pop("make", dicom_files.single)(folder / name, "CT", number, **{"elements": TUBE, **words})
    for name in {"copies", "no-copy"} & set(names):
        (folder / name / "again").mkdir()
        for file in list((folder / name).glob("*.dcm")):
            data = bytearray(file.read_bytes())
            data[-2] ^= name == "no-copy" and file.name == "IM2.dcm"
            (folder / name / "again" / file.name).write_bytes(data)


class Repairs(harness.Case):
    site = {}

    def environment(self, **more):
        return super().environment(**self.site, **more)

    def series(self, *names):
        make_series(self.folder / "all", names)
        return self.folder / "all"

    def ingest(self, source, out, *words, expect=0):
        done = self.command("ingest", source, "--out", out, *words)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stderr

    def rows(self, table):
        """{name of the case: rows}, in the order of their parts."""
        rows = {}
        with open(self.folder / table, newline="", encoding="utf-8") as file:
            for row in sorted(csv.DictReader(file), key=lambda row: row["source"]):
                name = list(CASES)[int(row["source"].split("#")[1].split(".")[3])]
                rows.setdefault(name, []).append(row)
        return rows

    def own(self, store):
        return json.loads((store / "zarr.json").read_text())["attributes"]["patchbay"]

    def test_refusals_name_the_rules_that_repair_them(self):
        source = self.series(*CASES)
        self.ingest(source, "refused", expect=3)
        verdicts = self.rows("refused/verdicts.csv")
        for name, (_, reason, way, *_) in CASES.items():
            said = verdicts[name][0]["reason"]
            if name == "voxels":  # only they tell, and the message is the reading's
                self.assertIn("(--repair rescale repairs it)", said)
                continue
            self.assertIn(reason, said, name)
            self.assertEqual(f"(--repair {way} repairs it)" in said, bool(way), (name, said))
        self.assertEqual(list(self.rows("refused/manifest.csv")), ["sound"])
        (self.folder / "site.yaml").write_text("burned_in: true\n")
        self.site = {"PATCHBAY_SITE": str(self.folder / "site.yaml")}
        said = self.ingest(source, "stores", "--repair", RULES, expect=3)
        made, wanted = self.rows("stores/manifest.csv"), []
        for name, (_, _, way, notes, stores, *line) in CASES.items():
            rows = made.get(name, [])
            self.assertEqual(len(rows), len(stores), (name, said))
            for row, slices in zip(rows, stores):
                store = self.folder / "stores" / row["store"]
                steps = [step["rule"] for step in self.own(store)["transform_log"] if step["step"] == "repair"]
                self.assertEqual(steps, [note.split(")")[0] for note in notes], name)
                wanted.append([str(store), [dicom_files.stored(k) for k in slices], *(line or (1, -1000))])
            if name in ("both", "times", "us"):
                shown = self.command("inspect", self.folder / "stores" / rows[0]["store"]).stdout
                for note in notes:
                    self.assertIn(f"warning       repaired ({note}", shown)
                self.assertIn(f"modality      CT{':arbitrary' if name == 'us' else ''}\n", shown)
            for note in notes:
                self.assertIn(f"repaired ({note}", said)
        self.assertEqual([step.get("part") for step in self.own(store_of(self, made, "times", 1))["transform_log"] if step["step"] == "repair"], [2])
        self.assertEqual(len(self.own(store_of(self, made, "frames"))["identity"]["frame_of_reference"]), 2)
        for name in ("us", "plain", "clipped", "voxels", "inverted"):
            self.assertEqual(self.own(store_of(self, made, name))["acquisition"]["unit"], "arbitrary", name)
        self.look(wanted)

    def look(self, wanted):
        if not harness.oracles("numpy", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with NumPy and zarr")
        done = subprocess.run([harness.PYTHON, "-c", LOOK, json.dumps(wanted)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(float(done.stdout), 0)

    def test_rules_stand_in_the_table_of_a_scan_and_are_asked_for_again(self):
        source = self.series("kernel", "sound", "us", "voxels")
        self.json("scan", source, "--out", "a.csv")
        with open(self.folder / "a.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({row["repair"] for row in rows}, {""})
        for row in rows:
            if row["verdict"] == "mixed":
                self.assertIn("(--repair kernel repairs it)", row["reason"])
                row["repair"] = "kernel"
            if row["verdict"] == "unsure":
                row["repair"] = "rescale"
            if row["verdict"] == "not-ct":
                row.update(repair="rescale", modality="CT")
        with open(self.folder / "b.csv", "w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, rows[0])
            table.writeheader()
            table.writerows(rows)
        self.ingest("b.csv", "stores")
        us = next(store for store in (self.folder / "stores").glob("*.zarr") if self.own(store).get("modality"))
        self.assertIn("modality      CT (table); the file states CT:arbitrary\n", self.command("inspect", us).stdout)
        shutil.rmtree(source / "us")
        self.assertIn("exists, and was made with --repair rescale", self.ingest(source, "stores", expect=3))
        self.ingest(source, "stores", "--repair", "kernel,copies,rescale")
        self.assertIn("'kernels' is none of the rules frame-of-reference, kernel, ", self.ingest(source, "x", "--repair", "kernels", expect=2))
        (self.folder / "c.csv").write_text("path,repair\nall/sound,copy\n")
        self.assertIn("c.csv:2: column 'repair': 'copy' is none of", self.ingest("c.csv", "x", expect=1))

    def test_parts_of_a_file_have_names_and_burned_in_text_asks_for_the_operator(self):
        source = self.series("in-a-file", "burned")
        self.ingest(source / "in-a-file/frames.dcm", "named", "--repair", "split", "--keep-names")
        self.assertEqual(len(list((self.folder / "named").glob("frames*.zarr"))), 2)
        self.assertIn("no operator allows it: `burned_in: true` in a site.yaml", self.ingest(source, "x", "--repair", "burned-in", expect=2))
        self.site = {"PATCHBAY_SITE": str(self.folder / "site.yaml")}
        (self.folder / "site.yaml").write_text("burned_in: false\n")
        self.assertIn(f"`burned_in: true` in {self.folder}/site.yaml", self.ingest(source, "x", "--repair", "burned-in", expect=2))
        # The nodes' operator decides, whatever the site of the command says.
        node = self.up(1)
        (self.folder / "site.yaml").write_text("burned_in: true\n")
        self.assertIn("the site of the cluster's nodes does not allow it", self.ingest(source / "burned", "x", "--repair", "burned-in", expect=1))
        self.down(node)
        node = self.up(1)
        self.ingest(source / "burned", "allowed", "--repair", "burned-in")
        self.down(node)


def store_of(case, made, name, part=0):
    return case.folder / "stores" / made[name][part]["store"]


if __name__ == "__main__":
    harness.main()
