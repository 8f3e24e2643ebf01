"""Every planted fault is found within 50 seeds, and the same program without it is found by none."""
import os
import pathlib
import re
import subprocess
import unittest

PROGRAM = pathlib.Path(os.environ["PATCHBAY_BIN"]) / "planted_faults"
README = pathlib.Path(__file__).with_name("README.md")
SEEDS = 50
SEEDS_OF_WHOLE = 6


def run(name, state, seed):
    env = dict(os.environ, PATCHBAY_EMULATED_GPUS="2", PATCHBAY_EMULATED_GPU_SEED=str(seed))
    return subprocess.run([PROGRAM, name, state], env=env, capture_output=True, text=True, timeout=60, check=False)


def names(*flags):
    return subprocess.run([PROGRAM, *flags], capture_output=True, text=True, check=True).stdout.split()


class PlantedFaults(unittest.TestCase):
    names = names()

    def test_each_is_found(self):
        for name in self.names:
            found = next((seed for seed in range(1, SEEDS + 1) if run(name, "broken", seed).returncode != 0), None)
            print(f"{name}: seed {found}: {run(name, 'broken', found or 1).stderr.strip()[:160]}")
            with self.subTest(name):
                self.assertIsNotNone(found)

    def test_nothing_is_found_without_them(self):
        for name in self.names:
            for seed in range(1, SEEDS_OF_WHOLE + 1):
                with self.subTest(name, seed=seed):
                    result = run(name, "whole", seed)
                    self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_divergent_barrier_is_named_by_kernel_block_and_line(self):
        text = run("divergent_barrier", "broken", 1).stderr
        self.assertRegex(text, r"kernel .*HalfBarrierKernel, block \(0, 0, 0\).*planted_faults\.cu:\d+")

    def test_the_page_lists_them_all(self):
        rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", README.read_text(encoding="utf-8"), re.MULTILINE)
        listed = [name for row in rows for name in re.findall(r"[a-z_]+", row)]
        self.assertEqual(listed, self.names + names("--threads") + names("--addresses"))


class FaultsOfThreads(unittest.TestCase):
    """In a build with ThreadSanitizer."""
    flag, report = "--threads", "data race"

    def test_they_alone_are_found(self):
        for name in names(self.flag):
            with self.subTest(name):
                broken = run(name, "broken", 1)
                self.assertNotEqual(broken.returncode, 0)
                self.assertIn(self.report, broken.stderr)
                whole = run(name, "whole", 1)
                self.assertEqual((whole.returncode, whole.stderr), (0, ""))


class FaultsOfAddresses(FaultsOfThreads):
    """In a build with AddressSanitizer."""
    flag, report = "--addresses", "buffer-overflow"

    def test_the_stacks_of_fibers_are_known(self):
        """A process that is left from the host's stack after a kernel has run there says nothing of it."""
        whole = run("ipc_after_free", "whole", 1)
        self.assertEqual((whole.returncode, whole.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
