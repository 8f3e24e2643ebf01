"""Figures of a group of images, with intervals of a bootstrap over patients."""
import numpy

DRAWS, SEED, CONFIDENCE = 1000, 7678, 0.95
PIXEL_METRICS = ("dice", "iou", "pooled_dice", "pooled_iou", "auroc")
ROW_METRICS = ("pooled_dice", "auroc")


def draws(patients):
    """How often each patient counts, float64 (1 + DRAWS, patients): row 0 has each of them once, the others are drawn with
    replacement. One patient alone is not drawn."""
    weights = numpy.ones((1 + (DRAWS if patients > 1 else 0), patients))
    generator = numpy.random.Generator(numpy.random.Philox(SEED))
    for row in weights[1:]:
        row[:] = numpy.bincount(generator.integers(patients, size=patients), minlength=patients)
    return weights


def _ratio(above, below):
    """NaN where there is nothing below."""
    return numpy.divide(above, below, out=numpy.full(numpy.shape(above), numpy.nan), where=below > 0)


def overlaps(hits, truth, predicted):
    """(Dice, IoU) of pixel counts, NaN of classes that the truth does not have."""
    there = truth > 0
    both = numpy.where(there, truth + predicted, 0)
    return _ratio(2.0 * hits, both), _ratio(1.0 * hits, numpy.where(there, both - hits, 0))


def auroc(weights, tally, k, images):
    """The area under the ROC of class k for each row of weights (rows, images), ties counted half, as the trapezoids of
    scikit-learn do; NaN without values of the class or of others."""
    area, below, above = tally.area(k, images, weights)
    return _ratio(area, below * above)


def roc(tally, k, images, points=200):
    """(false positive rates, true positive rates) from the highest threshold on, thinned to about that many points."""
    counts = numpy.asarray(tally.counts(k, images))[:, ::-1]
    rates = [numpy.concatenate([[0], numpy.cumsum(each) / max(each.sum(), 1)]) for each in counts]
    most = counts.shape[1]
    keep = numpy.unique(numpy.concatenate([[0, most], *(numpy.searchsorted(rate, numpy.linspace(0, 1, points // 2)) for rate in rates)]))
    keep = keep[keep <= most]
    return rates[0][keep].tolist(), rates[1][keep].tolist()


def _figure(values, patients):
    """{"value", "low", "high"} of a column of draws; None for what there is not."""
    drawn = values[1:][~numpy.isnan(values[1:])]
    found = {"value": None if numpy.isnan(values[0]) else float(values[0]), "low": None, "high": None}
    if found["value"] is not None and len(drawn) and patients > 1:
        tail = (1 - CONFIDENCE) / 2
        found["low"], found["high"] = (float(each) for each in numpy.quantile(drawn, [tail, 1 - tail]))
    return found


class Counts:
    """Pixels, or values, of the shared classes, of every image: hits, truth, predicted (images, classes); right and scored (images)."""

    def __init__(self, tally):
        rows, columns = ([each[i] for each in tally.classes] for i in (1, 2))
        self.hits = tally.confusion[:, rows, columns]
        self.truth, self.predicted = tally.confusion.sum(axis=2)[:, rows], tally.confusion.sum(axis=1)[:, columns]
        self.right, self.scored = numpy.einsum("itp,tp->i", tally.confusion, tally.right()), tally.scored
        self.dice, self.iou = overlaps(self.hits, self.truth, self.predicted)


def _mean(weights, values):
    return _ratio(weights @ numpy.nan_to_num(values), weights @ ~numpy.isnan(values))


def group(tally, counts, images, patients, metrics):
    """Figures of images (indices) whose patients (any texts, of all images) are drawn: accuracy, classes, confusion."""
    known = images[tally.scored[images] > 0]
    names, patient = numpy.unique(patients[known], return_inverse=True)
    weights = draws(len(names))[:, patient.reshape(-1)]
    pooled = overlaps(*(weights @ each[known] for each in (counts.hits, counts.truth, counts.predicted)))
    found = {"dice": _mean(weights, counts.dice[known]), "iou": _mean(weights, counts.iou[known]),
             "pooled_dice": pooled[0], "pooled_iou": pooled[1]}
    accuracy = _ratio(weights @ counts.right[known], weights @ counts.scored[known])
    classes = {}
    for k, (name, _, _) in enumerate(tally.classes):
        has = counts.truth[known, k] > 0
        owners = len(set(patients[known][has]))  # an interval takes two patients who have the class
        area = auroc(weights, tally, k, known)
        classes[name] = {"images": int(has.sum()), "absent": int((~has).sum()),
                         **{metric: _figure(area if metric == "auroc" else found[metric][:, k], owners) for metric in metrics}}
    return {"patients": len(names), "accuracy": _figure(accuracy, len(names)), "classes": classes,
            "confusion": tally.confusion[known].sum(axis=0).tolist(),
            **{each: int(getattr(tally, each)[images].sum()) for each in ("scored", "uncovered", "ignored")}}
