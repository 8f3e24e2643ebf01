"""The structures of structures_test.py as plastimatch draws them, for it to hold label sets against. It is run by hand where Debian's
plastimatch is installed: PATCHBAY_BIN=. python3 plastimatch_readings.py > plastimatch_readings.json"""
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import structures_test


COLUMNS, ROWS, SLICES = structures_test.COLUMNS, structures_test.ROWS, structures_test.SLICES
GRID = f"""ObjectType = Image
NDims = 3
BinaryData = True
BinaryDataByteOrderMSB = False
TransformMatrix = 1 0 0 0 1 0 0 0 1
Offset = -10 -12 0
ElementSpacing = 2 2 3
DimSize = {COLUMNS} {ROWS} {SLICES}
ElementType = MET_SHORT
ElementDataFile = LOCAL
"""


def mask(file):
    """Rows of bits, as hexadecimal numbers, of every slice of a NIfTI file."""
    data = file.read_bytes()
    assert struct.unpack_from("<3h", data, 42) == (COLUMNS, ROWS, SLICES) and struct.unpack_from("<h", data, 70) == (2,)
    bits = "".join("1" if voxel else "0" for voxel in data[int(struct.unpack_from("<f", data, 108)[0]):])
    rows = [f"{int(bits[at:at + COLUMNS], 2):0{COLUMNS // 4}x}" for at in range(0, len(bits), COLUMNS)]
    return [" ".join(rows[at:at + ROWS]) for at in range(0, len(rows), ROWS)]


def main():
    structures_test.setUpModule()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "grid.mha").write_bytes(GRID.encode() + bytes(2 * COLUMNS * ROWS * SLICES))
        structures_test.structure_set(folder / "rs.dcm", structures_test.plain_structures())
        subprocess.run(["plastimatch", "convert", "--input", folder / "rs.dcm", "--fixed", folder / "grid.mha", "--xor-contours",
                        "--output-prefix", folder / "masks", "--prefix-format", "nii"], check=True, stdout=sys.stderr)
        version = re.search(r"\d[\w.+~-]*", subprocess.run(["plastimatch", "--version"], capture_output=True, text=True, check=True).stdout)[0]
        json.dump({"plastimatch": version, "structures": {name: mask(folder / f"masks/{name}.nii") for name in structures_test.plain_structures()}},
                  sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
