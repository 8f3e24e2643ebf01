"""Rows of one image: CSV and Parquet of tables and scores, HDF5 or Zarr of embeddings."""
import csv
import json
import os

import numpy

from .. import errors
from .zarr_array import ZarrArray, encode

PLACE = ("image", "ordinal", "level", "z", "y", "x", "z_um", "y_um", "x_um")
_MAGNIFICATIONS = (1.25, 2.5, 5, 10, 20, 40, 80)
_CHUNK_ROWS = 256  # rows of a chunk of an embedding as Zarr
_GROUP_ROWS = 16384  # rows of a group of Parquet


def _text(value):
    """One spelling of a number, whatever the processor; texts as they are."""
    if isinstance(value, (bool, numpy.bool_)):
        return str(int(value))
    if isinstance(value, (float, numpy.floating)):
        return numpy.format_float_positional(value, unique=True, trim="0") if 1e-4 <= abs(value) < 1e15 or value == 0 else repr(
            value.item() if isinstance(value, numpy.floating) else value)
    return "" if value is None else str(value)


class CsvFile:
    """A CSV with a header; `add` takes rows of values."""

    def __init__(self, folder, name, columns):
        self._file = open(os.path.join(folder, name + ".csv"), "w", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(columns)

    def add(self, rows):
        self._writer.writerows([_text(value) for value in row] for row in rows)

    def close(self):
        self._file.close()

    abandon = close


class ParquetFile:
    """The same rows as Parquet, in groups of _GROUP_ROWS: rows that come in other batches make the same bytes. Types are those of
    the first group, and a file without rows has texts."""

    def __init__(self, folder, name, columns):
        self._path, self._columns, self._writer = os.path.join(folder, name + ".parquet"), columns, None
        self._waiting = []

    def _open(self, table):
        import pyarrow.parquet
        self._writer = pyarrow.parquet.ParquetWriter(self._path, table.schema)

    def add(self, rows):
        self._waiting += rows
        while len(self._waiting) >= _GROUP_ROWS:
            self._put(self._waiting[:_GROUP_ROWS])
            del self._waiting[:_GROUP_ROWS]

    def _put(self, rows):
        import pyarrow
        columns = {name: pyarrow.array([row[i].item() if isinstance(row[i], numpy.generic) else row[i] for row in rows])
                   for i, name in enumerate(self._columns)}
        table = pyarrow.table(columns)
        if self._writer is None:
            self._open(table)
        self._writer.write_table(table.cast(self._writer.schema))

    def close(self):
        import pyarrow
        if self._waiting:
            self._put(self._waiting)
        if self._writer is None:
            self._open(pyarrow.table({name: pyarrow.array([], pyarrow.string()) for name in self._columns}))
        self._writer.close()

    def abandon(self):
        if self._writer is not None:
            self._writer.close()


def _magnification(mpp):
    """The nominal magnification of a pixel size: 10 um of an objective's field are one pixel at tenfold."""
    return min(_MAGNIFICATIONS, key=lambda each: abs(numpy.log(each * mpp / 10)))


def coords_attributes(place, patch, name):
    """Attributes of `coords`. TRIDENT's: patch_size at target_magnification, and level 0. CLAM's where the patch is pixels of a level:
    patch_level, downsample, level_dim."""
    ratio = place.downsample[1]
    sizes = place.record["level_sizes"]
    found = {"name": name, "patch_size": patch[2], "patch_size_level0": int(round(place.box[2] * ratio)),
             "overlap": max(0, patch[2] - place.grid.stride[2]), "level0_width": int(sizes[0][2]), "level0_height": int(sizes[0][1])}
    um = place.finest_um()
    if um and not place.grid.volume:
        found["level0_magnification"] = _magnification(um[2])
        found["target_magnification"] = _magnification(um[2] * ratio * place.box[2] / patch[2])
    if place.box[2] == patch[2]:
        dim = numpy.array([place.extent[2], place.extent[1]])
        found |= {"patch_level": place.level, "downsample": numpy.array([ratio, ratio]), "level_dim": dim, "downsampled_level_dim": dim}
    return found


class FeatureFile:
    """`NAME.h5`: `features` (N, D) and `coords` (N, 2), x and y at level 0, of volumes (N, 3), x, y, z."""

    def __init__(self, folder, output, patches):
        import h5py
        self._file = h5py.File(os.path.join(folder, output.name + ".h5"), "w")
        self._patches, self._count, self._features = patches, 0, None

    def add(self, features, corners):
        if self._features is None:
            self._features = self._file.create_dataset("features", (self._patches, features.shape[1]), features.dtype)
            self._coords = self._file.create_dataset("coords", (self._patches, corners.shape[1]), "int64")
        end = self._count + len(features)
        if end > self._patches:
            raise errors.InternalError(f"write features: {end} patches of {self._patches}")
        self._features[self._count:end] = features
        self._coords[self._count:end] = corners
        self._count = end

    def close(self, attributes):
        for key, value in attributes.items():
            self._coords.attrs[key] = value
        self._file.close()

    def abandon(self):
        self._file.close()


class _ZarrRows:
    """An array (patches, width), written in whole chunks: rows that come in other batches make the same bytes."""

    def __init__(self, path, name, patches, like, fill):
        self._array = ZarrArray(os.path.join(path, name), (patches, like.shape[1]), (1, _CHUNK_ROWS, like.shape[1]), like.dtype, fill,
                                ("patch", name))
        self._waiting, self._chunks = like[:0], 0

    def add(self, values):
        self._waiting = numpy.concatenate([self._waiting, values])
        while len(self._waiting) >= _CHUNK_ROWS:
            self._put()

    def _put(self):
        chunk = self._array.chunk_of(self._waiting[None, :_CHUNK_ROWS])
        if chunk is not None:
            self._array.put((), (0, self._chunks, 0), encode(chunk))
        self._waiting, self._chunks = self._waiting[_CHUNK_ROWS:], self._chunks + 1

    def close(self):
        if len(self._waiting):
            self._put()
        self._array.close()


class FeatureZarr:
    """`NAME.zarr` with the same two arrays; the attributes are the group's."""

    def __init__(self, folder, output, patches):
        self._path, self._patches, self._arrays = os.path.join(folder, output.name + ".zarr"), patches, None

    def add(self, features, corners):
        if self._arrays is None:
            self._arrays = (_ZarrRows(self._path, "features", self._patches, features, "NaN"), _ZarrRows(self._path, "coords", self._patches, corners, 0))
        for array, values in zip(self._arrays, (features, corners)):
            array.add(values)

    def close(self, attributes):
        for array in self._arrays:
            array.close()
        plain = {key: value.tolist() if isinstance(value, numpy.ndarray) else value for key, value in attributes.items()}
        with open(os.path.join(self._path, "zarr.json"), "w", encoding="utf-8") as file:
            json.dump({"zarr_format": 3, "node_type": "group", "attributes": plain}, file, indent=1)

    def abandon(self):
        pass
