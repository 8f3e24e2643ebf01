#!/usr/bin/env python3
"""Streams a store with tissue, class weights and masks and without them, in turns, and prints the ratio of the rates.

    sampled.py --bin BIN [--side 16384] [--patches 20000] [--rounds 3]

Both streams draw as many random patches of 256 x 256 from the same store to uint8; the first epoch, which opens it, is left
out of the rate. The store has its tissue and 1,000 outlines of two classes.
"""
import argparse
import pathlib
import statistics
import tempfile

from many_stores import BATCH, PATCH, rate
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--side", type=int, default=16384)
    parser.add_argument("--patches", type=int, default=20_000, help="of an epoch")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.bin = options.bin.absolute()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        work = pathlib.Path(folder).absolute()
        store = make_store(options, work)
        plain = config(work, "plain", store, options.patches, "", "")
        sampled = config(work, "sampled", store, options.patches, *SAMPLED)
        ratios = []
        for _ in range(options.rounds):
            without, with_all = rate(options, plain), rate(options, sampled)
            ratios.append(with_all / without)
            print(f"without {without:.0f} patches/s, with tissue, class weights and masks {with_all:.0f}: {ratios[-1]:.3f}")
        print(f"median ratio {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
