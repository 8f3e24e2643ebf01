"""A PNG of scores on the grid, one colour scale for all images: transparent where no patch lies."""
import os
import struct
import zlib

import numpy

_SIDE = 1024  # the longer side of the picture, at least, unless the grid is larger
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
                   + _chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)) + _chunk(b"IEND", b""))


def draw(folder, name, plane):
    """`NAME.png` of scores (y, x)."""
    times = max(1, _SIDE // max(plane.shape))
    write_png(os.path.join(folder, name + ".png"), colours(plane).repeat(times, axis=0).repeat(times, axis=1))
