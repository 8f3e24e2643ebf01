"""One table of slides as labs hold them, an SVS, an NDPI, a DICOM series, a 16-bit OME-TIFF and PNG tiles by class, streams with labels:
masks, classes of images and the pixels that other readers find."""
import csv
import json
import subprocess

import dicom_slides_test
import harness

SIDE = 64  # a tile's and a patch's

# Writes b.ndpi (one JPEG that Pillow makes, in a directory of Hamamatsu's tags), panel.ome.tif, tiles of two classes, and what is in them.
MAKE = r"""
import io, pathlib, struct
import numpy, tifffile
from PIL import Image
def picture(height, width, seed):
    y, x = numpy.mgrid[0:height, 0:width]
    return numpy.stack([(x // 3 + seed * 40) % 200, (y // 2 + 3 * seed) % 220, (x + y + 50 * seed) % 240], -1).astype(numpy.uint8)
def ndpi(path, pixels):
    jpeg = io.BytesIO()
    Image.fromarray(pixels).save(jpeg, "jpeg", quality=95)
    jpeg = jpeg.getvalue()
    numpy.save("ndpi.npy", numpy.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB")))
    height, width = pixels.shape[:2]
    at = 12 + len(jpeg)
    real = at + 2 + 12 * 17 + 8 + 8  # behind the directory
    word, half, number, signed = ("<I", 4), ("<H", 3), ("<f", 11), ("<i", 9)
    tags = [(256, word, width), (257, word, height), (259, half, 7), (262, half, 6), (273, word, 12), (277, half, 3), (278, word, height),
            (279, word, len(jpeg)), (282, ("<I", 5), real), (283, ("<I", 5), real), (296, half, 3), (65420, word, 1), (65421, number, 20.0),
            (65422, signed, 0), (65423, signed, 0), (65424, signed, 0), (65441, word, 0)]
    out = b"II*\0" + struct.pack("<Q", at) + jpeg + struct.pack("<H", len(tags))
    for tag, (form, kind), value in tags:
        out += struct.pack("<HHI", tag, kind, 1) + struct.pack(form, value).ljust(4, b"\0")
    pathlib.Path(path).write_bytes(out + struct.pack("<Q", 0) + bytes(8) + struct.pack("<II", 20000, 1))
ndpi("slides/b.ndpi", picture(384, 512, 1))
y, x = numpy.mgrid[0:300, 0:260]
planes = numpy.stack([(x * (c + 3) + y * y // (c + 1)) % 40000 for c in range(3)]).astype(numpy.uint16)
with tifffile.TiffWriter("slides/panel.ome.tif", ome=True) as tif:
    tif.write(planes, metadata={"axes": "CYX", "Channel": {"Name": ["DAPI", "CD8", "CD3"]}}, photometric="minisblack", tile=(128, 128), compression="zlib")
numpy.save("panel.npy", planes.transpose(1, 2, 0))
for n, name in enumerate(("ADI/0", "ADI/1", "TUM/0")):
    pathlib.Path(f"tiles/{name}.png").parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture(64, 64, n)).save(f"tiles/{name}.png")
numpy.save("series.npy", numpy.fromfile("series.raw", numpy.uint8).reshape(250, 210, 3))
numpy.save("tiles.npy", numpy.concatenate([picture(64, 64, n) for n in range(3)]))
"""
# Arguments: the folder of saved batches, the slides in the order of their rows, the square as y, x, y, x. Each patch has the class of its
# row, a mask of 1 in the square and 255 around it, and the pixels of NAME.npy where that is there.
COMPARE = r"""
import pathlib, sys
import numpy
folder, names, grades = pathlib.Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3].split(",")
top, left, bottom, right = map(int, sys.argv[4].split(","))
seen = dict.fromkeys(names, 0)
for path in sorted(folder.glob("*-image.npy")):
    arrays = {a: numpy.load(str(path).replace("-image.npy", f"-{a}.npy")) for a in ("image", "mask", "label", "image_index", "box")}
    for image, mask, label, index, box in zip(*arrays.values()):
        name, (y, x) = names[index], box[1:3]
        seen[name] += 1
        assert label == int(grades[index]), (name, label)
        whole = numpy.full((4096, 4096), 255, numpy.uint8)
        whole[top:bottom, left:right] = 1
        assert numpy.array_equal(mask, whole[y:y + 64, x:x + 64]), (name, box)
        if pathlib.Path(f"{name}.npy").exists():
            pixels = numpy.load(f"{name}.npy")[y:y + 64, x:x + 64]
            assert numpy.array_equal(image[:pixels.shape[0], :pixels.shape[1]], pixels), (name, box)
assert all(seen.values()), seen
print(sum(seen.values()))
"""
SQUARE = (24, 8, 56, 40)  # y, x from; y, x to
RUN = """dataset: cohort.csv
stores: stores
where: {{kind: {kind}}}
patch: {{size: [{side}, {side}], level: 0}}
sampling: {{order: sequential}}
labels: {{set: areas, mask: true, label: {{column: grade}}}}
batch: {{global_size: 8, dtype: {dtype}, layout: nhwc, tail: keep, meta: true}}
"""


class MixedSlides(harness.Case):
    def table(self):
        """cohort.csv: the slides as `scan` finds them, and the store of tiles; each with an annotation, a grade and its kind of light."""
        self.json("scan", "slides", "--out", "scanned.csv", "--hash")
        with open(self.folder / "scanned.csv", newline="", encoding="utf-8") as file:
            rows = [{"path": row["path"], "content_hash": row["content_hash"]} for row in csv.DictReader(file)]
        with open(self.folder / "stores/cohort.csv", newline="", encoding="utf-8") as file:
            rows += [{"path": "stores/" + row["path"], "content_hash": ""} for row in csv.DictReader(file)]
        for number, row in enumerate(rows):
            light = "dark" if "panel" in row["path"] else "bright"
            row |= {"slide_id": f"s{number}", "annotation": "areas.geojson", "grade": number, "kind": light}
        with open(self.folder / "cohort.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        return rows

    def test_a_table_of_all_of_them_streams_with_labels(self):
        if not harness.oracles("numpy", "tifffile", "PIL"):
            self.skipTest("needs numpy, tifffile and Pillow")
        (self.folder / "slides/series").mkdir(parents=True)
        (self.folder / "series.raw").write_bytes(b"".join(dicom_slides_test.pixel(1, y, x) for y in range(250) for x in range(210)))
        subprocess.run([harness.PYTHON, "-c", MAKE], cwd=self.folder, check=True)
        self.slide("slides/a.svs", "300x260")
        (self.folder / "slides/series/0.dcm").write_bytes(dicom_slides_test.instance(1, 1))
        self.assertEqual(self.json("inspect", "slides/b.ndpi")["source"]["kind"], "openslide:hamamatsu")
        self.assertEqual(len(self.json("ingest", "slides", "--out", "stores", "--codec", "lz4")["stores"]), 4)
        self.json("ingest", "tiles", "--out", "stores", "--codec", "lz4")
        top, left, bottom, right = SQUARE
        ring = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
        (self.folder / "areas.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [
            {"type": "Feature", "properties": {"classification": {"name": "tumour"}}, "geometry": {"type": "Polygon", "coordinates": [ring]}}]}))
        (self.folder / "classes.yaml").write_text("classes: [{value: 1, name: tumour}]\n")
        rows = self.table()
        self.json("labels", "import", "cohort.csv", "--stores", "stores", "--set", "areas", "--classes", "classes.yaml")
        patches = 0
        for kind, dtype in (("bright", "uint8"), ("dark", "float32")):
            (self.folder / f"{kind}.yaml").write_text(RUN.format(kind=kind, side=SIDE, dtype=dtype))
            self.json("stream", f"{kind}.yaml", "--save", kind)
            listed = [row for row in rows if row["kind"] == kind]
            names = [next((n for n in ("ndpi", "panel", "series", "tiles") if n in row["path"]), "svs" if row["path"].endswith("svs") else "tiles")
                     for row in listed]
            self.assertEqual(sorted(names), ["ndpi", "series", "svs", "tiles"] if kind == "bright" else ["panel"])
            done = subprocess.run([harness.PYTHON, "-c", COMPARE, kind, ",".join(names), ",".join(str(row["grade"]) for row in listed),
                                   ",".join(map(str, SQUARE))], cwd=self.folder, check=True, stdout=subprocess.PIPE, text=True)
            patches += int(done.stdout)
        self.assertGreater(patches, 60)


if __name__ == "__main__":
    harness.main()
