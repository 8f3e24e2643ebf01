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
