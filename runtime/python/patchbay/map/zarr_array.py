"""One Zarr v3 array, written chunk by chunk: gzip in shards, as `runtime/format/zarr`, zarr-python and TensorStore read it."""
import json
import math
import os
import struct
import zlib

import numpy

from .._extension import crc32c, deflate

_GZIP = bytes([31, 139, 8, 0, 0, 0, 0, 0, 4, 255])  # the head of a file, which was packed fast
_NOWHERE = 0xFFFFFFFFFFFFFFFF
_WAITING_BYTES = 4 << 20  # chunks are written together from there on: larger means fewer, longer writes


def encode(chunk):
    """The bytes of a chunk, little-endian gzip without a time."""
    plain = numpy.ascontiguousarray(chunk, chunk.dtype.newbyteorder("<")).reshape(-1).view(numpy.uint8)
    return b"".join((_GZIP, deflate(plain), struct.pack("<II", zlib.crc32(plain), len(plain))))


def chunks_per_shard(axes):
    """Along z, y, x."""
    return (4, 4, 4) if "z" in axes else (1, 16, 16)


def document_of(shape, tile, dtype, fill, axes):
    """The metadata of an array, as zarr.json has it."""
    flat, dtype = "z" not in axes, numpy.dtype(dtype)
    front = [1] * (len(shape) - (2 if flat else 3))
    chunk = [*front, *tile[flat:]]
    shard = [*front, *[n * times for n, times in zip(tile, chunks_per_shard(axes))][flat:]]
    order = [{"name": "bytes", "configuration": {"endian": "little"}}] if dtype.itemsize > 1 else [{"name": "bytes"}]
    index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
    return {
        "zarr_format": 3, "node_type": "array", "shape": list(shape), "data_type": dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shard}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": fill,
        "codecs": [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": chunk, "codecs": [*order, {"name": "gzip", "configuration": {"level": 1}}],
            "index_codecs": index, "index_location": "end"}}],
        "dimension_names": list(axes), "attributes": {}}


class ZarrArray:
    """An array (axes..., z, y, x) below `folder`. `tile` is the chunk's (z, y, x); further axes have chunks of 1. A flat one has
    no z."""

    def __init__(self, folder, shape, tile, dtype, fill, axes):
        self._folder, self._tile, self._dtype = os.fspath(folder), tile, numpy.dtype(dtype)
        self._flat = "z" not in axes
        self._per_shard = chunks_per_shard(axes)
        self._shape, self._axes, self._fill = shape, axes, fill
        self._indexes, self._ends = {}, {}  # by shard: (offset, bytes) of its chunks; its bytes
        self._waiting, self._waiting_bytes = {}, 0  # by shard: chunks that are not written; bytes of all
        os.makedirs(self._folder, mode=0o700)
        self._write_metadata()

    def _write_metadata(self):
        with open(os.path.join(self._folder, "zarr.json"), "w", encoding="utf-8") as file:
            json.dump(document_of(self._shape, self._tile, self._dtype, self._fill, self._axes), file, indent=1)

    def chunk_of(self, values):
        """The whole chunk of values that may be cut off by the array's end; None where it holds the fill value alone."""
        uncovered = numpy.isnan(values) if self._dtype.kind == "f" else values == self._fill
        if uncovered.all():
            return None
        if values.shape == self._tile:
            return values
        whole = numpy.full(self._tile, self._fill if self._dtype.kind != "f" else numpy.nan, self._dtype)
        whole[tuple(slice(n) for n in values.shape)] = values
        return whole

    def put_all(self, front, values):
        """An array (z, y, x) as a whole."""
        for index in numpy.ndindex(*(-(-whole // n) for whole, n in zip(values.shape, self._tile))):
            chunk = self.chunk_of(values[tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, self._tile))])
            if chunk is not None:
                self.put(front, index, encode(chunk))

    def encoded(self, values):
        """[(front, bytes)] of the chunks of one tile's values (front..., z, y, x), less those of the fill value alone."""
        chunks = ((front, self.chunk_of(values[front])) for front in numpy.ndindex(values.shape[:-3]))
        return [(front, encode(chunk)) for front, chunk in chunks if chunk is not None]

    def put(self, front, tile, content):
        """The encoded chunk of a tile; `front` are the indices of the axes before z, y, x. Each tile once."""
        shard, within = (*front, *(index // n for index, n in zip(tile, self._per_shard))), 0
        for at, n in zip(tile, self._per_shard):
            within = within * n + at % n
        index = self._indexes.get(shard)
        if index is None:
            index = self._indexes[shard] = numpy.full((math.prod(self._per_shard), 2), _NOWHERE, "<u8")
        index[within] = self._ends.get(shard, 0), len(content)
        self._ends[shard] = self._ends.get(shard, 0) + len(content)
        self._waiting.setdefault(shard, []).append(content)
        self._waiting_bytes += len(content)
        if self._waiting_bytes > _WAITING_BYTES:
            self._write()

    def _write(self):
        for shard, contents in self._waiting.items():
            path = self._path(shard)
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            with open(path, "ab") as file:
                file.writelines(contents)
        self._waiting, self._waiting_bytes = {}, 0

    def _path(self, place):
        keys = place[:-3] + (place[-2:] if self._flat else place[-3:])
        return os.path.join(self._folder, "c", *map(str, keys))

    def close(self):
        """Writes the index of every shard."""
        for shard, index in self._indexes.items():
            content = index.tobytes()
            self._waiting.setdefault(shard, []).append(content + crc32c(content).to_bytes(4, "little"))
        self._write()
        self._indexes = {}
