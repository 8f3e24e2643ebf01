"""Streams CT patches for training beside nnU-Net v2's own data loader, in turns, on the same two cores; prints rates and ratios.

  PYTHON tests/bench/volume_stream.py CT_FOLDER --bin build/dev/bin [--rounds 3] [--seconds 15]

PYTHON has PyPI's torch and nnunetv2 2.8 (with batchgeneratorsv2 and blosc2). Two volumes of 180 x 320 x 320 voxels or more are cut
out of the real series of CT_FOLDER, stacked forwards and backwards, with two balls as lesions. Batches are two patches of 96 x 96 x 96
voxels with their labels, a third of them centred on lesions.

nnU-Net  nnUNetDataLoader over `.b2nd` files in float32, already normalised, two workers (NonDetMultiThreadedAugmenter), its training
         transforms from 154 x 154 x 154 voxels
ours     `patchbay stream` from stores in HU (chunks of 32, zstd-5), two workers, window and zscore on the way, the same transforms, float32

Labels go to the nearest voxel with ours, by weight with nnU-Net. Once at nnU-Net's probabilities, once with every transform on every patch. Patches per second of wall time from the second batch on;
ratios are medians of the ratios within a round.
"""
import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import types

import numpy

from volume_chunks import ingest, nifti, opened
from volume_peers import PATCH, TURN, nnunet_chain

CLASSES = pathlib.Path(__file__).resolve().parents[2] / "configs/classes/lesions.yaml"
SIDE = 320
RUN = """dataset: {dataset}
numerics: cpu
seed: 7678
patch: {{size: [96, 96, 96], fill: -1024}}
labels: {{set: lesions, mask: true}}
sampling: {{positions: random, patches_per_epoch: 100000, oversample_foreground: 0.33}}
batch: {{global_size: 2, dtype: float32, tail: drop}}
preprocess: [{{window: {{range: [-150, 250]}}}}, {{zscore: {{over: body}}}}]
augment:
  - flip: {{axes: [z, y, x]}}
  - affine: {{p: {affine}, degrees: [-30, 30], scale: [0.7, 1.4]}}
  - gaussian_noise: {{p: {noise}, std: [0, 0.1]}}
  - gaussian_blur: {{p: {blur}, sigma: [0.5, 1.0]}}
  - brightness: {{p: {brightness}, factor: [0.75, 1.25]}}
  - contrast: {{p: {contrast}, factor: [0.75, 1.25]}}
  - low_resolution: {{p: {low}, zoom: [0.5, 1.0]}}
  - gamma: {{p: {inverted}, gamma: [0.7, 1.5], retain_stats: true, invert: true}}
  - gamma: {{p: {gamma}, gamma: [0.7, 1.5], retain_stats: true}}
"""
# nnU-Net turns a fifth of the patches and scales a fifth, each by itself; a patch with either is sampled.
OFTEN = {"affine": 0.36, "noise": 0.1, "blur": 0.1, "brightness": 0.15, "contrast": 0.15, "low": 0.125, "inverted": 0.1, "gamma": 0.3}


def lesions(shape):
    """Classes 1 and 2: balls of 20 and 8 voxels."""
    z, y, x = numpy.ogrid[:shape[0], :shape[1], :shape[2]]
    mask = numpy.zeros(shape, numpy.uint8)
    for value, radius, (a, b, c) in ((1, 20, (80, 150, 110)), (2, 8, (100, 180, 220))):
        mask[(z - a) ** 2 + (y - b) ** 2 + (x - c) ** 2 <= radius**2] = value
    return mask


def volumes(patchbay, folder, work):
    real = opened(ingest(patchbay, folder, f"{work}/real")).read().result()
    y, x = ((side - SIDE) // 2 for side in real.shape[1:])
    cut = real[:, y:y + SIDE, x:x + SIDE]
    whole = numpy.concatenate([cut[::-1] if i % 2 else cut for i in range(-(-180 // cut.shape[0]))])
    return [whole, numpy.ascontiguousarray(whole[:, ::-1])]


def make_stores(patchbay, images, mask, work):
    """The table of the stores, with their labels imported."""
    (work / "mask.nii").write_bytes(nifti(mask))
    rows = [("path", "patient_id", "annotation")]
    for i, image in enumerate(images):
        (work / f"{i}.nii").write_bytes(nifti(image))
        rows.append((ingest(patchbay, work / f"{i}.nii", work / f"stores{i}"), f"p{i}", work / "mask.nii"))
    with open(work / "table.csv", "w", newline="", encoding="utf-8") as table:
        csv.writer(table).writerows(rows)
    subprocess.run([patchbay, "labels", "import", work / "table.csv", "--set", "lesions", "--classes", CLASSES], check=True,
                   stdout=subprocess.DEVNULL)


def make_cases(images, mask, folder):
    """The output of nnU-Net's preprocessing: normalised float32, labels, up to 10,000 places of each class."""
    from nnunetv2.training.dataloading.nnunet_dataset import comp_blosc2_params, nnUNetDatasetBlosc2
    folder.mkdir()
    rng = numpy.random.default_rng(1234)
    places = {}
    for value in (1, 2):
        found = numpy.argwhere(mask == value)
        found = found[rng.choice(len(found), min(len(found), 10_000), replace=False)]
        places[value] = numpy.hstack([numpy.zeros((len(found), 1), int), found])
    block, chunk = comp_blosc2_params((1, *mask.shape), PATCH)
    for i, image in enumerate(images):
        data = numpy.clip(image, -150, 250).astype(numpy.float32)[None]
        data = (data - data.mean()) / data.std()
        nnUNetDatasetBlosc2.save_case(data, mask[None].astype(numpy.int16), {"class_locations": places}, str(folder / f"case{i}"),
                                      chunks=chunk, blocks=block)


def nnunet_rate(folder, always, seconds):
    from batchgenerators.dataloading.nondet_multi_threaded_augmenter import NonDetMultiThreadedAugmenter
    from nnunetv2.training.data_augmentation.compute_initial_patch_size import get_patch_size
    from nnunetv2.training.dataloading.data_loader import nnUNetDataLoader
    from nnunetv2.training.dataloading.nnunet_dataset import nnUNetDatasetBlosc2
    chain = nnunet_chain(always)
    labels = types.SimpleNamespace(all_labels=[0, 1, 2], has_ignore_label=False)
    loader = nnUNetDataLoader(nnUNetDatasetBlosc2(folder), 2, get_patch_size(PATCH, TURN, TURN, TURN, (0.85, 1.25)), PATCH, labels,
                              oversample_foreground_percent=0.33, transforms=chain)
    batches = NonDetMultiThreadedAugmenter(loader, None, num_processes=2, num_cached=6, pin_memory=False, wait_time=0.002)
    for _ in range(8):  # batches that were made while the workers started
        next(batches)
    start, made = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        made += len(next(batches)["data"])
    rate = made / (time.perf_counter() - start)
    batches._finish()
    return rate


def our_rate(patchbay, work, always, batches):
    run = work / "run.yaml"
    run.write_text(RUN.format(dataset=work / "table.csv", **{name: 1 if always else p for name, p in OFTEN.items()}))
    said = subprocess.run([patchbay, "stream", run, "--batches", str(batches), "--cpus", "2", "--gpus", "none", "--json"], check=True,
                          capture_output=True, text=True)
    return json.loads(said.stdout)["patches_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15, help="of nnU-Net in each round")
    parser.add_argument("--batches", type=int, default=400, help="of ours in each round; a third with every transform")
    parser.add_argument("--nnunet", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--always", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.nnunet:
        return print(nnunet_rate(options.folder, options.always, options.seconds))
    patchbay = str(pathlib.Path(options.bin, "patchbay").resolve())
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        images = volumes(patchbay, options.folder, work)
        mask = lesions(images[0].shape)
        make_stores(patchbay, images, mask, work)
        make_cases(images, mask, work / "cases")
        for always in (False, True):
            rounds = []
            for _ in range(options.rounds):
                peer = subprocess.run([sys.executable, __file__, work / "cases", "--nnunet", "--seconds", str(options.seconds)] +
                                      ["--always"] * always, check=True, stdout=subprocess.PIPE, text=True)
                rounds.append((our_rate(patchbay, work, always, options.batches // (3 if always else 1)), float(peer.stdout)))
            ours, theirs = (statistics.median(column) for column in zip(*rounds))
            print(("every transform" if always else "nnU-Net's probabilities") + f": {ours:.1f} patches/s beside {theirs:.1f}: "
                  f"{statistics.median(a / b for a, b in rounds):.1f}x   (goal 5x)", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
