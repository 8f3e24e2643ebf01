"""Cost of viewers of the dashboard over TLS: PATCHBAY_BIN=BUILD/bin python3 tests/bench/page_viewers.py [--viewers 50] [--seconds 20] [--rounds 3] [--streams 2]

Each viewer asks for the cluster every 2 s, as the page does. Kept: on a connection that it keeps, as browsers do where the server lets them.
Resumed: on a new connection each time, resuming its session. Afresh: with a whole handshake each time. Processor time of the scheduler less what
it uses without viewers, in turns; the goal is 2 % of a core."""
import argparse
import http.client
import pathlib
import ssl
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402
from metrics_cost import processor_s  # noqa: E402

PERIOD_S, GOAL = 2, 2.0


class Viewers(harness.Case):
    def runTest(self):
        pass

    def open(self, streams):
        pem, key, certificate = (self.folder / name for name in ("own.pem", "key.pem", "certificate.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", certificate], check=True, capture_output=True)
        pem.write_text(certificate.read_text() + key.read_text())
        pem.chmod(0o600)
        self.tls = ssl.create_default_context(cafile=certificate)
        self.port = harness.free_port()
        cluster = self.up(2, "--dashboard", self.port, "--tls", pem)
        store = self.store([self.slide("a.svs", size="1500x1500")])
        for _ in range(streams):
            self.start("stream", self.run_file(store, patch=64, batch=8), "--batches", 1_000_000, "--step-ms", 500)
        self.scheduler, = (pid for pid, name in harness.processes(cluster.pid).items() if name.startswith("patchbay-sch"))
        self.cookie = ""
        answer, _, _ = self.ask(self.connection(None), "POST", "/login", {"X-Patchbay": "1"})
        self.cookie = answer.headers["Set-Cookie"].split(";")[0]
        code = self.ask(self.connection(None), "GET", "/login")[1]["code"]
        assert self.command("dashboard", code).returncode == 0

    def connection(self, session):
        """An open connection that resumes `session`, if there is one."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=self.tls)
        http.client.HTTPConnection.connect(connection)
        connection.sock = self.tls.wrap_socket(connection.sock, server_hostname="localhost", session=session)
        return connection

    def ask(self, connection, method, path, headers=None):
        """The answer, its object, and the session that another connection may resume."""
        socket = connection.sock
        connection.request(method, path, headers={"Cookie": self.cookie, **(headers or {})})
        answer = connection.getresponse()
        session = socket.session  # before the last byte of an answer closes it
        return answer, harness.json.loads(answer.read()), session

    def view(self, how, begin, end, counts):
        session = connection = None
        at = begin
        while at < end:
            time.sleep(max(0, at - time.monotonic()))
            connection = connection or self.connection(session if how == "resumed" else None)
            counts["handshakes"] += not connection.sock.session_reused and not getattr(connection, "counted", False)
            connection.counted = True
            answer, _, session = self.ask(connection, "GET", "/cluster")
            counts["answers"] += answer.status == 200
            if connection.sock is None or how != "kept":
                connection.close()
                connection = None
            at += PERIOD_S
        if connection:
            connection.close()

    def window(self, how, viewers, seconds):
        """Processor seconds of the scheduler a second."""
        counts, begin = {"answers": 0, "handshakes": 0}, time.monotonic() + 0.5
        threads = [threading.Thread(target=self.view, args=(how, begin + PERIOD_S * i / viewers, begin + seconds, counts))
                   for i in range(viewers if how else 0)]
        for thread in threads:
            thread.start()
        time.sleep(max(0, begin - time.monotonic()))
        used = processor_s(self.scheduler)
        time.sleep(seconds)
        used = processor_s(self.scheduler) - used
        for thread in threads:
            thread.join()
        return used / seconds, counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--viewers", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--streams", type=int, default=2)
    options = parser.parse_args()
    viewers = Viewers()
    viewers.setUpClass()
    viewers.setUp()
    try:
        viewers.open(options.streams)
        found = {how: [] for how in ("kept", "resumed", "afresh")}
        for _ in range(options.rounds):
            idle, _ = viewers.window(None, 0, options.seconds)
            for how, shares in found.items():
                used, counts = viewers.window(how, options.viewers, options.seconds)
                shares.append(100 * (used - idle))
                print(f"{how}: {shares[-1]:.2f} % of a core beside {100 * idle:.2f} % without viewers; {counts}", flush=True)
        for how, shares in found.items():
            print(f"{options.viewers} viewers, {how}: {statistics.median(shares):.2f} % of a core (goal {GOAL} %)")
    finally:
        viewers.doCleanups()
        viewers.doClassCleanups()


if __name__ == "__main__":
    main()
