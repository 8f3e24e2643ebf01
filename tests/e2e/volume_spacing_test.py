"""patch.spacing: patches of volumes brought to millimetres on the way, image and mask, held against SciPy; the config that
configs/colorectal.yaml is, for both splits, any number of workers, and resumed; what a volume cannot give, refused."""
import csv
import json
import pathlib
import subprocess

import harness

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"

CONFIG = """
dataset: {store}
seed: 7678
numerics: cpu
patch: {{size: [12, 20, 24], {patch}}}
labels: {{set: lesions, mask: true}}
sampling: {sampling}
batch: {{global_size: 8, dtype: float32, meta: true, tail: keep}}
"""

# Arguments: folder of saved batches, store, label image, spacing asked for. Every patch and mask by SciPy in double: a
# Gaussian along axes that get coarser, trilinear at the places of the patch's voxels in its box; the nearest class.
LOOK = r"""
import json, pathlib, sys
import numpy as np, zarr
from scipy import ndimage
folder, store, label, asked = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], np.array(json.loads(sys.argv[4]))
group = zarr.open_group(store, mode="r")
volume = np.asarray(group["0"]).astype(float)
labels = np.asarray(zarr.open_group(label, mode="r")["0"])
affine = np.array(group.attrs["patchbay"]["affine_lps"])
step = asked / np.linalg.norm(affine[:3, :3], axis=0)[::-1]
sigma = [np.sqrt((k * k - 1) / (8 * np.log(2))) if k > 1 else 0 for k in step]
pad = 60
whole = np.pad(volume, pad, constant_values=-1024)
whole = ndimage.gaussian_filter(whole, sigma, radius=[int(np.ceil(3 * s)) for s in sigma], mode="nearest")
marked = np.pad(labels, pad, constant_values=255)
worst, seen, wrong, between, centred = 0, 0, 0, 0, 0
for path in sorted(folder.glob("*-image.npy")):
    image, mask, box = (np.load(str(path).replace("-image.npy", f"-{a}.npy")) for a in ("image", "mask", "box"))
    for patch, classes, (z, y, x, *size) in zip(image[:, 0], mask, box):
        assert list(size) == [max(1, int(np.floor(n * s + 0.5))) for n, s in zip(patch.shape, step)], (size, step)
        # The patch's centre is its box's; its voxels are `step` of the level apart.
        at = [b + (n - 1) / 2 + (np.arange(p) - (p - 1) / 2) * s + pad
              for b, n, p, s in zip((z, y, x), size, patch.shape, step)]
        places = np.meshgrid(*at, indexing="ij")
        worst = max(worst, np.abs(ndimage.map_coordinates(whole, places, order=1) - patch).max())
        clear = np.ones(patch.shape, bool)
        for p in places:
            clear &= np.abs(p - np.floor(p) - 0.5) > 1e-3     # the nearest voxel is one
        nearest = ndimage.map_coordinates(marked, places, order=0)
        wrong += int((nearest != classes)[clear].sum())
        between += int((~clear).sum())
        centred += classes[tuple(n // 2 for n in classes.shape)] in (1, 2)
        seen += 1
print(json.dumps({"worst": worst, "wrong": wrong, "between": between, "seen": seen, "centred": centred}))
"""


class VolumeSpacing(harness.Case):
    def phantom(self, name, size, step, pixel, seed=7):
        """A store of a phantom with lesions, and its mask beside it."""
        made = self.command("synth", "ct", self.folder / name, "--size", size, "--seed", seed, "--step", step, "--pixel",
                            pixel, "--lesions", self.folder / f"{name}.nii")
        self.assertEqual(made.returncode, 0, made.stderr)
        made = self.command("ingest", self.folder / name, "--out", self.folder / "stores" / name)
        self.assertEqual(made.returncode, 0, made.stderr)
        return next(p for p in (self.folder / "stores" / name).iterdir() if (p / "zarr.json").exists())

    def with_lesions(self, *phantom):
        store = self.phantom(*phantom)
        self.json("labels", "import", store, f"{phantom[0]}.nii", "--set", "lesions", "--classes",
                  CONFIGS / "classes/lesions.yaml")
        return store

    def stream(self, store, patch, sampling):
        run = self.folder / f"run-{len(list(self.folder.glob('run-*.yaml')))}.yaml"
        run.write_text(CONFIG.format(store=store, patch=patch, sampling=sampling), encoding="utf-8")
        saved = self.folder / f"saved-{run.stem}"
        self.json("stream", run, "--digest", "--gpus", "none", "--cpus", 2, "--save", saved)
        return saved

    def look(self, saved, store, asked):
        label = next(path for path in (store / "labels").iterdir() if (path / "0").exists())
        done = subprocess.run([harness.PYTHON, "-c", LOOK, str(saved), str(store), str(label), json.dumps(asked)],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        seen = json.loads(done.stdout)
        # Places are right to 1e-5 voxels of up to 2400 HU of difference, along three axes; weights are float.
        self.assertLess(seen["worst"], 0.1)
        self.assertEqual(seen["wrong"], 0)
        return seen

    def test_patches_and_masks_have_the_spacing_that_is_asked_for(self):
        if not harness.oracles("numpy", "scipy", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with SciPy and zarr")
        store = self.with_lesions("a", "24x80x72", 2, 0.8)
        grid = "{stride: [12, 15, 24], order: sequential}"
        for asked, more in (([3.1, 1.1, 0.9], ""), ([1, 1.3, 0.8], ", upsample: true")):
            saved = self.stream(store, f"spacing: {asked}{more}", grid)
            self.assertGreater(self.look(saved, store, asked)["seen"], 15)
        run = self.folder / "own.yaml"
        for patch, said in (("spacing: [2.5, 1.1, 0.9]", "2.5 x 1.1 x 0.9 mm (z, y, x)"), ("fill: -1024", "each volume's own")):
            run.write_text(CONFIG.format(store=store, patch=patch, sampling=grid), encoding="utf-8")
            self.assertIn(f"spacing            {said}\n", self.command("config", "check", run).stdout)
        centred = ("{positions: random, patches_per_epoch: 60, oversample_foreground: 0.5, "
                   "foreground: {by: component, classes: [tumour, polyp]}}")
        seen = self.look(self.stream(store, "spacing: [2.5, 1.1, 0.9]", centred), store, [2.5, 1.1, 0.9])
        self.assertGreater(seen["centred"], 15)   # half of the 30; patches that are moved inside do not count
        run = self.folder / "preview.yaml"
        run.write_text(CONFIG.format(store=store, patch="spacing: [2.5, 1.1, 0.9]", sampling=centred)
                       + "augment: [{affine: {p: 1, degrees: [-20, 20]}}]\n", encoding="utf-8")
        drawn = self.command("preview", run, "--out", "sheet.png", "--patches", 2)
        self.assertEqual(drawn.returncode, 0, drawn.stderr)  # masks of patches that are turned and resampled
        # Within the tolerance: the store's own voxels.
        self.assertLess(self.look(self.stream(store, "spacing: [2.05, 0.79, 0.81]", grid), store, [2, 0.8, 0.8])["worst"], 1e-3)

    def test_what_a_volume_cannot_give_is_refused(self):
        store = self.with_lesions("a", "12x48x48", 5, 0.8)
        def refused(patch, *texts):
            run = self.folder / "bad.yaml"
            run.write_text(CONFIG.format(store=store, patch=patch, sampling="{}"), encoding="utf-8")
            result = self.command("stream", run, "--digest", "--gpus", "none", "--cpus", 1)
            self.assertNotEqual(result.returncode, 0)
            for text in texts:
                self.assertIn(text, result.stderr)
        refused("spacing: [1, 1, 1]", "key 'patch.spacing': 1 mm along z is finer than the volume, of 5 mm", "patch.upsample: true")
        refused("spacing: [500, 1, 1]", "key 'patch.spacing'", "not in")
        refused("spacing: [1, 1]", "bad.yaml:5", "patch.spacing")
        refused("spacing: [1, 1, 1], mpp: [1]", "bad.yaml:5", "mpp")

    def test_the_colorectal_config_has_one_digest_for_any_workers_and_resumed(self):
        rows = []
        for seed in range(3):
            store = self.phantom(f"p{seed}", f"{48 + 4 * seed}x84x80", 0.8, 0.9, 40 + seed)
            rows.append((store.relative_to(self.folder), f"p{seed}", "val" if seed == 2 else "train", f"p{seed}.nii", "portal", 1))
        with open(self.folder / "colon.csv", "w", newline="", encoding="utf-8") as out:
            csv.writer(out).writerows([("path", "patient_id", "fold_0", "annotation", "phase", "use"), *rows])
        self.json("labels", "import", self.folder / "colon.csv", "--set", "lesions", "--classes", CONFIGS / "classes/lesions.yaml")
        run = self.folder / "colorectal.yaml"
        run.write_text((CONFIGS / "colorectal.yaml").read_text(encoding="utf-8"), encoding="utf-8")
        # As it is written, one batch; then smaller, so that each split is streamed to its end several times.
        self.assertEqual(self.json("stream", run, "--split", "train", "--batches", 1, "--gpus", "none", "--cpus", 2)["patches"], 16)
        small = ("--set", "patch.size=[48, 48, 48]", "--set", "batch.global_size=2", "--digest", "--gpus", "none")
        for split, more in (("train", ("--set", "sampling.patches_per_epoch=8")), ("val", ())):
            command = ("stream", run, "--split", split, *small, *more)
            whole = self.json(*command, "--cpus", 2, "--save", self.folder / f"{split}-whole")["digest"]
            self.assertEqual({self.json(*command, "--cpus", cpus)["digest"] for cpus in (1, 4)}, {whole}, split)
            first = self.json(*command, "--cpus", 2, "--batches", 1, "--save", self.folder / f"{split}-first")
            left = len(list((self.folder / f"{split}-whole").glob("*-image.npy"))) - 1
            self.json(*command, "--cpus", 1, "--resume", first["resume_token"], "--batches", left, "--save",
                      self.folder / f"{split}-rest")
            def saved(part):
                return {p.name: p.read_bytes() for p in (self.folder / f"{split}-{part}").iterdir() if p.suffix == ".npy"}
            self.assertTrue(saved("first") | saved("rest") == saved("whole"), f"{split}: the resumed run differs")


if __name__ == "__main__":
    harness.main()
