"""Comments begin with their subject, a noun: no comment block and no trailing comment begins with a relative word
("What", "Who", "Those", "Of"), which a reader has to carry along until the fact comes. Messages have a subject."""
import re

import sources

RELATIVE = re.compile(r"(What|Who|Whom|Whose|Which|Whatever|Whoever|Whichever|Those|Of)\b")
TRAILING = re.compile(r"(what|who|whom|whose|which|whatever|whoever|whichever|those)\b")
# Folders whose comments are not yet rewritten. A folder without a fault must leave the list.
PENDING = ("ops/chain",)
# Beginnings and ends of messages that show no subject.
MESSAGES = {
    r'"not one an? ': "a message without a subject",
    r"' is none\"": "a message without a subject",
}
MARKS = {".h": "//", ".cc": "//", ".cu": "//", ".cuh": "//", ".py": "#", ".capnp": "#"}


def comments(file, mark):
    """Yields (line number, text, whether trailing) of the first line of every comment block and trailing comment."""
    whole = re.compile(r"\s*(///<|///|//)\s?(.*)" if mark == "//" else r"\s*(#)\s?(.*)")
    beside = re.compile(r"\s(///<|//)\s(.*)" if mark == "//" else r"\s\s(#)\s(.*)")
    inside = False
    for number, line in enumerate(sources.read(file).splitlines(), 1):
        found = whole.match(line)
        if found and not (inside and found[1] != "///<"):
            yield number, found[2], found[1] == "///<"
        elif not found:
            trailing = beside.search(line)
            if trailing:
                yield number, trailing[2], trailing[1] == "///<"
        inside = bool(found)


def pending_folder(file):
    return next((folder for folder in PENDING if file.startswith(folder + "/")), None)


def faults_of(file):
    mark = MARKS[file[file.rindex("."):]]
    for number, text, trailing in comments(file, mark):
        if RELATIVE.match(text) or (trailing and TRAILING.match(text)):
            yield f"{file}:{number}: begins with a relative word: {text}"
    if mark == "//":
        for number, line in enumerate(sources.read(file).splitlines(), 1):
            for pattern, fault in MESSAGES.items():
                if re.search(pattern, line):
                    yield f"{file}:{number}: {fault}: {line.strip()}"


def main():
    faults, unclean = [], set()
    for file in sources.all_files():
        if not file.endswith(tuple(MARKS)) or file == "tests/lint/english.py":
            continue
        found = list(faults_of(file))
        folder = pending_folder(file)
        if folder is None:
            faults += found
        elif found:
            unclean.add(folder)
    faults += [f"{folder}: has no fault: take it off PENDING of tests/lint/english.py"
               for folder in PENDING if folder not in unclean]
    sources.finish(faults)


if __name__ == "__main__":
    main()
