"""Several arrays in a batch: what they say of a patch is where its pixels came from, and the digest is the patches'."""
import hashlib
import pathlib
import subprocess
import tempfile

import harness

# Run by the Python of the oracles: rebuilds the images from a grid of patches by their boxes, then
# looks every patch of a random stream up in them. Prints "ok" or what is wrong.
LOOK = r"""
import pathlib, sys
import numpy
grid, other = (pathlib.Path(p) for p in sys.argv[1:3])
tail = sys.argv[3]
def batches(folder):
    names = sorted({p.name.rsplit("-", 1)[0] for p in folder.glob("*-image.npy")})
    for name in names:
        yield {a: numpy.load(folder / f"{name}-{a}.npy") for a in ("image", "ordinal", "image_index", "level", "box")}
wrong, canvas, ordinals = [], {}, []
for batch in batches(grid):
    n = len(batch["image"])
    if [batch[k].dtype.str for k in ("ordinal", "image_index", "level", "box")] != ["<i8", "<i4", "<i4", "<i8"]:
        wrong.append("dtypes")
    if batch["box"].shape != (n, 6) or batch["ordinal"].shape != (n,):
        wrong.append("shapes")
    for i in range(n):
        ordinal = int(batch["ordinal"][i])
        if ordinal < 0:
            if batch["image_index"][i] != -1 or batch["level"][i] != -1 or batch["box"][i].any() or batch["image"][i].any():
                wrong.append("padding")
            continue
        ordinals.append(ordinal)
        z, y, x, depth, height, width = (int(v) for v in batch["box"][i])
        if (z, depth, int(batch["level"][i])) != (0, 1, 0):
            wrong.append(f"depth or level of ordinal {ordinal}")
        image = canvas.setdefault(int(batch["image_index"][i]), numpy.zeros((3, 2048, 2048), numpy.uint8))
        image[:, y:y + height, x:x + width] = batch["image"][i]
if sorted(canvas) != [0, 1]:
    wrong.append(f"images {sorted(canvas)}")
n = max(ordinals) + 1
if sorted(set(ordinals)) != list(range(n)):
    wrong.append("ordinals have gaps")
again = ordinals[n:]
# In sequential order a mark says that an image is complete: nowhere else, and never on padding.
rows = [(int(o), int(i), int(m)) for path in sorted(grid.glob("*-last_of_image.npy"))
        for o, i, m in zip(*(numpy.load(str(path).replace("last_of_image", a)) for a in ("ordinal", "image_index", "last_of_image")))]
of = dict(row[:2] for row in rows if row[0] >= 0)
if any(m != int(o >= 0 and of.get(o + 1) != i) for o, i, m in rows) or sum(m for _, _, m in rows[:n]) != 2:
    wrong.append("marks of the last patches")
if list(other.glob("*-last_of_image.npy")):
    wrong.append("marks where patches of images are mixed")
if tail == "wrap" and (not again or again != list(range(len(again)))):
    wrong.append(f"wrapped ordinals {again}")
if tail == "pad" and again:
    wrong.append("an ordinal twice")
seen = 0
for batch in batches(other):
    for i, patch in enumerate(batch["image"]):
        z, y, x, depth, height, width = (int(v) for v in batch["box"][i])
        expected = canvas[int(batch["image_index"][i])][:, y:y + height, x:x + width]
        seen += 1
        if not numpy.array_equal(expected, patch):
            wrong.append(f"patch {seen} is not what its box says")
print("; ".join(sorted(set(wrong))) or f"ok {seen}")
"""


def patch_digests(folder):
    """The digests of a saved stream's patches, padding left out, by the definition of configs/batches.md."""
    for image in sorted(pathlib.Path(folder).glob("*-image.npy")):
        stem = image.name.removesuffix("-image.npy")
        arrays = []
        for name in ("image", "ordinal", "image_index", "level", "box"):
            content = (image.parent / f"{stem}-{name}.npy").read_bytes()
            start = 10 + int.from_bytes(content[8:10], "little")
            arrays.append(content[start:])
        count = len(arrays[1]) // 8
        for i in range(count):
            if int.from_bytes(arrays[1][8 * i:8 * i + 8], "little", signed=True) < 0:
                continue
            digest = hashlib.sha256()
            for array in arrays:
                size = len(array) // count
                digest.update(array[i * size:(i + 1) * size])
            yield digest.digest()


class Arrays(harness.Case):
    def config(self, name, sampling, tail="keep", batch=16):
        path = self.folder / name
        path.write_text(f"dataset: [{self.folder}/a.svs, {self.folder}/b.svs]\nnumerics: cpu\nseed: 5\n"
                        f"patch: {{size: [96, 96]}}\nsampling: {sampling}\n"
                        f"batch: {{global_size: {batch}, dtype: uint8, meta: true, tail: {tail}}}\n", encoding="utf-8")
        return path

    def save(self, run, *more):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        return self.json("stream", run, "--digest", "--save", folder, *more), folder

    def slides(self):
        self.slide("a.svs", "700x600", 3)
        self.slide("b.svs", "500x400", 4)

    def test_boxes_and_indices_say_where_every_pixel_came_from(self):
        if not harness.oracles("numpy"):
            self.skipTest("needs PATCHBAY_PYTHON with numpy")
        self.slides()
        _, randomly = self.save(self.config("random.yaml", "{positions: random, patches_per_image: 30}"))
        for tail in ("pad", "wrap"):
            _, grid = self.save(self.config(f"{tail}.yaml", "{order: sequential}", tail))
            # The grid's last patches reach past the image: what lies there is fill in both.
            found = subprocess.run([harness.PYTHON, "-c", LOOK, grid, randomly, tail], text=True, capture_output=True)
            self.assertEqual(found.stdout.strip(), "ok 60", found.stderr)

    def test_the_digest_is_that_of_the_patches_for_any_batch_size(self):
        self.slides()
        results = [self.save(self.config(f"{batch}.yaml", "{order: shuffled}", "pad", batch)) for batch in (7, 16)]
        for result, folder in results:
            whole = hashlib.sha256()
            for digest in patch_digests(folder):
                whole.update(digest)
            self.assertEqual(result["digest"], whole.hexdigest())
        self.assertEqual(results[0][0]["digest"], results[1][0]["digest"])

    def test_without_meta_a_batch_is_its_image(self):
        run = self.run_file(self.slide(size="600x500"))
        _, folder = self.save(run, "--batches", 1)
        self.assertEqual([p.name for p in folder.iterdir()], ["epoch-0000-batch-000000-image.npy"])


if __name__ == "__main__":
    harness.main()
