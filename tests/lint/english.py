"""Comments begin with their subject, a noun: no comment block, trailing comment or docstring begins with a relative word
("What", "Who", "Those", "That", "Of"), which a reader has to carry along until the fact comes. Neither do sentences, rows and
terms of pages, and helps of options. Messages have a subject."""
import re

import sources

RELATIVE = re.compile(r"(What|Who|Whom|Whose|Which|Whatever|Whoever|Whichever|Those|That|Of)\b")
DOCSTRING = re.compile(r'\s*r?"""(.*)')
TRAILING = re.compile(r"(what|who|whom|whose|which|whatever|whoever|whichever|those|that)\b")
# Beginnings and ends of messages that show no subject.
MESSAGES = {
    r'"not one an? ': "a message without a subject",
    r"' is none\"": "a message without a subject",
}
# A sentence, list item, table cell or bold term of a page that begins with a relative word; questions may.
PAGE = re.compile(r"(?:^|[.:;!?)`] +|^ *- |\*\*|^\| )((?:What|Who|Whom|Whose|Which|Whatever|Whoever|Whichever|Those|Of)\b[^.?]*)")
CELL = re.compile(r"^\| (what|who|whom|whose|which|whatever|whoever|whichever|those|of) ")
HELP = re.compile(r'(?:help = |Text\(".*", )"(what|who|whose|which|those|of) ')
MARKS = {".h": "//", ".cc": "//", ".cu": "//", ".cuh": "//", ".py": "#", ".capnp": "#"}


def comments(file, mark):
    """Yields (line number, text, whether trailing) of the first line of every comment block and trailing comment."""
    whole = re.compile(r"\s*(///<|///|//)\s?(.*)" if mark == "//" else r"\s*(#)\s?(.*)")
    beside = re.compile(r"\s(///<|//)\s(.*)" if mark == "//" else r"\s\s(#)\s(.*)")
    inside = False
    for number, line in enumerate(sources.read(file).splitlines(), 1):
        found = whole.match(line)
        docstring = DOCSTRING.match(line) if mark == "#" else None
        if docstring:
            yield number, docstring[1], False
        if found and not (inside and found[1] != "///<"):
            yield number, found[2], found[1] == "///<"
        elif not found:
            trailing = beside.search(line)
            if trailing:
                yield number, trailing[2], trailing[1] == "///<"
        inside = bool(found)


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


def page_faults(file):
    """Paragraphs are read as one line, so that a sentence is seen wherever its line begins."""
    text = re.sub(r"^```.*?^```", "", sources.read(file), flags=re.MULTILINE | re.DOTALL)
    for paragraph in re.split(r"\n\s*\n|\n(?= *[-|#])", text):
        line = " ".join(paragraph.split())
        for found in PAGE.finditer(line):
            if not line[found.end():].startswith("?"):
                yield f"{file}: begins with a relative word: {found[1][:60]}"
        if CELL.match(line):
            yield f"{file}: begins with a relative word: {line[:60]}"


def help_faults(file):
    for number, line in enumerate(sources.read(file).splitlines(), 1):
        if HELP.search(line):
            yield f"{file}:{number}: a help begins with a relative word: {line.strip()}"


def main():
    files = (file for file in sources.all_files() if file.endswith(tuple(MARKS)) and file != "tests/lint/english.py")
    faults = [fault for file in files for fault in faults_of(file)]
    faults += [fault for file in sources.all_files() if file.endswith(".md") for fault in page_faults(file)]
    faults += [fault for file in sources.code_files() if not file.startswith("tests/") for fault in help_faults(file)]
    sources.finish(faults)


if __name__ == "__main__":
    main()
