"""Runs opened by the client library from a program of a user's: in a thread that ends, beside other children and forks, twice in
one process, from several processes at once; the embedded cluster ends with its last owner and leaves nothing."""
import os
import pathlib
import signal
import subprocess

import harness
from harness import wait_until
from old_kernel_test import become_old


class Opening(harness.Case):
    def setUp(self):
        super().setUp()
        self.run_yaml = self.run_file(self.store([self.slide(size="900x700")]))

    def opener(self, *words, env=None, **options):
        process = subprocess.Popen([str(harness.BIN / "patchbay-test-opener"), str(self.run_yaml), "5", *map(str, words)],
                                   cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.environment(**(env or {})), **options)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    def nothing_left(self):
        """No process of a cluster that this test opened, and no folder: all have the folder's name in their command line."""
        def left():
            found = []
            for entry in pathlib.Path("/proc").iterdir():
                try:
                    words = (entry / "cmdline").read_bytes().decode(errors="replace") if entry.name.isdigit() else ""
                except OSError:
                    continue
                if str(self.folder / "tmp") in words:
                    found.append(words.replace("\0", " "))
            return found + list((self.folder / "tmp").iterdir())
        wait_until(lambda: not left(), "the cluster to be gone", 30)

    def taken(self, process, runs=1):
        out, err = process.communicate(timeout=harness.LIMIT_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(out.count("taken "), runs, out)
        self.nothing_left()
        return out.splitlines()

    def test_in_a_thread_that_ends(self):
        self.taken(self.opener("--thread"))

    def test_beside_a_program_that_reaps_every_child(self):
        self.taken(self.opener("--reap", "--thread"))

    def test_twice_in_one_process(self):
        first, second = self.taken(self.opener("--twice"), runs=2)
        self.assertEqual(first, second, "the same patches and the same position in the same plan")

    def test_from_two_processes_at_once(self):
        both = [self.opener(), self.opener()]
        outs = [process.communicate(timeout=harness.LIMIT_S) for process in both]
        self.assertEqual([process.returncode for process in both], [0, 0], outs)
        self.assertEqual(outs[0][0], outs[1][0])
        self.nothing_left()

    def test_where_pidfds_are_forbidden(self):
        self.taken(self.opener("--thread", preexec_fn=become_old))

    def killed_while_a_fork_lives(self, **options):
        process = self.opener("--fork-and-wait", **options)
        self.assertIn("taken", process.stdout.readline())
        fork = int(process.stdout.readline().split()[1])
        process.kill()
        process.wait()
        try:
            self.nothing_left()
            self.assertTrue(pathlib.Path(f"/proc/{fork}").exists(), "the fork was to outlive it")
        finally:
            os.kill(fork, signal.SIGKILL)

    def test_owner_is_killed_while_a_fork_of_it_lives(self):
        self.killed_while_a_fork_lives()

    def test_the_same_where_pidfds_are_forbidden(self):
        self.killed_while_a_fork_lives(preexec_fn=become_old)


if __name__ == "__main__":
    harness.main()
