"""PNGs of maps and scores against a direct computation: the slide's pixels averaged, with the colours of the values half over
them."""
import pathlib
import shutil
import sys
import tempfile
import types
import unittest

try:
    import numpy
    import PIL.Image
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import fake_units

fake_units.install()
from patchbay.map import function, heat, run  # noqa: E402

EXTENT = (1, 750, 1050)
heat.SIDE = 256  # small pictures, which are soon made: with 1050 / 512 a pixel has 2 x 3 of the slide


def predict(_, batch):
    image = numpy.asarray(batch["image"])
    image = image.astype(numpy.float32) / 255 if image.dtype == numpy.uint8 else image + 1
    image = image if image.shape[-1] == 3 else numpy.moveaxis(image, 1, -1)
    return {"p": image[:, ::2, ::2, 0][:, None], "c": numpy.stack([image[:, ::2, ::2, 0], 1 - image[:, ::2, ::2, 0]], 1),
            "s": image.mean((1, 2))[:, :2]}


class Pictures(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="patchbay-map-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def pictures(self, outputs, change=None, batch=7, **fake):
        """{name: (y, x, 4)} of the PNGs of one slide. change: of the pixels of a batch, before the function gets them."""
        config = {"patch": {"size": [36, 60]}, "sampling": {"stride": [36, 50], "positions": "grid"}, "batch": {"global_size": batch},
                  "outputs": outputs, "fake": {"folder": str(self.folder / f"units-{batch}"), "images": [EXTENT], **fake}}
        unit = fake_units.Unit.__iter__

        def changed(self):
            for one in unit(self):
                yield one if change is None else {**one, "image": change(one["image"])}
        fake_units.Unit.__iter__ = changed
        self.addCleanup(setattr, fake_units.Unit, "__iter__", unit)

        def spoil(model, one):
            found = {name: value for name, value in predict(model, one).items() if name in outputs}
            one["image"][...] = 0  # the function may do with its batch as it likes
            return found
        job = run.prepare(config, function.Function.of_objects(spoil, None, None), {})
        self.assertEqual(run.consume(job, self.folder / f"out-{batch}", show=False)["failed"], [])
        fake_units.Unit.__iter__ = unit
        return {path.stem: numpy.asarray(PIL.Image.open(path)) for path in (self.folder / f"out-{batch}/000000-slide-0").glob("*.png")}

    @staticmethod
    def thumbnail():
        """Means of 2 x 2 samples of the slide, every third pixel."""
        samples = fake_units.pixels_of(0, EXTENT)[0, ::3, ::3].astype(float)
        return (samples[::2, ::2] + samples[1::2, ::2] + samples[::2, 1::2] + samples[1::2, 1::2]) / 4

    @staticmethod
    def over(under, values):
        return numpy.where(numpy.isnan(values)[..., None], under, under / 2 + heat.colours(values)[..., :3] / 2.0)

    def test_scores_lie_over_the_slide(self):
        found = self.pictures({"s": {"kind": "score", "classes": ["a", "b/c"]}})
        self.assertEqual(sorted(found), ["s.0-a", "s.1-b-c"])
        picture, pixels = found["s.0-a"], fake_units.pixels_of(0, EXTENT)[0, ..., 0] / 255
        self.assertEqual(picture.shape, (125, 175, 4))
        self.assertTrue((picture[..., 3] == 255).all())
        padded = numpy.pad(pixels, [(0, 36), (0, 60)], constant_values=1)
        cells = numpy.array([[padded[y:y + 36, x:x + 60].mean() for x in range(0, 1050, 50)] for y in range(0, 750, 36)])
        # A score lies around the centre of its patch, (60 - 50) / 2 pixels behind its corner; the outermost go on to the border.
        rows, columns = (numpy.arange(125) * 6 + 3) // 36, numpy.clip((numpy.arange(175) * 6 + 3 - 5) // 50, 0, 20)
        expected = self.over(self.thumbnail(), cells[rows][:, columns])
        self.assertLessEqual(numpy.abs(picture[..., :3] - expected).max(), 3)

    def test_maps_lie_over_the_slide_and_classes_have_their_colours(self):
        outputs = {"p": {"kind": "map", "classes": ["p"]}, "c": {"kind": "map", "classes": ["dark", "bright"], "class_map": [0.4, 0.7]}}
        found = self.pictures(outputs, leave_out=[0.5, 0.5])
        red, thumbnail = fake_units.pixels_of(0, EXTENT)[0, ..., 0] / 255, self.thumbnail()
        there = (numpy.arange(125)[:, None] < 62) | (numpy.arange(175)[None] < 87)
        nothing = numpy.zeros((125, 175), bool)
        nothing[72:, 97:] = True
        for name, picture in found.items():
            self.assertEqual(picture.shape, (125, 175, 4), name)
            self.assertTrue((picture[nothing, 3] == 0).all() and (picture[there, 3] == 255).all(), name)
        self.assertEqual(sorted(found), ["c", "p"])
        # The map has every second pixel; its picture is of the level of every fourth of those, 8 pixels of the slide.
        blocks = numpy.pad(red[::2, ::2], [(0, 1), (0, 3)], constant_values=numpy.nan).reshape(94, 4, 132, 4)
        blocks = numpy.nanmean(blocks, axis=(1, 3))
        rows, columns = (numpy.arange(125) * 6 + 3) // 8, (numpy.arange(175) * 6 + 3) // 8
        expected = self.over(thumbnail, blocks[rows][:, columns])
        self.assertLess(numpy.abs(found["p"][..., :3] - expected)[there].max(), 6)
        # 0.4 of "dark" is reached, then 0.7 of "bright", 1 less "dark"; where both are the greater one counts.
        shown = numpy.select([blocks < 0.3, blocks > 0.4], [1.0, 0.5], numpy.nan)
        sure = (numpy.abs(blocks - 0.3) > 0.02) & (numpy.abs(blocks - 0.4) > 0.02)
        expected = self.over(thumbnail, shown[rows][:, columns])
        sure = sure[rows][:, columns] & there
        self.assertLess(numpy.abs(found["c"][..., :3] - expected)[sure].max(), 3)

    def test_the_first_class_of_argmax_has_no_colour(self):
        for number, output in enumerate(({}, {"class_map": "argmax", "dtype": "float16"})):
            found = self.pictures({"c": {"kind": "map", "classes": ["dark", "bright"], **output}}, batch=7 + number)["c"][..., :3]
            blocks = numpy.pad(fake_units.pixels_of(0, EXTENT)[0, ::2, ::2, 0] / 255, [(0, 1), (0, 3)], constant_values=numpy.nan)
            blocks = numpy.nanmean(blocks.reshape(94, 4, 132, 4), axis=(1, 3))
            rows, columns = (numpy.arange(125) * 6 + 3) // 8, (numpy.arange(175) * 6 + 3) // 8
            shown = numpy.where(blocks < 0.5, 1.0, numpy.nan)[rows][:, columns]
            sure = (numpy.abs(blocks - 0.5) > 0.02)[rows][:, columns]
            self.assertLess(numpy.abs(found - self.over(self.thumbnail(), shown))[sure].max(), 3)

    def test_planes_of_floats_are_stretched_and_batches_change_nothing(self):
        outputs = {"s": {"kind": "score", "classes": ["a", "b"]}}

        def planes(image):
            return numpy.ascontiguousarray(numpy.moveaxis(image.astype(numpy.float32) / 255 - 1, -1, 1))
        found = self.pictures(outputs, planes)
        for name, picture in self.pictures(outputs, planes, batch=200).items():
            numpy.testing.assert_array_equal(picture, found[name])
        thumbnail = self.thumbnail()
        low, high = thumbnail.min((0, 1)), thumbnail.max((0, 1))
        stretched = (thumbnail - low) * 255 / (high - low)
        plain = self.pictures({"s": outputs["s"]}, batch=11)["s.0-a"][..., :3] - thumbnail / 2  # the colours alone
        self.assertLess(numpy.abs(found["s.0-a"][..., :3] - plain - stretched / 2).max(), 3)

    def test_pixels_that_nobody_can_read_leave_the_colours_alone(self):
        class Bfloat16(numpy.ndarray):
            def __dlpack__(self, **_):
                raise BufferError("no such type")
        found = self.pictures({"s": {"kind": "score", "classes": ["a", "b"]}}, lambda image: image.view(Bfloat16))["s.0-a"]
        self.assertEqual(found.shape, (21 * 12, 21 * 12, 4))
        self.assertEqual(len(numpy.unique(found.reshape(-1, 4), axis=0)), len(numpy.unique(found[::12, ::12].reshape(-1, 4), axis=0)))

    def test_pixels_that_torch_alone_can_read(self):
        """As of a device: from_dlpack of NumPy refuses them."""
        class Elsewhere(numpy.ndarray):
            def __dlpack__(self, **_):
                raise BufferError("in device memory")
        expected = self.pictures({"s": {"kind": "score", "classes": ["a", "b"]}})["s.0-a"]
        self.addCleanup(sys.modules.pop, "torch", None)
        sys.modules["torch"] = types.SimpleNamespace(__version__="0", from_dlpack=numpy.asarray)
        found = self.pictures({"s": {"kind": "score", "classes": ["a", "b"]}}, lambda image: image.view(Elsewhere), batch=8)["s.0-a"]
        numpy.testing.assert_array_equal(found, expected)

    def test_patches_between_the_samples_leave_the_colours_alone(self):
        grid = run.geometry.Grid((1, 8, 8), (1, 8, 8), False, True)
        place = run.geometry.ImagePlace(grid, {"level_sizes": [[1, 64, 100000]], "downsamples": [1.0]}, 0, (0, 0, 0, 1, 8, 8))
        thumbnail = heat.Thumbnail(place)
        thumbnail.add([(0, 16, 8, 1, 8, 8)], numpy.ones((1, 8, 8, 3), numpy.float32))
        self.assertIsNone(thumbnail.rgba())

    def test_ops_that_move_pixels_leave_the_colours_alone(self):
        grid = run.geometry.Grid.of({"patch": {"size": [8, 8]}, "preprocess": [{"flip": {}}]})
        self.assertFalse(grid.has_pictures())
        self.assertTrue(run.geometry.Grid.of({"patch": {"size": [8, 8]}, "preprocess": [{"normalize": {}}]}).has_pictures())
        self.assertFalse(run.geometry.Grid.of({"patch": {"size": [8, 8, 8]}}).has_pictures())


if __name__ == "__main__":
    unittest.main(verbosity=2)
