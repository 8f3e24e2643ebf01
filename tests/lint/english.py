"""Comments begin with their subject, a noun: no comment or docstring begins with a participle without its noun ("Asked", "Made"),
or with a relative word ("What", "who", "Those", "of"), which a reader has to carry along until the fact comes, and neither do their
later sentences. The rule of relative words holds for sentences, rows and terms of pages too, and for helps of options. Messages
have a subject."""
import pathlib
import re

import sources

RELATIVE = re.compile(r"(what|who|whom|whose|which|whatever|whoever|whichever|those|that|of)\b", re.IGNORECASE)
# A participle without its noun.
PARTICIPLE = re.compile(r"(?:Asked|Found|Given|Held|Kept|Left|Made|Owned|Returned|Said|Taken|Told)\b")
SENTENCE = re.compile(r"[.?!] (?:What|Who|Whom|Whose|Which|Whatever|Whoever|Whichever|Those|Of)\b.*")
# Beginnings and ends of messages that show no subject.
MESSAGES = {
    r'"not one an? ': "a message without a subject",
    r"' is none\"": "a message without a subject",
}
# A sentence, list item, table cell or bold term of a page that begins with a relative word; questions may.
PAGE = re.compile(r"(?:^|[.:;!?)`] +|^ *- |\*\*|^\| )((?:What|Who|Whom|Whose|Which|Whatever|Whoever|Whichever|Those|Of)\b[^.?]*)")
CELL = re.compile(r"^\| (what|who|whom|whose|which|whatever|whoever|whichever|those|of) ")
HELP = re.compile(r'(?:help = |Text\(".*", )"(what|who|whose|which|those|of) ')
MARKS = {".h": "//", ".cc": "//", ".cu": "//", ".cuh": "//", ".py": "#", ".pyi": "#", ".capnp": "#", ".cmake": "#", ".yaml": "#"}
# The code before a comment, its mark, its text.
COMMENT = {"//": re.compile(r"(\s*|.*?\s)(///<|///|//)(?:\s(.*))?$"), "#": re.compile(r"(\s*|.*?\s\s)(#)(?:\s(.*))?$")}
TRIPLE_QUOTED = re.compile(r'(^[ \t]*)?[a-zA-Z]{0,2}"""(.*?)"""', re.MULTILINE | re.DOTALL)


def mark_of(file):
    """The mark of the file's comments; None for a file that the rule leaves out."""
    path = pathlib.PurePath(file)
    if path.name == "CMakeLists.txt" or (not path.suffix and sources.read(file).startswith("#!")):
        return "#"
    return MARKS.get(path.suffix)


def docstrings(text):
    """Yields (line number, text) of every paragraph of a docstring."""
    for found in TRIPLE_QUOTED.finditer(text):
        if found[1] is None:
            continue
        number = text.count("\n", 0, found.start(2)) + 1
        for paragraph in re.split(r"(\n\s*\n)", found[2]):
            yield number, " ".join(paragraph.split())
            number += paragraph.count("\n")


def comments(text, mark):
    """Yields (line number, text) of every comment: lines below one another are one, and so is a trailing comment with the
    lines that continue it in its column. An empty line within a comment begins another one."""
    block, column, is_alone = None, -1, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        found = COMMENT[mark].match(line)
        below = found and not found[1].strip() and (is_alone or len(found[1]) == column)
        if block and below and found[3]:
            block[1] = f"{block[1]} {found[3]}".strip()
            continue
        if block:
            yield tuple(block)
        block = [number, found[3] or ""] if found else None
        column, is_alone = (len(found[1]), not found[1].strip()) if found else (-1, False)


def faults_of(file, mark):
    text = sources.read(file)
    for number, said in [*comments(text, mark), *(docstrings(text) if mark == "#" else [])]:
        if RELATIVE.match(said):
            yield f"{file}:{number}: begins with a relative word: {said[:80]}"
        if PARTICIPLE.match(said):
            yield f"{file}:{number}: begins with a participle: {said[:80]}"
        for sentence in SENTENCE.findall(said):
            yield f"{file}:{number}: a sentence begins with a relative word: {sentence[2:82]}"
    if mark == "//":
        for number, line in enumerate(text.splitlines(), 1):
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
    marks = {file: mark_of(file) for file in sources.all_files() if file != "tests/lint/english.py"}
    faults = [fault for file, mark in marks.items() if mark for fault in faults_of(file, mark)]
    faults += [fault for file in sources.all_files() if file.endswith(".md") for fault in page_faults(file)]
    faults += [fault for file in sources.code_files() if not file.startswith("tests/") for fault in help_faults(file)]
    sources.finish(faults)


if __name__ == "__main__":
    main()
