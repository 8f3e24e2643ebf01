"""A score: counts of every image, figures of every group, and the folder that appears with them."""
import contextlib
import csv
import dataclasses
import errno
import json
import os
import re
import shutil
import sys
import time

import numpy

from .. import errors
from ..map.pyramid import classes_of
from ..map import geometry, results
from . import measures, page, rows, tally, tiles, truth
from .folder import KINDS, Folder, damaged

FILE, TABLE, PAGE = "score.json", "score.csv", "score.html"
_FORMAT = 1
_TELL_EVERY_S = 5


def _mpp_of(array):
    """um per pixel of the slide's level 0; None of volumes and where nobody knows it."""
    step, shift = array.scale
    return None if len(step) == 3 or array.unit is None else step[-1] - 2 * shift[-1]


class _Map:
    """The map of one output and image: its tiles, and where patches of the truth lie in it."""

    def __init__(self, folder, image, output):
        self._output, self.where = output, os.path.join(folder.path, image.folder, output.name + ".ome.zarr")
        self.values = tiles.TiledArray(folder, (image.folder, output.name + ".ome.zarr"), len(output.classes), output.dtype, folder.volume)
        self.classes = self.place = None
        if output.class_map is not None:
            self.classes = tiles.TiledArray(folder, (image.folder, output.name + ".classes.ome.zarr"), None, "uint8", folder.volume)
            if self.classes.extent != self.values.extent:
                raise damaged(self.where, f"{self.values.extent} pixels, and {self.classes.extent} of its class map")

    def close(self):
        for array in (self.values, self.classes):
            if array is not None:
                array.close()

    def add(self, counts, number, size, patch):
        record, level, box, mask = patch
        try:
            if self.place is None:
                self.place = truth.Place(size, record, level, box, self.values)
            first, end, there = self.place.cut(box, mask)
            if all(a < b for a, b in zip(first, end)):
                channels = {}
                counts.add(number, there, self._predicted(first, end, channels), lambda channel: self._values(channel, first, end, channels))
        except (ValueError, OverflowError) as error:
            if isinstance(error, errors.PatchbayError):
                raise
            raise damaged(self.where, error) from error

    def end(self, counts, number):
        """After the last patch of the image."""

    def _values(self, channel, first, end, known):
        if channel not in known:
            known[channel] = self.values.region((channel,), first, end)
        return known[channel]

    def _predicted(self, first, end, known):
        if self.classes is not None:
            return self.classes.region((), first, end)
        whole = numpy.stack([self._values(channel, first, end, known) for channel in range(len(self._output.classes))])
        return classes_of(tally.decided(self._output), whole)


class _Patches:
    """The scores of one output and image, and the labels of its patches."""

    def __init__(self, folder, image, output):
        self._folder, self._image, self._output, self._labels = folder, image, output, {}
        self.values = tiles.TiledArray(folder, (image.folder, output.name + ".ome.zarr"), len(output.classes), "float32", folder.volume)

    def close(self):
        self.values.close()

    def add(self, counts, number, size, patch):
        _, level, box, label = patch
        self._labels[(level, *map(int, box[:3]))] = int(label)

    def end(self, counts, number):
        places, values = rows.of_patches(self._folder, self._image, self._output)
        labels = [self._labels.get(tuple(place)) for place in places.tolist()]
        if None in labels:
            raise damaged(os.path.join(self._folder.path, self._image.folder, self._output.name + ".csv"),
                          f"a patch at {places[labels.index(None)].tolist()}, which is not on the grid of the config")
        counts.add(number, numpy.array(labels, int), values)


def _close(maps):
    for one in maps.values():
        one.close()


class _Progress:
    def __init__(self, images, show):
        self._images, self._show, self._told = images, show, time.monotonic()

    def tell(self, number):
        if self._show and time.monotonic() - self._told > _TELL_EVERY_S:
            self._told = time.monotonic()
            print(f"score: {number} of {self._images} images", file=sys.stderr, flush=True)


@dataclasses.dataclass(frozen=True)
class _Counted:
    """Counts of one output; bool for each image: whether it has truth, and whether its store could not be looked at."""
    output: object
    tally: object
    known: object
    excluded: object


class _Score:
    """excluded: reasons of images without their store, by number. notes: outputs that are not scored, and why."""

    def __init__(self, folder, name, aside, options, show):
        """name: of the truth. options: further arguments of attach."""
        self.folder, self._name, self._aside, self._options, self._show = folder, name, aside, options, show
        self.images, self._tables, self.excluded = list(folder.images), [], {}
        self.counted, self.notes = [], []

    def look(self, stores):
        """Finds the store of every image, where it was or in the folder `stores`, and the classes of the label set in it."""
        there = truth.stores_in(stores)
        for number, image in enumerate(self.images):
            table = None
            try:
                self.images[number] = truth.located(image, there)
                table = truth.classes_of(self.images[number].path, self._name)
            except (errors.NotFoundError, errors.DataError) as error:
                self.excluded[number] = str(error)
            self._tables.append(table)

    def by_set(self, outputs):
        """Counts outputs of kind map and score against the label set."""
        there = [number for number, table in enumerate(self._tables) if table is not None]
        known = numpy.array([table is not None for table in self._tables])
        excluded = numpy.array([number in self.excluded for number in range(len(self.images))])
        for grid in ("patch", "stored", "score") if there else ():
            counts = {}
            for output in outputs:
                if (output.grid or output.kind) == grid:
                    with self._noted():
                        counts[output] = self._tally_of(output, self._tables[there[0]])
            if counts:
                self._add(counts, there, grid)
            self.counted += [_Counted(output, each, known, excluded) for output, each in counts.items()]

    @contextlib.contextmanager
    def _noted(self):
        try:
            yield
        except errors.ConfigError as error:
            self.notes.append(str(error))

    def _tally_of(self, output, table):
        if output.kind == "map":
            return tally.Pixels(len(self.images), output, table, self._aside)
        grid = geometry.Grid.of(self.folder.config)
        if not grid.is_grid or grid.moving:
            raise errors.ConfigError(f"score: outputs.{output.name}: the place of its patches in the label set is not known, as of sampling.positions: "
                                     "grid without ops of preprocess that move pixels: name a column of the cohort as its truth")
        return tally.Items(len(self.images), table, tally.predictions(output), output.classes, output.name)

    def _add(self, counts, there, grid):
        kind, images, arrays = _Patches if grid == "score" else _Map, [self.images[number] for number in there], {}
        for output in counts:  # every map is looked at before the first patch
            mpps = [_mpp_of(kind(self.folder, image, output).values) for image in images]
        table = os.path.join(self._aside, "truth.csv")
        truth.write_table(table, images, mpps)
        progress, now = _Progress(len(images), self._show), None
        with contextlib.closing(truth.patches(truth.config_of(self.folder, table, self._name, grid), self._options)) as patches:
            try:
                for row, *patch in patches:
                    if row != now:
                        self._end(counts, arrays, now, there)
                        now, arrays = row, {output: kind(self.folder, images[row], output) for output in counts}
                    progress.tell(row)
                    for output, one in arrays.items():
                        one.add(counts[output], there[row], self.folder.size, patch)
                self._end(counts, arrays, now, there)
            finally:
                _close(arrays)

    @staticmethod
    def _end(counts, arrays, row, there):
        for output, one in arrays.items():
            one.end(counts[output], there[row])
        _close(arrays)

    def by_column(self, outputs):
        """Counts outputs of kind image and score against a column, which says the class of every patch of an image."""
        cells = [image.cell(self._name) for image in self.images]
        done = [each.output for each in self.counted]
        for output in outputs if any(cells) else ():
            if output not in done:
                with self._noted():
                    self._count(output, cells)

    def _count(self, output, cells):
        names, values = (output.classes, None) if output.kind == "score" else rows.of_images(self.folder, output)
        known = numpy.array([self._index(cell, names, image) for cell, image in zip(cells, self.images)])
        if known.max() < 0:
            return
        classes = list(names) if len(names) > 1 else ["0", *names]
        counts = tally.Items(len(known), dict(enumerate(classes)), classes, names, output.name)
        for number, label in enumerate(known):
            own = values[number:number + 1] if values is not None else rows.of_patches(self.folder, self.images[number], output)[1]
            counts.add(number, numpy.full(len(own), label), own)
        self.counted.append(_Counted(output, counts, known >= 0, numpy.zeros(len(known), bool)))

    def _index(self, cell, names, image):
        """The class that a cell says: its name, or its number; -1 for an empty one."""
        if cell in ("", "255"):
            return -1
        count = max(len(names), 2)
        if cell in names:
            return names.index(cell) if len(names) > 1 else 1
        if re.fullmatch(r"\d{1,4}(\.0)?", cell) and int(float(cell)) < count:
            return int(float(cell))
        raise errors.ConfigError(f"score: column {self._name}: {image.folder} has {cell!r}: expected a number below {count}, or one of {', '.join(names)}")


def _groups(images, by):
    """(column, value, indices of its images) of all images, and of each value of each column."""
    yield None, None, numpy.arange(len(images))
    for column in by:
        if not any(image.cell(column) for image in images):
            columns = sorted({name for image in images for name in image.columns})
            raise errors.ConfigError(f"score: --by {column}: no image has such a column: {', '.join(columns) or 'they have none'}")
        for value in sorted({image.cell(column) for image in images}):
            yield column, value, numpy.array([i for i, image in enumerate(images) if image.cell(column) == value])


def _per_image(images, counts, one):
    """Figures of each image with truth by itself; nothing of kind image, which has one value of each."""
    for i in numpy.flatnonzero(one.known) if one.output.kind != "image" else ():
        classes = {}
        for k, (name, _, _) in enumerate(one.tally.classes):
            values = {"dice": counts.dice[i, k], "iou": counts.iou[i, k]} if one.output.kind == "map" else {}
            values["auroc"] = measures.auroc(numpy.ones((1, 1)), one.tally, k, [i])[0]
            classes[name] = {metric: None if numpy.isnan(value) else float(value) for metric, value in values.items()}
        yield {"image": images[i].folder, "classes": classes,
               **{each: int(getattr(one.tally, each)[i]) for each in ("scored", "uncovered", "ignored")}}


def _output(one, images, patients, by):
    """The document of one output."""
    counts, found, known = measures.Counts(one.tally), one.tally, one.known
    metrics, without = measures.PIXEL_METRICS if one.output.kind == "map" else measures.ROW_METRICS, ~known & ~one.excluded
    groups = [{"by": column, "group": value, "images": int(known[own].sum()), "without_truth": int(without[own].sum()),
               "excluded": int(one.excluded[own].sum()), **measures.group(found, counts, own[known[own]], patients, metrics)}
              for column, value, own in _groups(images, by)]
    return {"kind": one.output.kind, "metrics": list(metrics), "truth": found.truth, "predicted": found.predicted, "groups": groups,
            "roc": {label: measures.roc(found, k, numpy.flatnonzero(known)) for k, (label, _, _) in enumerate(found.classes)},
            "images": list(_per_image(images, counts, one)), "without_truth": [images[i].folder for i in numpy.flatnonzero(without)]}


def _document(score, by):
    images = score.images
    patients = numpy.array([image.cell("patient_id") or f"{image.folder}/" for image in images])
    resampled = "patient_id" if any(image.cell("patient_id") for image in images) else "image"
    excluded = score.excluded if any(one.excluded.any() for one in score.counted) else {}
    return {"format": _FORMAT, "results": score.folder.name, "outputs": {one.output.name: _output(one, images, patients, by) for one in score.counted},
            "excluded": {images[number].folder: reason for number, reason in excluded.items()}, "notes": score.notes,
            "bootstrap": {"draws": measures.DRAWS, "seed": measures.SEED, "confidence": measures.CONFIDENCE, "resampled": resampled}}


def _rows(document):
    """score.csv: one figure a row."""
    yield ("output", "by", "group", "class", "figure", "value", "low", "high")
    for name, output in document["outputs"].items():
        for group in output["groups"]:
            where = (name, group["by"] or "", group["group"] or "")
            for count in ("images", "without_truth", "excluded", "patients", "scored", "uncovered", "ignored"):
                yield (*where, "", count, group[count])
            yield (*where, "", "accuracy", *group["accuracy"].values())
            for label, figures in group["classes"].items():
                yield from ((*where, label, key, *(each.values() if isinstance(each, dict) else (each,))) for key, each in figures.items())
            for there, counts in zip(output["truth"], group["confusion"]):
                yield from ((*where, there, f"predicted as {said}", count) for said, count in zip(output["predicted"], counts))
        for image in output["images"]:
            for label, figures in image["classes"].items():
                yield from ((name, "image", image["image"], label, metric, value) for metric, value in figures.items())


def _write(path, document):
    os.mkdir(path, 0o700)
    with open(os.path.join(path, FILE), "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1, allow_nan=False)
    with open(os.path.join(path, TABLE), "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(_rows(document))
    with open(os.path.join(path, PAGE), "w", encoding="utf-8") as file:
        file.write(page.html_of(document))
    results.sync_tree(path)


def _is_score(path):
    return os.path.isdir(path) and not os.path.islink(path) and {FILE} <= set(os.listdir(path)) <= {FILE, TABLE, PAGE}


def _check_ours(out):
    """ConflictError where something else than a score is there, AccessError in a store."""
    results.refuse_stores(out)
    if os.path.lexists(out) and not _is_score(out):
        raise errors.ConflictError(f"score: {out}: it is there and no score: choose another --out")


def _before(out):
    """The name of a score that is there, while another takes its place."""
    return os.path.join(os.path.dirname(out), f".{os.path.basename(out)}.before")


def _restore(out):
    """Gives its name back to a score whose successor was killed before it had it."""
    if not os.path.lexists(out) and _is_score(_before(out)):
        os.rename(_before(out), out)


def _publish(made, out):
    """A score that is there goes aside first: no name is ever half-written, and one of both always there."""
    _check_ours(out)
    if os.path.isdir(out):
        shutil.rmtree(_before(out), ignore_errors=True)
        os.rename(out, _before(out))
    os.rename(made, out)
    results.sync_folder(os.path.dirname(out))
    shutil.rmtree(_before(out), ignore_errors=True)


def _tally(score, name, stores):
    """Counts what can be counted. ConfigError where the truth is nowhere, DataError where it may be in stores that are not there."""
    outputs = score.folder.outputs()
    if not outputs or not score.images:
        missing = "images" if outputs else f"output of kind {', '.join(KINDS)}"
        raise errors.ConfigError(f"score: {score.folder.path}: it has no {missing}")
    of_set = [output for output in outputs if output.kind != "image"]
    if of_set:
        score.look(stores)
        score.by_set(of_set)
    score.by_column([output for output in outputs if output.kind != "map"])
    if score.counted:
        return
    if score.excluded:
        raise errors.DataError(f"score: {next(iter(score.excluded.values()))}; {len(score.excluded)} of {len(score.images)} images are without their store")
    raise errors.ConfigError("; ".join(score.notes) or f"score: --truth {name}: no store of the images has such a label set (for outputs of kind map "
                             "and score), and no row of their cohort such a cell (for kind image and score)")


def score(path, name, by, out, options, show, stores=None):
    folder = Folder(path)
    by = [by] if isinstance(by, str) else list(by)
    list(_groups(folder.images, by))
    own = out is None
    out = os.path.join(folder.path, "score-" + re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:100]) if own else os.path.abspath(out)
    try:
        _restore(out)
        _check_ours(out)
        staging = folder.path_of(results.STAGING) if own else os.path.dirname(out)
        os.makedirs(staging, 0o700, exist_ok=True)
        if own:
            results.sweep(staging)
        with results.Aside(staging) as aside:
            one = _Score(folder, name, aside, options, show)
            _tally(one, name, stores)
            document = {"truth": name, "by": by, **_document(one, by)}
            made = os.path.join(aside, "score")
            _write(made, document)
            _publish(made, out)
    except OSError as error:
        if isinstance(error, errors.PatchbayError):
            raise
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        kind, advice = (errors.ResourceError, ": make room, or choose another --out") if is_full else (errors.AccessError, "")
        raise kind(f"score: {error.filename or out}: {error.strerror or error}{advice}") from error
    return {"out": out, **document}
