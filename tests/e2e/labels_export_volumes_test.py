"""Label sets of volumes in the geometry of their source: what other packages read, and what an import makes of it again."""
import gzip
import hashlib
import itertools
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess

import harness

CLASSES = """
classes:
  - {name: background, value: 0}
  - {name: soft, value: 1}
  - {name: bone, value: 2}
"""
SIZE, STEPS = (5, 6, 7), (2.5, 0.75, 0.625)  # slices, rows, columns; unlike one another

# Arguments: the source's image, the export, the mask that was imported. Prints "ok".
NIBABEL = r"""
import sys, nibabel, numpy
image, export, mask = (nibabel.load(path) for path in sys.argv[1:])
wrong = []
if not numpy.array_equal(image.affine, export.affine) or image.shape != export.shape:
    wrong.append(f"geometry: {image.affine} {export.affine}")
if not numpy.array_equal(numpy.asarray(export.dataobj), numpy.asarray(mask.dataobj)):
    wrong.append("voxels")
print("; ".join(wrong) or "ok")
"""


# Arguments: a SEG, the folder of its series. Prints "ok", the voxels of each segment, and their names.
PYDICOM = r"""
import pathlib, sys
import numpy, pydicom
seg = pydicom.dcmread(sys.argv[1])
slices = {}
for path in pathlib.Path(sys.argv[2]).iterdir():
    one = pydicom.dcmread(path, stop_before_pixels=True)
    slices[one.SOPInstanceUID] = one
first = next(iter(slices.values()))
wrong = [k for k in ("PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyInstanceUID", "StudyDate", "StudyID",
                     "AccessionNumber", "FrameOfReferenceUID") if str(seg.get(k, "")) != str(first.get(k, ""))]
if seg.Modality != "SEG" or seg.SeriesInstanceUID == first.SeriesInstanceUID:
    wrong.append("series")
bits = seg.pixel_array.reshape(-1, seg.Rows, seg.Columns)
total = numpy.zeros(len(seg.SegmentSequence) + 1, int)
for frame, groups in zip(bits, seg.PerFrameFunctionalGroupsSequence):
    source = slices[groups.DerivationImageSequence[0].SourceImageSequence[0].ReferencedSOPInstanceUID]
    if source.ImagePositionPatient != groups.PlanePositionSequence[0].ImagePositionPatient:
        wrong.append("position")
    total[groups.SegmentIdentificationSequence[0].ReferencedSegmentNumber] += frame.sum()
shared = seg.SharedFunctionalGroupsSequence[0]
if shared.PlaneOrientationSequence[0].ImageOrientationPatient != first.ImageOrientationPatient:
    wrong.append("orientation")
if shared.PixelMeasuresSequence[0].PixelSpacing != first.PixelSpacing:
    wrong.append("spacing")
if len(seg.ReferencedSeriesSequence[0].ReferencedInstanceSequence) != len(slices):
    wrong.append("references")
print("; ".join(wrong) or f"ok {total[1:].tolist()} {[s.SegmentLabel for s in seg.SegmentSequence]}")
"""

# Arguments: a NIfTI and a SEG of one set. Prints "ok" if each frame has the voxels of its segment's value at its place.
FRAMES = r"""
import sys
import nibabel, numpy, pydicom
loaded, seg = nibabel.load(sys.argv[1]), pydicom.dcmread(sys.argv[2])
voxels = numpy.asarray(loaded.dataobj).transpose(2, 1, 0)
values = [int(segment.SegmentLabel.split("-")[1]) for segment in seg.SegmentSequence]
drawn, wrong = numpy.zeros_like(voxels), []
for frame, groups in zip(seg.pixel_array.reshape(-1, *voxels.shape[1:]), seg.PerFrameFunctionalGroupsSequence):
    x, y, z = map(float, groups.PlanePositionSequence[0].ImagePositionPatient)
    place = numpy.linalg.solve(loaded.affine, (-x, -y, z, 1))[:3]
    if not numpy.allclose(place, (0, 0, round(place[2])), atol=1e-3):
        wrong.append(f"frame at {place}")
    drawn[round(place[2])][frame != 0] = values[groups.SegmentIdentificationSequence[0].ReferencedSegmentNumber - 1]
if not numpy.array_equal(drawn, voxels):
    wrong.append("voxels")
print("; ".join(wrong) or "ok")
"""


def nifti(path, axes, flips, values, kind):
    """Array axis n of (z, y, x) runs along patient axis axes[n] (0 = superior, 1 = anterior, 2 = right), backwards where flips[n]."""
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, 3, *SIZE[::-1], 1, 1, 1, 1)
    struct.pack_into("<2h", header, 70, *{"h": (4, 16), "B": (2, 8)}[kind])
    struct.pack_into("<4f", header, 76, 1, *STEPS[::-1])
    struct.pack_into("<2f", header, 108, 352, 1)
    struct.pack_into("<h", header, 254, 1)
    rows = [[0.0] * 4 for _ in range(3)]
    for n in range(3):
        rows[2 - axes[n]][2 - n] = -STEPS[n] if flips[n] else STEPS[n]
    for row, place in zip(rows, (12.25, -30.5, 400.125)):
        row[3] = place
    struct.pack_into("<12f", header, 280, *itertools.chain(*rows))
    header[344:348] = b"n+1\0"
    path.write_bytes(bytes(header) + struct.pack(f"<{len(values)}{kind}", *values))


class LabelsExportOfVolumes(harness.Case):
    def setUp(self):
        super().setUp()
        (self.folder / "classes.yaml").write_text(CLASSES)
        count = SIZE[0] * SIZE[1] * SIZE[2]
        self.classes = [(0, 1, 2, 255)[(i * 7 + i // 11) % 4] for i in range(count)]

    def ingested(self, source, out, *words):
        self.json("ingest", source, "--out", out, *words)
        return next(p for p in (self.folder / out).iterdir() if (p / "zarr.json").exists())

    def importing(self, store, file, name, classes="classes.yaml"):
        row = self.json("labels", "import", store, file, "--set", name, "--classes", classes)["imported"][0]
        said = json.loads((store / "labels" / row["revision"] / "zarr.json").read_text())
        return row, said["attributes"]["patchbay"]["pixel_digest"]

    def exporting(self, store, out, *words, name="s"):
        return self.json("labels", "export", store, "--set", name, "--out", out, *words)

    def test_every_order_of_the_axes_comes_back_as_it_was(self):
        (self.folder / "first.yaml").write_text(CLASSES + "  - {name: unseen, value: 255}\n")
        orders = list(itertools.product(itertools.permutations(range(3)), itertools.product((False, True), repeat=3)))
        for number, (axes, flips) in enumerate(orders[5::17]):
            with self.subTest(axes=axes, flips=flips):
                image, mask = self.folder / f"{number}.nii", self.folder / f"mask{number}.nii"
                nifti(image, axes, flips, [(v * 37) % 900 - 500 for v in range(len(self.classes))], "h")
                nifti(mask, axes, flips, self.classes, "B")
                store = self.ingested(image, f"stores{number}", *["--orientation", "source"] * (number % 3 == 2))
                _, pixels = self.importing(store, mask, "s", "first.yaml")
                for file in ("a.nii", "a.nii.gz", "a.nrrd"):
                    said = self.exporting(store, file, "--force")
                    self.assertEqual((said["size"], said["grid"]), (list(SIZE), "same"))
                    # 255 is what nobody drew, though no class of this table has the value.
                    self.assertEqual(self.importing(store, file, "again")[1], pixels, file)
                plain = (self.folder / "a.nii").read_bytes()
                self.assertEqual(gzip.decompress((self.folder / "a.nii.gz").read_bytes()), plain)
                self.assertEqual(plain[352:], bytes(self.classes))
                self.assertEqual(struct.unpack_from("<12f", plain, 280), struct.unpack_from("<12f", image.read_bytes(), 280))
                if harness.oracles("nibabel"):
                    look = subprocess.run([harness.PYTHON, "-c", NIBABEL, image, self.folder / "a.nii.gz", mask], text=True,
                                          capture_output=True, check=False)
                    self.assertEqual(look.stdout.strip(), "ok", look.stderr[-2000:])

    def test_a_store_of_another_spacing_gives_the_source_s_grid(self):
        image, mask = self.folder / "a.nii", self.folder / "mask.nii"
        nifti(image, (1, 0, 2), (True, False, True), [0] * len(self.classes), "h")
        nifti(mask, (1, 0, 2), (True, False, True), [1 + (i % 7 > 3) for i in range(len(self.classes))], "B")
        store = self.ingested(image, "stores", "--spacing", "0.3")
        self.importing(store, mask, "s")
        said = self.exporting(store, "back.nii")
        self.assertEqual((said["size"], said["grid"]), (list(SIZE), "resampled"))
        back = (self.folder / "back.nii").read_bytes()
        for was, now in zip(struct.unpack_from("<12f", image.read_bytes(), 280), struct.unpack_from("<12f", back, 280)):
            self.assertAlmostEqual(was, now, places=4)
        self.assertEqual(back[352:], mask.read_bytes()[352:])

    def test_series_and_refusals(self):
        self.command("synth", "ct", "series", "--size", "12x64x48", "--lesions", "lesions.nii")
        store = self.ingested(self.folder / "series", "stores")
        _, pixels = self.importing(store, "lesions.nii", "s")
        self.exporting(store, "a.nii.gz")
        self.assertEqual(self.importing(store, "a.nii.gz", "again")[1], pixels)
        self.refused(store, "x.tif", says="a volume, and tiff is for slides; export it as nifti, nrrd or seg")
        self.refused(store, "a.nii.gz", says="a.nii.gz: it exists")
        disk = self.small_disk("4k")
        (disk / "b.nii").write_text("old")
        self.refused(store, disk / "b.nii", "--force", says="No space left")
        self.assertEqual([(p.name, p.read_text()) for p in disk.iterdir()], [("b.nii", "old")])
        document = json.loads((store / "zarr.json").read_text())
        for wrong in ([{"step": "reorder axes", "axes": "z, z, x"}], [{"step": "resample", "from_shape": [0, 3, 3]}], [3], {}):
            document["attributes"]["patchbay"]["transform_log"] = wrong
            (store / "zarr.json").write_text(json.dumps(document))
            self.refused(store, "c.nii", says="export labels: ")

    def test_a_seg_is_of_the_series_with_the_store_s_content_and_alone_names_the_patient(self):
        (self.folder / "classes.yaml").write_text(CLASSES + "exhaustive: true\nbackground: background\n")
        for number in (1, 2):
            self.command("synth", "ct", f"study/{number}", "--size", "12x64x48", "--seed", number, "--lesions", f"{number}.nii")
        store = self.ingested(self.folder / "study/1", "stores")
        row, pixels = self.importing(store, "1.nii", "s")
        self.refused(store, "a.dcm", "--source", "study/2", says="none of 1 DICOM series there has the content that the store was made from")
        self.refused(store, "a.dcm", says="--source: seg needs the DICOM series", code=2)
        self.refused(store, "a.nii", "--source", "study", says="--source: the format is nifti, which needs none", code=2)
        self.refused(store, "a.dcm", "--source", "none", says="none")
        self.assertFalse((self.folder / "a.dcm").exists())
        before = self.naming_the_patient()  # tables of the ingest
        said = self.exporting(store, "a.dcm", "--source", "study")  # the one of two series that has the content
        self.assertEqual(said["segments"], 2)
        self.assertEqual(sorted(said), ["bytes", "content", "digest", "path", "segments"])
        self.assertEqual((self.folder / "a.dcm").stat().st_mode & 0o777, 0o600)
        self.assertIn(b"PHANTOM^SYNTHETIC", (self.folder / "a.dcm").read_bytes())
        self.assertEqual(self.naming_the_patient() - before, {"a.dcm"})
        again, same = self.importing(store, "a.dcm", "again")
        self.assertEqual(same, pixels)
        self.exporting(store, "b.dcm", "--to", "seg", "--source", "study/1")
        self.assertEqual((self.folder / "a.dcm").read_bytes(), (self.folder / "b.dcm").read_bytes())
        if harness.oracles("pydicom", "numpy"):
            look = subprocess.run([harness.PYTHON, "-c", PYDICOM, self.folder / "a.dcm", self.folder / "study/1"], text=True,
                                  capture_output=True, check=False)
            counts = [one["voxels"] for one in row["classes"]][1:]
            self.assertEqual(look.stdout.strip(), f"ok {counts} ['soft', 'bone']", look.stderr[-2000:])
        self.sent_to_a_local_pacs("a.dcm")

    def test_what_is_no_seg_of_the_store_is_refused(self):
        (self.folder / "classes.yaml").write_text(CLASSES + "exhaustive: true\nbackground: background\n")
        self.command("synth", "ct", "series", "--size", "6x32x24", "--lesions", "s.nii")
        store = self.ingested(self.folder / "series", "stores")
        self.importing(store, "s.nii", "s")
        self.refused(store, "a.nii", "--to", "seg", "--source", "series", says="the name says nifti, and seg would be written", code=2)
        self.refused(store, "a.dcm", "--to", "nifti", says="the name says seg, and nifti would be written", code=2)
        self.refused(store, "a.dcm", "--to", "seg", says="--source: seg needs the DICOM series", code=2)
        for source in (store, "s.nii", self.folder / "home"):
            self.refused(store, "a.dcm", "--source", source, says="")
        document = (store / "zarr.json").read_text()
        for shifted in (0, 1, 2):  # the geometry that the store says is no longer that of the slices
            own = json.loads(document)
            own["attributes"]["patchbay"]["affine_lps"][shifted][3] += 0.5
            (store / "zarr.json").write_text(json.dumps(own))
            self.refused(store, "a.dcm", "--source", "series", says="its voxels do not lie on the slices of the series")
        (store / "zarr.json").write_text(document)
        slices = sorted((self.folder / "series").iterdir())
        kept = slices[2].read_bytes()
        slices[2].write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))  # a pixel
        self.refused(store, "a.dcm", "--source", "series", says="none of 1 DICOM series there has the content")
        slices[2].write_bytes(kept)
        slices[5].rename(self.folder / "gone.dcm")
        self.refused(store, "a.dcm", "--source", "series", says="none of 1 DICOM series there has the content")
        (self.folder / "gone.dcm").rename(slices[5])
        (self.folder / "background.nii").write_bytes((self.folder / "s.nii").read_bytes()[:352] + bytes(6 * 32 * 24))
        self.importing(store, "background.nii", "s")
        self.refused(store, "a.dcm", "--source", "series", says="no voxel of a class")
        self.assertFalse((self.folder / "a.dcm").exists())

    def test_a_seg_is_of_a_series_with_slices_alone(self):
        (self.folder / "classes.yaml").write_text(CLASSES + "exhaustive: true\nbackground: background\n")
        nifti(self.folder / "volume.nii", (0, 1, 2), (False, False, False), [0] * len(self.classes), "h")
        nifti(self.folder / "v.nii", (0, 1, 2), (False, False, False), [i % 3 for i in range(len(self.classes))], "B")
        store = self.ingested(self.folder / "volume.nii", "volumes")
        self.importing(store, "v.nii", "s")
        self.refused(store, "a.dcm", "--source", "volume.nii", says="a SEG is of a DICOM series, and the store was made from another file")
        self.command("synth", "ct", "gap", "--size", "8x32x24", "--fault", "missing-slice", "--lesions", "gap.nii")
        self.command("synth", "ct", "enhanced", "--size", "8x32x24", "--fault", "enhanced", "--lesions", "enhanced.nii")
        store = self.ingested(self.folder / "gap", "even", "--geometry", "resample")
        self.importing(store, "gap.nii", "s")
        self.refused(store, "a.dcm", "--source", "gap", says="its slices were resampled")
        self.exporting(store, "even.nrrd")
        # With the slices as they are a SEG has them, whatever the steps between them; so has an enhanced file's.
        for series, words in (("gap", ["--geometry", "accept"]), ("enhanced", [])):
            store = self.ingested(self.folder / series, f"stores-{series}", *words)
            self.importing(store, f"{series}.nii", "s")
            self.exporting(store, f"{series}.dcm", "--source", series)

    def test_hostile_files_beside_the_series_end_in_words(self):
        (self.folder / "classes.yaml").write_text(CLASSES + "exhaustive: true\nbackground: background\n")
        self.command("synth", "ct", "series", "--size", "6x32x24", "--lesions", "s.nii")
        store = self.ingested(self.folder / "series", "stores")
        self.importing(store, "s.nii", "s")
        one = next(iter((self.folder / "series").iterdir())).read_bytes()
        hostile = self.folder / "hostile"
        hostile.mkdir()
        (hostile / "cut.dcm").write_bytes(one[:700])
        (hostile / "long.dcm").write_bytes(one.replace(b"\x28\x00\x10\x00US\x02\x00\x20\x00", b"\x28\x00\x10\x00US\x02\x00\xff\xff"))
        (hostile / "empty.dcm").write_bytes(b"")
        (hostile / "deep.dcm").write_bytes(one[:132] + one[132:400] + b"\xfe\xff\x00\xe0\xff\xff\xff\xff" * 5000)
        os.mkfifo(hostile / "pipe.dcm")
        (hostile / "loop").symlink_to(hostile)
        self.refused(store, "a.dcm", "--source", hostile, says="")
        self.assertFalse((self.folder / "a.dcm").exists())
        for path in (harness.DATA / "hostile/dicom").glob("*"):
            shutil.copy(path, hostile)
            self.refused(store, "a.dcm", "--source", path, says="")
        shutil.copytree(self.folder / "series", hostile / "series")
        self.exporting(store, "a.dcm", "--source", hostile)

    def test_real_series_as_simpleitk_reads_them(self):
        if not (harness.DATA / "ct/seg-dcmqi").is_dir():
            self.skipTest("PATCHBAY_TEST_DATA: no real data")
        (self.folder / "classes.yaml").write_text(
            "exhaustive: true\nbackground: background\nclasses:\n  - {name: background, value: 0}\n" +
            "".join(f"  - {{name: organ-{value}, value: {value}}}\n" for value in range(1, 118)))
        no_seg = {"body": "the series has no study"}
        for name, reading in json.loads(pathlib.Path(__file__).with_name("volume_readings.json").read_text())["series"].items():
            with self.subTest(series=name):
                self.on_the_grid_of_simpleitk(name, reading, no_seg.get(name))

    def on_the_grid_of_simpleitk(self, name, reading, no_seg):
        series = self.folder / name
        series.mkdir()
        for path in (harness.DATA / reading["folder"]).glob(reading["files"]):
            shutil.copy(path, series)
        store = self.ingested(series, f"stores-{name}")
        mask = harness.DATA / reading["mask"] if reading["mask"] else self.mask_of(reading, f"{name}.nii")
        _, pixels = self.importing(store, mask, "s")
        for file in ("a.nii.gz", "a.nrrd", "a.dcm"):
            words = ["--source", series, "--force"] if file == "a.dcm" else ["--force"]
            if file == "a.dcm" and no_seg:
                self.refused(store, "none.dcm", *words, says=no_seg)
                continue
            self.exporting(store, file, *words)
            self.assertEqual(self.importing(store, file, "again")[1], pixels, file)
        voxels = self.places_are(reading)
        expected = reading.get("voxels_sha256") or hashlib.sha256(mask.read_bytes()[352:]).hexdigest()
        self.assertEqual(hashlib.sha256(voxels).hexdigest(), expected)
        if not no_seg and harness.oracles("nibabel", "numpy", "pydicom"):
            look = subprocess.run([harness.PYTHON, "-c", FRAMES, "a.nii.gz", "a.dcm"], text=True, cwd=self.folder, capture_output=True, check=False)
            self.assertEqual(look.stdout.strip(), "ok", look.stderr[-2000:])

    def places_are(self, reading):
        """Holds the geometry of a.nii.gz and a.nrrd against the source's; their voxels."""
        size, origin = reading["size"], reading["origin"]
        steps = [[reading["direction"][3 * row + axis] * reading["spacing"][axis] for row in range(3)] for axis in range(3)]
        plain = gzip.decompress((self.folder / "a.nii.gz").read_bytes())
        self.assertEqual(struct.unpack_from("<4h", plain, 40), (3, *size))
        for row, sign in enumerate((-1, -1, 1)):
            expected = [sign * one[row] for one in (*steps, origin)]
            for is_there, wanted in zip(struct.unpack_from("<4f", plain, 280 + 16 * row), expected):
                self.assertAlmostEqual(is_there, wanted, delta=2e-5)
        header, _, body = (self.folder / "a.nrrd").read_bytes().partition(b"\n\n")
        said = dict(line.split(": ", 1) for line in header.decode().splitlines()[1:])
        self.assertEqual(said["space"], "left-posterior-superior")
        self.assertEqual(said["sizes"].split(), [str(one) for one in size])
        numbers = re.findall(r"[-+.e\d]+", said["space directions"] + said["space origin"])
        for is_there, wanted in zip(numbers, itertools.chain(*steps, origin), strict=True):
            self.assertAlmostEqual(float(is_there), wanted, delta=2e-5)
        self.assertEqual(gzip.decompress(body), plain[352:])
        return plain[352:]

    def mask_of(self, reading, name):
        """A mask on that grid: boxes of several classes, unlike along every axis."""
        width, height, depth = reading["size"]
        path = self.folder / name
        harness.nifti(path, (1, 1, 1), reading["spacing"][::-1], lambda z, y, x: 0, "B")
        header = bytearray(path.read_bytes()[:352])
        struct.pack_into("<3h", header, 42, width, height, depth)
        for row, sign in enumerate((-1, -1, 1)):
            steps = (reading["direction"][3 * row + axis] * reading["spacing"][axis] for axis in range(3))
            struct.pack_into("<4f", header, 280 + 16 * row, *(sign * one for one in (*steps, reading["origin"][row])))
        rows = [bytes(1 + z % 5 if 100 + 3 * z <= x < 180 and (band + z) % 3 else 0 for x in range(width))
                for z in range(depth) for band in range(3)]
        path.write_bytes(bytes(header) + b"".join(rows[z * 3 + y // 40 % 3] for z in range(depth) for y in range(height)))
        return path

    def naming_the_patient(self):
        """Files outside the series themselves that hold the patient's name or number, or a UID of the study."""
        known = (b"PHANTOM^SYNTHETIC", b"PHANTOM-1", b"PHANTOM-2", b"1.2.826.0.1.3680043")
        files = [p for p in self.folder.rglob("*") if p.is_file() and (self.folder / "study") not in p.parents]
        return {p.name for p in files if any(one in p.read_bytes() for one in known)}

    def sent_to_a_local_pacs(self, name):
        if not shutil.which("storescp") or not shutil.which("storescu"):
            return
        port, inbox = harness.free_port(), self.folder / "inbox"
        inbox.mkdir()
        server = subprocess.Popen(["storescp", "-od", inbox, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            send = lambda: subprocess.run(["storescu", "-R", "-aec", "PACS", "127.0.0.1", str(port), self.folder / name],
                                          capture_output=True, check=False).returncode == 0
            harness.wait_until(send, "the SEG to be taken", 30)
        finally:
            server.kill()
            server.wait()
        self.assertEqual(len(list(inbox.iterdir())), 1)

    def refused(self, store, out, *words, says, code=1):
        done = self.command("labels", "export", store, "--set", "s", "--out", out, *words)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(says, done.stderr)


if __name__ == "__main__":
    harness.main()
