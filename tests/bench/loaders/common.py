"""A loader in the comparison, its job, and the arithmetic that every loader shares."""
import dataclasses
import importlib.metadata
import pathlib
import random

SIDE, BOX = 512, (96, 96, 96)
MEAN, STD = (0.70, 0.55, 0.70), (0.2, 0.2, 0.2)
WINDOW = (-150, 250)
SEED = 7678
LOADERS = {}

# Names of distributions that differ from their modules'.
DISTRIBUTIONS = {"array_record": "array-record", "batchgenerators": "batchgenerators", "cucim": "cucim-cu13", "cv2": "opencv-python-headless",
                 "openslide": "openslide-python", "ray.data": "ray", "spdl.io": "spdl_io", "streaming": "mosaicml-streaming"}


@dataclasses.dataclass
class Job:
    """Inputs and settings of one measurement; JSON goes to the process that runs it."""
    slide: str = ""
    store: str = ""  # the outermost group of the slide's store
    codec: str = "zstd"  # codec of the stores
    patchbay: str = ""  # the program
    work: str = ""
    patches: int = 2304
    batch: int = 16
    workers: int = 2
    random_places: bool = False
    fused: bool = False
    boxes: int = 400
    boxes_batch: int = 4
    boxes_of: str = "160x320x320"
    volumes: int = 4
    max_seconds: float = 30
    repeat: bool = False
    places: list = dataclasses.field(default_factory=list)  # x, y of patches in level 0
    tiles: list = dataclasses.field(default_factory=list)  # paths of JPEG tiles

    def below(self, *names):
        return pathlib.Path(self.work, *names)


@dataclasses.dataclass(frozen=True)
class Loader:
    """`run(job)` yields batches as torch tensors of float32: (N, 3, 512, 512), or (N, 1, 96, 96, 96) of volumes."""
    name: str
    source: str  # slide, store, tiles, volumes, volumes-full: only loaders of one source are compared
    modules: tuple
    text: str
    run: object
    extra: int = 0  # patches before those that are timed, beyond `untimed`: it holds more ready than a tenth
    untimed: float = 0.1  # a part of the patches

    def versions(self):
        """{module: version}, None where it is not installed."""
        return {module: version(module) for module in self.modules}

    def is_volumes(self):
        return self.source.startswith("volumes")


def loader(name, source, modules, text, **more):
    def add(run):
        LOADERS[name] = Loader(name, source, tuple(modules.split()), text, run, **more)
        return run
    return add


def version(module):
    for name in (DISTRIBUTIONS.get(module), module.split(".")[0], "opencv-python" if module == "cv2" else None,
                 "cucim-cu12" if module == "cucim" else None):
        try:
            if name:
                return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return None


def fused(batch, out=None):
    """NCHW uint8 with any strides -> NCHW float32: a copy with the flip, then one multiplication and one addition in place."""
    import torch
    scale = torch.tensor([1 / (255 * s) for s in STD]).view(1, 3, 1, 1)
    shift = torch.tensor([-m / s for m, s in zip(MEAN, STD)]).view(1, 3, 1, 1)
    out = torch.empty(tuple(batch.shape) if out is None else out.shape, dtype=torch.float32) if out is None else out
    for target, image in zip(out, batch):
        axes = [axis for axis in (1, 2) if random.random() < 0.5]
        target.copy_(image.flip(axes) if axes else image)
    return out.mul_(scale).add_(shift)


def finisher(job):
    """HWC uint8 array, PIL image or CHW uint8 tensor -> CHW float32 tensor, flipped and normalised."""
    import numpy
    import torch
    if not job.fused:
        from torchvision.transforms import v2
        return v2.Compose([v2.ToImage(), v2.RandomHorizontalFlip(), v2.RandomVerticalFlip(), v2.ToDtype(torch.float32, scale=True),
                           v2.Normalize(MEAN, STD), v2.ToPureTensor()])

    def finish(image):
        if not torch.is_tensor(image):
            image = torch.from_numpy(numpy.array(image, copy=not isinstance(image, numpy.ndarray))).permute(2, 0, 1)
        return fused(image[None])[0]
    return finish


def numpy_finish(image, draw):
    """HWC uint8 -> CHW float32, for loaders without torch in their workers."""
    import numpy
    for axis in (0, 1):
        if draw.random() < 0.5:
            image = numpy.flip(image, axis)
    out = numpy.ascontiguousarray(image.transpose(2, 0, 1)).astype(numpy.float32)
    out *= numpy.array([1 / (255 * s) for s in STD], numpy.float32)[:, None, None]
    out -= numpy.array([m / s for m, s in zip(MEAN, STD)], numpy.float32)[:, None, None]
    return out


def torch_loader(dataset, job, **more):
    import torch
    return torch.utils.data.DataLoader(dataset, batch_size=job.batch, num_workers=job.workers, shuffle=True, drop_last=True, **more)


def place_dataset(job, read, opened):
    """A map-style dataset over the job's places that opens its source in the worker."""
    import torch
    finish = finisher(job)

    class Places(torch.utils.data.Dataset):
        handle = None

        def __len__(self):
            return len(job.places)

        def __getitem__(self, index):
            if self.handle is None:
                self.handle = opened()
            return finish(read(self.handle, *job.places[index]))
    return Places()
