"""Cost of metrics to a stream: PATCHBAY_BIN=BUILD/bin python3 tests/bench/metrics_cost.py [--windows N] [--seconds S] [--scrapes N] [--pairs N]

Three measures of the same thing; under five minutes with the defaults. The first two go by processor time, as the machine may have other work;
for the third it should have none.
1. Windows of one stream, in turns with a page read each second and with none: processor seconds of all processes of the cluster and of the
   trainer for a thousand patches.
2. Scrapes in a row, beside as much time without one: processor time of the scheduler a scrape, and its share of the cluster's cores at one a second.
3. With --pairs: whole streams, in turns on a cluster with --metrics that is read each second and on one without: the ratio of their throughput
   and of the processor time of all processes, median and quartiles, and what the scheduler, the one process that makes and serves the page,
   takes more of the cluster's cores. `--windows 0 --scrapes 0 --pairs 20` takes this measure alone."""
import argparse
import os
import pathlib
import re
import resource
import statistics
import sys
import threading
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


def spread_of(ratios):
    """Median and quartiles."""
    low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    return f"{middle:.4f} ({low:.4f} to {high:.4f})"


class Cost(harness.Case):
    def runTest(self):
        pass

    def open_cluster(self, metrics):
        self.port = harness.free_port()
        self.cluster = self.up(CORES, *(("--metrics", self.port) if metrics else ()))
        self.store_path = getattr(self, "store_path", None) or self.store([self.slide("a.svs", size="3000x3000")])

    def open(self, metrics):
        self.open_cluster(metrics)
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
        if count == 0:
            return
        ratios, plain = [], []
        for number in range(count):
            both = {scraped: self.window(seconds, scraped) for scraped in ((False, True) if number % 2 else (True, False))}
            plain.append(both[False])
            ratios.append(both[True] / both[False])
        more = 100 * (statistics.mean(ratios) - 1)
        print(f"{count} pairs of windows of {seconds} s: {statistics.median(plain):.3f} processor seconds for 1000 patches, "
              f"{more:+.2f} % +- {100 * spread(ratios):.2f} when read each second (goal {GOAL} %)", flush=True)

    def scrapes(self, count):
        if count == 0:
            return
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

    def whole_stream(self, metrics, batches):
        """Patches a second, processor seconds of the cluster and the trainer, and the scheduler's percentage of the cores, of a stream from its
        start to its end."""
        self.open_cluster(metrics)
        trainers = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        ended, reader = threading.Event(), None
        if metrics:
            reader = threading.Thread(target=lambda: [self.scrape() for _ in iter(lambda: ended.wait(1), True)])
            reader.start()
        pids = harness.processes(self.cluster.pid)
        scheduler, = (pid for pid, name in pids.items() if name.startswith("patchbay-sch"))
        self.all = [self.cluster.pid, *pids]
        spent, turns, begun = self.read() + trainers(), processor_s(scheduler), time.monotonic()
        made = self.json("stream", self.run_file(self.store_path, patch=256, batch=8), "--batches", batches)
        spent = self.read() + trainers() - spent
        turns = 100 * (processor_s(scheduler) - turns) / (time.monotonic() - begun) / CORES
        ended.set()
        if reader:
            reader.join()
        self.down(self.cluster)
        return made["patches_per_s"], spent, turns

    def whole_streams(self, pairs, seconds):
        if pairs == 0:
            return
        rate, _, _ = self.whole_stream(False, 200)
        batches = max(int(rate * seconds / 8), 50)
        rates, costs, more = [], [], []
        for pair in range(pairs):
            found = {metrics: self.whole_stream(metrics, batches) for metrics in ((False, True) if pair % 2 else (True, False))}
            (plain_rate, plain_s, plain_turns), (rate, spent, turns) = found[False], found[True]
            rates.append(rate / plain_rate)
            costs.append(spent / plain_s)
            more.append(turns - plain_turns)
            print(f"pair {pair + 1}: {plain_rate:.0f} patches/s without a page and {rate:.0f} with one, {plain_s:.2f} and {spent:.2f} processor seconds",
                  flush=True)
        for what, ratios in (("throughput", rates), ("processor time", costs)):
            print(f"{pairs} pairs of streams of {batches} batches: {what} {spread_of(ratios)} of that without a page (goal {GOAL} %)")
        print(f"the scheduler with a page: {spread_of(more)} % more of {CORES} cores (goal {GOAL} %)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=12)
    parser.add_argument("--seconds", type=int, default=5, help="of a window; a stream of a pair takes twice as long")
    parser.add_argument("--scrapes", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=3)
    options = parser.parse_args()
    cost = Cost()
    cost.setUpClass()
    cost.setUp()
    try:
        if options.windows or options.scrapes:
            cost.open(True)
            cost.windows(options.windows, options.seconds)
            cost.scrapes(options.scrapes)
            cost.close()
        cost.whole_streams(options.pairs, 2 * options.seconds)
    finally:
        cost.doCleanups()
        cost.doClassCleanups()


if __name__ == "__main__":
    main()
