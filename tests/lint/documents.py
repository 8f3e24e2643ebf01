"""READMEs: the one at the root has at most 150 lines, every folder with code has one of at most 80, and
what they link to exists. A version of the changelog has at most 80 lines. Limits and figures that pages state are
those of the code and of the benchmarks."""
import pathlib
import re

import layers
import sources

ROOT_LINES = 150
FOLDER_LINES = 80
VERSION_LINES = 80
LINK = re.compile(r"\]\(([^)#:]+)(#[^)]*)?\)")
CODE = (".h", ".cc", ".cu", ".cuh", ".capnp", ".py", ".sh", ".cmake", ".yaml", ".json")
PLAIN = ("CMakeLists.txt", "CMakePresets.json", "run", "build")
# Pages that say what was, under the names it had.
RECORDS = ("CHANGELOG.md", "tests/bench/")
# Names of others that stand between backticks.
FOREIGN = {"--max-restarts", "JPEGTables", "ImageDepth", "Orientation"}
TOP = re.compile(r"(runtime|scheduler|workers|ops|configs|deploy|tests)/")
# Folders whose page covers what lies below them.
ONE_PAGE = ("scheduler", "deploy")
# A page, what it says of a limit, and the line of code that sets it.
LIMITS = [
    ("README.md", "23.8 times as fast from a store", "tests/bench/README.md", "| 14x | **23.8x**"),
    ("README.md", "7.9 times as fast straight from the slide", "tests/bench/README.md", "| 4x | **7.9x**"),
    ("README.md", "loaders 6.1 times (stores of lz4 8.4) and 4.1", "tests/bench/README.md", "the slide **4.1x** of cuCIM's batched reader"),
    ("README.md", "loaders 6.1 times (stores of lz4 8.4) and 4.1", "tests/bench/README.md", "the store 6.1x of TensorStore"),
    ("README.md", "loaders 6.1 times (stores of lz4 8.4) and 4.1", "tests/bench/README.md", "of lz4 (`--codec lz4`) **8.4x**"),
    ("README.md", "transforms 8.6 times (lz4 10.7)", "tests/bench/README.md", "with nnU-Net's transforms 8.6x of its own loader"),
    ("README.md", "transforms 8.6 times (lz4 10.7)", "tests/bench/README.md", "of lz4 **10.7x**"),
    ("configs/README.md", "at most 100,000 images", "runtime/model/plan/plan.h", "kMaxPlanImages = 100'000;"),
    ("configs/README.md", "at most 100,000 images", "workers/jobs/task/find_images.h", "kMaxDatasetImages = 100'000;"),
    ("configs/README.md", "is at most 32 MiB", "runtime/wire/protocol/messages.h", "kMaxResultBytes = 32u << 20;"),
    ("configs/sampling.md", "a plan has at most 32 MiB", "runtime/wire/protocol/messages.h", "kMaxResultBytes = 32u << 20;"),
    ("configs/stain.md", "at most 2^26 pixels", "workers/jobs/plan/stain_reference.cc",
     "kMaxPicturePixels = std::int64_t{1} << 26;"),
    ("configs/volumes.md", "deflated files of more than 1 GiB", "workers/sources/volumes/dicom_library.h",
     "kMaxInflatedDicomBytes = std::uint64_t{1} << 30;"),
    ("configs/volumes.md", "more than 2^28 voxels of some volume", "ops/geometry/volume_moves.h",
     "kMaxSourceVoxels = std::int64_t{1} << 28;"),
    ("configs/volumes.md", "up to 65,536 of a class", "runtime/model/positions/component_index.h", "kMaxComponents = std::size_t{1} << 16;"),
    ("configs/volumes.md", "with 8,388,608 runs of voxels", "runtime/model/positions/cell_set.h", "kMaxRuns = std::size_t{1} << 23;"),
    ("configs/volumes.md", "up to 64 MiB of boxes go through the GPU at once", "workers/stream/patch_maker.h",
     "kLaneBytesMax = std::size_t{64} << 20;"),
    ("configs/sampling.md", "At most 10,000,000 in all", "runtime/model/plan/listed_positions.h",
     "kMaxListedPositions = 10'000'000;"),
    ("configs/stain.md", "up to 16 MiB", "workers/sources/icc_profile.h",
     "kMaxIccProfileBytes = std::size_t{16} << 20;"),
    ("workers/README.md", "open jobs, an eighth of its memory (at most 4 GiB)", "scheduler/policy/limits.h",
     "kMaxOpenBytes = 4ull << 30;"),
    ("workers/README.md", "open jobs, an eighth of its memory", "scheduler/server/server.cc", "kMemoryShare = 8;"),
    ("workers/README.md", "ended jobs, 256 MiB", "scheduler/policy/limits.h", "kMaxFinishedBytes = 256ull << 20;"),
    ("workers/README.md", "log lines and records not yet on disk, 64 MiB each", "scheduler/policy/limits.h",
     "kMaxLogBytes = 64u << 20;"),
    ("workers/README.md", "log lines and records not yet on disk, 64 MiB each", "scheduler/server/server.cc",
     "kWaitingBytesMax = 64u << 20;"),
    ("workers/README.md", "an eighth (256 MiB)", "runtime/wire/control/server_socket.h", "unread_bytes_max = 256u << 20;"),
    ("runtime/model/plan/README.md", "A slot of 2^38 bytes", "runtime/model/stream/limits.h",
     "kMaxSlotBytes = std::uint64_t{1} << 38;"),
    ("runtime/model/plan/README.md", "a ring of 2^40", "runtime/model/stream/limits.h",
     "kMaxRingBytes = std::uint64_t{1} << 40;"),
    ("runtime/model/plan/README.md", "2^16 epochs", "runtime/model/stream/limits.h", "kMaxEpoch = 0xFFFF;"),
    ("runtime/model/plan/README.md", "2^40 patches an epoch", "runtime/model/stream/limits.h",
     "kMaxPatchesPerEpoch = std::uint64_t{1} << 40;"),
    ("runtime/model/plan/README.md", "a text of at most 32 MiB (`kMaxJsonBytes`)", "runtime/format/json/json.h",
     "kMaxJsonBytes = 32u << 20;"),
    ("runtime/format/zarr/README.md", "extents up to 2^40", "runtime/format/zarr/codec/array_metadata.h", "kMaxExtent = std::int64_t{1} << 40;"),
    ("runtime/format/zarr/README.md", "a chunk up to 1 GiB decoded", "runtime/format/zarr/codec/array_metadata.h",
     "kMaxChunkBytes = std::int64_t{1} << 30;"),
    ("runtime/format/zarr/README.md", "2^22 chunks a", "runtime/format/zarr/codec/array_metadata.h", "kMaxChunksPerShard = std::int64_t{1} << 22;"),
    ("runtime/wire/control/README.md", "8 MiB per message", "runtime/wire/protocol/messages.h", "8u << 20;"),
    ("runtime/wire/control/README.md", "1,024 to be sent to it", "runtime/wire/control/zmq_events.h", "kQueueMessagesMax = 1024;"),
    ("runtime/wire/data/README.md", "keys change every 2^24 records", "runtime/wire/data/tls_channel.h",
     "kRecordsPerKey = std::uint64_t{1} << 24;"),
    ("workers/sources/README.md", "A strip or tile over 64 MiB decoded", "workers/sources/tiff_index.h",
     "kMaxPieceBytes = 64 << 20;"),
    ("workers/sources/README.md", "not stated: below 0.001 or above 50 um", "runtime/model/source/mpp_range.h",
     "kSmallestMpp = 1e-3;"),
    ("workers/sources/README.md", "not stated: below 0.001 or above 50 um", "runtime/model/source/mpp_range.h",
     "kLargestMpp = 50;"),
    ("scheduler/core/README.md", "A result above 1 MiB (at most 32)", "runtime/wire/protocol/messages.h",
     "kMaxInlineResultBytes = 1u << 20;"),
    ("configs/spectra.md", "takes up to 256 MiB of memory", "workers/jobs/spectra/engine.h",
     "kStripMemoryBytes = std::uint64_t{256} << 20;"),
    ("configs/spectra.md", "twice that under `--numerics cuda`", "workers/jobs/spectra/engine.cc",
     '"cuda" ? 2 * kStripMemoryBytes'),
]
# A folder, the includes that its page keeps out of headers, and the headers that the page names as exceptions.
KEPT_OUT_OF_HEADERS = [
    ("workers/sources", r"^#include <(jpeglib|lcms2|openslide|tiff|zlib|zstd)", []),
    ("runtime/format/tiles", r"^#include <(jpeglib|openjpeg)", ["runtime/format/tiles/jpeg_errors.h"]),
    ("runtime/wire/protocol", r'^#include [<"](capnp/|kj/|.*\.capnp\.h)',
     ["runtime/wire/protocol/codec_fields.h", "runtime/wire/protocol/kj_text.h"]),
]


def page_of(folder):
    return next((top for top in ONE_PAGE if folder == top or folder.startswith(top + "/")), folder)


def missing_pages():
    folders = {str(pathlib.Path(f).parent) for f in sources.code_files()}
    for folder in sorted({page_of(folder) for folder in folders}):
        page = f"{folder.rsplit('/', 1)[-1]}.md" if folder in layers.op_folders() else "README.md"
        if not folder.startswith("tests") and not (sources.ROOT / folder / page).exists():
            yield f"{folder}: has no {page}"


def page_faults():
    for file in sources.all_files():
        if not file.endswith(".md"):
            continue
        text = sources.read(file)
        lines = text.count("\n")
        limit = ROOT_LINES if file == "README.md" else FOLDER_LINES
        if file.endswith("README.md") and lines > limit:
            yield f"{file}: {lines} lines, more than {limit}"
        for target, _ in LINK.findall(text):
            if not (sources.ROOT / file).parent.joinpath(target).exists():
                yield f"{file}: links to {target}, which is not there"


def changelog_faults():
    for version in re.split(r"^## ", sources.read("CHANGELOG.md"), flags=re.MULTILINE)[1:]:
        name, lines = version.split("\n", 1)[0], version.count("\n")
        if lines > VERSION_LINES:
            yield f"CHANGELOG.md: {name} has {lines} lines, more than {VERSION_LINES}"


def roles_faults():
    """Every message a role may send (scheduler/policy/roles.cc) stands in its row of scheduler/README.md."""
    page = dict(re.findall(r"^\| (any|worker|submitter|trainer|operator) \| (.*) \|$", sources.read("scheduler/README.md"), re.MULTILINE))
    rows = {"kUsers | kWorkers": ["any", "worker"], "kWorkers": ["worker"], "kTrainers": ["trainer"],
            "kUsers": ["submitter"], "kOperators": ["operator"]}
    code = sources.read("scheduler/policy/roles.cc")
    for message, roles in re.findall(r"operator\(\)\(const (\w+)&\) const \{ return ([^;]+); \}", code):
        if not any(message in page.get(row, "") for row in rows.get(roles, [])):
            yield f"scheduler/README.md: {message} is not in the row of {' or '.join(rows.get(roles, [roles]))}"


def tasks_faults():
    """Every op of workers/jobs/task_table.cc has a row in workers/jobs/README.md, and every row an op."""
    rows = [name for row in re.findall(r"^\| (`[^|]*) \|", sources.read("workers/jobs/README.md"), re.MULTILINE)
            for name in re.findall(r"`([^`]+)`", row)]
    table = sources.read("workers/jobs/task_table.cc")
    ops = re.findall(r'^    \{"([\w.]+)", Run', table, re.MULTILINE)
    ops += [job.lower() + ".plan" for job in re.findall(r"^    \{\.job = &k(\w+)Job\}", table, re.MULTILINE)]
    covers = {op: [row for row in rows if op == row or (row.endswith(".*") and op.startswith(row[:-1]))] for op in ops}
    yield from (f"workers/jobs/README.md: has no row of the op {op}" for op in ops if not covers[op])
    used = {row for found in covers.values() for row in found}
    yield from (f"workers/jobs/README.md: the row {row} names no op" for row in rows if row not in used)


def library_faults():
    """Third-party includes that pages keep out of headers."""
    for folder, pattern, excepted in KEPT_OUT_OF_HEADERS:
        for file in sources.code_files():
            if file.startswith(folder + "/") and file.endswith(".h") and file not in excepted:
                if re.search(pattern, sources.read(file), re.MULTILINE):
                    yield f"{file}: includes a library that {folder}/README.md keeps out of headers"


def named_in(page):
    """(line number, text) of everything between backticks in a page, code blocks left out."""
    fenced = False
    for number, line in enumerate(sources.read(page).splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield from ((number, text) for text in re.findall(r"`([^`]+)`", line))


def is_there(page, path):
    """A file or folder below the page's folder, one of those above it, or the root."""
    above = [sources.ROOT / page, *(sources.ROOT / page).parents]
    return any((folder / path).exists() for folder in above if folder.is_relative_to(sources.ROOT))


def name_faults():
    """Files, names of the code, flags and variables that pages write between backticks exist."""
    files = sources.all_files()
    bases = {pathlib.Path(file).name for file in files}
    text = "\n".join(sources.read(f) for f in files if f.endswith(CODE) or pathlib.Path(f).name in PLAIN)
    words = set(re.findall(r"[A-Za-z_]\w*", text))
    flags = set(re.findall(r"--[a-z][a-z0-9-]*", text)) | {"--" + word for word in re.findall(r'"([a-z][a-z0-9-]+)"', text)}
    for page in files:
        if not page.endswith(".md") or "/notes/" in page or page.startswith(RECORDS):
            continue
        for number, name in named_in(page):
            if re.fullmatch(r"[\w./-]+\.(h|cc|cu|cuh|capnp|py)", name):
                known = is_there(page, name) if "/" in name else name in bases
            elif TOP.match(name) and re.fullmatch(r"[\w./-]+", name):
                known = is_there(page, name) or any(file.startswith(name + ".") for file in files)
            elif re.fullmatch(r"(\w+::)*([A-Z]\w*[a-z]\w*|k[A-Z]\w+|PATCHBAY_[A-Z_]+)(\(\))?", name):
                known = set(re.findall(r"\w+", name)) <= words
            elif flag := re.fullmatch(r"(--[a-z][a-z0-9-]*)( .*)?", name):
                known = flag[1] in flags
            else:
                continue
            if not known and name not in FOREIGN:
                yield f"{page}:{number}: names {name}, which is not there"


def table_faults():
    """The first column of a table of files names files or folders below the page's own."""
    files = sources.all_files()
    for page in (file for file in files if file.endswith("README.md")):
        folder = page.rpartition("/")[0] + "/"
        below = [part for file in files if file.startswith(folder) for part in file[len(folder):].split("/")]
        stems = {part.split(".")[0] for part in below}
        rows = re.findall(r"^\| files? \|.*\n\| --- .*\n((?:\|.*\n)+)", sources.read(page), re.MULTILINE)
        for name in re.findall(r"^\| (.*?) \|", "".join(rows), re.MULTILINE):
            for word in re.findall(r"`([\w/.]+)`", name):
                if word.rstrip("/").split("/")[-1].split(".")[0] not in stems:
                    yield f"{page}: lists {word}, which is not there"


def untrue_limits():
    for page, said, file, line in LIMITS:
        if said not in sources.read(page):
            yield f"{page}: no longer says \"{said}\": change LIMITS of tests/lint/documents.py with it"
        if line not in sources.read(file):
            yield f"{page}: says \"{said}\", but {file} no longer has \"{line}\""


if __name__ == "__main__":
    sources.finish(list(missing_pages()) + list(page_faults()) + list(changelog_faults()) + list(roles_faults()) + list(tasks_faults()) + list(library_faults()) +
                   list(name_faults()) + list(table_faults()) + list(untrue_limits()))
