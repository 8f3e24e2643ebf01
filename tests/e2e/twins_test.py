"""The same slide twice, and the same command twice at once: all end well, and nothing is left but the results."""
import os
import re
import shutil
import signal

import harness


class Twins(harness.Case):
    def names(self, out):
        return sorted(p.name for p in out.iterdir())

    def test_copies_of_a_slide_become_one_store_or_one_each_by_name(self):
        slides = self.folder / "slides"
        slides.mkdir()
        slide = self.slide("slides/a.svs")
        shutil.copy(slide, slides / "b.svs")
        os.link(slide, slides / "c.svs")
        (slides / "d.svs").symlink_to(slide)
        row = self.json("ingest", slides, "--out", "one")
        self.assertEqual([s["already_there"] for s in row["stores"]], [False], row)
        self.assertEqual(sorted([row["stores"][0]["source"], *row["stores"][0]["copies"]]),
                         [str(slides / name) for name in ("a.svs", "b.svs", "c.svs")])
        self.assertEqual(len(self.names(self.folder / "one")), 2)
        self.json("ingest", slides, "--out", "each", "--keep-names")
        self.assertEqual(self.names(self.folder / "each"), ["a.ome.zarr", "b.ome.zarr", "c.ome.zarr", "manifest.csv"])
        for store in self.folder.glob("*/*.ome.zarr"):
            self.assertEqual(self.command("verify", store).returncode, 0)

    def both(self, *words):
        """Runs the command twice at the same time."""
        twins = [self.start(*words, "--cpus", 1) for _ in range(2)]
        for twin in twins:
            self.done(twin)

    def test_two_ingests_at_once_end_well(self):
        slides = [self.slide(f"{i}.svs", size="4000x3000", seed=i) for i in range(2)]
        for i in range(3):
            out = self.folder / f"out{i}"
            self.both("ingest", *slides, "--out", out, "--chunk", 256, "--shard", 512)
            self.assertEqual(len(list(out.glob("*.ome.zarr"))), 2)
            self.assertEqual(len(self.names(out)), 3)
            for store in out.glob("*.ome.zarr"):
                self.assertEqual(self.command("verify", store).returncode, 0)

    def test_commands_that_do_the_same_work_at_once_are_runs_of_their_own(self):
        slide, out = self.slide(size="4000x3000"), self.folder / "out"
        runs = lambda: [path.name for path in out.glob(".patchbay-ingest/*/owners/*") if re.fullmatch("[0-9a-f]{16}", path.name)]
        first = self.start("ingest", slide, "--out", out, "--cpus", 1)
        harness.wait_until(runs, "the first run", 30)
        stopped = list(harness.processes(first.pid))
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        second = self.start("ingest", slide, "--out", out, "--cpus", 1)
        harness.wait_until(lambda: len(runs()) == 2, "a second run beside it", 30)
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        self.done(first), self.done(second)
        self.assertEqual(len(self.names(out)), 2)

    def test_two_analyses_at_once_end_well(self):
        slides = [self.slide(f"{i}.svs", size="4000x3000", seed=i) for i in range(2)]
        for i in range(2):
            out = self.folder / f"out{i}"
            self.both("spectra", *slides, "--out", out)
            self.assertTrue((out / "spectra.json").exists())
            self.assertEqual([n for n in self.names(out) if n.startswith(".")], [])

    def test_what_killed_commands_left_goes_with_the_next_one_of_any_sources(self):
        first, second = self.slide("1.svs", size="4600x4000", seed=1), self.slide("2.svs", seed=2)
        out = self.folder / "out"
        killed = self.start("ingest", first, second, "--out", out, "--chunk", 256, "--shard", 512)
        harness.wait_until(lambda: list(out.glob(".patchbay-ingest/*/manifest.json")), "a planned job")
        killed.kill()
        killed.wait()
        self.assertEqual(self.command("ingest", second, "--out", out, "--chunk", 256, "--shard", 512).returncode, 0)
        self.assertEqual(list(out.glob(".patchbay-ingest/*/manifest.json")), [])


if __name__ == "__main__":
    harness.main()
