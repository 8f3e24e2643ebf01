"""A slide or store that changed after it was planned is not streamed: a worker that opens it refuses, and the stream
says which image it was."""
import os
import pathlib
import shutil

import harness
from harness import wait_until


class ChangedImages(harness.Case):
    def fails_after(self, dataset, change, named):
        """Streams `dataset` slowly, changes it in the middle, makes a new worker open it; the stream's stderr."""
        cluster = self.up(1)
        saved = self.folder / "saved"
        trainer = self.start("stream", self.run_file(dataset), "--batches", 2000, "--step-ms", 20, "--save", saved, "--force")
        wait_until(lambda: saved.exists() and len(list(saved.iterdir())) >= 3, "3 batches")
        change()
        self.kill(self.pids(cluster, "patchbay-worker")[0])
        self.done(trainer, expect=1)
        text = pathlib.Path(trainer.log).read_text(encoding="utf-8")
        self.assertIn("changed since it was planned", text)
        self.assertIn(str(named), text)
        jobs = self.command("jobs", "--json").stdout + self.command("job", 1, "--json").stdout
        self.assertNotIn(str(named), jobs)
        self.down(cluster)

    def test_slide_that_was_touched(self):
        slide = self.slide()
        self.fails_after(slide, lambda: os.utime(slide), slide)

    def test_slide_that_was_replaced_by_one_of_equal_size(self):
        slide = self.slide()
        other = self.folder / "other"
        content = bytearray(slide.read_bytes())
        content[-1] ^= 1
        other.write_bytes(content)
        self.fails_after(slide, lambda: os.rename(other, slide), slide)

    def test_store_that_was_swapped_for_another(self):
        stores = self.store([self.slide()])
        others = self.store([self.slide("b.svs", seed=2)], "others")
        (store,), (other,) = stores.glob("*.ome.zarr"), others.glob("*.ome.zarr")

        def swap():
            os.rename(store, self.folder / "aside")
            shutil.move(other, store)
        self.fails_after(stores, swap, store)


if __name__ == "__main__":
    harness.main()
