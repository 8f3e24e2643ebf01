"""Words that say nothing are kept out of the names of types, functions and files. A file's base name occurs once, and no
constant of a file hides one of a header from the files that are compiled together with it."""
import collections
import json
import pathlib
import re
import subprocess

import sources

BANNED = {"Manager", "Helper", "Helpers", "Util", "Utils", "Common", "Misc", "Base", "Data", "Info",
          "Process", "Do", "New", "Old"}
# Terms with a meaning of their own, wherever they stand in a name: base64, a base of logarithms or
# numbers, a process of the operating system and what it has.
TERMS = re.compile(r"Base[0-9]+|LogBase|(Child|Peer|Own|This)Process(?![a-z])|Process(Id|Memory|Group)|DataType"
                   r"|base_?[0-9]+|log_base|(child|peer|own)_process|process_(id|memory|group)|data_type")
# The very word of what is named: `patchbay key new`, the log level, Cap'n Proto's type, a codec.
ALLOWED = {"NewKey", "NewKeyRequest", "LogInfo", "AsData", "Bz2"}
KINDS = {"class", "struct", "enum", "function", "typedef", "union"}
# Base names that may stand in two folders, and why. Folders of tests mirror the tree, so they are left out.
COMMAND = "the command stands beside the code that it runs"
TWINS = {
    "convert": COMMAND, "ingest": COMMAND, "inspect": COMMAND, "scan": COMMAND, "spectra": COMMAND, "synth": COMMAND,
    "stream": COMMAND,
    "verify": COMMAND,
    "handover": "the shared memory, and the client's side of it",
    "limits": "the bounds of a stream, and of the scheduler",
}
WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


def fault_of(name):
    if name in ALLOWED:
        return None
    bad = BANNED.intersection(WORD.findall(TERMS.sub("_", name)))
    if bad:
        return f"'{bad.pop()}'"
    if re.search(r"[a-z]2$", name) and not name.endswith(("v2", "Avx2")):
        return "a number that counts versions"
    return None


def tags(files, kinds):
    listed = subprocess.run(["ctags", "--output-format=json", "--langmap=C++:+.cu.cuh", f"--kinds-C++={kinds}",
                             "--fields=+nKs", "-f", "-", *files],
                            cwd=sources.ROOT, capture_output=True, text=True, check=True)
    return map(json.loads, listed.stdout.splitlines())


def declared_names():
    """(file:line, name) of types and functions of ours."""
    for tag in tags([f for f in sources.code_files() if not f.startswith("tests/")], "fgsctu"):
        if tag.get("kind") in KINDS and tag["name"][0].isupper():
            yield f"{tag['path']}:{tag['line']}", tag["name"]


def hidden_constants():
    """Constants of headers that a file's unnamed namespace hides: in the header's namespace, or in one within."""
    constants = [tag for tag in tags(sources.code_files(), "v") if re.match("k[A-Z]", tag["name"])]
    known = collections.defaultdict(list)
    for tag in constants:
        if tag["path"].endswith(".h"):
            known[tag["name"]].append(tag)
    for tag in constants:
        around, unnamed, _ = tag.get("scope", "").partition("::__anon")
        if not tag["path"].endswith(".cc") or not unnamed:
            continue
        for header in known[tag["name"]]:
            is_seen = tag["path"].startswith("tests/") or not header["path"].startswith("tests/")
            if is_seen and f"{around}::".startswith(f"{header.get('scope', '')}::"):
                yield f"{tag['path']}:{tag['line']}: {tag['name']}: it hides that of {header['path']}"


def file_faults():
    for file in sources.code_files():
        if file.startswith("tests/"):
            continue
        words = {word.capitalize() for word in TERMS.sub("", pathlib.Path(file).stem).split("_")}
        bad = BANNED.intersection(words)
        if bad:
            yield f"{file}: the file's name has '{bad.pop()}'"


def twin_faults():
    folders = collections.defaultdict(set)
    for file in sources.code_files():
        path = pathlib.Path(file)
        if not file.startswith("tests/") and path.stem != "__init__":
            folders[path.stem].add(str(path.parent))
    for stem, places in sorted(folders.items()):
        if len(places) > 1 and stem not in TWINS:
            yield f"{', '.join(sorted(places))}: each has a file of the base name {stem}"
    yield from (f"tests/lint/names.py: {stem} stands in one folder" for stem in TWINS if len(folders[stem]) < 2)


def main():
    faults = [*file_faults(), *twin_faults(), *hidden_constants()]
    for place, name in declared_names():
        fault = fault_of(name)
        if fault:
            faults.append(f"{place}: {name}: the name has {fault}")
    sources.finish(faults)


if __name__ == "__main__":
    main()
