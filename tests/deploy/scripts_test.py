"""The scripts that a new user runs first: the package list, the closing line, the quickstart."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ["PATCHBAY_BIN"])

PASSED = '<testsuite><testcase classname="a" name="b" status="run"/></testsuite>'
FAILED = '<testsuite><testcase classname="a" name="b"><failure/></testcase></testsuite>'
SKIPPED = '<testsuite><testcase classname="a" name="b" status="run"><skipped/></testcase></testsuite>'


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="patchbay-deploy-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)


class Setup(Case):
    def test_the_package_list_has_each_name_once_and_nothing_but_names(self):
        lines = [line.split("#")[0].strip() for line in (ROOT / "deploy/packages.txt").read_text().splitlines()]
        names = [line for line in lines if line]
        self.assertEqual(len(names), len(set(names)))
        for name in names:
            self.assertRegex(name, r"^[a-z0-9][a-z0-9+.-]+$")

    def test_every_library_that_cmake_asks_for_has_its_package(self):
        asked = (ROOT / "deploy/cmake/PatchbayDependencies.cmake").read_text()
        packages = (ROOT / "deploy/packages.txt").read_text()
        known = {"absl": "libabsl-dev", "fmt": "libfmt-dev", "spdlog": "libspdlog-dev", "OpenSSL": "libssl-dev",
                 "nlohmann_json": "nlohmann-json3-dev", "yaml-cpp": "libyaml-cpp-dev", "CapnProto": "libcapnp-dev",
                 "ucx": "libucx-dev", "PkgConfig": "pkg-config", "BZip2": "libbz2-dev", "Threads": "g++",
                 "libzmq": "libzmq3-dev", "libsodium": "libsodium-dev", "libzstd": "libzstd-dev",
                 "liblz4": "liblz4-dev", "blosc": "libblosc-dev", "zlib": "zlib1g-dev", "sqlite3": "libsqlite3-dev",
                 "libtiff-4": "libtiff-dev", "lcms2": "liblcms2-dev", "libjpeg": "libjpeg62-turbo-dev", "libopenjp2": "libopenjp2-7-dev", "libpng": "libpng-dev",
                 "openslide": "libopenslide-dev", "cairo": "libcairo2-dev", "freetype2": "libfreetype-dev",
                 "pugixml": "libpugixml-dev", "prometheus-cpp-core": "prometheus-cpp-dev", "libwebp": "libwebp-dev"}
        names = re.findall(r"^find_package\((\S+)", asked, re.MULTILINE)
        names += re.findall(r"IMPORTED_TARGET (\S+)\)", asked)
        self.assertGreater(len(names), 15)
        for name in names:
            self.assertIn(name, known, "name its package here")
            self.assertRegex(packages, rf"(?m)^{re.escape(known[name])}$")

    def test_without_root_a_missing_package_is_named(self):
        tools = self.folder / "bin"
        tools.mkdir()
        for tool in ("bash", "sed", "tr", "grep", "sort", "comm", "dirname", "realpath", "apt-get", "cat"):
            found = shutil.which(tool)
            if found:
                (tools / tool).symlink_to(found)
        for name, text in (("dpkg-query", "echo 'ii g++'"), ("id", "echo 1000"), ("apt-get", "exit 100")):
            (tools / name).unlink(missing_ok=True)
            (tools / name).write_text(f"#!/bin/bash\n{text}\n")
            (tools / name).chmod(0o755)
        for purpose in ((), ("--tests",), ("--torch",)):
            done = subprocess.run([ROOT / "deploy/setup", *purpose], env={"PATH": str(tools)}, capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("libzmq3-dev", done.stderr)
            self.assertIn("root or sudo", done.stderr)
            self.assertEqual("python3-torch" in done.stderr, purpose != (), "it is for tests alone")

    def test_an_unknown_option_changes_nothing(self):
        for script, code in (("setup", 2), ("test", 1)):
            done = subprocess.run([ROOT / "deploy" / script, "--nothere"], capture_output=True, text=True)
            self.assertEqual(done.returncode, code)
            self.assertIn(f"deploy/{script} [", done.stderr)


class Summary(Case):
    def summary(self, *reports):
        paths = []
        for i, text in enumerate(reports):
            paths.append(self.folder / f"{i}.xml")
            paths[-1].write_text(text)
        done = subprocess.run(["python3", "-B", ROOT / "deploy/test_summary.py", *paths], capture_output=True, text=True)
        self.said = done.stdout.splitlines()
        return self.said[-1], done.returncode

    def test_the_last_line_counts_and_the_exit_code_follows(self):
        self.assertEqual(self.summary(PASSED, SKIPPED), ("1 passed, 0 failed, 1 skipped", 0))
        self.assertEqual(self.summary(PASSED, FAILED), ("1 passed, 1 failed, 0 skipped", 1))

    def test_the_end_of_what_a_failed_test_printed_stands_above_its_name(self):
        lines = "\n".join(f"line {i}" for i in range(100))
        ctest = f'<testsuite><testcase name="slow" status="fail"><system-out>{lines}</system-out></testcase></testsuite>'
        self.assertEqual(self.summary(PASSED, ctest), ("1 passed, 1 failed, 0 skipped", 1))
        self.assertEqual(self.said[:2] + self.said[-4:-1], ["the end of slow:", "  line 40", "  line 98", "  line 99", "failed: slow"])

    def test_an_unknown_argument_of_the_test_command_is_refused_before_anything_is_set_up(self):
        done = subprocess.run([ROOT / "deploy/test", "--al"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (1, "0 passed, 1 failed, 0 skipped\n"))
        self.assertIn("usage: deploy/test [--all]", done.stderr)

    def test_a_failure_that_passed_alone_is_told_apart(self):
        """Only of the report of CTest: the same name under a sanitizer is another failure."""
        for name, text in (("ctest.xml", FAILED), ("asan.xml", PASSED), ("again", PASSED), ("broken", "")):
            (self.folder / name).write_text(text)

        def summary(again, *reports):
            done = subprocess.run(["python3", "-B", ROOT / "deploy/test_summary.py", "--again", again, *reports],
                                  cwd=self.folder, capture_output=True, text=True)
            return done.stdout.splitlines()[-2:], done.returncode
        unsteady = "unsteady (failed beside others, passed twice alone): a.b"
        self.assertEqual(summary("again", "ctest.xml", "asan.xml"), ([unsteady, "2 passed, 0 failed, 0 skipped"], 0))
        refused = ["failed: a.b", "1 passed, 1 failed, 0 skipped"], 1
        for again in ("ctest.xml", "broken", "nothere"):
            self.assertEqual(summary(again, "ctest.xml", "asan.xml"), refused)
        (self.folder / "ctest.xml").write_text(PASSED)
        (self.folder / "asan.xml").write_text(FAILED)
        self.assertEqual(summary("again", "ctest.xml", "asan.xml"), refused)

    def test_a_report_cut_short_is_a_failure(self):
        self.assertEqual(self.summary(PASSED, "<testsuite>"), ("1 passed, 1 failed, 0 skipped", 1))
        self.assertEqual(self.summary(PASSED, ""), ("1 passed, 1 failed, 0 skipped", 1))

    def test_nothing_passed_is_a_failure(self):
        self.assertEqual(self.summary(SKIPPED), ("0 passed, 0 failed, 1 skipped", 1))


class Quickstart(Case):
    def run_quickstart(self, *slides):
        env = os.environ | {"PATCHBAY_BIN": str(BIN), "PATCHBAY_HOME": str(self.folder / "home"),
                            "PATCHBAY_QUICKSTART_FOLDER": str(self.folder / "work")}
        return subprocess.run([ROOT / "deploy/quickstart", *slides], env=env, capture_output=True, text=True, cwd="/",
                              timeout=500)

    def test_a_users_slide_becomes_200_batches_and_a_digest(self):
        slide = self.folder / "my slide.svs"
        subprocess.run([BIN / "patchbay", "synth", "slide", slide, "--size", "1600x1200"], check=True,
                       capture_output=True)
        done = self.run_quickstart(slide)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        self.assertRegex(done.stdout, r"batches +200 ")
        self.assertRegex(done.stdout, r"throughput +\d")
        self.assertRegex(done.stdout, r"stall fraction +\d")
        self.assertRegex(done.stdout, r"digest +[0-9a-f]{64}\n")
        self.assertIn("ingest 1", done.stderr)

    def test_a_missing_slide_is_named_before_anything_is_built(self):
        done = self.run_quickstart("nothing.svs")
        self.assertEqual(done.returncode, 2)
        self.assertIn("nothing.svs", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
