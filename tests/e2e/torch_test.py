"""With PyTorch, where a Python has it: tensors that are slots, and the example and a user's loop, killed and resumed on two
ranks."""
import os
import re
import socket
import subprocess
import textwrap

import harness
import torch_case


class Torch(torch_case.TorchCase):
    def setUp(self):
        super().setUp()
        self.store([self.slide(size="1300x900")])

    def test_tensors_are_slots_and_the_dataset_hands_them_on(self):
        self.run_file("stores", batch=8)
        self.run_program("""
            import json, types, sys, torch, patchbay
            from patchbay.torch import FeedLog, IterableDataset, loader
            dataset = IterableDataset("run.yaml", overrides={"batch.dtype": "bfloat16", "batch.meta": True}, cpus=1)
            batches = iter(loader(dataset))
            first = next(batches)
            assert first["image"].dtype == torch.bfloat16 and first["image"].shape == (8, 3, 128, 128)
            assert first["ordinal"].tolist() == list(range(8)) and first["box"].shape == (8, 6)
            kept, copied = first["image"], first["image"].clone()
            del first
            state = dataset.state_dict()
            after = next(batches)["image"].clone()
            for batch in batches:
                pass
            assert torch.equal(kept, copied), "a tensor that is kept keeps its bytes"
            dataset.load_state_dict(state)
            assert torch.equal(next(iter(loader(dataset)))["image"], after), "the state counts what was handed out"
            raw = next(iter(dataset.stream))
            assert torch.from_dlpack(raw["image"]).data_ptr() == raw["image"].data_ptr, "a copy was made"
            try:
                next(iter(torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=1)))
                raise SystemExit("a stream was used in a worker")
            except patchbay.ForkError as error:
                assert "num_workers=0" in str(error)
            board, runs = [], []
            sys.modules["wandb"] = types.SimpleNamespace(run=None)
            writer = types.SimpleNamespace(add_scalar=lambda *words: board.append(words))
            feed = FeedLog(dataset.stream, "feed.jsonl", writer, "wandb", every_s=0)
            raw = next(iter(dataset.stream))  # a batch of another epoch: the stream is opened there, and counts from 0
            feed(1)
            sys.modules["wandb"].run = types.SimpleNamespace(log=lambda figures, step: runs.append((figures, step)))
            feed(2)
            lines = [json.loads(line) for line in open("feed.jsonl")]
            assert [line["step"] for line in lines] == [1, 2] and len(board) == 30 and runs[0][1] == 2, (lines, board, runs)
            assert set(runs[0][0]) == {"patchbay/" + key for key in lines[0] if key != "step"}
            assert all(isinstance(value, (int, float)) for line in lines for value in line.values()), "figures only"
            stages = ("storage", "decode", "transform", "transfer")
            assert abs(sum(lines[0][name + "_fraction"] for name in stages) - lines[0]["wait_fraction"]) < 1e-9, lines
            assert lines[0]["decode_s_per_batch"] > 0 == lines[1]["decode_s_per_batch"], lines
            assert lines[0]["batches"] == 1 and lines[0]["patches_per_s"] > 0 == lines[1]["patches_per_s"], lines
            """)

    def test_the_page_takes_a_user_from_nothing_to_a_loop(self):
        """Its command blocks, its config and its loop, in their order, in an empty folder."""
        page = (torch_case.EXAMPLE.parents[1] / "runtime/python/ATTACH.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[:4]
        self.assertEqual([language for language, _ in blocks], ["sh", "yaml", "sh", "python"])
        empty = self.folder / "new"
        empty.mkdir()
        path = f"{harness.BIN}:{os.environ['PATH']}"
        for language, text in blocks:
            if language == "yaml":
                (empty / "run.yaml").write_text(text, encoding="utf-8")
                continue
            command = ["bash", "-e", "-c", text] if language == "sh" else [self.python, "-c", text]
            done = subprocess.run(command, cwd=empty, capture_output=True, text=True, timeout=harness.LIMIT_S, stdin=subprocess.DEVNULL,
                                  env=self.environment(PATH=path, PYTHONPATH=str(torch_case.MODULE)))
            self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        losses = [float(line.split()[1]) for line in done.stdout.splitlines()]
        self.assertEqual(len(losses), 3)
        self.assertLess(losses[2], losses[0], "it learns")

    def train(self, out, port):
        launch = {"TORCHELASTIC_RUN_ID": self.folder.name + out, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                  "WORLD_SIZE": "2"}
        return [self.program(torch_case.EXAMPLE / "train_gleason.py", torch_case.EXAMPLE / "gleason.yaml", "--epochs", 1, "--cpus", 1,
                             "--save-every", 5, "--checkpoint", out + ".pt", "--log", out + ".jsonl",
                             RANK=str(rank), LOCAL_RANK=str(rank), **launch) for rank in range(2)]

    def test_the_example_killed_and_resumed_on_two_ranks_ends_with_the_model_of_an_uncut_run(self):
        port = 20000 + os.getpid() % 10000
        for process in self.train("whole", port):
            whole = self.done(process)
            if "epoch 1" in whole:
                self.assertIn("class accuracy", whole)
        running = self.train("cut", port + 1)
        harness.wait_until((self.folder / "cut.pt").exists, "a checkpoint")
        for process in running:
            self.assertIsNone(process.poll(), "it ended before it was killed")
            process.kill()
            process.wait()
        for process in self.train("cut", port + 2):
            self.done(process)
        self.run_program("""
            import torch
            whole, cut = (torch.load(name) for name in ("whole.pt", "cut.pt"))
            assert whole["data"] == cut["data"] and whole["step"] == cut["step"] == 50
            for name, value in whole["model"].items():
                assert torch.equal(value, cut["model"][name]), f"{name} differs"
            """)
        self.assertEqual(list((self.folder / "tmp").glob("patchbay-*")), [])

    # The loop of a user's, with gloo, the CPU and float32 in place of NCCL, a GPU and bfloat16; and a record of what it saw.
    LOOP = """
        import hashlib, os, sys, torch, torch.distributed as dist, torch.nn.functional as F, patchbay
        dist.init_process_group("gloo")
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 5, 4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                                  torch.nn.Flatten(), torch.nn.Linear(4, 6))
        model = torch.nn.parallel.DistributedDataParallel(net)
        opt = torch.optim.AdamW(model.parameters(), 1e-3)
        train, val = (patchbay.attach("run.yaml", split=s, cpus=1) for s in ("train", "val"))
        last, stop, seen = sys.argv[1] + ".pt", int(sys.argv[2]), open(f"{sys.argv[1]}.{dist.get_rank()}", "a")
        steps = 0
        if os.path.exists(last):
            ck = torch.load(last, map_location="cpu")
            model.module.load_state_dict(ck["model"]); opt.load_state_dict(ck["opt"]); train.load_state_dict(ck["data"])
        while train.epoch < 2:
            for step, batch in enumerate(train):
                x, label = (torch.from_dlpack(batch[k]) for k in ("image", "label"))
                print(batch.epoch, batch.index, hashlib.sha256(bytes(batch["image"])).hexdigest(), label.tolist(), file=seen,
                      flush=True)
                loss = F.cross_entropy(model(x), label, ignore_index=255)
                opt.zero_grad(); loss.backward(); opt.step()
                steps += 1
                if step % 4 == 3 and dist.get_rank() == 0:
                    torch.save({"model": model.module.state_dict(), "opt": opt.state_dict(), "data": train.state_dict()},
                               last + ".new")
                    os.replace(last + ".new", last)
                if steps == stop and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
                    dist.barrier()
                    os.kill(os.getpid(), 9)
            with torch.no_grad():
                score, of = 0.0, 0
                for batch in val:
                    keep = torch.from_dlpack(batch["ordinal"]) >= 0
                    found = model.module(torch.from_dlpack(batch["image"])).argmax(1) == torch.from_dlpack(batch["label"])
                    score, of = score + found[keep].sum().item(), of + keep.sum().item()
                    assert all(val.images[i]["split"] in ("val", None) for i in batch["image_index"].tolist())
                print("val", train.epoch, score, of, file=seen, flush=True)
        if dist.get_rank() == 0:
            torch.save(model.module.state_dict(), sys.argv[1] + ".model")
        train.close(); val.close()
        """

    def torchrun(self, name, stop):
        (self.folder / "loop.py").write_text(textwrap.dedent(self.LOOP))
        # PyTorch 1.13 fails under Python 3.11 unless both are given: stdout to a file, stderr to here as well.
        outputs = ("--redirects=1", "--tee=2")
        with socket.socket() as free:  # --standalone would give both launches the port 29400
            free.bind(("127.0.0.1", 0))
            meeting = f"127.0.0.1:{free.getsockname()[1]}"
        # PyTorch 2.15 gives ranks that it starts again the store of those that died, whose addresses stand in it, and they wait
        # for these for ever, also without our module; a store for each start is what it had before.
        return self.program("-m", "torch.distributed.run", "--rdzv_backend=c10d", f"--rdzv_endpoint={meeting}", f"--rdzv_id={name}",
                            "--nproc_per_node=2", "--max_restarts=1", *outputs, "loop.py", name, stop,
                            TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")

    def cohort(self):
        """Two slides to train on and one to validate with, each with a grade."""
        rows = ["path,slide_id,fold_0,grade", "a.svs,a,train,1"]
        for name, split, grade in (("b", "train", 4), ("c", "val", 2)):
            self.slide(name + ".svs", size="900x700", seed=grade)
            rows.append(f"{name}.svs,{name},{split},{grade}")
        (self.folder / "cohort.csv").write_text("\n".join(rows) + "\n")
        run = self.run_file("cohort.csv", batch=4, meta=True, split_column="fold_0", labels="{label: {column: grade}}",
                            splits="{val: {sampling: {positions: grid, order: sequential}, batch: {tail: pad}}}")
        run.write_text(run.read_text().replace("float16", "float32").replace("tail: keep", "tail: drop"))

    def test_the_loop_under_torchrun_killed_and_resumed_has_the_bytes_of_an_uncut_run(self):
        self.cohort()
        launches = [self.torchrun("whole", 0), self.torchrun("cut", 14)]  # the second kills both ranks at its 14th step
        for launch in launches:
            self.done(launch)
        for rank in range(2):
            whole, cut = ((self.folder / f"{name}.{rank}").read_text().splitlines() for name in ("whole", "cut"))
            before, after = cut[:14], cut[14:]
            self.assertEqual(before, whole[:14])
            self.assertEqual(after, whole[-len(after):])
            self.assertEqual(len(after), len(whole) - 12, "it went on from the checkpoint after 12 steps")
            self.assertEqual(len([line for line in whole if line.startswith("val")]), 2)
        self.run_program("""
            import torch
            whole, cut = torch.load("whole.model"), torch.load("cut.model")
            assert all(torch.equal(value, cut[name]) for name, value in whole.items()), "the models differ"
            """)
        self.assertNotEqual(*[(self.folder / f"whole.{rank}").read_text() for rank in range(2)], "each rank has its own part")
        self.assertEqual(list((self.folder / "tmp").glob("patchbay-*")), [])


if __name__ == "__main__":
    harness.main()
