#!/usr/bin/env python3
"""Ingests a slide in turns with its encoder alone, and prints how near the encoder's own rate the ingest comes.

  tests/bench/ingest/ingest_bench.py SLIDE [--rounds 3] [--codec zstd|lz4] [--bin build/release/bin]

The encoder alone works over the same chunks of all levels, two threads, decoding not counted: `blosc_compress_ctx` at the
store's codec and level, and Patchbay's own encoder; both with the bytes they need. The ingest's seconds are from before its
cluster starts to after its store is published. Beside them its processor time: what the ratio would be if no core waited.
Counting and fitting the slide's colours slow ingest by their time over the rest of the ingest's processor time.
"""
import argparse
import ctypes
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import tempfile

CORES = 2


def adopt_clusters():
    """Clusters that commands start detach from them: they become children of this process, so that their time counts."""
    PR_SET_CHILD_SUBREAPER = 36
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def processor_seconds():
    """CPU seconds of all programs that were run and of their children, once all have ended."""
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slide")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--codec", default="zstd")
    parser.add_argument("--bin", default="build/release/bin")
    options = parser.parse_args()
    adopt_clusters()
    programs, ratios, own_ratios, slower = pathlib.Path(options.bin), [], [], []
    for number in range(options.rounds):
        folder = tempfile.mkdtemp()
        before = processor_seconds()
        ingest = json.loads(subprocess.run([programs / "patchbay", "ingest", options.slide, "--out", folder, "--codec",
                                            options.codec, "--json"], check=True, capture_output=True).stdout)
        busy = processor_seconds() - before
        store = next(pathlib.Path(folder).glob("*.ome.zarr"))
        floor = json.loads(subprocess.run([programs / "encoder_floor", store, str(CORES)], check=True,
                                          capture_output=True).stdout)
        blosc, ours = floor["blosc"], floor["ours"]
        ratios.append(blosc["seconds"] / ingest["seconds"])
        own_ratios.append(ours["seconds"] / ingest["seconds"])
        colours = floor["colours"]["seconds"]
        slower.append(colours / (busy - colours))
        print(f"round {number}: ingest {ingest['seconds']:.2f} s, {floor['raw_bytes'] / ingest['seconds'] / 1e6:.0f} MB/s of "
              f"pixels, {busy:.1f} core-seconds; blosc_compress_ctx alone {blosc['seconds']:.2f} s: {ratios[-1]:.2f} of its "
              f"rate; own encoder alone {ours['seconds']:.2f} s: {own_ratios[-1]:.2f} of its rate; stored bytes "
              f"{ours['bytes'] / blosc['bytes']:.3f} of c-blosc's; colours {colours:.2f} core-seconds, "
              f"{floor['colours']['pixels'] / colours / 1e9:.2f} Gpx/s a core: ingest takes {100 * slower[-1]:.1f} % longer",
              flush=True)
        shutil.rmtree(folder)
    print(f"median: {statistics.median(ratios):.2f} of blosc_compress_ctx's rate (goal 0.85), "
          f"{statistics.median(own_ratios):.2f} of its own encoder's; {100 * statistics.median(slower):.1f} % longer for the "
          "colours (goal 10)")


if __name__ == "__main__":
    main()
