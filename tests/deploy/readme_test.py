"""Runs every command block of the README, in its order, in one folder, with the README's own run config."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sites"))
import pages  # noqa: E402

ROOT = pages.ROOT
BIN = pathlib.Path(os.environ["PATCHBAY_BIN"])


class Readme(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="patchbay-readme-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        blocks = pages.blocks("README.md")
        self.shell = [text for language, text in blocks if language == "sh"]
        self.yaml = [text for language, text in blocks if language == "yaml"]

    def run_block(self, block):
        env = os.environ | {"PATH": f"{BIN}:{ROOT}:{os.environ['PATH']}", "PATCHBAY_HOME": str(self.folder / "home"),
                            "PATCHBAY_BIN": str(BIN), "PATCHBAY_QUICKSTART_FOLDER": str(self.folder / "quick")}
        log = open(self.folder / "log", "w+", encoding="utf-8")
        shell = subprocess.Popen(["bash", "-e", "-u", "-o", "pipefail", "-c", block], cwd=self.folder, env=env,
                                 stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = shell.wait(timeout=500)
        finally:
            try:
                os.killpg(shell.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        log.seek(0)
        said = log.read()[-4000:]
        log.close()
        self.assertEqual(code, 0, f"{block}\n{said}")

    def test_every_command_block_runs(self):
        self.assertEqual((len(self.shell), len(self.yaml)), (5, 1))
        (self.folder / "run.yaml").write_text(self.yaml[0], encoding="utf-8")
        (self.folder / "deploy").symlink_to(ROOT / "deploy")
        quickstart, by_hand, stream, cluster, spectra = self.shell
        self.run_block(by_hand)
        self.run_block(quickstart)
        self.run_block(stream)
        self.run_block(spectra)
        # A shell that starts a server goes on at once; what follows needs it.
        self.assertIn("patchbay up --cpus 2 &\n", cluster)
        self.run_block(cluster.replace("patchbay up --cpus 2 &\n", "patchbay up --cpus 2 > up.log & until grep -q "
                                       "listening up.log; do kill -0 $!; done\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
