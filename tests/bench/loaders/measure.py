"""Runs one loader in a process of its own and takes its rate, processor time, memory, and a digest of its first batches."""
import ctypes
import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from .common import BOX, LOADERS, SEED, SIDE

PR_SET_CHILD_SUBREAPER = 36
DIGESTED = 8  # batches
TICKS = os.sysconf("SC_CLK_TCK")
# cuCIM opens cuFile's driver when it is imported, and that waits for ever where the kernel has no /proc/modules.
NO_MODULES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
static const char *at(const char *p) { return p && !strcmp(p, "/proc/modules") ? "/dev/null" : p; }
FILE *fopen(const char *p, const char *m) { FILE *(*next)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen"); return next(at(p), m); }
FILE *fopen64(const char *p, const char *m) { FILE *(*next)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen64"); return next(at(p), m); }
int open(const char *p, int f, ...) { va_list v; va_start(v, f); int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, "open"); return next(at(p), f, va_arg(v, int)); }
int open64(const char *p, int f, ...) { va_list v; va_start(v, f); int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64"); return next(at(p), f, va_arg(v, int)); }
"""


def descendants(root):
    """Process numbers of all below `root`."""
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        try:
            threads = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
            waiting += [int(word) for thread in threads for word in (thread / "children").read_text().split()]
            found.append(pid)
        except OSError:
            pass  # it ended meanwhile
    return found[1:]


def processor_seconds(root):
    """Processor time of all processes below one, and those of them that have ended."""
    ticks = 0
    for pid in descendants(root):
        try:
            ticks += sum(map(int, pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
        except OSError:
            pass
    return ticks / TICKS


def memory_bytes(root):
    """Memory of all processes below one; pages that they share count once."""
    total = 0
    for pid in descendants(root):
        try:
            for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) << 10
        except OSError:
            pass
    return total


def timed(job, loader):
    """The figures of one loader in this process; all below its parent, which adopts orphans, are its own."""
    import torch
    total = job.boxes if loader.is_volumes() else job.patches
    batch_size = job.boxes_batch if loader.is_volumes() else job.batch
    shape = (1, *BOX) if loader.is_volumes() else (3, SIDE, SIDE)
    untimed = max(loader.extra, int(total * loader.untimed))
    total = (total + loader.extra) // batch_size * batch_size
    seen = base = spent = 0
    start = first = now = None
    began = time.perf_counter()
    for batch in loader.run(job):
        if tuple(batch.shape[1:]) != shape or batch.dtype != torch.float32 or not (loader.is_volumes() or batch.is_contiguous()):
            raise RuntimeError(f"a batch of {tuple(batch.shape)} {batch.dtype}")
        now = time.perf_counter()
        first = now - began if first is None else first
        seen += len(batch)
        if start is None and seen >= untimed:
            start, base, spent = now, seen, processor_seconds(os.getppid())
        if seen >= total or (start is not None and now - start > job.max_seconds):
            break
    if start is None or seen == base:
        raise RuntimeError(f"only {seen} of {total} patches came")
    spent = processor_seconds(os.getppid()) - spent
    return {"patches_per_s": (seen - base) / (now - start), "processor_s_a_thousand": spent / (seen - base) * 1000, "first_batch_s": first}


def digest_of(job, loader):
    """SHA-256 of the first batches' bytes, in their order."""
    digest = hashlib.sha256()
    for number, batch in enumerate(loader.run(job)):
        digest.update(batch.numpy().tobytes())
        if number + 1 == DIGESTED:
            break
    return {"digest": digest.hexdigest()}


def seed_all():
    import numpy
    import torch
    random.seed(SEED)
    numpy.random.seed(SEED)
    torch.manual_seed(SEED)


def work(job, name):
    """The child's part: one line of JSON on its standard output."""
    seed_all()
    loader = LOADERS[name]
    print("RESULT " + json.dumps(digest_of(job, loader) if job.repeat else timed(job, loader)), flush=True)
    os._exit(0)


def environment(job, loader):
    more = {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0", "NO_ALBUMENTATIONS_UPDATE": "1", "LITDATA_DISABLE_VERSION_CHECK": "1",
            "PATCHBAY_HOME": str(job.below("home")), **{f"nnUNet_{name}": job.work for name in ("raw", "preprocessed", "results")}}
    if "cucim" in loader.modules and not os.path.exists("/proc/modules"):
        library = job.below("no_modules.so")
        words = ["cc", "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", str(library), "-ldl"]
        if library.exists() or subprocess.run(words, input=NO_MODULES, text=True, check=False).returncode == 0:
            more["LD_PRELOAD"] = str(library)
    return os.environ | more


def adopt_orphans():
    """Makes this process the parent of what its descendants leave, so that end_all() finds it."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_all():
    """Kills everything below this process and waits for it."""
    while below := descendants(os.getpid()):
        for pid in below:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, 0):
                pass
        except ChildProcessError:
            pass


def run(script, job, loader, limit_s):
    """The figures of one loader from a process of its own, or {"failed": text}."""
    most = 0
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as log:
        file = job.below("job.json")
        file.write_text(json.dumps(vars(job)))
        words = [sys.executable, "-W", "ignore", script, "--run", loader.name, "--job", str(file)]
        child = subprocess.Popen(words, stdout=out, stderr=log, start_new_session=True, env=environment(job, loader))
        end = time.monotonic() + limit_s
        while child.poll() is None and time.monotonic() < end:
            most = max(most, memory_bytes(os.getpid()))
            time.sleep(0.5)
        late = child.poll() is None
        end_all()
        out.seek(0)
        log.seek(0)
        lines = [line for line in out.read().splitlines() if line.startswith("RESULT ")]
        if lines:
            return {**json.loads(lines[0][len("RESULT "):]), "memory_bytes": most}
        said = [line for line in log.read().splitlines() if line.strip()]
        return {"failed": f"stopped after {limit_s:.0f} s" if late else said[-1][:300] if said else f"exit {child.returncode}"}
