"""The units of deploy/site/systemd under a real systemd: active when it listens, restarted when frozen, drained when stopped."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import unittest

import machine

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/sites"))
import missing  # noqa: E402

UNITS = [ROOT / "deploy/site/systemd" / name for name in ("patchbay.service", "patchbay-node@.service")]
BIN = pathlib.Path(os.environ["PATCHBAY_BIN"]).absolute()
LONGEST_S = 15  # a frozen supervisor is replaced within 10 s; tests share the machine
PATCHBAY = "/opt/patchbay/bin/patchbay"
FLAGS = "PATCHBAY_UP=--cpus 1 --gpus none --listen 127.0.0.1:7678\nPATCHBAY_JOIN=--cpus 1 --gpus none\n"


class Units(unittest.TestCase):
    def test_both_are_locked_up_alike(self):
        first, second = ({line for line in unit.read_text(encoding="utf-8").splitlines() if re.match("[A-Z]", line)} for unit in UNITS)
        own = {"Description", "StateDirectory", "Environment", "ExecStart", "LoadCredential"}
        self.assertEqual({line.split("=")[0] for line in first ^ second}, own)


class Services(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.site = machine.Machine(BIN, UNITS)
        except OSError as why:
            raise missing.absent(f"no systemd of our own: {why}") from why
        cls.addClassCleanup(cls.site.close)
        cls.site.path("etc/default").mkdir()
        cls.site.path("etc/default/patchbay").write_text(FLAGS, encoding="utf-8")
        cls.site.path("etc/patchbay").mkdir(mode=0o700)

    def setUp(self):
        for log in self.site.path("log").iterdir():
            log.write_text("", encoding="utf-8")

    def tearDown(self):
        self.site.run("systemctl", "stop", "patchbay-node@second", "patchbay")
        self.site.run("systemctl", "reset-failed")

    def systemctl(self, *words):
        done = self.site.run("systemctl", *words)
        self.assertEqual(done.returncode, 0, done.stderr + self.said())
        return done.stdout.strip()

    def said(self):
        return "".join(log.read_text(encoding="utf-8") for log in sorted(self.site.path("log").iterdir()))

    def shown(self, name, unit="patchbay"):
        return self.systemctl("show", "--value", "--property", name, unit)

    def patchbay(self, *words, expect=0):
        done = self.site.run(PATCHBAY, *words, "--json", user="patchbay")
        self.assertEqual(done.returncode, expect, done.stderr + self.said())
        return json.loads(done.stdout) if expect == 0 else None

    def drop_in(self, text):
        """Lines of [Service] for one test."""
        path = self.site.path("etc/systemd/system/patchbay.service.d/test.conf")
        path.write_text("[Service]\n" + text, encoding="utf-8")
        self.systemctl("daemon-reload")
        self.addCleanup(self.systemctl, "daemon-reload")
        self.addCleanup(path.unlink)

    def wait_for(self, condition, what, limit_s=20):
        end = time.monotonic() + limit_s
        while not condition():
            self.assertLess(time.monotonic(), end, what + "\n" + self.said())
            time.sleep(0.02)

    def program(self, name):
        return next((pid for pid, program in self.site.processes().items() if program == name), None)

    def test_the_units_verify_and_expose_little(self):
        names = [f"/etc/systemd/system/{unit.name}" for unit in UNITS]
        verified = self.site.run("systemd-analyze", "verify", *names)
        self.assertEqual((verified.returncode, verified.stdout + verified.stderr), (0, ""))
        for unit in UNITS:
            rated = self.site.run("systemd-analyze", "security", "--offline=yes", "--threshold=25", "--no-pager", f"/etc/systemd/system/{unit.name}")
            self.assertEqual(rated.returncode, 0, rated.stdout)

    def test_it_is_active_only_when_it_listens(self):
        listen = "import socket; s = socket.create_server(('127.0.0.1', 7678)); print(flush=True); import sys; sys.stdin.read()"
        with subprocess.Popen(["nsenter", "--target", str(self.site.pid), "--net", "/usr/bin/python3", "-c", listen],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            other.stdout.readline()
            self.assertNotEqual(self.site.run("systemctl", "start", "patchbay").returncode, 0)
            self.assertNotEqual(self.site.run("systemctl", "is-active", "patchbay").stdout.strip(), "active")
            self.assertIn("another process is listening there", self.said())
        self.systemctl("restart", "patchbay")
        connect = "import socket; socket.create_connection(('127.0.0.1', 7678), 1)"
        self.assertEqual(self.site.run("/usr/bin/python3", "-c", connect).returncode, 0)
        self.wait_for(lambda: self.site.run(PATCHBAY, "node", "ready", user="patchbay").returncode == 0, "a ready node")
        self.assertEqual([node["state"] for node in self.patchbay("status")["nodes"]], ["up"])
        self.systemctl("stop", "patchbay")
        self.patchbay("node", "ready", expect=1)

    def test_a_missing_address_family_is_said_once_and_not_tried_again(self):
        self.drop_in("RestrictAddressFamilies=\nRestrictAddressFamilies=AF_UNIX AF_INET\n")
        self.assertNotEqual(self.site.run("systemctl", "start", "patchbay").returncode, 0)
        self.assertEqual([self.shown(name) for name in ("ActiveState", "ExecMainStatus", "NRestarts")], ["failed", "2", "0"])
        self.assertEqual(self.said().count("this process may not open AF_NETLINK sockets"), 1)

    def doctor(self, expect):
        """{name: check} of root's doctor."""
        done = self.site.run("env", "-u", "PATCHBAY_HOME", PATCHBAY, "doctor", "--site", "systemd", "--json")
        self.assertEqual(done.returncode, expect, done.stderr)
        return {check["name"]: check for check in json.loads(done.stdout)["checks"]}

    def test_doctor_reads_the_unit(self):
        self.assertIn("copy deploy/site/systemd", self.doctor(1)["unit"]["means"])
        self.systemctl("start", "patchbay")
        checks = self.doctor(0)
        self.assertEqual({checks[name]["state"] for name in ("unit", "stop", "requeue", "allocated")}, {"ok"}, checks)
        self.drop_in("TimeoutStopSec=2\nSuccessExitStatus=\n")
        checks = self.doctor(0)
        self.assertEqual((checks["stop"]["state"], checks["stop"]["found"]), ("lacks", "TimeoutStopSec 2s, NotifyAccess all"))
        self.assertIn("SuccessExitStatus=75", checks["requeue"]["means"])

    def test_a_frozen_supervisor_is_replaced(self):
        self.systemctl("start", "patchbay")
        self.assertNotIn("UCX", self.said())
        programs = {"patchbay", "patchbay-supervisor", "patchbay-scheduler", "patchbay-agent", "patchbay-worker"}
        self.wait_for(lambda: set(self.site.processes().values()) == programs, "all programs")
        main, frozen = self.shown("MainPID"), self.program("patchbay-supervisor")
        start = time.monotonic()
        os.kill(frozen, signal.SIGSTOP)
        self.wait_for(lambda: self.shown("MainPID") not in (main, "0") and self.shown("ActiveState") == "active", "a new node", LONGEST_S)
        print(f"replaced after {time.monotonic() - start:.1f} s")
        self.assertEqual(self.shown("NRestarts"), "1")
        self.assertNotIn(frozen, self.site.processes())

    def test_a_stop_in_mid_ingest_drains_and_a_start_goes_on(self):
        self.site.run(PATCHBAY, "synth", "slide", "/srv/patchbay/a.svs", "--size", "6000x4000", user="patchbay")
        self.systemctl("start", "patchbay")
        job = self.patchbay("ingest", "/srv/patchbay/a.svs", "--out", "/srv/patchbay/stores", "--shard", 512, "--detach")["job"]
        done = lambda: self.patchbay("job", job)["tasks"]["done"]
        self.wait_for(lambda: done() >= 3, "some of the ingest")
        start = time.monotonic()
        self.systemctl("stop", "patchbay")
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual((self.shown("Result"), self.shown("ActiveState")), ("success", "inactive"))
        self.assertEqual(self.site.processes(), {})
        self.assertEqual(list(self.site.path("srv/patchbay/stores").glob("*.zarr")), [])
        self.systemctl("start", "patchbay")
        self.assertGreaterEqual(done(), 3)
        self.assertEqual(self.patchbay("wait", job)["state"], "done")
        store, = self.site.path("srv/patchbay/stores").glob("*.zarr")
        self.patchbay("verify", f"/srv/patchbay/stores/{store.name}")

    def test_a_further_node_joins_with_a_key_that_root_keeps(self):
        self.systemctl("start", "patchbay")
        self.patchbay("key", "new", "second", "--role", "worker", "--out", "/srv/patchbay/second.key")
        key = self.site.path("srv/patchbay/second.key").rename(self.site.path("etc/patchbay/second.key"))
        os.chown(key, 0, 0)
        self.systemctl("start", "patchbay-node@second")
        nodes = self.patchbay("status")["nodes"]
        self.assertEqual({node["name"]: node["state"] for node in nodes}["second"], "up")
        self.systemctl("stop", "patchbay-node@second")
        self.assertEqual(self.shown("Result", "patchbay-node@second"), "success")
        self.assertEqual(self.site.path("var/lib/patchbay-node/second").stat().st_mode & 0o777, 0o700)


if __name__ == "__main__":
    unittest.main(verbosity=2)
