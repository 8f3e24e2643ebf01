"""Functions of at most 70 lines, files of at most 600 (tests 900). A comment `// long: reason` on the
line of the function's name, or in the first five lines of the file, lifts the limit. A header includes at most eight
headers of ours; `// wide: reason` on the line of the ninth one lifts that."""
import json
import re
import subprocess

import sources

FUNCTION_LINES = 70
FILE_LINES = 600
TEST_FILE_LINES = 900
HEADER_INCLUDES = 8
HEAD_LINES = 5
MARK = "// long: "
WIDE = "// wide: "
OUR_INCLUDE = re.compile(r'#include "(?:runtime|ops|scheduler|workers)/')
MACROS = {"PATCHBAY_FIELDS"}  # names that ctags takes for functions


def long_files():
    for file in sources.code_files() + [f for f in sources.all_files() if f.endswith((".py", ".sh"))]:
        lines = sources.read(file).splitlines()
        limit = TEST_FILE_LINES if file.startswith("tests/") else FILE_LINES
        if len(lines) > limit and not any(MARK in line for line in lines[:HEAD_LINES]):
            yield f"{file}: {len(lines)} lines, more than {limit}"


def functions(files):
    """(file, name, first line, last line) of every function definition."""
    listed = subprocess.run(["ctags", "--output-format=json", "--langmap=C++:+.cu.cuh", "--kinds-C++=f",
                             "--kinds-Python=fm", "--fields=+ne", "-f", "-", *files],
                            cwd=sources.ROOT, capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        tag = json.loads(line)
        if "end" in tag and tag["name"] not in MACROS:
            yield tag["path"], tag["name"], tag["line"], tag["end"]


def long_functions():
    files = sources.code_files() + [f for f in sources.all_files() if f.endswith(".py")]
    for file, name, first, last in functions(files):
        if last - first + 1 <= FUNCTION_LINES:
            continue
        if MARK not in sources.read(file).splitlines()[first - 1]:
            yield f"{file}:{first}: {name}: {last - first + 1} lines, more than {FUNCTION_LINES}"


def wide_headers():
    for file in sources.code_files():
        if not file.endswith((".h", ".cuh")) or file.startswith("tests/"):
            continue
        includes = [line for line in sources.read(file).splitlines() if OUR_INCLUDE.match(line)]
        if len(includes) > HEADER_INCLUDES and WIDE not in includes[HEADER_INCLUDES]:
            yield f"{file}: includes {len(includes)} headers of ours, more than {HEADER_INCLUDES}"


if __name__ == "__main__":
    sources.finish(list(long_files()) + list(long_functions()) + list(wide_headers()))
