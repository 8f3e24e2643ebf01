"""`patchbay site run` by hand: several nodes on this machine, each a command of its own."""
import grp
import json
import os
import pathlib
import secrets
import signal
import stat
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402
from harness import wait_until  # noqa: E402

SHOW = 'echo "$RANK of $WORLD_SIZE"; test -r "$PATCHBAY_CLUSTER" || exit 9; exit "${STATUS:-0}"'


LIMIT_S = 20
harness.LIMIT_S = LIMIT_S


class Site(harness.Case):
    def setUp(self):
        super().setUp()
        self.shared = self.folder / "shared"
        self.shared.mkdir(mode=0o700)

    def node(self, rank, of, *more, trainer=(), **env):
        return self.start("site", "run", "--rank", rank, "--of", of, "--rendezvous", self.shared, "--interface", "lo", "--cpus", 1,
                          "--gpus", "none", *more, *(("--", *trainer) if trainer else ()), **env)

    def nodes(self, of, *more, **options):
        return [self.node(rank, of, *more, **options) for rank in reversed(range(of))][::-1]

    def said(self, process):
        return pathlib.Path(process.log).read_text(encoding="utf-8")

    def files(self):
        return {path.name for path in self.shared.glob("patchbay-site/*")}

    def assert_nothing_left(self):
        self.assertEqual(list(self.shared.iterdir()), [])
        self.assertEqual([p.name for p in (self.folder / "tmp").iterdir()], [])

    def test_three_nodes_give_a_trainer_its_batches_and_end_with_it(self):
        run = self.run_file(self.store([self.slide()]))
        alone = self.json("stream", run, "--batches", 50, "--digest")["digest"]
        began = time.monotonic()
        stream = (str(harness.BIN / "patchbay"), "stream", str(run), "--batches", "50", "--digest", "--json")
        first, *others = self.nodes(3, trainer=stream)
        result = json.loads(self.done(first))
        took = time.monotonic() - began
        for other in others:
            self.done(other)
        self.assertEqual(result["digest"], alone)
        self.assert_nothing_left()
        print(f"50 batches by 3 nodes in {took:.1f} s")

    def test_stores_have_the_sites_names_and_rights(self):
        key, site = self.folder / "names.key", self.folder / "site.yaml"
        group = grp.getgrnam("users") if os.geteuid() == 0 else grp.getgrgid(os.getegid())
        key.write_text(secrets.token_hex(32) + "\n")
        key.chmod(0o640)
        site.write_text(f"pseudonym_key: names.key\nfiles: {{group: {group.gr_name}}}\n")
        slide, out = self.slide(), self.folder / "out"
        ingest = (str(harness.BIN / "patchbay"), "ingest", str(slide), "--out", str(out))
        self.done(self.node(0, 1, trainer=ingest, PATCHBAY_SITE=str(site)))
        manifest = (out / "manifest.csv").stat()
        self.assertEqual((manifest.st_gid, stat.S_IMODE(manifest.st_mode)), (group.gr_gid, 0o640))
        elsewhere = self.folder / "elsewhere"
        self.done(self.start("ingest", slide, "--out", elsewhere, PATCHBAY_SITE=str(site), PATCHBAY_HOME=str(self.folder / "other")))
        names = [[path.name for path in folder.glob("*.ome.zarr")] for folder in (out, elsewhere)]
        self.assertEqual(names[0], names[1])
        self.assertEqual(len(names[0]), 1)
        site.write_text("files: {group: no-such-group}\n")
        refused = self.node(0, 1, trainer=("true",), PATCHBAY_SITE=str(site))
        self.done(refused, expect=1)
        self.assertIn("site.yaml:1: key 'files.group': no-such-group: no such group", self.said(refused))
        self.assert_nothing_left()

    def test_each_trainer_knows_its_rank_and_the_first_bad_status_is_the_sites(self):
        first, second = self.nodes(2, "--trainers", 2, trainer=("sh", "-c", SHOW))
        self.assertEqual([self.done(first), self.done(second)], ["0 of 2\n", "1 of 2\n"])
        second = self.node(1, 3, "--trainers", 2, trainer=("sh", "-c", SHOW), STATUS="7")
        first, third = (self.node(rank, 3, "--trainers", 2, trainer=("sleep", "600")) for rank in (0, 2))
        self.assertEqual(self.done(second, expect=7), "1 of 2\n")
        self.done(first, expect=7)
        self.done(third)
        self.assert_nothing_left()

    def test_a_trainer_that_cannot_start_or_is_killed_has_a_shells_status(self):
        self.done(self.node(0, 1, trainer=("no-such-program",)), expect=127)
        self.done(self.node(0, 1, trainer=("sh", "-c", "kill -9 $$")), expect=137)

    def test_a_stop_reaches_the_trainer_and_every_node(self):
        first, second = self.nodes(2, trainer=("sh", "-c", "trap 'exit 75' TERM; echo on; while :; do sleep 0.01; done"))
        self.assertEqual(first.stdout.readline(), "on\n")
        first.send_signal(signal.SIGTERM)
        self.done(first, expect=75)
        self.done(second)
        self.assert_nothing_left()

    def test_a_trainer_that_does_not_stop_is_killed_after_the_grace(self):
        first = self.node(0, 1, "--grace", 1, trainer=("sh", "-c", "trap '' TERM; echo on; while :; do sleep 0.01; done"))
        self.assertEqual(first.stdout.readline(), "on\n")
        began = time.monotonic()
        first.send_signal(signal.SIGTERM)
        self.done(first, expect=137)
        self.assertGreater(time.monotonic() - began, 0.9)
        self.assertLess(time.monotonic() - began, 10, "the default is 20 s")
        self.assert_nothing_left()

    def test_a_second_first_node_is_refused_and_one_that_was_killed_is_replaced(self):
        first, guest = self.nodes(2)
        self.assertIn("operator.key", first.stdout.readline())
        for rank in (0, 1):
            again = self.node(rank, 2)
            self.done(again, expect=2)
            self.assertIn(f"(process {(first, guest)[rank].pid})", self.said(again))
        first.kill()
        stale = self.files()
        today = self.nodes(2, trainer=("sh", "-c", SHOW))
        for process in (*today, guest):  # the guest of the former first node has nothing to stay for
            self.done(process)
        self.assertGreater(len(stale), 2)
        self.assert_nothing_left()

    def test_missing_nodes_are_named_after_the_wait(self):
        second = self.node(1, 4)
        wait_until(lambda: any(name.startswith("hello-") for name in self.files()), "a hello")
        first = self.node(0, 4, "--wait", 1)
        self.done(first, expect=1)
        self.done(second)
        self.assertIn("missing after 1 s: node-2, node-3", self.said(first))
        alone = self.node(1, 2, "--wait", 1)
        self.done(alone, expect=1)
        self.assertIn("no first node has answered within 1 s", self.said(alone))

    def answer(self, keys, mode=0o600):
        """Plays the first node for one guest; the guest, once it was answered."""
        guest = self.node(1, 2, "--wait", 2)
        hello = wait_until(lambda: next((n for n in self.files() if n.startswith("hello-") and not n.endswith(".tmp")), None), "a hello")
        path = self.shared / "patchbay-site" / hello.replace("hello", "answer")
        made = self.folder / "made"
        made.write_text(json.dumps(keys), encoding="utf-8")
        made.chmod(mode)
        made.rename(path)
        return guest

    def test_keys_that_others_may_read_and_those_of_another_cluster_are_refused(self):
        guest = self.answer({"node": "", "trainer": ""}, mode=0o644)
        self.done(guest, expect=1)
        self.assertIn("readable by others", self.said(guest))
        for path in self.shared.glob("patchbay-site/*"):
            path.unlink()
        self.up(1)
        address = "tcp://" + self.listen[1]
        self.home = self.folder / "other"
        for name, role in (("node-1", "worker"), ("trainer", "submitter")):
            self.assertEqual(self.command("key", "new", name, "--role", role, "--address", address).returncode, 0)
        guest = self.answer({"node": (self.folder / "node-1.key").read_text(), "trainer": (self.folder / "trainer.key").read_text()})
        self.done(guest, expect=1)
        self.assertIn(f"{address}: no cluster there takes this node's key within 2 s", self.said(guest))

    def test_a_folder_that_cannot_serve_is_named(self):
        self.shared = self.small_disk("64k")
        (self.shared / "patchbay-site").mkdir(mode=0o700)
        (self.shared / "fill").write_bytes(bytes(64 << 10))
        full = self.node(1, 2, "--wait", 5)
        self.done(full, expect=1)
        self.assertRegex(self.said(full), r"patchbay-site/hello-.*No space left")
        harness.subprocess.run(["mount", "-o", "remount,ro", self.shared], check=True)
        for rank in (0, 1):
            closed = self.node(rank, 2, "--wait", 5)
            self.done(closed, expect=1)
            self.assertRegex(self.said(closed), r"patchbay-site/.*Read-only")
        harness.subprocess.run(["mount", "-o", "remount,rw", self.shared], check=True)
        (self.shared / "patchbay-site").chmod(0o755)
        closed = self.node(0, 2)
        self.done(closed, expect=1)
        self.assertIn("others may enter it", self.said(closed))

    def test_command_lines_that_say_too_little_are_refused(self):
        for words, text in (((), "start it with srun"), (("--rank", 1), "go together"), (("--rank", 2, "--of", 2), "from 0 to N - 1"),
                            (("--rank", 0, "--of", 2, "--rendezvous", self.shared), "--interface NAME"),
                            (("--rank", 0, "--of", 2, "--rendezvous", self.shared, "--interface", "nosuch0"), "nosuch0"),
                            (("--rank", 0, "--of", 1, "--trainers", 2), "2 on 1 node")):
            refused = self.command("site", "run", *words)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn(text, refused.stderr)


if __name__ == "__main__":
    harness.main()
