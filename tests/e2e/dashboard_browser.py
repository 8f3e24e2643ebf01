"""The dashboard's page in a headless Chromium; without one it is skipped. By hand, for pictures: --pictures FOLDER

A server of this script's gives it 200 streams, one of which stalls, and 10,000 jobs, under the scheduler's own headers. At 1280 and 390
pixels, light and dark: nothing is logged as an error, nothing is asked elsewhere, the stalled stream, its stage and its node are seen
without scrolling, every text has a contrast of 4.5, every button is reached by Tab, the page is no wider than the screen, and all jobs are
rendered within a second."""
import argparse
import base64
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "scheduler/dashboard"
FILES = {"/": ("page.html", "text/html"), "/page.css": ("page.css", "text/css"), "/page.js": ("page.js", "text/javascript")}
SKIPPED = 77  # as CTest knows it
SIZES = ((1280, 800), (390, 844))
KINDS = ("ingest", "map", "spectra", "labels")
CONTRAST = """(() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const back = channels(getComputedStyle(e).backgroundColor);
      if (back.length < 4 || back[3] > 0) return back;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.getClientRects().length) continue;
    const [a, b] = [light(channels(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) poor.push(element.tagName + " " + element.textContent.slice(0, 30));
  }
  return poor.slice(0, 5);
})()"""


def large_cluster():
    now = int(time.time())
    streams = [{"job": i, "name": f"run-{i}", "by": "ann", "rate": 480 + i, "stalled": 870 if i == 77 else i % 30, "hour": [
        (400 if i == 77 else 3), 40, 20, 10, 530 if i == 77 else 927], "stage": "storage" if i == 77 else "transform",
        "node": "node-17" if i == 77 else "node-3", "waits": "", "held": False, "unattended": False, "made": 100} for i in range(1, 201)]
    jobs = []
    for i in range(201, 10_201):
        state = ("running", "queued", "done", "partly failed")[min(i % 40, 3)]
        ended = state in ("done", "partly failed")
        jobs.append({"job": i, "kind": KINDS[i % 4], "name": f"cohort-{i}", "by": "ben", "state": state, "tasks": 90, "done": i % 90,
                     "failed": 2 if state == "partly failed" else 0, "at": now - 4000 - i, "end": now - i if ended else 0}
                    | ({} if ended else {"cause": "share" if state == "queued" else "", "cores": [2000, 8000], "weight": [i % 90, 90]}))
    nodes = [{"node": f"node-{i}", "state": "suspect" if i == 9 else "up", "cores": 16, "workers": 16, "busy": 11, "gpus": i % 2, "why": ""}
             for i in range(1, 25)]
    why = "read chunk: store 3/0/c/1/2/0: crc32c mismatch (stored 9ae3c1f0, computed 11c27d08)"
    return {"now": now, "viewer": "operator", "free": 3 << 37, "nodes": nodes, "streams": streams, "jobs": jobs,
            "teams": [{"team": f"team-{i}", "guaranteed": 32000 * (i % 2), "most": 0, "wanted": 64000, "held": 28000,
                       "hour": [1000 * ((j * i) % 64) for j in range(60)]} for i in range(1, 6)],
            "slides": [{"job": 207, "slide": i, "pseudonym": f"{0x5D0C2B9E71A0 + i:016x}", "why": "open slide: slide 3: it is no slide"} for i in range(6)],
            "failures": [{"job": 77, "at": now - 60 * i, "text": "shard failed", "why": why} for i in range(1, 6)]}


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        text = (ROOT / "scheduler/http/http_listener.cc").read_text()
        policy = re.search(r'kSafeguards =(.*?);\n', text, re.DOTALL)[1]
        headers = "".join(re.findall(r'"(.*?)"', policy)).replace("\\r\\n", "\n")
        self.safeguards = [line.split(": ", 1) for line in headers.splitlines() if line]
        self.cluster = json.dumps(large_cluster())


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/icon.svg":
            return self.give('<svg xmlns="http://www.w3.org/2000/svg"/>', "image/svg+xml")
        if self.path in FILES:
            name, kind = FILES[self.path]
            return self.give((PAGE / name).read_text(), kind)
        return self.give(self.server.cluster if self.path == "/cluster" else '{"code": "", "user": "operator"}', "application/json")

    def give(self, text, kind):
        body = text.encode()
        self.send_response(200)
        for name, value in (*self.server.safeguards, ("Content-Type", kind), ("Content-Length", len(body))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Chromium:
    """A browser that is spoken to over two pipes."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="patchbay-chromium-")
        to_read, self.to = os.pipe()
        self.answers, to_write = os.pipe()
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars",
                   "--disable-background-networking", f"--user-data-dir={self.profile.name}", "about:blank"]
        shell = f"exec 3<&{to_read} 4>&{to_write}; exec \"$@\""
        self.process = subprocess.Popen(["bash", "-c", shell, "bash", *command], pass_fds=(to_read, to_write), stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.number, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def receive(self):
        while b"\0" not in self.buffer:
            piece = os.read(self.answers, 1 << 20)
            if not piece:
                raise SystemExit("chromium has ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters} | ({"sessionId": self.session} if self.session else {})
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise SystemExit(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, expression, limit_s=30):
        end = time.monotonic() + limit_s
        while not self.value(expression):
            if time.monotonic() > end:
                raise SystemExit(f"not within {limit_s} s: {expression}")
            time.sleep(0.05)

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.profile.cleanup()


def faults_of(browser, url, width, height):
    """Every rule that the page breaks on this screen."""
    for event in browser.events:
        method, about = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown" or (method == "Log.entryAdded" and about["entry"]["level"] == "error"):
            yield f"logged: {json.dumps(about)[:300]}"
        if method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning"):
            yield f"console: {json.dumps(about)[:300]}"
        if method == "Network.requestWillBeSent" and not about["request"]["url"].startswith(url):
            yield f"asked elsewhere: {about['request']['url']}"
    row = browser.value("(() => { const r = document.querySelector('#streams tbody tr'); "
                        "return [r.innerText, r.getBoundingClientRect().bottom, [...r.cells].slice(0, 3).at(-1).getBoundingClientRect().right]; })()")
    if not all(word in row[0] for word in ("77", "87 %", "storage on node-17")) or row[1] > height or row[2] > width:
        yield f"the stalled stream, its stage and its node are not on the first screen: {row}"
    if browser.value("document.documentElement.scrollWidth") > width:
        yield "the page is wider than the screen"
    yield from (f"poor contrast: {text}" for text in browser.value(CONTRAST))
    reached = set()
    for _ in range(12):
        for kind in ("keyDown", "keyUp"):
            browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        reached.add(browser.value("document.activeElement.id"))
    wanted = set(browser.value("[...document.querySelectorAll('button:not([hidden]):not(:disabled)')].map((button) => button.id)"))
    yield from (f"Tab does not reach {button}" for button in wanted - reached)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=pathlib.Path)
    pictures = parser.parse_args().pictures
    if not shutil.which("chromium"):
        print("skipped: chromium is not here")
        raise SystemExit(SKIPPED)
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url, faults = f"http://127.0.0.1:{server.server_address[1]}/", []
    browser = Chromium()
    print("browser:", browser.call("Browser.getVersion")["product"])
    for width, height in SIZES:
        for scheme in ("light", "dark"):
            browser.events.clear()
            browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 700)
            browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            browser.call("Page.navigate", url=url)
            browser.until("document.querySelectorAll('#jobs tbody tr').length > 0")
            if pictures:
                picture = browser.call("Page.captureScreenshot", format="png")["data"]
                (pictures / f"dashboard-{width}-{scheme}.png").write_bytes(base64.b64decode(picture))
            found = list(faults_of(browser, url, width, height))
            faults += [f"{width} {scheme}: {fault}" for fault in found]
    render = ("(async () => { const begun = performance.now(); const cluster = JSON.parse(await (await fetch('cluster')).text()); "
              "showCluster(cluster); document.body.getBoundingClientRect(); await new Promise(requestAnimationFrame); "
              "const took = performance.now() - begun, heading = document.querySelector('#jobs caption').innerText; "
              "for (let next; (next = document.getElementById('jobs-Next')) && !next.disabled;) next.click(); "
              "return [took, heading, document.querySelector('#jobs p').innerText]; })()")
    milliseconds, heading, last = min(browser.value(render) for _ in range(3))
    print(f"{heading} asked for and rendered in {milliseconds:.0f} ms, the last page: {last}; {len(server.cluster)} bytes of JSON")
    if milliseconds > 1000 or heading != "Jobs (10000)" or "9951 to 10000 of 10000" not in last:
        faults.append(f"10,000 jobs took {milliseconds:.0f} ms, or are not all there")
    browser.close()
    print("\n".join(faults) or "no faults")
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    main()
