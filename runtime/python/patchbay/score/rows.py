"""CSV files of results as they are read: one row of kind image, one row a patch of kind score."""
import csv
import io
import os

import numpy

from ..map.rows import PLACE
from .folder import damaged

_LINE = 1 << 16  # characters; longer ones are no row
_PLACES = PLACE.index("level"), PLACE.index("x") + 1


def _lines(file):
    return iter(lambda: file.readline(_LINE), "")


def of_images(folder, output):
    """(names of the columns, values of all images) of the one row that an image has."""
    names, values = None, []
    for image in folder.images:
        parts = (image.folder, output.name + ".csv")
        try:
            header, row = list(csv.reader(folder.text(*parts).decode().splitlines()))
            found = [float(cell) for cell in row[2:]]
            if (names or header[2:]) != header[2:] or len(found) != len(header) - 2 or not found or not numpy.isfinite(found).all():
                raise ValueError("other columns than those of the images before")
        except (ValueError, csv.Error) as error:
            raise damaged(os.path.join(folder.path, *parts), f"it is not the row of one image: {error}") from error
        names = header[2:]
        values.append(found)
    return names, numpy.array(values)


def of_patches(folder, image, output):
    """(places, values) of the patches of one image: int64 (N, 4), level, z, y, x; float32 (N, classes)."""
    parts = (image.folder, output.name + ".csv")
    path, file = os.path.join(folder.path, *parts), folder.open(*parts)
    if file is None:
        raise damaged(path, "there is no such file")
    places, values, width = [], [], len(PLACE) + len(output.classes)
    with io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
        try:
            reader = csv.reader(_lines(text))
            if next(reader, None) != [*PLACE, *output.classes]:
                raise ValueError("its columns are not those of the output")
            for row in reader:
                if len(row) != width:
                    raise ValueError(f"line {reader.line_num}: {len(row)} cells of {width}")
                places.append([int(cell) for cell in row[slice(*_PLACES)]])
                values.append(numpy.array(row[len(PLACE):], numpy.float32))
            found = numpy.array(places, numpy.int64).reshape(-1, 4), numpy.array(values, numpy.float32).reshape(-1, len(output.classes))
            if not numpy.isfinite(found[1]).all():
                raise ValueError("a value that is no number")
        except (ValueError, OverflowError, csv.Error) as error:
            raise damaged(path, f"not the scores of patches: {error}") from error
    return found
