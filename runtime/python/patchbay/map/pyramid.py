"""OME-Zarr pyramids (NGFF 0.5) of a blended map: probabilities, and its class map where one is asked for.

Four tiles (eight of a volume) make one of the next level as soon as all of them are there, so that memory holds a row of
tiles a level. Means leave out pixels that no patch covered.
"""
import collections
import concurrent.futures
import dataclasses
import os

import numpy

from . import heat, ngff
from .._extension import blend_halve
from .blend import UNCOVERED, bits_of, class_of, is_done
from .zarr_array import ZarrArray

_SMALLEST = 256  # the last level has no longer side
_ENCODERS, _WAITING = 2, 3  # threads; jobs that wait for them
_TILES = 4  # tiles of a job: more mean fewer wake-ups of threads, and more memory


def halved(extent):
    """The next level's extent; axes of one pixel stay."""
    return tuple(-(-n // 2) for n in extent)


def above(tile):
    """The next level's tile that has this one as a part."""
    return tuple(index // 2 for index in tile)


def levels_of(extent):
    levels = [tuple(extent)]
    while max(levels[-1]) > _SMALLEST:
        levels.append(halved(levels[-1]))
    return levels


def reduced(values):
    """Means of 2 x 2 pixels (2 x 2 x 2, of more than one plane), of those that are covered; integers nearest, halves up."""
    means = numpy.empty((len(values), *halved(values.shape[1:])), values.dtype)
    blend_halve(bits_of(numpy.ascontiguousarray(values)), bits_of(means))
    return means


def classes_of(output, values):
    """The class map of stored values (channel, z, y, x); None where the output has none."""
    if output.class_map is None:
        return None
    covered = ~numpy.isnan(values[0]) if values.dtype.kind == "f" else values[0] != UNCOVERED
    return class_of(output.class_map, numpy.nan_to_num(values), covered, 254 if values.dtype.kind == "u" else 1.0)


def shown_of(output, values, classes):
    """Values of a picture: the probability of one class; of several the class, 1 for the last. NaN is the first one of argmax,
    none of them by thresholds, and not covered."""
    covered = ~numpy.isnan(values[0]) if values.dtype.kind == "f" else values[0] != UNCOVERED
    if len(values) == 1:
        return numpy.where(covered, values[0] / (254 if values.dtype.kind == "u" else 1), numpy.nan)
    index = classes if classes is not None else numpy.nan_to_num(values).argmax(axis=0)
    last = len(values) - (1 if output.class_map in (None, "argmax") else 0)
    return numpy.where(covered & (index > 0), index / last, numpy.nan)


def _encoded(tiles):
    return [(array, tile, array.encoded(values) if chunks is None else chunks) for array, tile, values, chunks in tiles]


@dataclasses.dataclass(frozen=True)
class Packed:
    """A tile of a level whose chunks are known, of values and classes as ZarrArray.encoded has them. part: it as a part of the next
    level; None where that one's tile comes packed too."""
    level: int
    chunks: list
    part: object


class _Level:
    """Arrays of one level, and the tiles of the level above that wait for their other parts."""

    def __init__(self, values, classes, extent):
        self.values, self.classes, self.extent = values, classes, extent
        self.waiting = {}  # tile -> [its values, how many parts it still needs]


class Pyramid:
    """`NAME.ome.zarr`, and `NAME.classes.ome.zarr` with a class map, in `folder`; `put` takes Blend's tiles in any order."""

    def __init__(self, folder, output, extent, tile, scale):
        """scale: a geometry.Scale of the map's pixels. A flat map has a tile of one plane, and `shown`, the values of its picture
        (y, x), one for `shown_step` of its pixels."""
        volume = tile[0] > 1
        self._output, self._tile, self._volume = output, tile, volume
        self._pool = concurrent.futures.ThreadPoolExecutor(_ENCODERS)
        self._tiles, self._queue = [], collections.deque()
        axes = ("z", "y", "x") if volume else ("y", "x")
        path = os.path.join(folder, output.name + ".ome.zarr")
        class_path = os.path.join(folder, output.name + ".classes.ome.zarr")
        fill = "NaN" if output.dtype == "float16" else UNCOVERED
        self._levels = []
        for number, level in enumerate(levels_of(extent)):
            shape = level if volume else level[1:]
            values = ZarrArray(f"{path}/{number}", (len(output.classes), *shape), tile, output.dtype, fill, ("c", *axes))
            classes = None
            if output.class_map is not None:
                classes = ZarrArray(f"{class_path}/{number}", shape, tile, "uint8", UNCOVERED, axes)
            self._levels.append(_Level(values, classes, level))
        extents = [level.extent for level in self._levels]
        small = next(number for number, one in enumerate(extents) if max(one) <= heat.SIDE)
        self.shown, self.shown_step = None if volume else numpy.full(extents[small][1:], numpy.nan, numpy.float32), 2 ** small
        ngff.write_group(path, ("c", *axes), extents, scale, {
            "classes": list(output.classes), "uncovered": fill, "one": 254 if output.dtype == "uint8" else 1})
        if output.class_map is not None:
            names = output.classes if output.class_map == "argmax" else ("none of them", *output.classes)
            ngff.write_group(class_path, axes, extents, scale, {"classes": list(names), "uncovered": UNCOVERED})

    def needs_values(self, number):
        """Whether put needs the values of a Packed tile of a level: they are shown."""
        return self.shown is not None and self.shown_step == 2 ** number

    def put(self, tile, values, classes, packed=None):
        """A finished tile of level 0, or a Packed one."""
        if packed is None:
            self._put(0, tile, values, classes)
            return
        level = self._levels[packed.level]
        if values is not None:
            self._show(tile, values, classes)
        for array, chunks in zip((level.values, level.classes), packed.chunks):
            self._write(array, tile, None, chunks)
        if packed.part is not None:
            self._raise_to(packed.level + 1, tile, packed.part)

    def _show(self, tile, values, classes):
        y, x = (index * n for index, n in zip(tile[1:], self._tile[1:]))
        self.shown[y:y + values.shape[2], x:x + values.shape[3]] = shown_of(self._output, values, classes)[0]

    def _put(self, number, tile, values, classes):
        level = self._levels[number]
        if self.needs_values(number):
            self._show(tile, values, classes)
        self._write(level.values, tile, values)
        if classes is not None:
            self._write(level.classes, tile, classes)
        if number + 1 < len(self._levels):
            self._raise_to(number + 1, tile, reduced(values))

    def _write(self, array, tile, values, chunks=None):
        self._tiles.append((array, tile, values, chunks))
        if len(self._tiles) == _TILES:
            self._encode()

    def _encode(self):
        self._queue.append(self._pool.submit(_encoded, self._tiles))
        self._tiles = []
        while len(self._queue) > _WAITING:
            self._write_first()

    def _write_first(self):
        for array, tile, chunks in self._queue.popleft().result():
            for front, content in chunks:
                array.put(front, tile, content)

    def _raise_to(self, number, tile, part):
        """Puts a part into its tile of a coarser level."""
        level = self._levels[number]
        parent = above(tile)
        if parent not in level.waiting:
            inside = [min(n, whole - index * n) for index, n, whole in zip(parent, self._tile, level.extent)]
            empty = numpy.full((len(part), *inside), numpy.nan if part.dtype.kind == "f" else UNCOVERED, part.dtype)
            level.waiting[parent] = [empty, self._parts(number, parent)]
        whole = level.waiting[parent]
        start = [0 if n == 1 and not self._volume else index % 2 * (n // 2) for index, n in zip(tile, self._tile)]
        whole[0][(slice(None), *(slice(at, at + n) for at, n in zip(start, part.shape[1:])))] = part
        whole[1] -= 1
        if whole[1] == 0:
            self._finish(number, parent)

    def pass_to(self, origin, step):
        """Finishes what patches from `origin` (z, y, x) on do not reach any more: parts that it waits for were not covered."""
        for number in range(1, len(self._levels)):
            side = [n * 2 ** number for n in self._tile[1:]]
            depth = self._tile[0] * 2 ** number if self._volume else 1
            for tile in sorted(self._levels[number].waiting):
                if is_done([(index + 1) * n for index, n in zip(tile, (depth, *side))], origin, step, not self._volume):
                    self._finish(number, tile)

    def _parts(self, number, parent):
        """How many tiles of the level below a tile has."""
        count = 1
        for index, n, whole in zip(parent, self._tile, self._levels[number - 1].extent):
            count *= min(2, -(-whole // n) - 2 * index)
        return count

    def _finish(self, number, tile):
        values, _ = self._levels[number].waiting.pop(tile)
        self._put(number, tile, values, classes_of(self._output, values))

    def close(self):
        """Finishes tiles of which parts were never covered, and all files."""
        for number in range(1, len(self._levels)):
            for tile in sorted(self._levels[number].waiting):
                self._finish(number, tile)
        self._encode()
        while self._queue:
            self._write_first()
        self._pool.shutdown()
        for level in self._levels:
            level.values.close()
            if level.classes is not None:
                level.classes.close()

    def abandon(self):
        """Lets go of the threads; the folder is removed by who made it."""
        self._queue.clear()
        self._pool.shutdown(cancel_futures=True)
