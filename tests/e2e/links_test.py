"""A link that leads nowhere is no free name: no command writes through it, and none takes its place unasked."""
import harness


class Links(harness.Case):
    def link(self, name):
        link = self.folder / name
        link.symlink_to(self.folder / "elsewhere")
        return link

    def expect_refused(self, link, *words):
        result = self.command(*words)
        self.assertIn(result.returncode, (1, 2), result.stdout + result.stderr)
        self.assertTrue(link.is_symlink(), words)
        self.assertFalse((self.folder / "elsewhere").exists(), words)
        self.assertIn(link.name, result.stderr)

    def test_no_command_that_makes_a_file_writes_to_it(self):
        slide = self.slide(size="900x700")
        store = next(self.store([slide]).glob("*.ome.zarr"))
        self.assertEqual(self.command("labels", "tissue", store).returncode, 0)
        for name, words in (("table.csv", ["scan", slide, "--out"]),
                            ("sheet.png", ["preview", slide, "--out"]),
                            ("outlines.geojson", ["labels", "export", store, "--set", "tissue", "--out"]),
                            ("mask.tiff", ["labels", "export", store, "--set", "tissue", "--to", "tiff", "--out"]),
                            ("other.svs", ["synth", "slide", "--size", "900x700"]),
                            ("pseudonym", ["key", "pseudonym", "export"]),
                            ("ann.key", ["key", "new", "ann", "--role", "trainer", "--out"])):
            with self.subTest(words=words):
                self.expect_refused(self.link(name), *words, name)

    def test_no_command_that_makes_a_folder_writes_to_it(self):
        slide = self.slide(size="900x700")
        run = self.run_file(slide)
        for name, words in (("stores", ["ingest", slide, "--out"]),
                            ("spectra", ["spectra", slide, "--out"]),
                            ("saved", ["stream", run, "--batches", 1, "--save"]),
                            ("volume.ome.zarr", ["synth", "volume", "--size", "8x64x64"]),
                            ("series", ["synth", "ct", "--size", "12x32x32"])):
            with self.subTest(words=words):
                self.expect_refused(self.link(name), *words, name)

    def test_the_second_file_of_a_command_is_not_written_to_it_either(self):
        self.expect_refused(self.link("mask.nii"), "synth", "ct", "series", "--size", "12x64x64", "--lesions", "mask.nii")
        dataset = self.folder / "dataset"
        for name in ("imagesTr/a_0000.nii", "labelsTr/a.nii"):
            (dataset / name).parent.mkdir(parents=True)
            (dataset / name).touch()
        (dataset / "dataset.json").write_text(
            '{"channel_names": {"0": "CT"}, "labels": {"background": 0, "a": 1}, "numTraining": 1, "file_ending": ".nii"}')
        self.expect_refused(self.link("table.classes.yaml"), "scan", dataset, "--out", "table.csv")
        self.assertFalse((self.folder / "table.csv").exists())

    def test_a_lock_follows_a_link_to_a_file_and_refuses_one_that_leads_nowhere(self):
        run = self.run_file(self.slide(size="900x700"))
        link = self.link("run.lock")
        for more in ((), ("--update",)):
            self.expect_refused(link, "lock", run, *more)
        shared = self.folder / "elsewhere"
        shared.write_text("not a lock yet", encoding="utf-8")
        self.assertEqual(self.command("lock", run, "--update").returncode, 0)
        self.assertTrue(link.is_symlink())
        self.assertIn('"images"', shared.read_text(encoding="utf-8"))

    def test_a_planted_part_of_a_batch_leads_nowhere(self):
        run = self.run_file(self.slide(size="900x700"))
        (self.folder / "saved").mkdir()
        self.link("saved/epoch-0000-batch-000000-image.npy.partial")
        self.assertEqual(self.command("stream", run, "--batches", 1, "--save", "saved").returncode, 0)
        self.assertFalse((self.folder / "elsewhere").exists())


if __name__ == "__main__":
    harness.main()
