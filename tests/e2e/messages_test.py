"""The messages of commands that users act on, word for word."""
import json
import pathlib
import re
import shutil
import struct

import harness

COMPRESSION = 259


class Messages(harness.Case):
    def test_an_array_of_a_store_is_refused_with_the_group_to_give(self):
        store = next(self.store([self.slide(size="900x700")]).glob("*.ome.zarr"))
        for words in (["inspect", store / "0"], ["verify", store / "0"],
                      ["config", "check", self.run_file(store / "0")]):
            with self.subTest(words=words):
                result = self.command(*words)
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertIn("a Zarr array, not an OME-Zarr image: give the group above it", result.stderr)

    def test_retry_of_a_job_that_did_well_says_that_there_is_nothing_to_retry(self):
        self.up(1)
        self.store([self.slide(size="900x700")])
        result = self.command("retry", 1)
        self.assertEqual((result.returncode, result.stdout),
                         (0, "job 1: nothing to retry: none of its tasks failed\n"), result.stderr)

    def test_stream_says_how_much_of_the_time_was_spent_waiting(self):
        run = self.run_file(self.slide(size="900x700"))
        result = self.command("stream", run, "--batches", 3)
        self.assertEqual(result.returncode, 0, result.stderr)
        line, = (line for line in result.stdout.splitlines() if line.startswith("stall fraction"))
        said = re.fullmatch(r"stall fraction +([0-9]+\.[0-9]{2}) % \(waiting, from batch 2 on; p99 [0-9]+\.[0-9]{2} ms a batch\)", line)
        self.assertTrue(said, line)
        self.assertLessEqual(float(said[1]), 100)

    def test_a_level_that_the_images_do_not_have_is_refused_with_those_they_have(self):
        large = self.slide("large.svs", size="6000x5000")
        levels = len(self.json("inspect", large)["levels"])
        self.assertGreater(levels, 1)
        refused = self.command("config", "check", self.run_file(large), "--set", "patch.level=9")
        self.assertEqual(refused.returncode, 2)
        self.assertIn(f"key 'patch.level': the image has levels 0 to {levels - 1}, not 9", refused.stderr)
        volume = self.folder / "volume.ome.zarr"
        self.assertEqual(self.command("synth", "volume", volume, "--size", "32x64x64").returncode, 0)
        self.assertEqual(len(self.json("inspect", volume)["levels"]), 1)
        refused = self.command("config", "check", self.run_file(volume), "--set", "patch.level=1")
        self.assertIn("key 'patch.level': the image has level 0 alone, not 1", refused.stderr)

    def test_tiles_of_a_codec_that_is_not_read_are_refused_with_its_name(self):
        slide = self.slide(size="900x700")
        data = bytearray(slide.read_bytes())
        directory = struct.unpack_from("<I", data, 4)[0]
        self.assertEqual(struct.unpack_from("<2sH", data), (b"II", 42))
        entries = struct.unpack_from("<H", data, directory)[0]
        found = [directory + 2 + 12 * i for i in range(entries)
                 if struct.unpack_from("<H", data, directory + 2 + 12 * i)[0] == COMPRESSION]
        for code, name in ((50002, "JPEG XL (50002)"), (34925, "LZMA (34925)"), (64999, "64999")):
            struct.pack_into("<H", data, found[0] + 8, code)
            slide.write_bytes(data)
            result = self.command("ingest", slide, "--out", f"out-{code}")
            self.assertEqual(result.returncode, 3, result.stdout)
            self.assertIn(f"compression {name} is not supported", result.stderr)

    def test_a_damaged_metadata_file_of_a_store_is_named(self):
        store = next(self.store([self.slide(size="900x700")]).glob("*.ome.zarr"))
        whole = {name: (store / name).read_bytes() for name in ("zarr.json", "0/zarr.json")}
        for dataset in (store, store.parent):
            run = self.run_file(dataset)
            for name, data in whole.items():
                with self.subTest(name=name, dataset=dataset):
                    (store / name).write_bytes(b"")
                    said = self.command("stream", run, "--batches", 1).stderr
                    (store / name).write_bytes(data)
                    self.assertRegex(said, rf"(\.zarr|/\.\.\.)/{name}: not JSON: it is empty")
                    self.assertNotIn("json.exception", said)

    def test_what_is_no_result_or_no_lock_is_called_that(self):
        table = self.folder / "a.csv"
        table.write_text("slide,score\n")
        said = self.command("spectra-diff", table, table).stderr
        self.assertIn("a.csv: not a result of `patchbay spectra`: not JSON (line 1, column 1)", said)
        run = self.run_file(self.folder)
        pathlib.Path(run).with_suffix(".lock").write_text("a: 1\n")
        said = self.command("config", "check", run).stderr
        self.assertIn("run.lock: not JSON (line 1, column 1), so no lock of a run", said)

    def test_an_assumed_size_of_pixels_is_called_that(self):
        store = next(self.store([self.slide(size="900x700")]).glob("*.ome.zarr"))
        run = self.run_file(store)
        self.assertNotIn("assumed", self.command("inspect", store).stdout + self.command("config", "check", run).stdout)
        root = json.loads((store / "zarr.json").read_text())
        root["attributes"]["patchbay"]["mpp_assumed"] = 0.5
        (store / "zarr.json").write_text(json.dumps(root))
        self.assertIn("(assumed)", self.command("inspect", store).stdout)
        self.assertRegex(self.command("config", "check", run).stdout, r"resolution .*um/px \(assumed\)")

    def test_numbers_that_cannot_be_meant_are_refused_with_those_that_were(self):
        run = self.run_file(self.slide(size="900x700"))
        def said(*words, code=2):
            done = self.command("config", "check", run, *(word for value in words for word in ("--set", value)))
            self.assertEqual(done.returncode, code, done.stderr)
            return done.stderr
        caffe = "preprocess=[{normalize: {mean: [123.675, 116.28, 103.53], std: [58.4, 57.1, 57.4]%s}}]"
        self.assertIn("key 'preprocess[0].normalize': images of uint8: a mean or std of 123.675 with scale: 255", said(caffe % ""))
        said(caffe % ", scale: 1", code=0)
        self.assertIn("a mean of 0.5 with scale: 1", said("preprocess=[{normalize: {mean: [0.5], std: [0.2], scale: 1}}]"))
        self.assertIn("key 'batch.dtype': uint8 rounds what preprocess[0].normalize makes",
                      said("preprocess=[normalize]", "batch.dtype=uint8"))
        self.assertIn("key 'augment[0].affine': changes nothing: give one of degrees", said("augment=[affine]"))
        self.assertIn("key 'labels.set': nothing reads it", said("labels={set: x}"))
        self.assertIn("patch.mpp: 20 is taken as um per pixel; of a magnification, 20x is about 0.5",
                      said("patch.mpp=[20]", "patch.size=[16, 16]", code=0))
        refused = self.command("ingest", self.slide(size="900x700"), "--out", "out", "--assume-mpp", 500)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--assume-mpp: expected a number in 0.001..50, not '500': the unit is um, not nanometres: 20x is about 0.5", refused.stderr)
        self.assertFalse((self.folder / "out").exists())

    def test_errors_of_the_dataset_name_file_line_and_key(self):
        run = self.run_file("/nope")
        for words in (["config", "check", run], ["stream", run, "--batches", 1]):
            said = self.command(*words)
            self.assertIn(f"{run}:1: key 'dataset': find images: /nope: No such file or directory", said.stderr)

    def refused(self, *words):
        result = self.command(*words)
        self.assertNotEqual(result.returncode, 0, result.stdout)
        return result.stderr

    def test_files_of_other_kinds_are_told_what_to_do(self):
        volume = ": a volume: `patchbay ingest` makes a store of it, which streams"
        for name, head, remedy in (
                ("a.nii", bytes(344) + b"n+1" + bytes(9), volume), ("a.nrrd", b"NRRD0004\n", volume),
                ("a.mhd", b"ObjectType = Image\n", volume), ("b.mha", b"NDims = 3\n", volume),
                ("a.nii.gz", b"\x1f\x8b\x08", ": packed by gzip: a NIfTI volume (.nii.gz) is ingested first"),
                ("a.png", b"\x89PNG\r\n\x1a\n", "png: it ends too early"), ("a.jpg", b"\xff\xd8\xff\xe0", "jpeg: no frame header"),
                ("a.svs", bytes(200), "nor a slide OpenSlide knows\n"),
                ("a.dcm", bytes(128) + b"DICM" + bytes(200), "a CT, MR or PET series is ingested first (`patchbay ingest FOLDER`)")):
            with self.subTest(name=name):
                (self.folder / name).write_bytes(head)
                self.assertIn(remedy, self.refused("stream", self.run_file(name)))
        (self.folder / "d.nhdr").write_bytes(b"NRRD0004\ntype: short\ndimension: 3\nsizes: 2 2 2\nspace: lps\nencoding: raw\nendian: little\ndata file: x.raw\n\n")
        (self.folder / "d.mhd").write_bytes(b"ObjectType = Image\nNDims = 3\nDimSize = 2 2 2\nElementType = MET_SHORT\nElementDataFile = x.raw\n")
        (self.folder / "e.hdr").write_bytes(struct.pack("<i", 348) + bytes(344))
        for name, reason in (("d.nhdr", "the data file that the header names is not beside it"), ("d.mhd", "is not beside it"),
                             ("e.hdr", "one of Analyze 7.5, which does not say which side is left: convert it to NIfTI")):
            with self.subTest(name=name):
                self.assertIn(reason, self.refused("ingest", name, "--out", "volumes"))

    def test_what_was_meant_is_said_with_the_remedy(self):
        slide = self.slide(size="900x700")
        (self.folder / "series").mkdir()
        self.assertIn("series: a folder, not a run config: a RUN.yaml names it as its `dataset`", self.refused("stream", "series"))
        self.assertIn("a folder, not a run config", self.refused("config", "check", self.folder / "series"))
        self.assertIn("; * and ? stand for themselves: name the folder", self.refused("stream", self.run_file("slides/*.svs")))
        (self.folder / "series/x.dcm").write_bytes(b"no image")
        self.assertIn("(skipped: 1 .dcm); volumes and series are ingested first (`patchbay ingest`)",
                      self.refused("stream", self.run_file("series")))
        self.assertIn("(`patchbay ingest` makes a store from a slide or volume)", self.refused("verify", slide))
        run = self.run_file(slide)
        self.assertIn("expected a list of numbers, got '0.5'; write [0.5]",
                      self.refused("config", "check", run, "--set", "patch.mpp=0.5"))
        self.assertIn("(with overrides of sampling.patches_per_epoch; maps are merged)",
                      self.refused("config", "check", run, "--set", "sampling.patches_per_epoch=5"))

    def test_a_store_that_is_there_says_what_differs(self):
        slide = self.slide(size="900x700")
        self.json("ingest", slide, "--out", "stores", "--codec-level", 1)
        said = self.json("ingest", slide, "--out", "stores", "--codec-level", 2, expect=3)
        text = json.dumps(said)
        self.assertIn("was made from this slide with other settings (codec_level was 1, now 2)", text)
        self.assertIn("give another --out, or delete it first: its label sets go with it", text)

    def test_annotations_without_classes_are_told_where_classes_come_from(self):
        (store,) = self.store([self.slide(size="900x700")]).glob("*.ome.zarr")
        ring = [[10, 10], [90, 10], [90, 90], [10, 90], [10, 10]]
        (self.folder / "a.geojson").write_text(json.dumps({
            "type": "Feature", "properties": {"objectType": "annotation", "name": "UT"},
            "geometry": {"type": "Polygon", "coordinates": [ring]}}))
        (self.folder / "c.yaml").write_text("classes: [{value: 1, name: ut}]\n")
        words = ("labels", "import", store, "a.geojson", "--set", "s", "--classes", "c.yaml")
        self.assertIn("'unclassified' are objects without a classification: give them one in QuPath", self.refused(*words))
        self.assertIn("name a store in it", self.refused("labels", "import", "stores", *words[3:]))
        (self.folder / "c.yaml").write_text("classes: [{value: 1, name: ut, aliases: [UT]}]\n")
        self.assertIn("a class needs no alias of its own name", self.refused(*words))

    def test_a_key_file_that_is_not_there_is_named_with_its_flag(self):
        said = self.command("status", "--cluster", "nokey").stderr
        self.assertIn("nokey (--cluster or PATCHBAY_CLUSTER): No such file or directory", said)
        self.assertRegex(self.command("join", "--key", "nokey").stderr, r"join: --key: .*nokey: No such file or directory")

    def test_a_job_that_is_no_stream_is_called_that(self):
        self.up(1)
        run = self.run_file(self.store([self.slide(size="900x700")]))
        said = self.command("stream", run, "--job", 1, "--batches", 1).stderr
        self.assertIn("job 1 is of kind 'ingest', not a stream", said)

    def test_a_limit_on_locked_memory_is_named_where_batches_come_over_rdma_and_nowhere_else(self):
        if not shutil.which("setpriv"):
            self.skipTest("without setpriv root may lock any amount")
        run = self.run_file(self.slide(size="900x700"))
        limited = ["prlimit", f"--memlock={64 << 10}", "setpriv", "--bounding-set", "-ipc_lock", "--inh-caps", "-ipc_lock"]
        said = []
        for policy in ("", "tls", "rdma"):
            self.home.mkdir(exist_ok=True)
            (self.home / "data-policy").write_text(policy, encoding="ascii")
            process = self.start("config", "check", run, prefix=limited)
            self.done(process)
            said.append(pathlib.Path(process.log).read_text(encoding="utf-8"))
        self.assertEqual(said[:2], ["", ""])
        self.assertRegex(said[2], r"data policy rdma: the ring of [0-9.]+ MiB is registered with the device, and this process "
                                  r"may lock 64\.0 KiB: raise that \(ulimit -l, or LimitMEMLOCK=\)")


if __name__ == "__main__":
    harness.main()
