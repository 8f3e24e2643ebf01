"""clang-format 14 decides how code is laid out."""
import subprocess

import sources


def main():
    faults = []
    files = sources.code_files()
    for start in range(0, len(files), 50):
        checked = subprocess.run(["clang-format-14", "--dry-run", *files[start:start + 50]], cwd=sources.ROOT,
                                 capture_output=True, text=True, check=True)
        faults += sorted({line.split(":")[0] for line in checked.stderr.splitlines() if "-Wclang-format" in line})
    sources.finish([f"{file}: run clang-format-14 -i" for file in faults])


if __name__ == "__main__":
    main()
