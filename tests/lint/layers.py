"""Include directions and third-party libraries: the folder table of runtime/README.md, as a check.

Every folder at every depth is an area: no two include each other, whatever their depths, also where one lies in the
other: then the outer one stands for the files of its own."""
import collections
import functools
import re

import sources

FORMATS = ["runtime/core", "runtime/os", "runtime/format"]
MODEL = FORMATS + ["runtime/model"]
RUNTIME = MODEL + ["runtime/wire", "runtime/memory", "runtime/client"]

# Folder -> folders it may include besides itself and what lies below it. The longest match counts.
MAY_INCLUDE = {
    "runtime/core": [],
    "runtime/os": ["runtime/core"],
    "runtime/format/json": ["runtime/core"],
    "runtime/format/csv": ["runtime/core"],
    "runtime/format/yaml": ["runtime/core", "runtime/os", "runtime/format/json"],
    "runtime/format/tiles": ["runtime/core"],
    "runtime/format/zarr": ["runtime/core", "runtime/os", "runtime/format/json", "runtime/format/tiles"],
    "runtime/model": FORMATS,
    "runtime/wire/protocol": ["runtime/core", "runtime/model/stream"],
    "runtime/wire/control": FORMATS + ["runtime/wire/protocol"],
    "runtime/wire/data": ["runtime/core", "runtime/os", "runtime/memory", "runtime/model/stream"],
    "runtime/memory": ["runtime/core", "runtime/os"],
    "runtime/client": RUNTIME,
    "runtime/cli": RUNTIME,
    "runtime/python": ["runtime/core", "runtime/os", "runtime/format/json", "runtime/model/stream"],
    "ops": FORMATS + ["runtime/memory", "runtime/model"],
    "scheduler": MODEL + ["runtime/wire/protocol", "runtime/wire/control"],
    "scheduler/core": ["runtime/core", "runtime/format/json", "runtime/model/jobs", "runtime/model/stream", "runtime/wire/protocol",
                       "scheduler/policy", "scheduler/state"],
    "scheduler/state": ["runtime/core", "runtime/format/json", "runtime/model/jobs", "runtime/model/stream", "runtime/wire/protocol", "scheduler/policy"],
    "scheduler/policy": ["runtime/core", "runtime/format/json", "runtime/model/jobs", "runtime/wire/protocol"],
    "workers": RUNTIME + ["ops"],
    "deploy": [],
    "tests": RUNTIME + ["runtime/cli", "ops", "scheduler", "workers", "tests"],
}
# Folders of ops/ that no op has: those below every op, in layers, and those above or beside them.
OP_ROOMS = ["ops/lanes", "ops/steps", "ops/geometry", "ops/colour", "ops/intensity", "ops/draws"]
OP_TABLE = "ops/all_ops.h"
CHAIN, CHAIN_LISTS = "ops/chain", ["ops/chain/step_lists.h"]
BESIDE_OPS = [CHAIN, "ops/spectral", "ops/tissue"]
# A folder whose parts know nothing of one another but the shared ones; only the list includes them all.
JOBS, JOB_LIST, JOBS_SHARE = "workers/jobs/", "workers/jobs/task_table.cc", ("task", "staged")
# Third-party include -> the only folders that may name it. Abseil's statuses and containers are part
# of every signature and may stand anywhere.
THIRD_PARTY = {
    r"fmt/|spdlog/": ["runtime/core"],
    r"openssl/": ["runtime/core", "runtime/wire/data", "scheduler/http"],
    r"nlohmann/": ["runtime/format/json"],
    r"yaml-cpp/": ["runtime/format/yaml"],
    r"capnp/|kj/|patchbay\.capnp\.h": ["runtime/wire/protocol"],
    r"zmq\.h|zmq\.hpp|sodium": ["runtime/wire/control"],
    r"ucp/|ucs/|uct/": ["runtime/wire/data"],
    r"cuda|nv_": ["runtime/memory", "ops"],
    r"zstd\.h|zlib\.h": ["runtime/format/zarr", "workers/sources"],
    r"blosc|lz4|bzlib\.h": ["runtime/format/zarr"],
    r"CLI/": ["runtime/cli"],
    r"nanobind/|Python\.h": ["runtime/python"],
    r"sqlite3": ["scheduler/journal"],
    r"prometheus/": ["scheduler/metrics"],
    r"jpeglib\.h": ["runtime/format/tiles", "workers/sources"],
    r"jerror\.h|openjpeg": ["runtime/format/tiles"],
    r"tiff|webp/|png\.h|openslide|lcms2|dcmtk/": ["workers/sources"],
    r"cairo|freetype|ft2build|fontconfig": ["workers/plots"],
    r"pugixml": ["workers/annotations"],
    r"gtest/|gmock/|benchmark/": ["tests"],
}
MAX_AREA_LINES = 8000
OURS = re.compile(r"^(runtime|ops|scheduler|workers|tests|deploy)/")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)


def is_program(file):
    """A main hands tables from one area to another: it stands above them all."""
    return file.endswith("_main.cc")


def within(path, folders):
    return any(path == f or path.startswith(f + "/") for f in folders)


def folder_of(path):
    return path.rsplit("/", 1)[0]


def table_folder(path):
    """The folder of the table that `path` lies in, or None."""
    inside = [f for f in MAY_INCLUDE if path.startswith(f + "/")]
    return max(inside, key=len) if inside else None


def job_of(path):
    """The part of JOBS that `path` lies in, or None."""
    below = path.removeprefix(JOBS)
    return below.split("/")[0] if path.startswith(JOBS) and "/" in below else None


@functools.cache
def op_folders():
    """One folder an op: no rooms and no chain."""
    return {folder for folder in map(folder_of, sources.code_files())
            if re.fullmatch(r"ops/\w+", folder) and folder not in OP_ROOMS + BESIDE_OPS}


def crosses_ops(file, target):
    """An op includes rooms and itself; rooms include no op, the chain only by its lists."""
    folder, other = folder_of(file), folder_of(target)
    if folder == CHAIN and other in op_folders():
        return file not in CHAIN_LISTS
    below = folder in op_folders() or folder in OP_ROOMS
    return below and folder != other and other in op_folders() | set(BESIDE_OPS)


def crosses_jobs(file, target):
    inside = file.startswith(JOBS) and file != JOB_LIST
    return inside and job_of(target) not in (None, job_of(file), *JOBS_SHARE)


def allowed(file, target):
    if crosses_jobs(file, target) or crosses_ops(file, target):
        return False
    if is_program(file) and target == OP_TABLE:
        return True
    own = table_folder(file)
    return own is not None and within(target, [own] + MAY_INCLUDE[own])


def library_fault(file, target):
    if file.startswith("tests/"):
        return None
    for pattern, folders in THIRD_PARTY.items():
        if re.match(pattern, target) and not within(file, folders):
            return f"{file}: includes {target}, which only {', '.join(folders)} may"
    return None


def lineage(folder):
    """`folder` and every folder above it."""
    parts = folder.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]


def areas(file, outer_of):
    """Folders above `file`; one that has `outer_of` in it only where `file` lies in it itself."""
    own = folder_of(file)
    return [area for area in lineage(own) if area == own or not within(outer_of, [area])]


def area_edges(includes):
    """(from, to) -> an include of it, for every pair of areas at any two depths. Folders of tests mirror the tree, and
    the fixtures of one part start another (a client needs a scheduler): they are compared as they are, not with what lies below."""
    edges = {}
    for file, target in includes:
        from_folder, to_folder = folder_of(file), folder_of(target)
        if file.startswith("tests/"):
            pairs = [(from_folder, to_folder)]
        else:
            pairs = [(own, other) for own in areas(file, to_folder) for other in areas(target, from_folder)]
        for own, other in pairs:
            if own != other:
                edges.setdefault((own, other), (file, target))
    return edges


def cycle_faults(includes):
    edges = area_edges(includes)
    for (own, other), (file, target) in sorted(edges.items()):
        if own < other and (other, own) in edges:
            back, to = edges[other, own]
            yield f"{own} and {other} include each other: {file} includes {target}, {back} includes {to}"


def size_faults(lines):
    for folder, count in sorted(lines.items()):
        if count > MAX_AREA_LINES:
            yield f"{folder}: {count} lines, more than {MAX_AREA_LINES}: it has more than one subject"


def main():
    faults, includes, lines = [], [], collections.Counter()
    for file in sources.code_files():
        text = sources.read(file)
        if not file.startswith("tests/"):
            lines[folder_of(file)] += text.count("\n")
        for _, target in INCLUDE.findall(text):
            if OURS.match(target):
                if not (sources.ROOT / target).exists() and not target.endswith(".capnp.h"):
                    faults.append(f"{file}: includes {target}, which is not there")
                if not allowed(file, target):
                    faults.append(f"{file}: may not include {target}")
                if not is_program(file):
                    includes.append((file, target))
            else:
                fault = library_fault(file, target)
                faults += [fault] if fault else []
    sources.finish(faults + list(cycle_faults(includes)) + list(size_faults(lines)))


if __name__ == "__main__":
    main()
