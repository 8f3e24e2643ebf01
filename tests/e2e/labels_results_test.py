"""Results of `patchbay map` as label sets and as files for other programs: the pixels are those of the class maps."""
import json
import pathlib
import shutil
import struct
import subprocess

import harness
from trainer_test import MODULE, ModuleCase

# Two class maps of a slide's red, and one of a volume's Hounsfield units; rows that depend on their patch alone.
FUNCTION = """
import numpy

def predict(model, batch):
    red = numpy.asarray(batch["image"])[..., :1].transpose(0, 3, 1, 2).astype(numpy.float32) / 255
    return {"stain": numpy.concatenate([red, 1 - red], axis=1), "spots": 1 - red}
"""
VOLUME_FUNCTION = """
import numpy

def predict(model, batch):
    hu = numpy.asarray(batch["image"]).astype(numpy.float32)
    bone = numpy.clip((hu - 100) / 400, 0, 1)
    soft = numpy.clip((hu + 600) / 500, 0, 1) * (1 - bone)
    return {"tissue": numpy.concatenate([1 - bone - soft, soft, bone], axis=1)}
"""
# Arguments: a class map, a label image, a TIFF mask of it or "", one of its level 2 or "". Prints "ok".
SAME_PIXELS = r"""
import sys
import numpy, zarr
maps, labels = (zarr.open_group(path, mode="r") for path in sys.argv[1:3])
def nearest(level, shape, ratio):
    array = numpy.asarray(maps[str(level)])
    y, x = (numpy.minimum(n - 1, numpy.floor((numpy.arange(side) + 0.5) / ratio).astype(int)) for n, side in zip(array.shape, shape))
    return array[y[:, None], x[None, :]]
got = numpy.asarray(labels["0"])[0]
expected = nearest(0, got.shape, 2)
wrong = [] if numpy.array_equal(got, expected) else [f"set: {(got != expected).sum()} of {got.size}"]
if not (expected == 255).any() or len(numpy.unique(expected)) < 3:
    wrong.append("the function is too simple")
if sys.argv[3]:
    import tifffile
    if not numpy.array_equal(tifffile.imread(sys.argv[3]), expected):
        wrong.append("TIFF")
    if not numpy.array_equal(tifffile.imread(sys.argv[4]), nearest(1, numpy.asarray(labels["2"])[0].shape, 1 / 4)):
        wrong.append("reduced TIFF")
print("; ".join(wrong) or "ok")
"""
# Arguments: outlines of the set and of the results, the class map and the map's channel of each class. Prints "ok".
SAME_OUTLINES = r"""
import json, sys
import numpy, zarr
ours, theirs = (json.load(open(path))["features"] for path in sys.argv[1:3])
probabilities, channels = numpy.asarray(zarr.open_group(sys.argv[3], mode="r")["0"]), json.loads(sys.argv[4])
wrong, checked = [], 0
height, width = (2 * n for n in probabilities.shape[1:])
for feature, plain in zip(theirs, ours, strict=True):
    mean, name = feature["properties"]["measurements"].pop("Mean probability", None), feature["properties"]["classification"]["name"]
    if feature != plain:
        wrong.append(f"{feature['id']} is not {plain['id']}")
    if (mean is None) != (name not in channels):
        wrong.append(f"{name}: {mean}")
    points = len(feature["geometry"]["coordinates"][0])
    if mean is None or (points < 30 and checked > 20):
        continue
    checked += 1
    inside = numpy.zeros((height, width), bool)
    for ring in feature["geometry"]["coordinates"]:
        for (ax, ay), (bx, by) in zip(ring, ring[1:]):
            for row in range(int(numpy.ceil(min(ay, by) - 0.5)), int(numpy.ceil(max(ay, by) - 0.5))):
                inside[row, round(ax + (row + 0.5 - ay) * (bx - ax) / (by - ay)):] ^= True
    y, x = numpy.nonzero(inside)
    values = probabilities[channels[name], y // 2, x // 2]
    if abs(mean - values[values != 255].mean() / 254) > 1e-9:
        wrong.append(f"{feature['id']}: {mean}, not {values[values != 255].mean() / 254}")
print("; ".join(wrong) or ("ok" if checked > 20 else f"{checked} outlines"))
"""
# Arguments: a class map, a NIfTI of it, the source's NIfTI. Prints "ok".
SAME_VOXELS = r"""
import sys
import nibabel, numpy, zarr
export, source = nibabel.load(sys.argv[2]), nibabel.load(sys.argv[3])
wrong = []
if not numpy.array_equal(export.affine, source.affine) or export.shape != source.shape:
    wrong.append(f"geometry: {export.affine} {source.affine}")
stored = numpy.asarray(zarr.open_group(sys.argv[1], mode="r")["0"])
back = nibabel.as_closest_canonical(export)  # the store runs to left and posterior: S, P, L
if not numpy.array_equal(numpy.asarray(back.dataobj).transpose(2, 1, 0)[:, ::-1, ::-1], stored):
    wrong.append("voxels")
if len(numpy.unique(stored)) < 3:
    wrong.append("the function is too simple")
print("; ".join(wrong) or "ok")
"""


class LabelsOfResults(ModuleCase):
    def setUp(self):
        super().setUp()
        if not harness.oracles("numpy", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with numpy and zarr")

    def map(self, config, function, out):
        (self.folder / "map.yaml").write_text(config, encoding="utf-8")
        (self.folder / "predict.py").write_text(function, encoding="utf-8")
        done = subprocess.run([harness.BIN / "patchbay", "map", "map.yaml", "--call", "predict.py", "--out", out], cwd=self.folder, text=True,
                              capture_output=True, env=self.environment(PYTHONPATH=str(MODULE), PATCHBAY_PYTHON=harness.PYTHON), check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-6000:])

    def results(self):
        """Stores and results of two slides, copied: the map at half of their resolution, with gaps that no patch covered."""
        def make():
            stores = self.store([self.slide(f"{name}.svs", size, seed) for seed, (name, size) in enumerate((("a", "701x503"), ("b", "601x400")), 1)], "made")
            um = self.json("inspect", sorted(stores.glob("*.zarr"))[0])["mpp"][0]
            self.map(f"dataset: {stores}\nnumerics: cpu\npatch: {{size: [64, 64], mpp: [{um * 2}], mpp_tolerance: 0}}\n"
                     "sampling: {order: sequential, stride: [80, 80]}\nbatch: {global_size: 16, dtype: uint8, layout: nhwc}\n"
                     "outputs:\n  stain: {kind: map, classes: [Pale Red, dark], class_map: argmax}\n"
                     "  spots: {kind: map, classes: [spot], class_map: [0.4], blend: uniform}\n", FUNCTION, "out")
            return self.keep(stores), self.keep(self.folder / "out")
        stores, results = self.once("slides", make)
        return self.copied(stores, "two"), self.copied(results, "results")

    def copied(self, path, name):
        shutil.rmtree(self.folder / name, ignore_errors=True)
        return pathlib.Path(shutil.copytree(path, self.folder / name))

    def importing(self, results, *words, name="s", stores="two"):
        return self.json("labels", "import", results, "--set", name, "--stores", stores, *words)["imported"]

    def images(self, results):
        return sorted(results.glob("0*"))

    def attributes(self, row):
        document = json.loads((pathlib.Path(row["store"]) / "labels" / row["revision"] / "zarr.json").read_text())
        return document["attributes"]["patchbay"]

    def test_slides_have_the_pixels_of_their_class_maps(self):
        _, results = self.results()
        for output, channels in (("stain", {"pale_red": 0, "dark": 1}), ("spots", {"spot": 0})):
            rows = self.importing(results, "--output", output)
            again = self.importing(results, "--output", output)
            self.assertEqual([row["already_there"] for row in rows + again], [False, False, True, True])
            self.json("labels", "export", results, "--stores", "two", "--output", output, "--out", f"{output}-tiff", "--to", "tiff")
            self.json("labels", "export", results, "--stores", "two", "--output", output, "--out", f"{output}-json", "--to", "geojson")
            for row, image in zip(rows, self.images(results)):
                self.assertEqual(pathlib.Path(row["file"]).parent.name, image.name)
                said = self.attributes(row)["labels"]
                self.assertEqual(said["results"], {"name": json.loads((results / "results.json").read_text())["name"], "output": output})
                revision = pathlib.Path(row["store"]) / "labels" / row["revision"]
                reduced = self.folder / "reduced.tif"
                self.json("labels", "export", image, "--stores", "two", "--output", output, "--out", reduced, "--level", 2, "--force")
                words = [self.folder / f"{output}-tiff/{image.name}.tif", reduced] if harness.oracles("tifffile", "imagecodecs") else ["", ""]
                self.look(SAME_PIXELS, image / f"{output}.classes.ome.zarr", revision, *words)
                self.json("labels", "export", row["store"], "--set", "s", "--out", "set.geojson", "--force")
                self.look(SAME_OUTLINES, self.folder / "set.geojson", self.folder / f"{output}-json/{image.name}.geojson",
                          image / f"{output}.ome.zarr", json.dumps(channels))
        self.outlines_come_back(rows[0], self.images(results)[0])
        self.assertEqual(self.json("verify", rows[0]["store"])["clean"], True)

    def test_a_models_tissue_is_the_set_that_patches_are_drawn_by(self):
        stores = self.store([self.slide("a.svs", "701x503", 1)], "made")
        self.map(f"dataset: {stores}\nnumerics: cpu\npatch: {{size: [64, 64]}}\nsampling: {{order: sequential}}\n"
                 "batch: {global_size: 16, dtype: uint8, layout: nhwc}\n"
                 "outputs: {mask: {kind: map, classes: [tissue], class_map: [0.4], blend: uniform}}\n",
                 FUNCTION.replace('{"stain": numpy.concatenate([red, 1 - red], axis=1), "spots": 1 - red}', '{"mask": 1 - red}'), "out")
        (row,) = self.importing(self.folder / "out", name="tissue", stores=stores)
        counted = {one["name"]: one["pixels"] for one in row["classes"]}
        self.assertEqual((counted["none"] > 0, counted["tissue"] > 0), (True, True), counted)
        run = self.run_file(stores, patch=64)
        text, patches = run.read_text(), []
        for tissue in ("", ", tissue: {min_fraction: 0}", ", tissue: {min_fraction: 0.05}"):
            run.write_text(text.replace("order: shuffled", f"order: shuffled{tissue}"))
            patches.append(self.json("config", "check", run)["patches"])
        self.assertEqual(patches[0], patches[1])
        self.assertTrue(0 < patches[2] < patches[0], patches)

    def outlines_come_back(self, row, image):
        """Not covered is an exclusion in a set with a background, and a program for outlines gives it back."""
        features = json.loads((self.folder / f"spots-json/{image.name}.geojson").read_text())["features"]
        self.assertEqual({f["properties"]["classification"]["name"] for f in features}, {"spot", "not_covered"})
        (self.folder / "classes.yaml").write_text(
            "exhaustive: true\nbackground: none\nclasses:\n  - {name: none, value: 0}\n  - {name: spot, value: 1}\n  - {name: not_covered, value: 255}\n")
        for file in (f"spots-json/{image.name}.geojson", f"spots-tiff/{image.name}.tif"):
            again = self.json("labels", "import", row["store"], file, "--set", "again", "--classes", "classes.yaml")["imported"][0]
            self.assertEqual(self.attributes(again)["pixel_digest"], self.attributes(row)["pixel_digest"], file)
            drawn = [[one["pixels"] for one in each["classes"] if one["value"] < 255] for each in (again, row)]
            self.assertEqual(drawn[0], drawn[1], file)

    def look(self, script, *words):
        found = subprocess.run([harness.PYTHON, "-c", script, *map(str, words)], capture_output=True, text=True, check=False)
        self.assertEqual(found.stdout.strip(), "ok", found.stderr[-3000:])

    def volumes(self, grid):
        """A folder with the stores of a NIfTI and of a CT series, and results of both at half of their resolution in plane."""
        harness.nifti(self.folder / "v.nii", (12, 41, 36), (2.5, 0.75, 0.75), lambda z, y, x: 25 * x + 9 * y - 20 * z - 700, sides=(1, -1, 1))
        self.command("synth", "ct", "series", "--size", "12x64x48", "--pixel", "0.75")
        for source in ("v.nii", "series"):
            self.json("ingest", source, "--out", "volumes", "--keep-names", "--modality", "CT")
        self.map(f"dataset: volumes\nnumerics: cpu\npatch: {{size: [8, 16, 16], spacing: [2.5, 1.5, 1.5]}}\n"
                 "sampling: {order: sequential, stride: [4, 8, 8]}\nbatch: {global_size: 8, dtype: float32}\n"
                 f"outputs: {{tissue: {{kind: map, classes: [air, soft, bone], class_map: argmax, grid: {grid}}}}}\n", VOLUME_FUNCTION, "results")
        images = {json.loads((image / "image.json").read_text())["path"]: image for image in self.images(self.folder / "results")}
        (flat, series) = (next(image for path, image in images.items() if name in pathlib.Path(path).name) for name in ("v", "series"))
        return flat, series

    def test_volumes_on_their_stores_grid_return_to_their_sources(self):
        flat, series = self.volumes("stored")
        rows = {pathlib.Path(row["file"]).parent: row for row in self.importing("results", stores="volumes")}
        self.assertEqual({(row["format"], row["grid"]) for row in rows.values()}, {("map", "same")})
        for ending in ("nii.gz", "nrrd"):
            said = self.json("labels", "export", "results", "--out", "files", "--to", "nifti" if ending == "nii.gz" else ending)
            self.assertEqual([one["grid"] for one in said["files"]], ["same", "same"])
        if harness.oracles("nibabel"):
            self.look(SAME_VOXELS, flat / "tissue.classes.ome.zarr", self.folder / f"files/{flat.name}.nii.gz", self.folder / "v.nii")
        done = self.command("labels", "export", "results", "--out", "segs", "--to", "seg", "--source", "series", "--json")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("a SEG is of a DICOM series", json.loads(done.stdout)["failed"][0]["reason"])
        self.assertEqual([path.name for path in (self.folder / "segs").iterdir()], [f"{series.name}.dcm"])
        (self.folder / "classes.yaml").write_text("classes:\n" + "".join(
            f"  - {{name: {name}, value: {value}}}\n" for value, name in enumerate(("air", "soft", "bone"))))
        for image, file in ((flat, f"files/{flat.name}.nii.gz"), (series, f"files/{series.name}.nrrd"), (series, f"segs/{series.name}.dcm")):
            row = rows[image]
            again = self.json("labels", "import", row["store"], file, "--set", "again", "--classes", "classes.yaml")["imported"][0]
            self.assertEqual(self.attributes(again)["pixel_digest"], self.attributes(row)["pixel_digest"], file)

    def test_a_volume_on_the_patches_grid_is_taken_as_a_mask_on_that_grid(self):
        flat, _ = self.volumes("patch")
        row = next(row for row in self.importing("results", stores="volumes") if pathlib.Path(row["file"]).parent == flat)
        self.assertEqual(row["grid"], "resampled")
        found = subprocess.run([harness.PYTHON, "-c", "import sys, numpy, zarr; sys.stdout.buffer.write(numpy.asarray(zarr.open_group("
                                "sys.argv[1], mode='r')['0']).tobytes())", flat / "tissue.classes.ome.zarr"], capture_output=True, check=True)
        size = (12, 21, 18)
        self.assertEqual(len(found.stdout), 12 * 21 * 18)
        index = lambda z, y, x: found.stdout[(z * size[1] + y) * size[2] + x]
        # The store runs to superior, posterior and left; its first voxel is the last of the source's along x.
        harness.nifti(self.folder / "mask.nii", size, (2.5, 1.5, 1.5), index, "B", sides=(-1, -1, 1))
        header = bytearray((self.folder / "mask.nii").read_bytes())
        struct.pack_into("<f", header, 280 + 12, 35 * 0.75 - 0.375)
        struct.pack_into("<f", header, 280 + 28, -0.375)
        (self.folder / "mask.nii").write_bytes(header)
        (self.folder / "classes.yaml").write_text("classes:\n" + "".join(
            f"  - {{name: {name}, value: {value}}}\n" for value, name in enumerate(("air", "soft", "bone"))))
        mask = self.json("labels", "import", row["store"], "mask.nii", "--set", "mask", "--classes", "classes.yaml", "--clip")["imported"][0]
        self.assertEqual(self.attributes(mask)["pixel_digest"], self.attributes(row)["pixel_digest"])
        self.json("labels", "export", flat, "--out", "back.nii")
        again = self.json("labels", "import", row["store"], "back.nii", "--set", "again", "--classes", "classes.yaml")["imported"][0]
        self.assertEqual(self.attributes(again)["pixel_digest"], self.attributes(row)["pixel_digest"])

    def refused(self, *words, says, code=1, stores=("two",)):
        """Both of import and export end with the words, and nothing was written."""
        for command in (("import", "--set", "s"), ("export", "--out", "x", "--to", "tiff")):
            done = self.command("labels", command[0], "results", *command[1:], *words)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            self.assertIn(says, done.stderr)
            self.assertEqual([path for path in (self.folder / "x").glob("*")], [])
            for store in stores:
                self.assertEqual(list((self.folder / store).glob("*/labels/*")), [])

    def test_refusals_say_what_to_do(self):
        stores, results = self.results()
        words = ("--stores", "two", "--output", "spots")
        self.refused("--stores", "two", says="--output: name one of spots, stain")
        self.refused("--stores", "two", "--output", "red", says="--output red: no output with a class map has this name: name one of spots, stain")
        self.refused("--output", "spots", says="is no store; --stores DIR finds stores by their pixels")
        self.refused("--output", "spots", "--stores", "home", says="has none of its pixels")
        for extra, says in (("--classes", "the classes of their output"), ("--site", "the classes of their output")):
            done = self.command("labels", "import", "results", "--set", "s", *words, extra, "x")
            self.assertEqual((done.returncode, says in done.stderr), (2, True), done.stderr)
        store = sorted(stores.glob("*.zarr"))[0]
        for command, says in ((("import", store, "results", "--set", "s", "--output", "p", "--classes", "c"), "--output goes with a folder of results"),
                              (("import", store, "a.svs", "--set", "s"), "--classes: name the class table"),
                              (("export", store, "--out", "x.tif"), "--set: name the label set"),
                              (("export", "results", "--set", "s", "--out", "x.tif"), "--output names one"),
                              (("export", store, "--set", "s", "--out", "x.tif", "--output", "p"), "go with a folder of results")):
            done = self.command("labels", *command)
            self.assertEqual((done.returncode, says in done.stderr), (2, True), done.stderr)
        done = self.command("labels", "export", "results", "--out", "all.geojson", *words)
        self.assertEqual((done.returncode, (self.folder / "all.geojson").exists()), (2, False))
        self.assertIn("of results a folder of files is written", done.stderr)
        (results / "results.json").rename(self.folder / "results.json")
        (results / "results.json").symlink_to(self.folder / "results.json")
        self.refused(*words, says="results.json: a link")
        (results / "results.json").unlink()
        self.refused(*words, says="it has no results.json; name a store, a folder of results of `patchbay map`")
        (self.folder / "results.json").rename(results / "results.json")
        document = (results / "results.json").read_text()
        (results / "results.json").write_text(document.replace('"class_map"', '"other"'))
        self.refused("--stores", "two", says="no output has a class map: declare class_map")
        (results / "results.json").write_text(document)
        for image in self.images(results):
            image.rename(self.folder / image.name)
        self.refused(*words, says="no image is complete")

    def test_a_store_of_other_pixels_is_refused_by_name(self):
        stores, results = self.results()
        first, second = (json.loads((image / "image.json").read_text()) for image in self.images(results))
        paths = sorted(stores.glob("*.zarr"))
        for image, record, path in zip(self.images(results), (first, second), paths[::-1]):  # exchanged
            (image / "image.json").write_text(json.dumps({**record, "path": str(path)}))
        self.refused("--output", "spots", says=": its pixels are not those that the map was made from; run `patchbay map` again")
        (self.images(results)[0] / "image.json").write_text(json.dumps({**first, "path": str(paths[1]), "pixel_digest": None}))
        self.refused("--output", "spots", says="the map was made from another file than a store")

    def test_an_image_without_its_store_fails_alone(self):
        stores, results = self.results()
        first, second = self.images(results)
        records = [json.loads((image / "image.json").read_text()) for image in (first, second)]
        digests = {json.loads((path / "zarr.json").read_text())["attributes"]["patchbay"]["pixel_digest"]: path for path in stores.glob("*.zarr")}
        lost, moved = (digests[record["pixel_digest"]] for record in records)
        (self.folder / "some").mkdir()
        moved.rename(self.folder / "some" / moved.name)
        lost.rename(moved)  # other pixels where the second was mapped
        (first / "image.json").write_text(json.dumps({**records[0], "path": "/nowhere"}))
        (second / "image.json").write_text(json.dumps({**records[1], "path": str(moved)}))
        for command in (("import", "results", "--set", "s"), ("export", "results", "--out", "x", "--to", "tiff")):
            done = self.command("labels", *command, "--output", "spots", "--stores", "some", "--json")
            self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
            said = json.loads(done.stdout)
            self.assertIn("some has none of its pixels", said["failed"][0]["reason"])
            self.assertIn(first.name, json.dumps(said["failed"][0]))
            self.assertEqual([len(said.get("imported", said.get("files"))), len(said["failed"])], [1, 1])

    def test_one_hostile_image_fails_alone_and_by_name(self):
        words = ("--stores", "two", "--output", "spots")

        def of(path, change):
            document = json.loads(path.read_text())
            change(document)
            path.write_text(json.dumps(document))

        def rescaled(document, scale):
            document["attributes"]["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"] = scale

        def linked(path):
            path.rename(self.folder / "elsewhere")
            path.symlink_to(self.folder / "elsewhere")

        for says, harm in (
                ("different data types", lambda folder: of(folder / "0/zarr.json", lambda one: one.update(data_type="float32"))),
                ("another image", lambda folder: of(folder / "0/zarr.json", lambda one: one.update(shape=[3, 4]))),
                ("another image", lambda folder: of(folder / "0/zarr.json", lambda one: one.update(shape=[1 << 30, 1 << 30]))),
                ("scale holds", lambda folder: of(folder / "zarr.json", lambda one: rescaled(one, [-1, 0]))),
                ("another image", lambda folder: of(folder / "zarr.json", lambda one: rescaled(one, [1e-9, 1e300]))),
                ("makes no links", lambda folder: linked(next(path for path in folder.rglob("*") if path.is_file() and path.parent.name == "0"))),
                (": no ", linked)):
            _, results = self.results()
            shutil.rmtree(self.folder / "elsewhere", ignore_errors=True)
            (self.folder / "elsewhere").unlink(missing_ok=True)
            harm(self.images(results)[0] / "spots.classes.ome.zarr")
            with self.subTest(says=says):
                for command in (("import", "results", "--set", "s"), ("export", "results", "--out", "x", "--to", "tiff", "--force")):
                    done = self.command("labels", *command, *words, "--json")
                    self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
                    self.assertIn(says, done.stdout)
                    self.assertEqual(len(json.loads(done.stdout)["failed"]), 1, done.stdout)


if __name__ == "__main__":
    harness.main()
