#!/usr/bin/env python3
"""Ingests a slide in turns with its encoder alone, and prints how near the encoder's own rate the ingest comes.

  tests/bench/ingest/ingest_bench.py SLIDE [--rounds 3] [--codec zstd|lz4] [--bin build/release/bin]

The encoder alone is `blosc_compress_ctx` over the same chunks of all levels, two threads, decoding not counted.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import tempfile


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slide")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--codec", default="zstd")
    parser.add_argument("--bin", default="build/release/bin")
    options = parser.parse_args()
    programs, ratios = pathlib.Path(options.bin), []
    for number in range(options.rounds):
        folder = tempfile.mkdtemp()
        ingest = json.loads(subprocess.run([programs / "patchbay", "ingest", options.slide, "--out", folder, "--codec",
                                            options.codec, "--json"], check=True, capture_output=True).stdout)
        store = next(pathlib.Path(folder).glob("*.ome.zarr"))
        floor = json.loads(subprocess.run([programs / "encoder_floor", store, "2"], check=True,
                                          capture_output=True).stdout)
        ratios.append(floor["seconds"] / ingest["seconds"])
        print(f"round {number}: ingest {ingest['seconds']:.2f} s, {floor['raw_bytes'] / ingest['seconds'] / 1e6:.0f} MB/s of "
              f"pixels; encoder alone {floor['seconds']:.2f} s; {ratios[-1]:.2f} of the encoder's rate", flush=True)
        shutil.rmtree(folder)
    print(f"median: {statistics.median(ratios):.2f} of the encoder's rate (goal 0.85)")


if __name__ == "__main__":
    main()
