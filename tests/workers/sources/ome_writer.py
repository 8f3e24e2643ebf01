"""Writes TIFFs of many channels with tifffile, each beside its pixels as raw bytes: NAME.tif, NAME.<level>.raw.

usage: ome_writer.py OUT_FOLDER
"""
import sys

import numpy
import tifffile

OUT = sys.argv[1]
ROWS, COLUMNS = 331, 417
NAMES = ["DAPI", "CD8 & CD4", "CD3", "PanCK"]


def image(channels, dtype):
    y, x = numpy.mgrid[0:ROWS, 0:COLUMNS]
    planes = [(x * (7 + 31 * c) + y * y * (c + 1) + 257 * c) % (1 << (8 * numpy.dtype(dtype).itemsize))
              for c in range(channels)]
    return numpy.stack(planes).astype(dtype)


def raw(name, level, planes):
    numpy.ascontiguousarray(numpy.moveaxis(planes, 0, -1)).astype(planes.dtype.newbyteorder("<")).tofile(
        f"{OUT}/{name}.{level}.raw")


def ome(name, dtype, names, byteorder="<", bigtiff=False, **options):
    whole = image(len(names), dtype)
    levels = [whole, whole[:, ::2, ::2], whole[:, ::4, ::4]]
    with tifffile.TiffWriter(f"{OUT}/{name}.tif", ome=True, byteorder=byteorder, bigtiff=bigtiff) as tif:
        described = {"axes": "CYX", "Channel": {"Name": names}, "PhysicalSizeX": 0.5, "PhysicalSizeY": 0.5}
        for n, level in enumerate(levels):
            extra = {"subifds": 2, "metadata": described} if n == 0 else {"subfiletype": 1}
            tif.write(numpy.ascontiguousarray(level), photometric="minisblack", **extra, **options)
            raw(name, n, level)


def plain(name, planes, planar=False, byteorder="<", **options):
    pixels = planes if planar else numpy.moveaxis(planes, 0, -1)
    with tifffile.TiffWriter(f"{OUT}/{name}.tif", byteorder=byteorder) as tif:
        tif.write(numpy.ascontiguousarray(pixels), metadata=None,
                  planarconfig="separate" if planar else "contig" if len(planes) > 1 else None, **options)
    raw(name, 0, planes)


ome("ome_lzw", "uint16", NAMES, tile=(64, 48), compression="lzw", predictor=True)
ome("ome_zstd_big_endian", "uint16", NAMES, byteorder=">", tile=(64, 64), compression="zstd", predictor=True)
ome("ome_deflate_bigtiff", "uint16", NAMES, bigtiff=True, tile=(64, 64), compression="deflate")
ome("ome_strips", "uint16", NAMES[:2], rowsperstrip=17, compression="lzw")
ome("ome_bytes", "uint8", NAMES[:3], tile=(64, 64), compression="deflate", predictor=True)
plain("planar", image(4, "uint16"), planar=True, photometric="minisblack", tile=(64, 64), compression="lzw")
plain("interleaved", image(5, "uint16"), photometric="minisblack", tile=(64, 64), compression="zstd", predictor=True)
plain("rgb_big_endian", image(3, "uint16"), byteorder=">", photometric="rgb", tile=(64, 64), compression="lzw",
      predictor=True)
