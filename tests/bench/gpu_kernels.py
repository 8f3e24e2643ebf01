"""Registers, spills and occupancy of every kernel by the compiler's report, and the bytes a pixel or voxel costs at least.

    python3 tests/bench/gpu_kernels.py [--nvcc NVCC] [--arch 80 --arch 90] [--reports FOLDER]

Prints a Markdown table. With FOLDER the compiler's reports stay there, and those that lie there are not made again. No
GPU is needed. Kernels for colour images of uint8 and volumes of int16 with float16 planes; other types differ by a few registers.
"""
import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ("chain/chain", "chain/values", "chain/float_chain", "chain/volume_voxels", "chain/volume_curves", "spectral/spectral")
OPTIONS = ["-std=c++17", "-O3", "-fmad=false", "-prec-div=true", "-prec-sqrt=true", "-ftz=false"]  # as in ops/CMakeLists.txt
REGISTERS, WARPS, BLOCKS = 65_536, 64, 32  # limits of a multiprocessor, sm_80 and sm_90 alike
SHARED = {80: 164 << 10, 90: 228 << 10}
THREADS = 256
# Kernel: dynamic shared bytes of a block or the type that has its size, bytes read and written a pixel (three channels) or voxel, what that is.
KERNELS = {
    "TableKernel<unsigned short>": (3_072, 3 + 6, "light chain: flips, turns, normalize, cast"),
    "ValuesKernel<short>": (0, 6 + 6, "the same of int16 sources"),
    "LabelsKernel": (0, 1 + 1, "mask"),
    "GatherKernel<unsigned char, 3>": (0, 3 + 6, "float chain in one pass; 3 + 12 where another kernel follows"),
    "ContrastKernel": (0, 12 + 6, "jitter about the mean grey; 12 + 12 before a blur"),
    "BlurRowsKernel": (0, 12 + 12, "blur, first half"),
    "BlurColumnsKernel": (0, 12 + 6, "blur, second half"),
    "VolumeSmoothKernel<short>": (0, 4 + 4, "volumes: smoothing before a coarser spacing, a voxel of the box and axis; 2 + 4 along x"),
    "VolumeGatherKernel<short>": (0, 2 + 2, "volumes: chain in one pass; 2 + 4 where another kernel follows"),
    "VolumeLabelsKernel": (0, 1 + 1, "volumes: mask"),
    "VolumeBlurKernel": (0, 4 + 4, "volumes: blur, an axis"),
    "VolumeSumsKernel": (0, 4, "volumes: sums of rows, for contrast and twice for gamma with kept statistics"),
    "VolumeTotalKernel": (0, None, "volumes: sums of patches"),
    "VolumeCoarseKernel": (0, 4 + 4, "volumes: low_resolution"),
    "VolumePowerKernel": (0, 4 + 4, "volumes: power of a gamma"),
    "VolumeFinishKernel": (0, 4 + 2, "volumes: to the slot, where any of the five before ran"),
    "RowsKernel<false>": ("RowsShared<false>", None, "spectra: rows"),
    "RowsKernel<true>": ("RowsShared<true>", None, "spectra: rows, prefiltered"),
    "ColumnsKernel<false>": ("ColumnsShared", None, "spectra: columns, statistics"),
    "ColumnsKernel<true>": ("ColumnsShared", None, "the same with coefficients"),
}
ENTRY = re.compile(r"Compiling entry function '(\w+)'")
SPILL = re.compile(r"(\d+) bytes spill stores")
USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")


def report_of(nvcc, source, arch, folder):
    """The compiler's report, from the folder where it has been made."""
    path = folder / f"{pathlib.Path(source).name}_{arch}.log"
    if not path.exists():
        done = subprocess.run([nvcc, *OPTIONS, "-gencode", f"arch=compute_{arch},code=sm_{arch}", "-Xptxas", "-v", "-I", ROOT,
                               "-cubin", "-o", folder / f"{path.stem}.cubin", ROOT / f"ops/{source}.cu"],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"gpu_kernels: {source}.cu for sm_{arch}: {done.stderr[-2000:]}")
        path.write_text(done.stderr, encoding="utf-8")
    return path.read_text(encoding="utf-8")


def sizes_of(folder):
    """{type: bytes} of the shared memory of spectral's blocks, from its headers."""
    types = sorted({shared for shared, *_ in KERNELS.values() if isinstance(shared, str)})
    source, program = folder / "sizes.cc", folder / "sizes"
    source.write_text('#include "ops/spectral/spectral_columns_pass.h"\n#include "ops/spectral/spectral_rows_pass.h"\n'
                      "#include <cstdio>\nusing namespace patchbay::ops::spectral_passes;\nint main() {\n" +
                      "".join(f'  std::printf("%zu\\n", sizeof({name}));\n' for name in types) + "}\n", encoding="utf-8")
    subprocess.run(["c++", "-std=c++20", "-I", ROOT, source, "-o", program], check=True)
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return dict(zip(types, map(int, said.split())))


def plain(mangled):
    """`GatherKernel<unsigned char, 3>` of a mangled name."""
    text = subprocess.run(["c++filt", mangled], capture_output=True, text=True, check=True).stdout.strip()
    return re.search(r"(\w+Kernel(?:<[^>]*>)?)\(", text)[1]


def kernels_of(report):
    """{kernel: (registers, bytes spilled, static shared bytes)}."""
    found, name, spilled = {}, "", 0
    for line in report.splitlines():
        if entry := ENTRY.search(line):
            name = plain(entry[1])
        elif spill := SPILL.search(line):
            spilled = int(spill[1])
        elif used := USED.search(line):
            found[name] = int(used[1]), spilled, int(used[2] or 0)
    return found


def occupancy(arch, registers, shared):
    """Resident warps of a multiprocessor, of a hundred that fit."""
    warps = THREADS // 32
    of_warp = -(-registers * 32 // 256) * 256  # registers are given out 256 a warp at a time
    blocks = min(REGISTERS // (of_warp * warps), WARPS // warps, BLOCKS, SHARED[arch] // (shared + 1024))
    return 100 * blocks * warps // WARPS


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--arch", type=int, action="append", choices=sorted(SHARED))
    parser.add_argument("--reports", type=pathlib.Path)
    asked = parser.parse_args()
    archs = asked.arch or sorted(SHARED)
    with tempfile.TemporaryDirectory() as made, concurrent.futures.ThreadPoolExecutor(2) as pool:
        folder = asked.reports or pathlib.Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        found = {arch: {} for arch in archs}
        for arch in archs:
            for report in pool.map(lambda source, arch=arch: report_of(asked.nvcc, source, arch, folder), SOURCES):
                found[arch].update(kernels_of(report))
        sizes = sizes_of(folder)
    print("| kernel | bytes a pixel or voxel | " + " | ".join(f"sm_{arch}: registers, spilled, occupancy" for arch in archs) + " | does |")
    print("| --- | --- |" + " --- |" * len(archs) + " --- |")
    for kernel, (dynamic, moved, does) in KERNELS.items():
        cells = []
        for arch in archs:
            registers, spilled, static = found[arch][kernel]
            cells.append(f"{registers}, {spilled} B, {occupancy(arch, registers, sizes.get(dynamic, dynamic) + static)} %")
        print(f"| `{kernel}` | {moved or ''} | " + " | ".join(cells) + f" | {does} |")


if __name__ == "__main__":
    main()
