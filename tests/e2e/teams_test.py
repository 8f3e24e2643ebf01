"""Teams: a policy is checked, applied, kept over restarts and shown; a member sees its own team alone."""
import pathlib

import harness
from harness import wait_until

WINDOW_CORE_S = 2
TEAMS = """half_life: 12h
teams:
  path: {guaranteed: {cores: 50%}, most: {cores: 2}, weight: 7}
  rad: {weight: 3}
"""


class Teams(harness.Case):
    def apply(self, text, *more):
        """The error of `teams apply`; empty: it holds."""
        file = self.folder / "teams.yaml"
        file.write_text(text, encoding="utf-8")
        done = self.command("teams", "apply", file, *more)
        self.assertIn(done.returncode, (0, 2))
        return done.stderr if done.returncode else ""

    def new_key(self, name, *more):
        key = self.folder / f"{name}.key"
        made = self.command("key", "new", name, "--role", "submitter", "--read", self.folder, "--write", self.folder, "--out", key, *more)
        self.assertEqual(made.returncode, 0, made.stderr)
        return key

    def rows(self, *words):
        return self.json(*words)["rows"]

    def test_a_policy_is_applied_and_members_see_their_team(self):
        slide = self.slide(size="600x500")
        cluster = self.up(1)
        checked = self.command("teams", "check", self.folder / "none.yaml")
        self.assertEqual(checked.returncode, 1)
        self.assertEqual(self.apply(TEAMS), "")
        ann, bob = self.new_key("ann", "--team", "path"), self.new_key("bob")
        self.assertEqual(self.command("key", "team", "bob", "rad").returncode, 0)
        for key, out in ((ann, "a"), (bob, "b")):
            done = self.command("ingest", slide, "--out", self.folder / out, "--cluster", key)
            self.assertEqual(done.returncode, 0, done.stderr)

        self.assertEqual({row["team"] for row in self.rows("usage", "--by", "team")}, {"path", "rad"})
        self.assertEqual([row["user"] for row in self.rows("usage", "--cluster", ann)], ["ann"])
        self.assertEqual({row["team"] for row in self.rows("teams", "show", "--cluster", bob)}, {"rad"})
        self.assertEqual({row["team"] for row in self.rows("teams", "show")}, {"path", "rad", "default"})
        self.assertEqual({job["submitter"]: job["team"] for job in self.json("jobs")["jobs"]}, {"ann": "path", "bob": "rad"})
        self.assertEqual({job["submitter"] for job in self.json("jobs", "--cluster", ann)["jobs"]}, {"ann"})
        refused = self.command("teams", "apply", self.folder / "teams.yaml", "--cluster", ann)
        self.assertEqual(refused.returncode, 1, refused.stdout)

        bad = self.apply("teams:\n  path: {wieght: 2}\n")
        self.assertIn("teams.yaml:2: unknown key 'teams.path.wieght'", bad)
        self.down(cluster)
        self.up(1)
        shown = self.json("teams", "show")
        self.assertEqual(shown["source"], TEAMS)
        self.assertEqual(shown["applied_by"], "operator")
        (path,) = [row for row in shown["rows"] if row["team"] == "path" and not row["user"]]
        self.assertEqual((path["guaranteed_cpu_millis"], path["most_cpu_millis"], path["weight_millis"]), (500, 2000, 7000))

    def test_a_stream_beyond_the_most_waits_until_another_ends(self):
        run = self.run_file(self.slide(size="600x500"), patch=100, batch=2)
        cluster = self.up(1)
        self.assertEqual(self.apply("teams: {path: {most: {streams: 1}}}\n"), "")
        ann = self.new_key("ann", "--team", "path")
        first = self.start("stream", run, "--batches", 100_000, "--cluster", ann)
        wait_until(lambda: self.json("jobs")["jobs"], "the first stream")
        refused = self.command("stream", run, "--batches", 1, "--cluster", ann, "--wait", 0)
        self.assertEqual(refused.returncode, 1, refused.stdout)
        self.assertIn("team path: it has as many streams as it may, with at most 1 ranks", refused.stderr)
        never = self.command("stream", run, "--batches", 1, "--cluster", ann, "--world-size", 2, "--rank", 0, "--name", "two")
        self.assertEqual(never.returncode, 1, never.stdout)
        self.assertIn("team path: it may have 1 ranks of streams, and the stream has 2", never.stderr)
        given_up = self.command("stream", run, "--batches", 1, "--cluster", ann, "--wait", 1)
        self.assertEqual(given_up.returncode, 1, given_up.stdout)
        self.assertIn("it was to wait for 1 second", given_up.stderr)
        second = self.start("stream", run, "--batches", 1, "--cluster", ann)
        wait_until(lambda: "not yet" in pathlib.Path(second.log).read_text(encoding="utf-8"), "the reason that the second waits")
        self.assertIn("teams.path.most.streams", pathlib.Path(second.log).read_text(encoding="utf-8"))
        rows = self.json("jobs")["jobs"]
        self.assertEqual([(row["state"], row["cause"]) for row in rows[:2]], [("queued", "cap_team"), ("cancelled", "")])
        self.assertEqual(self.json("why", rows[0]["job"])["cause"], "cap_team")
        self.assertEqual(self.command("cancel", rows[-1]["job"]).returncode, 0)
        self.done(second)
        first.wait()
        self.down(cluster)

    def core_seconds(self):
        return {row["team"]: 3600 * (row["core_hours"] + row["wasted_core_hours"]) for row in self.rows("usage", "--by", "team")}

    def test_trainers_share_processor_time_70_to_30(self):
        run = self.run_file(self.slide(), patch=224)
        self.up(1)
        self.assertEqual(self.apply(TEAMS), "")
        keys = [self.new_key("ann", "--team", "path"), self.new_key("bob", "--team", "rad")]
        for key in keys:
            self.start("stream", run, "--batches", 100_000, "--cluster", key)
        wait_until(lambda: min(self.core_seconds().get(team, 0) for team in ("path", "rad")) > 0.2, "both trainers")
        before, spent = self.core_seconds(), {}

        def is_over():
            spent.update({team: now - before[team] for team, now in self.core_seconds().items()})
            return sum(spent.values()) >= WINDOW_CORE_S
        wait_until(is_over, "two seconds of a core", 300)
        self.assertAlmostEqual(spent["path"] / sum(spent.values()), 0.7, delta=0.06, msg=spent)


if __name__ == "__main__":
    harness.main()
