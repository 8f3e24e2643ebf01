#!/usr/bin/env python3
"""Streams random patches over one store and over many, in turns, and prints the ratio.

    many_stores.py SLIDE --bin BIN [--stores 1000] [--patches 40000] [--rounds 3]

The slide is ingested once (chunks of 256 x 256); the further stores are copies of it whose shard files are hard links and
whose recorded digests differ, so that nothing about one store helps with another but the page cache. A store should have
2,000 inner chunks or more. Each
round runs both streams; the first epoch, which opens the stores, is left out of the rate.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

PATCH = 256
BATCH = 64


def run(words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


def copy_store(source, target, number):
    """Hard links for what holds pixels, another digest in the root's metadata."""
    for folder, _, names in os.walk(source):
        there = target / pathlib.Path(folder).relative_to(source)
        there.mkdir(parents=True, exist_ok=True)
        for name in names:
            if name != "zarr.json":
                os.link(pathlib.Path(folder) / name, there / name)
            else:
                shutil.copy(pathlib.Path(folder) / name, there / name)
    document = json.loads((target / "zarr.json").read_text())
    document["attributes"]["patchbay"]["digest"] = hashlib.sha256(str(number).encode()).hexdigest()
    (target / "zarr.json").write_text(json.dumps(document))


def chunks_of(store):
    count = 0
    for level in sorted(p for p in store.iterdir() if p.is_dir()):
        shape = json.loads((level / "zarr.json").read_text())["shape"]
        count += -(-shape[-1] // PATCH) * -(-shape[-2] // PATCH)
    return count


def make_stores(options, work):
    run([str(options.bin / "patchbay"), "ingest", str(options.slide), "--out", str(work / "one"), "--chunk", str(PATCH)])
    first = next(p for p in (work / "one").iterdir() if (p / "zarr.json").exists())
    for number in range(options.stores):
        copy_store(first, work / "many" / f"{number:05}.ome.zarr", number)
    return first


def config(work, name, dataset, patches):
    path = work / f"{name}.yaml"
    path.write_text(
        f"dataset: {dataset}\nseed: 7\npatch: {{size: [{PATCH}, {PATCH}]}}\n"
        f"sampling: {{positions: random, patches_per_epoch: {patches}}}\n"
        f"batch: {{global_size: {BATCH}, dtype: float16, tail: drop}}\npreprocess:\n  - normalize\n"
    )
    return path


def seconds(options, path, epochs):
    batches = epochs * (options.patches // BATCH)
    words = [str(options.bin / "patchbay"), "stream", str(path), "--batches", str(batches), "--cpus", "2", "--json"]
    return json.loads(run(words))["seconds"]


def rate(options, path):
    """Patches a second once every image was opened: a long stream less a short one of the same start."""
    patches = 2 * (options.patches // BATCH) * BATCH
    return patches / (seconds(options, path, 3) - seconds(options, path, 1))


def options_of(description, *paths, **numbers):
    """The command line: these paths, --bin as an absolute path, and the numbers, given with their defaults."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in paths:
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--bin", type=lambda text: pathlib.Path(text).absolute(), required=True)
    for name, default in numbers.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=default)
    return parser.parse_args()


def compare(what, baseline, measured, rounds):
    """Prints both rates of every round, taken in turns, and the median of their ratios."""
    ratios = []
    for _ in range(rounds):
        without, with_it = baseline(), measured()
        ratios.append(with_it / without)
        print(what.format(without, with_it) + f": {ratios[-1]:.3f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.3f}")


def main():
    options = options_of(__doc__, "slide", stores=1000, patches=40_000, rounds=3)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        work = pathlib.Path(folder).absolute()
        first = make_stores(options, work)
        print(f"{options.stores} stores of {chunks_of(first)} inner chunks each")
        one = config(work, "one", first, options.patches)
        many = config(work, "many", work / "many", options.patches)
        compare("one store {:.0f} patches/s, " + str(options.stores) + " stores {:.0f}", lambda: rate(options, one),
                lambda: rate(options, many), options.rounds)


if __name__ == "__main__":
    main()
