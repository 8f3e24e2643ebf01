"""Volumes by inner chunk: size of the store, random and aligned 96^3 reads, for 32, 48, 64 and 96.

Run it with the Python of .venv: volume_chunks.py PATCHBAY CT_FOLDER. The volume is the real series of CT_FOLDER, stacked
forwards and backwards to 180 slices or more, as .nii.gz. Reads are TensorStore's, on one thread, from a warm page cache."""
import gzip
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

import numpy
import tensorstore

CHUNKS = (32, 48, 64, 96)
PATCH = 96
READS = 150


def nifti(voxels, spacing=(1, 1, 1)):
    """NIfTI-1 of (z, y, x) voxels, uint8, int16 or float32, `spacing` in mm, RAS axes as the canonical order turns them."""
    z, y, x = spacing
    code = {"uint8": 2, "int16": 4, "float32": 16}[str(voxels.dtype)]
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, 3, *voxels.shape[::-1], 1, 1, 1, 1)
    struct.pack_into("<hh", header, 70, code, 8 * voxels.itemsize)
    struct.pack_into("<8f", header, 76, 1, x, y, z, 1, 1, 1, 1)
    struct.pack_into("<f", header, 108, 352)
    header[123] = 2
    struct.pack_into("<h", header, 254, 1)
    struct.pack_into("<12f", header, 280, -x, 0, 0, 0, 0, -y, 0, 0, 0, 0, z, 0)
    header[344:348] = b"n+1\0"
    return bytes(header) + voxels.tobytes()


def ingest(patchbay, source, out, chunk=32, *more):
    """The path of the one store that is made in the folder `out`."""
    subprocess.run([patchbay, "ingest", str(source), "--out", str(out), "--volume-chunk", str(chunk), *more], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return next(pathlib.Path(out).glob("*.ome.zarr"))


def opened(store):
    context = tensorstore.Context({"data_copy_concurrency": {"limit": 1}, "cache_pool": {"total_bytes_limit": 0}})
    return tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{store}/0"}},
                            context=context, open=True).result()


def reads_per_second(array, places):
    begin = time.perf_counter()
    for z, y, x in places:
        array[z:z + PATCH, y:y + PATCH, x:x + PATCH].read().result()
    return len(places) / (time.perf_counter() - begin)


def amplification(places, chunk):
    """Voxels of the chunks that a patch touches, over those of the patch."""
    touched = [numpy.prod([(p + PATCH - 1) // chunk - p // chunk + 1 for p in place]) for place in places]
    return float(numpy.mean(touched)) * chunk**3 / PATCH**3


def main():
    patchbay, folder = sys.argv[1:]
    rng = numpy.random.default_rng(1)
    with tempfile.TemporaryDirectory() as work:
        real = opened(ingest(patchbay, folder, f"{work}/real", 64)).read().result()
        copies = -(-180 // real.shape[0])
        volume = numpy.concatenate([real[::-1] if i % 2 else real for i in range(copies)])
        packed = gzip.compress(nifti(volume), 6)
        source = pathlib.Path(work, "volume.nii.gz")
        source.write_bytes(packed)
        print(f"{volume.shape} int16, {volume.nbytes / 2**20:.0f} MiB, .nii.gz {len(packed) / 2**20:.1f} MiB")
        random = [tuple(int(rng.integers(0, side - PATCH + 1)) for side in volume.shape) for _ in range(READS)]
        for chunk in CHUNKS:
            store = ingest(patchbay, str(source), f"{work}/{chunk}", chunk)
            size = sum(f.stat().st_size for f in store.glob("0/c/**/*") if f.is_file())
            array = opened(store)
            assert numpy.array_equal(array.read().result(), volume)
            cells = [(side - PATCH) // chunk + 1 for side in volume.shape]
            aligned = [tuple(int(rng.integers(0, n)) * chunk for n in cells) for _ in range(READS)]
            row = {"chunk": chunk, "to_nii_gz": round(size / len(packed), 3),
                   "random_reads_per_s": round(max(reads_per_second(array, random) for _ in range(3)), 1),
                   "amplification": round(amplification(random, chunk), 2),
                   "aligned_reads_per_s": round(max(reads_per_second(array, aligned) for _ in range(3)), 1)}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
