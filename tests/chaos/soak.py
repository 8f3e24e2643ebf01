#!/usr/bin/env python3
"""Streams and ingests on a cluster whose processes are killed and frozen at random, and what became of them.

    PATCHBAY_BIN=BUILD/bin tests/chaos/soak.py [--seed N] [--minutes M] [--every S] [--batches N] [--embedded]

Every batch of every stream is compared with the same batch of an undisturbed one, every store with an undisturbed
one's digest. The report names the largest gap between two batches around each kind of fault. Exit status 1 when a
batch or a store is wrong, or a command failed that should have ended well."""
import argparse
import collections
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402

# The processes that are hit, how, and how often relative to the others. A frozen supervisor wakes
# after two seconds; whoever else freezes is left to its parent. A killed supervisor takes the
# cluster along, which is then started again.
FAULTS = {("patchbay-worker", "kill"): 4, ("patchbay-worker", "freeze"): 3, ("patchbay-agent", "kill"): 2,
          ("patchbay-agent", "freeze"): 2, ("patchbay-scheduler", "kill"): 2, ("patchbay-scheduler", "freeze"): 2,
          ("patchbay-supervisor", "freeze"): 1, ("patchbay-supervisor", "kill"): 1, ("trainer", "freeze"): 1,
          ("trainer", "kill"): 1}
LONG_S = 3  # the goal for one process that is frozen
FROZEN_S = 2
STREAM_LIMIT_S = 300
LOST = re.compile(r"(?:killing worker \d+: it does not respond|does not respond, killing it)")


def digests(folder):
    """{batch file: digest} of everything a stream saved."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.npy")}


def store_digest(folder):
    """One digest of the bytes and names of all files of the stores below a folder."""
    total = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and ".ome.zarr" in str(p)):
        total.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


class Hits:
    """The faults so far: kind, target and time (nanoseconds of the wall clock, as in file times)."""

    def __init__(self):
        self.at = []  # (time, program, how)
        self.frozen = 0

    def add(self, program, how):
        self.at.append((time.time_ns(), program, how))
        self.frozen += how == "freeze" and program not in ("trainer", "patchbay-supervisor")

    def gaps(self, times):
        """{(program, how): [largest gap in s between batches from each hit to the next one]}."""
        found = collections.defaultdict(list)
        for i, (hit, program, how) in enumerate(self.at):
            end = self.at[i + 1][0] if i + 1 < len(self.at) else hit + 10**11
            around = [(b - a) / 1e9 for a, b in zip(times, times[1:]) if b > hit and a < end]
            if around and times[0] < hit < times[-1]:
                found[program, how].append(max(around))
        return found


    def long_gaps(self, times):
        """Gaps above LONG_S, with the hits from a second before until their end: "7.01 s: scheduler kill -0.20, ..."."""
        for a, b in zip(times, times[1:]):
            if b - a > LONG_S * 1e9:
                inside = [f"{program.removeprefix('patchbay-')} {how} {(hit - a) / 1e9:+.2f}"
                          for hit, program, how in self.at if a - 10**9 < hit < b]
                yield f"{(b - a) / 1e9:.2f} s: {', '.join(inside) or 'no hit'}"


class Soak(harness.Case):
    """One cluster, one trainer after the other, and a thread that does the damage."""

    def prepare(self, options):
        self.options, self.random = options, random.Random(options.seed)
        self.hits, self.gaps, self.counts = Hits(), collections.defaultdict(list), collections.Counter()
        self.trainer, self.stop, self.failures, self.long = None, threading.Event(), [], []
        self.source = self.slide(size="2600x2200", seed=5)
        self.run_config = self.run_file(self.store([self.source]), patch=32, batch=8)
        self.expected = self.undisturbed()
        self.cluster = None if options.embedded else self.up(options.cpus)
        self.faults = {kind: weight for kind, weight in FAULTS.items()
                       if not options.embedded or kind != ("patchbay-supervisor", "kill")}

    def undisturbed(self):
        saved = self.folder / "expected"
        self.json("stream", self.run_config, "--batches", self.options.batches, "--save", saved)
        result = digests(saved)
        shutil.rmtree(saved)
        self.ingest_to(self.folder / "plain")
        self.expected_store = store_digest(self.folder / "plain")
        return result

    def ingest_to(self, out):
        done = self.command("ingest", self.source, "--out", out, "--chunk", 128, "--shard", 512, "--codec", "lz4")
        if done.returncode != 0:
            self.failures.append(f"ingest: exit {done.returncode}: {done.stderr[-300:]}")
        return done.returncode == 0

    # ---------------------------------------------------------------- damage

    def damage(self):
        while not self.stop.wait(self.random.expovariate(1 / self.options.every)):
            program, how = self.random.choices(list(self.faults), self.faults.values())[0]
            pids = self.targets(program)
            if not pids:
                continue
            pid = self.random.choice(pids)
            try:
                os.kill(pid, signal.SIGSTOP if how == "freeze" else signal.SIGKILL)
            except ProcessLookupError:
                continue
            self.hits.add(program, how)
            if how == "freeze" and program in ("trainer", "patchbay-supervisor"):
                self.wake(pid)
            if (program, how) == ("patchbay-supervisor", "kill"):
                self.start_again()

    def targets(self, program):
        if self.trainer and program == "trainer":
            return [self.trainer.pid]
        owner = self.trainer if self.options.embedded else self.cluster
        return self.pids(owner, program) if owner else []

    def wake(self, pid):
        self.stop.wait(FROZEN_S)
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            return

    def start_again(self):
        self.cluster.wait(60)
        self.lost_logs()
        self.cluster = self.up(self.options.cpus)

    def lost_logs(self):
        """Counts what parents called frozen, before the log goes with its cluster. An embedded one keeps none."""
        if self.cluster:
            self.counts["called frozen"] += len(LOST.findall(pathlib.Path(self.cluster.log).read_text(encoding="utf-8")))

    # ---------------------------------------------------------------- work

    def stream(self, number):
        saved = self.folder / f"stream-{number}"
        where = ("--cpus", self.options.cpus) if self.options.embedded else ("--cluster", self.home / "operator.key")
        self.trainer = self.start("stream", self.run_config, *where, "--batches", self.options.batches, "--save", saved, "--json")
        killed = lambda: any(who == "trainer" and how == "kill" for _, who, how in self.hits.at[before:])
        before = len(self.hits.at)
        try:
            self.trainer.communicate(timeout=STREAM_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.trainer.kill()
            self.failures.append(f"stream {number}: not done in {STREAM_LIMIT_S} s")
        if self.trainer.returncode not in (0, -signal.SIGKILL) or (self.trainer.returncode != 0 and not killed()):
            text = pathlib.Path(self.trainer.log).read_text(encoding="utf-8")
            self.failures.append(f"stream {number}: exit {self.trainer.returncode}: {text[-300:]}")
        self.compare(number, saved)

    def compare(self, number, saved):
        times = sorted(path.stat().st_mtime_ns for path in saved.glob("*-image.npy")) if saved.exists() else []
        for name, digest in (digests(saved) if saved.exists() else {}).items():
            self.counts["batches"] += name.endswith("-image.npy")
            if digest != self.expected[name]:
                self.counts["wrong batches"] += 1
                self.failures.append(f"stream {number}: {name} is wrong")
        self.long += self.hits.long_gaps(times)
        for kind, found in self.hits.gaps(times).items():
            self.gaps[kind] += found
        shutil.rmtree(saved, ignore_errors=True)

    def ingest(self, number):
        out = self.folder / f"ingest-{number}"
        if self.ingest_to(out):
            self.counts["stores"] += 1
            if store_digest(out) != self.expected_store:
                self.counts["wrong stores"] += 1
                self.failures.append(f"ingest {number}: the store is wrong")
        shutil.rmtree(out, ignore_errors=True)

    def soak(self):
        end = time.monotonic() + 60 * self.options.minutes
        thread = threading.Thread(target=self.damage)
        thread.start()
        number = 0
        while time.monotonic() < end:
            number += 1
            self.stream(number)
            if number % 4 == 0:
                self.ingest(number)
        self.stop.set()
        thread.join()
        self.lost_logs()
        self.counts["streams"] = number
        return self.report()

    def report(self):
        counts = {name: self.counts[name] for name in
                  ("streams", "batches", "wrong batches", "stores", "wrong stores", "called frozen")}
        counts["false alarms"] = max(0, counts["called frozen"] - self.hits.frozen)
        gaps = {f"{program} {how}": {"hits": len(found), "median_s": round(statistics.median(found), 2),
                                     "largest_s": round(max(found), 2)}
                for (program, how), found in sorted(self.gaps.items())}
        print(json.dumps({"seed": self.options.seed, "hits": len(self.hits.at)} | counts |
                         {"gaps": gaps, "long gaps": self.long, "failures": self.failures}, indent=2))
        return 1 if self.failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="of the faults; default: 1")
    parser.add_argument("--minutes", type=float, default=30, help="default: 30")
    parser.add_argument("--every", type=float, default=4, help="mean seconds between two faults; default: 4")
    parser.add_argument("--batches", type=int, default=400, help="of each stream; default: 400")
    parser.add_argument("--cpus", type=int, default=2, help="workers; default: 2")
    parser.add_argument("--embedded", action="store_true", help="each stream opens a cluster of its own, which is hit; its supervisor "
                        "is frozen and not killed, which ends the stream by design")
    options = parser.parse_args()
    soak = Soak()
    soak.setUp()
    try:
        soak.prepare(options)
        return soak.soak()
    finally:
        soak.doCleanups()


if __name__ == "__main__":
    sys.exit(main())
