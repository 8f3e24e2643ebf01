"""Runs without what RHEL 8's kernel lacks: every system call newer than Linux 4.18 answers "no such call", and a socket does not hand out
its peer's pidfd. The main job still runs, a worker's death is still proven, and nothing is left behind."""
import ctypes
import errno
import json
import struct

import harness
from harness import wait_until

FIRST_NEWER_CALL = 424  # pidfd_send_signal, Linux 5.1; what 4.18 has ends below
GETSOCKOPT, SO_PEERPIDFD = 55, 77
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_GE, JUMP_EQ, RETURN = 0x20, 0x35, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
NUMBER_AT, THIRD_ARGUMENT_AT = 0, 32


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def become_old():
    """For the calling process and all it starts; cannot be undone."""
    rules = [(LOAD, 0, 0, NUMBER_AT),
             (JUMP_GE, 4, 0, FIRST_NEWER_CALL),
             (JUMP_EQ, 0, 2, GETSOCKOPT),
             (LOAD, 0, 0, THIRD_ARGUMENT_AT),
             (JUMP_EQ, 2, 0, SO_PEERPIDFD),
             (RETURN, 0, 0, ALLOW),
             (RETURN, 0, 0, REFUSE | errno.ENOSYS),
             (RETURN, 0, 0, REFUSE | errno.ENOPROTOOPT)]
    code = b"".join(struct.pack("=HBBI", *rule) for rule in rules)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = Program(len(rules), ctypes.cast(buffer, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
                                                                  ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "no filter for system calls")


class OldKernel(harness.Case):
    def test_stream_gives_the_same_bytes_and_leaves_nothing(self):
        stores = self.store([self.slide()])
        words = ("stream", self.run_file(stores), "--batches", 20, "--digest", "--json")
        expected = json.loads(self.command(*words).stdout)["digest"]
        old = self.command(*words, preexec_fn=become_old)
        self.assertEqual(old.returncode, 0, old.stderr[-4000:])
        self.assertEqual(json.loads(old.stdout)["digest"], expected)
        wait_until(lambda: not list((self.folder / "tmp").iterdir()), "the private folder to go")

    def test_ingest_gives_the_same_store(self):
        slide = self.slide()
        self.store([slide], "plain")
        old = self.command("ingest", slide, "--out", self.folder / "old", "--chunk", 256, "--shard", 1024, "--codec", "lz4",
                           preexec_fn=become_old)
        self.assertEqual(old.returncode, 0, old.stderr[-4000:])
        digests = [self.json("inspect", next((self.folder / out).glob("*.zarr")))["digest"] for out in ("plain", "old")]
        self.assertEqual(*digests)

    def test_doctor_says_what_is_lacking(self):
        result = self.command("doctor", preexec_fn=become_old)
        self.assertIn("no pidfd", result.stdout)


if __name__ == "__main__":
    harness.main()
