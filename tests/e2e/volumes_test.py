"""A volume from the writer to the trainer: inspected, verified, read by others, streamed as what NumPy cuts out of it."""
import json
import subprocess

import harness

SIZE = (80, 160, 176)

# Run by the Python of the oracles: prints one line of findings, "ok" when there is none.
LOOK = r"""
import sys
import numpy, tensorstore, zarr
store = sys.argv[1]
group = zarr.open_group(store, mode="r")
multiscale = group.attrs["ome"]["multiscales"][0]
wrong = []
if [(a["name"], a["type"], a["unit"]) for a in multiscale["axes"]] != [(n, "space", "millimeter") for n in "zyx"]:
    wrong.append("axes")
previous = None
for dataset in multiscale["datasets"]:
    name = dataset["path"]
    level = numpy.asarray(group[name])
    if group[name].metadata.dimension_names != ("z", "y", "x") or level.dtype != numpy.int16:
        wrong.append(f"level {name}: names or type")
    same = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{store}/{name}"}}).result()
    if not numpy.array_equal(level, same.read().result()):
        wrong.append(f"level {name}: zarr-python and TensorStore differ")
    if previous is None:
        if dataset["coordinateTransformations"][0]["scale"] != [2.5, 0.78125, 0.78125]:
            wrong.append("scale")
        if level.min() != -1024 or not 500 < level.max() < 1500 or not (abs(level - 52) < 40).mean() > 0.01:
            wrong.append("no abdomen")
    else:
        padded = numpy.pad(previous, [(0, side % 2) for side in previous.shape], mode="edge").astype(numpy.int32)
        total = sum(padded[z::2, y::2, x::2] for z in (0, 1) for y in (0, 1) for x in (0, 1))
        if not numpy.array_equal(level, (total + 4) >> 3):
            wrong.append(f"level {name} is not the rounded mean of the one before")
    previous = level
print("; ".join(wrong) or "ok")
"""

# Arguments: store, folder of saved batches, grid or random, the patch's size.
PATCHES = r"""
import pathlib, sys
import numpy, zarr
store, folder, positions, *size = sys.argv[1:]
depth, height, width = map(int, size)
volume = numpy.asarray(zarr.open_group(store, mode="r")["0"])
files = sorted(pathlib.Path(folder).rglob("*.npy"))
files = [f for f in files if "image" in str(f.relative_to(folder))] or files
patches = numpy.concatenate([numpy.load(f) for f in files])
assert patches.shape[1:] == (1, depth, height, width), patches.shape
def made(voxels):
    return ((voxels.astype(numpy.float64) / 1000 - 0.05) / 0.4).astype(numpy.float32)
if positions == "grid":
    cells = [-(-whole // side) for whole, side in zip(volume.shape, (depth, height, width))]
    padded = numpy.pad(volume, [(0, n * s - w) for n, s, w in zip(cells, (depth, height, width), volume.shape)],
                       constant_values=-1024)
    expected = numpy.stack([padded[None, z*depth:(z+1)*depth, y*height:(y+1)*height, x*width:(x+1)*width]
                            for z in range(cells[0]) for y in range(cells[1]) for x in range(cells[2])])
    assert numpy.array_equal(patches, made(expected))
else:
    volume = numpy.pad(volume, [(0, max(0, side - whole)) for whole, side in zip(volume.shape, (depth, height, width))],
                       constant_values=-1024)
    seen = set()
    for patch in patches:
        voxels = numpy.rint((patch[0].astype(numpy.float64) * 0.4 + 0.05) * 1000).astype(numpy.int16)
        room = [whole - side + 1 for whole, side in zip(volume.shape, voxels.shape)]
        fits = numpy.ones(room, bool)
        for z, y, x in numpy.random.default_rng(1).integers(0, voxels.shape, (400, 3)):
            fits &= volume[z:z+room[0], y:y+room[1], x:x+room[2]] == voxels[z, y, x]
        places = numpy.argwhere(fits)
        assert len(places) == 1, f"{len(places)} places"
        z, y, x = places[0]
        assert numpy.array_equal(patch[0], made(volume[z:z+depth, y:y+height, x:x+width]))
        seen.add((z, y, x))
    assert len(seen) == len(patches), "the same place twice"
print("ok", len(patches))
"""


class Volumes(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.has_oracle = harness.oracles("numpy", "tensorstore", "zarr")

    def volume(self, name="ct.ome.zarr", seed=3):
        path = self.folder / name
        result = self.command("synth", "volume", path, "--size", "x".join(map(str, SIZE)), "--seed", seed)
        self.assertEqual(result.returncode, 0, result.stderr)
        return path

    def config(self, dataset, size, positions="grid", dtype="float32", **patch):
        more = "".join(f", {key}: {value}" for key, value in patch.items())
        sampling = {"grid": "{order: sequential}", "random": "{positions: random, patches_per_epoch: 12}"}[positions]
        path = self.folder / f"run-{len(list(self.folder.glob('run-*')))}.yaml"
        path.write_text(f"dataset: {dataset}\nnumerics: cpu\nseed: 7678\npatch: {{size: {list(size)}{more}}}\n"
                        f"sampling: {sampling}\nbatch: {{global_size: 3, dtype: {dtype}, tail: keep}}\n"
                        "preprocess: [{normalize: {scale: 1000, mean: [0.05], std: [0.4]}}]\n", encoding="utf-8")
        return path

    def python(self, script, *words):
        done = subprocess.run([harness.PYTHON, "-c", script, *map(str, words)], text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def refused(self, run, text):
        result = self.command("stream", run, "--digest", "--gpus", "none", "--cpus", 1)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(text, result.stderr)

    def test_the_store_is_inspected_verified_and_read_by_others(self):
        store = self.volume()
        seen = self.json("inspect", store)
        self.assertEqual(seen["axes"], ["z", "y", "x"])
        self.assertEqual(seen["dtype"], "int16")
        self.assertEqual(seen["levels"][0]["shape"], list(SIZE))
        self.assertEqual(seen["levels"][0]["chunk"], [64, 64, 64])
        self.assertEqual(seen["spacing"][0], {"axis": "z", "value": 2.5, "unit": "millimeter"})
        text = self.command("inspect", store).stdout
        self.assertIn("z 2.5 millimeter, y 0.78125 millimeter", text)
        self.assertTrue(self.json("verify", store)["clean"])
        again = self.volume("again.ome.zarr")
        self.assertEqual(self.json("inspect", again)["digest"], seen["digest"])
        other = self.volume("other.ome.zarr", seed=4)
        self.assertNotEqual(self.json("inspect", other)["pixel_digest"], seen["pixel_digest"])
        there = self.command("synth", "volume", store, "--size", "8x32x32")
        self.assertEqual(there.returncode, 1)
        self.assertIn("already there", there.stderr)
        if not self.has_oracle:
            self.skipTest("needs PATCHBAY_PYTHON with zarr and tensorstore")
        self.assertEqual(self.python(LOOK, store), "ok")

    def test_a_damaged_chunk_is_found_and_not_streamed(self):
        store = self.volume()
        shard = store / "0/c/0/0/0"
        data = bytearray(shard.read_bytes())
        data[len(data) // 2] ^= 0xFF
        shard.write_bytes(data)
        report = self.json("verify", store, expect=1)
        self.assertFalse(report["clean"])
        self.assertTrue(any("0/c/0/0/0: chunk (" in fault for fault in report["bad"]), report["bad"])
        self.refused(self.config(store, (32, 96, 96)), "crc32c mismatch")

    def test_patches_are_those_of_numpy_whatever_number_of_workers_made_them(self):
        store = self.volume()
        for size in ((32, 96, 96), (96, 96, 96)):
            for positions in ("grid", "random"):
                run = self.config(store, size, positions)
                digests = set()
                for cpus in (1, 2, 4):
                    folder = self.folder / f"{positions}-{size[0]}-{cpus}"
                    done = self.json("stream", run, "--digest", "--gpus", "none", "--cpus", cpus, "--save", folder)
                    digests.add(done["digest"])
                self.assertEqual(len(digests), 1)
                if self.has_oracle:
                    self.assertRegex(self.python(PATCHES, store, folder, positions, *size), "^ok ")

    def test_what_does_not_fit_is_refused_by_key(self):
        store = self.volume()
        slide = self.slide(size="600x500")
        self.refused(self.config(store, (96, 96)), "key 'patch.size': [y, x] of a volume of 80 slices")
        self.refused(self.config(slide, (2, 96, 96)), "key 'patch.size': 2 slices of an image that has one")
        self.refused(self.config(store, (32, 96, 96), fill=-40000), "key 'patch.fill': -40000 is not a value of int16 (-32768 to 32767)")
        self.refused(self.config(store, (32, 96, 96), fill=0.5), "key 'patch.fill': 0.5 is not a value of int16")
        self.refused(self.config(slide, (96, 96), fill=256), "key 'patch.fill': 256 is not a value of uint8 (0 to 255)")
        self.refused(self.config(store, (32,)), "key 'patch.size': expected 2 to 3 values")
        mixed = self.config(f"[{store}, {slide}]", (1, 96, 96))
        self.refused(mixed, "of uint8, but")
        ingest = self.command("ingest", store, "--out", self.folder / "out")
        self.assertNotEqual(ingest.returncode, 0)
        self.assertIn("a store, not a slide", ingest.stderr)


if __name__ == "__main__":
    harness.main()
