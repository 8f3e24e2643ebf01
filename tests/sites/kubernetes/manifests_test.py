"""Manifests of deploy/site/kubernetes against Kubernetes' schemas, and against rules of ours; each rule finds its fault."""
import copy
import functools
import unittest

import manifests
from manifests import of_kind, selects, templates

OLDEST, NEWEST = (1, 29), (1, 37)
HOST = ("hostNetwork", "hostPID", "hostIPC")
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


def volumes(things):
    return [volume for _, template in templates(things) for volume in template["spec"]["volumes"]]


def missing_parts(things):
    """Names in pods that neither the manifests nor the page's commands make."""
    made = {("PriorityClass", "system-cluster-critical")} | {(thing["kind"], thing["metadata"]["name"]) for thing in things}
    made |= {("Secret", name) for name in manifests.secrets()}
    wanted = {("PriorityClass", template["spec"]["priorityClassName"]) for _, template in templates(things)}
    wanted |= {("Service", thing["spec"]["serviceName"]) for thing in of_kind(things, "StatefulSet")}
    for volume in volumes(things):
        wanted |= {("Secret", told["secretName"]) for told in [volume.get("secret")] if told}
        wanted |= {("ConfigMap", told["name"]) for told in [volume.get("configMap")] if told}
        wanted |= {("PersistentVolumeClaim", told["claimName"]) for told in [volume.get("persistentVolumeClaim")] if told}
    return [f"missing {kind} {name}" for kind, name in sorted(wanted - made)]


def faults_of_container(container):
    own, resources = container["securityContext"], container["resources"]
    faults = []
    if ":" not in container["image"] or container["image"].endswith(":latest"):
        faults.append("image without a version")
    if own.get("allowPrivilegeEscalation") is not False or own.get("capabilities") != {"drop": ["ALL"]} or own.get("privileged"):
        faults.append("privileges")
    if own.get("readOnlyRootFilesystem") is not True:
        faults.append("writable root")
    if not {"cpu", "memory"} <= set(resources.get("limits", {})) or resources.get("requests") != resources["limits"]:
        faults.append("limits")
    return faults


def faults_of_pod(owner, template):
    pod = template["spec"]
    context = pod["securityContext"]
    faults = [fault for container in pod["containers"] for fault in faults_of_container(container)]
    if not context.get("runAsNonRoot") or min(context.get("runAsUser", 0), context.get("runAsGroup", 0), context.get("fsGroup", 0)) < 1:
        faults.append("root")
    if context.get("seccompProfile") != {"type": "RuntimeDefault"}:
        faults.append("seccomp")
    if any(pod.get(key) for key in HOST) or any("hostPath" in volume for volume in pod["volumes"]):
        faults.append("the host's")
    if pod.get("terminationGracePeriodSeconds") != 45 or pod.get("automountServiceAccountToken") is not False:
        faults.append("grace or token")
    # Variables of a service named patchbay would be named PATCHBAY_...
    if pod.get("enableServiceLinks") is not False:
        faults.append("service links")
    if owner["kind"] != "Job" and any(probe not in container for container in pod["containers"] for probe in PROBES):
        faults.append("probes")
    # The API server takes a failure policy with this alone.
    if "podFailurePolicy" in owner["spec"] and pod.get("restartPolicy") != "Never":
        faults.append("restart policy")
    if not selects(owner["spec"].get("selector", {}), template["metadata"]["labels"]):
        faults.append("selector")
    mounts = [mount["name"] for container in pod["containers"] for mount in container["volumeMounts"]]
    claims = [claim["metadata"]["name"] for claim in owner["spec"].get("volumeClaimTemplates", [])]
    if sorted(mounts) != sorted([volume["name"] for volume in pod["volumes"]] + claims):
        faults.append("mounts")
    return faults


def faults(things):
    found = missing_parts(things) + [fault for owner, template in templates(things) for fault in faults_of_pod(owner, template)]
    policies = [thing["spec"] for thing in of_kind(things, "NetworkPolicy")]
    if {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]} not in policies:
        found.append("no default deny")
    budgets = [thing["spec"]["selector"] for thing in of_kind(things, "PodDisruptionBudget")]
    for owner, template in templates(things):
        if owner["spec"].get("replicas", 1) > 1 and not any(selects(budget, template["metadata"]["labels"]) for budget in budgets):
            found.append("no disruption budget")
    return found


class Manifests(unittest.TestCase):
    def setUp(self):
        self.files = manifests.load()
        self.things = manifests.objects(self.files)

    def test_every_schema_takes_them(self):
        import kubernetes_validate
        from kubernetes_validate import utils
        utils.schema_contents = functools.lru_cache(None)(utils.schema_contents)
        self.assertEqual(max(tuple(map(int, version.split(".")[:2])) for version in utils.all_versions()), NEWEST)
        for minor in range(OLDEST[1], NEWEST[1] + 1):
            for thing in self.things:
                self.assertEqual(kubernetes_validate.validate(thing, f"1.{minor}", strict=True), f"1.{minor}")
        misspelt = copy.deepcopy(of_kind(self.things, "Job")[0])
        misspelt["spec"]["template"]["spec"]["terminationGracePeriod"] = 45
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(misspelt, f"1.{NEWEST[1]}", strict=True)

    def test_the_kustomization_lists_every_file(self):
        kustomization, = self.files.pop("kustomization.yaml")
        self.assertEqual(sorted(kustomization["resources"]), sorted(self.files))
        images = {container["image"].split(":")[0] for _, template in templates(self.things) for container in template["spec"]["containers"]}
        self.assertEqual({image["name"] for image in kustomization["images"]}, images)
        namespace, = of_kind(self.things, "Namespace")
        self.assertEqual(kustomization["namespace"], namespace["metadata"]["name"])
        self.assertEqual(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted")

    def test_they_keep_the_rules(self):
        self.assertEqual(faults(self.things), [])

    def test_each_rule_finds_its_fault(self):
        pod = lambda things, kind="StatefulSet": of_kind(things, kind)[0]["spec"]["template"]["spec"]
        box = lambda things: pod(things)["containers"][0]
        planted = {
            "image without a version": lambda things: box(things).update(image="patchbay:latest"),
            "privileges": lambda things: box(things)["securityContext"].update(capabilities={"drop": ["ALL"], "add": ["SYS_PTRACE"]}),
            "writable root": lambda things: box(things)["securityContext"].pop("readOnlyRootFilesystem"),
            "limits": lambda things: box(things)["resources"]["requests"].update(memory="1Gi"),
            "root": lambda things: pod(things)["securityContext"].update(runAsUser=0),
            "seccomp": lambda things: pod(things)["securityContext"].pop("seccompProfile"),
            "the host's": lambda things: pod(things).update(hostPID=True),
            "grace or token": lambda things: pod(things).pop("terminationGracePeriodSeconds"),
            "service links": lambda things: pod(things).pop("enableServiceLinks"),
            "probes": lambda things: box(things).pop("livenessProbe"),
            "restart policy": lambda things: pod(things, "Job").update(restartPolicy="OnFailure"),
            "selector": lambda things: of_kind(things, "StatefulSet")[0]["spec"]["selector"]["matchLabels"].update(a="b"),
            "mounts": lambda things: box(things)["volumeMounts"].pop(),
            "no default deny": lambda things: of_kind(things, "NetworkPolicy")[0]["spec"].update(policyTypes=["Ingress"]),
            "no disruption budget": lambda things: of_kind(things, "PodDisruptionBudget")[0]["spec"]["selector"]["matchLabels"].update(a="b"),
            "missing Secret none": lambda things: next(volume["secret"] for volume in volumes(things) if "secret" in volume).update(secretName="none"),
            "missing ConfigMap patchbay-trainer": lambda things: of_kind(things, "ConfigMap")[0]["metadata"].update(name="other"),
            "missing PersistentVolumeClaim patchbay-data": lambda things: of_kind(things, "PersistentVolumeClaim")[0]["metadata"].update(name="other"),
        }
        for fault, plant in planted.items():
            things = copy.deepcopy(self.things)
            plant(things)
            self.assertEqual(set(faults(things)), {fault})

    def test_the_page_makes_a_key_for_each_worker_and_names_what_there_is(self):
        workers, = (thing for thing in of_kind(self.things, "StatefulSet") if thing["metadata"]["name"] == "patchbay-worker")
        loop, = (line for line in manifests.commands() if line.startswith("for i in "))
        self.assertEqual(loop, f"for i in {' '.join(map(str, range(workers['spec']['replicas'])))}; do")
        text = " ".join(manifests.commands())
        for kind, name in (("service", "patchbay"), ("job", "patchbay-trainer")):
            self.assertIn(f"{kind} {name} ", text)
            self.assertIn((kind.title(), name), [(thing["kind"], thing["metadata"]["name"]) for thing in self.things])


if __name__ == "__main__":
    manifests.enter()
    manifests.harness.main()
