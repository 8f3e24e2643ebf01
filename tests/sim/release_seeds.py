#!/usr/bin/env python3
"""Runs the simulator's seeds for a release, spread over the cores, and sums up what they found.

    tests/sim/release_seeds.py BUILD/bin/patchbay_sim [--seeds N] [--lean N] [--ghosts N] [--large N] [--first K]

Exit status 1 when a seed broke an invariant, 2 when a run ended otherwise."""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import time

SUMMARY = re.compile(r"^(\d+) seeds, (\d+) with violations, (\d+) events, (\d+) tasks, (\d+) batches$")
SERIES = {"seeds": ([], 500), "lean": (["--lean"], 200), "ghosts": (["--ghosts"], 500),
          "large": (["--large"], 10)}


def chunks(first, count, size):
    """(first seed, how many) of each run of the simulator."""
    return [(at, min(size, first + count - at)) for at in range(first, first + count, size)]


def run(program, flags, first, count):
    """Violations, the summary's figures, and what went wrong with the run itself."""
    done = subprocess.run([program, *flags, "--seed", str(first), "--count", str(count)],
                          capture_output=True, text=True, check=False)
    figures = [match.groups() for match in map(SUMMARY.match, done.stdout.splitlines()) if match]
    violations = [line for line in done.stdout.splitlines()
                  if line.startswith("seed ") and ": trace hash " not in line]
    if len(figures) != 1 or int(figures[0][0]) != count or done.returncode not in (0, 1):
        return violations, None, f"seeds {first} to {first + count - 1} {flags}: exit {done.returncode}"
    if int(figures[0][1]) != len(violations):
        return violations, None, f"seeds {first} to {first + count - 1} {flags}: violations miscounted"
    return violations, [int(figure) for figure in figures[0]], ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=100_000, help="default: 100000")
    parser.add_argument("--lean", type=int, default=20_000, help="default: 20000")
    parser.add_argument("--ghosts", type=int, default=100_000, help="default: 100000")
    parser.add_argument("--large", type=int, default=3_000, help="default: 3000")
    parser.add_argument("--first", type=int, default=1, help="first seed of each series; default: 1")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="default: one per core")
    arguments = parser.parse_args()
    started, broken, failed = time.monotonic(), [], []
    totals = {name: [0] * 5 for name in SERIES}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        waiting = {pool.submit(run, arguments.program, flags, first, count): name
                   for name, (flags, size) in SERIES.items()
                   for first, count in chunks(arguments.first, getattr(arguments, name), size)}
        for future in concurrent.futures.as_completed(waiting):
            name = waiting[future]
            violations, figures, failure = future.result()
            for line in violations:
                broken.append(f"{name}: {line}")
                print(broken[-1], flush=True)
            if failure:
                failed.append(failure)
                print(failure, file=sys.stderr, flush=True)
            if figures:
                totals[name] = [a + b for a, b in zip(totals[name], figures)]
    for name, (seeds, bad, events, tasks, batches) in totals.items():
        print(f"{name:6} {seeds:>8} seeds, {bad} with violations, {events} events, {tasks} tasks, "
              f"{batches} batches")
    print(f"{time.monotonic() - started:.0f} s, {len(broken)} violations, {len(failed)} failed runs")
    return 2 if failed else 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
