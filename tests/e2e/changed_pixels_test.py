"""Files that change under a running cluster: every batch is of the image that was planned, or the stream ends and
names it. The images are noise, so that their chunks have equal lengths and an index of one fits the other's bytes."""
import json
import math
import os
import pathlib
import random
import shutil
import struct

import harness
from harness import wait_until

HEIGHT, WIDTH, PATCH, BATCH = 512, 640, 64, 8
EPOCH = (HEIGHT // PATCH) * (WIDTH // PATCH) // BATCH  # batches
# A volume of whole chunks, with as many batches an epoch.
VOLUME, VOLUME_PATCH, VOLUME_BATCH = (32, HEIGHT // 2, WIDTH // 2), (16, PATCH // 2, PATCH // 2), 2 * BATCH


def noise_tiff(path, seed):
    """An RGB TIFF of one strip."""
    pixels = random.Random(seed).randbytes(HEIGHT * WIDTH * 3)
    tags = [(256, 3, 1, WIDTH), (257, 3, 1, HEIGHT), (258, 3, 3, 8 + 2 + 12 * 9 + 4), (259, 3, 1, 1), (262, 3, 1, 2),
            (273, 4, 1, 200), (277, 3, 1, 3), (278, 3, 1, HEIGHT), (279, 4, 1, len(pixels))]
    head = struct.pack("<2sHIH", b"II", 42, 8, len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags)
    head += struct.pack("<I3H", 0, 8, 8, 8)
    path.write_bytes(head.ljust(200, b"\0") + pixels)
    return path


def noise_volume(path, seed):
    """A NIfTI volume of int16."""
    harness.nifti(path, (1, 1, 1), (2, 1, 1), lambda z, y, x: 0)
    header = bytearray(path.read_bytes()[:352])
    struct.pack_into("<3h", header, 42, *reversed(VOLUME))
    path.write_bytes(bytes(header) + random.Random(seed).randbytes(2 * math.prod(VOLUME)))
    return path


def overwrite(source, target):
    """Every file's bytes into the file of that name as it lies there: `rsync --inplace`."""
    for file in sorted(path for path in source.rglob("*") if path.is_file()):
        with open(target / file.relative_to(source), "r+b") as out:
            out.write(file.read_bytes())
            out.truncate()


class Changed(harness.Case):
    """Streams of slides or of volumes whose store changes."""
    CONFIG = {"patch": {"size": [PATCH, PATCH], "level": 0},
              "batch": {"global_size": BATCH, "dtype": "uint8", "layout": "nchw", "tail": "keep"}}

    def source(self, name, seed):
        return noise_tiff(self.folder / f"{name}.tiff", seed)

    def stores(self):
        """Stores of two images whose shards are of equal lengths."""
        def make():
            for name, seed in (("x", 1), ("y", 2)):
                result = self.command("ingest", self.source(name, seed), "--out", self.folder / name, "--keep-names",
                                      "--chunk", 64, "--shard", 256)
                self.assertEqual(result.returncode, 0, result.stderr[-4000:])
                self.keep(self.folder / name / f"{name}.ome.zarr")
            stores = self.kept / "x.ome.zarr", self.kept / "y.ome.zarr"
            x, y = ({path.relative_to(store): path.stat().st_size for path in store.glob("0/c/**/*")} for store in stores)
            self.assertEqual(x, y)
            return stores
        return self.once("stores", make)

    def copies(self, foreign=False):
        """Copies of the two, of another writer: without digest and list."""
        out = []
        for store in self.stores():
            copy = self.folder / store.name
            shutil.copytree(store, copy)
            if foreign:
                root = json.loads((copy / "zarr.json").read_text(encoding="utf-8"))
                del root["attributes"]["patchbay"]
                (copy / "zarr.json").write_text(json.dumps(root), encoding="utf-8")
            out.append(copy)
        return out

    def run_of(self, dataset):
        path = self.folder / "run.yaml"
        path.write_text(json.dumps({"dataset": str(dataset), "seed": 1, "sampling": {"order": "sequential"}} | self.CONFIG),
                        encoding="utf-8")
        return path

    def digest(self, dataset, *more):
        return self.json("stream", self.run_of(dataset), "--digest", *more)["digest"]

    def begin(self, dataset, batches=6 * EPOCH, after=EPOCH + 2):
        """A stream that is in its second epoch."""
        saved = self.folder / f"saved-{len(list(self.folder.glob('saved-*')))}"
        trainer = self.start("stream", self.run_of(dataset), "--batches", batches, "--step-ms", 25, "--save", saved, "--json")
        wait_until(lambda: saved.exists() and len(list(saved.glob("*image.npy"))) >= after, f"{after} batches")
        return trainer, saved

    def batches_of(self, dataset):
        """The content of every batch of an epoch."""
        saved = self.folder / "expected"
        shutil.rmtree(saved, ignore_errors=True)
        self.json("stream", self.run_of(dataset), "--save", saved)
        return [path.read_bytes() for path in sorted(saved.glob("*image.npy"))]

    def assert_all_of(self, saved, expected):
        """Every delivered patch comes from the image as it was planned, in every epoch."""
        delivered = [path.read_bytes() for path in sorted(saved.glob("*image.npy"))]
        self.assertEqual(len(expected), EPOCH)
        self.assertGreater(len(delivered), EPOCH)
        wrong = [i for i, batch in enumerate(delivered) if batch != expected[i % EPOCH]]
        self.assertEqual(wrong, [], f"of {len(delivered)}")

    def assert_ended(self, trainer, named, *said):
        self.done(trainer, expect=1)
        text = pathlib.Path(trainer.log).read_text(encoding="utf-8")
        for words in ("changed since it was planned", str(named), *said):
            self.assertIn(words, text)

    def shards_overwritten_then_restored(self, *said):
        good, other = self.stores()
        store, _ = self.copies()
        cluster = self.up(2)
        expected = self.batches_of(store)
        trainer, saved = self.begin(store)
        overwrite(other / "0", store / "0")
        self.assert_ended(trainer, store, *said)
        self.assert_all_of(saved, expected)
        refused = self.command("stream", self.run_of(store))
        self.assertEqual(refused.returncode, 1, "the seals are those of the other image")
        shutil.rmtree(store)
        shutil.copytree(good, store)
        self.assertEqual(self.batches_of(store), expected)
        self.down(cluster)

    def whole_store_overwritten(self):
        _, other = self.stores()
        store, _ = self.copies()
        cluster = self.up(2)
        expected = self.batches_of(store)
        trainer, saved = self.begin(store)
        overwrite(other, store)
        self.assert_ended(trainer, store)
        self.assert_all_of(saved, expected)
        self.assertEqual(self.batches_of(store), self.batches_of(other))
        self.down(cluster)


class ChangedPixels(Changed):
    def test_a_store_that_is_overwritten_ends_its_stream_and_streams_again_when_it_is_restored(self):
        self.shards_overwritten_then_restored("than the store lists")

    def test_a_store_whose_metadata_is_overwritten_as_well_is_another_store(self):
        self.whole_store_overwritten()

    def test_a_store_with_a_digest_streams_on_where_its_bytes_are_the_same(self):
        good, _ = self.stores()
        store, _ = self.copies()
        cluster = self.up(2)
        expected = self.batches_of(store)
        trainer, saved = self.begin(store)
        for path in store.rglob("*"):
            path.chmod(0o700)
        overwrite(good, store)
        self.done(trainer)
        self.assert_all_of(saved, expected)
        self.assertEqual(len(list(saved.glob("*image.npy"))), 6 * EPOCH)
        self.down(cluster)

    def test_another_writers_store_ends_its_streams_and_a_later_one_has_what_was_written(self):
        store, other = self.copies(foreign=True)
        cluster = self.up(2)
        expected, others = self.batches_of(store), self.digest(other)
        before = self.digest(store)
        trainer, saved = self.begin(store)
        overwrite(other / "0", store / "0")
        self.assert_ended(trainer, store)
        self.assert_all_of(saved, expected)
        self.assertNotEqual(before, others)
        self.assertEqual(self.digest(store), others)
        self.kill(self.pids(cluster, "patchbay-worker")[0])
        self.assertEqual([self.digest(store) for _ in range(3)], [others] * 3)
        overwrite(self.stores()[0] / "0", store / "0")  # between streams
        self.assertEqual([self.digest(store) for _ in range(2)], [before] * 2)
        self.down(cluster)

    def test_another_writers_store_whose_chunks_vanish_is_not_background(self):
        store, _ = self.copies(foreign=True)
        cluster = self.up(1)
        expected = self.batches_of(store)
        trainer, saved = self.begin(store, after=EPOCH + 1)
        shutil.rmtree(store / "0/c/0/1")
        self.assert_ended(trainer, store)
        self.assert_all_of(saved, expected)
        self.down(cluster)

    def test_a_time_of_change_alone_ends_a_stream_of_another_writers_store_and_a_resume_goes_on(self):
        store, _ = self.copies(foreign=True)
        cluster = self.up(2)
        expected = self.batches_of(store)
        token = self.json("stream", self.run_of(store), "--batches", 3)["resume_token"]
        trainer, saved = self.begin(store)
        for path in store.rglob("*"):
            path.chmod(0o700)
        self.assert_ended(trainer, store, "permissions, owner or hard links changed")
        self.assert_all_of(saved, expected)
        rest = self.folder / "rest"
        self.json("stream", self.run_of(store), "--resume", token, "--batches", EPOCH + 1, "--save", rest)
        self.assertEqual([path.read_bytes() for path in sorted(rest.glob("*image.npy"))], expected[3:] + expected[:4])
        self.down(cluster)

    def test_a_slide_streams_on_after_a_chmod_and_ends_when_it_is_rewritten_under_its_former_time(self):
        slide = noise_tiff(self.folder / "x.tiff", 1)
        other = noise_tiff(self.folder / "y.tiff", 2).read_bytes()
        cluster = self.up(2)
        expected = self.batches_of(slide)
        trainer, saved = self.begin(slide)
        slide.chmod(0o600)
        seen = len(list(saved.glob("*image.npy")))
        wait_until(lambda: len(list(saved.glob("*image.npy"))) >= seen + EPOCH, "an epoch after the chmod")
        times = os.stat(slide)
        with open(slide, "r+b") as file:
            file.write(other)
        os.utime(slide, ns=(times.st_atime_ns, times.st_mtime_ns))
        self.assert_ended(trainer, slide)
        self.assert_all_of(saved, expected)
        self.assertNotEqual(self.batches_of(slide), expected)
        self.down(cluster)


class ChangedVoxels(Changed):
    CONFIG = {"patch": {"size": VOLUME_PATCH, "level": 0, "fill": -1024},
              "batch": {"global_size": VOLUME_BATCH, "dtype": "float32", "tail": "keep"}}

    def source(self, name, seed):
        return noise_volume(self.folder / f"{name}.nii", seed)

    def test_a_volume_that_is_overwritten_ends_its_stream_and_streams_again_when_it_is_restored(self):
        self.shards_overwritten_then_restored()

    def test_a_volume_whose_metadata_is_overwritten_as_well_is_another_volume(self):
        self.whole_store_overwritten()


if __name__ == "__main__":
    harness.main()
