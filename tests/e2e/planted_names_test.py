"""A name that holds the end of a line forges none, whichever command shows it."""
import json
import os
import pathlib
import shutil

import harness

FORGED = "OK all is well"
NAME = f"a\n{FORGED}\tyes"  # the name of a file or a folder
SHOWN = f"a\\x0a{FORGED}\\x09yes"


class PlantedNames(harness.Case):
    def expect_one_line(self, result, code):
        """The name is shown, on one line with what the command says of it."""
        said = result.stdout + result.stderr
        self.assertEqual(result.returncode, code, said)
        self.assertIn(SHOWN, said)
        for line in said.splitlines():
            self.assertFalse(line.startswith(FORGED), said)
        self.assertNotIn("\t", said)

    def broken(self, folder, ending=".svs"):
        path = self.folder / folder / (NAME + ending)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"no slide at all")
        return path

    def planted_store(self):
        store = next(self.store([self.slide()]).glob("*.zarr"))
        planted = self.folder / "planted" / (NAME + ".ome.zarr")
        planted.parent.mkdir()
        return store.rename(planted)

    def test_inspect_shows_it_on_one_line(self):
        self.expect_one_line(self.command("inspect", self.broken("slides")), 1)
        self.expect_one_line(self.command("inspect", self.folder / NAME), 1)
        volumes = self.broken("volumes", ".nii")
        self.expect_one_line(self.command("inspect", volumes.parent), 1)

    def test_ingest_shows_it_on_one_line_whether_the_slide_fails_or_not(self):
        self.broken("slides")
        shutil.copy(self.slide(), self.folder / "slides" / f"b{NAME}.svs")
        self.expect_one_line(self.command("ingest", self.folder / "slides", "--out", "out", "--keep-names"), 3)
        self.expect_one_line(self.command("ingest", self.folder / NAME, "--out", "out"), 1)

    def test_verify_shows_it_on_one_line(self):
        store = self.planted_store()
        self.expect_one_line(self.command("verify", store.parent), 0)
        chunk = max((p for p in store.rglob("c/*/*/*") if p.is_file()), key=lambda p: p.stat().st_size)
        with open(chunk, "r+b") as file:
            file.seek(100)
            file.write(b"damage" * 10)
        self.expect_one_line(self.command("verify", store.parent), 1)
        self.expect_one_line(self.command("verify", self.folder / NAME), 1)

    def test_scan_shows_it_on_one_line_and_keeps_it_in_the_table(self):
        self.broken("slides")
        table = self.folder / "table.csv"
        self.assertEqual(self.command("scan", self.folder / "slides", "--out", table).returncode, 3)
        self.assertIn(NAME, table.read_text(encoding="utf-8"))
        self.expect_one_line(self.command("scan", self.folder / NAME, "--out", "other.csv"), 1)
        self.expect_one_line(self.command("scan", self.folder / "slides", "--out", NAME), 2)

    def test_config_check_stream_and_preview_show_it_on_one_line(self):
        run = self.run_file(self.broken("slides").parent)
        self.expect_one_line(self.command("config", "check", run), 1)
        self.expect_one_line(self.command("preview", run, "--out", "sheet.png"), 1)
        self.expect_one_line(self.command("lock", run), 1)
        self.expect_one_line(self.command("stream", run, "--batches", 1), 1)
        unknown = self.run_file(self.folder / "slides", name=f"{NAME}.yaml", nonsense=1)
        self.expect_one_line(self.command("config", "check", unknown), 2)

    def test_jobs_show_it_on_one_line(self):
        self.up(1)
        run = self.run_file(self.store([self.slide()]))
        result = self.command("stream", run, "--batches", 1, "--name", NAME)
        self.assertEqual(result.returncode, 0, result.stderr)
        for words in (["jobs"], ["status"], ["job", 2]):
            self.expect_one_line(self.command(*words), 0)

    def test_what_a_failed_job_says_is_one_line_each(self):
        self.up(1)
        self.broken("slides")
        self.slide("slides/good.svs", size="900x700")
        self.expect_one_line(self.command("ingest", self.folder / "slides", "--out", "out"), 3)
        for words, code in ((["logs", 1], 0), (["wait", 1], 3), (["job", 1], 0)):
            said = self.command(*words)
            self.assertEqual(said.returncode, code, said.stderr)
            for line in (said.stdout + said.stderr).splitlines():
                self.assertFalse(line.startswith(FORGED), said.stdout + said.stderr)

    def test_programs_get_the_name_itself(self):
        store, = self.json("verify", self.planted_store().parent)["stores"]
        self.assertIn(NAME, store["path"])
        failed = self.command("inspect", self.folder / NAME, "--json")
        self.assertIn(FORGED, json.loads(failed.stderr.splitlines()[-1])["error"]["text"])


if __name__ == "__main__":
    harness.main()
