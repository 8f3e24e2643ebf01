"""`patchbay retry` of an ingest: what was mended is stored, and what came after it is done again."""
import csv
import pathlib

import harness


class Retry(harness.Case):
    def rows(self, out):
        with open(out / "manifest.csv", newline="", encoding="utf-8") as file:
            return {row["source"]: row for row in csv.DictReader(file)}

    def test_mended_slides_are_stored_and_listed_and_the_job_ends_well(self):
        good = self.slide("good.svs", size="1500x1200", seed=1)
        truncated = self.slide("truncated.svs", size="1700x1300", seed=2)
        altered = self.slide("altered.svs", size="1900x1400", seed=3)
        whole = {path: path.read_bytes() for path in (truncated, altered)}
        truncated.write_bytes(whole[truncated][:100_000])
        half = len(whole[altered]) // 2
        altered.write_bytes(whole[altered][:half] + bytes(20_000) + whole[altered][half + 20_000:])
        cluster = self.up(2)
        out = self.folder / "out"
        row = self.json("ingest", good, truncated, altered, "--out", out, "--chunk", 256, "--shard", 512, "--codec",
                        "lz4", expect=3)
        self.assertEqual(len(row["failed"]), 2, row)
        self.assertEqual(list(self.rows(out)), [str(good)])
        self.assertTrue((out / "failed.csv").exists())

        # One of them only: the other goes on missing, and nothing of the first is made again.
        altered.write_bytes(whole[altered])
        self.assertGreater(self.json("retry", row["job"])["tasks"], 0)
        self.assertEqual(self.command("wait", row["job"]).returncode, 3)
        self.assertEqual(sorted(self.rows(out)), sorted([str(good), str(altered)]))

        # A scheduler that dies in between knows of the retry.
        truncated.write_bytes(whole[truncated])
        self.assertGreater(self.json("retry", row["job"])["tasks"], 0)
        self.kill(self.pids(cluster, "patchbay-scheduler")[0])
        result = self.command("wait", row["job"])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(self.rows(out)), sorted(map(str, (good, truncated, altered))))
        stores = sorted(out.glob("*.ome.zarr"))
        self.assertEqual(sorted(row["store"] for row in self.rows(out).values()), [path.name for path in stores])
        for store in stores:
            self.assertEqual(self.command("verify", store).returncode, 0)
        self.assertEqual(sorted(path.name for path in out.iterdir()), sorted([*(s.name for s in stores), "manifest.csv"]))
        self.assertEqual(self.json("retry", row["job"])["tasks"], 0)
        self.down(cluster)


if __name__ == "__main__":
    harness.main()
