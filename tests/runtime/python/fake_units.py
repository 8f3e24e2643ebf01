"""A run without a cluster, for patchbay.map: images of generated pixels, given out whole or in bands to any number of processes that share a
folder. A process that dies gives its image back, as the scheduler would do it.

The config is a JSON file: a whole run config, and `fake` with the folder, the images' sizes and um, and the batch size.
"""
import fcntl
import json
import os
import pathlib
import sys
import time
import types

import numpy


def pixels_of(seed, extent):
    """uint8 (z, y, x, 3): smooth shapes with noise."""
    draw = numpy.random.default_rng(seed)
    z, y, x = numpy.meshgrid(*(numpy.arange(n) for n in extent), indexing="ij")
    waves = [numpy.sin(x / 37 + c) * numpy.cos(y / 53 + seed) + z / 9 for c in range(3)]
    noise = draw.integers(-20, 20, (*extent, 3))
    return numpy.clip(128 + 90 * numpy.stack(waves, -1) + noise, 0, 255).astype(numpy.uint8)


def boxes_of(config, extent):
    """The grid's boxes in order; those of `fake.leave_out` (fractions of the image: y and x of a corner) are not there."""
    size, stride = ([1] * (3 - len(each)) + list(each) for each in (config["patch"]["size"], config["sampling"].get("stride", config["patch"]["size"])))
    cells = [max(0, -(-(whole - n) // step)) + 1 for whole, n, step in zip(extent, size, stride)]
    found = [(*(i * step for i, step in zip(index, stride)), *size) for index in numpy.ndindex(*cells)]
    limit = config["fake"].get("leave_out")
    return [box for box in found if limit is None or box[1] < limit[0] * extent[1] or box[2] < limit[1] * extent[2]]


class Unit:
    def __init__(self, units, number, image, boxes, first):
        self._units, self.number, self.image, self.patches, self._boxes, self._first = units, number, image, len(boxes), boxes, first
        self.band, self.bands = number - units.images[image]["units"][0], units.images[image]["units"][1]

    def __iter__(self):
        config = self._units.config
        pixels, count = pixels_of(self.image, config["fake"]["images"][self.image]), config["batch"]["global_size"]
        size = self._boxes[0][3:] if self._boxes else ()
        padded = numpy.pad(pixels, [(0, n) for n in size] + [(0, 0)], constant_values=255) if self._boxes else None
        for first in range(0, len(self._boxes), count):
            boxes = self._boxes[first:first + count]
            image = numpy.stack([padded[z:z + d, y:y + h, x:x + w] for z, y, x, d, h, w in boxes])
            ordinals = numpy.arange(self._first + first, self._first + first + len(boxes))
            yield {"image": image if len(config["patch"]["size"]) == 3 else image[:, 0], "ordinal": ordinals,
                   "box": numpy.array(boxes), "level": numpy.zeros(len(boxes), numpy.int32),
                   "image_index": numpy.full(len(boxes), self.image, numpy.int32)}

    def finish(self):
        self._units.end(self.number, "done")

    def fail(self, reason):
        self._units.end(self.number, reason)


class UnitLost(Exception):
    pass


class Units:
    def __init__(self, config, **arguments):
        self.config = load_config(config)
        self.folder, self.arguments, fake = self.config["fake"]["folder"], arguments, self.config["fake"]
        os.makedirs(self.folder, exist_ok=True)
        boxes, self._cuts = [boxes_of(self.config, extent) for extent in fake["images"]], []
        self.description = {"plan": "ab" * 32, "mapped_images": len(fake["images"]), "outputs": self.config["outputs"]}
        self.images = [{"slide_id": f"slide {i}", "path": f"/slides/{i}.svs", "level_sizes": [list(extent)], "downsamples": [1.0],
                        "mpp": fake.get("mpp"), "spacing": fake.get("spacing"), **fake.get("record", {})} for i, extent in enumerate(fake["images"])]
        for image, record in enumerate(self.images):  # `fake.band`: patches of a band
            ends = range(0, len(boxes[image]), fake.get("band", len(boxes[image])))
            record["units"] = [len(self._cuts), len(ends)]
            self._cuts += [(image, boxes[image][at:at + ends.step], sum(map(len, boxes[:image])) + at) for at in ends]
        self._locks = {}

    def _path(self, number, end):
        return os.path.join(self.folder, f"{number}.{end}")

    def __iter__(self):
        order = list(range(len(self._cuts)))
        if self.config["fake"].get("backwards"):
            order.reverse()
        while True:
            left = [number for number in order if not os.path.exists(self._path(number, "end"))]
            if not left:
                return
            for number in left:
                if self._claim(number):
                    yield Unit(self, number, *self._cuts[number])
                    os.close(self._locks.pop(number))
            time.sleep(0.01)

    def _claim(self, number):
        lock = os.open(self._path(number, "lock"), os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return False
        self._locks[number] = lock
        if os.path.exists(self._path(number, "end")):
            os.close(self._locks.pop(number))
            return False
        return True

    def end(self, number, how):
        aside = self._path(number, f"aside-{os.getpid()}")
        with open(aside, "w", encoding="utf-8") as file:
            file.write(how)
        os.rename(aside, self._path(number, "end"))

    def skip(self, done, failed):
        for number, how in {**dict.fromkeys(done, "done"), **failed}.items():
            self.end(number, how)

    def progress(self):
        ends = {number: pathlib.Path(self._path(number, "end")) for number in range(len(self._cuts))}
        said = {number: path.read_text(encoding="utf-8") for number, path in ends.items() if path.exists()}
        return len(said), {number: text for number, text in said.items() if text != "done"}

    def close(self):
        pass


def load_config(config):
    if not isinstance(config, dict):
        with open(config, encoding="utf-8") as file:
            config = json.load(file)
    return config


def install():
    """Puts this in the place of patchbay._units, and JSON files in the place of run configs."""
    import patchbay
    module = types.ModuleType("patchbay._units")
    module.Units, module.UnitLost = Units, UnitLost
    sys.modules["patchbay._units"] = patchbay._units = module
    from patchbay.map import run
    run._whole_config = lambda config, overrides, split: load_config(config)
