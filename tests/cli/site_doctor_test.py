"""doctor --site: the engine around a process, with problems that were planted."""
import json
import os
import pathlib
import secrets
import unittest

import program

STEP = {"SLURM_PROCID": "0", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "n1", "SLURM_NTASKS": "1", "SLURMD_NODENAME": "n1",
        "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1", "SLURM_CPUS_PER_TASK": "1", "SLURM_MEM_PER_NODE": "1000", "SLURM_JOB_PARTITION": "normal"}
GOOD = {"kill": 30, "mode": "REQUEUE", "exits": "75,99", "late": 0}
SCONTROL = """#!/bin/sh
if [ "$2" = config ]; then
  echo "Configuration data as of $(($(date +%s) - {late}))"
  printf 'KillWait                = {kill} sec\\nJobRequeue              = 1\\nRequeueExit             = {exits}\\n'
else
  echo "PartitionName=$4 GraceTime=5 PreemptMode={mode} State=UP"
fi
"""


class Case(program.Case):
    engine = "slurm"

    def checks(self, code, *words, **env):
        """{name: check} of doctor in this engine."""
        done = self.expect(code, "doctor", "--site", self.engine, *words, "--json", **self.around | env)
        return {check["name"]: check for check in json.loads(done.stdout)["checks"]}

    def lacks(self, name, means, *words, code=0, **env):
        check = self.checks(code, *words, **env)[name]
        self.assertEqual(check["state"], "broken" if code else "lacks", check)
        self.assertIn(means, check["means"])
        return check["found"]


class Slurm(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "bin").mkdir()
        (self.folder / "site.yaml").write_text("pseudonym_key: key\n")
        (self.folder / "key").write_text(secrets.token_hex(32))
        (self.folder / "key").chmod(0o640)
        self.around = STEP | {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "PATCHBAY_SITE": str(self.folder / "site.yaml")}
        self.scontrol()

    def scontrol(self, **more):
        path = self.folder / "bin/scontrol"
        path.write_text(SCONTROL.format(**GOOD | more))
        path.chmod(0o755)

    def test_a_step_that_has_all_lacks_nothing(self):
        found = self.checks(0)
        names = ["rendezvous", "ports", "state", "cluster", "clocks", "limits", "pseudonyms", "allocated", "preemption", "requeue"]
        self.assertEqual(list(found)[-len(names):], names)
        self.assertEqual([found[name]["means"] for name in names], [""] * len(names))
        self.assertIn("seen by 1 of 1 nodes", found["rendezvous"]["found"])
        self.assertIn("1 worker on", found["limits"]["found"])
        self.assertEqual(list((self.folder / "home/rendezvous").iterdir()), [])

    def test_each_problem_is_a_line_with_its_remedy_at_the_end(self):
        self.scontrol(exits="(null)", kill=1)
        lines = self.expect(0, "doctor", "--site", "slurm", **self.around).stdout.splitlines()
        problems = lines[lines.index("") + 1:]
        self.assertTrue(all(line.startswith("lacks ") and ": " in line for line in problems), problems)
        self.assertEqual([line.split()[1] for line in problems[-2:]], ["preemption", "requeue"])
        self.assertIn("RequeueExit=75 in slurm.conf", problems[-1])
        self.assertIn("KillWait=30", problems[-2])

    def test_what_slurm_is_set_to(self):
        self.scontrol(mode="SUSPEND,GANG", late=60)
        self.lacks("preemption", "PreemptMode=REQUEUE")
        self.assertRegex(self.lacks("clocks", "NTP"), "^(60|61) s from")
        (self.folder / "bin/scontrol").write_text("#!/bin/sh\nexit 1\n")
        for name in ("preemption", "requeue", "clocks"):
            self.assertIn("scontrol", self.lacks(name, ""))

    def test_what_the_step_was_given(self):
        self.lacks("limits", "--cpus-per-task", SLURM_CPUS_PER_TASK="")
        self.lacks("limits", "srun needs its own", SLURM_CPUS_PER_TASK="4000")
        self.assertIn("2 allocated, 0 visible", self.lacks("allocated", "", SLURM_STEP_GPUS="0,1"))

    def test_too_few_threads(self):
        group = pathlib.Path(f"/sys/fs/cgroup/pids/patchbay-doctor-{os.getpid()}")
        try:
            group.mkdir()
            (group / "pids.max").write_text("50")
        except OSError as why:
            self.skipTest(f"no group that limits threads: {why}")
        own = pathlib.Path("/proc/self/cgroup").read_text()
        before = next(line.split(":")[2] for line in own.splitlines() if ":pids:" in line)
        (group / "cgroup.procs").write_text(str(os.getpid()))
        try:
            self.assertIn("threads: 50", self.lacks("limits", "raise pids.max"))
        finally:
            pathlib.Path(f"/sys/fs/cgroup/pids{before}/cgroup.procs").write_text(str(os.getpid()))
            group.rmdir()

    def test_a_folder_that_others_may_change(self):
        shared = self.folder / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        self.lacks("rendezvous", f"chmod 700 {shared}", "--rendezvous", shared)
        stale = shared / "doctor-slurm-7.0-restart0"
        stale.mkdir()
        stale.chmod(0o755)
        self.assertIn("others may enter it", self.lacks("rendezvous", "", "--rendezvous", shared, code=1))

    def test_a_missing_node_is_named(self):
        check = self.lacks("rendezvous", "not seen from n2", code=1, SLURM_STEP_NODELIST="n[1-2]", SLURM_NTASKS="2")
        self.assertIn("seen by 1 of 2 nodes", check)

    def test_an_interface_that_is_none(self):
        self.assertIn("nosuch0", self.lacks("ports", "--interface", "--interface", "nosuch0", code=1))
        self.assertIn("127.0.0.1", self.checks(0, "--interface", "lo")["ports"]["found"])

    def test_the_sites_key(self):
        (self.folder / "site.yaml").write_text("files: {group: users}\n")
        self.lacks("pseudonyms", "configs/site.md")
        (self.folder / "site.yaml").write_text("pseudonym_key: key\n")
        (self.folder / "key").chmod(0o644)
        self.assertIn("chmod 640", self.lacks("pseudonyms", "nothing can be ingested", code=1))
        (self.folder / "key").unlink()
        self.assertIn("No such file", self.lacks("pseudonyms", "nothing can be ingested", code=1))

    def test_the_key_of_a_standing_cluster(self):
        path = self.json("key", "new", "n1", "--role", "worker", "--address", "tcp://127.0.0.1:9")["path"]
        self.lacks("cluster", "does not take the key of n1", "--cluster", path, code=1)
        os.chmod(path, 0o644)
        self.assertIn("readable by others", self.lacks("cluster", "", "--cluster", path, code=1))


class Kubernetes(Case):
    engine, around = "kubernetes", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}

    def test_gpus_that_are_not_the_pods(self):
        self.lacks("allocated", "GPUs of others", NVIDIA_VISIBLE_DEVICES="all")
        self.assertEqual(self.checks(0, NVIDIA_VISIBLE_DEVICES="void")["allocated"]["means"], "")

    def test_gpus_of_others(self):
        found = self.checks(0, PATCHBAY_EMULATED_GPUS="2", NVIDIA_VISIBLE_DEVICES="GPU-1")["allocated"]
        if "2 visible" not in found["found"]:
            self.skipTest("this build plays no CUDA device")
        self.assertEqual(found["state"], "lacks")
        self.assertIn("workers may take GPUs of others", found["means"])


class Elsewhere(program.Case):
    def test_outside_the_engine_it_says_what_is_missing(self):
        for engine, missing in (("slurm", "srun --nodes=3"), ("kubernetes", "KUBERNETES_SERVICE_HOST")):
            self.assertIn(missing, self.expect(2, "doctor", "--site", engine, KUBERNETES_SERVICE_HOST="").stderr)
        self.assertIn("slurm, systemd, kubernetes", self.expect(2, "doctor", "--site", "lsf").stderr)
        self.assertIn("--site slurm", self.expect(2, "doctor", "--interface", "lo").stderr)

    @unittest.skipIf(os.path.exists("/run/systemd/system"), "systemd runs here")
    def test_without_systemd_it_says_so(self):
        self.assertIn("/run/systemd/system", self.expect(2, "doctor", "--site", "systemd").stderr)


if __name__ == "__main__":
    program.main()
