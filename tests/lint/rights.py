"""Rights over files are an argument: few places may name the value that confines nothing."""
import re

import sources

# Programs that act with their user's own rights, and parts that open files of the process itself.
MAY_NAME = {
    "OfThisUser": ("runtime/cli/", "runtime/client/", "runtime/os/folders.",
                   "workers/process/local_run.cc"),
    "OfThisProcess": ("runtime/wire/control/", "scheduler/", "workers/agent/",
                      "runtime/model/jobs/pid_stamp.cc", "runtime/os/"),
}
NAMED = re.compile(r"\bFolders::(OfThisUser|OfThisProcess)\b")
DEFAULT = re.compile(r"\bFolders&? \w+ = ")


def main():
    faults = []
    for file in sources.code_files():
        if file.startswith("tests/"):
            continue
        for number, line in enumerate(sources.read(file).split("\n"), 1):
            for name in NAMED.findall(line):
                if not file.startswith(MAY_NAME[name]):
                    faults.append(f"{file}:{number}: {name}: the rights come as an argument here")
            if file.endswith(".h") and DEFAULT.search(line):
                faults.append(f"{file}:{number}: rights have no default")
    sources.finish(faults)


if __name__ == "__main__":
    main()
