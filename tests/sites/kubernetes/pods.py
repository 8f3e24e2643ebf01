"""Pods of this machine: each container by crun as its manifest says, in a network namespace with the network policies alone."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import subprocess

import manifests
from manifests import harness, selects

import container

SERVICE = "10.96.0.7"
PRIVATE = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private")
BRIDGE = "ip link set lo up && ip link add pods type bridge && ip address add 10.77.0.1/24 dev pods && ip link set pods up && exec \"$@\""
SETUP = """set -e
ip link add {link} type veth peer name eth0 address 02:00:00:00:00:{ip_end} netns {pid}
ip link set {link} master pods up
nsenter --target {pid} --net sh -c 'ip link set lo up; ip address add {ip}/24 dev eth0; ip link set eth0 up; ip route add default via 10.77.0.1'
"""
# Calls that the profiles of container runtimes deny without capabilities: their RuntimeDefault, as far as it can be said without them.
DENIED = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"action": "SCMP_ACT_ERRNO", "errnoRet": 1, "names": [
    "acct", "add_key", "bpf", "delete_module", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick", "init_module", "io_uring_enter",
    "io_uring_register", "io_uring_setup", "kexec_load", "keyctl", "lookup_dcookie", "mount", "mount_setattr", "move_mount",
    "open_by_handle_at", "open_tree", "perf_event_open", "pidfd_getfd", "pivot_root", "process_vm_readv", "process_vm_writev", "ptrace",
    "quotactl", "reboot", "request_key", "setns", "settimeofday", "swapoff", "swapon", "umount2", "unshare", "userfaultfd"]}]}


def image_config():
    """The config of the image that deploy/image makes."""
    loader = importlib.machinery.SourceFileLoader("image", str(manifests.ROOT / "deploy/image"))
    image = importlib.util.module_from_spec(importlib.util.spec_from_loader("image", loader))
    loader.exec_module(image)
    return image.config_of("0.1.0", [], False)["config"]


def lacks():
    """Why no pod can be made here, or ""."""
    absent = [program for program in ("unshare", "nsenter", "ip", "nft") if container.shutil.which(program) is None]
    return f"{', '.join(absent)}: not installed (deploy/packages.txt)" if absent else container.lacks()


class Site:
    """Knowledge of the API server and the kubelets: the manifests' pods, their addresses, secrets and volumes."""

    def __init__(self, folder):
        self.folder = folder
        self.things = manifests.objects(manifests.load())
        self.image = image_config()
        self.secrets, self.pods, self.plan = {}, {}, {}
        for owner, template in manifests.templates(self.things):
            name = owner["metadata"]["name"]
            for number in range(owner["spec"].get("replicas", 1)):
                pod = name if owner["kind"] == "Job" else f"{name}-{number}"
                self.plan[pod] = (owner, template, f"10.77.0.{10 + len(self.plan)}")
        self.root = folder / "root"
        for place in ("opt/patchbay/bin", "usr/lib", "usr/lib64", "etc", "home", "tmp"):
            (self.root / place).mkdir(parents=True)
        for name in ("lib", "lib64"):
            (self.root / name).symlink_to(f"usr/{name}")
        (self.root / "etc/ld.so.cache").touch()

    def volume(self, name, group, mode=0o2775):
        """A folder as the kubelet hands out a volume: the group's."""
        place = self.folder / "volumes" / name
        if not place.exists():
            place.mkdir(parents=True)
            os.chown(place, 0, group)
            place.chmod(mode)
        return place

    def files(self, name, texts, group, mode):
        """The files of a secret or config map: links to those of the present version."""
        place = self.volume(name, group, 0o755)
        version = place / "..1"
        version.mkdir(exist_ok=True)
        for file, text in texts.items():
            (version / file).write_text(text, encoding="utf-8")
            os.chown(version / file, 0, group)
            (version / file).chmod(mode)
            if not (place / file).is_symlink():
                (place / file).symlink_to(f"..data/{file}")
        if not (place / "..data").is_symlink():
            (place / "..data").symlink_to("..1")
        return place

    def claim(self, name, group=7678):
        return self.volume(f"claim-{name}", group)

    def start(self, pod, *more, replaced=False):
        """The running container of a pod of the plan; more words go behind its arguments."""
        if pod in self.pods and not replaced:
            raise ValueError(f"{pod} runs")
        self.pods[pod] = Pod(self, pod, more)
        return self.pods[pod]

    def page(self, pod, replicas):
        """Runs the page's commands in a pod and keeps the secrets that they make; {command: stdout} of the others."""
        kept, said = {}, {}
        for words, out in manifests.executed(replicas, SERVICE):
            done = pod.run(*words)
            if done.returncode != 0:
                raise AssertionError(f"{words}: {done.stderr}")
            (said if out is None else kept)[" ".join(words) if out is None else out] = done.stdout
        for secret, source in manifests.secrets().items():
            self.secrets[secret] = {path.rsplit("/", 1)[-1]: text for path, text in kept.items() if path == source or path.startswith(source + "/")}
        return said

    def close(self):
        for pod in self.pods.values():
            pod.close()


class Pod:
    """One container of one pod, running."""

    def __init__(self, site, name, more):
        self.site, self.name = site, name
        self.owner, self.template, self.ip = site.plan[name]
        self.labels = self.template["metadata"]["labels"]
        self.spec, = self.template["spec"]["containers"]
        self.bundle = site.folder / f"pod-{name}"
        self.state = site.folder / "crun"
        self.id = f"patchbay-test-{os.getpid()}-{name}"
        self.bundle.mkdir(exist_ok=True)
        self.holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"], stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        subprocess.run(["sh", "-c", SETUP.format(link=f"v{self.holder.pid}", pid=self.holder.pid, ip=self.ip, ip_end=self.ip[-2:])], check=True)
        self.inside("nft", "-f", "-", text=self.policy())
        self._write(more)
        self.log = open(self.bundle / "log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(container.command(self.state, "run", "--bundle", self.bundle, self.id), stdout=self.log, stderr=self.log,
                                        stdin=subprocess.DEVNULL)

    def inside(self, *words, text=None):
        """A command of this machine in the pod's network."""
        return subprocess.run(["nsenter", "--target", str(self.holder.pid), "--net", *words], input=text, text=True, check=True,
                              capture_output=True, timeout=20).stdout

    def policy(self):
        """The network policies for this pod, and the cluster's service, as rules."""
        served = next(ip for owner, _, ip in self.site.plan.values() if owner["metadata"]["name"] == "patchbay")
        chains = []
        for direction, hook, side, word in (("Ingress", "input", "from", "saddr"), ("Egress", "output", "to", "daddr")):
            policies = [policy["spec"] for policy in manifests.of_kind(self.site.things, "NetworkPolicy")
                        if direction in policy["spec"]["policyTypes"] and selects(policy["spec"]["podSelector"], self.labels)]
            rules = [f"{'i' if side == 'from' else 'o'}ifname lo accept", "ct state established,related accept"]
            for rule in [rule for policy in policies for rule in policy.get(direction.lower(), [])]:
                peers = [ip for _, template, ip in self.site.plan.values()
                         if any(selects(peer["podSelector"], template["metadata"]["labels"]) for peer in rule[side])]
                rules += [f"ip {word} {{ {', '.join(peers)} }} {port['protocol'].lower()} dport {port['port']}-{port.get('endPort', port['port'])} accept"
                          for port in rule["ports"]]
            if policies:
                rules += ["meta l4proto tcp reject with tcp reset", "reject"]  # the kernel sends few ICMP errors a second
            chains.append(f"chain {hook} {{ type filter hook {hook} priority 0; policy accept;\n" + "\n".join(rules) + "\n}")
        ports = [port for service in manifests.of_kind(self.site.things, "Service") for port in service["spec"]["ports"]]
        nat = "\n".join(f"ip daddr {SERVICE} tcp dport {port['port']} dnat to {served}:{port['targetPort']}" for port in ports)
        return f"table ip pod {{\n{chains[0]}\n{chains[1]}\nchain service {{ type nat hook output priority -100;\n{nat}\n}}\n}}\n"

    def _env(self):
        """The image's variables and the manifest's, by name."""
        values = dict(variable.split("=", 1) for variable in self.site.image["Env"])
        values["KUBERNETES_SERVICE_HOST"] = "10.96.0.1"  # the kubelet's, in every pod
        fields = {"status.podIP": self.ip, "metadata.name": self.name}
        for variable in self.spec.get("env", []):
            values[variable["name"]] = variable["value"] if "value" in variable else fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        return values

    def _args(self, env, more):
        words = self.spec.get("command", self.site.image["Entrypoint"]) + self.spec.get("args", []) + list(more)
        for name, value in env.items():
            words = [word.replace(f"$({name})", value) for word in words]
        return words

    def _source(self, volume, group):
        """The folder behind a volume of the pod."""
        kind, = set(volume) - {"name"}
        told = volume[kind]
        if kind == "persistentVolumeClaim":
            return self.site.claim(told["claimName"], group)
        if kind == "emptyDir":
            return self.site.volume(f"{self.name}-{volume['name']}", group, 0o2777)
        if kind == "secret":
            return self.site.files(f"secret-{told['secretName']}", self.site.secrets[told["secretName"]], group, told["defaultMode"])
        texts, = (thing["data"] for thing in manifests.of_kind(self.site.things, "ConfigMap") if thing["metadata"]["name"] == told["name"])
        return self.site.files(f"config-{told['name']}", texts, group, 0o644)

    def _mounts(self, group):
        sources = {volume["name"]: self._source(volume, group) for volume in self.template["spec"]["volumes"]}
        for claim in self.owner["spec"].get("volumeClaimTemplates", []):
            sources[claim["metadata"]["name"]] = self.site.claim(f"{claim['metadata']['name']}-{self.name}", group)
        mounts = [(mount["mountPath"], sources[mount["name"]], mount.get("readOnly", False)) for mount in self.spec["volumeMounts"]]
        mounts += [("/opt/patchbay/bin", harness.BIN, True), ("/usr/lib", "/usr/lib", True), ("/usr/lib64", "/usr/lib64", True),
                   ("/etc/ld.so.cache", "/etc/ld.so.cache", True)]  # in place of the image's layers
        return [{"destination": place, "type": "bind", "source": str(source), "options": ["rbind", "nosuid", "nodev", "ro" if closed else "rw"]}
                for place, source, closed in mounts]

    def _write(self, more):
        pod, own = dict(self.template["spec"]["securityContext"]), dict(self.spec["securityContext"])
        group = pod.pop("fsGroup")
        process = {"user": {"uid": pod.pop("runAsUser"), "gid": pod.pop("runAsGroup"), "additionalGids": [group]},
                   "noNewPrivileges": not own.pop("allowPrivilegeEscalation")}
        read_only = own.pop("readOnlyRootFilesystem")
        rest = [own.pop("capabilities"), pod.pop("seccompProfile"), pod.pop("runAsNonRoot"), pod.pop("fsGroupChangePolicy"), own, pod]
        if rest != [{"drop": ["ALL"]}, {"type": "RuntimeDefault"}, True, "OnRootMismatch", {}, {}]:
            raise ValueError(f"{self.name}: not played here: {rest}")
        env = self._env()
        process |= {"args": self._args(env, more), "env": [f"{name}={value}" for name, value in env.items()], "cwd": self.site.image["WorkingDir"]}
        container.write_config(self.bundle, process, self._mounts(group), network=f"/proc/{self.holder.pid}/ns/net", root=self.site.root,
                               hostname=self.name, seccomp=DENIED, readonly=read_only)

    def crun(self, *words):
        return container.crun(self.state, *words)

    def run(self, *words):
        """As kubectl exec: with the user and rights of the container's own process."""
        process = json.loads((self.bundle / "config.json").read_text(encoding="utf-8"))["process"] | {"args": [str(word) for word in words]}
        (self.bundle / "exec.json").write_text(json.dumps(process), encoding="utf-8")
        return self.crun("exec", "--process", self.bundle / "exec.json", self.id)

    def probe(self, kind="readinessProbe"):
        return self.run(*self.spec[kind]["exec"]["command"]).returncode == 0

    def await_ready(self):
        def ready():
            if self.process.poll() is not None:
                raise AssertionError(f"{self.name} ended with {self.process.returncode}: {self.said()}")
            return self.probe()
        try:
            harness.wait_until(ready, f"{self.name} ready", container.LIMIT_S)
        except AssertionError as late:
            raise AssertionError(f"{late}: {self.said()} {self.run(*self.spec['readinessProbe']['exec']['command']).stderr}") from late

    def children(self):
        """The process ids, seen from here, of the children of the container's first process."""
        first = json.loads(self.crun("state", self.id).stdout)["pid"]
        return [int(pid) for pid in pathlib.Path(f"/proc/{first}/task/{first}/children").read_text(encoding="utf-8").split()]

    def said(self):
        return (self.bundle / "log").read_text(encoding="utf-8")

    def stop(self):
        """As the kubelet ends a pod: SIGTERM, and after the grace time SIGKILL; its exit status, None when it had to be killed."""
        self.crun("kill", self.id, "TERM")
        try:
            return self.process.wait(timeout=self.template["spec"]["terminationGracePeriodSeconds"])
        except subprocess.TimeoutExpired:
            return None

    def opens(self, *targets):
        """The targets (ip, port) to which a connection from the pod's network opens."""
        probe = "import socket, sys, json; print(json.dumps([socket.socket().connect_ex(tuple(to)) for to in json.loads(sys.argv[1])]))"
        codes = json.loads(self.inside("/usr/bin/python3", "-c", probe, json.dumps(targets)))
        return {target for target, code in zip(targets, codes) if code == 0}

    def listening(self, *ports):
        """Listeners of the test's own in the pod's network, until they are closed."""
        program = f"import socket, sys; kept = [socket.create_server(('', port)) for port in {ports}]; print(flush=True); sys.stdin.read()"
        process = subprocess.Popen(["nsenter", "--target", str(self.holder.pid), "--net", "/usr/bin/python3", "-c", program], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        process.stdout.readline()
        return process

    def close(self):
        """Also of a pod that has ended: its network goes."""
        if self.process.poll() is None:
            self.crun("delete", "--force", self.id)
            self.process.wait()
        self.log.close()
        # A namespace lives on for a while, and would answer for the pod that replaces this one.
        subprocess.run(["ip", "link", "delete", f"v{self.holder.pid}"], capture_output=True, check=False)
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()
