#!/usr/bin/env python3
"""Measures a slide's spectra by every contender, in turns on the same pixels, and prints the study's table.

  tests/bench/spectra/spectra_bench.py SLIDE --bin build/release/bin [--rows N] [--repeat 3] [--json FILE]

Contenders, what is read from the figures, and how: README.md beside this file. Fails when results differ.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import measured_run

HERE = pathlib.Path(__file__).resolve().parent
FRAME, HOP = 256, 128
MEAN_DB, STD_DB, HISTOGRAM = 1e-3, 1e-3, 1e-3  # how far apart two results may be
STUDY_GPX = 2.85  # a slide of the study: 30 TB of RGB pixels in 3,505 slides
STUDY_S = {"A": (40.42, 16.98), "B": (28.68, 9.36), "B+": (24.27, 5.39)}  # on one A40, on four
FLOOR_US = {"decode_us": 38, "fft_us": 61, "statistics_us": 28}  # of the machine the goal was set on


def results_of(sums):
    """Mean and deviation from sums over the full plane of every frame."""
    total = sum(sums["counts"])
    mean = sums["sum_db"] / total
    return {"frames": sums["frames"], "mean_db": mean, "counts": sums["counts"],
            "std_db": math.sqrt(sums["squares_db"] / total - mean * mean),
            "copied_bytes": sums.get("copied_bytes"), "uses": sums.get("uses")}


class Rival:
    """A program that prints its sums."""

    def __init__(self, name, command, one_core=None):
        self.name, self.command, self.one_core = name, command, one_core

    def run(self, cores=2, **instruments):
        command = self.command(cores)
        if cores == 1:
            command = ["taskset", "-c", "0", *command]
        measured = measured_run.run(command, **instruments)
        return measured, results_of(json.loads(measured.stdout))


class Ours:
    """The whole command, with a cluster of its own, from its start to its last plot."""

    def __init__(self, name, patchbay, source, pinned=True):
        self.name, self.patchbay, self.source, self.pinned = name, patchbay, source, pinned

    def run(self, cores=2, **instruments):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out"
            command = [self.patchbay, "spectra", self.source, "--out", out, "--cpus", str(cores), "--json"]
            if cores == 1 and self.pinned:
                command = ["taskset", "-c", "0", *command]
            measured = measured_run.run([str(word) for word in command], **instruments)
            cohort = json.loads((out / "spectra.json").read_text())["cohort"]
        return measured, {"frames": cohort["frames"], "mean_db": cohort["mean_db"], "std_db": cohort["std_db"],
                          "counts": cohort["histogram"]["counts"], "copied_bytes": None, "uses": None}


def has_spectra(patchbay):
    return patchbay.exists() and "spectra" in subprocess.run([patchbay, "--help"], capture_output=True, text=True).stdout


def contenders(options, slide, folder):
    rivals, python = str(options.bin / "spectra_rivals"), options.python
    peer = [python, str(HERE / "numpy_peer.py"), str(slide)]
    found = [Rival("NumPy", lambda cores: [*peer, "--processes", str(cores), "--fft", "numpy"])]
    if subprocess.run([python, "-c", "import scipy.fft, cv2"], capture_output=True).returncode == 0:
        found.append(Rival("NumPy, SciPy's FFT, OpenCV",
                           lambda cores: [*peer, "--processes", str(cores), "--fft", "scipy"]))
    else:
        print("python3-scipy or python3-opencv is missing: the faster script is not measured", file=sys.stderr)
    for name, words in (("A", ["a"]), ("B", ["b"]), ("B+", ["b+"]), ("B+, our tiles", ["b+", "--reader", "own"])):
        found.append(Rival(name, lambda cores, words=words: [rivals, words[0], str(slide), "--cores", str(cores),
                                                             *words[1:]]))
    patchbay = options.bin / "patchbay"
    if has_spectra(patchbay):
        found.append(Ours("patchbay, slide", patchbay, slide))
        if options.store:
            measured_run.run([str(patchbay), "ingest", str(slide), "--out", str(folder / "stores"), "--json"])
            found.append(Ours("patchbay, store", patchbay, folder / "stores"))
    else:
        print("this patchbay has no spectra command: only the rivals are measured", file=sys.stderr)
    return [c for c in found if not options.only or c.name in options.only]


def differences(results):
    """What separates each contender's results from the first one's; empty when they agree."""
    faults, (first, *rest) = [], results.items()
    for name, result in rest:
        want = first[1]
        total = sum(want["counts"])
        apart = sum(abs(a - b) for a, b in zip(want["counts"], result["counts"])) / total
        if result["frames"] != want["frames"] or len(result["counts"]) != len(want["counts"]):
            faults.append(f"{name}: {result['frames']} frames, {first[0]} {want['frames']}")
        elif abs(result["mean_db"] - want["mean_db"]) > MEAN_DB or abs(result["std_db"] - want["std_db"]) > STD_DB:
            faults.append(f"{name}: mean and deviation {result['mean_db']:.5f} {result['std_db']:.5f} dB, "
                          f"{first[0]} {want['mean_db']:.5f} {want['std_db']:.5f}")
        elif apart > HISTOGRAM:
            faults.append(f"{name}: histogram differs from {first[0]}'s by {apart:.2e}")
    return faults


def take_turns(options, entrants, slide):
    """Medians of the plain runs, one instrumented run each, and the floor of every round."""
    timed = {(c.name, cores): [] for c in entrants for cores in options.cores}
    results, floors, alone = {}, [], []
    for number in range(options.repeat):
        floors.append(json.loads(measured_run.run([str(options.bin / "spectra_rivals"), "floor", str(slide)]).stdout))
        for cores in options.cores:
            for entrant in entrants:
                measured, results[entrant.name] = entrant.run(cores)
                timed[entrant.name, cores].append(measured)
                print(f"round {number}: {entrant.name}, {cores} cores: {measured.wall_s:.2f} s, "
                      f"{measured.cpu_s:.2f} s of processor", file=sys.stderr, flush=True)
                faults = differences(results)
                if faults:
                    sys.exit("results differ: " + "; ".join(faults))
        for ours in (c for c in entrants if isinstance(c, Ours)):
            free = Ours(ours.name, ours.patchbay, ours.source, pinned=False)
            alone.append((ours.name, free.run(1)[0].wall_s))
    instrumented = {c.name: c.run(2, tally=slide_of(c, slide), library=options.bin / "libslow_disk.so")[0]
                    for c in entrants}
    slowed = {c.name: c.run(2, tally=slide_of(c, slide), library=options.bin / "libslow_disk.so",
                            rate=options.disk * 1e6)[0] for c in entrants if options.disk}
    return timed, results, floors, alone, instrumented, slowed


def slide_of(entrant, slide):
    """What a contender's bytes are read from."""
    return entrant.source if isinstance(entrant, Ours) else slide


def summary(options, entrants, slide, taken):
    timed, results, floors, alone, instrumented, slowed = taken
    rows = []
    for c in entrants:
        row = {"name": c.name, **{k: results[c.name][k] for k in ("mean_db", "std_db", "copied_bytes", "uses")}}
        for cores in options.cores:
            runs = timed[c.name, cores]
            row[f"wall_s_{cores}"] = statistics.median(r.wall_s for r in runs)
            row[f"cpu_s_{cores}"] = statistics.median(r.cpu_s for r in runs)
        row.update(peak_bytes=instrumented[c.name].peak_bytes, read_bytes=instrumented[c.name].read_bytes,
                   waited_s=instrumented[c.name].waited_s)
        if c.name in slowed:
            row.update(slowed_wall_s=slowed[c.name].wall_s, slowed_waited_s=slowed[c.name].waited_s)
        rows.append(row)
    floor = {k: statistics.median(f[k] for f in floors) for k in floors[0]}
    width, height = slide_size(options, slide)
    return {"slide": {"width": width, "height": height, "frames": floor["frames"]}, "contenders": rows, "floor": floor,
            "unpinned_one_worker_s": {n: statistics.median(s for m, s in alone if m == n) for n in dict(alone)}}


def slide_size(options, slide):
    return json.loads(subprocess.run([options.bin / "spectra_rivals", "size", slide], check=True,
                                     capture_output=True).stdout)["size"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slide", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--rows", type=int, help="only so many pixel rows of the slide, from the top")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2], help="pinned to one, or on this many")
    parser.add_argument("--disk", type=float, default=40, help="MB/s of the simulated disk; 0: none")
    parser.add_argument("--only", nargs="+", help="these contenders only, by name")
    parser.add_argument("--no-store", dest="store", action="store_false", help="do not ingest and measure a store")
    parser.add_argument("--python", default="/usr/bin/python3", help="one with numpy and openslide")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures there")
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as temporary:
        folder, slide = pathlib.Path(temporary), options.slide.resolve()
        if options.rows:
            slide = folder / "crop.svs"
            subprocess.run([options.bin / "spectra_rivals", "crop", options.slide, str(options.rows), slide], check=True,
                           capture_output=True)
        entrants = contenders(options, slide, folder)
        figures = summary(options, entrants, slide, take_turns(options, entrants, slide))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
    import tables
    tables.show(figures, options, STUDY_GPX, STUDY_S, FLOOR_US)


if __name__ == "__main__":
    main()
