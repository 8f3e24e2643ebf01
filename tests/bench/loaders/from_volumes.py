"""Loaders of CT volumes: patches of 96 x 96 x 96 voxels, a third of them centred on lesions."""
import types

from .common import BOX, WINDOW, loader


def cases(job):
    """Paths of the volumes, without `_img.nii`."""
    return sorted(str(path)[:-len("_img.nii")] for path in job.below("nii").glob("*_img.nii"))


def monai(job, is_fast):
    import torch
    from monai import transforms as of
    from monai.data import CacheDataset, DataLoader, ThreadDataLoader
    both = ["image", "label"]
    chain = [of.LoadImaged(both), of.EnsureChannelFirstd(both), of.ScaleIntensityRanged("image", *WINDOW, 0, 1, clip=True),
             of.NormalizeIntensityd("image"), of.EnsureTyped(both, track_meta=not is_fast)]
    more = {"image_key": "image", "image_threshold": -10}
    if is_fast:
        chain.append(of.FgBgToIndicesd("label", fg_postfix="_fg", bg_postfix="_bg"))
        more = {"fg_indices_key": "label_fg", "bg_indices_key": "label_bg"}
    chain.append(of.RandCropByPosNegLabeld(both, "label", BOX, pos=1, neg=2, num_samples=4, **more))
    chain += [of.RandFlipd(both, 0.5, axis) for axis in (0, 1, 2)]
    if is_fast:
        chain.append(of.SelectItemsd(both))
    items = [{"image": case + "_img.nii.gz", "label": case + "_seg.nii.gz"} for case in cases(job)]
    dataset = CacheDataset(items, of.Compose(chain), cache_rate=1.0, num_workers=job.workers, progress=False)
    sampler = torch.utils.data.RandomSampler(dataset, replacement=True, num_samples=-(-(job.boxes + 64) // 4))
    of_kind = ThreadDataLoader if is_fast else DataLoader
    for batch in of_kind(dataset, batch_size=job.boxes_batch // 4, num_workers=job.workers, sampler=sampler):
        yield batch["image"]


@loader("monai-ct", "volumes", "monai nibabel", "CacheDataset, RandCropByPosNegLabeld(num_samples=4), RandFlipd, DataLoader: the spleen tutorial")
def monai_ct(job):
    return monai(job, False)


@loader("monai-ct-fast", "volumes", "monai nibabel", "the same by the fast training guide: indices cached, no metadata, ThreadDataLoader")
def monai_ct_fast(job):
    return monai(job, True)


def torchio_queue(job, suffix):
    import torchio
    chain = torchio.Compose([torchio.Clamp(*WINDOW), torchio.ZNormalization(), torchio.RandomFlip(axes=(0, 1, 2))])
    subjects = [torchio.Subject(image=torchio.ScalarImage(case + "_img" + suffix), label=torchio.LabelMap(case + "_seg" + suffix))
                for case in cases(job)]
    sampler = torchio.LabelSampler(BOX, "label", {0: 2, 1: 1, 2: 1})
    queue = torchio.Queue(torchio.SubjectsDataset(subjects * 100, transform=chain), max_length=80, samples_per_volume=10, sampler=sampler,
                          num_workers=job.workers)
    for batch in torchio.SubjectsLoader(queue, batch_size=job.boxes_batch, num_workers=0):
        yield batch["image"][torchio.DATA]


@loader("torchio", "volumes", "torchio", "Queue(max_length=80, samples_per_volume=10, LabelSampler) over .nii.gz; timed over whole fillings", extra=80)
def torchio_gz(job):
    return torchio_queue(job, ".nii.gz")


@loader("torchio-nii", "volumes", "torchio", "the same over .nii, not compressed", extra=80)
def torchio_nii(job):
    return torchio_queue(job, ".nii")


def nnunet(job, folder, is_full):
    import numpy
    from batchgenerators.dataloading.nondet_multi_threaded_augmenter import NonDetMultiThreadedAugmenter
    from batchgeneratorsv2.transforms.spatial.mirroring import MirrorTransform
    from nnunetv2.training.data_augmentation.compute_initial_patch_size import get_patch_size
    from nnunetv2.training.dataloading.data_loader import nnUNetDataLoader
    from nnunetv2.training.dataloading.nnunet_dataset import nnUNetDatasetBlosc2, nnUNetDatasetNumpy
    from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer
    turn, axes = (-numpy.pi / 6, numpy.pi / 6), (0, 1, 2)
    chain = nnUNetTrainer.get_training_transforms(BOX, turn, None, axes, False) if is_full else MirrorTransform(axes)
    size = get_patch_size(BOX, turn, turn, turn, (0.85, 1.25)) if is_full else BOX
    dataset = (nnUNetDatasetBlosc2 if folder == "b2nd" else nnUNetDatasetNumpy)(str(job.below(folder)))
    labels = types.SimpleNamespace(all_labels=[0, 1, 2], has_ignore_label=False)
    patches = nnUNetDataLoader(dataset, job.boxes_batch, size, BOX, labels, oversample_foreground_percent=0.33, transforms=chain)
    batches = NonDetMultiThreadedAugmenter(patches, None, num_processes=job.workers, num_cached=6, pin_memory=False, wait_time=0.002)
    try:
        while True:
            yield next(batches)["data"]
    finally:
        batches._finish()


NNUNET = "nnunetv2 batchgeneratorsv2 batchgenerators"


@loader("nnunet-blosc2", "volumes", NNUNET, "nnUNetDataLoader over .b2nd, MirrorTransform alone, NonDetMultiThreadedAugmenter", extra=48)
def nnunet_blosc2(job):
    return nnunet(job, "b2nd", False)


@loader("nnunet-npy", "volumes", NNUNET, "the same over .npy, mapped into memory, not compressed", extra=48)
def nnunet_npy(job):
    return nnunet(job, "npz", False)


@loader("nnunet-full", "volumes-full", NNUNET, "nnUNetDataLoader over .b2nd with nnU-Net's own training transforms", extra=48)
def nnunet_full(job):
    return nnunet(job, "b2nd", True)
