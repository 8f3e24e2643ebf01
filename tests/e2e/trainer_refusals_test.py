"""Errors of the Python module: ranks that clash or are missing, keys without a right, a cluster that is gone.
Each is an exception of patchbay.errors whose message says what to do."""
import json
import subprocess

import harness
import trainer_test


class Refusals(trainer_test.ModuleCase):
    def test_ranks_that_clash_are_told_and_a_missing_one_holds_nobody(self):
        cluster = self.up(1)
        self.run_program("""
            def attach(rank, of=2, **more):
                return patchbay.attach("run.yaml", name="shared", rank=rank, world_size=of, **more)
            first, second = attach(0), attach(0)
            text = raised(lambda: [batch.count for _ in range(2) for batch in first], patchbay.ConflictError)
            assert "another process has rank 0 now: give every process a rank of its own" in text, text
            counts = [batch.count for batch in second]
            assert counts[:2] == [8, 8] and len(counts) == len(second), "rank 1 never came, and rank 0 has its epoch"
            text = raised(lambda: attach(1, of=3, overrides={"batch.tail": "keep"}), patchbay.ConflictError)
            assert "runs for 2 ranks, not 3" in text, text
            text = raised(lambda: attach(1, overrides={"seed": 3}), patchbay.ConflictError)
            assert "key 'seed' differs" in text, text
            for tail in ("drop", "pad", "wrap"):
                text = raised(lambda: patchbay.attach("run.yaml", name=tail, rank=0, world_size=3,
                                                      overrides={"batch.tail": tail}), patchbay.ConfigError)
                assert "batch.global_size 16 on 3 ranks" in text and "a multiple of 3" in text, text
            """)
        other = self.store([self.slide("b.svs", size="700x600")], out="other")
        self.run_program("""
            run = dict(name="images", rank=0, world_size=2)
            mine = patchbay.attach("run.yaml", **run)
            text = raised(lambda: patchbay.attach("run.yaml", overrides={"dataset": sys.argv[1]}, **run), patchbay.ConflictError)
            assert "'images'" in text and "over another dataset" in text, text
            with patchbay.attach("run.yaml", overrides={"dataset": sys.argv[1]}) as foreign:
                text = raised(lambda: mine.load_state_dict(foreign.state_dict()), patchbay.StateError)
            assert "its images" in text and "attach with what it was made with" in text, text
            """, other)
        self.down(cluster)

    def test_a_key_without_the_right_and_a_job_that_is_none(self):
        cluster = self.up(1)
        made = self.command("key", "new", "ann", "--role", "submitter", "--read", "/nowhere")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.run_program("""
            key = sys.argv[1]
            text = raised(lambda: patchbay.attach("run.yaml", cluster=key), patchbay.AccessError)
            assert "outside the folders the key may read" in text, text
            text = raised(lambda: patchbay.status(cluster="nothere.key"), patchbay.NotFoundError)
            assert "nothere.key" in text, text
            text = raised(lambda: patchbay.wait(99), patchbay.NotFoundError)
            assert "99: no such job" in text, text
            raised(lambda: patchbay.submit("stream", "a.svs"), patchbay.ConfigError)
            text = raised(lambda: patchbay.submit("ingest", "a.svs", outt="x"), patchbay.ConfigError)
            assert "--outt" in text, text
            text = raised(lambda: patchbay.wait(patchbay.submit("ingest", "a.svs", out="x", cluster=key), cluster=key),
                          patchbay.AccessError)
            assert "the key may" in text, text
            """, self.folder / "ann.key")
        self.down(cluster)

    def test_an_error_of_a_later_batch_names_its_image_as_data(self):
        path = self.slide("image 2: chunk (0.svs", size="1300x900")
        self.run_program("""
            with patchbay.attach("slide.yaml", cpus=1) as stream:
                next(iter(stream))
                os.truncate(sys.argv[1], 1000)
                try:
                    [batch.count for _ in range(9) for batch in stream]
                    raise AssertionError("no error")
                except patchbay.PatchbayError as error:
                    assert sys.argv[1] in str(error), error
                    assert error.subject == {"kind": "image", "index": 0, "part": sys.argv[1]}, error.subject
            """, path, self.run_file(json.dumps(str(path)), name="slide.yaml"))

    def test_a_position_that_is_none_is_refused(self):
        self.run_program("""
            def refused(why, path="position", kind=patchbay.StateError, **more):
                text = raised(lambda: patchbay.attach("run.yaml", cpus=1, position=path, **more), kind)
                assert why in text and os.path.abspath(path) in text, text
            with patchbay.attach("run.yaml", cpus=1, position="position") as stream:
                iterator = iter(stream)
                next(iterator)
                stream.state_dict()
            assert os.stat("position").st_mode & 0o777 == 0o600
            whole = open("position").read()
            refused("its config differs", overrides={"seed": 1})
            for broken in ("", whole[:40], "[]", whole.replace("resume-3", "resume-x")):
                open("position", "w").write(broken)
                refused("broken, or not the position of a stream: remove it")
            for later, why in ((whole.replace('"version": 1', '"version": 2'), "version 2, this program knows 1; use the release"),
                               (whole.replace("resume-3", "resume-9"), "version 9, this program knows 2 and 3; use the release")):
                open("position", "w").write(later)
                refused(why)
                assert open("position").read() == later
            os.chmod("position", 0o644)
            refused("others may read or write it")
            os.symlink("position", "link")
            refused("a link", "link")
            refused("its folder does not exist", "nothere/position", patchbay.NotFoundError)
            raised(lambda: patchbay.attach("run.yaml", position="position", state={}), patchbay.StateError)
            """)

    def test_a_cluster_that_is_gone_is_a_cluster_error(self):
        cluster = self.up(1)
        process = self.program("""
            stream = patchbay.attach("run.yaml")
            print("there", flush=True)
            sys.stdin.readline()
            text = raised(lambda: patchbay.status(cluster=os.environ["PATCHBAY_HOME"] + "/operator.key"), patchbay.ClusterError)
            assert "no answer" in text or "nothing listens" in text, text
            """, stdin=subprocess.PIPE)
        self.await_line(process)
        for pid in [cluster.pid, *self.pids(cluster, "patchbay-supervisor"), *self.pids(cluster, "patchbay-scheduler")]:
            self.kill(pid)
        print("go", file=process.stdin, flush=True)
        self.said(process)

    def test_a_processor_without_the_instructions_is_named_before_anything_starts(self):
        (self.folder / "cpuinfo").write_text("processor\t: 0\nflags\t\t: fpu sse2 bmi2\n", encoding="utf-8")
        process = self.program("""
            import pathlib
            from patchbay import _programs
            _programs.CPUINFO = pathlib.Path("cpuinfo")
            for call in (lambda: patchbay.attach("run.yaml"), patchbay.status):
                text = raised(call, patchbay.ProcessorError)
                assert "lacks AVX2, FMA: run on a machine with" in text, text
            _programs.main()
            """)
        _, err = process.communicate(timeout=harness.LIMIT_S)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(err, r"^error: find program: this processor lacks AVX2, FMA: [^\n]*\n$")

    def test_the_command_of_the_package_maps_in_its_python(self):
        folder = self.folder / "programs"
        folder.mkdir()
        (folder / "patchbay").write_text('#!/bin/sh\necho "$PATCHBAY_PYTHON $*"\n')
        (folder / "patchbay").chmod(0o755)
        out = self.run_program("""
            from patchbay import _programs
            os.environ["PATCHBAY_BIN"] = "programs"
            os.environ.pop("PATCHBAY_PYTHON", None)
            sys.argv = ["patchbay", "map"]
            _programs.main()
            """)
        self.assertIn(harness.PYTHON, "".join(out))

    def test_a_client_program_that_is_missing_or_ends_at_once_is_named(self):
        broken = self.folder / "bin"
        broken.mkdir()
        (broken / "patchbay").write_text("#!/bin/sh\nexit 132\n")
        (broken / "patchbay").chmod(0o755)
        process = self.program("""
            import gc
            os.environ["PATCHBAY_BIN"] = "nothere"
            raised(lambda: patchbay.attach("run.yaml"), patchbay.NotFoundError)
            os.environ["PATCHBAY_BIN"] = "bin"
            text = raised(lambda: patchbay.attach("run.yaml"), patchbay.ClusterError)
            assert "it has ended (exit code 132)" in text, text
            text = raised(patchbay.status, patchbay.ClusterError)
            assert "exit code 132" in text, text
            gc.collect()
            """)
        _, err = process.communicate(timeout=harness.LIMIT_S)
        self.assertEqual((process.returncode, err), (0, ""), "nothing is raised while a stream is torn down")


if __name__ == "__main__":
    harness.main()
