"""An error of a worker has a path as its subject, which the client names: texts of errors hold none."""
import re

import sources

MAKERS = re.compile(r"\b(InvalidArgument|NotFound|DataLoss|FailedPrecondition|Unimplemented|Internal|Aborted|AlreadyExists"
                    r"|ResourceExhausted|Unavailable|PermissionDenied|Annotate|ErrorAbout|About|StrCat)\(")
SUBJECTS = {"ErrorAbout": (2,), "About": (0, 2), "Annotate": (0,)}
# Functions of a file that put a text into an error.
HELPERS = re.compile(r"\b(?:Wrong|Refuse|No|Cannot)\w*\($")
PATH = re.compile(r"\b(?:\w+_)?(?:path|folder)_?\b(?! *\()|\.(?:path|string)\(\)")
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')
CALL = re.compile(r"\b\w+\([^()]*\)")


def arguments(text, begin):
    """The arguments of the call whose bracket opened before `begin`."""
    depth, start = 1, begin
    for at in range(begin, len(text)):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[at], 0)
        if depth == 0 or (depth == 1 and text[at] == ","):
            yield text[start:at]
            start = at + 1
        if depth == 0:
            return


def faults_of(file):
    text = LITERAL.sub('""', re.sub(r"//.*", "", sources.read(file)))
    for call in MAKERS.finditer(text):
        if call[1] == "StrCat" and not HELPERS.search(text[:call.start()]):
            continue
        for number, argument in enumerate(arguments(text, call.end())):
            if number not in SUBJECTS.get(call[1], ()) and PATH.search(CALL.sub("", argument)):
                yield f"{file}:{text.count(chr(10), 0, call.start()) + 1}: a path in an error's text: {' '.join(argument.split())}"


def main():
    sources.finish([fault for file in sources.code_files() if file.startswith(("workers/", "runtime/format/zarr/"))
                    and not file.startswith("workers/agent/") for fault in faults_of(file)])


if __name__ == "__main__":
    main()
