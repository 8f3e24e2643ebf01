"""Two teams on one cluster: nobody waits for another's ingest, and processor time is shared by weight. Run by root, the two
are two Unix users."""
import json
import statistics
import time

import harness
from harness import wait_until

SLIDES = 60
WINDOW_CORE_S = 40  # 20 s of two cores
LIMIT_S = 600  # on a machine whose cores others use, too: shares are of processor time
ANN, BOB = 40_001, 40_002
TEAMS = "teams:\n  path: {weight: 7}\n  rad: {weight: 3}\n"


class Shares(harness.Case):
    def core_seconds(self):
        rows = self.json("usage", "--by", "team")["rows"]
        return {row["team"]: 3600 * (row["core_hours"] + row["wasted_core_hours"]) for row in rows}

    def row_of(self, name):
        return next((row for row in self.json("jobs")["jobs"] if row["name"] == name), {})

    def patches_of(self, name):
        """Patches of the stream of that name so far."""
        return self.row_of(name).get("patches", {"made": 0})["made"]

    def core_seconds_of(self, job):
        rows = [row for row in self.json("usage", "--by", "job")["rows"] if row["job"] == job]
        return sum(3600 * (row["core_hours"] + row["wasted_core_hours"]) for row in rows)

    def ingest_seconds(self, slide, user, out):
        """Median time of an ingest of one slide."""
        times = []
        for again in range(3):
            began = time.monotonic()
            self.done(self.start("ingest", slide, "--out", user.home / f"{out}{again}", user=user))
            times.append(time.monotonic() - began)
        return statistics.median(times)

    def test_users_start_at_once_and_teams_share_70_to_30(self):
        slide, small = self.slide(), self.slide("small.svs", "700x600")
        slides = self.folder / "slides"
        slides.mkdir()
        for number in range(SLIDES):
            (slides / f"{number}.svs").write_bytes(slide.read_bytes() + bytes([number]))
        run = self.run_file(slide, patch=224)
        (self.folder / "teams.yaml").write_text(TEAMS, encoding="utf-8")
        cluster = self.up(2)
        applied = self.command("teams", "apply", self.folder / "teams.yaml")
        self.assertEqual(applied.returncode, 0, applied.stderr)
        ann, bob = self.member("ann", ANN, "--team", "path"), self.member("bob", BOB, "--team", "rad")
        ingest = self.start("ingest", slides, "--out", ann.home / "stores", "--chunk", 256, "--shard", 512, user=ann)
        wait_until(lambda: self.core_seconds().get("path", 0) > 1, "ann's ingest on all cores")

        small_s = self.ingest_seconds(small, bob, "beside")

        hungry = [self.start("stream", run, "--batches", 100_000, "--name", name, user=user)
                  for name, user in (("s1", ann), ("s2", bob), ("s3", bob))]
        hungry.append(self.start("stream", run, "--batches", 100_000, "--name", "slow", "--step-ms", 100, user=bob))
        wait_until(lambda: all(self.patches_of(name) for name in ("s1", "s2", "s3", "slow")), "batches beside the ingest", LIMIT_S)
        self.done(self.start("ingest", small, "--out", bob.home / "stores", user=bob))

        before = self.core_seconds()
        slow, began = self.row_of("slow")["job"], time.monotonic()
        spent_slow, wanted = self.core_seconds_of(slow), []
        digests = [self.start("stream", run, "--batches", 20, "--digest", "--json", user=user) for user in (ann, bob)]
        spent = {}

        def is_over():
            now = self.core_seconds()
            wanted.append(self.row_of("slow")["cores"]["wanted"])
            spent.update({team: now[team] - before[team] for team in ("path", "rad")})
            return sum(spent.values()) >= WINDOW_CORE_S
        wait_until(is_over, "20 s of two cores", LIMIT_S)
        cores_slow = (self.core_seconds_of(slow) - spent_slow) / (time.monotonic() - began)
        self.assertGreater(cores_slow, 0)
        self.assertLess(cores_slow, 1.3 * sum(wanted) / len(wanted), "a slow trainer has no more than it wants")
        self.assertIsNone(ingest.poll(), "the ingest was to last longer: the shares are of an idle cluster")
        self.assertAlmostEqual(spent["path"] / sum(spent.values()), 0.7, delta=0.05 * 0.7, msg=spent)

        beside = [json.loads(self.done(process))["digest"] for process in digests]
        for process in (*hungry, ingest):
            process.kill()
        for row in self.json("jobs")["jobs"]:
            self.command("cancel", row["job"])
        alone = self.json("stream", run, "--batches", 20, "--digest")["digest"]
        self.assertEqual(beside, [alone, alone])
        self.assertLess(small_s, 3 * self.ingest_seconds(small, bob, "alone"), "one slide beside another user's ingest")
        self.down(cluster)


if __name__ == "__main__":
    harness.main()
