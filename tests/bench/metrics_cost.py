"""Cost of metrics to a stream, in pairs of runs: PATCHBAY_BIN=BUILD/bin python3 tests/bench/metrics_cost.py [--pairs N] [--batches N]

Each pair streams the same batches without metrics, and with a page that is read each second (in changing order). Processor time of the
scheduler a second of the stream, and patches per second of processor time of the whole cluster: the machine may be busy with other work."""
import argparse
import os
import pathlib
import statistics
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")


def processor_s(pid):
    """Seconds of a process and the children that it has waited for."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / TICKS


class Cost(harness.Case):
    def runTest(self):
        pass

    def measure(self, batches, metrics):
        """(processor seconds of the scheduler a second, patches a processor second of the cluster)."""
        port = harness.free_port()
        up = self.up(2, *(("--metrics", port) if metrics else ()))
        pids = harness.processes(up.pid)
        scheduler, = (pid for pid, name in pids.items() if name.startswith("patchbay-sch"))
        read = lambda: (processor_s(scheduler), sum(map(processor_s, pids)))
        stream = self.start("stream", self.run_file(self.store_path, patch=256, batch=8), "--batches", batches)
        begun, before = time.monotonic(), read()
        while stream.poll() is None:
            if metrics:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read()
            time.sleep(1)
        took, after = time.monotonic() - begun, read()
        self.down(up)
        return (after[0] - before[0]) / took, 8 * batches / (after[1] - before[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--batches", type=int, default=2000)
    options = parser.parse_args()
    cost = Cost()
    cost.setUpClass()
    cost.setUp()
    try:
        cost.store_path = cost.store([cost.slide("a.svs", size="3000x3000")])
        ratios, extra = [], []
        for pair in range(options.pairs):
            both = {metrics: cost.measure(options.batches, metrics) for metrics in ((False, True) if pair % 2 else (True, False))}
            extra.append(both[True][0] - both[False][0])
            ratios.append(both[True][1] / both[False][1])
            print(f"pair {pair + 1}: scheduler {100 * both[False][0]:.2f} % of a core without, {100 * both[True][0]:.2f} % with; "
                  f"patches a processor second with : without {ratios[-1]:.4f}", flush=True)
        print(f"median: {100 * statistics.median(extra):.2f} % of a core more, throughput x {statistics.median(ratios):.4f}")
    finally:
        cost.doCleanups()
        cost.doClassCleanups()


if __name__ == "__main__":
    main()
