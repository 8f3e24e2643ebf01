"""Every container of deploy/site/kubernetes as its manifest has it, behind the policies' ports, with the commands of the page."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import manifests
import pods
from manifests import harness

GRACE_S = 20  # a pod has 45
LIMIT_S = 60


class Pods(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="patchbay-kubernetes-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.folder.chmod(0o755)
        cls.site = site = pods.Site(cls.folder)
        cls.addClassCleanup(site.close)
        slides = site.claim("patchbay-data") / "slides"
        slides.mkdir()
        cls.patchbay("synth", "slide", slides / "a.svs", "--size", "4000x3000")
        cls.scheduler = site.start("patchbay-0")
        cls.first_probe = cls.scheduler.probe()
        cls.scheduler.await_ready()
        cls.names = [name for name in site.plan if name.startswith("patchbay-worker-")]
        cls.page_said = site.page(cls.scheduler, len(cls.names))
        cls.workers = [site.start(name) for name in cls.names]
        for worker in cls.workers:
            worker.await_ready()
        cls.nodes_at_first = cls.nodes()
        # Takes 10 s; the node serves meanwhile.
        supervisor, = cls.workers[1].children()
        os.kill(supervisor, signal.SIGSTOP)

    @classmethod
    def patchbay(cls, *words):
        """A command of this machine, outside of every pod."""
        done = subprocess.run([harness.BIN / "patchbay", *map(str, words)], capture_output=True, text=True, timeout=60, check=False,
                              env={"PATCHBAY_HOME": str(cls.folder / "home"), "PATH": os.environ["PATH"], "TMPDIR": str(cls.folder)})
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return done.stdout

    def trainer(self, *more):
        self.addCleanup(lambda: (self.site.claim("patchbay-trainer") / "train").unlink(missing_ok=True))
        trainer = self.site.start("patchbay-trainer", *more, replaced=True)
        self.addCleanup(trainer.close)
        return trainer

    def await_batches(self, trainer):
        harness.wait_until(lambda: "/12  epoch 0" in trainer.said(), "a batch", LIMIT_S)

    @classmethod
    def nodes(cls):
        return {node["name"]: node["state"] for node in manifests.json.loads(cls.scheduler.run("patchbay", "status", "--json").stdout)["nodes"]}

    def test_a_stream_reaches_its_batches_across_the_pods(self):
        self.assertFalse(self.first_probe)
        self.assertEqual(self.nodes_at_first, {name: "up" for name in ["patchbay-0", *self.names]})
        began = time.monotonic()
        trainer = self.trainer()
        self.assertEqual(trainer.process.wait(timeout=LIMIT_S), 0, trainer.said())
        print(f"one epoch by the Job in {time.monotonic() - began:.1f} s")
        run = self.folder / "run.yaml"
        config, = manifests.of_kind(self.site.things, "ConfigMap")
        run.write_text(config["data"]["run.yaml"].replace("/data/stores", str(self.site.claim("patchbay-data") / "stores")), encoding="utf-8")
        self.assertIn(manifests.json.loads(self.patchbay("stream", run, "--digest", "--json"))["digest"], trainer.said())

    def test_a_preempted_trainer_goes_on_in_its_next_pod(self):
        trainer = self.trainer("--step-ms", "500")
        self.await_batches(trainer)
        self.assertEqual(trainer.stop(), 75, trainer.said())
        rules = manifests.of_kind(self.site.things, "Job")[0]["spec"]["podFailurePolicy"]["rules"]
        self.assertIn("Ignore", [rule["action"] for rule in rules if 75 in rule.get("onExitCodes", {}).get("values", [])])
        taken = int(pods.re.search(r"batches +(\d+) \(12 an epoch\)", trainer.said())[1])
        trainer.close()
        again = self.trainer()
        self.assertEqual(again.process.wait(timeout=LIMIT_S), 0, again.said())
        self.assertRegex(again.said(), rf"batches +{12 - taken} \(12 an epoch\)")

    def test_a_preempted_worker_drains_and_its_next_pod_joins(self):
        worker, trainer = self.workers[0], self.trainer("--step-ms", "100")
        self.await_batches(trainer)
        began = time.monotonic()
        self.assertEqual(worker.stop(), 75, worker.said())
        self.assertLess(time.monotonic() - began, GRACE_S)
        self.assertFalse(worker.probe())
        self.assertEqual(trainer.process.wait(timeout=LIMIT_S), 0, trainer.said())
        worker.close()
        self.workers[0] = self.site.start(worker.name, replaced=True)
        self.workers[0].await_ready()

    def test_only_the_ports_of_the_policies_are_open(self):
        trainer = self.trainer("--step-ms", "100")
        self.await_batches(trainer)
        scheduler, worker = self.scheduler, self.workers[1]
        listeners = [pod.listening(7679, 7809, 7810) for pod in (scheduler, worker, trainer)]
        try:
            service, batches = (pods.SERVICE, 7678), (trainer.ip, 7809)
            targets = [service, batches, *((pod.ip, port) for pod in (scheduler, worker, trainer) for port in (7679, 7809, 7810)), ("10.77.0.1", 53)]
            for pod, expected in ((scheduler, {batches}), (worker, {service, batches}), (trainer, {service})):
                others = [target for target in targets if target[0] != pod.ip]
                self.assertEqual(pod.opens(*others), expected, pod.name)
        finally:
            for listener in listeners:
                listener.communicate()

    def test_doctor_says_what_a_pod_has_and_lacks(self):
        done = self.workers[0].run("patchbay", "doctor", "--site", "kubernetes", "--cluster", f"/keys/{self.names[0]}.key", "--json")
        checks = manifests.json.loads(done.stdout)["checks"][-4:]
        cores = len(os.sched_getaffinity(0))
        self.assertEqual([(check["name"], check["state"], check["found"]) for check in checks], [
            ("cluster", "ok", f"tcp://{pods.SERVICE}:7678 takes the key of {self.names[0]}"),
            ("limits", "lacks", f"{cores} workers on {cores} cores, their memory: no limit, threads: no limit"),
            ("pseudonyms", "lacks", "no key of the site"), ("allocated", "ok", "0 allocated, 0 visible")])
        shown = self.page_said["patchbay doctor --site kubernetes"]
        self.assertRegex(shown, "\nok +cluster +no standing one is named")
        self.assertRegex(shown.split("\n\n")[-1], "(?s)^lacks .*: .*resources.limits.*share one [(]configs/site.md[)]")

    def test_a_replaced_scheduler_goes_on_with_its_workers(self):
        self.assertEqual(self.scheduler.stop(), 0, self.scheduler.said())
        self.assertFalse(self.scheduler.probe())
        self.scheduler.close()
        type(self).scheduler = self.site.start("patchbay-0", replaced=True)
        self.scheduler.await_ready()
        harness.wait_until(lambda: self.nodes().get(self.names[0]) == "up", "the worker at the new scheduler", LIMIT_S)

    def test_the_node_whose_supervisor_was_stopped_has_ended(self):
        worker = self.workers[1]
        self.assertEqual(worker.process.wait(timeout=LIMIT_S), 1, worker.said())
        self.assertFalse(worker.probe())


if __name__ == "__main__":
    why = pods.lacks()
    if why:
        manifests.missing.leave(why, harness.SKIPPED)
    manifests.enter(*pods.PRIVATE, "sh", "-c", pods.BRIDGE, "sh")
    harness.main()
