"""Files whose names read like the numbers that workers use are called by their names, unchanged, wherever an error is shown."""
import json
import shutil

import harness

BROKEN = ("slide 3: image 2.svs", "image 2 of file 0.svs", "OUT: store 0: slide 1.svs")


class SubjectNames(harness.Case):
    def broken(self):
        """A folder of slides that cannot be read, and a good one."""
        folder = self.folder / "slide 0: d"
        folder.mkdir()
        for name in BROKEN:
            (folder / name).write_bytes(b"no slide at all")
        self.slide("slide 0: d/good.svs", size="900x700")
        return folder, [str(folder / name) for name in BROKEN]

    def slides_fail(self, *words):
        folder, paths = self.broken()
        self.up(1)
        row = self.json(words[0], folder, "--out", "out", *words[1:], expect=3)
        self.assertEqual(sorted(failed["source"] for failed in row["failed"]), sorted(paths))
        for failed in row["failed"]:
            self.assertIn(failed["source"], failed["reason"])
            self.assertEqual((failed["subject"]["kind"], failed["subject"]["part"]), ("slide", failed["source"]))
        listed = (self.folder / "out/failed.csv").read_text(encoding="utf-8")
        said = self.command(words[0], folder, "--out", "out", *words[1:]).stderr
        for path in paths:
            self.assertIn(path, listed)
            self.assertIn(f"failed: {path}: ", said)
        shown = {command: self.command(*command).stdout + self.command(*command).stderr
                 for command in ((what, 1, *more) for what in ("wait", "job", "logs") for more in ((), ("--json",)))}
        for command, text in shown.items():
            for path in paths:
                self.assertIn(path, text, command)
        shutil.rmtree(self.home / "jobs")  # as another user sees the job
        for what in ("wait", "job", "logs"):
            text = "".join(self.command(what, 1, *more).stdout for more in ((), ("--json",)))
            self.assertIn("slide 0", text)
            for name in (*BROKEN, str(self.folder)):
                self.assertNotIn(name, text, what)

    def test_ingest(self):
        self.slides_fail("ingest")

    def test_spectra(self):
        self.slides_fail("spectra", "--profile", "nedc")

    def test_stream(self):
        folder, paths = self.broken()
        (folder / "good.svs").unlink()
        self.up(1)
        run = self.run_file(json.dumps(str(folder)))
        for words in (("stream", run, "--batches", 1), ("config", "check", run), ("lock", run)):
            result = self.command(*words, "--json")
            self.assertEqual(result.returncode, 1, result.stderr)
            error = json.loads(result.stderr.splitlines()[-1])["error"]
            self.assertTrue(any(path in error["text"] for path in paths), error)
            self.assertIn(error["subject"]["part"], paths)
        seen = "".join(self.command(*words).stdout for words in (("job", 1, "--json"), ("logs", 1)))
        for name in (*BROKEN, str(self.folder)):
            self.assertNotIn(name, seen)

    def error_of(self, *words):
        result = self.command(*words, "--json")
        self.assertEqual(result.returncode, 1, result.stderr)
        return json.loads(result.stderr.splitlines()[-1])["error"]

    def test_a_job_that_fails_keeps_the_parts_of_its_first_failure(self):
        deep = self.folder / "root"
        for _ in range(70):
            deep = deep / "d"
        deep.mkdir(parents=True)
        error = self.error_of("ingest", self.folder / "root", "--out", "out")
        self.assertEqual((error["code"], error["cause"]), (3, "nested deeper than 64"))
        self.assertTrue(error["doing"].startswith("ingest into "), error)
        self.assertEqual(error["subject"]["kind"], "file")
        self.assertTrue(error["subject"]["part"].startswith(str(self.folder / "root")), error)

    def test_a_folder_that_is_no_store(self):
        folder = self.folder / "labels: chunk (0"
        folder.mkdir()
        for words in (("labels", "tissue", folder), ("labels", "prune", folder, "--no-lock")):
            error = self.error_of(*words)
            self.assertTrue(error["doing"], error)
            self.assertEqual(error["subject"]["part"], str(folder))

    def seen_by_others(self):
        """Everything that leaves the command: the scheduler's files and what it tells another user."""
        shutil.rmtree(self.home / "jobs", ignore_errors=True)
        told = "".join(self.command(*words).stdout for words in (("job", 1, "--json"), ("wait", 1, "--json"), ("logs", 1)))
        kept = b"".join(path.read_bytes() for path in self.home.rglob("*") if path.is_file())
        return told.encode() + kept

    def test_a_folder_that_reads_like_an_error_below_another(self):
        root = self.folder / "root: chunk (0,1)"
        deep = root / "y: JOHN DOE chunk (0"
        for _ in range(70):
            deep = deep / "d"
        deep.mkdir(parents=True)
        self.up(1)
        error = self.error_of("ingest", root, "--out", "out")
        self.assertIn(str(root), error["text"])
        self.assertEqual((error["code"], error["cause"]), (3, "nested deeper than 64"))
        self.assertEqual(error["subject"]["kind"], "file")
        self.assertTrue(error["subject"]["part"].startswith(str(root)), error)
        self.assertNotIn(b"JOHN DOE", self.seen_by_others())

    def test_images_that_read_like_errors(self):
        dicom = self.folder / "a: JOHN DOE chunk (0: b.dcm"
        dicom.write_bytes(bytes(128) + b"DICM")
        store = next(self.store([self.slide(size="900x700")]).glob("*.zarr"))
        lost = store.rename(store.parent / "b: JOHN DOE chunk (1.ome.zarr")
        (lost / "0" / "zarr.json").unlink()
        self.up(1)
        for path in (dicom, lost):
            error = self.error_of("stream", self.run_file(json.dumps(str(path))), "--batches", 1)
            self.assertIn(str(path), error["text"])
            self.assertTrue(error["subject"]["part"].startswith(str(path)), error)
        told = self.command("logs", 1).stdout + self.command("job", 1, "--json").stdout
        self.assertNotIn("JOHN DOE", told)

    def test_labels(self):
        store = next(self.store([self.slide(size="900x700")]).glob("*.zarr"))
        named = store.rename(store.parent / "store 1: image 2.ome.zarr")
        (self.folder / "classes.yaml").write_text("classes: [{name: benign, value: 0}, {name: tumour, value: 1}]\n", encoding="utf-8")
        file = self.folder / "file 0: slide 3.geojson"
        file.write_text("{", encoding="utf-8")
        result = self.command("labels", "import", named, file, "--set", "t", "--classes", "classes.yaml", "--json")
        self.assertEqual(result.returncode, 1, result.stderr)
        failed, = json.loads(result.stdout)["failed"]
        self.assertEqual((failed["store"], failed["file"]), (str(named), str(file)))
        self.assertIn(str(file), result.stderr)


if __name__ == "__main__":
    harness.main()
