"""Embeddings and Parquet as their readers see them, where this Python has h5py, zarr and pyarrow; and what is said where not."""
import importlib.util
import pathlib
import shutil
import sys
import tempfile
import unittest

try:
    import numpy
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import fake_units

fake_units.install()
from patchbay import errors  # noqa: E402
from patchbay.map import function, run  # noqa: E402


def has(package):
    return importlib.util.find_spec(package) is not None


def predict(_, batch):
    numbers = batch["ordinal"].astype(numpy.float32)
    return {"f": numpy.stack([numbers, numbers / 3, -numbers], axis=1),
            "t": {"n": [[int(n)] * int(n % 3) for n in batch["ordinal"]], "name": [[f"cell {n}"] * int(n % 3) for n in batch["ordinal"]]}}


class Rows(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="patchbay-map-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def map(self, outputs, predict, size=(64, 64), stride=(32, 48), images=((1, 200, 300),), batch=7, **fake):
        config = {"patch": {"size": list(size)}, "sampling": {"stride": list(stride), "positions": "grid"}, "batch": {"global_size": batch},
                  "outputs": outputs, "fake": {"folder": str(self.folder / f"units-{batch}"), "images": images, **fake}}
        job = run.prepare(config, function.Function.of_objects(predict, None, None), {})
        self.assertEqual(run.consume(job, self.folder / f"out-{batch}", show=False)["failed"], [])
        return self.folder / f"out-{batch}/000000-slide-0"

    @unittest.skipUnless(has("h5py"), "needs h5py")
    def test_features_as_clam_and_trident_read_them(self):
        import h5py
        found = self.map({"f": {"kind": "embedding"}}, lambda _, batch: {"f": predict(_, batch)["f"]}, mpp=0.25)
        boxes = fake_units.boxes_of({"patch": {"size": [64, 64]}, "sampling": {"stride": [32, 48]}, "fake": {}}, (1, 200, 300))
        with h5py.File(found / "f.h5") as file:
            features, coords = file["features"][:], file["coords"]
            self.assertEqual((features.dtype, features.shape, coords.dtype), (numpy.float32, (len(boxes), 3), numpy.int64))
            numpy.testing.assert_array_equal(features[:, 0], numpy.arange(len(boxes)))
            numpy.testing.assert_array_equal(coords[:], [[x, y] for _, y, x, *_ in boxes])
            attributes = dict(coords.attrs)
            self.assertEqual({key: attributes[key] for key in ("patch_size", "patch_size_level0", "level0_magnification", "target_magnification",
                                                               "overlap", "level0_width", "level0_height", "patch_level", "name")},
                             {"patch_size": 64, "patch_size_level0": 64, "level0_magnification": 40, "target_magnification": 40, "overlap": 16,
                              "level0_width": 300, "level0_height": 200, "patch_level": 0, "name": "slide 0"})
            numpy.testing.assert_array_equal(attributes["level_dim"], [300, 200])
            numpy.testing.assert_array_equal(attributes["downsample"], [1, 1])

    @unittest.skipUnless(has("zarr"), "needs zarr")
    def test_features_as_zarr_have_the_same_bytes_for_every_batch_size(self):
        import zarr
        expected, boxes = None, fake_units.boxes_of({"patch": {"size": [64, 64]}, "sampling": {"stride": [16, 16]}, "fake": {}}, (1, 300, 400))
        self.assertGreater(len(boxes), 256, "more rows than a chunk has")
        for batch in (1, 7, 300):
            found = self.map({"f": {"kind": "embedding", "file": "zarr"}}, lambda _, batch: {"f": predict(_, batch)["f"]}, stride=(16, 16),
                             images=((1, 300, 400),), batch=batch, mpp=0.25)
            group = zarr.open_group(found / "f.zarr", mode="r")
            numpy.testing.assert_array_equal(group["features"][:, 0], numpy.arange(len(boxes)))
            numpy.testing.assert_array_equal(group["coords"][:], [[x, y] for _, y, x, *_ in boxes])
            self.assertEqual((group["features"].dtype, group["coords"].dtype), (numpy.float32, numpy.int64))
            self.assertEqual((group.attrs["patch_size_level0"], group.attrs["level0_magnification"]), (64, 40))
            made = {str(path.relative_to(found)): path.read_bytes() for path in sorted(found.rglob("*")) if path.is_file()}
            expected = expected or made
            self.assertEqual(made, expected)

    @unittest.skipUnless(has("h5py"), "needs h5py")
    def test_values_beyond_float16_are_refused(self):
        config = {"patch": {"size": [64, 64]}, "sampling": {"positions": "grid"}, "batch": {"global_size": 7},
                  "outputs": {"f": {"kind": "embedding", "dtype": "float16"}}, "fake": {"folder": str(self.folder / "units"), "images": [[1, 64, 64]]}}
        job = run.prepare(config, function.Function.of_objects(lambda _, batch: {"f": numpy.full((1, 3), 1e6)}, None, None), {})
        (_, reason), = run.consume(job, self.folder / "out", show=False)["failed"]
        self.assertIn("output: f, patch 0: inf", reason)

    @unittest.skipUnless(has("pyarrow"), "needs pyarrow")
    def test_parquet_has_the_rows_of_the_csv(self):
        import pyarrow.parquet
        found = self.map({"t": {"kind": "table", "columns": ["n", "name"], "parquet": True}}, lambda _, batch: {"t": predict(_, batch)["t"]}, mpp=0.5)
        table = pyarrow.parquet.read_table(found / "t.parquet")
        lines = (found / "t.csv").read_text(encoding="utf-8").splitlines()
        self.assertEqual(lines[0], ",".join(table.column_names))
        self.assertEqual(len(lines) - 1, table.num_rows)
        self.assertEqual([str(n) for n in table["n"].to_pylist()], [line.split(",")[9] for line in lines[1:]])
        self.assertEqual(table["name"].to_pylist()[-1], lines[-1].split(",")[10])
        self.assertEqual(table["y_um"].to_pylist()[-1], float(lines[-1].split(",")[7]))

    @unittest.skipUnless(has("pyarrow"), "needs pyarrow")
    def test_parquet_has_the_same_bytes_for_every_batch_size(self):
        outputs, made = {"t": {"kind": "table", "columns": ["n", "many"], "parquet": True}}, set()

        def rows_of(_, batch):
            return {"t": {"n": batch["ordinal"], "many": [list(range(400))] * len(batch["ordinal"])}}  # more than a group has
        for batch in (1, 7, 300):
            found = self.map(outputs, rows_of, stride=(32, 32), images=((1, 300, 400),), batch=batch)
            made.add((found / "t.parquet").read_bytes())
        self.assertEqual(len(made), 1)

    @unittest.skipUnless(has("pyarrow"), "needs pyarrow")
    def test_a_column_of_several_types_fails_its_image(self):
        config = {"patch": {"size": [64, 64]}, "sampling": {"positions": "grid"}, "batch": {"global_size": 7},
                  "outputs": {"t": {"kind": "table", "columns": ["n"], "parquet": True}},
                  "fake": {"folder": str(self.folder / "units"), "images": [[1, 64, 128]]}}
        job = run.prepare(config, function.Function.of_objects(lambda _, batch: {"t": {"n": [1, "two"]}}, None, None), {})
        (_, reason), = run.consume(job, self.folder / "out", show=False)["failed"]
        self.assertIn("output: t: a column has values of several types", reason)

    def test_a_package_that_is_not_there_is_said_before_the_first_patch(self):
        for package, outputs in (("h5py", {"f": {"kind": "embedding"}}), ("pyarrow", {"t": {"kind": "table", "columns": ["n"], "parquet": True}})):
            if has(package):
                continue
            with self.assertRaisesRegex(errors.ConfigError, f"it needs the package {package} in this Python"):
                self.map(outputs, predict)
            self.assertFalse((self.folder / "out-7").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
