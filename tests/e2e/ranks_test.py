"""Ranks of one run started at once, and runs that go on from a resume token: by the command, on a cluster that stays."""
import hashlib
import json
import pathlib
import re

import harness



def patches(folder, rank=None):
    """{(epoch, batch): bytes of the batch's images} of what one rank saved; of that rank where they share the folder."""
    found = {}
    for path in pathlib.Path(folder).glob("*-image.npy"):
        epoch, batch, saved_by = re.fullmatch(r"epoch-(\d+)-batch-(\d+)(?:-rank-(\d+))?-image\.npy", path.name).groups()
        if rank is None or saved_by == str(rank):
            content = path.read_bytes()
            found[int(epoch), int(batch)] = content[content.index(b"\n") + 1:]  # behind the header
    return found


def together(folders):
    """SHA-256 of the patches of all ranks, batch by batch, rank by rank."""
    ranks = [patches(folder) for folder in folders]
    digest = hashlib.sha256()
    for place in sorted(set().union(*ranks)):
        for rank in ranks:
            digest.update(rank.get(place, b""))
    return digest.hexdigest()


class Ranks(harness.Case):
    def setUp(self):
        super().setUp()
        self.run_yaml = self.run_file(self.store([self.slide(size="1300x900")]))

    def stream(self, out, *words, ranks=1):
        """Starts all ranks at once; the folders they saved to and their results."""
        folders = [self.folder / f"{out}-{rank}" for rank in range(ranks)]
        more = ["--name", out] if ranks > 1 else []
        running = [self.start("stream", self.run_yaml, "--world-size", ranks, "--rank", rank, "--save", folders[rank],
                              "--json", *more, *words) for rank in range(ranks)]
        return folders, [json.loads(self.done(process)) for process in running]

    def test_ranks_started_at_once_give_the_patches_of_one(self):
        cluster = self.up(2)
        one, alone = self.stream("one", "--batches", 6)
        expected = together(one)
        for ranks in (2, 4):
            folders, results = self.stream(f"of{ranks}", "--batches", 6, ranks=ranks)
            self.assertEqual(together(folders), expected)
            self.assertEqual(len({result["job"] for result in results}), 1, "one job for all ranks")
            self.assertEqual({result["plan_digest"] for result in results}, {alone[0]["plan_digest"]})
            self.assertEqual(sum(result["patches"] for result in results), alone[0]["patches"])
        self.down(cluster)

    def test_ranks_that_save_to_one_folder_lose_nothing(self):
        cluster = self.up(2)
        apart, _ = self.stream("apart", "--batches", 4, ranks=2)
        saved = self.folder / "saved"
        words = ["stream", self.run_yaml, "--world-size", 2, "--name", "shared", "--batches", 4, "--save", saved]
        running = [self.start(*words, "--rank", rank) for rank in range(2)]
        for process in running:
            self.done(process)
        for rank in range(2):
            self.assertEqual(patches(saved, rank), patches(apart[rank]))
        again = self.command(*words, "--rank", 0)
        self.assertEqual(again.returncode, 1, again.stderr)
        self.assertIn("it holds batches", again.stderr)
        self.down(cluster)

    def test_a_second_stream_into_a_folder_is_refused_and_a_name_that_is_taken_stays_taken(self):
        saved = self.folder / "saved"
        words = ["stream", self.run_yaml, "--save", saved]
        first = self.start(*words, "--batches", 400, "--step-ms", 20)
        harness.wait_until(lambda: list(saved.glob("*-image.npy")), "the first batch")
        second = self.command(*words, "--batches", 1, "--force")
        self.assertEqual(second.returncode, 1, second.stderr)
        self.assertIn("another stream saves there now", second.stderr)
        foreign = saved / "epoch-0001-batch-000000-image.npy"
        foreign.write_bytes(b"of somebody else")
        self.done(first, expect=1)
        said = pathlib.Path(first.log).read_text(encoding="utf-8")
        self.assertIn(f"{foreign}: a file of another stream exists", said)
        self.assertEqual(foreign.read_bytes(), b"of somebody else")

    def test_a_run_cut_and_resumed_with_other_ranks_and_workers_gives_the_bytes_of_an_uncut_one(self):
        whole, result = self.stream("whole", "--batches", 7, "--cpus", 2)
        first, cut = self.stream("first", "--batches", 3, "--cpus", 1)
        token = cut[0]["resume_token"]
        self.assertNotEqual(token, result[0]["resume_token"])
        cluster = self.up(2)
        rest, ends = self.stream("rest", "--batches", 4, "--resume", token, ranks=2)
        self.down(cluster)
        expected, seen = patches(whole[0]), patches(first[0])
        for place in patches(rest[0]):
            self.assertNotIn(place, seen, "no batch comes twice")
            seen[place] = patches(rest[0])[place] + patches(rest[1]).get(place, b"")
        self.assertEqual(seen, expected)
        self.assertEqual({end["resume_token"] for end in ends}, {result[0]["resume_token"]},
                         "a token knows nothing of ranks and workers")

    def test_a_rank_that_cannot_attach_leaves_the_job_to_the_others(self):
        cluster = self.up(2)
        words = ["stream", self.run_yaml, "--world-size", 2, "--name", "shared", "--batches", 4]
        refused = self.command(*words, "--rank", 1, "--data-listen", "10.255.254.253")
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("10.255.254.253", refused.stderr)
        jobs = [job for job in self.json("jobs")["jobs"] if job["name"] == "shared"]
        self.assertEqual([job["state"] for job in jobs], ["running"], refused.stderr)
        running = [self.start(*words, "--rank", rank, "--json") for rank in range(2)]
        self.assertEqual({json.loads(self.done(process))["job"] for process in running}, {jobs[0]["job"]})
        self.down(cluster)

    def test_per_rank_is_settled_by_the_first_submission(self):
        per_rank = ("--set", "batch.global_size=null", "--set", "batch.per_rank=4")
        _, one = self.stream("one", "--batches", 2, *per_rank)
        self.assertEqual(one[0]["patches"], 8)
        cluster = self.up(1)
        _, two = self.stream("two", "--batches", 2, "--resume", one[0]["resume_token"], *per_rank, ranks=2)
        self.down(cluster)
        self.assertEqual(sum(result["patches"] for result in two), 8, "a resumed run keeps the size of its batches")

    def test_refusals_say_what_differs(self):
        self.assert_usage("rank 2 of 2 ranks", "--world-size", 2, "--rank", 2, "--name", "a")
        self.assert_usage("several ranks need a common name or job", "--world-size", 2)
        self.assert_usage("exclude each other", "--name", "a", "--job", 3)
        self.assert_usage("this is not a resume token", "--resume", "abc")
        self.assert_usage("expected KEY=VALUE", "--set", "batch")
        self.assert_usage("unknown key 'batch.globalsize' (did you mean 'global_size'?)", "--set", "batch.globalsize=3")
        self.assert_usage("global_size and per_rank exclude each other", "--set", "batch.per_rank=3")
        token = self.json("stream", self.run_yaml, "--batches", 1)["resume_token"]
        other = self.command("stream", self.run_yaml, "--resume", token, "--set", "seed=1")
        self.assertEqual(other.returncode, 1)
        self.assertIn("resume: the token is of another plan", other.stderr)
        self.assertIn("its config differs", other.stderr)
        grown = self.store([self.slide("b.svs", size="700x600")])
        other = self.command("stream", self.run_yaml, "--resume", token)
        self.assertEqual(other.returncode, 1, grown)
        self.assertIn("its images differ", other.stderr)

    def test_another_run_under_a_name_that_is_taken_is_refused(self):
        cluster = self.up(1)
        running = self.start("stream", self.run_yaml, "--name", "taken", "--batches", 500, "--step-ms", 20)
        harness.wait_until(lambda: "running" in self.command("jobs").stdout, "the run to be there")
        other = self.command("stream", self.run_yaml, "--name", "taken", "--set", "seed=8")
        self.assertEqual(other.returncode, 1)
        self.assertIn("join stream 'taken'", other.stderr)
        self.assertIn("key 'seed' differs", other.stderr)
        running.terminate()
        running.wait(timeout=60)
        self.down(cluster)

    def assert_usage(self, text, *words):
        result = self.command("stream", self.run_yaml, *words)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(text, result.stderr)


if __name__ == "__main__":
    harness.main()
