"""Boxes of 96 x 96 x 96 voxels out of a volume per second of processor time: ours, the floor, TensorStore and nnU-Net's .b2nd.

  PYTHON tests/bench/volume_reads.py CT_FOLDER --bin build/dev/bin [--seconds 4] [--rounds 3]

PYTHON has PyPI's torch, nnunetv2 2.8 (with blosc2) and tensorstore. The volume is the real series of CT_FOLDER, stacked forwards and
backwards to 180 slices or more, int16. Stores have chunks of 32 (the default) and 96 voxels, zstd and lz4; the .b2nd is written
by nnU-Net for patches of 96, in float32 as its preprocessing leaves it. Everything comes from the page cache, on one core.

aligned  at multiples of 96, beside pread + crc32c + blosc_decompress_ctx of the same chunks
random   anywhere, beside pread + crc32c + the Blosc blocks that hold voxels of the box (blosc_getitem), and beside TensorStore and
         .b2nd. `amplification`: bytes of those blocks over bytes of the box
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy

from volume_chunks import PATCH, ingest, nifti, opened


def stacked(patchbay, folder, work):
    real = opened(ingest(patchbay, folder, f"{work}/real")).read().result()
    return numpy.concatenate([real[::-1] if i % 2 else real for i in range(-(-180 // real.shape[0]))])


def crops_per_second(read, shape, seconds):
    """Crops of random boxes per second of processor time, of all threads."""
    rng = numpy.random.default_rng(7678)
    read(tuple(slice(0, PATCH) for _ in shape))
    start, made = time.process_time(), 0
    while time.process_time() - start < seconds:
        corner = [int(rng.integers(0, side - PATCH + 1)) for side in shape]
        read(tuple(slice(at, at + PATCH) for at in corner))
        made += 1
    return made / (time.process_time() - start)


def nnunet_case(volume, folder):
    """The volume as nnU-Net keeps it, opened as its data loader opens it."""
    from nnunetv2.training.dataloading.nnunet_dataset import comp_blosc2_params, nnUNetDatasetBlosc2
    data = volume[None].astype(numpy.float32)
    block, chunk = comp_blosc2_params(data.shape, (PATCH,) * 3)
    nnUNetDatasetBlosc2.save_case(data, (data > 100).astype(numpy.int16), {}, f"{folder}/case", chunks=chunk, blocks=block)
    return nnUNetDatasetBlosc2(folder).load_case("case")[0]


def measured(options, store, case):
    row = json.loads(subprocess.run([options.bench, store, str(PATCH), str(options.seconds)], check=True, capture_output=True,
                                    text=True).stdout)
    array = opened(store)
    row["tensorstore_random"] = crops_per_second(lambda box: array[box].read().result(), array.shape, options.seconds)
    row["b2nd_random"] = crops_per_second(lambda box: case[(0, *box)], case.shape[1:], options.seconds)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.bench = str(pathlib.Path(options.bin, "bench_volumes"))
    patchbay = str(pathlib.Path(options.bin, "patchbay"))
    with tempfile.TemporaryDirectory() as work:
        volume = stacked(patchbay, options.folder, work)
        source = pathlib.Path(work, "volume.nii")
        source.write_bytes(nifti(volume))
        pathlib.Path(work, "b2nd").mkdir()
        case = nnunet_case(volume, f"{work}/b2nd")
        stores = {(chunk, codec): str(ingest(patchbay, source, f"{work}/{chunk}{codec}", chunk, "--codec", codec))
                  for chunk in (32, 96) for codec in ("zstd", "lz4")}
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1]})
        for (chunk, codec), store in stores.items():
            rounds = [measured(options, store, case) for _ in range(options.rounds)]
            ratio = lambda a, b: round(statistics.median(row[a] / row[b] for row in rounds), 2)
            print(json.dumps({"chunk": chunk, "codec": codec,
                              **{name: round(statistics.median(row[name] for row in rounds), 1) for name in rounds[0]},
                              "aligned_over_floor": ratio("ours_aligned", "floor_aligned"),
                              "random_over_floor": ratio("ours_random", "floor_random"),
                              "random_over_tensorstore": ratio("ours_random", "tensorstore_random"),
                              "random_over_b2nd": ratio("ours_random", "b2nd_random")}), flush=True)


if __name__ == "__main__":
    main()
