"""The expected results of a float chain's ops, by NumPy, SciPy and scikit-image in double: reads a JSON
request, writes the source and the results.

usage: float_oracle.py REQUEST.json FOLDER
request: {"image": PATH or null, "height": n, "width": n, "cases": [{"op": name, its drawn parameters}]}
writes FOLDER/source.raw (height x width x 3 uint8) and FOLDER/<case>.raw (height x width x 3 float64)
"""
import json
import sys
import warnings

import numpy as np
from scipy import ndimage
from scipy.interpolate import BSpline
from skimage import color

MODES = {"reflect101": "mirror", "reflect": "reflect", "edge": "nearest"}


def source_of(request):
    h, w = request["height"], request["width"]
    if request["image"] is None:
        return np.random.default_rng(7).integers(0, 256, (h, w, 3), dtype=np.uint8)
    from PIL import Image

    image = np.asarray(Image.open(request["image"]).convert("RGB"))
    top, left = (image.shape[0] - h) // 2, (image.shape[1] - w) // 2
    return np.ascontiguousarray(image[top:top + h, left:left + w])


def sampled(x, case, y_at, x_at):
    m = np.array(case["map"]).reshape(2, 3)
    at = [m[0, 0] * y_at + m[0, 1] * x_at + m[0, 2], m[1, 0] * y_at + m[1, 1] * x_at + m[1, 2]]
    planes = [ndimage.map_coordinates(x[..., c], at, order=1, mode=MODES[case["border"]]) for c in range(3)]
    return np.stack(planes, axis=-1)


def affine(x, case):
    return sampled(x, case, *np.mgrid[:x.shape[0], :x.shape[1]].astype(float))


def spline_basis(pixels, points):
    """pixels x points: the uniform cubic B-splines of control points that stand (pixels - 1) / (points - 3) apart."""
    at = np.arange(pixels) * (points - 3) / (pixels - 1)
    knots = np.arange(-3, points + 1, dtype=float)
    return np.stack([BSpline(knots, np.eye(points)[k], 3)(at) for k in range(points)], axis=-1)


def elastic(x, case):
    n = case["points"]
    rows, columns = spline_basis(x.shape[0], n), spline_basis(x.shape[1], n)
    dy, dx = (rows @ np.array(case[k]).reshape(n, n) @ columns.T for k in ("dy", "dx"))
    y_at, x_at = np.mgrid[:x.shape[0], :x.shape[1]].astype(float)
    return sampled(x, case, y_at + dy, x_at + dx)


def stain_normalize(x, case):
    """cuCIM's definition of applying a fit: clip, pseudo-inverse, quotient of the largest amounts."""
    od = -np.log(np.clip(x, 1, 240) / 240).reshape(-1, 3).T
    he, ref = (np.array(case[k][:6]).reshape(2, 3).T for k in ("fit", "reference"))
    amount = np.linalg.pinv(he) @ od
    amount *= (np.array(case["reference"][6:]) / np.array(case["fit"][6:]))[:, None]
    return np.minimum(240 * np.exp(-ref @ amount), 255).T.reshape(x.shape)


def reinhard(x, case):
    """skimage's L*a*b*: a line a channel where it is tissue, any channel's optical density above 0.345."""
    lab = color.rgb2lab(x / 255)
    fit, ref = (np.array(case[k]).reshape(2, 3) for k in ("fit", "reference"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # colours beyond sRGB are clipped
        shown = 255 * color.lab2rgb((lab - fit[0]) * (ref[1] / fit[1]) + ref[0])
    is_tissue = x.min(axis=-1) < 240 * np.exp(-0.345)
    return np.where(is_tissue[..., None], shown, x)


def hed_jitter(x, case):
    """skimage's matrices; natural optical density and no clamp of negative amounts."""
    od = -np.log(np.clip(x, 1, 255) / 255)
    stains = od @ np.linalg.inv(color.rgb_from_hed)
    stains = stains * np.array(case["alpha"]) + np.array(case["beta"])
    return np.minimum(255 * np.exp(-stains @ color.rgb_from_hed), 255)


def stain_jitter(x, case):
    """The amounts of both stains by the pseudo-inverse; what is no stain stays."""
    od = -np.log(np.clip(x, 1, 255) / 255).reshape(-1, 3).T
    he = np.array(case["reference"][:6]).reshape(2, 3).T
    change = (np.array(case["alpha"][:2]) - 1)[:, None] * (np.linalg.pinv(he) @ od) + np.array(case["beta"][:2])[:, None]
    return np.minimum(255 * np.exp(-od - he @ change), 255).T.reshape(x.shape)


def color_jitter(x, case):
    x = x / 255
    for step in case["order"]:
        if step == "brightness":
            x = x * case["brightness"]
        elif step == "hue":
            hsv = color.rgb2hsv(x)
            hsv[..., 0] = (hsv[..., 0] + case["hue"]) % 1
            x = color.hsv2rgb(hsv)
        else:
            grey = x @ np.array([0.299, 0.587, 0.114])
            pivot = grey.mean() if step == "contrast" else grey[..., None]
            x = case[step] * x + (1 - case[step]) * pivot
        x = np.clip(x, 0, 1)
    return x * 255


def gaussian_blur(x, case):
    radius = int(np.ceil(3 * case["sigma"]))
    return ndimage.gaussian_filter(x, case["sigma"], radius=radius, mode="mirror", axes=(0, 1))


def philox(counter, key):
    """Philox4x32-10 of arrays of counters (n x 4)."""
    c = [counter[:, i].astype(np.uint64) for i in range(4)]
    k0, k1 = key
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), p1 & low, (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, axis=-1)


def gaussian_noise(x, case):
    h, w, channels = x.shape
    groups = -(-w // 128)
    blocks = h * channels * groups * 16
    counter = np.zeros((blocks, 4), dtype=np.uint64)
    counter[:, 0] = np.arange(blocks)
    counter[:, 1:] = case["counter"]
    words = philox(counter, case["key"]).astype(np.int64)
    radius = np.sqrt(-2 * np.log(((words >> 16) + 0.5) / 65536))
    angle = ((words & 0x3FFF) + 0.5) / 16384 * np.pi / 2
    sign = lambda bit: 1 - 2 * ((words >> bit) & 1)
    pairs = np.stack([radius * np.cos(angle) * sign(15), radius * np.sin(angle) * sign(14)], axis=-1)
    # Block (row, channel, group, lane), word, of the pair -> column group * 128 + (2 word + of) * 16 + lane.
    normals = pairs.reshape(h, channels, groups, 16, 8).transpose(0, 1, 2, 4, 3).reshape(h, channels, groups * 128)
    return x + case["std"] * normals[:, :, :w].transpose(0, 2, 1)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    source = source_of(request)
    source.tofile(f"{sys.argv[2]}/source.raw")
    for i, case in enumerate(request["cases"]):
        globals()[case["op"]](source.astype(np.float64), case).tofile(f"{sys.argv[2]}/{i}.raw")


main()
