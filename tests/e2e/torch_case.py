"""Programs with PyTorch and our module, for tests."""
import functools
import os
import pathlib
import subprocess
import sys
import textwrap

import harness

MODULE = harness.BIN.parent / "python"
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "configs/examples"


# The one Python to use, which then has to have every package that a test needs.
GIVEN = os.environ.get("PATCHBAY_TORCH")


@functools.cache
def python_with(*modules):
    """The first Python that has them beside our extension, which is for one version of Python; or None."""
    for python in (GIVEN,) if GIVEN else (harness.PYTHON, sys.executable, "/usr/bin/python3"):
        looked = subprocess.run([python, "-c", "import patchbay, " + ", ".join(modules)], capture_output=True, check=False,
                                env=os.environ | {"PYTHONPATH": str(MODULE)}) if pathlib.Path(python).exists() else None
        if looked is not None and looked.returncode == 0:
            return python
    return None


class TorchCase(harness.Case):
    def setUp(self):
        super().setUp()
        self.need()

    def need(self, *packages):
        """Skips the test where no Python has PyTorch and these packages; from here on its programs run with one that has."""
        wanted = ("torch", *packages)
        self.python = python_with(*wanted)
        if self.python is None and GIVEN:
            self.fail(f"{GIVEN} lacks one of {', '.join(wanted)}, or our module is for another Python")
        if self.python is None:
            self.skipTest(f"no Python here has our module and {', '.join(wanted)} (deploy/setup --tests brings PyTorch, --torch all)")

    def program(self, *words, **env):
        log = self.folder / f"python-log-{len(list(self.folder.glob('python-log-*')))}"
        with open(log, "w", encoding="utf-8") as out:
            process = subprocess.Popen([self.python, *map(str, words)], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=out, env=self.environment(PYTHONPATH=str(MODULE), OMP_NUM_THREADS="1", **env))
        process.log = log
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        """Asks first: torchrun ends the ranks that it started, which outlive a torchrun that is killed."""
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def done(self, process, expect=0):
        try:
            code = process.wait(timeout=harness.LIMIT_S)
        except subprocess.TimeoutExpired:
            code = f"still running after {harness.LIMIT_S} s"
        self.assertEqual(code, expect, process.log.read_text()[-4000:])
        return process.log.read_text()

    def run_program(self, text):
        return self.done(self.program("-c", textwrap.dedent(text)))
