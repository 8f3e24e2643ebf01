"""The expected results of the ops of volumes, by NumPy and SciPy in double: reads a JSON request, writes the image and the
results of all cases one after another.

usage: volume_oracle.py REQUEST.json FOLDER
writes FOLDER/image.raw (int16 of request["shape"]), FOLDER/expected.raw (float64), FOLDER/body.raw (uint8, one mask a
body case)
"""
import json
import sys

import numpy as np
from scipy import ndimage
from scipy.interpolate import BSpline

FILL = -1024


def turned(axis, degrees):
    a = np.deg2rad(degrees)
    m = np.eye(3)
    i, j = [k for k in range(3) if k != axis]
    m[i, i] = m[j, j] = np.cos(a)
    m[i, j], m[j, i] = -np.sin(a), np.sin(a)
    return m


def spline_basis(pixels, points):
    at = np.arange(pixels) * (points - 3) / max(pixels - 1, 1)
    knots = np.arange(-3, points + 1, dtype=float)
    return np.stack([BSpline(knots, np.eye(points)[k], 3)(at) for k in range(points)], axis=-1)


def places(case):
    """Coordinates of every finished voxel in the image, (3, z, y, x)."""
    patch, step, mm = (np.array(case[k], float) for k in ("patch", "step", "spacing"))
    at = np.mgrid[tuple(slice(0, n) for n in case["patch"])].astype(float)
    if case["points"]:
        n = case["points"]
        z, y, x = (spline_basis(side, n) for side in case["patch"])
        for axis in range(3):
            at[axis] += np.einsum("za,yb,xc,abc->zyx", z, y, x, np.array(case["moves"][axis]).reshape(n, n, n), optimize=True)
    m = np.eye(3)
    for turn in case["turns"]:
        b = turned(0, turn["degrees"][0]) @ turned(1, turn["degrees"][1]) @ turned(2, turn["degrees"][2])
        m = m @ (np.diag(1 / mm) @ b @ np.diag(mm) / np.array(turn["scale"])[:, None])
    m = np.diag([-1.0 if flip else 1.0 for flip in case["mirrored"]]) @ m
    source = np.maximum(1, np.floor(patch * step + 0.5))
    offset = (source - 1) / 2 - np.diag(step) @ m @ ((patch - 1) / 2)
    at = np.einsum("ij,jzyx->izyx", np.diag(step) @ m, at) + (offset + np.array(case["box"]))[:, None, None, None]
    if case["nearest"] >= 0:  # order 0 of map_coordinates, as nnU-Net takes the axis
        at[case["nearest"]] = np.floor(at[case["nearest"]] + 0.5)
    return at


def gathered(image, case):
    pad, whole = 0, image.astype(float)
    sigma = [np.sqrt((k * k - 1) / (8 * np.log(2))) if k > 1 else 0 for k in case["step"]]
    if case["nearest"] >= 0:
        sigma[case["nearest"]] = 0
    if any(sigma):
        pad = 16
        whole = np.pad(whole, pad, constant_values=FILL)
        whole = ndimage.gaussian_filter(whole, sigma, radius=[int(np.ceil(3 * s)) for s in sigma], mode="nearest")
    return ndimage.map_coordinates(whole, places(case) + pad, order=1, mode="grid-constant", cval=FILL)


def philox(counter, key):
    c = [counter[:, i].astype(np.uint64) for i in range(4)]
    k0, k1 = key
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), p1 & low, (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, axis=-1)


def noise(shape, counter, key):
    rows, w = shape[0] * shape[1], shape[2]
    groups = -(-w // 128)
    counters = np.zeros((rows * groups * 16, 4), dtype=np.uint64)
    counters[:, 0] = np.arange(len(counters))
    counters[:, 1:] = counter
    words = philox(counters, key).astype(np.int64)
    radius = np.sqrt(-2 * np.log(((words >> 16) + 0.5) / 65536))
    angle = ((words & 0x3FFF) + 0.5) / 16384 * np.pi / 2
    sign = lambda bit: 1 - 2 * ((words >> bit) & 1)
    pairs = np.stack([radius * np.cos(angle) * sign(15), radius * np.sin(angle) * sign(14)], axis=-1)
    normals = pairs.reshape(rows, groups, 16, 8).transpose(0, 1, 3, 2).reshape(rows, groups * 128)
    return normals[:, :w].reshape(shape)


def half_pixels(before, after):
    """Places of the samples of a grid of shape `after` over the same extent, half-pixel centres."""
    return np.meshgrid(*[(np.arange(n) + 0.5) * s / n - 0.5 for n, s in zip(after, before)], indexing="ij")


def coarse(x, sides):
    """Down to the nearest sample (PyTorch's nearest-exact), up linearly."""
    at = half_pixels(x.shape, sides)
    low = x[tuple(np.clip(np.floor(a + 0.5).astype(int), 0, n - 1) for a, n in zip(at, x.shape))]
    return ndimage.map_coordinates(low, half_pixels(low.shape, x.shape), order=1, mode="nearest")


def power(x, gamma):
    x = -x if gamma["invert"] else x
    least, spread = x.min(), x.max() - x.min()
    y = ((x - least) / max(spread, 1e-7)) ** gamma["exponent"] * spread + least
    if gamma["retain"]:
        y = (y - y.mean()) * (x.std(ddof=1) / max(y.std(ddof=1), 1e-7)) + x.mean()
    return -y if gamma["invert"] else y


def made(image, case):
    x = gathered(image, case)
    if case["window"]:
        low, high = case["window"]
        x = np.clip((x - low) / (high - low), 0, 1)
    if case["clip"]:
        x = np.clip(x, *case["clip"])
    normalised = (x - case["mean"]) / case["std"]
    # MONAI's NormalizeIntensity(nonzero=True) and ScaleIntensityRangePercentiles(clip=True)
    x = np.where(x == 0, x, normalised) if case["nonzero"] else np.clip(normalised, 0, 1) if case["clamped"] else normalised
    if case["noise"]["std"]:
        x = x + case["noise"]["std"] * noise(x.shape, case["noise"]["counter"], case["noise"]["key"])
    if case["sigma"]:
        x = ndimage.gaussian_filter(x, case["sigma"], radius=int(np.ceil(3 * case["sigma"])), mode="mirror")
    x = x * case["brightness"]
    if case["contrast"] != 1:
        x = np.clip((x - x.mean()) * case["contrast"] + x.mean(), x.min(), x.max())
    if case["coarse"] != list(x.shape):
        x = coarse(x, case["coarse"])
    for gamma in case["gammas"]:
        x = power(x, gamma)
    return x


def body(hu):
    ball = ndimage.generate_binary_structure(3, 1)
    mask = ndimage.binary_opening(hu > -500, ball)
    labels, count = ndimage.label(mask, ball)
    if count:
        sizes = np.bincount(labels.ravel())[1:]
        mask = labels == 1 + np.argmax(sizes)
    return np.stack([ndimage.binary_fill_holes(s) for s in mask])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    rng = np.random.default_rng(11)
    image = rng.integers(-1000, 1400, request["shape"], dtype=np.int16)
    image.tofile(f"{sys.argv[2]}/image.raw")
    np.concatenate([made(image, case).ravel() for case in request["cases"]]).tofile(f"{sys.argv[2]}/expected.raw")
    with open(f"{sys.argv[2]}/body.raw", "wb") as file:
        for shape, seed in request["bodies"]:
            rng = np.random.default_rng(seed)
            hu = ndimage.gaussian_filter(rng.normal(0, 1, shape), rng.uniform(0.3, 2.5)) * 4000 - 500 + rng.normal(0, 50)
            hu = np.clip(hu, -1024, 3000).astype(np.int16)
            file.write(hu.tobytes())
            file.write(body(hu).astype(np.uint8).tobytes())


main()
