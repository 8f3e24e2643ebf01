#!/usr/bin/env python3
"""Times a stream's first batch in a cluster whose every core ingests.

    first_batch.py --bin BIN [--slides 1000] [--rounds 5] [--cpus N]

The slides are one generated slide whose copies differ in their last bytes, so that each is ingested. Each round starts
`patchbay stream` of one of them and takes the time from the start of the command to its first batch in a file: planning,
attaching, and making it. The median, the largest, and how far the ingest was are printed.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time


class Bench:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.environment = os.environ | {"PATCHBAY_HOME": str(work / "home"), "TMPDIR": str(work)}

    def words(self, *words):
        return [str(self.options.bin / "patchbay"), *map(str, words)]

    def run(self, *words):
        done = subprocess.run(self.words(*words), capture_output=True, text=True, env=self.environment)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
        return done.stdout

    def start(self, *words):
        return subprocess.Popen(self.words(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment)

    def make_slides(self):
        slide = self.work / "slide.svs"
        self.run("synth", "slide", slide, "--size", self.options.size)
        folder = self.work / "slides"
        folder.mkdir()
        for number in range(self.options.slides):
            (folder / f"{number:05}.svs").write_bytes(slide.read_bytes() + number.to_bytes(4, "little"))
        return slide, folder

    def ingest_tasks(self):
        rows = [row for row in json.loads(self.run("jobs", "--json"))["jobs"] if row["kind"] == "ingest"]
        return rows[0]["tasks"] if rows else {"done": 0}

    def await_ingest(self, more):
        begun = self.ingest_tasks()["done"]
        while self.ingest_tasks()["done"] < begun + more:
            time.sleep(0.1)

    def config(self, slide):
        path = self.work / "run.yaml"
        path.write_text(f"dataset: {slide}\nseed: 7\npatch: {{size: [256, 256], level: 0}}\n"
                        "batch: {global_size: 32, dtype: float16}\npreprocess: [{normalize: {scale: 255, "
                        "mean: [0.7, 0.55, 0.7], std: [0.2, 0.2, 0.2]}}]\n")
        return path

    def first_batch_s(self, config, number):
        saved = self.work / f"saved-{number}"
        begun = time.time()
        self.run("stream", config, "--batches", 1, "--save", saved)
        return min(path.stat().st_mtime for path in saved.glob("*-image.npy")) - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--slides", type=int, default=1000)
    parser.add_argument("--size", default="3000x2500")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpus", type=int, default=os.cpu_count())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="first-batch-") as work:
        bench = Bench(options, pathlib.Path(work))
        slide, folder = bench.make_slides()
        up = bench.start("up", "--cpus", options.cpus, "--state", bench.work / "state", "--listen",
                         f"127.0.0.1:{random.randrange(20000, 32000)}")
        try:
            while subprocess.run(bench.words("status"), capture_output=True, env=bench.environment).returncode != 0:
                time.sleep(0.1)
            ingest = bench.start("ingest", folder, "--out", bench.work / "out", "--chunk", 256, "--shard", 1024)
            bench.await_ingest(options.cpus * 10)
            config, took = bench.config(slide), []
            for number in range(options.rounds):
                took.append(bench.first_batch_s(config, number))
                bench.await_ingest(options.cpus)
            tasks = bench.ingest_tasks()
            print(f"first batch after {statistics.median(took):.2f} s, at most {max(took):.2f} s, {options.rounds} streams beside an "
                  f"ingest of {options.slides} slides on {options.cpus} cores, {tasks['done']} of its tasks done")
            ingest.terminate()
            ingest.wait()
        finally:
            bench.run("down", "--force")
            up.wait()


if __name__ == "__main__":
    main()
