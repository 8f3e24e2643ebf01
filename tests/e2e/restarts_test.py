"""What is killed or frozen is replaced while a stream goes on, with the same bytes; a stream whose cluster is gone says
so; a cluster with running streams is not taken down unasked."""
import json
import pathlib
import signal
import time

import harness
from harness import wait_until

BATCHES = 60


class Restarts(harness.Case):
    def setUp(self):
        super().setUp()
        self.run_config = self.run_file(self.store([self.slide()]))

    def trainer(self, batches=BATCHES):
        saved = self.folder / f"saved-{len(list(self.folder.glob('saved-*')))}"
        process = self.start("stream", self.run_config, "--batches", batches, "--step-ms", 30, "--digest", "--json",
                             "--save", saved)
        wait_until(lambda: saved.exists() and any(saved.iterdir()), "a batch")
        return process

    def test_frozen_processes_are_replaced_and_change_nothing(self):
        reference = self.json("stream", self.run_config, "--batches", BATCHES, "--digest")["digest"]
        cluster = self.up(2)
        for program in ("patchbay-worker", "patchbay-agent", "patchbay-scheduler"):
            with self.subTest(program=program):
                trainer = self.trainer()
                frozen = self.pids(cluster, program)[0]
                self.kill(frozen, signal.SIGSTOP)
                # Well below every other limit on silence: a lease has 10 s.
                wait_until(lambda: frozen not in self.pids(cluster, program), f"the end of the frozen {program}", 8)
                self.assertEqual(json.loads(self.done(trainer))["digest"], reference)
        self.down(cluster)

    def test_a_stream_says_that_its_cluster_is_gone_and_goes_on_with_the_next(self):
        cluster = self.up(1)
        trainer = self.trainer(400)
        self.kill(self.pids(cluster, "patchbay-supervisor")[0])
        begun = time.monotonic()
        wait_until(lambda: "the stream goes on waiting for" in pathlib.Path(trainer.log).read_text(encoding="utf-8"),
                   "a word about it", 10)
        self.assertLess(time.monotonic() - begun, 5)  # it takes 1 to 1.5 s on a machine with time for it
        cluster.wait(60)
        cluster = self.up(1)
        self.done(trainer)
        self.down(cluster)

    def test_a_command_that_may_open_hardly_any_files_says_so(self):
        process = self.start("stream", self.run_config, "--batches", 1, prefix=["prlimit", "--nofile=32:32"])
        self.done(process, expect=1)
        self.assertIn("limit on open files", pathlib.Path(process.log).read_text(encoding="utf-8"))

    def test_down_ends_running_streams_only_when_told_to(self):
        cluster = self.up(1)
        trainer = self.trainer(5000)
        refused = self.command("down")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("streams are running (jobs 1 of operator)", refused.stderr)
        self.assertIn("--force", refused.stderr)
        self.assertIsNone(trainer.poll())
        self.assertEqual(self.command("down", "--force").returncode, 0)
        cluster.wait(60)


if __name__ == "__main__":
    harness.main()
