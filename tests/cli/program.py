"""Runs the real `patchbay` in a folder of its own."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

BIN = pathlib.Path(os.environ["PATCHBAY_BIN"])
LIMIT_S = 240


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="patchbay-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith("PATCHBAY_") and k != "XDG_RUNTIME_DIR"
               or k.startswith("PATCHBAY_MUTANT")}  # tests/mutants sets these
        return env | {"PATCHBAY_HOME": str(self.folder / "home"), "TMPDIR": str(self.temporary)} | more

    def run_program(self, *words, **more):
        return subprocess.run([str(BIN / "patchbay"), *map(str, words)], cwd=self.folder, text=True,
                              capture_output=True, timeout=LIMIT_S, env=self.environment(**more))

    def expect(self, code, *words, **more):
        """The finished program, which ended with that code."""
        done = self.run_program(*words, **more)
        self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}\n{done.stderr}")
        return done

    def json(self, *words, code=0):
        """The one object on stdout."""
        done = self.expect(code, *words, "--json")
        self.assertEqual(len(done.stdout.splitlines()), 1, done.stdout)
        return json.loads(done.stdout)

    def assert_nothing_left(self):
        self.assertEqual([p.name for p in self.temporary.iterdir()], [])


def main():
    unittest.main(verbosity=2)
