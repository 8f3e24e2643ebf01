"""doctor and key: what needs this machine alone."""
import json
import os
import platform
import socket
import stat

import program


class Doctor(program.Case):
    def test_names_what_the_machine_offers(self):
        checks = {check["name"]: check for check in self.json("doctor")["checks"]}
        for name in ("programs", "processor", "cores", "memory", "gpu", "driver", "kernel", "io", "memory lock",
                     "open files", "network", "port", "time", "home", "temporary"):
            self.assertIn(name, checks)
            self.assertIn(checks[name]["state"], ("ok", "lacks", "broken"))
        for check in checks.values():
            self.assertTrue(check["found"], check)
            self.assertEqual(check["state"] == "ok", check["means"] == "", check)

    def test_lines_for_people_say_the_same(self):
        lines = self.expect(0, "doctor").stdout.splitlines()
        self.assertEqual(len(lines), len(self.json("doctor")["checks"]))
        for line in lines:
            self.assertIn(line.split()[0], ("ok", "lacks"))

    def test_a_taken_port_is_found(self):
        with socket.socket() as taken:
            # A connection of an earlier test may linger on the port: that does not take it.
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                taken.bind(("127.0.0.1", 7678))
            except OSError:
                pass  # somebody else has it: just as good
            taken.listen()
            port = next(c for c in self.json("doctor")["checks"] if c["name"] == "port")
            self.assertEqual(port["state"], "lacks")

    def test_an_unwritable_home_is_broken_and_the_exit_code_says_so(self):
        done = self.expect(1, "doctor", "--json", PATCHBAY_HOME="/proc/nowhere")
        self.assertFalse(json.loads(done.stdout)["works"])


    def home_check(self, code):
        done = self.expect(code, "doctor", "--json")
        return next(check for check in json.loads(done.stdout)["checks"] if check["name"] == "home")

    def test_a_home_that_commands_refuse_is_broken(self):
        home = self.folder / "home"
        home.mkdir(mode=0o700)
        self.assertNotEqual(self.home_check(0)["state"], "broken")
        home.chmod(0o755)
        self.assertIn("chmod 700", self.home_check(1)["means"])
        self.expect(1, "key", "list")
        home.chmod(0o700)
        (home / "keys").mkdir(mode=0o755)
        self.assertEqual(self.home_check(1)["state"], "broken")
        (home / "keys").rmdir()
        if os.geteuid() == 0:
            os.chown(home, 12345, -1)
            self.assertIn("another user", self.home_check(1)["means"])
            os.chown(home, 0, -1)
        home.rmdir()
        home.write_text("a file")
        self.assertIn("not a folder", self.home_check(1)["means"])


class Keys(program.Case):
    def test_new_key_is_a_private_file_that_the_table_lists(self):
        made = self.json("key", "new", "ann", "--role", "submitter", "--read", "in", "--write", "out")
        self.assertEqual(made["path"], str(self.folder / "ann.key"))
        self.assertEqual(made["read"], [str(self.folder / "in")])
        self.assertEqual(stat.S_IMODE(os.stat(made["path"]).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(self.folder / "home").st_mode), 0o700)
        listed = self.json("key", "list")["keys"]
        self.assertEqual([(k["name"], k["role"], k["state"]) for k in listed], [("ann", "submitter", "valid")])

    def test_a_pseudonym_key_is_shared_between_homes(self):
        exported = self.json("key", "pseudonym", "export", "shared")["path"]
        key = (self.folder / "shared").read_text()
        self.assertRegex(key, "^[0-9a-f]{64}\n$")
        self.assertEqual((self.folder / "shared").stat().st_mode & 0o777, 0o600)
        self.assertIn("already there", self.expect(1, "key", "pseudonym", "export", exported).stderr)
        self.json("key", "pseudonym", "import", "shared")  # it has this one
        other = "0" * 63 + "1"
        (self.folder / "other").write_text(other)
        self.assertIn("chmod 640", self.expect(1, "key", "pseudonym", "import", "other").stderr)
        (self.folder / "other").chmod(0o600)
        self.assertIn("--force", self.expect(1, "key", "pseudonym", "import", "other").stderr)
        self.json("key", "pseudonym", "export", "kept")
        self.assertEqual((self.folder / "kept").read_text(), key)
        self.json("key", "pseudonym", "import", "other", "--force")
        self.json("key", "pseudonym", "export", "now")
        self.assertEqual((self.folder / "now").read_text(), other + "\n")
        for wrong in ("", "xyz", other[1:], other + "0", other + "\n" + other):
            (self.folder / "wrong").write_text(wrong)
            (self.folder / "wrong").chmod(0o600)
            said = self.expect(1, "key", "pseudonym", "import", "wrong", "--force").stderr
            self.assertIn("64 hex digits" if wrong else "wrong: empty", said)
        self.expect(2, "key", "pseudonym", "show", "x")
        self.expect(2, "key", "pseudonym", "export", "x", "--force")

    def test_a_taken_name_is_refused_and_the_file_kept(self):
        self.json("key", "new", "ann", "--role", "submitter")
        before = (self.folder / "ann.key").read_bytes()
        self.assertIn("ann", self.expect(1, "key", "new", "ann", "--role", "operator", "--out", "b.key").stderr)
        self.assertEqual((self.folder / "ann.key").read_bytes(), before)
        self.assertFalse((self.folder / "b.key").exists())

    def test_revoked_key_stays_listed_as_revoked(self):
        self.json("key", "new", "ann", "--role", "trainer")
        self.json("key", "revoke", "ann")
        self.assertEqual(self.json("key", "list")["keys"][0]["state"], "revoked")
        self.assertIn("nobody", self.expect(1, "key", "revoke", "nobody").stderr)

    def test_a_key_file_that_cannot_be_written_takes_no_name(self):
        self.assertIn("nowhere", self.expect(1, "key", "new", "bob", "--role", "trainer", "--out", "nowhere/b.key").stderr)
        self.assertEqual(self.json("key", "list")["keys"], [])
        self.json("key", "new", "bob", "--role", "trainer")

    def test_the_names_of_up_are_its_own(self):
        for name, file in (("operator", "operator"), ("node", "node"), (platform.node(), "node")):
            made = self.expect(2, "key", "new", name, "--role", "submitter")
            self.assertIn("patchbay up", made.stderr)
            self.assertIn(f"{file}.key", self.expect(2, "key", "revoke", name).stderr)
            self.assertFalse((self.folder / f"{name}.key").exists())
        self.assertEqual(self.json("key", "list")["keys"], [])

    def test_keys_of_another_cluster_are_refused(self):
        key = self.json("key", "new", "ann", "--role", "submitter")["path"]
        elsewhere = {"PATCHBAY_HOME": str(self.folder / "elsewhere")}
        for words in (["new", "bob", "--role", "submitter"], ["list"], ["revoke", "ann"]):
            self.assertIn("PATCHBAY_HOME", self.expect(2, "key", *words, "--cluster", key, **elsewhere).stderr)
            self.expect(2, "key", *words, PATCHBAY_CLUSTER=key, **elsewhere)
        self.assertFalse((self.folder / "elsewhere").exists())
        self.assertEqual([k["name"] for k in self.json("key", "list", "--cluster", key)["keys"]], ["ann"])

    def test_bad_names_are_refused(self):
        for name in ("../evil", ".hidden", "a/b", "x" * 65):
            self.assertEqual(self.run_program("key", "new", name, "--role", "worker").returncode, 1, name)

    def test_a_key_without_a_role_is_none(self):
        self.assertIn("--role", self.expect(2, "key", "new", "ann").stderr)

    def test_join_needs_a_workers_key(self):
        self.json("key", "new", "ann", "--role", "submitter")
        self.assertIn("role", self.expect(1, "join", "--key", "ann.key").stderr)

    def test_key_files_that_others_may_read_are_refused(self):
        path = self.json("key", "new", "node2", "--role", "worker")["path"]
        os.chmod(path, 0o644)
        self.assertIn("node2.key", self.expect(1, "join", "--key", path).stderr)


if __name__ == "__main__":
    program.main()
