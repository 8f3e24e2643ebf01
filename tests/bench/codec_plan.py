#!/usr/bin/env python3
"""Predictions of `ingest --codec auto` for each codec, beside what it then comes to: sizes, ingest and passes of random 512 x 512 patches.

  tests/bench/codec_plan.py SLIDE [--limit 200] [--gigabytes 6] [--folder /tmp] [--bin build/dev/bin]

Twice on a standing cluster of two workers: in a folder with all pages in memory, and, as root, on a file system in a file (loop device, direct
I/O) whose reads and writes are limited to --limit MB/s for this cluster (cgroup: blkio.throttle or io.max), with slide and stores dropped from memory
before each step. Prints predicted / measured by wall time, the goal is 0.8 to 1.2, which holds where nothing else runs; and beside it, for steps that the
processor bounds, by the processor time that `patchbay usage` charges.
"""
import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import slide_runs

CORES = 2


def sh(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def drop(folder):
    """Takes all files below `folder` out of memory."""
    for path in pathlib.Path(folder).rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextlib.contextmanager
def limited_disk(folder, gigabytes, limit):
    """A mounted file system of its own, and the file that a process writes "0" into to be limited on it."""
    image, mounted = folder / "disk.img", folder / "disk"
    mounted.mkdir()
    sh("truncate", "-s", f"{gigabytes}G", str(image))
    sh("mkfs.ext4", "-q", "-F", str(image))
    loop = sh("losetup", "-f", "--show", "--direct-io=on", str(image))
    device = pathlib.Path(f"/sys/block/{pathlib.Path(loop).name}/dev").read_text(encoding="ascii").strip()
    first = pathlib.Path("/sys/fs/cgroup/blkio")
    group = (first if first.is_dir() else pathlib.Path("/sys/fs/cgroup")) / f"codec-plan-{os.getpid()}"
    group.mkdir()
    try:
        sh("mount", loop, str(mounted))
        if first.is_dir():
            for way in ("read", "write"):
                (group / f"blkio.throttle.{way}_bps_device").write_text(f"{device} {limit * 1000000}", encoding="ascii")
        else:
            (group / "io.max").write_text(f"{device} rbps={limit * 1000000} wbps={limit * 1000000}", encoding="ascii")
        yield mounted, group / ("tasks" if first.is_dir() else "cgroup.procs")
    finally:
        for words in (("umount", str(mounted)), ("losetup", "-d", loop), ("rmdir", str(group))):
            subprocess.run(words, check=False)


class Bench:
    def __init__(self, binaries, slide, folder, home, group=None):
        self.slide, self.folder, self.group = slide, folder, group
        self.cluster = slide_runs.Cluster(binaries, home, CORES, self.enter)

    def enter(self):
        if self.group:
            self.group.write_text("0", encoding="ascii")

    def step(self, *words):
        """Seconds of wall time and of processor time, and what the command said."""
        if self.group:
            drop(self.folder)
        begun = time.monotonic()
        result, _ = self.cluster.run(*words)
        return time.monotonic() - begun, self.cluster.core_seconds(), result

    def passes(self, store, patches):
        batches = max(1, round(patches / 32))
        if self.group:
            drop(self.folder)
        result = self.cluster.stream(self.folder, store, batches)
        core = self.cluster.core_seconds()
        return patches / result["patches_per_s"], core * patches / (32 * batches)

    def compare(self, what, forecast, wall, core):
        predicted, by = forecast["seconds"], "disk" if forecast["is_by_disk"] else "cores"
        by_cores = "" if forecast["is_by_disk"] else f", {predicted / (core / CORES):.2f} by processor time ({core:.2f} core-seconds)"
        print(f"  {what}: predicted {predicted:.2f} s ({by}), measured {wall:.2f} s: {predicted / wall:.2f}{by_cores}", flush=True)

    def all(self):
        auto = self.folder / "auto"
        with self.cluster.running():
            if self.group:
                drop(self.folder)
            result, said = self.cluster.run("ingest", self.slide, "--out", auto, "--codec", "auto", "--epochs", "2")
            print(said)
            shutil.rmtree(auto)
            choice = result["choice"]
            for forecast in choice["forecasts"]:
                codec, out = forecast["codec"], self.folder / forecast["codec"]
                wall, core, made = self.step("ingest", self.slide, "--out", out, "--codec", codec)
                print(f"{codec}: size predicted / measured {forecast['stored_bytes'] / made['stored_bytes']:.2f}")
                self.compare("ingest", forecast["ingest"], wall, core)
                patches = choice["measured"]["patches"]
                which = "first" if self.group else "later"
                if not self.group:
                    self.passes(out, patches)
                self.compare(f"{which} pass", forecast[which], *self.passes(out, patches))
                shutil.rmtree(out)


def main():
    parser = slide_runs.parser(__doc__)
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--gigabytes", type=int, default=6)
    options = parser.parse_args()
    binaries = pathlib.Path(options.bin).absolute()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        folder = pathlib.Path(folder)
        (folder / "memory").mkdir()
        print("in memory:")
        Bench(binaries, options.slide.absolute(), folder / "memory", folder / "home").all()
        if os.geteuid() != 0:
            return print("the limited disk needs root")
        with limited_disk(folder, options.gigabytes, options.limit) as (mounted, group):
            print(f"on a disk of {options.limit} MB/s:")
            slide = mounted / options.slide.name
            shutil.copy(options.slide, slide)
            Bench(binaries, slide, mounted, folder / "home-2", group).all()
    return None


if __name__ == "__main__":
    main()
