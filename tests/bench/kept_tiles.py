#!/usr/bin/env python3
"""Size, ingest rate and stream rate of a JPEG or JPEG 2000 slide by each codec of `ingest`, in turns on one standing cluster; prints medians.

  tests/bench/kept_tiles.py SLIDE [--rounds 3] [--batches 60] [--folder /tmp] [--bin build/dev/bin]

Ingest: MB/s of the slide's file, from command to published store, beside a copy of the file that is synced to disk. Stream: patches/s of 512 x 512
at random positions from the slide and from each store, float16, flip, normalise, two workers, page cache warm. Rates a core are by the processor
time that `patchbay usage` charges, and hold on a machine with other work.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

RUN = """dataset: {dataset}
numerics: cpu
seed: 7678
patch: {{size: [512, 512], level: 0}}
sampling: {{order: shuffled, positions: random}}
batch: {{global_size: 32, dtype: float16, layout: nchw, prefetch: 2, tail: keep}}
preprocess: [{{normalize: {{scale: 255, mean: [0.70, 0.55, 0.70], std: [0.2, 0.2, 0.2]}}}}]
augment: [{{flip: {{}}}}]
"""
CODECS = {"keep, no statistics": ("keep", "--no-statistics"), "keep": ("keep",), "lz4": ("lz4",), "zstd": ("zstd",)}


def copy(slide, target):
    begun = time.monotonic()
    subprocess.run(["cp", slide, target], check=True)
    with open(target, "rb") as file:
        os.fsync(file.fileno())
    return time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slide", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--bin", default="build/dev/bin")
    options = parser.parse_args()
    patchbay, size = pathlib.Path(options.bin).absolute() / "patchbay", options.slide.stat().st_size
    ingest, ratio, rates = {name: [] for name in ("copy", *CODECS)}, {}, {name: [] for name in ("slide", *CODECS)}
    charged = {"ingest": {}, "stream": {}}

    def run(*words):
        return json.loads(subprocess.run([patchbay, *words, "--json"], check=True, capture_output=True).stdout)

    def core_seconds():
        """The processor time of the newest job."""
        return 3600 * max(run("usage", "--by", "job")["rows"], key=lambda row: row["job"])["core_hours"]

    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        folder = pathlib.Path(folder)
        os.environ["PATCHBAY_HOME"] = str(folder / "home")
        with subprocess.Popen([patchbay, "up"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            while subprocess.run([patchbay, "status"], capture_output=True, check=False).returncode:
                time.sleep(0.1)
            stores = {"slide": options.slide}
            for number in range(options.rounds):
                ingest["copy"].append(size / copy(options.slide, folder / "copy") / 1e6)
                for name, words in CODECS.items():
                    stores[name] = folder / name.replace(",", "").replace(" ", "-")
                    shutil.rmtree(stores[name], ignore_errors=True)
                    made = run("ingest", options.slide, "--out", stores[name], "--codec", *words)
                    ingest[name].append(size / made["seconds"] / 1e6)
                    charged["ingest"].setdefault(name, []).append(size / core_seconds() / 1e6)
                    ratio[name] = made["ratio"]
                for name, dataset in stores.items():
                    (folder / "run.yaml").write_text(RUN.format(dataset=dataset.absolute()), encoding="utf-8")
                    rates[name].append(run("stream", folder / "run.yaml", "--batches", str(options.batches))["patches_per_s"])
                    charged["stream"].setdefault(name, []).append(32 * options.batches / core_seconds())
                print(f"round {number}", flush=True)
            run("down")
    print(f"a synced copy: {statistics.median(ingest['copy']):.0f} MB/s")
    for name, found in rates.items():
        print(f"{name}: {ratio.get(name, 1):.3f} of the slide"
              + (f", ingested at {statistics.median(ingest[name]):.0f} MB/s, {statistics.median(charged['ingest'][name]):.0f} a core"
                 if name in CODECS else "")
              + f", streamed at {statistics.median(found):.0f} patches/s, {statistics.median(charged['stream'][name]):.0f} a core "
              f"({statistics.median(a / b for a, b in zip(charged['stream'][name], charged['stream']['slide'])):.2f} of the slide's)")


if __name__ == "__main__":
    main()
