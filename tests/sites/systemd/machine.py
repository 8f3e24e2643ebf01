"""A machine of systemd's: it runs as PID 1 of namespaces of its own, over this machine's programs and an /etc of ours."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

SYSTEMD = "/lib/systemd/systemd"
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
# The root of the machine: programs of this one, everything else in memory, which is bounded.
BOOT = r"""
set -e
root=$0 programs=$1 etc=$2 release=patchbay-0.1.0-linux-x86_64
mount -t tmpfs -o size=512m,mode=755 root "$root"
cd "$root"
mkdir -p proc run tmp dev sys var/lib var/tmp srv/patchbay opt/"$release"/bin log root
for name in usr bin sbin lib lib64; do
  if [ -h "/$name" ]; then ln -s "$(readlink "/$name")" "$name"; else mkdir "$name"; mount --bind "/$name" "$name"; fi
done
cp -r "$etc" etc
cp /etc/ld.so.cache etc/
mount --bind "$programs" opt/"$release"/bin
ln -s "$release" opt/patchbay
mount -t proc proc proc
mount -t sysfs -o ro sys sys
mount -t cgroup2 cgroup sys/fs/cgroup
mount -t tmpfs -o size=64m,mode=755 run run
mount -t tmpfs -o size=64m,mode=755 dev dev
mkdir dev/shm dev/pts
for name in null zero full random urandom tty; do touch dev/$name; mount --bind /dev/$name dev/$name; done
ln -s pts/ptmx dev/ptmx
for name in journald.service journald.socket journald-dev-log.socket tmpfiles-setup.service tmpfiles-setup-dev.service; do
  ln -s /dev/null etc/systemd/system/systemd-$name
done
chmod 1777 tmp var/tmp dev/shm
chown 990:990 srv/patchbay
mkdir old
pivot_root . old
umount -l /old
mount --make-rshared /
ip link set lo up
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin """ + SYSTEMD + r""" --system --unit=site.target \
  --log-target=console --log-level=info --show-status=no < /dev/null
"""
TARGET = "[Unit]\nDefaultDependencies=no\nAllowIsolate=yes\n"
ETC = {"passwd": "root:x:0:0::/root:/bin/sh\npatchbay:x:990:990::/nonexistent:/bin/false\nnobody:x:65534:65534::/:/bin/false\n",
       "group": "root:x:0:\npatchbay:x:990:\nnogroup:x:65534:\n", "nsswitch.conf": "passwd: files\ngroup: files\n",
       "machine-id": "0123456789abcdef0123456789abcdef\n", "os-release": "ID=site\n", "hostname": "site\n",
       # Nothing of this distribution's boot.
       **{f"systemd/system/{name}.target": TARGET for name in ("site", "sysinit", "basic", "network-online", "shutdown", "multi-user")}}


def keep_log(drop_ins):
    """The unit's output goes to the machine's /log."""
    drop_ins.mkdir(parents=True)
    (drop_ins / "log.conf").write_text("[Service]\nStandardOutput=append:/log/%p\nStandardError=append:/log/%p\n", encoding="utf-8")


class Machine:
    """Booted by the constructor; OSError with the reason where this machine cannot."""

    def __init__(self, programs, units, etc=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="patchbay-systemd-"))
        self.group = None
        try:
            self._write_etc(units, ETC | (etc or {}))
            self._boot(programs)
        except BaseException:
            self.close()
            raise

    def _write_etc(self, units, files):
        for name, text in files.items():
            path = self.folder / "etc" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for unit in units:
            shutil.copy(unit, self.folder / "etc/systemd/system")
            keep_log(self.folder / f"etc/systemd/system/{unit.name}.d")

    def _boot(self, programs):
        if os.geteuid() != 0 or not os.path.exists(SYSTEMD):
            raise OSError("a systemd as PID 1 needs root and systemd's program")
        mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
        groups = [fields[1] for fields in mounts if fields[2] == "cgroup2"]
        if not groups:
            raise OSError("no cgroup2 is mounted here")
        own = [line[3:] for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines() if line.startswith("0::")]
        self.group = pathlib.Path(groups[0] + own[0]) / self.folder.name
        self.group.mkdir()
        (self.folder / "root").mkdir()
        self.log = open(self.folder / "log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', self.group, "unshare", "--mount", "--pid", "--fork", "--kill-child",
             "--uts", "--ipc", "--cgroup", "--net", "--propagation", "private", "sh", "-c", BOOT, self.folder / "root", programs,
             self.folder / "etc"], stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while not self._serves():
            if self.process.poll() is not None or time.monotonic() > end:
                raise OSError("systemd does not start here: " + (self.folder / "log").read_text(encoding="utf-8")[-500:])
            time.sleep(0.02)

    def _serves(self):
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        try:
            self.pid = int(children.read_text(encoding="utf-8").split()[0])
        except (OSError, IndexError):
            return False
        return self.path("run/systemd/private").exists() and self.run("systemctl", "is-active", "site.target").returncode == 0

    def path(self, name):
        """A file of the machine, seen from here."""
        return pathlib.Path(f"/proc/{self.pid}/root") / name

    def run(self, *words, user=None):
        """A command on the machine, as root or as another user."""
        who = [] if user is None else ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        return subprocess.run([*self._enter(), *who, *map(str, words)], capture_output=True, text=True, timeout=60, check=False, cwd="/",
                              env=ENVIRONMENT | {"PATCHBAY_HOME": "/var/lib/patchbay"})

    def start(self, *words):
        """A running command of root's on the machine; its output is one pipe."""
        return subprocess.Popen([*self._enter(), *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd="/", env=ENVIRONMENT)

    def _enter(self):
        return ["nsenter", "--target", str(self.pid), "--mount", "--pid", "--uts", "--ipc", "--net"]

    def processes(self):
        """{pid on this machine: program} of everything that runs there but its init."""
        found = {}
        for folder in [self.group, *self.group.rglob("*/")]:
            for pid in (folder / "cgroup.procs").read_text(encoding="utf-8").split() if folder.is_dir() else ():
                if int(pid) not in (0, self.pid, self.process.pid):
                    found[int(pid)] = pathlib.Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")[0].rsplit("/", 1)[-1]
        return found

    def close(self):
        if getattr(self, "process", None) is not None:
            self.process.kill()
            self.process.wait()
            self.log.close()
        if self.group is not None:
            for folder in [*sorted(self.group.rglob("*/"), reverse=True), self.group]:
                end = time.monotonic() + 10
                while folder.exists():
                    try:
                        folder.rmdir()
                    except OSError:
                        if time.monotonic() > end:
                            raise
                        time.sleep(0.02)  # its last processes are ending
        shutil.rmtree(self.folder, ignore_errors=True)
