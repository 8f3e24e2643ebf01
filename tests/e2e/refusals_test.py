"""Bad input gets a clear error that names what and where, the right exit code, and leaves nothing half-written."""
import csv
import pathlib

import harness


class Refusals(harness.Case):
    def stores(self, out):
        return sorted(p.name for p in pathlib.Path(out).glob("*.ome.zarr"))

    def hostile(self, *names):
        folder = harness.DATA.joinpath("hostile", *names)
        if not folder.exists():
            self.skipTest(f"{folder} is not here: set PATCHBAY_TEST_DATA")
        return folder

    def test_every_hostile_file_is_read_or_refused_by_name(self):
        out = self.folder / "out"
        result = self.command("ingest", self.hostile("tiff"), self.hostile("svs"), "--out", out, "--keep-names", "--codec",
                              "lz4")
        self.assertEqual(result.returncode, 3, result.stderr[-3000:])
        with open(out / "failed.csv", encoding="utf-8") as file:
            failed = list(csv.DictReader(file))
        slides = [p for kind in ("tiff", "svs") for p in self.hostile(kind).rglob("*")
                  if p.suffix in (".tif", ".tiff", ".svs")]
        self.assertGreater(len(failed), len(slides) // 2)
        self.assertEqual(len(failed) + len(self.stores(out)), len(slides))
        for row in failed:
            self.assertTrue(all(row.values()), row)
            self.assertNotIn("signal", str(row), "a worker died")
        for store in self.stores(out)[:5]:
            self.assertEqual(self.command("verify", out / store).returncode, 0, store)

    def test_truncated_slide_names_the_tile(self):
        slide = self.slide(size="2000x1500")
        cut = self.folder / "cut.svs"
        content = slide.read_bytes()
        cut.write_bytes(content[: len(content) // 2])
        result = self.command("ingest", cut, "--out", self.folder / "out")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("cut.svs", result.stderr + (self.folder / "out/failed.csv").read_text())
        self.assertEqual(self.stores(self.folder / "out"), [])

    def test_full_disk_is_an_error_and_more_room_lets_it_go_on(self):
        slide = self.slide(size="3000x2500", seed=5)
        disk = self.small_disk("8m")
        words = ["ingest", slide, "--out", disk / "out", "--chunk", 256, "--shard", 512, "--codec", "lz4"]
        result = self.command(*words)
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, "No space left|are free")
        self.assertEqual(self.stores(disk / "out"), [])
        self.resize(disk, "200m")
        result = self.command(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        store = disk / "out" / self.stores(disk / "out")[0]
        self.assertEqual(self.command("verify", store).returncode, 0)

    def test_full_disk_leaves_nothing_of_kept_tiles_or_of_a_codec_to_be_chosen(self):
        slide = self.slide(size="3000x2500", seed=5)
        disk = self.small_disk(f"{slide.stat().st_size * 3 // 4 // 1024}k")
        words = ["ingest", slide, "--out", disk / "out", "--shard", 512, "--codec"]
        result = self.command(*words, "auto")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, r"no codec fits into the .* that are free: keep .*, lz4 .*, zstd ")
        self.assertEqual(list(disk.iterdir()), [])
        result = self.command(*words, "keep")
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, "No space left|are free")
        self.assertEqual(self.stores(disk / "out"), [])
        self.resize(disk, "200m")
        result = self.command(*words, "auto")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.command("verify", disk / "out" / self.stores(disk / "out")[0]).returncode, 0)
        self.assertFalse((disk / "out" / ".patchbay-ingest").exists())

    def test_every_hostile_volume_is_refused_by_name_and_verdict(self):
        out = self.folder / "out"
        result = self.command("ingest", self.hostile("dicom"), self.hostile("nifti"), "--out", out)
        self.assertEqual(result.returncode, 3, result.stderr[-3000:])
        self.assertEqual(self.stores(out), [])
        with open(out / "failed.csv", encoding="utf-8") as file:
            failed = {row["source"].removeprefix(str(harness.DATA.resolve())): row["reason"] for row in csv.DictReader(file)}
        series = [reason for source, reason in failed.items() if source.startswith("/hostile/dicom#")]
        self.assertEqual(len(series), 2, failed)
        self.assertTrue(all("read series: not-a-volume: " in reason for reason in series), failed)
        self.assertIn("the file cannot be read", failed["/hostile/dicom/no_meta.dcm"])
        self.assertIn("not a NIfTI file", failed["/hostile/nifti/not-nifti.nii"])
        self.assertEqual(len(failed), 4)
        self.assertIn("skipped: 6 .dcm", result.stdout)
        verdicts = (out / "verdicts.csv").read_text(encoding="utf-8")
        for name in ("emri_small_jpeg_2k_lossless_too_short.dcm frame 0", "MR_truncated.dcm"):
            self.assertIn(name, verdicts)

    def test_truncated_slice_is_named_in_the_verdicts(self):
        made = self.command("synth", "ct", self.folder / "p", "--fault", "truncated", "--size", "8x32x32")
        self.assertEqual(made.returncode, 0, made.stderr)
        out = self.folder / "out"
        result = self.command("ingest", self.folder / "p", "--out", out)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertRegex(result.stderr, r"slice 5 of 8: read dicom pixels: .*; .*verdicts\.csv names the file")
        with open(out / "verdicts.csv", encoding="utf-8", newline="") as file:
            (row,) = csv.DictReader(file)
        sizes = {path.name: path.stat().st_size for path in (self.folder / "p").iterdir()}
        self.assertEqual((row["verdict"], row["files"]), ("not-a-volume", min(sizes, key=sizes.get)))
        self.assertEqual(self.stores(out), [])

    def test_phantom_with_a_fault_that_there_is_not_is_a_mistake_of_the_command_line(self):
        result = self.command("synth", "ct", self.folder / "p", "--fault", "tilted")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, "--fault: expected one of none, missing-slice.*, not 'tilted'\n")
        self.assertFalse((self.folder / "p").exists())

    def test_config_errors_name_file_line_and_key(self):
        run = self.run_file("stores")
        for text, line, words in (("batches: {}", 9, ("batches", "batch")), ("seed: many", 8, ("seed",)),
                                  ("patch: {size: [0, 512]}", 8, ("size",)),
                                  ("batch: {global_size: 0}", 8, ("global_size",)),
                                  ("augment: [{flop: {}}]", 8, ("flop", "flip")),
                                  ("augment: [flip, {affine: {degrees: [15, -15]}}]", 8,
                                   ("augment[1].affine.degrees", "the low bound is above")),
                                  ("augment: [{hed_jitter: {p: 1.5}}]", 8, ("augment[0].hed_jitter.p", "out of range (0..1)")),
                                  ("augment: [{elastic: {amplitude: 20}}]", 8, ("augment[0].elastic", "folds the patch")),
                                  ("preprocess: [{normalize: {scale: 255, mean: [0.5], std: [0.0]}}]", 8, ("std",))):
            key = text.split(":")[0]
            kept = [row for row in run.read_text().splitlines() if not row.startswith(key + ":")]
            bad = self.folder / "bad.yaml"
            bad.write_text("\n".join(kept + [text]) + "\n", encoding="utf-8")
            result = self.command("config", "check", bad)
            self.assertIn(result.returncode, (1, 2), text)
            self.assertIn(f"bad.yaml:{line}: ", result.stderr, text)
            for word in words:
                self.assertIn(word, result.stderr, text)

    def test_dataset_that_is_missing_or_empty_is_named(self):
        (self.folder / "empty").mkdir()
        for dataset in ("nowhere", "empty"):
            result = self.command("stream", self.run_file(dataset), "--batches", 1)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(dataset, result.stderr)

    def test_failed_plan_names_no_path_to_others(self):
        cluster = self.up(1)
        folder = self.folder / "Jane Doe"
        folder.mkdir()
        result = self.command("stream", self.run_file(folder), "--batches", 1)
        self.assertIn("Jane Doe", result.stderr)
        (folder / "broken.svs").write_bytes(b"II*")
        result = self.command("stream", self.run_file(folder), "--batches", 1)
        self.assertEqual(result.returncode, 1)
        self.assertIn("Jane Doe/broken.svs", result.stderr)
        self.assertIn("Jane Doe/broken.svs", self.command("config", "check", self.folder / "run.yaml").stderr)
        seen = "".join(self.command(*words).stdout for words in (("jobs", "--json"), ("job", 1, "--json"),
                                                                 ("job", 2, "--json"), ("logs", 1), ("logs", 2)))
        self.assertIn("store 0", seen)
        self.assertIn("image 0", seen)
        for word in ("Jane", "broken", str(self.folder)):
            self.assertNotIn(word, seen)
        self.down(cluster)

    def test_unreadable_slide_in_a_stream_fails_it_with_the_tile(self):
        slide = self.hostile("svs") / "unreadable.svs"
        result = self.command("stream", self.run_file(slide, patch=64, batch=1), "--batches", 5)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("level 0", result.stderr)

    def test_nothing_is_left_after_commands_of_every_kind(self):
        store = self.store([self.slide(size="1000x800")])
        self.assertEqual(self.command("stream", self.run_file(store), "--batches", 3).returncode, 0)
        self.assertEqual(self.command("stream", self.run_file("nowhere"), "--batches", 3).returncode, 1)
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])
        self.assertFalse([p for p in store.iterdir() if p.name.startswith(".")])


if __name__ == "__main__":
    harness.main()
