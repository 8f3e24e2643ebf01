"""The Python side of the Zarr tests: what zarr-python 3 and TensorStore read, and stores they write.

oracle.py read FOLDER      every array below FOLDER as zarr-python reads it
oracle.py levels STORE     every level of a store, by zarr-python and by TensorStore
oracle.py write FOLDER     a matrix of codecs, layouts and fill values, with what it holds
"""
import hashlib
import json
import os
import sys
import warnings

import numpy as np
import zarr

warnings.simplefilter("ignore")


def sha(values):
    little = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"))
    return hashlib.sha256(little.tobytes()).hexdigest()


def arrays_below(folder):
    for root, dirs, files in sorted(os.walk(folder)):
        dirs.sort()
        if ".zarray" in files:
            yield root
        elif "zarr.json" in files:
            with open(os.path.join(root, "zarr.json")) as f:
                if json.load(f)["node_type"] == "array":
                    yield root


def read(folder):
    answer = {}
    for path in arrays_below(folder):
        name = os.path.relpath(path, folder)
        try:
            values = np.asarray(zarr.open_array(path, mode="r")[...])
            kind = values.dtype.kind
            if kind not in "biuf":
                raise TypeError(f"not numbers: {values.dtype}")
            answer[name] = {"dtype": values.dtype.newbyteorder("=").name, "sha256": sha(values)}
        except Exception as error:  # any error: it did not read the array
            answer[name] = {"error": f"{type(error).__name__}: {error}"[:200]}
    return answer


def levels(store):
    import tensorstore

    group = zarr.open_group(store, mode="r")
    answer = []
    for dataset in group.attrs["ome"]["multiscales"][0]["datasets"]:
        array = group[dataset["path"]]
        spec = {"driver": "zarr3",
                "kvstore": {"driver": "file", "path": os.path.join(store, dataset["path"])}}
        other = np.asarray(tensorstore.open(spec, read=True).result()[...])
        values = np.asarray(array[...])
        answer.append({"shape": list(values.shape), "dtype": values.dtype.name,
                       "zarr": sha(values), "tensorstore": sha(other),
                       "names": list(array.metadata.dimension_names)})
    return answer


def values_of(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.normal(size=shape).astype(dtype)
    if np.dtype(dtype).kind == "b":
        return rng.integers(0, 2, size=shape).astype(bool)
    return (rng.integers(0, 40, size=shape) + np.arange(shape[-1])).astype(dtype)


def v3_matrix(folder):
    from zarr.codecs import (BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec,
                             TransposeCodec, ZstdCodec)

    def make(name, shape, chunks, dtype, codecs=None, fill=0, shards=None, key=None, index="end",
             missing=False):
        path = os.path.join(folder, "v3", name)
        kwargs = dict(store=path, shape=shape, dtype=dtype, fill_value=fill, zarr_format=3)
        if key:
            kwargs["chunk_key_encoding"] = key
        filters, serializer, compressors = [], BytesCodec(), []
        for codec in codecs or []:
            if isinstance(codec, TransposeCodec):
                filters.append(codec)
            elif isinstance(codec, BytesCodec):
                serializer = codec
            else:
                compressors.append(codec)
        if shards:
            kwargs.update(chunks=shards, filters=None, compressors=None, serializer=ShardingCodec(
                chunk_shape=chunks, codecs=filters + [serializer] + compressors,
                index_location=index))
        else:
            kwargs.update(chunks=chunks, filters=filters, serializer=serializer,
                          compressors=compressors)
        array = zarr.create_array(**kwargs)
        values = values_of(shape, dtype, len(name))
        if missing:
            part = tuple(slice(0, max(1, n // 2)) for n in shape)
            array[part] = values[part]
        else:
            array[...] = values

    for cname in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]:
        for shuffle in ["noshuffle", "shuffle", "bitshuffle"]:
            make(f"blosc-{cname}-{shuffle}", (50, 70), (32, 32), "int16",
                 [BloscCodec(cname=cname, clevel=5, shuffle=shuffle, typesize=2)])
    make("blosc-big", (300, 400, 3), (256, 256, 3), "uint8",
         [BloscCodec(cname="zstd", clevel=3, shuffle="noshuffle", typesize=1, blocksize=16384)])
    make("blosc-lz4-big", (300, 400, 3), (256, 256, 3), "uint8",
         [BloscCodec(cname="lz4", clevel=5, shuffle="noshuffle", typesize=1, blocksize=16384)])
    make("blosc-lz4-split", (300, 400), (256, 256), "int32",
         [BloscCodec(cname="lz4", clevel=5, shuffle="noshuffle", typesize=4, blocksize=16384)])
    make("blosc-shuffled-big", (40, 90, 100), (32, 64, 64), "int16",
         [BloscCodec(cname="zstd", clevel=3, shuffle="shuffle", typesize=2, blocksize=16384)])
    make("zstd-checksum", (33, 20), (16, 16), "float32", [ZstdCodec(level=3, checksum=True)])
    make("gzip", (33, 20), (16, 16), "float64", [GzipCodec(level=4)])
    make("crc32c", (33, 20), (16, 16), "uint32", [Crc32cCodec()])
    make("gzip-crc32c", (33, 20), (16, 16), "uint32", [GzipCodec(level=1), Crc32cCodec()])
    make("big-endian", (33, 20), (16, 16), "int64", [BytesCodec(endian="big"), ZstdCodec()])
    make("transpose", (5, 40, 30), (5, 16, 16), "uint16",
         [TransposeCodec(order=(1, 2, 0)), ZstdCodec()])
    make("dot-keys", (40, 30), (16, 16), "uint8", key={"name": "default", "separator": "."})
    make("v2-keys", (40, 30), (16, 16), "uint8", key={"name": "v2", "separator": "/"})
    for index in ["start", "end"]:
        make(f"sharded-{index}", (3, 100, 90), (3, 16, 16), "uint8",
             [TransposeCodec(order=(1, 2, 0)), BloscCodec(cname="lz4", typesize=1), Crc32cCodec()],
             shards=(3, 64, 64), index=index, missing=True, fill=7)
    make("fill-nan", (20, 20), (16, 16), "float32", fill=float("nan"), missing=True)
    make("fill-inf", (20, 20), (16, 16), "float64", fill=float("-inf"), missing=True)
    make("fill-half", (20, 20), (16, 16), "float16", fill=0.1, missing=True)
    make("fill-min", (20, 20), (16, 16), "int64", fill=-(2**63), missing=True)
    make("fill-max", (20, 20), (16, 16), "uint64", fill=2**64 - 1, missing=True)
    make("bool", (20, 20), (16, 16), "bool", fill=True, missing=True)
    make("rank4", (3, 5, 20, 21), (2, 2, 16, 16), "int8", [ZstdCodec()])


def v2_matrix(folder):
    import numcodecs

    def make(name, shape, chunks, dtype, compressor=None, filters=None, order="C", fill=0,
             separator="."):
        path = os.path.join(folder, "v2", name)
        array = zarr.create_array(
            store=path, shape=shape, chunks=chunks, dtype=dtype, compressors=compressor,
            filters=filters, order=order, fill_value=fill, zarr_format=2,
            chunk_key_encoding={"name": "v2", "separator": separator})
        array[...] = values_of(shape, dtype, len(name))

    for name, codec in {"zlib": numcodecs.Zlib(3), "gzip": numcodecs.GZip(3),
                        "zstd": numcodecs.Zstd(3), "lz4": numcodecs.LZ4(), "bz2": numcodecs.BZ2(3),
                        "blosc": numcodecs.Blosc("zstd", 3, 2), "none": None}.items():
        make(name, (50, 41), (16, 20), "<i4", codec)
        make(name + "-F-be", (50, 41), (16, 20), ">i2", codec, order="F", separator="/")
    make("delta-be", (50, 41), (16, 20), ">i2", numcodecs.Zlib(1),
         [numcodecs.Delta(dtype=">i2")])
    make("shuffle", (7, 13), (7, 5), "<f8", numcodecs.Zlib(1), [numcodecs.Shuffle(8)])
    make("fixedscaleoffset", (20, 20), (16, 16), "<f8", None,
         [numcodecs.FixedScaleOffset(offset=-3, scale=1000, dtype="<f8", astype="<i4")])


def main():
    command, folder = sys.argv[1], sys.argv[2]
    if command == "read":
        answer = read(folder)
    elif command == "levels":
        answer = levels(folder)
    else:
        v3_matrix(folder)
        v2_matrix(folder)
        answer = read(folder)
    json.dump(answer, sys.stdout)


main()
