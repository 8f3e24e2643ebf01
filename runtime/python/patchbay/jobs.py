"""Jobs of a cluster: submit, wait, status; and stores."""
from __future__ import annotations

import json
import os
from typing import Any

from . import _programs, errors


def submit(kind: str, *sources: str | os.PathLike[str], cluster: str | os.PathLike[str] | None = None,
           **options: Any) -> int:
    """Submits a job that goes on without this process; returns its number, an int.

    kind: "ingest" or "spectra". sources: slides, stores or folders. options: the command's flags by name, as
    out="stores", codec_level=3; True for a flag without a value; `patchbay ingest --help` has them. cluster: path of a key
    file; None = as attach. It needs a cluster that stays (`patchbay up`).

    Raises ConfigError for another kind or flag, NotFoundError for a source or key file that is not there, ClusterError
    without a cluster. A path that the key may not read or write fails the job: `wait` raises AccessError then.
    """
    if kind not in ("ingest", "spectra"):
        raise errors.ConfigError(f"submit: {kind!r}: expected 'ingest' or 'spectra'")
    words = [kind, *map(os.fspath, sources), "--detach"]
    for key, value in options.items():
        flag = "--" + key.replace("_", "-")
        words += [flag] if value is True else [flag, str(value)]
    return int(_programs.run_json(*words, cluster=cluster)["job"])


def wait(job: int, cluster: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Waits until a job has ended; its result as a dict, as `patchbay wait --json` prints it.

    A job of which some images failed has a result that names them. Raises NotFoundError for a number that is not a job,
    ClusterError when the cluster is gone, and the class that fits when the whole job failed.
    """
    return _programs.run_json("wait", int(job), cluster=cluster, expect=(0, 3))


def status(cluster: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Nodes, workers and jobs of a cluster, as a dict, as `patchbay status --json` prints it.

    Raises NotFoundError for a key file that is not there, ClusterError without a cluster.
    """
    return _programs.run_json("status", cluster=cluster)


def open_store(path: str | os.PathLike[str]) -> list[Any]:
    """The levels of an OME-Zarr store as a list of array-likes (shape, dtype, slicing), finest first.

    Axes are (c, y, x), uint8 RGB, for a slide, (z, y, x) for a volume and (c, z, y, x) for one of several channels, whatever
    the order on disk. It needs the package zarr 3, or numcodecs, which zarr 2.18 brings, with any NumPy: the levels take
    integers and slices then. Raises NotFoundError where there is no store, DataError for one without levels or with damaged
    metadata.
    """
    path = os.fspath(path)
    if not os.path.exists(os.path.join(path, "zarr.json")):
        raise errors.NotFoundError(f"open store: {path}: there is no zarr.json")
    try:
        with open(os.path.join(path, "zarr.json"), encoding="utf-8") as file:
            attributes = json.load(file)["attributes"]
        names = [dataset["path"] for dataset in attributes.get("ome", attributes)["multiscales"][0]["datasets"]]
        return _arrays(path, names)
    except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
        raise errors.DataError(f"open store: {path}: its metadata names no levels that are there ({error}): "
                               "`patchbay verify` says what is wrong") from error


def _arrays(path: str, names: list[str]) -> list[Any]:
    try:
        import zarr
        is_zarr_3 = int(zarr.__version__.split(".")[0]) >= 3
    except ImportError:
        is_zarr_3 = False
    if is_zarr_3:
        group = zarr.open_group(path, mode="r")
        return [group[name] for name in names]
    from ._store_array import StoreArray
    for name in names:
        if not set(name.split("/")).isdisjoint(("", ".", "..")):
            raise ValueError(f"level {name!r}")
    return [StoreArray(os.path.join(path, name)) for name in names]
