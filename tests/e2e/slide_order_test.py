"""The slides of a job end one after another: a killed cohort has whole slides to show, not a part of every one."""
import os

import harness


SLIDES = 6
# A worker is given tasks of the next slides while one's last tasks are not ready yet: some 0.1 s of work, three times.
BEGUN = 4


class SlideJobRequest(harness.Case):
    def records_when_first_ends(self, ended, records, *words):
        """How many slides had something committed when the first one ended; the job then runs to its end."""
        slides = [self.slide(f"{i}.svs", seed=i) for i in range(SLIDES)]
        job = self.start(*words, *slides, "--cpus", 1)
        while not ended() and job.poll() is None:
            os.sched_yield()
        begun = records()
        self.done(job)
        return begun

    def test_stores_appear_while_other_slides_have_not_begun(self):
        out = self.folder / "stores"
        begun = self.records_when_first_ends(
            lambda: list(out.glob("*.ome.zarr")), lambda: sum(1 for r in out.glob(".patchbay-ingest/*/records") if list(r.iterdir())),
            "ingest", "--out", out, "--chunk", 256, "--shard", 1024)
        self.assertLessEqual(begun, BEGUN)
        self.assertEqual(len(list(out.glob("*.ome.zarr"))), SLIDES)

    def test_slides_are_measured_while_others_have_not_begun(self):
        out = self.folder / "out"

        def seen():
            return list(out.glob(".patchbay-spectra/*/slides/*.json"))
        begun = self.records_when_first_ends(seen, lambda: len(seen()), "spectra", "--out", out, "--hop", 32)
        self.assertLessEqual(begun, BEGUN)
        self.assertTrue((out / "spectra.json").exists())


if __name__ == "__main__":
    harness.main()
