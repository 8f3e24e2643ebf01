"""Connections of strangers to every open port while a stream runs: scanners, garbage, half-open ones. Nothing changes.

PATCHBAY_STRANGERS=10000 python3 tests/e2e/strangers_test.py makes as many as that."""
import contextlib
import json
import os
import pathlib
import random
import socket

import harness
from harness import wait_until

STRANGERS = int(os.environ.get("PATCHBAY_STRANGERS", "400"))
HELD_MAX = 300  # silent ones that are open at once
USER = 65534    # another user's trainer shares no memory: its batches come over TLS


def garbage(rng):
    kind = rng.randrange(7)
    if kind == 0:
        return bytes(17)
    if kind == 1:
        return b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    if kind == 2:
        return b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(60)  # part of a ClientHello
    if kind == 3:
        return b"\xff" + bytes(8) + b"\x7f\x03\x00CURVE" + rng.randbytes(200)        # part of a ZMTP greeting
    if kind == 4:
        return b"\x17\x03\x03\x40\x00" + rng.randbytes(3000)
    return rng.randbytes(rng.randrange(1, 400)) if kind == 5 else b""


def listening_ports(pids):
    """TCP ports that the processes listen on."""
    inodes = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    inodes.add(os.readlink(fd))
    ports = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for row in pathlib.Path(table).read_text(encoding="ascii").splitlines()[1:]:
            words = row.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                ports.add(int(words[1].rsplit(":", 1)[1], 16))
    return sorted(ports)


def visit(port, rng, held):
    """One stranger: says something, and goes or stays."""
    with contextlib.suppress(OSError):
        stranger = socket.create_connection(("127.0.0.1", port), timeout=5)
        held.append(stranger)
        stranger.sendall(garbage(rng))
        if rng.random() < 0.7:
            held.pop().close()
        if len(held) > HELD_MAX:
            held.pop(0).close()


@harness.unittest.skipUnless(os.geteuid() == 0, "becoming another user needs root")
class Strangers(harness.Case):
    def test_strangers_on_every_port_change_nothing(self):
        ports = range(20000 + os.getpid() % 9000, 30000)
        run = self.run_file(self.slide(size="1600x1200"), patch=64, data=f"{{ports: {ports[0]}-{ports[-1]}}}")
        self.folder.chmod(0o755)
        cluster = self.up(2)
        theirs = self.folder / "bob"
        theirs.mkdir()
        made = self.command("key", "new", "bob", "--role", "submitter", "--read", self.folder, "--write", self.folder,
                            "--out", theirs / "key")
        self.assertEqual(made.returncode, 0, made.stderr)
        for path in (theirs, theirs / "key"):
            os.chown(path, USER, USER)
        words = ["--batches", max(60, STRANGERS // 20), "--digest", "--json"]
        reference = self.json("stream", run, *words)["digest"]
        before = harness.processes(cluster.pid)
        saved = theirs / "saved"
        trainer = harness.subprocess.Popen(
            [str(harness.BIN / "patchbay"), "stream", str(run), *map(str, words), "--step-ms", "60", "--save", str(saved),
             "--cluster", str(theirs / "key")],
            user=USER, group=USER, extra_groups=[], cwd=theirs, stdout=harness.subprocess.PIPE,
            stderr=harness.subprocess.PIPE, text=True, env=self.environment(PATCHBAY_HOME=str(theirs)))
        self.addCleanup(trainer.kill)
        wait_until(lambda: trainer.poll() is not None or (saved.exists() and len(list(saved.glob("*-image.npy"))) >= 2),
                   "2 batches")
        scheduler, data = listening_ports(before), listening_ports([trainer.pid])
        self.assertTrue(scheduler and data, (scheduler, data))
        self.assertTrue(all(port in ports for port in data), (data, ports))
        rng, held = random.Random(1), []
        for i in range(STRANGERS):
            visit((scheduler + data)[i % len(scheduler + data)], rng, held)
        out, errors = trainer.communicate(timeout=2 * harness.LIMIT_S)
        for stranger in held:
            stranger.close()
        self.assertEqual(trainer.returncode, 0, errors)
        result = json.loads(out)
        self.assertEqual(result["digest"], reference)
        self.assertGreater(result["remote_bytes"], 0)
        self.assertGreater(result["connections_dropped"], STRANGERS // 8, "they came while the stream ran")
        self.assertEqual(harness.processes(cluster.pid), before, "a process was lost")
        self.names_them(result["connections_dropped"])

    def names_them(self, dropped):
        """`status` says who was turned away, why and how often."""
        rows = self.json("status")["dropped_peers"]
        self.assertTrue(rows)
        self.assertEqual({(row["address"], row["rank"]) for row in rows}, {("127.0.0.1", 0), ("unknown", None)})
        self.assertGreaterEqual(sum(row["times"] for row in rows if row["rank"] == 0), dropped, rows)
        self.assertTrue(all(row["reason"].isprintable() and row["last_at"] > 0 for row in rows), rows)
        shown = self.command("status").stdout
        for row in rows:
            self.assertIn(row["reason"], shown)


if __name__ == "__main__":
    harness.main()
