"""Nodes that left, were killed or lost power do not hold up a stream: after any of it, and a restart, batches come at
once, and are the same."""
import itertools
import json
import os
import pathlib
import signal
import statistics
import sys
import tempfile
import time
import unittest

import harness
from harness import wait_until

BATCHES = 12
LONG = "--all" in sys.argv  # every pair of what ends and what comes back, instead of some
# No batch for so long is a blocked stream, however busy the machine is.
BLOCKED_S = 20
# The promise holds for the median of many stalls. Tests share the machine: a single one may take twice as long.
STALL_S, LONGEST_STALL_S = 3, 6
PROGRAMS = {"worker": "patchbay-worker", "agent": "patchbay-agent", "supervisor": "patchbay-supervisor",
            "scheduler": "patchbay-scheduler"}  # in this order: a worker ends with its agent


def combinations(*names):
    return [what for count in range(1, len(names) + 1) for what in itertools.combinations(names, count)]


# The other processes of a node end with its supervisor.
UNDER_A_STREAM = [*combinations("second", "scheduler", "agent", "worker", "trainer"),
                  *(("supervisor", *what) for what in [(), *combinations("second", "trainer")])]
SOME_UNDER_A_STREAM = [tuple(what.split()) for what in (
    "second", "second scheduler", "second scheduler worker", "second scheduler agent", "scheduler agent", "scheduler worker",
    "trainer", "second scheduler trainer", "second scheduler agent worker trainer", "supervisor", "supervisor second",
    "supervisor trainer")]


class Ghosts(harness.Case):
    def setUp(self):
        super().setUp()
        self.run = self.run_file(self.once("store", lambda: self.keep(self.store([self.slide(size="2000x1500")]))))

    def reference(self):
        return self.once("digest", lambda: self.digest_of(self.stream()))

    def stream(self, batches=BATCHES, step_ms=0):
        """It saves its batches, so that their times are known."""
        saved = pathlib.Path(tempfile.mkdtemp(prefix="saved-", dir=self.folder))
        process = self.start("stream", self.run, "--batches", batches, "--digest", "--json", "--step-ms", step_ms, "--save", saved)
        process.saved = saved
        return process

    @staticmethod
    def times(process):
        return sorted(path.stat().st_mtime for path in process.saved.glob("*-image.npy"))

    def digest_of(self, process):
        """The digest of a stream that must not be blocked."""
        batches, since = 0, time.monotonic()
        while process.poll() is None:
            if len(self.times(process)) != batches:
                batches, since = len(self.times(process)), time.monotonic()
            if time.monotonic() - since > BLOCKED_S:
                said = pathlib.Path(process.log).read_text(encoding="utf-8")[-2000:]
                raise AssertionError(f"blocked: {said}\n{self.command('status').stdout[-2000:]}")
            time.sleep(0.05)
        self.assertEqual(process.returncode, 0, pathlib.Path(process.log).read_text(encoding="utf-8")[-2000:])
        return json.loads(process.stdout.read())["digest"]

    def both(self):
        """The first node, and a second of the same machine."""
        first = self.up(1)
        key = self.folder / "second.key"
        if not key.exists():
            made = self.command("key", "new", "second", "--role", "worker", "--read", self.folder, "--write", self.folder,
                                "--out", key)
            self.assertEqual(made.returncode, 0, made.stderr)
        second = self.join()
        self.await_workers(first, 2)
        return first, second

    def join(self):
        return self.start("join", "--key", self.folder / "second.key", "--cpus", 1, "--state", self.folder / "state2",
                          PATCHBAY_HOME=str(self.folder / "home2"))

    def cut_power(self, *nodes):
        """Every process of theirs ends at once, with nobody to say so."""
        pids = [pid for node in nodes for pid in [*harness.processes(node.pid), node.pid]]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGSTOP)  # or one would see another end, and tell
            except ProcessLookupError:
                pass
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for node in nodes:
            node.wait()

    def stop(self, node):
        node.terminate()
        node.wait(timeout=60)

    def test_nodes_that_were_stopped_first_one_first(self):
        reference = self.reference()
        first, second = self.both()
        self.assertEqual(self.digest_of(self.stream()), reference)
        self.stop(first)
        self.stop(second)
        self.up(1)
        self.assertEqual(self.digest_of(self.stream()), reference)

    def test_second_node_lost_then_the_cluster_restarted(self):
        reference = self.reference()
        first, second = self.both()
        self.assertEqual(self.digest_of(self.stream()), reference)
        self.cut_power(second)
        self.down(first)
        self.up(1)
        self.assertEqual(self.digest_of(self.stream()), reference)
        node = [row for row in json.loads(self.command("status", "--json").stdout)["nodes"] if row["name"] == "second"]
        self.assertEqual([row["state"] for row in node], ["away"])

    def test_first_node_lost_then_started_alone(self):
        reference = self.reference()
        first, second = self.both()
        self.assertEqual(self.digest_of(self.stream()), reference)
        self.cut_power(first, second)
        self.up(1)
        self.assertEqual(self.digest_of(self.stream()), reference)

    def lose(self, what, first, second):
        """Ends processes of the first node, the second node or the trainer, all at once, under a stream that goes on; with
        its trainer gone another begins. The nodes thereafter, and the longest wait for a batch."""
        trainer = self.stream(60, step_ms=20)
        wait_until(lambda: len(self.times(trainer)) >= 6, "batches")
        if "second" in what:
            self.cut_power(second)
        for name, program in PROGRAMS.items():
            if name in what:
                self.kill(self.pids(first, program)[0])
        since, expected = 0, self.long_reference()
        if "trainer" in what:
            trainer.kill()
            trainer.wait()
            since, expected = time.time(), self.reference()
            trainer = self.stream()
        if "supervisor" in what:
            first.wait(timeout=60)
            first = self.up(1)
        self.assertEqual(self.digest_of(trainer), expected, what)
        times = [since] * bool(since) + self.times(trainer)
        gap = max(later - earlier for earlier, later in zip(times, times[1:]))
        print(f"{' '.join(what)}: the largest gap was {gap:.2f} s", flush=True)
        self.assertLess(gap, LONGEST_STALL_S, what)
        return first, self.join() if "second" in what else second, gap

    def long_reference(self):
        return self.once("long digest", lambda: self.digest_of(self.stream(60)))

    def test_whatever_is_lost_under_a_stream(self):
        self.reference(), self.long_reference()
        (first, second), gaps = self.both(), []
        for what in UNDER_A_STREAM if LONG else SOME_UNDER_A_STREAM:
            first, second, gap = self.lose(what, first, second)
            gaps.append(gap)
            self.await_workers(first, 2)
        print(f"{len(gaps)} combinations: the median of the largest gaps was {statistics.median(gaps):.2f} s")
        self.assertLess(statistics.median(gaps), STALL_S)
        self.down(first)
        self.cut_power(second)

    def says_that_it_waits_for(self, trainer, whom):
        """The lines about waiting that the stream has printed."""
        told = lambda: pathlib.Path(trainer.log).read_text(encoding="utf-8")
        wait_until(lambda: f"waiting for a batch: the stream waits for {whom}" in told(), f"word of {whom}", BLOCKED_S)
        self.assertIn(f"job 1 waits for {whom}", self.command("status").stdout)
        return [line for line in told().splitlines() if line.startswith("waiting for a batch: ")]

    def test_a_stream_says_for_which_process_and_for_which_node_it_waits(self):
        expected = self.long_reference()
        first, second = self.both()
        trainer = self.stream(60, step_ms=20)
        wait_until(lambda: len(self.times(trainer)) >= 6, "batches")
        ghost, = self.pids(second, PROGRAMS["worker"])
        for pid in (second.pid, *harness.processes(second.pid)):
            os.kill(pid, signal.SIGSTOP)
        self.kill(self.pids(first, PROGRAMS["scheduler"])[0])
        before = self.says_that_it_waits_for(trainer, f"worker process {ghost} of node second, which has rank 0's memory mapped")
        self.assertEqual(len(before), 1)
        self.cut_power(second)
        batches = len(self.times(trainer))
        wait_until(lambda: len(self.times(trainer)) > batches + 6, "batches", LONGEST_STALL_S)
        frozen = [pid for name in ("supervisor", "agent") for pid in self.pids(first, PROGRAMS[name])]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        self.kill(self.pids(first, PROGRAMS["worker"])[0])
        lines = self.says_that_it_waits_for(trainer, "a CPU worker: node second is not back since the scheduler started")
        # Until the scheduler has looked, it may say that no node has a worker.
        self.assertEqual((lines[:1], len(set(lines))), (before, len(lines)), "lines of an earlier wait are not said again")
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
        self.assertEqual(self.digest_of(trainer), expected)
        self.down(first)

    @unittest.skipUnless(LONG, "every combination: `ghosts_test.py --all`")
    def test_every_way_to_end_both_nodes_and_to_start_them_again(self):
        reference = self.reference()
        for first_ends, second_ends, comes_back in itertools.product(("stop", "power"), ("stop", "power", "stays"), (False, True)):
            with self.subTest(first=first_ends, second=second_ends, comes_back=comes_back):
                first, second = self.both()
                self.assertEqual(self.digest_of(self.stream()), reference)
                for node, how in ((first, first_ends), (second, second_ends)):
                    if how == "stop":
                        self.stop(node)
                    elif how == "power":
                        self.cut_power(node)
                again = self.up(1)
                if comes_back and second_ends != "stays":
                    second = self.join()
                    self.await_workers(again, 2)
                self.assertEqual(self.digest_of(self.stream()), reference)
                if second.poll() is None:
                    self.cut_power(second)
                self.down(again)


if __name__ == "__main__":
    if LONG:
        sys.argv.remove("--all")
    harness.main()
