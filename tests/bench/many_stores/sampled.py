#!/usr/bin/env python3
"""Streams a store with tissue, class weights and masks and without them, in turns, and prints the ratio of the rates.

    sampled.py --bin BIN [--side 16384] [--patches 20000] [--rounds 3]

Both streams draw as many random patches of 256 x 256 from the same store to uint8; the first epoch, which opens it, is left
out of the rate. The store has its tissue and 1,000 outlines of two classes.
"""
import pathlib
import tempfile

from many_stores import BATCH, PATCH, compare, options_of, rate
from planning import make_store

SAMPLED = ("labels: {set: drawn, mask: true, label: {rule: majority, min_fraction: 0.2}}\n",
           ", tissue: {min_fraction: 0.1}, class_weights: {benign: 0.5, tumour: 0.5}")


def config(work, name, store, patches, labels, sampling):
    path = work / f"{name}.yaml"
    path.write_text(f"dataset: {store}\nseed: 7\npatch: {{size: [{PATCH}, {PATCH}]}}\n{labels}"
                    f"sampling: {{positions: random, patches_per_epoch: {patches}{sampling}}}\n"
                    f"batch: {{global_size: {BATCH}, dtype: uint8, tail: drop}}\n")
    return path


def main():
    options = options_of(__doc__, side=16384, patches=20_000, rounds=3)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        work = pathlib.Path(folder).absolute()
        store = make_store(options, work)
        plain = config(work, "plain", store, options.patches, "", "")
        sampled = config(work, "sampled", store, options.patches, *SAMPLED)
        compare("without {:.0f} patches/s, with tissue, class weights and masks {:.0f}", lambda: rate(options, plain),
                lambda: rate(options, sampled), options.rounds)


if __name__ == "__main__":
    main()
