"""Adds up JUnit reports of CTest and GoogleTest: prints how each failed test ended, names them, then prints the closing line."""
import sys
import xml.etree.ElementTree as ElementTree

SHOWN_LINES = 60  # the last lines of a failed test's output


def outcome(case):
    """'passed', 'failed' or 'skipped' of one <testcase>, in either dialect."""
    if case.find("failure") is not None or case.get("status") == "fail":
        return "failed"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "passed"


def name_of(case):
    """CTest's reports repeat a test's whole name as its class."""
    name, group = case.get("name"), case.get("classname")
    return name if group in (None, name) else f"{group}.{name}"


def output(case):
    """The last lines that a test printed: CTest keeps them as output, GoogleTest as the texts of its failures."""
    texts = [element.text or "" for element in [*case.iter("failure"), *case.iter("system-out")]]
    return "\n".join(texts).strip().splitlines()[-SHOWN_LINES:]


def read_report(path):
    """[(test name, outcome, output)]; a report that is missing or cut short is one failure."""
    try:
        cases = ElementTree.parse(path).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return [(path + " (no report: it crashed or was not built)", "failed", [])]
    return [(name_of(case), outcome(case), output(case)) for case in cases]


def main(paths):
    results = [result for path in paths for result in read_report(path)]
    counts = {kind: sum(kind == got for _, got, _ in results) for kind in ("passed", "failed", "skipped")}
    failed = [(name, lines) for name, kind, lines in results if kind == "failed"]
    for name, lines in failed:
        print(f"the end of {name}:", *lines, sep="\n  ")
    for name, _ in failed:
        print("failed:", name)
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
