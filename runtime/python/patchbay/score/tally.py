"""Counts of one output, image by image; every figure is made of them.

`confusion`: (images, truth, predicted). `scored`, `uncovered`, `ignored`: pixels, or values, of every image. `classes`: (name, index
in `truth`, index in `predicted`) of the classes that both sides have. `area(k, images, weights)`: of class k, for each row of weights
(rows, images), the pairs of one of its own and one of another class that its values order rightly, ties counted half, and how many
there are of others and of its own. `counts(k, images)`: (others, own) at each value that class k has, ascending.
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
_BINS = 1024  # counted at once


def _scratch(folder, shape):
    """int64 zeros in a file without a name, so that memory need not hold them."""
    with contextlib.closing(scratch.Scratch(folder, limit=0)) as file:
        return file.take((*shape, 2)).view(numpy.int64)[..., 0]


def decided(output):
    """The output with a rule for classes: where it has no class map, argmax, or of one class alone a half."""
    return output if output.class_map is not None else dataclasses.replace(output, class_map="argmax" if len(output.classes) > 1 else (0.5,))


def predictions(output):
    """Names of what the output says: its classes, after "none of them" where each has a threshold."""
    return output.classes if decided(output).class_map == "argmax" else (NONE, *output.classes)


class Tally:
    def __init__(self, images, truth, predicted, declared, name):
        """declared: classes of the output `name`; a prediction of none of them is right where the truth is no such class."""
        self.truth, self.predicted, self._declared = list(truth), list(predicted), list(declared)
        self.classes = [(name, self.truth.index(name), self.predicted.index(name)) for name in declared if name in truth]
        if not self.classes:
            raise errors.ConfigError(f"score: outputs.{name}: its classes {', '.join(declared)} and those of the truth, "
                                     f"{', '.join(truth)}, have no name in common")
        self.scored, self.uncovered, self.ignored = numpy.zeros((3, images), numpy.int64)

    def right(self):
        """bool (truth, predicted): whether that prediction is right."""
        return numpy.array([[there == said or (said == NONE and there not in self._declared) for said in self.predicted]
                            for there in self.truth], bool).reshape(len(self.truth), len(self.predicted))


class Pixels(Tally):
    """An output of kind map. values: names of the truth's classes by their value in the mask."""

    def __init__(self, images, output, values, folder):
        names = predictions(output)
        super().__init__(images, list(values.values()), names, output.classes, output.name)
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

    def area(self, k, images, weights):
        area, below, above = (numpy.zeros(len(weights)) for _ in range(3))
        for first in range(0, self.bins, _BINS):
            counts = self._histograms[images, k, :, first:first + _BINS].astype(numpy.float64)
            others, own = weights @ counts[:, 0], weights @ counts[:, 1]
            area += (own * (below[:, None] + numpy.cumsum(others, axis=1) - others / 2)).sum(axis=1)
            below, above = below + others.sum(axis=1), above + own.sum(axis=1)
        return area, below, above

    def counts(self, k, images):
        return sum(self._histograms[image, k] for image in images)


class Items(Tally):
    """An output with one value a class of each patch (kind score), or of each image (kind image)."""

    def __init__(self, images, values, predicted, declared, name):
        """values: names of the truth's classes by their value."""
        super().__init__(images, values.values(), predicted, declared, name)
        self.confusion = numpy.zeros((images, len(self.truth), len(self.predicted)), numpy.int64)
        self._row = numpy.full(max(256, max(values) + 2), -1)
        self._row[list(values)] = range(len(values))
        self._items = [(numpy.zeros(0, int), numpy.zeros((0, len(declared)), numpy.float32))] * images
        self._channel = {each: at for at, each in enumerate(declared)}

    def add(self, image, labels, values):
        """All items of one image. labels: the value of each one's class; 255, or -1, where it has none. values: (items, classes)."""
        rows = self._row[labels]
        known = rows >= 0
        rows, values, width = rows[known], values[known], len(self.predicted)
        self.scored[image], self.ignored[image] = len(rows), len(known) - len(rows)
        said = values.argmax(axis=1) if values.shape[1] > 1 else (values[:, 0] >= 0.5).astype(int)
        self.confusion[image] = numpy.bincount(rows * width + said, minlength=self.confusion[image].size).reshape(-1, width)
        self._items[image] = rows, values

    def _sorted(self, k, images):
        """(values, ascending; whether each is one of class k; its index in `images`)."""
        name, row, _ = self.classes[k]
        own = numpy.concatenate([self._items[image][0] == row for image in images])
        values = numpy.concatenate([self._items[image][1][:, self._channel[name]] for image in images])
        owner = numpy.repeat(numpy.arange(len(images)), [len(self._items[image][0]) for image in images])
        order = numpy.argsort(values, kind="stable")
        return values[order], own[order], owner[order]

    def area(self, k, images, weights):
        if len(images) == 0:
            return numpy.zeros((3, len(weights)))
        values, own, owner = self._sorted(k, images)
        first, end = (numpy.searchsorted(values, values[own], side) for side in ("left", "right"))

        def below(weight):
            """Weights of the others below each item of the class, as many numbers as items at a time."""
            others = numpy.concatenate([[0], numpy.cumsum(numpy.where(own, 0, weight))])
            return (others[first] + others[end]) / 2

        of, count = owner[own], [numpy.bincount(owner[which], minlength=len(images)) for which in (~own, own)]
        if len(images) < len(weights):  # pairs of every two images once
            pairs = numpy.stack([numpy.bincount(of, below(owner == image), len(images)) for image in range(len(images))], axis=1)
            return ((weights @ pairs) * weights).sum(axis=1), *(weights @ each for each in count)
        return numpy.array([weight[of] @ below(weight[owner]) for weight in weights]), *(weights @ each for each in count)

    def counts(self, k, images):
        values, own, _ = self._sorted(k, images)
        _, rank = numpy.unique(values, return_inverse=True)
        return numpy.bincount(2 * rank.reshape(-1) + own, minlength=2 * (rank.max(initial=-1) + 1)).reshape(-1, 2).T
