"""icc_to_srgb: from a slide's profile to batches, from the store and from the slide; what has none is named."""
import struct
import unittest

import harness
from gpu_test import emulated

SIDE, TILE = 512, 256
OWNER = "scanner of Dr Jane Doe"


def profile(gamma):
    """An ICC profile (version 2): the primaries of sRGB, one gamma, and a text that says whose it is."""
    def fixed(*values):
        return b"".join(struct.pack(">i", round(v * 65536)) for v in values)

    text = OWNER.encode() + b"\0"
    curve = b"curv" + bytes(4) + struct.pack(">IH", 1, round(gamma * 256)) + bytes(2)
    tags = {b"desc": b"desc" + bytes(4) + struct.pack(">I", len(text)) + text + bytes(79),
            b"cprt": b"text" + bytes(4) + text,
            b"wtpt": b"XYZ " + bytes(4) + fixed(0.9642, 1, 0.8249),
            b"rXYZ": b"XYZ " + bytes(4) + fixed(0.4360, 0.2225, 0.0139),
            b"gXYZ": b"XYZ " + bytes(4) + fixed(0.3851, 0.7169, 0.0971),
            b"bXYZ": b"XYZ " + bytes(4) + fixed(0.1431, 0.0606, 0.7141),
            b"rTRC": curve, b"gTRC": curve, b"bTRC": curve}
    table, body, at = struct.pack(">I", len(tags)), b"", 132 + 12 * len(tags)
    for name, value in tags.items():
        value += bytes(-len(value) % 4)
        table += name + struct.pack(">II", at + len(body), len(value))
        body += value
    head = struct.pack(">I4sI4s4s4s", 132 + 12 * len(tags) + len(body), bytes(4), 0x02100000, b"scnr", b"RGB ", b"XYZ ")
    head += bytes(12) + b"acsp" + bytes(28) + fixed(0.9642, 1, 0.8249)
    return head.ljust(128, b"\0") + table + body


def tiff(path, icc, blank=False, channels=3):
    """A slide of SIDE x SIDE pixels in uncompressed tiles; it does not state its resolution."""
    entries, data = [], bytearray(struct.pack("<2sHI", b"II", 42, 0))

    def put(value):
        data.extend(value)
        return len(data) - len(value)

    offsets = []
    for row in range(0, SIDE, TILE):
        for column in range(0, SIDE, TILE):
            offsets.append(put(bytes(255 if blank else v for y in range(TILE) for x in range(TILE)
                                     for v in (60 + (column + x) // 4, 50 + (row + y) // 4, 90 + (x + y) // 5)[:channels])))
    sizes = [TILE * TILE * channels] * len(offsets)
    for tag, kind, values in ((256, 4, [SIDE]), (257, 4, [SIDE]), (258, 3, [8] * channels), (259, 3, [1]),
                              (262, 3, [2 if channels == 3 else 1]),
                              (277, 3, [channels]), (322, 4, [TILE]), (323, 4, [TILE]), (324, 4, offsets), (325, 4, sizes),
                              (34675, 7, icc)):
        if not values:
            continue
        packed = values if kind == 7 else b"".join(struct.pack("<H" if kind == 3 else "<I", v) for v in values)
        where = packed.ljust(4, b"\0") if len(packed) <= 4 else struct.pack("<I", put(packed))
        entries.append(struct.pack("<HHI", tag, kind, len(values)) + where)
    data.extend(bytes(len(data) % 2))
    struct.pack_into("<I", data, 4, len(data))
    data.extend(struct.pack("<H", len(entries)) + b"".join(entries) + bytes(4))
    path.write_bytes(data)
    return path


class Icc(harness.Case):
    devices = 0

    def environment(self, **more):
        return super().environment(PATCHBAY_EMULATED_GPUS=str(self.devices), **more)

    def setUp(self):
        super().setUp()
        self.scanned = tiff(self.folder / "scanned.tif", profile(1.8))
        self.plain = tiff(self.folder / "plain.tif", b"")
        self.broken = tiff(self.folder / "broken.tif", b"no profile at all")

    def run_over(self, dataset, name, options="{}"):
        text = self.run_file(dataset, name=name).read_text()
        path = self.folder / name
        path.write_text(text.replace("preprocess: [", f"preprocess: [{{icc_to_srgb: {options}}}, ")
                        .replace("order: shuffled", "order: sequential"))
        return path

    def test_a_profile_becomes_colours_and_nothing_else(self):
        stores = self.store([self.scanned])
        store = next(stores.glob("*.zarr"))
        said = self.json("inspect", store)
        self.assertEqual((said["icc_to_srgb"]["grid"], len(said["icc_to_srgb"]["sha256"])), (33, 64))
        self.assertNotEqual(said["stain_srgb"], said["stain"])
        for path in store.rglob("*"):
            if path.is_file():
                self.assertNotIn(b"Doe", path.read_bytes())
        self.assertEqual(self.command("verify", store).returncode, 0)
        before = self.json("stream", self.run_file(stores, name="without.yaml"), "--digest")["digest"]
        shown = self.json("stream", self.run_over(stores, "stores.yaml"), "--digest")
        self.assertNotEqual(shown["digest"], before)
        self.assertNotIn("without_icc", shown["skipped"])
        straight = self.json("stream", self.run_over(self.scanned, "slide.yaml"), "--digest", "--cpus", 2)
        self.assertEqual(straight["digest"], shown["digest"])

    @unittest.skipUnless(emulated(), "this build plays no CUDA device")
    def test_a_gpu_gives_the_bytes_of_the_cpu(self):
        self.devices = 1
        stores = self.store([self.scanned, self.plain])
        digests = {}
        for numerics in ("cpu", "cuda"):
            run = self.run_over(stores, f"{numerics}.yaml")
            run.write_text(run.read_text().replace("numerics: cpu", f"numerics: {numerics}"))
            said = self.json("stream", run, "--digest", "--cpus", 1)
            digests[numerics] = said["digest"]
            self.assertEqual(len(said["skipped"]["without_icc"]), 1)
        self.assertEqual(digests["cuda"], digests["cpu"])

    def test_images_that_an_op_cannot_take_are_refused_by_file_line_and_key(self):
        grey = tiff(self.folder / "grey.tif", b"", channels=1)
        blank = tiff(self.folder / "blank.tif", b"", blank=True)
        stores = self.store([blank])
        for dataset, old, new, code, *parts in (
                (grey, "preprocess: [", "preprocess: [icc_to_srgb, ", 2, "run.yaml:7", "grey.tif", "preprocess[0].icc_to_srgb",
                 "three channels of uint8, the image has 1 of uint8"),
                (grey, "flip: {}", "hed_jitter", 2, "run.yaml:8", "augment[0].hed_jitter", "the images have 1 channel"),
                (self.plain, "preprocess: [", "preprocess: [stain_normalize, ", 2, "run.yaml:7", "plain.tif",
                 "preprocess[0].stain_normalize", "patchbay ingest"),
                (self.plain, "level: 0", "mpp: [0.5]", 2, "run.yaml:4", "plain.tif", "patch.mpp"),
                (stores, "preprocess: [", "preprocess: [stain_normalize: {reference: cohort}, ", 2, "run.yaml:7",
                 "preprocess[0].stain_normalize.reference", "none of the images has a stain fit"),
                (stores, "preprocess: [", "preprocess: [stain_normalize, ", 0, "no stain fit (too_few_pixels)")):
            run = self.run_file(dataset)
            text = run.read_text()
            if new.count("icc") or dataset == grey:
                text = text.replace("mean: [0.7, 0.55, 0.7], std: [0.2, 0.2, 0.2]", "mean: [0.7], std: [0.2]")
            self.assertIn(old, text)
            run.write_text(text.replace(old, new))
            with self.subTest(op=new, dataset=dataset.name):
                said = self.command("config", "check", run)
                self.assertEqual(said.returncode, code, said.stderr)
                for part in parts:
                    self.assertIn(part, said.stderr)
        slide = self.slide(size="512x512")
        below = self.command("config", "check", self.run_file(slide), "--set", "patch={size: [128, 128], mpp: [0.1]}")
        self.assertEqual(below.returncode, 2, below.stderr)
        self.assertIn("patch.mpp", below.stderr)
        self.assertIn("a.svs", below.stderr)

    def test_what_has_no_profile_is_named_or_refused(self):
        stores = self.store([self.scanned, self.plain, self.broken])
        result = self.command("config", "check", self.run_over(stores, "keep.yaml"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("no_profile: its colours are taken for sRGB", result.stderr)
        self.assertIn("unusable_profile: its colours are taken for sRGB", result.stderr)
        refused = self.command("stream", self.run_over(stores, "refuse.yaml", "{missing: refuse}"), "--digest")
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertRegex(refused.stderr, r"refuse.yaml:7: plan stream: \S+.zarr: key 'preprocess\[0\].icc_to_srgb.missing'")
        self.assertIn("_profile", refused.stderr)
        typed = self.command("config", "check", self.run_over(stores, "typed.yaml", "{missing: skip}"))
        self.assertEqual(typed.returncode, 2, typed.stderr)
        self.assertIn("preprocess[0].icc_to_srgb.missing", typed.stderr)


if __name__ == "__main__":
    harness.main()
