"""Nodes that left, were killed or lost power do not hold up a stream: after any of it, and a restart, batches come at
once, and are the same."""
import itertools
import json
import os
import pathlib
import signal
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
# Twice what is promised for a stall, since tests share the machine.
STALL_S = 6
PROGRAMS = {"worker": "patchbay-worker", "agent": "patchbay-agent", "supervisor": "patchbay-supervisor",
            "scheduler": "patchbay-scheduler"}


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

    def lose_under_stream(self, *what):
        """The processes named (of the first node), or "second", end at once under a stream that then goes on."""
        reference = self.once("long digest", lambda: self.digest_of(self.stream(60)))
        first, second = self.both()
        trainer = self.stream(60, step_ms=20)
        wait_until(lambda: self.shards_done() >= 6, "shards")
        if "second" in what:
            self.cut_power(second)
        for program in what:
            if program in PROGRAMS:
                for pid in self.pids(first, PROGRAMS[program])[:1]:
                    self.kill(pid)
        self.assertEqual(self.digest_of(trainer), reference, what)
        times = self.times(trainer)
        gap = max(later - earlier for earlier, later in zip(times, times[1:]))
        print(f"{what}: the largest gap was {gap:.2f} s", flush=True)
        self.assertLess(gap, STALL_S, what)
        self.down(first)
        if second.poll() is None:
            self.cut_power(second)

    def shards_done(self):
        result = self.command("status", "--json")
        if result.returncode != 0:
            return 0
        return sum(row["shards_done"] for row in json.loads(result.stdout)["workers"])

    def test_second_node_and_scheduler_lost_under_a_stream(self):
        self.lose_under_stream("second", "scheduler")

    def test_second_node_lost_under_a_stream(self):
        self.lose_under_stream("second")

    def test_second_node_scheduler_and_a_worker_lost_under_a_stream(self):
        self.lose_under_stream("second", "scheduler", "worker")

    def test_second_node_scheduler_and_the_agent_lost_under_a_stream(self):
        self.lose_under_stream("second", "scheduler", "agent")

    def test_scheduler_and_agent_lost_under_a_stream(self):
        self.lose_under_stream("scheduler", "agent")

    def test_scheduler_and_worker_lost_under_a_stream(self):
        self.lose_under_stream("scheduler", "worker")

    @unittest.skipUnless(LONG, "every combination: `ghosts_test.py --all`")
    def test_every_combination_under_a_stream(self):
        names = ["second", "scheduler", "agent", "worker"]
        for count in range(1, len(names) + 1):
            for what in itertools.combinations(names, count):
                with self.subTest(what=what):
                    self.lose_under_stream(*what)

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
