"""A damaged store: verify names every file that is missing, surplus, exchanged or no file, and never waits for one."""
import json
import os
import shutil
import subprocess

import harness

# Run by the Python of the oracles: any warning is an error.
OPEN = r"""
import sys, warnings
warnings.simplefilter("error")
import tensorstore, zarr
group = zarr.open_group(sys.argv[1], mode="r")
for dataset in group.attrs["ome"]["multiscales"][0]["datasets"]:
    array = group[dataset["path"]]
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{sys.argv[1]}/{dataset['path']}"}}
    assert tensorstore.open(spec).result().shape == array.shape
    array[:, :8, :8]
files = [row.split() for level in group.attrs["patchbay"]["shards"] for row in level["files"]]
print(sum(word != "-" for row in files for word in row))
"""


class Verify(harness.Case):
    def setUp(self):
        super().setUp()
        result = self.command("ingest", self.slide(size="2200x1500"), "--out", self.folder / "out", "--chunk", 256, "--shard", 512,
                              "--codec", "lz4", "--keep-names")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.good = self.folder / "out/a.ome.zarr"
        self.at = self.folder / "damaged"

    def damaged(self):
        shutil.rmtree(self.at, ignore_errors=True)
        shutil.copytree(self.good, self.at)
        return self.at

    def faults(self):
        """The faults that verify finds in the damaged store; both kinds of output agree on them."""
        report = self.json("verify", self.at, expect=1)
        result = self.command("verify", self.at)
        self.assertEqual(result.returncode, 1)
        for fault in report["bad"]:
            self.assertIn(fault + "\n", result.stderr)
        self.assertFalse(report["clean"])
        self.said = result.stdout
        return report

    def test_lost_files_are_named_level_by_level_and_are_no_more_when_they_are_back(self):
        store = self.damaged()
        self.assertTrue(self.json("verify", store)["clean"])
        lost = ["0/c/0/1/3", "0/c/0/2/0", "1/c/0/0/1"]
        for name in lost:
            (store / name).rename(self.folder / name.replace("/", "-"))
        report = self.faults()
        self.assertEqual(report["bad"], [name + ": missing" for name in lost])
        self.assertEqual([level["missing"] for level in report["levels"]][:2], [lost[:2], lost[2:]])
        self.assertEqual([level["listed"] - level["found"] for level in report["levels"]][:2], [2, 1])
        self.assertIn("level 0: ", self.said)
        self.assertIn("2 missing", self.said)
        for name in lost:
            (self.folder / name.replace("/", "-")).rename(store / name)
        self.assertTrue(self.json("verify", store)["clean"])

    def test_whatever_else_is_wrong_with_a_file_is_said_of_that_file(self):
        name = "0/c/0/1/1"
        content = (self.good / name).read_bytes()
        for cause, change in ((": index", lambda p: p.write_bytes(content[: len(content) // 2])),
                              (": the file has 0 bytes", lambda p: p.write_bytes(b"")),
                              (": chunk (0,", lambda p: p.write_bytes(content[:99] + bytes([content[99] ^ 1]) + content[100:])),
                              (": another file", lambda p: shutil.copy(self.good / "0/c/0/0/1", p)),
                              (": a folder", lambda p: (p.unlink(), p.mkdir())),
                              (": a symbolic link", lambda p: (p.unlink(), p.symlink_to(self.good / name))),
                              (": a pipe", lambda p: (p.unlink(), os.mkfifo(p)))):
            with self.subTest(cause=cause):
                change(self.damaged() / name)
                bad = self.faults()["bad"]
                self.assertEqual(len(bad), 1)
                self.assertTrue(bad[0].startswith(name + cause), bad[0])

    def test_strange_files_and_changed_metadata_are_named(self):
        (self.damaged() / "0/thumbs.db").write_text("x")
        self.assertEqual(self.faults()["bad"], ["0/thumbs.db: not a file of this store"])
        document = json.loads((self.damaged() / "zarr.json").read_text())
        row = document["attributes"]["patchbay"]["shards"][0]["files"][0]
        document["attributes"]["patchbay"]["shards"][0]["files"][0] = "-" + row[16:]
        (self.at / "zarr.json").write_text(json.dumps(document))
        (self.at / "0/c/0/0/0").unlink()
        bad = self.faults()["bad"]
        self.assertEqual(len(bad), 1)
        self.assertIn("zarr.json: metadata was changed", bad[0])

    def test_several_stores_and_folders_of_them_are_read_one_after_another(self):
        (self.damaged() / "1/zarr.json").unlink()
        deep = self.folder / "out/more/c.ome.zarr"
        shutil.copytree(self.good, deep)
        os.symlink(self.at, self.folder / "out/linked")  # not followed
        (self.folder / "out/more/.hidden").mkdir()
        shutil.copytree(self.at, self.folder / "out/more/.hidden/d.ome.zarr")
        clean = self.json("verify", self.folder / "out")
        self.assertEqual([row["path"] for row in clean["stores"]], [str(self.good), str(deep)])
        self.assertTrue(clean["clean"])
        mixed = self.json("verify", self.at, deep, expect=1)
        self.assertEqual([row["clean"] for row in mixed["stores"]], [False, True])
        self.assertIn("damaged/1/zarr.json", mixed["stores"][0]["error"])
        result = self.command("verify", self.at, deep)
        self.assertIn("clean: 1 of 2 stores\n", result.stdout)
        self.assertIn("damaged/1/zarr.json", result.stderr)
        (self.folder / "empty").mkdir()
        self.assertIn("empty: ", self.command("verify", self.folder / "empty").stderr)

    def test_missing_metadata_is_named(self):
        for change in (lambda p: p.unlink(), lambda p: (p.unlink(), os.mkfifo(p))):
            change(self.damaged() / "1/zarr.json")
            result = self.command("verify", self.at)
            self.assertEqual(result.returncode, 1)
            self.assertIn("damaged/1/zarr.json: ", result.stderr)

    def test_zarr_python_and_tensorstore_open_a_store_without_a_warning(self):
        if not harness.oracles("tensorstore", "zarr"):
            self.skipTest("needs PATCHBAY_PYTHON with zarr and tensorstore")
        found = subprocess.run([harness.PYTHON, "-c", OPEN, self.good], text=True, check=False, capture_output=True)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertEqual(found.stderr, "")
        self.assertEqual(int(found.stdout), self.json("verify", self.good)["shards"])


if __name__ == "__main__":
    harness.main()
