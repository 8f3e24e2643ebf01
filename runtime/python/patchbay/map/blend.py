"""Overlapping probabilities of one image, blended in integers, tile by tile.

A patch adds probability x weight, both integers, to the tiles that it touches: the patches of a batch together, tile by tile, so
that sums are read from memory once. A tile is finished as soon as no later patch can reach it: patches come in the order of the
grid, so that what lies above and to the left of the next one is done. So memory holds about one step of the grid in rows of the
image, whatever its height. The weights of a tile follow from the places of its patches, and are those of most other tiles.
"""
import math

import numpy

from .._extension import BLEND_MOST_WEIGHT, BLEND_WHOLE, blend_add, blend_finish, blend_weigh
from .. import errors

SIGMA = 0.125  # part of the patch's side, as MONAI and nnU-Net have it
LEAST = 1e-3  # the least weight, as MONAI has it
UNCOVERED = 255
FLAT_TILE, VOLUME_TILE = (1, 128, 256), (32, 64, 64)
_WEIGHTS_KEPT = 16  # sums of weights of tiles: more mean fewer that are added up again where patches are missing


class ProbabilityError(ValueError):
    """A value is not within 0 and 1."""


def gaussian(size):
    """The importance of every pixel of a patch (z, y, x), as MONAI weighs them: float64, 1 at most."""
    sides = [[math.exp(-0.5 * ((i - (n - 1) / 2) / (SIGMA * n)) ** 2) for i in range(n)] for n in size]
    z, y, x = (numpy.array(side) for side in sides)
    weights = z[:, None, None] * y[None, :, None] * x[None, None, :]
    return numpy.maximum(weights, max(float(weights.min()), LEAST))


def _most_overlapping(weights, stride):
    """The largest sum of weights at one pixel of a grid of that stride."""
    for axis, step in enumerate(stride):
        count = -(-weights.shape[axis] // step)
        pad = [(0, 0)] * 3
        pad[axis] = (0, count * step - weights.shape[axis])
        shape = list(weights.shape)
        shape[axis:axis + 1] = [count, step]
        weights = numpy.pad(weights, pad).reshape(shape).sum(axis=axis)
    return float(weights.max())


def table(blend, size, stride):
    """Integer weights (1, z, y, x) of a patch, so great that the sums on a grid of that stride just fit."""
    if blend == "gaussian":
        exact = gaussian(size)
        # Origins that are rounded to pixels move by half a pixel: a part in a hundred is kept free.
        scale = 0.99 * BLEND_MOST_WEIGHT / _most_overlapping(exact, stride)
        weights = numpy.rint(exact * scale).astype(numpy.uint32)
        if weights.min() == 0:
            raise errors.ConfigError(f"blend: patches of {size} overlap too much at a stride of {stride}: use a greater stride")
    else:
        weights = numpy.ones(size, numpy.uint32)
    return weights[None]


def is_done(end, origin, step, flat):
    """Whether what ends at `end` (z, y, x) is out of reach for patches from `origin` on; with the grid's step for y and x, for
    those behind it. A flat image has one z."""
    above = not flat and end[0] <= origin[0]
    return (flat or end[0] <= origin[0] + step[0]) and (
        above or (end[1] <= origin[1] + step[1] and (end[1] <= origin[1] or end[2] <= origin[2] + step[2])))


class TileSums:
    """The sums of a tile, (channel, z, y, x), and the places of its patches: (origin in the tile, first, end). The last ones, with
    these numbers in the batch, are not in the sums yet."""

    def __init__(self, values):
        self.values, self.places, self.numbers = values, [], []


class Blend:
    """The sums of one image. `sink.put(tile, values, classes)` gets every finished tile: its index (z, y, x); uint8 or float16
    values (channel, z, y, x), as far as the image goes; and its class map or None. `sink.pass_to(origin, step)` is called when a
    row of patches begins, for is_done."""

    def __init__(self, output, place, size, sink, tile, scratch):
        """place: a geometry.ImagePlace. size: of the function's patches, z, y, x. scratch: a scratch.Scratch."""
        self.output, self.extent, self.size, self._sink, self.tile = output, place.extent_in(size), size, sink, tile
        self._flat, self._scratch = tile[0] == 1, scratch
        self._step, self._most = place.step(size)
        self._weights, self._weighed = table(output.blend, size, self._step), {}
        self._sums, self._free, self._last, self._batch = {}, [], None, None

    def window(self, origin):
        """(first, end) of the pixels of a patch that count; all, or with `center` those nearer to its centre than to that of
        any neighbour of the grid, and at the image's border the others too."""
        first, end = [0, 0, 0], list(self.size)
        if self.output.blend == "center":
            for axis in range(3):
                n, step = self.size[axis], self._most[axis]
                if step < n and origin[axis] > 0:
                    first[axis] = (n - step) // 2
                if step < n and origin[axis] + n < self.extent[axis]:
                    end[axis] = (n - step) // 2 + step
        first = [max(a, -at) for a, at in zip(first, origin)]
        end = [min(b, whole - at) for b, whole, at in zip(end, self.extent, origin)]
        return tuple(first), tuple(end)

    def add(self, origins, batch):
        """Patches at `origins` (z, y, x), which may reach past the image; float32 (patch, channel, z, y, x), from 0 to 1."""
        self._batch = batch
        for number, origin in enumerate(origins):
            self._add_patch(number, origin)
        for sums in self._sums.values():
            self._add_up(sums)
        self._batch = None

    def _add_patch(self, number, origin):
        if self._last is not None and origin[:2] != self._last[:2]:
            row = (self._step[0], 0, 0)
            self._finish([tile for tile in self._sums if is_done(self._end(tile), origin, row, self._flat)])
            self._sink.pass_to(origin, row)
        first, end = self.window(origin)
        touched = []
        if all(a < b for a, b in zip(first, end)):
            touched = list(self._tiles([a + at for a, at in zip(first, origin)], [b + at for b, at in zip(end, origin)]))
        for tile in touched:
            sums = self._sums_of(tile)
            sums.numbers.append(number)
            sums.places.append((tuple(at - index * n for at, index, n in zip(origin, tile, self.tile)), first, end))
        self._last = origin
        self._finish([tile for tile in touched if is_done(self._end(tile), origin, self._step, self._flat)])

    def _tiles(self, first, end):
        ranges = [range(a // n, -(-b // n)) for a, b, n in zip(first, end, self.tile)]
        return ((z, y, x) for z in ranges[0] for y in ranges[1] for x in ranges[2])

    def _add_up(self, sums):
        """Adds the patches of the batch that wait."""
        if sums.numbers:
            if not blend_add(sums.values, self._batch, self._weights, sums.numbers, sums.places[-len(sums.numbers):]):
                raise ProbabilityError
            sums.numbers = []

    def _sums_of(self, tile):
        if tile not in self._sums:
            self._sums[tile] = TileSums(self._free.pop() if self._free else self._scratch.take((len(self.output.classes), *self.tile)))
        return self._sums[tile]

    def _taken(self, tile):
        """The whole sums of a tile, which is no longer among the others."""
        sums = self._sums.pop(tile)
        self._add_up(sums)
        return sums

    def _weights_at(self, places):
        """The sums of weights (1, z, y, x) of patches at `places`."""
        key = tuple(sorted(places))
        if key not in self._weighed:
            if len(self._weighed) == _WEIGHTS_KEPT:
                del self._weighed[next(iter(self._weighed))]
            self._weighed[key] = numpy.zeros((1, *self.tile), numpy.uint32)
            if not blend_weigh(self._weighed[key], self._weights, places):
                raise errors.ConfigError(f"blend: {self.output.name}: more patches lie on one pixel than a grid of step "
                                         f"{self._step} has")
        return self._weighed[key]

    def _end(self, tile):
        return [(index + 1) * n for index, n in zip(tile, self.tile)]

    def _finish(self, tiles):
        for tile in sorted(tiles):
            sums = self._taken(tile)
            weights = self._weights_at(sums.places)
            cut = (slice(None), *(slice(min(n, whole - index * n)) for index, n, whole in zip(tile, self.tile, self.extent)))
            classes = None
            if self.output.class_map is not None:
                classes = class_of(self.output.class_map, sums.values[cut], weights[cut][0] > 0, BLEND_WHOLE, weights[cut][0])
            values = numpy.empty(sums.values.shape, self.output.dtype)
            blend_finish(sums.values, weights, bits_of(values))
            self._free.append(sums.values)
            self._sink.put(tile, values[cut], classes)

    def end(self):
        """Finishes what is left."""
        self._finish(list(self._sums))


def bits_of(values):
    """uint8 as it is, float16 as the extension has it."""
    return values if values.dtype == numpy.uint8 else values.view(numpy.uint16)


def class_of(class_map, values, covered, whole, weights=1):
    """uint8 classes of values (channel, ...): the index of the greatest, of equal ones the first. With thresholds 1 + the index
    of the greatest of those that reach their threshold, and 0 where none does. UNCOVERED where `covered` is false. A value of
    probability 1 is `whole` x `weights`; with an integer `whole` thresholds are rounded as probabilities are."""
    if class_map == "argmax":
        found = _greatest(values)
    else:
        values = values.astype(numpy.float64)
        for channel, threshold in enumerate(class_map):
            limit = int(threshold * whole + 0.5) if isinstance(whole, int) else threshold * whole
            values[channel][values[channel] < limit * weights] = -1.0
        found = _greatest([numpy.full(values.shape[1:], -1.0), *values])
    found[~covered] = UNCOVERED
    return found


def _greatest(channels):
    """The index of the greatest, of equal ones the first: as numpy.argmax, which takes ten times as long along the first axis."""
    most, found = channels[0], numpy.zeros(channels[0].shape, numpy.uint8)
    for number, channel in enumerate(channels[1:], 1):
        found[channel > most] = number
        most = numpy.maximum(most, channel)
    return found
