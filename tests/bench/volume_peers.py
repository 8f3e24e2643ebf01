"""The ops of volumes beside what people use today, in turns, in one run; prints rates and ratios.

  PYTHON tests/bench/volume_peers.py --bin build/dev/bin [--rounds 3] [--seconds 12]

PYTHON has PyPI's torch, nnunetv2 2.8 (with batchgeneratorsv2 and SciPy) and tensorstore. Two parts:

resample  60 x 256 x 256 to 100 x 171 x 171 voxels by cubic splines: `ops/geometry/resample.h` on one thread and on two
          beside scipy.ndimage.zoom; and the largest difference of a volume that `ingest --spacing` made from SciPy's.
chain     96 x 96 x 96 patches of an image and its labels, at nnU-Net's probabilities and with every transform on every patch,
          by two processes of one thread each. The chain of nnU-Net v2 beside batchgeneratorsv2 as nnU-Net sets it up (from
          154 x 154 x 154 float32 voxels); that of configs/colorectal.yaml, which bends by a B-spline too, beside the NumPy,
          SciPy and torch functions of a script. Ours also windows and normalises int16 voxels and gives float16.

Rates of the chain are by processor time, so that other work on the machine disturbs them less; those of resampling too, but for
ours on two threads, which is wall time. Ratios are medians of the ratios within a round.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

PATCH, TURN = (96, 96, 96), (-numpy.pi / 6, numpy.pi / 6)
FROM, TO = (60, 256, 256), (100, 171, 171)


def bench(binary, pattern, seconds):
    """Two processes at once; what Google Benchmark says of each benchmark, summed or averaged by the caller."""
    words = [binary, f"--benchmark_filter=^{pattern}$", f"--benchmark_min_time={seconds}", "--benchmark_format=json"]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(2)]
    return [json.loads(process.communicate()[0])["benchmarks"][0] for process in running]


def noise(shape, dtype):
    return numpy.random.default_rng(7678).integers(-1024, 3072, shape).astype(dtype)


def by_scipy(voxels):
    from scipy import ndimage
    return ndimage.zoom(voxels, [b / a for a, b in zip(FROM, TO)], order=3, mode="nearest", grid_mode=True)


def resample_rows(options):
    """Milliseconds of each round: SciPy, ours on one thread, ours on two (wall time)."""
    rows, voxels = [], noise(FROM, numpy.float32)
    for _ in range(options.rounds):
        start = time.process_time()
        by_scipy(voxels)
        scipy_ms = 1e3 * (time.process_time() - start)
        one = bench(options.bench, "BM_ResampleCubic/1/real_time", 1)[0]["cpu_time"]
        run = subprocess.run([options.bench, "--benchmark_filter=^BM_ResampleCubic/2/real_time$", "--benchmark_format=json"],
                             check=True, capture_output=True, text=True)
        rows.append((scipy_ms, one, json.loads(run.stdout)["benchmarks"][0]["real_time"]))
    return rows


def resample_error(patchbay):
    """HU between SciPy in double and the store of a float32 NIfTI that `ingest --spacing` resampled."""
    from volume_chunks import ingest, nifti, opened
    voxels, old = noise(FROM, numpy.float32), (5.0, 1.5, 1.5)
    new = ",".join(repr(s * a / b) for s, a, b in zip(old, FROM, TO))
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "a.nii")
        source.write_bytes(nifti(voxels, old))
        made = opened(ingest(patchbay, source, f"{folder}/out", 32, "--spacing", new)).read().result()
    assert made.shape == TO, made.shape
    return float(numpy.abs(made - by_scipy(voxels.astype(numpy.float64))).max())


def nnunet_chain(always):
    """nnU-Net's own training transforms."""
    from batchgeneratorsv2.transforms.utils.random import RandomTransform
    from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer
    chain = nnUNetTrainer.get_training_transforms(PATCH, TURN, None, (0, 1, 2), False)
    for step in chain.transforms if always else []:
        if isinstance(step, RandomTransform):
            step.apply_probability = 1
            step.transform.p_per_channel = 1
        elif hasattr(step, "p_rotation"):
            step.p_rotation = step.p_scaling = 1
    return chain


class Composition:
    """The chain of configs/colorectal.yaml as a script would write it: SciPy's sampling and filters, NumPy's and torch's arithmetic."""

    def __init__(self, always):
        self.always, self.random = always, numpy.random.default_rng(1)

    def drawn(self, probability):
        return self.always or self.random.random() < probability

    def moved(self, image, labels):
        from scipy import ndimage
        from scipy.spatial.transform import Rotation
        matrix, bent = numpy.eye(3, dtype=numpy.float32), self.drawn(0.2)
        if self.drawn(0.2):
            turn = Rotation.from_euler("zyx", self.random.uniform(*TURN, 3)).as_matrix()
            matrix = (turn * self.random.uniform(0.7, 1.4)).astype(numpy.float32)
        offset = (numpy.array(image.shape) - 1) / 2 - matrix @ ((numpy.array(PATCH) - 1) / 2)
        if not bent:
            return (ndimage.affine_transform(image, matrix, offset, PATCH, order=1),
                    ndimage.affine_transform(labels, matrix, offset, PATCH, order=0))
        places = numpy.stack(numpy.meshgrid(*map(numpy.arange, PATCH), indexing="ij")).astype(numpy.float32)
        for axis in range(3):
            places[axis] += ndimage.zoom(self.random.uniform(-5, 5, (7, 7, 7)).astype(numpy.float32), [s / 7 for s in PATCH])
        places = numpy.tensordot(matrix, places, 1) + offset.astype(numpy.float32)[:, None, None, None]
        return ndimage.map_coordinates(image, places, order=1), ndimage.map_coordinates(labels, places, order=0)

    def contrast(self, x):
        y = (x - x.mean()) * self.random.uniform(0.75, 1.25) + x.mean()
        return numpy.clip(y, x.min(), x.max())

    def coarse(self, x):
        import torch
        image = torch.from_numpy(x)[None, None]
        sides = [int(side * self.random.uniform(0.5, 1)) for side in PATCH]
        low = torch.nn.functional.interpolate(image, sides, mode="nearest-exact")
        return torch.nn.functional.interpolate(low, PATCH, mode="trilinear")[0, 0].numpy()

    def gamma(self, x):
        low, spread, mean, std = x.min(), numpy.ptp(x), x.mean(), x.std()
        y = ((x - low) / max(spread, 1e-7)) ** self.random.uniform(0.7, 1.5) * spread + low
        return (y - y.mean()) / max(y.std(), 1e-7) * std + mean

    def __call__(self, image, segmentation):
        from scipy import ndimage
        x, labels = self.moved(image[0].numpy(), segmentation[0].numpy())
        steps = ((0.1, lambda: x + self.random.normal(0, self.random.uniform(0, 0.1), PATCH).astype(x.dtype)),
                 (0.2, lambda: ndimage.gaussian_filter(x, self.random.uniform(0.5, 1))),
                 (0.15, lambda: x * numpy.float32(self.random.uniform(0.75, 1.25))), (0.15, lambda: self.contrast(x)),
                 (0.25, lambda: self.coarse(x)), (0.3, lambda: self.gamma(x)))
        for probability, step in steps:
            if self.drawn(probability):
                x = step().astype(numpy.float32)
        axes = [axis for axis in range(3) if self.random.random() < 0.5]
        return numpy.ascontiguousarray(numpy.flip(x, axes)), numpy.ascontiguousarray(numpy.flip(labels, axes))


def peer_rate(chain, seconds):
    """Patches per second of processor time, on one thread."""
    import torch
    torch.set_num_threads(1)
    image = torch.from_numpy(noise((1, 154, 154, 154), numpy.float32) / 1000)
    labels = torch.zeros(image.shape, dtype=torch.int16)
    labels[:, 60:90, 60:90, 60:90] = 1
    chain(image=image, segmentation=labels)
    start, made = time.process_time(), 0
    while time.process_time() - start < seconds:
        chain(image=image, segmentation=labels)
        made += 1
    return made / (time.process_time() - start)


def peer(name, always, seconds):
    words = [sys.executable, __file__, "--peer", name, "--seconds", str(seconds)] + ["--always"] * always
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    return sum(float(process.communicate()[0]) for process in running)


def chain_rows(options, always):
    """(chain, peer, goal, rates of ours and of the peer on two cores in each round) of both chains."""
    chains = (("nnU-Net's", "nnunet", "always" if always else "nnunet", 8),
              ("colorectal", "composition", "colorectal_always" if always else "colorectal", 20))
    for chain, rival, name, goal in chains:
        yield chain, rival, goal, [(sum(row["patches/s"] for row in bench(options.bench, "BM_Volume/" + name, options.seconds / 4)),
                                    peer(rival, always, options.seconds)) for _ in range(options.rounds)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=12, help="of each peer in each round")
    parser.add_argument("--peer", choices=["nnunet", "composition"], help=argparse.SUPPRESS)
    parser.add_argument("--always", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        chain = nnunet_chain if options.peer == "nnunet" else Composition
        return print(peer_rate(chain(options.always), options.seconds))
    options.bench = str(pathlib.Path(options.bin, "patchbay-bench-volume"))
    rows = resample_rows(options)
    scipy_ms, one, two = (statistics.median(column) for column in zip(*rows))
    print(f"resample: {two:.1f} ms on two threads, {one:.1f} on one; SciPy {scipy_ms:.0f}: "
          f"{statistics.median(a / b for a, b, _ in rows):.1f}x on one thread   (goal 25 ms on two)")
    error = resample_error(str(pathlib.Path(options.bin, "patchbay")))
    print(f"resample: at most {error:.4f} HU from SciPy   (goal 0.05)")
    for always in (False, True):
        drawn = "every transform" if always else "nnU-Net's probabilities"
        for chain, rival, goal, rounds in chain_rows(options, always):
            ours, theirs = (statistics.median(column) for column in zip(*rounds))
            ratio = statistics.median(a / b for a, b in rounds)
            print(f"chain {chain}, {drawn}: {ours:.0f} patches/s beside {theirs:.1f} ({rival}): {ratio:.1f}x   (goal {goal}x)",
                  flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
