"""A stream is made with the numerics that it asks for, or refused; never with others silently."""
import json

import harness


class Numerics(harness.Case):
    def setUp(self):
        super().setUp()
        slide = self.slide(size="1200x1000")
        self.stores = self.store([slide])

    def config(self, numerics):
        """The path of a run config that wants these bits; None: it does not say."""
        run = self.run_file(self.stores, name=f"{numerics}.yaml")
        line = f"numerics: {numerics}\n" if numerics else ""
        run.write_text(run.read_text().replace("numerics: cpu\n", line), encoding="utf-8")
        return run

    def stream(self, numerics):
        return self.command("stream", self.config(numerics), "--digest", "--json", "--gpus", "none", "--cpus", 1)

    def test_cuda_without_a_gpu_is_refused_at_once(self):
        result = self.stream("cuda")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("numerics cuda: no node of the cluster has a GPU worker", result.stderr)
        self.assertEqual(result.stdout, "")

    def test_spectra_by_cuda_without_a_gpu_are_refused_at_once(self):
        result = self.command("spectra", self.stores, "--out", self.folder / "spectra", "--numerics", "cuda", "--gpus", "none", "--cpus", 1)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("spectra: numerics cuda: no node of the cluster has a GPU worker", result.stderr)
        self.assertFalse((self.folder / "spectra").exists())

    def test_strict_and_silence_get_what_the_cluster_has(self):
        digests = set()
        for numerics in ("cpu", "strict", None):
            result = self.stream(numerics)
            self.assertEqual(result.returncode, 0, result.stderr)
            digests.add(json.loads(result.stdout)["digest"])
        self.assertEqual(len(digests), 1)


if __name__ == "__main__":
    harness.main()
