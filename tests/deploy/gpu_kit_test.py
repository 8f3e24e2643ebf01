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
        self.assertLess(self.bytes, 66e6)  # unoptimised; deploy/bundle holds what it builds to 60 MB
        done = self.visit("--rehearse", "/tmp/report")
        logs = {path.name: path.read_text(errors="replace")[-1500:] for path in (self.root / "tmp/report").glob("*.log")}
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + json.dumps(logs, indent=1))
        steps = json.loads((self.root / "tmp/report/visit.json").read_text())["steps"]
        self.assertEqual({step["result"] for step in steps}, {"passed", "left out"})
        self.assertEqual({step["name"] for step in steps if step["result"] == "left out"},
                         {"spectra: kernels, and from host memory", "torch and Kornia", "a worker and torch's training on one GPU"})
        figures = [figure for step in steps for figure in step["figures"]]
        self.assertEqual(len(figures), 15)
        self.assertTrue(all(figure["ms"] > 0 and figure["bytes"] > 0 for figure in figures))
        kernels = {figure["what"]: figure["kernels"] for figure in figures if figure["what"].startswith(("chain, ", "volumes "))}
        self.assertEqual(kernels, {"chain, light": 1, "chain, full": 1, "chain, full with elastic and noise": 1,
                                   "chain, contrast and blur": 4, "volumes and labels, one pass": 2,
                                   "volumes and labels, affine, elastic, noise, gamma": 8,
                                   "volumes and labels, configs/colorectal.yaml": 9})
        step = next(figure for figure in figures if figure["what"].startswith("step on a stream"))
        self.assertTrue(0 < step["gpu_busy_with_steps"] <= 1 and 0 <= step["stall"] <= 1, step)
        self.assertEqual(len({step["note"] for step in steps if step["name"].startswith("stream")}), 1)

    def test_without_a_gpu_it_fails(self):
        done = self.visit("--rehearse", "/tmp/none", gpus="0")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stdout, "failed +doctor .*the NVIDIA driver shows no GPU")
        steps = json.loads((self.root / "tmp/none/visit.json").read_text())["steps"]
        self.assertEqual({step["result"] for step in steps[1:]}, {"not run", "left out"})
        self.assertEqual(self.visit("--what").returncode, 2)


NVML = """struct used { unsigned gpu, memory; };
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) { *device = (void*)uuid; return 0; }
int nvmlDeviceGetUtilizationRates(void* device, struct used* u) { u->gpu = 40; u->memory = 0; return device ? 0 : 2; }
"""
RUN = """dataset: a.svs
numerics: cpu
patch: {size: [32, 32]}
batch: {global_size: 2, dtype: float16, tail: drop}
"""


class Figures(unittest.TestCase):
    def run_python(self, *words, **env):
        return subprocess.run([*words], capture_output=True, text=True, timeout=120, check=False, env=dict(os.environ, **env))

    def folder(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="patchbay-figures-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def test_training_on_a_stream_is_measured_where_torch_and_the_module_are(self):
        script, folder = ROOT / "deploy/gpu_kit/torch_stream.py", self.folder()
        words = (folder / "run.yaml", "--device", "cpu", "--steps", "1", "--warm-up", "1")
        without = self.run_python("/usr/bin/python3", "-B", "-S", script, *words)
        self.assertEqual((without.returncode, without.stderr), (3, "torch_stream: No module named 'torch'\n"))
        if self.run_python("/usr/bin/python3", "-c", "import torch").returncode != 0:
            self.skipTest("/usr/bin/python3 has no torch")
        without = self.run_python("/usr/bin/python3", "-B", script, *words, PYTHONPATH="")
        self.assertEqual(without.returncode, 3, without.stderr)
        self.assertRegex(without.stderr, "torch_stream: no module for Python 3.*: No module named 'patchbay'")
        module = BIN.parent / "python"
        if not list(module.glob("patchbay/_extension*.so")):
            self.skipTest("this build has no Python module")
        (folder / "run.yaml").write_text(RUN.replace("a.svs", str(folder / "a.svs")))
        subprocess.run([BIN / "patchbay", "synth", "slide", folder / "a.svs", "--size", "300x300"], check=True, capture_output=True)
        (folder / "nvml.c").write_text(NVML)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", folder / "nvml.c"], check=True)
        done = self.run_python("/usr/bin/python3", "-B", script, *words, PYTHONPATH=str(module), PATCHBAY_BIN=str(BIN),
                               PATCHBAY_HOME=str(folder / "home"), LD_LIBRARY_PATH=str(folder))
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual((said["patches"], said["bytes"], said["gpu_busy_nvml"]), (2, 2 * 3 * 32 * 32 * 2, 0.4), said)
        self.assertTrue(said["ms"] > 0 and said["cached_ms"] > 0 and 0 <= said["stall"] < 1, said)

    def test_without_nvml_no_figure_is_made_up(self):
        look = "import torch_stream; b = torch_stream.BusyGpu('x'); b.start(); print(b.figures())"
        done = self.run_python("/usr/bin/python3", "-B", "-c", look, PYTHONPATH=str(ROOT / "deploy/gpu_kit"))
        self.assertIn("'gpu_busy_nvml': None", done.stdout, done.stderr)

    def test_torch_is_measured_where_it_is(self):
        script = ROOT / "deploy/gpu_kit/torch_figures.py"
        small = ("--patches", "1", "--side", "32", "--step-batch", "2", "--rounds", "1")
        without = self.run_python("/usr/bin/python3", "-B", "-S", script, *small)
        self.assertEqual(without.returncode, 3, without.stderr)
        self.assertIn("torch_figures: No module named 'torch'", without.stderr)
        if self.run_python("/usr/bin/python3", "-c", "import torch").returncode != 0:
            self.skipTest("/usr/bin/python3 has no torch")
        done = self.run_python("/usr/bin/python3", "-B", script, "--device", "cpu", *small)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = {figure["what"]: figure for figure in map(json.loads, done.stdout.splitlines())}
        step = said["ResNet-50 step on a cached batch"]
        self.assertEqual(step["parameters"], 25_557_032)  # as torchvision's
        self.assertGreater(step["step_ms"], 0)

    def test_a_program_without_the_code_of_a_gpu_is_refused(self):
        look = (ROOT / "deploy/gpu_kit/device_code.py", BIN / "patchbay-worker")
        found = self.run_python("python3", "-B", *look)
        self.assertEqual(found.returncode, 0, found.stderr)
        if json.loads(found.stdout)["architectures"]:
            self.skipTest("this build has CUDA's code")
        refused = self.run_python("python3", "-B", look[0], "--require", "80,ptx90", look[1])
        self.assertEqual(refused.returncode, 1)
        self.assertIn("patchbay-worker: has no GPU code for 80, ptx90; has none", refused.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
