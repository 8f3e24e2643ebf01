"""score(): results of map against a label set, or against a column of the cohort."""
from __future__ import annotations

import collections.abc
import os
from typing import Any


def score(results: str | os.PathLike[str], *, truth: str, by: collections.abc.Sequence[str] = (), out: str | os.PathLike[str] | None = None,
          stores: str | os.PathLike[str] | None = None, cluster: str | os.PathLike[str] | None = None, cpus: int | None = None,
          progress: bool = True) -> dict[str, Any]:
    """Compares results of map with the truth, and writes `score.json`, `score.csv` and `score.html`.

    results: a folder of map. truth: a label set of the stores, for outputs of kind map and score; a column of the cohort, for kind
    image and score.
    by: columns of the cohort; every value is a group of its own.
    out: the folder that is written; None = `score-TRUTH` in `results`. A score that is there is replaced, nothing else is.
    stores: a folder where stores that are not where they were mapped are found by their pixels; images without theirs are `excluded`.
    cluster, cpus: as attach's.

    Returns what score.json holds, and `out`. configs/map.md has the numbers. DataError names the file of results that is damaged.
    """
    from . import run  # it needs NumPy, which the rest of the package does not
    return run.score(results, truth, by, out, {"cluster": cluster, "cpus": cpus}, progress, stores)
