"""Files of a folder that a command does not read: it says how many of which kind, once, and goes on."""
import harness

COUNTS = {"jpg": 2, "other": 1, "txt": 1}
SAID = "passed over: 2 .jpg, 1 other, 1 .txt"


class PassedOver(harness.Case):
    def setUp(self):
        super().setUp()
        self.slides = self.folder / "slides"
        (self.slides / "below").mkdir(parents=True)
        self.slide("slides/a.svs", size="900x700")
        for name in ("b.JPG", "below/c.jpg", "below/notes.of_john_doe", "d.txt", ".hidden.txt"):
            (self.slides / name).write_bytes(b"no slide")
        self.run_config = self.run_file(self.slides)

    def expect_said_once(self, *words):
        result = self.command(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        said = (result.stdout + result.stderr).splitlines()
        self.assertEqual(said.count(SAID), 1, said)
        self.assertEqual(sum("passed over" in line for line in said), 1, said)

    def test_commands_on_a_run_say_it(self):
        for words in (["config", "check", self.run_config], ["stream", self.run_config, "--batches", 1],
                      ["preview", self.run_config, "--out", "run.png"], ["lock", self.run_config]):
            with self.subTest(words=words):
                self.expect_said_once(*words)

    def test_commands_on_folders_say_it(self):
        for words in (["ingest", self.slides, "--out", "stores"], ["spectra", self.slides, "--out", "spectra"],
                      ["scan", self.slides, "--out", "table.csv"], ["preview", self.slides, "--out", "slides.png"]):
            with self.subTest(words=words):
                self.expect_said_once(*words)

    def test_programs_are_given_the_counts(self):
        for words in (["config", "check", self.run_config], ["stream", self.run_config, "--batches", 1],
                      ["preview", self.run_config, "--out", "run.png"], ["lock", self.run_config, "--update"],
                      ["ingest", self.slides, "--out", "stores"], ["spectra", self.slides, "--out", "spectra"],
                      ["scan", self.slides, "--out", "table.csv"], ["preview", self.slides, "--out", "slides.png"]):
            with self.subTest(words=words):
                self.assertEqual(self.json(*words)["passed_over"], COUNTS)

    def test_commands_on_folders_of_stores_say_it_but_not_of_the_tables_of_ingest(self):
        stores = self.store([self.slides / "a.svs"])
        self.assertTrue((stores / "manifest.csv").exists())
        run = self.run_file(stores, name="stores.yaml")
        self.assertNotIn("passed over", self.command("config", "check", run).stdout)
        self.assertNotIn("passed over", self.command("verify", stores).stdout)
        for name in ("b.jpg", "c.jpg", "d.unknown", "e.txt"):
            (stores / name).write_bytes(b"no slide")
        for words in (["config", "check", run], ["verify", stores], ["labels", "tissue", stores],
                      ["labels", "prune", stores, "--no-lock"]):
            with self.subTest(words=words):
                self.expect_said_once(*words)
                words = [*words, "--set", "other"] if words[:2] == ["labels", "tissue"] else words
                self.assertEqual(self.json(*words)["passed_over"], COUNTS)

    def test_inspect_of_a_folder_of_volumes_says_it(self):
        made = self.command("synth", "ct", self.folder / "series", "--size", "12x32x32")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertNotIn("passed over", self.command("inspect", self.folder / "series").stdout)
        for name in ("b.jpg", "c.jpg", "d.unknown", "e.txt"):
            (self.folder / "series" / name).write_bytes(b"no slice")
        self.expect_said_once("inspect", self.folder / "series")
        self.assertEqual(self.json("inspect", self.folder / "series")["passed_over"], COUNTS)

    def test_a_folder_without_images_says_what_is_in_it(self):
        (self.slides / "a.svs").unlink()
        for words in (["config", "check", self.run_config], ["spectra", self.slides, "--out", "spectra"]):
            result = self.command(*words)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("neither a store nor a slide in this folder (passed over: 2 .jpg, 1 other, 1 .txt)", result.stderr)


if __name__ == "__main__":
    harness.main()
