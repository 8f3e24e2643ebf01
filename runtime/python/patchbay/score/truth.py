"""The truth of mapped images: masks and labels of a label set, as Patchbay streams them where the map's pixels and patches lie."""
import contextlib
import csv
import dataclasses
import os
import warnings

import numpy

from .. import errors
from ..map import geometry, results
from ..stream import attach

_BATCH_BYTES = 16 << 20


def _document(path):
    """A JSON file of a store; None where there is none."""
    try:
        return results.json_of(path)
    except (OSError, ValueError) as error:
        raise errors.DataError(f"read labels: {path}: {error}") from error


def classes_of(store, label_set):
    """{value: name} of the current revision of a store's label set; None where it has no such set."""
    listed = _document(os.path.join(store, "labels", "zarr.json"))
    try:
        names = [] if listed is None else listed["attributes"]["ome"]["labels"]
        revision = next((name for name in names if name.rpartition(".")[0] == label_set), None)
        if revision is None:
            return None
        labels = _document(os.path.join(store, "labels", revision, "zarr.json"))["attributes"]["patchbay"]["labels"]
        return {int(each["value"]): str(each["name"]) for each in labels["classes"]["classes"] if each["value"] < 255}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise errors.DataError(f"read labels: {store}/labels: {error}: `patchbay verify` says what is wrong") from error


def _pixels_of(path):
    return results.identity_of({"path": path})["pixel_digest"]


def stores_in(folder):
    """{pixel digest: path} of the stores in a folder; none of None. NotFoundError."""
    try:
        names = [] if folder is None else os.listdir(folder)
    except OSError as error:
        raise errors.NotFoundError(f"score: --stores {folder}: {error.strerror}") from error
    paths = [os.path.join(os.path.realpath(folder), name) for name in sorted(names)]
    return {digest: path for path in paths if (digest := _pixels_of(path)) is not None}


def located(image, stores):
    """The image, with the path of a store of its pixels: where it was mapped, or in `stores`. NotFoundError, DataError."""
    is_there = os.path.exists(image.path)
    if is_there and _pixels_of(image.path) == image.digest:
        return image
    if image.digest in stores:
        return dataclasses.replace(image, path=stores[image.digest])
    if not is_there:
        raise errors.NotFoundError(f"{image.path}: it was mapped and is not there any more: --stores DIR finds stores by their pixels")
    raise errors.DataError(f"{image.path}: its pixels are not those that {image.folder} was made of: map it again")


def config_of(folder, table, label_set, grid):
    """A run config over the whole images. grid: "patch" or "stored" for masks without overlap where a map's pixels lie; "score" for
    the label of every patch, by the rule of the run's own config or of the most pixels."""
    size, labels, sampling = list(folder.size), {"set": label_set, "mask": True}, {"order": "sequential"}
    patch = {"size": size, "level": 0, "mixed_spacing": True} if grid == "stored" else dict(folder.config["patch"])
    if patch.get("mpp"):
        patch["mpp"] = patch["mpp"][:1]
    if grid == "score":
        rule = (folder.config.get("labels") or {}).get("label") or {}
        labels = {"set": label_set, "label": {key: rule[key] for key in ("rule", "min_fraction", "classes") if rule.get(key)} or {"rule": "majority"}}
        run = folder.config.get("sampling") or {}
        sampling |= {key: run[key] for key in ("stride", "overlap") if run.get(key)}
    dtype = "float32" if folder.volume else "uint8"  # the image's, which nobody looks at
    patch_bytes = int(numpy.prod(size)) * (5 if folder.volume else 4)
    batch = {"global_size": max(1, min(64, _BATCH_BYTES // patch_bytes)), "dtype": dtype, "layout": "nchw" if folder.volume else "nhwc", "meta": True}
    return {"dataset": table, "patch": patch, "labels": labels, "sampling": sampling, "batch": batch}


def write_table(path, images, mpps):
    """The cohort of the truth: rows are named by their number. mpps: um per pixel of level 0, or None."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "slide_id", "mpp"])
        writer.writerows([image.path, f"image-{number}", "" if mpp is None else repr(mpp)] for number, (image, mpp) in enumerate(zip(images, mpps)))


def patches(config, options):
    """(number of the image, its record, level, box, mask z, y, x or label) of every patch."""
    wanted = "mask" if "mask" in config["labels"] else "label"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # they are about the table above
        opened = attach(config, **options)
    with contextlib.closing(opened) as stream:
        for batch in stream:
            arrays = [numpy.asarray(batch[name]) for name in ("image_index", "level", "box", wanted)]
            for index, level, box, there in zip(*arrays):
                record = stream.images[int(index)]
                yield int(record["slide_id"].rpartition("-")[2]), record, int(level), box, there[None] if there.ndim == 2 else there


class Place:
    """Where the patches of the truth lie in one image's map. ValueError where map and image have other sizes."""

    def __init__(self, size, record, level, box, array):
        """size: of a patch of the config. array: a tiles.TiledArray."""
        grid = geometry.Grid((1,) * (3 - len(size)) + size, (), len(size) == 3, True)
        self._place, self._extent = geometry.ImagePlace(grid, record, level, box), array.extent
        step, own = array.scale[0], self._place.scale(self._place.box).step[-len(array.scale[0]):]
        whole = self._place.box[-len(step):]
        # As many pixels of the map as make one patch.
        pixels = [max(1, round(one * n / each)) if each > 0 else 1 for one, n, each in zip(own, whole, step)]
        self._pixels = (1,) * (3 - len(pixels)) + tuple(pixels)
        self._every = tuple(n // m for n, m in zip(grid.size, self._pixels))
        exact = self._place.scale(self._pixels).step[-len(step):]
        if self._place.extent_in(self._pixels) != self._extent or not numpy.allclose(exact, step, rtol=1e-6) or any(
                n % m for n, m in zip(grid.size, self._pixels)):
            raise ValueError(f"{self._extent} pixels of {step}: the image has {self._place.extent_in(self._pixels)} of {list(exact)}")

    def cut(self, box, mask):
        """(first, end, the classes there) of a patch in pixels of the map. A map with fewer pixels than patches have takes
        the class at the centre of each of its own."""
        first = self._place.origin(box, self._pixels)
        end = [min(at + n, whole) for at, n, whole in zip(first, self._pixels, self._extent)]
        own = mask[tuple(slice(n // 2, None, n) for n in self._every)]
        return first, end, own[tuple(slice(b - a) for a, b in zip(first, end))]
