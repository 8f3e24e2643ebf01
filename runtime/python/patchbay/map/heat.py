"""PNGs of what was found: values in one colour scale for all images, half over the slide as its patches show it."""
import os
import struct
import sys
import zlib

import numpy

from .returned import array_of

SIDE = 1024  # the longer side of a picture, at most
# Five colours of a scale that rises evenly in lightness, also in grey.
_STOPS = numpy.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]], numpy.float64)


def colours(values):
    """RGBA of values; 0 and below is the first colour, 1 and above the last, NaN is transparent."""
    known = ~numpy.isnan(values)
    place = numpy.clip(numpy.where(known, values, 0), 0, 1).astype(numpy.float64) * (len(_STOPS) - 1)
    low = numpy.minimum(place.astype(int), len(_STOPS) - 2)
    part = (place - low)[..., None]
    rgb = numpy.rint(_STOPS[low] * (1 - part) + _STOPS[low + 1] * part)
    alpha = numpy.where(known, 255, 0)[..., None]
    return numpy.concatenate([rgb, alpha], axis=-1).astype(numpy.uint8)


def _chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def write_png(path, rgba):
    height, width, _ = rgba.shape
    rows = numpy.concatenate([numpy.zeros((height, 1), numpy.uint8), rgba.reshape(height, -1)], axis=1)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0))
                   + _chunk(b"IDAT", zlib.compress(rows.tobytes(), 1)) + _chunk(b"IEND", b""))


def _view(array):
    """The pixels of a batch without a copy, as NumPy's or torch's; None where neither can have them."""
    for module in (numpy, sys.modules.get("torch")):
        try:
            return module.from_dlpack(array)
        except (AttributeError, TypeError, ValueError, RuntimeError, BufferError):
            pass
    return None


def _sums(values):
    """Sums of 2 x 2."""
    return sum(values[y::2, x::2].astype(numpy.float32) for y in (0, 1) for x in (0, 1))


class Thumbnail:
    """A slide as its patches show it, one after another: means of 2 x 2 samples, which are every n-th pixel of a patch."""

    def __init__(self, place):
        """place: a geometry.ImagePlace."""
        self._place, self._size = place, place.grid.size
        extent = place.extent_in(self._size)[1:]
        self.step = -(-max(extent) // (2 * SIDE))  # pixels of a patch from sample to sample
        self._shape = tuple(-(-n // self.step) for n in extent)
        self._even = tuple(n + n % 2 for n in self._shape)
        self._samples, self._known, self._picture = None, numpy.zeros(self._even, bool), None

    def add(self, boxes, image):
        """The patches of a batch; of several that show a place the last one counts."""
        pixels = _view(image)
        if pixels is None:
            return
        front = () if tuple(pixels.shape[1:3]) == self._size[1:] else (slice(None),)  # planes of channels
        for number, box in enumerate(boxes):
            here, there = self._samples_of(self._place.origin(box, self._size)[1:])
            part = array_of(pixels[(number, *front, *there)])
            if self._samples is None:
                shape = (part.shape[0], *self._even) if front else (*self._even, part.shape[-1])
                whole = numpy.zeros(shape, part.dtype)
                self._samples = numpy.moveaxis(whole, 0, -1) if front else whole
            self._samples[here] = numpy.moveaxis(part, 0, -1) if front else part
            self._known[here] = True

    def _samples_of(self, origin):
        """The samples that a patch has, and where in the patch, both as slices (y, x)."""
        here, there = [], []
        for at, n, most in zip(origin, self._size[1:], self._shape):
            first = -(-max(at, 0) // self.step)
            count = max(0, min(most, -(-(at + n) // self.step)) - first)
            here.append(slice(first, first + count))
            there.append(slice(first * self.step - at, first * self.step - at + count * self.step, self.step))
        return tuple(here), tuple(there)

    def shown(self):
        """Arrays of a part of the image, for `lay` on the whole: the rows of samples that patches showed."""
        rows = numpy.flatnonzero(self._known.any(axis=1))
        cut = slice(rows[0], rows[-1] + 1) if len(rows) else slice(0)
        found = {"first": cut.start or 0, "known": self._known[cut]}
        return found if self._samples is None else {**found, "samples": self._samples[cut]}

    def lay(self, shown):
        if "samples" not in shown:
            return
        samples, known, first = shown["samples"], shown["known"], int(shown["first"])
        if self._samples is None:
            self._samples = numpy.zeros((*self._even, samples.shape[-1]), samples.dtype)
        there = slice(first, first + len(known))
        self._samples[there][known] = samples[known]
        self._known[there] |= known

    def rgba(self):
        """The whole picture (y, x, 4), transparent where no patch lies; None without pixels. Values of another type than uint8 are
        stretched from the channel's least to its greatest."""
        if self._picture is None and self._known.any():
            count = _sums(self._known)[..., None]
            values = _sums(self._samples) / numpy.maximum(count, 1)
            if self._samples.dtype != numpy.uint8:
                known = values[count[..., 0] > 0]
                low, high = known.min(axis=0), known.max(axis=0)
                values = (values - low) * (255 / numpy.maximum(high - low, 1e-12))
            colour = values if values.shape[-1] == 3 else values[..., :1].repeat(3, axis=-1)
            rgba = [numpy.where(count > 0, colour, 255), numpy.where(count > 0, 255, 0)]
            self._picture = numpy.concatenate(rgba, axis=-1).astype(numpy.uint8)
        return self._picture


def draw(folder, name, values, cells, thumbnail):
    """`NAME.png` of values (y, x), over a Thumbnail, or alone where it is None. cells: for y and x how many pixels of a patch a
    value has, and where the first begins; the outermost go on to the border."""
    under = None if thumbnail is None else thumbnail.rgba()
    if under is None:
        times = max(1, SIDE // max(values.shape))
        picture = colours(values).repeat(times, axis=0).repeat(times, axis=1)
    else:
        rows, columns = (numpy.clip(((2 * numpy.arange(n) + 1) * thumbnail.step - first) // side, 0, most - 1).astype(int)
                         for n, (side, first), most in zip(under.shape, cells, values.shape))
        over, picture = colours(values[rows[:, None], columns]), under.copy()
        shown = over[..., 3] > 0
        picture[shown, :3] = picture[shown, :3] // 2 + over[shown, :3] // 2
        picture[shown, 3] = 255
    write_png(os.path.join(folder, name + ".png"), picture)
