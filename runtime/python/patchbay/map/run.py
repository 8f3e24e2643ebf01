"""A run of `map`: its config, its function, its results, and one consumer of it in this process."""
import collections.abc
import dataclasses
import errno
import hashlib
import json
import os
import tempfile

from .. import _programs, _units, errors
from . import bands, consumer, declared, geometry, results
from . import function as functions


@dataclasses.dataclass(frozen=True)
class Job:
    """The parts of a run. whole: the config with its defaults. digests: SHA-256 of the weights. arguments: further ones of
    _units.Units by name."""
    config: object
    whole: dict
    function: functions.Function
    outputs: list
    declared: dict
    weights: list
    digests: list
    grid: geometry.Grid
    arguments: dict


def _whole_config(config, overrides, split):
    """The run config with its defaults, as `patchbay config print` shows it."""
    words = [f"{key}={json.dumps(value)}" for key, value in (overrides or {}).items()]
    more = [each for word in words for each in ("--set", word)] + (["--split", split] if split else [])
    if not isinstance(config, collections.abc.Mapping):
        return _programs.run_json("config", "print", os.fspath(config), *more)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        json.dump(dict(config), file)  # JSON is YAML too
        file.flush()
        return _programs.run_json("config", "print", file.name, *more)


def prepare(config, function, arguments):
    """The Job, with everything checked that needs no image."""
    whole = _whole_config(config, arguments.get("overrides"), arguments.get("split"))
    outputs = declared.parse(whole.get("outputs"))
    grid = geometry.Grid.of(whole)
    for output in outputs:
        if output.kind == "map" and not grid.is_grid:
            raise errors.ConfigError(f"read config: outputs.{output.name}: a map needs sampling.positions: grid")
        if output.grid == "stored" and not grid.volume:
            raise errors.ConfigError(f"read config: outputs.{output.name}.grid: stored is for volumes: a slide's map has the patch's resolution")
        if output.kind == "map" and grid.moving:
            raise errors.ConfigError(f"read config: preprocess.{sorted(grid.moving)[0]}: outputs.{output.name} needs patches as they lie in the image")
        if output.kind == "image" and function.finish is None:
            raise errors.ConfigError(f"read config: outputs.{output.name}: it needs a function finish(model, rows) in {function.path}")
    weights = whole.get("weights", [])
    digests = [results.file_digest(path, "read weights") for path in weights]
    return Job(config, whole, function, outputs, whole["outputs"], weights, digests, grid, arguments)


def _units_name(job, out):
    """Consumers of one folder and the same results take part in one run."""
    parts = [os.path.realpath(out), job.declared, job.function.digest, job.digests]
    return "map-" + hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _failures(units, found, here):
    """[image, reason] of every image that failed: here, elsewhere, or before a consumer had it; of several bands' the first."""
    known = {number: (None, reason) for number, reason in units.progress()[1].items()} | here

    def name_of(number):
        image, record = next((i, record) for i, record in enumerate(units.images) if 0 <= number - record["units"][0] < record["units"][1])
        return found.folder_of(image, record)
    reasons = {}
    for number, (folder, reason) in sorted(known.items()):
        reasons.setdefault(folder or name_of(number), reason)
    return list(map(list, reasons.items()))


def _done_units(units, found):
    """Numbers of the units of which an earlier run left images or bands."""
    done = []
    for folder in found.done():
        first, count = units.images[int(folder.split("-")[0])]["units"]
        done += range(first, first + count)
    for image, folder in bands.images_of(found):
        first, count = units.images[image]["units"]
        done += [] if found.has(folder) else [first + band for band in bands.Bands(found, folder, count).done()]
    return done


def consume(job, out, *, new=False, timeout=None, show=True, on_failure=None, failed=()):
    """One consumer of a Job, until every image is done; the summary as a dict.

    failed: (unit, folder, reason) of images that are not tried again.
    """
    arguments = dict(job.arguments)
    if arguments.get("name") is None:
        arguments["name"] = _units_name(job, out)
    device = arguments.get("device")
    units = _units.Units(job.config, **arguments)
    try:
        identity = {"plan": units.description["plan"], "outputs": job.declared, "weights": job.digests, "function": job.function.digest}
        if units.description["outputs"] != job.declared:
            raise errors.ConflictError("map: the config has changed since it was planned: start again")
        model = None if job.function.load is None else job.function.load(list(job.weights), str(device or "cpu"))
        facts = {"versions": functions.versions(), "device": functions.device_name(device),
                 "function_file": os.path.basename(job.function.path), "weight_files": [os.path.basename(path) for path in job.weights],
                 "config": job.whole}
        found = results.Results(out, identity, facts, new)
        images = units.description["mapped_images"]
        progress = consumer.Progress(found, images, show)
        for note in found.notes:
            progress.say(note)
        there = found.done()
        if there:
            progress.say(f"{found.path} has {len(there)} of {images} images: they are skipped")
        broken = {unit: reason for unit, _, reason in failed}
        done = [unit for unit in _done_units(units, found) if unit not in broken]
        units.skip(done if units.progress()[0] < len(done) else [], broken)
        one = consumer.Consumer(units, job, found, progress, on_failure)
        one.failed = {unit: (folder, reason) for unit, folder, reason in failed}
        one.run(model, timeout)
        failures, complete = _failures(units, found, one.failed), len(found.done())
        if complete < images and not failures:
            raise errors.NotFoundError(f"map: {found.path}: {images - complete} images that were finished are not there any more: run it again")
        return {"out": found.path, "name": found.name, "images": images, "complete": complete,
                "skipped": len(there), "patches": progress.patches, "failed": failures}
    except OSError as error:
        if isinstance(error, errors.PatchbayError):
            raise
        kind = errors.ResourceError if error.errno in (errno.ENOSPC, errno.EDQUOT) else errors.AccessError
        raise kind(f"write results: {out}: {error.strerror or error}: make room, or choose another folder; then run it again") from error
    finally:
        units.close()
