"""Writes TIFFs with tifffile, each beside its pixels as raw bytes: NAME.tif, NAME.<level>.raw.

usage: tifffile_writer.py OUT_FOLDER
Lossy files are written without raw bytes; those of WebP hold the pixels as tifffile decodes them.
"""
import sys

import numpy
import tifffile

OUT = sys.argv[1]
ROWS, COLUMNS = 331, 417
Y, X = numpy.mgrid[0:ROWS, 0:COLUMNS]
RGB = numpy.stack([(X * 3 + Y) % 256, (Y * Y // 7) % 256, (X ^ Y) % 256], axis=-1).astype(numpy.uint8)


def save(name, levels, subifds, planar=False, **options):
    with tifffile.TiffWriter(f"{OUT}/{name}.tif", bigtiff=options.pop("bigtiff", False),
                             byteorder=options.pop("byteorder", "<")) as tif:
        for n, level in enumerate(levels):
            pixels = numpy.moveaxis(level, -1, 0) if planar else level
            pixels = numpy.ascontiguousarray(pixels)
            extra = {"subifds": len(levels) - 1} if n == 0 and subifds else {}
            if n > 0:
                extra["subfiletype"] = 1
            if planar:
                extra["planarconfig"] = "separate"
            tif.write(pixels, metadata=None, **extra, **options)
            numpy.ascontiguousarray(level).tofile(f"{OUT}/{name}.{n}.raw")


PYRAMID = [RGB, RGB[::2, ::2], RGB[::4, ::4]]
for codec in ("lzw", "deflate", "zstd", "packbits"):
    save(f"sub_{codec}", PYRAMID, True, photometric="rgb", tile=(64, 48), compression=codec)
for codec in ("lzw", "deflate", "zstd"):
    save(f"predictor_{codec}", PYRAMID, False, photometric="rgb", tile=(64, 64), compression=codec,
         predictor=True)
save("planar_big_endian", PYRAMID, False, planar=True, photometric="rgb", tile=(64, 64),
     compression="deflate", predictor=True, byteorder=">")
save("strips_lzw", [RGB], False, photometric="rgb", rowsperstrip=17, compression="lzw", predictor=True)
save("bigtiff_none", PYRAMID, True, photometric="rgb", tile=(64, 64), bigtiff=True)
save("grey_lzw", [RGB[..., 1]], False, photometric="minisblack", tile=(64, 64), compression="lzw")
save("sub_webp", PYRAMID, True, photometric="rgb", tile=(64, 48), compression="webp", compressionargs={"lossless": True})
save("strips_webp", [RGB], False, photometric="rgb", rowsperstrip=17, compression="webp", compressionargs={"lossless": True})
save("lossy_webp", [RGB], False, photometric="rgb", tile=(64, 64), compression="webp", compressionargs={"level": 80})
tifffile.imread(f"{OUT}/lossy_webp.tif").tofile(f"{OUT}/lossy_webp.0.raw")
for name, subsampling in (("aperio_422", (2, 1)), ("aperio_420", (2, 2)), ("aperio_444", (1, 1))):
    with tifffile.TiffWriter(f"{OUT}/{name}.svs") as tif:
        for n, level in enumerate((RGB, RGB[::4, ::4])):
            tif.write(numpy.ascontiguousarray(level), photometric="ycbcr", tile=(256, 256),
                      compression="jpeg", compressionargs={"level": 91}, subsampling=subsampling,
                      metadata=None, description="Aperio Leica Biosystems GT450 v1|MPP = 0.26|AppMag = 40")
for name, pixels, photometric in (("grey_jpeg", RGB[..., 0], "minisblack"), ("rgb_jpeg", RGB, "rgb")):
    with tifffile.TiffWriter(f"{OUT}/{name}.jpegtif") as tif:
        tif.write(numpy.ascontiguousarray(pixels), photometric=photometric, tile=(96, 80),
                  compression="jpeg", metadata=None)
with tifffile.TiffWriter(f"{OUT}/trestle.scan") as tif:
    for level in (RGB, RGB[::2, ::2]):
        tif.write(numpy.ascontiguousarray(level), photometric="rgb", tile=(64, 64), compression="deflate",
                  software="MedScan", metadata=None, description="Background Color=E6E6E6;Objective Power=20")
