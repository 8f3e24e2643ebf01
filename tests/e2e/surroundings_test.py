"""Unusual surroundings of a command: closed descriptors, full disks, a helper process that was killed."""
import os
import pathlib
import shutil
import subprocess

import harness
from harness import wait_until


class Surroundings(harness.Case):
    def test_closed_standard_streams_are_no_files_of_ours(self):
        slide = self.slide(size="900x700")
        out = self.folder / "out"
        words = [harness.BIN / "patchbay", "ingest", slide, "--out", out]
        done = subprocess.run(["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', *map(str, words)], cwd=self.folder,
                              env=self.environment(), timeout=harness.LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0)
        store, = out.glob("*.ome.zarr")
        self.assertEqual(self.command("verify", store).returncode, 0)
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])

    def test_result_that_cannot_be_written_is_a_failure(self):
        for words in (["doctor"], ["doctor", "--json"], ["key", "list", "--json"], ["--help"], ["stream", "--help"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([harness.BIN / "patchbay", *words], stdout=full, stderr=subprocess.PIPE, text=True,
                                      cwd=self.folder, env=self.environment(), timeout=harness.LIMIT_S, check=False)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn("standard output: No space left", done.stderr, words)

    def test_command_whose_launcher_is_killed_says_so_and_leaves_nothing(self):
        run = self.run_file(self.slide(size="900x700"))
        saved = self.folder / "saved"
        stream = self.start("stream", run, "--batches", 600, "--step-ms", 20, "--save", saved, "--force")
        wait_until(lambda: saved.exists() and any(saved.iterdir()), "a batch")
        self.kill(self.pids(stream, "patchbay-launcher")[0])
        self.done(stream, expect=1)
        self.assertIn("has ended: its supervisor", pathlib.Path(stream.log).read_text(encoding="utf-8"))
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])

    def test_batches_that_cannot_find_room_are_refused_before_the_first(self):
        run = self.run_file(self.slide(size="900x700"))
        disk = self.small_disk("4m")
        result = self.command("stream", run, "--batches", 50, "--save", disk)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"50 batches take [0-9.]+ MiB, and 4\.0 MiB are free; give --save a folder")
        self.assertEqual(list(disk.iterdir()), [])
        result = self.command("stream", run, "--batches", 50, "--save", disk, "--force")
        self.assertIn("No space left", result.stderr)
        self.assertEqual(len(list(disk.iterdir())), 2)
        shutil.rmtree(disk, ignore_errors=True)  # but for the mount point
        self.assertEqual(self.command("stream", run, "--batches", 2, "--save", disk).returncode, 0)

    def test_file_beyond_the_limit_on_sizes_is_an_error_that_names_the_limit(self):
        slide = self.slide(size="900x700")
        run = self.run_file(slide)
        saved, stores = self.folder / "saved", self.folder / "stores"
        for words in (["stream", run, "--batches", 2, "--save", saved], ["ingest", slide, "--out", stores]):
            process = self.start(*words, prefix=["prlimit", "--fsize=102400"])
            self.assertIn(process.wait(harness.LIMIT_S), (1, 3))
            said = pathlib.Path(process.log).read_text(encoding="utf-8")
            self.assertIn("File too large: files are limited to 102400 bytes: raise it (ulimit -f)", said, words)
        self.assertEqual(list(saved.glob("*.npy")), [])
        self.assertEqual(list(stores.glob("*.ome.zarr")), [])

    def test_journal_beyond_the_limit_on_sizes_names_the_limit(self):
        log = self.folder / "up.log"
        with open(log, "w", encoding="utf-8") as sink:
            refused = subprocess.run(["prlimit", "--fsize=16384", harness.BIN / "patchbay", "up", "--cpus", "1", "--gpus",
                                      "none", "--listen", f"tcp://127.0.0.1:{harness.free_port()}"], stderr=sink,
                                     cwd=self.folder, env=self.environment(), timeout=harness.LIMIT_S, check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("raise it (ulimit -f)", log.read_text(encoding="utf-8"))

    def test_batch_that_finds_no_room_leaves_no_part_of_it(self):
        run = self.run_file(self.slide(size="900x700"), meta=True)
        disk = self.small_disk("64m")
        stream = self.start("stream", run, "--batches", 40, "--step-ms", 50, "--save", disk)
        wait_until(lambda: list(disk.glob("*-image.npy")), "a batch")
        with self.assertRaises(OSError), open(disk / "others", "wb", buffering=0) as others:
            while others.write(bytes(1 << 16)) == 1 << 16:
                pass
            raise OSError("short")
        self.done(stream, expect=1)
        said = pathlib.Path(stream.log).read_text(encoding="utf-8")
        self.assertIn("No space left", said)
        batches = {path.name.rsplit("-", 1)[0] for path in disk.glob("*.npy")}
        self.assertIn(f"saved before it: {len(batches)} batch", said)
        for batch in batches:
            self.assertEqual(len(list(disk.glob(f"{batch}-*.npy"))), 5, batch)
        self.assertEqual(len(list(disk.iterdir())), 5 * len(batches) + 1)

    def test_batch_of_which_only_the_first_array_finds_room_leaves_none_of_it(self):
        run = self.run_file(self.slide(size="900x700"), meta=True)
        disk, page = self.small_disk("2m"), 4096
        image_pages = (16 * 3 * 128 * 128 * 2) // page + 1  # and its header
        (disk / "others").write_bytes(bytes((2 << 20) - image_pages * page))
        result = self.command("stream", run, "--batches", 1, "--save", disk, "--force")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"epoch-0000-batch-000000-ordinal\.npy: No space left on device; saved before it: 0 batches")
        self.assertEqual([path.name for path in disk.iterdir()], ["others"])

    def test_cluster_that_finds_no_room_says_so(self):
        run = self.run_file(self.slide(size="900x700"))
        for size in ("8k", "40k", "90k", "100k"):
            with self.subTest(size=size):
                environment = self.environment(TMPDIR=str(self.small_disk(size)))
                done = subprocess.run([harness.BIN / "patchbay", "stream", run, "--batches", "1"], capture_output=True, text=True,
                                      cwd=self.folder, env=environment, timeout=harness.LIMIT_S, check=False)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, "No space left|disk is full")
                self.assertTrue(done.stderr.startswith("patchbay: run a cluster for this command: "), done.stderr)

    def test_cluster_whose_disk_fills_names_it_and_goes_on_when_there_is_room(self):
        slides = [self.slide("a.svs", size="900x700"), self.slide("b.svs", size="800x700", seed=2)]
        disk = self.small_disk("3m")
        cluster = self.start("up", "--cpus", 1, "--state", disk)
        self.await_workers(cluster, 1)
        before = self.json("ingest", slides[0], "--out", self.folder / "before")
        with open(disk / "filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(4096))
            except OSError:
                pass
        ingest = self.start("ingest", slides[1], "--out", self.folder / "after")
        said = rf"write journal: {disk}/scheduler/journal.db: database or disk is full: free space there; nothing that was acknowledged is lost"
        wait_until(lambda: said in pathlib.Path(cluster.log).read_text(encoding="utf-8"), "the disk is named")
        self.assertIsNone(ingest.poll())
        (disk / "filler").unlink()
        self.done(ingest)
        self.assertEqual([row["state"] for row in self.json("jobs")["jobs"]], ["done", "done"])
        self.assertEqual(len(list((self.folder / "after").glob("*.ome.zarr"))), 1)
        self.assertEqual(before["stores"][0]["digest"], self.json("ingest", slides[0], "--out", self.folder / "again")["stores"][0]["digest"])
        self.down(cluster)

    def test_config_of_many_long_paths_is_checked(self):
        slide = self.slide(size="300x300")
        deep = self.folder.joinpath(*["a" * 200] * 14)
        deep.mkdir(parents=True)
        for i in range(60):
            os.link(slide, deep / f"{i}.svs")
        paths = [str(path) for path in sorted(deep.iterdir())]
        self.assertGreater(len("".join(paths)), 150_000)
        checked = self.command("config", "check", self.run_file("[" + ", ".join(paths) + "]"))
        self.assertEqual(checked.returncode, 0, checked.stderr[-2000:])


if __name__ == "__main__":
    harness.main()
