"""The expected results of the chain, computed by NumPy: reads a JSON request, writes the source and the results.

usage: oracle.py REQUEST.json FOLDER
request: {"image": PATH or null, "size": n, "cases": [{"turns", "horizontal", "vertical", "scale",
          "mean", "std", "dtype", "layout"}]}
writes FOLDER/source.raw (size x size x 3 uint8) and FOLDER/<case>.raw
"""

import json
import sys

import numpy as np

try:
    import ml_dtypes

    BFLOAT16 = ml_dtypes.bfloat16
except ImportError:
    BFLOAT16 = None


def source_of(request):
    n = request["size"]
    if request["image"] is None:
        return np.random.default_rng(7).integers(0, 256, (n, n, 3), dtype=np.uint8)
    from PIL import Image

    image = np.asarray(Image.open(request["image"]).convert("RGB"))
    return np.ascontiguousarray(np.tile(image, (n // image.shape[0] + 1, n // image.shape[1] + 1, 1))[:n, :n])


def result_of(source, case):
    x = source
    if case["horizontal"]:
        x = x[:, ::-1]
    if case["vertical"]:
        x = x[::-1]
    x = np.rot90(x, case["turns"])
    if case["scale"] is not None:
        x = (x.astype(np.float64) / case["scale"] - np.array(case["mean"])) / np.array(case["std"])
    x = x.astype(np.float32)
    if case["dtype"] == "uint8":
        x = np.clip(np.rint(x), 0, 255).astype(np.uint8)
    elif case["dtype"] == "bfloat16":
        x = x.astype(BFLOAT16)
    else:
        x = x.astype(case["dtype"])
    if case["layout"] == "nchw":
        x = x.transpose(2, 0, 1)
    return np.ascontiguousarray(x)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    if BFLOAT16 is None and any(c["dtype"] == "bfloat16" for c in request["cases"]):
        sys.exit("needs ml_dtypes")
    source = source_of(request)
    source.tofile(f"{sys.argv[2]}/source.raw")
    for i, case in enumerate(request["cases"]):
        result_of(source, case).tofile(f"{sys.argv[2]}/{i}.raw")


main()
