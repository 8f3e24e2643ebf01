"""The table of metrics (scheduler/metrics/exposition.cc) is the one of configs/metrics.md, and the dashboard and the alert rules
of deploy/site/monitoring ask for metrics, labels and states that it has."""
import json
import re

import sources

TABLE, PAGE = "scheduler/metrics/exposition.cc", "configs/metrics.md"
DASHBOARD, RULES = "deploy/site/monitoring/dashboard.json", "deploy/site/monitoring/alerts.yml"
ROW = re.compile(r'\{"(patchbay_\w+)", (\w+), "(\w*)", "([\w ]*)",\s*((?:"[^"]*"\s*)+),')
NAME = re.compile(r"patchbay_[a-z0-9_]+(?:\{([^}]*)\})?")
SUFFIXES = ("_bucket", "_sum", "_count")
MAY_LABEL = {"job", "node", "team", "state", "cause", "stage", "path", "outcome", "version"}


def table():
    """Name -> (type, unit, labels, meaning)."""
    rows = {}
    for name, kind, unit, labels, meaning in ROW.findall(sources.read(TABLE)):
        rows[name] = (kind.lower(), unit, labels.split(), "".join(re.findall(r'"([^"]*)"', meaning)))
    return rows


def name_faults(rows):
    """Names end as Prometheus's rules have it."""
    if len(rows) < 30:
        yield f"{TABLE}: {len(rows)} metrics: the table is written in another way"
    for name, (kind, unit, labels, _) in rows.items():
        if name.endswith("_total") != (kind == "counter"):
            yield f"{TABLE}: {name}: a counter, and nothing else, ends in _total"
        if unit in ("seconds", "bytes") and not name.removesuffix("_total").endswith("_" + unit):
            yield f"{TABLE}: {name}: the name does not end in its unit, {unit}"
        yield from (f"{TABLE}: {name}: the label {label} may name someone" for label in labels if label not in MAY_LABEL)


def page_faults(rows):
    text = sources.read(PAGE)
    shown = re.findall(r"^\| `patchbay_.*$", text, re.MULTILINE)
    wanted = [f"| `{name}` | {kind} | {unit or '-'} | {', '.join(labels) or '-'} | {meaning} |"
              for name, (kind, unit, labels, meaning) in rows.items()]
    yield from (f"{PAGE}: has no row {row}" for row in wanted if row not in shown)
    yield from (f"{PAGE}: {TABLE} has no metric of the row {row}" for row in shown if row not in wanted)


def expressions():
    """(file, expression) of the dashboard and of the rules."""
    board = json.loads(sources.read(DASHBOARD))
    for panel in board["panels"]:
        yield from ((DASHBOARD, target["expr"]) for target in panel.get("targets", []))
    yield from ((RULES, found) for found in re.findall(r"^ +expr: (.*)$", sources.read(RULES), re.MULTILINE))


def expression_faults(rows):
    count = 0
    for file, expression in expressions():
        count += 1
        found = list(NAME.finditer(expression))
        if not found:
            yield f"{file}: {expression}: asks for no metric of ours"
        for one in found:
            name = one[0].split("{")[0]
            base = next((name.removesuffix(s) for s in SUFFIXES if name.removesuffix(s) in rows), name)
            if base not in rows:
                yield f"{file}: {expression}: {TABLE} has no {name}"
                continue
            _, _, labels, meaning = rows[base]
            for label, value in re.findall(r'(\w+)[=!~]+"([^"]*)"', one[1] or ""):
                if label not in labels:
                    yield f"{file}: {expression}: {name} has no label {label}"
                elif label == "state" and value not in re.findall(r"\w+", meaning):
                    yield f"{file}: {expression}: {name} has no state {value}"
    if count < 20:
        yield f"{DASHBOARD}, {RULES}: {count} expressions: they are written in another way"


def main():
    rows = table()
    sources.finish([*name_faults(rows), *page_faults(rows), *expression_faults(rows)])


if __name__ == "__main__":
    main()
