"""Label sets, volumes and references that change under a running cluster: batches are of what was planned, or the stream
ends and names what changed."""
import json
import os
import pathlib
import shutil

import harness
from harness import wait_until

CLASSES = "classes: [{name: benign, value: 0}, {name: tumour, value: 1}]\n"


def square(name, left, side=500):
    ring = [[left, 100], [left + side, 100], [left + side, 100 + side], [left, 100 + side], [left, 100]]
    return {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [ring]},
            "properties": {"classification": {"name": name}}}


class ChangedLabels(harness.Case):
    def setUp(self):
        super().setUp()
        kept = self.once("store", lambda: self.keep(self.store([self.slide(size="1301x1111")])))
        shutil.copytree(kept, self.folder / "stores")
        self.dataset = next((self.folder / "stores").glob("*.ome.zarr"))
        (self.folder / "classes.yaml").write_text(CLASSES, encoding="utf-8")
        self.first = self.imported(square("tumour", 100), square("benign", 700))

    def imported(self, *features):
        """The folder of a new revision of the set `u`."""
        drawing = self.folder / "u.geojson"
        drawing.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
        row = self.json("labels", "import", self.dataset, drawing, "--set", "u", "--classes", "classes.yaml")["imported"][0]
        return self.dataset / "labels" / row["revision"]

    def run_of(self, labels="{set: u}", sampling="{positions: random, patches_per_epoch: 64, class_weights: {tumour: 1}}"):
        path = self.folder / "run.yaml"
        path.write_text(f"dataset: {self.dataset}\nseed: 3\npatch: {{size: [64, 64], level: 0}}\nsampling: {sampling}\n"
                        f"labels: {labels}\nbatch: {{global_size: 8, dtype: uint8, meta: true}}\n", encoding="utf-8")
        return path

    def ends_after(self, change, run, *said):
        """Streams slowly, changes something in the middle and ends the worker: another has to open it again."""
        cluster = self.up(1)
        saved = self.folder / "saved"
        trainer = self.start("stream", run, "--batches", 5000, "--step-ms", 20, "--save", saved, "--force")
        wait_until(lambda: saved.exists() and len(list(saved.glob("*image.npy"))) >= 3, "3 batches")
        change()
        self.kill(self.pids(cluster, "patchbay-worker")[0])
        self.done(trainer, expect=1)
        text = pathlib.Path(trainer.log).read_text(encoding="utf-8")
        for words in ("changed since it was planned", str(self.dataset), *said):
            self.assertIn(words, text)
        self.down(cluster)
        shutil.rmtree(saved)

    def prune(self):
        self.imported(square("tumour", 300), square("benign", 900, 300))
        self.assertEqual(self.command("labels", "prune", self.dataset, "--no-lock").returncode, 0)
        self.assertFalse(self.first.exists())

    def test_places_of_a_revision_that_was_pruned_end_the_stream(self):
        self.ends_after(self.prune, self.run_of(), "its label set 'u'", "is gone")

    def test_masks_of_a_revision_that_was_pruned_end_the_stream(self):
        self.ends_after(self.prune, self.run_of("{set: u, mask: true}", "{order: shuffled}"), "its label set 'u'", "is gone")

    def test_an_index_of_another_revision_ends_the_stream_and_is_not_planned(self):
        second = self.imported(square("tumour", 300), square("benign", 900, 300))
        first = self.imported(square("tumour", 100), square("benign", 700))
        self.assertEqual(first, self.first)
        exchange = lambda: (first / "positions.index").write_bytes((second / "positions.index").read_bytes())
        self.ends_after(exchange, self.run_of(), "its label set 'u'", "its positions.index is another file than was written")
        for words, status in ((("config", "check"), 2), (("stream",), 1)):
            refused = self.command(*words, self.run_of())
            self.assertEqual(refused.returncode, status, refused.stderr)
            self.assertIn("'u': its positions.index is another file than was written", refused.stderr)

    def test_shards_of_another_revision_end_the_stream(self):
        second = self.imported(square("tumour", 300), square("benign", 900, 300))
        self.imported(square("tumour", 100), square("benign", 700))

        def exchange():
            for file in sorted(path for path in (second / "0" / "c").rglob("*") if path.is_file()):
                with open(self.first / file.relative_to(second), "r+b") as out:
                    out.write(file.read_bytes())
                    out.truncate()
        cluster = self.up(1)
        run = self.run_of("{set: u, mask: true}", "{order: shuffled}")
        expected = self.folder / "expected"
        self.json("stream", run, "--save", expected)
        saved = self.folder / "saved"
        trainer = self.start("stream", run, "--batches", 5000, "--step-ms", 20, "--save", saved)
        wait_until(lambda: saved.exists() and len(list(saved.glob("*mask.npy"))) >= 3, "3 batches")
        exchange()
        self.kill(self.pids(cluster, "patchbay-worker")[0])
        self.done(trainer, expect=1)
        self.assertIn(str(self.dataset), pathlib.Path(trainer.log).read_text(encoding="utf-8"))
        masks = [path.read_bytes() for path in sorted(expected.glob("*mask.npy"))]
        first_epoch = [path.read_bytes() for path in sorted(saved.glob("*mask.npy"))][:len(masks)]
        self.assertEqual(first_epoch, masks[:len(first_epoch)])
        self.down(cluster)


class ChangedVolumes(harness.Case):
    def test_a_volume_that_is_swapped_for_another_ends_its_stream(self):
        for name, seed in (("a", 1), ("b", 2)):
            self.assertEqual(self.command("synth", "ct", self.folder / name, "--size", "24x96x90", "--seed", seed).returncode, 0)
            self.json("ingest", self.folder / name, "--out", self.folder / "stores" / name)
        store, other = (next((self.folder / "stores" / name).glob("*.ome.zarr")) for name in "ab")
        run = self.folder / "run.yaml"
        run.write_text(f"dataset: {store}\nseed: 1\npatch: {{size: [8, 32, 32], level: 0}}\n"
                       "batch: {global_size: 4, dtype: float32}\npreprocess: [{window: {range: [-160, 240]}}]\n", encoding="utf-8")
        cluster = self.up(1)
        saved = self.folder / "saved"
        trainer = self.start("stream", run, "--batches", 5000, "--step-ms", 20, "--save", saved)
        wait_until(lambda: saved.exists() and len(list(saved.glob("*image.npy"))) >= 3, "3 batches")
        os.rename(store, self.folder / "aside")
        shutil.move(other, store)
        self.kill(self.pids(cluster, "patchbay-worker")[0])
        self.done(trainer, expect=1)
        text = pathlib.Path(trainer.log).read_text(encoding="utf-8")
        self.assertIn("changed since it was planned", text)
        self.assertIn(str(store), text)
        self.down(cluster)


if __name__ == "__main__":
    harness.main()
