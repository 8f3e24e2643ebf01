"""Loaders that read JPEG tiles (quality 90), cut from the slide beforehand and packed as each of them wants."""
import pathlib
import random
import shutil

from .common import SEED, finisher, fused, loader, numpy_finish, torch_loader
from .from_slides import ray_batches, ray_started


def packed(job, name, make):
    """The folder that make(job, folder) fills, once."""
    folder, done = job.below(name), job.below(f"{name}.done")
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        make(job, folder)
        done.touch()
    return folder


@loader("torch-jpeg", "tiles", "torch torchvision", "DataLoader over a folder of tiles, torchvision.io.decode_image")
def torch_jpeg(job):
    import torch
    from torchvision.io import decode_image
    finish = finisher(job)

    class Tiles(torch.utils.data.Dataset):
        def __len__(self):
            return len(job.tiles)

        def __getitem__(self, index):
            return finish(decode_image(job.tiles[index]))
    return torch_loader(Tiles(), job)


def pack_litdata(job, folder):
    from litdata.streaming.writer import BinaryWriter
    from PIL import Image
    writer = BinaryWriter(str(folder), chunk_bytes="64MB")
    for number, tile in enumerate(job.tiles):
        writer[number] = {"image": Image.open(tile)}
    writer.done()
    writer.merge(1)


@loader("litdata", "tiles", "litdata torch torchvision", "StreamingDataset(shuffle=True) over its chunks, StreamingDataLoader")
def litdata(job):
    import litdata as lit
    finish = finisher(job)
    dataset = lit.StreamingDataset(str(packed(job, "litdata", pack_litdata)), shuffle=True, drop_last=True,
                                   transform=lambda sample: finish(sample["image"]))
    return lit.StreamingDataLoader(dataset, batch_size=job.batch, num_workers=job.workers, shuffle=True, drop_last=True)


def pack_mosaic(job, folder):
    from PIL import Image
    from streaming import MDSWriter
    with MDSWriter(out=str(folder), columns={"image": "jpeg"}) as writer:
        for tile in job.tiles:
            writer.write({"image": Image.open(tile)})


@loader("mosaic-streaming", "tiles", "streaming torch torchvision", "StreamingDataset(local, shuffle=True) over MDS shards, DataLoader")
def mosaic_streaming(job):
    import streaming
    import torch
    finish = finisher(job)
    streaming.base.util.clean_stale_shared_memory()

    class Tiles(streaming.StreamingDataset):
        def __getitem__(self, index):
            return finish(super().__getitem__(index)["image"])
    dataset = Tiles(local=str(packed(job, "mds", pack_mosaic)), shuffle=True, batch_size=job.batch)
    return torch.utils.data.DataLoader(dataset, batch_size=job.batch, num_workers=job.workers, drop_last=True)


def pack_webdataset(job, folder):
    import webdataset
    folder.mkdir()
    most = max(1, min(256, -(-len(job.tiles) // 4)))
    with webdataset.ShardWriter(str(folder / "%04d.tar"), maxcount=most, verbose=0) as writer:
        for number, tile in enumerate(job.tiles):
            writer.write({"__key__": f"{number:06}", "jpg": pathlib.Path(tile).read_bytes()})


@loader("webdataset", "tiles", "webdataset torch torchvision", "WebDataset(shardshuffle).shuffle(1000).decode('pil').batched, WebLoader")
def webdataset(job):
    import webdataset as wds
    tars = sorted(map(str, packed(job, "wds", pack_webdataset).glob("*.tar")))
    tiles = wds.WebDataset(tars, shardshuffle=len(tars), seed=SEED).shuffle(1000).decode("pil").to_tuple("jpg").map_tuple(finisher(job))
    for batch in wds.WebLoader(tiles.batched(job.batch, partial=False), batch_size=None, num_workers=job.workers):
        yield batch[0]


@loader("spdl", "tiles", "spdl.io spdl.pipeline torch", "Pipeline of threads: aggregate, load_image_batch, flip and normalise")
def spdl(job):
    import torch
    from spdl import io
    from spdl.pipeline import PipelineBuilder
    torch.set_num_threads(1)
    tiles = list(job.tiles)
    random.Random(SEED).shuffle(tiles)

    def work(paths):
        return fused(io.to_torch(io.load_image_batch(paths, width=None, height=None, pix_fmt="rgb24")).permute(0, 3, 1, 2))
    builder = PipelineBuilder().add_source(tiles).aggregate(job.batch, drop_last=True).pipe(work, concurrency=job.workers)
    pipeline = builder.add_sink(2).build(num_threads=job.workers)
    with pipeline.auto_stop():
        yield from pipeline


def pack_arrayrecord(job, folder):
    from array_record.python.array_record_module import ArrayRecordWriter
    folder.mkdir()
    writer = ArrayRecordWriter(str(folder / "tiles.array_record"), "group_size:1")
    for tile in job.tiles:
        writer.write(pathlib.Path(tile).read_bytes())
    writer.close()


def decoded(jpeg):
    import cv2
    import numpy
    cv2.setNumThreads(1)
    return cv2.imdecode(numpy.frombuffer(jpeg, numpy.uint8), cv2.IMREAD_COLOR_RGB)


@loader("grain", "tiles", "grain array_record cv2", "MapDataset over an ArrayRecord, shuffle, cv2.imdecode, random_map, batch, mp_prefetch")
def grain(job):
    import grain as gr
    import torch
    source = gr.sources.ArrayRecordDataSource([str(packed(job, "grain", pack_arrayrecord) / "tiles.array_record")])
    tiles = gr.MapDataset.source(source).seed(SEED).shuffle().map(decoded).random_map(numpy_finish)
    processes = gr.MultiprocessingOptions(num_workers=job.workers, per_worker_buffer_size=2)
    for batch in tiles.batch(job.batch, drop_remainder=True).to_iter_dataset().mp_prefetch(processes):
        yield torch.from_numpy(batch)


@loader("ray-jpeg", "tiles", "ray.data torch cv2", "ray.data.read_binary_files(shuffle='files'), map_batches, iter_torch_batches", untimed=0.25)
def ray_jpeg(job):
    ray = ray_started(job)
    decode, finish = decoded, numpy_finish

    def work(batch):
        import numpy
        draw = numpy.random.default_rng()
        return {"image": numpy.stack([finish(decode(jpeg), draw) for jpeg in batch["bytes"]])}
    return ray_batches(job, ray.data.read_binary_files(job.tiles, shuffle="files").map_batches(work, batch_size=job.batch))
