"""Two nodes: network namespaces joined by a veth pair, with process tables of their own, so that nothing but the
network joins them. They share a file system, as a site's nodes do."""
import json
import os
import subprocess

import harness
from harness import wait_until

FIRST, SECOND = "10.77.0.1", "10.77.0.2"


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


@harness.unittest.skipUnless(os.geteuid() == 0, "network namespaces need root")
class TwoNodes(harness.Case):
    def setUp(self):
        super().setUp()
        tag = str(os.getpid())
        self.first, self.second = "pb1-" + tag, "pb2-" + tag
        try:
            ip("netns", "add", self.first)
        except (OSError, subprocess.CalledProcessError) as error:
            self.skipTest(f"this machine makes no network namespaces: {error}")
        self.addCleanup(ip, "netns", "del", self.first)
        ip("netns", "add", self.second)
        self.addCleanup(ip, "netns", "del", self.second)
        ip("-n", self.first, "link", "add", "pb-a", "type", "veth", "peer", "name", "pb-b", "netns", self.second)
        for name, link, address in ((self.first, "pb-a", FIRST), (self.second, "pb-b", SECOND)):
            ip("-n", name, "address", "add", address + "/24", "dev", link)
            ip("-n", name, "link", "set", link, "up")
            ip("-n", name, "link", "set", "lo", "up")

    def in_first(self, *words):
        return ["ip", "netns", "exec", self.first, *words]

    def in_second(self, *words):
        return ["ip", "netns", "exec", self.second, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *words]

    def command(self, *words, **options):
        """As Case.command, on the first node."""
        return subprocess.run(self.in_first(str(harness.BIN / "patchbay"), *map(str, words)), cwd=self.folder, text=True,
                              capture_output=True, env=self.environment(), timeout=harness.LIMIT_S * 3, **options)

    def cluster(self, policy=("--data-policy", "isolated-tcp"), cpus=1):
        """Both nodes up: the first with the scheduler."""
        up = self.start("up", "--cpus", cpus, "--listen", f"tcp://{FIRST}:7678", "--state", self.folder / "state1",
                        *policy, prefix=self.in_first())
        self.await_workers(up, cpus)
        made = self.command("key", "new", "second", "--role", "worker", "--read", self.folder, "--write", self.folder)
        self.assertEqual(made.returncode, 0, made.stderr)
        key = self.folder / "second.key"
        self.assertTrue(key.exists(), made.stdout + made.stderr)
        join = self.start("join", "--key", key, "--cpus", cpus, "--state", self.folder / "state2", *policy,
                          prefix=self.in_second(), PATCHBAY_HOME=str(self.folder / "home2"))
        self.await_workers(up, 2 * cpus)
        return up, join

    def shards_by_node(self):
        rows = json.loads(self.command("status", "--json").stdout)["workers"]
        done = {}
        for row in rows:
            done[row["node"]] = done.get(row["node"], 0) + row["shards_done"] + row["tasks_done"]
        return done

    def test_ingest_and_stream_use_both_nodes_and_give_the_same(self):
        slide = self.slide(size="5000x4000")
        alone = self.store([slide], "alone")
        reference = self.json("stream", self.run_file(alone), "--batches", 60, "--digest")["digest"]
        self.cluster()
        together = self.store([slide], "together")
        self.assertEqual([p.name for p in sorted(alone.glob("*.zarr"))], [p.name for p in sorted(together.glob("*.zarr"))])
        for a, b in zip(sorted(alone.glob("*.zarr")), sorted(together.glob("*.zarr"))):
            self.assertEqual(self.json("inspect", a)["digest"], self.json("inspect", b)["digest"])
        by_ingest = self.shards_by_node()
        self.assertEqual(len([n for n in by_ingest.values() if n > 0]), 2, by_ingest)
        result = self.json("stream", self.run_file(together), "--batches", 60, "--digest")
        self.assertEqual(result["digest"], reference)
        by_stream = self.shards_by_node()
        self.assertTrue(all(by_stream[node] > by_ingest[node] for node in by_ingest), (by_ingest, by_stream))
        # The second node's processes are on another "machine": their memory cannot be seen from here.
        self.assertEqual(set(result["peak_rss_bytes"]),
                         {"trainer", "scheduler", "node agent", "node supervisor", "node worker 0"})

    def test_spectra_use_both_nodes_and_give_the_same(self):
        slide = self.slide(size="3600x3000")
        words = ["spectra", slide, "--hop", 32, "--strip", 256, "--coefficients", "--out"]
        self.assertEqual(self.command(*words, self.folder / "alone").returncode, 0)
        self.cluster()
        self.assertEqual(self.command(*words, self.folder / "together").returncode, 0)
        alone, together = ({str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()}
                           for out in (self.folder / "alone", self.folder / "together"))
        self.assertEqual(alone, together)
        by_node = self.shards_by_node()
        self.assertEqual(len([n for n in by_node.values() if n > 0]), 2, by_node)

    def test_second_node_killed_mid_stream_changes_nothing(self):
        run = self.run_file(self.store([self.slide()]), meta=True)
        reference = self.json("stream", run, "--batches", 40, "--digest")["digest"]
        _, join = self.cluster()
        saved = self.folder / "saved"
        trainer = self.start("stream", run, "--batches", 40, "--digest", "--json", "--step-ms", 40, "--save", saved,
                             prefix=self.in_first())
        wait_until(lambda: saved.exists() and len(list(saved.glob("*-image.npy"))) >= 6, "6 batches")
        join.kill()
        self.assertEqual(json.loads(self.done(trainer))["digest"], reference)

    def test_without_a_declared_network_policy_the_second_node_does_not_deliver(self):
        run = self.run_file(self.store([self.slide()]), meta=True)
        reference = self.json("stream", run, "--batches", 20, "--digest")["digest"]
        self.cluster(policy=())
        before = self.shards_by_node()
        self.assertEqual(self.json("stream", run, "--batches", 20, "--digest")["digest"], reference)
        after = self.shards_by_node()
        grew = [node for node in after if after[node] > before.get(node, 0) + 2]
        self.assertEqual(len(grew), 1, (before, after))


if __name__ == "__main__":
    harness.main()
