"""64 worker processes on one machine, some of which end in the middle: the same bytes, and nothing lost."""
import json
import pathlib
import random

import harness
from harness import wait_until

WORKERS = 64
ENDS = 16
BATCHES = 300
WORKER_MIB = 128  # most that a worker has of its own, and the least that this machine must have free for each
SEED = 7678


def free_mib():
    rows = pathlib.Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("MemAvailable")) >> 10


def own_mib(pid):
    """Memory that the process shares with no other."""
    rows = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(row.split()[1]) for row in rows if row.startswith("Private_")) >> 10


class ManyWorkers(harness.Case):
    def test_a_node_of_64_workers_loses_a_quarter_of_them_and_nothing_else(self):
        if free_mib() < WORKERS * WORKER_MIB:
            self.skipTest(f"64 workers may need {WORKERS * WORKER_MIB} MiB, {free_mib()} are free")
        slide = self.slide()
        run = self.run_file(slide, patch=64)
        alone = self.json("stream", run, "--batches", BATCHES, "--digest")["digest"]
        slides = self.folder / "slides"
        slides.mkdir()
        for number in range(WORKERS):
            (slides / f"{number}.svs").write_bytes(slide.read_bytes() + bytes([number]))
        cluster = self.up(WORKERS)
        ingest = self.start("ingest", slides, "--out", self.folder / "stores", "--chunk", 256, "--shard", 1024, "--json")
        stream = self.start("stream", run, "--batches", BATCHES, "--step-ms", 20, "--digest", "--json")
        dice = random.Random(SEED)
        print("seed", SEED)
        for end in range(ENDS):
            wait_until(lambda least=end: len(list(self.folder.glob("stores/*"))) > least, f"more than {end} stores")
            self.kill(dice.choice(self.pids(cluster, "patchbay-worker")))
        result = json.loads(self.done(stream))
        self.assertEqual(result["digest"], alone)
        self.assertEqual(len(json.loads(self.done(ingest))["stores"]), WORKERS)
        self.await_workers(cluster, WORKERS)
        workers = self.pids(cluster, "patchbay-worker")
        self.assertEqual(len(workers), WORKERS)
        self.assertLess(max(map(own_mib, workers)), WORKER_MIB)
        self.assertEqual(self.json("status")["nodes"][0]["state"], "up")
        self.down(cluster)


if __name__ == "__main__":
    harness.main()
