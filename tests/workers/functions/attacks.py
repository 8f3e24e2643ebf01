"""Own functions that try to leave their limits. An attack that works sets the first value of its patches to 1."""
import ctypes
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
import time

GIB = 1 << 30
LIBC = ctypes.CDLL(None, use_errno=True)


def called(number, *arguments):
    """A system call by number; OSError where it is refused."""
    result = LIBC.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def shared():
    memory = mmap.mmap(-1, GIB)
    memory[:4] = b"full"


def private():
    kept = [bytearray(GIB // 8) for _ in range(32)]
    return len(kept)


def prlimit(pid=0):
    import resource
    limit = ctypes.c_uint64 * 2
    called(302, pid, resource.RLIMIT_DATA, ctypes.byref(limit(64 * GIB, 64 * GIB)), None)


ATTACKS = {
    "inet": lambda path: socket.socket(socket.AF_INET),
    "unix": lambda path: socket.socket(socket.AF_UNIX),
    "pair": lambda path: socket.socketpair(),
    "uring": lambda path: called(425, 8, ctypes.create_string_buffer(256)),
    "create": lambda path: open(path + "/made", "w"),
    "append": lambda path: open(path + "/there", "a"),
    "change": lambda path: os.open(path + "/there", os.O_RDWR),
    "nameless": lambda path: os.open(path, os.O_RDWR | os.O_TMPFILE),
    "openat2": lambda path: called(437, -100, (path + "/made2").encode(), (ctypes.c_uint64 * 3)(0o101, 0o600, 0), 24),
    "remove": lambda path: os.unlink(path + "/there"),
    "rename": lambda path: os.rename(path + "/there", path + "/elsewhere"),
    "folder": lambda path: os.mkdir(path + "/folder"),
    "link": lambda path: os.symlink("/", path + "/link"),
    "rights": lambda path: os.chmod(path + "/there", 0o777),
    "shorten": lambda path: os.truncate(path + "/there", 0),
    "fork": lambda path: os.fork(),
    "vfork": lambda path: called(58),
    "clone": lambda path: called(56, signal.SIGCHLD, 0, 0, 0, 0),
    "clone3": lambda path: called(435, (ctypes.c_uint64 * 8)(0, 0, 0, 0, signal.SIGCHLD), 64),
    "command": lambda path: subprocess.run(["/bin/true"], check=True),
    "execute": lambda path: os.execv("/bin/true", ["true"]),
    "kill": lambda path: os.kill(os.getppid(), 0),
    "trace": lambda path: called(101, 16, os.getppid(), 0, 0),
    "read_memory": lambda path: called(310, os.getppid(), 0, 0, 0, 0, 0),
    "pidfd": lambda path: called(434, os.getppid(), 0),
    "outlive": lambda path: called(157, 1, 0, 0, 0, 0),
    "limits": lambda path: prlimit(),
    "limits_of_parent": lambda path: prlimit(os.getppid()),
    "namespace": lambda path: called(272, 0x10000000),
    "memfd": lambda path: called(319, b"x", 0),
    "private": lambda path: private(),
    "shared": lambda path: shared(),
    "system_v": lambda path: called(29, 0, GIB, 0o1600),
    "grow": lambda path: os.ftruncate(4, GIB),
    "rewrite": lambda path: os.pwrite(5, b"print(1)", 100),
    "descriptors": lambda path: [os.fstat(fd) for fd in range(6, 64) if not closed(fd)][0],
}


def closed(fd):
    """Or the patches' memory once more."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}").startswith("/memfd:")
    except OSError:
        return True


def attack(image, mask, rng, what, path):
    """Refused with an error of the system or of memory; anything else counts as done."""
    try:
        ATTACKS[what](path)
    except (OSError, MemoryError, IndexError, subprocess.SubprocessError):
        return
    image.reshape(-1)[0] = 1


def threads(image, mask, rng):
    """Threads are allowed, and one reads files."""
    seen = []
    one = threading.Thread(target=lambda: seen.append(open("/proc/self/status").read()))
    one.start()
    one.join()
    image.reshape(-1)[0] = len(seen)


def endless(image, mask, rng):
    while True:
        pass


def asleep(image, mask, rng):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(1000)


def ends(image, mask, rng):
    os._exit(3)


def crashes(image, mask, rng):
    ctypes.string_at(0)


def leaves(image, mask, rng):
    sys.exit("bye")


def raises(image, mask, rng, at=0):
    for one, generator in zip(image, rng):
        if one.reshape(-1)[0] == at:
            raise ValueError(f"a patch of {at}")


def wrong_shape(image, mask, rng):
    return image[..., :1]


def draws(image, mask, rng):
    """One number a patch, whatever patches are beside it."""
    for i in range(len(image)):
        image[i] = rng[i].integers(0, 256, image[i].shape, image.dtype)
        if mask is not None:
            mask[i] = image[i, ..., 0]
