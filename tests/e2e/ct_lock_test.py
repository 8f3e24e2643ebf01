"""`ct_normalize` without numbers goes by the foreground of the training volumes, as a lock has it."""
import csv
import json
import pathlib
import subprocess

import harness

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"

CONFIG = """
dataset: colon.csv
split_column: fold_0
numerics: cpu
patch: {{size: [12, 40, 36]}}
labels: {{set: lesions, mask: true}}
sampling: {{order: sequential}}
batch: {{global_size: 8, dtype: float32, meta: true, tail: pad}}
preprocess:
  - window: {{range: {window}}}
  - ct_normalize:
"""

# Arguments: window, folder of saved batches, then pairs of store and revision that train, then the pair that was
# streamed. Prints the statistics of the foreground and what is wrong with the patches.
LOOK = r"""
import json, pathlib, sys
import numpy, zarr
low, high = json.loads(sys.argv[1])
pairs = json.loads(sys.argv[3])
def array(path): return numpy.asarray(zarr.open_group(path, mode="r")["0"])
def windowed(hu): return numpy.clip((hu.astype(float) - low) / (high - low), 0, 1)
values = []
for store, revision in pairs[:-1]:
    labels = array(f"{store}/labels/{revision}")
    values.append(windowed(array(store)[(labels == 1) | (labels == 2)]))
values = numpy.concatenate(values)
lower, upper = numpy.percentile(values, [0.5, 99.5])
mean, std = values.mean(), values.std()
image, wrong, seen = windowed(array(pairs[-1][0])), [], 0
want = (numpy.clip(image, lower, upper) - mean) / std
for path in sorted(pathlib.Path(sys.argv[2]).glob("*-image.npy")):
    boxes = numpy.load(str(path).replace("-image.npy", "-box.npy"))
    for patch, (z, y, x, d, h, w) in zip(numpy.load(path)[:, 0], boxes):
        part = want[z:z + d, y:y + h, x:x + w]
        if not part.size: continue
        seen += 1
        off = numpy.abs(patch[:part.shape[0], :part.shape[1], :part.shape[2]] - part).max()
        if off > 1e-5: wrong.append(float(off))           # float32 of values up to about 10
print(json.dumps({"lower": lower, "upper": upper, "mean": mean, "std": std, "voxels": len(values), "wrong": wrong[:3], "seen": seen}))
"""


class CtLock(harness.Case):
    def setUp(self):
        super().setUp()
        if not harness.oracles("numpy", "zarr"):
            self.skipTest("needs NumPy and zarr")
        rows = []
        for seed in range(3):
            name = f"p{seed}"
            self.assertEqual(self.command("synth", "ct", name, "--size", f"{16 + seed}x64x60", "--seed", 40 + seed,
                                          "--lesions", f"{name}.nii").returncode, 0)
            self.json("ingest", name, "--out", f"stores/{name}")
            store = next(p for p in (self.folder / "stores" / name).iterdir() if (p / "zarr.json").exists())
            rows.append((store.relative_to(self.folder), name, "val" if seed == 2 else "train", f"{name}.nii"))
        self.rows = rows
        self.table(rows)

    def table(self, rows):
        with open(self.folder / "colon.csv", "w", newline="", encoding="utf-8") as out:
            csv.writer(out).writerows([("path", "patient_id", "fold_0", "annotation"), *rows])

    def labels(self):
        seen = self.json("labels", "import", "colon.csv", "--set", "lesions", "--classes", CONFIGS / "classes/lesions.yaml")
        return [(row["store"], row["revision"]) for row in seen["imported"]]

    def config(self, window="[-150, 250]", more=""):
        (self.folder / "run.yaml").write_text(CONFIG.format(window=window) + more, encoding="utf-8")

    def refused(self, *words):
        result = self.command(*words)
        self.assertNotEqual(result.returncode, 0, result.stdout)
        return result.stderr

    def test_the_locks_numbers_are_those_of_numpy_and_every_split_goes_by_them(self):
        self.config()
        self.assertIn("no label set 'lesions'", self.refused("lock", "run.yaml"))
        self.assertFalse((self.folder / "run.lock").exists())
        pairs = self.labels()
        unlocked = self.refused("stream", "run.yaml", "--split", "val")
        self.assertIn("run.yaml:11: ", unlocked)
        self.assertIn("`patchbay lock`", unlocked)
        self.json("lock", "run.yaml")
        self.json("stream", "run.yaml", "--split", "val", "--save", "saved", "--gpus", "none", "--cpus", 1)
        looked = subprocess.run([harness.PYTHON, "-c", LOOK, "[-150, 250]", self.folder / "saved", json.dumps(pairs)],
                                text=True, capture_output=True, check=False)
        self.assertEqual(looked.returncode, 0, looked.stderr)
        want = json.loads(looked.stdout)
        found = json.loads((self.folder / "run.lock").read_text())["statistics"]["ct_foreground"]
        for name in ("lower", "upper", "mean", "std"):    # sums of doubles in another order
            self.assertAlmostEqual(found[name], want[name], delta=1e-9, msg=name)
        self.assertEqual((found["voxels"], found["window"]), (want["voxels"], [-150, 250]))
        self.assertEqual(want["wrong"], [])
        self.assertGreater(want["seen"], 4)
        # Numbers that were summed for another window are refused; so are some of the four.
        self.config(window="[-200, 250]")
        self.assertIn("for another window", self.refused("stream", "run.yaml", "--split", "val"))
        (self.folder / "some.yaml").write_text(CONFIG.format(window="[0, 1]") + "      lower: 3\n", encoding="utf-8")
        self.assertIn("upper: missing", self.refused("lock", "some.yaml"))
        other = "sampling: {positions: random, patches_per_epoch: 8, oversample_foreground: 0.5, foreground: {classes: [absent]}}"
        (self.folder / "absent.yaml").write_text(
            CONFIG.format(window="[0, 1]").replace("sampling: {order: sequential}", other), encoding="utf-8")
        self.assertIn("no training image has a class 'absent'", self.refused("lock", "absent.yaml"))
        # A corrected mask changes the statistics, and the lock says so.
        self.config()
        (self.folder / "p0.nii").write_bytes((self.folder / "p0.nii").read_bytes()[:352] + b"\0" * 64 * 60 * 16)
        self.labels()
        update = self.json("lock", "run.yaml", "--update")
        self.assertEqual(update["difference"]["statistics"], ["ct_foreground"])


if __name__ == "__main__":
    harness.main()
