"""Units with fewer rights: what a filter of system calls takes away is said, or not needed."""
import pathlib
import platform
import socket
import subprocess
import sys
import unittest

import harness

# Runs a command under a filter in which one system call fails where an argument has a value:
# CALL ARGUMENT VALUE ERRNO -- COMMAND
FILTER = """
import ctypes, os, struct, sys
call, argument, value, error = map(int, sys.argv[1:5])
def step(code, if_true, if_false, k): return struct.pack("HBBI", code, if_true, if_false, k)
RETURN, LOAD, IS = 0x06, 0x20, 0x15
steps = [step(LOAD, 0, 0, 0), step(IS, 0, 3, call), step(LOAD, 0, 0, 16 + 8 * argument),
         step(IS, 0, 1, value), step(RETURN, 0, 0, 0x00050000 | error), step(RETURN, 0, 0, 0x7fff0000)]
class Program(ctypes.Structure): _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]
libc = ctypes.CDLL(None, use_errno=True)
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
program = Program(len(steps), b"".join(steps))
assert libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[6], sys.argv[6:])
"""
SOCKET, EPERM, EAFNOSUPPORT = 41, 1, 97  # numbers on x86-64


def without_family(family, error=EAFNOSUPPORT):
    """As RestrictAddressFamilies= without that one."""
    return [sys.executable, "-c", FILTER, *map(str, (SOCKET, 0, int(family), error)), "--"]


@unittest.skipUnless(platform.machine() == "x86_64", "the filters are written for x86-64")
class Hardened(harness.Case):
    def setUp(self):
        super().setUp()
        tried = subprocess.run([*without_family(socket.AF_NETLINK), "/bin/true"], capture_output=True, text=True, check=False)
        if tried.returncode != 0:
            self.skipTest(f"this machine lets no program filter its system calls: {tried.stderr}")

    def test_a_node_without_an_address_family_says_so_and_ends(self):
        for error in (EAFNOSUPPORT, EPERM):
            for family in (socket.AF_NETLINK, socket.AF_INET, socket.AF_UNIX):
                with self.subTest(family=family.name, error=error):
                    up = self.start("up", "--cpus", 1, *self.listen, prefix=without_family(family, error))
                    self.done(up, expect=2)
                    said = pathlib.Path(up.log).read_text(encoding="utf-8")
                    self.assertIn(f"this process may not open {family.name} sockets", said)
                    self.assertIn("RestrictAddressFamilies=", said)
                    self.assertNotIn("Aborted", said)

    def test_a_stream_of_its_own_cluster_and_a_further_node_need_no_interfaces(self):
        no_interfaces = without_family(socket.AF_NETLINK)
        run = self.run_file(self.slide(size="1300x900"))
        self.done(self.start("stream", run, "--batches", 2, "--cpus", 1, prefix=no_interfaces))
        up = self.up(1)
        self.command("key", "new", "second", "--role", "worker", "--out", self.folder / "second.key")
        self.start("join", "--key", self.folder / "second.key", "--cpus", 1, prefix=no_interfaces, PATCHBAY_HOME=str(self.folder / "home2"))
        self.await_workers(up, 2)
        self.down(up)

    def test_no_program_has_the_hooks_of_a_fabric_that_nobody_declared(self):
        up = self.up(1)
        stream = self.start("stream", self.run_file(self.slide(size="1300x900")), "--batches", 4, "--step-ms", 300)
        looked = set()
        while stream.poll() is None:
            programs = {stream.pid: "patchbay", **harness.processes(up.pid)}
            for pid, name in programs.items():
                try:
                    self.assertNotIn("/libuc", pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8"), name)
                    looked.add(name)
                except OSError:
                    pass  # it has ended
        self.done(stream)
        self.assertLessEqual({"patchbay", "patchbay-scheduler", "patchbay-agent", "patchbay-supervisor", "patchbay-worker"}, looked)
        self.down(up)

    def test_workers_share_the_memory_that_their_node_was_given(self):
        up = self.up(2, "--memory", "3G")
        self.assertIn("each limited to 1.5 GiB", pathlib.Path(up.log).read_text(encoding="utf-8"))
        for pid in self.pids(up, "patchbay-worker"):
            limits = pathlib.Path(f"/proc/{pid}/limits").read_text(encoding="utf-8")
            self.assertRegex(limits, rf"Max data size +{3 << 29} +{3 << 29} ")
        self.command("key", "new", "second", "--role", "worker", "--out", self.folder / "second.key")
        join = self.start("join", "--key", self.folder / "second.key", "--cpus", 1, "--memory", "1GiB",
                          PATCHBAY_HOME=str(self.folder / "home2"))
        self.await_workers(up, 3)
        self.assertIn("each limited to 1.0 GiB", pathlib.Path(join.log).read_text(encoding="utf-8"))
        self.done(self.start("stream", self.run_file(self.slide(size="1300x900")), "--batches", 2))
        self.down(up)

    def test_memory_that_is_none_or_too_little_is_refused(self):
        for text, said in (("2", "expected a size such as 64G"), ("1GB", "expected a size"), ("-1G", "expected a size"),
                           ("0G", "expected a size"), ("99999999999T", "expected a size"), ("", "is empty"),
                           ("512M", "each needs 256")):
            with self.subTest(text):
                refused = self.command("up", "--cpus", 4, *self.listen, "--memory", text)
                self.assertEqual(refused.returncode, 2, refused.stderr)
                self.assertIn(said, refused.stderr)

    def test_a_second_cluster_of_a_machine_takes_another_port(self):
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                taken.bind(("127.0.0.1", 7678))
            except OSError:
                pass  # somebody else has it: just as good
            taken.listen()
            up = self.start("up", "--cpus", 1, "--gpus", "none", "--state", self.folder / "state")
            self.await_workers(up, 1)
            self.assertIn("port 7678 of this machine is taken", pathlib.Path(up.log).read_text(encoding="utf-8"))
            self.down(up)
            refused = self.command("up", "--cpus", 1, "--listen", "127.0.0.1:7678")
            self.assertEqual(refused.returncode, 1)
            self.assertIn("another process is listening there", refused.stderr)


if __name__ == "__main__":
    harness.main()
