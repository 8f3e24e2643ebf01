"""Include directions and third-party doors: the folder table of runtime/README.md, as a check."""
import collections
import re

import sources

RUNTIME = ["runtime/base", "runtime/stream", "runtime/config", "runtime/protocol", "runtime/control", "runtime/data",
           "runtime/memory", "runtime/zarr", "runtime/plan", "runtime/results", "runtime/client"]

# Folder -> folders it may include besides itself and what lies below it.
MAY_INCLUDE = {
    "runtime/base": [],
    "runtime/stream": ["runtime/base"],
    "runtime/config": ["runtime/base"],
    "runtime/protocol": ["runtime/base", "runtime/stream"],
    "runtime/control": ["runtime/base", "runtime/config", "runtime/protocol"],
    "runtime/memory": ["runtime/base"],
    "runtime/data": ["runtime/base", "runtime/memory", "runtime/stream"],
    "runtime/zarr": ["runtime/base"],
    "runtime/plan": ["runtime/base", "runtime/config", "runtime/stream"],
    "runtime/results": ["runtime/base"],
    "runtime/client": RUNTIME,
    "runtime/cli": RUNTIME,
    "runtime/python": ["runtime/base", "runtime/stream"],
    "ops": ["runtime/base", "runtime/config", "runtime/memory", "runtime/plan"],
    "scheduler": ["runtime/base", "runtime/config", "runtime/protocol", "runtime/control", "runtime/stream"],
    "workers": RUNTIME + ["ops"],
    "deploy": [],
    "tests": RUNTIME + ["runtime/cli", "ops", "scheduler", "workers", "tests"],
}
# Below a folder of the table, what is stricter than the table: the scheduler's core is pure.
STRICTER = {
    "scheduler/core": ["runtime/base", "runtime/protocol", "runtime/stream", "scheduler/policy", "scheduler/state"],
    "scheduler/state": ["runtime/base", "runtime/protocol", "runtime/stream", "scheduler/policy"],
    "scheduler/policy": ["runtime/base", "runtime/protocol"],
}
# A folder whose parts know nothing of one another but the shared one; only the list includes them all.
JOBS, JOB_LIST, JOBS_SHARE = "workers/jobs/", "workers/jobs/task_table.cc", "task"
# Third-party include -> the only folders that may name it. Abseil's statuses and containers are part
# of every signature and have no door.
DOORS = {
    r"fmt/|spdlog/": ["runtime/base"],
    r"openssl/": ["runtime/base", "runtime/data"],
    r"nlohmann/": ["runtime/base"],
    r"yaml-cpp/": ["runtime/config"],
    r"capnp/|kj/|patchbay\.capnp\.h": ["runtime/protocol"],
    r"zmq\.h|zmq\.hpp|sodium": ["runtime/control"],
    r"ucp/|ucs/|uct/": ["runtime/data"],
    r"cuda|nv_": ["runtime/memory", "ops"],
    r"zstd\.h|zlib\.h": ["runtime/zarr", "workers/sources"],
    r"blosc|lz4|bzlib\.h|curl/": ["runtime/zarr"],
    r"CLI/": ["runtime/cli"],
    r"nanobind/|Python\.h": ["runtime/python"],
    r"sqlite3": ["scheduler/journal"],
    r"prometheus/": ["scheduler"],
    r"tiff|jpeglib\.h|jerror\.h|turbojpeg|openjpeg|openslide|lcms2|dcmtk/|nifti": ["workers/sources"],
    r"cairo|freetype|ft2build|fontconfig": ["workers/plots"],
    r"pugixml": ["workers/annotations"],
    r"gtest/|gmock/|benchmark/": ["tests"],
}
OURS = re.compile(r"^(runtime|ops|scheduler|workers|tests|deploy)/")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)


def within(path, folders):
    return any(path == f or path.startswith(f + "/") for f in folders)


def table_folder(path):
    """The folder of the table that `path` lies in, or None."""
    inside = [f for f in MAY_INCLUDE if path.startswith(f + "/")]
    return max(inside, key=len) if inside else None


def job_of(path):
    """The part of JOBS that `path` lies in, or None."""
    below = path.removeprefix(JOBS)
    return below.split("/")[0] if path.startswith(JOBS) and "/" in below else None


def crosses_jobs(file, target):
    inside = file.startswith(JOBS) and file != JOB_LIST
    return inside and job_of(target) not in (None, job_of(file), JOBS_SHARE)


def allowed(file, target):
    if crosses_jobs(file, target):
        return False
    own = table_folder(file)
    if own is None or not (within(target, [own]) or within(target, MAY_INCLUDE[own])):
        return False
    for folder, targets in STRICTER.items():
        if file.startswith(folder + "/") and not within(target, [folder] + targets):
            return False
    return True


def door_fault(file, target):
    if file.startswith("tests/"):
        return None
    for pattern, folders in DOORS.items():
        if re.match(pattern, target) and not within(file, folders):
            return f"{file}: includes {target}, whose door is {', '.join(folders)}"
    return None


def main():
    faults, edges = [], collections.defaultdict(set)
    for file in sources.code_files():
        folder = file.rsplit("/", 1)[0]
        for _, target in INCLUDE.findall(sources.read(file)):
            if OURS.match(target):
                if not allowed(file, target):
                    faults.append(f"{file}: may not include {target}")
                if not file.startswith("tests/"):
                    edges[folder].add(target.rsplit("/", 1)[0])
            else:
                fault = door_fault(file, target)
                faults += [fault] if fault else []
    for folder in sorted(edges):
        for other in sorted(edges[folder]):
            if folder < other and folder in edges.get(other, ()):
                faults.append(f"{folder} and {other} include each other")
    sources.finish(faults)


if __name__ == "__main__":
    main()
