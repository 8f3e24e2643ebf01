"""The tissue mask by OpenCV: reads a JSON request, writes the images it read and the masks it made.

usage: tissue_oracle.py REQUEST.json FOLDER
request: {"images": [{"path", "page"} or {"noise": [height, width, seed]}],
          "cases": [{"image", "channel", "median_k", "threshold": "otsu" or n, "border", "close_radius",
                     "min_area", "max_hole", "black": n (10)}]}, lengths in pixels
writes FOLDER/image<i>.raw (RGB), FOLDER/mask<i>.raw and FOLDER/answer.json
"""

import json
import sys

import cv2
import numpy as np


def image_of(request):
    if "noise" in request:
        height, width, seed = request["noise"]
        draw = np.random.default_rng(seed)
        coarse = draw.integers(0, 256, (height // 16 + 2, width // 16 + 2, 3), dtype=np.uint8)
        smooth = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
        return cv2.add(smooth, draw.integers(0, 30, smooth.shape, dtype=np.uint8))
    ok, pages = cv2.imreadmulti(request["path"], flags=cv2.IMREAD_COLOR)
    if not ok:
        pages = [cv2.imread(request["path"], cv2.IMREAD_COLOR)]
    return cv2.cvtColor(pages[request.get("page", 0)], cv2.COLOR_BGR2RGB)


def threshold_of(values, case):
    """None where there is none."""
    if case["threshold"] != "otsu":
        return case["threshold"] if values.size else None
    if values.size == 0 or values.min() == values.max():
        return None
    sat = case["channel"] == "sat"
    glass = np.count_nonzero(values <= 20 if sat else values >= 220)
    if case["border"] and glass * 20 < values.size:
        values = np.append(values, np.full(values.size, 0 if sat else 255, np.uint8))
    t, _ = cv2.threshold(values.reshape(1, -1), 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    low, high = values[values <= t], values[values > t]
    return None if high.mean() - low.mean() < 8 else t


def components(mask, connectivity):
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=connectivity)
    return labels, stats


def cleaned(mask, case):
    if case["close_radius"]:
        side = 2 * case["close_radius"] + 1
        mask = cv2.morphologyEx(mask, cv2.MORPH_CLOSE, np.ones((side, side), np.uint8))
    labels, stats = components(mask, 8)
    for i in range(1, len(stats)):
        if stats[i, cv2.CC_STAT_AREA] < case["min_area"]:
            mask[labels == i] = 0
    labels, stats = components(1 - mask, 4)
    height, width = mask.shape
    for i in range(1, len(stats)):
        left, top, w, h, area = stats[i]
        inside = left > 0 and top > 0 and left + w < width and top + h < height
        if inside and area <= case["max_hole"]:
            mask[labels == i] = 1
    return mask


def mask_of(image, case):
    sat = case["channel"] == "sat"
    value = cv2.cvtColor(image, cv2.COLOR_RGB2HSV)[:, :, 1] if sat else cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    excluded = image.max(axis=2) < case.get("black", 10)
    value[excluded] = 0 if sat else 255
    if case["median_k"] > 1:
        value = cv2.medianBlur(value, case["median_k"])
    t = threshold_of(value[~excluded], case)
    if t is None:
        return np.zeros(value.shape, np.uint8)
    mask = (value > t) if sat else (value <= t)
    return cleaned((mask & ~excluded).astype(np.uint8), case)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    images = [image_of(r) for r in request["images"]]
    for i, image in enumerate(images):
        image.tofile(f"{sys.argv[2]}/image{i}.raw")
    for i, case in enumerate(request["cases"]):
        mask_of(images[case["image"]].copy(), case).tofile(f"{sys.argv[2]}/mask{i}.raw")
    with open(f"{sys.argv[2]}/answer.json", "w", encoding="utf-8") as file:
        json.dump({"opencv": cv2.__version__, "shapes": [i.shape[:2] for i in images]}, file)


if __name__ == "__main__":
    main()
