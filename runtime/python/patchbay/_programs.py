"""Where the programs of Patchbay are, and how they are run."""
import functools
import json
import os
import pathlib
import subprocess
import sys

from . import errors

CPUINFO = pathlib.Path("/proc/cpuinfo")
_INSTRUCTIONS = ("avx2", "bmi2", "fma")  # beyond x86-64 itself; what the programs are compiled for


def _candidates():
    named = os.environ.get("PATCHBAY_BIN")
    if named:
        yield pathlib.Path(named)
        return
    package = pathlib.Path(os.path.abspath(__file__)).parent
    yield package / "programs"
    yield package.parent.parent / "bin"  # a build folder


@functools.cache
def _check_processor():
    """ProcessorError where the programs would end with an illegal instruction."""
    try:
        with open(CPUINFO, encoding="utf-8", errors="replace") as file:
            flags = next((line.partition(":")[2].split() for line in file if line.startswith("flags")), _INSTRUCTIONS)
    except OSError:  # no /proc: the end of the client process says it
        return
    missing = [name for name in _INSTRUCTIONS if name not in flags]
    if missing:
        raise errors.ProcessorError(f"find program: this processor lacks {', '.join(missing).upper()}: run on a machine with "
                                    "AVX2, BMI2 and FMA (any server since 2013), or let a virtual machine show the host's processor")


def program(name="patchbay"):
    """Path of a program. PATCHBAY_BIN names the folder; else they lie in the package."""
    _check_processor()
    from . import _archive
    unpacked = None if os.environ.get("PATCHBAY_BIN") else _archive.folder()
    for folder in [unpacked / "bin"] if unpacked else _candidates():
        if os.access(folder / name, os.X_OK):
            return str(folder / name)
    raise errors.NotFoundError(f"find program: {name}: it is not in this installation: install patchbay-runtime "
                               "again, or name the folder of the programs with PATCHBAY_BIN")


def main():
    """The command `patchbay` of an installed package."""
    try:
        path = program()
    except errors.PatchbayError as error:
        sys.exit(f"error: {error}")
    os.environ.setdefault("PATCHBAY_PYTHON", sys.executable)  # where `patchbay map` runs
    os.execv(path, [path, *sys.argv[1:]])


def run_json(*words, cluster=None, expect=(0,)):
    """The JSON result of a command. Raises the class its exit code and text stand for."""
    command = [program(), *map(str, words), "--json"]
    if cluster is not None:
        command += ["--cluster", str(cluster)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode in expect:
        return json.loads(done.stdout)
    raise _failure(done)


def _failure(done):
    """The exception of a command that failed: by the JSON object that is the last line it wrote, or by what failed first of
    a job that did."""
    lines = done.stderr.strip().splitlines()
    try:
        if done.stdout:
            first = json.loads(done.stdout)["failed"][0]
            return errors.of(first["code"], False, first["reason"], first.get("subject"))
        error = json.loads(lines[-1])["error"]
        return errors.of(error["code"], done.returncode == 2, error["text"], error.get("subject"))
    except (IndexError, ValueError, KeyError, TypeError):
        ended = f"it ended with exit code {done.returncode}"
        return errors.ClusterError(f"run {' '.join(done.args[1:3])}: {ended}: {' '.join(lines[-3:]) or 'no reason given'}")
