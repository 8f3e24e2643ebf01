"""Masks of volumes lie under their voxels, and patches are centred on what they are to be: streamed and compared."""
import csv
import json
import pathlib
import subprocess

import harness

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"

CONFIG = """
dataset: colon.csv
stores: stores
split_column: fold_0
seed: 7678
numerics: cpu
patch: {{size: [12, 40, 36]}}
labels: {{set: lesions, mask: true, label: {{rule: center}}}}
sampling: {sampling}
batch: {{global_size: 8, dtype: float32, meta: true, tail: pad}}
augment: {augment}
"""

# Arguments: folder of saved batches, table of stores, whether patches are mirrored. Holds mask and label of every
# patch against the store's label image and the image against its voxels, at the patch's box; prints a count of patches,
# of those centred on each class, and of voxels that are ignored.
LOOK = r"""
import collections, json, pathlib, sys
import numpy, zarr
folder, stores, mirrored = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3] == "mirrored"
def array(path):
    return numpy.asarray(zarr.open_group(path, mode="r")["0"])
images = [(array(s), array(f"{s}/labels/{r}")) for s, r in stores]
seen, ignored, centres, wrong = 0, 0, collections.Counter(), []
def cut(volume, box, fill):
    begin, size = numpy.array(box[:3]), numpy.array(box[3:])
    out = numpy.full(size, fill, volume.dtype)
    low, high = numpy.maximum(begin, 0), numpy.minimum(begin + size, volume.shape)
    if (low < high).all():
        out[tuple(map(slice, low - begin, high - begin))] = volume[tuple(map(slice, low, high))]
    return out
for path in sorted(folder.glob("*-image.npy")):
    names = ("image", "mask", "label", "ordinal", "box", "image_index")
    batch = {a: numpy.load(str(path).replace("-image.npy", f"-{a}.npy")) for a in names}
    for image, mask, label, ordinal, box, index in zip(*batch.values()):
        if ordinal < 0:
            if image.any() or (mask != 255).any() or label != 255:
                wrong.append("padding")
            continue
        seen += 1
        voxels, labels = (cut(v, box, f) for v, f in zip(images[index], (-1024, 255)))
        flips = [()] if not mirrored else [(), (1,), (2,), (1, 2)]
        found = [f for f in flips if numpy.array_equal(numpy.flip(voxels, f).astype(numpy.float32), image[0])]
        if not found:
            wrong.append(f"patch {ordinal}: not the voxels of its box")
        elif not any(numpy.array_equal(numpy.flip(labels, f), mask) for f in found):
            wrong.append(f"patch {ordinal}: not the labels of its voxels")
        if label != mask[tuple(n // 2 for n in mask.shape)]:
            wrong.append(f"patch {ordinal}: label {label}")
        ignored += int((mask == 255).sum())
        centres[int(labels[tuple(n // 2 for n in labels.shape)])] += 1
print(json.dumps({"wrong": sorted(set(wrong))[:5], "seen": seen, "ignored": ignored, "centres": centres}))
"""


class VolumeBatches(harness.Case):
    def setUp(self):
        super().setUp()
        if not harness.oracles("numpy", "zarr"):
            self.skipTest("needs NumPy and zarr")

    def cohort(self, patients=3):
        """Stores of phantoms with lesions, their masks imported from the table."""
        rows = []
        for seed in range(patients):
            name = f"p{seed}"
            made = self.command("synth", "ct", self.folder / name, "--size", f"{20 + seed}x96x90", "--seed", 40 + seed,
                                "--lesions", self.folder / f"{name}.nii")
            self.assertEqual(made.returncode, 0, made.stderr)
            made = self.command("ingest", self.folder / name, "--out", self.folder / "stores" / name)
            self.assertEqual(made.returncode, 0, made.stderr)
            store = next(p for p in (self.folder / "stores" / name).iterdir() if (p / "zarr.json").exists())
            rows.append((store.relative_to(self.folder), name, "val" if seed == patients - 1 else "train",
                         f"{name}.nii", "portal", 1))
        with open(self.folder / "colon.csv", "w", newline="", encoding="utf-8") as out:
            csv.writer(out).writerows([("path", "patient_id", "fold_0", "annotation", "phase", "use"), *rows])
        seen = self.json("labels", "import", self.folder / "colon.csv", "--set", "lesions", "--classes",
                         CONFIGS / "classes/lesions.yaml")
        for row in seen["imported"]:
            counts = {one["name"]: one for one in row["classes"]}
            self.assertGreater(counts["tumour"]["voxels"], 50)
            self.assertGreaterEqual(counts["polyp"]["components"], 1)
        return [(row["store"], row["revision"]) for row in seen["imported"]]

    def stream(self, sampling, split, augment="[]", cpus=2):
        run = self.folder / f"run-{len(list(self.folder.glob('run-*.yaml')))}.yaml"
        run.write_text(CONFIG.format(sampling=sampling, augment=augment), encoding="utf-8")
        saved = self.folder / f"saved-{run.stem}"
        result = self.json("stream", run, "--split", split, "--digest", "--gpus", "none", "--cpus", cpus, "--save", saved)
        return result["digest"], saved

    def look(self, saved, stores, mirrored=False):
        done = subprocess.run([harness.PYTHON, "-c", LOOK, str(saved), json.dumps([tuple(map(str, s)) for s in stores]),
                               "mirrored" if mirrored else "as they are"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        seen = json.loads(done.stdout)
        self.assertEqual(seen["wrong"], [])
        return seen

    def test_masks_lie_under_their_voxels_on_grids_and_at_lesions(self):
        stores = self.cohort()
        _, saved = self.stream("{positions: grid, stride: [9, 30, 30], order: sequential}", "val")
        grid = self.look(saved, stores[2:])
        self.assertGreater(grid["ignored"], 0)  # the last patches reach past the volume
        sampling = ("{positions: random, patches_per_epoch: 300, oversample_foreground: 0.5, "
                    "foreground: {by: component, classes: [tumour, polyp]}}")
        digest, saved = self.stream(sampling, "train", "[flip: {}]")
        drawn = self.look(saved, stores[:2], mirrored=True)
        self.assertEqual((drawn["seen"], drawn["ignored"]), (300, 0))
        self.assertEqual({self.stream(sampling, "train", "[flip: {}]", cpus)[0] for cpus in (1, 4)}, {digest})
        _, saved = self.stream("{positions: random, patches_per_epoch: 160, oversample_foreground: 0.5, "
                               "foreground: {profile: nnunet, classes: [polyp]}}", "train")
        forced = self.look(saved, stores[:2])
        self.assertGreaterEqual(forced["centres"].get("2", 0), 40)  # but for centres before the first half patch

    def test_what_the_sets_do_not_have_is_refused(self):
        self.cohort(2)
        def refused(sampling, *texts, set_name="lesions"):
            run = self.folder / "bad.yaml"
            run.write_text(CONFIG.format(sampling=sampling, augment="[]").replace("set: lesions", f"set: {set_name}"),
                           encoding="utf-8")
            result = self.command("stream", run, "--split", "train", "--digest", "--gpus", "none", "--cpus", 1)
            self.assertNotEqual(result.returncode, 0)
            for text in texts:
                self.assertIn(text, result.stderr)
        refused("{positions: random, oversample_foreground: 0.5, foreground: {classes: [tumor]}}", "'tumor'", "not a class")
        refused("{positions: random}", "organs", set_name="organs")
        refused("{oversample_foreground: 0.5}", "bad.yaml", "positions: random")
        refused("{positions: random, patches_per_epoch: 9, tissue: {set: lesions}}", "volumes have no mask of tissue")


if __name__ == "__main__":
    harness.main()
