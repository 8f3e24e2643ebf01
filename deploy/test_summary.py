"""Adds up JUnit reports of CTest and GoogleTest: names what failed, then prints the closing line."""
import sys
import xml.etree.ElementTree as ElementTree


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


def read_report(path):
    """[(test name, outcome)]; a report that is missing or cut short is one failure."""
    try:
        cases = ElementTree.parse(path).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return [(path + " (no report: it crashed or was not built)", "failed")]
    return [(name_of(case), outcome(case)) for case in cases]


def main(paths):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for path in paths:
        for name, result in read_report(path):
            counts[result] += 1
            if result == "failed":
                print("failed:", name)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
