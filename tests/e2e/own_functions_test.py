"""The user's own functions in streams: their bytes, their faults, and where they do not run."""
import contextlib
import json
import pathlib
import shutil
import subprocess
import time

import harness

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "configs/examples"
NORMALIZE = "[{normalize: {scale: 255, mean: [0.7, 0.55, 0.7], std: [0.2, 0.2, 0.2]}}]"

# Applies a function to saved batches of a stream without it, as the guide says that workers do, and compares.
ORACLE = """
import importlib.util, json, pathlib, sys
import numpy
plain, made, path, name, options, seed, function = sys.argv[1:8]
spec = importlib.util.spec_from_file_location("own", path)
own = importlib.util.module_from_spec(spec)
spec.loader.exec_module(own)
changed = 0
for file in sorted(pathlib.Path(plain).glob("*-image.npy")):
    image, ordinals = numpy.load(file), numpy.load(str(file).replace("-image", "-ordinal"))
    mask_file = pathlib.Path(str(file).replace("-image", "-mask"))
    mask = numpy.load(mask_file) if mask_file.exists() else None
    before = image.copy()
    rng = [numpy.random.Generator(numpy.random.Philox(key=numpy.array([int(seed), o], "uint64"),
                                                      counter=numpy.array([0, 0, 0, int(function)], "uint64"))) for o in ordinals]
    getattr(own, name)(image=image, mask=mask, rng=rng, **json.loads(options))
    if not numpy.array_equal(image, numpy.load(pathlib.Path(made) / file.name)):
        sys.exit(f"{file.name} differs")
    if mask is not None and not numpy.array_equal(mask, numpy.load(pathlib.Path(made) / mask_file.name)):
        sys.exit(f"{mask_file.name} differs")
    changed += (image != before).any(axis=tuple(range(1, image.ndim))).sum()
if changed == 0:
    sys.exit("nothing changed")
"""

FAULTY = """
import time
def raises(image, mask, rng, level):
    if (image.reshape(len(image), -1).mean(axis=1) > level).any():
        raise ValueError("too bright")
def sleeps(image, mask, rng):
    time.sleep(100)
def dies(image, mask, rng):
    import os
    os._exit(9)
def socket(image, mask, rng):
    import socket
    socket.socket()
def beside(image, mask, rng):
    import helper_beside
    image[...] = helper_beside.VALUE
def steady(image, mask, rng):
    for i, generator in enumerate(rng):
        image[i] //= int(generator.integers(1, 4))
def shaky(image, mask, rng):
    import numpy
    image[...] = numpy.random.randint(0, 255)
def counts(image, mask, rng):
    counts.calls = getattr(counts, "calls", 0) + 1
    image[...] = counts.calls
def slow(image, mask, rng):
    time.sleep(0.06)
    steady(image, mask, rng)
def both(image, mask, rng):
    for i, generator in enumerate(rng):
        value = generator.integers(1, 200)
        image[i][mask[i] == 1] += value
        mask[i][..., :8] = 255
"""


class OwnFunctions(harness.Case):
    def setUp(self):
        super().setUp()
        if not harness.oracles("numpy"):
            self.skipTest("needs PATCHBAY_PYTHON with numpy")

    def environment(self, **more):
        return super().environment(PATCHBAY_PYTHON=harness.PYTHON, **more)

    def stores(self):
        return self.once("stores", lambda: self.keep(self.store([self.slide(size="1024x768")])))

    def config(self, augment, name="run.yaml", batch=8, dtype="float32", preprocess=NORMALIZE, more=""):
        path = self.folder / name
        path.write_text(f"dataset: {self.stores()}\nseed: 5\npatch: {{size: [128, 128], level: 0}}\nsampling: {{order: sequential}}\n"
                        f"batch: {{global_size: {batch}, dtype: {dtype}, layout: nhwc, meta: true}}\npreprocess: {preprocess}\n"
                        f"augment: {augment}\n{more}")
        return path

    def own(self, function, more="", file="own.py"):
        (self.folder / "own.py").write_text(FAULTY)
        return f"[{{python: {{file: {file}, function: {function}{more}}}}}]"

    def refused(self, augment, expect=1, **options):
        result = self.command("stream", self.config(augment, **options), "--cpus", 2)
        self.assertEqual(result.returncode, expect, result.stderr)
        return result.stderr

    def digest(self, path, *words):
        return self.json("stream", path, "--digest", *words)["digest"]

    def same_as_by_hand(self, file, name, options, at, dtype, preprocess, number=0):
        given = "".join(f", {key}: {json.dumps(value)}" for key, value in options.items())
        self.json("stream", self.config("[{flip: {}}]", dtype=dtype, preprocess=preprocess), "--save", "plain")
        augment = f"[{{python: {{file: {file}, function: {name}, at: {at}{given}}}}}, {{flip: {{}}}}]"
        self.json("stream", self.config(augment, dtype=dtype, preprocess=preprocess), "--save", "made")
        done = subprocess.run([harness.PYTHON, "-B", "-c", ORACLE, "plain", "made", str(file), name, json.dumps(options), "5", str(number)],
                              cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_pixels_are_those_that_the_function_makes(self):
        self.same_as_by_hand(EXAMPLES / "functions/cutout.py", "cutout", {"size": 40, "p": 0.7}, "pixels", "uint8", "[]")

    def test_values_are_those_that_the_function_makes(self):
        self.same_as_by_hand(EXAMPLES / "functions/grid_mask.py", "grid_mask", {"step": 24}, "values", "float32", NORMALIZE)

    def test_volumes_and_their_masks_are_those_that_the_function_makes(self):
        for words in (("synth", "ct", "p", "--size", "16x64x64", "--step", 1.5, "--pixel", 1.4, "--lesions", "p.nii"), ("ingest", "p", "--out", "ct")):
            made = self.command(*words)
            self.assertEqual(made.returncode, 0, made.stderr)
        store = next((self.folder / "ct").glob("*.zarr"))
        self.json("labels", "import", store, "p.nii", "--set", "lesions", "--classes", EXAMPLES.parent / "classes/lesions.yaml")
        (self.folder / "own.py").write_text(FAULTY)
        run = ("dataset: ct\nseed: 5\npatch: {size: [8, 32, 32], level: 0}\nlabels: {set: lesions, mask: true}\nsampling: {order: sequential}\n"
               "batch: {global_size: 3, dtype: float32, layout: nhwc, meta: true}\npreprocess: [{window: {range: [-150, 250]}}]\n")
        for name, augment in (("plain", "[]"), ("made", "[{python: {file: own.py, function: both, at: values}}]")):
            (self.folder / "run.yaml").write_text(f"{run}augment: {augment}\n")
            self.json("stream", "run.yaml", "--save", name)
        done = subprocess.run([harness.PYTHON, "-B", "-c", ORACLE, "plain", "made", "own.py", "both", "{}", "5", "0"], cwd=self.folder,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_after_kills_a_stream_goes_on_with_equal_bytes(self):
        run = self.config(self.own("slow"), dtype="uint8", preprocess="[]", batch=4)
        self.json("stream", run, "--save", "whole")
        self.json("stream", run, "--save", "cut", "--position", "at", "--batches", 3)
        running = self.start("stream", run, "--save", "cut", "--force", "--position", "at", "--cpus", 2)
        images = lambda: sorted((self.folder / "cut").glob("*-image.npy"))
        harness.wait_until(lambda: len(images()) > 4, "batches behind the position")
        running.kill()
        running.wait()
        for image in images()[3:]:
            image.unlink()
        running = self.start("stream", run, "--save", "cut", "--force", "--position", "at", "--cpus", 2, "--batches", 12)
        harness.wait_until(lambda: len(images()) > 3, "a batch behind the position")
        helper, killed = pathlib.Path(harness.PYTHON).name, set()
        # Six deaths at one patch would end the run: two of its helper process in each of three tries.
        while len(killed) < 4 and running.poll() is None:
            for pid in sorted(set(self.pids(running, helper)) - killed)[:1]:
                killed.add(pid)
                with contextlib.suppress(ProcessLookupError):
                    self.kill(pid)
        self.done(running)
        self.assertGreater(len(killed), 1)
        for whole in (self.folder / "whole").glob("*.npy"):
            self.assertEqual(whole.read_bytes(), (self.folder / "cut" / whole.name).read_bytes(), whole.name)

    def test_functions_that_do_not_repeat_are_named(self):
        steady = self.own("steady")
        run = self.config(steady, dtype="uint8", preprocess="[]")
        self.assertEqual(self.json("config", "check", run, "--repeat")["repeat"], {"functions": ["steady"], "patches": 38})
        more = "".join(f", {{python: {{file: own.py, function: {name}}}}}" for name in ("shaky", "counts"))
        refused = self.command("config", "check", self.config(steady[:-1] + more + "]", dtype="uint8", preprocess="[]"), "--repeat")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("key 'augment[1].python': shaky: patch 10; key 'augment[2].python': counts: patch ", refused.stderr)
        self.assertNotIn("steady", refused.stderr)

    def test_bytes_depend_on_the_plan_alone(self):
        shutil.copytree(EXAMPLES, self.folder / "configs/examples")
        text = (EXAMPLES / "own_functions.yaml").read_text()
        run = self.folder / "example.yaml"
        run.write_text(text.replace("dataset: stores", f"dataset: {self.stores()}"))
        first = self.digest(run, "--cpus", 1)
        self.assertEqual(self.digest(run, "--cpus", 2), first)
        self.assertEqual(self.digest(run, "--cpus", 2, "--set", "batch.global_size=5"), first)
        plan = self.json("config", "check", run)["plan_digest"]
        with open(self.folder / "configs/examples/functions/cutout.py", "a") as file:
            file.write("# another file\n")
        self.assertNotEqual(self.json("config", "check", run)["plan_digest"], plan)

    def test_what_the_file_imports_lies_beside_it(self):
        (self.folder / "helper_beside.py").write_text("VALUE = 3\n")
        run = self.config(self.own("beside"), dtype="uint8", preprocess="[]", batch=48)
        self.json("stream", run, "--save", "made")
        made = (self.folder / "made").glob("*-image.npy")
        self.assertEqual(set(next(made).read_bytes()[-100:]), {3})

    def test_faults_name_function_and_patch(self):
        for function, more, why in (("raises", ", level: -1", "own function raises: ValueError: too bright (own.py:5)"),
                                    ("sleeps", ", time_limit_s: 0.2", "own function sleeps: it took longer than time_limit_s"),
                                    ("dies", "", "own function dies: its process ended: exit code 9"),
                                    ("socket", "", "own function socket: PermissionError")):
            with self.subTest(function=function):
                error = self.refused(self.own(function, more))
                self.assertIn(why, error)
                self.assertRegex(error, "make patch [0-9]+ of epoch 0: .*[.]zarr")

    def test_configs_that_cannot_be_are_refused_by_key(self):
        for augment, options, why in (
                (self.own("absent"), {}, "run.yaml:7: plan stream: key 'augment[0].python': absent: LookupError"),
                (self.own("raises"), {}, "missing a required argument: 'level'"),
                (self.own("raises", ", level: 1", "nowhere.py"), {}, "key 'augment[0].python.file'"),
                (self.own("raises", ", at: later"), {}, "run.yaml:7: key 'augment[0].python.at': expected one of pixels, values"),
                (self.own("raises", ", rng: 1"), {}, "key 'augment[0].python.rng': the function gets this argument from the worker"),
                (self.own("dies", f", sha256: '{'0' * 64}'"), {}, "key 'augment[0].python.sha256': this is "),
                (self.own("dies"), {"more": "numerics: cuda\n"}, "key 'augment[0].python': own functions run on CPU workers")):
            with self.subTest(why=why):
                self.assertIn(why, self.refused(augment, expect=2, **options))

    def test_other_clusters_run_what_their_operator_lists(self):
        listed = self.folder / "listed.py"
        listed.write_text("def darken(image, mask, rng):\n    image //= 2\n")
        site = self.folder / "site.yaml"
        site.write_text(f"functions: {{python: {shutil.which(harness.PYTHON)}, files: [{listed}]}}\n")
        own, theirs = self.own("dies"), f"[{{python: {{file: {listed}, function: darken}}}}]"
        without = self.digest(self.config(theirs, dtype="uint8", preprocess="[]"))
        node = self.up(1)
        self.assertIn("key 'augment[0].python.file': the workers of this cluster run no functions of users",
                      self.command("stream", self.config(theirs)).stderr)
        self.down(node)
        node = self.start("up", "--cpus", 1, "--state", self.folder / "state", *self.listen, PATCHBAY_SITE=str(site))
        self.await_workers(node, 1)
        self.assertIn("the operator of this cluster does not list the file", self.command("stream", self.config(own)).stderr)
        self.assertEqual(self.digest(self.config(theirs, dtype="uint8", preprocess="[]")), without)
        self.down(node)


if __name__ == "__main__":
    harness.main()
