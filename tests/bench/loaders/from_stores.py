"""Loaders that read the slide's Zarr store."""
import collections

from .common import SIDE, fused, loader, place_dataset, torch_loader


def opened_zarr(job, **settings):
    import zarr
    zarr.config.set(settings)
    return zarr.open_array(job.store + "/0", mode="r")


def opened_tensorstore(job, threads):
    import tensorstore
    context = tensorstore.Context({"data_copy_concurrency": {"limit": threads}, "file_io_concurrency": {"limit": threads},
                                   "cache_pool": {"total_bytes_limit": 0}})
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": job.store + "/0"}}
    return tensorstore.open(spec, context=context, open=True, read=True).result()


def crop(array, x, y):
    import torch
    return torch.from_numpy(array[:, y:y + SIDE, x:x + SIDE])


@loader("torch-zarr", "store", "torch zarr torchvision", "DataLoader, zarr-python 3, its concurrency and threads as they come")
def torch_zarr(job):
    return torch_loader(place_dataset(job, crop, lambda: opened_zarr(job)), job)


@loader("torch-zarrs", "store", "torch zarr zarrs torchvision", "the same with zarrs.ZarrsCodecPipeline, one thread in each process")
def torch_zarrs(job):
    settings = {"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "threading.max_workers": 1}
    return torch_loader(place_dataset(job, crop, lambda: opened_zarr(job, **settings)), job)


@loader("torch-tensorstore", "store", "torch tensorstore torchvision", "DataLoader, TensorStore, one thread in each process")
def torch_tensorstore(job):
    def read(array, x, y):
        import torch
        return torch.from_numpy(array[:, y:y + SIDE, x:x + SIDE].read().result())
    return torch_loader(place_dataset(job, read, lambda: opened_tensorstore(job, 1)), job)


@loader("tensorstore", "store", "torch tensorstore", "TensorStore's own threads, two batches of reads in flight, finished in the trainer's thread")
def tensorstore_threads(job):
    import torch
    array, waiting = opened_tensorstore(job, job.workers), collections.deque()

    def finish(futures):
        return fused([torch.from_numpy(future.result()) for future in futures], torch.empty((job.batch, 3, SIDE, SIDE)))
    for first in range(0, len(job.places) - job.batch + 1, job.batch):
        waiting.append([array[:, y:y + SIDE, x:x + SIDE].read() for x, y in job.places[first:first + job.batch]])
        if len(waiting) > 2:
            yield finish(waiting.popleft())
    while waiting:
        yield finish(waiting.popleft())
