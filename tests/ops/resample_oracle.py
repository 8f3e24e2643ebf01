"""Resampling by SciPy: reads float32 volumes, writes what map_coordinates gives.

usage: resample_oracle.py REQUEST.json FOLDER: the volume FOLDER/in.raw of the shape "from" (z, y, x) at the shape "to", as
FOLDER/out0.raw, out1.raw, out3.raw (float64)
"""
import json
import sys

import numpy
from scipy import ndimage

with open(sys.argv[1], encoding="utf-8") as file:
    request = json.load(file)
folder = sys.argv[2]
volume = numpy.fromfile(f"{folder}/in.raw", numpy.float32).reshape(request["from"]).astype(numpy.float64)
places = [(numpy.arange(to) + 0.5) * side / to - 0.5 for side, to in zip(request["from"], request["to"])]
grid = numpy.meshgrid(*places, indexing="ij")
for order in (0, 1, 3):
    ndimage.map_coordinates(volume, grid, order=order, mode="nearest").tofile(f"{folder}/out{order}.raw")
