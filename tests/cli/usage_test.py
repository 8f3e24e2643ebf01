"""A usage error gives exit code 2 and a hint; every command explains itself on one screen."""
import program

COMMANDS = ["ingest", "convert", "stream", "map", "score", "spectra", "spectra-diff", "inspect", "preview", "verify", "forget", "config print", "config check",
            "labels import", "labels tissue", "labels compare", "labels majority", "labels export", "labels prune", "labels list", "labels show", "labels delete", "lock",
            "scan", "synth ct", "synth slide", "synth volume", "doctor", "up", "join", "down", "site run", "status", "node list", "node drain", "node resume", "node label", "key new", "key list", "key revoke", "key team", "teams check", "teams apply", "teams show", "jobs", "job",
            "why", "wait", "cancel", "hold", "release", "priority", "retry", "logs", "usage"]


class Usage(program.Case):
    def refused(self, *words):
        done = self.expect(2, *words)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def test_overview_fits_a_screen_and_names_every_command(self):
        text = self.expect(0, "--help").stdout
        self.assertLessEqual(len(text.splitlines()), 42)  # one line a command
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        for command in COMMANDS:
            for word in command.split():
                self.assertIn(word, text)
        self.assertRegex(text, r"(?m)^  help COMMAND ")

    def test_every_command_explains_itself_on_a_screen(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                text = self.expect(0, *command.split(), "--help").stdout
                self.assertIn("usage: patchbay " + command, text)
                self.assertLessEqual(len(text.splitlines()), 31)
                self.assertLessEqual(max(map(len, text.splitlines())), 100)
                for flag in ("--cluster", "--json", "--help"):
                    self.assertIn(flag, text)

    def test_help_and_version_are_spelled_in_the_usual_ways(self):
        overview, stream = self.expect(0, "--help").stdout, self.expect(0, "stream", "--help").stdout
        self.assertEqual(self.expect(0, "-h").stdout, overview)
        self.assertEqual(self.expect(0, "help").stdout, overview)
        self.assertEqual(self.expect(0, "stream", "-h").stdout, stream)
        self.assertEqual(self.expect(0, "help", "stream").stdout, stream)
        self.assertIn("key new", self.expect(0, "help", "key").stdout)
        keys = self.expect(0, "help", "config").stdout
        self.assertIn("config check", keys)
        self.assertTrue(keys.endswith(self.expect(0, "config", "print").stdout))
        self.assertIn("patchbay help config", stream)
        self.assertIn("unknown command", self.refused("help", "stauts"))
        self.assertRegex(self.expect(0, "--version").stdout, r"^patchbay \d+\.\d+\.\d+\n$")

    def test_nothing_is_overwritten_unasked(self):
        self.expect(0, "synth", "slide", "a.svs", "--size", "600x500")
        before = (self.folder / "a.svs").read_bytes()
        self.assertIn("--force", self.expect(1, "synth", "slide", "a.svs", "--size", "500x600").stderr)
        self.assertEqual((self.folder / "a.svs").read_bytes(), before)
        self.expect(0, "synth", "slide", "a.svs", "--size", "500x600", "--force")
        self.assertNotEqual((self.folder / "a.svs").read_bytes(), before)
        (self.folder / "run.yaml").write_text("dataset: a.svs\npatch: {size: [100, 100]}\n")
        for words in (("preview", "a.svs"), ("labels", "export", "a.ome.zarr", "--set", "s")):
            self.assertIn("run.yaml: it exists", self.expect(1, *words, "--out", "run.yaml").stderr)
        self.expect(0, "preview", "a.svs", "--out", "a.png")
        self.expect(0, "preview", "a.svs", "--out", "a.png", "--force")
        (self.folder / "saved").mkdir()
        (self.folder / "saved/epoch-0000-batch-000007-image.npy").touch()
        self.assertIn("--force", self.expect(1, "stream", "run.yaml", "--save", "saved").stderr)
        self.expect(0, "stream", "run.yaml", "--save", "saved", "--force", "--batches", "1")

    def test_an_export_of_labels_is_not_named_after_another_format(self):
        for out, words, says in (("m.tif", ("--to", "geojson"), "the name says tiff, and geojson would be written: end it in .geojson or .json"),
                                 ("m.JSON", ("--to", "tiff"), "the name says geojson, and tiff would be written: end it in .tif, .tiff or .btf"),
                                 ("m.png", ("--to", "tiff"), "the name says png, and tiff would be written"),
                                 ("m.png", (), ".geojson or .json for geojson; ")):
            refused = self.refused("labels", "export", "a.ome.zarr", "--set", "s", "--out", out, *words)
            self.assertIn(f"--out {out}: ", refused)
            self.assertIn(says, refused)

    def test_no_command_is_a_usage_error_that_shows_the_overview(self):
        self.assertIn("usage: patchbay COMMAND", self.refused())

    def test_a_folder_that_is_not_there_is_said_of_the_file_that_was_asked_for(self):
        self.assertIn("no/where.svs: there is no such folder", self.expect(1, "synth", "slide", "no/where.svs").stderr)

    def test_unknown_command_names_the_nearest(self):
        self.assertIn("did you mean 'status'", self.refused("stauts"))
        self.assertNotIn("did you mean", self.refused("qwertyuiop"))

    def test_unknown_second_word_lists_the_known_ones(self):
        self.assertIn("key new, key list, key revoke", self.refused("key", "nwe"))
        self.assertIn("'config' needs a second word: one of config print, config check", self.refused("config"))
        self.assertIn("'--frob' is not a command", self.refused("--frob"))

    def test_unknown_flag_names_the_nearest(self):
        self.assertIn("did you mean '--chunk'", self.refused("ingest", "a.svs", "--out", "o", "--chunck", "512"))
        self.assertIn("did you mean '--digest'", self.refused("stream", "run.yaml", "--digets"))

    def test_missing_and_malformed_values_are_named(self):
        self.assertIn("--out", self.refused("ingest", "a.svs"))
        self.assertIn("SOURCE", self.refused("ingest", "--out", "o"))
        self.assertIn("--batches", self.refused("stream", "run.yaml", "--batches", "many"))
        self.assertIn("--batches", self.refused("stream", "run.yaml", "--batches", "0"))
        self.assertRegex(self.refused("ingest", "a.svs", "--out", "o", "--codec", "gzip"),
                         "--codec: expected one of .*, not 'gzip'")
        self.assertIn("--shard", self.refused("ingest", "a.svs", "--out", "o", "--chunk", "300"))
        self.assertIn("WxH", self.refused("synth", "slide", "o.svs", "--size", "12by34"))
        for size in ("12x34", "12x34x56x78", "12x34x", "0x34x56", "axbxc"):
            self.assertIn("ZxYxX", self.refused("synth", "volume", "o.ome.zarr", "--size", size))
        self.assertIn("ID", self.refused("job", "0"))
        for value in ("yesterday", "7", "7w", "2026-13-01"):
            self.assertIn("hours (24h), days (7d) nor a date", self.refused("usage", "--since", value))
        self.assertIn("exclude", self.refused("usage", "--csv", "--json"))
        self.assertIn("--by", self.refused("usage", "--by", "node"))
        for value in ("101", "-101", "high", "1.5"):
            self.assertIn("N: expected a whole number in -100..100", self.refused("priority", "1", value))
        self.assertIn("--role", self.refused("key", "new", "ann"))

    def test_empty_values_are_refused_and_not_taken_for_none(self):
        (self.folder / "run.yaml").write_text("dataset: a.svs\npatch: {size: [100, 100]}\n")
        for flag in ("--save", "--resume", "--split", "--cluster", "--name", "--gpus", "--data-listen"):
            self.assertIn(f"{flag} is empty", self.refused("stream", "run.yaml", flag, ""))
            self.assertIn(f"{flag} is empty", self.refused("stream", f"{flag}=", "run.yaml"))
        for words, name in ((["ingest", "a.svs", "--out", ""], "--out"), (["ingest", "", "--out", "o"], "SOURCE"),
                            (["labels", "prune", "a.ome.zarr", "--lock", ""], "--lock")):
            self.assertIn(f"{name} is empty", self.refused(*words))

    def test_flags_without_a_value_say_what_they_need_and_repeated_ones_that_they_are(self):
        for words, needs in ((["ingest", "a.svs", "--out"], "--out needs a folder"),
                             (["ingest", "a.svs", "--out", "--json"], "--out needs a folder"),
                             (["preview", "a.svs", "--out"], "--out needs a file"),
                             (["stream", "run.yaml", "--batches"], "--batches needs a number"),
                             (["stream", "run.yaml", "--name"], "--name needs a value (NAME)"),
                             (["ingest", "a.svs", "--out", "o", "--codec"], "--codec needs one of zstd, lz4, keep, auto"),
                             (["ingest", "a.svs", "--out", "o", "--out", "p"], "--out is given twice"),
                             (["stream", "run.yaml", "--epoch", 1, "--epoch", 2, "--epoch", 3],
                              "--epoch is given more than twice")):
            self.assertIn(f"patchbay: {needs}\n", self.refused(*words))

    def test_gpus_that_are_no_list_are_refused_before_anything_starts(self):
        for slide in ("a.svs", "run.yaml"):
            (self.folder / slide).touch()
        for words in (["ingest", "a.svs", "--out", "o"], ["spectra", "a.svs", "--out", "o"], ["stream", "run.yaml"],
                      ["up"]):
            for value in ("all", "auto,0", "0,", "GPU-xyz"):
                said = self.refused(*words, "--gpus", value)
                self.assertIn(f"patchbay: --gpus: expected auto, none or UUIDs, not '{value}'\n", said)
                self.assertLessEqual(len(said.splitlines()), 2, said)

    def test_limits_of_stores_are_in_the_help_and_are_held_before_a_cluster_starts(self):
        text = self.expect(0, "ingest", "--help").stdout
        slide = self.folder / "a.svs"
        slide.touch()
        for flag, limits, bad in (("--chunk", "64 to 4096", (1, 63, 4097, -1)), ("--shard", "64 to 32768", (0, 33280)),
                                  ("--codec-level", "1 to 9", (0, 10)), ("--mpp", "0.001 to 999", (0, 1000)),
                                  ("--volume-chunk", "one of 32, 48, 64, 96, 128", (33, 100)),
                                  ("--spacing-order", "one of 0, 1, 3", (2,)), ("--assume-mpp", "0.001 to 50", (0, 51)),
                                  ("--nan", "-1000000 to 1000000", (2e6,)), ("--spacing", "0.1 to 100", ("1,1", "0,1,1", "a"))):
            self.assertRegex(text, f"{flag} .*{limits}")
            for value in bad:
                with self.subTest(flag=flag, value=value):
                    self.assertIn(flag, self.refused("ingest", slide, "--out", "o", flag, value))
        self.assertFalse((self.folder / "o").exists())

    def test_numbers_out_of_bounds_are_told_the_bounds(self):
        for words, expected in ((["job", "0"], "ID: expected a whole number from 1 on, not '0'"),
                                (["job", "one"], "not 'one'"),
                                (["stream", "run.yaml", "--epoch", "65536"], "--epoch: expected a whole number in 0..65535, not '65536'"),
                                (["ingest", "a.svs", "--out", "o", "--mpp", "nan"], "not 'nan'")):
            refused = self.refused(*words)
            self.assertIn(expected, refused)
            self.assertLess(len(refused), 200)

    def test_first_word_alone_explains_its_commands(self):
        for word, commands in (("key", ("key new", "key list", "key revoke")), ("config", ("config print", "config check")),
                               ("synth", ("synth slide",))):
            text = self.expect(0, word, "--help").stdout
            for command in commands:
                self.assertIn(command, text)
        self.assertIn("unknown command", self.refused("key", "nwe", "--help"))
        self.assertIn("unknown command", self.refused("stauts", "--help"))

    def test_words_behind_two_dashes_are_no_flags(self):
        self.assertIn("/--help", self.expect(1, "inspect", "--", "--help").stderr)
        self.assertIn("/-a.svs", self.expect(1, "inspect", "--json", "--", "-a.svs").stderr)
        self.assertIn("'--two'", self.refused("inspect", "--", "one", "--two"))
        self.assertIn('"keys"', self.expect(0, "key", "list", "--json", "--").stdout)

    def test_surplus_words_are_refused(self):
        self.assertIn("'two'", self.refused("inspect", "one", "two"))

    def test_global_flags_may_stand_before_the_command(self):
        self.assertIn('"checks"', self.expect(0, "--json", "doctor").stdout)
        self.assertIn('"keys"', self.expect(0, "--json", "key", "list").stdout)

    def test_commands_that_need_a_cluster_say_so(self):
        for words in (["status"], ["jobs"], ["job", "1"], ["wait", "1"], ["cancel", "1"], ["retry", "1"],
                      ["logs", "1"], ["usage"], ["down"]):
            with self.subTest(words=words):
                self.assertIn("no cluster is running", self.expect(1, *words).stderr)
        slide = self.folder / "a.svs"
        slide.touch()
        self.assertIn("no cluster is running",
                      self.expect(1, "ingest", slide, "--out", "o", "--detach").stderr)

    def test_missing_files_are_named(self):
        self.assertIn("nobody.key", self.expect(1, "jobs", "--cluster", "nobody.key").stderr)
        self.assertIn("nobody.key", self.expect(1, "jobs", PATCHBAY_CLUSTER="nobody.key").stderr)
        self.assertIn("nothing.svs", self.expect(1, "ingest", "nothing.svs", "--out", "o").stderr)
        self.assertIn("nothing.zarr", self.expect(1, "verify", "nothing.zarr").stderr)
        self.assertIn("nothing.yaml", self.expect(1, "stream", "nothing.yaml").stderr)
        self.assertIn("nothing.svs", self.expect(1, "inspect", "nothing.svs").stderr)

    def test_volumes_that_cannot_be_read_fail_an_inspection(self):
        study = self.folder / "study"
        study.mkdir()
        for name in ("a.dcm", "b.nii"):
            (study / name).write_bytes(b"neither")
        said = self.expect(1, "inspect", study / "b.nii").stderr
        self.assertIn("b.nii: not the DICOM or NIfTI file that its name says", said)
        said = self.expect(1, "inspect", study).stderr
        self.assertIn("a.dcm: not the DICOM or NIfTI file that its name says; 1 other file likewise", said)
        (self.folder / "cut.nrrd").write_bytes(b"NRRD0004\ndimension: 3\n")
        said = self.expect(1, "inspect", self.folder / "cut.nrrd").stdout
        self.assertIn("nrrd, 1 file\n", said)
        self.assertIn("cannot read   read volume: the header does not end", said)


if __name__ == "__main__":
    program.main()
