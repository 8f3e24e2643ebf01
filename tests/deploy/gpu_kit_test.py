"""The archive for a visit to a GPU machine works where there is nothing else: rehearsed in an empty root folder, on a CUDA
device that the CPU plays."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ["PATCHBAY_BIN"])


def emulated():
    env = dict(os.environ, PATCHBAY_EMULATED_GPUS="1")
    said = subprocess.run([BIN / "patchbay", "doctor", "--json"], env=env, capture_output=True, text=True, check=False)
    return "Emulated GPU" in said.stdout


@unittest.skipUnless(emulated(), "this build plays no CUDA device")
@unittest.skipUnless(os.geteuid() == 0, "another root folder needs root")
class GpuKit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="patchbay-gpu-kit-"))
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        archive = cls.root / "kit.tar.gz"
        made = subprocess.run([ROOT / "deploy/bundle", "--gpu-kit", "--from", BIN, archive], capture_output=True, text=True)
        if made.returncode != 0:
            raise AssertionError(made.stderr)
        cls.bytes = archive.stat().st_size
        subprocess.run(["tar", "-xzf", archive, "-C", cls.root, "--strip-components=1"], check=True)
        archive.unlink()
        for name in ("proc", "tmp", "dev"):
            (cls.root / name).mkdir()
        (cls.root / "dev/null").touch()

    def visit(self, *words, gpus="1"):
        jail = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c",
                'mount -t proc proc "$0/proc" && mount --bind /dev/null "$0/dev/null" && exec chroot "$0" "$@"', self.root]
        done = subprocess.run([*jail, "/visit", *words], capture_output=True, text=True, timeout=480,
                              env={"PATH": os.environ["PATH"], "PATCHBAY_EMULATED_GPUS": gpus})
        if "Operation not permitted" in done.stderr and "mount" in done.stderr:
            self.skipTest("this machine makes no mount namespaces: " + done.stderr)
        return done

    def test_a_rehearsal_passes_and_writes_its_figures(self):
        self.assertLess(self.bytes, 60e6)
        done = self.visit("--rehearse", "/tmp/report")
        logs = {path.name: path.read_text(errors="replace")[-1500:] for path in (self.root / "tmp/report").glob("*.log")}
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + json.dumps(logs, indent=1))
        steps = json.loads((self.root / "tmp/report/visit.json").read_text())["steps"]
        self.assertEqual({step["result"] for step in steps}, {"passed", "left out"})
        figures = [figure for step in steps for figure in step["figures"]]
        self.assertEqual(len(figures), 7)
        self.assertTrue(all(figure["ms"] > 0 and figure["bytes"] > 0 for figure in figures))
        self.assertEqual(len({step["note"] for step in steps if step["name"].startswith("stream")}), 1)

    def test_without_a_gpu_it_fails(self):
        done = self.visit("--rehearse", "/tmp/none", gpus="0")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stdout, "failed +tests of ops")
        self.assertEqual(self.visit("--what").returncode, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
