#!/usr/bin/python3
"""Streams 512x512 batches beside what people use today, in turns, on the same two cores, and prints the ratios.

  /usr/bin/python3 tests/bench/stream_peers.py --slide BIG.svs [--rounds 5] [--batches 60] [--bin build/release/bin]

Peers (Debian: python3-torch python3-torchvision python3-openslide), two DataLoader workers, float32, flip, normalise:
  openslide   read_region of the slide at random positions
  jpeg        512x512 JPEG tiles cut beforehand and held in memory
Ours, float16, the same flip and normalise, two workers:
  store       aligned tiles of the zstd-5 store made from the slide
  slide       the slide itself at random positions, no store written
"""
import argparse
import io
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

MEAN, STD, SIDE, BATCH = (0.70, 0.55, 0.70), (0.2, 0.2, 0.2), 512, 32
RUN = """dataset: {dataset}
numerics: cpu
seed: 7678
patch: {{size: [512, 512], level: 0}}
sampling: {{order: shuffled, positions: {positions}}}
batch: {{global_size: 32, dtype: float16, layout: nchw, prefetch: 2, tail: keep}}
preprocess: [{{normalize: {{scale: 255, mean: [0.70, 0.55, 0.70], std: [0.2, 0.2, 0.2]}}}}]
augment: [{{flip: {{}}}}]
"""


def tiles_per_second(dataset, batches):
    """A DataLoader at its best settings here: two workers, prefetch 4, no pinning. From the second batch on."""
    import torch
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(dataset, batch_size=BATCH, num_workers=2, prefetch_factor=4)
    seen, start = 0, None
    for number, _ in enumerate(loader):
        if start is None:
            start = time.perf_counter()
        else:
            seen += BATCH
        if number == batches:
            break
    return seen / (time.perf_counter() - start)


def finish(pixels, torch, mean, std):
    """The preprocessing of a training loop: to float, scale, normalise, random flips."""
    image = ((pixels.float() / 255.0) - mean) / std
    if random.random() < 0.5:
        image = torch.flip(image, (2,))
    if random.random() < 0.5:
        image = torch.flip(image, (1,))
    return image


def peer_openslide(slide, batches):
    import numpy
    import openslide
    import torch
    mean, std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)

    class Slides(torch.utils.data.Dataset):
        handle = None

        def __len__(self):
            return BATCH * (batches + 2)

        def __getitem__(self, index):
            if self.handle is None:
                self.handle = openslide.OpenSlide(slide)
            width, height = self.handle.dimensions
            at = (random.randrange(width - SIDE), random.randrange(height - SIDE))
            rgba = numpy.asarray(self.handle.read_region(at, 0, (SIDE, SIDE)))
            return finish(torch.from_numpy(rgba[..., :3].transpose(2, 0, 1).copy()), torch, mean, std)

    return tiles_per_second(Slides(), batches)


def peer_jpeg(slide, batches):
    import openslide
    import torch
    from torchvision.io import decode_jpeg
    mean, std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)
    handle = openslide.OpenSlide(slide)
    width, height = handle.dimensions
    tiles = []
    for _ in range(256):
        at = (random.randrange(width - SIDE), random.randrange(height - SIDE))
        buffer = io.BytesIO()
        handle.read_region(at, 0, (SIDE, SIDE)).convert("RGB").save(buffer, "JPEG", quality=90)
        tiles.append(torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8))

    class Tiles(torch.utils.data.Dataset):
        def __len__(self):
            return BATCH * (batches + 2)

        def __getitem__(self, index):
            return finish(decode_jpeg(tiles[index % len(tiles)]), torch, mean, std)

    return tiles_per_second(Tiles(), batches)


def ours(patchbay, folder, dataset, positions, batches):
    run = folder / f"{positions}.yaml"
    run.write_text(RUN.format(dataset=dataset, positions=positions))
    result = subprocess.run([patchbay, "stream", run, "--batches", str(batches), "--json"], check=True,
                            capture_output=True, text=True)
    return json.loads(result.stdout)["patches_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slide", required=True)
    parser.add_argument("--store", help="folder of the slide's stores; made when absent")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--peer", choices=["openslide", "jpeg"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        print(globals()["peer_" + options.peer](options.slide, options.batches))
        return
    patchbay = str(pathlib.Path(options.bin) / "patchbay")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        store = options.store or str(folder / "stores")
        if not options.store:
            subprocess.run([patchbay, "ingest", options.slide, "--out", store], check=True, stdout=sys.stderr)

        def peer(name):
            return float(subprocess.run([sys.executable, __file__, "--slide", options.slide, "--peer", name, "--batches",
                                         str(options.batches // 4)], check=True, capture_output=True, text=True).stdout)

        runs = {"openslide": lambda: peer("openslide"), "jpeg": lambda: peer("jpeg"),
                "store": lambda: ours(patchbay, folder, store, "grid", options.batches * 4),
                "slide": lambda: ours(patchbay, folder, options.slide, "random", options.batches * 2)}
        rates = {name: [] for name in runs}
        for _ in range(options.rounds):
            for name, run in runs.items():
                rates[name].append(run())
    median = {name: statistics.median(values) for name, values in rates.items()}
    for name, values in rates.items():
        print(f"{name:10} {median[name]:8.0f} tiles/s   (of {options.rounds}: {min(values):.0f} to {max(values):.0f})")
    for a, b, goal in (("store", "openslide", 14), ("store", "jpeg", 7), ("slide", "openslide", 4)):
        print(f"{a} / {b}: {median[a] / median[b]:.1f}x   (goal {goal}x)")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
