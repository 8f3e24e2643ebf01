"""An archive runs where there is nothing else: another root folder, no network, no C library of the host's."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ["PATCHBAY_BIN"])
RUN = """dataset: /tmp/stores
numerics: cpu
patch: {size: [128, 128]}
batch: {global_size: 8}
"""


class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="patchbay-bundle-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        archive = cls.folder / "a.tar.gz"
        made = subprocess.run([ROOT / "deploy/bundle", "--from", BIN, archive], capture_output=True, text=True)
        if made.returncode != 0:
            raise AssertionError(made.stderr)
        cls.place = cls.folder / "root" / "some place"
        cls.place.mkdir(parents=True)
        subprocess.run(["tar", "-xzf", archive, "-C", cls.place, "--strip-components=1"], check=True)

    def test_it_holds_every_library_it_needs(self):
        present = {path.name for path in (self.place / "lib").iterdir()}
        self.assertIn("ld-linux-x86-64.so.2", present)
        for file in [*(self.place / "libexec").iterdir(), *(self.place / "lib").rglob("*.so*")]:
            needed = subprocess.run(["patchelf", "--print-needed", file], capture_output=True, text=True).stdout.split()
            self.assertEqual([name for name in needed if name not in present], [], file)

    def test_it_carries_the_licences_of_the_project_and_of_its_font(self):
        self.assertTrue((self.place / "LICENSE").is_file())
        self.assertIn("Bitstream Vera", (self.place / "licenses/fonts-dejavu-core").read_text())

    def test_launchers_need_nothing_of_the_host(self):
        for launcher in (self.place / "bin").iterdir():
            listed = subprocess.run(["ldd", launcher], capture_output=True, text=True)
            self.assertIn("not a dynamic executable", listed.stdout + listed.stderr)

    def test_it_says_its_own_name_and_finds_its_programs_from_anywhere(self):
        done = subprocess.run([self.place / "bin/patchbay", "doctor", "--json"], cwd="/", capture_output=True, text=True,
                              env={"HOME": str(self.folder)})
        programs = next(c for c in json.loads(done.stdout)["checks"] if c["name"] == "programs")
        self.assertEqual(programs["state"], "ok", done.stdout)

    @unittest.skipUnless(os.geteuid() == 0, "another root folder needs root")
    def test_it_ingests_draws_and_streams_in_an_empty_root_without_network_or_fonts(self):
        root = self.folder / "root"
        for name in ("proc", "tmp", "dev"):
            (root / name).mkdir(exist_ok=True)
        (root / "tmp" / "run.yaml").write_text(RUN, encoding="utf-8")
        (root / "dev" / "null").touch()
        jail = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c",
                'mount -t proc proc "$0/proc" && mount --bind /dev/null "$0/dev/null" && exec chroot "$0" "$@"', str(root)]
        for words in (["synth", "slide", "/tmp/a.svs", "--size", "800x600"],
                      ["ingest", "/tmp/a.svs", "--out", "/tmp/stores", "--cpus", "1"],
                      ["spectra", "/tmp/stores", "--out", "/tmp/spectra", "--cpus", "1"],
                      ["stream", "/tmp/run.yaml", "--batches", "4", "--digest", "--cpus", "2"]):
            done = subprocess.run([*jail, "/some place/bin/patchbay", *words, "--json"], capture_output=True, text=True,
                                  env={"PATH": os.environ["PATH"], "HOME": "/tmp"}, timeout=240)
            if "Operation not permitted" in done.stderr and "mount" in done.stderr:
                self.skipTest("this machine makes no mount namespaces: " + done.stderr)
            self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        self.assertEqual(json.loads(done.stdout)["batches"], 4)
        self.assertTrue((root / "tmp/spectra/histogram.png").read_bytes().startswith(b"\x89PNG"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
