"""Metadata of an OME-Zarr group (NGFF 0.5)."""
import json
import os


def write_group(path, axes, extents, scale, attributes):
    """`zarr.json` of a group with arrays "0", "1", ... of `axes` (c, z, y, x, or some of them), each half the one before.

    extents: of every array, z, y, x; an axis of one pixel is not halved.

    scale: a geometry.Scale of the first. The translation is from the centre of the image's first pixel to that of the array's.
    """
    spatial = [axis for axis in axes if axis != "c"]
    datasets, halved = [], [1, 1, 1]
    for number, extent in enumerate(extents):
        steps = [step * times for step, times, axis in zip(scale.step, halved, "zyx") if axis in spatial]
        halved = [times * (2 if n > 1 else 1) for times, n in zip(halved, extent)]
        shifts = [(step - finest) / 2 for step, finest in zip(steps, scale.finest[-len(spatial):])]
        front = len(axes) - len(spatial)
        datasets.append({"path": str(number), "coordinateTransformations": [
            {"type": "scale", "scale": [1.0] * front + steps}, {"type": "translation", "translation": [0.0] * front + shifts}]})
    unit = {"unit": scale.unit} if scale.unit else {}
    described = [{"name": axis, "type": "channel"} if axis == "c" else {"name": axis, "type": "space", **unit} for axis in axes]
    ome = {"version": "0.5", "multiscales": [{"datasets": datasets, "axes": described}]}
    document = {"zarr_format": 3, "node_type": "group", "attributes": {"ome": ome, "patchbay": attributes}}
    with open(os.path.join(path, "zarr.json"), "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
