"""A cluster with running streams is not taken down unasked; a command that cannot start its cluster says why."""
import pathlib
import subprocess

import harness
from harness import wait_until


class Down(harness.Case):
    def setUp(self):
        super().setUp()
        self.run_config = self.run_file(self.store([self.slide()]))

    def trainer(self, batches):
        saved = self.folder / f"saved-{len(list(self.folder.glob('saved-*')))}"
        process = self.start("stream", self.run_config, "--batches", batches, "--step-ms", 30, "--digest", "--json",
                             "--save", saved, "--force")
        wait_until(lambda: saved.exists() and any(saved.iterdir()), "a batch")
        return process

    def test_a_command_that_may_open_hardly_any_files_says_so(self):
        process = self.start("stream", self.run_config, "--batches", 1, prefix=["prlimit", "--nofile=32:32"])
        self.done(process, expect=1)
        self.assertIn("limit on open files", pathlib.Path(process.log).read_text(encoding="utf-8"))

    def test_a_command_whose_workers_get_too_little_address_space_ends_with_the_reason(self):
        for kib in (100_000, 116_000, 132_000):
            limited = ["prlimit", f"--as={kib << 10}"]
            if subprocess.run([*limited, harness.BIN / "patchbay", "--version"], capture_output=True, check=False).returncode != 0:
                self.skipTest("this build's command itself does not start in 100 MB of address space")
            with self.subTest(kib=kib):
                process = self.start("stream", self.run_config, "--batches", 1, "--cpus", 1, prefix=limited)
                self.done(process, expect=1)
                said = pathlib.Path(process.log).read_text(encoding="utf-8")
                first = next(line for line in said.splitlines() if line.startswith("patchbay: "))
                self.assertIn("raise it (ulimit -v)", first, "the reason comes first, the log below it")
                self.assertNotIn("\\x0a", first, "what the processes said stands below, on lines of its own")

    def test_down_does_not_ask_about_a_stream_whose_trainer_is_dead(self):
        for with_its_scheduler in (True, False):
            with self.subTest(with_its_scheduler=with_its_scheduler):
                cluster = self.up(1)
                trainer = self.trainer(5000)
                if with_its_scheduler:
                    self.kill(self.pids(cluster, "patchbay-scheduler")[0])
                trainer.kill()
                trainer.wait()
                ended = self.command("down")
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertRegex(ended.stderr, r"job 1 of operator ends: it has had no trainer for \d+ s")
                cluster.wait(60)

    def test_down_asks_about_a_stream_whose_scheduler_was_just_started_again(self):
        cluster = self.up(1)
        trainer = self.trainer(5000)
        self.kill(self.pids(cluster, "patchbay-scheduler")[0])
        refused = self.command("down")
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("a stream is running (job 1 of operator)", refused.stderr)
        self.assertIsNone(trainer.poll())
        self.down(cluster)

    def test_down_ends_running_streams_only_when_told_to(self):
        cluster = self.up(1)
        trainer = self.trainer(5000)
        refused = self.command("down")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("a stream is running (job 1 of operator): end or `patchbay cancel` it first", refused.stderr)
        self.assertIn("--force", refused.stderr)
        self.assertIsNone(trainer.poll())
        self.assertEqual(self.command("down", "--force").returncode, 0)
        cluster.wait(60)


if __name__ == "__main__":
    harness.main()
