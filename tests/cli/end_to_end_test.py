"""Without a cluster: a slide goes in, batches come out, nothing is left."""
import csv
import json
import os
import signal
import struct
import subprocess

import program

RUN = """dataset: {dataset}
numerics: cpu
seed: 7678
patch: {{size: [128, 128], level: 0}}
batch: {{global_size: 16, dtype: float16, layout: nchw}}
preprocess: [{{normalize: {{scale: 255, mean: [0.70, 0.55, 0.70], std: [0.2, 0.2, 0.2]}}}}]
augment: [{{flip: {{}}}}]
"""


class Embedded(program.Case):
    def setUp(self):
        super().setUp()
        self.slide = self.folder / "slide.svs"
        self.expect(0, "synth", "slide", self.slide, "--size", "1500x1300", "--seed", 2)

    def run_file(self, dataset):
        path = self.folder / "run.yaml"
        path.write_text(RUN.format(dataset=dataset), encoding="utf-8")
        return path

    def ingest(self, *more):
        return self.json("ingest", self.slide, "--out", "stores", "--chunk", 256, "--shard", 512, "--cpus", 2, *more)

    def test_a_slide_becomes_a_store_and_the_store_batches(self):
        report = self.ingest()
        self.assertEqual(report["failed"], [])
        self.assertEqual(report["source_bytes"], self.slide.stat().st_size)
        store = report["stores"][0]
        self.assertEqual(store["source"], str(self.slide))
        self.assertNotIn("slide", store["name"])
        path = self.folder / "stores" / store["name"]
        seen = self.json("inspect", path)
        self.assertEqual((seen["digest"], seen["pixel_digest"]), (store["digest"], store["pixel_digest"]))
        self.assertEqual(seen["levels"][0]["shape"][-2:], [1300, 1500])
        self.assertTrue(self.json("verify", path)["clean"])

        run = self.run_file("stores/")
        first = self.json("stream", run, "--batches", 20, "--digest", "--cpus", 1)
        again = self.json("stream", run, "--batches", 20, "--digest", "--cpus", 2)
        self.assertEqual(first["digest"], again["digest"])
        self.assertEqual((first["batches"], first["workers"]), (20, 1))
        for key in ("patches", "seconds", "patches_per_s", "bytes_per_s", "stall_fraction"):
            self.assertIn(key, first)
        for process in ("trainer", "worker 0", "agent", "scheduler"):
            self.assertGreater(first["peak_rss_bytes"][process], 0)
        self.assertNotIn("digest", self.json("stream", run, "--batches", 2))
        self.assert_nothing_left()

    def test_tables_of_the_user_are_not_replaced(self):
        out = self.folder / "stores"
        out.mkdir()
        for name in ("manifest.csv", "verdicts.csv", "failed.csv"):
            mine = out / name
            mine.write_text("patient,slide\n1,slide.svs\n")
            said = self.expect(1, "ingest", self.slide, "--out", out).stderr
            self.assertIn(f"{mine}: exists and is not a table of Patchbay's: move it away", said)
            self.assertEqual(mine.read_text(), "patient,slide\n1,slide.svs\n")
            self.assertEqual([path.name for path in out.iterdir()], [name], "refused before work begins")
            mine.unlink()
        (out / "failed.csv").write_text("mine\n")
        self.assertIn("failed.csv: exists", self.expect(1, "spectra", self.slide, "--out", out).stderr)
        (out / "failed.csv").write_text("source,reason\na.svs,an earlier failure\n")
        self.ingest()
        self.assertFalse((out / "failed.csv").exists(), "ours is")
        self.ingest()

    def test_nothing_is_written_into_a_store(self):
        store = self.folder / "stores" / self.ingest()["stores"][0]["name"]
        run = self.run_file("stores/")
        other = self.folder / "other.svs"
        self.expect(0, "synth", "slide", other, "--size", "600x500")
        for inside in (store, store / "0", store / "new"):
            for words in (["ingest", other, "--out", inside], ["spectra", other, "--out", inside],
                          ["stream", run, "--batches", 1, "--save", inside], ["preview", other, "--out", inside / "a.png"],
                          ["scan", other, "--out", inside / "a.csv"], ["synth", "slide", inside / "a.svs", "--force"],
                          ["synth", "ct", inside / "ct"], ["synth", "volume", inside / "a.ome.zarr"],
                          ["labels", "export", store, "--set", "s", "--out", inside / "a.geojson"]):
                with self.subTest(words=words):
                    said = self.expect(1, *words).stderr
                    self.assertIn(f"lies in the store {store}, which other files would damage", said)
        self.assertTrue(self.json("verify", store)["clean"])

    def test_an_address_to_listen_on_that_is_none_is_refused_without_other_nodes_too(self):
        run = self.run_file(self.slide)
        said = self.expect(1, "stream", run, "--batches", 1, "--data-listen", "abc").stderr
        self.assertIn("--data-listen: ", said)
        self.assertIn("abc", said)

    def test_the_second_ingest_finds_the_store_there(self):
        first = self.ingest()
        second = self.ingest()
        self.assertTrue(second["stores"][0]["already_there"])
        self.assertEqual(first["stores"][0]["digest"], second["stores"][0]["digest"])

    def test_auto_chooses_once_and_says_why(self):
        done = self.expect(0, "ingest", self.slide, "--out", "stores", "--codec", "auto", "--epochs", 3, "--json")
        for words in ("--codec auto: 1 source (aperio) of ", "patches, first pass", "ingest and 3 passes", "--codec auto takes "):
            self.assertIn(words, done.stderr)
        report = json.loads(done.stdout)
        choice = report["choice"]
        self.assertEqual([one["codec"] for one in choice["forecasts"]], ["keep", "lz4", "zstd"])
        self.assertEqual(choice["measured"]["sources"], 1)
        stores = self.folder / "stores"
        self.assertEqual(sorted(p.name for p in stores.iterdir()), sorted(["manifest.csv", report["stores"][0]["name"]]))

        self.expect(0, "synth", "slide", "b.svs", "--size", "600x500", "--seed", 11)
        done = self.expect(0, "ingest", "b.svs", "--out", "stores", "--codec", "auto")
        self.assertIn(f"--codec auto takes {choice['codec']}, which the stores in {stores} have", done.stderr)
        self.assertNotIn("first pass", done.stderr)
        plans = [json.loads(p.read_text())["attributes"]["patchbay"]["codec_plan"] for p in stores.glob("*.zarr/zarr.json")]
        self.assertEqual([plan["codec"] for plan in plans], [choice["codec"]] * 2)
        self.assertFalse([plan for plan in plans if "epochs" in plan])

        other = "lz4" if choice["codec"] != "lz4" else "zstd"
        self.expect(0, "synth", "slide", "c.svs", "--size", "600x500", "--seed", 12)
        self.expect(0, "ingest", "c.svs", "--out", "stores", "--codec", other)
        self.assertIn(": name one of them", self.expect(2, "ingest", "b.svs", "--out", "stores", "--codec", "auto").stderr)
        said = self.expect(2, "ingest", "c.svs", "--out", "new", "--epochs", 3).stderr
        self.assertIn("--epochs goes with --codec auto, not zstd", said)
        self.assert_nothing_left()

    def test_a_folder_of_slides_is_searched_and_every_store_knows_its_slide(self):
        slides = self.folder / "slides" / "deep"
        slides.mkdir(parents=True)
        copies = [slides / "b.svs", slides.parent / "a.svs"]
        for i, copy in enumerate(copies):
            self.expect(0, "synth", "slide", copy, "--size", "600x500", "--seed", 10 + i)
        (slides / "notes.txt").write_text("not a slide")
        report = self.json("ingest", "slides", "--out", "stores")
        self.assertEqual(sorted(row["source"] for row in report["stores"]), sorted(map(str, copies)))
        self.assertEqual(report["skipped_files"], {"txt": 1})

    def test_keep_names_names_stores_after_their_files(self):
        self.assertTrue(self.ingest("--keep-names")["stores"][0]["name"].startswith("slide"))

    def test_a_bad_slide_fails_alone(self):
        bad = self.folder / "bad, really.svs"
        bad.write_bytes(self.slide.read_bytes()[:5000])
        report = self.json("ingest", self.slide, bad, "--out", "stores", code=3)
        self.assertEqual([row["source"] for row in report["failed"]], [str(bad)])
        self.assertEqual(len(report["stores"]), 1)
        with open(self.folder / "stores" / "failed.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["source"] for row in rows], [str(bad)])
        self.assertTrue(rows[0]["reason"])
        bad.unlink()
        self.json("ingest", self.slide, "--out", "stores")
        self.assertFalse((self.folder / "stores" / "failed.csv").exists())

    def test_batches_stream_from_the_slide_itself(self):
        result = self.json("stream", self.run_file("slide.svs"), "--epoch", 2, "--batches", 3, "--save", "saved")
        self.assertEqual(result["patches"], 48)
        files = sorted((self.folder / "saved").iterdir())
        self.assertEqual([f.name for f in files], [f"epoch-0002-batch-{i:06}-image.npy" for i in range(3)])
        content = files[0].read_bytes()
        self.assertEqual(content[:8], b"\x93NUMPY\x01\x00")
        header = eval(content[10:10 + struct.unpack("<H", content[8:10])[0]])
        self.assertEqual((header["descr"], header["shape"]), ("<f2", (16, 3, 128, 128)))
        self.assertEqual(len(content) % 64, 0)

    def status_and_jobs_see_it(self):
        """The embedded cluster of a running command, whose key file other commands take."""
        state = self.json("status")
        self.assertEqual((state["nodes"], state["workers"], state["jobs"]), ([], [], []))
        (mine,) = state["embedded"]
        self.assertEqual([job["kind"] for job in mine["jobs"]], ["stream"])
        self.assertEqual(len(mine["nodes"]), 1)
        (jobs,) = self.json("jobs")["embedded"]
        self.assertEqual((jobs["key_file"], jobs["jobs"][0]["state"]), (mine["key_file"], "running"))
        self.assertIn(f"--cluster {mine['key_file']}", self.expect(0, "jobs").stdout)
        named = self.json("jobs", "--cluster", mine["key_file"])
        self.assertEqual((len(named["jobs"]), named["embedded"]), (1, []))

    def test_interrupt_and_kill_leave_no_process_and_no_folder(self):
        run = self.run_file("slide.svs")
        too_many = str(10**9)  # petabytes: --force takes them none the less
        self.assertIn("--force", self.expect(1, "stream", run, "--batches", too_many, "--save", "none").stderr)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=number):
                saved = self.folder / f"saved-{number}"
                process = subprocess.Popen([str(program.BIN / "patchbay"), "stream", str(run), "--batches", too_many,
                                            "--step-ms", "20", "--save", str(saved), "--force",
                                            *["--json"] * (number == signal.SIGTERM)], env=self.environment(),
                                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                           cwd=self.folder)
                while not (saved.exists() and any(saved.iterdir())) and process.poll() is None:
                    os.sched_yield()
                self.assertIsNone(process.poll(), "it ended by itself")
                if number == signal.SIGINT:
                    self.status_and_jobs_see_it()
                process.send_signal(number)
                said = process.stdout.read()  # ends when the last process that holds it has
                self.assertEqual("--resume patchbay-resume-" in said, number != signal.SIGKILL, said)
                self.assertEqual("resume token    patchbay-resume-" in said, number == signal.SIGINT, said)
                self.assertNotEqual(process.wait(), 0)
                process.stdout.close()
                for _ in range(10_000_000):
                    if not any(self.temporary.iterdir()):
                        break
                    os.sched_yield()
                self.assert_nothing_left()
        self.assertIn("no cluster is running", self.expect(1, "status").stderr)


if __name__ == "__main__":
    program.main()
