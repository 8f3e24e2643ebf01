"""`patchbay map` on stores: results lie where the pixels are; consumers, batches and kills change no byte; faults end clearly."""
import csv
import hashlib
import json
import shutil
import signal
import subprocess
import time

import harness
from trainer_test import MODULE, ModuleCase

FUNCTION = """
import time
import numpy

def load(weights, device):
    assert device == "cpu" and len(weights) == 1
    with open(weights[0], "rb") as file:
        return file.read()

def predict(model, batch):
    assert model == b"weights"
    image = numpy.asarray(batch["image"])
    sums = image.reshape(len(image), -1).astype(numpy.int64).sum(axis=1)
    return {"red": image[..., :1].transpose(0, 3, 1, 2).astype(numpy.float32) / 255,
            "score": numpy.stack([sums % 101 / 101], axis=1).astype(numpy.float32)}
"""
# The map against the store's own pixels, with zarr-python: prints "ok", or what differs.
LOOK = """
import sys
import numpy, zarr
store, result, step = zarr.open_group(sys.argv[1], mode="r"), zarr.open_group(sys.argv[2], mode="r"), int(sys.argv[3])
red = numpy.asarray(store["0"])[0].astype(float)
if step > 1:
    red = red[:red.shape[0] // step * step, :red.shape[1] // step * step]
    red = red.reshape(red.shape[0] // step, step, -1, step).mean(axis=(1, 3))
got = numpy.asarray(result["0"])[0][:red.shape[0], :red.shape[1]].astype(float) / 254 * 255
scale = result.attrs["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"]
whole = store.attrs["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"]
worst = numpy.abs(got - red)[: red.shape[0] - 1, : red.shape[1] - 1].max()
print("ok" if worst <= 1.1 and numpy.allclose(scale[1:], [step * um for um in whole[1:]]) else f"{worst} {scale} {whole}")
"""
VOLUME_FUNCTION = """
import numpy

def predict(model, batch):
    return {"ct": numpy.clip(numpy.asarray(batch["image"]) / 1000, 0, 1)}
"""
# The map of a volume against the store's own voxels: prints "ok", or what differs.
LOOK_AT_VOLUME = """
import sys
import numpy, zarr
store, result = zarr.open_group(sys.argv[1], mode="r"), zarr.open_group(sys.argv[2], mode="r")
hu, got = numpy.asarray(store["0"]).astype(float), numpy.asarray(result["0"])[0].astype(float)
inside = (slice(None), slice(3, -3), slice(3, -3))
same = hu.shape == got.shape and numpy.abs(got / 254 - hu / 1000)[inside].max() < 1.1 / 254
step = [each.attrs["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"][-3:] for each in (store, result)]
um = [1000 * mm for mm in step[0]] if step[0][0] < 100 else step[0]
print("ok" if same and numpy.allclose(um, step[1]) else f"{hu.shape} {got.shape} {step} {numpy.abs(got / 254 - hu / 1000)[inside].max()}")
"""


def digests(folder):
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != "results.json"}


class Map(ModuleCase):
    def setUp(self):
        super().setUp()
        if not harness.oracles("numpy", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with numpy and zarr")
        self.stores = self.once("stores", lambda: self.keep(self.store([self.slide(f"{name}.svs", size, seed) for seed, (name, size) in enumerate(
            (("a", "1300x900"), ("b", "700x500"), ("c", "1500x1100")), 1)], "three")))
        (self.folder / "model.pt").write_bytes(b"weights")
        self.call = self.folder / "predict.py"
        self.call.write_text(FUNCTION, encoding="utf-8")
        self.config = self.folder / "map.yaml"
        self.write()

    def write(self, patch="{size: [128, 128]}", stride="[64, 64]", batch=16):
        self.config.write_text(
            f"dataset: {self.stores}\nnumerics: cpu\npatch: {patch}\nsampling: {{order: sequential, stride: {stride}}}\n"
            f"batch: {{global_size: {batch}, dtype: uint8, layout: nhwc}}\nweights: [model.pt]\n"
            "outputs:\n  red: {kind: map, classes: [red], class_map: [0.5]}\n  score: {kind: score, classes: [tumour]}\n", encoding="utf-8")

    def start_map(self, *words, out="out"):
        command = [str(harness.BIN / "patchbay"), "map", str(self.config), "--call", str(self.call), "--out", str(self.folder / out), *map(str, words)]
        process = subprocess.Popen(command, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.environment(PYTHONPATH=str(MODULE), PATCHBAY_PYTHON=harness.PYTHON))
        self.addCleanup(self.stop, process)
        return process

    def map(self, *words, expect=0, **options):
        """The text that the command wrote."""
        process = self.start_map(*words, **options)
        out, err = process.communicate(timeout=harness.LIMIT_S * 3)
        self.assertEqual(process.returncode, expect, (out + err)[-6000:])
        return out + err

    def images(self, out="out"):
        return sorted(path for path in (self.folder / out).glob("0*"))

    def look(self, step):
        for image, store in zip(self.images(), sorted(self.stores.glob("*.ome.zarr"))):
            found = subprocess.run([harness.PYTHON, "-c", LOOK, store, image / "red.ome.zarr", str(step)], capture_output=True, text=True, check=True)
            self.assertEqual(found.stdout.strip(), "ok", store)

    def test_results_lie_where_the_pixels_are_and_are_made_once(self):
        self.map()
        self.assertEqual(len(self.images()), 3)
        self.look(1)
        shapes = {image: self.json("inspect", image / "red.ome.zarr")["levels"][0]["shape"] for image in self.images()}
        self.assertEqual(sorted(shapes.values()), [[1, 500, 700], [1, 900, 1300], [1, 1100, 1500]])
        image = next(image for image, shape in shapes.items() if shape == [1, 900, 1300])
        with open(image / "score.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 20 * 14, "a grid of 64 over 1300 x 900 pixels, patches of 128")
        before = digests(self.folder / "out")
        said = self.map("--json")
        self.assertIn("has 3 of 3 images: they are skipped", said)
        again = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
        self.assertEqual((again["skipped"], again["complete"], again["patches"]), (3, 3, 0))
        self.assertEqual(digests(self.folder / "out"), before)
        self.call.write_text(FUNCTION + "\n", encoding="utf-8")
        self.assertIn("holds results of another function", self.map(expect=1))
        self.nothing_left()

    def test_bands_of_an_image_lie_where_its_pixels_are(self):
        """The third slide has 6,486 patches: two bands, one of which a killed consumer has in hand."""
        self.write(patch="{size: [16, 16]}", stride="[16, 16]", batch=512)
        slow = FUNCTION.replace("    image = ", "    time.sleep(0.05)\n    image = ")
        self.call.write_text(slow, encoding="utf-8")
        victim = self.start_map()
        harness.wait_until(lambda: list((self.folder / "out").glob(".bands/*/00000")), "a band")
        victim.send_signal(signal.SIGKILL)
        said = self.map("--json")
        patches = json.loads(next(line for line in said.splitlines() if line.startswith("{")))["patches"]
        self.assertLessEqual(patches, 82 * 57 + 44 * 32 + 26 * 94, "the first band is not made again")
        self.assertEqual(len(self.images()), 3)
        self.look(1)
        self.assertFalse((self.folder / "out/.bands").exists())
        self.nothing_left()

    def test_a_resolution_between_the_levels(self):
        um = self.json("inspect", sorted(self.stores.glob("*.ome.zarr"))[0])["mpp"][0]
        self.write(patch=f"{{size: [64, 64], mpp: [{um * 2}], mpp_tolerance: 0}}", stride="[32, 32]")
        self.map()
        self.look(2)

    def test_a_volume_returns_to_the_voxels_of_its_store(self):
        harness.nifti(self.folder / "v.nii", (24, 60, 56), (3.0, 1.0, 1.0), lambda z, y, x: 20 * z + 3 * y + 5 * x)
        self.json("ingest", self.folder / "v.nii", "--out", self.folder / "volumes", "--modality", "CT")
        self.call.write_text(VOLUME_FUNCTION, encoding="utf-8")
        self.config.write_text(
            f"dataset: {self.folder}/volumes\nnumerics: cpu\npatch: {{size: [8, 16, 16], spacing: [3, 2, 2]}}\n"
            "sampling: {order: sequential, stride: [4, 8, 8]}\nbatch: {global_size: 8, dtype: float32}\n"
            "outputs: {ct: {kind: map, classes: [ct], grid: stored}}\n", encoding="utf-8")
        self.map()
        store, result = next((self.folder / "volumes").glob("*.zarr")), self.images()[0] / "ct.ome.zarr"
        found = subprocess.run([harness.PYTHON, "-c", LOOK_AT_VOLUME, store, result], capture_output=True, text=True, check=True)
        self.assertEqual(found.stdout.strip(), "ok")

    def test_consumers_batches_and_kills_change_no_byte(self):
        self.write(batch=6)
        self.map(out="expected")
        self.write()
        expected = digests(self.folder / "expected")
        slow = FUNCTION.replace("    image = ", "    time.sleep(0.1)\n    image = ")
        self.call.write_text(slow, encoding="utf-8")
        first = [self.start_map() for _ in range(2)]
        harness.wait_until(lambda: (self.folder / "out/results.json").exists(), "results")
        time.sleep(1)
        first[0].send_signal(signal.SIGKILL)
        second = self.start_map()
        for process in (first[1], second):
            said = process.communicate(timeout=harness.LIMIT_S * 3)
            self.assertEqual(process.returncode, 0, said)
        self.assertEqual(digests(self.folder / "out"), expected)
        self.nothing_left()

    def test_an_image_fails_alone(self):
        self.call.write_text(FUNCTION.replace("    image = ", "    if numpy.asarray(batch['image_index'])[0] == 1:\n        raise KeyError('lymph')\n    image = "),
                             encoding="utf-8")
        said = self.map("--json", expect=3)
        result = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
        self.assertEqual((result["images"], result["complete"], len(result["failed"])), (3, 2, 1))
        self.assertIn("KeyError: 'lymph'", result["failed"][0][1])
        kept = list((self.folder / "out/failed").iterdir())
        self.assertEqual(sorted(path.name for path in kept[0].iterdir()), ["batch.npz", "reason.txt"])
        self.nothing_left()

    def test_an_image_whose_patches_cannot_be_made_fails_alone(self):
        stores = shutil.copytree(self.stores, self.folder / "damaged")
        store = sorted(stores.glob("*.ome.zarr"))[1]
        chunks = max((path for path in (store / "0").rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
        content = bytearray(chunks.read_bytes())
        content[len(content) // 2] ^= 255
        chunks.write_bytes(content)
        self.config.write_text(self.config.read_text(encoding="utf-8").replace(str(self.stores), str(stores)), encoding="utf-8")
        said = self.map("--json", expect=3)
        result = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
        self.assertEqual((result["images"], result["complete"]), (3, 2))
        (image, reason), = result["failed"]
        self.assertTrue(image.startswith("000001-"), image)
        self.assertIn(f"{store}: ", reason)
        self.assertIn("crc32c mismatch", reason)
        self.nothing_left()

    def test_a_function_that_hangs_fails_its_image(self):
        self.call.write_text(FUNCTION.replace("    image = ", "    if numpy.asarray(batch['image_index'])[0] == 1:\n        time.sleep(1000)\n    image = "),
                             encoding="utf-8")
        self.assertIn("has not returned within 2 s", self.map("--timeout", 2, expect=3))
        self.assertEqual(len(self.images()), 2)
        self.nothing_left()

    def test_what_is_missing_is_said(self):
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        (self.folder / "model.pt").unlink()
        self.assertIn("read weights: ", self.map(expect=1))
        self.assertIn("outputs.red.blend: 'cubic'", self.map("--set", "outputs.red.blend=cubic", expect=2))
        process = subprocess.run([harness.BIN / "patchbay", "map", self.config, "--call", self.call, "--out", "out"], text=True, capture_output=True,
                                 cwd=self.folder, env=self.environment(PATCHBAY_PYTHON=harness.PYTHON, PYTHONPATH=""), check=False)
        self.assertEqual(process.returncode, 1)
        self.assertIn("No module named 'patchbay'", process.stderr)


if __name__ == "__main__":
    harness.main()
