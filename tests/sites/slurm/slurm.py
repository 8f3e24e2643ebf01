"""A real Slurm of three nodes on this host, in a network namespace of its own: loopback only, no port of the machine's."""
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / "e2e"), str(pathlib.Path(__file__).resolve().parents[1])]
import harness  # noqa: E402
import missing  # noqa: E402
import pages  # noqa: E402
from harness import wait_until  # noqa: E402

NODES = 3
INSIDE = "PATCHBAY_TEST_IN_NAMESPACE"
PROGRAMS = ("slurmctld", "slurmd", "munged", "srun", "sbatch", "scontrol", "squeue", "sstat", "sacct", "unshare", "ip", "setpriv")
CALL_S = 20
BLOCKS = 2  # commands of the page's section on Slurm, each block with its test
CONFIG = """
ClusterName=hospital
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=17817
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType={proctrack}
TaskPlugin={task}
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobs
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,preempt_send_user_signal,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=5
InactiveLimit=0
MinJobAge=300
NodeName=node[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[17001-{last}] CPUs=8 RealMemory=64000 State=UNKNOWN
PartitionName=normal Nodes=ALL Default=YES MaxTime=60 State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=5
PartitionName=urgent Nodes=ALL MaxTime=60 State=UP PriorityTier=10 PreemptMode=OFF
"""
GROUPS = pathlib.Path("/sys/fs/cgroup")
GROUP_CONFIG = """
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
ConstrainRAMSpace=yes
ConstrainCores=yes
AllowedSwapSpace=0
"""


def enter():
    """Runs this script again in the namespace; returns there. Ends as skipped, with the reason, where there cannot be one."""
    if INSIDE in os.environ:
        return
    why = lacks()
    if why:
        missing.leave(why, harness.SKIPPED)
    os.execvp("unshare", ["unshare", "--net", "env", f"{INSIDE}=1", "sh", "-c", 'ip link set lo up && ip address add 10.77.0.1/32 dev lo && exec "$@"', "sh", sys.executable,
                          "-B", *sys.argv])


def lacks():
    """Why no Slurm can be started here, or ""."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"{', '.join(missing)}: not installed (deploy/packages.txt)"
    if os.geteuid() != 0 or subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode != 0:
        return "a Slurm of the test's own needs root and a network namespace"
    return ""


def lacks_groups():
    """Why Slurm cannot use control groups here, or ""."""
    missing = [name for name in ("memory", "cpuset", "freezer") if not os.access(GROUPS / name / "tasks", os.W_OK)]
    return f"no control groups of version 1 that may be written: {', '.join(missing)}" if missing else ""


class Case(harness.Case):
    proctrack, task = "proctrack/linuxproc", "task/none"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slurm = cls.kept / "slurm"
        cls.addClassCleanup(cls.stop)
        cls.begin()

    @classmethod
    def begin(cls):
        for name in ("run", "state", *(f"spool-node{i + 1}" for i in range(NODES))):
            (cls.slurm / name).mkdir(parents=True)
        cls.kept.chmod(0o755)
        host, run = socket.gethostname().split(".")[0], cls.slurm / "run"
        (cls.slurm / "slurm.conf").write_text(CONFIG.format(folder=cls.slurm, host=host, nodes=NODES, last=17000 + NODES,
                                                                proctrack=cls.proctrack, task=cls.task), encoding="utf-8")
        (cls.slurm / "cgroup.conf").write_text(GROUP_CONFIG, encoding="utf-8")
        (cls.slurm / "key").write_bytes(os.urandom(1024))
        (cls.slurm / "key").chmod(0o400)
        os.environ["SLURM_CONF"] = str(cls.slurm / "slurm.conf")
        cls.call("munged", "--force", f"--key-file={cls.slurm}/key", f"--socket={run}/munge.socket", f"--pid-file={run}/munged.pid",
                 f"--log-file={cls.slurm}/munged.log", f"--seed-file={cls.slurm}/seed", "--num-threads=2")
        cls.call("slurmctld", "-c")
        for i in range(NODES):
            cls.call("slurmd", "-N", f"node{i + 1}")
        wait_until(lambda: cls.call("sinfo", "-h", "-p", "normal", "-t", "idle", "-o", "%D").strip() == str(NODES), "an idle Slurm", CALL_S)

    @classmethod
    def stop(cls):
        if cls.slurm.exists():
            subprocess.run(["timeout", "5", "scancel", "--signal=KILL", "--full", "-u", "root,nobody"], capture_output=True, check=False)
        pids = [int(path.read_text()) for path in (cls.slurm / "run").glob("*.pid")]
        living = lambda: [pid for pid in pids if pathlib.Path(f"/proc/{pid}/exe").exists()]
        for number in (harness.signal.SIGTERM, harness.signal.SIGKILL):
            end = harness.time.monotonic() + CALL_S / 4
            for pid in living():
                os.kill(pid, number)
            while living() and harness.time.monotonic() < end:
                harness.time.sleep(0.01)
        for group in sorted(GROUPS.glob("*/slurm*/**/"), reverse=True):  # slurmd leaves them
            with contextlib.suppress(OSError):
                group.rmdir()

    @staticmethod
    def call(*words, env=None, prefix=()):
        """stdout of one of Slurm's commands, which may retry for minutes without this bound."""
        done = subprocess.run([*prefix, "timeout", str(CALL_S), *map(str, words)], text=True, capture_output=True, check=False, env=env)
        if done.returncode != 0:
            raise AssertionError(f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def environment(self, **more):
        env = super().environment(**more)
        return env | {"PATH": f"{harness.BIN}:{env['PATH']}"}

    def submit(self, *words, prefix=(), **env):
        """The number of a job that was submitted."""
        return self.call("sbatch", "--parsable", *words, env=self.environment(**env), prefix=prefix).strip()

    def screen(self, block, **env):
        """stdout of a block of commands of deploy/site/README.md, in the test's folder: for its smaller nodes, and of three of them."""
        shells = pages.shell("deploy/site/README.md", "Slurm")
        self.assertEqual(len(shells), BLOCKS)
        for script in (pages.ROOT / "deploy/site/slurm").iterdir():
            shutil.copy(script, self.folder)
        text = shells[block][0]
        for word, other in (("--cpus-per-task=8 --mem=32G", "--cpus-per-task=1 --mem=2000 --time=5"), ("1 2 3 4 5 6 7 8", "1 2 3"), ("1-8", "1-3"),
                            ("PREEMPTIBLE", "normal --cpus-per-task=1 --mem=1500 --time=5"), ("DIR", str(self.folder)), ("sbatch --", "sbatch --parsable --")):
            text = text.replace(word, other)
        done = subprocess.run(["timeout", str(CALL_S), "bash", "-eu", "-c", text], text=True, capture_output=True, check=False, cwd=self.folder,
                              env=self.environment(**env))
        self.assertEqual(done.returncode, 0, f"{text}\n{done.stdout}{done.stderr}")
        return done.stdout

    def job(self, number):
        """{key: value} of `scontrol show job`, of its first row."""
        return dict(word.split("=", 1) for word in self.call("scontrol", "show", "job", "-o", number).split() if "=" in word)

    def ended(self, *jobs):
        """Waits for the end of jobs; their exit statuses."""
        ends = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED")
        found = []
        for job in jobs:
            row = wait_until(lambda job=job: (row := self.job(job))["JobState"] in ends and row, f"the end of job {job}", 60)
            found.append(int(row["ExitCode"].split(":")[0]))
        return found
