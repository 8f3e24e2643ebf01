"""A site: one pseudonym key for all homes, and published files that a group may read."""
import grp
import os
import pathlib
import re
import secrets
import stat
import struct

import harness

STRANGER = 65534
GROUP, OTHER_GROUP = "users", "games"
SIZE = {"size": "800x600"}


def default_acl(user):
    """A default ACL by which this user may read and write, as the kernel keeps it."""
    entries = [(0x01, 7, 0xFFFFFFFF), (0x02, 7, user), (0x04, 5, 0xFFFFFFFF), (0x10, 7, 0xFFFFFFFF), (0x20, 0, 0xFFFFFFFF)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


class Site(harness.Case):
    def setUp(self):
        super().setUp()
        self.key = self.folder / "site" / "pseudonym.key"
        self.key.parent.mkdir()
        self.key.write_text(secrets.token_hex(32) + "\n")
        self.key.chmod(0o640)
        self.site("pseudonym_key: pseudonym.key\n")

    def site(self, text):
        (self.key.parent / "site.yaml").write_text(text)

    def environment(self, **more):
        return super().environment(PATCHBAY_SITE=str(self.folder / "site" / "site.yaml"), **more)

    def refused(self, *words):
        result = self.command(*words)
        self.assertEqual(result.returncode, 1, result.stdout)
        return result.stderr

    def test_homes_of_a_site_give_a_slide_one_name(self):
        slide = self.slide(**SIZE)
        names = []
        for home in ("one", "two"):
            self.home = self.folder / home
            self.assertEqual(self.command("ingest", slide, "--out", home + "-out").returncode, 0)
            names.append([path.name for path in (self.folder / (home + "-out")).glob("*.ome.zarr")])
            self.assertFalse((self.home / "pseudonym.key").exists())
        self.assertEqual(names[0], names[1])
        self.assertEqual(len(names[0]), 1)

    def test_without_the_sites_key_nothing_is_named(self):
        text, linked = self.key.read_text(), self.key.with_name("linked")
        slide = self.slide(**SIZE)

        def ingest():
            error = self.refused("ingest", slide, "--out", "out")
            self.assertFalse((self.folder / "out").exists() or (self.home / "pseudonym.key").exists())
            return error
        for content, mode, why in ((text, 0o644, "chmod 640"), (text, 0o660, "chmod 640"), ("", 0o640, "empty"),
                                   ("0" * 5000, 0o640, "too long"), ("ff" * 31, 0o640, "64 hex digits")):
            with self.subTest(why):
                self.key.write_text(content)
                self.key.chmod(mode)
                error = ingest()
                self.assertIn(why, error)
                self.assertIn(str(self.key), error)
                self.assertIn("site.yaml: the site's homes share one", error)
        self.key.write_text(text)
        self.key.rename(linked)
        self.key.symlink_to(linked)
        self.assertIn("a link", ingest())
        self.key.unlink()
        self.assertIn("No such file", ingest())
        self.key.mkdir()
        self.assertIn("not a file", ingest())

    def test_a_home_with_another_key_is_told_how_to_change(self):
        self.site("")
        self.assertEqual(self.command("key", "pseudonym", "export", "own").returncode, 0)
        self.site("pseudonym_key: pseudonym.key\n")
        error = self.refused("ingest", self.slide(**SIZE), "--out", "out")
        self.assertIn("another key than its site", error)
        self.assertEqual(self.command("key", "pseudonym", "export", "kept").returncode, 0)
        self.assertEqual((self.folder / "kept").read_text(), (self.folder / "own").read_text())
        self.assertIn(f"import {self.key} --force", error)
        self.assertEqual(self.command("key", "pseudonym", "import", self.key, "--force").returncode, 0)
        self.assertEqual(self.command("ingest", "a.svs", "--out", "out").returncode, 0)

    def test_faults_of_the_file_are_named_with_line_and_key(self):
        for text, why in (("pseudonym_keys: x\n", "site.yaml:1: unknown key 'pseudonym_keys'"),
                          ("files:\n  mode: '0640'\n", "files.group"),
                          (f"files:\n  group: {GROUP}\n  mode: '0644'\n", "site.yaml:3: key 'files.mode'"),
                          ("functions: {python: /usr/bin/python3, files: own.py}\n", "site.yaml:1: key 'functions.files': 'own.py' is not absolute"),
                          ("- files\n", "site.yaml")):
            self.site(text)
            error = self.refused("key", "pseudonym", "export", "own")
            self.assertIn(why, error)
        page = (pathlib.Path(__file__).resolve().parents[2] / "configs/site.md").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"^\| `([a-z_.]+)` ", page, re.M), ["pseudonym_key", "burned_in", "functions", "functions.python", "functions.files", "files", "files.group", "files.mode"])
        self.site(page.split("```yaml\n")[1].split("```")[0])
        self.assertEqual(self.command("key", "pseudonym", "export", "own").returncode, 0)
        (self.key.parent / "site.yaml").unlink()
        self.assertIn("site.yaml", self.refused("key", "pseudonym", "export", "own"))

    def test_a_group_that_is_not_there_stops_the_node(self):
        self.site("files:\n  group: no-such-group\n")
        error = self.refused("up", "--cpus", 1, *self.listen)
        self.assertIn("site.yaml:2: key 'files.group': no-such-group: no such group", error)

    @harness.unittest.skipUnless(os.geteuid() == 0, "becoming another user needs root")
    def test_a_group_that_the_service_is_not_in_stops_the_node(self):
        self.site(f"files: {{group: {GROUP}}}\n")
        self.folder.chmod(0o755)
        home = self.folder / "theirs"
        home.mkdir(mode=0o700)
        os.chown(home, STRANGER, STRANGER)
        os.chown(self.folder / "tmp", STRANGER, STRANGER) if (self.folder / "tmp").exists() else None
        result = harness.subprocess.run([str(harness.BIN / "patchbay"), "up", "--cpus", "1", *self.listen], cwd=home, text=True,
                                        env=self.environment(PATCHBAY_HOME=str(home)), user=STRANGER, group=STRANGER,
                                        extra_groups=[], capture_output=True, timeout=60, check=False)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(f"{GROUP}: this process is no member", result.stderr)

    def readable(self, path, group):
        """Whether a user of that group alone may read it."""
        return harness.subprocess.run(["cat", str(path)], user=STRANGER, group=group, extra_groups=[], capture_output=True,
                                      check=False).returncode == 0

    @harness.unittest.skipUnless(os.geteuid() == 0, "becoming another user needs root")
    def test_published_files_are_the_groups(self):
        group, other = grp.getgrnam(GROUP).gr_gid, grp.getgrnam(OTHER_GROUP).gr_gid
        self.site(f"pseudonym_key: pseudonym.key\nfiles: {{group: {GROUP}, mode: '0640'}}\n")
        self.folder.chmod(0o755)
        slide = self.slide(**SIZE)
        theirs, by_acl = self.folder / "setgid", self.folder / "acl"
        for folder in (theirs, by_acl):
            folder.mkdir()
        os.chown(theirs, 0, other)
        theirs.chmod(0o2775)
        try:
            os.setxattr(by_acl, "system.posix_acl_default", default_acl(STRANGER))
        except OSError:
            by_acl = None  # a file system without ACLs
        cluster = self.up(1)
        self.assertEqual(self.command("ingest", slide, "--out", "plain").returncode, 0)
        self.assertEqual(self.command("labels", "tissue", "plain").returncode, 0)
        self.assertEqual(self.command("ingest", slide, "--out", theirs).returncode, 0)
        self.assertEqual(self.command("spectra", slide, "--out", "spectra").returncode, 0)
        if by_acl:
            self.assertEqual(self.command("ingest", slide, "--out", by_acl).returncode, 0)
            self.assertTrue(self.readable(by_acl / "manifest.csv", STRANGER))
        self.down(cluster)
        for out, owner in ((self.folder / "plain", group), (theirs, other), (self.folder / "spectra", group)):
            found = [path for path in out.rglob("*") if not path.name.startswith(".patchbay") and "labels" != path.name
                     and path.parent.name != "labels"]
            self.assertTrue(any(path.name == "manifest.csv" for path in found))
            for path in found:
                seen = path.stat()
                self.assertEqual((seen.st_gid, stat.S_IMODE(seen.st_mode)), (owner, 0o2750 if path.is_dir() else 0o640), path)
            self.assertTrue(self.readable(out / "manifest.csv", owner))
            self.assertFalse(self.readable(out / "manifest.csv", STRANGER))
        sets = list((self.folder / "plain").glob("*.ome.zarr/labels/*/zarr.json"))
        self.assertTrue(sets and all(self.readable(path, group) and not self.readable(path, STRANGER) for path in sets))


if __name__ == "__main__":
    harness.main()
