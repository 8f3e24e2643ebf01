"""Blended maps against formulas of their own, and their files in zarr-python: order, batch size and tiles change nothing."""
import json
import math
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

try:
    import numpy
    import zarr
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import fake_units

fake_units.install()
from patchbay.map import bands as made_in_bands  # noqa: E402
from patchbay.map import blend, consumer, declared, function, geometry, pyramid, run  # noqa: E402


def monai_importance(size):
    """MONAI's compute_importance_map (gaussian, sigma_scale 0.125) and the clamp of sliding_window_inference, in float64."""
    importance = numpy.ones(())
    for n in size:
        x = numpy.arange(-(n - 1) / 2, (n - 1) / 2 + 1)
        importance = importance[..., None] * numpy.exp(x ** 2 / (-2 * (0.125 * n) ** 2))
    return numpy.clip(importance, max(importance.min(), 1e-3), None)


def probabilities_of(image):
    """Two classes of pixels (..., 3) uint8, whose sum is no constant, exact in float32."""
    values = image.astype(numpy.float32) / 256
    return numpy.stack([values[..., 0], (values[..., 1] + values[..., 2]) / 2], axis=1)


def blended(config, number, weights, reduce=1):
    """The mean of all patches, in float64: the formula, without tiles or integers."""
    extent = config["fake"]["images"][number]
    size = [1] * (3 - len(config["patch"]["size"])) + config["patch"]["size"]
    pixels = numpy.pad(fake_units.pixels_of(number, extent), [(0, n) for n in size] + [(0, 0)], constant_values=255)
    sums = numpy.zeros((2, *(-(-(whole + n) // reduce) for whole, n in zip(extent, size))))
    total = numpy.zeros(sums.shape[1:])
    for z, y, x, d, h, w in fake_units.boxes_of(config, extent):
        patch = probabilities_of(pixels[None, z:z + d, y:y + h, x:x + w])[0]
        part = patch[:, ::1, ::reduce, ::reduce] if reduce > 1 else patch
        at = (slice(z, z + d), slice(y // reduce, y // reduce + part.shape[2]), slice(x // reduce, x // reduce + part.shape[3]))
        sums[(slice(None), *at)] += part * weights
        total[at] += weights
    inside = tuple(slice(-(-n // (reduce if axis else 1))) for axis, n in enumerate(extent))
    with numpy.errstate(invalid="ignore"):
        return (sums / total)[(slice(None), *inside)], (total > 0)[inside]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="patchbay-map-"))
        self.addCleanup(lambda: __import__("shutil").rmtree(self.folder))

    def config(self, images, size, stride, outputs, batch=5, **fake):
        return {"patch": {"size": size}, "sampling": {"stride": stride, "positions": "grid"}, "batch": {"global_size": batch},
                "outputs": outputs, "fake": {"folder": str(self.folder / "units"), "images": images, **fake}}

    def map(self, config, predict, out="out", finish=None):
        """Runs one consumer in this process; the summary."""
        job = run.prepare(config, function.Function.of_objects(predict, None, finish), {})
        found = run.consume(job, self.folder / out, show=False)
        self.assertEqual(found["failed"], [])
        return found

    def arrays(self, name, out="out", image="000000-slide-0"):
        group = zarr.open_group(self.folder / out / image / f"{name}.ome.zarr", mode="r")
        return [numpy.asarray(group[level["path"]]) for level in group.attrs["ome"]["multiscales"][0]["datasets"]], group.attrs


MAP = {"kind": "map", "classes": ["tumour", "stroma"], "class_map": "argmax"}


def predict(_, batch):
    return {"p": probabilities_of(batch["image"])}


def predict_third(_, batch):
    return {"p": probabilities_of(batch["image"])[..., ::3, ::3]}


def predict_thirds(_, batch):
    return {"p": probabilities_of(batch["image"])[..., ::3, ::3, ::3]}


class Blending(Case):
    def check(self, config, weights, tolerance):
        """The stored map and class map of image 0 against the formula, all levels against the first."""
        self.map(config, predict)
        levels, attributes = self.arrays("p")
        expected, covered = blended(config, 0, weights)
        flat = len(config["patch"]["size"]) == 2
        got = levels[0][:, None] if flat else levels[0]
        if got.dtype == numpy.uint8:
            self.assertTrue(((got == 255) == ~covered).all(), "not covered is 255 and nothing else is")
            got = numpy.where(got == 255, numpy.nan, got / 254)
        self.assertTrue((numpy.isnan(got) == ~covered).all())
        self.assertLess(numpy.nanmax(numpy.abs(got - expected)), tolerance)
        classes = self.arrays("p.classes")[0][0]
        classes = classes[None] if flat else classes
        first, second = expected
        sure = covered & (numpy.abs(first - second) > 2e-3)
        self.assertTrue((classes[sure] == (second > first)[sure]).all())
        self.assertTrue((classes[~covered] == 255).all())
        return levels, attributes

    def test_gaussian_is_monais_within_a_thousandth(self):
        # The stored float16 has 11 bits: 2.5e-4 at 1; probabilities are rounded to 1/8191, weights to less than 1/500.
        config = self.config([[1, 301, 423]], [64, 64], [32, 32], {"p": {**MAP, "dtype": "float16"}}, mpp=0.25)
        levels, attributes = self.check(config, monai_importance([1, 64, 64]), 1e-3)
        self.assertEqual([level.shape for level in levels], [(2, 301, 423), (2, 151, 212)])
        transforms = attributes["ome"]["multiscales"][0]["datasets"][1]["coordinateTransformations"]
        self.assertEqual(transforms[0]["scale"], [1.0, 0.5, 0.5])
        self.assertEqual(transforms[1]["translation"], [0.0, 0.125, 0.125])

    def test_the_importance_is_monais(self):
        for size in ([1, 64, 64], [32, 48, 16], [1, 7, 9]):
            numpy.testing.assert_allclose(blend.gaussian(size), monai_importance(size), rtol=1e-12)

    def test_uniform_with_holes(self):
        config = self.config([[1, 300, 420]], [48, 48], [32, 32], {"p": {**MAP, "blend": "uniform"}}, leave_out=[0.4, 0.6])
        self.check(config, numpy.ones((1, 48, 48)), 0.5 / 254 + 1e-3)

    def test_volumes(self):
        config = self.config([[50, 70, 90]], [16, 32, 32], [8, 16, 16], {"p": {**MAP, "dtype": "float16"}}, spacing=[2.0, 0.7, 0.7])
        levels, attributes = self.check(config, monai_importance([16, 32, 32]), 1e-3)
        self.assertEqual(len(levels), 1)
        scale = attributes["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"]
        numpy.testing.assert_allclose(scale, [1.0, 2000, 700, 700])

    def check_stored(self, dtype, um_of_pixel, function=predict_thirds, **fake):
        """A map on the voxels of the store against NumPy's interpolation of the same map on the patch's grid, axis by axis."""
        outputs = {"p": {**MAP, "dtype": dtype, "class_map": [0.4, 0.5]}}
        for out, grid in (("patch", {}), ("stored", {"grid": "stored"})):
            config = self.config([[110, 60, 71]], [24, 24, 24], [12, 12, 12], {"p": {**outputs["p"], **grid}}, spacing=[2.0, 0.7, 0.7], **fake)
            config["fake"]["folder"] += out
            self.map(config, function, out)
        whole = 254 if dtype == "uint8" else 1
        here = self.arrays("p", "patch")[0][0].astype(float)
        known = ~numpy.isnan(here) if dtype == "float16" else here != 255
        total, weight = numpy.where(known, here, 0), known.astype(float)
        for axis, count in enumerate((110, 60, 71), 1):
            centres = (numpy.arange(here.shape[axis]) + 0.5) * um_of_pixel - 0.5
            def along(line):
                return numpy.interp(numpy.arange(count), centres, line)
            total, weight = (numpy.apply_along_axis(along, axis, each) for each in (total, weight))
        levels, attributes = self.arrays("p", "stored")
        self.assertEqual(levels[0].shape, (2, 110, 60, 71))
        stored = levels[0].astype(float)
        covered = ~numpy.isnan(stored) if dtype == "float16" else stored != 255
        unsure = numpy.abs(weight - 0.5) < 0.01  # weights are multiples of 1 / 256 there
        numpy.testing.assert_array_equal(covered[~unsure], (weight > 0.5)[~unsure])
        sure = covered & (weight > 0.51)
        expected = total[sure] / weight[sure]
        self.assertLess(numpy.abs(stored[sure] - expected).max(), whole * 3 / 512 + (0.5 if dtype == "uint8" else 1e-3))
        classes = self.arrays("p.classes", "stored")[0][0]
        limits = numpy.array([int(0.4 * 254 + 0.5), int(0.5 * 254 + 0.5)] if dtype == "uint8" else [0.4, 0.5])[:, None, None, None]
        reached = numpy.where(covered & (stored >= limits), stored, -1)
        wanted = numpy.where(reached.max(axis=0) < 0, 0, reached.argmax(axis=0) + 1)
        numpy.testing.assert_array_equal(classes, numpy.where(covered[0], wanted, 255))
        transforms = attributes["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"]
        numpy.testing.assert_allclose(transforms[0]["scale"], [1.0, 2000, 700, 700])
        numpy.testing.assert_allclose(transforms[1]["translation"], [0.0] * 4)
        return levels[0], self.arrays("p", "patch")[0][0]

    def test_volumes_return_to_the_voxels_of_their_store(self):
        self.check_stored("uint8", 3)

    def test_volumes_with_holes_return_in_float16(self):
        self.check_stored("float16", 3, leave_out=[0.4, 0.6])

    def test_a_volume_that_was_not_resampled_returns_as_it_is(self):
        stored, here = self.check_stored("uint8", 1, function=predict)
        numpy.testing.assert_array_equal(stored, here)

    def test_center_takes_each_pixel_from_the_patch_around_it(self):
        config = self.config([[1, 200, 260]], [40, 40], [20, 20], {"p": {**MAP, "blend": "center", "dtype": "float16"}})
        self.map(config, lambda _, batch: {"p": numpy.broadcast_to(
            (batch["ordinal"] % 97 / 128).astype(numpy.float32)[:, None, None, None], (len(batch["ordinal"]), 2, 40, 40))})
        got = self.arrays("p")[0][0][0]
        columns = 12  # the grid's
        for y, x in ((0, 0), (9, 9), (29, 30), (30, 31), (100, 150), (199, 259)):
            row, column = (min(max(0, (at - 10) // 20), last) for at, last in ((y, 8), (x, 11)))
            self.assertEqual(got[y, x], numpy.float16(numpy.floor((row * columns + column) % 97 / 128 * 8191 + 0.5) / 8191), (y, x))

    def test_patches_of_a_whole_part_have_the_size_of_their_pixels(self):
        config = self.config([[1, 200, 310]], [48, 48], [24, 24], {"p": {**MAP, "blend": "uniform", "dtype": "float16"}}, mpp=1.0)
        self.map(config, predict_third)
        levels, attributes = self.arrays("p")
        expected, _ = blended(config, 0, numpy.ones((1, 16, 16)), 3)
        self.assertEqual(levels[0].shape, (2, 67, 104))
        self.assertLess(numpy.abs(levels[0][:, None] - expected).max(), 1e-3)
        transforms = attributes["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"]
        self.assertEqual((transforms[0]["scale"], transforms[1]["translation"]), ([1.0, 3.0, 3.0], [0.0, 1.0, 1.0]))

    def test_levels_are_means_of_what_is_covered(self):
        config = self.config([[1, 700, 900]], [96, 96], [64, 64], {"p": {**MAP, "blend": "uniform"}}, leave_out=[0.3, 0.7])
        self.map(config, predict)
        levels = self.arrays("p")[0]
        self.assertEqual([level.shape[1:] for level in levels], [(700, 900), (350, 450), (175, 225)])
        for above, here in zip(levels, levels[1:]):
            padded = numpy.pad(above, [(0, 0), (0, above.shape[1] % 2), (0, above.shape[2] % 2)], constant_values=255).astype(int)
            parts = numpy.stack([padded[:, y::2, x::2] for y in (0, 1) for x in (0, 1)])
            count = (parts != 255).sum(0)
            mean = ((parts * (parts != 255)).sum(0) + count // 2) // numpy.maximum(count, 1)
            numpy.testing.assert_array_equal(here, numpy.where(count > 0, mean, 255))

    def test_bands_make_the_bytes_of_whole_images(self):
        """Bands that end in the middle of a row or a plane, thinner than a patch, with holes, and so high that tiles of the next level
        are made in them; grids, blends and types of values."""
        outputs = {"p": MAP, "q": {**MAP, "blend": "center", "dtype": "float16", "class_map": [0.3, 0.6]}}
        stored = {**outputs, "p": {**MAP, "grid": "stored"}}
        for turn, (extent, size, stride, declared_outputs, band, fake) in enumerate((
                ([1, 500, 600], [64, 64], [32, 40], outputs, 37, {}), ([1, 400, 400], [64, 64], [32, 32], outputs, 18, {"leave_out": [0.4, 0.6]}),
                ([70, 90, 80], [16, 32, 32], [8, 16, 24], stored, 23, {"spacing": [3, 1, 1]}),
                ([1, 1300, 700], [128, 128], [96, 96], outputs, 43, {}))):
            made, packed = [], set()
            for bands in ({}, {"band": band}):
                config = self.config([extent], size, stride, declared_outputs, **fake, **bands)
                config["fake"]["folder"] += f"-{turn}-{len(bands)}"
                out = f"out-{turn}-{len(bands)}"
                with unittest.mock.patch.object(made_in_bands, "Packed", lambda *each, kept=packed: kept.add(each[0]) or pyramid.Packed(*each)):
                    self.map(config, lambda _, batch: dict.fromkeys("pq", probabilities_of(batch["image"])), out)
                folder = self.folder / out / "000000-slide-0"
                made.append({path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()})
            self.assertGreater(len(list(pathlib.Path(config["fake"]["folder"]).glob("*.end"))), 2)
            self.assertEqual(made[0].keys(), made[1].keys())
            self.assertEqual([path for path, content in made[0].items() if made[1][path] != content], [], turn)
        self.assertEqual(packed, {0, 1, 2}, "levels whose tiles were packed in a band")

    def test_a_packed_tile_or_part_that_is_damaged_is_named_and_its_band_removed(self):
        bands, is_last_wrong = self.folder / "out/.bands/000000-slide-0", True

        def predict_once(_, batch):
            if is_last_wrong and batch["ordinal"][-1] > 28:
                raise KeyError
            return predict(None, batch)
        for turn, (reason, left) in enumerate((("KeyError", [0, 1]), ("00000/p.tiles: ValueError: a tile: another", [1, 2]),
                                               ("00001/p.tiles: ValueError: a part: another", [0, 2]))):
            if turn == 1:
                for band, at in ((0, 0), (1, -1)):
                    content = bytearray((bands / f"{band:05d}/p.tiles").read_bytes())
                    content[at] ^= 1
                    (bands / f"{band:05d}/p.tiles").write_bytes(content)
            config = self.config([[1, 1300, 300]], [128, 128], [96, 96], {"p": MAP}, band=14, batch=3)
            config["fake"]["folder"] += str(turn)
            job = run.prepare(config, function.Function.of_objects(predict_once, None, None), {})
            found = run.consume(job, self.folder / "out", show=False)
            self.assertIn(reason, found["failed"][0][1])
            self.assertEqual(sorted(int(path.name) for path in bands.glob("0*")), left)
            is_last_wrong = False

    def test_thresholds(self):
        config = self.config([[1, 130, 150]], [32, 32], [32, 32], {"p": {**MAP, "dtype": "float16", "class_map": [0.3, 0.7]}})
        self.map(config, lambda _, batch: {"p": numpy.stack([numpy.full((len(batch["ordinal"]), 32, 32), p, numpy.float32)
                                                              for p in (0.3, 0.69)], 1)})
        self.assertEqual(set(self.arrays("p.classes")[0][0].reshape(-1)), {1}, "the threshold itself counts, 0.69 does not reach 0.7")


class Tiles(unittest.TestCase):
    """The order of tiles, with odd strides, tissue that is missing, and rounding."""

    def test_no_tile_is_finished_before_its_last_patch_and_memory_is_one_step(self):
        draw = numpy.random.default_rng(3)
        output = declared.Output("p", "map", ("a",), dtype="uint8", blend="uniform")
        for _ in range(40):
            size = tuple(int(n) for n in draw.integers(20, 300, 2))
            stride = tuple(int(draw.integers(n // 4 + 1, n + 20)) for n in size)
            extent = (1, *(int(n) for n in draw.integers(200, 1500, 2)))
            box = tuple(int(n * draw.choice([1, 1.97])) for n in size)
            grid = geometry.Grid((1, *size), (1, *stride), False, True)
            place = geometry.ImagePlace(grid, {"level_sizes": [extent], "downsamples": [1.0]}, 0, (0, 0, 0, 1, *box))
            step, seen = place.box_step(), []

            class Sink:
                def put(self, tile, values, classes):
                    seen.append(tile)

                def pass_to(self, origin, row):
                    pass
            from patchbay.map.scratch import Scratch
            made = blend.Blend(output, place, (1, *size), Sink(), blend.FLAT_TILE, Scratch("/tmp"))
            patch = numpy.full((1, 1, 1, *size), 0.5, numpy.float32)
            most = 0
            for y in range(0, extent[1], step[1]):
                for x in range(0, extent[2], step[2]):
                    if draw.random() < 0.8:
                        made.add([place.origin((0, y, x), (1, *size))], patch)
                        most = max(most, len(made._sums))
            made.end()
            self.assertEqual(len(seen), len(set(seen)), (size, stride, extent, box))
            wide = place.extent_in((1, *size))[2] // 256 + 2
            rows = max(1, size[0] - place.step((1, *size))[0][1]) / 128 + 2
            high = size[0] / 128 + 2
            self.assertLessEqual(most, wide * rows + (size[1] / 256 + 2) * high, (size, stride, extent, box))

    def test_sums_beyond_the_limit_lie_in_a_file(self):
        from patchbay.map.scratch import Scratch
        scratch = Scratch("/tmp", limit=4096)
        arrays = [scratch.take((3, 1000)) for _ in range(4)]
        for i, array in enumerate(arrays):
            array[...] = i
        self.assertTrue(all((array == i).all() for i, array in enumerate(arrays)))
        scratch.close()

    def test_levels_of_thin_volumes_are_whole_multiples(self):
        grid = geometry.Grid((8, 8, 8), (8, 8, 8), True, True)
        record = {"level_sizes": [[41, 512, 3], [21, 256, 2], [11, 128, 1], [6, 64, 1]], "spacing": [2.5, 0.5, 0.5]}
        for level, step in enumerate(((1, 1, 1), (2, 2, 2), (4, 4, 4), (8, 8, 4))):
            place = geometry.ImagePlace(grid, record, level, (0, 0, 0, 8, 8, 8))
            self.assertEqual(place.scale((8, 8, 8)).step, tuple(one * mm * 1000 for one, mm in zip(step, record["spacing"])))

    def test_too_many_patches_on_a_pixel_are_refused(self):
        grid = geometry.Grid((1, 8, 8), (1, 8, 8), False, True)
        place = geometry.ImagePlace(grid, {"level_sizes": [[1, 16, 16]], "downsamples": [1.0]}, 0, (0, 0, 0, 1, 8, 8))
        from patchbay.map.scratch import Scratch
        made = blend.Blend(declared.Output("p", "map", ("a",), dtype="uint8"), place, (1, 8, 8), None, blend.FLAT_TILE, Scratch("/tmp"))
        made.add([(0, 0, 0)] * 2, numpy.zeros((2, 1, 1, 8, 8), numpy.float32))
        with self.assertRaisesRegex(Exception, "more patches lie on one pixel"):
            made.end()


if __name__ == "__main__":
    unittest.main(verbosity=2)
