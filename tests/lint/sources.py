"""The files that the lint tests read: tracked files, and new files that are not ignored."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = (".h", ".cc", ".cu", ".cuh")
SKIPPED = {"build", ".venv", ".git"}


def all_files():
    """Paths relative to the root, as text, sorted."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        files = set(listed.stdout.splitlines())
    else:  # an unpacked archive of the sources
        files = {str(p.relative_to(ROOT)) for p in ROOT.rglob("*")
                 if p.is_file() and p.relative_to(ROOT).parts[0] not in SKIPPED}
    return sorted(f for f in files if (ROOT / f).is_file())


def code_files():
    return [f for f in all_files() if f.endswith(CODE)]


def read(file):
    return (ROOT / file).read_text(encoding="utf-8", errors="replace")


def finish(faults):
    """Prints what was found and ends the test."""
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    sys.exit(1 if faults else 0)
