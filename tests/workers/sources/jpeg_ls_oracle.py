"""Encodes frames as JPEG-LS with loss, and decodes them, by imagecodecs.

usage: jpeg_ls_oracle.py FOLDER COUNT SIDE SAMPLES
N.raw becomes N.jls, and that N.decoded.
"""
import pathlib
import sys

import imagecodecs
import numpy

FOLDER = pathlib.Path(sys.argv[1])
COUNT, SIDE, SAMPLES = (int(text) for text in sys.argv[2:])
for n in range(COUNT):
    pixels = numpy.fromfile(FOLDER / f"{n}.raw", numpy.uint8).reshape(SIDE, SIDE, SAMPLES)
    encoded = imagecodecs.jpegls_encode(pixels, level=3)
    (FOLDER / f"{n}.jls").write_bytes(encoded)
    imagecodecs.jpegls_decode(encoded).tofile(FOLDER / f"{n}.decoded")
