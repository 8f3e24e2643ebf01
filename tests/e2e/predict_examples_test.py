"""configs/examples/README.md, where a Python has PyTorch: its command blocks take generated slides and volumes from training to
predictions."""
import csv
import json
import os
import re
import shutil
import subprocess

import harness
import torch_case

SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# As JSON: the shape of a class map, its classes, whether they are the greatest channels, and the means of channel 1 where they
# are 0 and 1.
LOOK_AT_MAP = """
import json, sys
import numpy, zarr
p, c = (numpy.asarray(zarr.open_group(f"{sys.argv[1]}{end}.ome.zarr", mode="r")["0"]) for end in ("", ".classes"))
sure = numpy.sort(p.astype(int), axis=0)[-2:]
sure = sure[1] > sure[0] + 1
print(json.dumps({"shape": c.shape, "classes": sorted(numpy.unique(c).tolist()), "same": bool((p.argmax(0) == c)[sure].all()),
                  "second": [float(p[1][c == k].mean() / 254) for k in (0, 1) if k in c]}))
"""
LOOK_AT_FEATURES = """
import json, sys
import h5py, numpy, torch
with h5py.File(sys.argv[1]) as file:
    features, coords = file["features"][:], file["coords"][:]
print(json.dumps({"shape": features.shape, "coords": coords.shape, "type": str(features.dtype), "spread": float(features.std(axis=0).max()),
                  "x": sorted(set((coords[:, 0] % 224).tolist()))}))
"""


class PredictExamples(torch_case.TorchCase):
    def setUp(self):
        super().setUp()
        self.slides, self.features, self.volumes = SHELL.findall((torch_case.EXAMPLE / "README.md").read_text(encoding="utf-8"))
        shutil.copytree(torch_case.EXAMPLE.parent, self.folder / "configs")

    def block(self, text):
        """Runs a command block of the page, with the Python that has PyTorch; its standard output."""
        python = self.folder / "bin/python3"
        python.parent.mkdir(exist_ok=True)
        python.write_text(f'#!/bin/sh\nexec {self.python} "$@"\n', encoding="utf-8")
        python.chmod(0o700)
        path = f"{python.parent}:{harness.BIN}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-e", "-u", "-c", text], cwd=self.folder, capture_output=True, text=True, timeout=4 * harness.LIMIT_S,
                              stdin=subprocess.DEVNULL, env=self.environment(PATH=path, PYTHONPATH=str(torch_case.MODULE)), check=False)
        self.assertEqual(done.returncode, 0, f"{text}\n{(done.stdout + done.stderr)[-4000:]}")
        return done.stdout

    def image(self, out):
        """The folder of the one image."""
        found, = (self.folder / out).glob("0*")
        return found

    def look(self, program, path):
        found = subprocess.run([self.python if "h5py" in program else harness.PYTHON, "-c", program, path], capture_output=True, text=True, check=True)
        return json.loads(found.stdout)

    def test_slides_from_training_to_pictures(self):
        self.assertIn("1 of 1 images, 0 failed", self.block(self.slides))
        image = self.image("gleason")
        with open(image / "patch.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 49 * 37)
        self.assertTrue(all(abs(float(row["background"]) + float(row["nuclei"]) - 1) < 1e-5 for row in rows))
        for name in ("nuclei", "patch.0-background", "patch.1-nuclei"):
            self.assertEqual((image / f"{name}.png").read_bytes()[:24], b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x03\x20\0\0\x02\x58", name)
        outlines = [json.loads(path.read_text(encoding="utf-8")) for path in (self.folder / "outlines").rglob("*.geojson")]
        self.assertEqual([{feature["properties"]["classification"]["name"] for feature in each["features"]} for each in outlines], [{"nuclei"}])
        score = json.loads((self.folder / "gleason/score-corrected/score.json").read_text(encoding="utf-8"))
        pixels, patches = (score["outputs"][name]["groups"][0] for name in ("nuclei", "patch"))
        self.assertEqual((pixels["scored"], pixels["accuracy"]["value"]), (1600 * 1200, 1.0))
        self.assertEqual((patches["scored"], patches["ignored"]), (49 * 37, 0))
        self.assertGreater(patches["accuracy"]["value"], 0.6)
        if not harness.oracles("numpy", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with numpy and zarr")
        found = self.look(LOOK_AT_MAP, image / "nuclei")
        self.assertEqual((found["shape"], found["classes"], found["same"]), ([1200, 1600], [0, 1], True))
        self.assertGreater(found["second"][1], found["second"][0] + 0.3, "it has learnt")

    def test_features_of_the_patches_on_tissue(self):
        self.need("torch", "h5py")
        self.block("".join(self.slides.splitlines(keepends=True)[:2]))
        self.assertIn("1 of 1 images, 0 failed", self.block(self.features))
        found = self.look(LOOK_AT_FEATURES, self.image("features") / "features.h5")
        self.assertEqual((found["shape"][1], found["coords"], found["type"]), (64, [found["shape"][0], 2], "float32"))
        self.assertGreater(found["shape"][0], 3)
        self.assertGreater(found["spread"], 0.01)
        self.assertEqual(found["x"], [0])

    def test_volumes_from_training_to_the_voxels_of_the_store(self):
        config = self.folder / "configs/examples/colorectal.yaml"
        text = config.read_text(encoding="utf-8")
        self.assertIn("patches_per_epoch: 160", text)
        config.write_text(text.replace("patches_per_epoch: 160", "patches_per_epoch: 48"), encoding="utf-8")
        self.assertIn("1 of 1 images, 0 failed", self.block(self.volumes))
        if not harness.oracles("numpy", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with numpy and zarr")
        found = self.look(LOOK_AT_MAP, self.image("colorectal") / "lesions")
        self.assertEqual((found["shape"], found["same"]), ([32, 64, 64], True))
        self.assertIn(0, found["classes"])
        score = json.loads((self.folder / "colorectal/score-lesions/score.json").read_text(encoding="utf-8"))
        group = score["outputs"]["lesions"]["groups"][0]
        self.assertEqual((group["scored"], list(group["classes"])), (32 * 64 * 64, ["background", "tumour", "polyp"]))
        self.assertEqual(len(list((self.folder / "masks").rglob("*.nii.gz"))), 1)


if __name__ == "__main__":
    harness.main()
