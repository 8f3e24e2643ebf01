"""Real processes on this machine: clusters, commands, and what they leave behind.

Every test gets a folder of its own for keys, state and output. Nothing waits by the clock: a test
waits for a condition, with a limit after which it fails.
"""
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import types
import unittest

# The Python of the oracles: other packages' readers.
PYTHON = os.environ.get("PATCHBAY_PYTHON", str(pathlib.Path(__file__).resolve().parents[2] / ".venv/bin/python"))
BIN = pathlib.Path(os.environ["PATCHBAY_BIN"]).absolute()
DATA = pathlib.Path(os.environ.get("PATCHBAY_TEST_DATA", "../shared/data"))
LIMIT_S = 120


def wait_until(condition, what, limit_s=LIMIT_S):
    """The first true value of condition(); AssertionError naming `what` after the limit."""
    end = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {limit_s} s: {what}")
        time.sleep(0.01)


def free_port():
    """A TCP port that nothing uses, outside the range that the kernel hands out: tests run beside one another."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def oracles(*modules):
    """True when PYTHON can import them all."""
    return pathlib.Path(PYTHON).exists() and subprocess.run(
        [PYTHON, "-c", "import " + ", ".join(modules)], capture_output=True, check=False).returncode == 0


def nifti(path, size, spacing, value, dtype="h", sides=(-1, -1, 1)):
    """A NIfTI volume of (z, y, x) voxels, int16, uint8 (dtype "B") or float32 ("f"): value(z, y, x). Its axes run to the left (-1) or right
    along x, to posterior (-1) or anterior along y, to superior (1) or inferior along z."""
    depth, height, width = size
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, 3, width, height, depth, 1, 1, 1, 1)
    struct.pack_into("<hh", header, 70, *{"h": (4, 16), "B": (2, 8), "f": (16, 32)}[dtype])
    struct.pack_into("<4f", header, 76, 1, *reversed(spacing))
    struct.pack_into("<ff", header, 108, 352, 1)
    header[123] = 2  # millimetres
    struct.pack_into("<h", header, 254, 1)
    for row, (side, step) in enumerate(zip(sides, reversed(spacing))):
        struct.pack_into("<4f", header, 280 + 16 * row, *(side * step if row == column else 0 for column in range(4)))
    header[344:348] = b"n+1\0"
    voxels = [value(z, y, x) for z in range(depth) for y in range(height) for x in range(width)]
    path.write_bytes(bytes(header) + struct.pack(f"<{len(voxels)}{dtype}", *voxels))


def numbers(file, form):
    """All numbers of an .npy file."""
    data = file.read_bytes()
    begin = 10 + struct.unpack_from("<H", data, 8)[0]
    return struct.unpack(f"<{(len(data) - begin) // struct.calcsize(form)}{form}", data[begin:])


def processes(root_pid):
    """{pid: program name} of all living descendants of a process, and of the cluster it opened."""
    parents, names = {}, {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        fields = stat[stat.rindex(")") + 2:].split()
        if fields[0] != "Z":
            parents[int(entry.name)], names[int(entry.name)] = int(fields[1]), os.path.basename(words[0])
            if names[int(entry.name)] == "patchbay-launcher" and "--owner" in words:
                parents[int(entry.name)] = int(words[words.index("--owner") + 1])  # it detached from there
    found, more = {}, [root_pid]
    while more:
        pid = more.pop()
        for child, parent in parents.items():
            if parent == pid:
                found[child] = names[child]
                more.append(child)
    return found


class Case(unittest.TestCase):
    """A test with a folder, a PATCHBAY_HOME in it and a check that nothing is left."""

    @classmethod
    def setUpClass(cls):
        cls.kept = pathlib.Path(tempfile.mkdtemp(prefix="patchbay-e2e-kept-"))  # for all tests of the class
        cls.addClassCleanup(shutil.rmtree, cls.kept, ignore_errors=True)
        cls.made = {}

    def once(self, what, make):
        """make() for the first test of the class that asks; the others get what it got."""
        if what not in self.made:
            self.made[what] = make()
        return self.made[what]

    def keep(self, path):
        """Moves a file or folder to where all tests of the class find it."""
        return pathlib.Path(shutil.move(path, self.kept / pathlib.Path(path).name))

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="patchbay-e2e-"))
        self.home = self.folder / "home"
        self.listen = ("--listen", f"127.0.0.1:{free_port()}")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith("PATCHBAY_")
               or k.startswith("PATCHBAY_MUTANT")}  # tests/mutants sets these
        env.pop("XDG_RUNTIME_DIR", None)
        tmp = self.folder / "tmp"
        tmp.mkdir(exist_ok=True)
        return env | {"PATCHBAY_HOME": str(self.home), "TMPDIR": str(tmp)} | more

    def command(self, *words, **options):
        """A finished `patchbay` command: returncode, stdout, stderr."""
        return subprocess.run([str(BIN / "patchbay"), *map(str, words)], cwd=self.folder, text=True,
                              capture_output=True, env=self.environment(), timeout=LIMIT_S * 3, **options)

    def start(self, *words, prefix=(), user=None, **env):
        """A running `patchbay` command, of a member if one is given; killed at the end of the test if it still lives."""
        log = open(self.folder / f"log-{len(list(self.folder.glob('log-*')))}", "w+", encoding="utf-8")
        words = words if user is None else (*words, "--cluster", user.key)
        process = subprocess.Popen([*prefix, str(BIN / "patchbay"), *map(str, words)], text=True, stdout=subprocess.PIPE, stderr=log,
                                   **self.identity(user, **env))
        process.log = log.name
        self.addCleanup(self.end, process, log)
        return process

    def identity(self, user, **env):
        """Options of a process of the member, or of this user for None."""
        if user is None:
            return {"cwd": self.folder, "env": self.environment(**env)}
        env = self.environment(PATCHBAY_HOME=str(user.home), TMPDIR=str(user.home), **env)
        who = {} if user.uid is None else {"user": user.uid, "group": user.uid, "extra_groups": []}
        return {"cwd": user.home, "env": env, **who}

    def member(self, name, uid, *more):
        """A submitter with a key and a home; run by root, as the Unix user of that number."""
        uid = uid if os.geteuid() == 0 else None
        home = self.folder / name
        home.mkdir(0o700)
        key = home / "key"
        made = self.command("key", "new", name, "--role", "submitter", "--read", self.folder, "--write", home, "--out", key, *more)
        self.assertEqual(made.returncode, 0, made.stderr)
        if uid is not None:
            self.folder.chmod(0o755)
            for path in (home, key):
                os.chown(path, uid, uid)
        return types.SimpleNamespace(name=name, uid=uid, home=home, key=key)

    def end(self, process, log):
        children = processes(process.pid)
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        log.close()
        wait_until(lambda: not any(pathlib.Path(f"/proc/{pid}/exe").exists() for pid in children),
                   f"the end of {children}", 15)

    def done(self, process, expect=0):
        """Waits for a started command; its stdout."""
        out, _ = process.communicate(timeout=LIMIT_S * 3)
        if process.returncode != expect:
            raise AssertionError(f"{process.args[1:]}: exit {process.returncode}\n{pathlib.Path(process.log).read_text()[-4000:]}")
        return out

    def json(self, *words, expect=0):
        result = self.command(*words, "--json")
        self.assertEqual(result.returncode, expect, result.stderr[-4000:])
        return json.loads(result.stdout)

    def up(self, cpus=2, *more):
        """A cluster of this machine, ready for work."""
        listen = () if "--listen" in more else self.listen
        process = self.start("up", "--cpus", cpus, "--state", self.folder / "state", *listen, *more)
        self.await_workers(process, cpus)
        return process

    def await_workers(self, process, workers):
        def ready():
            if process.poll() is not None:
                raise AssertionError(f"up ended with {process.returncode}: {pathlib.Path(process.log).read_text()[-4000:]}")
            result = self.command("status", "--json")
            return result.returncode == 0 and len(json.loads(result.stdout)["workers"]) >= workers
        wait_until(ready, f"{workers} workers", 60)

    def down(self, process):
        self.assertEqual(self.command("down", "--force").returncode, 0)
        process.wait(timeout=60)

    def small_disk(self, size):
        """A folder that holds no more than that; skips where none can be made. `resize` gives it more room."""
        disk = self.folder / f"disk-{size}"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            self.skipTest(f"this machine, or this user, mounts no tmpfs: {mounted.stderr}")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=False)
        return disk

    def resize(self, disk, size):
        subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)

    def slide(self, name="a.svs", size="3000x2500", seed=1):
        path = self.folder / name
        result = self.command("synth", "slide", path, "--size", size, "--seed", seed, "--force")
        self.assertEqual(result.returncode, 0, result.stderr)
        return path

    def store(self, slides, out="stores"):
        """Ingested slides; the path of the folder of stores."""
        result = self.command("ingest", *slides, "--out", self.folder / out, "--chunk", 256, "--shard", 1024,
                              "--codec", "lz4")
        self.assertEqual(result.returncode, 0, result.stderr[-4000:])
        return self.folder / out

    def run_file(self, dataset, name="run.yaml", patch=128, batch=16, meta=False, **more):
        """A run config over `dataset`."""
        text = (f"dataset: {dataset}\nnumerics: cpu\nseed: 7678\npatch: {{size: [{patch}, {patch}], level: 0}}\n"
                "sampling: {order: shuffled}\n"
                f"batch: {{global_size: {batch}, dtype: float16, layout: nchw, prefetch: 2, tail: keep, "
                f"meta: {str(meta).lower()}}}\n"
                "preprocess: [{normalize: {scale: 255, mean: [0.7, 0.55, 0.7], std: [0.2, 0.2, 0.2]}}]\n"
                "augment: [{flip: {}}]\n")
        for key, value in more.items():
            text += f"{key}: {value}\n"
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def pids(self, process, program):
        """Living processes of that program below `process`."""
        return sorted(pid for pid, name in processes(process.pid).items() if name == program)

    def kill(self, pid, number=signal.SIGKILL):
        os.kill(pid, number)


SKIPPED = 77  # the exit status of a script of which nothing ran: CTest calls it skipped, not passed


def main():
    result = unittest.main(verbosity=2, exit=False).result
    if result.wasSuccessful() and result.testsRun == len(result.skipped):
        sys.exit(SKIPPED)
    sys.exit(not result.wasSuccessful())
