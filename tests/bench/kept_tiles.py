#!/usr/bin/env python3
"""Size, ingest rate and stream rate of a JPEG or JPEG 2000 slide by each codec of `ingest`, in turns on one standing cluster; prints medians.

  tests/bench/kept_tiles.py SLIDE [--rounds 3] [--batches 60] [--ingest-only] [--folder /tmp] [--bin build/dev/bin]

Ingest: MB/s of the slide's file, from command to published store, beside a copy of the file that is synced to disk, in
turns; --ingest-only takes nothing else, of `keep --no-statistics` alone. Stream: patches/s of 512 x 512
at random positions from the slide and from each store, float16, flip, normalise, two workers, page cache warm. Rates a core are by the processor
time that `patchbay usage` charges, and hold on a machine with other work. Every round has files of its own, and none is removed before the end: file systems
are slow to use the places of what was just removed.
"""
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import slide_runs

CODECS = {"keep, no statistics": ("keep", "--no-statistics"), "keep": ("keep",), "lz4": ("lz4",), "zstd": ("zstd",)}


def copy(slide, target):
    begun = time.monotonic()
    subprocess.run(["cp", slide, target], check=True)
    with open(target, "rb") as file:
        os.fsync(file.fileno())
    return time.monotonic() - begun


def main():
    parser = slide_runs.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--ingest-only", action="store_true")
    options = parser.parse_args()
    size = options.slide.stat().st_size
    codecs = dict(list(CODECS.items())[:1]) if options.ingest_only else CODECS
    ingest, ratio, rates = {name: [] for name in ("copy", *codecs)}, {}, {name: [] for name in ("slide", *codecs)}
    charged = {"ingest": {}, "stream": {}}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        folder = pathlib.Path(folder)
        cluster = slide_runs.Cluster(options.bin, folder / "home", os.cpu_count())
        with cluster.running():
            stores = {"slide": options.slide}
            for number in range(options.rounds):
                ingest["copy"].append(size / copy(options.slide, folder / f"copy-{number}") / 1e6)
                for name, words in codecs.items():
                    stores[name] = folder / f"{name.replace(',', '').replace(' ', '-')}-{number}"
                    made, _ = cluster.run("ingest", options.slide, "--out", stores[name], "--codec", *words)
                    ingest[name].append(size / made["seconds"] / 1e6)
                    charged["ingest"].setdefault(name, []).append(size / cluster.core_seconds() / 1e6)
                    ratio[name] = made["ratio"]
                for name, dataset in ({} if options.ingest_only else stores).items():
                    rates[name].append(cluster.stream(folder, dataset, options.batches, "[{flip: {}}]")["patches_per_s"])
                    charged["stream"].setdefault(name, []).append(32 * options.batches / cluster.core_seconds())
                print(f"round {number}", flush=True)
    print(f"a synced copy: {statistics.median(ingest['copy']):.0f} MB/s")
    for name in codecs:
        beside = statistics.median(a / b for a, b in zip(ingest[name], ingest["copy"]))
        print(f"{name}: {ratio[name]:.3f} of the slide, ingested at {statistics.median(ingest[name]):.0f} MB/s, {beside:.2f} of the copy, "
              f"{statistics.median(charged['ingest'][name]):.0f} a core")
    for name, found in rates.items() if not options.ingest_only else ():
        print(f"{name}: streamed at {statistics.median(found):.0f} patches/s, {statistics.median(charged['stream'][name]):.0f} a core "
              f"({statistics.median(a / b for a, b in zip(charged['stream'][name], charged['stream']['slide'])):.2f} of the slide's)")


if __name__ == "__main__":
    main()
