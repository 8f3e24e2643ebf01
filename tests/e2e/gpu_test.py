"""The GPU path with real processes, on a CUDA device that the CPU plays: the bits of the CPU whatever slots, workers
and devices make them, and whatever ends on the way. Skips where the build has no such device."""
import json
import os
import pathlib
import subprocess
import unittest

import harness
from harness import BIN, wait_until

TRAINER = BIN / "patchbay-test-gpu-trainer"
SEEDS = (1, 2)  # the emulated device orders its work by them; tests of the parts try more
FLOAT_RUN = """
dataset: {stores}
numerics: {numerics}
seed: 3
patch: {{size: [128, 128], mpp: [0.5, 1.3]}}
labels: {{set: red, mask: true}}
batch: {{global_size: 16, dtype: float16, prefetch: 2, tail: pad, meta: true}}
augment: [flip, {{affine: {{p: 1, degrees: [-20, 20]}}}}, {{elastic: {{p: 0.7, amplitude: 3}}}}, {{hed_jitter: {{p: 1}}}},
          {{color_jitter: {{p: 0.7, contrast: [0.8, 1.2]}}}}, {{gaussian_blur: {{p: 0.5, sigma: [0.5, 1.5]}}}},
          {{gaussian_noise: {{p: 1, std: [0.01, 0.05]}}}}]
"""


def emulated():
    """Whether this build emulates devices."""
    env = dict(os.environ, PATCHBAY_EMULATED_GPUS="1")
    said = subprocess.run([BIN / "patchbay", "doctor", "--json"], env=env, capture_output=True, text=True, check=False)
    return "Emulated GPU" in said.stdout


@unittest.skipUnless(emulated(), "this build plays no CUDA device")
class GpuCase(harness.Case):
    """A test with so many devices and a trainer on one of them."""
    devices, seed, more = 1, 1, {}

    def environment(self, **more):
        return super().environment(PATCHBAY_EMULATED_GPUS=str(self.devices), PATCHBAY_EMULATED_GPU_SEED=str(self.seed),
                                   **self.more, **more)

    def trainer(self, run, gpus, slots, *more):
        return subprocess.Popen([TRAINER, run, "6", gpus, slots, *more], cwd=self.folder, env=self.environment(),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def digest(self, *words):
        process = self.trainer(*words)
        out, err = process.communicate(timeout=harness.LIMIT_S)
        self.assertEqual(process.returncode, 0, err[-4000:])
        return out.strip()

    def gpu_workers(self, process):
        def serving():
            pids = [pid for pid, name in harness.processes(process.pid).items() if name == "patchbay-worker"]
            return [pid for pid in pids if b"--gpu" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]
        return wait_until(serving, "a GPU worker")

    def timeline(self, name):
        """The environment in which every process lists the work of its device in that folder."""
        (self.folder / name).mkdir()
        return {"PATCHBAY_EMULATED_GPU_TIMELINE": str(self.folder / name)}

    def with_kernels(self, name):
        return sum("kernel" in one.read_text() for one in (self.folder / name).iterdir())

    def digest_though_killed(self, run, go):
        """The digest of a trainer's stream whose GPU workers are killed after its first batch."""
        process = self.trainer(run, "auto", "0", go)
        self.assertEqual(process.stdout.readline(), "first\n")
        for pid in self.gpu_workers(process):
            self.kill(pid)
        go.write_text("")
        out, err = process.communicate(timeout=harness.LIMIT_S)
        self.assertEqual(process.returncode, 0, err[-4000:])
        return out.strip()


class Gpu(GpuCase):
    def stores(self):
        return self.store([self.slide(size="1200x1000")])

    def config(self, stores, numerics):
        run = self.run_file(stores, name=f"{numerics}.yaml", meta=True)
        run.write_text(run.read_text().replace("numerics: cpu", f"numerics: {numerics}"), encoding="utf-8")
        return run

    def test_the_machine_and_the_cluster_show_their_gpus(self):
        self.devices = 2
        said = self.command("doctor")
        self.assertEqual(said.stdout.count("Emulated GPU (sm_80)"), 2, said.stdout)
        process = self.up(1, "--gpus", "auto")
        self.await_workers(process, 3)
        described = self.json("status")
        self.assertEqual([len(node["gpus"]) for node in described["nodes"]], [2])
        self.down(process)
        refused = self.command("up", "--gpus", "GPU-none")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("GPU-none", refused.stderr)

    def test_slots_workers_and_seeds_change_no_byte(self):
        stores = self.stores()
        cpu, cuda, strict = (self.config(stores, n) for n in ("cpu", "cuda", "strict"))
        expected = self.digest(cpu, "none", "host")
        self.assertEqual(self.digest(cpu, "none", "0"), expected, "CPU workers, by pinned staging")
        for self.seed in SEEDS:
            with self.subTest(seed=self.seed):
                self.assertEqual(self.digest(cuda, "auto", "host"), expected, "a GPU worker, host slots")
                self.assertEqual(self.digest(cuda, "auto", "0"), expected, "a GPU worker, device slots")
        self.devices = 2
        self.assertEqual(self.digest(strict, "auto", "1"), expected, "all workers of two GPUs")
        self.more = self.timeline("both")
        self.assertEqual(self.digest(cuda, "auto", "1"), expected, "two GPU workers")
        self.assertEqual(self.with_kernels("both"), 2, "processes that ran kernels")

    def test_a_cluster_of_gpu_workers_alone_plans_and_makes_all(self):
        stores = self.stores()
        expected = self.json("stream", self.config(stores, "cpu"), "--digest", "--cpus", 1, "--gpus", "none")["digest"]
        cluster = self.up(0, "--gpus", "auto")
        self.await_workers(cluster, 1)
        made = self.json("stream", self.config(stores, "cuda"), "--digest", "--cluster", self.home / "operator.key")
        self.assertEqual(made["digest"], expected)
        self.down(cluster)

    def labelled(self):
        """Stores with the labels `red`."""
        stores = self.stores()
        store = next(p for p in stores.iterdir() if p.is_dir() and not p.name.startswith("."))
        square = {"type": "Feature", "properties": {"classification": {"name": "a"}},
                  "geometry": {"type": "Polygon", "coordinates": [[[200, 150], [900, 150], [700, 800], [200, 150]]]}}
        (self.folder / "red.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [square]}))
        (self.folder / "classes.yaml").write_text("classes: [{name: a, value: 1}]\n")
        self.json("labels", "import", store, "red.geojson", "--set", "red", "--classes", "classes.yaml")
        return stores

    def test_float_ops_contexts_and_masks_have_the_bytes_of_the_cpu(self):
        stores = self.labelled()
        made = {}
        for numerics, gpus in (("cpu", "none"), ("cuda", "auto"), ("strict", "auto")):
            run = self.folder / f"{numerics}.yaml"
            run.write_text(FLOAT_RUN.format(stores=stores, numerics=numerics), encoding="utf-8")
            made[numerics] = self.json("stream", run, "--digest", "--gpus", gpus, "--cpus", 1)["digest"]
        for self.seed in SEEDS:
            again = self.json("stream", self.folder / "cuda.yaml", "--digest", "--gpus", "auto", "--cpus", 1)
            self.assertEqual(again["digest"], made["cpu"], f"seed {self.seed}")
        self.assertEqual(made["cuda"], made["cpu"])
        self.assertEqual(made["strict"], made["cpu"])
        self.assertEqual(self.digest(self.folder / "cuda.yaml", "auto", "0"),
                         self.digest(self.folder / "cpu.yaml", "none", "host"), "device slots")

    def test_a_killed_gpu_worker_costs_time_alone(self):
        self.devices = 1
        stores = self.stores()
        expected = self.digest(self.config(stores, "cpu"), "none", "host")
        for self.seed in SEEDS:
            with self.subTest(seed=self.seed):
                made = self.digest_though_killed(self.config(stores, "cuda"), self.folder / f"go-{self.seed}")
                self.assertEqual(made, expected)

    def test_a_lost_device_ends_its_worker_and_not_the_run(self):
        stores = self.stores()
        expected = self.digest(self.config(stores, "cpu"), "none", "host")
        for self.seed in SEEDS:
            with self.subTest(seed=self.seed):
                ran = f"ran-{self.seed}"  # in every process: each makes a part
                self.more = {"PATCHBAY_EMULATED_GPU_LOST_AFTER": "100", **self.timeline(ran)}
                self.assertEqual(self.digest(self.config(stores, "cuda"), "auto", "host"), expected)
                self.assertGreater(self.with_kernels(ran), 1, "no device was lost")

    def test_spectra_have_the_same_bytes_on_any_number_of_devices(self):
        stores = self.store([self.slide(f"{seed}.svs", size="900x700", seed=seed) for seed in range(6)])
        made = {}
        for self.devices in (1, 2, 4):
            out = self.folder / f"spectra-{self.devices}"
            self.more = self.timeline(f"ran-{self.devices}")
            cluster = self.up(1, "--gpus", "auto")
            self.await_workers(cluster, 1 + self.devices)
            done = self.command("spectra", stores, "--out", out, "--numerics", "cuda", "--cluster", self.home / "operator.key")
            self.assertEqual(done.returncode, 0, done.stderr[-4000:])
            self.down(cluster)
            document = json.loads((out / "spectra.json").read_text())
            made[self.devices] = json.dumps([document["slides"], document["definition"]], sort_keys=True)
            self.assertGreaterEqual(self.with_kernels(f"ran-{self.devices}"), min(self.devices, 2), "devices that had a part")
        self.assertEqual(made[1], made[2])
        self.assertEqual(made[1], made[4])


if __name__ == "__main__":
    harness.main()
