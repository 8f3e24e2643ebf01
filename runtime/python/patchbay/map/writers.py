"""From the function's values to files: one writer an output and image, in the order of the patches."""
import dataclasses
import re

import numpy

from .. import errors
from . import heat, ngff, rows
from .blend import FLAT_TILE, VOLUME_TILE, Blend, ProbabilityError
from .pyramid import Pyramid
from .returned import array_of
from .scratch import Scratch
from .stored import StoredGrid
from .zarr_array import ZarrArray


@dataclasses.dataclass
class Image:
    """The image that is written. place: None until its first batch. name: as tables show it. thumbnail: where pictures need it."""
    folder: str
    name: str
    patches: int
    grid: object
    place: object = None
    thumbnail: object = None


@dataclasses.dataclass(frozen=True)
class Places:
    """Where the patches of a batch are: copies, for the function may do as it likes with its batch."""
    ordinals: numpy.ndarray
    levels: numpy.ndarray
    boxes: numpy.ndarray

    def __len__(self):
        return len(self.ordinals)

    def cells(self, image):
        """The first columns of a table (rows.PLACE), a tuple for each patch."""
        for ordinal, level, box in zip(self.ordinals, self.levels, self.boxes):
            um = image.place.corner_um(box)
            yield (image.name, int(ordinal), int(level), *(int(at) for at in box[:3]), *um)


class _Writer:
    """One output of one image: `add` for every batch, then `close`; `abandon` instead lets go of what is open."""

    def __init__(self, output, image, check):
        self.output, self.image, self.check = output, image, check
        self.open()

    def open(self):
        pass

    def add(self, places, value):
        raise NotImplementedError

    def close(self):
        pass

    def abandon(self):
        pass


class MapWriter(_Writer):
    blends = Blend

    def open(self):
        self._blend = self._sink = self._scratch = None

    def _begin(self, size):
        image, volume = self.image, self.image.grid.volume
        tile = VOLUME_TILE if volume else FLAT_TILE
        self._scratch = Scratch(image.folder)
        if self.output.grid == "stored":
            pyramid = Pyramid(image.folder, self.output, image.place.extent_stored, tile, image.place.stored_scale())
            self._sink = StoredGrid(pyramid, self.output, image.place, size, tile)
        else:
            self._sink = Pyramid(image.folder, self.output, image.place.extent_in(size), tile, image.place.scale(size))
        self._blend = self.blends(self.output, image.place, size, self._sink, tile, self._scratch)

    def _size(self, array):
        """The extent of a patch as the function made it, z, y, x; a whole part of the patch that it got."""
        size = array.shape[2:] if self.image.grid.volume else (1, *array.shape[2:])
        if array.shape[1] != len(self.output.classes):
            self.check.fail(f"{array.shape[1]} channels for {len(self.output.classes)} classes")
        if any(n == 0 or whole % n for n, whole in zip(size, self.image.grid.size)):
            self.check.fail(f"patches of {array.shape[2:]}: expected those of the config, {self.image.grid.size}, or a whole part of them")
        return size

    def add(self, places, value):
        array = self.check.numbers(value, len(places), (4 if self.image.grid.volume else 3,))
        size = self._size(array)
        if self._blend is None:
            self._begin(size)
        origins = [self.image.place.origin(box, size) for box in places.boxes]
        batch = numpy.ascontiguousarray(array, numpy.float32).reshape(len(array), -1, *size)
        try:
            self._blend.add(origins, batch)
        except ProbabilityError:
            self._refuse(places, origins, batch)

    def _refuse(self, places, origins, batch):
        """Names the first patch that has something else than probabilities where it counts."""
        for ordinal, origin, patch in zip(places.ordinals, origins, batch):
            there = patch[(slice(None), *map(slice, *self._blend.window(origin)))]
            bad = there[~((there >= 0) & (there <= 1))]
            if bad.size:
                self.check.fail(f"{bad[0]}: probabilities are expected, from 0 to 1", ordinal)

    def close(self):
        self._blend.end()
        self._sink.close()
        self._scratch.close()
        if not self.image.grid.volume:
            cells = [(self._sink.shown_step * whole / n, 0) for whole, n in zip(self.image.grid.size, self._blend.size)]
            heat.draw(self.image.folder, self.output.name, self._sink.shown, cells[1:], self.image.thumbnail)

    def abandon(self):
        if self._sink is not None:
            self._sink.abandon()
            self._scratch.close()


class ScoreWriter(_Writer):
    def open(self):
        self._csv = rows.CsvFile(self.image.folder, self.output.name, (*rows.PLACE, *self.output.classes))
        self._cells = None

    def add(self, places, value):
        array = self.check.numbers(value, len(places), (1,)).astype(numpy.float32)
        if array.shape[1] != len(self.output.classes):
            self.check.fail(f"{array.shape[1]} scores for {len(self.output.classes)} classes")
        self.check.finite(array, places.ordinals)
        self._csv.add((*cells, *scores) for cells, scores in zip(places.cells(self.image), array))
        if self.image.grid.is_grid:
            self._put(places, array)

    def _put(self, places, array):
        place = self.image.place
        step = place.box_step()
        if self._cells is None:
            extent = [-(-whole // one) for whole, one in zip(place.extent, step)]
            self._cells = numpy.full((array.shape[1], *extent), numpy.nan, numpy.float32)
        z, y, x = (places.boxes[:, axis] // step[axis] for axis in range(3))
        self._cells[:, z, y, x] = array.T

    def close(self):
        self._csv.close()
        if self._cells is None:
            return
        volume, path = self.image.grid.volume, f"{self.image.folder}/{self.output.name}.ome.zarr"
        axes, tile = (("c", "z", "y", "x"), VOLUME_TILE) if volume else (("c", "y", "x"), FLAT_TILE)
        shape = self._cells.shape if volume else (len(self._cells), *self._cells.shape[2:])
        array = ZarrArray(f"{path}/0", shape, tile, "float32", "NaN", axes)
        for channel, plane in enumerate(self._cells):
            array.put_all((channel,), plane)
        array.close()
        ngff.write_group(path, axes, [plane.shape], self.image.place.grid_scale(), {"classes": list(self.output.classes), "uncovered": "NaN"})
        if not volume:
            self._draw()

    def _draw(self):
        """A picture of each class: a score lies around the centre of its patch."""
        place, cells, there = self.image.place, [], []
        for whole, n, box, step in list(zip(place.extent, place.grid.size, place.box, place.box_step()))[1:]:
            side = step * n / box
            cells.append((side, (n - side) / 2))
            there.append(slice(max(0, -(-(whole - box) // step)) + 1))
        for channel, name in enumerate(self.output.classes):
            safe = re.sub(r"[^A-Za-z0-9_-]+", "-", name)
            values = self._cells[(channel, 0, *there)]
            heat.draw(self.image.folder, f"{self.output.name}.{channel}-{safe}", values, cells, self.image.thumbnail)

    def abandon(self):
        self._csv.close()


class EmbeddingWriter(_Writer):
    def open(self):
        kind = rows.FeatureZarr if self.output.file == "zarr" else rows.FeatureFile
        self._file = kind(self.image.folder, self.output, self.image.patches)

    def add(self, places, value):
        array = self.check.numbers(value, len(places), (1,))
        self.check.finite(array, places.ordinals)
        with numpy.errstate(over="ignore"):
            stored = array.astype(self.output.dtype)
        self.check.finite(stored, places.ordinals)
        corners = numpy.array([self.image.place.corner(box)[::-1] for box in places.boxes], numpy.int64)
        self._file.add(stored, corners if self.image.grid.volume else corners[:, :2])

    def close(self):
        image = self.image
        self._file.close(rows.coords_attributes(image.place, image.grid.size, image.name))

    def abandon(self):
        self._file.abandon()


class TableWriter(_Writer):
    def open(self):
        columns = (*rows.PLACE, *self.output.columns)
        kinds = [rows.CsvFile] + ([rows.ParquetFile] if self.output.parquet else [])
        self._files = [kind(self.image.folder, self.output.name, columns) for kind in kinds]

    def _column(self, name, value, count):
        """A list of one value or of one list of values for each patch."""
        if not isinstance(value, (list, tuple)):
            try:
                value = array_of(value)
            except (TypeError, ValueError, RuntimeError, BufferError) as error:
                self.check.fail(f"column {name}: not an array: {error}")
            value = list(value) if value.ndim else [value]
        if len(value) != count:
            self.check.fail(f"column {name}: {len(value)} rows for {count} patches")
        return value

    def _rows_of(self, cells, ordinal, values):
        """The rows of one patch: as many as its ragged columns have, one where it has none."""
        ragged = [value for value in values if isinstance(value, (list, tuple, numpy.ndarray)) and numpy.ndim(value)]
        lengths = {len(value) for value in ragged}
        if len(lengths) > 1:
            self.check.fail(f"columns of {' and '.join(map(str, sorted(lengths)))} rows", ordinal)
        for i in range(lengths.pop() if lengths else 1):
            row = tuple(value[i] if any(value is each for each in ragged) else value for value in values)
            for name, one in zip(self.output.columns, row):
                if isinstance(one, (float, numpy.floating)) and not numpy.isfinite(one):
                    self.check.fail(f"column {name}: {one}: finite numbers are expected", ordinal)
            yield (*cells, *row)

    def add(self, places, value):
        if not hasattr(value, "keys") or set(value.keys()) != set(self.output.columns):
            found = ", ".join(map(str, value.keys())) if hasattr(value, "keys") else type(value).__name__
            self.check.fail(f"{found}: expected a dict of the columns {', '.join(self.output.columns)}")
        columns = [self._column(name, value[name], len(places)) for name in self.output.columns]
        found = []
        for i, cells in enumerate(places.cells(self.image)):
            found += self._rows_of(cells, places.ordinals[i], [column[i] for column in columns])
        self._each(lambda file: file.add(found))

    def _each(self, call):
        try:
            for file in self._files:
                call(file)
        except (TypeError, ValueError) as error:  # pyarrow says so
            self.check.fail(f"a column has values of several types: {error}")

    def close(self):
        self._each(lambda file: file.close())

    def abandon(self):
        for file in self._files:
            file.abandon()


class ImageWriter(_Writer):
    """Keeps the rows of an image for `finish(model, rows)`, and writes the one row that it returns."""

    def open(self):
        self._rows = []

    def add(self, places, value):
        array = self.check.numbers(value, len(places), range(16))
        self.check.finite(array, places.ordinals)
        self._rows.append(array.copy())

    def rows(self):
        return numpy.concatenate(self._rows)

    def finish(self, value):
        array = numpy.atleast_1d(array_of(value))
        if array.ndim != 1 or array.dtype.kind not in "fiub" or not numpy.isfinite(array).all():
            self.check.fail(f"finish returned {value!r}: expected a finite number or a vector of them")
        names = self.output.columns or ((self.output.name,) if len(array) == 1 else tuple(f"{self.output.name}_{i}" for i in range(len(array))))
        if len(names) != len(array):
            self.check.fail(f"finish returned {len(array)} values for the columns {', '.join(names)}")
        file = rows.CsvFile(self.image.folder, self.output.name, ("image", "patches", *names))
        file.add([(self.image.name, self.image.patches, *array)])
        file.close()


WRITERS = {"map": MapWriter, "score": ScoreWriter, "embedding": EmbeddingWriter, "table": TableWriter, "image": ImageWriter}
