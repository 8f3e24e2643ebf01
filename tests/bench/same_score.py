"""The same small model, seeds and patches through Patchbay and through a NumPy/torch loader: validation scores of five seeds each.

    patchbay synth slide train.svs --size 2048x1536 --seed 1 && patchbay synth slide val.svs --size 2048x1536 --seed 2
    patchbay ingest train.svs --out train && patchbay ingest val.svs --out val
    PYTHONPATH=build/dev/python /usr/bin/python3 tests/bench/same_score.py train val --zarr-python .venv/bin/python

Needs PyTorch; the pixels for the other loader are read by zarr-python, which another Python may have. Both train on every
patch of the grid once an epoch in an order of the seed, flipped at random, and start from the same weights. The class of a patch is
whether it is darker than the training set's median. "replayed" is one run without flips and the same by NumPy in the order that
Patchbay handed the patches out. Exit code 1 when the means differ by more than the spread of the seeds, or a replay by more
than rounding.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy
import torch
import torch.nn.functional as F
from torch.utils import data

import patchbay
from patchbay.torch import IterableDataset, loader

SIDE, BATCH = 64, 16
READ = "import sys, numpy, zarr; numpy.save(sys.argv[2], numpy.asarray(zarr.open_group(sys.argv[1], mode='r')['0'][:]))"


def patches_of(stores, python, folder):
    """(every patch of the grid, (N, C, SIDE, SIDE) of uint8, as another reader sees them, edges padded with 255; patches a row)."""
    store, = pathlib.Path(stores).glob("*.ome.zarr")
    out = pathlib.Path(folder) / f"{pathlib.Path(stores).name}.npy"
    subprocess.run([python, "-c", READ, store, out], check=True)
    pixels = numpy.load(out)
    high, wide = (-(-size // SIDE) for size in pixels.shape[1:])
    whole = numpy.full((pixels.shape[0], high * SIDE, wide * SIDE), 255, numpy.uint8)
    whole[:, :pixels.shape[1], :pixels.shape[2]] = pixels
    return whole.reshape(-1, high, SIDE, wide, SIDE).transpose(1, 3, 0, 2, 4).reshape(high * wide, -1, SIDE, SIDE), wide


class Patches(data.Dataset):
    """The other loader's: NumPy normalisation and flips."""

    def __init__(self, patches, flips, seed):
        self.patches, self.flips, self.random = patches, flips, numpy.random.default_rng(seed)

    def __len__(self):
        return len(self.patches)

    def __getitem__(self, index):
        patch = (self.patches[index].astype(numpy.float32) / 255 - 0.5) / 0.25
        for axis in (1, 2):
            if self.flips and self.random.random() < 0.5:
                patch = numpy.flip(patch, axis)
        return torch.from_numpy(patch.copy())


def config(folder, stores, seed, train, flips=False):
    path = pathlib.Path(folder) / f"{'train' if train else 'val'}-{seed}.yaml"
    path.write_text(f"dataset: {pathlib.Path(stores).resolve()}\nnumerics: cpu\nseed: {seed}\n"
                    f"patch: {{size: [{SIDE}, {SIDE}], level: 0, fill: 255}}\n"
                    f"sampling: {{order: {'shuffled' if train else 'sequential'}}}\n"
                    f"batch: {{global_size: {BATCH}, dtype: float32, layout: nchw, tail: keep, meta: true}}\n"
                    "preprocess: [{normalize: {scale: 255, mean: [0.5, 0.5, 0.5], std: [0.25, 0.25, 0.25]}}]\n"
                    f"augment: {'[{flip: {}}]' if flips else '[]'}\n", encoding="utf-8")
    return path


def model_of(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 5, 4), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, 2), torch.nn.ReLU(),
                               torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 2))


def score(seed, train, val, epochs, middle):
    """(accuracy, loss) on the validation patches. `train` and `val` are called for an epoch's batches."""
    def label_of(x):
        return (x.mean((1, 2, 3)) < middle).long()

    model = model_of(seed)
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(epochs):
        for x in train():
            loss = F.cross_entropy(model(x), label_of(x))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    right = total = spent = 0
    with torch.no_grad():
        for x in val():
            out, label = model(x), label_of(x)
            right, total = right + int((out.argmax(1) == label).sum()), total + len(x)
            spent += float(F.cross_entropy(out, label, reduction="sum"))
    return right / total, spent / total


def through_patchbay(seed, arguments, folder, middle):
    with patchbay.attach(config(folder, arguments.train, seed, True, True), cpus=arguments.cpus) as train, \
            patchbay.attach(config(folder, arguments.val, seed, False), cpus=arguments.cpus) as val:
        sets = [loader(IterableDataset(stream)) for stream in (train, val)]
        return score(seed, *((lambda each=each: (batch["image"] for batch in each)) for each in sets), arguments.epochs, middle)


def through_torch(seed, patches, epochs, middle):
    train = data.DataLoader(Patches(patches[0], True, seed), BATCH, shuffle=True, generator=torch.Generator().manual_seed(seed))
    val = data.DataLoader(Patches(patches[1], False, seed), BATCH)
    return score(seed, lambda: train, lambda: val, epochs, middle)


def replayed(arguments, folder, patches, across, middle):
    """Scores of two runs over the same patches in the same order, without flips: Patchbay's, and NumPy's by the boxes.

    across: patches in a row of the training set's grid.
    """
    order = []

    def noted(each):
        for batch in each:
            order.append(batch["box"][:, 1] // SIDE * across + batch["box"][:, 2] // SIDE)
            yield batch["image"]

    def again():
        for _ in range(steps):
            yield torch.stack([plain[index] for index in order.pop(0)])

    with patchbay.attach(config(folder, arguments.train, 0, True), cpus=arguments.cpus) as train, \
            patchbay.attach(config(folder, arguments.val, 0, False), cpus=arguments.cpus) as val:
        steps, sets = len(train), [loader(IterableDataset(stream)) for stream in (train, val)]
        ours = score(0, lambda: noted(sets[0]), lambda: (batch["image"] for batch in sets[1]), arguments.epochs, middle)
    plain = Patches(patches[0], False, 0)
    return ours, score(0, again, lambda: data.DataLoader(Patches(patches[1], False, 0), BATCH), arguments.epochs, middle)


def check_same_patches(arguments, folder, patches):
    """Both loaders have the same pixels, bit for bit but for the rounding of the normalisation."""
    with patchbay.attach(config(folder, arguments.val, 0, False), cpus=arguments.cpus) as stream:
        seen = numpy.concatenate([numpy.array(batch["image"]) for batch in stream])
    other = (patches.astype(numpy.float32) / 255 - 0.5) / 0.25
    # (x / 255 - mean) / std, rounded in another order: 4 units in the last place of values up to 2.
    assert seen.shape == other.shape and numpy.abs(seen - other).max() <= 1e-6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("val")
    parser.add_argument("--zarr-python", default=sys.executable)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--cpus", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="patchbay-score-") as folder, \
            patchbay.attach(config(folder, arguments.val, 0, False), cpus=arguments.cpus):  # keeps the cluster
        train, across = patches_of(arguments.train, arguments.zarr_python, folder)
        patches = [train, patches_of(arguments.val, arguments.zarr_python, folder)[0]]
        check_same_patches(arguments, folder, patches[1])
        middle = float(numpy.median(patches[0].mean((1, 2, 3))) / 255 - 0.5) / 0.25
        scores = {"patchbay": [through_patchbay(seed, arguments, folder, middle) for seed in range(5)],
                  "torch": [through_torch(seed, patches, arguments.epochs, middle) for seed in range(5)]}
        replay = replayed(arguments, folder, patches, across, middle)
    # The rounding of the normalisation, over some hundred steps of AdamW.
    same = abs(replay[0][1] - replay[1][1]) <= 1e-3
    result = {"patches": len(patches[0]), "epochs": arguments.epochs, "replayed": replay}
    for i, figure in enumerate(("accuracy", "loss")):
        by_loader = {name: [each[i] for each in found] for name, found in scores.items()}
        difference = abs(statistics.mean(by_loader["patchbay"]) - statistics.mean(by_loader["torch"]))
        spread = max(statistics.stdev(found) for found in by_loader.values())
        result[figure] = {**by_loader, "difference_of_means": difference, "spread": spread}
        same = same and difference <= spread
    print(json.dumps({**result, "same": same}, indent=1))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
