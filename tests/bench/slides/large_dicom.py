#!/usr/bin/env python3
"""A DICOM slide of the whole tiles of another, each REPEAT x REPEAT times, as they are; for slides_bench, beside OpenSlide 4 or wsidicom.

  large_dicom.py SLIDE.dcm OUT.dcm [--repeat 10]
  large_dicom.py OUT.dcm --wsidicom 200 --bin build/dev/bin

The second form compares random 512 x 512 patches of a stream of `patchbay` with wsidicom's pixels, and says how many differ. Needs pydicom,
wsidicom and NumPy.
"""
import argparse
import pathlib
import subprocess
import tempfile

import numpy
import pydicom

RUN = """dataset: {slide}
patch: {{size: [512, 512], level: 0}}
sampling: {{positions: random, patches_per_epoch: {patches}}}
batch: {{global_size: 8, dtype: uint8, layout: nhwc, meta: true}}
"""


def repeat(source, out, times):
    slide = pydicom.dcmread(source)
    frames = list(pydicom.encaps.generate_frames(slide.PixelData, number_of_frames=int(slide.NumberOfFrames)))
    across = -(-slide.TotalPixelMatrixColumns // slide.Columns)
    down, wide = slide.TotalPixelMatrixRows // slide.Rows, slide.TotalPixelMatrixColumns // slide.Columns  # whole tiles
    every = [frames[y % down * across + x % wide] for y in range(down * times) for x in range(wide * times)]
    slide.TotalPixelMatrixRows, slide.TotalPixelMatrixColumns = down * times * slide.Rows, wide * times * slide.Columns
    slide.NumberOfFrames = len(every)
    slide.PixelData = pydicom.encaps.encapsulate(every)
    slide.save_as(out)
    print(f"{slide.TotalPixelMatrixRows} x {slide.TotalPixelMatrixColumns} pixels, {len(every)} tiles of {slide.Rows} x {slide.Columns}")


def compare(slide, patches, binaries):
    import wsidicom
    wrong = seen = 0
    with tempfile.TemporaryDirectory() as folder, wsidicom.WsiDicom.open(slide) as other:
        folder = pathlib.Path(folder)
        (folder / "run.yaml").write_text(RUN.format(slide=slide.absolute(), patches=patches), encoding="utf-8")
        subprocess.run([pathlib.Path(binaries) / "patchbay", "stream", folder / "run.yaml", "--save", folder / "out"], check=True,
                       stdout=subprocess.DEVNULL)
        for path in sorted((folder / "out").glob("*-image.npy")):
            boxes = numpy.load(str(path).replace("-image.npy", "-box.npy"))
            for image, (_, y, x, *_) in zip(numpy.load(path), boxes):
                theirs = numpy.asarray(other.read_region((int(x), int(y)), 0, (512, 512)).convert("RGB"))
                wrong, seen = wrong + bool((theirs != image).any()), seen + 1
    print(f"{wrong} of {seen} patches differ from wsidicom {wsidicom.__version__}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slide", type=pathlib.Path)
    parser.add_argument("out", nargs="?")
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--wsidicom", type=int, metavar="PATCHES")
    parser.add_argument("--bin", default="build/dev/bin")
    options = parser.parse_args()
    if options.wsidicom:
        compare(options.slide, options.wsidicom, options.bin)
    else:
        repeat(options.slide, options.out, options.repeat)


if __name__ == "__main__":
    main()
