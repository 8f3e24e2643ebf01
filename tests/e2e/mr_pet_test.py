"""MR and PET from DICOM, single frames and enhanced files: voxels are those of formulas that are written down here again, PET in
SUV by body weight; what SUV cannot be computed from is refused by its tag."""
import csv
import datetime
import json
import subprocess

import dicom_files
import harness

# Arguments: JSON of {store: [stored values of the slices with their slope and offset]}. Prints the largest relative difference.
LOOK = r"""
import json, sys
import numpy, zarr
worst = 0
for store, (values, lines) in json.loads(sys.argv[1]).items():
    found = numpy.asarray(zarr.open_group(store, mode="r")["0"]).reshape(len(values), -1)
    for slice_of, stored, (slope, offset) in zip(found, values, lines):
        want = numpy.array(stored) * slope + offset
        worst = max(worst, float((abs(slice_of - want) / numpy.maximum(abs(want), 1e-3)).max()))
print(worst)
"""

PHILIPS_MR = {0x20050010: ("LO", "Philips MR Imaging DD 001")}
DOSE, HALF_LIFE, WEIGHT = 350e6, 6586.2, 72.5


def pet(units="BQML", decay="START", injected="081500", series="091530.25", acquired="091531", **changes):
    """The elements of a PET; changes: None leaves one out, else its text."""
    dose = {0x00181072: ("TM", injected), 0x00181074: ("DS", DOSE), 0x00181075: ("DS", HALF_LIFE)}
    elements = {0x00080021: ("DA", "20240301"), 0x00080022: ("DA", "20240301"), 0x00080031: ("TM", series), 0x00080032: ("TM", acquired),
                0x00101030: ("DS", WEIGHT), 0x00280051: ("CS", "DECY\\ATTN\\SCAT"), 0x00541001: ("CS", units), 0x00541102: ("CS", decay)}
    for tag, text in changes.items():
        number = int(tag.removeprefix("t"), 16)
        of = dose if number in (*dose, 0x00181078) else elements
        if text is None:
            del of[number]
        else:
            vr = {0x00181078: "DT", 0x70530010: "LO", 0x00090010: "LO", 0x0009100D: "DT", 0x00541006: "CS"}.get(number)
            of[number] = (vr or (of[number][0] if number in of else "DS"), text)
    return {**elements, 0x00540016: ("SQ", [dose])}


def suv(start, injected, half_life=HALF_LIFE):
    """SUV of one Bq/ml: grams of patient over the dose that is left after the decay from the injection to `start`."""
    moment = lambda text: datetime.datetime.strptime(text, "%Y%m%d%H%M%S.%f")
    seconds = (moment(start) - moment(injected)).total_seconds()
    return WEIGHT * 1000 / (DOSE * 0.5 ** (seconds / half_life))


class MrAndPet(harness.Case):
    def series(self):
        """{name: slope and offset of every slice}, and the files of each."""
        made, single, enhanced = {}, dicom_files.single, dicom_files.enhanced
        root, slope = self.folder, lambda k: (0.5 + 0.25 * k, 0)
        rescaled = lambda k: dicom_files.rescale(*slope(k))

        def put(name, lines, make, *words, **more):
            make(root / name, *words, **more)
            made[name] = [lines(k) if callable(lines) else lines for k in range(4)]

        put("mr", (1, 0), single, "MR", 1)
        put("mr-philips", lambda k: (1 / (0.25 * (k + 1)), -7 / (2 * 0.25 * (k + 1))), single, "MR", 2, implicit=True,
            per_slice=lambda k: {**dicom_files.rescale(2, -7), **PHILIPS_MR, 0x2005100E: ("FL", 0.25 * (k + 1))})
        put("mr-frames", slope, enhanced, "MR", 3, per_frame=lambda k: {0x00289145: ("SQ", [rescaled(k)])})
        put("mr-philips-frames", (1 / 0.125, -7 / (2 * 0.125)), enhanced, "MR", 4, per_frame=lambda k: {
            0x00289145: ("SQ", [dicom_files.rescale(2, -7)]), 0x20050014: ("LO", "Philips MR Imaging DD 005"),
            0x2005140F: ("SQ", [{**PHILIPS_MR, 0x2005100E: ("FL", 0.125)}])})
        scaled = lambda factor: lambda k: (slope(k)[0] * factor, 0)

        def put_pet(name, factor, **words):
            put(name, scaled(factor), single, "PT", len(made) + 1, per_slice=rescaled, elements=pet(**words),
                implicit=name.endswith("implicit"))

        put_pet("start", suv("20240301091530.25", "20240301081500.0"))
        put_pet("before-midnight", suv("20240301002000.5", "20240229233000.0"), injected="233000", series="002000.5", acquired="002001")
        put_pet("date-and-time", suv("20240301091530.25", "20240301070000.5"), t00181078="20240301070000.5")
        put_pet("zones", suv("20240301091530.25", "20240301070000.0"), t00181078="20240301060000.0+0000", t00080201="+0100")
        put_pet("ge-implicit", suv("20240301091000.0", "20240301081500.0"), series="111500", t00090010="GEMS_PETD_01", t0009100d="20240301091000.00")
        put_pet("admin", WEIGHT * 1000 / DOSE, decay="ADMIN", t00181075=None)
        put_pet("gml", 1, units="GML", decay="NONE", t00101030=None)
        put_pet("philips-implicit", 0.0025, units="CNTS", t70530010="Philips PET Private Group", t70531000="0.0025", t70531009="3")
        put_pet("philips-activity", 3 * suv("20240301091530.25", "20240301081500.0"), units="CNTS", t70530010="Philips PET Private Group",
                t70531000="0", t70531009="3")
        real = lambda unit: lambda k: {0x00409096: ("SQ", [{0x004008EA: ("SQ", [{0x00080100: ("SH", unit)}]), 0x00409224: ("FD", 0.0),
                                                            0x00409225: ("FD", slope(k)[0])}])}
        frames = {**pet(), 0x00189758: ("CS", "YES"), 0x00189701: ("DT", "20240301091600")}
        for tag in (0x00541001, 0x00541102):
            del frames[tag]
        put("pet-frames", scaled(suv("20240301091600.0", "20240301081500.0")), enhanced, "PT", 40, per_frame=real("Bq/ml"), elements=frames)
        put("pet-frames-suv", slope, enhanced, "PT", 41, per_frame=real("g/ml{SUVbw}"), elements=frames)
        return made

    def stores(self):
        with open(self.folder / "stores/manifest.csv", newline="", encoding="utf-8") as file:
            return {row["source"].rsplit("/", 1)[1].split("#")[0]: self.folder / "stores" / row["store"] for row in csv.DictReader(file)}

    def test_voxels_are_those_of_the_formulas(self):
        made = self.series()
        self.json("ingest", *made, "--out", "stores")
        stores = self.stores()
        self.assertEqual(set(stores), set(made))
        for name, store in stores.items():
            own = json.loads((store / "zarr.json").read_text())["attributes"]["patchbay"]
            self.assertNotIn("modality", own)
            self.assertNotIn("body_histogram", own)
            told = json.dumps({key: value for key, value in own.items() if key not in ("value_histogram", "value_statistics")})
            self.assertNotRegex(told, r"Doe\^Jane|20240301")
            said = self.command("inspect", store).stdout
            self.assertIn(f"modality      {'MR' if name.startswith('mr') else 'PT:SUVbw'}\n", said, name)
            if name == "start":
                (step,) = [step for step in own["transform_log"] if step["step"] == "stored values to SUVbw"]
                self.assertEqual((step["units"], step["decay_correction"]), ("BQML", "START"))
        self.json("scan", "start", "mr", "--out", "scanned.csv")
        with open(self.folder / "scanned.csv", newline="", encoding="utf-8") as file:
            self.assertEqual({(row["modality"], row["verdict"]) for row in csv.DictReader(file)}, {("PT:SUVbw", "uniform"), ("MR", "uniform")})
        if not harness.oracles("numpy", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with NumPy and zarr")
        wanted = {str(store): [[dicom_files.stored(k) for k in range(4)], made[name]] for name, store in stores.items()}
        done = subprocess.run([harness.PYTHON, "-c", LOOK, json.dumps(wanted)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(float(done.stdout), 2e-7)  # one rounding to float32

    def test_what_suv_cannot_be_computed_from_is_refused_by_its_tag(self):
        cases = {"weight": ({"t00101030": None}, "PatientWeight (0010,1030) is missing or 0"),
                 "weight-0": ({"t00101030": "0"}, "PatientWeight (0010,1030) is missing or 0"),
                 "dose": ({"t00181074": "0"}, "RadionuclideTotalDose (0018,1074) is missing or 0"),
                 "half-life": ({"t00181075": None}, "RadionuclideHalfLife (0018,1075) is missing or 0"),
                 "injected": ({"injected": "000000"}, "RadiopharmaceuticalStartTime (0018,1072) is missing or 0"),
                 "after": ({"injected": "093000"}, "RadiopharmaceuticalStartTime (0018,1072, 0018,1078) is after the scan's start"),
                 "shifted": ({"t00181078": "20230101081500"}, "RadiopharmaceuticalStartDateTime (0018,1078) is more than 20 half-lives"),
                 "series-time": ({"t00080031": None}, "SeriesDate and SeriesTime (0008,0031) are missing or 0"),
                 "acquired": ({"t00080032": None}, "AcquisitionDate and AcquisitionTime (0008,0032) are missing or 0"),
                 "later": ({"series": "111500"}, "SeriesTime (0008,0031) is later than AcquisitionTime (0008,0032), and there is no scan time of GE"),
                 "none": ({"decay": "NONE"}, "DecayCorrection (0054,1102) is NONE"),
                 "no-decay": ({"t00541102": None}, "DecayCorrection (0054,1102) is missing or unknown"),
                 "units": ({"units": "PROPCNTS"}, "Units (0054,1001) are none of BQML, CNTS and GML"),
                 "counts": ({"units": "CNTS"}, "Philips's factors (7053,1000) and (7053,1009) are missing or 0"),
                 "lean": ({"units": "GML", "t00541006": "LBM"}, "SUVType (0054,1006) is not BW")}
        for number, (name, (words, _)) in enumerate(cases.items()):
            dicom_files.single(self.folder / name, "PT", number, elements={**pet(**words), **dicom_files.rescale(1, 0)}, slices=2)
        dicom_files.single(self.folder / "unlike", "PT", 70, slices=2, per_slice=lambda k: {
            **pet(t00101030=str(70 + k)), **dicom_files.rescale(1, 0)})
        dicom_files.single(self.folder / "mosaic", "MR", 71, elements={0x00080008: ("CS", "ORIGINAL\\PRIMARY\\M\\ND\\MOSAIC")})
        others = {"unlike": ("no-suv", "its files differ in what SUV is computed from"), "mosaic": ("not-a-volume", "a mosaic (Siemens)")}
        self.json("ingest", *cases, *others, "--out", "out", expect=3)
        with open(self.folder / "out/verdicts.csv", newline="", encoding="utf-8") as file:
            told = {row["source"].rsplit("/", 1)[1].split("#")[0]: (row["verdict"], row["reason"]) for row in csv.DictReader(file)}
        for name, (verdict, reason) in {**{name: ("no-suv", reason) for name, (_, reason) in cases.items()}, **others}.items():
            self.assertEqual(told[name][0], verdict, name)
            self.assertIn(reason, told[name][1], name)


if __name__ == "__main__":
    harness.main()
