"""python3 -m patchbay.score: the command `patchbay score`."""
import argparse
import json
import signal
import sys

from .. import errors
from ..map.__main__ import DONE, FAILED, SOME_FAILED, STOPPED, USAGE, stop


def _arguments(words):
    parser = argparse.ArgumentParser(prog="patchbay score", description="results of map against the truth")
    parser.add_argument("results", metavar="RESULTS")
    parser.add_argument("--truth", metavar="NAME", required=True, help="a label set, or a column of the cohort")
    parser.add_argument("--by", metavar="COLUMN", action="append", default=[], help="a group for each value; repeatable")
    parser.add_argument("--stores", metavar="DIR", help="where stores are that have moved")
    parser.add_argument("--out", metavar="DIR")
    parser.add_argument("--cluster", metavar="FILE")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(words)


def _text(figure):
    if figure["value"] is None:
        return "-"
    return f"{figure['value']:.3f}" + ("" if figure["low"] is None else f" ({figure['low']:.3f} to {figure['high']:.3f})")


def _say(found):
    for name, output in found["outputs"].items():
        for group in output["groups"]:
            where = "" if group["by"] is None else f", {group['by']} {group['group'] or '(none)'}"
            print(f"{name}{where}: {group['images']} images, {group['without_truth']} without truth; accuracy {_text(group['accuracy'])}")
            for label, figures in group["classes"].items():
                shown = "; ".join(f"{metric} {_text(figures[metric])}" for metric in output["metrics"])
                print(f"  {label}: {shown}; in {figures['images']} images, absent from {figures['absent']}")
    print(f"{found['out']}/score.html")


def main(words):
    given = _arguments(words)
    signal.signal(signal.SIGTERM, stop)
    from . import score
    try:
        found = score(given.results, truth=given.truth, by=given.by, out=given.out, stores=given.stores, cluster=given.cluster)
    except KeyboardInterrupt:
        print("score: stopped; the same command begins again", file=sys.stderr)
        return STOPPED
    except errors.PatchbayError as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE if isinstance(error, errors.ConfigError) else FAILED
    if given.json:
        print(json.dumps(found))
    else:
        _say(found)
    for name, reason in found["excluded"].items():
        print(f"warning: {name} is excluded: {reason}", file=sys.stderr)
    for note in found["notes"]:
        print(f"note: not scored: {note}", file=sys.stderr)
    return SOME_FAILED if found["excluded"] else DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
