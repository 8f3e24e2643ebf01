"""Volumes of several channels: files of nnU-Net, a 4-D file of MSD and DICOM series of one patient become one store of (c, z, y, x) on
the first one's grid, whose voxels are those of SciPy's interpolation; what does not belong together is refused with the distance."""
import csv
import json
import math
import shutil
import statistics
import struct
import subprocess

import dicom_files
import harness

SIZE, SPACING = (6, 20, 18), (2.0, 1.0, 1.5)
CLASSES = "classes:\n  - {name: background, value: 0}\n  - {name: lesion, value: 1}\nexhaustive: true\nbackground: background\n"

# Arguments: a store. Prints shape, dtype, and the voxels of all channels as JSON.
LOOK = r"""
import json, sys
import numpy, zarr
group = zarr.open_group(sys.argv[1], mode="r")
levels = [group[name] for name in sorted(group.array_keys())]
one = levels[0]
print(json.dumps([one.shape, str(one.dtype), numpy.asarray(one).ravel().tolist(), one.chunks, [list(l.shape) for l in levels]]))
"""

# Arguments: JSON of {store, series: [values (z, y, x), origin and step along x, y, z]}. Prints the largest difference from linear
# interpolation at the voxels of the first series, and how many voxels of the second lie outside of it.
ONTO_FIRST = r"""
import json, sys
import numpy, scipy.ndimage, zarr
asked = json.loads(sys.argv[1])
found = numpy.asarray(zarr.open_group(asked["store"], mode="r")["0"])
(first, origin, step), (second, origin2, step2) = asked["series"]
first, second = numpy.array(first), numpy.array(second)
places = [origin[2 - a] + step[2 - a] * numpy.arange(first.shape[a]) for a in range(3)]
at = numpy.meshgrid(*[(p - origin2[2 - a]) / step2[2 - a] for a, p in enumerate(places)], indexing="ij")
inside = numpy.all([(c >= -0.5) & (c <= n - 0.5) for c, n in zip(at, second.shape)], axis=0)
want = numpy.where(inside, scipy.ndimage.map_coordinates(second.astype(float), at, order=1, mode="nearest"), 0)
assert (found[0] == first).all()
print(json.dumps([float(abs(found[1] - want).max()), int((~inside).sum()), float(abs(want - numpy.rint(want)).max())]))
"""


def along(z, y, x):
    return 40 * z + 3 * y + x


class Channels(harness.Case):
    def volume(self, name, value=along, size=SIZE, **more):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        harness.nifti(path, size, SPACING, value, **more)
        return path

    def own(self, store):
        return json.loads((store / "zarr.json").read_text())["attributes"]

    def only(self, out):
        (store,) = (self.folder / out).glob("*.zarr")
        return store

    def look(self, store):
        done = subprocess.run([harness.PYTHON, "-c", LOOK, store], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def table(self, *rows, columns="path,image_id,channel", name="t.csv"):
        path = self.folder / name
        path.write_text("\n".join((columns, *rows)) + "\n")
        return path

    def refused(self, *words):
        done = self.command("ingest", *words, "--out", "refused")
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.stderr

    MR = {"a": along, "b": lambda z, y, x: along(z, y, x) + 1}
    CT = {"a": lambda z, y, x: 7 * x - 900, "b": lambda z, y, x: 0.5 * x - 10 * z}

    def nnunet(self):
        """Two cases of an MR and a CT channel, the second of float32 in one."""
        for case in ("a", "b"):
            self.volume(f"d/imagesTr/{case}_0000.nii", self.MR[case])
            self.volume(f"d/imagesTr/{case}_0001.nii", self.CT[case], dtype="h" if case == "a" else "f")
            self.volume(f"d/labelsTr/{case}.nii", lambda z, y, x: int(y > 10), dtype="B")
        (self.folder / "d/dataset.json").write_text(json.dumps(
            {"channel_names": {"0": "T1", "1": "CT"}, "labels": {"background": 0, "lesion": 1}, "file_ending": ".nii"}))

    def test_files_of_nnunet_become_stores_of_channels_that_every_command_takes(self):
        self.nnunet()
        self.json("scan", "d", "--out", "t.csv", "--hash")
        with open(self.folder / "t.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["slide_id"], row["image_id"], row["channel"], row["modality"], bool(row["annotation"])) for row in rows],
                         [("a_0000", "a", "T1", "MR", True), ("a_0001", "a", "CT", "CT", False),
                          ("b_0000", "b", "T1", "MR", True), ("b_0001", "b", "CT", "CT", False)])
        done = self.json("ingest", "t.csv", "--out", "stores")
        self.assertEqual(len(done["stores"]), 2)
        self.assertTrue(all(one["already_there"] for one in self.json("ingest", "t.csv", "--out", "stores")["stores"]))
        self.assertTrue(all(one["already_there"] for one in self.json("ingest", "d", "--out", "stores")["stores"]))  # without a table
        one = self.json("ingest", "d", "--where", "image_id=b", "--out", "direct")["stores"]
        self.assertEqual(len(one), 1)
        with open(self.folder / "stores/manifest.csv", newline="", encoding="utf-8") as file:
            stores = {row["source"].rsplit("/", 1)[1]: self.folder / "stores" / row["store"] for row in csv.DictReader(file)}
        self.assertEqual(set(stores), {"a_0000.nii", "b_0000.nii"})
        for name, dtype in (("a", "int16"), ("b", "float32")):
            store = stores[f"{name}_0000.nii"]
            ome, own = (self.own(store)[key] for key in ("ome", "patchbay"))
            self.assertEqual([axis["name"] for axis in ome["multiscales"][0]["axes"]], ["c", "z", "y", "x"])
            self.assertEqual(ome["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"], [1.0, 2.0, 1.0, 1.5])
            self.assertEqual([channel["label"] for channel in ome["omero"]["channels"]], ["T1", "CT"])
            first, second = own["channels"]
            self.assertEqual((first["name"], second["name"], first["modality"]),
                             ("T1", "CT", {"name": "MR", "unit": "arbitrary", "from": "table"}))
            self.assertEqual(second["modality"]["unit"], "HU")
            counted = "value_histogram" if dtype == "int16" else "value_statistics"
            self.assertTrue(counted in first and counted in second and "body_histogram" in second and "body_histogram" not in first)
            for key in ("modality", "acquisition", "value_range", "value_histogram", "value_statistics"):
                self.assertNotIn(key, own)
            self.assertEqual(self.json("verify", store)["clean"], True)
            said = self.command("inspect", store).stdout
            self.assertIn(f"channel       T1: MR (table), {'0 to 274' if name == 'a' else '1 to 275'}, mean ", said)
            self.assertIn("channel       CT: CT (table), ", said)
        self.assertIn("T1, CT, not ", self.renamed())
        self.labels_and_copies(stores["a_0000.nii"])
        for name in ("a", "b"):
            self.normalised_over_the_mask(stores[f"{name}_0000.nii"], name)
        self.assertIn(stores["b_0000.nii"].name, self.command("forget", "--slide", "b_0001", "--in", self.folder).stdout)
        if not harness.oracles("numpy", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with NumPy and zarr")
        depth, height, width = SIZE
        for name, dtype in (("a", "int16"), ("b", "float32")):
            shape, found, values, chunks, _ = self.look(stores[f"{name}_0000.nii"])
            self.assertEqual((shape, found, chunks[0]), ([2, *SIZE], dtype, 1))
            # Canonical axes run as the file's own here: to the left, to posterior and to superior.
            self.assertEqual(values, [value(z, y, x) for value in (self.MR[name], self.CT[name])
                                      for z in range(depth) for y in range(height) for x in range(width)])

    def renamed(self):
        """The refusal of a store that is there with other names of channels; the table of the 4-D file has none."""
        folder = self.folder / "renamed"
        self.four_d("renamed", ("T1", "CT"))
        self.json("ingest", "renamed/imagesTr", "--out", "named")
        (folder / "dataset.json").write_text(json.dumps({"modality": {"0": "T1", "1": "T2"}, "labels": {"0": "background"}}))
        return self.command("ingest", "renamed/imagesTr", "--out", "named").stderr

    def labels_and_copies(self, store):
        done = self.json("labels", "import", "t.csv", "--stores", "stores", "--set", "lesion", "--classes", "t.classes.yaml")
        self.assertEqual(len(done["imported"]), 2)
        (labels,) = (store / "labels").glob("lesion.*")
        self.assertEqual(json.loads((labels / "0/zarr.json").read_text())["shape"], list(SIZE))
        self.assertTrue((labels / "histograms.index").exists() and (labels / "histograms_1.index").exists())
        self.assertTrue(self.json("verify", store)["clean"])
        self.json("convert", store, "--to", "lz4", "--out", "lz4")
        copy = self.only("lz4")
        self.assertTrue(self.json("verify", copy)["clean"])
        self.assertEqual(self.own(copy)["patchbay"]["pixel_digest"], self.own(store)["patchbay"]["pixel_digest"])
        self.assertEqual([one["label"] for one in self.own(copy)["ome"]["omero"]["channels"]], ["T1", "CT"])
        planar = self.folder / "planar" / self.json("convert", store, "--to", "ngff-0.4", "--out", "planar")["stores"][0]["name"]
        self.assertEqual(json.loads((planar / "0/0/.zarray").read_text())["shape"], [1, 2, *SIZE])
        self.assertTrue((planar / "0/0/0/1/5/0/0").exists() and not (planar / "0/0/0/2").exists())
        self.assertIn("2-D images", self.command("convert", store, "--to", "svs", "--out", "svs").stderr)
        self.json("preview", store, "--out", "sheet.png")

    def normalised_over_the_mask(self, store, name):
        """Each channel by the voxels of its own below the lesion, as TorchIO's formula has it; a lock takes one channel."""
        run = self.folder / f"run-{name}.yaml"
        run.write_text(f"dataset: {store}\nnumerics: cpu\npatch: {{size: [6, 20, 18], fill: 0}}\nsampling: {{order: sequential}}\n"
                       "batch: {global_size: 1, dtype: float32}\npreprocess: [zscore: {over: mask, mask: lesion}]\n")
        self.json("stream", run, "--digest", "--gpus", "none", "--cpus", 1, "--save", f"normalised-{name}")
        (saved,) = (self.folder / f"normalised-{name}").glob("*image.npy")
        got = struct.unpack(f"<{2 * math.prod(SIZE)}f", saved.read_bytes()[-8 * math.prod(SIZE):])
        places = [(z, y, x) for z in range(SIZE[0]) for y in range(SIZE[1]) for x in range(SIZE[2])]
        for channel, value in enumerate((self.MR[name], self.CT[name])):
            below = [value(*at) for at in places if at[1] > 10]
            mean, std = statistics.fmean(below), statistics.pstdev(below)
            off = max(abs((value(*at) - mean) / std - got[channel * len(places) + i]) for i, at in enumerate(places))
            self.assertLess(off, 1e-5, (name, channel))  # roundings of float32 of up to 5 deviations
        run.write_text(run.read_text().replace("[zscore: {over: mask, mask: lesion}]", "[ct_normalize: {}]\nlabels: {set: lesion}"))
        self.assertIn("its numbers are those of one channel, and 2 are read: choose one by patch.channels", self.command("lock", run).stderr)
        run.write_text(run.read_text().replace("fill: 0", "channels: [CT]"))
        self.json("lock", run)
        numbers = json.loads((self.folder / f"run-{name}.lock").read_text())["statistics"]["ct_foreground"]
        below = [self.CT[name](*at) for at in places if at[1] > 10]
        self.assertEqual(numbers["voxels"], len(below))
        self.assertLess(abs(numbers["mean"] - statistics.fmean(map(round, below))), 1e-9)

    def four_d(self, folder, names, size=SIZE):
        """A NIfTI of a volume for each name, each 1000 higher than the one before."""
        path = self.volume(f"{folder}/imagesTr/x.nii", size=size)
        data = bytearray(path.read_bytes())
        struct.pack_into("<h", data, 40, 4)
        struct.pack_into("<h", data, 48, len(names))
        voxels = struct.unpack(f"<{(len(data) - 352) // 2}h", data[352:])
        for channel in range(1, len(names)):
            data += struct.pack(f"<{len(voxels)}h", *(value + 1000 * channel for value in voxels))
        path.write_bytes(data)
        (path.parents[1] / "labelsTr").mkdir()
        shutil.copy(self.volume("mask.nii", lambda z, y, x: 1, size=size, dtype="B"), path.parents[1] / "labelsTr/x.nii")
        (path.parents[1] / "dataset.json").write_text(json.dumps(
            {"modality": {str(i): name for i, name in enumerate(names)}, "labels": {"0": "background", "1": "lesion"},
             "training": [{"image": "./imagesTr/x.nii", "label": "./labelsTr/x.nii"}]}))
        return path

    def test_a_file_of_four_axes_takes_the_names_of_its_dataset(self):
        path = self.four_d("m", ("FLAIR", "T1w", "t1gd"), size=(40, 36, 34))
        self.json("scan", "m", "--out", "t.csv")
        with open(self.folder / "t.csv", newline="", encoding="utf-8") as file:
            (row,) = csv.DictReader(file)
        self.assertEqual((row["slide_id"], row["modality"], "channel" in row), ("x", "MR", False))
        self.json("ingest", "t.csv", "--out", "stores")
        store = self.only("stores")
        own = self.own(store)["patchbay"]
        self.assertEqual([(one["name"], one["modality"]["name"], one["value_range"]["min"]) for one in own["channels"]],
                         [("FLAIR", "MR", 0), ("T1w", "MR", 1000), ("t1gd", "MR", 2000)])
        self.assertEqual(own["modality"]["name"], "MR")
        self.assertEqual(own["source_sha256"], own["channels"][1]["source_sha256"])
        self.assertTrue(self.json("verify", store)["clean"])
        if harness.oracles("numpy", "zarr"):
            shape, _, values, _, levels = self.look(store)
            self.assertEqual((shape, levels), ([3, 40, 36, 34], [[3, 40, 36, 34], [3, 20, 18, 17]]))
            half = len(values) // 3
            self.assertEqual([value - 2000 for value in values[2 * half:]], values[:half])
        shutil.move(path, self.folder / "x.nii")
        self.assertIn("axis 4 of 3: volumes without names: a dataset.json above imagesTr", self.refused("x.nii"))
        (self.folder / "m/dataset.json").write_text(json.dumps({"modality": {"0": "T1", "1": "T1", "2": "T2"}, "labels": {"0": "b"}}))
        shutil.move(self.folder / "x.nii", path)
        self.assertIn("channel 'T1' is there twice", self.refused(path))
        self.assertIn("channel 'T1' is there twice", self.command("scan", "m", "--out", "u.csv").stderr)
        path.write_bytes(path.read_bytes()[:-100])
        (self.folder / "m/dataset.json").write_text(json.dumps({"modality": {"0": "A", "1": "B", "2": "C"}, "labels": {"0": "b"}}))
        self.assertIn("ends before its voxels do", self.refused(path))

    # Origin and step along x, y, z of the second of two series.
    OTHER = ((-10.3, -12.4, 0.2), (2.2, 2.2, 2.8))

    def series(self, name, number, origin=(-10.0, -12.0, 0.0), step=(2.0, 2.0, 3.0), **elements):
        x, y, z = origin
        dicom_files.single(self.folder / name, "MR", number,
                           per_slice=lambda k: {0x00200032: ("DS", f"{x}\\{y}\\{z + step[2] * k:g}")},
                           elements={0x00280030: ("DS", f"{step[1]}\\{step[0]}"), **{int(tag[1:], 16): value for tag, value in elements.items()}})

    def test_series_are_resampled_onto_the_first_as_scipy_does(self):
        self.series("first", 1)
        self.series("second", 2, *self.OTHER)
        self.json("ingest", self.table("first,p,early", "second,p,late"), "--out", "stores", "--orientation", "source")
        store = self.only("stores")
        own = self.own(store)["patchbay"]
        first, second = own["channels"]
        (step,) = [step for step in second["transform_log"] if step["step"] == "resample onto the first channel"]
        self.assertEqual((step["order"], step["outside"], step["from_shape"]), (1, 0.0, [4, 6, 5]))
        self.assertNotIn("resample", json.dumps(first["transform_log"]))
        self.assertEqual(len(set(own["identity"]["series"])), 2)
        found = self.json("forget", "--patient", "4711", "--in", self.folder / "stores")["traces"]
        self.assertEqual([trace["line"] for trace in found if trace["path"].endswith("verdicts.csv")], [2, 3])  # both series
        self.assertEqual((own["modality"]["name"], first["modality"]["from"]), ("MR", "header"))
        if not harness.oracles("numpy", "scipy", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with NumPy, SciPy and zarr")
        rows, columns = dicom_files.PLANE["rows"], dicom_files.PLANE["columns"]
        values = [[dicom_files.stored(k)[columns * r:columns * r + columns] for r in range(rows)] for k in range(4)]
        asked = {"store": str(store), "series": [[values, (-10.0, -12.0, 0.0), (2.0, 2.0, 3.0)], [values, *self.OTHER]]}
        done = subprocess.run([harness.PYTHON, "-c", ONTO_FIRST, json.dumps(asked)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        farthest, outside, rounding = json.loads(done.stdout)
        self.assertTrue(farthest <= 0.5 + 1e-6 and rounding > 0.3, done.stdout)
        self.assertEqual(outside, 0)

    def test_what_lies_elsewhere_is_refused_with_the_distance_unless_it_is_consented_to(self):
        self.series("first", 1)
        self.series("shifted", 2, (-10.0, -12.0, 5.0))
        self.series("framed", 3, t00200052=("UI", "1.2.10"))
        self.series("stranger", 4, t00100020=("LO", "4712"))
        cases = {"shifted": "channel 'b': its corners lie up to 5 mm from those of the first channel, more than a voxel (3 mm) (--repair channel-grid",
                 "framed": "channel 'b': its frame of reference is another than the first channel's (--repair channel-grid",
                 "stranger": "channel 'b': it is of another patient than the first channel"}
        for name, reason in cases.items():
            self.assertIn(reason, self.refused(self.table("first,p,a", f"{name},p,b")), name)
        self.json("ingest", self.table("first,p,a,", "shifted,p,b,channel-grid", columns="path,image_id,channel,repair"), "--out", "stores")
        store = self.only("stores")
        self.assertIn("warning       channel 'b': repaired (channel-grid): its corners lie up to 5 mm", self.command("inspect", store).stdout)
        self.assertIn("exists, and was made with --repair channel-grid",
                      self.command("ingest", self.table("first,p,a", "shifted,p,b"), "--out", "stores").stderr)
        self.assertIn("another patient", self.refused(self.table("first,p,a", "stranger,p,b"), "--repair", "channel-grid"))

    def test_tables_whose_rows_do_not_make_images_are_refused_by_line(self):
        for name in ("a", "b", "c", "d"):
            self.volume(f"{name}.nii")
        cases = {
            ("a.nii,p,x", "b.nii,p,x"): "t.csv:3: column 'channel': image 'p' has a channel 'x' in line 2 too",
            ("a.nii,p,x", "b.nii,p,y", "c.nii,q,x"): "t.csv:4: column 'channel': image 'q' has no channel 'y', which line 3 has",
            ("a.nii,,x", "b.nii,p,y"): "t.csv:2: column 'image_id': empty or no such column",
            ("a.nii,p,x", "b.nii,q,x"): "t.csv:2: column 'channel': 'x' is the only channel of the table",
            ("a.nii,p,x", "b.nii,p,y", "c.nii,p,"): "t.csv:4: column 'channel': empty, and image 'p' has channels in line 2",
            ("a.nii,p,x", f"b.nii,p,{'y' * 65}"): "t.csv:3: column 'channel': channel 'yyy",
        }
        for rows, reason in cases.items():
            self.assertIn(reason, self.refused(self.table(*rows)))
        (self.folder / "two").mkdir()
        for name in ("a", "b"):
            shutil.copy(self.folder / f"{name}.nii", self.folder / "two")
        self.assertIn("channel 'x': it is several volumes, and a channel is one", self.refused(self.table("two,p,x", "c.nii,p,y")))
        # Units may differ, and images of one channel stand in the same table.
        self.json("ingest", self.table("a.nii,p,x,CT", "b.nii,p,y,MR", "c.nii,,,OT", columns="path,image_id,channel,modality"), "--out", "stores")
        self.assertEqual(sorted(len(self.own(store)["patchbay"].get("channels", [])) for store in (self.folder / "stores").glob("*.zarr")), [0, 2])


if __name__ == "__main__":
    harness.main()
