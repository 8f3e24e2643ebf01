"""`patchbay spectra` and `patchbay spectra-diff`: what they refuse, say and leave behind."""
import csv
import json
import os
import pathlib
import signal
import subprocess

import program


class Refusals(program.Case):
    def refused(self, code, *words):
        done = self.expect(code, *words)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def setUp(self):
        super().setUp()
        self.slide = self.folder / "a.svs"
        self.slide.write_bytes(b"no slide")

    def test_flags_are_checked_before_anything_starts(self):
        base = ["spectra", self.slide, "--out", "out"]
        for words, says in ((["--profile", "nedk"], "--profile"), (["--window", "hamming"], "--window"),
                            (["--prefilter", "gauss"], "--prefilter"), (["--channel", "gray"], "--channel"),
                            (["--frame", "100"], "frame"), (["--frame", "16"], "--frame"),
                            (["--frame", "1024"], "--frame"), (["--hop", "127"], "hop"), (["--hop", "0"], "--hop"),
                            (["--frame", "64", "--hop", "128"], "hop"), (["--strip", "1"], "--strip"),
                            (["--strip", "x"], "--strip"), (["--numerics", "strict"], "--numerics"),
                            (["--prefiltr", "none"], "did you mean '--prefilter'"),
                            (["--tissue-olny"], "did you mean '--tissue-only'")):
            with self.subTest(words=words):
                self.assertIn(says, self.refused(2, *base, *words))
        self.assertIn("--out", self.refused(2, "spectra", self.slide))
        self.assertIn("SOURCE", self.refused(2, "spectra", "--out", "out"))
        self.assertFalse((self.folder / "out").exists())
        self.assertIn("did you mean 'spectra'", self.refused(2, "spectre", self.slide))

    def test_sources_and_folders_are_checked(self):
        self.assertIn("nothing.svs", self.refused(1, "spectra", "nothing.svs", "--out", "out"))
        self.assertIn("not a folder", self.refused(1, "spectra", self.slide, "--out", self.slide))
        self.assertIn("no cluster is running", self.refused(1, "spectra", self.slide, "--out", "out", "--detach"))

    def test_a_diff_of_what_is_no_analysis_names_the_file(self):
        self.assertIn("B.json", self.refused(2, "spectra-diff", "one.json"))
        self.assertIn("none.json", self.refused(1, "spectra-diff", "none.json", "none.json"))
        for name, text in (("empty", ""), ("list", "[]"), ("object", "{}"), ("deep", "[" * 100_000),
                           ("version", '{"version": 2}'), ("huge", '{"version": 1e999}'), ("binary", "\x00\x01")):
            with self.subTest(name=name):
                path = self.folder / f"{name}.json"
                path.write_text(text, encoding="utf-8")
                self.assertIn(f"{name}.json", self.refused(1, "spectra-diff", path, path))


class Analysis(program.Case):
    def setUp(self):
        super().setUp()
        self.slides = self.folder / "slides"
        self.slides.mkdir()
        for i in range(2):
            self.expect(0, "synth", "slide", self.slides / f"{i}.svs", "--size", "900x700", "--seed", 30 + i)

    def analyse(self, *more, out="out", code=0):
        return self.json("spectra", self.slides, "--out", out, "--cpus", 2, *more, code=code)

    def document(self, out="out"):
        return json.loads((self.folder / out / "spectra.json").read_text(encoding="utf-8"))

    def test_the_report_and_the_files_say_the_same(self):
        report = self.analyse()
        document = self.document()
        self.assertEqual(report["definition"], document["definition"])
        self.assertEqual(report["definition"]["profile"], "default")
        self.assertEqual(report["cohort"]["mean_db"], document["cohort"]["mean_db"])
        self.assertEqual({row["id"]: row["std_db"] for row in report["slides"]},
                         {row["id"]: row["std_db"] for row in document["slides"]})
        self.assertEqual(sorted(row["source"] for row in report["slides"]),
                         sorted(str(p) for p in self.slides.iterdir()))
        self.assertEqual(report["pixel_bytes"], 2 * 900 * 700 * 3)
        self.assertGreater(report["bytes_per_s"], 0)
        for plot in report["plots"]:
            self.assertEqual(pathlib.Path(plot).read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(len(report["plots"]), 3)
        with open(self.folder / "out" / "spectra.csv", newline="", encoding="utf-8") as file:
            self.assertEqual([row["id"] for row in csv.DictReader(file)], [s["id"] for s in document["slides"]])
        self.assertEqual(sorted(p.name for p in (self.folder / "out").iterdir()),
                         ["cohort.png", "histogram.png", "manifest.csv", "radial.png", "spectra.csv",
                          "spectra.json"])
        self.assertNotIn("svs", (self.folder / "out" / "spectra.json").read_text(encoding="utf-8"))
        self.assert_nothing_left()

    def test_the_page_names_every_key_and_column(self):
        page = (pathlib.Path(__file__).resolve().parents[2] / "configs" / "spectra.md").read_text(encoding="utf-8")
        bad = self.slides / "bad.svs"
        bad.write_bytes(b"II*\0" + bytes(100))
        (self.slides / "copy.svs").write_bytes((self.slides / "0.svs").read_bytes())
        self.analyse("--profile", "nedc", "--tissue-only", code=3)

        def keys(value):
            if isinstance(value, dict):
                for key, inner in value.items():
                    yield key
                    # The mask's own object tells its origin.
                    yield from () if key == "tissue" else keys(inner)
            elif isinstance(value, list):
                for inner in value:
                    yield from keys(inner)

        document = self.document()
        self.assertTrue(document["failed"] and document["duplicates"])
        for key in sorted(set(keys(document))):
            self.assertRegex(page, f'[`"]{key}[`"]', key)
        for table in ("spectra.csv", "manifest.csv", "failed.csv"):
            heading = (self.folder / "out" / table).read_text(encoding="utf-8").splitlines()[0]
            self.assertIn(f"`{heading}`", page, table)

    def test_the_table_is_for_people(self):
        done = self.expect(0, "spectra", self.slides, "--out", "out", "--cpus", 1)
        for word in ("mean dB", "std dB", "focus dB", "outlier", "all 2", "MB/s of raw pixels", "histogram.png"):
            self.assertIn(word, done.stdout)
        self.assertIn("0.svs", done.stdout)
        self.assertIn("spectra 100 %", done.stderr)

    def test_flags_win_over_their_profile(self):
        self.analyse("--profile", "nedc", out="nedc")
        nedc = self.document("nedc")
        self.assertEqual([nedc["definition"][k] for k in ("profile", "prefilter", "channel", "frame", "hop")],
                         ["nedc", "gauss7", "rgb", 256, 128])
        self.assertEqual(sorted(nedc["cohort"]["channels"]), ["blue", "green", "red"])
        self.analyse("--profile", "nedc", "--channel", "grey", "--frame", 128, out="custom")
        custom = self.document("custom")["definition"]
        self.assertEqual([custom[k] for k in ("profile", "prefilter", "channel", "frame", "hop")],
                         ["custom", "gauss7", "grey", 128, 64])
        refused = self.expect(1, "spectra-diff", "nedc/spectra.json", "custom/spectra.json").stderr
        self.assertIn("channel is rgb in A and grey in B", refused)
        self.assertIn("frame is 256 in A and 128 in B", refused)

    def test_a_bad_slide_fails_alone(self):
        bad = self.slides / "bad, really.svs"
        bad.write_bytes((self.slides / "0.svs").read_bytes()[:3000])
        report = self.analyse(code=3)
        self.assertEqual([row["source"] for row in report["failed"]], [str(bad)])
        self.assertEqual(len(report["slides"]), 2)
        self.assertEqual(len(self.document()["failed"]), 1)
        failed = self.folder / "out" / "failed.csv"
        self.assertEqual(failed.stat().st_mode & 0o777, 0o600)
        with open(failed, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["source"] for row in rows], [str(bad)])
        self.assertTrue(rows[0]["reason"])
        alone = self.json("spectra", bad, "--out", "alone", code=3)
        self.assertEqual((alone["cohort"], alone["slides"], alone["plots"]), (None, [], []))

    def test_results_of_another_command_are_not_touched(self):
        self.analyse()
        before = {p.name: p.read_bytes() for p in (self.folder / "out").iterdir() if p.is_file()}
        said = self.expect(1, "spectra", self.slides, "--out", "out", "--window", "hann").stderr
        self.assertIn(str(self.folder / "out" / "spectra.json"), said)
        after = {p.name: p.read_bytes() for p in (self.folder / "out").iterdir() if p.is_file()}
        self.assertEqual(before, after)

    def test_diff_says_how_far_two_results_agree(self):
        self.analyse()
        self.analyse("--strip", 256, out="again")
        same = self.json("spectra-diff", "out/spectra.json", "again/spectra.json")
        self.assertTrue(same["identical"] and same["within_study"])
        self.assertEqual(same["mean_db"]["difference"], 0)
        self.assertEqual(len(same["slides"]), 2)
        text = self.expect(0, "spectra-diff", "out/spectra.json", "again/spectra.json").stdout
        self.assertIn("the cohorts are identical", text)
        self.assertIn("within the study's 0.5 % of the mean and 1.8 % of the standard deviation", text)

        (self.slides / "1.svs").unlink()
        self.analyse(out="fewer")
        other = self.json("spectra-diff", "out/spectra.json", "fewer/spectra.json", code=1)
        self.assertFalse(other["within_study"])
        self.assertEqual((len(other["slides"]), len(other["only_a"]), len(other["only_b"])), (1, 1, 0))
        self.assertGreater(other["total_variation"], 0)
        self.assertIn("NOT within",
                      self.expect(1, "spectra-diff", "out/spectra.json", "fewer/spectra.json").stdout)

        self.analyse("--window", "hann", out="hann")
        self.assertIn("window is rect in A and hann in B",
                      self.expect(1, "spectra-diff", "fewer/spectra.json", "hann/spectra.json").stderr)
        forced = self.json("spectra-diff", "fewer/spectra.json", "hann/spectra.json", "--force", code=1)
        self.assertEqual(forced["remarks"], ["window is rect in A and hann in B"])

    def test_diff_pairs_a_slide_with_the_store_made_from_it(self):
        self.analyse()
        self.expect(0, "ingest", self.slides, "--out", "stores")
        stores = sorted((self.folder / "stores").glob("*.ome.zarr"))
        self.expect(0, "spectra", *stores, "--out", "of-stores")
        diff = self.json("spectra-diff", "out/spectra.json", "of-stores/spectra.json")
        self.assertEqual((diff["only_a"], diff["only_b"], diff["identical"]), ([], [], True))
        self.assertEqual([s["id"] for s in diff["slides"]], [p.name.split(".")[0] for p in stores])
        self.assertTrue(all(s["id"] != s["id_b"] and s["identical"] for s in diff["slides"]))

    def test_an_interrupt_leaves_only_the_staging_folder_and_the_command_goes_on(self):
        # Slides of one size: after a small one a worker is given several at a time, and these end
        # together.
        large = self.folder / "large"
        large.mkdir()
        for i in range(6):
            self.expect(0, "synth", "slide", large / f"{i}.svs", "--size", "2500x2000", "--seed", i)
        # Many frames: the slides after the first take seconds, so that an interrupt finds them under way.
        words = ["spectra", str(large), "--out", "out", "--profile", "nedc", "--hop", "32", "--cpus", "1"]
        process = subprocess.Popen([str(program.BIN / "patchbay"), *words], cwd=self.folder, env=self.environment(), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        staging = self.folder / "out" / ".patchbay-spectra"
        while not any(staging.glob("*/slides/*.json")) and process.poll() is None:
            os.sched_yield()
        self.assertIsNone(process.poll(), "it ended by itself")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 75, err)
        self.assertEqual(out, "")
        self.assertIn(str(staging), err)
        self.assertEqual([p.name for p in (self.folder / "out").iterdir()], [".patchbay-spectra"])
        # The job was cancelled, not waited for.
        self.assertLessEqual(len(list(staging.glob("*/slides/*.json"))), 3)
        self.assert_nothing_left()
        report = self.json(*words)
        self.assertEqual(len(report["slides"]), 6)
        self.assertTrue(any(row["already_there"] for row in report["slides"]))
        self.assertFalse(staging.exists())


if __name__ == "__main__":
    program.main()
