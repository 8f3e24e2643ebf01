"""`top` and the dashboard of a real cluster: what they show, to whom, and what a hostile browser gets."""
import fcntl
import hashlib
import hmac
import http.client
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time

import harness

SECRET = "Mustermann"  # in the names of a run and a slide
PAGE = harness.pathlib.Path(__file__).resolve().parents[2] / "scheduler/dashboard"
STAGES = ("storage", "decode", "transform", "transfer")


class Browser:
    """Answers of the dashboard, with a jar for its one cookie."""

    def __init__(self, port):
        self.port, self.cookie = port, None

    def ask(self, path, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, headers={"Cookie": self.cookie or ""} | {k.replace("_", "-"): v for k, v in headers.items()})
            answer = connection.getresponse()
            answer.text = answer.read().decode()
        finally:
            connection.close()
        set_cookie = answer.headers.get("Set-Cookie")
        if set_cookie:
            self.cookie = set_cookie.split(";")[0]
        return answer

    def json(self, path, method="GET", **headers):
        return harness.json.loads(self.ask(path, method, **headers).text)

    def login(self):
        return self.json("/login", "POST", X_Patchbay="1")["code"]


class Dashboard(harness.Case):
    def test_a_browser_sees_what_its_key_may_see(self):
        self.port = harness.free_port()
        self.up(2, "--dashboard", self.port)
        store = self.store([self.slide(f"{SECRET}.svs", size="1500x1500")])
        run = self.run_file(store, patch=64, batch=8)
        self.start("stream", run, "--batches", 100_000, "--name", SECRET)
        self.start("stream", run, "--batches", 100_000, "--step-ms", 400, "--name", "slow-trainer")
        self.assertEqual(self.command("key", "new", "anna", "--role", "submitter", "--read", store, "--out", "anna.key").returncode, 0)
        self.files_are_small_and_safe()
        browser = self.sign_in()
        self.failed_slides_by_pseudonym(browser)
        self.members_see_their_own(browser)
        streams = harness.wait_until(lambda: self.stalled(browser), "a stream that stalls, its stage and node", 20)
        self.top_shows_the_same(streams)
        self.hostile_browsers_get_nothing(browser)

    def files_are_small_and_safe(self):
        browser, total = Browser(self.port), 0
        for path in ("/", "/page.css", "/page.js", "/icon.svg"):
            answer = browser.ask(path)
            self.assertEqual(answer.status, 200)
            self.assertRegex(answer.headers["Content-Security-Policy"], r"^default-src 'self'; .*frame-ancestors 'none'")
            self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")
            text = answer.text.replace("http://www.w3.org/2000/svg", "")
            self.assertNotIn("//" if path == "/" else "http", text, "nothing of another server")
            if path.startswith("/page"):
                self.assertEqual(answer.text, (PAGE / path[1:]).read_text())
            total += len(answer.text)
        self.assertLess(total, 200_000)

    def sign_in(self):
        browser = Browser(self.port)
        self.assertEqual(browser.json("/login"), {"code": "", "user": ""})
        self.assertEqual(browser.ask("/login", "POST").status, 403, "the form of another site")
        answer = browser.ask("/login", "POST", X_Patchbay="1")
        code = harness.json.loads(answer.text)["code"]
        for word in ("HttpOnly", "SameSite=Strict", "Path=/"):
            self.assertIn(word, answer.headers["Set-Cookie"])
        self.assertNotIn(code, browser.cookie)
        self.assertEqual(browser.ask("/cluster").status, 401)
        wrong = self.command("dashboard", "AAAA-AAAA")
        self.assertEqual((wrong.returncode, "no browser shows" in wrong.stderr), (1, True), wrong.stderr)
        self.assertEqual(self.command("dashboard", code).returncode, 0)
        self.assertEqual(self.command("dashboard", code).returncode, 1, "a code is for once")
        self.assertEqual(browser.json("/login"), {"code": "", "user": "operator"})
        return browser

    def stalled(self, browser):
        streams = {stream["name"]: stream for stream in browser.json("/cluster")["streams"]}
        fast, slow = streams.get(SECRET), streams.get("slow-trainer")
        known = fast and slow and fast["stage"] in STAGES and fast["rate"] > 0
        return streams if known and fast["stalled"] > max(100, slow["stalled"]) else None

    def top_shows_the_same(self, streams):
        stalled = streams[SECRET]
        self.assertTrue(stalled["node"])
        self.assertEqual(len(stalled["hour"]), 5)
        lines = self.command("top", "--once").stdout.splitlines()
        self.assertRegex(lines[0], r"^nodes 1/1 up   workers \d/2 busy   journal's disk \S+ \wiB free$")
        self.assertRegex(lines[1], r"^streams 2, \d stalled   jobs 0 running, ")
        heading = next(i for i, line in enumerate(lines) if line.split()[:2] == ["stream", "patches/s"])
        self.assertRegex(lines[heading + 1], rf"^ *{stalled['job']} .* on {stalled['node']} .*{SECRET}$")
        rows = {row["name"]: row for row in self.json("top")["jobs"]}
        self.assertEqual(rows[SECRET]["course"]["node"], stalled["node"])
        self.assertIn(rows[SECRET]["course"]["stage"], STAGES)
        for words in (("job", stalled["job"]), ("logs", stalled["job"])):
            self.assertRegex(self.command(*words).stdout, rf"patches/s, stalled for .*, now \d+ % of the time, most work in \w+ on node {stalled['node']}")
        self.frames_fit_the_terminal()

    def frames_fit_the_terminal(self):
        """Every frame fits, and a terminal of another size is drawn anew."""
        main, terminal = pty.openpty()
        resize = lambda rows, columns: fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        resize(24, 80)
        process = subprocess.Popen([str(harness.BIN / "patchbay"), "top"], cwd=self.folder, env=self.environment(),
                                   stdin=terminal, stdout=terminal, stderr=terminal)
        self.addCleanup(process.kill)
        text = ""
        for rows, columns in ((24, 80), (10, 100)):
            resize(rows, columns)
            begun = len(text)
            end = time.monotonic() + 10
            while not self.frames(text[begun:], rows, columns) and time.monotonic() < end:
                text += os.read(main, 65536).decode()
            frames = self.frames(text[begun:], rows, columns)
            self.assertTrue(frames, f"no frame of {rows} lines in {text[begun:]!r}")
            self.assertIn("nodes 1/1 up", frames[-1])
            self.assertEqual("more" in frames[-1], rows == 10, "only a low screen is cut")
        process.send_signal(signal.SIGINT)
        while "\x1b[?1049l" not in text:
            text += os.read(main, 65536).decode()
        self.assertEqual(process.wait(timeout=10), 0)
        self.assertEqual((text.count("\x1b[?1049h"), text.count("\x1b[2J")), (1, 0), "one screen, which is never cleared")
        os.close(main)
        os.close(terminal)

    @staticmethod
    def frames(text, rows, columns):
        """Whole frames that fit a terminal of this size."""
        whole = [frame.split("\x1b[J")[0] for frame in text.split("\x1b[H")[1:] if "\x1b[J" in frame]
        lines = [[line.replace("\x1b[K", "").strip("\r") for line in frame.split("\n")] for frame in whole]
        return ["\n".join(frame) for frame in lines if len(frame) <= rows and max(map(len, frame)) <= columns]

    def failed_slides_by_pseudonym(self, browser):
        """A damaged slide has, on the page and in `job`, the name that its store would have; never its own."""
        source = self.folder / f"{SECRET}-damaged.svs"
        whole = self.slide("whole.svs", size="1500x1500")
        source.write_bytes(whole.read_bytes()[:9000])
        refused = self.command("ingest", source, "--out", self.folder / "failed")
        self.assertNotEqual(refused.returncode, 0)
        slides = harness.wait_until(lambda: browser.json("/cluster")["slides"], "a failed slide", 10)
        row, key = slides[0], (self.home / "pseudonym.key").read_bytes().strip()
        content = hashlib.sha256(source.read_bytes()).hexdigest().encode()
        self.assertEqual(row["pseudonym"], hmac.new(key, content, "sha256").hexdigest()[:16])
        for secret in (SECRET, str(self.folder)):
            self.assertNotIn(secret, harness.json.dumps(slides))
        shown = self.command("job", row["job"])
        self.assertRegex(shown.stdout, rf"slide 0.* \({row['pseudonym']}\): .*{SECRET}-damaged")

    def members_see_their_own(self, operator):
        member = Browser(self.port)
        admitted = self.command("--cluster", "anna.key", "dashboard", member.login())
        self.assertEqual(admitted.returncode, 0, admitted.stderr)
        text = member.ask("/cluster").text
        seen = harness.json.loads(text)
        self.assertEqual((seen["viewer"], seen["streams"], seen["jobs"], seen["failures"], seen["slides"]), ("anna", [], [], [], []))
        self.assertEqual([node["state"] for node in seen["nodes"]], ["up"])
        for name in (SECRET, "slow-trainer", "operator"):
            self.assertNotIn(name, text)
        self.assertIn(SECRET, operator.ask("/cluster").text)
        team, = harness.wait_until(lambda: [team for team in operator.json("/cluster")["teams"] if team["held"]], "cores of a team", 20)
        self.assertEqual((team["team"], len(team["hour"])), ("default", 1))
        self.assertEqual(self.command("key", "revoke", "anna").returncode, 0)
        self.assertEqual(member.ask("/cluster").status, 401, "a key that was revoked")
        self.assertEqual(operator.ask("/cluster").status, 200)

    def hostile_browsers_get_nothing(self, browser):
        for host in ("evil.example", "10.0.0.7", "localhost.evil.example"):
            self.assertEqual(browser.ask("/cluster", Host=host).status, 403, host)
        for path in ("/x", "/../../etc/passwd", "/%2e%2e/etc/passwd", "/page.js/"):
            self.assertEqual(browser.ask(path).status, 404, path)
        for path in ("/", "/cluster"):
            self.assertEqual(browser.ask(path, "POST").status, 405, path)
        stolen = Browser(self.port)
        stolen.cookie = "patchbay_session=" + "0" * 64
        self.assertEqual(stolen.ask("/cluster").status, 401)
        for _ in range(300):
            Browser(self.port).login()
        self.assertEqual(browser.ask("/cluster").status, 200, "logins of others do not end this one's")
        browser.login()
        self.assertEqual(browser.ask("/cluster").status, 401, "it has signed out")

    def test_places_and_clusters_without_one_are_refused(self):
        for flag in ("--dashboard", "--metrics"):
            refused = self.command("up", "--cpus", 1, *self.listen, flag, "x")
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertTrue(flag in refused.stderr and "[ADDR:]PORT" in refused.stderr, refused.stderr)
        self.up(1)
        refused = self.command("dashboard", "AAAA-AAAA")
        self.assertEqual((refused.returncode, "up --dashboard" in refused.stderr), (1, True), refused.stderr)


if __name__ == "__main__":
    harness.main()
