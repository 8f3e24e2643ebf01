"""The truth of mapped images: masks of a label set, as Patchbay streams them where the map's pixels lie."""
import contextlib
import csv
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
    if not os.path.exists(store):
        raise errors.NotFoundError(f"score: {store}: it was mapped and is not there any more")
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


def check_same(image):
    """DataError where the store is not the one that was mapped."""
    found = results.identity_of({"path": image.path})["pixel_digest"]
    if found != image.digest:
        raise errors.DataError(f"score: {image.path}: its pixels are not those that {image.folder} was made of: map it again")


def config_of(folder, table, label_set, stored):
    """A run config of masks over the whole images, without overlap, where the map's pixels lie."""
    size = list(folder.size)
    patch = {"size": size, "level": 0, "mixed_spacing": True} if stored else dict(folder.config["patch"])
    if patch.get("mpp"):
        patch["mpp"] = patch["mpp"][:1]
    dtype = "float32" if folder.volume else "uint8"  # the image's, which nobody looks at
    patch_bytes = int(numpy.prod(size)) * (5 if folder.volume else 4)
    batch = {"global_size": max(1, min(64, _BATCH_BYTES // patch_bytes)), "dtype": dtype, "layout": "nchw" if folder.volume else "nhwc", "meta": True}
    return {"dataset": table, "patch": patch, "labels": {"set": label_set, "mask": True}, "sampling": {"order": "sequential"}, "batch": batch}


def write_table(path, images, mpps):
    """The cohort of the truth: rows are named by their number. mpps: um per pixel of level 0, or None."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "slide_id", "mpp"])
        writer.writerows([image.path, f"image-{number}", "" if mpp is None else repr(mpp)] for number, (image, mpp) in enumerate(zip(images, mpps)))


def masks(config, options):
    """(number of the image, its record, level, box, mask z, y, x) of every patch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # they are about the table above
        opened = attach(config, **options)
    with contextlib.closing(opened) as stream:
        for batch in stream:
            arrays = [numpy.asarray(batch[name]) for name in ("image_index", "level", "box", "mask")]
            for index, level, box, mask in zip(*arrays):
                record = stream.images[int(index)]
                yield int(record["slide_id"].rpartition("-")[2]), record, int(level), box, mask if mask.ndim == 3 else mask[None]


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
