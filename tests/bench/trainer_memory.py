"""Memory of a trainer that is much slower than its workers: no more than the ring that `config check` states.

    PYTHONPATH=build/dev/python .venv/bin/python tests/bench/trainer_memory.py RUN.yaml [--slower 100] [--seconds 120]

Counted: memory of the trainer's process and of the client process of its ring that is no file's (pages of a program that
another process maps too would come and go with it), less what the trainer had before it attached, and the ring once, though
workers map it too. The sizes are looked at five times a second; of ring and processes
the largest of each counts, and only the processes may grow: a kernel that looks for cold pages unmaps some of the ring for a
while.
"""
import argparse
import json
import os
import pathlib
import subprocess
import time

import patchbay
from patchbay import _programs

LOOK_EVERY_S = 0.2


def sizes(pid):
    """(bytes of memory that are no file's, bytes of memory files that the process maps)."""
    own = shared = 0
    is_file = False
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            is_file = "/memfd:" in line
        elif is_file and words[0] == "Rss:":
            shared += int(words[1]) * 1024
        elif not is_file and words[0] == "Anonymous:":
            own += int(words[1]) * 1024
    return own, shared


def clients():
    """Client processes of this one's streams."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"serve-ring" in (entry / "cmdline").read_bytes():
                if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == os.getpid():
                    found.append(int(entry.name))
        except OSError:
            continue
    return found


def used_bytes(before):
    """(ring, processes) of the one stream of this process."""
    client, = clients()
    client_own, ring = sizes(client)
    return ring, client_own + max(sizes(os.getpid())[0] - before, 0)


def pace(batches, count):
    """Seconds a batch when nothing is done with it."""
    begun = time.perf_counter()
    for _ in range(count):
        next(batches)
    return (time.perf_counter() - begun) / count


def endless(stream):
    while True:
        yield from stream


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--slower", type=float, default=100)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--paced", type=int, default=10, help="batches from which the workers' pace is taken")
    parser.add_argument("--cpus", type=int)
    arguments = parser.parse_args()
    checked = subprocess.run([_programs.program(), "config", "check", arguments.config, "--json"], capture_output=True,
                             text=True, check=True)
    stated = json.loads(checked.stdout)["ring_bytes"]
    before = sizes(os.getpid())[0]
    most, first, steps = (0, 0), 0, 0
    with patchbay.attach(arguments.config, cpus=arguments.cpus) as stream:
        batches = endless(stream)
        step_s = arguments.slower * pace(batches, arguments.paced)
        end = time.monotonic() + arguments.seconds
        while not first or time.monotonic() < end:
            batch = next(batches)
            steps += 1
            step_end = min(time.monotonic() + step_s, end)
            while True:
                now = used_bytes(before)
                first = first or now[1]
                most = tuple(map(max, most, now))
                if time.monotonic() >= step_end:
                    break
                time.sleep(min(LOOK_EVERY_S, max(step_end - time.monotonic(), 0)))
            del batch
    print(json.dumps({"stated_bytes": stated, "ring_bytes": most[0], "process_bytes": most[1], "ratio": sum(most) / stated,
                      "grown_bytes": most[1] - first, "step_s": step_s, "steps": steps}, indent=1))


if __name__ == "__main__":
    main()
