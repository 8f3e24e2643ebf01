"""READMEs: the one at the root has at most 150 lines, every folder with code has one of at most 80, and
what they link to exists."""
import pathlib
import re

import sources

ROOT_LINES = 150
FOLDER_LINES = 80
LINK = re.compile(r"\]\(([^)#:]+)(#[^)]*)?\)")
# Folders whose page covers what lies below them.
ONE_PAGE = ("scheduler", "deploy")


def page_of(folder):
    return next((top for top in ONE_PAGE if folder == top or folder.startswith(top + "/")), folder)


def missing_pages():
    folders = {str(pathlib.Path(f).parent) for f in sources.code_files()}
    for folder in sorted({page_of(folder) for folder in folders}):
        if not folder.startswith("tests") and not (sources.ROOT / folder / "README.md").exists():
            yield f"{folder}: has no README.md"


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


if __name__ == "__main__":
    sources.finish(list(missing_pages()) + list(page_faults()))
