"""Runs a command and says what it took: wall and processor time; with instruments also memory and reads."""
import dataclasses
import mmap
import os
import pathlib
import resource
import struct
import subprocess
import tempfile
import threading
import time

TALLY_BYTES = 32 + (1 << 26) // 8  # as slow_disk.cc has it


@dataclasses.dataclass
class Run:
    stdout: str
    wall_s: float
    cpu_s: float  # of all its processes, user and system
    peak_bytes: int = 0  # of all its processes together, shared pages counted once
    read_bytes: int = 0  # from the slide or store, every page once
    waited_s: float = 0  # in those reads, all threads


def children_of(pid):
    try:
        tasks = pathlib.Path(f"/proc/{pid}/task")
        for task in tasks.iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from children_of(int(child))
    except OSError:
        return


def memory_of(pid):
    try:
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def watch_memory(pid, ended, found):
    while not ended.wait(0.05):
        found[0] = max(found[0], memory_of(pid) + sum(memory_of(child) for child in children_of(pid)))


def run(command, tally=None, library=None, rate=0):
    """`tally` and `library`: reads below that path are counted and, at `rate` bytes a second, slowed."""
    environment = dict(os.environ)
    with tempfile.NamedTemporaryFile() as shared:
        if tally:
            shared.truncate(TALLY_BYTES)
            environment.update(LD_PRELOAD=str(library), SLOW_DISK_PATH=str(tally), SLOW_DISK_RATE=str(rate),
                               SLOW_DISK_TALLY=shared.name)
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        peak, ended = [0], threading.Event()
        watcher = threading.Thread(target=watch_memory, args=(child.pid, ended, peak))
        if tally:
            watcher.start()
        stdout, stderr = child.communicate()
        wall = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended.set()
        if tally:
            watcher.join()
        if child.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, command))}: ended with {child.returncode}: {stderr[-2000:]}")
        with mmap.mmap(shared.fileno(), 64) if tally else memoryview(bytes(64)) as memory:
            read_bytes, waited_ns = struct.unpack_from("<QQ", memory)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(stdout, wall, cpu, peak[0], read_bytes, waited_ns * 1e-9)
