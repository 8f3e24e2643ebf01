"""Keys and their rights: roles, folders, revocation. Nothing is served without a key."""
import json
import os
import platform
import socket

import harness
from harness import wait_until


class Keys(harness.Case):
    def new_key(self, name, role, *more):
        made = self.command("key", "new", name, "--role", role, *more)
        self.assertEqual(made.returncode, 0, made.stderr)
        return self.folder / f"{name}.key"

    def test_wrong_missing_and_revoked_keys_are_refused_by_name(self):
        self.up(1)
        key = self.new_key("ann", "submitter", "--read", self.folder, "--write", self.folder)
        self.assertEqual(self.command("jobs", "--cluster", key).returncode, 0)
        missing = self.command("jobs", "--cluster", self.folder / "nobody.key")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("nobody.key", missing.stderr)
        self.assertEqual(self.command("key", "revoke", "ann").returncode, 0)
        revoked = self.command("jobs", "--cluster", key)
        self.assertEqual(revoked.returncode, 1)
        self.assertIn("revoked", revoked.stderr)
        rows = {(row["address"], row["reason"]): row for row in self.json("status")["dropped_peers"]}
        self.assertIn(("127.0.0.1", "its key, ann, was revoked"), rows)
        row = rows["127.0.0.1", "its key, ann, was revoked"]
        self.assertEqual((row["job"], row["rank"]), (None, None))
        self.assertGreater(row["times"], 0)
        self.assertIn("its key, ann, was revoked", self.command("status").stdout)
        stranger_home = self.folder / "stranger"
        stranger = harness.subprocess.run([str(harness.BIN / "patchbay"), "key", "new", "eve", "--role", "operator"],
                                          cwd=self.folder, env=self.environment(PATCHBAY_HOME=str(stranger_home)),
                                          capture_output=True, text=True)
        self.assertEqual(stranger.returncode, 0, stranger.stderr)

    def test_key_files_and_home_are_the_owners_alone(self):
        self.up(1)
        key = self.new_key("ann", "submitter")
        self.assertEqual(os.stat(key).st_mode & 0o077, 0)
        self.assertEqual(os.stat(self.home).st_mode & 0o077, 0)
        os.chmod(key, 0o644)
        self.assertEqual(self.command("jobs", "--cluster", key).returncode, 1)

    def test_a_key_for_another_machine_goes_to_stdout_and_into_no_file(self):
        made = self.command("key", "new", "second", "--role", "worker", "--address", "tcp://10.96.0.7:7678", "--out", "-")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn('address: "tcp://10.96.0.7:7678"\n', made.stdout)
        self.assertEqual([path.name for path in self.folder.iterdir() if path.is_file()], [])
        (self.folder / "second.key").write_text(made.stdout, encoding="utf-8")
        (self.folder / "second.key").chmod(0o600)
        refused = self.command("jobs", "--cluster", "second.key")
        self.assertNotIn("read key", refused.stderr)
        self.assertEqual(self.command("key", "new", "third", "--role", "worker", "--out", "-", "--json").returncode, 2)
        self.assertEqual([key["name"] for key in self.json("key", "list")["keys"]], ["second"])

    def test_up_makes_its_own_keys_again_when_they_are_lost_or_revoked(self):
        self.down(self.up(1))
        for name in ("operator", "node"):
            (self.home / f"{name}.key").unlink()
        self.down(self.up(1))
        for name in ("operator", platform.node()):
            entry = self.home / "keys" / f"{name}.yaml"
            entry.write_text(entry.read_text().replace("revoked: false", "revoked: true"))
        cluster = self.up(1)
        (self.home / "operator.key").unlink()
        self.assertIn("start it again", self.command("status").stderr)
        cluster.terminate()
        cluster.wait(timeout=60)
        cluster = self.up(1)
        self.assertEqual([node["name"] for node in self.json("status")["nodes"]], [platform.node()])
        self.down(cluster)

    def test_another_role_under_the_name_of_an_own_key_is_named_with_its_cure(self):
        self.down(self.up(1))
        entry = self.home / "keys" / "operator.yaml"
        entry.write_text(entry.read_text().replace('role: "operator"', 'role: "submitter"'))
        refused = self.command("up", "--cpus", 1)
        self.assertEqual(refused.returncode, 1)
        self.assertIn(f"{entry}", refused.stderr)
        self.assertIn("remove this file", refused.stderr)
        entry.unlink()
        self.down(self.up(1))

    def test_commands_wait_for_a_cluster_that_is_starting(self):
        for address in ("127.0.0.1:*", "127.0.0.1:*"):
            cluster = self.start("up", "--cpus", 1, "--state", self.folder / "state", "--listen", address)
            status = self.command("status", "--json")
            self.assertEqual(status.returncode, 0, status.stderr)
            self.down(cluster)

    def test_any_address_is_listened_on_when_it_is_named(self):
        cluster = self.up(1, "--listen", "0.0.0.0:*")
        ann = self.new_key("ann", "submitter")
        self.assertIn("127.0.0.1:", ann.read_text())
        self.assertEqual(self.command("jobs", "--cluster", ann).returncode, 0)
        self.down(cluster)
        self.assertEqual(self.command("up", "--listen", "0.0.0.0:*", "--data-policy", "rdma").returncode, 2)

    @harness.unittest.skipUnless(os.geteuid() == 0, "becoming another user needs root")
    def test_another_users_trainer_takes_its_batches_over_an_encrypted_connection(self):
        run = self.run_file(self.slide(size="800x600"))
        self.folder.chmod(0o755)
        self.up(1)
        theirs = self.folder / "bob"
        theirs.mkdir()
        self.new_key("bob", "submitter", "--read", self.folder, "--write", self.folder, "--out", theirs / "key")
        for path in (theirs, theirs / "key"):
            os.chown(path, 65534, 65534)
        words = ["stream", run, "--batches", 3, "--digest", "--json"]
        done = harness.subprocess.run([str(harness.BIN / "patchbay"), *map(str, words), "--cluster", str(theirs / "key")],
                                      user=65534, group=65534, extra_groups=[], cwd=theirs, capture_output=True,
                                      text=True, env=self.environment(PATCHBAY_HOME=str(theirs)), timeout=25, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        result, own = json.loads(done.stdout), self.json(*words)
        self.assertEqual(result["digest"], own["digest"])
        self.assertGreater(result["remote_bytes"], 0)
        self.assertEqual(own["remote_bytes"], 0)

    def test_path_outside_the_keys_folders_is_refused(self):
        slide = self.slide(size="800x600")
        self.up(1)
        inside = self.folder / "inside"
        inside.mkdir()
        key = self.new_key("ann", "submitter", "--read", inside, "--write", inside)
        result = self.command("ingest", slide, "--out", inside / "out", "--cluster", key)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(str(inside), result.stderr)
        self.assertFalse((inside / "out").exists() and list((inside / "out").glob("*.ome.zarr")))
        os.symlink(slide, inside / "link.svs")
        result = self.command("ingest", inside / "link.svs", "--out", inside / "out", "--cluster", key)
        self.assertNotEqual(result.returncode, 0)

    def test_links_in_the_keys_folders_lead_a_job_nowhere_else(self):
        outside = self.store([self.slide("o.svs", "900x700", seed=2)], "outside")
        inside = self.folder / "inside"
        inside.mkdir()
        store = next(self.store([self.slide("i.svs", "900x700")], "inside/stores").glob("*.ome.zarr"))
        self.up(1)
        key = self.new_key("ann", "submitter", "--read", inside, "--write", inside)
        run = self.run_file(store)
        words = ["stream", run, "--batches", 2, "--digest", "--cluster", key]
        shards = store / "0" / "c"
        shards.rename(inside / "moved")
        os.symlink(next(outside.glob("*.ome.zarr")) / "0" / "c", shards)
        refused = self.command(*words)
        self.assertEqual(refused.returncode, 1, refused.stdout)
        self.assertIn("leads out of", refused.stderr)
        shards.unlink()
        os.symlink("../../../moved", shards)  # stays in the key's folder
        self.assertEqual(self.command(*words).returncode, 0)
        before = sorted(outside.rglob("*"))
        out = inside / "out"
        out.mkdir()
        os.symlink(outside, out / ".patchbay-ingest")
        (self.folder / "i.svs").rename(inside / "i.svs")
        refused = self.command("ingest", inside / "i.svs", "--out", out, "--cluster", key)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("leads out of", refused.stderr)
        self.assertEqual(sorted(outside.rglob("*")), before)

    def test_trainer_key_may_not_submit_and_submitter_may_not_stop_the_cluster(self):
        slide = self.slide(size="800x600")
        self.up(1)
        trainer = self.new_key("tom", "trainer", "--read", self.folder, "--write", self.folder)
        self.assertEqual(self.command("ingest", slide, "--out", self.folder / "o", "--cluster", trainer).returncode, 1)
        submitter = self.new_key("sue", "submitter", "--read", self.folder, "--write", self.folder)
        self.assertEqual(self.command("down", "--cluster", submitter).returncode, 1)
        self.assertEqual(self.command("status").returncode, 0)

    def test_stranger_on_the_port_gets_nothing_and_does_not_disturb(self):
        cluster = self.up(1)
        address = json.loads(self.command("status", "--json").stdout).get("address", "")
        key_text = next(self.home.rglob("*.key")).read_text()
        port = next((word.rsplit(":", 1)[1].strip("\"'") for word in (address + " " + key_text).split()
                     if "127.0.0.1:" in word), None)
        self.assertIsNotNone(port, key_text)
        strangers = [socket.create_connection(("127.0.0.1", int(port))) for _ in range(100)]
        for stranger in strangers[:50]:
            stranger.sendall(os.urandom(300))
        self.assertEqual(self.command("status").returncode, 0)
        wait_until(lambda: cluster.poll() is None, "a living cluster")
        for stranger in strangers:
            stranger.close()


if __name__ == "__main__":
    harness.main()
