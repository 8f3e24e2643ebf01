"""The expected results of spectral, computed by NumPy in float64: reads a JSON request, writes pixels and results.

usage: spectral_oracle.py REQUEST.json FOLDER
request: {"image": PATH of a TIFF or PNG, or null for noise, "height", "width",
          "cases": [{"frame", "hop", "window", "prefilter", "frames": [[row, column], ...]}]}
writes FOLDER/rgb.raw (height x width x 3 uint8), FOLDER/grey.raw (height x width uint8) and for every
case FOLDER/<case>.json {"frames", "mean_db", "std_db", "histogram", "quantised", "rings"} and
FOLDER/<case>.raw: dB of the half plane of the named frames, float64. "quantised" is the histogram of levels
rounded to 1/1024 dB.
"""

import json
import sys

import numpy as np

BINS, BIN_DB = 640, 0.25


def source_of(request):
    shape = (request["height"], request["width"], 3)
    if request["image"] is None:
        return np.random.default_rng(11).integers(0, 256, shape, dtype=np.uint8)
    if request["image"].endswith(".png"):
        from PIL import Image

        image = np.asarray(Image.open(request["image"]).convert("RGB"))
    else:
        import tifffile

        image = tifffile.imread(request["image"], key=0)
    if image.shape[0] < shape[0] or image.shape[1] < shape[1]:
        sys.exit("the image is smaller than asked for")
    return np.ascontiguousarray(image[: shape[0], : shape[1]])


def grey_of(rgb):
    x = rgb.astype(np.uint32)
    return ((9798 * x[..., 0] + 19235 * x[..., 1] + 3735 * x[..., 2] + 16384) >> 15).astype(np.uint8)


def filtered(grey, prefilter):
    x = grey.astype(np.float64)
    if prefilter == "none":
        return x
    k = np.arange(-3, 4)
    weights = np.exp(-k * k / (2 * 1.5**2))
    weights /= weights.sum()
    for axis in (0, 1):
        padded = np.pad(x, [(3, 3) if a == axis else (0, 0) for a in (0, 1)], mode="reflect")
        x = sum(w * np.take(padded, np.arange(i, i + x.shape[axis]), axis) for i, w in enumerate(weights))
    return x


def spectrum(x, window):
    """|X| of one frame, half plane."""
    w = np.outer(window, window)
    magnitude = np.abs(np.fft.rfft2((x - x.mean()) * w))
    magnitude[0, 0] = (x * w).sum()
    return magnitude


def result_of(grey, case):
    frame, hop, half = case["frame"], case["hop"], case["frame"] // 2
    n = np.arange(frame)
    window = np.ones(frame) if case["window"] == "rect" else 0.5 - 0.5 * np.cos(2 * np.pi * n / frame)
    x = filtered(grey, case["prefilter"])
    weight = np.full(half + 1, 2)
    weight[[0, half]] = 1
    ky = np.minimum(n, frame - n)[:, None]
    ring = np.rint(np.sqrt(ky**2 + np.arange(half + 1)[None, :] ** 2)).astype(int)
    weights = np.broadcast_to(weight, ring.shape)
    counts, quantised, rings = np.zeros(BINS, np.int64), np.zeros(BINS, np.int64), np.zeros(2 * frame)
    frames, total, squares, named = 0, 0.0, 0.0, {}
    for i in range((grey.shape[0] - frame) // hop + 1):
        for j in range((grey.shape[1] - frame) // hop + 1):
            magnitude = spectrum(x[i * hop : i * hop + frame, j * hop : j * hop + frame], window)
            level = 20 * np.log10(np.maximum(magnitude, 1))
            if [i, j] in case["frames"]:
                named[(i, j)] = level
            frames += 1
            total += (level * weights).sum()
            squares += (level**2 * weights).sum()
            for sums, levels in ((counts, level), (quantised, np.rint(level * 1024) / 1024)):
                bins = np.floor(levels / BIN_DB).astype(int)
                sums += np.bincount(bins.ravel(), weights.ravel(), BINS).astype(np.int64)
            magnitude[0, 0] = 0
            rings += np.bincount(ring.ravel(), (magnitude**2 * weights).ravel(), 2 * frame)
    size = frames * frame * frame
    return {
        "frames": frames,
        "mean_db": total / size,
        "std_db": np.sqrt(squares / size - (total / size) ** 2),
        "histogram": counts.tolist(),
        "quantised": quantised.tolist(),
        "rings": (rings[: half + 1] / frames).tolist(),
    }, np.array([named[tuple(f)] for f in case["frames"]])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    rgb = source_of(request)
    grey = grey_of(rgb)
    rgb.tofile(f"{sys.argv[2]}/rgb.raw")
    grey.tofile(f"{sys.argv[2]}/grey.raw")
    for i, case in enumerate(request["cases"]):
        result, levels = result_of(grey, case)
        with open(f"{sys.argv[2]}/{i}.json", "w", encoding="utf-8") as file:
            json.dump(result, file)
        levels.astype("<f8").tofile(f"{sys.argv[2]}/{i}.raw")


main()
