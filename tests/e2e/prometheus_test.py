"""A real Prometheus (Debian's package, which is too large to install for this: without it the test is skipped) reads a real cluster: every
expression of the dashboard and of the alert rules has a series, and each alert fires for its cause. The rules are those of
deploy/site/monitoring with their times made short, and any record that waits for the disk as a long journal."""
import json
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import harness

MONITORING = pathlib.Path(__file__).resolve().parents[2] / "deploy/site/monitoring"
SCRAPED_S = 20
# The scheduler's clock is a minute ahead, and the disk takes 3 seconds for a file as long as the file exists.
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec* at) {
  int (*real)(clockid_t, struct timespec*) = dlsym(RTLD_NEXT, "clock_gettime");
  int done = real(clock, at);
  if (clock == CLOCK_REALTIME) at->tv_sec += 60;
  return done;
}
static void wait_for_disk(void) { if (access(getenv("SLOW_DISK"), F_OK) == 0) sleep(3); }
int fsync(int fd) { wait_for_disk(); return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd); }
int fdatasync(int fd) { wait_for_disk(); return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd); }
"""


def shortened(rules):
    """The rules with windows and patience of seconds."""
    rules = re.sub(r"\bfor: \w+", "for: 1s", rules)
    return re.sub(r"\[\d+m\]", "[6s]", rules).replace("waiting_records > 10000", "waiting_records > 0")


class Prometheus(harness.Case):
    def setUp(self):
        super().setUp()
        if not shutil.which("prometheus"):
            self.skipTest("prometheus is not here")
        self.metrics, self.port = harness.free_port(), harness.free_port()

    def watch(self, rules):
        """A Prometheus that reads the cluster each second."""
        (self.folder / "alerts.yml").write_text(rules)
        (self.folder / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": ["alerts.yml"],
            "scrape_configs": [{"job_name": "patchbay", "static_configs": [{"targets": [f"127.0.0.1:{self.metrics}"]}]}]}))
        with open(self.folder / "prometheus.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen(["prometheus", "--config.file", self.folder / "prometheus.yml", "--storage.tsdb.path",
                                        self.folder / "series", "--web.listen-address", f"127.0.0.1:{self.port}"], stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def ask(self, path, **query):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def series(self, expression):
        return self.ask("query", query=expression)["result"]

    def firing(self):
        try:
            return {alert["labels"]["alertname"] for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"}
        except urllib.error.URLError:
            return set()

    def await_alerts(self, *names):
        missing = set(names)
        harness.wait_until(lambda: missing.difference_update(self.firing()) or not missing, missing, 25)

    def shim(self):
        (self.folder / "shim.c").write_text(SHIM)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.folder / "shim.so", self.folder / "shim.c", "-ldl"], check=True)
        return {"LD_PRELOAD": str(self.folder / "shim.so"), "SLOW_DISK": str(self.folder / "slow")}

    def small_state(self):
        """--state on a disk with less room than the alert asks for."""
        return ("--state", self.small_disk("64m") / "state")

    def test_every_expression_has_a_series_and_every_alert_fires(self):
        up = self.start("up", "--cpus", 2, *self.listen, "--metrics", self.metrics, *self.small_state(), **self.shim())
        self.await_workers(up, 2)
        rules = (MONITORING / "alerts.yml").read_text()
        self.watch(shortened(rules))
        self.work()
        second = self.join_second()
        self.await_alerts("PatchbayClock", "PatchbayDiskFull", "PatchbayStreamStalls")
        self.assertFalse({"PatchbayAbsent", "PatchbayNodeLost", "PatchbayJournalLag"} & self.firing())
        for pid in (second.pid, *harness.processes(second.pid)):
            self.kill(pid)
        (self.folder / "slow").touch()
        self.start("ingest", self.folder / "slides", "--out", "more")
        self.await_alerts("PatchbayJournalLag")
        harness.wait_until(lambda: self.series("patchbay_scheduler_job_progress_ratio"), "an ingest that goes on", 20)
        self.start("node", "drain", platform.node(), "--reason", "test")
        harness.wait_until(lambda: self.series('patchbay_scheduler_nodes{state="draining"} + ignoring(state) '
                                               'patchbay_scheduler_nodes{state="drained"} > 0'), "a drained node", 20)
        (self.folder / "slow").unlink()
        self.await_alerts("PatchbayNodeLost", "PatchbayTrainerStarved")
        scraped = f"count_over_time(patchbay_scheduler_clock_seconds[1m]) >= {SCRAPED_S}"
        harness.wait_until(lambda: self.series(scraped), f"{SCRAPED_S} scrapes", 30)
        self.every_expression_has_a_series(rules)
        up.send_signal(signal.SIGKILL)
        for pid in harness.processes(up.pid):
            self.kill(pid)
        self.await_alerts("PatchbayAbsent")
        self.assertTrue(self.series("absent(patchbay_scheduler_clock_seconds)"))

    def work(self):
        """A slide that fails, and a stream whose trainer is faster than two workers."""
        (self.folder / "slides").mkdir()
        self.slide("slides/a.svs", size="900x700")
        (self.folder / "slides/b.svs").write_bytes(b"no slide at all")
        self.assertEqual(self.command("ingest", self.folder / "slides", "--out", "stores").returncode, 3)
        self.start("stream", self.run_file(self.folder / "stores", patch=64, batch=8), "--batches", 10_000_000)

    def join_second(self):
        made = self.command("key", "new", "second", "--role", "worker", "--read", self.folder, "--write", self.folder, "--out", "second.key")
        self.assertEqual(made.returncode, 0, made.stderr)
        join = self.start("join", "--key", "second.key", "--cpus", 1, PATCHBAY_HOME=str(self.folder / "home2"))
        harness.wait_until(lambda: len(self.series("patchbay_scheduler_node_up == 1")) == 2, "two nodes", 20)
        return join

    def every_expression_has_a_series(self, rules):
        board = json.loads((MONITORING / "dashboard.json").read_text())
        expressions = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
        # The figure of a rule counts, not whether it is over its limit now.
        expressions += [re.sub(r" [<>]=? \S+$| == 0\b", "", found) for found in re.findall(r"^ +expr: (.*)$", rules, re.MULTILINE)]
        self.assertGreater(len(expressions), 35)
        without = [found for found in expressions if not found.startswith("absent(") and not self.series(found)]
        self.assertEqual(without, [])


if __name__ == "__main__":
    harness.main()
