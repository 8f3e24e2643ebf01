"""Adds up JUnit reports of CTest and GoogleTest: prints how each failed test ended, names them, then prints the closing line."""
import argparse
import pathlib
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


def passed_alone(again, results):
    """Names of the failed tests of CTest's report that passed in the report of their second run."""
    if again is None:
        return set()
    failed = {name for name, kind, _ in results if kind == "failed"}
    return {name for name, kind, _ in read_report(again) if kind == "passed"} & failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", help="the second run of what failed in ctest.xml")
    parser.add_argument("reports", nargs="+")
    arguments = parser.parse_args()
    by_report = {path: read_report(path) for path in arguments.reports}
    ctest = next((results for path, results in by_report.items() if pathlib.Path(path).name == "ctest.xml"), [])
    unsteady = passed_alone(arguments.again, ctest)
    failed = [(name, lines) for results in by_report.values() for name, kind, lines in results
              if kind == "failed" and not (results is ctest and name in unsteady)]
    outcomes = [kind for results in by_report.values() for _, kind, _ in results]
    counts = {kind: outcomes.count(kind) for kind in ("passed", "failed", "skipped")}
    counts["passed"] += len(unsteady)
    counts["failed"] -= len(unsteady)
    for name, lines in [*(result[::2] for result in ctest if result[0] in unsteady), *failed]:
        print(f"the end of {name}:", *lines, sep="\n  ")
    for name in sorted(unsteady):
        print("unsteady (failed beside others, passed twice alone):", name)
    for name, _ in failed:
        print("failed:", name)
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
