"""Preempted and started again: SIGTERM to any of the processes at any moment, and whatever ended is started again by the same
command, as an engine does. The batches that the stream saved over all its starts are those of an undisturbed one.
Moments are drawn from PATCHBAY_SIGNAL_SEED (default 1), PATCHBAY_SIGNAL_ROUNDS of them (default 10).
"""
import hashlib
import json
import os
import random
import signal
import statistics
import time

import harness
from harness import wait_until

ROUNDS = int(os.environ.get("PATCHBAY_SIGNAL_ROUNDS", "10"))
SEED = os.environ.get("PATCHBAY_SIGNAL_SEED", "1")
STOPPED = 75
GONE_S, LONGEST_S = 2, 10  # promised, and held by the median; for a single end on a machine that others use
BATCHES_A_ROUND = 20


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("epoch-*.npy")}


class Requeue(harness.Case):
    def setUp(self):
        super().setUp()
        self.random, self.position, self.saved = random.Random(SEED), self.folder / "position", self.folder / "saved"
        self.batches = BATCHES_A_ROUND * ROUNDS
        self.config = self.run_file(self.slide(size="1300x900"))

    def arguments(self, saved):
        return "stream", self.config, "--batches", self.batches, "--save", saved, "--force"

    def commands(self):
        """The commands that an engine runs, over and over."""
        home2 = str(self.folder / "home2")
        return {"up": lambda: self.start("up", "--cpus", 1, "--state", self.folder / "state", *self.listen),
                "join": lambda: self.start("join", "--key", self.folder / "second.key", "--cpus", 1, PATCHBAY_HOME=home2),
                "stream": lambda: self.start(*self.arguments(self.saved), "--step-ms", 10, "--position", self.position,
                                             "--cluster", self.home / "operator.key")}

    def signalled(self, roots):
        """Sends SIGTERM to some processes; the roots that have to end for it."""
        all_of_them = [(name, "patchbay", process.pid) for name, process in roots.items()]
        for name, process in roots.items():
            all_of_them += [(name, program, pid) for pid, program in harness.processes(process.pid).items()]
        count = len(all_of_them) if self.random.random() < 0.4 else self.random.randint(1, len(all_of_them))
        chosen = self.random.sample(all_of_them, count)
        for _, _, pid in chosen:
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                continue  # it ended for one of the signals before
        return {name for name, program, _ in chosen if program != "patchbay-worker"}

    def check_end(self, name, process):
        """True when it has nothing left to do."""
        with open(process.log, encoding="utf-8") as log:
            said = log.read()
        # Just started: the signal ended it before it listened for one, or before the node was ready.
        expected = {"up": {0, STOPPED}, "join": {STOPPED}, "stream": {0, STOPPED}}[name] | {-signal.SIGTERM}
        self.assertIn(process.returncode, expected, f"{name}: {said[-3000:]}")
        return name == "stream" and process.returncode == 0

    def test_the_batches_are_those_of_an_undisturbed_stream(self):
        whole = self.command(*self.arguments(self.folder / "whole"), "--cpus", 1)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        commands, ends, done = self.commands(), [], False
        roots = {"up": commands["up"]()}
        self.await_workers(roots["up"], 1)
        self.assertEqual(self.command("key", "new", "second", "--role", "worker", "--out", self.folder / "second.key").returncode, 0)
        for _ in range(ROUNDS):
            for name, start in commands.items():
                if name not in roots and not (name == "stream" and done):
                    roots[name] = start()
            time.sleep(self.random.uniform(0, 0.8))  # the moment is what is drawn
            begun = time.monotonic()
            for name in self.signalled(roots):
                wait_until(lambda: roots[name].poll() is not None, f"the end of {name}", LONGEST_S)
            ends.append(time.monotonic() - begun)
            for name in [name for name, process in roots.items() if process.poll() is not None]:
                done = self.check_end(name, roots.pop(name)) or done
        while not done:
            for name, start in commands.items():
                roots[name] = roots.get(name) or start()
            stream = roots.pop("stream")
            stream.communicate(timeout=harness.LIMIT_S)
            done = self.check_end("stream", stream)
        print(f"seed {SEED}: all gone after {', '.join(f'{end:.2f}' for end in ends)} s", flush=True)
        self.assertEqual(digests(self.saved), digests(self.folder / "whole"))
        self.assertLess(statistics.median(ends), GONE_S)
        self.assertEqual(json.loads(self.position.read_text())["batches"], self.batches)
        self.assertEqual(self.position.stat().st_mode & 0o777, 0o600)

    def test_a_position_that_is_none_is_refused(self):
        self.batches = 2
        with_position = (*self.arguments(self.saved), "--cpus", 1, "--position", self.position)
        self.assertEqual(self.command(*with_position).returncode, 0)
        again = self.json(*with_position)
        self.assertEqual(again["batches"], 0, "it is done")
        whole = self.position.read_bytes()

        def refused(why, code=1, *more):
            result = self.command(*with_position, *more)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertRegex(result.stderr, why)

        refused(f"go on from {self.position}: .*its config differs", 1, "--set", "seed=1")
        refused("--position and --resume exclude each other", 2, "--resume", json.loads(whole)["token"])
        for broken in (b"", whole[:40], b"[]", whole.replace(b"resume-3", b"resume-x")):
            self.position.write_bytes(broken)
            refused(f"read position: {self.position}: broken, or not the position of a stream: remove it")
        for later, why in ((whole.replace(b'"version":1', b'"version":2'), "version 2, this program knows 1; use the release"),
                           (whole.replace(b"resume-3", b"resume-9"), "version 9, this program knows 2 and 3; use the release")):
            self.position.write_bytes(later)
            refused(f"read position: {self.position}: .*{why}")
            self.assertEqual(self.position.read_bytes(), later)
        self.position.write_bytes(whole)
        self.position.chmod(0o644)
        refused(f"{self.position}: others may read or write it")
        self.position.rename(self.folder / "there")
        self.position.symlink_to(self.folder / "there")
        refused(f"{self.position}: a link")
        self.position = self.folder / "nothere" / "position"
        with_position = (*with_position[:-1], self.position)
        refused(f"{self.position}: its folder does not exist")


if __name__ == "__main__":
    harness.main()
