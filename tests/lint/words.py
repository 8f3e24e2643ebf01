"""Words that no file of the project may have: paths of one machine, work left for now, code that is commented
out, and how the project came about."""
import re

import sources

EVERYWHERE = {
    r"(?<![\w./-])/(work|root|farm)/": "a path of one machine",
    r"(?<![\w./-])/home/\w+/": "a path of one machine",
    r"\b(FIXME|XXX|HACK)\b": "unfinished work",
    r"\bTODO\b(?!\((soon|perf|cleanup|test)\): )": "a TODO without a type, or for now",
    r"\bissue #?\d+\b": "the history of the project",
    r"\b(coding agent|language model|AI[- ]generated)\b": "how the project came about",
}
IN_CODE = {
    r"^\s*//+ ?(return|if \(|for \(|while \(|const |auto |int |std::)[^`]*[;{]\s*$":
        "code that is commented out",
    r"^\s*//.*@author\b": "an author's name",
}
TEXT = (".h", ".cc", ".cu", ".cuh", ".py", ".sh", ".md", ".txt", ".cmake", ".yaml", ".capnp", ".json")
SCRIPTS = ("deploy/", ".ci/")


def main():
    faults = []
    for file in sources.all_files():
        if not (file.endswith(TEXT) or file.startswith(SCRIPTS)) or file == "tests/lint/words.py":
            continue
        patterns = dict(EVERYWHERE, **(IN_CODE if file.endswith(sources.CODE) else {}))
        for number, line in enumerate(sources.read(file).splitlines(), 1):
            for pattern, what in patterns.items():
                if re.search(pattern, line):
                    faults.append(f"{file}:{number}: {what}: {line.strip()}")
    sources.finish(faults)


if __name__ == "__main__":
    main()
