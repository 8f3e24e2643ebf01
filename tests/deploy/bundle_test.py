"""An archive runs where there is nothing else: another root folder, no network, no C library of the host's."""
import argparse
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sites"))
import container  # noqa: E402
import missing  # noqa: E402
import pages  # noqa: E402

ROOT = pages.ROOT
BIN = pathlib.Path(os.environ["PATCHBAY_BIN"])
RUN = """dataset: /tmp/stores
numerics: cpu
patch: {size: [128, 128]}
batch: {global_size: 8}
"""


def bundled(archive):
    made = subprocess.run([ROOT / "deploy/bundle", "--from", BIN, archive], capture_output=True, text=True)
    if made.returncode != 0:
        raise AssertionError(made.stderr)
    return archive


class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="patchbay-bundle-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        archive = bundled(cls.folder / "a.tar.gz")
        cls.archive = archive
        cls.place = cls.folder / "root" / "some place"
        cls.place.mkdir(parents=True)
        subprocess.run(["tar", "-xzf", archive, "-C", cls.place, "--strip-components=1"], check=True)

    def image(self, name, archive=None):
        out = self.folder / name
        done = subprocess.run([ROOT / "deploy/image", "--from", archive or self.archive, out], capture_output=True, text=True)
        return done, out

    def test_an_image_has_the_same_bytes_each_time(self):
        small = self.folder / "patchbay-1.2.3-linux-x86_64"
        for name in ("bin/patchbay", "lib/libz.so.1", "LICENSE"):
            (small / name).parent.mkdir(parents=True, exist_ok=True)
            (small / name).write_text(name)
        subprocess.run(["tar", "-czf", self.folder / "small.tar.gz", "-C", self.folder, small.name], check=True)
        (first, out), (second, again) = (self.image(name, self.folder / "small.tar.gz") for name in ("a.oci.tar", "b.oci.tar"))
        self.assertEqual((first.returncode, second.returncode), (0, 0), first.stderr)
        self.assertEqual(out.read_bytes(), again.read_bytes())

    def test_its_image_runs_for_any_user_on_a_read_only_root(self):
        first, out = self.image("image.oci.tar")
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertLess(out.stat().st_size, 60e6)
        layout, bundle = self.folder / "layout", self.folder / "container"
        layout.mkdir()
        (bundle / "root").mkdir(parents=True)
        subprocess.run(["tar", "-xf", out, "-C", layout], check=True)
        blob = lambda described: layout / "blobs" / described["digest"].replace(":", "/")
        read = lambda described: json.loads(blob(described).read_bytes())
        top, = json.loads((layout / "index.json").read_text())["manifests"]
        self.assertEqual(first.stdout.split()[-1], top["digest"])
        manifest = read(top)
        config = read(manifest["config"])["config"]
        self.assertEqual(len(manifest["layers"]), 2)
        for described in manifest["layers"]:
            subprocess.run(["tar", "-xzf", blob(described), "-C", bundle / "root"], check=True)
        packages = json.loads((bundle / "root/opt/patchbay/packages.json").read_text())["components"]
        self.assertLessEqual({"libc6", "libtiff6", "libcli11-dev"}, {package["name"] for package in packages})
        self.assertFalse((bundle / "root/bin").exists() or (bundle / "root/usr").exists())
        self.run_container(bundle, config)

    def podmans_words(self):
        """Options and words of the `podman run` of deploy/site/README.md, its only command for containers."""
        (text, _), = pages.shell("deploy/site/README.md", "Containers")
        words = shlex.split(text.replace("\\\n", " "))
        image = words.index("patchbay:0.1.0")
        self.assertEqual(words[:2], ["podman", "run"])
        parser = argparse.ArgumentParser()
        parser.add_argument("--read-only", action="store_true", required=True)
        parser.add_argument("--cap-drop", choices=["all"], required=True)
        parser.add_argument("--user", type=int, required=True)
        for name in ("--tmpfs", "-v"):
            parser.add_argument(name, action="append", required=True)
        return parser.parse_args(words[2:image]), words[image + 1:]

    def run_container(self, bundle, config):
        why = container.lacks()
        if why:
            raise missing.absent(why)
        (page, words), data = self.podmans_words(), self.folder / "data"
        mounts = [container.tmpfs(place.split(":")[0]) for place in page.tmpfs]
        mounts += [{"destination": volume.split(":")[1], "type": "none", "source": str(data), "options": ["rbind", "rw"]} for volume in page.v]
        (data / "slides").mkdir(parents=True)
        self.folder.chmod(0o755)
        data.chmod(0o777)
        subprocess.run([BIN / "patchbay", "synth", "slide", data / "slides/a.svs", "--size", "600x400"], check=True, capture_output=True)
        words = [*config["Entrypoint"], *words, "--json"]
        container.write_config(bundle, {"args": words, "env": config["Env"], "cwd": config["WorkingDir"], "user": {"uid": page.user, "gid": page.user}}, mounts)
        done = container.crun(bundle / "state", "run", "--bundle", bundle, f"patchbay-test-{os.getpid()}")
        if "permitted" in done.stderr and "mount" in done.stderr:
            raise missing.absent("this machine makes no containers: " + done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(list((data / "stores").glob("*.ome.zarr"))), 1, done.stdout)

    def test_an_image_of_something_else_is_refused(self):
        other = self.folder / "other.tar.gz"
        subprocess.run(["tar", "-czf", other, "-C", ROOT, "LICENSE"], check=True)
        for archive, why in ((other, "not named as deploy/bundle names it"), (ROOT / "LICENSE", "LICENSE"), (self.folder / "none", "No such file")):
            done, out = self.image("no.oci.tar", archive)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(why, done.stderr)
            self.assertFalse(out.exists())

    def test_it_holds_every_library_it_needs(self):
        present = {path.name for path in (self.place / "lib").iterdir()}
        self.assertIn("ld-linux-x86-64.so.2", present)
        for file in [*(self.place / "libexec").iterdir(), *(self.place / "lib").rglob("*.so*")]:
            needed = subprocess.run(["patchelf", "--print-needed", file], capture_output=True, text=True).stdout.split()
            self.assertEqual([name for name in needed if name not in present], [], file)

    def test_it_carries_the_licences_of_the_project_and_of_its_font(self):
        self.assertTrue((self.place / "LICENSE").is_file())
        self.assertIn("Bitstream Vera", (self.place / "licenses/fonts-dejavu-core").read_text())
        for package in ("libabsl-dev", "libcapnp-dev", "libyaml-cpp-dev"):
            self.assertIn("Copyright", (self.place / "licenses" / package).read_text())

    def test_launchers_need_nothing_of_the_host(self):
        for launcher in (self.place / "bin").iterdir():
            listed = subprocess.run(["ldd", launcher], capture_output=True, text=True)
            self.assertIn("not a dynamic executable", listed.stdout + listed.stderr)

    def test_it_says_its_own_name_and_finds_its_programs_from_anywhere(self):
        done = subprocess.run([self.place / "bin/patchbay", "doctor", "--json"], cwd="/", capture_output=True, text=True,
                              env={"HOME": str(self.folder)})
        programs = next(c for c in json.loads(done.stdout)["checks"] if c["name"] == "programs")
        self.assertEqual(programs["state"], "ok", done.stdout)

    @unittest.skipUnless(os.geteuid() == 0, "another root folder needs root")
    def test_it_ingests_draws_and_streams_in_an_empty_root_without_network_or_fonts(self):
        root = self.folder / "root"
        for name in ("proc", "tmp", "dev"):
            (root / name).mkdir(exist_ok=True)
        (root / "tmp" / "run.yaml").write_text(RUN, encoding="utf-8")
        (root / "dev" / "null").touch()
        jail = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c",
                'mount -t proc proc "$0/proc" && mount --bind /dev/null "$0/dev/null" && exec chroot "$0" "$@"', str(root)]
        for words in (["synth", "slide", "/tmp/a.svs", "--size", "800x600"],
                      ["ingest", "/tmp/a.svs", "--out", "/tmp/stores", "--cpus", "1"],
                      ["spectra", "/tmp/stores", "--out", "/tmp/spectra", "--cpus", "1"],
                      ["stream", "/tmp/run.yaml", "--batches", "4", "--digest", "--cpus", "2"]):
            done = subprocess.run([*jail, "/some place/bin/patchbay", *words, "--json"], capture_output=True, text=True,
                                  env={"PATH": os.environ["PATH"], "HOME": "/tmp"}, timeout=240)
            if "Operation not permitted" in done.stderr and "mount" in done.stderr:
                self.skipTest("this machine makes no mount namespaces: " + done.stderr)
            self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        self.assertEqual(json.loads(done.stdout)["batches"], 4)
        self.assertTrue((root / "tmp/spectra/histogram.png").read_bytes().startswith(b"\x89PNG"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
