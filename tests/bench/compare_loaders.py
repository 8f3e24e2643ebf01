#!/usr/bin/env python3
"""Patchbay beside the data loaders that its users could pick instead, each in its best form, in turns on the same cores.

  PYTHON tests/bench/compare_loaders.py --slide BIG.svs --bin build/dev/bin [--sources slide,store,tiles] [--rounds 3]
  PYTHON tests/bench/compare_loaders.py --list

PYTHON has what tests/bench/loaders/requirements.txt lists, in an environment of its own, and finds Patchbay's module
(PYTHONPATH=build/dev/python). A loader that is not installed is named and left out. Each runs in a process of its own with two
workers; the page cache is warm.

slide, store, tiles   512 x 512 patches of level 0, shuffled: whole tiles of the grid, or with --random-places anywhere; flips,
                      (x / 255 - mean) / std; batches of 16, float32, NCHW, contiguous in the trainer's process. `tiles` are the
                      same patches as JPEG of quality 90, cut and packed beforehand, which is not timed
volumes               96 x 96 x 96 patches with labels of generated CT volumes, a third centred on lesions; window, z-score, flips
volumes-full          the same with nnU-Net's training transforms

The table: patches a second from the first tenth on; seconds of processor time a thousand patches; memory of all processes at their
fullest, shared pages counted once; seconds to the first batch; medians of the rounds. --repeat adds: whether the first batches have
the same bytes with 1, 2 and 4 workers. Last the ratios, with their goals.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import sys

from loaders import inputs, measure
from loaders.common import LOADERS, Job

SLIDE_SOURCES = ("slide", "store", "tiles")
# Ours, the others it is compared with, the ratio that is the goal.
GOALS = [("patchbay-slide", ["cucim-batch"], 4), ("patchbay-store", [*SLIDE_SOURCES], 8), ("patchbay-ct", ["volumes"], 6),
         ("patchbay-ct-full", ["volumes-full"], 12)]


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slide", help="one that OpenSlide opens; --patches beyond its whole tiles of 512 x 512 are of further epochs")
    parser.add_argument("--bin", type=pathlib.Path, help="folder of the program `patchbay`")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("compare-loaders"), help="kept, for the next run")
    parser.add_argument("--sources", default="slide,store,tiles,volumes,volumes-full")
    parser.add_argument("--codec", choices=("zstd", "lz4"), default="zstd", help="of the stores, which every loader of stores reads")
    parser.add_argument("--only", default="", help="names of loaders, with commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit-s", type=float, default=150, help="a loader's time, with its start")
    parser.add_argument("--repeat", action="store_true", help="also compare bytes over 1, 2 and 4 workers")
    parser.add_argument("--list", action="store_true", help="names and descriptions of all loaders")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    for field in dataclasses.fields(Job):
        if isinstance(field.default, (int, float)) and field.name != "repeat":
            word = "--" + field.name.replace("_", "-")
            if isinstance(field.default, bool):
                parser.add_argument(word, action="store_true")
            else:
                parser.add_argument(word, type=type(field.default), default=field.default)
    return parser, parser.parse_args()


def chosen(options):
    """Loaders that were asked for and are installed; says which are not."""
    sources, only = options.sources.split(","), [name for name in options.only.split(",") if name]
    unknown = [name for name in only if name not in LOADERS]
    if unknown:
        sys.exit(f"no loader {unknown[0]}: --list names them")
    found = []
    for loader in LOADERS.values():
        if loader.source not in sources or (only and loader.name not in only):
            continue
        missing = [module for module, version in loader.versions().items() if version is None and module != "patchbay"]
        if missing:
            print(f"{loader.name}: not installed: {', '.join(missing)}", file=sys.stderr)
        else:
            found.append(loader)
    return found


def prepared(options, loaders):
    job = Job(**{field.name: getattr(options, field.name) for field in dataclasses.fields(Job)
                 if hasattr(options, field.name) and field.name not in ("slide", "work", "repeat")})
    options.work.mkdir(parents=True, exist_ok=True)
    job.work, job.patchbay = str(options.work.absolute()), str((options.bin / "patchbay").absolute())
    os.environ |= {"PATCHBAY_HOME": str(job.below("home")), "PATCHBAY_BIN": str(options.bin.absolute())}
    sources = {loader.source for loader in loaders}
    if sources & set(SLIDE_SOURCES):
        if not options.slide:
            sys.exit("--slide is needed")
        job.slide = os.path.abspath(options.slide)
        job.places = inputs.places_of(job)
        job.store = inputs.make_store(job) if "store" in sources else ""
        job.tiles = inputs.cut_tiles(job) if "tiles" in sources else []
        inputs.read_once(job.slide, *job.tiles, *([job.store] if job.store else []))
    if any(loader.is_volumes() for loader in loaders):
        inputs.make_volumes(job)
        inputs.read_once(*(job.below(name) for name in ("nii", "b2nd", "npz", "volumes")))
    return job


def repeats(job, loader, limit_s):
    """yes, no, or ? where it failed."""
    digests = [measure.run(__file__, dataclasses.replace(job, repeat=True, workers=workers), loader, limit_s).get("digest")
               for workers in (1, 2, 4)]
    return "?" if None in digests else "yes" if len(set(digests)) == 1 else "no"


def print_table(loaders, figures, same):
    print(f"{'loader':18} {'patches/s':>9} {'from':>6} {'to':>6} {'cpu s/1000':>10} {'MiB':>6} {'first s':>7} {'repeats':>7}  versions")
    for loader in loaders:
        rows = figures[loader.name]
        if not rows:
            continue
        rates = [row["patches_per_s"] for row in rows]
        median = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        versions = " ".join(f"{module} {version}" for module, version in loader.versions().items() if version)
        print(f"{loader.name:18} {median['patches_per_s']:9.1f} {min(rates):6.0f} {max(rates):6.0f} {median['processor_s_a_thousand']:10.2f} "
              f"{median['memory_bytes'] / 2**20:6.0f} {median['first_batch_s']:7.2f} {same.get(loader.name, '-'):>7}  {versions}")


def print_ratios(figures):
    """The median over the rounds of ours beside the best other one of the round."""
    for ours, others, goal in GOALS:
        names = [name for name, loader in LOADERS.items()
                 if (name in others or loader.source in others) and not name.startswith("patchbay") and figures.get(name)]
        if not names or not figures.get(ours):
            continue
        best = max(names, key=lambda name: statistics.median(row["patches_per_s"] for row in figures[name]))
        for key, more in (("patches_per_s", "wall time"), ("processor_s_a_thousand", "processor time")):
            pairs = [(mine[key], other[key]) for mine, other in zip(figures[ours], figures[best])]
            ratios = [mine / other if key == "patches_per_s" else other / mine for mine, other in pairs]
            print(f"{ours} beside {best}: {statistics.median(ratios):.1f}x by {more} (goal {goal}x)")


def main():
    parser, options = options_of()
    if options.run:
        return measure.work(Job(**json.loads(pathlib.Path(options.job).read_text())), options.run)
    if options.list:
        return print("\n".join(f"{name:18} {loader.source:13} {loader.text}" for name, loader in LOADERS.items()))
    if not options.bin:
        parser.error("--bin is needed")
    measure.adopt_orphans()
    loaders = chosen(options)
    job = prepared(options, loaders)
    figures = {loader.name: [] for loader in loaders}
    for number in range(options.rounds):
        for loader in loaders:
            row = measure.run(__file__, job, loader, options.limit_s)
            print(json.dumps({"round": number, "loader": loader.name, **row}), file=sys.stderr)
            if "failed" not in row:
                figures[loader.name].append(row)
    same = {loader.name: repeats(job, loader, options.limit_s) for loader in loaders} if options.repeat else {}
    print_table(loaders, figures, same)
    print_ratios(figures)
    return None


if __name__ == "__main__":
    main()
