#!/usr/bin/env python3
"""Tiles of 224 x 224 by class, streamed with their class, beside a loop over the same PNG files with Pillow and NumPy (what a loader of
PyTorch runs in its workers); processor time a tile (of a stream that of its workers), in turns; prints medians.

  tests/bench/tiles.py [--tiles 1800] [--rounds 3] [--folder /tmp] [--bin build/dev/bin]

The tiles are cut from a slide of `patchbay synth`. Both make uint8 arrays (N, H, W, C) of a shuffled epoch; the page cache is warm.
"""
import argparse
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import slide_runs

LOOP = """
import csv, random, resource, sys
import numpy
from PIL import Image
root, table = sys.argv[1:3]
rows = list(csv.DictReader(open(table, newline="")))
random.Random(1).shuffle(rows)
before = resource.getrusage(resource.RUSAGE_SELF)
for first in range(0, len(rows), 64):
    batch = rows[first:first + 64]
    images = numpy.stack([numpy.asarray(Image.open(f"{root}/{row['tile']}").convert("RGB")) for row in batch])
    labels = numpy.array([int(row["label"]) for row in batch])
after = resource.getrusage(resource.RUSAGE_SELF)
print(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
"""
RUN = """dataset: {stores}/cohort.csv
patch: {{size: [224, 224]}}
labels: {{label: {{positions_column: label}}}}
sampling: {{positions: {stores}/positions.csv}}
batch: {{global_size: 64, dtype: uint8, layout: nhwc, tail: keep}}
"""


def cut(patchbay, folder, tiles):
    """PNG tiles in 9 folders, of a synthetic slide."""
    side = 224 * (int(tiles ** 0.5) + 1)
    subprocess.run([patchbay, "synth", "slide", folder / "a.svs", "--size", f"{side}x{side}"], check=True, stdout=subprocess.DEVNULL)
    (folder / "cut.yaml").write_text(f"dataset: {folder}/a.svs\npatch: {{size: [224, 224], level: 0}}\nbatch: {{global_size: 64, dtype: uint8, layout: nhwc}}\n")
    subprocess.run([patchbay, "stream", folder / "cut.yaml", "--batches", str(tiles // 64 + 1), "--save", folder / "cut"], check=True,
                   stdout=subprocess.DEVNULL)
    import numpy
    from PIL import Image
    taken = 0
    for path in sorted((folder / "cut").glob("*-image.npy")):
        for pixels in numpy.load(path)[:tiles - taken]:
            target = folder / "tiles" / f"class{random.Random(taken).randrange(9)}"
            target.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(target / f"{taken:06}.png")
            taken += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiles", type=int, default=1800)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default="/tmp")
    parser.add_argument("--bin", default="build/dev/bin")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        folder = pathlib.Path(folder)
        cluster = slide_runs.Cluster(options.bin, folder / "home")
        cut(cluster.patchbay, folder, options.tiles)
        ingest, spent = {}, {}
        with cluster.running():
            for codec in ("zstd", "lz4"):
                cluster.run("ingest", folder / "tiles", "--out", folder / codec, "--codec", codec)
                ingest[codec] = cluster.core_seconds()
                (folder / f"{codec}.yaml").write_text(RUN.format(stores=folder / codec), encoding="utf-8")
            for _ in range(options.rounds):
                for codec in ingest:
                    made, _ = cluster.run("stream", folder / f"{codec}.yaml", "--batches", str(4 * (options.tiles // 64)))
                    spent.setdefault(codec, []).append(cluster.core_seconds() / made["patches"])
                loop = subprocess.run([sys.executable, "-c", LOOP, folder / "tiles", folder / "zstd/positions.csv"], check=True,
                                      stdout=subprocess.PIPE)
                spent.setdefault("Pillow and NumPy", []).append(float(loop.stdout) / options.tiles)
        slow = statistics.median(spent["Pillow and NumPy"])
        for name, times in spent.items():
            each = statistics.median(times)
            print(f"{name}: {1 / each:.0f} tiles a core-second ({1 / max(times):.0f} to {1 / min(times):.0f}), {slow / each:.1f} times the loop")
        for codec, seconds in ingest.items():
            print(f"ingest {codec}: {options.tiles / seconds:.0f} tiles a core-second")


if __name__ == "__main__":
    main()
