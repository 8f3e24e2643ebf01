"""Stain fits of the same definition over the pixels themselves, in NumPy, and the pictures as raw bytes."""
import json
import sys

import numpy as np
from PIL import Image

WHITE = 240.0


def density(rgb):
    return -np.log(np.clip(rgb.astype(np.float64), 1, WHITE) / WHITE)


def lab(rgb):
    c = rgb.astype(np.float64) / 255
    linear = np.where(c > 0.04045, ((c + 0.055) / 1.055) ** 2.4, c / 12.92)
    matrix = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
    t = linear @ matrix.T / np.array([0.95047, 1.0, 1.08883])
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], 1)


def fit(rgb, tissue_od, every_channel, of_all):
    od = density(rgb)
    above = od > tissue_od
    tissue = above.all(1) if every_channel else above.any(1)
    chosen = od[tissue]
    _, vectors = np.linalg.eigh(np.cov(chosen, rowvar=False))
    plane = vectors[:, [2, 1]]
    plane = plane * np.sign(plane[0])
    projected = chosen @ plane
    angles = np.percentile(np.arctan2(projected[:, 1], projected[:, 0]), [1, 99])
    stains = [plane @ [np.cos(a), np.sin(a)] for a in angles]
    stains = [s / np.linalg.norm(s) for s in stains]
    if stains[0][0] < stains[1][0]:
        stains.reverse()
    concentrations = np.linalg.pinv(np.array(stains).T) @ (od if of_all else chosen).T
    colours = lab(rgb[tissue])
    return {"macenko": [*stains[0], *stains[1], *np.percentile(concentrations, 99, axis=1)],
            "reinhard": [*colours.mean(0), *colours.std(0)], "tissue": int(tissue.sum())}


def main():
    request, folder = json.load(open(sys.argv[1])), sys.argv[2]
    answers = []
    for i, case in enumerate(request):
        rgb = np.asarray(Image.open(case["image"]).convert("RGB"))
        rgb.tofile(f"{folder}/image{i}.raw")
        found = fit(rgb.reshape(-1, 3), case["tissue_od"], case["every_channel"], case["of_all"])
        answers.append({"shape": rgb.shape, **found})
    json.dump(answers, open(f"{folder}/answer.json", "w"))


main()
