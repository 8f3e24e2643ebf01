"""configs/examples/train_colorectal.py, where a Python has PyTorch: it learns, and killed and resumed it
ends with the model of an uncut run."""
import csv
import re

import harness
import torch_case

CLASSES = torch_case.EXAMPLE.parent / "classes/lesions.yaml"


class ColorectalExample(torch_case.TorchCase):
    def setUp(self):
        super().setUp()
        rows = [("path", "patient_id", "fold_0", "annotation")]
        for seed in range(3):
            name = f"p{seed}"
            made = self.command("synth", "ct", name, "--size", "32x64x64", "--step", 1.5, "--pixel", 1.4, "--seed", seed,
                                "--lesions", f"{name}.nii")
            self.assertEqual(made.returncode, 0, made.stderr)
            made = self.command("ingest", name, "--out", self.folder / "stores" / name)
            self.assertEqual(made.returncode, 0, made.stderr)
            store = next(p for p in (self.folder / "stores" / name).iterdir() if (p / "zarr.json").exists())
            rows.append((store.relative_to(self.folder), name, "val" if seed == 2 else "train", f"{name}.nii"))
        with open(self.folder / "colon.csv", "w", newline="", encoding="utf-8") as out:
            csv.writer(out).writerows(rows)
        self.json("labels", "import", self.folder / "colon.csv", "--set", "lesions", "--classes", CLASSES)
        self.config = self.folder / "colorectal.yaml"

    def write(self, patches):
        text = (torch_case.EXAMPLE / "colorectal.yaml").read_text(encoding="utf-8")
        shorter = text.replace("patches_per_epoch: 160", f"patches_per_epoch: {patches}")
        self.assertNotEqual(shorter, text)
        self.config.write_text(shorter, encoding="utf-8")

    def train(self, name, epochs, save_every):
        return self.program(torch_case.EXAMPLE / "train_colorectal.py", self.config, "--epochs", epochs, "--cpus", 1,
                            "--save-every", save_every, "--checkpoint", name + ".pt")

    def test_it_learns_and_killed_and_resumed_ends_with_the_model_of_an_uncut_run(self):
        self.write(32)
        whole = self.done(self.train("whole", 2, 3))
        seen = [tuple(map(float, found)) for found in re.findall(r"loss ([0-9.]+) dice tumour ([0-9.]+) polyp ([0-9.]+)", whole)]
        self.assertEqual(len(seen), 2, whole)
        self.assertLess(seen[1][0], seen[0][0] - 0.1, whole)  # 16 steps: a start; it takes a few hundred to find lesions
        running = self.train("cut", 2, 3)
        harness.wait_until((self.folder / "cut.pt").exists, "a checkpoint")
        self.assertIsNone(running.poll(), "it ended before it was killed")
        running.kill()
        running.wait()
        self.done(self.train("cut", 2, 3))
        self.run_program("""
            import torch
            whole, cut = (torch.load(name) for name in ("whole.pt", "cut.pt"))
            assert whole["data"] == cut["data"] and whole["step"] == cut["step"] == 16
            for name, value in whole["model"].items():
                assert torch.equal(value, cut["model"][name]), f"{name} differs"
            """)


if __name__ == "__main__":
    harness.main()
