"""Loaders that read the slide itself."""
from .common import MEAN, SEED, SIDE, STD, finisher, fused, loader, numpy_finish, place_dataset, torch_loader


def rgb(handle, x, y):
    return handle.read_region((x, y), 0, (SIDE, SIDE)).convert("RGB")


@loader("torch-openslide", "slide", "torch openslide torchvision", "DataLoader, openslide read_region(...).convert('RGB')")
def torch_openslide(job):
    import openslide
    return torch_loader(place_dataset(job, rgb, lambda: openslide.OpenSlide(job.slide)), job)


@loader("torch-tiffslide", "slide", "torch tiffslide torchvision", "DataLoader, tiffslide read_region(as_array=True)")
def torch_tiffslide(job):
    import tiffslide

    def read(handle, x, y):
        return handle.read_region((x, y), 0, (SIDE, SIDE), as_array=True)
    return torch_loader(place_dataset(job, read, lambda: tiffslide.TiffSlide(job.slide)), job)


@loader("torch-cucim", "slide", "torch cucim torchvision", "DataLoader, CuImage.read_region on the CPU")
def torch_cucim(job):
    import numpy
    from cucim import CuImage

    def read(handle, x, y):
        return numpy.asarray(handle.read_region((x, y), (SIDE, SIDE), 0))
    return torch_loader(place_dataset(job, read, lambda: CuImage(job.slide)), job)


@loader("cucim-batch", "slide", "torch cucim",
        "CuImage.read_region(locations, num_workers, batch_size): its own loader in C++ threads; normalised by batches in the trainer's thread")
def cucim_batch(job):
    import numpy
    import torch
    from cucim import CuImage
    batches = CuImage(job.slide).read_region(job.places, (SIDE, SIDE), 0, num_workers=job.workers, batch_size=job.batch, drop_last=True,
                                             shuffle=True, seed=SEED)
    for batch in batches:
        yield fused(torch.from_numpy(numpy.asarray(batch)).permute(0, 3, 1, 2))


def monai(job, reader):
    from monai.data import PatchWSIDataset, ThreadDataLoader
    from monai.transforms import Compose, NormalizeIntensityd, RandFlipd
    chain = Compose([NormalizeIntensityd("image", subtrahend=[255 * m for m in MEAN], divisor=[255 * s for s in STD], channel_wise=True),
                     RandFlipd("image", 0.5, 0), RandFlipd("image", 0.5, 1)])
    items = [{"image": job.slide, "location": [y, x]} for x, y in job.places]
    dataset = PatchWSIDataset(items, SIDE, 0, chain, include_label=False, center_location=False, reader=reader)
    for batch in ThreadDataLoader(dataset, batch_size=job.batch, shuffle=True, num_workers=job.workers, drop_last=True):
        yield batch["image"]


@loader("monai-openslide", "slide", "monai openslide", "PatchWSIDataset(reader='openslide'), ThreadDataLoader with worker processes")
def monai_openslide(job):
    return monai(job, "openslide")


@loader("monai-cucim", "slide", "monai cucim", "PatchWSIDataset(reader='cucim'), its default reader, ThreadDataLoader with worker processes")
def monai_cucim(job):
    return monai(job, "cucim")


def repeated(dataset, job):
    import torch
    return torch.utils.data.ConcatDataset([dataset] * -(-job.patches // len(dataset)))


@loader("lazyslide", "slide", "lazyslide wsidata torch torchvision", "pp.tile_tissues of the whole grid, ds.tile_images in a DataLoader")
def lazyslide(job):
    import lazyslide as lz
    import wsidata
    slide = wsidata.open_wsi(job.slide, store=str(job.below("lazyslide.zarr")), reader="openslide")
    lz.pp.tile_tissues(slide, SIDE, background_filter=False)
    for batch in torch_loader(repeated(slide.ds.tile_images(transform=finisher(job)), job), job):
        yield batch["image"]


@loader("tiatoolbox", "slide", "tiatoolbox torch torchvision", "WSIPatchDataset(auto_get_mask=False) of the whole grid in a DataLoader")
def tiatoolbox(job):
    from tiatoolbox.models.dataset.dataset_abc import WSIPatchDataset
    dataset = WSIPatchDataset(job.slide, patch_input_shape=(SIDE, SIDE), stride_shape=(SIDE, SIDE), resolution=0, units="level",
                              auto_get_mask=False)
    dataset.preproc_func = finisher(job)
    for batch in torch_loader(repeated(dataset, job), job):
        yield batch["image"]


@loader("wsistream", "slide", "wsistream openslide torch", "WsiStreamDataset: random patches over tissue, its own normalisation; the slide once a worker")
def wsistream(job):
    import torch
    from wsistream import backends, sampling, tissue, transforms
    from wsistream import torch as streams
    chain = transforms.ComposeTransforms(
        transforms=[transforms.RandomFlipRotate(p_rot90=0), transforms.NormalizeTransform(mean=MEAN, std=STD)])
    dataset = streams.WsiStreamDataset(
        [job.slide] * job.workers, backend=backends.OpenSlideBackend(), tissue_detector=tissue.OtsuTissueDetector(),
        sampler=sampling.RandomSampler(patch_size=SIDE, num_patches=-1, level=0), transforms=chain, pool_size=1,
        patches_per_slide=job.patches, cycle=True, seed=SEED)
    for batch in torch.utils.data.DataLoader(dataset, batch_size=job.batch, num_workers=job.workers):
        yield batch["image"].contiguous()


def ray_started(job):
    import logging

    import ray
    ray.init(num_cpus=job.workers, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, object_store_memory=2 << 30)
    ray.data.DataContext.get_current().enable_progress_bars = False
    return ray


def ray_batches(job, dataset):
    import ray
    for batch in dataset.iter_torch_batches(batch_size=job.batch, drop_last=True, prefetch_batches=2):
        yield batch["image"]
    ray.shutdown()


@loader("ray-openslide", "slide", "ray.data torch openslide", "ray.data of places, map_batches by actors that hold the slide, iter_torch_batches", untimed=0.25)
def ray_openslide(job):
    ray = ray_started(job)
    slide, side, finish = job.slide, SIDE, numpy_finish

    class Read:
        def __init__(self):
            import openslide
            self.handle = openslide.OpenSlide(slide)

        def __call__(self, batch):
            import numpy
            draw = numpy.random.default_rng()
            return {"image": numpy.stack([finish(numpy.asarray(self.handle.read_region((int(x), int(y)), 0, (side, side)).convert("RGB")), draw)
                                          for x, y in zip(batch["x"], batch["y"])])}
    items = [{"x": x, "y": y} for x, y in job.places]
    dataset = ray.data.from_items(items, override_num_blocks=max(2, job.patches // job.batch // 2))
    return ray_batches(job, dataset.map_batches(Read, batch_size=job.batch, compute=ray.data.ActorPoolStrategy(size=job.workers), num_cpus=1))
