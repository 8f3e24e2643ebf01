"""Scores of results against figures of other packages, a resampling of its own, and folders of results that lie."""
import csv
import json
import os
import pathlib
import shutil
import stat
import tempfile
import unittest

import sys

try:
    import numpy
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import fake_units

fake_units.install()
import patchbay  # noqa: E402
from patchbay import errors  # noqa: E402
from patchbay.map import function, run  # noqa: E402
from patchbay.score import measures, tally, truth  # noqa: E402

# Figures of `sample`: confusion_matrix, roc_auc_score and f1_score of scikit-learn 1.8.0, compute_dice and compute_iou (ignore_empty) of MONAI 1.6.1.
ORACLE = {
    "confusion": [[[772, 324], [437, 615], [774, 326]], [[765, 319], [434, 635], [803, 297]], [[1049, 419], [0, 0], [998, 404]], [[740, 336], [398,
        654], [792, 307]], [[780, 326], [376, 648], [760, 347]], [[763, 289], [409, 697], [771, 298]]],
    "dice": [[0.5014615058898926, 0.5308588743209839], [0.49578744173049927, 0.5474137663841248], [0.5968705415725708, None], [0.49234864115715027,
        0.5568326711654663], [0.5162144303321838, 0.5526652336120605], [0.5095158815383911, 0.5832635760307312]],
    "iou": [[0.3346337378025055, 0.36133959889411926], [0.3295993208885193, 0.3768545985221863], [0.4253852367401123, None], [0.3265666365623474,
        0.3858407139778137], [0.34790366888046265, 0.38185033202171326], [0.34184587001800537, 0.4116952121257782]],
    "auroc": [[0.6266647644018126, 0.7572857580668619], [0.6162482838521331, 0.769347486782005], [0.495145364543451, None], [0.6213546824421596,
        0.7755762422971024], [0.6412272379741744, 0.779198247924198], [0.6456105502381889, 0.7855171270162408]],
    "pooled_auroc": [0.6150563820613877, 0.7739705443961751],
    "f1": [0.5206651339357322, 0.5180165816326531],
}
# Figures of `patches`: those of scikit-learn 1.9.1, also of every draw of the intervals.
PATCHES = {
    "confusion": [[136, 99], [52, 162]], "accuracy": 0.6636971046770601, "f1": 0.6821052631578948, "auroc": 0.7514615231656393,
    "each": [0.6321428571428571, 0.6809440559440559, 0.713469387755102, 0.7990576496674058, 0.7580037664783427, 0.8001736111111111],
    "intervals": [[0.6735766712953779, 0.7890987667691468], [0.6290726817042607, 0.6912650602409639]],
}
CLASSES = {0: "stroma", 1: "tumour", 7: "fat"}  # values of the truth; the map does not know fat
IMAGES = [[1, 300, 330], [1, 200, 500], [1, 90, 90], [1, 128, 256], [1, 140, 120]]


def sample(number):
    """Truth (uint8; 255 = ignored) and probabilities of two classes (uint8; 255 = uncovered), with many ties."""
    draw = numpy.random.Generator(numpy.random.Philox(number))
    there = draw.choice([0, 1, 7, 255] if number != 2 else [0, 7, 255], size=(60, 80)).astype(numpy.uint8)
    tumour = numpy.clip(draw.integers(0, 60, there.shape) * 3 + 60 * (there == 1), 0, 254).astype(numpy.uint8)
    values = numpy.stack([254 - tumour, tumour])
    values[:, draw.random(there.shape) < 0.1] = 255
    return there, values


def patches(number):
    """Truth and probabilities of tumour of the patches of one image, with many ties."""
    draw = numpy.random.Generator(numpy.random.Philox(100 + number))
    there = draw.choice([0, 1, 255], size=40 + 30 * number)
    return there, (numpy.clip(draw.integers(0, 30, there.shape) + 8 * (there == 1), 0, 31) / 32).astype(numpy.float32)[:, None]


def predict(_, batch):
    image = numpy.asarray(batch["image"]).astype(numpy.float32) / 256
    return {"p": numpy.stack([image[..., 0], image[..., 1]], axis=1), "grade": image.reshape(len(image), -1).mean(axis=1)[:, None],
            "patch": image.mean(axis=(1, 2))[:, :2]}


def finish(_, rows):
    return {"grade": numpy.array([rows["grade"].mean(), rows["grade"].max()])}


class FakeStream:
    """Masks in the place of patchbay.attach: the class of a pixel follows from its place and its image."""
    numbers = {}  # images whose stores have other names

    @classmethod
    def number(cls, path):
        name = pathlib.Path(path).name.split(".")[0]
        return cls.numbers[name] if name in cls.numbers else int(name)

    def __init__(self, config, **options):
        with open(config["dataset"], newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        FakeStream.config, self.options = config, options
        self.images = [{**fake_record(self.number(row["path"])), **row, "mpp": float(row["mpp"] or "nan")} for row in rows]
        self._numbers = [self.number(row["path"]) for row in rows]

    def __iter__(self):
        size = [1] * (3 - len(FakeStream.config["patch"]["size"])) + FakeStream.config["patch"]["size"]
        step = [1, *FakeStream.config["sampling"].get("stride", size[1:])]
        for index, number in enumerate(self._numbers):
            extent = IMAGES[number]
            whole = numpy.full([n + m for n, m in zip(extent, size)], 255, numpy.uint8)
            whole[tuple(slice(n) for n in extent)] = mask_of(number)
            boxes = [(*(i * n for i, n in zip(at, step)), *size) for at in numpy.ndindex(*(-(-n // m) for n, m in zip(extent, step)))]
            for first in range(0, len(boxes), 5):
                some = boxes[first:first + 5]
                masks = numpy.stack([whole[z:z + d, y:y + h, x:x + w] for z, y, x, d, h, w in some])
                yield {"image_index": numpy.full(len(some), index, numpy.int32), "level": numpy.zeros(len(some), numpy.int32),
                       "box": numpy.array(some), "mask": masks[:, 0], "label": numpy.array([majority(mask) for mask in masks])}

    def close(self):
        pass


def majority(mask):
    """The commonest class of the pixels that are not ignored; 255 where there is none, and the least of several."""
    found = numpy.bincount(mask[mask != 255], minlength=1)
    return int(found.argmax()) if found.any() else 255


def fake_record(number):
    return {"slide_id": f"slide {number}", "level_sizes": [IMAGES[number]], "downsamples": [1.0], "mpp": 0.5, "spacing": None}


def mask_of(number):
    """Stripes of three classes and of pixels that are ignored, with noise; image 2 has no tumour."""
    z, y, x = numpy.indices(IMAGES[number])
    noise = numpy.random.Generator(numpy.random.Philox(number)).random(IMAGES[number])
    found = numpy.array([0, 1, 7, 255, 0], numpy.uint8)[(x // 25 + y // 40) % 5]
    found[noise < 0.1] = 1
    return numpy.where(found == 1, 0, found).astype(numpy.uint8) if number == 2 else found


class Case(unittest.TestCase):
    CELLS = [{"patient_id": "a", "site": "north", "grade": "0"}, {"patient_id": "a", "site": "south", "grade": "low"},
             {"patient_id": "b", "site": "south", "grade": ""}, {"patient_id": "c", "site": "", "grade": "1"}, {"patient_id": "d", "site": "north", "grade": "1"}]

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="patchbay-score-"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.addCleanup(setattr, truth, "attach", truth.attach)
        truth.attach = FakeStream
        self.out = self.folder / "out"

    def store(self, number, has_truth=True):
        store = self.folder / f"{number}.ome.zarr"
        store.mkdir()
        (store / "zarr.json").write_text(json.dumps({"attributes": {"patchbay": {"pixel_digest": f"{number:064x}"}}}), encoding="utf-8")
        if has_truth:
            revision = f"read.{number:016x}"
            (store / "labels" / revision).mkdir(parents=True)
            (store / "labels/zarr.json").write_text(json.dumps({"attributes": {"ome": {"labels": [revision]}}}), encoding="utf-8")
            table = {"classes": [{"name": name, "value": value} for value, name in {**CLASSES, 255: "unclear"}.items()]}
            (store / "labels" / revision / "zarr.json").write_text(json.dumps({"attributes": {"patchbay": {"labels": {"classes": table}}}}), encoding="utf-8")
        return store

    def map(self, dtype="uint8", class_map="argmax", without=(), size=64, reduce=1, scores=None):
        """Results of five images; the right half of each is not covered where y is below the middle. scores: classes of `patch`."""
        output = {"kind": "map", "classes": ["stroma", "tumour"], "dtype": dtype, **({"class_map": class_map} if class_map else {})}
        outputs = {"p": output, "grade": {"kind": "image", "columns": ["low", "high"]}, **({"patch": {"kind": "score", "classes": scores}} if scores else {})}
        config = {"patch": {"size": [size, size]}, "sampling": {"stride": [48, 48], "positions": "grid"}, "batch": {"global_size": 5}, "outputs": outputs,
                  "fake": {"folder": str(self.folder / "units"), "images": IMAGES, "mpp": 0.5, "leave_out": [0.4, 0.4]}}
        stores = [self.store(number, number not in without) for number in range(len(IMAGES))]

        class Units(fake_units.Units):
            def __init__(self, *words, **more):
                super().__init__(*words, **more)
                self.images = [{**record, "path": str(store), **cells} for record, store, cells in zip(self.images, stores, Case.CELLS)]

        def reduced(model, batch):
            found = predict(model, batch)
            kept = {"patch": found["patch"][:, 2 - len(scores):]} if scores else {}
            return {"grade": found["grade"], "p": found["p"][:, :, ::reduce, ::reduce], **kept}

        kept, run._units.Units = run._units.Units, Units
        try:
            run.consume(run.prepare(config, function.Function.of_objects(reduced, None, finish), {}), self.out, show=False)
        finally:
            run._units.Units = kept
        return self.out

    def pixels(self, image, dtype="uint8"):
        """(classes, values, masks) of what a map has stored, read by zarr-python."""
        import zarr
        folder = next(self.out.glob(f"{image:06d}-*"))
        values = numpy.asarray(zarr.open_group(folder / "p.ome.zarr", mode="r")["0"])
        classes = folder / "p.classes.ome.zarr"
        found = numpy.asarray(zarr.open_group(classes, mode="r")["0"]) if classes.exists() else values.argmax(axis=0).astype(numpy.uint8)
        found[numpy.isnan(values[0]) if dtype == "float16" else values[0] == 255] = 255
        return found, values, mask_of(image)[0]

    def refused(self, kind, *texts, name="read", **options):
        with self.assertRaises(kind) as raised:
            patchbay.score(self.out, truth=name, progress=False, **options)
        for text in texts:
            self.assertIn(text, str(raised.exception))
        self.assertEqual(list((self.out / ".staging").iterdir()), [])


@unittest.skipUnless(__import__("importlib.util").util.find_spec("zarr"), "needs zarr")
class Maps(Case):
    def area(self, values, own):
        """The Mann-Whitney statistic over all pairs, of few values by their counts."""
        levels = numpy.unique(values)
        wins, pairs = 0.0, float(own.sum()) * float((~own).sum())
        for level in levels:
            wins += float((values[own] == level).sum()) * (float((values[~own] < level).sum()) + float((values[~own] == level).sum()) / 2)
        return wins / pairs

    def check(self, found, dtype="uint8", images=range(5)):
        """All figures of a document against the arrays of the maps themselves."""
        whole, output = [self.pixels(i, dtype) for i in images], found["outputs"]["p"]
        known = [(mask != 255) & (classes != 255) for classes, _, mask in whole]
        first = output["groups"][0]
        self.assertEqual(first["scored"], sum(int(each.sum()) for each in known))
        self.assertEqual(first["uncovered"], sum(int(((mask != 255) & (classes == 255)).sum()) for classes, _, mask in whole))
        self.assertEqual(first["ignored"], sum(int((mask == 255).sum()) for _, _, mask in whole))
        table = numpy.array([[sum(int(((mask == value) & (classes == said) & has).sum()) for (classes, _, mask), has in zip(whole, known))
                              for said in (0, 1)] for value in CLASSES])
        self.assertEqual(first["confusion"], table.tolist())
        self.assertAlmostEqual(first["accuracy"]["value"], (table[0, 0] + table[1, 1]) / table.sum(), 12)
        for said, (value, name) in enumerate(list(CLASSES.items())[:2]):
            scores = []
            for classes, _, mask in ((c[has], v, m[has]) for (c, v, m), has in zip(whole, known)):
                own = mask == value
                scores.append(2 * (own & (classes == said)).sum() / (own.sum() + (classes == said).sum()) if own.any() else numpy.nan)
            self.assertAlmostEqual(first["classes"][name]["dice"]["value"], numpy.nanmean(scores), 12)
            self.assertEqual([first["classes"][name][key] for key in ("images", "absent")], [5 - int(numpy.isnan(scores).sum()), int(numpy.isnan(scores).sum())])
            values = numpy.concatenate([v[said][has] for (_, v, _), has in zip(whole, known)])
            own = numpy.concatenate([mask[has] == value for (_, _, mask), has in zip(whole, known)])
            self.assertAlmostEqual(first["classes"][name]["auroc"]["value"], self.area(values, own), 12)

    def test_figures_are_those_of_the_pixels(self):
        self.map()
        found = patchbay.score(self.out, truth="read", by=["site"], progress=False)
        self.check(found)
        self.assertEqual([(group["by"], group["group"], group["images"], group["patients"]) for group in found["outputs"]["p"]["groups"]],
                         [(None, None, 5, 4), ("site", "", 1, 1), ("site", "north", 2, 2), ("site", "south", 2, 2)])
        alone = found["outputs"]["p"]["groups"][1]
        self.assertEqual([alone["accuracy"][key] for key in ("low", "high")], [None, None])
        self.assertIsNotNone(found["outputs"]["p"]["groups"][0]["accuracy"]["low"])
        tumour = next(image for image in found["outputs"]["p"]["images"] if image["image"].startswith("000002"))["classes"]["tumour"]
        self.assertEqual(tumour, {"dice": None, "iou": None, "auroc": None})

    def test_float16_without_a_class_map(self):
        self.map("float16", None)
        self.check(patchbay.score(self.out, truth="read", progress=False), "float16")

    def test_thresholds_and_fewer_pixels_than_patches_have(self):
        self.map(class_map=[0.9, 0.5], reduce=4)
        found = patchbay.score(self.out, truth="read", progress=False)["outputs"]["p"]
        self.assertEqual(found["predicted"], ["none of them", "stroma", "tumour"])
        table = numpy.zeros((3, 3), int)
        for image in range(5):
            classes, _, _ = self.pixels(image)
            mask = mask_of(image)[0]
            mask = numpy.pad(mask, [(0, 4), (0, 4)], constant_values=255)[2::4, 2::4][:classes.shape[0], :classes.shape[1]]
            for row, value in enumerate(CLASSES):
                for said in range(3):
                    table[row, said] += int(((mask == value) & (classes == said)).sum())
        self.assertEqual(found["groups"][0]["confusion"], table.tolist())
        self.assertAlmostEqual(found["groups"][0]["accuracy"]["value"], (table[0, 1] + table[1, 2] + table[2, 0]) / table.sum(), 12)

    def test_images_without_truth_are_counted_apart(self):
        self.map(without=(1, 3))
        found = patchbay.score(self.out, truth="read", by="site", progress=False)["outputs"]["p"]
        self.assertEqual([(group["images"], group["without_truth"]) for group in found["groups"]], [(3, 2), (0, 1), (2, 0), (1, 1)])
        self.assertEqual([name[:6] for name in found["without_truth"]], ["000001", "000003"])
        self.assertIsNone(found["groups"][1]["accuracy"]["value"])

    def test_files_are_whole_and_their_owners_alone(self):
        os.umask(0o022)
        self.map()
        before = {path for path in self.folder.rglob("*")}
        (self.out / ".staging/killed").mkdir()  # left by one that was killed
        (self.out / ".staging/killed/lock").touch()
        found = patchbay.score(self.out, truth="read", by=["site"], progress=False)
        made = self.out / "score-read"
        self.assertEqual(found["out"], str(made.resolve()))
        self.assertEqual({path for path in self.folder.rglob("*")} - before, {made, *(made / f"score.{end}" for end in ("json", "csv", "html"))})
        for path in (made, *made.iterdir()):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o700 if path.is_dir() else 0o600, path)
        document = json.loads((made / "score.json").read_text(), parse_constant=self.fail)
        self.assertEqual({"out": found["out"], **document}, json.loads(json.dumps(found)))
        with open(made / "score.csv", newline="", encoding="utf-8") as file:
            rows = {(row["by"], row["group"], row["class"], row["figure"]): row["value"] for row in csv.DictReader(file)}
        figures = document["outputs"]["p"]["groups"][3]["classes"]["tumour"]
        self.assertEqual(float(rows["site", "south", "tumour", "auroc"]), figures["auroc"]["value"])
        self.assertEqual(rows["", "", "fat", "predicted as tumour"], str(document["outputs"]["p"]["groups"][0]["confusion"][2][1]))
        page = (made / "score.html").read_text()
        self.assertEqual(page.count("<svg"), 2)
        self.assertNotIn("http", page)
        again = patchbay.score(self.out, truth="read", progress=False)  # in its place
        self.assertEqual(json.loads((made / "score.json").read_text())["by"], [])
        self.assertEqual(again["outputs"]["p"]["groups"], found["outputs"]["p"]["groups"][:1])

    def test_outputs_of_kind_image_against_a_column(self):
        self.map()
        found = patchbay.score(self.out, truth="grade", progress=False)["outputs"]
        self.assertEqual(list(found), ["grade"])
        group = found["grade"]["groups"][0]
        self.assertEqual((group["images"], group["without_truth"], group["patients"]), (4, 1, 3))
        with open(self.out / "grade.csv", newline="", encoding="utf-8") as file:
            rows = [[float(row["low"]), float(row["high"])] for row in csv.DictReader(file)]
        known, there = numpy.array(rows)[[0, 1, 3, 4]], numpy.array([0, 0, 1, 1])
        self.assertEqual(group["confusion"], [[int(((there == i) & (known.argmax(axis=1) == j)).sum()) for j in (0, 1)] for i in (0, 1)])
        self.assertEqual(group["classes"]["high"]["auroc"]["value"], self.area(known[:, 1], there == 1))

    def patches(self, image):
        """(labels, scores) of the patches of one image, in order of its table."""
        with open(next(self.out.glob(f"{image:06d}-*")) / "patch.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        whole = numpy.pad(mask_of(image)[0], [(0, 64), (0, 64)], constant_values=255)
        corners = [(int(row["y"]), int(row["x"])) for row in rows]
        names = [name for name in ("stroma", "tumour") if name in rows[0]]
        return (numpy.array([majority(whole[y:y + 64, x:x + 64]) for y, x in corners]),
                numpy.array([[float(row[name]) for name in names] for row in rows]))

    def test_scores_of_patches_against_the_labels_of_their_boxes(self):
        self.map(scores=["stroma", "tumour"], without=(3,))
        found = patchbay.score(self.out, truth="read", by="site", progress=False)["outputs"]
        self.assertEqual(list(found), ["p", "patch"])
        self.assertEqual(FakeStream.config["labels"], {"set": "read", "label": {"rule": "majority"}})
        labels, values = (numpy.concatenate(each) for each in zip(*map(self.patches, (0, 1, 2, 4))))
        known, first = labels != 255, found["patch"]["groups"][0]
        self.assertEqual([first[key] for key in ("images", "without_truth", "scored", "uncovered", "ignored")], [4, 1, known.sum(), 0, (~known).sum()])
        table = [[int(((labels == value) & (values.argmax(axis=1) == said)).sum()) for said in (0, 1)] for value in CLASSES]
        self.assertEqual(first["confusion"], table)
        self.assertGreater(min(table[0]), 0)
        self.assertAlmostEqual(first["classes"]["tumour"]["auroc"]["value"], self.area(values[known, 1], labels[known] == 1), 12)
        self.assertIsNotNone(first["classes"]["tumour"]["auroc"]["low"])
        north = numpy.concatenate([self.patches(image)[0] for image in (0, 4)])
        self.assertEqual(found["patch"]["groups"][2]["scored"], (north != 255).sum())
        own = {image["image"][:6]: image["classes"]["stroma"] for image in found["patch"]["images"]}
        labels, values = self.patches(1)
        self.assertEqual((list(own), list(own["000001"])), (["000000", "000001", "000002", "000004"], ["auroc"]))
        self.assertAlmostEqual(own["000001"]["auroc"], self.area(values[labels != 255, 0], labels[labels != 255] == 0), 12)

    def test_scores_of_patches_against_a_column(self):
        self.map(scores=["tumour"])
        for path, cell in zip(sorted(self.out.glob("0*/image.json")), ("0", "", "tumour", "1", "1")):
            document = json.loads(path.read_text())
            document["columns"]["ill"] = cell
            path.write_text(json.dumps(document))
        found = patchbay.score(self.out, truth="ill", progress=False)
        self.assertEqual(list(found["outputs"]), ["patch"])
        group, per_image = found["outputs"]["patch"]["groups"][0], [self.patches(image)[1][:, 0] for image in (0, 2, 3, 4)]
        values, ill = numpy.concatenate(per_image), numpy.repeat([False, True, True, True], list(map(len, per_image)))
        self.assertEqual(group["confusion"], [[int(((values >= 0.5) == said)[ill == there].sum()) for said in (False, True)] for there in (False, True)])
        self.assertAlmostEqual(group["classes"]["tumour"]["auroc"]["value"], self.area(values, ill), 12)
        self.assertEqual((group["images"], group["without_truth"], found["outputs"]["patch"]["predicted"]), (4, 1, ["0", "tumour"]))
        self.assertIn("'tumour': expected a number below 2, or one of low, high", found["notes"][0])

    def test_tables_of_patches_that_lie(self):
        self.map(scores=["stroma", "tumour"])
        path = next(self.out.glob("000001-*")) / "patch.csv"
        good = path.read_text()
        header, first, *more = good.splitlines(keepends=True)
        cells = first.split(",")
        for text, says in (("", "its columns are not those"), (good.replace("tumour", "fat"), "its columns are not those"), (header + "1,2\n", "2 cells of 11"),
                           (header + ",".join([*cells[:4], "7", *cells[5:]]), "not on the grid"), (header + ",".join([*cells[:-1], "nan\n"]), "no number"),
                           (header + ",".join([*cells[:4], "9" * 30, *cells[5:]]), "not the scores"), (header + "x" * 200000, "not the scores")):
            with self.subTest(says=says):
                path.write_text(text)
                self.refused(errors.DataError, "patch.csv", says)
        path.unlink()
        self.refused(errors.DataError, "patch.csv: there is no such file")
        document = json.loads((self.out / "results.json").read_text())
        document["config"]["sampling"]["positions"] = "coords.csv"
        (self.out / "results.json").write_text(json.dumps(document))
        found = patchbay.score(self.out, truth="read", progress=False)
        self.assertEqual(list(found["outputs"]), ["p"])
        self.assertIn("outputs.patch: the place of its patches", found["notes"][0])

    def test_an_odd_cell_of_a_column_leaves_the_score_of_maps(self):
        self.map()
        for path in self.out.glob("0*/image.json"):
            document = json.loads(path.read_text())
            document["columns"]["read"] = "perhaps"
            path.write_text(json.dumps(document))
        found = patchbay.score(self.out, truth="read", progress=False)
        self.assertEqual(list(found["outputs"]), ["p"])
        self.assertIn("000000-slide-0 has 'perhaps'", found["notes"][0])

    def test_stores_that_have_moved_or_changed(self):
        self.map()
        whole = patchbay.score(self.out, truth="read", progress=False)["outputs"]["p"]["groups"]
        (self.folder / "moved").mkdir()
        (self.folder / "1.ome.zarr").rename(self.folder / "moved/one.ome.zarr")
        document = (self.folder / "3.ome.zarr/zarr.json").read_text()
        shutil.copytree(self.folder / "3.ome.zarr", self.folder / "moved/3.ome.zarr")
        (self.folder / "3.ome.zarr/zarr.json").write_text(document.replace(f"{3:064x}", "f" * 64))
        found = patchbay.score(self.out, truth="read", by="site", progress=False)
        self.assertEqual({name[:6]: "--stores" in reason for name, reason in found["excluded"].items()}, {"000001": True, "000003": False})
        self.assertIn("its pixels are not those that 000003-slide-3 was made of", found["excluded"]["000003-slide-3"])
        group = found["outputs"]["p"]["groups"][0]
        self.assertEqual([group[key] for key in ("images", "without_truth", "excluded")], [3, 0, 2])
        FakeStream.numbers = {"one": 1}
        self.addCleanup(setattr, FakeStream, "numbers", {})
        found = patchbay.score(self.out, truth="read", stores=self.folder / "moved", progress=False)
        self.assertEqual((found["excluded"], found["outputs"]["p"]["groups"]), ({}, whole))
        self.refused(errors.NotFoundError, "--stores /nowhere", stores="/nowhere")

    def test_kills_and_errors_of_the_disk_lose_no_score(self):
        import errno
        from unittest import mock
        self.map()
        patchbay.score(self.out, truth="read", progress=False)
        rename, ends = os.rename, []

        def killed(source, target):
            if ends:
                raise KeyboardInterrupt
            rename(source, target)
            ends.append(target)

        with mock.patch("os.rename", killed), self.assertRaises(KeyboardInterrupt):
            patchbay.score(self.out, truth="read", progress=False)
        self.assertFalse((self.out / "score-read").exists())
        self.refused(errors.ConfigError, "--by country", by=["country"])
        with mock.patch("patchbay.score.run._tally", side_effect=errors.DataError("damaged")), self.assertRaises(errors.DataError):
            patchbay.score(self.out, truth="read", progress=False)
        self.assertTrue((self.out / "score-read/score.json").exists())
        patchbay.score(self.out, truth="read", progress=False)
        self.assertEqual([path.name for path in self.out.iterdir() if "score" in path.name], ["score-read"])
        for number, kind, text in ((errno.ENOSPC, errors.ResourceError, "No space left on device: make room"), (errno.EROFS, errors.AccessError, "Read-only file system")):
            with mock.patch("patchbay.score.run._write", side_effect=OSError(number, os.strerror(number), "score.csv")), self.assertRaises(kind) as raised:
                patchbay.score(self.out, truth="read", progress=False)
            self.assertEqual(str(raised.exception).removesuffix(", or choose another --out"), f"score: score.csv: {text}")

    def test_results_that_lie(self):
        self.map()
        image, good = next(self.out.glob("000001-*")), self.folder / "good"
        shutil.copytree(self.out, good, symlinks=True)
        array, classes = image / "p.ome.zarr", image / "p.classes.ome.zarr"
        shard = next(path for path in (array / "0/c").rglob("*") if path.is_file())

        def rewrite(path, change):
            document = json.loads(path.read_text())
            change(document)
            path.write_text(json.dumps(document))

        def tiny(document):
            document["attributes"]["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"] = [1, 1e-320, 0.5]

        def link(path):
            shutil.move(path, self.folder / "elsewhere")
            path.symlink_to(self.folder / "elsewhere")

        def fifo(path):
            path.unlink()
            os.mkfifo(path)

        for change, text in (
                (lambda: (self.out / "results.json").write_text("{"), "results.json: no JSON"),
                (lambda: (self.out / "results.json").write_text("[" * 100000), "results.json: no JSON"),
                (lambda: rewrite(self.out / "results.json", lambda found: found.pop("config")), "run map again"),
                (lambda: rewrite(self.out / "results.json", lambda found: found["config"]["patch"].update(size=[0, 64])), "patch.size (0, 64)"),
                (lambda: rewrite(self.out / "results.json", lambda found: found["config"]["patch"].update(size=[float("inf"), 64])), "results.json: no JSON"),
                (lambda: (self.out / "results.json").unlink(), "results.json: there is no such file"),
                (lambda: rewrite(image / "image.json", lambda found: found.update(columns={"site": 3})), "image.json: it has no path and columns"),
                (lambda: rewrite(image / "image.json", lambda found: found.update(path="\ud800")), "image.json: no JSON"),
                (lambda: fifo(image / "image.json"), "image.json: it is no file"),
                (lambda: link(image), "it is a link"),
                (lambda: link(shard), "it is a link"),
                (lambda: link(self.out / ".staging"), "it is a link"),
                (lambda: shutil.rmtree(array), "p.ome.zarr/zarr.json: there is no such file"),
                (lambda: shutil.rmtree(classes / "0"), "p.classes.ome.zarr/0/zarr.json: there is no such file"),
                (lambda: rewrite(array / "zarr.json", lambda found: found["attributes"].pop("ome")), "zarr.json: no scale of a map"),
                (lambda: rewrite(array / "zarr.json", tiny), "p.ome.zarr: "),
                (lambda: rewrite(array / "0/zarr.json", lambda found: found["shape"].__setitem__(1, 199)), "pixels, and"),
                (lambda: [rewrite(each / "0/zarr.json", lambda found: found["shape"].__setitem__(-2, 199)) for each in (array, classes)], "p.ome.zarr: (1, 199, 500) pixels"),
                (lambda: rewrite(array / "0/zarr.json", lambda found: found.update(data_type="uint16")), "not an array as map writes it"),
                (lambda: rewrite(array / "0/zarr.json", lambda found: found.update(shape=[2, 200, 1 << 50])), "not an array as map writes it"),
                (lambda: shard.write_bytes(shard.read_bytes()[:-1]), "its index of chunks is damaged"),
                (lambda: shard.write_bytes(b"\0" * 200 + shard.read_bytes()[200:]), "chunk (")):
            with self.subTest(text=text):
                change()
                self.refused((errors.DataError, errors.NotFoundError), text)
                self.assertFalse((self.out / "score-read").exists())
            shutil.rmtree(self.out)
            shutil.rmtree(self.folder / "elsewhere", True)
            (self.folder / "elsewhere").unlink(True) if (self.folder / "elsewhere").is_file() else None
            shutil.copytree(good, self.out, symlinks=True)

    def test_questions_that_have_no_answer(self):
        self.map(without=(0, 1, 2, 3))
        self.refused(errors.ConfigError, "--truth other", "no store of the images", name="other")
        self.refused(errors.ConfigError, "--by country", "grade, patient_id, site, slide_id", by=["country"])
        (self.out / "score-read").mkdir()
        self.refused(errors.ConflictError, "score-read: it is there and no score")
        for name in ("score.json", "thesis.tex"):  # nobody's score has more than its files
            (self.out / "score-read" / name).touch()
        self.refused(errors.ConflictError, "score-read: it is there and no score")
        self.assertTrue((self.out / "score-read/thesis.tex").exists())
        shutil.rmtree(self.out / "score-read")
        self.refused(errors.AccessError, "it lies in the store", out=self.folder / "4.ome.zarr/score")
        document = json.loads((self.folder / "4.ome.zarr/zarr.json").read_text())
        document["attributes"]["patchbay"]["pixel_digest"] = "ff" * 32
        (self.folder / "4.ome.zarr/zarr.json").write_text(json.dumps(document))
        self.refused(errors.DataError, "4.ome.zarr: its pixels are not those that 000004-slide-4 was made of")
        shutil.rmtree(self.folder / "0.ome.zarr")
        self.refused(errors.DataError, "0.ome.zarr: it was mapped and is not there any more", "2 of 5 images are without their store")


class Figures(unittest.TestCase):
    def counted(self):
        """The tally of six samples."""
        folder = tempfile.mkdtemp(prefix="patchbay-score-")
        self.addCleanup(shutil.rmtree, folder)
        output = patchbay.map.__globals__ and __import__("patchbay.map.declared", fromlist=["Output"]).Output(
            "p", "map", classes=("stroma", "tumour"), dtype="uint8", class_map="argmax")
        found = tally.Pixels(6, output, CLASSES, folder)
        for number in range(6):
            there, values = sample(number)
            classes = values.argmax(axis=0).astype(numpy.uint8)
            classes[values[0] == 255] = 255
            for part in (slice(0, 25), slice(25, 60)):
                found.add(number, there[part], classes[part], lambda channel, part=part: values[channel][part])
        return found

    def test_other_packages_say_the_same(self):
        found = self.counted()
        counts = measures.Counts(found)
        self.assertEqual(found.confusion.tolist(), ORACLE["confusion"])
        for metric in ("dice", "iou"):
            numpy.testing.assert_allclose(getattr(counts, metric), numpy.array(ORACLE[metric], float), rtol=1e-6)  # MONAI's are float32
        areas = [[measures.auroc(numpy.ones((1, 1)), found, k, [i])[0] for k in (0, 1)] for i in range(6)]
        numpy.testing.assert_allclose(areas, numpy.array(ORACLE["auroc"], float), rtol=1e-12)
        pooled = measures.group(found, counts, numpy.arange(6), numpy.array(list("aabccd")), measures.PIXEL_METRICS)
        for k, name in enumerate(("stroma", "tumour")):
            self.assertAlmostEqual(pooled["classes"][name]["auroc"]["value"], ORACLE["pooled_auroc"][k], 12)
            self.assertAlmostEqual(pooled["classes"][name]["pooled_dice"]["value"], ORACLE["f1"][k], 12)

    def test_patches_score_as_other_packages_say(self):
        found = tally.Items(6, {0: "stroma", 1: "tumour"}, (tally.NONE, "tumour"), ("tumour",), "p")
        for number in range(6):
            found.add(number, *patches(number))
        whole = measures.group(found, measures.Counts(found), numpy.arange(6), numpy.array(list("aabccd")), measures.ROW_METRICS)
        self.assertEqual(whole["confusion"], PATCHES["confusion"])
        figures = whole["classes"]["tumour"]
        for got, metric in ((whole["accuracy"], "accuracy"), (figures["pooled_dice"], "f1"), (figures["auroc"], "auroc")):
            self.assertAlmostEqual(got["value"], PATCHES[metric], 12)
        for i, area in enumerate(PATCHES["each"]):
            self.assertAlmostEqual(measures.auroc(numpy.ones((1, 1)), found, 0, [i])[0], area, 12)
        for i, interval in enumerate(PATCHES["intervals"]):
            got = (figures["auroc"], whole["accuracy"])[i]
            numpy.testing.assert_allclose([got["low"], got["high"]], interval, rtol=1e-12)
        false, true = measures.roc(found, 0, range(6))
        self.assertAlmostEqual(sum((b - a) * (c + d) / 2 for a, b, c, d in zip(false, false[1:], true, true[1:])), PATCHES["auroc"], 12)

    def test_many_images_take_seconds(self):
        draw, count = numpy.random.Generator(numpy.random.Philox(3)), 20000
        found = tally.Items(count, {0: "no", 1: "yes"}, ("no", "yes"), ("yes",), "p")
        labels, values = draw.integers(0, 2, count), draw.permutation(count).astype(numpy.float32) / count  # none twice
        for number in range(count):
            found.add(number, labels[number:number + 1], values[number:number + 1, None])
        weights, counted = numpy.stack([numpy.ones(count), draw.integers(0, 3, count)]), []
        areas = measures.auroc(weights, found, 0, numpy.arange(count))
        for weight in weights:
            order = numpy.argsort(values)
            below = numpy.cumsum(numpy.where(labels[order] == 0, weight[order], 0))
            own = labels[order] == 1
            counted.append((weight[order][own] @ below[own]) / (weight[labels == 1].sum() * weight[labels == 0].sum()))
        numpy.testing.assert_allclose(areas, counted, rtol=1e-12)

    def test_intervals_are_those_of_a_direct_resampling(self):
        found = self.counted()
        counts, patients = measures.Counts(found), numpy.array(list("aabccd"))
        got = measures.group(found, counts, numpy.arange(6), patients, measures.PIXEL_METRICS)
        generator, drawn = numpy.random.Generator(numpy.random.Philox(measures.SEED)), {key: [] for key in ("dice", "pooled_dice", "auroc", "accuracy")}
        samples = [sample(number) for number in range(6)]
        for _ in range(measures.DRAWS):
            images = [i for patient in generator.integers(4, size=4) for i in numpy.flatnonzero(patients == "abcd"[patient])]
            dice = counts.dice[images, 1]
            drawn["dice"].append(numpy.nanmean(dice) if not numpy.isnan(dice).all() else numpy.nan)
            table = found.confusion[images].sum(axis=0)
            drawn["pooled_dice"].append(2 * table[1, 1] / (table[1].sum() + table[:, 1].sum()) if table[1].sum() else numpy.nan)
            drawn["accuracy"].append((table[0, 0] + table[1, 1]) / table.sum())
            if len(drawn["auroc"]) < 40:  # it is slow
                own, others = ([numpy.concatenate([values[1][(values[1] != 255) & select(there)] for there, values in (samples[i] for i in images)])][0]
                               for select in (lambda there: there == 1, lambda there: (there != 1) & (there != 255)))
                order = numpy.searchsorted(numpy.sort(others), own, "left") + numpy.searchsorted(numpy.sort(others), own, "right")
                drawn["auroc"].append(order.sum() / 2 / (len(own) * len(others)) if len(own) else numpy.nan)
        for metric in ("dice", "pooled_dice"):
            low, high = numpy.nanquantile(drawn[metric], [0.025, 0.975])
            figure = got["classes"]["tumour"][metric]
            numpy.testing.assert_allclose([figure["low"], figure["high"]], [low, high], rtol=1e-12)
        numpy.testing.assert_allclose([got["accuracy"]["low"], got["accuracy"]["high"]], numpy.quantile(drawn["accuracy"], [0.025, 0.975]), rtol=1e-12)
        weights = measures.draws(4)[:41, numpy.array([0, 0, 1, 2, 2, 3])]
        numpy.testing.assert_allclose(measures.auroc(weights, found, 1, numpy.arange(6))[1:], drawn["auroc"], rtol=1e-12)


class Command(unittest.TestCase):
    def test_exit_codes(self):
        import contextlib
        import io
        from unittest import mock
        from patchbay.score import __main__ as command
        for error, code, text in ((KeyboardInterrupt(), 75, "stopped"), (errors.ConfigError("no such set"), 2, "error: no such set"), (errors.DataError("damaged"), 1, "error: damaged")):
            said = io.StringIO()
            with mock.patch("patchbay.score.run.score", side_effect=error), contextlib.redirect_stderr(said):
                self.assertEqual(command.main(["results", "--truth", "read"]), code)
            self.assertIn(text, said.getvalue())


class Logged(unittest.TestCase):
    def test_the_log_of_a_trainer_has_the_figures_of_all_images(self):
        import types
        from unittest import mock
        classes = {"tumour": {"images": 3, "absent": 0, "dice": {"value": 0.5, "low": None, "high": None}, "auroc": {"value": None, "low": None, "high": None}}}
        group = {"accuracy": {"value": 0.75, "low": 0.7, "high": 0.8}, "classes": classes}
        score = {"outputs": {"p": {"metrics": ["dice", "auroc"], "groups": [group, {}]}}}
        run_of_wandb = mock.Mock()
        torch = {name: mock.MagicMock() for name in ("torch", "torch.utils")}
        torch["torch.utils"].data.IterableDataset = object
        with mock.patch.dict(sys.modules, {**torch, "wandb": types.SimpleNamespace(run=run_of_wandb)}):
            from patchbay.torch import FeedLog
            logged = FeedLog(mock.Mock(stats=dict), "wandb").log_score(score, 7)
            sys.modules.pop("patchbay.torch")
        self.assertEqual(logged, {"score/p/accuracy": 0.75, "score/p/tumour/dice": 0.5})
        run_of_wandb.log.assert_called_once_with({"patchbay/score/p/accuracy": 0.75, "patchbay/score/p/tumour/dice": 0.5}, step=7)


if __name__ == "__main__":
    unittest.main(verbosity=2)
