"""Cost of metrics to a stream: PATCHBAY_BIN=BUILD/bin python3 tests/bench/metrics_cost.py [--windows N] [--seconds S] [--scrapes N] [--pairs N]

Three measures of the same thing, by processor time, as the machine may have other work; under five minutes with the defaults.
1. Windows of one stream, in turns with a page read each second and with none: processor seconds of all processes of the cluster and of the
   trainer for a thousand patches.
2. Scrapes in a row, beside as much time without one: processor time of the scheduler a scrape, and its share of the cluster's cores at one a second.
3. With --pairs: whole runs on a cluster without --metrics, and on one with it that is read each second."""
import argparse
import os
import pathlib
import re
import statistics
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
CORES, GOAL = 2, 0.5


def processor_s(pid):
    """Seconds of a process, and of the children that it has waited for."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    waited = sum(map(int, fields[13:15])) / TICKS
    own = sum(int((task / "schedstat").read_text().split()[0]) for task in pathlib.Path(f"/proc/{pid}/task").iterdir())
    return own / 1e9 + waited


def spread(values):
    """Two standard errors of the mean."""
    return 2 * statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")


class Cost(harness.Case):
    def runTest(self):
        pass

    def open(self, metrics):
        self.port = harness.free_port()
        self.cluster = self.up(CORES, *(("--metrics", self.port) if metrics else ()))
        self.store_path = getattr(self, "store_path", None) or self.store([self.slide("a.svs", size="3000x3000")])
        self.stream = self.start("stream", self.run_file(self.store_path, patch=256, batch=8), "--batches", 10_000_000)
        pids = harness.processes(self.cluster.pid)
        self.scheduler, = (pid for pid, name in pids.items() if name.startswith("patchbay-sch"))
        self.all = [self.cluster.pid, *pids, self.stream.pid, *harness.processes(self.stream.pid)]
        time.sleep(3)

    def close(self):
        self.stream.kill()
        self.down(self.cluster)

    def scrape(self):
        return urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10).read().decode()

    def patches(self):
        """By the page, which the windows of both kinds read at their ends."""
        return sum(map(float, re.findall(r"^patchbay_scheduler_stream_patches_total\{.*\} (\S+)$", self.scrape(), re.MULTILINE)))

    def read(self):
        return sum(map(processor_s, self.all))

    def window(self, seconds, scraped):
        """Processor seconds for a thousand patches."""
        made, spent = self.patches(), self.read()
        for _ in range(seconds):
            time.sleep(1)
            if scraped:
                self.scrape()
        spent = self.read() - spent
        return 1000 * spent / max(self.patches() - made, 1)

    def windows(self, count, seconds):
        ratios, plain = [], []
        for number in range(count):
            both = {scraped: self.window(seconds, scraped) for scraped in ((False, True) if number % 2 else (True, False))}
            plain.append(both[False])
            ratios.append(both[True] / both[False])
        more = 100 * (statistics.mean(ratios) - 1)
        print(f"{count} pairs of windows of {seconds} s: {statistics.median(plain):.3f} processor seconds for 1000 patches, "
              f"{more:+.2f} % +- {100 * spread(ratios):.2f} when read each second (goal {GOAL} %)", flush=True)

    def scrapes(self, count):
        used = lambda: processor_s(self.scheduler)
        extra, pages = [], []
        for _ in range(6):
            idle, begun = used(), time.monotonic()
            time.sleep(2)
            rate = (used() - idle) / (time.monotonic() - begun)
            busy, begun = used(), time.monotonic()
            for _ in range(count):
                pages.append(len(self.scrape()))
            extra.append((used() - busy - rate * (time.monotonic() - begun)) / count)
        each = statistics.median(extra)
        print(f"a scrape of {statistics.median(pages):.0f} bytes: {1e3 * each:.3f} ms of the scheduler, "
              f"at one a second {100 * each / CORES:.3f} % of {CORES} cores (goal {GOAL} %)", flush=True)

    def whole_run(self, metrics, seconds):
        """Processor seconds for a thousand patches, by the stream's own row in `jobs`."""
        self.open(metrics)
        count = lambda: self.json("jobs")["jobs"][0]["patches"]["made"]
        made, spent = count(), self.read()
        for _ in range(seconds):
            time.sleep(1)
            if metrics:
                self.scrape()
        spent, made = self.read() - spent, count() - made
        self.close()
        return 1000 * spent / max(made, 1)

    def whole_runs(self, pairs, seconds):
        ratios = []
        for pair in range(pairs):
            both = {metrics: self.whole_run(metrics, seconds) for metrics in ((False, True) if pair % 2 else (True, False))}
            ratios.append(both[True] / both[False])
            print(f"pair {pair + 1}: {both[False]:.3f} processor seconds for 1000 patches without a page, {both[True]:.3f} with one", flush=True)
        if ratios:
            print(f"{pairs} pairs of runs: {100 * (statistics.mean(ratios) - 1):+.2f} % +- {100 * spread(ratios):.2f} (goal {GOAL} %)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=12)
    parser.add_argument("--seconds", type=int, default=5, help="of a window, or a run of a pair")
    parser.add_argument("--scrapes", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=3)
    options = parser.parse_args()
    cost = Cost()
    cost.setUpClass()
    cost.setUp()
    try:
        cost.open(True)
        cost.windows(options.windows, options.seconds)
        cost.scrapes(options.scrapes)
        cost.close()
        cost.whole_runs(options.pairs, 2 * options.seconds)
    finally:
        cost.doCleanups()
        cost.doClassCleanups()


if __name__ == "__main__":
    main()
