"""Requests for more memory than there is, inside a control group of their own: refused by name, nothing killed."""
import os
import pathlib
import re
import subprocess

import harness
from harness import wait_until

MIB = 1 << 20


class Group:
    """A control group (v1 or v2) with a limit of memory."""

    FOLDERS = (("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"),
               ("/sys/fs/cgroup", "memory.max", "memory.events"))

    def __init__(self, limit_bytes):
        for parent, self.limit, self.events in self.FOLDERS:
            self.folder = pathlib.Path(parent) / f"patchbay-test-{os.getpid()}-{limit_bytes}"
            try:
                self.folder.mkdir()
                if not (self.folder / self.limit).exists():
                    raise FileNotFoundError(f"{self.folder} counts no memory")
                (self.folder / self.limit).write_text(str(limit_bytes), encoding="ascii")
                return
            except OSError as error:
                self.reason = error
                self.remove()
        raise harness.unittest.SkipTest(f"no control group can be made here: {self.reason}")

    def remove(self):
        if self.folder.is_dir():
            wait_until(self.try_to_remove, "the end of the control group", 20)

    def try_to_remove(self):
        try:
            self.folder.rmdir()
        except OSError:
            return False
        return True

    def prefix(self):
        """Words that start a program inside."""
        return ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs && exec "$0" "$@"']

    def kills(self):
        words = (self.folder / self.events).read_text().split()
        return int(words[words.index("oom_kill") + 1]) if "oom_kill" in words else 0


class MemoryLimits(harness.Case):
    def inside(self, limit_bytes, *words):
        """A finished command inside a group; nothing of it was killed."""
        group = Group(limit_bytes)
        self.addCleanup(group.remove)
        result = subprocess.run([*group.prefix(), str(harness.BIN / "patchbay"), *map(str, words)], cwd=self.folder, text=True,
                                capture_output=True, env=self.environment(), timeout=harness.LIMIT_S * 3, check=False)
        self.assertEqual(group.kills(), 0, result.stderr)
        group.remove()
        return result

    def test_workers_of_a_node_share_the_groups_memory(self):
        group = Group(1024 * MIB)
        self.addCleanup(group.remove)
        for more, limit in ((["--memory", "600M"], "each limited to 300.0 MiB"), ([], "each limited to 460.8 MiB")):
            node = self.start("up", "--cpus", 2, "--state", self.folder / "state", *self.listen, *more, prefix=group.prefix())
            self.await_workers(node, 2)
            self.assertIn(limit, pathlib.Path(node.log).read_text())
            self.down(node)

    def test_ring_that_does_not_fit_is_refused_by_check_and_stream(self):
        slide = self.slide(size="900x700")
        for batch, prefetch, key in ((4000, 2, "batch.global_size"), (400, 30, "batch.prefetch")):
            run = self.run_file(slide, batch=batch)
            run.write_text(run.read_text().replace("prefetch: 2", f"prefetch: {prefetch}").replace("tail: keep", "tail: wrap"),
                           encoding="utf-8")
            for words in (("config", "check", run), ("stream", run)):
                with self.subTest(words=words, key=key):
                    result = self.inside(1024 * MIB, *words)
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertIn(f"key '{key}': a ring of {prefetch + 3} slots", result.stderr)
                    self.assertIn("run.yaml:", result.stderr)
                    self.assertIn("patchbay-test-", result.stderr)

    def test_ring_that_fits_is_streamed(self):
        run = self.run_file(self.slide(size="900x700"))
        result = self.inside(1024 * MIB, "stream", run, "--batches", 4, "--cpus", 2)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_shard_that_no_worker_could_make_is_refused(self):
        slide = self.slide(size="5000x4200")
        result = self.inside(256 * MIB, "ingest", slide, "--out", self.folder / "out", "--chunk", 512, "--shard", 8192,
                             "--cpus", 1)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("; use a smaller --shard", result.stdout + result.stderr)
        self.assertEqual(list((self.folder / "out").glob("*.ome.zarr")), [])

    def test_spectra_whose_strips_do_not_fit_are_refused_with_the_figures(self):
        slide = self.slide(size="900x700")
        words = ("spectra", slide, "--cpus", 1, "--out")
        result = self.inside(192 * MIB, *words, self.folder / "small")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertRegex(result.stderr, r"a strip: 256\.0 MiB needed, [0-9.]+ MiB available \(.*patchbay-test-.*\)")
        self.assertIn("raise that limit to 285.0 MiB or more or measure it on a node that has more memory", result.stderr)
        self.assertIn("--strip, --frame, --hop and --cpus change nothing in this", result.stderr)
        self.assertIn("1 of 1 failed", result.stderr)
        result = self.inside(512 * MIB, *words, self.folder / "enough")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_metadata_of_a_tebibyte_is_refused_at_once(self):
        store = self.folder / "a.zarr"
        store.mkdir()
        with open(store / "zarr.json", "wb") as file:
            try:
                file.truncate(1 << 40)
            except OSError as error:
                self.skipTest(f"no such files here: {error}")
        (store / "c").mkdir()
        for words in (("stream", self.run_file(store)), ("spectra", store, "--out", self.folder / "out"), ("verify", store),
                      ("inspect", store)):
            with self.subTest(words=words):
                result = self.inside(1024 * MIB, *words)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn("1.0 TiB, more than", result.stdout + result.stderr)

    def test_own_processes_go_first_when_memory_runs_out(self):
        run = self.run_file(self.slide(size="900x700"))
        stream = self.start("stream", run, "--batches", 1000, "--step-ms", 100, "--cpus", 1)
        wait_until(lambda: self.pids(stream, "patchbay-worker"), "a worker", 60)
        score = lambda pid: int(pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text())
        own = score(os.getpid())
        self.assertEqual(score(stream.pid), own)
        least = {"patchbay-worker": 900, "patchbay-agent": 700, "patchbay-scheduler": 600, "patchbay-supervisor": 500}
        for program, wanted in least.items():
            for pid in self.pids(stream, program):
                wait_until(lambda pid=pid, wanted=wanted: score(pid) == max(own, wanted), f"the score of {program}", 20)
        self.assertTrue(all(self.pids(stream, program) for program in least))
        for program, most in {"patchbay-agent": 64 * MIB, "patchbay-supervisor": 16 * MIB}.items():
            for pid in self.pids(stream, program):
                status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
                self.assertLess(int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10, most, program)


if __name__ == "__main__":
    harness.main()
