"""packages_in.py FILE...: the Debian packages that the libraries FILE and the headers of packages.txt come from, as CycloneDX JSON."""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def asked(*words):
    return subprocess.run(["dpkg-query", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout.splitlines()


def owners(files):
    """Packages by their files; dpkg knows some by the path before /usr was merged."""
    paths = {str(pathlib.Path(file).resolve()) for file in files}
    paths |= {path.removeprefix("/usr") for path in paths}
    return {line.split(": ")[0].split(":")[0] for line in asked("--search", *sorted(paths))}


def main():
    listed = (ROOT / "deploy/packages.txt").read_text(encoding="utf-8").split("# Tests, lint, bundle")[0].split("\n")
    names = owners(sys.argv[1:]) | {name for name in listed if name.endswith("-dev")}
    known = asked("--show", "--showformat", "${Package} ${source:Package} ${Version} ${Architecture}\n", *sorted(names))
    components = [{"type": "library", "name": name, "version": version, "purl": f"pkg:deb/debian/{name}@{version}?arch={architecture}",
                   "properties": [{"name": "source", "value": source}]}
                  for name, source, version, architecture in map(str.split, sorted(set(known)))]
    print(json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": components}, indent=1))


if __name__ == "__main__":
    main()
