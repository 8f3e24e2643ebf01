"""SIGTERM to any of the processes, in any order and at any moment: they end in time, the stream with its token, and
nothing is left. Rounds are drawn from PATCHBAY_SIGNAL_SEED (default 1), PATCHBAY_SIGNAL_ROUNDS of them (default 8).
"""
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import time

import harness
import trainer_test
from harness import wait_until

ROUNDS = int(os.environ.get("PATCHBAY_SIGNAL_ROUNDS", "8"))
SEED = int(os.environ.get("PATCHBAY_SIGNAL_SEED", "1"))
# Promised, and held by the median of several ends.
STREAM_ENDS_S, PROGRAM_ENDS_S, NODE_ENDS_S = 1, 1, 5
# Tests share the machine: for a single end. A fault took 20 s and more.
STREAM_LONGEST_S, PROGRAM_LONGEST_S, NODE_LONGEST_S = 5, 4, 10
STOPPED = 75
TOKEN = re.compile(r"patchbay-resume-[23]:(\d+):(\d+):")


def processes_of(folder):
    """{pid: program} of all processes that were started with `folder` in their environment."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.fsencode(folder) in (entry / "environ").read_bytes():
                found[int(entry.name)] = (entry / "comm").read_text().strip()
        except OSError:
            continue
    found.pop(os.getpid(), None)
    return found


class Round:
    """One cluster, or a stream with its own; who gets a signal in which order, and who has to end for it."""

    def __init__(self, test, number):
        self.test, self.random = test, random.Random(f"{SEED}-{number}")
        self.folder, self.saved, self.roots = test.folder, test.saved, {}
        self.starting = self.random.random() < 0.15
        if self.starting:
            self.roots["up"] = test.start("up", "--cpus", 1, "--state", self.folder / "state", *test.listen)
        elif self.random.random() < 0.65:
            self.start_cluster()
        self.roots["stream"] = test.stream() if "up" in self.roots else test.stream("--cpus", 1)
        if self.random.random() < 0.7 and not self.starting:
            wait_until(test.batches, "a batch")
        time.sleep(self.random.choice([0, 0.02, 0.1, 0.3]) * self.random.uniform(0.5, 1.5))  # the moment is what is drawn

    def start_cluster(self):
        self.roots["up"] = self.test.up(1)
        if self.random.random() < 0.5:
            key = self.folder / "second.key"
            key.unlink(missing_ok=True)
            self.test.command("key", "new", "second", "--role", "worker", "--out", key)
            self.roots["join"] = self.test.start("join", "--key", key, "--cpus", 1, PATCHBAY_HOME=str(self.folder / "home2"))
            self.test.await_workers(self.roots["up"], 2)

    def send(self, processes):
        for root, program, pid in processes:
            try:
                os.kill(pid, signal.SIGTERM)
            except OSError:
                continue  # it has ended
            time.sleep(self.random.choice([0, 0, 0.01, 0.1]))  # the distance of two signals is what is drawn

    def run(self):
        """The actions taken, and the seconds of each end: [(root, seconds)]."""
        programs = [(root, "patchbay", process.pid) for root, process in self.roots.items()]
        for root, process in self.roots.items():
            programs += [(root, name, pid) for pid, name in harness.processes(process.pid).items() if name != "patchbay"]
        chosen = self.random.sample(programs, self.random.randint(1, len(programs)))
        what = "SIGTERM to " + ", ".join(f"{name} of {root}" for root, name, _ in chosen)
        self.send(chosen)
        ends = [(root, self.ended(root, what)) for root in {root for root, name, _ in chosen if self.must_end(root, name)}]
        rest = [(root, "patchbay", process.pid) for root, process in self.roots.items() if process.poll() is None]
        self.random.shuffle(rest)
        what += "; then to " + ", ".join(root for root, _, _ in rest)
        self.send(rest)
        return what, ends + [(root, self.ended(root, what)) for root, _, _ in rest]

    @staticmethod
    def must_end(root, name):
        """A worker is replaced by its agent; a stream ends when its own cluster does, and waits for another."""
        return name != "patchbay-worker" and (root != "stream" or name == "patchbay")

    def ended(self, root, what):
        process = self.roots[root]
        seconds = self.test.ends(process, STREAM_LONGEST_S if root == "stream" else NODE_LONGEST_S, f"{root}: {what}")
        own = {1} if "up" not in self.roots else set()  # its own cluster may have ended before its own signal came
        ends = {"stream": {STOPPED, -signal.SIGTERM} | own, "up": {0, STOPPED, -signal.SIGTERM} if self.starting else {0}, "join": {STOPPED}}
        self.test.assertIn(process.returncode, ends[root], f"{root}: {what}: {self.test.said_by(process)[-2000:]}")
        if root == "stream" and self.test.batches():
            self.test.has_its_token(process, what)
        return seconds


class Signals(harness.Case):
    def setUp(self):
        super().setUp()
        self.saved = self.folder / "saved"
        self.shared = {entry.name for entry in pathlib.Path("/dev/shm").iterdir()}

    def config(self):
        return self.once("run", lambda: self.keep(self.run_file(self.keep(self.slide(size="1300x900")))))

    def stream(self, *more):
        return self.start("stream", self.config(), "--batches", 100000, "--step-ms", 5, "--save", self.saved, "--force", *more)

    def batches(self):
        return len(list(self.saved.glob("epoch-*-image.npy"))) if self.saved.exists() else 0

    def ends(self, process, limit_s, what):
        begun = time.monotonic()
        wait_until(lambda: process.poll() is not None, f"{what}: {processes_of(self.folder)}", limit_s)
        return time.monotonic() - begun

    def assert_median(self, seconds, promised_s):
        print(f"ends: {', '.join(f'{one:.2f}' for one in seconds)} s", flush=True)
        self.assertLess(statistics.median(seconds), promised_s)

    def said_by(self, process):
        return pathlib.Path(process.log).read_text(encoding="utf-8")

    def has_its_token(self, process, what):
        """The token after the last batch that was saved; a batch may be saved when the signal comes."""
        tokens = TOKEN.findall(self.said_by(process))
        self.assertTrue(tokens, f"{what}: no token: {self.said_by(process)[-2000:]}")
        epoch, batch = map(int, tokens[-1])
        names = sorted(path.name for path in self.saved.glob("epoch-*-image.npy"))
        per_epoch = len([name for name in names if name.startswith("epoch-0000")])
        past = epoch * per_epoch + batch if epoch else batch
        self.assertEqual(past, len(names), f"{what}: {tokens}, {names[-3:]}")

    def nothing_left(self, what):
        wait_until(lambda: not processes_of(self.folder), f"{what}: the end of {processes_of(self.folder)}", NODE_LONGEST_S)
        self.assertEqual(list((self.folder / "tmp").iterdir()), [], what)
        there = {entry.name for entry in pathlib.Path("/dev/shm").iterdir()} - self.shared
        self.assertEqual([name for name in there if "patchbay" in name], [], what)
        left = [path for home in self.folder.glob("home*") for path in home.rglob("*")
                if path.is_socket() or re.search(r"\.(pid|tmp|partial)\b", path.name)]
        self.assertEqual(left, [], what)

    def ends_at_once(self, process, number=signal.SIGTERM, batches=True):
        process.send_signal(number)
        seconds = self.ends(process, STREAM_LONGEST_S, "a stream that nobody answers")
        self.assertEqual(process.returncode, STOPPED, self.said_by(process))
        if batches:
            self.has_its_token(process, number)
            for path in self.saved.iterdir():
                path.unlink()
        return seconds

    def test_a_stream_ends_with_its_token_though_its_scheduler_is_gone(self):
        seconds = []
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            up = self.up(1)
            process = self.stream()
            wait_until(self.batches, "a batch")
            up.kill()
            up.wait()
            wait_until(lambda: "no scheduler for" in self.said_by(process), "the stream to notice")
            seconds.append(self.ends_at_once(process, number))
        self.assert_median(seconds, STREAM_ENDS_S)
        self.nothing_left("a stream without a scheduler")

    def test_a_stream_ends_with_its_token_though_everything_is_frozen(self):
        up, seconds = self.up(1), []
        for _ in range(5):
            process = self.stream()
            wait_until(self.batches, "a batch")
            frozen = list(harness.processes(up.pid))
            for pid in frozen:
                os.kill(pid, signal.SIGSTOP)
            seconds.append(self.ends_at_once(process))
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
        self.assert_median(seconds, STREAM_ENDS_S)
        self.down(up)

    def test_a_command_that_waits_for_a_scheduler_elsewhere_ends(self):
        up = self.up(1)
        key = self.folder / "ann.key"
        made = self.command("key", "new", "ann", "--role", "submitter", "--read", self.folder, "--out", key)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.down(up)
        seconds = []
        for _ in range(3):
            process = self.stream("--cluster", key)
            wait_until(lambda: "patchbay" in harness.processes(os.getpid()).values() and self.waits_on_network(process), "a connection")
            seconds.append(self.ends_at_once(process, batches=False))
            self.assertIn("interrupted", self.said_by(process))
        self.assert_median(seconds, STREAM_ENDS_S)

    @staticmethod
    def waits_on_network(process):
        """ZeroMQ's threads run."""
        return len(list(pathlib.Path(f"/proc/{process.pid}/task").iterdir())) > 1

    def test_a_node_ends_though_its_scheduler_is_gone(self):
        up = self.up(1)
        self.command("key", "new", "second", "--role", "worker", "--out", self.folder / "second.key")
        join = self.start("join", "--key", self.folder / "second.key", "--cpus", 1, PATCHBAY_HOME=str(self.folder / "home2"))
        self.await_workers(up, 2)
        up.kill()
        up.wait()
        join.terminate()
        # One end: the median of many is that of the rounds below.
        self.ends(join, NODE_LONGEST_S, "a node without a scheduler")
        self.assertEqual(join.returncode, STOPPED, self.said_by(join))
        self.nothing_left("a node without a scheduler")

    def test_a_node_that_is_stopped_before_it_is_ready(self):
        key = self.folder / "second.key"
        made = self.command("key", "new", "second", "--role", "worker", "--address", "tcp://127.0.0.1:9", "--out", key)
        self.assertEqual(made.returncode, 0, made.stderr)
        for program in ("patchbay-agent", "patchbay-supervisor"):
            join = self.start("join", "--key", key, "--cpus", 1, PATCHBAY_HOME=str(self.folder / "home2"))
            pid, = wait_until(lambda: self.pids(join, "patchbay-agent") and self.pids(join, program), "an agent")
            os.kill(pid, signal.SIGTERM)
            self.done(join, expect=STOPPED)

    def test_any_processes_in_any_order(self):
        ends = []
        for number in range(ROUNDS):
            what, of_round = Round(self, number).run()
            slowest = max(seconds for _, seconds in of_round)
            print(f"round {number} of seed {SEED}: {what}: {slowest:.2f} s", flush=True)
            self.nothing_left(what)
            ends += of_round
            for folder in (self.saved, self.home, self.folder / "home2", self.folder / "state"):
                shutil.rmtree(folder, ignore_errors=True)
        self.assert_median([seconds for root, seconds in ends if root == "stream"], STREAM_ENDS_S)
        self.assert_median([seconds for root, seconds in ends if root != "stream"], NODE_ENDS_S)


class TrainerSignals(trainer_test.ModuleCase):
    def test_a_program_gets_its_exception_though_its_scheduler_is_gone(self):
        seconds, interrupt = [], (signal.SIGINT, "KeyboardInterrupt")
        for number, kind in ((signal.SIGTERM, "SystemExit"), interrupt, interrupt):
            with self.subTest(kind):
                up = self.up(1)
                program = self.program("""
                    def stop(*_):
                        raise SystemExit(143)
                    signal.signal(signal.SIGTERM, stop)
                    try:
                        with patchbay.attach(sys.argv[1]) as stream:
                            while True:
                                for batch in stream:
                                    print("batch", flush=True)
                    finally:
                        print(sys.exc_info()[0].__name__, flush=True)
                    """, self.run_yaml)
                self.await_line(program)
                up.kill()
                up.wait()
                wait_until(lambda: "no scheduler for" in program.stderr.readline(), "the stream to notice")
                program.send_signal(number)
                begun = time.monotonic()
                wait_until(lambda: program.poll() is not None, "the program to end", PROGRAM_LONGEST_S)
                seconds.append(time.monotonic() - begun)
                print(f"{kind}: {seconds[-1]:.2f} s", flush=True)
                self.assertEqual(program.stdout.read().split()[-1], kind)
        self.assertLess(statistics.median(seconds), PROGRAM_ENDS_S)

    def test_a_program_with_a_position_stops_after_its_batch_and_goes_on(self):
        """The stop comes to it alone, to its cluster, and to all processes together."""
        text = """
            with patchbay.attach("run.yaml", position=sys.argv[1], **json.loads(sys.argv[2])) as stream:
                while stream.epoch < 8 and not stream.stopping:
                    for batch in stream:
                        print(batch.epoch, batch.index, digest([batch]), flush=True)
                        time.sleep(0.02)
                assert not stream.stopping or list(stream) == []
                sys.exit(75 if stream.stopping else 0)
            """
        whole = self.said(self.program(text, "whole", '{"cpus": 1}'))
        own, standing = '{"cpus": 1}', json.dumps({"cluster": str(self.home / "operator.key")})
        lines = []
        for number, cluster in enumerate((own, standing, own)):
            up = self.up(1) if cluster == standing else None
            program = self.program(text, "position", cluster)
            lines += [word for _ in range(4) for word in self.await_line(program).split()]
            if up:  # its agent drains until it has killed this
                os.kill(self.pids(up, "patchbay-worker")[0], signal.SIGSTOP)
            told = list(processes_of(self.folder)) if number == 2 else [up.pid if up else program.pid]
            for pid in told:
                with contextlib.suppress(ProcessLookupError):  # it ended for the signal before
                    os.kill(pid, signal.SIGTERM)
            lines += self.said(program, expect=STOPPED)
            if up:
                self.assertTrue(self.pids(up, "patchbay-agent"), "it was told only when the agent had drained")
                self.assertEqual(up.wait(60), 0)
        lines += self.said(self.program(text, "position", own))
        self.assertEqual(lines, whole)


if __name__ == "__main__":
    harness.main()
