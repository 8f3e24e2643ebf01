"""Two Unix users on one cluster of a third: each with a home, a key and files of its own, at the same time."""
import json
import os
import subprocess

import harness
from harness import BIN

ANN, BOB = 40_001, 40_002
BATCHES = 30


@harness.unittest.skipUnless(os.geteuid() == 0, "becoming other users needs root")
class TwoUsers(harness.Case):
    def run_as(self, user, *words):
        """A finished command of that Unix user."""
        return subprocess.run([str(BIN / "patchbay"), *map(str, words), "--cluster", str(user.key)], capture_output=True, text=True,
                              timeout=harness.LIMIT_S, check=False, **self.identity(user))

    def job_of(self, user):
        rows = json.loads(self.run_as(user, "jobs", "--json").stdout)["jobs"]
        self.assertEqual({row["submitter"] for row in rows}, {user.name})
        return rows[0]["job"]

    def test_work_beside_each_other_and_see_their_own(self):
        slide = self.slide(size="1600x1200")
        run = self.run_file(slide, patch=64)
        cluster = self.up(2)
        alone = self.json("stream", run, "--batches", BATCHES, "--digest")["digest"]
        users = [self.member("ann", ANN), self.member("bob", BOB)]
        ingests = [self.start("ingest", slide, "--out", user.home / "stores", "--json", user=user) for user in users]
        streams = [self.start("stream", run, "--batches", BATCHES, "--digest", "--json", user=user) for user in users]
        self.assertEqual([json.loads(self.done(process))["digest"] for process in streams], [alone, alone])
        for user, process in zip(users, ingests):
            self.assertEqual(len(json.loads(self.done(process))["stores"]), 1)
            verified = self.run_as(user, "verify", user.home / "stores")
            self.assertEqual(verified.returncode, 0, verified.stderr)

        ann, bob = users
        self.assertIn("no such job", self.run_as(ann, "why", self.job_of(bob)).stderr)
        self.assertIn("no such job", self.run_as(ann, "cancel", self.job_of(bob)).stderr)
        refused = self.run_as(ann, "ingest", slide, "--out", bob.home / "stores")
        self.assertNotEqual(refused.returncode, 0, refused.stdout)
        self.assertIn("bob", refused.stderr)
        stolen = subprocess.run([str(BIN / "patchbay"), "jobs", "--cluster", str(bob.key)], capture_output=True, text=True, check=False,
                                **self.identity(ann))
        self.assertNotEqual(stolen.returncode, 0, "another user's key is of no use")
        self.down(cluster)


if __name__ == "__main__":
    harness.main()
