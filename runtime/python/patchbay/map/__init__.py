"""map(): a user's model over every patch of images, with results in the images' own geometry."""
from __future__ import annotations

import collections.abc
import os
from typing import Any

TIMED_OUT = 74  # the exit status of a process whose function did not return in time


def map(config: str | os.PathLike[str] | collections.abc.Mapping[str, Any], predict: collections.abc.Callable[[Any, Any], Any], *,
        out: str | os.PathLike[str], load: collections.abc.Callable[[list[str], str], Any] | None = None,
        finish: collections.abc.Callable[[Any, dict[str, Any]], Any] | None = None, device: object = None,
        cluster: str | os.PathLike[str] | None = None, overrides: collections.abc.Mapping[str, Any] | None = None,
        split: str | None = None, name: str | None = None, cpus: int | None = None, new: bool = False,
        timeout: float | None = None, progress: bool = True) -> dict[str, Any]:
    """Calls `predict` on every batch of a run's images and writes what it returns; until all images are done, by whomever.

    config: as attach's, with `outputs`; configs/map.md has them. predict(model, batch): a dict with one value for each output,
        arrays by DLPack or NumPy, patches first. `batch` as a stream's; the file that defines predict names the results.
    load(weights, device): called once; returns `model`. finish(model, rows): of outputs of kind image; rows are arrays of all
        patches of one image by output.
    out: the folder of results. Images that are there are skipped; results of another function, weights, outputs or plan are
        refused, with new=True they begin in a folder beside it.
    timeout: seconds that one call may take; after it the image fails, and this process ends with status 74.
    device, cluster, overrides, split, name, cpus: as attach's.

    Any number of processes may work on one `out`: each takes images, or bands of one with many patches. Returns a dict: out, name,
    images, complete, skipped, patches, failed: [[image, reason], ...]. An image whose function raised or returned something else fails alone.
    """
    from . import function, run  # they need NumPy, which the rest of the package does not
    arguments = {"device": device, "cluster": cluster, "overrides": overrides, "split": split, "name": name, "cpus": cpus}
    job = run.prepare(config, function.Function.of_objects(predict, load, finish), arguments)
    return run.consume(job, out, new=new, timeout=timeout, show=progress)
