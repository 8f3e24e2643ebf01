"""The Python module, in programs as a user writes them: bytes, slots, resume, ranks, and what is left behind."""
import ast
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import textwrap

import harness

MODULE = harness.BIN.parent / "python"
PAGES = pathlib.Path(__file__).resolve().parents[2] / "runtime/python"
# The common part of the programs below: digests as `patchbay stream --digest` defines them.
PRELUDE = """
import hashlib, json, os, signal, sys, time
import patchbay

def patches(batch):
    arrays = [memoryview(array) for array in batch.values()]
    for i in range(batch.real_count):
        yield hashlib.sha256(b"".join(bytes(a)[i * a.nbytes // len(a):(i + 1) * a.nbytes // len(a)] for a in arrays)).digest()

def digest(batches):
    whole = hashlib.sha256()
    for batch in batches:
        for patch in patches(batch):
            whole.update(patch)
    return whole.hexdigest()

def raised(call, kind):
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")
"""


class ModuleCase(harness.Case):
    """A test whose programs import the module."""

    def setUp(self):
        super().setUp()
        if not list(MODULE.glob("patchbay/_extension*.so")):
            self.skipTest("the Python module was not built (no headers of Python, or no nanobind)")
        self.run_yaml = self.run_file(self.store([self.slide(size="1300x900")]), meta=True)

    def program(self, text, *words, python=harness.PYTHON, stdin=subprocess.DEVNULL, **env):
        """A running program of a user's, in its own session; killed at the end of the test."""
        path = self.folder / f"program-{len(list(self.folder.glob('program-*')))}.py"
        path.write_text(PRELUDE + textwrap.dedent(text), encoding="utf-8")
        environment = self.environment(PYTHONPATH=str(MODULE), **env)
        process = subprocess.Popen([python, str(path), *map(str, words)], cwd=self.folder, text=True, env=environment,
                                   stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.stop, process)
        return process

    @staticmethod
    def stop(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def said(self, process, expect=0):
        out, err = process.communicate(timeout=harness.LIMIT_S)
        self.assertEqual(process.returncode, expect, err[-4000:])
        return out.split()

    def run_program(self, text, *words, **options):
        return self.said(self.program(text, *words, **options))

    def await_line(self, process):
        line = process.stdout.readline().strip()
        if not line:
            raise AssertionError(process.stderr.read()[-4000:])
        return line

    def nothing_left(self):
        """No process has this test's folder in its environment."""
        mark = str(self.folder).encode()

        def living():
            found = []
            for entry in pathlib.Path("/proc").iterdir():
                try:
                    if entry.name.isdigit() and mark in (entry / "environ").read_bytes() and int(entry.name) != os.getpid():
                        found.append(entry.name)
                except OSError:
                    pass
            return found
        harness.wait_until(lambda: not living(), "the end of every process", 15)
        self.assertEqual(list((self.folder / "tmp").glob("patchbay-*")), [])


class Trainer(ModuleCase):
    def test_an_epoch_has_the_bytes_of_the_command(self):
        expected = self.json("stream", self.run_yaml, "--digest", "--set", "batch.tail=pad")
        shares = expected["breakdown"]
        self.assertEqual(set(shares), {"storage", "decode", "transform", "transfer", "trainer"})
        self.assertAlmostEqual(sum(share["fraction"] for share in shares.values()), 1, places=9)
        self.assertGreater(shares["decode"]["s_per_batch"], 0)
        said = self.run_program("""
            stream = patchbay.attach("run.yaml", overrides={"batch.tail": "pad"}, cpus=1)
            assert stream.epoch == 0
            print(digest(stream), len(stream), stream.epoch, stream.stats()["batches"], stream.description["plan_digest"])
            stats = stream.stats()
            assert stats["device_bytes"] == 0 < stats["ring_bytes"]
            shares = stats["breakdown"]
            assert list(shares) == ["storage", "decode", "transform", "transfer", "trainer"]
            assert abs(sum(share["fraction"] for share in shares.values()) - 1) < 1e-9, shares
            assert all(shares[name]["s_per_batch"] > 0 for name in ("storage", "decode", "transform")), shares
            assert shares["transfer"]["s_per_batch"] == 0, "workers of this node write into the slot"
            assert 0 < stats["wait_p50_s"] <= stats["wait_p99_s"] <= 1.125 * stats["wait_s"], stats
            assert stats["stage_patches"] >= stats["patches"] and stats["stages_s"]["decode"] > 0, stats
            assert stream.images[0]["path"].endswith(".ome.zarr") and stream.images[0]["slide_id"], stream.images[0]
            assert set(stream.images[-1].values()) == {None}
            """)
        self.assertEqual(said, [expected["digest"], str(expected["batches_per_epoch"]), "1",
                                str(expected["batches"]), expected["plan_digest"]])
        self.nothing_left()

    def test_a_slot_is_the_tensor_and_comes_back_when_all_that_was_made_of_it_is_gone(self):
        self.run_program("""
            import gc, numpy
            def forever(stream):
                while True:
                    yield from stream
            stream = patchbay.attach("run.yaml", cpus=1)
            loop = forever(stream)
            batch = next(loop)
            array = batch["image"]
            view = numpy.from_dlpack(array)
            assert view.ctypes.data == array.data_ptr == numpy.asarray(array).ctypes.data, "a copy was made"
            assert view.shape == array.shape == (16, 3, 128, 128) and view.dtype == array.dtype, (view.shape, view.dtype)
            assert batch["box"].shape == (16, 6) and list(batch) == ["image", "ordinal", "image_index", "level", "box"]
            assert batch["ordinal"].tolist() == list(range(16)) == list(batch["ordinal"]), "sampling places count from 0"
            assert raised(lambda: batch["mask"], KeyError) and "mask" not in batch and batch.get("mask") is None
            before = view.copy()
            batch.release()
            assert raised(lambda: batch["image"], ValueError)
            del batch, array
            for _ in range(20):
                next(loop)
            assert (view == before).all(), "a tensor that is kept keeps its bytes"
            kept = [next(loop) for _ in range(3)]
            text = raised(lambda: next(loop), patchbay.RingExhausted)
            assert all(word in text for word in ("epoch 0 batch 0 (image", "batch.prefetch", "batch_size=None")), text
            del view, kept
            gc.collect()
            again = next(forever(stream))
            assert again.count > 0, "it goes on"
            stream.close()
            assert "closed" in raised(lambda: iter(stream), patchbay.StreamClosed)
            stream.close()
            """)

    def test_threads_and_notebooks_take_batches_and_others_run_while_one_waits(self):
        self.run_program("""
            import asyncio, io, threading
            stream = patchbay.attach("run.yaml", cpus=1)
            begin, found = stream.state_dict(), []

            def take():
                stream.load_state_dict(begin)
                found.append(digest(stream))

            async def cell():  # a notebook's: in a running loop, with a stdout that is no file
                kept, sys.stdout = sys.stdout, io.StringIO()
                take()
                sys.stdout = kept

            take()
            thread = threading.Thread(target=take)
            thread.start()
            thread.join()
            asyncio.run(cell())
            assert found[0] == found[1] == found[2], found
            loop, ended, ticks = iter(stream), threading.Event(), []

            def tick():
                while not ended.wait(0.001):
                    ticks.append(time.monotonic())

            held = [next(loop) for _ in range(4)]  # every slot, as one that accumulates gradients may hold them
            clock = threading.Thread(target=tick)
            clock.start()
            raised(lambda: next(loop), patchbay.RingExhausted)  # waits for two seconds
            ended.set()
            clock.join()
            assert len(ticks) > 50, f"the interpreter's lock was held: {len(ticks)} ticks in two seconds"
            assert [batch.index for batch in held] == [0, 1, 2, 3]
            del held
            assert next(loop).index == 4, "it goes on"
            """)

    def test_a_run_cut_anywhere_goes_on_with_the_bytes_of_an_uncut_one(self):
        self.run_program("""
            stream = patchbay.attach("run.yaml", cpus=1)
            whole = [list(patches(batch)) for _ in range(2) for batch in stream]
            per_epoch = len(stream)
            for cut in (1, per_epoch // 2, per_epoch - 1, per_epoch):
                stream.load_state_dict(first) if cut > 1 else None
                first = first if cut > 1 else patchbay.attach("run.yaml", cpus=1).state_dict()
                with patchbay.attach("run.yaml", state=first) as other:
                    loop = iter(other)
                    seen = [list(patches(next(loop))) for _ in range(cut)]
                    state = json.loads(json.dumps(other.state_dict()))
                assert all(type(v) in (str, int) for v in state.values()) and len(json.dumps(state)) < 4096
                with patchbay.attach("run.yaml") as third:
                    third.load_state_dict(state)
                    rest = [list(patches(batch)) for batch in third]
                    assert third.epoch == (1 if cut < per_epoch else 2), (cut, third.epoch)
                    assert (seen + rest) == whole[:len(seen + rest)], cut
            stream.load_state_dict(first)
            for batch in stream:
                break
            del batch
            assert stream.epoch == 0
            after = [list(patches(batch)) for batch in stream]
            assert after == whole[per_epoch:] and stream.epoch == 2, "after a break comes the next epoch"
            """)
        self.nothing_left()

    def test_states_that_are_none_are_refused_and_change_nothing(self):
        self.run_program("""
            stream = patchbay.attach("run.yaml", cpus=1)
            state = stream.state_dict()
            other = patchbay.attach("run.yaml", overrides={"seed": 9}).state_dict()
            assert "its config differs" in raised(lambda: stream.load_state_dict(other), patchbay.StateError)
            assert "its config differs" in raised(lambda: patchbay.attach("run.yaml", state=other), patchbay.StateError)
            token = state["token"]
            for bad in (None, {}, {"version": 1}, {"version": 2, "token": token}, dict(state, token=token[:-1]),
                        dict(state, token=7), dict(state, token=token.replace("resume-3", "resume-9")),
                        dict(state, token=token + "0" * 2000), dict(state, token=token.replace(":0:0:", ":0:999:"))):
                raised(lambda: stream.load_state_dict(bad), patchbay.StateError)
            words = token.split(":")
            def altered(**parts):
                return dict(state, token=":".join(parts.get(f"at{i}", word) for i, word in enumerate(words)))
            for bad, text in (({"version": 2, "token": token}, "version 2, this program knows 1; use the release"),
                              (dict(state, token=token.replace("resume-3", "resume-9")), "version 9, this program knows 2 and 3; use"),
                              (altered(at3="0"), ""), (altered(at2="3", at3="7"), "batches of 7 patches, the run's have 16"),
                              (altered(at2=str(len(stream))), f"an epoch has {len(stream)}"), (altered(at1="65536"), ""),
                              (altered(at1="\u0663"), "not a state of a stream"), (altered(at4="0" * 64), "its text differs"),
                              (altered(at2=str(1 << 64)), ""), (altered(at2="3", at3="7", at4="0" * 64), "another plan")):
                assert text in raised(lambda: stream.load_state_dict(bad), patchbay.StateError), bad
            for bad in (altered(at2=str(len(stream))), altered(at2="3", at3="7")):
                raised(lambda: patchbay.attach("run.yaml", state=bad), patchbay.StateError)
            assert len(digest(stream)) == 64 and stream.epoch == 1
            """)

    RANK = """
        path, stop = sys.argv[1], int(sys.argv[2])
        state = json.load(open(sys.argv[3])) if len(sys.argv) > 3 else None
        stream = patchbay.attach("run.yaml", cpus=1, state=state)
        with open(path, "ab", buffering=0) as out:
            for batch in stream:
                out.write(b"".join(patches(batch)))
                if batch.index + 1 == stop:
                    json.dump(stream.state_dict(), open(path + ".state", "w"))
                    print("there", flush=True)
                    time.sleep(600)
        print("done")
        """

    def ranks(self, stop, states=(), out="rank"):
        launch = {"TORCHELASTIC_RUN_ID": self.folder.name, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(29500 + len(states)),
                  "WORLD_SIZE": "2"}
        return [self.program(self.RANK, self.folder / f"{out}{rank}", stop, *states[rank:rank + 1], RANK=str(rank), **launch)
                for rank in range(2)]

    def test_two_ranks_killed_and_resumed_have_the_bytes_of_one(self):
        whole = self.run_program("""
            with open("whole", "wb") as out:
                for batch in patchbay.attach("run.yaml", cpus=1):
                    out.write(b"".join(patches(batch)))
            """)
        self.assertEqual(whole, [])
        running = self.ranks(2)
        for process in running:
            self.assertEqual(self.await_line(process), "there")
        for process in running:
            process.kill()
            process.wait()
        self.nothing_left()
        states = [self.folder / f"rank{rank}.state" for rank in range(2)]
        self.assertEqual(states[0].read_text(), states[1].read_text(), "a state knows nothing of ranks")
        for process in self.ranks(0, states):
            self.assertEqual(self.said(process), ["done"])
        halves = [(self.folder / f"rank{rank}").read_bytes() for rank in range(2)]
        expected, place, together = (self.folder / "whole").read_bytes(), [0, 0], b""
        while len(together) < len(expected) and place[0] < len(halves[0]):
            count = min(16, (len(expected) - len(together)) // 32)
            for rank in range(2):
                size = 32 * ((rank + 1) * count // 2 - rank * count // 2)
                together += halves[rank][place[rank]:place[rank] + size]
                place[rank] += size
        self.assertEqual(together, expected)
        self.assertEqual(place, [len(half) for half in halves])
        # Their scheduler is gone; one rank with two workers goes on from the same state.
        self.run_program("""
            with open("alone", "wb") as out:
                for batch in patchbay.attach("run.yaml", cpus=2, rank=0, world_size=1, state=json.load(open(sys.argv[1]))):
                    out.write(b"".join(patches(batch)))
            """, states[0])
        self.assertEqual((self.folder / "alone").read_bytes(), expected[2 * 16 * 32:])
        self.nothing_left()

    def test_streams_of_one_process_share_a_cluster_which_ends_with_the_last(self):
        process = self.program("""
            one = patchbay.attach("run.yaml", cpus=1)
            two = patchbay.attach("run.yaml", overrides={"sampling.order": "sequential"})
            for a, b in zip(one, two):
                assert a.index == b.index
            print("both", flush=True)
            sys.stdin.readline()
            one.close()
            assert len(digest(two)) == 64
            print("one", flush=True)
            """, stdin=subprocess.PIPE)
        self.assertEqual(self.await_line(process), "both")
        owned = list(harness.processes(process.pid).values())
        self.assertEqual(owned.count("patchbay-supervisor"), 1, owned)
        print("go", file=process.stdin, flush=True)
        self.assertEqual(self.said(process), ["one"])
        self.nothing_left()

    def test_a_trainer_that_is_interrupted_or_killed_leaves_nothing(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
            process = self.program("""
                stream = patchbay.attach("run.yaml", cpus=1)
                child = os.fork()
                if child == 0:
                    text = raised(lambda: next(iter(stream)), patchbay.ForkError)
                    raised(lambda: stream.load_state_dict(dict(stream.state_dict(), token="x")), patchbay.StateError)
                    del stream
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
                loop = iter(stream)
                held = [next(loop) for _ in range(4)]
                try:
                    print("taken", flush=True)  # the interrupt may come at once
                    while True:
                        try:
                            next(loop)
                        except patchbay.RingExhausted:
                            pass
                except KeyboardInterrupt:
                    sys.exit(130)
                """)
            self.assertEqual(self.await_line(process), "taken")
            process.send_signal(number)
            self.said(process, expect=code)
            self.nothing_left()

    def test_an_interrupt_while_seeking_never_gives_another_batch(self):
        self.run_program("""
            import itertools
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            with patchbay.attach("run.yaml", cpus=1) as stream:
                first = stream.state_dict()
                whole = [list(patches(batch)) for batch in stream]
            interrupted = 0
            for delay in (0.01, 0.05, 0.2):
                with patchbay.attach("run.yaml", cpus=1) as stream:
                    try:
                        signal.setitimer(signal.ITIMER_REAL, delay)
                        for batch in itertools.cycle(range(5)):  # a seek may take 0.1 ms: on until the interrupt
                            stream.load_state_dict(dict(first, token=first["token"].replace(":0:0:", f":0:{batch}:")))
                    except KeyboardInterrupt:
                        interrupted += 1
                    try:
                        stream.load_state_dict(first)
                        assert [list(patches(batch)) for batch in stream] == whole
                    except patchbay.ClusterError as error:
                        assert "attach again" in str(error)
            assert interrupted == 3
            """)
        self.nothing_left()

    def test_a_trainer_that_is_killed_ends_its_job_on_a_cluster_that_stays(self):
        cluster = self.up(1)
        process = self.program("""
            stream = patchbay.attach("run.yaml")
            next(iter(stream))
            print("taken", flush=True)
            signal.pause()
            """)
        self.assertEqual(self.await_line(process), "taken")

        def runs():
            return self.json("jobs")["jobs"][0]["state"] == "running"
        self.assertTrue(runs())
        process.kill()
        harness.wait_until(lambda: not runs(), "the end of its job", 30)
        self.down(cluster)

    def test_a_client_or_cluster_that_is_killed_is_an_error_at_once(self):
        for victim in ("patchbay", "patchbay-supervisor"):
            process = self.program("""
                stream = patchbay.attach("run.yaml", cpus=1)
                print("attached", flush=True)
                try:
                    while True:
                        for batch in stream:
                            pass
                except patchbay.ClusterError as error:
                    print("ended")
                """)
            self.assertEqual(self.await_line(process), "attached")
            self.kill(self.pids(process, victim)[0])
            self.assertEqual(self.said(process), ["ended"])
            self.nothing_left()

    def test_the_stubs_are_those_of_the_extension(self):
        out = self.folder / "stubs.pyi"
        subprocess.run([harness.PYTHON, "-m", "nanobind.stubgen", "-q", "-m", "patchbay._extension", "-o", out], check=True,
                       env=self.environment(PYTHONPATH=str(MODULE)))
        self.assertEqual(out.read_text(), (MODULE / "patchbay/_extension.pyi").read_text(), "make them again, as here")

    def test_every_public_function_has_types(self):
        sys.dont_write_bytecode = True
        spec = importlib.util.spec_from_file_location("api_page", PAGES / "api_page.py")
        api_page = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(api_page)
        found = [node for _, node in api_page.exported()] + list(api_page.definitions(api_page.tree_of("torch.py")).values())
        members = [inner for node in found if isinstance(node, ast.ClassDef) for inner in api_page.definitions(node).values()]
        functions = [node for node in found + members if isinstance(node, ast.FunctionDef)]
        self.assertGreater(len(functions), 40)
        for each in functions:
            given = [one for one in each.args.posonlyargs + each.args.args + each.args.kwonlyargs if one.arg != "self"]
            self.assertIsNotNone(each.returns, f"{each.name}: what it returns")
            self.assertEqual([one.arg for one in given if one.annotation is None], [], each.name)

    def test_the_page_of_the_api_is_made_from_the_docstrings(self):
        said = subprocess.run([sys.executable, "-B", PAGES / "api_page.py"], capture_output=True, text=True, check=True)
        self.assertEqual((PAGES / "API.md").read_text(encoding="utf-8"), said.stdout, "make it again: its head says how")

    def test_rows_that_were_not_compared_for_leaks_are_warned_of_once(self):
        for i in (1, 2):
            self.slide(f"s{i}.tif", "300x260", i)
        (self.folder / "t.csv").write_text("path,patient_id,fold\ns1.tif,P1,train\ns2.tif,p1,val\n", encoding="utf-8")
        self.run_program("""
            import warnings
            config = {"dataset": "t.csv", "split_column": "fold", "patch": {"size": [64, 64]}, "batch": {"global_size": 8}}
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                with patchbay.attach(config, split="val", cpus=1) as stream:
                    stream.load_state_dict(stream.state_dict())
                    next(iter(stream))
            texts = [str(one.message) for one in said if issubclass(one.category, UserWarning)]
            assert len(texts) == 2, texts
            assert "differ" in texts[0] + texts[1] and "the content of 1 of 2 rows is not known" in texts[0] + texts[1], texts
            assert all(one.filename == __file__ for one in said), [one.filename for one in said]
            """)

    def test_bad_arguments_are_named(self):
        self.run_program("""
            import pickle
            def refused(kind, text, config="run.yaml", **arguments):
                said = raised(lambda: patchbay.attach(config, cpus=1, **arguments), kind)
                assert text in said, said
            refused(patchbay.ConfigError, "rank 2 of 2 ranks", rank=2, world_size=2)
            refused(patchbay.ConfigError, "go together", rank=0)
            for rank in ("0", 0.5, None):
                refused(patchbay.ConfigError, "find rank", rank=rank, world_size=2)
            refused(patchbay.ConfigError, "give all of them one `name`", rank=0, world_size=2)
            for name in ("config", "cluster", "split", "name", "data_listen"):
                refused(patchbay.ConfigError, f"attach: {name} 7: expected a text or a path", **{name: 7})
            for values in ({"seed": float("nan")}, {"seed": object()}, {"dataset": [{1, 2}]}):
                refused(patchbay.ConfigError, "as a run config has", config=values)
                refused(patchbay.ConfigError, "as a run config has", overrides=values)
            refused(patchbay.ConfigError, "overrides ['seed=1']: expected a dict", overrides=["seed=1"])
            refused(patchbay.ConfigError, "write the config to a file", config={"dataset": "x" * 70000})
            refused(patchbay.ConfigError, "more than 65536", name="x" * 70000)
            refused(patchbay.ConfigError, "did you mean 'global_size'", overrides={"batch.globalsize": 3})
            refused(patchbay.ConfigError, "split", split="nothere")
            refused(patchbay.ConfigError, "dataset", config={"patch": {"size": [64, 64]}})
            refused(patchbay.DeviceError, "leave `device` out", device="cuda:0")
            refused(patchbay.ConfigError, "tpu", device="tpu")
            refused(patchbay.ConfigError, "augment 'yes'", augment="yes")
            refused(patchbay.NotFoundError, "nothere.key", cluster="nothere.key")
            refused(patchbay.NotFoundError, "nothere.yaml", config="nothere.yaml")
            assert issubclass(patchbay.ConfigError, ValueError) and issubclass(patchbay.RingExhausted, MemoryError)
            os.environ["PATCHBAY_BIN"] = "nothere"
            refused(patchbay.NotFoundError, "PATCHBAY_BIN")
            """)
        self.nothing_left()


if __name__ == "__main__":
    harness.main()
