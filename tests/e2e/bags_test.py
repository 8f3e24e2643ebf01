"""Bags of one image: the draw as a second program makes it from its description (runtime/model/draw/README.md), whatever the
ranks, workers and resumes; and bags in a trainer's hands."""
import csv
import subprocess
import textwrap
import unittest

import harness

MODULE = harness.BIN.parent / "python"
SIZES = ("256x256", "900x700", "512x300")  # 16, 165 and 40 patches of 64 x 64
SIZE, SEED = 24, 99

CONFIG = f"""
dataset: cohort.csv
stores: stores
seed: {SEED}
patch: {{size: [64, 64]}}
labels: {{label: {{column: grade}}}}
batch: {{by: image, patches: {SIZE}, dtype: uint8, tail: pad}}
"""

# Bags by Philox, Feistel's network and the rules of the page; prints "ok" and how many patches it compared.
MODEL = r"""
import pathlib, sys
import numpy

def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & 0xFFFFFFFF, (p >> 32) ^ c[3] ^ k[1], p & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c

def permute(seed, epoch, n, i):
    if n <= 1:
        return 0
    bits = max(2, (n - 1).bit_length())
    while True:
        low, high = bits // 2, bits - bits // 2
        left, right = i >> low, i & ((1 << low) - 1)
        for turn in range(8):
            word = philox([0, turn << 20 | 3 << 16 | epoch, right & 0xFFFFFFFF, right >> 32], [seed & 0xFFFFFFFF, seed >> 32])[0]
            left, right = right, (left ^ word) & ((1 << high) - 1)
            low, high = high, low
        i = left << low | right
        if i < n:
            return i

def bag(seed, epoch, columns, patches, size, number, shuffled):
    image = permute(seed, epoch, len(patches), number) if shuffled else number
    mixed = seed ^ (0x9E3779B97F4A7C15 * (image + 1) & 0xFFFFFFFFFFFFFFFF)
    for j in range(size):
        cell = permute(mixed, epoch, patches[image], j) if j < patches[image] else None
        yield image, cell, None if cell is None else (cell // columns[image] * 64, cell % columns[image] * 64)

folder, seed, size, per_batch, order = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:5]), sys.argv[5]
columns, patches, grades = [4, 15, 8], [16, 165, 40], [2, 0, 5]
wrong, seen, bags = [], 0, set()
for path in sorted(folder.glob("*-ordinal.npy")):
    parts = path.name.split("-")
    epoch, batch, rank = int(parts[1]), int(parts[3]), int(parts[5]) if parts[4] == "rank" else 0
    arrays = {a: numpy.load(str(path).replace("-ordinal.npy", f"-{a}.npy")) for a in ("image", "label", "ordinal", "image_index", "box")}
    if len(arrays["image"]) % size:
        wrong.append(f"{path.name}: a part of {len(arrays['image'])} patches")
    for k in range(len(arrays["image"]) // size):
        number = batch * per_batch + rank + k
        one = {a: v[k * size:(k + 1) * size] for a, v in arrays.items()}
        if number >= len(patches):
            if (one["ordinal"] != -1).any():
                wrong.append(f"{path.name}: not padding")
            continue
        bags.add((epoch, number))
        for j, (image, cell, place) in enumerate(bag(seed, epoch, columns, patches, size, number, order == "shuffled")):
            found = {a: v[j] for a, v in one.items()}
            if cell is None:
                if found["ordinal"] != -1 or found["image_index"] != -1 or found["image"].any() or found["label"] != 255 or found["box"].any():
                    wrong.append(f"{path.name}: patch {j} is not padding")
                continue
            seen += 1
            if found["ordinal"] != number * size + j or found["image_index"] != image or found["label"] != grades[image]:
                wrong.append(f"{path.name}: patch {j} is not of image {image}")
            elif tuple(found["box"][1:3]) != place:
                wrong.append(f"{path.name}: patch {j} lies at {found['box'][1:3]}, not {place}")
print("; ".join(wrong[:5]) or f"ok {len(bags)} {seen}")
"""


class Bags(harness.Case):
    def setUp(self):
        super().setUp()
        stores, rows = self.once("stores", self.make)
        (self.folder / "stores").symlink_to(stores)
        with open(self.folder / "cohort.csv", "w", newline="", encoding="utf-8") as table:
            writer = csv.DictWriter(table, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        self.config()

    def make(self):
        slides = [self.slide(f"s{i}.svs", size, i) for i, size in enumerate(SIZES)]
        stores = self.store(slides)
        self.json("scan", *slides, "--out", "all.csv", "--hash")
        with open(self.folder / "all.csv", newline="", encoding="utf-8") as table:
            rows = list(csv.DictReader(table))
        for row, grade in zip(rows, (2, 0, 5)):
            row["grade"] = grade
        return self.keep(stores), rows

    def config(self, more=""):
        (self.folder / "run.yaml").write_text(CONFIG + more)

    def model(self, folder, per_batch=1, order="shuffled"):
        done = subprocess.run([harness.PYTHON, "-c", MODEL, str(self.folder / folder), str(SEED), str(SIZE), str(per_batch), order],
                              text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return done.stdout.strip()

    @unittest.skipUnless(harness.oracles("numpy"), "the oracles' Python lacks numpy")
    def test_bags_are_those_of_the_description(self):
        whole = self.json("stream", "run.yaml", "--batches", 9, "--save", "one", "--digest", "--cpus", 2)
        self.assertEqual(self.model("one"), f"ok 9 {3 * (16 + 24 + 24)}")
        self.assertEqual(sorted(whole["counts"]["slides"].values()), [48, 72, 72], "padding is counted as nothing")
        checked = self.json("config", "check", "run.yaml")
        self.assertEqual([checked[key] for key in ("bags", "bag_patches", "short_bags", "images_without_bag")], [3, SIZE, 1, 0])
        self.assertIn("bags per epoch     3 of 24 patches (1 short, so padded)", self.command("config", "check", "run.yaml").stdout)
        self.config("sampling: {order: sequential}\n")
        self.json("stream", "run.yaml", "--epoch", 4, "--save", "in-order")
        self.assertEqual(self.model("in-order", order="sequential"), f"ok 3 {16 + 24 + 24}")

    @unittest.skipUnless(harness.oracles("numpy"), "the oracles' Python lacks numpy")
    def test_ranks_workers_and_resumes_change_nothing(self):
        cluster = self.up(2)
        words = ["stream", "run.yaml", "--world-size", 2, "--name", "both", "--batches", 4, "--save", "both", "--json"]
        for process in [self.start(*words, "--rank", rank) for rank in range(2)]:
            self.done(process)
        self.assertEqual(self.model("both", per_batch=2), f"ok 6 {2 * (16 + 24 + 24)}")
        first = self.json("stream", "run.yaml", "--batches", 2, "--save", "parts", "--name", "first")
        self.json("stream", "run.yaml", "--batches", 4, "--save", "parts", "--force", "--resume", first["resume_token"])
        self.assertEqual(self.model("parts"), f"ok 6 {2 * (16 + 24 + 24)}")
        self.json("stream", "run.yaml", "--save", "wide", "--set", "batch.global_size=48", "--name", "wide")
        self.assertEqual(self.model("wide", per_batch=2), f"ok 3 {16 + 24 + 24}")
        self.config("")
        (self.folder / "run.yaml").write_text(CONFIG.replace("tail: pad", "tail: keep"))
        refused = self.command("stream", "run.yaml", "--world-size", 2, "--rank", 0, "--name", "keep")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("key 'batch.tail': 1 bag in the last batch, for 2 ranks: choose drop, pad or wrap", refused.stderr)
        self.down(cluster)

    def test_trainers_get_bags(self):
        if not list(MODULE.glob("patchbay/_extension*.so")):
            self.skipTest("the Python module was not built (no headers of Python, or no nanobind)")
        done = self.program("""
            import patchbay
            with patchbay.attach("run.yaml", cpus=1) as stream:
                assert len(stream) == 3
                shapes, real, labels = [], [], set()
                for batch in stream:
                    shapes.append(tuple(batch["image"].shape))
                    real.append(batch.real_count)
                    ordinals = memoryview(batch["ordinal"]).tolist()
                    labels.add(tuple(memoryview(batch["label"]).tolist()[:batch.real_count]))
                    assert [o >= 0 for o in ordinals] == [k < batch.real_count for k in range(24)], ordinals
                    image = set(memoryview(batch["image_index"]).tolist()) - {-1}
                    assert len(image) == 1, image
            assert shapes == [(24, 3, 64, 64)] * 3 and sorted(real) == [16, 24, 24], (shapes, real)
            assert labels == {(2,) * 16, (0,) * 24, (5,) * 24}, labels
            try:
                import torch
            except ImportError:
                raise SystemExit
            from patchbay.torch import IterableDataset, loader
            dataset = IterableDataset("run.yaml", cpus=1, overrides={"batch.global_size": 48})
            for batch in loader(dataset):
                bags = batch["image"].view(-1, 24, 3, 64, 64)
                used = batch["ordinal"].view(-1, 24) >= 0
                assert bags.shape[0] == 2 and used.shape == (2, 24), bags.shape
            dataset.close()
        """)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])

    def program(self, text):
        return subprocess.run([harness.PYTHON, "-c", textwrap.dedent(text)], cwd=self.folder, text=True, capture_output=True,
                              check=False, env=self.environment(PYTHONPATH=str(MODULE)))


if __name__ == "__main__":
    unittest.main()
