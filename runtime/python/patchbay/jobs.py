"""Jobs of a cluster: submit, wait, status; and stores."""
import os

from . import _programs, errors


def submit(kind, *sources, cluster=None, **options):
    """Submits a job that goes on without this process; returns its number.

    kind: "ingest" or "spectra". sources: slides, stores or folders. options: the command's flags by name, as
    out="stores", codec_level=3; True for a flag without a value. It needs a cluster that stays (`patchbay up`).
    """
    if kind not in ("ingest", "spectra"):
        raise errors.ConfigError(f"submit: {kind!r}: expected 'ingest' or 'spectra'")
    words = [kind, *map(os.fspath, sources), "--detach"]
    for key, value in options.items():
        flag = "--" + key.replace("_", "-")
        words += [flag] if value is True else [flag, str(value)]
    return int(_programs.run_json(*words, cluster=cluster)["job"])


def wait(job, cluster=None):
    """Waits until a job has ended; its result as a dict. PatchbayError when it failed; a job of which some images
    failed has a result that names them."""
    return _programs.run_json("wait", int(job), cluster=cluster, expect=(0, 3))


def status(cluster=None):
    """Nodes, workers and jobs of a cluster, as a dict."""
    return _programs.run_json("status", cluster=cluster)


def open_store(path):
    """The levels of an OME-Zarr store as a list of array-likes (shape, dtype, slicing), finest first.

    Axes are (c, y, x) or (z, y, x). It needs the package zarr 3.
    """
    try:
        import zarr
    except ImportError as error:
        raise errors.PatchbayError("open store: it needs the package zarr: pip install 'zarr>=3'") from error
    path = os.fspath(path)
    if not os.path.exists(os.path.join(path, "zarr.json")):
        raise errors.NotFoundError(f"open store: {path}: there is no zarr.json")
    group = zarr.open_group(path, mode="r")
    attributes = dict(group.attrs)
    scales = attributes.get("ome", attributes).get("multiscales", [])
    if not scales:
        raise errors.DataError(f"open store: {path}: it has no multiscales metadata")
    return [group[dataset["path"]] for dataset in scales[0]["datasets"]]
