"""The bytes of a stream depend on the run config and the dataset alone: not on the number of workers, and not on
which process was killed, frozen or restarted on the way."""
import os
import pathlib
import signal

import harness
from harness import wait_until

BATCHES = 40
AUGMENT = """augment:
  - flip
  - rotate90
  - affine: {p: 0.5, degrees: [-15, 15], scale: [0.9, 1.1]}
  - elastic: {p: 0.3, points: 8, amplitude: 6}
  - hed_jitter: {p: 0.5, alpha: 0.05, beta: 0.05}
  - color_jitter: {p: 0.2, contrast: [0.8, 1.2], hue: [-0.05, 0.05]}
  - gaussian_blur: {p: 0.1}
  - gaussian_noise: {p: 0.2, std: [0, 0.02]}
"""


class StreamFaults(harness.Case):
    def setUp(self):
        super().setUp()
        self.run = self.run_file(self.once("store", lambda: self.keep(self.store([self.slide()]))), meta=True)
        text = self.run.read_text()
        self.run.write_text(text[:text.index("augment:")] + AUGMENT, encoding="utf-8")

    def reference(self):
        return self.once("digest", self.digest)

    def digest(self):
        return self.json("stream", self.run, "--batches", BATCHES, "--digest")["digest"]

    def trainer(self, step_ms=30):
        """A trainer slow enough to be in the middle when something is killed, and the folder its batches land in."""
        saved = self.folder / f"saved-{len(list(self.folder.glob('saved-*')))}"
        process = self.start("stream", self.run, "--batches", BATCHES, "--digest", "--json", "--step-ms", step_ms,
                             "--save", saved)
        return process, saved

    def await_batches(self, saved, count):
        wait_until(lambda: saved.exists() and len(list(saved.glob("*-image.npy"))) >= count, f"{count} batches")

    def digest_of(self, process):
        import json
        return json.loads(self.done(process))["digest"]

    def test_digest_is_the_same_with_1_2_and_4_workers(self):
        reference = self.reference()
        for cpus in (1, 2, 4):
            cluster = self.up(cpus)
            self.assertEqual(self.digest(), reference, f"{cpus} workers")
            self.down(cluster)

    def test_killed_worker_changes_nothing(self):
        reference = self.reference()
        cluster = self.up(2)
        trainer, saved = self.trainer()
        for batches in (3, 12, 20):
            self.await_batches(saved, batches)
            self.kill(self.pids(cluster, "patchbay-worker")[0])
        self.assertEqual(self.digest_of(trainer), reference)

    def test_frozen_worker_is_fenced_and_changes_nothing(self):
        reference = self.reference()
        cluster = self.up(2)
        trainer, saved = self.trainer(step_ms=60)
        self.await_batches(saved, 4)
        frozen = self.pids(cluster, "patchbay-worker")[0]
        self.kill(frozen, signal.SIGSTOP)
        self.assertEqual(self.digest_of(trainer), reference)
        if os.path.exists(f"/proc/{frozen}"):
            self.kill(frozen, signal.SIGCONT)

    def expect_same_without(self, program):
        """The digest of a stream during which the cluster's one process of that name was killed."""
        reference = self.reference()
        cluster = self.up(2)
        trainer, saved = self.trainer()
        self.await_batches(saved, 5)
        self.kill(self.pids(cluster, program)[0])
        self.assertEqual(self.digest_of(trainer), reference)

    def test_killed_agent_changes_nothing(self):
        self.expect_same_without("patchbay-agent")

    def test_killed_scheduler_changes_nothing(self):
        self.expect_same_without("patchbay-scheduler")

    def test_worker_frozen_as_the_scheduler_dies_changes_nothing(self):
        # The new scheduler knows neither the lease nor that its holder is frozen with a slot mapped.
        reference = self.reference()
        cluster = self.up(2)
        trainer, saved = self.trainer(step_ms=60)
        self.await_batches(saved, 4)
        frozen = self.pids(cluster, "patchbay-worker")[0]
        self.kill(frozen, signal.SIGSTOP)
        self.kill(self.pids(cluster, "patchbay-scheduler")[0])
        self.assertEqual(self.digest_of(trainer), reference)
        self.assertFalse(os.path.exists(f"/proc/{frozen}"), "its slot was granted again while it could still write")

    def test_killed_trainer_frees_its_memory_and_the_next_one_gets_the_same(self):
        reference = self.reference()
        cluster = self.up(2)
        trainer, saved = self.trainer()
        self.await_batches(saved, 5)
        trainer.kill()
        workers = self.pids(cluster, "patchbay-worker")

        def unmapped():
            return not any("memfd:patchbay" in pathlib.Path(f"/proc/{pid}/maps").read_text() for pid in workers)
        wait_until(unmapped, "workers that no longer map the dead trainer's ring", 10)
        self.assertEqual(self.digest(), reference)

    def test_stores_on_another_disk_give_the_same(self):
        import shutil
        reference = self.reference()
        other = "/dev/shm/" + self.folder.name
        shutil.copytree(self.kept / "stores", other)
        self.addCleanup(shutil.rmtree, other)
        text = self.run.read_text()
        self.assertIn(str(self.kept / "stores"), text)
        self.run = self.folder / "other.yaml"
        self.run.write_text(text.replace(str(self.kept / "stores"), other), encoding="utf-8")
        self.assertEqual(self.digest(), reference)


if __name__ == "__main__":
    harness.main()
