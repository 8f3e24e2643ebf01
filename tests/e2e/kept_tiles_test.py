"""`ingest --codec keep`: stores of a slide's own tiles, byte for byte, with the slide's pixels and streams."""
import csv
import hashlib
import json
import pathlib
import shutil
import struct
import subprocess

import harness

# Run by the Python of the oracles: {level: [SHA-256 of each tile, "" where it has no bytes]}, and the bytes of all tiles.
TILES = r"""
import hashlib, json, sys, tifffile
with tifffile.TiffFile(sys.argv[1]) as tif, open(sys.argv[1], "rb") as file:
    found = []
    for page in filter(lambda page: page.is_tiled, tif.pages):
        row = []
        for offset, size in zip(page.dataoffsets, page.databytecounts):
            file.seek(offset)
            row.append(hashlib.sha256(file.read(size)).hexdigest() if size else "")
        found.append([row, sum(page.databytecounts), (page.imagewidth + page.tilewidth - 1) // page.tilewidth])
print(json.dumps(found))
"""
# The pixels of every level, by zarr-python with the codecs of imagecodecs, beside a picture of level 0 or tifffile.
# imagecodecs brings its codecs for Zarr where its Python is 3.12 or later; what they do to decode stands in for them before.
LOOK = r"""
import base64, pathlib, sys
import imagecodecs, numpy, zarr
try:
    import imagecodecs.zarr
    imagecodecs.zarr.register_codecs({"jpeg", "jpeg2k"})
except ImportError:
    from zarr.abc.codec import ArrayBytesCodec
    from zarr.registry import register_codec

    class Stand(ArrayBytesCodec):
        is_fixed_size = False

        def __init__(self, name, options):
            self.name, self.options = name, options

        def to_dict(self):
            return {"name": self.name, "configuration": self.options}

        def compute_encoded_size(self, size, spec):
            raise NotImplementedError

        async def _decode_single(self, chunk, spec):
            data, options = chunk.to_bytes(), self.options
            if self.name == "imagecodecs_jpeg2k":
                pixels = imagecodecs.jpeg2k_decode(data)
            else:
                pixels = imagecodecs.jpeg8_decode(data, tables=base64.b64decode(options.get("tables", "")) or None,
                                                  colorspace=options["colorspace_jpeg"], outcolorspace=options["colorspace_data"])
            return spec.prototype.nd_buffer.from_numpy_array(pixels.reshape(spec.shape))

    for name in ("imagecodecs_jpeg", "imagecodecs_jpeg2k"):
        made = classmethod(lambda cls, data: cls(data["name"], data["configuration"]))
        register_codec(name, type(name, (Stand,), {"from_dict": made}))
store, picture = sys.argv[1:]
if picture.endswith(".png"):
    from PIL import Image
    Image.MAX_IMAGE_PIXELS = None
    oracle = numpy.asarray(Image.open(picture).convert("RGB"))
else:
    import tifffile
    oracle = tifffile.imread(picture)
finest = zarr.open_array(pathlib.Path(store) / "0", mode="r")[:]
print("ok" if numpy.array_equal(finest.transpose(1, 2, 0), oracle) else "other pixels")
"""
# A chunk in row 1, column 1 as a file, by a decoder that was told nothing.
ALONE = r"""
import sys
import numpy
from PIL import Image
tile, whole = (numpy.asarray(Image.open(path).convert("RGB")) for path in sys.argv[1:])
height, width = tile.shape[:2]
print("ok" if numpy.array_equal(tile, whole[height:2 * height, width:2 * width]) else "other pixels")
"""
REFUSE = r"""
import sys, tensorstore
try:
    tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": sys.argv[1] + "/0/"}}).result()
    print("opened")
except ValueError as error:
    print(error)
"""
WRITE = r"""
import sys, numpy, tifffile
y, x = numpy.mgrid[0:600, 0:700]
pixels = numpy.stack([(x // 2 + y // 3 + c * 40 + (x * y) % 7) % 256 for c in range(3)], -1).astype("uint8")
tifffile.imwrite(sys.argv[1], pixels, tile=(256, 256), compression="aperio_jp2000_rgb", photometric="rgb",
                 resolution=(20000, 20000), resolutionunit="CENTIMETER")
"""


def chunks_of(store, level):
    """{(row, column): bytes of an inner chunk without its crc32c}, and the bytes of the level's files."""
    array = json.loads((store / str(level) / "zarr.json").read_text())
    shard = array["chunk_grid"]["configuration"]["chunk_shape"]
    chunk = array["codecs"][0]["configuration"]["chunk_shape"]
    rows, columns = shard[1] // chunk[1], shard[2] // chunk[2]
    found, size = {}, 0
    for path in (store / str(level) / "c").glob("0/*/*"):
        data = path.read_bytes()
        size += len(data)
        index = data[-16 * rows * columns - 4:-4]
        for i in range(rows * columns):
            offset, length = struct.unpack_from("<QQ", index, 16 * i)
            if offset != 2**64 - 1:
                place = int(path.parent.name) * rows + i // columns, int(path.name) * columns + i % columns
                found[place] = data[offset:offset + length - 4]
    return found, size


class KeptTiles(harness.Case):
    def keeping(self, slide, *more, out="kept"):
        """The store of a slide's tiles."""
        result = self.command("ingest", slide, "--out", self.folder / out, "--codec", "keep", "--keep-names", *more)
        self.assertEqual(result.returncode, 0, result.stderr[-4000:])
        (store,) = (self.folder / out).glob("*.ome.zarr")
        return store

    def digest(self, dataset, patch, words=("--batches", 6)):
        run = self.folder / "run.yaml"
        run.write_text(f"dataset: {dataset}\nnumerics: cpu\nseed: 3\npatch: {patch}\nbatch: {{global_size: 8, dtype: uint8}}\n"
                       "sampling: {order: shuffled}\n", encoding="utf-8")
        return self.json("stream", run, "--digest", *words)["digest"]

    def data(self, name):
        path = harness.DATA / "wsi" / name
        if not path.exists():
            self.skipTest(f"{path} is not here: set PATCHBAY_TEST_DATA")
        return path

    def test_every_tile_is_the_slides_own_at_its_size_and_streams_are_the_slides(self):
        for name, patches in (("CMU-1-Small-Region.svs", ("{size: [256, 256], level: 0}", "{size: [200, 200], mpp: [0.75]}")),
                              ("CropBreastSlide-pyramid.tiff", ("{size: [128, 128], level: 2}", "{size: [256, 256], level: 0}")),
                              ("luna-1065626-ihc-j2k33003.svs", ("{size: [300, 300], level: 1}",))):
            slide = self.data(name)
            store = self.keeping(slide, out=name)
            for patch in patches:
                self.assertEqual(self.digest(store, patch), self.digest(slide, patch), f"{name} {patch}")
            self.assertEqual(self.command("verify", store).returncode, 0)
            if not harness.oracles("tifffile", "numpy"):
                continue
            said = subprocess.run([harness.PYTHON, "-c", TILES, slide], text=True, check=True, capture_output=True)
            levels = json.loads(said.stdout)
            self.assertEqual(len(levels), len(self.json("inspect", store)["levels"]), name)
            stored = 0
            for level, (tiles, _, columns) in enumerate(levels):
                chunks, size = chunks_of(store, level)
                stored += size
                digests = {(i // columns, i % columns): digest for i, digest in enumerate(tiles) if digest}
                self.assertEqual({place: hashlib.sha256(data).hexdigest() for place, data in chunks.items()}, digests)
            self.assertLessEqual(stored, 1.03 * sum(size for _, size, _ in levels), name)

    def test_pixels_levels_statistics_and_pixel_digest_are_those_of_a_lossless_store(self):
        slide = self.data("CropBreastSlide-pyramid.tiff")
        kept = self.json("inspect", self.keeping(slide))
        self.json("ingest", slide, "--out", "lossless", "--codec", "lz4", "--chunk", 256, "--keep-names")
        lossless = self.json("inspect", self.folder / "lossless/CropBreastSlide-pyramid.ome.zarr")
        self.assertEqual(kept["codec"], "imagecodecs_jpeg")
        self.assertNotIn("codec", lossless)
        for key in ("pixel_digest", "levels", "stain", "mpp", "spacing"):
            self.assertEqual(kept.get(key), lossless.get(key), key)
        said = self.command("inspect", self.folder / "kept/CropBreastSlide-pyramid.ome.zarr").stdout
        self.assertIn("imagecodecs_jpeg: the slide's tiles, read by Patchbay and zarr-python 3 with imagecodecs", said)

    def test_zarr_python_with_imagecodecs_reads_the_pixels_of_openslide_and_tifffile(self):
        if not shutil.which("openslide-write-png") or not harness.oracles("imagecodecs", "numpy", "PIL", "tifffile", "zarr"):
            self.skipTest("needs openslide-write-png (openslide-tools) and PATCHBAY_PYTHON with zarr and imagecodecs")
        pictures = []
        for name, width, height in (("CMU-1-Small-Region.svs", 2220, 2967), ("CropBreastSlide-pyramid.tiff", 2033, 1525),
                                    ("tiff-variants/quad-tile.jpg.tiff", 512, 384)):
            png = self.folder / f"{pathlib.Path(name).stem}.png"
            subprocess.run(["openslide-write-png", self.data(name), "0", "0", "0", str(width), str(height), png], check=True)
            pictures.append((self.data(name), png))
        tif = self.folder / "jpeg2000.tif"
        subprocess.run([harness.PYTHON, "-c", WRITE, tif], check=True)
        for slide, picture in [*pictures, (tif, tif)]:
            store = self.keeping(slide, out=f"{slide.stem}-kept")
            found = subprocess.run([harness.PYTHON, "-c", LOOK, store, picture], text=True, check=True, capture_output=True)
            self.assertEqual(found.stdout.strip(), "ok", slide)
        if harness.oracles("tensorstore"):
            found = subprocess.run([harness.PYTHON, "-c", REFUSE, store], text=True, check=True, capture_output=True)
            self.assertIn("imagecodecs_jpeg2k", found.stdout)

    def test_without_statistics_no_tile_is_decoded_and_the_store_is_whole(self):
        slide = self.slide(size="1500x1200")
        data = bytearray(slide.read_bytes())
        store = self.keeping(slide, "--no-statistics")
        self.assertNotIn("stain", self.json("inspect", store))
        self.assertEqual(self.command("verify", store).returncode, 0)
        again = self.json("ingest", slide, "--out", "kept", "--codec", "keep", "--keep-names", "--no-statistics")
        self.assertTrue(again["stores"][0]["already_there"])
        self.assertEqual(self.digest(store, "{size: [128, 128], level: 0}"), self.digest(slide, "{size: [128, 128], level: 0}"))
        chunks, _ = chunks_of(store, 0)
        place = data.index(chunks[1, 1])
        data[place + len(chunks[1, 1]) // 2:place + len(chunks[1, 1])] = bytes(len(chunks[1, 1]) - len(chunks[1, 1]) // 2)
        damaged = self.folder / "damaged.svs"
        damaged.write_bytes(data)
        said = self.command("verify", self.keeping(damaged, "--no-statistics", out="damaged"))
        self.assertEqual(said.returncode, 1)
        self.assertIn("chunk (0,1,1): jpeg: ", said.stderr)
        said = self.command("ingest", damaged, "--out", "refused", "--codec", "keep", "--keep-names")
        self.assertRegex(said.stderr, r"level 0 row 1 column 1: jpeg: ")
        self.assertEqual(list((self.folder / "refused").glob("*.ome.zarr")), [])

    def test_self_contained_tiles_need_no_tables_and_go_back_to_a_slide_of_equal_pixels(self):
        slide = self.data("CMU-1-Small-Region.svs")
        kept, store = self.keeping(slide), self.keeping(slide, "--self-contained", out="alone")
        codecs = [json.loads((one / "0/zarr.json").read_text())["codecs"][0]["configuration"]["codecs"][1] for one in (kept, store)]
        self.assertEqual([(codec["name"], "tables" in codec["configuration"]) for codec in codecs],
                         [("imagecodecs_jpeg", True), ("imagecodecs_jpeg", False)])
        patch = "{size: [200, 200], mpp: [0.75]}"
        self.assertEqual(self.digest(store, patch), self.digest(slide, patch))
        self.assertEqual(self.command("verify", store).returncode, 0)
        self.assertEqual(*(self.json("inspect", one)["pixel_digest"] for one in (kept, store)))
        sizes = [chunks_of(one, 0)[1] for one in (kept, store)]
        self.assertTrue(sizes[0] < sizes[1] < 1.05 * sizes[0], sizes)
        for to in ("keep", "svs", "lz4"):
            said = self.command("convert", store, "--to", to, "--out", self.folder / to)
            self.assertEqual(said.returncode, 0, said.stderr)
        (copy,), (again,), (lossless,) = (self.folder.glob(pattern) for pattern in ("keep/*.zarr", "svs/*.svs", "lz4/*.zarr"))
        self.assertEqual(self.json("inspect", copy)["digest"], self.json("inspect", store)["digest"])
        self.assertEqual(self.digest(again, patch), self.digest(slide, patch))
        self.assertEqual(self.json("inspect", lossless)["pixel_digest"], self.json("inspect", kept)["pixel_digest"])
        if not shutil.which("openslide-write-png") or not harness.oracles("imagecodecs", "numpy", "PIL", "zarr"):
            return
        pictures = []
        for source in (slide, again):
            pictures.append(self.folder / f"{source.parent.name}.png")
            subprocess.run(["openslide-write-png", source, "0", "0", "0", "2220", "2967", pictures[-1]], check=True)
        self.assertEqual(*(path.read_bytes() for path in pictures))
        (self.folder / "tile.jpg").write_bytes(chunks_of(store, 0)[0][1, 1])
        for words in ((LOOK, store, pictures[0]), (ALONE, self.folder / "tile.jpg", pictures[0])):
            found = subprocess.run([harness.PYTHON, "-c", *words], text=True, check=True, capture_output=True)
            self.assertEqual(found.stdout.strip(), "ok")

    def test_an_altered_tile_is_found_by_verify_and_by_stream(self):
        store = self.keeping(self.slide(size="1500x1200"))
        shard = store / "0/c/0/0/0"
        content = bytearray(shard.read_bytes())
        content[len(content) // 2] ^= 1
        shard.write_bytes(content)
        said = self.command("verify", store)
        self.assertEqual(said.returncode, 1)
        self.assertRegex(said.stderr, r"0/c/0/0/0: chunk \(0,\d+,\d+\): crc32c mismatch")
        said = self.command("stream", self.run_file(store))
        self.assertNotEqual(said.returncode, 0)
        self.assertIn("crc32c mismatch", said.stderr)

    def test_tissue_labels_spectra_and_preview_of_it_are_those_of_a_lossless_store(self):
        slide = self.slide(size="1500x1200", seed=4)
        kept = self.keeping(slide, "--tissue", "clam")
        self.json("ingest", slide, "--out", "lossless", "--codec", "lz4", "--keep-names", "--tissue", "clam")
        found = []
        for store in (kept, self.folder / "lossless/a.ome.zarr"):
            out = self.folder / f"spectra-{len(found)}"
            spectra = self.json("spectra", store, "--out", out)
            (labels,) = (store / "labels").glob("tissue.*")
            self.assertEqual(self.command("verify", store).returncode, 0)
            tables = [[{key: cell for key, cell in row.items() if key != "id"} for row in csv.DictReader(path.read_text().splitlines())]
                      for path in sorted(out.glob("*.csv")) if path.name != "manifest.csv"]  # ids are over the bytes of a store
            found.append((tables, json.loads((labels / "zarr.json").read_text())["attributes"]["patchbay"]["pixel_digest"]))
            self.assertTrue(tables, spectra)
        self.assertEqual(found[0], found[1])
        self.assertEqual(self.command("preview", self.run_file(kept), "--out", self.folder / "cards").returncode, 0)

    def test_sources_without_such_tiles_are_refused_by_name(self):
        folder = self.folder / "in"
        folder.mkdir()
        for name in ("tiff_tiled_planar_lzw.tiff", "tiled-jpeg-ycbcr.tif", "boxes.tiff"):
            shutil.copy(self.data(f"tiff-variants/{name}"), folder)
        harness.nifti(folder / "v.nii", (4, 8, 8), (1, 1, 1), lambda z, y, x: z * 8 + y)
        said = self.command("ingest", *folder.iterdir(), "--out", self.folder / "out", "--codec", "keep", "--keep-names")
        self.assertNotEqual(said.returncode, 0)
        with open(self.folder / "out/failed.csv", encoding="utf-8", newline="") as file:
            reasons = {pathlib.Path(row["source"]).name: row["reason"] for row in csv.DictReader(file)}
        for name, cause in (("tiff_tiled_planar_lzw.tiff", "tiles of compression LZW (5), channels apart"),
                            ("tiled-jpeg-ycbcr.tif", "strips of compression 7"),
                            ("boxes.tiff", "tiles of compression Deflate (8)"), ("v.nii", "a volume has no tiles")):
            self.assertIn("--codec keep: ", reasons[name])
            self.assertIn(cause, reasons[name])
        self.assertEqual(list((self.folder / "out").glob("*.ome.zarr")), [])
        said = self.command("ingest", folder, "--out", self.folder / "out", "--codec", "lz4", "--no-statistics")
        self.assertEqual(said.returncode, 2)
        self.assertIn("--no-statistics goes with --codec keep", said.stderr)
        said = self.command("ingest", folder, "--out", self.folder / "out", "--codec", "lz4", "--self-contained")
        self.assertEqual((said.returncode, "--self-contained goes with --codec keep" in said.stderr), (2, True), said.stderr)

    def test_a_full_disk_and_a_killed_worker_leave_nothing_half_written(self):
        slide = self.slide(size="4000x3000", seed=5)
        words = lambda out: ("ingest", slide, "--out", out, "--codec", "keep", "--shard", 512, "--keep-names")
        self.assertEqual(self.command(*words(self.folder / "out")).returncode, 0)
        roots = lambda out: [self.json("inspect", path)["digest"] for path in pathlib.Path(out).glob("*.ome.zarr")]
        reference = roots(self.folder / "out")
        self.assertEqual(len(reference), 1)
        disk = self.small_disk(f"{slide.stat().st_size * 7 // 10240}k")  # enough to begin
        said = self.command(*words(disk / "out"))
        self.assertNotEqual(said.returncode, 0)
        self.assertIn("No space left on device", said.stderr)
        self.assertEqual(roots(disk / "out"), [])
        self.resize(disk, "100m")
        self.assertEqual(self.command(*words(disk / "out")).returncode, 0)
        self.assertEqual(roots(disk / "out"), reference)
        cluster = self.up(2)
        ingest = self.start(*words(self.folder / "killed"))
        harness.wait_until(lambda: list(self.folder.glob("killed/.patchbay-ingest/*/records/*.json")), "a staged zarr shard")
        self.kill(self.pids(cluster, "patchbay-worker")[0])
        self.done(ingest)
        self.assertEqual(roots(self.folder / "killed"), reference)
        self.assertFalse((self.folder / "killed/.patchbay-ingest").exists())
        self.down(cluster)


if __name__ == "__main__":
    harness.main()
