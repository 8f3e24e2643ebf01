"""The commands of a Markdown page, out of its fenced blocks: a page is run as it stands.

A block of commands has no language, or `sh`. A `text` block is what the commands above it show: each of its lines must stand in
their output, in this order; `...` is any text, and spaces are as many as there are."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = ("", "sh")


def blocks(page, section=None):
    """[(language, text)] of a page of the repository, or of one `## section` of it; "" is the part above the first."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if section is not None:
        parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
        text = dict(zip(["", *parts[1::2]], parts[::2]))[section]
    return FENCE.findall(text)


def sections(page):
    """The sections that have a fenced block."""
    names = ["", *re.findall(r"^## (.*)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)]
    return [name for name in names if blocks(page, name)]


def shell(page, section):
    """[(commands, the output that the page shows)] of a section, in order."""
    found = []
    for language, text in blocks(page, section):
        if language in COMMANDS:
            found.append([text, ""])
        elif language == "text":
            found[-1][1] = text
    return found


def missing(shown, output):
    """The first line of what a page shows that the output lacks, or None."""
    lines = (" ".join(line.split()) for line in output.splitlines())
    for wanted in shown.splitlines():
        pattern = re.escape(" ".join(wanted.split())).replace(re.escape("..."), ".*").replace(r"\ .*", ".*")
        if not any(re.fullmatch(pattern, line) for line in lines):
            return wanted
    return None
