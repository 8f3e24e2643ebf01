"""The runbook and the systemd screen of deploy/site, command by command, on a machine of systemd's; it plays both machines."""
import errno
import os
import pathlib
import shutil
import sys
import time
import unittest

import machine

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import missing  # noqa: E402
import pages  # noqa: E402

README, RUNBOOK = "deploy/site/README.md", "deploy/site/RUNBOOK.md"
UNITS = pages.ROOT / "deploy/site/systemd"
BIN = pathlib.Path(os.environ["PATCHBAY_BIN"]).absolute()
# In place of the pages' words: this machine is small, and has no journal of systemd's.
SUBSTITUTES = {"--cpus 16": "--cpus 2 --gpus none", "journalctl -u patchbay -n 20": "tail -n 20 /log/patchbay"}
ETC = {"passwd": "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n", "group": "root:x:0:\nnogroup:x:65534:\n",
       "pam.d/runuser": "auth sufficient pam_rootok.so\nsession required pam_permit.so\n", "login.defs": "USERGROUPS_ENAB yes\n", "default/other": ""}
LIMIT_S = 20


class Pages(unittest.TestCase):
    def test_every_section_with_commands_is_run(self):
        self.assertEqual(pages.sections(RUNBOOK)[0], "")
        # tests/sites/slurm, this file, tests/deploy/bundle_test.py, tests/sites/kubernetes.
        self.assertLessEqual(set(pages.sections(README)), {"Slurm", "systemd", "Containers", "Kubernetes"})

    def test_lines_that_a_page_shows_are_looked_for_in_order(self):
        self.assertIsNone(pages.missing("second up ...\n...No space", "node  state\nsecond  up   1\na: No space"))
        for shown, output in (("second up ...", "second suspect 1"), ("a\nb", "b\na")):
            self.assertEqual(pages.missing(shown, output), shown.splitlines()[-1])


class Runbook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.site = machine.Machine(BIN, [], ETC)
        except OSError as why:
            raise missing.absent(f"no systemd of our own: {why}") from why
        cls.addClassCleanup(cls.site.close)
        # The archive of the next version has these programs too.
        cls.site.path("opt/patchbay-0.2.0-linux-x86_64").symlink_to("patchbay-0.1.0-linux-x86_64")
        shutil.copytree(UNITS, cls.site.path("release/deploy/site/systemd"))
        for unit in UNITS.iterdir():
            machine.keep_log(cls.site.path(f"etc/systemd/system/{unit.name}.d"))

    def started(self, text):
        """A running shell on the machine, with the runbook's own command."""
        return self.site.start("bash", "-eu", "-o", "pipefail", "-c", f"cd /release; exec 2>&1\n{self.pb}{text}")

    def bash(self, text):
        with self.started(text) as shell:
            output, _ = shell.communicate(timeout=3 * LIMIT_S)
        self.assertEqual(shell.returncode, 0, f"{text}\n{output}{self.said()}")
        return output

    def said(self):
        return "".join(log.read_text(encoding="utf-8")[-3000:] for log in sorted(self.site.path("log").iterdir()))

    def wait_for(self, condition, what):
        end = time.monotonic() + LIMIT_S
        while not condition():
            self.assertLess(time.monotonic(), end, f"{what}\n{self.said()}")
            time.sleep(0.02)

    def play(self, page, section):
        """Runs the commands of a section, each block after what happens before it."""
        for at, (commands, shown) in enumerate(pages.shell(page, section)):
            self.events.pop((section, at), lambda: None)()
            for word, other in SUBSTITUTES.items():
                commands = commands.replace(word, other)
            begin = time.monotonic()
            output = self.bash(commands)
            print(f"{section}, block {at + 1}: {time.monotonic() - begin:.1f} s", flush=True)
            self.assertIsNone(pages.missing(shown, output), f"{commands}\n{output}")

    def fill(self, path, left):
        """A file that leaves so many bytes free."""
        place = os.statvfs(self.site.path(path).parent)
        try:
            self.site.path(path).write_bytes(bytes(place.f_bavail * place.f_frsize - left))
        except OSError as error:
            self.assertEqual(error.errno, errno.ENOSPC)  # the cluster took some of it meanwhile: the rest is filled

    # Events of the runbook.

    def a_user_has_slides(self):
        self.bash("install -d -o patchbay /srv/patchbay/{slides,more}\n"
                  "pb synth slide /srv/patchbay/slides/a.svs --size 1200x900\n"
                  "pb synth slide /srv/patchbay/more/small.svs --size 500x400 --seed 2\n"
                  "pb synth slide /srv/patchbay/more/large.svs --size 2400x1600 --seed 3")

    def the_node_dies(self):
        stays = self.site.path("etc/systemd/system/patchbay-node@.service.d/dead.conf")
        stays.write_text("[Service]\nRestart=no\n", encoding="utf-8")
        self.bash("systemctl daemon-reload; systemctl kill --kill-who=all --signal=KILL patchbay-node@second")
        self.wait_for(lambda: "suspect" in self.bash("pb status"), "a suspect node")

    def the_stores_fill(self):
        self.fill("srv/patchbay/filler", 4 << 20)

    def the_journal_fills(self):
        self.fill("var/lib/patchbay/filler", 0)
        self.waiting = self.started("pb ingest /srv/patchbay/slides --out /srv/patchbay/waited")
        self.wait_for(lambda: "disk is full" in self.said(), "the full disk is named")

    def an_operators_key_is_copied(self):
        self.bash("cp -p /var/lib/patchbay/operator.key /srv/patchbay/leaked.key")

    def the_copy_is_refused(self):
        self.assertIn("unknown or was revoked", self.bash("! pb jobs --cluster /srv/patchbay/leaked.key"))

    def ann_streams(self):
        self.stream = self.started("pb stream /srv/patchbay/run.yaml --cluster /srv/patchbay/ann.key --batches 2000 --step-ms 20")
        self.wait_for(lambda: "running" in self.bash("pb jobs | grep stream || true"), "a stream of ann's")

    def ended(self, shell, code):
        output, _ = shell.communicate(timeout=LIMIT_S)
        self.assertEqual(shell.returncode, code, output)
        return output

    def test_every_command_in_order(self):
        for words in (["ip", "address", "add", "10.0.0.7/32", "dev", "lo"], ["mount", "-t", "tmpfs", "-o", "size=24m,mode=755", "lib", "/var/lib"],
                      ["mount", "-t", "tmpfs", "-o", "size=96m,mode=755", "srv", "/srv/patchbay"]):
            self.assertEqual(self.site.run(*words).returncode, 0, words)
        (self.pb, _), = pages.shell(RUNBOOK, "")
        self.events = {("A key leaks", 2): self.an_operators_key_is_copied,
                       ("A key leaks", 3): self.the_copy_is_refused, ("Day one", 4): self.a_user_has_slides, ("A node dies", 0): self.the_node_dies, ("A disk fills", 0): self.the_stores_fill,
                       ("A disk fills", 2): self.the_journal_fills, ("A key leaks", 0): self.ann_streams}
        self.play(README, "systemd")
        with self.site.path("etc/default/patchbay").open("a", encoding="utf-8") as defaults:
            defaults.write("PATCHBAY_JOIN=--cpus 1 --gpus none\n")
        run, = (text for language, text in pages.blocks(RUNBOOK) if language == "yaml")
        self.site.path("srv/patchbay/run.yaml").write_text(run, encoding="utf-8")
        for section in pages.sections(RUNBOOK)[1:]:
            self.play(RUNBOOK, section)
            if section == "A disk fills":
                self.ended(self.waiting, 0)
            if section == "A key leaks":
                self.assertIn("the key is unknown or was revoked", self.ended(self.stream, 1))
                names = {path.name for path in self.site.path("srv/patchbay").glob("*/*.ome.zarr")}
                self.assertEqual(len(names), 4, "three slides, and one of them again under another name")
        self.assertEqual(self.events, {})


if __name__ == "__main__":
    unittest.main(verbosity=2)
