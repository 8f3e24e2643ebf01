#!/usr/bin/env python3
"""How long a stream stands still when one process is killed or frozen: each kind alone, one after the other.

    PATCHBAY_BIN=BUILD/bin tests/chaos/gaps.py [--rounds N] [--gpu] [--records N]
    PATCHBAY_BIN=BUILD/bin tests/chaos/gaps.py --alarms MINUTES [--load N]

The first prints a table: the largest gap between two batches around each hit, beside the same time without a hit and
the goal; with --gpu the worker is one of a GPU, which PATCHBAY_EMULATED_GPUS=1 plays; with --records the scheduler's
journal holds so many tasks before. The second streams beside N busy loops and counts who was called frozen though nobody
was. Exit status 1 when a gap is above its goal, an alarm was false, or a stream ended."""
import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402
from soak import LOST  # noqa: E402

# Goals in seconds: CPU workers, a journal of at most 10,000 records.
GOALS = {("nobody", "hit"): None, ("patchbay-worker", "kill"): 0.5, ("patchbay-agent", "kill"): 0.5,
         ("patchbay-scheduler", "kill"): 0.5, ("patchbay-worker", "freeze"): 3, ("patchbay-agent", "freeze"): 3,
         ("patchbay-scheduler", "freeze"): 3}
GPU_GOALS = {("nobody", "hit"): None, ("patchbay-worker", "kill"): 3, ("patchbay-worker", "freeze"): 3}
SAYS_SO_S = 3  # a stream whose supervisor was killed
NO_LONGER_YOUNG_S = 1.2  # a process that dies younger is started with a delay
SAYS_SO = re.compile(r"no scheduler for \d+ s")
NEVER = 10**6  # batches


class Gaps(harness.Case):
    """One cluster and one trainer, slow enough that the ring is short of time: a batch each 10 ms."""

    def environment(self, **more):
        played = {name: value for name, value in os.environ.items() if name.startswith("PATCHBAY_EMULATED_")}
        return super().environment(**{**played, **more})

    def prepare(self, gpu=False, records=0, step_ms=10):
        self.gpu, self.records, self.streams = gpu, records, 0
        self.run_config = self.run_file(self.store([self.slide(size="2600x2200", seed=5)]), patch=32, batch=2)
        if gpu:
            text = self.run_config.read_text(encoding="utf-8")
            self.run_config.write_text(text.replace("numerics: cpu", "numerics: cuda"), encoding="utf-8")
        self.step_ms = step_ms
        self.start_all()

    def start_all(self):
        self.cluster = self.up(1, "--gpus", "auto") if self.gpu else self.up(2)
        self.await_workers(self.cluster, 2)
        if self.records and not self.streams:
            subprocess.run([harness.BIN / "patchbay-bench-noop-job", self.home / "operator.key", str(self.records)], check=True)
        self.streams += 1
        self.saved = self.folder / f"saved-{self.streams}"
        self.trainer = self.start("stream", self.run_config, "--cluster", self.home / "operator.key", "--batches", NEVER,
                                  "--step-ms", self.step_ms, "--save", self.saved, "--force")
        harness.wait_until(lambda: self.saved.exists() and self.taken(), "batches")

    def taken(self):
        """When the batches since the last call were written, in seconds; their files go, so that the disk stays free."""
        self.alive()
        times = []
        with os.scandir(self.saved) as entries:
            for entry in entries:
                if entry.name.endswith("-image.npy"):
                    with contextlib.suppress(FileNotFoundError):
                        times.append(entry.stat().st_mtime_ns / 1e9)
                        os.unlink(entry.path)
        return sorted(times)

    def alive(self):
        if self.trainer.poll() is not None:
            raise AssertionError(f"the stream ended: {pathlib.Path(self.trainer.log).read_text(encoding='utf-8')[-2000:]}")

    def gap(self, program, how):
        """The largest gap in s between two batches from the hit until its process is back and old again."""
        before = self.taken()[-1:]
        hit = time.time()
        if program != "nobody":
            victim = self.victim(program)
            count = len(self.pids(self.cluster, program))
            self.kill(victim, signal.SIGSTOP if how == "freeze" else signal.SIGKILL)
            harness.wait_until(lambda: victim not in self.pids(self.cluster, program)
                               and len(self.pids(self.cluster, program)) == count, f"another {program}", 60)
        time.sleep(NO_LONGER_YOUNG_S)
        times = before + harness.wait_until(lambda: self.taken(), f"a batch after {program} {how}", 60)
        return max(b - a for a, b in zip(times, times[1:]) if b > hit)

    def victim(self, program):
        """One of that program; of workers that of the GPU, if there is one."""
        pids = self.pids(self.cluster, program)
        words = {pid: pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in pids}
        return next((pid for pid in pids if b"--gpu" in words[pid]), pids[0])

    def supervisor_killed(self):
        """Seconds from the kill until the stream says so; both are started again."""
        log, hit = pathlib.Path(self.trainer.log), time.time()
        self.kill(self.pids(self.cluster, "patchbay-supervisor")[0])
        harness.wait_until(lambda: SAYS_SO.search(log.read_text(encoding="utf-8")), "the stream says so", 60)
        took = time.time() - hit
        self.trainer.kill()
        self.trainer.wait()
        self.cluster.wait()
        self.start_all()
        return took

    def table(self, rounds):
        """Kinds take turns, so that slow minutes of the machine fall on all of them."""
        goals = GPU_GOALS if self.gpu else GOALS
        found = {kind: [] for kind in goals}
        for _ in range(rounds):
            for kind, gaps in found.items():
                gaps.append(self.gap(*kind))
        rows = [(f"{program} {how}", gaps, goals[program, how]) for (program, how), gaps in found.items()]
        if not self.gpu:
            rows.append(("supervisor kill: said", [self.supervisor_killed() for _ in range(rounds)], SAYS_SO_S))
        print("| hit | n | median s | largest s | goal s | above |\n| --- | --- | --- | --- | --- | --- |")
        missed = 0
        for name, gaps, goal in rows:
            above = sum(goal is not None and gap > goal for gap in gaps)
            missed += above
            print(f"| {name} | {len(gaps)} | {statistics.median(gaps):.2f} | {max(gaps):.2f} | {goal or ''} | {above} |")
        return 1 if missed else 0

    def alarms(self, minutes, load):
        """Streams beside busy loops; nobody is hit, so whoever is called frozen was not."""
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(load)]
        try:
            end, batches = time.monotonic() + 60 * minutes, 0
            while time.monotonic() < end:
                time.sleep(1)
                batches += len(self.taken())
        finally:
            for process in busy:
                process.kill()
                process.wait()
        alarms = len(LOST.findall(pathlib.Path(self.cluster.log).read_text(encoding="utf-8")))
        print(json.dumps({"minutes": minutes, "load": load, "batches": batches, "false alarms": alarms}))
        return 1 if alarms or not batches else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20, help="hits of each kind; default: 20")
    parser.add_argument("--gpu", action="store_true", help="the worker of a GPU")
    parser.add_argument("--records", type=int, default=0, help="tasks in the journal before the first hit; default: 0")
    parser.add_argument("--alarms", type=float, metavar="MINUTES", help="count false alarms instead")
    parser.add_argument("--load", type=int, default=16, help="busy loops beside it; default: 16")
    options = parser.parse_args()
    gaps = Gaps()
    gaps.setUp()
    try:
        gaps.prepare(options.gpu, options.records)
        return gaps.alarms(options.alarms, options.load) if options.alarms else gaps.table(options.rounds)
    finally:
        gaps.doCleanups()


if __name__ == "__main__":
    sys.exit(main())
