#!/usr/bin/env python3
"""Tissue of a slide by each profile of `labels tissue`, by processor time, beside reading the slide with OpenSlide, averaging it 32-fold and
thresholding saturation with NumPy; in turns; prints medians and the share of tissue.

  PEERS tests/bench/tissue.py SLIDE [--rounds 3] [--folder /tmp] [--bin build/dev/bin]

The commands read the store that `ingest --codec lz4` makes of the slide; the page cache is warm. PEERS: a Python with openslide-python and NumPy.
"""
import pathlib
import resource
import statistics
import tempfile

import numpy
import openslide
import slide_runs

PROFILES = ("clam", "tiatoolbox", "histolab", "ihc")
CELL, SIDE = 32, 4096


def spent():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def by_numpy(path):
    """Processor seconds, and the share of tissue."""
    begun, inside, cells = spent(), 0, 0
    slide = openslide.OpenSlide(str(path))
    width, height = (side // CELL * CELL for side in slide.dimensions)
    for y in range(0, height, SIDE):
        for x in range(0, width, SIDE):
            size = min(SIDE, width - x), min(SIDE, height - y)
            rgb = numpy.asarray(slide.read_region((x, y), 0, size))[..., :3].astype(numpy.float32)
            mean = rgb.reshape(size[1] // CELL, CELL, size[0] // CELL, CELL, 3).mean((1, 3))
            most = numpy.maximum(mean.max(-1), 1)
            inside += int((255 * (most - mean.min(-1)) / most > 15).sum())
            cells += mean[..., 0].size
    return spent() - begun, inside / cells


def main():
    parser = slide_runs.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    pixels = numpy.prod(openslide.OpenSlide(str(options.slide)).dimensions) / 1e6
    seconds, share = {}, {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        cluster = slide_runs.Cluster(options.bin, pathlib.Path(folder) / "home")
        with cluster.running():
            cluster.run("ingest", options.slide, "--out", f"{folder}/stores", "--codec", "lz4")
            for _ in range(options.rounds):
                for profile in PROFILES:
                    made, _ = cluster.run("labels", "tissue", f"{folder}/stores", "--profile", profile, "--set", profile)
                    seconds.setdefault(profile, []).append(cluster.core_seconds())
                    tissue = {one["name"]: one["pixels"] for one in made["imported"][0]["classes"]}["tissue"]
                    share[profile] = tissue / pixels / 1e6
                took, share["NumPy"] = by_numpy(options.slide)
                seconds.setdefault("NumPy", []).append(took)
    slow = statistics.median(seconds["NumPy"])
    for name, took in seconds.items():
        each = statistics.median(took)
        print(f"{name}: {each:.2f} core-seconds, {pixels / each:.0f} Mpx a core-second, {slow / each:.1f} of NumPy's rate; {share[name]:.1%} tissue")


if __name__ == "__main__":
    main()
