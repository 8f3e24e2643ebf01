"""The inputs of the loaders, made once and not timed: the store, JPEG tiles, volumes in each loader's format."""
import json
import os
import pathlib
import pickle
import random
import shutil
import subprocess
import sys

from .common import BOX, SEED, SIDE, WINDOW

CLASSES = pathlib.Path(__file__).resolve().parents[3] / "configs/classes/lesions.yaml"
CUT = """import sys, json, openslide
slide = openslide.OpenSlide(sys.argv[1])
for name, x, y in json.load(sys.stdin):
    slide.read_region((x, y), 0, (512, 512)).convert("RGB").save(name, quality=90)
"""


def patchbay(job, *words):
    done = subprocess.run([job.patchbay, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"patchbay {words[0]}: {done.stderr.strip()}")


def places_of(job):
    """x, y of the patches, shuffled: whole tiles of the grid, epoch after epoch, or anywhere."""
    import openslide
    width, height = openslide.OpenSlide(job.slide).dimensions
    draw = random.Random(SEED)
    if job.random_places:
        places = set()
        while len(places) < job.patches:
            places.add((draw.randrange(width - SIDE + 1), draw.randrange(height - SIDE + 1)))
        places = sorted(places)
        draw.shuffle(places)
        return places
    grid = [(x, y) for y in range(0, height - SIDE + 1, SIDE) for x in range(0, width - SIDE + 1, SIDE)]
    epochs = [draw.sample(grid, len(grid)) for _ in range(-(-job.patches // len(grid)))]
    return [place for epoch in epochs for place in epoch][:job.patches]


def cut_tiles(job):
    folder = job.below(f"tiles-{'random' if job.random_places else 'grid'}-{job.patches}")
    names = [str(folder / f"{number:06}.jpg") for number in range(len(job.places))]
    if not folder.with_suffix(".done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        rows = [(name, x, y) for name, (x, y) in zip(names, job.places)]
        parts = [subprocess.Popen([sys.executable, "-c", CUT, job.slide], stdin=subprocess.PIPE, text=True) for _ in range(job.workers)]
        for number, part in enumerate(parts):
            part.stdin.write(json.dumps(rows[number::job.workers]))
            part.stdin.close()
        if any([part.wait() for part in parts]):
            sys.exit("the tiles could not be cut")
        folder.with_suffix(".done").touch()
    return names


def make_store(job):
    folder = job.below(f"stores-{job.codec}")
    if not any(folder.glob("*.ome.zarr")):
        patchbay(job, "ingest", job.slide, "--out", folder, "--codec", job.codec)
    return str(next(folder.glob("*.ome.zarr")))


def make_volumes(job):
    """Synthetic CT volumes with lesions: DICOM, ingested; the same voxels as .nii, .nii.gz, .b2nd and .npy."""
    done = job.below("volumes.done")
    key = f"{job.boxes_of} {job.volumes} {job.codec}"
    if done.exists() and done.read_text() == key:
        return
    for name in ("nii", "b2nd", "npz", "dicom", "volumes"):
        shutil.rmtree(job.below(name), ignore_errors=True)
        job.below(name).mkdir()
    rows = ["path,patient_id,annotation"]
    for number in range(job.volumes):
        rows.append(",".join(map(str, make_volume(job, number))))
    job.below("table.csv").write_text("\n".join(rows) + "\n")
    done.write_text(key)


def make_volume(job, number):
    """(store, patient, labels) of a new volume."""
    import zarr
    dicom, lesions, out = job.below("dicom", f"{number}"), job.below("dicom", f"{number}.nii"), job.below("volumes", f"{number}")
    patchbay(job, "synth", "ct", dicom, "--size", job.boxes_of, "--seed", number + 1, "--lesions", lesions)
    patchbay(job, "ingest", dicom, "--out", out, "--codec", job.codec)
    store = next(out.glob("*.ome.zarr"))
    patchbay(job, "labels", "import", store, lesions, "--set", "lesions", "--classes", CLASSES)
    labels = next(pathlib.Path(folder) for folder, _, files in os.walk(store / "labels") if folder.endswith("/0") and "zarr.json" in files)
    image, mask = zarr.open_array(str(store / "0"), mode="r")[:], zarr.open_array(str(labels), mode="r")[:]
    save_nifti(job, number, image, mask)
    save_nnunet(job, number, image, mask)
    return store, f"p{number}", lesions


def save_nifti(job, number, image, mask):
    import nibabel
    import numpy
    for name, voxels in (("img", image.astype(numpy.int16)), ("seg", mask.astype(numpy.uint8))):
        volume = nibabel.Nifti1Image(voxels, numpy.eye(4))
        for suffix in ("nii", "nii.gz"):
            nibabel.save(volume, str(job.below("nii", f"{number}_{name}.{suffix}")))


def save_nnunet(job, number, image, mask):
    """Files as nnU-Net's preprocessing leaves them: normalised float32, labels, up to 10,000 places of each class."""
    import numpy
    try:
        from nnunetv2.training.dataloading.nnunet_dataset import comp_blosc2_params, nnUNetDatasetBlosc2
    except ImportError:
        return
    draw, places = numpy.random.default_rng(SEED), {}
    for value in (1, 2):
        found = numpy.argwhere(mask == value)
        found = found[draw.choice(len(found), min(len(found), 10_000), replace=False)]
        places[value] = numpy.hstack([numpy.zeros((len(found), 1), int), found])
    voxels = numpy.clip(image, *WINDOW).astype(numpy.float32)[None]
    voxels, mask = (voxels - voxels.mean()) / voxels.std(), mask[None].astype(numpy.int16)
    blocks, chunks = comp_blosc2_params(voxels.shape, BOX)
    nnUNetDatasetBlosc2.save_case(voxels, mask, {"class_locations": places}, str(job.below("b2nd", f"case{number}")), chunks=chunks, blocks=blocks)
    plain = job.below("npz", f"case{number}")
    numpy.save(f"{plain}.npy", voxels)
    numpy.save(f"{plain}_seg.npy", mask)
    pathlib.Path(f"{plain}.npz").touch()
    pathlib.Path(f"{plain}.pkl").write_bytes(pickle.dumps({"class_locations": places}))


def read_once(*paths):
    """Into the page cache."""
    for path in map(pathlib.Path, paths):
        for file in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file()):
            with file.open("rb") as handle:
                while handle.read(8 << 20):
                    pass
