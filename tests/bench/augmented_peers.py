#!/usr/bin/env python3
"""Streams augmented 512x512 batches beside PyTorch's DataLoader, in turns, on the same cores, and prints the ratios.

  PYTHON tests/bench/augmented_peers.py --slide BIG.svs [--rounds 5] [--limit-s 170] [--bin build/release/bin]

PYTHON has torch, openslide (openslide-bin 4), OpenCV, scikit-image and Pillow. Every patch is turned and scaled, bent by a
B-spline (borders mirrored), normalised to the reference stains with a fit that is given, HED-jittered, made noisy and
normalised. Peers, two DataLoader workers, OpenCV on one thread in each:
  usual   warpAffine; two smoothed fields and remap; NumPy's stain normalisation; skimage's HED; NumPy's noise
  fused   both maps as one remap, logarithms by table, both 3x3 as one transform, OpenCV's noise
each over the slide (openslide) and over JPEG tiles cut beforehand and held in memory (jpeg).
Ours, two workers, float16: the same ops from the zstd store of the slide. The floor is the same stream without them:
reading, decoding, normalising and delivering.

Each round runs all six once. Rounds go on until there are --rounds of them or --limit-s has passed: the round that would
pass it is stopped and left out. Ratios are medians of the ratios within a round, so that load hits both sides alike.
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

from stream_peers import BATCH, MEAN, SIDE, STD, tiles_per_second

RUN = """dataset: {stores}
numerics: cpu
seed: 7678
patch: {{size: [512, 512], level: 0}}
sampling: {{order: shuffled, positions: grid}}
batch: {{global_size: 32, dtype: float16, layout: nchw, prefetch: 2, tail: keep}}
preprocess: [{stain}{{normalize: {{scale: 255, mean: [0.70, 0.55, 0.70], std: [0.2, 0.2, 0.2]}}}}]
augment: {augment}
"""
AUGMENT = ("[{affine: {p: 1, degrees: [-15, 15], scale: [0.9, 1.1]}}, {elastic: {p: 1, points: 8, amplitude: 10}}, "
           "{hed_jitter: {p: 1}}, {gaussian_noise: {p: 1, std: [0.02, 0.02]}}]")
FIT = [[0.65, 0.07], [0.70, 0.99], [0.29, 0.11]]
REFERENCE = [[0.5626, 0.2159], [0.7201, 0.8012], [0.4062, 0.5581]]
HED = [[0.65, 0.70, 0.29], [0.07, 0.99, 0.11], [0.27, 0.57, 0.78]]


def affine_of(cv2):
    return cv2.getRotationMatrix2D((SIDE / 2 - 0.5, SIDE / 2 - 0.5), random.uniform(-15, 15), random.uniform(0.9, 1.1))


class Usual:
    """The preprocessing of training scripts, step by step."""

    def __init__(self):
        import cv2
        import numpy
        from skimage import color
        cv2.setNumThreads(1)
        self.cv2, self.np, self.color = cv2, numpy, color
        self.y, self.x = numpy.mgrid[:SIDE, :SIDE].astype(numpy.float32)
        self.stain = numpy.array(REFERENCE) @ numpy.linalg.pinv(numpy.array(FIT))

    def __call__(self, image):
        cv2, np = self.cv2, self.np
        image = cv2.warpAffine(image, affine_of(cv2), (SIDE, SIDE), flags=cv2.INTER_LINEAR,
                               borderMode=cv2.BORDER_REFLECT_101)
        dy, dx = (cv2.GaussianBlur(np.random.uniform(-1, 1, (SIDE, SIDE)).astype(np.float32), (63, 63), 32) * 200
                  for _ in range(2))
        image = cv2.remap(image, self.x + dx, self.y + dy, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
        od = -np.log(np.clip(image, 1, 240).astype(np.float32) / 240)
        image = np.minimum(240 * np.exp(-od.reshape(-1, 3) @ self.stain.T), 255).reshape(image.shape).astype(np.uint8)
        hed = self.color.rgb2hed(image)
        hed = hed * np.random.uniform(0.95, 1.05, 3) + np.random.uniform(-0.004, 0.004, 3)
        image = self.color.hed2rgb(hed) + np.random.normal(0, 0.02, image.shape)
        return ((image - MEAN) / STD).astype(np.float32).transpose(2, 0, 1)


class Fused:
    """The same with as few passes as OpenCV allows."""

    def __init__(self):
        import cv2
        import numpy
        cv2.setNumThreads(1)
        self.cv2, self.np = cv2, numpy
        y, x = numpy.mgrid[:SIDE, :SIDE].astype(numpy.float32)
        self.xy = numpy.stack([x, y], axis=-1)
        self.log = -numpy.log(numpy.clip(numpy.arange(256), 1, 240) / 240).astype(numpy.float32)
        self.hed = numpy.array(HED)
        self.stain = numpy.array(REFERENCE) @ numpy.linalg.pinv(numpy.array(FIT))

    def __call__(self, image):
        cv2, np = self.cv2, self.np
        bend = cv2.resize(np.random.uniform(-10, 10, (8, 8, 2)).astype(np.float32), (SIDE, SIDE),
                          interpolation=cv2.INTER_CUBIC)
        places = cv2.transform(self.xy + bend, affine_of(cv2))
        image = cv2.remap(image, places, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
        alpha, beta = np.random.uniform(0.95, 1.05, 3), np.random.uniform(-0.05, 0.05, 3)
        mixed = self.hed.T @ np.diag(alpha) @ np.linalg.inv(self.hed.T) @ self.stain
        od = cv2.transform(cv2.LUT(image, self.log), -np.hstack([mixed, (self.hed.T @ beta)[:, None]]))
        shown = cv2.exp(od)
        noise = np.empty(shown.shape, np.float32)
        cv2.randn(noise, 0, 0.02)
        planes = cv2.split(cv2.addWeighted(shown, 240 / 255, noise, 1, 0))
        return np.stack([(p - m) * (1 / s) for p, m, s in zip(planes, MEAN, STD)]).astype(np.float32)


def loader(read, chain, batches):
    import torch

    class Patches(torch.utils.data.Dataset):
        made = None

        def __len__(self):
            return BATCH * (batches + 2)

        def __getitem__(self, index):
            if self.made is None:
                self.made = chain()
            return torch.from_numpy(self.made(read()))

    return tiles_per_second(Patches(), batches)


def peer(source, chain, slide, batches):
    import numpy
    import openslide
    from PIL import Image
    handles = []

    def cut(handle):
        width, height = handle.dimensions
        return handle.read_region((random.randrange(width - SIDE), random.randrange(height - SIDE)), 0, (SIDE, SIDE))

    def from_slide():
        if not handles:
            handles.append(openslide.OpenSlide(slide))
        return numpy.ascontiguousarray(numpy.asarray(cut(handles[0]))[..., :3])

    if source == "openslide":
        return loader(from_slide, chain, batches)
    tiles, handle = [], openslide.OpenSlide(slide)
    for _ in range(128):
        buffer = io.BytesIO()
        cut(handle).convert("RGB").save(buffer, "JPEG", quality=90)
        tiles.append(buffer.getvalue())
    return loader(lambda: numpy.asarray(Image.open(io.BytesIO(random.choice(tiles))).convert("RGB")), chain, batches)


def ours(patchbay, folder, stores, augmented, batches, limit_s):
    run = folder / f"run{augmented}.yaml"
    stain = "{stain_normalize: {}}, " if augmented else ""
    run.write_text(RUN.format(stores=stores, stain=stain, augment=AUGMENT if augmented else "[]"))
    result = subprocess.run([patchbay, "stream", run, "--batches", str(batches), "--cpus", "2", "--json"], check=True,
                            capture_output=True, text=True, timeout=limit_s)
    return json.loads(result.stdout)["patches_per_s"]


def report(rounds):
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors, {len(rounds)} rounds")
    for name in rounds[0]:
        values = [rates[name] for rates in rounds]
        print(f"{name:18} {statistics.median(values):8.1f} tiles/s   ({min(values):.1f} to {max(values):.1f})")
    for name, goal in (("openslide usual", 12), ("jpeg usual", 12), ("openslide fused", 4), ("jpeg fused", 4), ("floor", None)):
        ratio = statistics.median(rates["ours"] / rates[name] for rates in rounds)
        print(f"ours / {name}: {ratio:.2f}x" + (f"   (goal {goal}x)" if goal else ""))


def whole_rounds(runs, wanted, limit_s):
    """Up to `wanted` rounds of every run within the limit; SystemExit where not even one fits."""
    end, rounds = time.monotonic() + limit_s, []
    try:
        while len(rounds) < wanted:
            rounds.append({name: run(max(1, end - time.monotonic())) for name, run in runs.items()})
    except subprocess.TimeoutExpired as late:
        if not rounds:
            sys.exit(f"augmented_peers: no round ended within {limit_s:.0f} s ({' '.join(map(str, late.cmd))}): "
                     "make --batches smaller, or --limit-s larger")
    return rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slide", required=True)
    parser.add_argument("--store", help="folder of the slide's stores; made when absent")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit-s", type=float, default=170, help="of all rounds; ingest comes before")
    parser.add_argument("--batches", type=int, default=48, help="of ours; the peers make a sixteenth")
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--peer", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        source, chain = options.peer
        print(peer(source, Usual if chain == "usual" else Fused, options.slide, options.batches))
        return
    patchbay = str(pathlib.Path(options.bin) / "patchbay")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        stores = options.store or str(folder / "stores")
        if not options.store:
            subprocess.run([patchbay, "ingest", options.slide, "--out", stores], check=True, stdout=sys.stderr)

        def of_peer(names, limit_s):
            words = [sys.executable, __file__, "--slide", options.slide, "--batches", str(max(2, options.batches // 16)),
                     "--peer", *names]
            return float(subprocess.run(words, check=True, capture_output=True, text=True, timeout=limit_s).stdout)

        runs = {f"{source} {chain}": (lambda limit_s, names=(source, chain): of_peer(names, limit_s))
                for source in ("openslide", "jpeg") for chain in ("usual", "fused")}
        for name, augmented in (("ours", True), ("floor", False)):
            runs[name] = lambda limit_s, a=augmented: ours(patchbay, folder, stores, a, options.batches, limit_s)
        rounds = whole_rounds(runs, options.rounds, options.limit_s)
    report(rounds)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
