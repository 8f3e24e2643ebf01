"""Pages for other machines: TLS, the token of the metrics, who is refused, and malformed requests to every page of a cluster that works."""
import contextlib
import http.client
import multiprocessing
import os
import random
import re
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request

import harness

NAME = "pages.example"  # a name of the site's, which only its certificate knows
SECONDS = float(os.environ.get("PATCHBAY_MALFORMED_SECONDS", "1"))
HARD_SECONDS, READERS = 2, 3


def scrape_hard(port, ended):
    """Scrapes of a reader that asks again at once, until the file `ended` is there; an error unless each is the whole page."""
    count = 0
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        while not ended.exists():
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            head, _, page = connection.recv(1 << 16).partition(b"\r\n\r\n")
            length = re.search(rb"^HTTP/1.1 200 .*Content-Length: (\d+)", head, re.DOTALL)
            while length and len(page) < int(length[1]):
                piece = connection.recv(1 << 16)
                page, length = page + piece, piece and length
            if not length or not page.startswith(b"# HELP patchbay_scheduler_build_info") or not page.endswith(b"\n"):
                raise ValueError(f"after {count} scrapes: {head} {page[-200:]}")
            count += 1
    return count


class Pages(harness.Case):
    def setUp(self):
        super().setUp()
        self.pem, self.token = self.folder / "own.pem", self.folder / "token"
        key, certificate = self.folder / "key.pem", self.folder / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                        f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME},DNS:localhost,IP:127.0.0.1", "-keyout", key,
                        "-out", certificate], check=True, capture_output=True)
        self.pem.write_text(certificate.read_text() + key.read_text())
        self.pem.chmod(0o600)
        self.token.write_text("0123456789abcdef\n")
        self.token.chmod(0o600)
        self.tls = ssl.create_default_context(cafile=certificate)
        self.metrics, self.dashboard = harness.free_port(), harness.free_port()

    def get(self, port, path="/", host=None, token="0123456789abcdef", scheme="https"):
        """(status, text, headers)."""
        headers = {"Authorization": f"Bearer {token}"} | ({"Host": host} if host else {})
        request = urllib.request.Request(f"{scheme}://127.0.0.1:{port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10, context=self.tls if scheme == "https" else None) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, "", error.headers

    def test_other_machines_reach_pages_over_tls_alone(self):
        for flag, more, lacks in (("--metrics", (), "--tls"), ("--metrics", ("--tls", self.pem), "--metrics-token"),
                                  ("--metrics", ("--metrics-token", self.token), "--tls"), ("--dashboard", (), "--tls")):
            refused = self.command("up", "--cpus", 1, *self.listen, flag, "0.0.0.0:9178", *more)
            self.assertEqual((refused.returncode, f"without {lacks} FILE" in refused.stderr), (2, True), refused.stderr)
        self.up(1, "--metrics", f"0.0.0.0:{self.metrics}", "--dashboard", f"[::]:{self.dashboard}", "--tls", self.pem,
                "--metrics-token", self.token)
        status, text, _ = self.get(self.metrics, "/metrics")
        self.assertEqual((status, "patchbay_scheduler_build_info" in text), (200, True))
        self.assertEqual(self.get(self.metrics, "/metrics", token="0123456789abcdeF")[0], 401)
        for port, path in ((self.metrics, "/metrics"), (self.dashboard, "/")):
            self.assertEqual(self.get(port, path, host=f"{NAME}:{port}")[0], 200)
            for host in ("evil.example", f"x.{NAME}", "10.0.0.7"):
                self.assertEqual(self.get(port, path, host=host)[0], 403, host)
            with self.assertRaises(OSError):  # it is no TLS
                self.get(port, path, scheme="http")
        request = urllib.request.Request(f"https://127.0.0.1:{self.dashboard}/login", method="POST", headers={"X-Patchbay": "1"})
        with urllib.request.urlopen(request, timeout=10, context=self.tls) as answer:
            self.assertRegex(answer.headers["Set-Cookie"], "; HttpOnly; SameSite=Strict; Path=/; Secure$")
        self.a_connection_is_kept()
        exposed = self.command("doctor").stdout
        self.assertRegex(exposed, rf"other machines may reach .*0\.0\.0\.0:{self.metrics} \(metrics over TLS, by token\)")
        self.assertRegex(exposed, rf"\[::\]:{self.dashboard} \(dashboard over TLS\)")

    def a_connection_is_kept(self):
        """Browsers shake hands once, and not for each look."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.dashboard, timeout=10, context=self.tls)
        with contextlib.closing(connection):
            used = set()
            for path, status in (("/", 200), ("/login", 200), ("/cluster", 401), ("/x", 404)):
                connection.request("GET", path)
                answer = connection.getresponse()
                answer.read()
                self.assertEqual(answer.status, status)
                used.add(connection.sock.getsockname())
            self.assertEqual(len(used), 1)

    def test_a_certificate_or_token_that_others_can_read_starts_no_page(self):
        for file, flag in ((self.pem, "--tls"), (self.token, "--metrics-token")):
            file.chmod(0o640)
            refused = self.command("up", "--cpus", 1, *self.listen, "--metrics", self.metrics, flag, file)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("readable by others; chmod 600 it", refused.stderr)
            file.chmod(0o600)

    def test_malformed_requests_harm_nothing(self):
        self.up(2, "--metrics", self.metrics, "--dashboard", self.dashboard)
        store = self.store([self.slide("a.svs", size="900x700")])
        run = self.run_file(store, patch=64, batch=2)
        self.start("stream", run, "--batches", 1_000_000, "--step-ms", 5)
        harness.wait_until(self.patches, "patches of a stream", 20)
        before, size = self.patches(), self.scheduler_bytes()
        seed = random.randrange(1 << 32)
        threads = [threading.Thread(target=self.attack, args=(port, random.Random(seed + i)))
                   for i, port in enumerate((self.metrics, self.dashboard) * 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        harness.wait_until(lambda: self.patches() > before, f"further patches after seed {seed}", 10)
        self.assertEqual(self.get(self.dashboard, scheme="http")[0], 200)
        self.assertLess(self.scheduler_bytes() - size, 64 << 20, f"memory of the scheduler after seed {seed}")
        self.hard_scrapes_harm_nothing(run)

    def hard_scrapes_harm_nothing(self, run):
        """Readers ask as fast as they can: their pages are whole, and other streams are planned and made meanwhile."""
        size, end, ended = self.scheduler_bytes(), time.monotonic() + HARD_SECONDS, self.folder / "ended"
        with multiprocessing.Pool(READERS) as readers:
            counts = readers.starmap_async(scrape_hard, [(self.metrics, ended)] * READERS)
            self.assertEqual(self.json("stream", run, "--batches", 5)["patches"], 10)
            while time.monotonic() < end:
                self.assertEqual(self.json("stream", run, "--batches", 5)["patches"], 10)
            ended.touch()
            scrapes = sum(counts.get(timeout=60))
        print(f"{scrapes} scrapes in {time.monotonic() - end + HARD_SECONDS:.1f} s")
        self.assertGreater(scrapes, 600, "an answer does not wait for a delayed acknowledgement")
        self.assertLess(self.scheduler_bytes() - size, 16 << 20, f"memory of the scheduler after {scrapes} scrapes")

    def attack(self, port, dice):
        good = b"GET /metrics?a HTTP/1.1\r\nHost: localhost\r\nCookie: patchbay_session=0; a=b\r\nAuthorization: Bearer x\r\n\r\n"
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            request = bytearray(good)
            for _ in range(dice.randrange(1, 9)):
                at, kind = dice.randrange(len(request)), dice.randrange(4)
                if kind == 0:
                    request[at] = dice.randrange(256)
                elif kind == 1:
                    del request[at:at + dice.randrange(1, 9)]
                elif kind == 2:
                    request[at:at] = request[:dice.randrange(len(request))]
                else:
                    request[at:at] = bytes([dice.randrange(256)]) * dice.choice((1, 100, 20_000))
                request = request or bytearray(good)
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                    connection.sendall(request)
                    if dice.randrange(2):
                        connection.shutdown(socket.SHUT_WR)
                        connection.recv(4096)
            except OSError:
                pass  # it hung up

    def patches(self):
        _, text, _ = self.get(self.metrics, "/metrics", scheme="http")
        return sum(map(float, re.findall(r"^patchbay_scheduler_stream_patches_total\{.*\} (\S+)$", text, re.MULTILINE)))

    def scheduler_bytes(self):
        _, text, _ = self.get(self.metrics, "/metrics", scheme="http")
        return float(re.search(r"^patchbay_scheduler_memory_bytes (\S+)$", text, re.MULTILINE)[1])


if __name__ == "__main__":
    harness.main()
