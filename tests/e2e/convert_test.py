"""`patchbay convert`: stores of another codec with the same pixels, and slides of kept tiles."""
import csv
import json
import pathlib
import shutil
import subprocess

import harness


def properties_of(slide):
    """Levels, spacing and magnification of a slide, by OpenSlide."""
    said = subprocess.run(["openslide-show-properties", slide], text=True, check=True, capture_output=True).stdout
    kept = ("openslide.level", "openslide.mpp", "openslide.objective-power")
    return [line for line in said.splitlines() if line.startswith(kept)]


def pixels_of(slide, folder, level, box):
    png = folder / "region.png"
    subprocess.run(["openslide-write-png", slide, *map(str, box[:2]), str(level), *map(str, box[2:]), png], check=True)
    return png.read_bytes()


def shards_of(store):
    return {path.relative_to(store): path.read_bytes() for path in sorted(store.glob("*/c/0/*/*"))}


# The levels of an OME-TIFF, by tifffile, beside the arrays of its store by zarr-python; and its compression.
OME = r"""
import sys, numpy, tifffile, zarr
with tifffile.TiffFile(sys.argv[1]) as tif:
    series = tif.series[0]
    assert tif.is_ome and len(tif.pages) == 1, (tif.is_ome, len(tif.pages))
    for number, level in enumerate(series.levels):
        pixels = level.asarray()
        stored = zarr.open_array(f"{sys.argv[2]}/{number}", mode="r")[:].transpose(1, 2, 0)
        if not numpy.array_equal(pixels, stored.reshape(pixels.shape)):
            print("other pixels", number)
    print(len(series.levels), series.axes, int(tif.pages[0].compression), tif.pages[0].subifds is not None)
"""
# A planar store of NGFF 0.4, by zarr-python and TensorStore, beside the store that it was made of.
PLANAR = r"""
import json, pathlib, sys, numpy, tensorstore, zarr
made, store = map(pathlib.Path, sys.argv[1:])
read = lambda path: json.loads(path.read_text())
root, image = read(made / ".zattrs"), read(made / "0/.zattrs")
assert root["bioformats2raw.layout"] == 3 and read(made / "OME/.zattrs") == {"series": ["0"]}, root
def compare(attributes, folder, of):
    (scales,) = attributes["multiscales"]
    ours = read(of / "zarr.json")["attributes"]["ome"]["multiscales"][0]
    assert scales["version"] == "0.4" and [axis["name"] for axis in scales["axes"]] == list("tczyx"), scales
    units = {axis["name"]: axis.get("unit") for axis in ours["axes"]}
    assert all(axis.get("unit") == units.get(axis["name"]) for axis in scales["axes"])
    for dataset, own in zip(scales["datasets"], ours["datasets"], strict=True):
        array = zarr.open_array(folder / dataset["path"], mode="r", zarr_format=2)
        stored = zarr.open_array(of / own["path"], mode="r")[:]
        stored = stored[None, None] if list(units) == ["z", "y", "x"] else stored[None, :, None]
        assert array.chunks == (1, 1, 1, min(1024, array.shape[3]), min(1024, array.shape[4])), array.chunks
        same = tensorstore.open({"driver": "zarr", "kvstore": {"driver": "file", "path": str(folder / dataset["path"])}}).result()
        if array.dtype != stored.dtype or not (numpy.array_equal(array[:], stored) and numpy.array_equal(same.read().result(), stored)):
            print("other pixels", folder, dataset["path"])
        for mine, theirs in zip(dataset["coordinateTransformations"], own["coordinateTransformations"], strict=True):
            kind = mine["type"]
            assert mine[kind] == [dict(zip(units, theirs[kind], strict=True)).get(name, float(kind == "scale")) for name in "tczyx"], mine
    return len(scales["datasets"]), array.ndim
found = [compare(image, made / "0", store)]
if (store / "labels").exists():
    (name,), (revision,) = read(made / "0/labels/.zattrs")["labels"], [path for path in (store / "labels").iterdir() if path.is_dir()]
    labels = read(made / "0/labels" / name / ".zattrs")
    assert labels["image-label"]["version"] == "0.4" and labels["image-label"]["source"] == {"image": "../../"}, labels
    found.append(compare(labels, made / "0/labels" / name, revision))
print(found)
"""
GREY = """
import sys, numpy, tifffile
y, x = numpy.mgrid[0:700, 0:900]
tifffile.imwrite(sys.argv[1], ((x * y) // 50 % 256).astype("uint8"), tile=(256, 256), resolution=(20000, 20000), resolutionunit="CENTIMETER")
"""


class Convert(harness.Case):
    def data(self, name):
        path = harness.DATA / "wsi" / name
        if not path.exists():
            self.skipTest(f"{path} is not here: set PATCHBAY_TEST_DATA")
        return path

    def ingested(self, slide, codec, *more, out=None):
        out = self.folder / (out or codec)
        self.json("ingest", slide, "--out", out, "--codec", codec, "--keep-names", *more)
        (store,) = out.glob("*.ome.zarr")
        return store

    def converted(self, store, to, out, *more):
        made = self.json("convert", store, "--to", to, "--out", self.folder / out, *more)
        return self.folder / out / made["stores"][0]["name"], made["stores"][0]

    def roots(self, store):
        found = self.json("inspect", store)
        return found["digest"], found["pixel_digest"]

    def test_a_converted_store_is_the_one_that_ingest_makes_and_has_its_label_sets(self):
        slide = self.slide(size="1500x1200", seed=4)
        zstd = self.ingested(slide, "zstd", "--tissue", "clam")
        direct = self.ingested(slide, "lz4")
        lz4, row = self.converted(zstd, "lz4", "to-lz4")
        self.assertEqual(self.roots(lz4), self.roots(direct))
        self.assertEqual((row["digest"], row["already_there"]), (self.roots(direct)[0], False))
        self.assertEqual(shards_of(lz4), shards_of(direct))
        sets = [sorted(path.name for path in (store / "labels").iterdir()) for store in (zstd, lz4)]
        self.assertEqual(sets[0], sets[1])
        self.assertTrue(any(name.startswith("tissue.") for name in sets[0]))
        self.assertEqual(self.command("verify", lz4).returncode, 0)
        self.assertTrue(self.converted(zstd, "lz4", "to-lz4")[1]["already_there"])
        back, _ = self.converted(lz4, "zstd", "back")
        self.assertEqual(self.roots(back), self.roots(zstd))
        self.assertEqual(self.json("ingest", slide, "--out", back.parent, "--keep-names")["stores"][0]["already_there"], True)
        with open(lz4.parent / "manifest.csv", encoding="utf-8", newline="") as file:
            self.assertEqual([pathlib.Path(row["source"]) for row in csv.DictReader(file)], [zstd.resolve()])

    def test_lossless_pixels_of_kept_tiles_have_their_pixel_digest(self):
        slide = self.slide(size="1500x1200", seed=6)
        kept = self.ingested(slide, "keep")
        undecoded = self.ingested(slide, "keep", "--no-statistics", out="undecoded")
        for store in (kept, undecoded):
            lz4, _ = self.converted(store, "lz4", f"lz4-{store.parent.name}")
            self.assertEqual(self.roots(lz4)[1], self.roots(kept)[1])
            self.assertEqual(self.command("verify", lz4).returncode, 0)
            levels = [self.json("inspect", one)["levels"] for one in (lz4, kept)]
            self.assertEqual(levels[0], levels[1])

    def test_volumes_are_converted_too(self):
        harness.nifti(self.folder / "v.nii", (40, 50, 60), (1, 1, 2), lambda z, y, x: z * y - x)
        store = self.ingested(self.folder / "v.nii", "zstd", "--modality", "CT")
        lz4, _ = self.converted(store, "lz4", "lz4")
        self.assertEqual(self.roots(lz4)[1], self.roots(store)[1])
        self.assertEqual(self.command("verify", lz4).returncode, 0)

    def test_slides_of_kept_tiles_have_their_tiles_levels_spacing_and_pixels(self):
        if not shutil.which("openslide-write-png"):
            self.skipTest("openslide-write-png (openslide-tools) is not here")
        for name, to, boxes in (("CMU-1-Small-Region.svs", "svs", [(0, (700, 900, 800, 700))]),
                                ("CropBreastSlide-pyramid.tiff", "tiff", [(0, (900, 700, 700, 600)), (2, (0, 0, 508, 381))]),
                                ("luna-1065626-ihc-j2k33003.svs", "svs", [(0, (5000, 5000, 700, 600)), (1, (0, 0, 900, 700))])):
            slide = self.data(name)
            kept = self.ingested(slide, "keep", "--no-statistics", out=name)
            again, row = self.converted(kept, to, "slides")
            self.assertEqual(again.suffix, f".{to}")
            self.assertEqual(properties_of(again), properties_of(slide))
            for level, box in boxes:
                self.assertEqual(pixels_of(again, self.folder, level, box), pixels_of(slide, self.folder, level, box), f"{name} {level}")
            reingested = self.ingested(again, "keep", "--no-statistics", out=f"{name}-again")
            self.assertEqual(shards_of(reingested), shards_of(kept))
            colours = [self.json("inspect", store).get("icc_to_srgb") for store in (kept, reingested)]
            self.assertEqual(*(bool(one) for one in colours), name)
            self.assertLess(row["stored_bytes"], 1.01 * row["source_bytes"])
            self.assertTrue(self.converted(kept, to, "slides")[1]["already_there"])
            self.assertIn(json.loads((kept / "zarr.json").read_text())["attributes"]["patchbay"]["digest"].encode(), again.read_bytes())

    def test_an_ome_tiff_has_the_levels_below_its_first_image_and_tifffile_reads_its_pixels(self):
        if not harness.oracles("tifffile", "imagecodecs", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with tifffile, imagecodecs and zarr")
        slide = self.data("CropBreastSlide-pyramid.tiff")
        lossless = self.ingested(slide, "lz4", "--chunk", 256)
        kept = self.ingested(slide, "keep")
        subprocess.run([harness.PYTHON, "-c", GREY, self.folder / "grey.tif"], check=True)
        grey = self.ingested(self.folder / "grey.tif", "zstd", out="grey")
        for store, said in ((lossless, "6 YXS 8 True"), (kept, "6 YXS 7 True"), (grey, None)):
            made, row = self.converted(store, "ome-tiff", f"ome-{store.parent.name}")
            self.assertEqual(made.name, f"{store.name.removesuffix('.ome.zarr')}.ome.tiff")
            pixels = lossless if store == kept else store
            found = subprocess.run([harness.PYTHON, "-c", OME, made, pixels], text=True, check=True, capture_output=True).stdout.strip()
            self.assertRegex(found, f"^{said}$" if said else r"^\d YX 8 (True|False)$")
            self.assertTrue(self.converted(store, "ome-tiff", made.parent)[1]["already_there"])
            again = self.json("inspect", made)
            self.assertEqual([level["shape"] for level in again["levels"]][:1], [level["shape"] for level in self.json("inspect", store)["levels"]][:1])
            self.assertEqual(again["mpp"], self.json("inspect", store)["mpp"])

    def test_slides_of_lossless_stores_have_their_pixels_or_those_of_a_jpeg(self):
        if not shutil.which("openslide-write-png"):
            self.skipTest("openslide-write-png (openslide-tools) is not here")
        slide = self.data("CMU-1-Small-Region.svs")
        store = self.ingested(slide, "lz4", "--shard", 1024)
        for to in ("svs", "tiff"):
            made, _ = self.converted(store, to, "slides")
            for level, box in ((0, (700, 900, 800, 700)), (0, (1900, 2700, 320, 267)), (1, (0, 0, 1110, 1484))):
                source = slide if level == 0 else self.folder / "slides/CMU-1-Small-Region.svs"
                self.assertEqual(pixels_of(made, self.folder, level, box), pixels_of(source, self.folder, level, box), f"{to} {level}")
            again = self.json("inspect", made)
            self.assertEqual([level["shape"] for level in again["levels"]], [level["shape"] for level in self.json("inspect", store)["levels"]])
        self.assertIn("openslide.mpp-x: '0.499'", properties_of(self.folder / "slides/CMU-1-Small-Region.svs"))
        good, row = self.converted(store, "svs", "good", "--quality", 95)
        small, small_row = self.converted(store, "svs", "small", "--quality", 50)
        self.assertLess(2 * small_row["stored_bytes"], row["stored_bytes"])
        self.assertLess(2 * row["stored_bytes"], made.stat().st_size)
        self.assertIn(b"JPEG of quality 95", good.read_bytes())
        self.assertTrue(self.converted(store, "svs", "good", "--quality", 95)[1]["already_there"])
        self.assertGreater(len(pixels_of(small, self.folder, 1, (0, 0, 1110, 1484))), 1000)
        self.ingested(good, "keep", out="again")

    def test_planar_stores_of_ngff_0_4_hold_image_and_labels(self):
        if not harness.oracles("numpy", "tensorstore", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with zarr and tensorstore")
        slide = self.ingested(self.slide(size="1500x1200", seed=4), "zstd", "--tissue", "clam")
        harness.nifti(self.folder / "v.nii", (70, 50, 60), (1, 1, 2), lambda z, y, x: z * y - x)
        volume = self.ingested(self.folder / "v.nii", "zstd", "--modality", "CT", out="volume")
        for store, said in ((slide, "[(3, 5), (3, 5)]"), (volume, "[(3, 5)]")):
            made, row = self.converted(store, "ngff-0.4", f"planar-{store.parent.name}")
            self.assertEqual(made.name, store.name)
            found = subprocess.run([harness.PYTHON, "-c", PLANAR, made, store], text=True, check=False, capture_output=True)
            self.assertEqual(found.stdout.strip(), said, found.stderr)
            self.assertEqual((row["digest"], row["pixel_digest"]), self.roots(store))
            self.assertTrue(self.converted(store, "ngff-0.4", made.parent)[1]["already_there"])
            again = self.json("inspect", made / "0")
            self.assertEqual(len(again["levels"]), len(self.json("inspect", store)["levels"]))
            self.assertIn(b"<MetadataOnly/>", (made / "OME/METADATA.ome.xml").read_bytes())

    def test_many_files_are_announced_and_refused_without_force(self):
        store = self.ingested(self.slide(size="1500x1200"), "lz4")
        said = self.command("convert", store, "--to", "ngff-0.4", "--out", self.folder / "planar")
        self.assertIn(f"up to 29 files will be in {self.folder / 'planar'}", said.stderr)
        document = store / "0/zarr.json"
        text = document.read_text()
        document.write_text(text.replace("[\n    3,\n    1200,\n    1500\n  ]", "[3, 300000, 300000]"))
        self.assertNotEqual(document.read_text(), text)
        said = self.command("convert", store, "--to", "ngff-0.4", "--out", self.folder / "refused")
        self.assertEqual(said.returncode, 1, said.stderr)
        self.assertIn("--to ngff-0.4 would write up to 257564 files, more than 200000; give --force to write them", said.stderr)
        self.assertFalse((self.folder / "refused").exists())
        said = self.command("convert", store, "--to", "ngff-0.4", "--force", "--out", self.folder / "refused")
        self.assertIn("up to 257564 files will be in", said.stderr)

    def test_a_kept_store_is_copied_and_its_copy_verified(self):
        kept = self.ingested(self.slide(size="1500x1200", seed=6), "keep", "--tissue", "clam")
        copy, row = self.converted(kept, "keep", "copy")
        self.assertEqual(self.roots(copy), self.roots(kept))
        self.assertEqual(shards_of(copy), shards_of(kept))
        self.assertEqual(self.command("verify", copy).returncode, 0)
        self.assertFalse(row["already_there"])
        self.assertTrue(self.converted(kept, "keep", "copy")[1]["already_there"])

    def test_refusals_name_the_store_and_leave_nothing(self):
        slide = self.slide(size="1500x1200")
        lz4 = self.ingested(slide, "lz4")
        kept = self.ingested(slide, "keep")
        j2k = self.ingested(self.data("luna-1065626-ihc-j2k33003.svs"), "keep", "--no-statistics", out="j2k")
        for store, to, cause in ((lz4, ("keep",), "--to keep: the store has no kept tiles; `patchbay ingest SLIDE --codec keep` takes them of its slide"),
                                 (kept, ("svs", "--quality", 80), "--to svs: kept tiles stay as they are: leave out --quality"),
                                 (j2k, ("tiff",), "--to tiff: JPEG 2000 as Aperio has it is opened of an SVS alone: use svs")):
            said = self.command("convert", store, "--to", *to, "--out", self.folder / "refused")
            self.assertEqual(said.returncode, 3, said.stderr)
            self.assertIn(cause, (self.folder / "refused/failed.csv").read_text())
        for words, cause in (((slide, "--to", "lz4"), "no store: `patchbay ingest` makes one of it"),
                             ((lz4, kept, "--to", "zstd"), "duplicate name: another store is called a.ome.zarr")):
            said = self.command("convert", *words, "--out", self.folder / "refused")
            self.assertEqual(said.returncode, 1)
            self.assertIn(cause, said.stderr)
        target = self.folder / "refused/a.ome.zarr"
        target.mkdir()
        said = self.command("convert", lz4, "--to", "zstd", "--out", target.parent)
        self.assertIn("exists and is not this store converted so", said.stderr)
        target.rmdir()
        shard = kept / "0/c/0/0/0"
        content = bytearray(shard.read_bytes())
        content[len(content) // 2] ^= 1
        shard.write_bytes(content)
        for store, to, cause in ((kept, "zstd", "crc32c mismatch"), (kept, "svs", "crc32c mismatch"), (kept, "keep", "crc32c mismatch"), (lz4, "ome-tiff", "missing")):
            if store == lz4:
                (lz4 / "0/c/0/0/0").unlink()
            said = self.command("convert", store, "--to", to, "--out", self.folder / "refused")
            self.assertEqual(said.returncode, 3, to)
            self.assertIn(cause, said.stderr)
        self.assertEqual(sorted(path.name for path in target.parent.iterdir()), ["failed.csv", "manifest.csv"])

    def test_a_full_disk_and_a_killed_worker_leave_nothing_half_written(self):
        store = self.ingested(self.slide(size="3000x2500"), "lz4", "--shard", 512)
        size = sum(path.stat().st_size for path in store.rglob("*") if path.name != "stain.colours")
        disk = self.small_disk(f"{size // 2048}k")  # its parts leave room for the tables
        words = lambda out: ("convert", store, "--to", "zstd", "--codec-level", 1, "--out", out)
        for said in (self.command(*words(disk / "out")), self.command("convert", store, "--to", "ome-tiff", "--out", disk / "out"),
                     self.command("convert", store, "--to", "ngff-0.4", "--out", disk / "out")):
            self.assertEqual(said.returncode, 3, said.stderr)
            self.assertIn("No space left on device", said.stderr)
            self.assertEqual(sorted(path.name for path in (disk / "out").iterdir()), ["failed.csv", "manifest.csv"])
        self.resize(disk, "100m")
        self.assertEqual(self.command(*words(disk / "out")).returncode, 0)
        cluster = self.up(1)
        made = [self.roots(next((disk / "out").glob("*.ome.zarr")))]
        for out, to in (("killed", ("zstd", "--codec-level", 1)), ("killed-file", ("ome-tiff",)), ("killed-planar", ("ngff-0.4",))):
            convert = self.start("convert", store, "--to", *to, "--out", self.folder / out)
            harness.wait_until(lambda out=out: list(self.folder.glob(f"{out}/.patchbay-convert/*/staging/*/parts/*")), "a finished part")
            self.assertEqual([path.name for path in (self.folder / out).iterdir()], [".patchbay-convert"])
            self.kill(self.pids(cluster, "patchbay-worker")[0])
            self.done(convert)
            self.assertFalse((self.folder / out / ".patchbay-convert").exists())
        made.append(self.roots(next((self.folder / "killed").glob("*.ome.zarr"))))
        self.assertEqual(made[0], made[1])
        self.assertEqual(made[0][1], self.roots(store)[1])
        self.down(cluster)
        for out, to in (("killed-file", "ome-tiff"), ("killed-planar", "ngff-0.4")):
            files = [{path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name not in ("manifest.csv", "failed.csv")}
                     for folder in (self.folder / out, self.converted(store, to, f"{out}-whole")[0].parent)]
            self.assertEqual(files[0], files[1], out)


if __name__ == "__main__":
    harness.main()
