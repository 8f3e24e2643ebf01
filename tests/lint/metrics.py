"""The table of metrics (scheduler/metrics/exposition.cc) is the one of configs/metrics.md."""
import re

import sources

TABLE, PAGE = "scheduler/metrics/exposition.cc", "configs/metrics.md"
ROW = re.compile(r'\{"(patchbay_\w+)", (\w+), "(\w*)", "([\w ]*)",\s*((?:"[^"]*"\s*)+),')
MAY_LABEL = {"job", "node", "state", "outcome", "version"}


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


def main():
    rows = table()
    sources.finish([*name_faults(rows), *page_faults(rows)])


if __name__ == "__main__":
    main()
