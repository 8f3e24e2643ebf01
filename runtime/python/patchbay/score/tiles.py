"""Level 0 of a map, read tile by tile: the arrays that map/zarr_array.py writes, and no others."""
import functools
import itertools
import os
import zlib

import numpy

from ..map.blend import FLAT_TILE, UNCOVERED, VOLUME_TILE
from ..map.zarr_array import chunks_per_shard, crc32c, document_of
from .folder import damaged

_CACHED_BYTES, _OPEN_SHARDS = 96 << 20, 64
_MOST_PIXELS = 1 << 40
_NOWHERE = 0xFFFFFFFFFFFFFFFF


class TiledArray:
    """`extent` is z, y, x. The axes are c of a map's probabilities, z of a volume, y and x."""

    def __init__(self, folder, names, channels, dtype, volume):
        """channels: None for a class map."""
        self._folder, self._names, self._dtype, self._flat = folder, (*names, "0"), numpy.dtype(dtype), not volume
        self.axes = (*(("c",) if channels else ()), *(("z", "y", "x") if volume else ("y", "x")))
        self._tile, self._per_shard = VOLUME_TILE if volume else FLAT_TILE, chunks_per_shard(self.axes)
        self._nothing = numpy.nan if self._dtype.kind == "f" else UNCOVERED
        self.scale = self._scale()
        shape = self._shape(channels)
        self.extent = (1, *shape[-2:]) if self._flat else tuple(shape[-3:])
        tile_bytes = int(numpy.prod(self._tile)) * self._dtype.itemsize
        self._read = functools.lru_cache(_CACHED_BYTES // tile_bytes)(self._read_tile)
        self._shards = {}

    def _scale(self):
        """(step, shift) of the pixels, z, y, x."""
        path = (*self._names[:-1], "zarr.json")
        found = self._folder.json(*path)
        try:
            transforms = found["attributes"]["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"]
            values = [[float(value) for value in each[kind]] for each, kind in zip(transforms, ("scale", "translation"))]
            if [len(each) for each in values] != [len(self.axes)] * 2:
                raise ValueError("another number of axes")
            self.unit = found["attributes"]["ome"]["multiscales"][0]["axes"][-1].get("unit")
            return [each[-2:] if self._flat else each[-3:] for each in values]
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise damaged(os.path.join(self._folder.path, *path), f"no scale of a map: {error}") from error

    def _shape(self, channels):
        path = (*self._names, "zarr.json")
        found = self._folder.json(*path)
        shape = found.get("shape")
        is_shape = isinstance(shape, list) and len(shape) == len(self.axes) and all(type(n) is int and 0 < n < _MOST_PIXELS for n in shape)
        fill = "NaN" if self._dtype.kind == "f" else UNCOVERED
        if not is_shape or (channels and shape[0] != channels) or found != document_of(shape, self._tile, self._dtype, fill, self.axes):
            raise damaged(os.path.join(self._folder.path, *path), f"shape {shape}: not an array as map writes it for this output")
        return shape

    def region(self, front, first, end):
        """The pixels from `first` to `end`, z, y, x, which lie inside; `front`: (channel,), or () of a class map."""
        values = numpy.full([b - a for a, b in zip(first, end)], self._nothing, self._dtype)
        for index in itertools.product(*(range(a // n, -(-b // n)) for a, b, n in zip(first, end, self._tile))):
            tile = self._read((*front, *index))
            if tile is None:
                continue
            corner = [i * n for i, n in zip(index, self._tile)]
            start, stop = [max(a, c) for a, c in zip(first, corner)], [min(b, c + n) for b, c, n in zip(end, corner, self._tile)]
            values[tuple(slice(a - at, b - at) for a, b, at in zip(start, stop, first))] = tile[
                tuple(slice(a - c, b - c) for a, b, c in zip(start, stop, corner))]
        return values

    def close(self, most=0):
        """Lets go of tiles, and of all files but `most`, the latest."""
        self._read.cache_clear()
        while len(self._shards) > most:
            file, _ = self._shards.pop(next(iter(self._shards)))
            if file is not None:
                file.close()

    def _shard(self, place):
        """(file, places of its chunks); no file where nothing of it is covered."""
        if place not in self._shards:
            if len(self._shards) == _OPEN_SHARDS:
                self.close(_OPEN_SHARDS // 2)
            self._shards[place] = self._open_shard(self._names_of(place))
        return self._shards[place]

    def _names_of(self, shard):
        return (*self._names, "c", *map(str, shard[:-3] + shard[-2 if self._flat else -3:]))

    def _open_shard(self, names):
        file = self._folder.open(*names)
        if file is None:
            return None, None
        size = 16 * int(numpy.prod(self._per_shard)) + 4
        file.seek(max(0, file.seek(0, os.SEEK_END) - size))
        content = file.read(size)
        if len(content) != size or crc32c(content[:-4]) != int.from_bytes(content[-4:], "little"):
            file.close()
            raise damaged(os.path.join(self._folder.path, *names), "its index of chunks is damaged")
        return file, numpy.frombuffer(content[:-4], "<u8").reshape(*self._per_shard, 2)

    def _read_tile(self, key):
        """The tile (..., z, y, x); None where nothing of it is covered."""
        shard = (*key[:-3], *(i // n for i, n in zip(key[-3:], self._per_shard)))
        file, index = self._shard(shard)
        if file is None:
            return None
        offset, size = map(int, index[tuple(i % n for i, n in zip(key[-3:], self._per_shard))])
        if offset == size == _NOWHERE:
            return None
        pixels = int(numpy.prod(self._tile)) * self._dtype.itemsize
        try:
            if size > 2 * pixels + 1024 or offset >= 1 << 62:
                raise ValueError("its place is none")
            unpacker = zlib.decompressobj(31)
            content = unpacker.decompress(os.pread(file.fileno(), size, offset), pixels + 1)
            if len(content) != pixels or not unpacker.eof:
                raise ValueError(f"it is not {pixels} bytes")
        except (zlib.error, ValueError) as error:
            raise damaged(os.path.join(self._folder.path, *self._names_of(shard)), f"chunk {key}: {error}") from error
        return numpy.frombuffer(content, self._dtype.newbyteorder("<")).reshape(self._tile)
