"""Writes the pixels of chosen pages of a TIFF as tifffile decodes them.

usage: tifffile_oracle.py IN.tif OUT_FOLDER PAGE...
OUT_FOLDER/<n>.raw holds the n-th page as interleaved uint8 rows.
"""
import sys

import numpy
import tifffile

with tifffile.TiffFile(sys.argv[1]) as tif:
    for n, page in enumerate(sys.argv[3:]):
        pixels = tif.pages[int(page)].asarray()
        if tif.pages[int(page)].planarconfig == 2:
            pixels = numpy.moveaxis(pixels, 0, -1)
        assert pixels.dtype == numpy.uint8, pixels.dtype
        numpy.ascontiguousarray(pixels).tofile(f"{sys.argv[2]}/{n}.raw")
