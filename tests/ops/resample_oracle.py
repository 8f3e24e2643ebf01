"""Resampling by SciPy: reads float32 volumes, writes what map_coordinates gives.

usage: resample_oracle.py FOLDER Z Y X TZ TY TX: FOLDER/in.raw to FOLDER/out0.raw, out1.raw, out3.raw (float64)
"""
import sys

import numpy
from scipy import ndimage

folder, (z, y, x, tz, ty, tx) = sys.argv[1], map(int, sys.argv[2:])
volume = numpy.fromfile(f"{folder}/in.raw", numpy.float32).reshape(z, y, x).astype(numpy.float64)
places = [(numpy.arange(to) + 0.5) * side / to - 0.5 for side, to in zip((z, y, x), (tz, ty, tx))]
grid = numpy.meshgrid(*places, indexing="ij")
for order in (0, 1, 3):
    ndimage.map_coordinates(volume, grid, order=order, mode="nearest").tofile(f"{folder}/out{order}.raw")
