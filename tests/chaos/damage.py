#!/usr/bin/env python3
"""Damaged slides, stores and volumes by the hundred: each is refused by name, or what is read is what was written.

    PATCHBAY_BIN=BUILD/bin [PATCHBAY_TEST_DATA=DIR] tests/chaos/damage.py [--seed N] [--flips N] [--stores N] [--volumes N]

Needs the Python of the oracles (NumPy, tifffile, imagecodecs, zarr). Every command runs with a limit on time and memory. The
report is one JSON object; exit status 1 when a process died, a command hung, a reason names no file, or pixels are wrong
that another reader refuses."""
import argparse
import collections
import csv
import gzip
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402

CODECS = ("deflate", "lzw", "packbits", "zstd", "jpeg", "jpeg2000")
# Without a checksum damage can be another picture, and other versions of a decoder may make another one of it: libzstd
# 1.4.5 and 1.5 differ by a pixel in 2 of 300 tiles.
OWN_READING = ("jpeg", "jpeg2000", "zstd")
LIMIT = ("timeout", "120", "prlimit", f"--as={24 << 30}")
# Lines of a cluster's log on a worker that did not end by itself.
LOST = re.compile(r"killing worker .*|worker \d+ ended with .*")
DIED = ("signal ", "Segmentation", "terminate called", "AddressSanitizer", "Check failed", "internal error")

WRITE = r"""
import sys, numpy, tifffile
rng = numpy.random.default_rng(1)
y, x = numpy.mgrid[0:512, 0:512]
pixels = numpy.stack([(x // 2 + y // 3 + c * 40 + rng.integers(0, 6, x.shape)) % 256 for c in range(3)], -1).astype("uint8")
for codec in sys.argv[2:]:
    name = {"deflate": "zlib", "jpeg2000": "aperio_jp2000_rgb"}.get(codec, codec)
    tifffile.imwrite(f"{sys.argv[1]}/{codec}.tif", pixels, tile=(128, 128), compression=name, photometric="rgb",
                     resolution=(20000, 20000), resolutionunit="CENTIMETER")
    with tifffile.TiffFile(f"{sys.argv[1]}/{codec}.tif") as tif:
        page = tif.pages[0]
        print(codec, ",".join(map(str, page.dataoffsets)), ",".join(map(str, page.databytecounts)))
"""
READ = r"""
import sys, numpy, tifffile, zarr
whole = tifffile.imread(sys.argv[1])
for row in sys.stdin.read().split("\n"):
    path, store = row.split("\t")
    ours = zarr.open_array(store + "/0", mode="r")[:].squeeze() if store else None
    try:
        pixels = tifffile.imread(path)
        reads = "the same" if numpy.array_equal(pixels, whole) else "another picture"
    except Exception:
        pixels, reads = None, "nothing"
    if ours is None:
        print("refused", reads, sep="\t")
    else:
        ours = numpy.moveaxis(ours, 0, -1)
        same = "equal" if pixels is not None and numpy.array_equal(ours, pixels) else "differs"
        print("whole" if numpy.array_equal(ours, whole) else same, reads, sep="\t")
"""


def flipped(content, rng, places):
    """The bytes with one bit flipped at one of `places` (offset, length)."""
    offset, length = rng.choice(places)
    damaged = bytearray(content)
    damaged[offset + rng.randrange(length)] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def mutated(content, rng):
    """The bytes cut, with bytes overwritten, doubled or swapped: what disks, networks and attackers do."""
    damaged, kind = bytearray(content), rng.randrange(5)
    at = rng.randrange(max(1, min(len(damaged), 4096) if rng.random() < 0.7 else len(damaged)))
    if kind == 0:
        return bytes(damaged[:at])
    if kind == 1:
        damaged[at:at + 1] = rng.randbytes(1)
    elif kind == 2:
        damaged[at:at + 8] = rng.choice([b"\xff" * 8, bytes(8), b"\x7f" + b"\xff" * 7, rng.randbytes(8)])
    elif kind == 3:
        damaged[at:at] = damaged[at:at + rng.randrange(1, 64)]
    else:
        del damaged[at:at + rng.randrange(1, 64)]
    return bytes(damaged)


def same_content(name, before, after):
    """Whether a damaged file still has the same content: spaces between the values of a JSON file are none."""
    if name.name != "zarr.json":
        return before == after
    try:
        return json.loads(before) == json.loads(after)
    except ValueError:
        return False


class Damage(harness.Case):
    def prepare(self, options):
        self.options, self.random = options, random.Random(options.seed)
        self.counts, self.failures = collections.Counter(), []

    def limited(self, *words):
        """A command under the limits; what it may not do is a failure."""
        done = subprocess.run([*LIMIT, str(harness.BIN / "patchbay"), *map(str, words)], cwd=self.folder, text=True,
                              capture_output=True, env=self.environment(), errors="replace", check=False)
        text = done.stderr + done.stdout
        if done.returncode == 124:
            self.failures.append(f"{words}: not done in 120 s")
        elif done.returncode not in (0, 1, 2, 3) or any(word in text for word in DIED):
            self.failures.append(f"{words}: exit {done.returncode}: {text[-400:]}")
        self.counts[f"{words[0]}: {'ended well' if done.returncode == 0 else 'refused'}"] += 1
        return done

    def python(self, program, *words, stdin=""):
        return subprocess.run([harness.PYTHON, "-c", program, *map(str, words)], input=stdin, text=True,
                              capture_output=True, check=True).stdout.splitlines()

    # ---------------------------------------------------------------- tiles

    def flips(self):
        """One flipped bit in the tiles of a TIFF, for every codec, held against tifffile."""
        made = self.folder / "tiff"
        made.mkdir()
        for row in self.python(WRITE, made, *CODECS):
            codec, offsets, counts = row.split(" ")
            places = [(int(o), int(n)) for o, n in zip(offsets.split(","), counts.split(","))]
            self.flips_of(codec, made / f"{codec}.tif", places)

    def flips_of(self, codec, whole, places):
        folder, out = self.folder / f"{codec}-flips", self.folder / f"{codec}-out"
        folder.mkdir()
        content = whole.read_bytes()
        names = [f"{codec}-{i:04}.tif" for i in range(self.options.flips)]
        for name in names:
            (folder / name).write_bytes(flipped(content, self.random, places))
        shutil.copy(whole, folder / "whole.tif")
        done = self.limited("ingest", folder, "--out", out, "--keep-names", "--codec", "lz4", "--chunk", 128, "--shard", 512)
        failed = self.failed(out, f"ingest of {codec}")
        stores = {name: "" if name in failed else self.stored(out, name) for name in [*names, "whole.tif"]}
        if not stores["whole.tif"]:
            self.failures.append(f"{codec}: the whole slide was refused: {done.stderr[-300:]}")
            return
        rows = self.python(READ, whole, stdin="\n".join(f"{folder / name}\t{stores[name]}" for name in names))
        for name, row in zip(names, rows, strict=True):
            ours, reads = row.split("\t")
            self.counts[f"{codec}: {ours}; tifffile reads {reads}"] += 1
            if ours == "differs" and (codec not in OWN_READING or reads == "nothing"):
                self.failures.append(f"{name}: wrong pixels in a store (tifffile reads {reads})")

    def failed(self, out, what):
        """{file name: reason} of an ingest; a reason that names nothing is a failure."""
        if not (out / "failed.csv").exists():
            return {}
        with open(out / "failed.csv", encoding="utf-8") as file:
            rows = list(csv.reader(file))[1:]
        for row in rows:
            if not all(row) or any(word in str(row) for word in DIED):
                self.failures.append(f"{what}: {row}")
        return {pathlib.Path(row[0]).name: row[-1] for row in rows}

    def stored(self, out, name):
        """The path of a slide's store; empty, and a failure, where there is none."""
        found = [store for store in out.glob("*.ome.zarr") if store.name.startswith(name.removesuffix(".tif"))]
        if len(found) != 1:
            self.failures.append(f"{name}: neither a store nor a reason ({found})")
            return ""
        return found[0]

    # ---------------------------------------------------------------- stores

    def stores(self):
        """One file of a store damaged: `verify` always sees it; a stream gives the same bytes or refuses."""
        store = next(self.store([self.slide(size="900x700")]).glob("*.ome.zarr"))
        files = sorted(p.relative_to(store) for p in store.rglob("*") if p.is_file())
        self.cluster = self.up(1)
        expected = self.digest(store.parent)
        for number in range(self.options.stores):
            name = self.random.choice(files)
            folder = self.folder / "damaged"
            shutil.copytree(store, folder / store.name)
            content = (store / name).read_bytes()
            damaged = mutated(content, self.random)
            (folder / store.name / name).write_bytes(damaged)
            if not same_content(name, content, damaged):
                self.judge_store(number, name, folder, expected)
            shutil.rmtree(folder)
        self.down(self.cluster)
        lost = LOST.findall(pathlib.Path(self.cluster.log).read_text(encoding="utf-8"))
        self.counts["workers lost"] = len(lost)
        self.failures += [f"cluster: {line}" for line in lost]

    def judge_store(self, number, name, folder, expected):
        image = next(folder.glob("*.ome.zarr"))
        if number % 4 == 0:
            self.limited("inspect", image)
        verified = self.limited("verify", image)
        if verified.returncode == 0:
            self.counts["verify: content with a damaged file"] += 1
            self.failures.append(f"store {number}: verify is content with {name}")
        elif not any(str(word) in verified.stderr + verified.stdout for word in (image.name, name, name.name + ":")):
            self.failures.append(f"store {number}: verify names no file: {verified.stderr[-300:]}")
        if number % 4 == 1:
            self.limited("spectra", image, "--out", folder / "spectra", "--cluster", self.home / "operator.key")
        digest = self.digest(folder)
        if digest not in (None, expected):
            self.failures.append(f"store {number}: another digest, {name}")

    def digest(self, folder):
        run = self.run_file(folder, patch=64, batch=8)
        done = self.limited("stream", run, "--digest", "--json", "--cluster", self.home / "operator.key")
        if done.returncode != 0 and ".ome.zarr" not in done.stderr and str(folder) not in done.stderr:
            self.failures.append(f"stream names no file: {done.stderr[-300:]}")
        return json.loads(done.stdout)["digest"] if done.returncode == 0 else None

    # ---------------------------------------------------------------- volumes

    def volumes(self):
        """Mutated DICOM and NIfTI files, each a folder or file of its own: one ingest for all, and `inspect`."""
        whole = [harness.DATA / "ct/single/CT_small.dcm", *sorted(harness.DATA.joinpath("nifti").rglob("*.nii*"))]
        whole = [path for path in whole if path.exists() and path.stat().st_size < 2 << 20]
        if not whole:
            self.counts["volumes: skipped, no PATCHBAY_TEST_DATA"] += 1
            return
        folder, out = self.folder / "volumes", self.folder / "volumes-out"
        for number in range(self.options.volumes):
            path = self.random.choice(whole)
            content = path.read_bytes()
            zipped = path.suffix == ".gz" and self.random.random() < 0.7
            damaged = gzip.compress(mutated(gzip.decompress(content), self.random)) if zipped else mutated(content, self.random)
            place = folder / f"v{number:04}" / f"v{number:04}-{path.name}"  # a folder each: slices are one series
            place.parent.mkdir(parents=True)
            place.write_bytes(damaged)
            if number % 4 == 0:
                self.limited("inspect", place)
        done = self.limited("ingest", folder, "--out", out, "--keep-names", "--geometry", "accept")
        failed = self.failed(out, "ingest of volumes")
        self.counts["volumes: refused"] += len(failed)
        verdicts = out / "verdicts.csv"  # there is none where nothing was left out
        rows = csv.DictReader(verdicts.read_text(encoding="utf-8").splitlines()) if verdicts.exists() else ()
        masks = {pathlib.Path(row["source"]).name for row in rows if row["verdict"] == "mask"}
        self.counts["volumes: left out as masks"] += len(masks)
        for path in sorted(folder.rglob("*.nii*")):
            stored = (out / path.name.replace(".nii.gz", ".ome.zarr").replace(".nii", ".ome.zarr")).exists()
            self.counts["volumes: stored"] += stored
            if [stored, path.name in failed, path.name in masks].count(True) != 1:
                self.failures.append(f"{path.name}: not one of a store, a reason and a mask: {done.stderr[-300:]}")

    def report(self):
        print(json.dumps({"seed": self.options.seed} | dict(sorted(self.counts.items())) | {"failures": self.failures}, indent=2))
        return 1 if self.failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="of the damage; default: 1")
    parser.add_argument("--flips", type=int, default=300, help="for each codec; default: 300")
    parser.add_argument("--stores", type=int, default=400, help="damaged stores; default: 400")
    parser.add_argument("--volumes", type=int, default=200, help="damaged volumes; default: 200")
    options = parser.parse_args()
    damage = Damage()
    damage.setUp()
    try:
        damage.prepare(options)
        if options.flips and not harness.oracles("numpy", "tifffile", "imagecodecs", "zarr"):
            damage.counts["flips: skipped, PATCHBAY_PYTHON has no tifffile, imagecodecs or zarr"], options.flips = 1, 0
        for part, count in (("flips", options.flips), ("stores", options.stores), ("volumes", options.volumes)):
            if count:
                getattr(damage, part)()
        return damage.report()
    finally:
        damage.doCleanups()


if __name__ == "__main__":
    sys.exit(main())
