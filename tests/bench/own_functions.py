#!/usr/bin/env python3
"""The cost of an own function in a stream: patches/s with configs/examples/functions/cutout.py beside the stream without, in turns; prints
medians and ranges.

  PATCHBAY_PYTHON=PYTHON tests/bench/own_functions.py SLIDE [--rounds 5] [--batches 400] [--folder /tmp] [--bin build/dev/bin]

512 x 512 at random positions from the slide and from its lz4 store, float16, flip, normalise, two workers in a cluster of the command's
own, page cache warm. `cutout` writes one value into half of the patches; `mean` takes it from the whole patch, in NumPy.
"""
import json
import pathlib
import statistics
import subprocess
import tempfile

import slide_runs

CUTOUT = pathlib.Path(__file__).resolve().parents[2] / "configs/examples/functions/cutout.py"
FUNCTIONS = {"none": "", "cutout": ", size: 128, value: 255", "mean": ", size: 128"}


def augment_of(options):
    step = f"{{python: {{file: {CUTOUT}, function: cutout{options}}}}}"
    return f"[{{flip: {{}}}}{', ' + step if options else ''}]"


def main():
    parser = slide_runs.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=400)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        folder = pathlib.Path(folder)
        patchbay = pathlib.Path(options.bin).absolute() / "patchbay"

        def run(*words):
            return json.loads(subprocess.run([patchbay, *words, "--cpus", "2", "--json"], check=True, stdout=subprocess.PIPE).stdout)

        run("ingest", options.slide.absolute(), "--out", folder / "stores", "--codec", "lz4")
        rates = {}
        for _ in range(options.rounds):
            for source, dataset in (("slide", options.slide.absolute()), ("store", folder / "stores")):
                for name, words in FUNCTIONS.items():
                    (folder / "run.yaml").write_text(slide_runs.RUN.format(dataset=dataset, augment=augment_of(words)), encoding="utf-8")
                    made = run("stream", folder / "run.yaml", "--batches", str(options.batches))
                    rates.setdefault((source, name), []).append(made["patches_per_s"])
    for (source, name), found in rates.items():
        cost = 1 - statistics.median(found) / statistics.median(rates[source, "none"])
        print(f"{source} {name}: {statistics.median(found):.0f} patches/s ({min(found):.0f} to {max(found):.0f}), cost {100 * cost:.0f} %")


if __name__ == "__main__":
    main()
