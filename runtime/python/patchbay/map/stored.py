"""A map of a volume on the voxels of its store: blended probabilities, interpolated before the classes are decided."""
import numpy

from .blend import UNCOVERED
from .pyramid import classes_of

_WHOLE = 256  # weights are multiples of 1 / _WHOLE: sums of three axes' are exact in float64


def neighbours(count, have, ratio):
    """For `count` voxels along an axis the indices of the two pixels around each, among `have`, and the weight of the second.

    ratio: (n, d); a pixel is n / d voxels long. Both begin at the same edge; beyond the outermost centres these are repeated.
    """
    n, d = ratio
    place = (2 * numpy.arange(count, dtype=numpy.int64) + 1) * d - n  # in units of 1 / (2 n) pixels
    lower = place // (2 * n)
    weight = ((place - lower * 2 * n) * _WHOLE + n) // (2 * n)
    return numpy.clip(lower, 0, have - 1), numpy.clip(lower + 1, 0, have - 1), weight


def _between(values, axis, around):
    """`values` interpolated along `axis`: sums of weight x value, of weights _WHOLE in all."""
    lower, upper, weight = around
    weight = weight.reshape([-1 if each == axis else 1 for each in range(values.ndim)])
    return values.take(lower, axis) * (_WHOLE - weight) + values.take(upper, axis) * weight


class StoredGrid:
    """Takes Blend's tiles in the order of its rows, and puts tiles of the store's voxels into a pyramid.

    Memory holds two rows of tiles. A voxel is covered where covered pixels have half of its weight or more; others count nothing.
    """

    def __init__(self, pyramid, output, place, size, tile):
        """place: a geometry.ImagePlace. size: of the function's patches, z, y, x."""
        self._pyramid, self._output, self._tile = pyramid, output, tile
        self._fill = numpy.nan if output.dtype == "float16" else UNCOVERED
        self._have, self._want = place.extent_in(size), place.extent_stored
        self._around = [neighbours(want, have, ratio) for want, have, ratio in zip(self._want, self._have, place.stored_per_pixel(size))]
        self._slabs, self._next = {}, 0  # planes of a row of tiles, by the row; the next row to make

    def _slab(self, row):
        if row not in self._slabs:
            depth = min(self._tile[0], self._have[0] - row * self._tile[0])
            self._slabs[row] = numpy.full((len(self._output.classes), depth, *self._have[1:]), self._fill, self._output.dtype)
        return self._slabs[row]

    def needs_values(self, _):
        return True

    def put(self, tile, values, *_):
        y, x = (index * n for index, n in zip(tile[1:], self._tile[1:]))
        self._slab(tile[0])[:, :, y:y + values.shape[2], x:x + values.shape[3]] = values

    def pass_to(self, origin, _):
        """Makes the rows of which patches from `origin` (z, y, x) on reach no pixel."""
        self._make(max(0, origin[0]) // self._tile[0])

    def close(self):
        self._make(-(-self._have[0] // self._tile[0]))
        self._pyramid.close()

    def abandon(self):
        self._pyramid.abandon()

    def _make(self, done):
        """Makes the rows of tiles that need no pixel outside of the first `done` rows."""
        depth = self._tile[0]
        while self._next * depth < self._want[0]:
            z = [each[self._next * depth:(self._next + 1) * depth] for each in self._around[0]]
            first, last = z[0][0] // depth, z[1][-1] // depth
            if last >= done:
                return
            self._make_row([self._slab(row) for row in range(first, last + 1)], (z[0] - first * depth, z[1] - first * depth, z[2]))
            self._next += 1
            for row in [row for row in self._slabs if row < z[0][-1] // depth]:
                del self._slabs[row]

    def _make_row(self, slabs, z):
        for y, x in numpy.ndindex(*(-(-n // tile) for n, tile in zip(self._want[1:], self._tile[1:]))):
            cut = [slice(index * n, (index + 1) * n) for index, n in zip((y, x), self._tile[1:])]
            flat = [[each[part] for each in axis] for axis, part in zip(self._around[1:], cut)]
            inside = [slice(axis[0][0], axis[1][-1] + 1) for axis in flat]
            pixels = numpy.concatenate([slab[:, :, inside[0], inside[1]] for slab in slabs], axis=1)
            near = [(axis[0] - part.start, axis[1] - part.start, axis[2]) for axis, part in zip(flat, inside)]
            self._pyramid.put((self._next, y, x), *self._voxels(pixels, (z, *near)))

    def _voxels(self, pixels, around):
        """The values of a tile, and its classes or None."""
        known = ~numpy.isnan(pixels[:1]) if self._output.dtype == "float16" else pixels[:1] != UNCOVERED
        total, weight = numpy.where(known, pixels, 0).astype(numpy.float64), known.astype(numpy.float64)
        for axis, near in enumerate(around, 1):
            total, weight = _between(total, axis, near), _between(weight, axis, near)
        covered = 2 * weight >= _WHOLE ** 3
        values = numpy.where(covered, total / numpy.maximum(weight, 1), self._fill)
        if self._output.dtype == "uint8":
            values = numpy.floor(values + 0.5)
        values = values.astype(self._output.dtype)
        return values, classes_of(self._output, values)
