"""Patchbay in jobs of a real Slurm: one job that is a cluster and its trainer, and preemptible workers of a standing one."""
import json
import os
import pathlib
import time

import slurm
from slurm import harness, wait_until

FILES = pathlib.Path(__file__).resolve().parents[3] / "deploy/site/slurm"
NOBODY = 65534
# Workers are back 5 s after they may start, an urgent job starts within 3 s; tests share the machine. Slurm's own waits are minutes.
LONGEST_S = 15
JOBS = 20


class Jobs(slurm.Case):
    def site(self, *words, nodes=3, flags="", **options):
        """A submitted site.sbatch with this trainer; its output is in `slurm-N.out`."""
        shared = options.pop("shared", self.folder)
        more = {"PATCHBAY_SITE_FLAGS": f"--interface lo --gpus none {flags}"} | options.pop("env", {})
        return self.submit(f"--nodes={nodes}", "--cpus-per-task=1", "--mem=2000", "--time=5", f"--output={shared}/slurm-%j.out", f"--chdir={shared}",
                           FILES / "site.sbatch", *words, **more, **options)

    def said(self, job):
        return (self.folder / f"slurm-{job}.out").read_text(encoding="utf-8")

    def test_three_nodes_meet_reach_the_first_batches_and_end_with_the_trainer(self):
        run = self.run_file(self.store([self.slide(size="1300x900")]))
        alone = self.json("stream", run, "--batches", 50, "--digest")["digest"]
        train = self.folder / "train.py"
        train.write_text(f"import os\nos.execvp('patchbay', 'patchbay stream {run} --batches 50 --digest --json'.split())\n", encoding="utf-8")
        began = time.monotonic()
        said = self.screen(0, PATCHBAY_SITE_FLAGS="--interface lo --gpus none")
        job = said.split()[-1]
        self.assertEqual(self.ended(job), [0], self.said(job))
        print(f"50 batches by a job of 3 nodes in {time.monotonic() - began:.1f} s")
        result = json.loads(next(line for line in self.said(job).splitlines() if line.startswith("{")))
        self.assertEqual(result["digest"], alone)
        self.assertEqual(list((self.home / "rendezvous").iterdir()), [])
        for line in ("seen by 3 of 3 nodes", " answers, after", "PreemptMode REQUEUE, GraceTime 5 s, KillWait 5 s after SIGTERM",
                     "RequeueExit (null), JobRequeue 1: jobs end at 75 unless their script requeues them"):
            self.assertEqual(said.count(line), slurm.NODES, said)
        self.assertRegex(said, r"ok +clocks +[01] s from Slurm's controller")

    def test_a_trainer_stopped_with_work_left_is_queued_again_and_finds_a_new_cluster(self):
        script = self.folder / "train.sh"
        script.write_text('echo "start $SLURM_RESTART_COUNT $(grep address "$PATCHBAY_CLUSTER")"\n'
                          '[ -n "$SLURM_RESTART_COUNT" ] || exit 75\nexit 4\n', encoding="utf-8")
        # A first node that was killed leaves such files: of this job, but of an earlier start.
        job = self.site("sh", script, nodes=2)
        wait_until(lambda: self.job(job)["Restarts"] == "1" and self.job(job)["JobState"] == "PENDING", "the requeue", 60)
        stale = self.home / "rendezvous" / f"slurm-{job}.0-restart0"
        stale.mkdir(mode=0o700)
        (stale / "first-1").write_text("")
        # Slurm refuses a start in the second of the requeue: its credentials count whole ones.
        self.call("scontrol", "update", f"JobId={job}", "StartTime=now+2")
        self.assertEqual(self.ended(job), [4], self.said(job))
        starts = [line for line in self.said(job).splitlines() if line.startswith("start ")]
        self.assertEqual(len(starts), 2, self.said(job))
        self.assertIn("start 1 ", starts[1])

    def test_slurm_says_how_long_a_stop_may_take_counts_every_process_and_records_a_stop_with_work_left(self):
        trainer, begun, told = self.folder / "trainer.sh", self.folder / "begun", self.folder / "told"
        trainer.write_text(f'echo $PPID >{begun}.new && mv {begun}.new {begun}\nuntil [ -e {told} ]; do sleep 0.05; done\nexit 75\n')
        job = self.submit("--nodes=1", "--cpus-per-task=1", "--mem=2000", "--time=5", "--no-requeue",
                          f"--output={self.folder}/slurm-%j.out", "--wrap", f"srun patchbay site run --interface lo --gpus none -- sh {trainer}")
        site = int(wait_until(lambda: begun.exists() and begun.read_text(), "the trainer"))
        ours = wait_until(lambda: (found := harness.processes(site)) and "patchbay-worker" in found.values() and found, "a worker")
        self.assertLessEqual({"patchbay-supervisor", "patchbay-scheduler", "patchbay-agent"}, set(ours.values()))
        supervisor = next(pid for pid, name in ours.items() if name == "patchbay-supervisor")
        self.assertIn("--stop-ms\0004000\0", pathlib.Path(f"/proc/{supervisor}/cmdline").read_text(), "KillWait is 5 s")
        pids = self.call("sstat", "--noheader", "--parsable2", "--pidformat", f"--jobs={job}.0").strip().split("|")[-1]
        living = {pid for pid, name in ours.items() if name.startswith("patchbay")} | {site}
        self.assertLessEqual(living, {int(pid) for pid in pids.split(",")})
        most = lambda: self.call("sstat", "--noheader", "--parsable2", "--format=MaxRSS", f"--jobs={job}.0").strip()
        resident = sum(int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4 for pid in living)
        wait_until(lambda: most().endswith("K") and int(most()[:-1]) > resident / 2, f"Slurm counts {resident} kB")
        told.touch()
        self.assertEqual(self.ended(job), [75], self.said(job))
        self.assertRegex(self.call("sacct", "--completion", "--noheader", f"--jobs={job}"), f"(?m)^{job} .* FAILED ")

    def test_several_tasks_a_node_are_refused(self):
        refused = harness.subprocess.run(["timeout", "20", "srun", "-N1", "-n2", "--mem=100", "patchbay", "site", "run", "--", "true"], text=True,
                                         capture_output=True, env=self.environment(), check=False, cwd=self.folder)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("2 tasks on 1 node: start it once a node", refused.stderr)

    def test_twenty_jobs_of_two_users_at_once(self):
        folders = {0: self.folder, NOBODY: self.folder / "nobody"}
        self.folder.chmod(0o755)
        folders[NOBODY].mkdir()
        os.chown(folders[NOBODY], NOBODY, NOBODY)
        jobs = []
        for i in range(JOBS):
            user = (0, NOBODY)[i % 2]
            shared = folders[user]
            prefix = () if user == 0 else ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")
            env = {"PATCHBAY_HOME": str(shared / "home"), "TMPDIR": str(shared)}
            jobs.append(self.site("sh", "-c", 'id -u; date +%s%N; grep address "$PATCHBAY_CLUSTER"; patchbay status --json; date +%s%N', nodes=1, shared=shared, env=env,
                                  prefix=prefix))
        statuses = self.ended(*jobs)
        texts = [(folders[(0, NOBODY)[i % 2]] / f"slurm-{job}.out").read_text(encoding="utf-8") for i, job in enumerate(jobs)]
        self.assertEqual(statuses, [0] * JOBS, [text for text, status in zip(texts, statuses) if status != 0])
        # A job that ends leaves its port to a later one.
        times = sorted((next(line for line in text.splitlines() if line.startswith("address")),
                        *(int(line) for line in text.splitlines() if line.isdigit() and len(line) == 19)) for text in texts)
        for (address, _, end), (other, begin, _) in zip(times, times[1:]):
            self.assertTrue(address != other or end < begin, f"two jobs at once have {address}")
        self.assertEqual([{"0", str(NOBODY)} & set(text.splitlines()) for text in texts], [{"0"}, {str(NOBODY)}] * (JOBS // 2))

    def test_nodes_of_a_heterogeneous_job_are_one_cluster_and_each_has_its_own_cores(self):
        script = self.folder / "het.sh"
        # The trainer starts when every node has its key: agents may be a moment later.
        trainer = self.folder / "trainer.sh"
        trainer.write_text('until patchbay status --json >status && grep -q node2 status && grep -q node3 status; do sleep 0.1; done\ncat status\n')
        script.write_text(f"#!/bin/sh\nsrun --het-group=0,1 patchbay site run --interface lo --gpus none -- sh {trainer}\n")
        job = self.submit("--nodes=1", "--cpus-per-task=1", "--mem=1000", "--time=5", f"--output={self.folder}/slurm-%j.out", f"--chdir={self.folder}", ":",
                          "--nodes=2", "--cpus-per-task=2", "--mem=2000", script)
        self.assertEqual(self.ended(job), [0], self.said(job))
        status = json.loads(next(line for line in self.said(job).splitlines() if line.startswith("{")))
        self.assertEqual({node["name"]: node["cpus"] for node in status["nodes"]}, {"node1": 1, "node2": 2, "node3": 2})


@harness.unittest.skipIf(slurm.lacks_groups(), slurm.lacks_groups())
class Groups(slurm.Case):
    proctrack, task = "proctrack/cgroup", "task/cgroup,task/affinity"

    def test_a_cluster_takes_cores_and_memory_from_the_group_of_its_job(self):
        script = self.folder / "group.sh"
        script.write_text("#!/bin/sh\nsrun env -u SLURM_MEM_PER_NODE -u SLURM_CPUS_PER_TASK patchbay site run --interface lo --gpus none -- "
                          "cat /proc/self/cgroup\n")
        out = self.folder / "out"
        job = self.submit("--nodes=1", "--cpus-per-task=1", "--mem=1500", "--time=5", f"--output={out}", script)
        self.assertEqual(self.ended(job), [0], out.read_text(encoding="utf-8"))
        said = out.read_text(encoding="utf-8")
        self.assertRegex(said, rf":memory:/slurm.*/job_{job}/step_0")
        self.assertIn("1 CPU and 0 GPU workers, each limited to 1.3 GiB", said)


class Workers(slurm.Case):
    def test_workers_preempted_in_mid_stream_change_nothing(self):
        run = self.run_file(self.store([self.slide(size="1300x900")]), meta=True)
        alone = self.json("stream", run, "--batches", 60, "--digest")["digest"]
        (self.folder / "keys").mkdir()
        up = self.up(1, "--gpus", "none")
        array = self.screen(1, PATCHBAY_WORKER_GPUS="none").split()[-1]
        self.await_workers(up, 1 + slurm.NODES)
        said = self.call("srun", "--mem=100", "patchbay", "doctor", "--site", "slurm", "--cluster", self.folder / "keys/worker-1.key",
                         env=self.environment())
        self.assertIn("takes the key of worker-1", said)
        saved = self.folder / "saved"
        trainer = self.start("stream", run, "--batches", 60, "--digest", "--json", "--step-ms", 60, "--save", saved)
        wait_until(lambda: saved.exists() and len(list(saved.glob("*-image.npy"))) >= 6, "6 batches")
        began = time.monotonic()
        urgent = self.submit("--partition=urgent", f"--nodes={slurm.NODES}", "--exclusive", "--time=1", f"--output={self.folder}/urgent",
                             "--wrap=hostname")
        self.assertEqual(self.ended(urgent), [0])
        started = time.monotonic() - began
        self.assertIsNone(trainer.poll(), "the stream ended before its workers were preempted")
        result = json.loads(self.done(trainer))
        self.assertEqual(result["digest"], alone)
        states = self.call("scontrol", "show", "job", "-o", array)
        self.assertNotIn("JobState=RUNNING", states)
        # A requeued job would wait for two minutes, and is not started in the second of the requeue.
        self.call("scontrol", "update", f"JobId={array}", "StartTime=now+1")
        began = time.monotonic()
        self.await_workers(up, 1 + slurm.NODES)
        back = time.monotonic() - began
        self.assertLess(back, LONGEST_S)
        print(f"the workers were back {back:.1f} s after they might start")
        print(f"{slurm.NODES} of 4 workers preempted: the urgent job was done {started:.1f} s after sbatch, stall "
              f"{result['stall_fraction']:.4f}")
        self.assertLess(started, LONGEST_S)
        self.down(up)


if __name__ == "__main__":
    slurm.enter()
    harness.main()
