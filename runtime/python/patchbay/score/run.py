"""A score: counts of every image, figures of every group, and the folder that appears with them."""
import contextlib
import csv
import errno
import json
import os
import re
import sys
import time

import numpy

from .. import errors
from ..map.pyramid import classes_of
from ..map import results
from . import measures, page, tally, tiles, truth
from .folder import Folder, damaged

FILE, TABLE, PAGE = "score.json", "score.csv", "score.html"
_FORMAT = 1
_TELL_EVERY_S = 5


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

    def mpp(self):
        """um per pixel of the slide's level 0; None of volumes and where nobody knows it."""
        step, shift = self.values.scale
        return None if len(step) == 3 or self.values.unit is None else step[-1] - 2 * shift[-1]

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

    def _values(self, channel, first, end, known):
        if channel not in known:
            known[channel] = self.values.region((channel,), first, end)
        return known[channel]

    def _predicted(self, first, end, known):
        if self.classes is not None:
            return self.classes.region((), first, end)
        whole = numpy.stack([self._values(channel, first, end, known) for channel in range(len(self._output.classes))])
        return classes_of(tally.decided(self._output), whole)


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


class _Score:
    def __init__(self, folder, name, aside, options, show):
        """name: of the truth. options: further arguments of attach."""
        self.folder, self._name, self._aside, self._options, self._show = folder, name, aside, options, show
        self.tallies = {}  # output -> (its tally, whether each image has truth)

    def pixels(self, outputs):
        """Tallies of outputs of kind map."""
        tables = [truth.classes_of(image.path, self._name) for image in self.folder.images]
        there = [number for number, table in enumerate(tables) if table is not None]
        if not there:
            return False
        for number in there:
            truth.check_same(self.folder.images[number])
        for grid in ("patch", "stored"):
            own = [output for output in outputs if output.grid == grid]
            counts = {output.name: tally.Pixels(len(tables), output, tables[there[0]], self._aside) for output in own}
            if own:
                self._add(own, counts, there, grid == "stored")
            self.tallies.update({name: (each, numpy.array([table is not None for table in tables])) for name, each in counts.items()})
        return True

    def _add(self, outputs, counts, there, stored):
        images, maps = [self.folder.images[number] for number in there], {}
        for output in outputs:  # every map is looked at before the first patch
            mpps = [_Map(self.folder, image, output).mpp() for image in images]
        table = os.path.join(self._aside, "truth.csv")
        truth.write_table(table, images, mpps)
        progress, now = _Progress(len(images), self._show), None
        with contextlib.closing(truth.masks(truth.config_of(self.folder, table, self._name, stored), self._options)) as patches:
            try:
                for row, *patch in patches:
                    if row != now:
                        _close(maps)
                        now, maps = row, {output.name: _Map(self.folder, images[row], output) for output in outputs}
                    progress.tell(row)
                    for name, one in maps.items():
                        one.add(counts[name], there[row], self.folder.size, patch)
            finally:
                _close(maps)

    def rows(self, outputs):
        """Tallies of outputs of kind image, against a column."""
        cells = [image.cell(self._name) for image in self.folder.images]
        if not any(cells):  # no such column
            return False
        for output in outputs:
            names, values = self._values(output)
            known = [self._index(cell, names, image) for cell, image in zip(cells, self.folder.images)]
            if max(known) < 0:
                return False
            self.tallies[output.name] = (tally.Rows(known, values, names), numpy.array(known) >= 0)
        return True

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

    def _values(self, output):
        """(names of the columns, values of all images) of the one row that an image has."""
        names, values = None, []
        for image in self.folder.images:
            parts = (image.folder, output.name + ".csv")
            try:
                header, row = list(csv.reader(self.folder.text(*parts).decode().splitlines()))
                found = [float(cell) for cell in row[2:]]
                if (names or header[2:]) != header[2:] or len(found) != len(header) - 2 or not found or not numpy.isfinite(found).all():
                    raise ValueError("other columns than those of the images before")
            except (ValueError, csv.Error) as error:
                raise damaged(os.path.join(self.folder.path, *parts), f"it is not the row of one image: {error}") from error
            names = header[2:]
            values.append(found)
        return names, numpy.array(values)


def _groups(images, by):
    """(column, value, indices of its images) of all images, and of each value of each column."""
    yield None, None, numpy.arange(len(images))
    for column in by:
        if not any(image.cell(column) for image in images):
            columns = sorted({name for image in images for name in image.columns})
            raise errors.ConfigError(f"score: --by {column}: no image has such a column: {', '.join(columns) or 'they have none'}")
        for value in sorted({image.cell(column) for image in images}):
            yield column, value, numpy.array([i for i, image in enumerate(images) if image.cell(column) == value])


def _per_image(images, counts, found, known):
    """Figures of each image with truth by itself."""
    for i in numpy.flatnonzero(known):
        classes = {}
        for k, (name, _, _) in enumerate(found.classes):
            values = {"dice": counts.dice[i, k], "iou": counts.iou[i, k], "auroc": measures.auroc(numpy.ones((1, 1)), found, k, [i])[0]}
            classes[name] = {metric: None if numpy.isnan(value) else float(value) for metric, value in values.items()}
        yield {"image": images[i].folder, "classes": classes,
               **{each: int(getattr(found, each)[i]) for each in ("scored", "uncovered", "ignored")}}


def _document(score, by):
    folder, outputs = score.folder, {}
    patients = numpy.array([image.cell("patient_id") or f"{image.folder}/" for image in folder.images])
    for name, (found, known) in score.tallies.items():
        counts, is_map = measures.Counts(found), isinstance(found, tally.Pixels)
        metrics = measures.PIXEL_METRICS if is_map else measures.ROW_METRICS
        groups = [{"by": column, "group": value, "images": int(known[own].sum()), "without_truth": int((~known[own]).sum()),
                   **measures.group(found, counts, own[known[own]], patients, metrics)} for column, value, own in _groups(folder.images, by)]
        outputs[name] = {
            "kind": "map" if is_map else "image", "metrics": list(metrics), "truth": found.truth, "predicted": found.predicted, "groups": groups,
            "roc": {label: measures.roc(found, k, numpy.flatnonzero(known)) for k, (label, _, _) in enumerate(found.classes)},
            "images": list(_per_image(folder.images, counts, found, known)) if is_map else [],
            "without_truth": [image.folder for image, has in zip(folder.images, known) if not has]}
    resampled = "patient_id" if any(image.cell("patient_id") for image in folder.images) else "image"
    return {"format": _FORMAT, "results": folder.name, "outputs": outputs,
            "bootstrap": {"draws": measures.DRAWS, "seed": measures.SEED, "confidence": measures.CONFIDENCE, "resampled": resampled}}


def _rows(document):
    """score.csv: one figure a row."""
    yield ("output", "by", "group", "class", "figure", "value", "low", "high")
    for name, output in document["outputs"].items():
        for group in output["groups"]:
            where = (name, group["by"] or "", group["group"] or "")
            for count in ("images", "without_truth", "patients", "scored", "uncovered", "ignored"):
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


def _check_ours(out):
    """ConflictError where something else than a score is there, AccessError in a store."""
    results.refuse_stores(out)
    is_score = os.path.isdir(out) and not os.path.islink(out) and {FILE} <= set(os.listdir(out)) <= {FILE, TABLE, PAGE}
    if os.path.lexists(out) and not is_score:
        raise errors.ConflictError(f"score: {out}: it is there and no score: choose another --out")


def _publish(made, out, aside):
    """A score that is there goes aside first: no name is ever half-written."""
    _check_ours(out)
    if os.path.isdir(out):
        os.rename(out, os.path.join(aside, "before"))
    os.rename(made, out)
    results.sync_folder(os.path.dirname(out))


def _tally(score, name):
    """Counts what can be counted. ConfigError where the truth is nowhere."""
    outputs = score.folder.outputs()
    maps, rows = ([output for output in outputs if output.kind == kind] for kind in ("map", "image"))
    if not outputs or not score.folder.images:
        raise errors.ConfigError(f"score: {score.folder.path}: it has no {'images' if outputs else 'output of kind map or image'}")
    if not sum([bool(maps) and score.pixels(maps), bool(rows) and score.rows(rows)]):
        raise errors.ConfigError(f"score: --truth {name}: no store of the images has such a label set (for outputs of kind map), and no "
                                 "row of their cohort such a cell (for kind image)")


def score(path, name, by, out, options, show):
    folder = Folder(path)
    by = [by] if isinstance(by, str) else list(by)
    list(_groups(folder.images, by))
    own = out is None
    out = os.path.join(folder.path, "score-" + re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:100]) if own else os.path.abspath(out)
    _check_ours(out)
    staging = folder.path_of(results.STAGING) if own else os.path.dirname(out)
    try:
        os.makedirs(staging, 0o700, exist_ok=True)
        if own:
            results.sweep(staging)
        with results.Aside(staging) as aside:
            one = _Score(folder, name, aside, options, show)
            _tally(one, name)
            document = {"truth": name, "by": by, **_document(one, by)}
            made = os.path.join(aside, "score")
            _write(made, document)
            _publish(made, out, aside)
    except OSError as error:
        if isinstance(error, errors.PatchbayError):
            raise
        kind = errors.ResourceError if error.errno in (errno.ENOSPC, errno.EDQUOT) else errors.AccessError
        raise kind(f"write score: {out}: {error.strerror or error}: make room, or choose another --out") from error
    return {"out": out, **document}
