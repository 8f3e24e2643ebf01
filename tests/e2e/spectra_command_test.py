"""`patchbay spectra` against a cluster that stays: detached, interrupted, without the right to a folder, and with its
own cluster gone."""
import json
import pathlib
import signal

import harness
from harness import wait_until


class SpectraCommand(harness.Case):
    def archive(self, slides=2, size="1200x900"):
        folder = self.folder / "slides"
        folder.mkdir()
        for i in range(slides):
            self.slide(f"slides/{i}.svs", size=size, seed=50 + i)
        return folder

    def document(self, out):
        return json.loads((self.folder / out / "spectra.json").read_text(encoding="utf-8"))

    def test_detached_it_is_a_job_like_others_and_gives_the_same_bytes(self):
        slides = self.archive()
        self.up(2)
        job = self.json("spectra", slides, "--out", self.folder / "detached", "--detach")["job"]
        done = self.command("wait", job)
        self.assertEqual(done.returncode, 0, done.stderr)
        row = self.json("job", job)
        self.assertEqual((row["kind"], row["state"]), ("spectra", "done"))
        # A job's public row names no file.
        self.assertNotIn("slides/", json.dumps(row))
        self.assertEqual(self.command("spectra", slides, "--out", self.folder / "waited").returncode, 0)
        for name in ("spectra.json", "spectra.csv", "histogram.png", "radial.png", "cohort.png"):
            self.assertEqual((self.folder / "detached" / name).read_bytes(),
                             (self.folder / "waited" / name).read_bytes(), name)

    def test_interrupted_the_job_goes_on_and_the_command_says_where(self):
        slides = self.archive(6, "2500x2000")
        self.up(1)
        process = self.start("spectra", slides, "--out", self.folder / "out", "--profile", "nedc")
        staging = self.folder / "out" / ".patchbay-spectra"
        wait_until(lambda: any(staging.glob("*/slides/*.json")), "a slide")
        self.kill(process.pid, signal.SIGINT)
        self.done(process, expect=75)
        self.assertIn("patchbay wait 1", pathlib.Path(process.log).read_text(encoding="utf-8"))
        self.assertEqual(self.command("wait", 1).returncode, 0)
        self.assertEqual(len(self.document("out")["slides"]), 6)

    def test_folders_that_the_key_may_not_use_are_refused_by_name(self):
        slides = self.archive(1)
        inside = self.folder / "inside"
        inside.mkdir()
        self.up(1)
        key = self.folder / "ann.key"
        made = self.command("key", "new", "ann", "--role", "submitter", "--read", inside, "--write", inside)
        self.assertEqual(made.returncode, 0, made.stderr)
        read = self.command("spectra", slides, "--out", inside / "out", "--cluster", key)
        self.assertEqual(read.returncode, 1)
        self.assertIn(str(slides), read.stderr)
        self.assertFalse((inside / "out" / "spectra.json").exists())
        inside_slide = self.slide("inside/a.svs", size="600x500")
        write = self.command("spectra", inside_slide, "--out", self.folder / "elsewhere", "--cluster", key)
        self.assertEqual(write.returncode, 1)
        self.assertIn(str(self.folder / "elsewhere"), write.stderr)
        self.assertFalse((self.folder / "elsewhere").exists())

    def test_a_command_whose_own_cluster_is_gone_ends_and_the_next_goes_on(self):
        slides = self.archive(6, "2500x2000")
        words = ("spectra", slides, "--out", self.folder / "out", "--profile", "nedc", "--cpus", 1)
        process = self.start(*words)
        staging = self.folder / "out" / ".patchbay-spectra"
        wait_until(lambda: any(staging.glob("*/slides/*.json")), "a slide")
        self.kill(self.pids(process, "patchbay-supervisor")[0])
        self.done(process, expect=1)
        self.assertIn("has ended: its supervisor", pathlib.Path(process.log).read_text(encoding="utf-8"))
        wait_until(lambda: not list((self.folder / "tmp").iterdir()), "an empty folder for temporary files", 10)
        report = self.json(*words)
        self.assertEqual(len(report["slides"]), 6)
        self.assertTrue(any(slide["already_there"] for slide in report["slides"]))


if __name__ == "__main__":
    harness.main()
