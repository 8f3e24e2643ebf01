"""`patchbay score` on maps of generated slides against label sets that were imported: every figure is that of the pixels."""
import csv
import json
import subprocess
import textwrap

import harness
from trainer_test import MODULE, ModuleCase

# A pixel's class is what its red says, 0 to 3; the function takes class 3 for class 2, and is less sure of its last two.
FUNCTION = """
import numpy

def predict(model, batch):
    said = numpy.minimum(numpy.asarray(batch["image"])[..., 0] >> 6, 2)
    return {"red": (said[:, None] == numpy.arange(3)[:, None, None]).astype(numpy.float32) * 0.9 + 0.05,
            "patch": (said.reshape(len(said), -1, 1) == numpy.arange(3)).mean(axis=1).astype(numpy.float32),
            "grade": numpy.asarray(batch["image"]).reshape(len(said), -1).mean(axis=1) / 255}

def finish(model, rows):
    return {"grade": rows["grade"].mean()}
"""
MASK = """
import sys
import tensorstore, tifffile
image = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{sys.argv[1]}/0"}}).result().read().result()
tifffile.imwrite(sys.argv[2], image[0] >> 6, tile=(256, 256), compression="zlib")
"""
# Prints the counts of pixels by class of a store's red.
COUNT = """
import json, sys
import numpy, tensorstore
image = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{sys.argv[1]}/0"}}).result().read().result()
print(json.dumps(numpy.bincount((image[0] >> 6).reshape(-1), minlength=4).tolist()))
"""
NAMES = ("dark", "red", "pink", "bright")
TABLE = "classes: [" + ", ".join(f"{{name: {name}, value: {value}}}" for value, name in enumerate(NAMES)) + "]"
ROWS = (("a", "1300x900", "p-1", "north", "1"), ("b", "700x500", "p-1", "north", "0"), ("c", "900x1100", "p-2", "south", ""), ("d", "600x600", "p-3", "south", "1"))


class Score(ModuleCase):
    def setUp(self):
        super().setUp()
        if not harness.oracles("numpy", "tensorstore", "tifffile"):
            self.skipTest("needs PATCHBAY_PYTHON with numpy, tensorstore and tifffile")
        (self.folder / "predict.py").write_text(FUNCTION, encoding="utf-8")
        (self.folder / "classes.yaml").write_text(TABLE, encoding="utf-8")
        stores = self.once("stores", self.make_stores)
        self.stores = {name: stores / f"{name}.ome.zarr" for name, *_ in ROWS}
        with open(self.folder / "cohort.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("path", "slide_id", "patient_id", "site", "grade"),
                                        *((self.stores[name], name, patient, site, grade) for name, _, patient, site, grade in ROWS)])
        self.write("{size: [128, 128]}")

    def make_stores(self):
        slides = [self.slide(f"{name}.svs", size, seed) for seed, (name, size, *_) in enumerate(ROWS, 1)]
        self.json("ingest", *slides, "--out", "four", "--keep-names", "--chunk", 256, "--shard", 1024)
        for name in "abd":  # c has no truth
            self.python(MASK, f"four/{name}.ome.zarr", f"{name}.tif")
            self.json("labels", "import", f"four/{name}.ome.zarr", f"{name}.tif", "--set", "red", "--classes", "classes.yaml")
        return self.keep(self.folder / "four")

    def write(self, patch):
        (self.folder / "map.yaml").write_text(
            f"dataset: cohort.csv\nnumerics: cpu\npatch: {patch}\nsampling: {{order: sequential, overlap: [32, 64]}}\n"
            "batch: {global_size: 16, dtype: uint8, layout: nhwc}\n"
            "outputs:\n  red: {kind: map, classes: [dark, red, pink], class_map: argmax}\n"
            "  patch: {kind: score, classes: [dark, red, pink]}\n  grade: {kind: image}\n", encoding="utf-8")

    def python(self, script, *words):
        return subprocess.run([harness.PYTHON, "-c", script, *map(str, words)], cwd=self.folder, text=True, capture_output=True, check=True).stdout

    def run_command(self, *words, expect=0):
        done = subprocess.run([harness.BIN / "patchbay", *map(str, words)], cwd=self.folder, text=True, capture_output=True, check=False,
                              env=self.environment(PYTHONPATH=str(MODULE), PATCHBAY_PYTHON=harness.PYTHON), timeout=harness.LIMIT_S * 3)
        self.assertEqual(done.returncode, expect, (done.stdout + done.stderr)[-4000:])
        return done

    def score(self, *words):
        return json.loads(self.run_command("score", "out", "--truth", "red", *words, "--json").stdout)["outputs"]["red"]

    def test_figures_are_those_of_the_pixels(self):
        self.run_command("map", "map.yaml", "--call", "predict.py", "--out", "out")
        found = self.score("--by", "site", "--by", "patient_id")
        counts = {name: json.loads(self.python(COUNT, self.stores[name])) for name in "abd"}
        whole = [sum(each) for each in zip(*counts.values())]
        first = found["groups"][0]
        self.assertEqual(first["confusion"], [[whole[i] if j == min(i, 2) else 0 for j in range(3)] for i in range(4)])
        self.assertEqual([first[key] for key in ("images", "without_truth", "patients", "scored", "uncovered", "ignored")], [3, 1, 2, sum(whole), 0, 0])
        self.assertAlmostEqual(first["accuracy"]["value"], 1 - whole[3] / sum(whole), 12)
        dice = [2 * each[2] / (2 * each[2] + each[3]) for each in counts.values() if each[2]]
        self.assertAlmostEqual(first["classes"]["pink"]["dice"]["value"], sum(dice) / len(dice), 12)
        self.assertEqual([first["classes"]["dark"][metric]["value"] for metric in ("dice", "auroc")], [1.0, 1.0])
        self.assertEqual([(each["by"], each["group"], each["images"], each["without_truth"]) for each in found["groups"][1:]],
                         [("site", "north", 2, 0), ("site", "south", 1, 1), ("patient_id", "p-1", 2, 0), ("patient_id", "p-2", 0, 1), ("patient_id", "p-3", 1, 0)])
        self.assertEqual([path.name for path in sorted((self.folder / "out/score-red").iterdir())], ["score.csv", "score.html", "score.json"])
        self.check_patches()
        rows = json.loads(self.run_command("score", "out", "--truth", "grade", "--json").stdout)["outputs"]["grade"]["groups"][0]
        self.assertEqual((rows["images"], rows["without_truth"]), (3, 1))
        self.nothing_left()
        self.run_program(f"""
            found = patchbay.score({str(self.folder / "out")!r}, truth="red", by="site", out={str(self.folder / "again")!r}, cpus=1, progress=False)
            assert found["outputs"]["red"]["groups"][0] == json.load(open({str(self.folder / "out/score-red/score.json")!r}))["outputs"]["red"]["groups"][0]
            """)
        self.assertIn("no store of the images has such a label set", self.run_command("score", "out", "--truth", "none", expect=2).stderr)

    def check_patches(self):
        """Patches have the class of most of their pixels, which the function says but for the edges."""
        tables = [next((self.folder / "out").glob(f"*-{name}*")) / "patch.csv" for name in "abd"]
        patches = sum(len(path.read_text(encoding="utf-8").splitlines()) - 1 for path in tables)
        document = json.loads((self.folder / "out/score-red/score.json").read_text(encoding="utf-8"))
        group = document["outputs"]["patch"]["groups"][0]
        self.assertEqual([group[key] for key in ("images", "without_truth", "scored", "ignored")], [3, 1, patches, 0])
        self.assertGreater(group["accuracy"]["value"] + group["confusion"][3][2] / patches, 0.9)  # the function says pink of what is bright
        self.assertGreater(min(each["auroc"]["value"] or 1 for each in group["classes"].values()), 0.9)
        self.assertEqual((document["excluded"], document["notes"]), ({}, []))

    def test_a_resolution_between_the_levels(self):
        um = self.json("inspect", self.stores["a"])["mpp"][0]
        self.write(f"{{size: [96, 96], mpp: [{um * 1.5}], mpp_tolerance: 0}}")
        self.run_command("map", "map.yaml", "--call", "predict.py", "--out", "out")
        first = self.score()["groups"][0]
        areas = sum(-(-int(side) * 96 // 144) * -(-int(other) * 96 // 144) for side, other in (size.split("x") for name, size, *_ in ROWS if name != "c"))
        self.assertEqual(first["scored"] + first["ignored"], areas)
        table = first["confusion"]
        right = (table[0][0] + table[1][1]) / sum(map(sum, table[:2]))  # the others are one class to the function
        self.assertGreater(right, 0.85, "pixels are means, classes those at their centres")

    def test_a_store_that_was_made_again_is_excluded_and_one_that_moved_is_found(self):
        self.run_command("map", "map.yaml", "--call", "predict.py", "--out", "out")
        metadata = self.stores["a"] / "zarr.json"
        before = metadata.read_text()
        self.addCleanup(metadata.write_text, before)
        metadata.write_text(before.replace(json.loads(before)["attributes"]["patchbay"]["pixel_digest"], "0" * 64))
        moved = self.folder / "moved"
        moved.mkdir()
        self.stores["b"].rename(moved / "b.ome.zarr")
        self.addCleanup(lambda: (moved / "b.ome.zarr").rename(self.stores["b"]))
        done = self.run_command("score", "out", "--truth", "red", "--stores", "moved", expect=3)
        self.assertIn("a.ome.zarr: its pixels are not those", done.stderr)
        group = json.loads((self.folder / "out/score-red/score.json").read_text())["outputs"]["red"]["groups"][0]
        self.assertEqual([group[key] for key in ("images", "without_truth", "excluded")], [2, 1, 1])

    def test_volumes_on_the_voxels_of_their_store(self):
        value = lambda z, y, x: 300 if (z // 4 + y // 9 + x // 7) % 3 == 0 else 20
        harness.nifti(self.folder / "v.nii", (24, 60, 56), (3.0, 1.0, 1.0), value)
        harness.nifti(self.folder / "m.nii", (24, 60, 56), (3.0, 1.0, 1.0), lambda z, y, x: int(value(z, y, x) == 300), "B")
        self.json("ingest", "v.nii", "--out", "volumes", "--keep-names", "--modality", "CT")
        store = next((self.folder / "volumes").glob("*.zarr"))
        (self.folder / "two.yaml").write_text("classes: [{name: air, value: 0}, {name: bone, value: 1}]")
        self.json("labels", "import", store, "m.nii", "--set", "red", "--classes", "two.yaml")
        (self.folder / "predict.py").write_text(textwrap.dedent("""
            import numpy
            def predict(model, batch):
                bone = (numpy.asarray(batch["image"]) > 100).astype(numpy.float32)
                return {"red": bone, "s": bone.reshape(len(bone), -1).mean(axis=1, keepdims=True)}
            """))
        for patch, grid in (("{size: [8, 16, 16]}", "patch"), ("{size: [8, 16, 16], spacing: [3, 2, 2]}", "stored")):
            (self.folder / "map.yaml").write_text(
                f"dataset: volumes\nnumerics: cpu\npatch: {patch}\nsampling: {{order: sequential, stride: [4, 8, 8]}}\n"
                f"batch: {{global_size: 8, dtype: float32}}\noutputs: {{red: {{kind: map, classes: [bone], grid: {grid}}}, s: {{kind: score, classes: [bone]}}}}\n", encoding="utf-8")
            self.run_command("map", "map.yaml", "--call", "predict.py", "--out", f"out-{grid}")
            outputs = json.loads(self.run_command("score", f"out-{grid}", "--truth", "red", "--json").stdout)["outputs"]
            first, patches = (outputs[name]["groups"][0] for name in ("red", "s"))
            count = sum(len(path.read_text(encoding="utf-8").splitlines()) - 1 for path in (self.folder / f"out-{grid}").glob("*/s.csv"))
            self.assertEqual(patches["scored"] + patches["ignored"], count)
            self.assertGreater(patches["accuracy"]["value"], 0.9)
            self.assertEqual((first["scored"], first["patients"]), (24 * 60 * 56, 1))
            dice = first["classes"]["bone"]["dice"]
            self.assertEqual((dice["low"], dice["high"]), (None, None))
            (self.assertEqual if grid == "patch" else self.assertGreater)(dice["value"], 1.0 if grid == "patch" else 0.7)


if __name__ == "__main__":
    harness.main()
