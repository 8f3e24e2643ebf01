"""Waits of a team for the cores that it is guaranteed: PATCHBAY_BIN=BUILD/bin python3 tests/bench/reclaim.py [--batches N] [--step-ms N]

A cluster of two cores, both guaranteed to one team and lent to another, whose stream takes all that there is. The
owner's trainer takes a batch at each step, which is longer than its batch takes: each time it comes back for cores that
it left. The scheduler's page counts the waits by their upper bounds. By wall time: nothing else may run."""
import argparse
import json
import pathlib
import re
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402

CORES = 2
TEAMS = f"reclaim_after: 2s\nteams:\n  owner: {{guaranteed: {{cores: {CORES}}}}}\n  other: {{}}\n"
BUCKET = re.compile(r'^patchbay_scheduler_reclaim_seconds_bucket\{le="(\S+)"\} (\S+)$', re.MULTILINE)


class Reclaim(harness.Case):
    def runTest(self):
        pass

    def open(self):
        self.port = harness.free_port()
        self.cluster = self.up(CORES, "--metrics", self.port)
        self.config = self.run_file(self.store([self.slide("a.svs", size="3000x3000")]), patch=256, batch=32)
        (self.folder / "teams.yaml").write_text(TEAMS)
        self.assertEqual(self.command("teams", "apply", self.folder / "teams.yaml").returncode, 0)
        self.owner = self.member("owner", 40_001, "--team", "owner")
        self.other = self.member("other", 40_002, "--team", "other")

    def waits(self):
        """Counts by upper bound in seconds, of all that took no longer."""
        page = urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10).read().decode()
        return [(float(bound), float(count)) for bound, count in BUCKET.findall(page)]

    def measure(self, batches, step_ms):
        hungry = self.start("stream", self.config, "--batches", 10_000_000, user=self.other)
        time.sleep(3)
        before = dict(self.waits())
        stream = self.start("stream", self.config, "--batches", batches, "--step-ms", step_ms, "--json", user=self.owner)
        stall = 100 * json.loads(stream.communicate()[0])["stall_fraction"]
        counts = [(bound, count - before[bound]) for bound, count in self.waits()]
        hungry.kill()
        total = counts[-1][1]
        print(f"{total:.0f} waits for a core in {batches} batches of {step_ms} ms, stall {stall:.2f} %")
        for bound, count in counts:
            print(f"  at most {bound:g} s: {100 * count / max(total, 1):.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--step-ms", type=int, default=500)
    options = parser.parse_args()
    case = Reclaim()
    case.setUpClass()
    case.setUp()
    try:
        case.open()
        case.measure(options.batches, options.step_ms)
    finally:
        case.doCleanups()
        case.doClassCleanups()


if __name__ == "__main__":
    main()
