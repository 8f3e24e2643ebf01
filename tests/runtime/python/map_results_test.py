"""Folders of results: equal bytes whatever the consumers, batches and kills; refusals; functions that misbehave."""
import csv
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import numpy
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

from patchbay import errors  # noqa: E402
from patchbay.map import declared  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
# Rows of a function that depend on their patch alone.
FUNCTION = """
import os, sys, time
import numpy

def predict(model, batch):
    image, ordinals, boxes = (numpy.asarray(batch[name]) for name in ("image", "ordinal", "box"))
    values = image.astype(numpy.float32) / 256
    sums = image.reshape(len(image), -1).astype(numpy.int64).sum(axis=1)
    many = [list(range(int(n % 4))) for n in ordinals]
    found = {"p": numpy.stack([values[..., 0], values[..., 1]], axis=1),
             "s": numpy.stack([sums % 1000 / 1000, sums % 77 / 77], axis=1).astype(numpy.float32),
             "t": {"cell": many, "area": [[n * 0.5 for n in each] for each in many], "sum": sums},
             "bag": numpy.stack([sums % 7, sums % 11], axis=1).astype(numpy.float32)}
    return found

def finish(model, rows):
    return {"bag": rows["bag"].max(axis=0)}
"""
OUTPUTS = {"p": {"kind": "map", "classes": ["a", "b"], "class_map": "argmax"}, "s": {"kind": "score", "classes": ["a", "b c"]},
           "t": {"kind": "table", "columns": ["cell", "area", "sum"]}, "bag": {"kind": "image"}}


def digests(folder):
    """{path: SHA-256} of all files of results but results.json."""
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != "results.json"}


class Case(unittest.TestCase):
    found = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="patchbay-map-"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.call = self.function(FUNCTION)
        self.function("import fake_units\nfake_units.install()\n", "sitecustomize.py")  # in every process of the command

    def function(self, text, name="predict.py"):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def config(self, units="units", batch=5, outputs=None, images=([1, 300, 330], [1, 200, 500], [1, 90, 90]), name="run.json", **fake):
        path = self.folder / name
        path.write_text(json.dumps({
            "patch": {"size": [64, 64]}, "sampling": {"stride": [48, 48], "positions": "grid"}, "batch": {"global_size": batch},
            "outputs": outputs or OUTPUTS, "fake": {"folder": str(self.folder / units), "images": images, "mpp": 0.5, **fake}}), encoding="utf-8")
        return path

    def start(self, config, *words, out="out", call=None, **options):
        command = [sys.executable, "-m", "patchbay.map", str(config), "--call", str(call or self.call), "--out",
                   str(self.folder / out), *map(str, words)]
        environment = {**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{HERE}:{self.folder}", "OMP_NUM_THREADS": "1",
                       "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=self.folder, **options)

    def run_map(self, config, *words, expect=0, **options):
        process = self.start(config, *words, **options)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, expect, out + err)
        return out + err

    def expected(self):
        """Digests of one consumer's results, which are those of all tests: they are made once."""
        if not Case.found:
            self.run_map(self.config(units="units-expected"), out="expected")
            Case.found = digests(self.folder / "expected")
        return Case.found

    def complete(self, out="out"):
        return sorted(path.name for path in (self.folder / out).glob("0*"))

    def clean(self, out="out"):
        self.assertFalse((self.folder / out / ".bands").exists(), "bands are left aside")
        self.assertEqual(list((self.folder / out / ".staging").iterdir()), [], "something is left aside")


class Exactness(Case):
    def test_batches_and_consumers_change_no_byte(self):
        expected = self.expected()
        self.assertEqual(len([path for path in expected if path.endswith("zarr.json")]), 3 * 6 + 2 * 2, expected.keys())
        for turn, (batch, consumers, bands) in enumerate([(1, 1, {}), (5, 1, {"band": 14}), (13, 2, {"band": 20}), (64, 4, {"band": 5})]):
            configs = [self.config(f"units-{turn}", batch, name=f"run-{turn}-{i}.json", backwards=i % 2 == 1, **bands) for i in range(consumers)]
            out = f"out-{turn}"
            processes = [self.start(config, out=out) for config in configs]
            for process in processes:
                said = process.communicate(timeout=120)
                self.assertEqual(process.returncode, 0, said)
            self.assertEqual(digests(self.folder / out), expected, (batch, consumers, bands))
            self.clean(out)

    def test_kills_at_random_instants_change_no_byte(self):
        expected = self.expected()
        # Bands of two rows and a half; the last image is whole.
        config, seed = self.config(band=18), int(os.environ.get("PATCHBAY_TEST_SEED", "7678"))
        draw, kills = random.Random(seed), int(os.environ.get("PATCHBAY_MAP_KILLS", "8"))
        slow = self.function(FUNCTION.replace("    found = {", "    time.sleep(0.002)\n    found = {"), "predict.py")
        for i in range(kills):
            process = self.start(config, call=slow, start_new_session=True)
            time.sleep(draw.uniform(0.2, 1.6))
            os.kill(process.pid, signal.SIGKILL)  # the first process alone: the consumer ends by itself
            process.communicate()
            if len(self.complete()) == 3:  # once more from the start
                shutil.rmtree(self.folder / "out")
                shutil.rmtree(self.folder / "units")
            for path in (self.folder / "out").glob("0*"):
                self.assertTrue((path / "image.json").exists(), f"seed {seed}, kill {i}: {path} is half there")
        self.run_map(config, call=slow)
        self.assertEqual(digests(self.folder / "out"), expected, f"seed {seed}")
        self.clean()

    def test_an_image_fails_once_and_goes_on_with_the_bands_that_are_there(self):
        fault = "    if os.path.exists('fault-{}'):\n        raise KeyError('lymph')\n"
        text = FUNCTION.replace("    found = {", fault.format("predict").replace("if ", "if ordinals[0] == 10 and ") + "    found = {")
        self.function(text.replace("    return {\"bag", fault.format("finish") + "    return {\"bag"))
        expected, whole = self.expected(), [f"{band:05d}" for band in range(5)] + ["lock"]
        for turn, (name, code, patches, gone, said) in enumerate([
                ("fault-predict", 3, 10 + 44 + 4, whole[1:], "lymph"),  # bands after the one that failed are not begun
                ("fault-finish", 3, 32, [], "lymph"),
                # Files of four bands are damaged at once: each is named, and its band alone is made again.
                ("damage", 3, 0, whole[1:2], "00001/p.tiles: "), ("again", 3, 10, whole[2:3], "00002/p.tiles: ValueError: sums"),
                ("again", 3, 10, whole[3:4], "00003/t.rows.gz: "), ("again", 3, 10, whole[4:5], "00004/bag.npz: "), ("no-fault", 0, 2, None, "")]):
            bands = self.folder / "out/.bands/000000-slide-0"
            if name == "damage":
                os.truncate(bands / "00001/p.tiles", 1000)
                for damaged, back in (("00002/p.tiles", 1000), ("00003/t.rows.gz", 40), ("00004/bag.npz", 200)):
                    content = bytearray((bands / damaged).read_bytes())
                    content[-back] ^= 4
                    (bands / damaged).write_bytes(content)
            (self.folder / name).touch()
            out = self.run_map(self.config(units=f"units-{turn}", band=10), "--json", expect=code)
            (self.folder / name).unlink()
            result = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
            self.assertEqual((result["patches"], [image for image, _ in result["failed"]]), (patches, ["000000-slide-0"][:code]), name)
            there = False if gone is None else sorted(set(whole) - set(gone))
            self.assertEqual(sorted(path.name for path in bands.iterdir()) if there else bands.exists(), there, (turn, out))
            self.assertIn(said, out)
            self.assertEqual(f"{bands.name}/{said}" in out and "the band is removed: run it again" in out, name in ("damage", "again"), out)
        self.assertEqual(digests(self.folder / "out"), expected)
        self.clean()

    def test_tables_say_where(self):
        self.run_map(self.config())
        with open(self.folder / "out/000000-slide-0/s.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(list(rows[0])[:9], ["image", "ordinal", "level", "z", "y", "x", "z_um", "y_um", "x_um"])
        self.assertEqual([rows[8][key] for key in ("image", "ordinal", "y", "x", "y_um", "x_um")], ["slide 0", "8", "48", "48", "24.0", "24.0"])
        with open(self.folder / "out/000000-slide-0/t.csv", newline="", encoding="utf-8") as file:
            table = list(csv.DictReader(file))
        self.assertEqual([(row["ordinal"], row["cell"], row["area"]) for row in table[:6]],
                         [("1", "0", "0.0"), ("2", "0", "0.0"), ("2", "1", "0.5"), ("3", "0", "0.0"), ("3", "1", "0.5"), ("3", "2", "1.0")])
        with open(self.folder / "out/bag.csv", newline="", encoding="utf-8") as file:
            self.assertEqual([row["image"] for row in csv.DictReader(file)], ["slide 0", "slide 1", "slide 2"])


class Provenance(Case):
    def test_results_are_named_and_kept_for_their_owner_alone(self):
        os.umask(0o022)
        self.run_map(self.config())
        out = self.folder / "out"
        found = json.loads((out / "results.json").read_text())
        self.assertEqual(found["function"], hashlib.sha256(self.call.read_bytes()).hexdigest())
        self.assertEqual(found["plan"], "ab" * 32)
        self.assertEqual(found["outputs"], OUTPUTS)
        self.assertEqual(set(found["versions"]), {"python", "patchbay", "numpy"})
        for path in [out, *out.rglob("*")]:
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o700 if path.is_dir() else 0o600, path)
        said = self.run_map(self.config(units="again"))
        self.assertIn("has 3 of 3 images: they are skipped", said)

    def test_an_image_names_its_store_and_its_row(self):
        store = self.folder / "a.ome.zarr"
        store.mkdir()
        (store / "zarr.json").write_text(json.dumps({"attributes": {"patchbay": {"pixel_digest": "cd" * 32}}}), encoding="utf-8")
        for path, digest in ((store, "cd" * 32), (self.folder / "a.svs", None)):
            self.run_map(self.config(units=path.name, images=([1, 64, 64],), record={"path": str(path), "site": "north", "spacing": None}), out=path.stem)
            found = json.loads((self.folder / path.stem / "000000-slide-0/image.json").read_text())
            self.assertEqual(found, {"image": "slide 0", "index": 0, "patches": 1, "path": str(path), "pixel_digest": digest,
                                     "columns": {"slide_id": "slide 0", "site": "north"}})

    def test_other_results_are_refused_and_new_ones_begin_beside(self):
        self.run_map(self.config())
        before = digests(self.folder / "out")
        other = self.function(FUNCTION + "\n# another\n", "other.py")
        said = self.run_map(self.config(units="again"), call=other, expect=1)
        self.assertIn("holds results of another function: choose another --out, or --new", said)
        self.assertIn("of another outputs", self.run_map(self.config(units="more", outputs={**OUTPUTS, "p": {**OUTPUTS["p"], "blend": "uniform"}}), expect=1))
        self.run_map(self.config(units="again"), "--new", call=other)
        beside = [path.name for path in self.folder.iterdir() if path.name.startswith("out-")]
        self.assertEqual(len(beside), 1)
        self.assertEqual(digests(self.folder / "out"), before)
        self.assertEqual(len(self.complete(beside[0])), 3)

    def test_results_that_were_removed_while_the_run_went_on_are_missed(self):
        self.run_map(self.config())
        shutil.rmtree(self.folder / "out/000001-slide-1")
        (self.folder / "units/0.end").unlink()  # the run is not over: it ends now, and one image of it is gone
        self.assertIn("1 images that were finished are not there any more: run it again", self.run_map(self.config(), expect=1))
        self.run_map(self.config(units="again"))
        self.assertEqual(len(self.complete()), 3)

    def test_folders_that_are_not_for_results_are_refused(self):
        (self.folder / "store").mkdir()
        (self.folder / "store/zarr.json").write_text("{}")
        self.assertIn("lies in the store", self.run_map(self.config(), out="store/labels/out", expect=1))
        self.assertFalse((self.folder / "store/labels").exists())
        (self.folder / "full").mkdir()
        (self.folder / "full/thesis.tex").write_text("")
        self.assertIn("holds thesis.tex", self.run_map(self.config(), out="full", expect=1))


class Misbehaviour(Case):
    """One image's fault is that image's; the others are there."""

    def fails_alone(self, change, reason, *words, first="    image, ordinals", batch=5):
        """The function with `change` for image 1; the other two have the digests of one that behaves."""
        expected = {path: digest for path, digest in self.expected().items() if not path.startswith("000001") and "/" in path}
        text = FUNCTION.replace(first, f"    if int(numpy.asarray(batch['image_index'])[0]) == 1 and int(numpy.asarray(batch['ordinal'])[0]) > 60:\n        {change}\n{first}")
        said = self.run_map(self.config(batch=batch), *words, call=self.function(text, "bad.py"), expect=3)
        self.assertIn(reason, said)
        self.assertEqual(self.complete(), ["000000-slide-0", "000002-slide-2"])
        found = {path: digest for path, digest in digests(self.folder / "out").items() if path.startswith("0")}
        self.assertEqual(found, expected)
        kept = self.folder / "out/failed/000001-slide-1"
        self.assertIn(reason, (kept / "reason.txt").read_text())
        with numpy.load(kept / "batch.npz") as batch:
            self.assertEqual(set(batch.keys()), {"image", "ordinal", "box", "level", "image_index"})
        self.clean()

    def test_it_raises(self):
        self.fails_alone("raise KeyError('lymph')", "KeyError: 'lymph'")

    def test_it_does_not_return(self):
        self.fails_alone("time.sleep(1000)", "has not returned within 1 s", "--timeout", 1)

    def test_values(self):
        """NaN, values that are no probability, another shape, rows and names: each error says where. One image for each; a shape is
        compared with that of the consumer's last batch, so that those of another one come last."""
        cases = (
            ("found['p'][2, 1, 3, 4] = numpy.nan", "output: p, patch {2}: nan: probabilities are expected"),
            ("found['p'][3, 0, 0, 0] = 1.5", "output: p, patch {3}: 1.5: probabilities are expected"),
            ("found['p'] = found['p'][:3]", "output: p: 3 rows for 5 patches"),
            ("found['s'][4, 0] = numpy.inf", "output: s, patch {4}: inf"),
            ("found['s'] = found['s'] if is_first else found['s'][:, None]", "output: s: shape (5, 1, 2)"),
            ("found['bag'] = found['bag'] if is_first else found['bag'][:, :1]", "output: bag: (1,) for a patch: (2,) on the batch before"),
            ("found['t']['sum'] = found['t']['sum'][1:]", "output: t: column sum: 4 rows for 5 patches"),
            ("found['t']['area'][2] = [1, 2, 3, 4]", "output: t, patch {2}: columns of 2 and 4 rows"),
            ("found['more'] = 1", "more not declared in the config"),
            ("del found['p']", "p missing"),
            ("found = None", "the function returned NoneType"),
            ("found['s'] = numpy.array([['a', 'b']] * 5)", "numbers are expected"))
        shapes = (("found['p'] = found['p'][:, :1]", "output: p: 1 channels for 2 classes"),
                  ("found['p'] = found['p'][..., :63]", "expected those of the config"))
        for run, some in enumerate((cases, shapes[:1], shapes[1:])):
            changes = "".join(f"    if number == {i}:\n        {change}\n" for i, (change, _) in enumerate(some))
            head = "    number, is_first = int(batch['image_index'][0]), ordinals[0] % 16 == 0\n"
            call = self.function(FUNCTION.replace("    return found\n", f"{head}{changes}    return found\n"), "bad.py")
            said = self.run_map(self.config(f"units-{run}", images=[[1, 200, 200]] * len(some)), "--json", out=f"out-{run}", call=call, expect=3)
            failed = json.loads(next(line for line in said.splitlines() if line.startswith("{")))["failed"]
            self.assertEqual([image[:6] for image, _ in failed], [f"{i:06d}" for i in range(len(some))])
            for i, ((change, reason), (_, found)) in enumerate(zip(some, failed)):
                self.assertIn(re.sub(r"{(\d)}", lambda number: str(16 * i + int(number[1])), reason), found, change)
            self.assertEqual(self.complete(f"out-{run}"), [])
            self.clean(f"out-{run}")

    def test_writing_into_the_batch_moves_nothing(self):
        expected = self.expected()
        text = FUNCTION.replace("    return found\n", "    for name in batch:\n        batch[name][...] = 7\n    return found\n")
        self.run_map(self.config(), call=self.function(text, "writes.py"))
        self.assertEqual(digests(self.folder / "out"), expected)

    def test_a_fork_that_returns_is_no_second_consumer(self):
        expected = self.expected()
        text = FUNCTION.replace("    return found\n", "    if ordinals[0] == 0:\n        os.fork()\n    return found\n")
        self.run_map(self.config(), call=self.function(text, "forks.py"))
        self.assertEqual(digests(self.folder / "out"), expected)
        self.clean()

    def test_stopping_leaves_nothing_half_written_and_it_goes_on(self):
        expected = self.expected()
        slow = self.function(FUNCTION.replace("    found = {", "    time.sleep(0.05)\n    found = {"))
        process = self.start(self.config(batch=2), call=slow)
        while not self.folder.joinpath("out/results.json").exists():
            time.sleep(0.01)
        time.sleep(0.3)
        process.terminate()
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, out + err)
        self.clean()
        self.run_map(self.config(batch=2), call=slow)
        self.assertEqual(digests(self.folder / "out"), expected)

    def test_a_full_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("this user mounts no tmpfs")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=False)
        expected = self.expected()
        said = self.run_map(self.config(), out="disk/out", expect=1)
        self.assertIn("write results: ", said)
        self.assertIn("No space left", said)
        self.clean("disk/out")
        subprocess.run(["mount", "-o", "remount,size=40m", disk], check=True)
        self.run_map(self.config(), out="disk/out")
        self.assertEqual(digests(disk / "out"), expected)

    def test_configs_and_files_that_are_wrong(self):
        for outputs, reason in (
                ({"p": {"kind": "mask"}}, "outputs.p.kind: 'mask': expected one of map"),
                ({"p": {"kind": "map", "classes": ["a"], "blend": "cubic"}}, "outputs.p.blend: 'cubic'"),
                ({"p": {"kind": "map", "classes": ["a"], "class_map": [0.5, 0.5]}}, "2 thresholds for 1 classes"),
                ({"p": {"kind": "score", "classes": ["a"], "dtype": "uint8"}}, "a score has no such key"),
                ({"../p": {"kind": "score", "classes": ["a"]}}, "expected a name")):
            with self.assertRaisesRegex(errors.ConfigError, re.escape(reason)):
                declared.parse(outputs)
        self.assertIn("outputs.p.classes: a map needs it", self.run_map(self.config(outputs={"p": {"kind": "map"}}), expect=2))
        self.assertIn("defines no function predict", self.run_map(self.config(), call=self.function("x = 1", "none.py"), expect=2))
        self.assertIn("ZeroDivisionError", self.run_map(self.config(), call=self.function("1/0", "broken.py"), expect=2))
        self.assertFalse((self.folder / "out").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
