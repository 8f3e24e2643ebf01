"""The messages in configs/gpu.md about GPUs that cannot be used as usual, word for word, on an emulated CUDA device. Skips
where the build has none."""
import os
import pathlib
import re
import socket
import subprocess
import unittest

import harness
from gpu_test import TRAINER, emulated
from harness import wait_until

PAGE = pathlib.Path(__file__).resolve().parents[2] / "configs/gpu.md"


def rows():
    """{(found, said by): pattern} of the page's table."""
    said = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 4 and cells[2].startswith("`") and cells[0] != "found":
            text = cells[2][1:-1]
            said[cells[0], cells[1]] = ".*?".join(re.escape(part) for part in text.split("<...>"))
    return said


@unittest.skipUnless(emulated(), "this build plays no CUDA device")
class GpuRefusals(harness.Case):
    untested, seen = rows(), set()
    env = {}

    @classmethod
    def tearDownClass(cls):
        if len(cls.seen) == len(unittest.defaultTestLoader.getTestCaseNames(cls)):
            assert not cls.untested, f"rows of {PAGE.name} that no test has seen: {sorted(cls.untested)}"

    def setUp(self):
        super().setUp()
        self.seen.add(self.id())

    def environment(self, **more):
        return super().environment(**{"PATCHBAY_EMULATED_GPUS": "1", **self.env, **more})

    def says(self, found, who, text):
        """Holds what was said against the page."""
        self.assertRegex(text, rows()[found, who])
        self.untested.pop((found, who), None)

    def fault(self, name, **more):
        self.env = {"PATCHBAY_EMULATED_GPU_FAULT": name, **more}

    def taken_gpu(self):
        """A GPU in exclusive mode that another process, this one, has."""
        name = self.folder.name
        holder = socket.socket(socket.AF_UNIX)
        holder.bind(f"\0patchbay-emulated-gpu-{name}-0")
        self.addCleanup(holder.close)
        self.fault(f"exclusive:{name}")

    def trainer(self, stores, gpus="none", slots="0", numerics="cpu", **env):
        run = self.run_file(stores, meta=True)
        run.write_text(run.read_text().replace("numerics: cpu", f"numerics: {numerics}"), encoding="utf-8")
        return subprocess.run([TRAINER, run, "2", gpus, slots], cwd=self.folder, env=self.environment(**env),
                              capture_output=True, text=True, timeout=harness.LIMIT_S, check=False)

    def log(self, process):
        return pathlib.Path(process.log).read_text(encoding="utf-8")

    def test_doctor_says_what_keeps_gpus_from_being_used(self):
        for fault, found in (("no_driver", "no driver"), ("old_driver", "a driver that is too old"),
                             ("prohibited", "compute mode prohibited"), ("exclusive:x", "compute mode exclusive"),
                             ("mig", "MIG")):
            self.fault(fault)
            self.says(found, "doctor", self.command("doctor").stdout)
        self.env = {"PATCHBAY_EMULATED_GPUS": "0"}
        self.says("no device", "doctor", self.command("doctor").stdout)
        process = self.up(1)
        self.says("no device", "up", self.log(process))
        self.down(process)

    def test_a_gpu_that_the_engine_names_and_that_is_not_there_is_refused_by_name(self):
        self.env = {"CUDA_VISIBLE_DEVICES": "0,GPU-7"}
        refused = self.command("up", "--cpus", 1)
        self.assertNotEqual(refused.returncode, 0)
        self.says("a GPU of the engine's that is not there", "up", refused.stderr)
        self.assertIn("choose GPUs: GPU-7: ", refused.stderr)

    def test_a_gpu_that_no_process_may_use_is_left_out_or_refused_by_name(self):
        self.fault("prohibited")
        refused = self.command("up", "--gpus", "0")
        self.assertNotEqual(refused.returncode, 0)
        self.says("compute mode prohibited", "up --gpus 0", refused.stderr)
        process = self.up(1)
        self.assertEqual([node["gpus"] for node in self.json("status")["nodes"]], [[]])
        self.down(process)

    def test_a_gpu_that_another_process_has_is_left_out_and_streams_that_need_it_say_so(self):
        stores = self.store([self.slide(size="600x500")])
        self.taken_gpu()
        refused = self.trainer(stores)
        self.assertNotEqual(refused.returncode, 0)
        self.says("a GPU that another process has", "trainer", refused.stderr)
        run = self.run_file(stores)
        run.write_text(run.read_text().replace("numerics: cpu", "numerics: cuda"), encoding="utf-8")
        failed = self.command("stream", run, "--batches", 1, "--cpus", 1)
        self.assertNotEqual(failed.returncode, 0)
        self.says("a worker that cannot start", "stream", failed.stderr)
        process = self.up(1)
        wait_until(lambda: "left out" in self.log(process), "the GPU is given up")
        self.says("a GPU that another process has", "up", self.log(process))
        self.says("a worker that cannot start", "up", self.log(process))
        wait_until(lambda: self.json("status")["nodes"][0]["gpus"] == [], "a node without GPUs")
        self.down(process)

    def test_slots_that_cannot_be_had_are_refused_and_those_that_cannot_be_shared_are_staged(self):
        stores = self.store([self.slide(size="600x500")])
        expected = self.trainer(stores, slots="host").stdout
        self.assertRegex(expected, "^[0-9a-f]{64}\n$")
        for found, env in (("slots that do not fit", {"PATCHBAY_EMULATED_GPU_BYTES": "1000000"}),
                           ("memory that cannot be shared", {"PATCHBAY_EMULATED_GPU_FAULT": "no_export"}),
                           ("the trainer's GPU fails", {"PATCHBAY_EMULATED_GPU_LOST_AFTER": "1"})):
            with self.subTest(found):
                refused = self.trainer(stores, **env)
                self.assertEqual((refused.returncode, refused.stdout), (1, ""), refused.stderr)
                self.says(found, "trainer", refused.stderr)
        refused = self.trainer(stores, gpus="auto", slots="host", numerics="cuda", PATCHBAY_EMULATED_GPU_BYTES="1000000")
        self.assertEqual((refused.returncode, refused.stdout), (1, ""), refused.stderr)
        self.says("patches that do not fit", "stream", refused.stderr)
        process = self.start("up", "--cpus", 1, "--gpus", "0", "--state", self.folder / "small",
                             PATCHBAY_EMULATED_GPU_BYTES="13000000")
        self.await_workers(process, 2)
        self.assertEqual(self.trainer(stores, slots="host", numerics="cuda").stdout, expected)
        self.says("room for one lane of patches, not for two", "up", self.log(process))
        self.down(process)
        self.fault("no_ipc", PATCHBAY_EMULATED_GPUS="2")
        process = self.up(1, "--gpus", "0")
        self.await_workers(process, 2)
        for found, slots in (("another container or user", "0"), ("slots on another GPU", "1")):
            with self.subTest(found):
                streamed = self.trainer(stores, slots=slots, numerics="cuda")
                self.assertEqual(streamed.stdout, expected, streamed.stderr)
                self.says(found, "up", self.log(process))
        self.down(process)

    def test_a_workers_gpu_that_fails_is_named_in_the_log(self):
        stores = self.store([self.slide(size="800x700")])
        process = self.start("up", "--cpus", 1, "--gpus", "0", "--state", self.folder / "state",
                             PATCHBAY_EMULATED_GPU_LOST_AFTER="30")  # more than 16 patches, fewer than 32
        self.await_workers(process, 2)
        streamed = self.trainer(stores, slots="host", numerics="cuda")
        self.assertEqual(streamed.returncode, 0, streamed.stderr)
        self.says("a worker's GPU fails", "up", self.log(process))
        self.down(process)


if __name__ == "__main__":
    harness.main()
