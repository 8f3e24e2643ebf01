#!/usr/bin/env python3
"""Streams a store with tissue, class weights and masks and without them, in turns, and prints the ratios of the rates.

    sampled.py --bin BIN [--side 16384] [--patches 20000] [--rounds 3]

Both streams draw as many random patches of 256 x 256 from the same store to uint8; the first epoch, which opens it, is left
out of the rate. The store has its tissue and 1,000 outlines of two classes. The first ratio is to a stream that draws anywhere,
background too; the second to one without labels over a table of 6,400 of the sampled places: the same pixels.
"""
import array
import pathlib
import shutil
import tempfile

from many_stores import BATCH, PATCH, compare, options_of, rate, run
from planning import make_store

SAMPLED = ("labels: {set: drawn, mask: true, label: {rule: majority, min_fraction: 0.2}}\n",
           ", tissue: {min_fraction: 0.1}, class_weights: {benign: 0.5, tumour: 0.5}")
LISTED = 6400  # places


def config(work, name, store, labels, sampling):
    path = work / f"{name}.yaml"
    path.write_text(f"dataset: {store}\nseed: 7\npatch: {{size: [{PATCH}, {PATCH}]}}\n{labels}"
                    f"sampling: {{positions: {sampling}}}\n"
                    f"batch: {{global_size: {BATCH}, dtype: uint8, tail: drop}}\n")
    return path


def boxes_of(path):
    """(y, x) of every patch of a batch that was saved: rows of z, y, x, depth, height, width."""
    content = path.read_bytes()
    values = array.array("q", content[10 + int.from_bytes(content[8:10], "little"):])
    return [(max(0, values[i + 1]), max(0, values[i + 2])) for i in range(0, len(values), 6)]


def same_places(options, work, store, sampled):
    """A config of the places that the other one draws first, without labels."""
    run([str(options.bin / "patchbay"), "stream", str(sampled), "--set", "batch.meta=true", "--save", str(work / "saved"),
         "--batches", str(LISTED // BATCH)])
    places = [place for path in sorted((work / "saved").glob("*-box.npy")) for place in boxes_of(path)]
    shutil.rmtree(work / "saved")
    (work / "slides.csv").write_text(f"path,slide_id\n{store},one\n")
    (work / "places.csv").write_text("slide_id,x,y\n" + "".join(f"one,{x},{y}\n" for y, x in places))
    return config(work, "same", work / "slides.csv", "", work / "places.csv")


def main():
    options = options_of(__doc__, side=16384, patches=20_000, rounds=3)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        work = pathlib.Path(folder).absolute()
        store = make_store(options, work)
        drawn = f"random, patches_per_epoch: {options.patches}"
        plain = config(work, "plain", store, "", drawn)
        sampled = config(work, "sampled", store, SAMPLED[0], drawn + SAMPLED[1])
        same = same_places(options, work, store, sampled)
        for what, without in (("anywhere", plain), ("at the same places", same)):
            compare("without, " + what + ", {:.0f} patches/s, with tissue, class weights and masks {:.0f}",
                    lambda without=without: rate(options, without), lambda: rate(options, sampled), options.rounds)


if __name__ == "__main__":
    main()
