"""Usage: what the ledger charges for an ingest and a stream is the processor time of the processes that worked."""
import csv
import io
import os
import pathlib

import harness
from harness import wait_until

TICKS = os.sysconf("SC_CLK_TCK")
CONTROL_S = 0.2  # connections, plans and messages of two workers are of no job


def processor_seconds(pids):
    """User and system time of processes and their threads."""
    total = 0
    for pid in pids:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        fields = stat[stat.rindex(")") + 2:].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


class Usage(harness.Case):
    def rows(self, by="job", *more):
        return self.json("usage", "--by", by, *more)["rows"]

    def charged(self):
        return sum(row["core_hours"] + row["wasted_core_hours"] for row in self.rows()) * 3600

    def test_the_sum_over_jobs_is_what_the_workers_used(self):
        slide = self.slide(size="6000x4000")
        up = self.up(2)
        workers = [pid for pid, program in harness.processes(up.pid).items() if program == "patchbay-worker"]
        self.assertEqual(len(workers), 2)
        idle = processor_seconds(workers)
        stores = self.store([slide])
        result = self.json("stream", self.run_file(stores, patch=224, batch=64), "--batches", 24)
        self.assertEqual(result["batches"], 24)
        # Shards of the last batches that are told after the stream's end do not count.
        delivered = 20 * 64 * 224 * 224 * 3 * 2 / 1e9

        def reported():
            used, charged = processor_seconds(workers) - idle, self.charged()
            return abs(used - charged) <= 0.05 * used + CONTROL_S and sum(row["gb_delivered"] for row in self.rows()) >= delivered
        wait_until(reported, "charges within 5 % of the workers' processor time, and all bytes delivered", 5)

        ingest, stream = self.rows()
        self.assertEqual((ingest["job"], stream["job"]), (1, 2))
        self.assertGreater(ingest["gb_read"], 0)
        self.assertGreaterEqual(stream["gb_delivered"], delivered)
        (user,) = self.rows("user", "--since", "1h")
        self.assertAlmostEqual(user["core_hours"], ingest["core_hours"] + stream["core_hours"], places=9)
        table = list(csv.DictReader(io.StringIO(self.command("usage", "--by", "job", "--csv").stdout)))
        self.assertEqual([row["job"] for row in table], ["1", "2"])
        self.assertAlmostEqual(float(table[1]["core_hours"]), stream["core_hours"], places=6)

        before = self.rows()
        self.down(up)
        self.up(2)
        self.assertEqual(self.rows(), before)


if __name__ == "__main__":
    harness.main()
