#!/usr/bin/env python3
"""Measures a slide's spectra by every contender, in turns on the same pixels, and prints a table.

  tests/bench/spectra/spectra_bench.py SLIDE --bin build/release/bin [--repeat 3] [--json FILE]

Contenders and how they are measured: README.md beside this file. Fails when results differ.
"""
import argparse
import json
import math
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MEAN_DB, STD_DB, HISTOGRAM = 1e-3, 1e-3, 1e-3  # how far apart two results may be


def measured(command):
    """The output of the command, its seconds, and the processor seconds of all its processes."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout, wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Script:
    """numpy_peer.py, which prints its sums over the full plane of every frame."""

    def __init__(self, name, python, slide, fft):
        self.name, self.words = name, [python, HERE / "numpy_peer.py", slide, "--fft", fft]

    def run(self, cores):
        stdout, wall, cpu = measured([*self.words, "--processes", cores])
        sums = json.loads(stdout)
        total = sum(sums["counts"])
        mean = sums["sum_db"] / total
        return wall, cpu, {"frames": sums["frames"], "mean_db": mean, "counts": sums["counts"], "size": sums["size"],
                           "std_db": math.sqrt(sums["squares_db"] / total - mean * mean)}


class Ours:
    """The whole command, with a cluster of its own, from its start to its last plot."""

    def __init__(self, name, patchbay, source):
        self.name, self.patchbay, self.source = name, patchbay, source

    def run(self, cores):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out"
            _, wall, cpu = measured([self.patchbay, "spectra", self.source, "--out", out, "--cpus", cores, "--json"])
            cohort = json.loads((out / "spectra.json").read_text())["cohort"]
        return wall, cpu, {"frames": cohort["frames"], "mean_db": cohort["mean_db"], "std_db": cohort["std_db"],
                           "counts": cohort["histogram"]["counts"]}


def contenders(options, folder):
    found = [Script("NumPy", options.python, options.slide, "numpy")]
    if subprocess.run([options.python, "-c", "import scipy.fft, cv2"], capture_output=True).returncode == 0:
        found.append(Script("NumPy, SciPy's FFT, OpenCV", options.python, options.slide, "scipy"))
    else:
        print("python3-scipy or python3-opencv is missing: the faster script is not measured", file=sys.stderr)
    patchbay = options.bin / "patchbay"
    measured([patchbay, "ingest", options.slide, "--out", folder / "stores", "--json"])
    return found + [Ours("patchbay, slide", patchbay, options.slide), Ours("patchbay, store", patchbay, folder / "stores")]


def difference(first, other):
    """The differences between two results; empty when they agree."""
    apart = sum(abs(a - b) for a, b in zip(first["counts"], other["counts"])) / sum(first["counts"])
    if first["frames"] != other["frames"] or len(first["counts"]) != len(other["counts"]):
        return f"{other['frames']} frames, {first['frames']} expected"
    if abs(first["mean_db"] - other["mean_db"]) > MEAN_DB or abs(first["std_db"] - other["std_db"]) > STD_DB:
        return f"mean and deviation {other['mean_db']:.5f} {other['std_db']:.5f} dB"
    return f"histograms differ by {apart:.2e}" if apart > HISTOGRAM else ""


def take_turns(options, entrants):
    """Medians of seconds and processor seconds, by contender; the size of the slide."""
    timed, first = {entrant.name: [] for entrant in entrants}, None
    for number in range(options.repeat):
        for entrant in entrants:
            wall, cpu, result = entrant.run(options.cores)
            timed[entrant.name].append((wall, cpu))
            print(f"round {number}: {entrant.name}: {wall:.2f} s, {cpu:.2f} s of processor", file=sys.stderr, flush=True)
            first = first or result
            if fault := difference(first, result):
                sys.exit(f"{entrant.name}: results differ: {fault}")
    return {name: tuple(map(statistics.median, zip(*runs))) for name, runs in timed.items()}, first["size"]


def show(taken, size):
    width, height = size
    print(f"{width} x {height} pixels, medians, page cache warm\n\n| contender | s | processor s | Gpx/s | NumPy's time by its"
          " | by processor time |\n| --- | --- | --- | --- | --- | --- |")
    numpy_wall, numpy_cpu = taken["NumPy"]
    for name, (wall, cpu) in taken.items():
        print(f"| {name} | {wall:.2f} | {cpu:.2f} | {width * height / 1e9 / wall:.3f} | {numpy_wall / wall:.1f}x | {numpy_cpu / cpu:.1f}x |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slide", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--python", default="/usr/bin/python3", help="one with numpy and openslide")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures there")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        taken, size = take_turns(options, contenders(options, pathlib.Path(folder)))
    if options.json:
        options.json.write_text(json.dumps(taken, indent=1))
    show(taken, size)


if __name__ == "__main__":
    main()
