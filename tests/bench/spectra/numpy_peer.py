#!/usr/bin/python3
"""The script people write: OpenSlide, NumPy, processes. One JSON object: frames, sums, histogram, what it used.

  /usr/bin/python3 numpy_peer.py SLIDE [--processes 2] [--fft scipy|numpy]

Every process takes its half of the frame rows, reads them strip by strip, keeps the rows that the next strip needs, and
transforms batches of frames that fit the cache. Greys by OpenCV when it is installed; `--fft scipy` is the single
precision FFT of SciPy (the fastest here), `--fft numpy` is NumPy's own, in double.
"""
import argparse
import json
import multiprocessing
import os
import sys

os.environ["OMP_NUM_THREADS"] = "1"

import numpy
import openslide

try:
    import cv2
    cv2.setNumThreads(1)
except ImportError:
    cv2 = None
try:
    import scipy.fft
except ImportError:
    scipy = None

FRAME, HOP, STRIP, BLOCK, BATCH, BINS = 256, 128, 1024, 2048, 4, 640


def grey_of(rgba):
    """OpenCV's RGB2GRAY, or the same integers by NumPy."""
    if cv2 is not None:
        return cv2.cvtColor(rgba, cv2.COLOR_RGBA2GRAY)
    red, green, blue = (rgba[..., i].astype(numpy.uint32) for i in range(3))
    return ((9798 * red + 19235 * green + 3735 * blue + 16384) >> 15).astype(numpy.uint8)


class Sums:
    def __init__(self, fft):
        self.frames, self.sum, self.squares = 0, 0.0, 0.0
        self.histogram = numpy.zeros(BINS, numpy.int64)
        self.forward = scipy.fft.rfft2 if fft == "scipy" else numpy.fft.rfft2
        self.dtype = numpy.float32 if fft == "scipy" else numpy.float64

    def add(self, frames):
        """Adds a batch of frames; the half plane counts twice but for its first and last column."""
        level = numpy.abs(self.forward(frames.astype(self.dtype)))
        numpy.maximum(level, 1, out=level)
        numpy.log10(level, out=level)
        level *= 20
        edges = level[..., ::level.shape[-1] - 1]
        self.frames += len(frames)
        self.sum += 2 * level.sum(dtype=numpy.float64) - edges.sum(dtype=numpy.float64)
        self.squares += 2 * float(numpy.vdot(level, level)) - float(numpy.vdot(edges, edges))
        self.histogram += 2 * self.count(level) - self.count(edges)

    @staticmethod
    def count(level):
        return numpy.bincount((level * 4).astype(numpy.int64).ravel(), minlength=BINS)


def analyse(task):
    """Frame rows [begin, end) of the slide."""
    path, begin, end, fft = task
    slide, sums, strip_frames = openslide.OpenSlide(path), Sums(fft), STRIP // HOP
    width = slide.dimensions[0]
    columns, kept = (width - FRAME) // HOP + 1, FRAME - HOP
    grey = numpy.empty((kept + STRIP, width), numpy.uint8)
    read(slide, begin * HOP, grey[:kept])
    for row in range(begin, end, strip_frames):
        count = min(strip_frames, end - row)
        read(slide, row * HOP + kept, grey[kept:kept + count * HOP])
        windows = numpy.lib.stride_tricks.sliding_window_view(grey[:kept + count * HOP], (FRAME, FRAME))[::HOP, ::HOP]
        for line in windows:
            for column in range(0, columns, BATCH):
                sums.add(line[column:column + BATCH])
        grey[:kept] = grey[count * HOP:count * HOP + kept].copy()
    return sums.frames, sums.sum, sums.squares, sums.histogram


def read(slide, top, out):
    height, width = out.shape
    for left in range(0, width, BLOCK):
        size = (min(BLOCK, width - left), height)
        out[:, left:left + size[0]] = grey_of(numpy.asarray(slide.read_region((left, top), 0, size)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slide")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--fft", choices=["scipy", "numpy"], default="scipy" if scipy else "numpy")
    options = parser.parse_args()
    if options.fft == "scipy" and scipy is None:
        sys.exit("python3-scipy is missing")
    size = openslide.OpenSlide(options.slide).dimensions
    rows, parts = (size[1] - FRAME) // HOP + 1, options.processes
    tasks = [(options.slide, rows * i // parts, rows * (i + 1) // parts, options.fft) for i in range(parts)]
    with multiprocessing.Pool(parts) as pool:
        results = pool.map(analyse, tasks, chunksize=1)
    print(json.dumps({"frames": sum(r[0] for r in results), "sum_db": sum(r[1] for r in results),
                      "squares_db": sum(r[2] for r in results), "counts": sum(r[3] for r in results).tolist(),
                      "size": size,
                      "uses": f"{options.fft} fft, grey by {'OpenCV' if cv2 else 'NumPy'}"}))


if __name__ == "__main__":
    main()
