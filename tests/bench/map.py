"""Maps images with a function that returns at once, in turns with what people use today, in one run; prints medians and ratios.

  PYTHONPATH=build/dev/python PYTHON tests/bench/map.py slide big.svs stores --bin build/dev/bin [--rounds 3]
  PYTHONPATH=build/dev/python PYTHON tests/bench/map.py volume CT_FOLDER --bin build/dev/bin
  PYTHONPATH=build/dev/python PYTHON tests/bench/map.py memory [--rows 24]

PYTHON has h5py, zarr and, for the peers, PyPI's monai, openslide-python with openslide-bin, tiatoolbox and tensorstore; a peer
without its package is left out, saying so. Two workers and the consumer (its own thread and two that compress) share two cores.

slide   patches of 512 at a stride of 256 from a slide's store, uint8: the stream alone (`patchbay.attach`), `patchbay.map` with
        an embedding of 1,024 numbers, and with a blended map of three classes: at a quarter of the patch's resolution, at its
        own of even arrays (`flat`), and at its own of arrays that vary from pixel to pixel (`smooth`), which cost more to pack.
        Rates from the first batch until the results are published. Then the same map from the slide by a loop over OpenSlide,
        by one process and by two, and by TIAToolbox's SemanticSegmentor (a part of the slide, as it keeps all sums in memory).
volume  patches of 96 x 96 x 96 at a stride of 48 from a real series, three classes: `patchbay.map` beside MONAI's
        sliding_window_inference (gaussian), a function of voxels and of their places in the patch; seconds, peak memory of the
        process less that before its first patch, and the largest difference.
memory  peak memory of the writer, driven without a stream, in a group of processes with a limit: 100,000 x 100,000 pixels, five
        classes, patches of 512 at a stride of 256 (`--rows` of the grid's 390 at the top and at the bottom; 0 = all),
        512 x 512 x 800 voxels, ten classes, patches of 128 x 128 x 128 at a stride of 64, and two bands of the slide, of `--rows`
        each, and their joining.

Processor times are of all processes, started and ended, workers too.
"""
import argparse
import ctypes
import importlib.util
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

SIDE, STRIDE, BATCH = 512, 256, 16
ROI, STEP = 96, 48
MAPS = {"quarter": ("smooth", 4), "flat": ("flat", 1), "smooth": ("smooth", 1)}
RUN = """dataset: {dataset}
numerics: cpu
patch: {{size: [512, 512], level: 0}}
sampling: {{order: sequential, stride: [256, 256]}}
batch: {{global_size: 16, dtype: uint8, layout: nhwc}}
"""
VOLUME = """dataset: {dataset}
numerics: cpu
patch: {{size: [96, 96, 96]}}
sampling: {{order: sequential, stride: [48, 48, 48]}}
batch: {{global_size: 4, dtype: float32}}
outputs: {{p: {{kind: map, classes: [a, b, c], dtype: float16}}}}
"""


def field(kind, classes, size, count=1):
    """Probabilities (count, classes, *size): the same everywhere, or waves."""
    import numpy
    if kind == "flat":
        rows = numpy.arange(1, classes + 1, dtype=numpy.float32) / (classes + 1)
        return numpy.broadcast_to(rows.reshape(1, -1, *[1] * len(size)), (count, classes, *size)).copy()
    places = numpy.meshgrid(*(numpy.arange(n) for n in size), indexing="ij", sparse=True)
    made = numpy.empty((count, classes, *size), numpy.float32)
    for i, c in numpy.ndindex(count, classes):
        made[i, c] = 1 / (1 + numpy.exp(-4 * sum(numpy.sin(place / 60 + i + c) for place in places)))
    return made


# Consumers, each a process of its own that prints one line of JSON.

def run_stream(options):
    import patchbay
    with patchbay.attach(options.config, cpus=2) as stream:
        begun, patches = None, 0
        for batch in stream:
            if begun is None:
                begun = time.perf_counter()
            else:
                patches += batch.count
        return {"patches": patches, "seconds": time.perf_counter() - begun}


def map_with(config, values_of, out):
    """(summary of patchbay.map, seconds from the first call on)."""
    import patchbay
    begun = []

    def predict(_, batch):
        if not begun:
            begun.append(time.perf_counter())
        return {"p": values_of(batch)}
    summary = patchbay.map(config, predict, out=out, cpus=2, progress=False)
    if summary["failed"]:
        raise SystemExit(summary)
    return summary, time.perf_counter() - begun[0]


def run_map(options):
    import numpy
    if options.kind == "embedding":
        made = numpy.random.default_rng(1).random((BATCH, 1024), numpy.float32)
    else:
        kind, part = MAPS[options.kind]
        made = field(kind, 3, (SIDE // part, SIDE // part), BATCH)
    summary, seconds = map_with(options.config, lambda batch: made[:batch.count], options.out)
    return {"patches": summary["patches"], "seconds": seconds}


class Bands:
    """A map that a script would blend: float32 sums of one row of patches, written as uint8 by zarr-python."""

    def __init__(self, path, shape):
        import numpy
        import zarr
        self._array = zarr.create_array(path, shape=(3, *shape), chunks=(1, 256, 256), dtype="uint8", fill_value=255)
        self._sums, self._row = numpy.zeros((4, SIDE, shape[1] + SIDE), numpy.float32), 0
        side = numpy.exp(-0.5 * ((numpy.arange(SIDE) - (SIDE - 1) / 2) / (0.125 * SIDE)) ** 2)
        self._weights = numpy.maximum(side[:, None] * side, 1e-3).astype(numpy.float32)

    def add(self, x, probabilities):
        self._sums[:3, :, x:x + SIDE] += probabilities * self._weights
        self._sums[3, :, x:x + SIDE] += self._weights

    def end_row(self):
        import numpy
        done, width = self._sums[:, :STRIDE], self._array.shape[2]
        high = min(STRIDE, self._array.shape[1] - self._row)
        self._array[:, self._row:self._row + high] = numpy.rint(254 * done[:3, :high, :width] / done[3, :high, :width]).astype(numpy.uint8)
        self._sums[:, :-STRIDE], self._sums[:, -STRIDE:] = self._sums[:, STRIDE:].copy(), 0
        self._row += STRIDE


def openslide_rows(options, first):
    import numpy
    import openslide
    slide = openslide.OpenSlide(options.slide)
    width = slide.dimensions[0]
    made, bands, patches = field("smooth", 3, (SIDE, SIDE), BATCH), Bands(f"{options.out}/{first}.zarr", (options.rows * STRIDE, width)), 0
    begun = time.perf_counter()
    for row in range(first, first + options.rows):
        for x in range(0, width - SIDE, STRIDE):
            numpy.asarray(slide.read_region((x, row * STRIDE), 0, (SIDE, SIDE)))[..., :3].copy()
            bands.add(x, made[patches % BATCH])
            patches += 1
        bands.end_row()
    return {"patches": patches, "seconds": time.perf_counter() - begun}


def run_openslide(options):
    return openslide_rows(options, 0)


def run_openslide2(options):
    import multiprocessing
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.starmap(openslide_rows, [(options, 0), (options, options.rows)])
    return {"patches": sum(each["patches"] for each in found), "seconds": max(each["seconds"] for each in found)}


def run_tiatoolbox(options):
    import numpy
    import openslide
    import PIL.Image
    import torch
    from tiatoolbox.models.engine.io_config import IOSegmentorConfig
    from tiatoolbox.models.engine.semantic_segmentor import SemanticSegmentor
    from tiatoolbox.models.models_abc import ModelABC
    made = numpy.moveaxis(field("smooth", 3, (SIDE, SIDE), BATCH), 1, -1).copy()
    begun, patches = [], []

    class Trivial(ModelABC):
        def __init__(self):
            super().__init__()
            self.none = torch.nn.Parameter(torch.zeros(1))

        def forward(self, *_):
            return None

        @staticmethod
        def infer_batch(_model, batch, *, device):
            begun.append(time.perf_counter())
            patches.append(len(batch))
            return made[:len(batch)]
    units = [{"units": "baseline", "resolution": 1.0}]
    config = IOSegmentorConfig(input_resolutions=units, output_resolutions=units, patch_input_shape=[SIDE, SIDE],
                               patch_output_shape=[SIDE, SIDE], stride_shape=[STRIDE, STRIDE], save_resolution=units[0])
    with openslide.OpenSlide(options.slide) as slide:
        size = [-(-n // 64) for n in slide.dimensions]
    mask = numpy.zeros(size[::-1], numpy.uint8)
    mask[:options.rows * STRIDE // 64] = 255
    PIL.Image.fromarray(mask).save(f"{options.out}/mask.png")
    torch.set_num_threads(1)
    engine = SemanticSegmentor(model=Trivial(), batch_size=BATCH, num_workers=2, verbose=False)
    engine.run(images=[pathlib.Path(options.slide)], masks=[pathlib.Path(options.out, "mask.png")], patch_mode=False, ioconfig=config,
               auto_get_mask=False, save_dir=pathlib.Path(options.out, "results"), output_type="zarr", return_probabilities=True, overwrite=True)
    return {"patches": sum(patches), "seconds": time.perf_counter() - begun[0]}


# A volume.

def voxel_function(image, ramp):
    """Probabilities of voxels in HU, (N, 1, z, y, x), that depend on their places in the patch; by NumPy or torch."""
    part = ((image + 1024) / 4096).clip(0, 1)
    return part * ramp


def ramps():
    import numpy
    z, y, x = numpy.meshgrid(*[numpy.linspace(0, 1, ROI, dtype=numpy.float32)] * 3, indexing="ij")
    return numpy.stack([z, 1 - y, x * y])[None]


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run_ours(options):
    import numpy
    ramp, before = ramps(), []

    def values_of(batch):
        made = voxel_function(numpy.asarray(batch["image"]).reshape(-1, 1, ROI, ROI, ROI), ramp)
        before.append(peak_bytes())
        return made
    _, seconds = map_with(options.config, values_of, options.out)
    used = peak_bytes() - before[0]
    import zarr
    numpy.save(options.keep, numpy.asarray(zarr.open_array(next(pathlib.Path(options.out).glob("0*/p.ome.zarr/0")))))
    return {"seconds": seconds, "bytes": used}


def run_monai(options):
    import numpy
    import torch
    from monai.inferers import sliding_window_inference
    torch.set_num_threads(2)
    image = torch.from_numpy(numpy.load(options.config).astype(numpy.float32))[None, None]
    ramp, before = torch.from_numpy(ramps()), []

    def predict(patches):
        made = voxel_function(patches, ramp)
        before.append(peak_bytes())
        return made
    begun = time.perf_counter()
    blended = sliding_window_inference(image, (ROI,) * 3, 4, predict, overlap=0.5, mode="gaussian")
    seconds, used = time.perf_counter() - begun, peak_bytes() - before[0]
    numpy.save(options.keep, blended[0].numpy())
    return {"seconds": seconds, "bytes": used}


# Memory.

def planned(kind):
    """(output, a function that makes an Image with a folder, rows of boxes) of a whole grid."""
    import numpy
    from patchbay.map import bands, declared, geometry
    extent, size, classes = ((800, 512, 512), (128, 128, 128), 10) if kind == "volume" else ((1, 100_000, 100_000), (1, 512, 512), 5)
    stride = tuple(max(1, n // 2) for n in size)
    grid = geometry.Grid(size, stride, kind == "volume", True)
    record = {"level_sizes": [list(extent)], "downsamples": [1.0], "mpp": 0.25, "spacing": [1.0, 1.0, 1.0] if grid.volume else None}
    cells = [-(-max(0, whole - n) // step) + 1 for whole, n, step in zip(extent, size, stride)]
    rows = [[(z * stride[0], y * stride[1], x * stride[2], *size) for x in range(cells[2])] for z, y in numpy.ndindex(*cells[:2])]
    place = geometry.ImagePlace(grid, record, 0, rows[0][0])
    return (declared.Output("p", "map", tuple(f"c{i}" for i in range(classes)), dtype="uint8", class_map="argmax"),
            lambda folder, is_first=False: bands.Band(folder, "image", 0, grid, place, is_first=is_first), rows)


def places_of(boxes):
    import numpy
    from patchbay.map import writers
    return writers.Places(numpy.arange(len(boxes)), numpy.zeros(len(boxes), int), numpy.array(boxes))


def run_memory(options):
    """The writer of one image, of a stream's places and one array that stays."""
    from patchbay.map import returned, writers
    output, image_in, rows = planned(options.kind)
    made = field("smooth", len(output.classes), rows[0][0][3:] if options.kind == "volume" else rows[0][0][4:])
    if options.kind == "slide" and options.rows:
        rows = rows[:options.rows] + rows[-options.rows:]
    writer = writers.MapWriter(output, image_in(options.out), returned.Check(output))
    before, begun = peak_bytes(), time.perf_counter()
    for box in (box for row in rows for box in row):
        writer.add(places_of([box]), made)
    writer.close()
    return {"patches": sum(map(len, rows)), "seconds": time.perf_counter() - begun, "bytes": peak_bytes() - before, "before": before}


def run_bands(options):
    """Two bands of the slide, as two consumers make them, and the image that is joined from them."""
    from patchbay.map import bands, returned
    output, image_in, rows = planned("slide")
    made = field("smooth", len(output.classes), rows[0][0][4:])
    check, rows, folder = returned.Check(output), rows[:2 * options.rows], pathlib.Path(options.out)

    def make(number, some):
        (folder / str(number)).mkdir()
        band = bands.Writers([output], image_in(str(folder / str(number)), number == 0), [check])
        for box in (box for row in some for box in row):
            batch = places_of([box])
            band.made[0].add(batch, made)
            band.add(batch)
        band.close()
    before, begun = peak_bytes(), time.perf_counter()
    make(0, rows[:options.rows])
    make(1, rows[options.rows:])
    seconds = time.perf_counter() - begun
    making, begun, used = peak_bytes() - before, time.perf_counter(), time.process_time()
    (folder / "image").mkdir()
    writing = []
    bands.join(image_in(str(folder / "image")), [output], [check], [bands.Part(str(folder / str(number))) for number in range(2)], writing)
    writing[0].close()
    return {"patches": sum(map(len, rows)), "seconds": seconds, "making": making, "bytes": peak_bytes() - before, "before": before,
            "joining": time.perf_counter() - begun, "joining_cpu": time.process_time() - used,
            "stored": sum(path.stat().st_size for path in folder.glob("[01]/*"))}


# The first process.

def started(name, options, more=(), enter=None):
    """The line that a process of this script says, with the processor seconds of it and all of its descendants."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [sys.executable, __file__, "--run", name, *map(str, more), "--rows", str(options.rows)]
    with tempfile.TemporaryDirectory(dir=options.work) as out:
        done = subprocess.run([*words, "--out", out], check=True, stdout=subprocess.PIPE, text=True, preexec_fn=enter)
        found = json.loads(done.stdout.splitlines()[-1])
    try:
        while True:
            os.wait()  # workers, whose parents have ended
    except ChildProcessError:
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {**found, "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def in_turns(runs, rounds):
    """{name: [found]}; a peer that does not run is left out, saying why."""
    found = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            found[name].append(run())
            print(f"  {name}: {found[name][-1]}", file=sys.stderr, flush=True)
    return found


def there(*packages):
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        print(f"left out: no {', '.join(missing)}")
    return not missing


def slide(options):
    work = pathlib.Path(options.work)
    configs = {name: work / f"{name}.yaml" for name in ("stream", "embedding", *MAPS)}
    for name, path in configs.items():
        outputs = {"stream": "", "embedding": "outputs: {p: {kind: embedding}}\n"}.get(name, "outputs: {p: {kind: map, classes: [a, b, c]}}\n")
        path.write_text(RUN.format(dataset=pathlib.Path(options.store).resolve()) + outputs)

    def run(name, kind="stream"):
        return lambda: started(name, options, ["--config", configs.get(kind), "--kind", kind, "--slide", options.slide])
    runs = {"stream": run("stream"), **{name: run("map", name) for name in configs if name != "stream"}}
    if there("openslide", "zarr"):
        runs |= {"openslide": run("openslide"), "openslide2": run("openslide2")}
    if there("tiatoolbox"):
        runs["tiatoolbox"] = run("tiatoolbox")
    found = in_turns(runs, options.rounds)
    rates = {name: [each["patches"] / each["seconds"] for each in rounds] for name, rounds in found.items()}
    for name, values in rates.items():
        cpu = statistics.median(1e3 * each["cpu"] / each["patches"] for each in found[name])
        print(f"{name:10} {statistics.median(values):7.0f} patches/s (of {options.rounds}: {min(values):.0f} to {max(values):.0f}), "
              f"{cpu:.2f} ms of processor time a patch, with start and end")
    for a, b, goal in (("embedding", "stream", 0.9), *((name, "stream", 0.7) for name in MAPS),
                       *(("smooth", name, None) for name in ("openslide", "openslide2", "tiatoolbox") if name in rates)):
        ratio = statistics.median(one / other for one, other in zip(rates[a], rates[b]))
        print(f"{a} / {b}: {ratio:.2f}" + (f"   (goal {goal})" if goal else ""))


def volume(options):
    import numpy
    from volume_chunks import ingest, nifti, opened
    patchbay, work = str(pathlib.Path(options.bin, "patchbay").resolve()), pathlib.Path(options.work)
    real = opened(ingest(patchbay, options.folder, work / "real")).read().result()
    real = numpy.concatenate([real, real[::-1]] * 2)
    real = numpy.ascontiguousarray(real[tuple(slice(ROI + (n - ROI) // STEP * STEP) for n in real.shape)])  # the grids are alike
    numpy.save(work / "volume.npy", real)
    (work / "volume.nii").write_bytes(nifti(real))
    store = ingest(patchbay, work / "volume.nii", work / "stores")
    same = opened(store).read().result()
    if not numpy.array_equal(same, real):
        raise SystemExit(f"the store's voxels lie otherwise: {same.shape} of {real.shape}")
    (work / "volume.yaml").write_text(VOLUME.format(dataset=work / "stores"))
    configs = {"ours": work / "volume.yaml", **({"monai": work / "volume.npy"} if there("monai") else {})}
    runs = {name: lambda name=name: started(name, options, ["--config", configs[name], "--keep", work / f"{name}.npy"]) for name in configs}
    found = in_turns(runs, options.rounds)
    print(f"{real.shape} voxels, three classes")
    for name, rounds in found.items():
        print(f"{name:6} {statistics.median(each['seconds'] for each in rounds):6.1f} s, {statistics.median(each['cpu'] for each in rounds):6.1f} s of "
              f"processor time with start and end, {max(each['bytes'] for each in rounds) / 2**20:.0f} MiB beyond what it had before")
    if "monai" in found:
        ours, monai = (numpy.load(work / f"{name}.npy").astype(numpy.float64) for name in ("ours", "monai"))
        difference = numpy.abs(ours - monai)
        print(f"largest difference {difference.max():.2e}   (goal 1e-3)")


def limited(limit_bytes):
    """A function that puts the process into a group with a limit of memory; None where there are none."""
    for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = pathlib.Path(root, f"patchbay-bench-{os.getpid()}")
        try:
            group.mkdir(exist_ok=True)
            (group / limit).write_text(str(limit_bytes))
        except OSError:
            continue
        return lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
    print("no groups of processes with limits here: without one")
    return None


def memory(options):
    for kind, goal in (("slide", 1024), ("volume", 1536), ("bands", 1024)):
        enter = limited((goal << 20) + (200 << 20))  # Python, NumPy and the function's array have their own
        found = started("bands" if kind == "bands" else "memory", options, ["--kind", kind], enter)
        print(f"{kind}: {found['bytes'] / 2**20:.0f} MiB beyond {found['before'] / 2**20:.0f} (goal {goal}), {found['patches']} patches, "
              f"{found['seconds']:.0f} s, {1e3 * found['cpu'] / found['patches']:.1f} ms of processor time a patch")
        if kind == "bands":
            print(f"bands: {found['making'] / 2**20:.0f} MiB while they are made, {found['stored'] / 2**30:.2f} GiB of files; joined in "
                  f"{found['joining']:.0f} s, {1e3 * found['joining_cpu'] / found['patches']:.2f} ms of processor time a patch")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["slide", "volume", "memory"])
    parser.add_argument("inputs", nargs="*")
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=6, help="rows of patches of the peers")
    for name in ("run", "config", "kind", "slide", "out", "keep"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(globals()[f"run_{options.run}"](options)))
        return
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: workers become children of this process
    with tempfile.TemporaryDirectory() as options.work:
        if options.what == "slide":
            options.slide, options.store = (str(pathlib.Path(path).resolve()) for path in options.inputs)
        elif options.what == "volume":
            options.folder, = options.inputs
        globals()[options.what](options)


if __name__ == "__main__":
    main()
