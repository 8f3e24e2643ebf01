"""`scan` lists the series of a tree of DICOM, and its table makes the stores of those that are chosen."""
import array
import csv
import gzip
import json
import shutil
import struct

import harness


def element(group, number, vr, value):
    if len(value) % 2:
        value += b"\0"
    return struct.pack("<HH", group, number) + vr + struct.pack("<H", len(value)) + value


def dicomdir():
    """The DICOMDIR file of DICOM media: a directory without pixels."""
    syntax = element(2, 2, b"UI", b"1.2.840.10008.1.3.10") + element(2, 0x10, b"UI", b"1.2.840.10008.1.2.1")
    head = element(2, 0, b"UL", struct.pack("<I", len(syntax))) + syntax
    return b"\0" * 128 + b"DICM" + head + element(8, 0x16, b"UI", b"1.2.840.10008.1.3.10")


class ScanVolumes(harness.Case):
    def setUp(self):
        super().setUp()
        self.root = self.folder / "archive"
        self.root.mkdir()
        for name, fault, seed in (("first", "two-series", 1), ("second", "tilt", 2), ("third", "localiser", 3)):
            made = self.command("synth", "ct", self.root / name, "--size", "8x24x24", "--fault", fault, "--seed", seed)
            self.assertEqual(made.returncode, 0, made.stderr)
        (self.root / "DICOMDIR").write_bytes(dicomdir())
        shutil.copy(self.root / "second/IM1003.dcm", self.root / "damaged.dcm")
        with open(self.root / "damaged.dcm", "r+b") as file:
            file.truncate(200)

    def rows(self, table):
        with open(self.folder / table, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def scan(self, source, table, *more, expect=0):
        return self.json("scan", source, "--out", table, *more, expect=expect)

    def test_every_series_has_a_row_with_its_verdict_and_what_tells_it_from_others(self):
        seen = self.scan(self.root, "all.csv", expect=3)
        self.assertEqual((seen["rows"], seen["series"], seen["not_uniform"], seen["unreadable"]), (5, 4, 2, 1))
        rows = self.rows("all.csv")
        series = [row for row in rows if row["study"]]
        self.assertEqual([row["verdict"] for row in series].count("uniform"), 2)
        self.assertEqual({row["verdict"] for row in series}, {"uniform", "tilted", "not-a-volume"})
        for row in series:
            self.assertEqual((row["slices"], row["height"], row["width"]), ("8", "24", "24"))
            self.assertEqual((row["thickness_mm"], row["pixel_mm"], row["kernel"], row["contrast"]), ("2.5", "0.7813", "SOFT", "no"))
            self.assertEqual((row["phase"], row["use"], row["content_hash"]), ("", "", ""))
            folder, pseudonym = row["path"].rsplit("#", 1)
            self.assertTrue((self.folder / folder).is_dir())
            self.assertRegex(pseudonym, "^[0-9a-f]{16}$")
        first = [row for row in series if row["path"].startswith("archive/first#")]
        self.assertEqual(len(first), 2)
        self.assertEqual(len({row["study"] for row in first}), 1)
        self.assertEqual(len({row["patient_id"] for row in first}), 1)
        self.assertEqual(len({row["study"] for row in series}), 3)
        self.assertEqual(len({row["slide_id"] for row in rows}), 5)
        self.assertEqual({row["orientation"] for row in first}, {"axial"})
        self.assertIn("15", next(row for row in series if row["verdict"] == "tilted")["reason"])
        text = (self.folder / "all.csv").read_text(encoding="utf-8")
        self.assertNotIn("PHANTOM", text)            # neither the patient's name nor an identifier
        self.assertNotIn("1.2.826.0", text)
        self.assertEqual((self.folder / "all.csv").stat().st_mode & 0o777, 0o600)
        self.inspected_alike()

    def inspected_alike(self):
        """`inspect` judges each series as `scan` does, and says what it holds."""
        told = {row["name"].rsplit("/", 1)[1].split("#")[0]: row for row in self.json("inspect", self.root / "second")["volumes"]}
        tilted = told["second"]
        self.assertEqual((tilted["verdict"], tilted["shape"], tilted["dtype"]), ("tilted", [8, 24, 24], "int16"))
        self.assertEqual(tilted["orientation"], "LPS")
        self.assertEqual([round(axis["value"], 6) for axis in tilted["spacing"]][1:], [0.78125, 0.78125])
        self.assertLess(tilted["value_range"]["min"], -900)
        text = self.command("inspect", self.root / "first").stdout
        self.assertEqual(text.count("verdict       uniform"), 2)
        self.assertEqual(text.count("spacing       z 2.5 millimeter, y 0.78125 millimeter, x 0.78125 millimeter"), 2)
        self.assertRegex(text, r"HU            -?\d+ to \d+, mean -?[\d.]{1,8}\n")
        self.assertIn("not-a-volume: ", self.command("inspect", self.root / "third").stdout)

    def test_a_dicomdir_stands_for_its_folder(self):
        (self.root / "damaged.dcm").unlink()
        self.scan(self.root, "folder.csv")
        self.scan(self.root / "DICOMDIR", "directory.csv")
        self.assertEqual(self.rows("folder.csv"), self.rows("directory.csv"))

    def test_the_table_makes_the_stores_of_the_rows_that_are_taken_and_streams_find_them(self):
        (self.root / "damaged.dcm").unlink()
        self.scan(self.root, "all.csv", "--hash")
        done = self.json("ingest", "all.csv", "--where", "verdict=uniform", "--where", "thickness_mm<=3", "--out", "stores")
        self.assertEqual(len(done["stores"]), 2)
        rows = {row["path"].rsplit("#", 1)[1]: row for row in self.rows("all.csv")}
        for store in (self.folder / "stores").glob("*.ome.zarr"):
            said = json.loads((store / "zarr.json").read_text())["attributes"]["patchbay"]
            row = rows[said["identity"]["series"]]
            self.assertEqual((row["study"], row["patient_id"]), (said["identity"]["study"], said["identity"]["patient"]))
            self.assertEqual(row["content_hash"], said["source_sha256"])
        run = self.folder / "run.yaml"
        run.write_text("dataset: all.csv\nstores: stores\nwhere: {verdict: uniform}\nnumerics: cpu\n"
                       "patch: {size: [8, 24, 24]}\nbatch: {global_size: 1}\n", encoding="utf-8")
        streamed = self.json("stream", run, "--digest", "--gpus", "none", "--cpus", 1)
        self.assertEqual(streamed["patches"], 2)

    def nnunet_dataset(self):
        """Two cases in nnU-Net's folders: a phantom's masks, and Hounsfield units made of them."""
        dataset = self.folder / "Dataset007_Polyps"
        for part in ("imagesTr", "labelsTr"):
            (dataset / part).mkdir(parents=True)
        for case, seed in (("case_1", 3), ("case_2", 4)):
            mask = self.folder / f"{case}.nii"
            made = self.command("synth", "ct", self.folder / case, "--size", "8x48x40", "--seed", seed, "--lesions", mask)
            self.assertEqual(made.returncode, 0, made.stderr)
            data = mask.read_bytes()
            head, voxels = bytearray(data[:352]), data[352:]
            struct.pack_into("<2h", head, 70, 4, 16)  # int16
            units = array.array("h", [60 * value - (1000 if i % 40 < 4 else 0) for i, value in enumerate(voxels)]).tobytes()
            (dataset / f"labelsTr/{case}.nii.gz").write_bytes(gzip.compress(data))
            (dataset / f"imagesTr/{case}_0000.nii.gz").write_bytes(gzip.compress(bytes(head) + units))
            (dataset / f"imagesTr/._{case}_0000.nii.gz").write_bytes(b"left by another system")
        (dataset / "dataset.json").write_text(json.dumps({
            "channel_names": {"0": "CT"}, "labels": {"background": 0, "tumour": 1, "polyp": 2}, "numTraining": 2,
            "file_ending": ".nii.gz"}), encoding="utf-8")
        (dataset / "splits_final.json").write_text('[{"train": ["case_1"], "val": ["case_2"]}]', encoding="utf-8")
        return dataset

    def test_a_dataset_of_nnunet_becomes_stores_with_labels_and_folds(self):
        (self.folder / "linked").symlink_to(self.nnunet_dataset())
        scanned = self.json("scan", "linked", "--hash", "--out", "cohort.csv")
        self.assertEqual((scanned["rows"], scanned["folds"]), (2, 1))
        self.assertEqual([(row["slide_id"], row["fold_0"]) for row in self.rows("cohort.csv")],
                         [("case_1", "train"), ("case_2", "val")])
        done = self.json("ingest", "cohort.csv", "--out", "stores")
        self.assertEqual(len(done["stores"]), 2)
        self.json("labels", "import", "cohort.csv", "--stores", "stores", "--set", "lesions", "--classes", "cohort.classes.yaml")
        for split in ("train", "val"):
            run = self.folder / f"{split}.yaml"
            run.write_text("dataset: cohort.csv\nstores: stores\nsplit_column: fold_0\nnumerics: cpu\npatch: {size: [8, 48, 40]}\n"
                           "batch: {global_size: 1}\nlabels: {set: lesions, mask: true}\n", encoding="utf-8")
            saved = self.folder / split
            streamed = self.json("stream", run, "--split", split, "--save", saved, "--gpus", "none", "--cpus", 1)
            self.assertEqual(streamed["patches"], 1)
            (mask,) = saved.glob("*-mask.npy")
            expected = gzip.decompress((self.folder / f"Dataset007_Polyps/labelsTr/case_{1 + (split == 'val')}.nii.gz").read_bytes())
            self.assertEqual(sorted(mask.read_bytes()[-8 * 48 * 40:]), sorted(expected[352:]))

        # Its labels are no images, whatever their values.
        odd = self.folder / "Dataset007_Polyps/labelsTr/case_9.nii.gz"
        image = gzip.decompress((self.folder / "Dataset007_Polyps/labelsTr/case_1.nii.gz").read_bytes())
        odd.write_bytes(gzip.compress(image[:352] + bytes(i % 251 for i in range(len(image) - 352))))
        done = self.json("ingest", self.folder / "Dataset007_Polyps", "--out", "images")
        self.assertEqual({row["source"].rsplit("/", 2)[1] for row in done["stores"]}, {"imagesTr"})
        self.assertIn("case_9.nii.gz,mask,among the labels of a dataset.json", (self.folder / "images/verdicts.csv").read_text())

        (self.folder / "Dataset007_Polyps/imagesTr/case_2_0000.nii.gz").write_bytes(b"no volume")
        refused = self.command("scan", "linked", "--hash", "--out", "again.csv")
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("case_2_0000.nii.gz: it cannot be read", refused.stderr)
        self.assertFalse((self.folder / "again.csv").exists())

    def files_of_volumes(self):
        """A folder of NIfTI, NRRD and MHA: one grid three times, and what is wrong with others."""
        folder = self.folder / "files"
        folder.mkdir()
        made = self.command("synth", "ct", self.folder / "p", "--size", "8x24x32", "--step", 2.5, "--pixel", 0.75, "--lesions",
                            folder / "good.nii")
        self.assertEqual(made.returncode, 0, made.stderr)
        good = (folder / "good.nii").read_bytes()
        voxels = bytes(i * 7919 % 251 for i in range(len(good) - 352))  # more values than a mask has
        good = good[:352] + voxels
        (folder / "good.nii").write_bytes(good)

        def changed(name, *fields):
            data = bytearray(good)
            for offset, form, *values in fields:
                struct.pack_into(form, data, offset, *values)
            (folder / name).write_bytes(data)

        changed("times.nii", (40, "<8h", 4, 32, 24, 4, 2, 1, 1, 1))
        changed("nowhere.nii", (254, "<h", 0))
        changed("skewed.nii", (284, "<f", 0.5))
        (folder / "cut.nii").write_bytes(good[:1000])
        (folder / "good.nii.gz").write_bytes(gzip.compress(good))
        (folder / "good.nrrd").write_bytes(
            b"NRRD0004\ntype: uchar\ndimension: 3\nsizes: 32 24 8\nspace: LPS\nspace origin: (0,0,0)\nencoding: raw\n"
            b"space directions: (0.75,0,0) (0,0.75,0) (0,0,2.5)\n\n" + voxels)
        (folder / "good.mha").write_bytes(
            b"ObjectType = Image\nNDims = 3\nBinaryData = True\nTransformMatrix = 1 0 0 0 0 1 0 1 0\nOffset = 0 0 0\n"
            b"ElementSpacing = 0.75 0.75 2.5\nDimSize = 32 24 8\nElementType = MET_UCHAR\nElementDataFile = LOCAL\n" + voxels)

    def test_volumes_in_files_are_judged_by_their_headers(self):
        self.files_of_volumes()
        seen = self.scan(self.folder / "files", "files.csv", expect=3)
        self.assertEqual((seen["rows"], seen["series"], seen["not_uniform"], seen["unreadable"]), (8, 7, 3, 1))
        rows = {row["path"].rsplit("/", 1)[1]: row for row in self.rows("files.csv")}
        for name in ("good.nii", "good.nii.gz", "good.nrrd", "good.mha"):
            row = rows[name]
            self.assertEqual([row[key] for key in ("verdict", "slices", "height", "width", "step_mm", "pixel_mm", "reason")],
                             ["uniform", "8", "24", "32", "2.5", "0.75", ""], name)
            self.assertEqual(row["orientation"], "coronal" if name == "good.mha" else "axial", name)
        for name, reason in (("times.nii", "axis 4 of 2"), ("nowhere.nii", "--geometry accept"), ("skewed.nii", "skewed")):
            self.assertEqual(rows[name]["verdict"], "not-a-volume")
            self.assertIn(reason, rows[name]["reason"])
        self.assertIn("ends before its voxels", rows["cut.nii"]["verdict"])
        done = self.json("ingest", "files.csv", "--where", "verdict=uniform", "--out", "stores")
        self.assertEqual(len(done["stores"]), 4)

    def grey_tiff(self, path, pixels):
        """64 x 64 pixels of 8 bits in one strip."""
        fields = [(256, 3, 64), (257, 3, 64), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 8), (277, 3, 1), (278, 3, 64), (279, 4, 4096)]
        entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in fields)
        path.write_bytes(struct.pack("<2sHI", b"II", 42, 8 + 4096) + bytes(pixels) + struct.pack("<H", len(fields)) + entries + bytes(4))

    def test_masks_beside_images_are_left_out_of_folders_unless_they_are_asked_for(self):
        case = self.folder / "case"
        made = self.command("synth", "ct", case, "--size", "8x24x24", "--lesions", self.folder / "mask.nii")
        self.assertEqual(made.returncode, 0, made.stderr)
        mask = shutil.copy(self.folder / "mask.nii", case / "mask.nii")
        self.grey_tiff(case / "outlines.tif", (i // 64 % 2 * 255 for i in range(4096)))
        self.grey_tiff(case / "grey.tif", (i % 256 for i in range(4096)))
        self.slide("case/a.svs", size="900x700")
        seen = self.scan(case, "case.csv")
        self.assertEqual((seen["rows"], seen["series"], seen["masks"], seen["unreadable"]), (5, 1, 2, 0))
        rows = {row["path"].split("#")[0].rsplit("/", 1)[-1]: row for row in self.rows("case.csv")}
        self.assertEqual({name: (row["verdict"], row["use"]) for name, row in rows.items()},
                         {"case": ("uniform", ""), "a.svs": ("ok", ""), "grey.tif": ("ok", ""), "mask.nii": ("mask", "0"), "outlines.tif": ("mask", "0")})
        self.assertIn("only 3 distinct values, all whole numbers up to 2", rows["mask.nii"]["reason"])
        self.assertEqual(self.scan(mask, "named.csv")["masks"], 0)
        done = self.json("ingest", case, "--out", "stores")
        self.assertEqual((len(done["stores"]), done["skipped_files"]), (3, {"mask": 2}))
        verdicts = (self.folder / "stores/verdicts.csv").read_text(encoding="utf-8")
        self.assertIn("mask.nii,mask,", verdicts)
        self.assertIn("outlines.tif,mask,", verdicts)
        self.assertIn("skipped: 2 masks\n", self.command("ingest", case, "--out", "stores").stdout)
        for number, sources in enumerate(([mask], [case, mask], [case / "outlines.tif", case])):
            done = self.json("ingest", *sources, "--out", f"asked-{number}")
            self.assertEqual(len(done["stores"]), 1 if sources == [mask] else 4)
        self.assertEqual(len(self.json("ingest", "case.csv", "--out", "table")["stores"]), 3)
        text = (self.folder / "case.csv").read_text(encoding="utf-8")
        self.assertEqual(text.count(",0\n") + text.count(",0\r\n"), 2)
        (self.folder / "case.csv").write_text(text.replace(",0\r\n", ",1\r\n").replace(",0\n", ",1\n"), encoding="utf-8", newline="")
        self.assertEqual(len(self.json("ingest", "case.csv", "--out", "taken")["stores"]), 5)
        (self.folder / "masks").mkdir()
        shutil.copy(mask, self.folder / "masks")
        refused = self.command("ingest", self.folder / "masks", "--out", "none")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("no images, only 1 mask (all values are classes): name the files that are images", refused.stderr)

    def test_nan_and_infinity_are_refused_unless_a_value_takes_their_places(self):
        values = array.array("f", [float("nan"), float("inf"), *range(22)])
        (self.folder / "odd.nrrd").write_bytes(
            b"NRRD0004\ntype: float\ndimension: 3\nsizes: 4 3 2\nspace: LPS\nspace origin: (0,0,0)\nencoding: raw\nendian: little\n"
            b"space directions: (1,0,0) (0,1,0) (0,0,1)\n\n" + values.tobytes())
        counted = "1 NaN and 1 infinite of 24 voxels"
        self.assertIn(f"warning       {counted}\n", self.command("inspect", "odd.nrrd").stdout)
        refused = self.command("ingest", "odd.nrrd", "--out", "stores")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(f"{counted}, the first at (z, y, x) = (0, 0, 0): --nan VALUE", refused.stderr)
        taken = self.command("ingest", "odd.nrrd", "--nan", -1000, "--out", "stores")
        self.assertEqual(taken.returncode, 0, taken.stderr)
        self.assertIn(f"odd.nrrd: {counted} are -1000 here\n", taken.stderr)
        store = next((self.folder / "stores").glob("*.zarr"))
        self.assertEqual(self.json("inspect", store)["value_range"]["min"], -1000)
        self.assertEqual(self.command("ingest", "odd.nrrd", "--nan", "nan", "--out", "more").returncode, 2)
        self.assertEqual(self.command("ingest", "odd.nrrd", "--nan", 1e7, "--out", "more").returncode, 2)

    def test_a_series_that_is_not_there_is_refused_by_name(self):
        refused = self.command("ingest", f"{self.root}/first#0123456789abcdef", "--out", "stores")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("0123456789abcdef is not there", refused.stderr)
        self.assertFalse(list((self.folder / "stores").glob("*.zarr")) if (self.folder / "stores").exists() else [])
        refused = self.command("ingest", f"{self.root}/absent#0123456789abcdef", "--out", "stores")
        self.assertIn("no such file or folder", refused.stderr)


if __name__ == "__main__":
    harness.main()
