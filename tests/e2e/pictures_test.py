"""PNG and JPEG pictures are images of one level: the pixels that Pillow reads, as patches, in stores, and as references of stains."""
import json
import subprocess
import zlib

import harness
from misfit_test import EOSIN, HEMATOXYLIN, mixture, tiff

HEIGHT, WIDTH, PATCH = 128, 192, 64

# Writes the pictures, and beside each the pixels that Pillow reads of it.
MAKE = r"""
import sys
import numpy
from PIL import Image
height, width = int(sys.argv[1]), int(sys.argv[2])
y, x = numpy.mgrid[0:height, 0:width]
rgb = numpy.stack([x * 255 // width, 255 - y, (x * y) % 251], -1).astype(numpy.uint8)
picture, grey = Image.fromarray(rgb), Image.fromarray(rgb[..., 2])
made = {
    "rgb.png": (picture, {}), "palette.png": (picture.quantize(200), {}), "grey.png": (grey, {}),
    "bilevel.png": (grey.point(lambda v: 255 * (v > 99)).convert("1"), {}),
    "420.jpg": (picture, {"subsampling": 2}), "422.jpg": (picture, {"subsampling": 1}),
    "444.jpg": (picture, {"subsampling": 0, "quality": 100}), "grey.jpg": (grey, {}),
    "progressive.jpeg": (picture, {"progressive": True}), "rgb.jpg": (picture, {"keep_rgb": True}),
    "alpha.png": (picture.convert("RGBA"), {}), "cmyk.jpg": (picture.convert("CMYK"), {}),
    "deep.png": (Image.fromarray(rgb[..., 0].astype(numpy.uint16) * 257), {}),
}
turned = Image.Exif()
turned[0x0112] = 6
made["turned.jpg"] = (picture, {"exif": turned})
for name, (image, options) in made.items():
    image.save(name, **options)
    seen = Image.open(name)
    numpy.save(name + ".npy", numpy.asarray(seen.convert("L" if seen.mode in ("1", "L") else "RGB")))
"""


class Pictures(harness.Case):
    def setUp(self):
        super().setUp()
        if not harness.oracles("numpy", "PIL"):
            self.skipTest("needs numpy and Pillow in .venv")
        subprocess.run([harness.PYTHON, "-c", MAKE, str(HEIGHT), str(WIDTH)], cwd=self.folder, check=True)

    def array(self, path):
        """The bytes of a .npy file behind its header."""
        raw = path.read_bytes()
        return raw[10 + int.from_bytes(raw[8:10], "little"):]

    def config(self, dataset, name="run.yaml", more=""):
        (self.folder / name).write_text(
            f"dataset: {dataset}\nnumerics: cpu\npatch: {{size: [{PATCH}, {PATCH}], level: 0}}\nsampling: {{order: sequential}}\n"
            f"batch: {{global_size: 6, dtype: uint8, layout: nhwc}}\n{more}")
        return name

    def test_patches_have_the_pixels_that_pillow_reads(self):
        names = ["rgb.png", "palette.png", "420.jpg", "422.jpg", "444.jpg", "progressive.jpeg", "rgb.jpg"]
        self.json("stream", self.config(json.dumps(names)), "--save", "colour")
        self.compare(names, "colour", 3)
        self.json("stream", self.config('["grey.png", "bilevel.png", "grey.jpg"]'), "--save", "grey")
        self.compare(["grey.png", "bilevel.png", "grey.jpg"], "grey", 1)

    def compare(self, names, folder, channels):
        batches = sorted((self.folder / folder).glob("*image.npy"))
        self.assertEqual(len(batches), len(names))
        for name, batch in zip(names, batches):
            with self.subTest(picture=name):
                pixels, patches = self.array(self.folder / f"{name}.npy"), self.array(batch)
                row = WIDTH * channels
                cut = [pixels[(top + y) * row + left * channels:(top + y) * row + (left + PATCH) * channels]
                       for top in range(0, HEIGHT, PATCH) for left in range(0, WIDTH, PATCH) for y in range(PATCH)]
                self.assertEqual(b"".join(cut), patches)

    def test_a_store_of_a_picture_has_its_pixels(self):
        self.json("ingest", "420.jpg", "rgb.png", "--out", "stores", "--keep-names", "--assume-mpp", "0.5")
        digests = {self.json("stream", self.config(dataset), "--digest")["digest"]
                   for dataset in ('["420.jpg", "rgb.png"]', "stores")}
        self.assertEqual(len(digests), 1)

    def test_what_is_not_read_is_refused_with_its_reason(self):
        whole = (self.folder / "rgb.png").read_bytes()
        (self.folder / "short.png").write_bytes(whole[:len(whole) // 2])
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 1
        (self.folder / "flipped.png").write_bytes(flipped)
        large = b"IHDR" + (70_000).to_bytes(4, "big") + (70_000).to_bytes(4, "big") + bytes((8, 2, 0, 0, 0))
        (self.folder / "large.png").write_bytes(whole[:12] + large + zlib.crc32(large).to_bytes(4, "big") + whole[33:])
        jpeg = (self.folder / "420.jpg").read_bytes()
        (self.folder / "short.jpg").write_bytes(jpeg[:len(jpeg) // 2])
        for name, reason in (("alpha.png", "transparent pixels: save it without an alpha channel"), ("deep.png", "16 bits a sample"),
                             ("cmyk.jpg", "4 components (CMYK has 4)"), ("turned.jpg", "its EXIF orientation 6 turns or mirrors it"),
                             ("large.png", "pixels are more than 67108864"), ("short.png", "it ends too early"),
                             ("flipped.png", "png: IDAT: "), ("short.jpg", "jpeg: ")):
            with self.subTest(picture=name):
                refused = self.command("stream", self.config(name), "--digest")
                self.assertNotEqual(refused.returncode, 0)
                self.assertIn(reason, refused.stderr)

    def test_a_png_is_a_reference_of_stains(self):
        tiff(self.folder / "slide.tif", mixture(HEMATOXYLIN, EOSIN))
        tiff(self.folder / "reference.tif", mixture((0.65, 0.70, 0.29), EOSIN))
        subprocess.run([harness.PYTHON, "-c", "from PIL import Image; Image.open('reference.tif').save('reference.png')"],
                       cwd=self.folder, check=True)
        self.json("ingest", "slide.tif", "--out", "stores")
        digests = [self.json("stream", self.config("stores", more=f"preprocess: [{{stain_normalize: {{reference: {reference}}}}}]\n"),
                             "--digest")["digest"] for reference in ("reference.tif", "reference.png", "default")]
        self.assertEqual(digests[0], digests[1])
        self.assertNotEqual(digests[0], digests[2])


if __name__ == "__main__":
    harness.main()
