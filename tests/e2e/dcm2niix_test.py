"""Series beside dcm2niix: every kind of series that it reads and `ingest` takes, by itself or under a rule, has its voxels and its affine.
Its volumes were made by dcm2niix_readings.py, with the version that dcm2niix_readings.json has."""
import csv
import json
import pathlib
import shutil
import subprocess

import dcm2niix_readings
import harness

# Series that it reads otherwise: what differs then, and why.
DIFFER = {"inverted": ("voxels", "it does not invert MONOCHROME1"),
          "scout": ("shape", "it keeps a localiser on the grid of the others"),
          "in-a-file": ("2 stores, 1 volumes", "it puts the frames of an enhanced file over time into one stack"),
          "pet-frames": ("voxels", "it takes no real-world values"),
          "gap": ("affine", "its step is that of the first two slices"),
          "variable": ("affine", "its step is that of the first two slices")}

# Standard input: {name: [stores, volumes of dcm2niix, folder of what is written]}. Prints {name: what differs}. Volumes of NIfTI are turned to
# axes that run to superior, posterior and left, as stores have them; each store is one of the volumes.
LOOK = r"""
import base64, hashlib, json, sys
import numpy, zarr

def turned(voxels, affine):
    # Axes z, y, x of the file, and columns of its affine for x, y, z: to LPS.
    lps = numpy.diag([-1.0, -1.0, 1.0]) @ numpy.array(affine)
    steps, origin = lps[:, :3], lps[:, 3]
    order = [int(abs(steps[axis]).argmax()) for axis in range(3)]  # the file's axis along left, posterior, superior
    assert sorted(order) == [0, 1, 2], order
    voxels = voxels.transpose([2 - order[2], 2 - order[1], 2 - order[0]])
    steps = steps[:, order]
    for axis in range(3):
        if steps[axis, axis] < 0:
            origin = origin + steps[:, axis] * (voxels.shape[2 - axis] - 1)
            steps[:, axis] *= -1
            voxels = numpy.flip(voxels, 2 - axis)
    return voxels, numpy.column_stack([steps, origin])

def differs(found, at, volume):
    shape = volume["shape"]
    voxels, affine = turned(numpy.arange(numpy.prod(shape)).reshape(shape), volume["affine"])
    if voxels.shape != found.shape:
        return f"shape {found.shape}, not {voxels.shape}"
    off = abs(affine - at[:3]).max()
    if off > 2e-4:
        return f"affine by {off} mm"
    if "sha256" in volume:  # its voxels, in the order of the file
        plain = numpy.empty(voxels.size, found.dtype)
        plain[voxels.ravel()] = found.ravel()
        raw = numpy.rint((plain.astype(float) - volume["offset"]) / volume["slope"]).astype("<" + volume["form"])
        return "" if hashlib.sha256(raw.tobytes()).hexdigest() == volume["sha256"] else "voxels"
    raw = numpy.frombuffer(base64.b64decode(volume["voxels"]), "<" + {"B": "u1", "h": "i2", "H": "u2", "f": "f4", "i": "i4"}[volume["form"]])
    off = abs(found - (raw[voxels] * volume["slope"] + volume["offset"])).max()
    return "" if off <= 1e-6 * max(1, abs(found).max()) else f"voxels by {off}"

said = {}
for name, (stores, volumes) in json.load(sys.stdin).items():
    said[name] = "" if len(stores) == len(volumes) else f"{len(stores)} stores, {len(volumes)} volumes"
    for store in stores:
        group = zarr.open_group(store, mode="r")
        found, at = numpy.asarray(group["0"]), numpy.array(group.attrs["patchbay"]["affine_lps"])
        reasons = [differs(found, at, volume) for volume in volumes]
        if "" in reasons:
            del volumes[reasons.index("")]
        else:
            said[name] = said[name] or "; ".join(reasons)
print(json.dumps(said))
"""


class Dcm2niix(harness.Case):
    def environment(self, **more):
        return super().environment(PATCHBAY_SITE=str(self.folder / "site.yaml"), **more)

    def test_stores_are_its_volumes(self):
        if not harness.oracles("numpy", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with NumPy and zarr")
        (self.folder / "site.yaml").write_text("burned_in: true\n", encoding="utf-8")
        readings = json.loads(pathlib.Path(__file__).with_name("dcm2niix_readings.json").read_text(encoding="utf-8"))["series"]
        options = dcm2niix_readings.make(self.folder / "series")
        for name, (folder, files, *more) in dcm2niix_readings.REAL.items():
            if not (harness.DATA / folder).is_dir():
                del readings[name]
                continue
            (self.folder / "series" / name).mkdir()
            for file in (harness.DATA / folder).glob(files):
                shutil.copy(file, self.folder / "series" / name)
            options[name] = tuple(more)
        self.assertEqual(set(options), set(readings))
        asked = {}
        for number, words in enumerate(sorted(set(options.values()))):
            names = [name for name in options if options[name] == words]
            self.json("ingest", *(self.folder / "series" / name for name in names), "--out", f"stores{number}", *words)
            with open(self.folder / f"stores{number}/manifest.csv", newline="", encoding="utf-8") as file:
                rows = [(pathlib.Path(row["source"]).name.split("#")[0], row["store"]) for row in csv.DictReader(file)]
            for name in names:
                asked[name] = [[str(self.folder / f"stores{number}" / store) for series, store in rows if series == name], readings[name]]
        done = subprocess.run([harness.PYTHON, "-c", LOOK], input=json.dumps(asked), text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual({name: text for name, text in said.items() if text and name not in DIFFER}, {})
        for name, (what, reason) in DIFFER.items():
            self.assertTrue(said[name].startswith(what), (name, said[name], reason))
        self.assertGreaterEqual(len(said) - len(DIFFER), 40)


if __name__ == "__main__":
    harness.main()
