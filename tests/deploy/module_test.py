"""The contents of a wheel: one version everywhere, and an archive that is unpacked once and whole, or not at all."""
import importlib.machinery
import importlib.util
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "runtime/python/patchbay"


def load(name):
    spec = importlib.util.spec_from_file_location(name, PACKAGE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Module(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="patchbay-module-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.archive = load("_archive")

    def pack(self, *names, link=None):
        path = self.folder / "programs.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            for name in names:
                member = tarfile.TarInfo(name)
                member.size, member.mode = 4, 0o755
                tar.addfile(member, io.BytesIO(b"text"))
            if link:
                member = tarfile.TarInfo("top/link")
                member.type, member.linkname = tarfile.SYMTYPE, link
                tar.addfile(member)
        return path

    @staticmethod
    def wheel_program():
        loader = importlib.machinery.SourceFileLoader("wheel", str(ROOT / "deploy/wheel"))
        wheel = importlib.util.module_from_spec(importlib.util.spec_from_loader("wheel", loader))
        loader.exec_module(wheel)
        return wheel

    def package(self, name):
        """A wheel with a module of that name."""
        path = self.folder / f"{name}-1-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr(f"{name}.py", f"print('this is {name}')")
            packed.writestr(f"{name}-1.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
            packed.writestr(f"{name}-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            packed.writestr(f"{name}-1.dist-info/RECORD", "")
        return str(path)

    def test_a_wheel_is_made_with_packages_of_an_environment_of_its_own(self):
        wheel = self.wheel_program()
        wheel.TOOLS, wheel.NEEDS = self.folder / "tools", [self.package("patchbay_test_zig")]
        said = subprocess.run([wheel.tools(), "-m", "patchbay_test_zig"], capture_output=True, text=True, check=True)
        self.assertEqual(said.stdout, "this is patchbay_test_zig\n")
        (wheel.TOOLS / "mark").touch()
        wheel.tools()
        self.assertTrue((wheel.TOOLS / "mark").exists(), "it is made once")
        wheel.NEEDS = [*wheel.NEEDS, self.package("patchbay_test_binding")]
        subprocess.run([wheel.tools(), "-c", "import patchbay_test_binding"], capture_output=True, check=True)
        self.assertFalse((wheel.TOOLS / "mark").exists(), "other packages, another environment")

    def test_a_wheel_begins_with_what_may_be_missing(self):
        wheel = self.wheel_program()
        wheel.TOOLS, wheel.NEEDS = self.folder / "tools", [str(self.folder / "nowhere-1-py3-none-any.whl")]
        wheel.look_at = lambda python: ((3, 11), self.folder)
        begun, run = [], wheel.run
        wheel.run = lambda *words: begun.append(str(words[0])) or run(*words)
        for _ in range(2):  # a second try does not take the half for the whole
            with mock.patch.object(sys, "argv", ["wheel", str(self.folder / "out")]):
                with self.assertRaisesRegex(SystemExit, "nowhere-1"):
                    wheel.main()
        self.assertNotIn("deploy/bundle", begun)

    def test_headers_that_debian_keeps_for_one_processor_are_found_alone(self):
        wheel = self.wheel_program()
        include, work = self.folder / "include/python3.13", self.folder / "work"
        include.mkdir(parents=True)
        work.mkdir()
        self.assertEqual(wheel.header_folders(work, include), [include])
        of_processor = include.parent / "x86_64-linux-gnu/python3.13"
        of_processor.mkdir(parents=True)
        (of_processor / "pyconfig.h").touch()
        (of_processor.parent / "sys").mkdir()  # the C library's, which zig brings itself
        for _ in range(2):  # two Pythons of one version
            first, shown = wheel.header_folders(work, include)
            self.assertEqual(first, include)
            self.assertTrue((shown / "x86_64-linux-gnu/python3.13/pyconfig.h").is_file())
            self.assertEqual([p.name for p in (shown / "x86_64-linux-gnu").iterdir()], ["python3.13"])

    def test_one_version(self):
        version = re.search(r"project\(patchbay VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertIn(f'version = "{version}"', (ROOT / "pyproject.toml").read_text())
        self.assertIn(f'__version__ = "{version}"', (PACKAGE / "__init__.py").read_text())

    def test_an_archive_is_unpacked_once_and_another_beside_it(self):
        path = self.pack("top/bin/patchbay", "top/lib/libc.so.6")
        cache = self.folder / "cache"
        first = self.archive.folder(path, cache)
        self.assertEqual((first / "bin/patchbay").read_bytes(), b"text")
        (first / "mark").touch()
        self.assertTrue((self.archive.folder(path, cache) / "mark").exists(), "it was not unpacked again")
        other = self.archive.folder(self.pack("top/bin/patchbay", "top/bin/more"), cache)
        self.assertNotEqual(first, other)
        self.assertEqual(sorted(p.name for p in (cache / "patchbay").iterdir()), sorted([first.name, other.name]))

    def test_no_archive_is_no_folder(self):
        self.assertIsNone(self.archive.folder(self.folder / "programs.tar.gz", self.folder / "cache"))

    def test_what_would_leave_the_folder_is_refused_and_nothing_is_left(self):
        for packed in (lambda: self.pack("../outside"), lambda: self.pack("/outside"), lambda: self.pack("top/a", link="/etc")):
            cache = self.folder / "cache"
            with self.assertRaises(OSError):
                self.archive.folder(packed(), cache)
            self.assertEqual(list((cache / "patchbay").iterdir()), [])
            self.assertFalse((self.folder / "cache/outside").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
