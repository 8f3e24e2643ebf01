"""Rights over files are an argument: few places may name the value that confines nothing."""
import re

import sources

# Programs that act with their user's own rights, and parts that open files of the process itself.
MAY_NAME = {
    "OfThisUser": ("runtime/cli/", "runtime/client/", "runtime/os/folders.",
                   "workers/process/local_run.cc"),
    "OfThisProcess": ("runtime/wire/control/", "scheduler/", "workers/agent/",
                      "runtime/os/"),
}
NAMED = re.compile(r"\bFolders::(OfThisUser|OfThisProcess)\b")
DEFAULT = re.compile(r"\bFolders&? \w+ = ")
# Names are opened, looked at, listed, made, renamed and removed through the functions of runtime/os.
RAW = re.compile(
    r"\b(?:fs|filesystem)::(?:\w*directory_iterator|\w*exists|is_\w+|\w*status|file_size|last_write_time"
    r"|equivalent|canonical|weakly_canonical|read_symlink|resize_file|create_\w+|copy\w*|rename|remove\w*)\b"
    r"|\bstd::\w*fstream\b"
    r"|(?<![\w.>])(?:::)?(?:l?stat|fstatat|statx|open|openat|fopen|access|faccessat|opendir|scandir|ftw|nftw|glob"
    r"|realpath|readlink\w*|truncate|rename\w*|mkdir\w*|rmdir|unlink\w*|symlink\w*|chmod)\(")
MAY_TOUCH = (
    "runtime/os/",  # it has those functions
    "runtime/cli/", "runtime/client/", "runtime/python/",  # act with the rights of their user
    "runtime/wire/control/",  # keys of the process itself
    "runtime/wire/data/exit_watch.cc", "runtime/wire/data/network_policy.cc",  # /proc and /sys
    "scheduler/", "workers/agent/", "deploy/",  # state of the process itself, and /proc
    "workers/process/heartbeat_watch.cc",  # /proc
    "workers/access/path_rights.cc",  # finds the path that the rights are compared with
)


def main():
    faults = []
    for file in sources.code_files():
        if file.startswith("tests/"):
            continue
        for number, line in enumerate(sources.read(file).split("\n"), 1):
            for name in NAMED.findall(line):
                if not file.startswith(MAY_NAME[name]):
                    faults.append(f"{file}:{number}: {name}: the rights come as an argument here")
            if file.endswith((".h", ".cc", ".cu")) and not file.startswith(MAY_TOUCH):
                if RAW.search(line.split("//")[0]):
                    faults.append(f"{file}:{number}: a name is touched without rights: use runtime/os")
            if file.endswith(".h") and DEFAULT.search(line):
                faults.append(f"{file}:{number}: rights have no default")
    sources.finish(faults)


if __name__ == "__main__":
    main()
