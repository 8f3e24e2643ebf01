"""Tiles of a store per CPU second and thread: ours, the floor and zarr-python in one run.

bench_zarr.py BENCH_BINARY SLIDE [--seconds S]

Rounds of our binary and of zarr-python alternate on one core. Rates are per CPU second, so that other
work on the machine disturbs them less; everything is read from the page cache.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile
import time

import numcodecs.blosc
import zarr

SIDE, TILE, ROUNDS = 8192, 512, 3


def zarr_python(store, seconds, aligned):
    array = zarr.open_group(store, mode="r")["0"]
    rng = random.Random(7678)
    count, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        if aligned:
            y, x = (rng.randrange(SIDE // TILE) * TILE for _ in range(2))
        else:
            y, x = (rng.randrange(SIDE - TILE) for _ in range(2))
        array[:, y:y + TILE, x:x + TILE]
        count += 1
    return count / (time.process_time() - start)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("slide")
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1]})
    numcodecs.blosc.use_threads = False
    for codec in ["zstd", "lz4"]:
        with tempfile.TemporaryDirectory() as folder:
            store = os.path.join(folder, "s.zarr")
            subprocess.run([options.binary, "make", options.slide, store, codec], check=True)
            rounds = []
            zarr_python(store, 0.2, True)
            for _ in range(ROUNDS):
                row = json.loads(subprocess.run(
                    [options.binary, "run", store, str(options.seconds)], check=True,
                    capture_output=True, text=True).stdout)
                row["zarr_python_aligned"] = zarr_python(store, options.seconds, True)
                row["zarr_python_unaligned"] = zarr_python(store, options.seconds, False)
                rounds.append(row)
            rate = {k: statistics.median(r[k] for r in rounds) for k in rounds[0]}
            ratio = lambda a, b: statistics.median(r[a] / r[b] for r in rounds)
            print(json.dumps({
                "codec": codec, **{k: round(v, 1) for k, v in rate.items()},
                "aligned_over_floor": round(ratio("ours_aligned", "floor_aligned"), 3),
                "encode_over_floor": round(ratio("ours_encode", "floor_encode"), 3),
                "aligned_over_zarr_python": round(ratio("ours_aligned", "zarr_python_aligned"), 2),
                "unaligned_over_zarr_python":
                    round(ratio("ours_unaligned", "zarr_python_unaligned"), 2)}), flush=True)


main()
