"""Sources with odd names, in odd folders, or of jobs that nobody waited for: each is named, and fails alone if it must."""
import csv
import json
import os
import pathlib
import shutil
import subprocess

import harness


class OddSources(harness.Case):
    def failed(self, out):
        with open(out / "failed.csv", newline="", encoding="utf-8", errors="surrogateescape") as file:
            return {row["source"]: row["reason"] for row in csv.DictReader(file)}

    def command(self, *words, **options):
        return super().command(*words, errors="surrogateescape", **options)

    def hidden(self, out):
        return [p.name for p in out.iterdir() if p.name.startswith(".")]

    def test_names_that_are_not_utf8_work_everywhere(self):
        folder = self.folder / "u"
        folder.mkdir()
        slide = self.slide(size="1500x1200")
        odd = folder / os.fsdecode(b"b\xff.svs")
        shutil.copy(slide, odd)
        out = self.folder / "out"
        row = self.json("ingest", folder, "--out", out)
        self.assertEqual([s["source"] for s in row["stores"]], [f"{folder}/b\0ff.svs"])
        self.assertEqual(self.command("ingest", odd, "--out", self.folder / os.fsdecode(b"o\xfe"), "--keep-names").returncode, 0)
        self.assertTrue((self.folder / os.fsdecode(b"o\xfe/b\xff.ome.zarr/zarr.json")).exists())
        self.assertEqual(self.command("spectra", folder, "--out", self.folder / "s").returncode, 0)
        self.assertEqual(self.command("inspect", odd).returncode, 0)
        result = self.command("stream", self.run_file("u"), "--batches", 2, "--digest")
        self.assertEqual(result.returncode, 0, result.stderr)
        odd.write_bytes(slide.read_bytes()[:60_000])
        self.assertEqual(self.command("ingest", folder, "--out", self.folder / "bad").returncode, 3)
        self.assertEqual(list(self.failed(self.folder / "bad")), [str(odd)])

    def test_a_link_that_goes_in_circles_fails_alone_and_a_folder_of_them_is_searched_once(self):
        folder = self.folder / "d"
        (folder / "sub").mkdir(parents=True)
        shutil.move(self.slide(size="1500x1200"), folder)
        (folder / "sub/loop").symlink_to("..")
        (folder / "sub/self.svs").symlink_to("self.svs")
        out = self.folder / "out"
        result = self.command("ingest", folder, "--out", out)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertEqual(len(list(out.glob("*.ome.zarr"))), 1)
        self.assertEqual(list(self.failed(out)), [str(folder / "sub/self.svs")])
        self.assertEqual(self.hidden(out), [])

    def test_reasons_name_files_and_nothing_stays_that_nobody_can_use(self):
        folder = self.folder / "d"
        folder.mkdir()
        good = self.slide("d/good.svs", size="1500x1200")
        (folder / "bad.svs").write_bytes(b"no slide")
        out = self.folder / "out"
        (out / "good.ome.zarr").mkdir(parents=True)
        result = self.command("ingest", folder, "--out", out, "--keep-names", "--json")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertEqual(json.loads(result.stdout)["stores"], [])
        failed = self.failed(out)
        self.assertIn(f"{out}/good.ome.zarr", failed[str(good)])
        self.assertIn(f"{folder}/bad.svs", failed[f"{folder}/bad.svs"])
        self.assertNotRegex(str(failed) + result.stdout + result.stderr, r"OUT/|slide \d")
        self.assertEqual(self.hidden(out), [])
        self.assertIn("no slide was stored", self.command("ingest", folder, "--out", out, "--keep-names").stdout)

    def test_failures_that_no_file_can_list_are_all_on_the_terminal(self):
        out = self.folder / "out"
        out.mkdir()
        listed = out / "failed.csv"  # a list of an earlier run; nothing takes the name of what is mounted there
        listed.write_text("source,reason\r\n", encoding="utf-8")
        if subprocess.run(["mount", "--bind", listed, listed], capture_output=True, check=False).returncode != 0:
            self.skipTest("this machine, or this user, mounts no files")
        self.addCleanup(subprocess.run, ["umount", "-l", listed], check=False)
        names = [f"bad{i:02}.svs" for i in range(25)]
        for name in names:
            (self.folder / name).write_bytes(b"no slide")
        result = self.command("ingest", *names, "--out", out)
        self.assertEqual(result.returncode, 3, result.stderr)
        for name in names:
            self.assertIn(f"failed: {self.folder / name}: ", result.stderr)
        self.assertIn("in no file: ", result.stderr)

    def test_a_job_that_nobody_waited_for_ends_like_one_that_somebody_did(self):
        folder = self.folder / "d"
        folder.mkdir()
        good = self.slide("d/good.svs", size="1500x1200")
        bad = folder / "bad.svs"
        bad.write_bytes(b"no slide")
        cluster = self.up(1)
        for kind in ("ingest", "spectra"):
            out = self.folder / kind
            job = self.json(kind, folder, "--out", out, "--detach")["job"]
            result = self.command("wait", job)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn("good.svs", result.stdout)
            self.assertIn(f"failed: {bad}: ", result.stderr)
            self.assertIn(f"patchbay retry {job}", result.stderr)
            self.assertEqual(list(self.failed(out)), [str(bad)])
            row = self.json("wait", job, expect=3)
            self.assertEqual(row["job"], job)
            self.assertEqual([f["source"] for f in row["result"]["failed"]], [str(bad)])
            for words in (("job", job), ("job", job, "--json"), ("logs", job)):
                self.assertIn(str(bad), self.command(*words).stdout, words)
            shutil.copy(good, bad)
            self.assertEqual(self.command("retry", job).returncode, 0)
            self.assertEqual(self.command("wait", job).returncode, 0)
            self.assertFalse((out / "failed.csv").exists())
            self.assertEqual(self.hidden(out), [])
            bad.write_bytes(b"no slide")
        self.down(cluster)

    def test_a_disk_that_may_be_too_small_is_warned_of_and_one_that_is_refused(self):
        slide = self.slide(size="3000x2500", seed=5)
        disk = self.small_disk("11m")
        words = ["ingest", slide, "--out", disk / "out", "--chunk", 256, "--shard", 512]
        self.assertRegex(self.command(*words).stderr, r"warning: about 1[0-9.]+ MiB will be written and 1[0-9.]+ MiB are free")
        shutil.rmtree(disk / "out")
        self.resize(disk, "3m")
        result = self.command(*words)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"about 1[0-9.]+ MiB will be written, at least [0-9.]+ MiB, and [0-9.]+ MiB are free")
        self.assertEqual(list(pathlib.Path(disk / "out").iterdir()), [])


if __name__ == "__main__":
    harness.main()
