"""How often `ingest` calls H&E "not H&E", and how often it misses what is none.

    .venv/bin/python tests/bench/stain_alarms.py --bin build/dev/bin --data ../shared/data

H&E: the slides and tiles of the data, whole, in tiles of 256 pixels with a fifth of tissue, and shifted: gain, gamma, white point,
saturation, hue and amounts of stain, each beyond what scanners differ by. Others: two immunostains, the same with the same shifts, DAB in
place of eosin by optical density, fluorescence and pens that are made here, and photographs of scikit-image. The word is that of the
product: all pictures are ingested, and the warnings of their stores are counted.
"""
import argparse
import collections
import io
import json
import pathlib
import subprocess
import tempfile

import numpy as np
import pydicom
import skimage
import tifffile
from PIL import Image

WHITE, SIDE, TILE, TILES = 240, 1024, 256, 40
HEMATOXYLIN, EOSIN, DAB = ((v := np.array(s)) / np.linalg.norm(v)
                           for s in ((0.5626, 0.7201, 0.4062), (0.2159, 0.8012, 0.5581), (0.27, 0.57, 0.78)))
PHOTOGRAPHS = ("astronaut.png", "coffee.png", "chelsea.png", "retina.jpg", "rocket.jpg", "hubble_deep_field.jpg", "motorcycle_left.png")


def density(picture):
    return -np.log(np.clip(picture, 1, WHITE) / WHITE)


def hue(degrees):
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    cross = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / np.sqrt(3)
    return (c * np.eye(3) + (1 - c) / 3 + s * cross).T


def shifts():
    for gain in (0.7, 0.85, 1.1):
        yield f"gain {gain}", lambda a, g=gain: a * g
    for gamma in (0.7, 0.85, 1.2, 1.5):
        yield f"gamma {gamma}", lambda a, g=gamma: 255 * (a / 255) ** g
    for name, white in (("warm", (1.02, 0.98, 0.88)), ("warmer", (1.03, 0.97, 0.8)), ("cool", (0.9, 0.98, 1.02)),
                        ("cooler", (0.82, 0.97, 1.03)), ("pink", (1.02, 0.9, 0.98)), ("greenish", (0.93, 1.02, 0.93))):
        yield name, lambda a, w=np.array(white): a * w
    for amount in (0.5, 0.7, 1.3, 1.6):
        yield f"saturation {amount}", lambda a, s=amount: a.mean(-1, keepdims=True) + (a - a.mean(-1, keepdims=True)) * s
    for amount in (0.5, 0.7, 1.4, 1.8):
        yield f"stain {amount}", lambda a, s=amount: WHITE * np.exp(-s * density(a))
    for degrees in (-12, 12):
        yield f"hue {degrees}", lambda a, d=degrees: a @ hue(d)


def frames(path):
    """The pixels of a DICOM slide in tiles."""
    slide = pydicom.dcmread(path)
    high, wide = slide.Rows, slide.Columns
    across = -(-slide.TotalPixelMatrixColumns // wide)
    out = np.full((-(-slide.TotalPixelMatrixRows // high) * high, across * wide, 3), 255, np.uint8)
    for i, frame in enumerate(pydicom.encaps.generate_frames(slide.PixelData, number_of_frames=int(slide.NumberOfFrames))):
        y, x = i // across * high, i % across * wide
        out[y:y + high, x:x + wide] = np.array(Image.open(io.BytesIO(frame)).convert("RGB"))
    return out[:slide.TotalPixelMatrixRows, :slide.TotalPixelMatrixColumns]


def stained(data):
    """(kind, name, picture) of the H&E."""
    for name in ("CMU-1-Small-Region.svs", "CropBreastSlide-pyramid.tiff"):
        yield "scanned", name, tifffile.imread(data / "wsi" / name, key=0)
    for name in ("cptac-brca-level.dcm", "camelyon16-jpeg-ybr422.dcm"):
        yield "scanned", name, frames(data / "wsi" / name)
    for name in ("torchstain/source", "torchstain/target", "histolab/target", "histolab/source-medium"):
        yield "scanned", name, opened(data / "stain" / f"{name}.png")
    yield "red pen", "histolab/pen-red-thumb", opened(data / "stain/histolab/pen-red-thumb.png")
    for name in ("torchstain/result", "histolab/expected-medium-macenko", "histolab/expected-medium-reinhard"):
        yield "computed", name, opened(data / "stain" / f"{name}.png")


def opened(path):
    return np.array(Image.open(path).convert("RGB"))


def fluorescence(random, colours, base):
    y, x = np.mgrid[:400, :400]
    out = np.full((400, 400, 3), float(base))
    for colour in colours:
        for _ in range(80):
            centre, radius = random.integers(0, 400, 2), random.uniform(8, 20)
            spot = np.exp(-((y - centre[0]) ** 2 + (x - centre[1]) ** 2) / radius ** 2) * random.uniform(0.3, 1.2)
            out += spot[..., None] * colour
    return out + random.normal(0, 2, out.shape)


def pen(random, ink):
    out = np.full((400, 400, 3), 245.0)
    cover = random.uniform(0.4, 1, (120, 400, 1))
    out[140:260] += (np.array(ink) - 245) * cover
    return out + random.normal(0, 3, out.shape)


def others(data):
    """(kind, name, picture) of what is no H&E."""
    pictures = pathlib.Path(skimage.__file__).parent / "data"
    yield "immunostain", "luna 1065626", tifffile.imread(data / "wsi/luna-1065626-ihc-j2k33003.svs", key=0)
    yield "immunostain", "ihc.png", opened(pictures / "ihc.png")
    amounts = np.clip(density(opened(data / "stain/histolab/target.png").astype(float)) @ np.linalg.pinv([HEMATOXYLIN, EOSIN]), 0, None)
    for h, d in ((1, 1), (1, 0.4), (0.5, 2)):
        yield "DAB for eosin", f"DAB {h} {d}", WHITE * np.exp(-(amounts * [h, d]) @ np.array([HEMATOXYLIN, DAB]))
    random = np.random.default_rng(1)
    red, green, blue = (120, 60, 0), (0, 150, 30), (20, 40, 220)
    for name, colours, base in (("three markers", (red, green, blue), 3), ("DAPI", (blue,), 2), ("bright", (red, green, blue), 25)):
        yield "fluorescence", name, fluorescence(random, np.array(colours), base)
    for name, ink in (("green", (40, 160, 90)), ("teal", (20, 170, 170)), ("blue", (30, 60, 190)), ("red", (200, 20, 20)), ("black", (20, 20, 24))):
        yield f"{name} pen", f"{name} pen", pen(random, ink)
    for name in PHOTOGRAPHS:
        yield "photograph", name, opened(pictures / name)


def tiles(picture):
    found = [picture[y:y + TILE, x:x + TILE] for y in range(0, picture.shape[0] - TILE + 1, TILE)
             for x in range(0, picture.shape[1] - TILE + 1, TILE)]
    return [tile for tile in found if (density(tile.astype(float)).max(-1) > 0.345).mean() >= 0.2][:TILES]


def middle(picture):
    y, x = (max(0, (side - SIDE) // 2) for side in picture.shape[:2])
    return picture[y:y + SIDE, x:x + SIDE]


def cases(data):
    """((is H&E, kind, how), name, picture)"""
    for is_stained, pictures in ((True, stained(data)), (False, others(data))):
        for kind, name, picture in pictures:
            yield (is_stained, kind, "as it is"), name, picture
            if kind == "photograph":
                continue
            for shift, change in () if "luna" in name else shifts():
                yield (is_stained, kind, "shifted"), f"{name}, {shift}", change(np.clip(middle(picture), 0, 255).astype(float))
            for i, tile in enumerate(tiles(picture) if is_stained else ()):
                yield (is_stained, kind, "tiles"), f"{name}, tile {i}", tile


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the programs")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder of the test data")
    parser.add_argument("--cpus", default="2", help="workers of the ingest")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        named, out = {}, pathlib.Path(folder, "pictures")
        out.mkdir()
        for i, (key, name, picture) in enumerate(cases(options.data)):
            levels = np.clip(np.round(picture), 0, 255).astype(np.uint8)
            tifffile.imwrite(out / f"{i:05}.tif", levels, photometric="rgb", tile=(256, 256))
            named[f"{i:05}"] = (key, name)
        said = subprocess.run([options.bin / "patchbay", "ingest", out, "--out", f"{folder}/stores", "--keep-names", "--codec", "lz4",
                               "--cpus", options.cpus, "--json"], check=True, stdout=subprocess.PIPE,
                              env={"PATCHBAY_HOME": f"{folder}/home", "PATH": "/usr/bin:/bin"}).stdout
        rows = collections.defaultdict(list)
        for store in json.loads(said)["stores"]:
            key, name = named[store["name"].partition(".")[0]]
            rows[key].append((name, next((w for w in store["warnings"] if w.startswith("not H&E")), "")))
    for (is_stained, kind, how), found in rows.items():
        wrong = [(name, why) for name, why in found if bool(why) == is_stained]
        print(f"{'H&E' if is_stained else 'other'}, {kind}, {how}: {len(wrong)} of {len(found)} {'refused' if is_stained else 'missed'}")
        for name, why in wrong:
            print(f"    {name}: {why.partition(' (')[0]}" if why else f"    {name}")


if __name__ == "__main__":
    main()
