"""An ingest may lose any process at any time: the next one goes on, and the roots are the same."""
import json
import pathlib
import re
import signal

import harness
from harness import wait_until


class IngestFaults(harness.Case):
    def setUp(self):
        super().setUp()
        self.source = self.once("slide", lambda: self.keep(self.slide(size="4600x4000", seed=3)))

    def ingest(self, out, source=None):
        return ["ingest", source or self.source, "--out", out, "--chunk", 256, "--shard", 512, "--codec", "zstd", "--codec-level",
                6]

    def roots(self, out):
        stores = sorted(pathlib.Path(out).glob("*.ome.zarr"))
        self.assertEqual(len(stores), 1)
        row = self.json("inspect", stores[0])
        return row["digest"], row["pixel_digest"]

    def codec(self, out):
        document = json.loads((next(out.glob("*.ome.zarr")) / "zarr.json").read_text(encoding="utf-8"))
        return document["attributes"]["patchbay"]["codec_plan"]["codec"]

    def reference(self):
        return self.once("roots", self.undisturbed)

    def undisturbed(self):
        out = self.folder / "reference"
        self.assertEqual(self.command(*self.ingest(out)).returncode, 0)
        self.assertEqual(sorted(p.name for p in out.iterdir() if p.name.startswith(".")), [])
        return self.roots(out)

    def staged(self, out, shards):
        """Waits until that many zarr shards are committed but the store is not there."""
        wait_until(lambda: len(list(pathlib.Path(out).glob(".patchbay-ingest/*/records/*.json"))) >= shards,
                   f"{shards} staged zarr shards")

    def test_killed_processes_of_the_cluster_change_nothing(self):
        reference = self.reference()
        for program in ("patchbay-worker", "patchbay-agent", "patchbay-scheduler"):
            with self.subTest(program=program):
                cluster = self.up(2)
                out = self.folder / program
                ingest = self.start(*self.ingest(out))
                self.staged(out, 5)
                self.kill(self.pids(cluster, program)[0])
                self.done(ingest)
                self.assertEqual(self.roots(out), reference)
                self.down(cluster)

    def test_frozen_worker_that_wakes_after_the_store_is_finished_changes_nothing(self):
        reference = self.reference()
        cluster = self.up(2)
        out = self.folder / "out"
        ingest = self.start(*self.ingest(out))
        self.staged(out, 5)
        frozen = self.pids(cluster, "patchbay-worker")[0]
        self.kill(frozen, signal.SIGSTOP)
        self.done(ingest)
        if pathlib.Path(f"/proc/{frozen}").exists():
            self.kill(frozen, signal.SIGCONT)
        self.await_workers(cluster, 2)
        self.assertEqual(self.roots(out), reference)
        self.assertEqual(self.command("verify", next(out.glob("*.ome.zarr"))).returncode, 0)
        self.assertEqual([p.name for p in out.iterdir() if p.name.startswith(".")], [])

    def test_killed_command_is_adopted_by_the_next(self):
        reference = self.reference()
        out = self.folder / "out"
        first = self.start(*self.ingest(out))
        self.staged(out, 5)
        first.kill()
        first.wait()
        self.assertEqual(list(out.glob("*.ome.zarr")), [])
        result = self.command(*self.ingest(out))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.roots(out), reference)
        self.assertFalse((out / ".patchbay-ingest").exists())

    def test_killed_command_has_chosen_its_codec(self):
        out = self.folder / "out"
        words = ["ingest", self.source, "--out", out, "--shard", 512, "--codec", "auto", "--epochs", 2]
        first = self.start(*words)
        self.staged(out, 2)
        first.kill()
        first.wait()
        self.assertEqual(list(out.glob("*.ome.zarr")), [])
        result = self.command(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("patches, first pass", result.stderr)
        taken = re.search(r"--codec auto takes (\w+), which the stores in ", result.stderr).group(1)
        self.assertEqual(self.codec(out), taken)
        self.assertEqual(sorted(p.name for p in out.iterdir() if p.name.startswith(".")), [])
        kept = self.folder / "kept"
        first = self.start(*words[:3], kept, "--shard", 512, "--codec", "keep", "--no-statistics")
        self.staged(kept, 2)
        first.kill()
        first.wait()
        result = self.command(*words[:3], kept, "--shard", 512, "--codec", "auto", "--no-statistics")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.codec(kept), "keep")
        self.assertEqual(self.command("verify", next(kept.glob("*.ome.zarr"))).returncode, 0)

    def test_killed_command_leaves_a_job_that_the_next_one_joins(self):
        reference = self.reference()
        cluster = self.up(1)
        out = self.folder / "out"
        words = [*self.ingest(out), "--cluster", self.home / "operator.key"]
        first = self.start(*words)
        self.staged(out, 2)
        first.kill()
        first.wait()
        result = self.command(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("job 1 of an earlier command does the same work and is still running: joining it", result.stderr)
        self.assertEqual([job["job"] for job in self.json("jobs")["jobs"]], [1])
        self.assertEqual(self.roots(out), reference)
        self.down(cluster)

    def test_a_running_job_says_how_far_it_is(self):
        many = self.folder / "many"
        many.mkdir()
        self.slide("many/a.svs", size="700x600", seed=70)
        (many / "b.svs").symlink_to(self.source)  # seconds of work behind a moment's
        cluster = self.up(1)
        out = self.folder / "out"
        self.assertEqual(self.command(*self.ingest(out, many), "--detach").returncode, 0)

        def first_done():
            row = self.json("job", 1)
            return row if row.get("slides", {}).get("done") else None

        row = wait_until(first_done, "a slide that is done of a job that is not")
        text = self.command("job", 1).stdout
        self.assertEqual((row["state"], row["slides"]), ("running", {"done": 1, "found": 2}))
        self.assertEqual(len(list(out.glob("*.ome.zarr"))), 1)
        self.assertGreaterEqual(row["progress_bytes"], 700 * 600 * 3)
        self.assertRegex(text, r"(?m)^ingest \d+ %  slides 1/2  .* of pixels(  |$)")
        self.assertEqual(self.command("wait", 1).returncode, 0)
        self.assertNotIn("slides", self.json("job", 1))
        self.down(cluster)

    def test_interrupt_leaves_only_the_staging_folder_and_says_so(self):
        out = self.folder / "out"
        process = self.start(*self.ingest(out))
        self.staged(out, 3)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        self.assertEqual([p.name for p in out.iterdir()], [".patchbay-ingest"])
        self.assertIn(".patchbay-ingest", pathlib.Path(process.log).read_text())
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])

    def test_one_bad_slide_fails_alone_with_exit_3_and_a_list(self):
        bad = self.folder / "bad.svs"
        bad.write_bytes(self.source.read_bytes()[:100_000])
        out = self.folder / "out"
        result = self.command("ingest", self.source, bad, "--out", out, "--codec", "lz4", "--json")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertEqual(len(list(out.glob("*.ome.zarr"))), 1)
        self.assertIn("bad.svs", (out / "failed.csv").read_text())
        self.assertIn("bad.svs", result.stderr + json.dumps(json.loads(result.stdout)))

    def test_altered_chunk_is_found_by_verify_and_by_stream(self):
        out = self.folder / "out"
        self.assertEqual(self.command(*self.ingest(out)).returncode, 0)
        store = next(out.glob("*.ome.zarr"))
        self.assertEqual(self.command("verify", store).returncode, 0)
        shard = store / "0/c/0/1/1"
        content = bytearray(shard.read_bytes())
        content[len(content) // 3] ^= 0x10
        shard.write_bytes(content)
        result = self.command("verify", store)
        self.assertEqual(result.returncode, 1)
        self.assertIn("0/c/0/1/1", result.stdout + result.stderr)
        result = self.command("stream", self.run_file(out, patch=256), "--epoch", 0, "--batches", 100)
        self.assertEqual(result.returncode, 1)
        self.assertIn("crc32c", result.stderr)

    def test_full_disk_and_unwritable_folder_are_named(self):
        result = self.command(*self.ingest("/proc/nowhere"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("/proc/nowhere", result.stderr)


if __name__ == "__main__":
    harness.main()
