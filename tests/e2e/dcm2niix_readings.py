"""Series that are generated here and real ones, by dcm2niix, for dcm2niix_test.py to hold stores against. This is run by hand where
dcm2niix is installed: PATCHBAY_BIN=. python3 dcm2niix_readings.py DATA > dcm2niix_readings.json"""
import base64
import contextlib
import hashlib
import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import dicom_files
from mr_pet_test import PHILIPS_MR, pet
from repairs_test import CASES, RULES, TUBE, make_series

ACCEPT, REPAIR = ("--geometry", "accept"), ("--repair", RULES)


@contextlib.contextmanager
def plane(rows, columns):
    before = dict(dicom_files.PLANE)
    dicom_files.PLANE.update(rows=rows, columns=columns)
    yield
    dicom_files.PLANE.update(before)


def turned(rows, columns):
    """The elements of slices whose rows and columns run along these directions, and where slice k of 3 mm steps lies."""
    normal = [rows[1] * columns[2] - rows[2] * columns[1], rows[2] * columns[0] - rows[0] * columns[2], rows[0] * columns[1] - rows[1] * columns[0]]
    places = lambda k: "\\".join(f"{start + 3 * k * along:.6f}" for start, along in zip((-10, -12, 5), normal))
    return {"elements": {**TUBE, 0x00200037: ("DS", "\\".join(f"{one:.8f}" for one in (*rows, *columns)))},
            "per_slice": lambda k: {0x00200032: ("DS", places(k))}}


def ct(**elements):
    return {"elements": {**TUBE, **{int(tag[1:], 16): value for tag, value in elements.items()}}}


COS, SIN = math.cos(math.radians(20)), math.sin(math.radians(20))
GML = pet(units="GML", decay="NONE", t00101030=None)
SUV_FRAMES = {**pet(), 0x00189758: ("CS", "YES"), 0x00189701: ("DT", "20240301091600")}
for decayed in (0x00541001, 0x00541102):
    del SUV_FRAMES[decayed]
THICK = {0x00180050: ("DS", "3"), 0x00180088: ("DS", "3")}
ACROSS = {0x00080008: ("CS", "ORIGINAL\\PRIMARY\\LOCALIZER"), 0x00200037: ("DS", "1\\0\\0\\0\\0\\-1"), 0x00200032: ("DS", "-10\\0\\12")}
SUV = lambda k: {0x00409096: ("SQ", [{0x004008EA: ("SQ", [{0x00080100: ("SH", "g/ml{SUVbw}")}]), 0x00409224: ("FD", 0.0),
                                      0x00409225: ("FD", 0.5 + 0.25 * k)}])}

# name: modality, further words of dicom_files.single, options of ingest. `make` is another maker, `plane` other rows and columns.
KINDS = {
    "mr": ("MR", {}),
    "mr-scaled": ("MR", {"elements": dicom_files.rescale(2.5, 7)}),
    "mr-philips": ("MR", {"implicit": True, "elements": {0x00080070: ("LO", "Philips Medical Systems"), **dicom_files.rescale(2, -7), **PHILIPS_MR,
                                                     0x2005100E: ("FL", 0.25)}}),
    "mr-signed": ("MR", {"elements": {0x00280103: ("US", 1)},
                         "pixels": lambda values: ("OW", struct.pack(f"<{len(values)}h", *(value - 400 for value in values)))}),
    "mr-12-bits": ("MR", {"elements": {0x00280101: ("US", 12), 0x00280102: ("US", 11)}}),
    "mr-8-bits": ("MR", {"elements": {0x00280100: ("US", 8), 0x00280101: ("US", 8), 0x00280102: ("US", 7)},
                         "pixels": lambda values: ("OW", bytes(value % 256 for value in values))}),
    "mr-rle": ("MR", {"pixels": lambda values: (None, dicom_files.fragments(dicom_files.rle(values)))}),
    "mr-frames": ("MR", {"make": dicom_files.enhanced, "elements": THICK}),
    "mr-frames-scaled": ("MR", {"make": dicom_files.enhanced, "elements": THICK, "per_frame": lambda k: {0x00289145: ("SQ", [dicom_files.rescale(2.5, 7)])}}),
    "mr-phases": ("MR", {"slices": 8, "at": lambda k: k % 4, "per_slice": lambda k: {0x00200100: ("IS", 1 + k // 4), 0x00200012: ("IS", 1 + k // 4)}},
                  *REPAIR),
    "pet-gml": ("PT", {"elements": GML, "per_slice": lambda k: dicom_files.rescale(0.5 + 0.25 * k, 0)}),
    "pet-gml-implicit": ("PT", {"implicit": True, "elements": {**GML, **dicom_files.rescale(0.125, 0)}}),
    "pet-frames": ("PT", {"make": dicom_files.enhanced, "elements": {**SUV_FRAMES, **THICK}, "per_frame": SUV}),
    "implicit": ("CT", {"implicit": True, **ct()}),
    "rle": ("CT", {"pixels": lambda values: (None, dicom_files.fragments(dicom_files.rle(values))), **ct()}),
    "sagittal": ("CT", turned((0, 1, 0), (0, 0, -1))),
    "coronal": ("CT", turned((1, 0, 0), (0, 0, -1))),
    "oblique": ("CT", turned((1, 0, 0), (0, COS, SIN))),
    "doubly-oblique": ("CT", turned((COS, SIN, 0), (-SIN * COS, COS * COS, SIN))),
    "prone": ("CT", turned((-1, 0, 0), (0, -1, 0))),
    "feet-first": ("CT", {"at": lambda k: -k, **ct()}),
    "oblong-pixels": ("CT", ct(t00280030=("DS", "1.5\\2.5"))),
    "wide": ("CT", {"plane": (3, 16), **ct()}),
    "two-slices": ("CT", {"slices": 2, **ct()}),
    "thin": ("CT", {"slices": 12, "per_slice": lambda k: {0x00200032: ("DS", f"-10\\-12\\{0.625 * k:g}")}, **ct()}),
    "false-thickness": ("CT", ct(t00180050=("DS", "5"), t00180088=("DS", "1.5"), t00201041=("DS", "-70"))),
    "false-numbers": ("CT", {"per_slice": lambda k: {0x00200013: ("IS", (3, 1, 4, 2)[k])}, **ct()}),
    "derived": ("CT", ct(t00080008=("CS", "DERIVED\\SECONDARY\\MPR"))),
    "halves": ("CT", {"elements": {**TUBE, **dicom_files.rescale(0.5, -1000)}}),
    "slopes": ("CT", {"per_slice": lambda k: dicom_files.rescale(1 + 0.5 * k, -1000), **ct()}),
    "own-frames": ("CT", {"per_slice": lambda k: {0x00200052: ("UI", f"1.2.7.{k}")}, **ct()}),
    "scout-across": ("CT", {"slices": 5, "at": lambda k: k - 1, "per_slice": lambda k: ACROSS if k == 0 else {}, **ct()}, *REPAIR),
    "gap": ("CT", {"at": lambda k: k + (k > 2), **ct()}, *ACCEPT),
    "variable": ("CT", {"slices": 5, "per_slice": lambda k: {0x00200032: ("DS", f"-10\\-12\\{(0, 3, 6.5, 9.5, 12.5)[k]}")}, **ct()}, *ACCEPT),
    "tilted": ("CT", {"per_slice": lambda k: {0x00200032: ("DS", f"-10\\{-12 + 0.8 * k:g}\\{3 * k}")}, **ct(t00181120=("DS", "15"))}, *ACCEPT),
}
# Folder and files below DATA, options of ingest.
REAL = {"real-mr": ("mr/torchio-mr-17slices", "*", *REPAIR), "real-ct-j2k": ("ct/totalsegmentator-body-j2k/dicom", "*"),
        "real-ct-abdomen": ("ct/tcga-34-2605-abdomen-5mm", "1-2*.dcm")}


def make(folder):
    """A folder for each generated series; {name: options of ingest}."""
    repaired = [name for name, case in CASES.items() if case[4]]
    make_series(folder, repaired)
    for number, (name, (modality, words, *_)) in enumerate(KINDS.items(), 100):
        words = dict(words)
        with plane(*words.pop("plane", (6, 5))):
            words.pop("make", dicom_files.single)(folder / name, modality, number, **words)
    return {**{name: REPAIR for name in repaired}, **{name: tuple(options) for name, (_, _, *options) in KINDS.items()}}


def volumes(file):
    """The volumes of a NIfTI file that dcm2niix wrote: those of a series over time are several."""
    data = file.read_bytes()
    _, *sides = struct.unpack_from("<5h", data, 40)
    form = {2: "B", 4: "h", 512: "H", 16: "f", 8: "i"}[struct.unpack_from("<h", data, 70)[0]]
    slope, offset = struct.unpack_from("<2f", data, 112)
    affine = [struct.unpack_from("<4f", data, 280 + 16 * row) for row in range(3)]
    voxels, begin = math.prod(sides[:3]), int(struct.unpack_from("<f", data, 108)[0])
    size = voxels * struct.calcsize(form)
    for number in range(max(1, sides[3])):
        part = data[begin + number * size:begin + (number + 1) * size]
        yield {"shape": sides[2::-1], "affine": affine, "form": form, "slope": slope or 1.0, "offset": offset if slope else 0.0, "voxels": part}


def read(folder):
    with tempfile.TemporaryDirectory() as out:
        # Its status is 1 where it warns.
        subprocess.run(["dcm2niix", "-b", "n", "-z", "n", "-f", "v%s", "-o", out, folder], check=False, stdout=subprocess.DEVNULL)
        # Beside a series with gaps or a tilt lies one that dcm2niix resampled.
        files = [file for file in sorted(pathlib.Path(out).glob("*.nii")) if not re.search("_Eq|_Tilt", file.name)]
        return [volume for file in files for volume in volumes(file) if volume["shape"][0] > 1]  # a localiser lies beside its series


def kept(volume):
    voxels = volume.pop("voxels")
    return {**volume, **({"voxels": base64.b64encode(voxels).decode()} if len(voxels) < 4096 else {"sha256": hashlib.sha256(voxels).hexdigest()})}


def main():
    said = subprocess.run(["dcm2niix", "--version"], capture_output=True, text=True, check=False).stdout
    with tempfile.TemporaryDirectory() as folder:
        folders = {name: pathlib.Path(folder) / name for name in make(pathlib.Path(folder))}
        for name, (real, files, *_) in REAL.items():
            folders[name] = pathlib.Path(folder) / name
            folders[name].mkdir()
            for file in (pathlib.Path(sys.argv[1]) / real).glob(files):
                (folders[name] / file.name).symlink_to(file)
        json.dump({"dcm2niix": re.search(r"v1[.\d]+", said)[0], "series": {name: list(map(kept, read(of))) for name, of in folders.items()}},
                  sys.stdout, indent=None, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
