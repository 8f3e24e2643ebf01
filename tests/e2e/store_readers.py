"""Lossless stores in other readers, by hand: PATCHBAY_BIN=BUILD/bin python3 tests/e2e/store_readers.py PYTHON...

Each PYTHON has some of: zarr (2 or 3), tensorstore, zarrs, ome-zarr, ngff-zarr. A slide with a label set and a volume are ingested and converted
by every lossless way; each reader that takes the format must find the same pixels on every level. Prints a line for each store and reader."""
import json
import subprocess
import sys

import harness

READ = r"""
import hashlib, json, pathlib, sys
import numpy
image = sys.argv[1]
is_v3 = (pathlib.Path(image) / "zarr.json").exists()
attributes = json.loads((pathlib.Path(image) / ("zarr.json" if is_v3 else ".zattrs")).read_text())
scales = (attributes["attributes"]["ome"] if is_v3 else attributes)["multiscales"][0]
levels = [dataset["path"] for dataset in scales["datasets"]]

def seal(arrays):
    found = []
    for array in arrays:
        array = numpy.ascontiguousarray(numpy.squeeze(numpy.asarray(array)))
        found.append(hashlib.sha256(repr((array.dtype.str, array.shape)).encode() + array.tobytes()).hexdigest()[:12])
    return found

def zarr_python():
    import zarr
    if is_v3 and zarr.__version__.startswith("2"):
        return None
    return zarr.__version__, seal(zarr.open(f"{image}/{level}", mode="r")[:] for level in levels)

def tensorstore():
    import tensorstore as ts
    open_level = lambda level: ts.open({"driver": "zarr3" if is_v3 else "zarr", "kvstore": {"driver": "file", "path": f"{image}/{level}"}}).result()
    return "", seal(open_level(level).read().result() for level in levels)

def zarrs():
    import zarrs, zarr
    if not is_v3:
        return None
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "codec_pipeline.strict": True}):
        return getattr(zarrs, "__version__", ""), seal(zarr.open_array(f"{image}/{level}", mode="r")[:] for level in levels)

def ome_zarr():
    import ome_zarr.io, ome_zarr.reader
    node = next(iter(ome_zarr.reader.Reader(ome_zarr.io.parse_url(image))()))
    return "", seal(level.compute() for level in node.data)

def ngff_zarr():
    import ngff_zarr
    return getattr(ngff_zarr, "__version__", ""), seal(level.data.compute() for level in ngff_zarr.from_ngff_zarr(image).images)

found = {}
for reader in (zarr_python, tensorstore, zarrs, ome_zarr, ngff_zarr):
    try:
        read = reader()
    except ModuleNotFoundError as error:
        continue
    except Exception as error:
        read = "", [f"{type(error).__name__}: {error}"[:300]]
    if read:
        found[f"{reader.__name__.replace('_', '-')} {read[0]}".strip()] = read[1]
print(json.dumps(found))
"""


class Readers(harness.Case):
    def runTest(self):
        pass

    def made(self, *words, out):
        self.json(*words, "--out", self.folder / out)
        (store,) = (self.folder / out).glob("*.ome.zarr")
        return store

    def stores(self):
        """{what it is: (store, its image)}."""
        slide, volume = self.slide(size="1500x1200", seed=4), self.folder / "v.nii"
        harness.nifti(volume, (70, 50, 60), (1, 1, 2), lambda z, y, x: z * y - x)
        found = {}
        for codec in ("zstd", "lz4", "keep"):
            found[f"slide, {codec}"] = self.made("ingest", slide, "--codec", codec, "--tissue", "clam", "--keep-names", out=codec)
        found["volume, zstd"] = self.made("ingest", volume, "--modality", "CT", "--keep-names", out="volume")
        for what, to in (("slide, zstd", "lz4"), ("slide, lz4", "zstd"), ("slide, keep", "zstd"), ("volume, zstd", "lz4"),
                         ("slide, zstd", "ngff-0.4"), ("slide, keep", "ngff-0.4"), ("volume, zstd", "ngff-0.4")):
            found[f"{what} to {to}"] = self.made("convert", found[what], "--to", to, out=f"{what}-{to}")
        del found["slide, keep"]
        images = {what: store / "0" if what.endswith("0.4") else store for what, store in found.items()}
        for what, image in list(images.items()):
            sets = [path for path in (image / "labels").glob("*/") if path.is_dir()]
            images |= {f"{what}, labels": path for path in sets}
        return images


def main():
    readers = Readers()
    readers.setUpClass()
    readers.setUp()
    faults = 0
    try:
        for what, image in readers.stores().items():
            found = {}
            for python in sys.argv[1:]:
                said = subprocess.run([python, "-W", "ignore", "-c", READ, image], check=True, capture_output=True, text=True)
                found |= json.loads(said.stdout)
            usual = max(found.values(), key=list(found.values()).count)
            for reader, seals in found.items():
                faults += seals != usual
                print(f"{what}: {reader}: {f'{len(seals)} levels' if seals == usual else seals}", flush=True)
    finally:
        readers.doCleanups()
        readers.doClassCleanups()
    raise SystemExit(f"{faults} of them read something else" if faults else 0)


if __name__ == "__main__":
    main()
