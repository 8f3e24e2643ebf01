"""config print and check: errors name file and line; what is printed can be run."""
import program

GOOD = """dataset: slide.svs
numerics: cpu
seed: 7678
patch: {size: [128, 128], level: 0}
sampling: {order: shuffled}
batch: {global_size: 16, dtype: float16, layout: nchw, prefetch: 2, tail: keep}
preprocess: [{normalize: {scale: 255, mean: [0.70, 0.55, 0.70], std: [0.2, 0.2, 0.2]}}]
augment: [{flip: {}}]
"""


class RunConfig(program.Case):
    def write(self, text):
        path = self.folder / "run.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    def refused(self, old, new):
        """stderr for the good config with one change."""
        self.assertIn(old, GOOD)
        return self.expect(2, "config", "check", self.write(GOOD.replace(old, new))).stderr

    def test_unknown_keys_are_named_with_line_and_nearest(self):
        text = self.refused("global_size", "globalsize")
        self.assertIn("run.yaml:6", text)
        self.assertIn("global_size", text)
        self.assertIn("run.yaml:3", self.refused("seed", "sed"))

    def test_wrong_types_and_ranges_are_named_with_line(self):
        self.assertIn("run.yaml:4", self.refused("[128, 128]", "[many, 128]"))
        self.assertIn("run.yaml:6", self.refused("float16", "float8"))
        self.assertIn("run.yaml:6", self.refused("16,", "0,"))
        self.assertIn("run.yaml:7", self.refused("normalize", "normalise"))

    def test_what_no_image_can_mend_is_refused_by_line_and_key_before_one_is_opened(self):
        for old, new, said in (("slide.svs", "''", "run.yaml:1: key 'dataset': an empty path"),
                               ("flip: {}", "rotate90", "run.yaml:8: check ops: key 'augment[0].rotate90': needs a square"),
                               ("[0.2, 0.2, 0.2]", "[0.2, 0.2]", "run.yaml:7: check ops: key 'preprocess[0].normalize': 3")):
            with self.subTest(said=said):
                text = GOOD.replace(old, new).replace("[128, 128]", "[128, 64]")
                self.assertIn(said, self.expect(2, "config", "check", self.write(text)).stderr)
                self.assertIn(said, self.expect(2, "stream", self.write(text)).stderr)
        self.assert_nothing_left()

    def test_wrong_options_of_ops_are_refused_by_line_and_key_before_an_image_is_opened(self):
        for ops, said in (("affine: {degrees: [15, -15]}", "augment[0].affine"), ("affine: {p: 1.5}", "augment[0].affine.p"),
                          ("affine: {scale: [0, 1]}", "augment[0].affine.scale"),
                          ("elastic: {points: 8, amplitude: 100}", "augment[0].elastic"),
                          ("elastic: {points: 4, amplitude: 1}", "augment[0].elastic.points"),
                          ("hed_jitter: {alpha: -0.1}", "augment[0].hed_jitter.alpha"),
                          ("stain_jitter: {p: -1}", "augment[0].stain_jitter.p"),
                          ("color_jitter: {hue: [0.2, -0.2]}", "augment[0].color_jitter"),
                          ("gaussian_noise: {std: [0.5, 0.1]}", "augment[0].gaussian_noise"),
                          ("gaussian_blur: {sigma: [2, 1]}", "augment[0].gaussian_blur"),
                          ("stain_normalize: {profile: vahadane}", "augment[0].stain_normalize.profile")):
            with self.subTest(ops=ops):
                text = self.expect(2, "config", "check", self.write(GOOD.replace("flip: {}", ops))).stderr
                self.assertIn("run.yaml:8", text)
                self.assertIn(said, text)
        split = self.expect(2, "config", "check", self.write(GOOD), "--split", "val").stderr
        self.assertIn("split 'val': the config has no split_column", split)
        self.assert_nothing_left()

    def test_check_and_stream_refuse_alike_what_cannot_be_streamed(self):
        self.expect(0, "synth", "slide", "slide.svs", "--size", "600x500", "--seed", 3)
        for old, new, said in (("size: 16,", "size: 100,", "run.yaml:6: plan stream: key 'batch.global_size': an epoch has 20"),
                               ("[128, 128]", "[16384, 16384]", "make a slot of more than 256.0 GiB"),
                               ("level: 0", "level: 9", "run.yaml:4: plan stream: "),
                               ("[0.70, 0.55, 0.70], std: [0.2, 0.2, 0.2]", "[0.7, 0.5], std: [1]",
                                "run.yaml:7: check ops: key 'preprocess[0].normalize': 2 means")):
            with self.subTest(said=said):
                text = GOOD.replace("tail: keep", "tail: drop").replace(old, new)
                if "16384" in new:
                    text = text.replace("size: 16,", "size: 1000,")
                self.assertNotEqual(text, GOOD)
                checked = self.expect(2, "config", "check", self.write(text)).stderr
                self.assertIn(said, checked)
                self.assertIn(checked.splitlines()[0] + "\n", self.expect(2, "stream", self.write(text)).stderr)
        text = GOOD.replace("[128, 128]", "[16384, 16384]").replace("prefetch: 2", "prefetch: 64").replace("tail: keep", "tail: pad")
        self.assertIn("run.yaml:6: plan stream: key 'batch.prefetch': 67 slots", self.expect(2, "config", "check", self.write(text)).stderr)

    def test_malformed_yaml_is_named_with_line(self):
        self.assertIn("run.yaml:", self.expect(2, "config", "print", self.write("patch: {size: [1")).stderr)

    def test_stream_refuses_the_same_before_it_starts_anything(self):
        path = self.write(GOOD.replace("seed", "sed"))
        self.assertIn("run.yaml:3", self.expect(2, "stream", path).stderr)
        self.assert_nothing_left()

    def test_without_a_file_every_key_is_printed_with_its_default(self):
        text = self.expect(0, "config", "print").stdout
        self.assertIn("\nprefetch: 2\n" if "\nprefetch" in text else "  prefetch: 2\n", text)
        self.assertIn("# required: ", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        self.assertIn("name its file", self.expect(2, "config", "print", "--set", "seed=1").stderr)

    def test_what_is_printed_reads_back_as_the_same(self):
        first = self.expect(0, "config", "print", self.write(GOOD)).stdout
        second = self.expect(0, "config", "print", self.write(first)).stdout
        self.assertEqual(first, second)
        self.assertEqual(self.json("config", "print", self.write(GOOD))["batch"]["global_size"], 16)

    def test_check_counts_what_would_be_streamed(self):
        self.expect(0, "synth", "slide", "slide.svs", "--size", "1000x800", "--seed", 3)
        found = self.json("config", "check", self.write(GOOD))
        self.assertEqual(found["images"], 1)
        self.assertEqual(found["patches"], 8 * 7)
        self.assertEqual(found["batches_per_epoch"], 4)
        self.assertEqual(found["batch_bytes"], 16 * 3 * 128 * 128 * 2)
        self.assertEqual(found["ring_bytes"], found["ring_slots"] * found["batch_bytes"])

    def test_check_names_a_missing_and_a_broken_image(self):
        self.assertIn("slide.svs", self.expect(1, "config", "check", self.write(GOOD)).stderr)
        (self.folder / "slide.svs").write_bytes(b"II*\0" + bytes(100))
        self.assertIn("slide.svs", self.expect(1, "config", "check", self.write(GOOD)).stderr)


if __name__ == "__main__":
    program.main()
