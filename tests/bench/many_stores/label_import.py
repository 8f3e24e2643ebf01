#!/usr/bin/env python3
"""Imports 1,000 outlines into the store of a slide of 100,000 x 100,000 pixels and prints the time and the memory it took.

    label_import.py --bin BIN [--side 100000] [--rounds 3]

The store is that of a small slide whose levels are said to be larger: their chunks are background, which takes no files. One
worker. Each round writes another set; memory is that of all processes at their fullest.
"""
import json
import pathlib
import shutil
import tempfile

from many_stores import options_of, run
from planning import CLASSES, measured, write_outlines


def make_store(options, work):
    program = str(options.bin / "patchbay")
    run([program, "synth", "slide", str(work / "slide.svs"), "--size", "4096x4096"])
    run([program, "ingest", str(work / "slide.svs"), "--out", str(work / "stores"), "--keep-names"])
    store = work / "stores/slide.ome.zarr"
    for number, level in enumerate(sorted(p for p in store.iterdir() if p.is_dir())):
        shutil.rmtree(level / "c", ignore_errors=True)
        document = json.loads((level / "zarr.json").read_text())
        side = options.side >> number
        document["shape"] = [3, side, side]
        (level / "zarr.json").write_text(json.dumps(document))
    root = json.loads((store / "zarr.json").read_text())
    del root["attributes"]["patchbay"]["shards"]
    (store / "zarr.json").write_text(json.dumps(root))
    return store


def main():
    options = options_of(__doc__, side=100_000, rounds=3)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        work = pathlib.Path(folder).absolute()
        store = make_store(options, work)
        (work / "classes.yaml").write_text(CLASSES)
        write_outlines(work / "drawn.geojson", options.side)
        for number in range(options.rounds):
            words = [str(options.bin / "patchbay"), "labels", "import", str(store), str(work / "drawn.geojson"), "--set",
                     f"s{number}", "--classes", str(work / "classes.yaml"), "--cpus", "1"]
            seconds, most, _ = measured(words)
            print(f"{seconds:.1f} s, {most / 2**20:.0f} MiB at most")


if __name__ == "__main__":
    main()
