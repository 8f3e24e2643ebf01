"""A Zarr v3 array read with NumPy and numcodecs, for `open_store` where zarr 3 is not: it needs NumPy 2."""
from __future__ import annotations

import functools
import itertools
import json
import math
import os
import zlib
from typing import Any, NoReturn

import numpy

from . import errors
from ._extension import crc32c

_NOWHERE = 0xFFFFFFFFFFFFFFFF
_INDEXES = 256  # so many shards' are kept
_TYPES = {f"{kind}{bits}" for kind in ("uint", "int", "float") for bits in (8, 16, 32, 64)} - {"float8"}


def _read(path: str, offset: int = 0, size: int = -1, from_end: bool = False) -> bytes | None:
    """Bytes of a file; None where there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(offset, os.SEEK_END if from_end else os.SEEK_SET)
            return file.read(size)
    except FileNotFoundError:
        return None


def _without_checksum(content: bytes) -> bytes:
    if crc32c(content[:-4]) != int.from_bytes(content[-4:], "little"):
        raise ValueError("another checksum")
    return content[:-4]


def _unpacking(codec: dict[str, Any]) -> Any:
    """The function that undoes a codec of bytes."""
    name = codec["name"]
    if name == "crc32c":
        return _without_checksum
    if name == "gzip":
        return lambda content: zlib.decompress(content, 31)
    if name not in ("blosc", "zstd"):
        raise ValueError(f"codec {name!r}: read by zarr 3, if at all")
    try:
        import numcodecs
    except ImportError as error:
        raise errors.PatchbayError("open store: it needs the package zarr: pip install 'zarr>=3', or zarr 2.18 with NumPy 1") from error
    return (numcodecs.Blosc() if name == "blosc" else numcodecs.Zstd()).decode


class StoreArray:
    """Slices of an array are read when they are asked for: integers, slices of a positive step and `...`.

    An element that no file has is the fill value. Reading raises DataError for damage and for a file that is cut short.
    """

    def __init__(self, folder: str):
        """Raises LookupError, TypeError or ValueError for metadata that it does not understand."""
        with open(os.path.join(folder, "zarr.json"), encoding="utf-8") as file:
            found = json.load(file)
        if (found["zarr_format"], found["node_type"]) != (3, "array") or found["data_type"] not in _TYPES:
            raise ValueError(f"{folder}: not an array of numbers")
        if found["chunk_key_encoding"]["name"] != "default":
            raise ValueError(f"{folder}: chunk keys {found['chunk_key_encoding']['name']!r}")
        self._folder = folder
        self._separator = found["chunk_key_encoding"].get("configuration", {}).get("separator", "/")
        self.shape, self.dtype = tuple(map(int, found["shape"])), numpy.dtype(found["data_type"])
        self.ndim, self.size = len(self.shape), math.prod(self.shape)
        self._fill = numpy.array(found["fill_value"], self.dtype)[()]
        outer = tuple(map(int, found["chunk_grid"]["configuration"]["chunk_shape"]))
        codecs, self._index = found["codecs"], None
        self.chunks = outer
        if codecs[0]["name"] == "sharding_indexed":
            self._index = codecs[0]["configuration"]
            self.chunks, codecs = tuple(map(int, self._index["chunk_shape"])), self._index["codecs"]
            if [each["name"] for each in self._index["index_codecs"]] != ["bytes", "crc32c"]:
                raise ValueError(f"{folder}: an index of other codecs")
        is_even = len(outer) == len(self.chunks) == self.ndim and min(self.shape + self.chunks, default=0) > 0
        if not is_even or any(a % b for a, b in zip(outer, self.chunks)):
            raise ValueError(f"{folder}: chunks that do not fit")
        self._per_shard = tuple(a // b for a, b in zip(outer, self.chunks))
        self._order = tuple(codecs[0]["configuration"]["order"]) if codecs[0]["name"] == "transpose" else tuple(range(self.ndim))
        order, *packing = codecs[codecs[0]["name"] == "transpose":]
        if order["name"] != "bytes" or sorted(self._order) != list(range(self.ndim)):
            raise ValueError(f"{folder}: codec {order['name']!r}: read by zarr 3, if at all")
        self._stored = self.dtype.newbyteorder(">" if order.get("configuration", {}).get("endian") == "big" else "<")
        self._unpack = [_unpacking(codec) for codec in reversed(packing)]
        self._index_of = functools.lru_cache(_INDEXES)(self._read_index)

    def __repr__(self) -> str:
        return f"<StoreArray {self._folder} shape={self.shape} dtype={self.dtype}>"

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return numpy.asarray(self[...], dtype)

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if ... not in keys:
            keys += (...,)
        at = keys.index(...)
        keys = keys[:at] + (slice(None),) * (self.ndim - len(keys) + 1) + keys[at + 1:]
        if len(keys) != self.ndim:
            raise IndexError(f"{len(keys)} indices of {self.ndim} axes")
        ranges = [self._range(each, n) for each, n in zip(keys, self.shape)]
        box = self._box([(each.start, max(each.stop, each.start)) for each in ranges])
        return box[tuple(0 if not isinstance(each, slice) else slice(None, None, of.step) for each, of in zip(keys, ranges))]

    @staticmethod
    def _range(key: Any, size: int) -> range:
        if not isinstance(key, slice):
            at = range(size)[key]  # IndexError beyond it
            return range(at, at + 1)
        found = range(*key.indices(size))
        if found.step < 1:
            raise IndexError(f"step {found.step}: steps are positive here")
        return found

    def _box(self, ranges: list[tuple[int, int]]) -> Any:
        out = numpy.full([end - begin for begin, end in ranges], self._fill, self.dtype)
        places = (range(begin // n, -(-end // n)) if out.size else () for (begin, end), n in zip(ranges, self.chunks))
        for place in itertools.product(*places):
            chunk = self._chunk(place)
            if chunk is None:
                continue
            both = [(max(at * n, begin), min(at * n + n, end)) for at, n, (begin, end) in zip(place, self.chunks, ranges)]
            out[tuple(slice(a - begin, b - begin) for (a, b), (begin, _) in zip(both, ranges))] = chunk[
                tuple(slice(a - at * n, b - at * n) for (a, b), at, n in zip(both, place, self.chunks))]
        return out

    def _chunk(self, place: tuple[int, ...]) -> Any:
        """The pixels of a whole chunk; None where no file has it."""
        path = self._path(tuple(at // n for at, n in zip(place, self._per_shard)))
        if self._index is None:
            content = _read(path)
        else:
            index = self._index_of(path)
            offset, size = (_NOWHERE, 0) if index is None else index[tuple(at % n for at, n in zip(place, self._per_shard))].tolist()
            content = None if offset == _NOWHERE else _read(path, offset, size)
        if content is None:
            return None
        try:
            for unpack in self._unpack:
                content = unpack(content)
            stored = numpy.frombuffer(content, self._stored).reshape([self.chunks[axis] for axis in self._order])
        except (ValueError, RuntimeError, zlib.error) as error:
            self._damaged(path, f"chunk {place}: {error}", error)
        return stored.transpose(numpy.argsort(self._order))

    def _path(self, shard: tuple[int, ...]) -> str:
        return os.path.join(self._folder, *self._separator.join(["c", *map(str, shard)]).split("/"))

    def _read_index(self, path: str) -> Any:
        size = math.prod(self._per_shard) * 16 + 4
        is_last = self._index.get("index_location", "end") == "end"
        try:
            content = _read(path, -size if is_last else 0, size, from_end=is_last)
            return None if content is None else numpy.frombuffer(_without_checksum(content), "<u8").reshape(*self._per_shard, 2)
        except (OSError, ValueError) as error:
            self._damaged(path, f"index: {error}", error)

    @staticmethod
    def _damaged(path: str, what: str, error: Exception) -> NoReturn:
        raise errors.DataError(f"open store: {path}: {what}: `patchbay verify` says what is wrong") from error
