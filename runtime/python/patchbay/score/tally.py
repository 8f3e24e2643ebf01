"""Counts of one output, image by image; every figure is made of them.

`confusion`: (images, truth, predicted). `scored`, `uncovered`, `ignored`: pixels of every image. `classes`: (name, index in
`truth`, index in `predicted`) of the classes that both sides have. `histogram(k, images, first, end)`: float64 (images, 2, end -
first), counts of class k's probabilities in the bins of its values, of the other classes and of its own.
"""
import contextlib
import dataclasses

import numpy

from .. import errors
from ..map import scratch
from ..map.blend import UNCOVERED

IGNORE = 255
NONE = "none of them"  # predicted where no class reaches its threshold
_FLOAT16_ONE = 0x3C00  # the bits of 1; those of 0 to 1 ascend


def _scratch(folder, shape):
    """int64 zeros in a file without a name, so that memory need not hold them."""
    with contextlib.closing(scratch.Scratch(folder, limit=0)) as file:
        return file.take((*shape, 2)).view(numpy.int64)[..., 0]


def decided(output):
    """The output with a rule for classes: where it has no class map, argmax, or of one class alone a half."""
    return output if output.class_map is not None else dataclasses.replace(output, class_map="argmax" if len(output.classes) > 1 else (0.5,))


class Tally:
    def __init__(self, images, truth, predicted, declared):
        """declared: classes of the output; a prediction of none of them is right where the truth is no such class."""
        self.truth, self.predicted, self._declared = list(truth), list(predicted), list(declared)
        self.classes = [(name, self.truth.index(name), self.predicted.index(name)) for name in declared if name in truth]
        self.scored, self.uncovered, self.ignored = numpy.zeros((3, images), numpy.int64)

    def right(self):
        """bool (truth, predicted): whether that prediction is right."""
        return numpy.array([[there == said or (said == NONE and there not in self._declared) for said in self.predicted]
                            for there in self.truth], bool).reshape(len(self.truth), len(self.predicted))


class Pixels(Tally):
    """An output of kind map. values: names of the truth's classes by their value in the mask."""

    def __init__(self, images, output, values, folder):
        names = output.classes if decided(output).class_map == "argmax" else (NONE, *output.classes)
        super().__init__(images, list(values.values()), names, output.classes)
        if not self.classes:
            raise errors.ConfigError(f"score: outputs.{output.name}: its classes {', '.join(output.classes)} and those of the truth, "
                                     f"{', '.join(self.truth)}, have no name in common")
        self.channels = [output.classes.index(name) for name, _, _ in self.classes]
        self.bins = UNCOVERED if output.dtype == "uint8" else _FLOAT16_ONE + 1
        self.confusion = _scratch(folder, (images, len(self.truth), len(names)))
        self._histograms = _scratch(folder, (images, len(self.classes), 2, self.bins))
        self._row = numpy.full(256, -1, numpy.int64)
        self._row[list(values)] = range(len(values))

    def add(self, image, truth, predicted, values):
        """Pixels of one image. truth, predicted: uint8. values(channel): their stored probabilities. ValueError for wrong ones."""
        known, covered = truth != IGNORE, predicted != UNCOVERED
        both = known & covered
        here = int(both.sum())
        self.scored[image] += here
        self.uncovered[image] += known.sum() - here
        self.ignored[image] += truth.size - known.sum()
        if here == 0:
            return
        cut = (lambda array: array.reshape(-1)) if here == both.size else (lambda array: array[both])
        rows, columns, count, width = self._row[cut(truth)], cut(predicted), len(self.truth), len(self.predicted)
        if rows.min() < 0 or columns.max() >= width:
            raise ValueError("a class that its table does not have")
        self.confusion[image] += numpy.bincount(rows * width + columns, minlength=count * width).reshape(count, width)
        rows *= self.bins
        for k, (channel, (_, row, _)) in enumerate(zip(self.channels, self.classes)):
            bins = cut(values(channel))
            bins = bins if bins.dtype == numpy.uint8 else bins.view(numpy.uint16)
            if bins.max() >= self.bins:
                raise ValueError("a value that is no probability")
            found = numpy.bincount(rows + bins, minlength=count * self.bins).reshape(count, self.bins)
            self._histograms[image, k, 0] += found.sum(axis=0) - found[row]
            self._histograms[image, k, 1] += found[row]

    def histogram(self, k, images, first, end):
        return self._histograms[images, k, :, first:end].astype(numpy.float64)


class Rows(Tally):
    """An output of kind image: one value a class and image. Images without truth have the row -1."""

    def __init__(self, truth, values, names):
        """truth: index of each image's class. values: (images, classes); of one class alone its probability, against "0"."""
        classes = names if len(names) > 1 else ["0", *names]
        super().__init__(len(truth), classes, classes, names)
        self._rows = numpy.array(truth)
        self._ranks = [numpy.unique(column, return_inverse=True)[1].reshape(-1) for column in values.T]
        self.bins = max(len(truth), 1)
        columns = values.argmax(axis=1) if len(names) > 1 else (values[:, 0] >= 0.5).astype(int)
        self.scored[:] = self._rows >= 0
        self.confusion = numpy.zeros((len(truth), len(classes), len(classes)), numpy.int64)
        there = numpy.flatnonzero(self.scored)
        self.confusion[there, self._rows[there], columns[there]] = 1

    def histogram(self, k, images, first, end):
        found = numpy.zeros((len(images), 2, end - first))
        for i, image in enumerate(images):
            rank = self._ranks[k][image] - first
            if self._rows[image] >= 0 and 0 <= rank < end - first:
                found[i, int(self._rows[image] == self.classes[k][1]), rank] = 1
        return found
