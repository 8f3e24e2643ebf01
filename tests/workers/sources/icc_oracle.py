"""Pixels converted by an ICC profile, by Pillow (Little CMS at every pixel, relative colorimetric, 8 bits).

usage: icc_oracle.py PROFILE PIXELS OUT     PIXELS and OUT: raw RGB bytes
"""
import sys

import numpy as np
from PIL import Image, ImageCms

NO_SHORTCUTS = 0x0100 | 0x0040  # no optimisation, no cache of the last pixel


def main():
    profile, pixels, out = sys.argv[1:]
    rgb = np.fromfile(pixels, np.uint8).reshape(1, -1, 3)
    transform = ImageCms.buildTransform(ImageCms.ImageCmsProfile(profile), ImageCms.createProfile("sRGB"), "RGB", "RGB",
                                        renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC, flags=NO_SHORTCUTS)
    np.asarray(ImageCms.applyTransform(Image.fromarray(rgb), transform)).tofile(out)


main()
