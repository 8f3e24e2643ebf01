"""Containers by crun: without a daemon, a registry or a control group of their own."""
import json
import os
import shutil
import subprocess

LIMIT_S = 60
# crun takes no machine on which both versions of cgroups are mounted.
ALONE = 'umount -Rl /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup && exec "$@"'
PRIVATE = ["unshare", "--mount", "--propagation", "private", "sh", "-c", ALONE, "sh"]
DEVICES = [{"destination": "/proc", "type": "proc", "source": "proc"},
           {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755", "size=1m"]}]


def lacks():
    """Why no container can be made here, or ""."""
    if os.geteuid() != 0 or shutil.which("crun") is None:
        return "a container needs root and crun (deploy/packages.txt)"
    tried = subprocess.run([*PRIVATE, "true"], capture_output=True, text=True, check=False)
    return tried.stderr and "this machine makes no containers: " + tried.stderr if tried.returncode != 0 else ""


def tmpfs(place):
    return {"destination": place, "type": "tmpfs", "source": "tmpfs", "options": ["mode=1777", "size=128m"]}


def command(state, *words):
    """The command line of crun that keeps its state there."""
    return [*PRIVATE, "crun", "--root", str(state), "--cgroup-manager", "disabled", *map(str, words)]


def crun(state, *words):
    return subprocess.run(command(state, *words), capture_output=True, text=True, timeout=LIMIT_S, check=False)


def write_config(bundle, process, mounts, network=None, root="root", hostname=None, seccomp=None, readonly=True):
    """config.json of a container without any capability; process: args, env, cwd, user. network is a namespace's file, None = one
    of its own."""
    kinds = [{"type": kind} for kind in ("pid", "mount", "network", "ipc", "uts")]
    if network is not None:
        kinds[2]["path"] = str(network)
    config = {"ociVersion": "1.0.2", "root": {"path": str(root), "readonly": readonly}, "mounts": DEVICES + mounts,
              "process": {"noNewPrivileges": True, "capabilities": {}, **process}, "linux": {"namespaces": kinds}}
    if hostname is not None:
        config["hostname"] = hostname
    if seccomp is not None:
        config["linux"]["seccomp"] = seccomp
    (bundle / "config.json").write_text(json.dumps(config), encoding="utf-8")
