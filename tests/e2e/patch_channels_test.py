"""Volumes of several channels, by name: the patches are what NumPy makes of each channel's array, whichever are chosen and in any
order, on the CPU and on a device that the CPU plays; only the chosen ones are read; what does not fit is refused by name."""
import json
import subprocess

import gpu_test
import harness

RUN = """dataset: {dataset}
numerics: {numerics}
seed: 5
patch: {{size: {size}{patch}}}
sampling: {{order: sequential}}
batch: {{global_size: {batch}, dtype: float32, layout: {layout}}}
preprocess: [{ops}]
augment: [{augment}]
"""
# Arguments: folder, JSON of [[name, [[channel, modality], ...]], ...]; writes a store for each: int16 where every modality is CT or MR,
# float32 with a PT. Channel c has values of its own, seeded by its name alone. A modality of null: no block of Patchbay's.
WRITE = r"""
import base64, json, pathlib, sys
import numpy, zarr

def varint(n):
    out = bytearray()
    while n >= 128: out.append(n % 128 + 128); n //= 128
    return bytes(out + bytes([n]))

def histogram(x):
    first, last = int(x.min()), int(x.max())
    counts = numpy.bincount((x.astype(numpy.int64) - first).ravel(), minlength=last - first + 1)
    out, i = b"", 0
    while i < len(counts):
        out += varint(int(counts[i]))
        if counts[i] == 0:
            zeros = 0
            while counts[i + 1 + zeros] == 0: zeros += 1
            out += varint(zeros)
            i += zeros
        i += 1
    return {"voxels": int(x.size), "first": first, "counts": base64.b64encode(out).decode()}

def moments(x):
    return {"voxels": int(x.size), "mean": float(x.mean(dtype=numpy.float64)), "std": float(x.std(dtype=numpy.float64))}

def statistics(x):
    cut = numpy.percentile(x.astype(numpy.float64), numpy.arange(1001) / 10).astype("<f4")
    return {"image": moments(x), "nonzero": moments(x[x != 0]), "percentiles": base64.b64encode(cut.tobytes()).decode()}

folder, stores = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
for name, channels in stores:
    is_float = any(m == "PT" for _, m in channels)
    arrays, own = [], []
    for channel, modality in channels:
        numbers = numpy.random.default_rng(list(channel.encode()))
        x = numbers.integers(-900 if modality == "CT" else 0, 3000, (10, 24, 20)) * (numbers.random((10, 24, 20)) > 0.2)
        x = (x / 8).astype("f4") if is_float else x.astype("i2")
        numpy.save(folder / f"{name}-{channel}.npy", x)
        arrays.append(x)
        if modality is not None:
            own.append({"name": channel, "modality": {"name": modality, "unit": "HU" if modality == "CT" else "arbitrary", "from": "table"},
                        **({"value_statistics": statistics(x)} if is_float else {"value_histogram": histogram(x)})})
    group = zarr.open_group(folder / f"{name}.zarr", mode="w", zarr_format=3)
    x = numpy.stack(arrays)
    array = group.create_array("0", shape=x.shape, dtype=x.dtype, chunks=(1, 4, 8, 8), shards=(1, 8, 24, 24), dimension_names=("c", "z", "y", "x"))
    array[:] = x
    axes = [{"name": "c", "type": "channel"}] + [{"name": a, "type": "space", "unit": "millimeter"} for a in "zyx"]
    ome = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": [
        {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 2, 1, 1]}]}]}]}
    if all(channel != "-" for channel, _ in channels):
        ome["omero"] = {"channels": [{"label": channel} for channel, _ in channels]}
    group.attrs["ome"] = ome
    if own: group.attrs["patchbay"] = {"channels": own}
"""

# Arguments: the batch, its layout, formula, files of the channels. Prints the largest difference.
LOOK = r"""
import sys
import numpy
got, layout, formula, *files = sys.argv[1:]
got = numpy.load(got)[0]
if layout == "nhwc": got = numpy.moveaxis(got, -1, 0)
assert got.shape[0] == len(files), got.shape
worst = 0
for channel, file in zip(got, files):
    x = numpy.load(file).astype(numpy.float64)
    if formula == "image": want = (x - x.mean()) / x.std()
    elif formula == "nonzero": want = numpy.where(x == 0, 0, (x - x[x != 0].mean()) / x[x != 0].std())
    elif formula == "percentile":
        low, high = numpy.percentile(x, [2, 98])
        want = numpy.clip((x - low) / (high - low), 0, 1)
    else: want = x
    worst = max(worst, abs(channel - want).max())
print(worst)
"""


class Stores:
    def write(self, *stores):
        if not harness.oracles("numpy", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with NumPy and zarr")
        done = subprocess.run([harness.PYTHON, "-c", WRITE, self.folder, json.dumps(stores)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])

    def run_of(self, dataset, ops="", size="[10, 24, 20]", batch=1, layout="nchw", numerics="cpu", patch=", fill: 0", augment=""):
        run = self.folder / f"run-{len(list(self.folder.glob('run-*.yaml')))}.yaml"
        run.write_text(RUN.format(dataset=dataset, ops=ops, size=size, batch=batch, layout=layout, numerics=numerics, patch=patch,
                                  augment=augment), encoding="utf-8")
        return run


class Channels(Stores, harness.Case):
    def off(self, run, layout, formula, *files):
        saved = self.folder / f"saved-{run.stem}"
        self.json("stream", run, "--digest", "--gpus", "none", "--cpus", 1, "--save", saved)
        (batch,) = saved.glob("*image.npy")
        done = subprocess.run([harness.PYTHON, "-c", LOOK, batch, layout, formula, *(self.folder / f"{f}.npy" for f in files)],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return float(done.stdout)

    def refused(self, run, *texts):
        done = self.command("config", "check", run)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        for text in texts:
            self.assertIn(text, done.stderr)

    def test_each_channel_is_normalised_by_its_own_values_in_the_order_that_is_chosen(self):
        self.write(["brain", [["t1", "MR"], ["flair", "MR"], ["ct", "CT"]]], ["fdg", [["ct", "CT"], ["pet", "PT"]]])
        image = self.run_of("brain.zarr", "zscore: {over: image}", patch=", fill: 0, channels: [flair, t1]")
        self.assertLess(self.off(image, "nchw", "image", "brain-flair", "brain-t1"), 5e-6)
        nonzero = self.run_of("brain.zarr", "zscore: {over: nonzero}", layout="nhwc")
        self.assertLess(self.off(nonzero, "nhwc", "nonzero", "brain-t1", "brain-flair", "brain-ct"), 5e-6)
        percentile = self.run_of("fdg.zarr", "percentile: {range: [2, 98]}")
        self.assertLess(self.off(percentile, "nchw", "percentile", "fdg-ct", "fdg-pet"), 5e-6)
        self.assertIn("flair", self.command("config", "print", image).stdout)

    def test_only_the_chosen_channels_are_read(self):
        self.write(["brain", [["t1", "MR"], ["flair", "MR"], ["ct", "CT"]]])
        for shard in (self.folder / "brain.zarr/0/c/0").rglob("*"):
            if shard.is_file():
                shard.write_bytes(b"not a shard" * 20)
        two = self.run_of("brain.zarr", patch=", fill: 0, channels: [ct, flair]")
        self.assertEqual(self.off(two, "nchw", "as it is", "brain-ct", "brain-flair"), 0)
        all_of_them = self.command("stream", self.run_of("brain.zarr"), "--digest", "--gpus", "none", "--cpus", 1)
        self.assertNotEqual(all_of_them.returncode, 0, "the first channel was not read")

    def test_what_does_not_fit_is_refused_by_the_name_of_the_channel(self):
        self.write(["brain", [["t1", "MR"], ["ct", "CT"]]], ["turned", [["ct", "CT"], ["t1", "MR"]]], ["other", [["-", None], ["-", None]]],
                   ["foreign", [["t1", None], ["ct", None]]])
        choose = ", fill: 0, channels: [{}]".format
        self.refused(self.run_of("brain.zarr", patch=choose("t1, t2")), "brain.zarr: key 'patch.channels': the image has no channel 't2'; it has t1, ct")
        self.refused(self.run_of("brain.zarr", patch=choose("t1, t1")), "patch.channels", "'t1' is there twice")
        self.refused(self.run_of("other.zarr", patch=choose("t1")), "other.zarr: key 'patch.channels': the channels of the image (2) have no names")
        self.refused(self.run_of("[brain.zarr, turned.zarr]"), "key 'dataset': channels: ct, t1, but", "has t1, ct; patch.channels chooses them by name")
        self.refused(self.run_of("brain.zarr", "window: {range: [0, 100]}"),
                     "window': it takes Hounsfield units, and the modality of the channel 't1' is MR")
        self.refused(self.run_of("brain.zarr", patch=""), "key 'patch.fill': its default, -1024", "the channel 't1' is MR")
        self.refused(self.run_of("brain.zarr", "zscore: {over: body}"), "zscore: it takes Hounsfield units, and the modality of the channel 't1' is MR")
        self.refused(self.run_of("brain.zarr", "zscore: {over: mask, mask: organs}"), "no set 'organs'")
        self.refused(self.run_of("foreign.zarr", "zscore: {over: image}"), "foreign.zarr: zscore: t1: no counts of its values")
        both = self.run_of("[brain.zarr, turned.zarr]", "window: {range: [0, 100]}", patch=", channels: [ct]")
        self.assertEqual(self.command("config", "check", both).returncode, 0)
        self.json("stream", self.run_of("foreign.zarr", size="[1, 8, 8]", batch=4), "--batches", 1, "--digest", "--gpus", "none", "--cpus", 1)


    def test_a_slide_gives_its_colours_by_name_and_ops_of_colours_need_all_of_them_in_their_order(self):
        slide = self.slide(size="300x256")
        choose = ", channels: [{}]".format
        green = self.run_of(slide, size="[64, 64]", patch=choose("green"))
        whole = self.run_of(slide, size="[64, 64]", patch="")
        arrays = {}
        for run in (green, whole):
            saved = self.folder / f"saved-{run.stem}"
            self.json("stream", run, "--batches", 1, "--digest", "--gpus", "none", "--cpus", 1, "--save", saved)
            (batch,) = saved.glob("*image.npy")
            arrays[run] = batch.read_bytes()
        pixels = 64 * 64 * 4
        self.assertEqual(arrays[green][-pixels:], arrays[whole][-2 * pixels:-pixels], "the second of three planes")
        turned = self.run_of(slide, size="[64, 64]", patch=choose("blue, green, red"), augment="hed_jitter: {}")
        self.refused(turned, "hed_jitter': it needs red, green and blue, and patch.channels names blue, green, red")
        self.refused(self.run_of(slide, size="[64, 64]", patch=choose("DAPI")), "has no channel 'DAPI'; it has red, green, blue")


class ChannelsOnGpu(Stores, gpu_test.GpuCase):
    def test_a_device_makes_the_bytes_of_the_cpu(self):
        self.write(["brain", [["t1", "MR"], ["flair", "MR"], ["ct", "CT"]]])
        augment = ("{flip: {axes: [z, y, x]}}, {affine: {p: 1, degrees: [-20, 20]}}, {gaussian_noise: {p: 1, std: [0.1, 0.2]}}, "
                   "{gaussian_blur: {p: 0.5}}, {brightness: {p: 1}}, {contrast: {p: 1}}, {gamma: {p: 1, retain_stats: true}}")
        digests = set()
        for numerics, gpus in (("cpu", "none"), ("cuda", "auto")):
            run = self.run_of("brain.zarr", "zscore: {over: nonzero}", "[4, 12, 11]", 4, numerics=numerics, augment=augment,
                              patch=", fill: 0, channels: [ct, t1], spacing: [2.5, 1.3, 1.3]")
            digests.add(self.json("stream", run, "--digest", "--gpus", gpus, "--cpus", 1)["digest"])
        self.assertEqual(len(digests), 1)


if __name__ == "__main__":
    harness.main()
