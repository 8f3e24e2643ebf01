"""Two nodes: network namespaces joined by a veth pair, with process tables of their own, so that nothing but the
network joins them. They share a file system, as a site's nodes do."""
import json
import os
import pathlib
import signal
import subprocess
import sys

import harness
from harness import wait_until

FIRST, SECOND = "10.77.0.1", "10.77.0.2"
FIRST_V6, SECOND_V6 = "fd77::1", "fd77::2"
FIRST_BESIDE, SECOND_BESIDE = "10.78.0.1", "10.78.0.2"  # addresses of a second link
CAPTURED_BYTES_MAX = 256 << 20
# Writes what passes an interface to stdout until it is ended: the bytes of each frame after its length.
CAPTURE = """
import socket, struct, sys
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
tap.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
tap.bind((sys.argv[1], 0))
print("listening", file=sys.stderr, flush=True)
while True:
    frame = tap.recv(1 << 17)
    sys.stdout.buffer.write(struct.pack("<I", len(frame)) + frame)
    sys.stdout.buffer.flush()
"""
# Carries frames between two interfaces: each is late, some are lost, and after SIGUSR1 all are. Offloaded frames keep
# their header (PACKET_VNET_HDR), so that they may be larger than what the link carries.
RELAY = """
import collections, random, select, signal, socket, sys, time
lost, late_s = float(sys.argv[3]), float(sys.argv[4])
is_cut, rng, queue = [], random.Random(1), collections.deque()
signal.signal(signal.SIGUSR1, lambda *_: is_cut.append(True))
sockets = []
for name in sys.argv[1:3]:
    one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    one.setsockopt(263, 15, 1)
    one.bind((name, 0))
    sockets.append(one)
print("relaying", file=sys.stderr, flush=True)
while True:
    wait = max(0, queue[0][0] - time.monotonic()) if queue else None
    for one in select.select(sockets, [], [], wait)[0]:
        frame, origin = one.recvfrom(1 << 17)
        if origin[2] != socket.PACKET_OUTGOING and not is_cut and rng.random() >= lost:
            queue.append((time.monotonic() + late_s, sockets[one is sockets[0]], frame))
    while queue and queue[0][0] <= time.monotonic():
        _, to, frame = queue.popleft()
        try:
            to.send(frame)
        except OSError:
            pass  # one more that is lost
"""


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


@harness.unittest.skipUnless(os.geteuid() == 0, "network namespaces need root")
class NodesCase(harness.Case):
    """A test with two nodes and the link between them."""

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

    def join_beside(self):
        """A second link between the nodes."""
        ip("-n", self.first, "link", "add", "pb-c", "type", "veth", "peer", "name", "pb-d", "netns", self.second)
        for name, link, address in ((self.first, "pb-c", FIRST_BESIDE), (self.second, "pb-d", SECOND_BESIDE)):
            ip("-n", name, "address", "add", address + "/24", "dev", link)
            ip("-n", name, "link", "set", link, "up")

    def join_by_relay(self, lost, late_s):
        """A second link between the nodes that loses frames and delays the others; the process that carries them."""
        middle = "pbm-" + str(os.getpid())
        ip("netns", "add", middle)
        self.addCleanup(ip, "netns", "del", middle)
        for name, link, end, address in ((self.first, "pb-c", "pb-m", FIRST_BESIDE), (self.second, "pb-d", "pb-n", SECOND_BESIDE)):
            ip("-n", name, "link", "add", link, "type", "veth", "peer", "name", end, "netns", middle)
            ip("-n", name, "address", "add", address + "/24", "dev", link)
            ip("-n", name, "link", "set", link, "up")
            ip("-n", middle, "link", "set", end, "up")
        relay = subprocess.Popen(["ip", "netns", "exec", middle, sys.executable, "-c", RELAY, "pb-m", "pb-n", str(lost), str(late_s)],
                                 stderr=subprocess.PIPE)
        self.addCleanup(relay.wait)
        self.addCleanup(relay.stderr.close)
        self.addCleanup(relay.kill)
        self.assertEqual(relay.stderr.readline().strip(), b"relaying")
        return relay

    def cut_beside(self):
        """Frames of the second node on that link go to nobody, silently."""
        ip("-n", self.second, "neighbour", "replace", FIRST_BESIDE, "lladdr", "02:00:00:00:00:99", "dev", "pb-d",
           "nud", "permanent")

    def in_first(self, *words):
        return ["ip", "netns", "exec", self.first, *words]

    def in_second(self, *words):
        return ["ip", "netns", "exec", self.second, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *words]

    def command(self, *words, **options):
        """As Case.command, on the first node."""
        return subprocess.run(self.in_first(str(harness.BIN / "patchbay"), *map(str, words)), cwd=self.folder, text=True,
                              capture_output=True, env=self.environment(), timeout=harness.LIMIT_S * 3, **options)

    def cluster(self, cpus=1, host=FIRST, first_cpus=None):
        """Both nodes up: the first with the scheduler."""
        first_cpus = cpus if first_cpus is None else first_cpus
        up = self.start("up", "--cpus", first_cpus, "--listen", f"tcp://{host}:7678", "--state", self.folder / "state1",
                        prefix=self.in_first())
        self.await_workers(up, first_cpus)
        made = self.command("key", "new", "second", "--role", "worker", "--read", self.folder, "--write", self.folder)
        self.assertEqual(made.returncode, 0, made.stderr)
        key = self.folder / "second.key"
        self.assertTrue(key.exists(), made.stdout + made.stderr)
        join = self.start("join", "--key", key, "--cpus", cpus, "--state", self.folder / "state2",
                          prefix=self.in_second(), PATCHBAY_HOME=str(self.folder / "home2"))
        self.await_workers(up, first_cpus + cpus)
        return up, join

    def cut(self, is_cut=True):
        """The link of the second node loses its carrier, or has it again: nobody is told."""
        ip("-n", self.second, "link", "set", "pb-b", "down" if is_cut else "up")


class TwoNodes(NodesCase):
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
                         {"trainer", "scheduler", *(f"{os.uname().nodename} {process}" for process in ("agent", "supervisor", "worker 0"))})

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

    def capture(self, link):
        """Frames that pass `link` of the first node; ends with the function that is returned, which gives them."""
        path = self.folder / "captured"
        with open(path, "wb") as out:
            tap = subprocess.Popen(self.in_first(sys.executable, "-c", CAPTURE, link), stdout=out, stderr=subprocess.PIPE)
        self.addCleanup(tap.stderr.close)
        self.addCleanup(tap.kill)
        self.assertEqual(tap.stderr.readline().strip(), b"listening")

        def finish():
            tap.terminate()
            tap.wait()
            self.assertLess(path.stat().st_size, CAPTURED_BYTES_MAX)
            return path.read_bytes()
        return finish

    def test_the_link_shows_no_pixel_and_no_name(self):
        store = self.store([self.slide(name="PLANTEDNAME.svs")], "PLANTEDFOLDER")
        run = self.run_file(store)
        self.cluster()
        frames = self.capture("pb-a")
        saved = self.folder / "saved"
        result = self.json("stream", run, "--batches", 20, "--save", saved)
        sent = b"a line that crosses in the clear, so that the search is known to find one"
        subprocess.run(self.in_first(sys.executable, "-c", "import socket, sys; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"
                                     f".sendto(sys.argv[1].encode(), ('{SECOND}', 9))", sent.decode()), check=True)
        wait_until(lambda: sent in (self.folder / "captured").read_bytes(), "the capture to reach what was sent last")
        captured = frames()
        self.assertGreater(result["remote_bytes"], 0, "no patch crossed the link")
        self.assertGreater(len(captured), result["remote_bytes"] // 2, "the capture missed what crossed")
        self.assertIn(sent, captured)
        for name in (b"PLANTEDNAME", b"PLANTEDFOLDER", os.fsencode(store), os.fsencode(self.folder)):
            self.assertNotIn(name, captured)
        windows = [window for path in saved.glob("*-image.npy") for window in self.windows(path)]
        self.assertGreater(len(windows), 100)
        found = [window for window in windows if window in captured]
        self.assertEqual(found, [])

    @staticmethod
    def windows(path):
        """Pieces of a saved batch that occur by chance nowhere else: 32 bytes with many values, one a patch."""
        raw = path.read_bytes()
        patch = 3 * 128 * 128 * 2
        for start in range(len(raw) % patch + patch // 2, len(raw) - 32, patch):
            if len(set(raw[start:start + 32])) >= 8:
                yield raw[start:start + 32]

    def test_over_ipv6_a_stream_made_on_the_other_node_alone_is_the_same(self):
        run = self.run_file(self.store([self.slide(size="800x600")]), patch=64)
        reference = self.json("stream", run, "--digest")["digest"]
        for name, link, address in ((self.first, "pb-a", FIRST_V6), (self.second, "pb-b", SECOND_V6)):
            try:
                ip("-n", name, "address", "add", address + "/64", "dev", link, "nodad")
            except subprocess.CalledProcessError as error:
                self.skipTest(f"this machine has no IPv6: {error}")
        self.cluster(host=f"[{FIRST_V6}]", first_cpus=0)
        result = self.json("stream", run, "--digest")
        self.assertEqual(result["digest"], reference)
        self.assertGreater(result["remote_bytes"], 0)

    def test_a_frozen_trainer_stops_its_senders_and_not_the_cluster(self):
        run = self.run_file(self.store([self.slide()]), meta=True)
        reference = self.json("stream", run, "--batches", 30, "--digest")["digest"]
        self.cluster(first_cpus=0)
        saved = self.folder / "saved"
        frozen = self.start("stream", run, "--batches", 30, "--digest", "--json", "--step-ms", 20, "--save", saved,
                            prefix=self.in_first())
        wait_until(lambda: saved.exists() and len(list(saved.glob("*-image.npy"))) >= 6, "6 batches")
        frozen.send_signal(signal.SIGSTOP)
        other = self.json("stream", run, "--batches", 30, "--digest")
        self.assertEqual(other["digest"], reference)
        self.assertIsNone(frozen.poll())
        frozen.send_signal(signal.SIGCONT)
        result = json.loads(self.done(frozen))
        self.assertEqual(result["digest"], reference)
        self.assertGreater(result["remote_bytes"], 0)

    def test_a_partition_of_the_data_network_alone_changes_nothing(self):
        run = self.run_file(self.store([self.slide()]), meta=True)
        reference = self.json("stream", run, "--batches", 40, "--digest")["digest"]
        self.join_beside()
        self.cluster()
        saved = self.folder / "saved"
        trainer = self.start("stream", run, "--batches", 40, "--digest", "--json", "--step-ms", 40, "--save", saved,
                             "--data-listen", FIRST_BESIDE, prefix=self.in_first())
        wait_until(lambda: saved.exists() and len(list(saved.glob("*-image.npy"))) >= 6, "6 batches")
        self.cut_beside()
        result = json.loads(self.done(trainer))
        self.assertEqual(result["digest"], reference)
        self.assertGreater(result["remote_bytes"], 0, "the second node delivered before")

    def test_loss_delay_and_then_a_partition_of_the_data_network_change_nothing(self):
        run = self.run_file(self.store([self.slide()]), meta=True, patch=64)
        reference = self.json("stream", run, "--batches", 40, "--digest")["digest"]
        relay = self.join_by_relay(lost=0.02, late_s=0.01)
        self.cluster()
        saved = self.folder / "saved"
        trainer = self.start("stream", run, "--batches", 40, "--digest", "--json", "--step-ms", 40, "--save", saved,
                             "--data-listen", FIRST_BESIDE, prefix=self.in_first())
        wait_until(lambda: saved.exists() and len(list(saved.glob("*-image.npy"))) >= 12, "12 batches")
        relay.send_signal(signal.SIGUSR1)
        result = json.loads(self.done(trainer))
        self.assertEqual(result["digest"], reference)
        self.assertGreater(result["remote_bytes"], 0, "the second node delivered before")

    def test_a_trainer_that_one_node_cannot_reach_is_served_by_the_others_and_named_in_the_log(self):
        run = self.run_file(self.store([self.slide()]), meta=True)
        reference = self.json("stream", run, "--batches", 20, "--digest")["digest"]
        self.join_beside()
        self.cut_beside()
        self.cluster()
        result = self.json("stream", run, "--batches", 20, "--digest", "--data-listen", FIRST_BESIDE)
        self.assertEqual(result["digest"], reference)
        self.assertEqual(result["remote_bytes"], 0)
        logs = self.command("logs", result["job"]).stdout
        self.assertIn("cannot deliver to rank 0", logs)
        self.assertIn(f"{FIRST_BESIDE}:", logs)
        self.assertIn("must be open", logs)

    def test_a_trainer_that_no_node_can_reach_says_so_while_it_waits(self):
        run = self.run_file(self.slide(size="800x600"), patch=64)
        self.join_beside()
        self.cut_beside()
        self.cluster(first_cpus=0)
        waiting = self.start("stream", run, "--batches", 1, "--data-listen", FIRST_BESIDE, prefix=self.in_first())
        told = pathlib.Path(waiting.log)
        wait_until(lambda: "cannot deliver to rank 0" in told.read_text(encoding="utf-8"), "word of why it waits")
        self.assertIn("waiting for a batch", told.read_text(encoding="utf-8"))
        self.assertIn("must be open", told.read_text(encoding="utf-8"))
        self.assertIn(f"{FIRST_BESIDE}:", told.read_text(encoding="utf-8"))

    def test_doctor_tests_the_direction_that_must_be_open(self):
        self.cluster()
        reach = [*self.in_second(str(harness.BIN / "patchbay"), "doctor", "--reach")]
        run = {"capture_output": True, "text": True, "env": self.environment(), "timeout": 60, "check": False}
        there = subprocess.run([*reach, f"{FIRST}:7678"], **run)
        self.assertIn(f"{FIRST}:7678 answers", there.stdout)
        for address in (f"{FIRST}:7679", "10.99.0.1:7678", "first:7678"):
            closed = subprocess.run([*reach, address], **run)
            self.assertEqual(closed.returncode, 1, closed.stdout)
            self.assertIn(address, closed.stdout)
            self.assertIn("cannot deliver", closed.stdout)

    def test_an_address_to_listen_on_must_be_this_nodes(self):
        run = self.run_file(self.slide(size="800x600"))
        self.cluster()
        refused = self.command("stream", run, "--batches", 1, "--data-listen", "10.99.0.1")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("--data-listen", refused.stderr)
        self.assertIn("10.99.0.1", refused.stderr)
        for policy in ("isolated-tcp", "wireguard", "none"):
            refused = self.command("stream", run, "--batches", 1, "--data-policy", policy)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn("rdma", refused.stderr)


if __name__ == "__main__":
    harness.main()
