"""The extension's loops below a map against integers, NumPy and zlib: means, levels, classes, packed chunks."""
import gzip
import sys
import unittest

try:
    import numpy
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import fake_units

fake_units.install()
from patchbay import _extension  # noqa: E402
from patchbay.map import blend, pyramid, zarr_array  # noqa: E402

WHOLE, MOST = _extension.BLEND_WHOLE, _extension.BLEND_MOST_WEIGHT


def finished(sums, weights, dtype):
    """Means of one channel, by the extension."""
    sums, weights = (numpy.array(each).astype(numpy.uint32).reshape(1, 1, 1, -1) for each in (sums, weights))
    out = numpy.zeros(sums.shape, dtype)
    _extension.blend_finish(sums, weights, blend.bits_of(out))
    assert not sums.any(), "the sums become 0"
    return out.reshape(-1)


class Finishing(unittest.TestCase):
    def setUp(self):
        self.draw = numpy.random.default_rng(11)

    def test_means_are_those_of_integers_at_every_half(self):
        some = numpy.concatenate([numpy.arange(1, 200), self.draw.integers(1, MOST + 1, 200), [MOST]]).astype(object)
        weights = numpy.repeat(numpy.append(some, 254 * 2), 254 * 3)
        # The half between k and k + 1, or the number just below it, and its neighbours.
        step = numpy.tile(numpy.repeat(numpy.arange(254), 3), len(some) + 1).astype(object)
        beside = numpy.tile([-1, 0, 1], len(step) // 3).astype(object)
        sums = numpy.clip((2 * step + 1) * weights * WHOLE // 508 + beside, 0, weights * WHOLE)
        expected = (2 * sums * 254 + weights * WHOLE) // (2 * weights * WHOLE)
        self.assertTrue(((2 * sums * 254) % (weights * WHOLE) == 0).any(), "there are halves")
        numpy.testing.assert_array_equal(finished(sums, weights, numpy.uint8), expected.astype(int))

    def test_float16_is_the_nearest(self):
        weights = self.draw.integers(1, MOST + 1, 200_000).astype(numpy.uint32)
        sums = (weights * (WHOLE * self.draw.random(len(weights)) ** self.draw.integers(1, 9, len(weights)))).astype(numpy.uint32)
        weights[:4], sums[:4] = [4, 1, 1, 0], [4 * WHOLE, 0, WHOLE, 0]
        with numpy.errstate(invalid="ignore"):
            expected = (sums / (weights * float(WHOLE))).astype(numpy.float16)
        found = finished(sums, weights, numpy.float16)
        numpy.testing.assert_array_equal(found, expected)
        self.assertTrue((found < 2 ** -14).any(), "numbers that float16 has with fewer bits are among them")

    def test_not_covered_is_255_or_nan(self):
        numpy.testing.assert_array_equal(finished([0, 0], [0, 1], numpy.uint8), [255, 0])
        numpy.testing.assert_array_equal(finished([0, 0], [0, 1], numpy.float16), [numpy.nan, 0])

    def test_the_least_and_greatest_probability_count_and_others_are_refused(self):
        def add(value):
            sums = numpy.zeros((1, 1, 1, 9), numpy.uint32)
            found = _extension.blend_add(sums, numpy.full((1, 1, 1, 1, 9), value, numpy.float32), numpy.full((1, 1, 1, 9), 3, numpy.uint32),
                                         [0], [((0, 0, 0), (0, 0, 0), (1, 1, 9))])
            return found, set(sums.reshape(-1))
        self.assertEqual(add(-0.0), (True, {0}))
        self.assertEqual(add(1), (True, {3 * WHOLE}))
        for value in (numpy.nextafter(numpy.float32(1), numpy.float32(2)), -1e-30, numpy.nan, -numpy.nan, numpy.inf, -numpy.inf):
            self.assertFalse(add(value)[0], value)


class Adding(unittest.TestCase):
    def setUp(self):
        self.draw = numpy.random.default_rng(15)

    def test_sums_are_those_of_integers_and_what_lies_outside_is_cut_off(self):
        for tile, size in (((1, 20, 40), (1, 17, 33)), ((9, 11, 21), (6, 8, 13))):
            weights = self.draw.integers(1, MOST // 8, (1, *size)).astype(numpy.uint32)
            batch = self.draw.random((5, 2, *size)).astype(numpy.float32)
            numbers = [4, 0, 2, 2]
            places = [tuple(tuple(int(self.draw.integers(low, high + 1)) for low, high in each) for each in (
                [(-n, n) for n in tile], [(-2, n // 2) for n in size], [(n // 2, n + 3) for n in size])) for _ in numbers]
            sums, weighed = self.draw.integers(0, 99, (2, *tile)).astype(numpy.uint32), numpy.zeros((1, *tile), numpy.uint32)
            expected, expected_weights = sums.copy(), weighed.copy()
            for number, (origin, first, end) in zip(numbers, places):
                for pixel in numpy.ndindex(*size):
                    at = tuple(a + b for a, b in zip(origin, pixel))
                    if all(a <= b < c for a, b, c in zip(first, pixel, end)) and all(0 <= a < n for a, n in zip(at, tile)):
                        whole = numpy.floor(batch[(number, slice(None), *pixel)] * numpy.float32(WHOLE) + numpy.float32(0.5))
                        expected[(slice(None), *at)] += whole.astype(numpy.uint32) * weights[(0, *pixel)]
                        expected_weights[(0, *at)] += weights[(0, *pixel)]
            self.assertTrue(_extension.blend_add(sums, batch, weights, numbers, places))
            self.assertTrue(_extension.blend_weigh(weighed, weights, places))
            numpy.testing.assert_array_equal(sums, expected)
            numpy.testing.assert_array_equal(weighed, expected_weights)

    def test_a_patch_that_is_not_there_is_refused(self):
        sums, weights = numpy.zeros((1, 1, 4, 4), numpy.uint32), numpy.ones((1, 1, 4, 4), numpy.uint32)
        place = ((0, 0, 0), (0, 0, 0), (1, 4, 4))
        for channels, numbers, places in ((1, [2], [place]), (2, [1], [place]), (1, [0, 1], [place])):
            with self.assertRaises(ValueError):
                _extension.blend_add(sums, numpy.zeros((2, channels, 1, 4, 4), numpy.float32), weights, numbers, places)


class Levels(unittest.TestCase):
    def test_means_of_covered_pixels(self):
        draw = numpy.random.default_rng(12)
        for dtype in (numpy.uint8, numpy.float16):
            for extent in ((1, 6, 8), (1, 1, 1), (1, 7, 601), (5, 3, 9), (4, 2, 258), (1, 2, 512)):
                values = draw.integers(0, 255, (2, *extent)) / (1 if dtype == numpy.uint8 else 254 * draw.integers(1, 99999, (2, *extent)))
                holes = draw.random((1, *extent)) < (0.4 if extent[1] != 2 else 0)
                stored = numpy.where(holes, 255 if dtype == numpy.uint8 else numpy.nan, values).astype(dtype)
                known = numpy.pad(numpy.where(holes, 0, stored).astype(float), [(0, 0), *((0, n % 2) for n in extent)])
                count = numpy.pad(~holes, [(0, 0), *((0, n % 2) for n in extent)])
                shape = [n for whole in known.shape[1:] for n in (whole // 2, 2)]
                total, count = (each.reshape(len(each), *shape).sum(axis=(2, 4, 6), dtype=float) for each in (known, count))
                mean = total / numpy.maximum(count, 1)
                expected = numpy.where(count > 0, numpy.floor(mean + 0.5), 255) if dtype == numpy.uint8 else numpy.where(count > 0, mean, numpy.nan)
                numpy.testing.assert_array_equal(pyramid.reduced(stored), expected.astype(dtype), str((dtype, extent)))

    def test_a_level_of_another_size_is_refused(self):
        with self.assertRaises(ValueError):
            _extension.blend_halve(numpy.zeros((1, 4, 4, 4), numpy.uint8), numpy.zeros((1, 2, 2, 3), numpy.uint8))

    def test_classes_are_argmaxs(self):
        values = numpy.random.default_rng(13).integers(0, 4, (5, 1, 40, 40)).astype(numpy.uint32)
        numpy.testing.assert_array_equal(blend.class_of("argmax", values, values[0] >= 0, WHOLE), values.argmax(axis=0))


class Packing(unittest.TestCase):
    def contents(self):
        draw = numpy.random.default_rng(14)
        y, x = numpy.mgrid[:128, :256]
        waves = 127 + 120 * numpy.sin(y / 60) * numpy.sin(x / 60)
        fibonacci = [1, 1]
        while sum(fibonacci) < 30000:
            fibonacci.append(sum(fibonacci[-2:]))
        yield "nothing", numpy.zeros(0)
        yield "one", numpy.ones(1)
        yield "even", numpy.full(32768, 63)
        yield "waves", waves
        yield "waves with noise", waves + draw.normal(0, 2, waves.shape)
        yield "noise", draw.integers(0, 256, 100_000)
        yield "small numbers", draw.exponential(3, 70_000)
        yield "codes that would be too long", draw.permutation(numpy.repeat(numpy.arange(len(fibonacci)), fibonacci))
        for period in (32767, 32768, 32769):
            yield f"repeats after {period}", numpy.tile(numpy.append(draw.integers(0, 256, 500), numpy.zeros(period - 500)), 3)
        for size in range(2, 40):
            yield f"{size} of two", draw.integers(0, 2, size)
        for _ in range(50):
            yield "runs", numpy.repeat(draw.integers(0, 256, 300), draw.integers(1, 400, 300))

    def test_chunks_are_gzips(self):
        sizes = {}
        for name, values in self.contents():
            chunk = numpy.clip(values, 0, 255).astype(numpy.uint8)
            packed = zarr_array.encode(chunk)
            self.assertEqual(gzip.decompress(packed), chunk.tobytes(), name)
            self.assertLessEqual(len(packed), chunk.size + chunk.size // 1024 + 32, name)
            sizes[name] = len(packed)
        self.assertLess(sizes["even"], 100)
        self.assertLess(sizes["waves"], 32768 * 0.4)
        self.assertLess(sizes["small numbers"], 70_000 * 0.5)
        self.assertLess(sizes["repeats after 32768"], sizes["repeats after 32769"] - 300)

    def test_the_checksum_of_an_index_is_castagnolis(self):
        self.assertEqual(_extension.crc32c(b"123456789"), 0xE3069283)  # RFC 3720 has its polynomial

    def test_chunks_are_little_endian(self):
        self.assertEqual(gzip.decompress(zarr_array.encode(numpy.array([1, 2], ">f4"))), numpy.array([1, 2], "<f4").tobytes())


if __name__ == "__main__":
    unittest.main(verbosity=2)
