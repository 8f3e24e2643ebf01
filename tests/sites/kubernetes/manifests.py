"""The manifests of deploy/site/kubernetes, the commands of their page, and their selectors, as Kubernetes reads them."""
import json
import os
import pathlib
import re
import subprocess
import sys

SITES = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(SITES), str(SITES.parent / "e2e")]
import harness  # noqa: E402
import missing  # noqa: E402
import pages  # noqa: E402

ROOT = pages.ROOT
FOLDER = ROOT / "deploy/site/kubernetes"
PAGE = "deploy/site/kubernetes/README.md"


def enter(*prefix):
    """Runs this script again with the Python that reads YAML, behind a prefix; returns there."""
    if "PATCHBAY_TEST_ENTERED" in os.environ:
        return
    if not harness.oracles("kubernetes_validate"):
        missing.leave("kubernetes-validate: not installed (deploy/python-requirements.txt)", harness.SKIPPED)
    os.environ["PATCHBAY_TEST_ENTERED"] = "1"
    words = [*prefix, harness.PYTHON, "-B", *sys.argv]
    os.execvp(words[0], words)


def load():
    """{file: [its objects]}"""
    import yaml
    return {path.name: list(yaml.safe_load_all(path.read_text(encoding="utf-8"))) for path in sorted(FOLDER.glob("*.yaml"))}


def objects(files):
    return [thing for name, things in files.items() if name != "kustomization.yaml" for thing in things]


def of_kind(things, *kinds):
    return [thing for thing in things if thing["kind"] in kinds]


def templates(things):
    """[(the object, its pods' template)]"""
    return [(thing, thing["spec"]["template"]) for thing in of_kind(things, "StatefulSet", "Deployment", "Job")]


def selects(selector, labels):
    expressions = selector.get("matchExpressions", [])
    if any(expression["operator"] != "In" for expression in expressions):
        raise ValueError(f"not read here: {expressions}")
    return (all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
            and all(labels.get(expression["key"]) in expression["values"] for expression in expressions))


def commands():
    """The commands of the page, a logical line each."""
    text = "".join(text for _, text in pages.blocks(PAGE)).replace("\\\n", " ")
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]


def executed(replicas, address):
    """[(words run in patchbay-0, file that their output goes to or None)] of the page's commands."""
    found = []
    for line in commands():
        inside = re.search(r"kubectl exec patchbay-0 -- (.*?)(?: > (\S+?))?(?:; done)?$", line)
        if inside is None:
            continue
        for number in range(replicas) if "$i" in line else (0,):
            words, out = (text and text.replace("$i", str(number)).replace("$IP", address) for text in inside.groups())
            found.append((words.split(), out))
    return found


def secrets():
    """{secret: file or folder that the page makes it from}"""
    made = (re.search(r"kubectl create secret generic (\S+) --from-file=(\S+)", line) for line in commands())
    return {match[1]: match[2] for match in made if match}
