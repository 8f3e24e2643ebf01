"""Sheets of images: one that cannot be shown refuses no other, and a label set of a slide's store is drawn."""
import array
import collections
import json
import math
import struct
import zlib

import harness

SQUARE = ('{"type":"Feature","properties":{"classification":"tumour"},"geometry":{"type":"Polygon","coordinates":'
          '[[[100,100],[500,100],[500,400],[100,400],[100,100]]]}}')
TISSUE, SECOND_CLASS = (0, 150, 60), (230, 159, 0)
CLASSES_OF_VOLUMES = [(230, 159, 0), (0, 158, 115), (213, 94, 0), (86, 180, 233), (204, 0, 204), (240, 228, 66)]


def picture(path):
    """Width, height and rows of a PNG file, whatever its compression."""
    data = path.read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    return width, height, zlib.decompress(packed)


def colours(path):
    """Pixels of a PNG file by colour."""
    width, height, packed = picture(path)
    depth = path.read_bytes()[25]
    size = {2: 3, 6: 4}[depth]
    stride, above, found = width * size, bytearray(width * size), collections.Counter()
    for row in range(height):
        kind, line = packed[row * (stride + 1)], bytearray(packed[row * (stride + 1) + 1:(row + 1) * (stride + 1)])
        for i in range(stride if kind else 0):
            left, corner = (line[i - size], above[i - size]) if i >= size else (0, 0)
            guess = left + above[i] - corner
            paeth = min((left, above[i], corner), key=lambda value: abs(guess - value))
            line[i] = (line[i] + (0, left, above[i], (left + above[i]) // 2, paeth)[kind]) & 255
        found.update(tuple(line[i:i + 3]) for i in range(0, stride, size))
        above = line
    return found


class Preview(harness.Case):
    def test_one_image_refuses_no_sheet(self):
        folder = self.folder / "slides"
        folder.mkdir()
        for name in ("a.svs", "c.svs"):
            self.slide(f"slides/{name}", "900x700")
        whole = (folder / "a.svs").read_bytes()
        (folder / "b.svs").write_bytes(whole[:20000] + b"\0" * (len(whole) - 40000) + whole[-20000:])
        alone = self.json("preview", folder / "a.svs", folder / "c.svs", "--out", "two.png")
        self.assertEqual((alone["images"], alone["failed"]), (2, []))
        said = self.json("preview", folder, "--out", "sheet.png", expect=3)
        self.assertEqual(said["images"], 2)
        self.assertEqual([failed["path"].split("/")[-1] for failed in said["failed"]], ["b.svs"])
        self.assertEqual((self.folder / "sheet.png").read_bytes(), (self.folder / "two.png").read_bytes())
        shown = self.command("preview", folder, "--out", "sheet.png", "--force")
        self.assertRegex(shown.stderr, r"left out \S+b\.svs: \S")
        refused = self.command("preview", folder / "b.svs", "--out", "none.png")
        self.assertNotIn(refused.returncode, (0, 3))
        self.assertIn("b.svs", refused.stderr)
        self.assertFalse((self.folder / "none.png").exists())

    def test_a_volume_among_slides_is_left_out(self):
        self.slide("a.svs", "900x700")
        self.assertEqual(self.command("synth", "ct", self.folder / "ct", "--size", "8x40x40").returncode, 0)
        self.json("ingest", "ct", "--out", "volumes")
        said = self.json("preview", "a.svs", "volumes", "--out", "sheet.png", expect=3)
        self.assertEqual(said["images"], 1)
        self.assertIn("a volume on a sheet of slides", said["failed"][0]["reason"])

    def test_a_set_of_a_volume_is_drawn_in_a_colour_for_each_class(self):
        def mha(name, kind, values):
            header = ("ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\n"
                      "TransformMatrix = 1 0 0 0 1 0 0 0 1\nOffset = 0 0 0\nElementSpacing = 1 1 2\n"
                      f"DimSize = 48 40 12\nElementType = {kind}\nElementDataFile = LOCAL\n")
            (self.folder / name).write_bytes(header.encode() + values.tobytes())
        count = 48 * 40 * 12
        mha("a.mha", "MET_SHORT", array.array("h", [40] * count))  # the middle of the window
        self.json("ingest", "a.mha", "--out", "stores")
        (store,) = (self.folder / "stores").glob("*.zarr")
        (self.folder / "classes.yaml").write_text(json.dumps({"classes": [{"value": i, "name": f"c{i}"} for i in range(7)]}))
        mha("mask.mha", "MET_UCHAR", array.array("B", (i % 48 * 7 // 48 for i in range(count))))
        self.json("labels", "import", store, "mask.mha", "--set", "areas", "--classes", "classes.yaml")
        self.json("preview", store, "--labels", "areas", "--out", "sheet.png")
        shown = colours(self.folder / "sheet.png")
        for i, colour in enumerate(CLASSES_OF_VOLUMES):
            self.assertGreater(shown[tuple(int((127.5 + part) / 2) for part in colour)], 100, i)

    def test_a_set_of_a_slide_is_drawn(self):
        slide = self.slide("a.svs", "900x700")
        self.json("ingest", slide, "--out", "stores", "--tissue", "clam")
        (store,) = (self.folder / "stores").glob("*.zarr")
        (self.folder / "a.geojson").write_text(SQUARE)
        (self.folder / "classes.yaml").write_text("classes: [{value: 1, name: tumour}]\n")
        for name in ("one", "two", "three", "four", "zeta"):
            self.json("labels", "import", store, "a.geojson", "--set", name, "--classes", "classes.yaml")
        for name in ("zeta", "tissue"):
            self.json("preview", store, "--out", f"{name}.png", "--labels", name)
        self.json("preview", store, "--out", "all.png")
        sheets = [picture(self.folder / f"{name}.png") for name in ("zeta", "tissue", "all")]
        self.assertEqual(len(set(sheets)), 3)
        self.assertGreater(colours(self.folder / "tissue.png")[TISSUE], 100)
        shown = colours(self.folder / "zeta.png")
        self.assertGreater(shown[SECOND_CLASS], 100)
        fit = json.loads((store / "zarr.json").read_text())["attributes"]["patchbay"]["stain"]
        values = fit["macenko"]["values"]
        for stain, most in ((values[:3], values[6]), (values[3:6], values[7])):
            swatch = tuple(int(255 * math.exp(-part * 0.6 * most)) for part in stain)
            self.assertGreater(shown[swatch], 400, stain)
        widths = []
        for sets in ("zeta", "[zeta, tissue, one]"):
            (self.folder / "run.yaml").write_text("dataset: stores\npatch: {size: [256, 256], level: 0}\nbatch: {global_size: 2}\n"
                                                  f"labels: {{set: {sets}, mask: true}}\n")
            self.json("preview", "run.yaml", "--patches", "1", "--out", "run.png", "--force")
            widths.append(picture(self.folder / "run.png")[0])
        self.assertGreater(widths[1] - widths[0], 2 * 256, "two more masks beside the first set's")
        for image, cause in ((store, "no set 'absent' (it has four, one, three, tissue, two, zeta)"),
                             (slide, "--labels: a slide has no label sets: ingest it")):
            refused = self.command("preview", image, "--out", "none.png", "--labels", "absent")
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(cause, refused.stderr)
            self.assertFalse((self.folder / "none.png").exists())


if __name__ == "__main__":
    harness.main()
