"""A command whose own cluster is gone ends at once and says so."""
import pathlib
import signal
import statistics
import time

import harness
from harness import wait_until

# Promised, and held by the median of several ends. Tests share the machine: for a single one the limit is another, well below
# every time that a command waits for a scheduler that may come back.
AT_ONCE_S, LONGEST_S = 3, 10


class LostCluster(harness.Case):
    def ends_at_once(self, process):
        self.kill(self.pids(process, "patchbay-supervisor")[0])
        begun = time.monotonic()
        self.done(process, expect=1)
        seconds = time.monotonic() - begun
        self.assertLess(seconds, LONGEST_S)
        self.assertIn("has ended: its supervisor", pathlib.Path(process.log).read_text(encoding="utf-8"))
        wait_until(lambda: not list((self.folder / "tmp").iterdir()), "an empty folder for temporary files", 10)
        return seconds

    def test_stream_whose_supervisor_is_killed(self):
        seconds, run = [], self.run_file(self.slide())
        for number in range(3):
            saved = self.folder / f"saved-{number}"
            process = self.start("stream", run, "--batches", 5000, "--step-ms", 20, "--save", saved)
            wait_until(lambda: saved.exists() and any(saved.iterdir()), "a batch")
            seconds.append(self.ends_at_once(process))
        self.assertLess(statistics.median(seconds), AT_ONCE_S)

    def test_stream_whose_supervisor_is_frozen_ends_and_leaves_nothing(self):
        saved = self.folder / "saved"
        process = self.start("stream", self.run_file(self.slide()), "--batches", 4, "--step-ms", 300, "--save", saved)
        wait_until(lambda: saved.exists() and any(saved.iterdir()), "a batch")
        children = harness.processes(process.pid)
        self.kill(self.pids(process, "patchbay-supervisor")[0], signal.SIGSTOP)
        self.done(process)
        wait_until(lambda: not any(pathlib.Path(f"/proc/{pid}/exe").exists() for pid in children),
                   f"the end of {children}", 15)
        wait_until(lambda: not list((self.folder / "tmp").iterdir()), "an empty folder for temporary files", 10)

    def test_stream_whose_key_is_revoked(self):
        run = self.run_file(self.slide())
        up = self.up(1)
        key = self.folder / "ann.key"
        made = self.command("key", "new", "ann", "--role", "trainer", "--read", self.folder, "--out", key)
        self.assertEqual(made.returncode, 0, made.stderr)
        saved = self.folder / "saved"
        process = self.start("stream", run, "--cluster", key, "--batches", 5000, "--step-ms", 20, "--save", saved, "--force")
        wait_until(lambda: saved.exists() and any(saved.iterdir()), "a batch")
        self.assertEqual(self.command("key", "revoke", "ann").returncode, 0)
        begun = time.monotonic()
        self.done(process, expect=1)
        # One end: another needs a cluster of its own.
        self.assertLess(time.monotonic() - begun, LONGEST_S)
        self.assertIn("revoked", pathlib.Path(process.log).read_text(encoding="utf-8"))
        job = self.json("jobs")["jobs"][0]
        self.assertEqual(job["state"], "failed", job)
        self.down(up)

    def test_node_whose_key_is_revoked_ends(self):
        up = self.up(1, "--listen", "tcp://127.0.0.1:0")
        made = self.command("key", "new", "second", "--role", "worker")
        self.assertEqual(made.returncode, 0, made.stderr)
        join = self.start("join", "--key", self.folder / "second.key", "--cpus", 1, "--gpus", "none",
                          PATCHBAY_HOME=str(self.folder / "home2"))
        self.await_workers(up, 2)
        self.assertEqual(self.command("key", "revoke", "second").returncode, 0)
        self.done(join, expect=1)
        self.assertIn("revoked", pathlib.Path(join.log).read_text(encoding="utf-8"))
        self.down(up)

    def test_ingest_whose_supervisor_is_killed(self):
        process = self.start("ingest", self.slide(size="12000x12000"), "--out", self.folder / "out", "--cpus", 1)
        wait_until(lambda: self.pids(process, "patchbay-worker") and (self.folder / "out/.patchbay-ingest").exists(),
                   "work")
        self.ends_at_once(process)


if __name__ == "__main__":
    harness.main()
