"""score.html: one page without anything from elsewhere; its plots are inline SVG."""
import html

_STYLE = """body{font:14px sans-serif;max-width:60em;margin:2em auto;color:#222}table{border-collapse:collapse}
td,th{padding:.2em .6em;text-align:right;border:1px solid #ddd}svg text{font:12px sans-serif}h2{margin-top:2em}"""
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_LEFT, _WIDE, _LINE = 260, 420, 22
_SIDE = 320


def _text(x, y, text, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(str(text))}</text>'


def _line(x1, y1, x2, y2, colour="#ccc", width=1):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def _svg(width, height, parts):
    return f'<svg width="{width}" height="{height}" role="img">{"".join(parts)}</svg>'


def _name_of(group):
    return "all images" if group["by"] is None else f"{group['by']}: {group['group'] or '(none)'}"


def _number(value):
    return "-" if value is None else f"{value:.3f}"


def intervals(output, metric):
    """A row for each class and group: the value, and a line from low to high."""
    rows = [(f"{label}, {_name_of(group)}", group["classes"][label][metric], colour)
            for label, colour in zip(output["roc"], _COLOURS * len(output["roc"])) for group in output["groups"]]
    bottom = _LINE * len(rows) + 6
    parts = [_line(_LEFT + _WIDE * tick, 0, _LEFT + _WIDE * tick, bottom) for tick in (0, 0.25, 0.5, 0.75, 1)]
    parts += [_text(_LEFT + _WIDE * tick, bottom + 14, tick, "middle") for tick in (0, 0.25, 0.5, 0.75, 1)]
    for number, (name, figure, colour) in enumerate(rows):
        y = _LINE * (number + 0.5)
        parts.append(_text(_LEFT - 8, y + 4, name[:44], "end"))
        if figure["low"] is not None:
            parts.append(_line(_LEFT + _WIDE * figure["low"], y, _LEFT + _WIDE * figure["high"], y, colour, 3))
        if figure["value"] is not None:
            parts.append(f'<circle cx="{_LEFT + _WIDE * figure["value"]:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>')
        parts.append(_text(_LEFT + _WIDE + 12, y + 4, _number(figure["value"])))
    return _svg(_LEFT + _WIDE + 70, bottom + 20, parts)


def confusion(output):
    """A table of all images: rows are the truth, shaded by their share of the row."""
    cells = ["<tr><th>truth \\ predicted</th>" + "".join(f"<th>{html.escape(name)}</th>" for name in output["predicted"]) + "</tr>"]
    for name, counts in zip(output["truth"], output["groups"][0]["confusion"]):
        whole = max(sum(counts), 1)
        cells.append(f"<tr><th>{html.escape(name)}</th>" + "".join(
            f'<td style="background:rgba(0,114,178,{0.6 * count / whole:.3f})">{count:,}<br>{100 * count / whole:.1f} %</td>' for count in counts) + "</tr>")
    return f"<table>{''.join(cells)}</table>"


def roc(output):
    """Curves of one class against the rest, of all images."""
    parts = [f'<rect x="40" y="5" width="{_SIDE}" height="{_SIDE}" fill="none" stroke="#888"/>', _line(40, 5 + _SIDE, 40 + _SIDE, 5),
             _text(40 + _SIDE / 2, _SIDE + 25, "false positive rate", "middle"), _text(5, 20, "TPR")]
    for number, (label, (false, true)) in enumerate(output["roc"].items()):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(f"{40 + _SIDE * x:.1f},{5 + _SIDE * (1 - y):.1f}" for x, y in zip(false, true))
        area = _number(output["groups"][0]["classes"][label]["auroc"]["value"])
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [_line(_SIDE + 60, 20 + 20 * number, _SIDE + 80, 20 + 20 * number, colour, 3), _text(_SIDE + 86, 24 + 20 * number, f"{label}: {area}")]
    return _svg(_SIDE + 300, max(_SIDE + 40, 40 + 20 * len(output["roc"])), parts)


def _counts(output):
    columns = ("images", "without_truth", "excluded", "patients", "scored", "uncovered", "ignored")
    rows = [f"<tr><th></th>{''.join(f'<th>{name}</th>' for name in columns)}<th>accuracy</th></tr>"]
    for group in output["groups"]:
        cells = "".join(f"<td>{group[name]:,}</td>" for name in columns)
        rows.append(f"<tr><th>{html.escape(_name_of(group))}</th>{cells}<td>{_number(group['accuracy']['value'])}</td></tr>")
    return f"<table>{''.join(rows)}</table>"


def html_of(document):
    found = document["bootstrap"]
    parts = [f"<!doctype html><html><head><meta charset=utf-8><title>score</title><style>{_STYLE}</style></head><body>",
             f"<h1>Truth: {html.escape(document['truth'])}</h1><p>Results {html.escape(str(document['results'])[:16])}. Intervals: "
             f"{found['confidence']:.0%}, {found['draws']:,} draws of {html.escape(found['resampled'])}.</p>"]
    for name, output in document["outputs"].items():
        first = output["metrics"][0]
        parts += [f"<h2>{html.escape(name)}</h2>", _counts(output), f"<h3>{first.replace('_', ' ')}</h3>", intervals(output, first),
                  "<h3>confusion</h3>", confusion(output), "<h3>ROC</h3>", roc(output)]
    return "".join(parts) + "</body></html>\n"
