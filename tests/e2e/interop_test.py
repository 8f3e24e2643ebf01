"""Stores open in zarr-python and TensorStore, and hold what OpenSlide sees."""
import json
import shutil
import subprocess

import harness

# Run by the Python of the oracles: prints one line of findings, "ok" when there is none.
LOOK = r"""
import json, pathlib, sys
import numpy, tensorstore, zarr
from PIL import Image
Image.MAX_IMAGE_PIXELS = None
store, png = sys.argv[1:]
oracle = numpy.asarray(Image.open(png).convert("RGB")).transpose(2, 0, 1)
group = zarr.open_group(store, mode="r")
ome = group.attrs["ome"]
names = [d["path"] for d in ome["multiscales"][0]["datasets"]]
wrong = []
if [a["name"] for a in ome["multiscales"][0]["axes"]] != ["c", "y", "x"]:
    wrong.append("axes")
finest = numpy.asarray(group[names[0]])
if not numpy.array_equal(finest, oracle):
    wrong.append(f"level 0 differs from OpenSlide in {int((finest != oracle).sum())} values")
previous = finest
for name in names:
    level = numpy.asarray(group[name])
    same = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{store}/{name}"}}).result()
    if not numpy.array_equal(level, same.read().result()):
        wrong.append(f"level {name}: zarr-python and TensorStore differ")
    if name != names[0]:
        c, h, w = previous.shape
        padded = numpy.pad(previous, ((0, 0), (0, h % 2), (0, w % 2)), mode="edge").astype(numpy.uint32)
        mean = (padded[:, 0::2, 0::2] + padded[:, 1::2, 0::2] + padded[:, 0::2, 1::2] + padded[:, 1::2, 1::2] + 2) // 4
        if not numpy.array_equal(level, mean):
            wrong.append(f"level {name} is not the rounded area mean of the one before")
    previous = level
print("; ".join(wrong) or "ok")
"""


class Interop(harness.Case):
    def test_real_slide_agrees_with_openslide_in_zarr_python_and_tensorstore(self):
        slide = harness.DATA / "wsi/CMU-1-Small-Region.svs"
        if not slide.exists():
            self.skipTest(f"{slide} is not here: set PATCHBAY_TEST_DATA")
        if not shutil.which("openslide-write-png") or not harness.oracles("numpy", "PIL", "tensorstore", "zarr"):
            self.skipTest("needs openslide-write-png (openslide-tools) and PATCHBAY_PYTHON with zarr and tensorstore")
        png = self.folder / "oracle.png"
        subprocess.run(["openslide-write-png", slide, "0", "0", "0", "2220", "2967", png], check=True)
        for codec in ("zstd", "lz4"):
            out = self.folder / codec
            result = self.command("ingest", slide, "--out", out, "--codec", codec, "--shard", 1024, "--keep-names")
            self.assertEqual(result.returncode, 0, result.stderr)
            found = subprocess.run([harness.PYTHON, "-c", LOOK, out / "CMU-1-Small-Region.ome.zarr", png], text=True, check=True,
                                   capture_output=True)
            self.assertEqual(found.stdout.strip(), "ok")

    def test_stream_from_the_store_and_from_the_slide_give_the_same_patches(self):
        slide = self.slide(size="1500x1200")
        store = self.store([slide])
        for level, batches in ((0, 8), (1, 1), (2, 1)):
            saved = []
            for dataset in (slide, store):
                folder = self.folder / f"saved-{level}-{len(saved)}"
                result = self.command("stream", self.run_file(dataset, patch=100), "--batches", batches, "--save", folder,
                                      "--set", f"patch.level={level}")
                self.assertEqual(result.returncode, 0, result.stderr)
                saved.append([p.read_bytes() for p in sorted(folder.iterdir())])
            self.assertEqual(len(saved[0]), batches)
            self.assertEqual(saved[0], saved[1], f"level {level}")


if __name__ == "__main__":
    harness.main()
