"""The wrappers of patchbay.torch with the packages they are made for: Lightning, torchdata, Weights & Biases and TensorBoard,
each where a Python here has it."""
import json
import textwrap

import harness
import torch_case


class Wrappers(torch_case.TorchCase):
    # Two epochs with validation; writes down what it was given. Kills itself in the step that it is told.
    FIT = """
        import hashlib, os, sys, torch, lightning.pytorch as lightning
        from lightning.pytorch.callbacks import ModelCheckpoint
        from patchbay.torch import FeedLog, data_module
        name, stop, devices = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

        class Model(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = torch.nn.Sequential(torch.nn.AvgPool2d(32), torch.nn.Flatten(), torch.nn.Linear(48, 1))

            def on_fit_start(self):
                self.seen = open(f"{name}.{self.global_rank}", "a")

            def note(self, what, batch):
                digest = hashlib.sha256(batch["image"].numpy().tobytes()).hexdigest()
                print(what, self.current_epoch, batch["ordinal"].tolist(), digest, file=self.seen, flush=True)

            def training_step(self, batch, index):
                if self.global_step == stop:
                    os.kill(os.getpid(), 9)
                self.note("train", batch)
                return self.net(batch["image"]).square().mean()

            def validation_step(self, batch, index):
                if not self.trainer.sanity_checking:
                    self.note("val", batch)

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 1e-3)

        lightning.seed_everything(0)
        keep = ModelCheckpoint(dirpath=".", filename=name, every_n_train_steps=3, enable_version_counter=False)
        trainer = lightning.Trainer(accelerator="cpu", devices=devices, max_epochs=2, logger=False, enable_progress_bar=False,
                                    enable_model_summary=False, use_distributed_sampler=False, callbacks=[keep])
        last = name + ".ckpt" if os.path.exists(name + ".ckpt") else None
        model = Model()
        trainer.fit(model, data_module("split.yaml", cpus=1), ckpt_path=last, weights_only=True)
        if trainer.is_global_zero:
            torch.save(model.state_dict(), name + ".model")
        """

    def setUp(self):
        super().setUp()
        self.stores = self.store([self.slide(size="1300x900")])

    def two_splits(self):
        other = next(self.store([self.slide("b.svs", size="700x600", seed=2)], out="other").glob("*.ome.zarr"))
        store = next(self.stores.glob("*.ome.zarr"))
        (self.folder / "split.csv").write_text(f"path,use\n{store},train\n{other},val\n", encoding="utf-8")
        run = self.run_file("split.csv", name="split.yaml", batch=8, split_column="use", meta=True,
                            splits="{val: {sampling: {order: sequential}}}")
        run.write_text(run.read_text().replace("float16", "float32"), encoding="utf-8")

    def fit(self, name, stop=-1, devices=1):
        (self.folder / "fit.py").write_text(textwrap.dedent(self.FIT), encoding="utf-8")
        return self.program("fit.py", name, stop, devices)

    def seen(self, name, rank=0):
        return (self.folder / f"{name}.{rank}").read_text().splitlines()

    def test_lightning_trains_validates_and_resumes_from_its_checkpoint_in_the_middle_of_an_epoch(self):
        self.need("lightning")
        self.two_splits()
        self.done(self.fit("whole"))
        whole = self.seen("whole")
        self.assertEqual([line.split()[:2] for line in whole],
                         [[what, str(epoch)] for epoch in range(2) for what in ["train"] * 11 + ["val"] * 4])
        self.done(self.fit("cut", stop=17), expect=-9)  # in the second epoch, two steps after the last checkpoint
        self.assertEqual(self.seen("cut"), whole[:21])  # 11 and 6 steps, 4 of validation
        self.done(self.fit("cut"))
        self.assertEqual(self.seen("cut")[21:], whole[19:])  # the checkpoint was taken after 15 steps and 4 of validation
        self.run_program("""
            import torch
            whole, cut = torch.load("whole.model"), torch.load("cut.model")
            assert all(torch.equal(value, cut[name]) for name, value in whole.items()), "the models differ"
            """)

    def test_lightning_on_two_ranks_gives_each_its_part_once_also_when_it_is_resumed(self):
        self.need("lightning")
        self.two_splits()
        self.done(self.fit("ranks", stop=17, devices=2), expect=-9)
        self.done(self.fit("ranks", devices=2))
        lines = [self.seen("ranks", rank) for rank in range(2)]
        self.assertEqual(len(lines[0]), len(lines[1]))
        parts = [part[:19] + part[21:] for part in lines]  # less the two steps after the checkpoint
        for epoch in range(2):
            lists = [line[line.index("["):line.index("]") + 1] for part in parts for line in part if line.startswith(f"train {epoch}")]
            self.assertEqual(sorted(sum(map(json.loads, lists), [])), list(range(88)))

    def test_torchdatas_stateful_loader_takes_and_gives_the_state(self):
        self.need("torchdata")
        self.run_file("stores", batch=8)
        self.run_program("""
            import torch
            from torchdata.stateful_dataloader import StatefulDataLoader
            from patchbay.torch import IterableDataset
            def loader():
                return StatefulDataLoader(IterableDataset("run.yaml", cpus=1), batch_size=None, num_workers=0)
            def images(batches, count=10**6):
                return [batch["image"].clone() for _, batch in zip(range(count), batches)]
            loaders = [loader() for _ in range(2)]
            uncut = [images(loaders[0]) for _ in range(2)]
            first = images(loaders[1], 4)
            state = loaders[1].state_dict()
            resumed = loader()
            resumed.load_state_dict(state)
            rest = images(resumed)
            assert len(first + rest) == 11 and all(map(torch.equal, first + rest, uncut[0])), (len(first), len(rest))
            assert all(map(torch.equal, images(resumed), uncut[1])), "the epoch after it"
            """)

    def test_tensorboard_shows_the_figures_of_the_lines(self):
        self.need("tensorboard")
        self.run_file("stores", batch=8)
        self.run_program("""
            import json, patchbay
            from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
            from torch.utils.tensorboard import SummaryWriter
            from patchbay.torch import FeedLog
            stream, writer = patchbay.attach("run.yaml", cpus=1), SummaryWriter("board")
            feed = FeedLog(stream, "feed.jsonl", writer, every_s=0)
            for step, batch in enumerate(stream, 1):
                feed(step)
            writer.close()
            lines = [json.loads(line) for line in open("feed.jsonl")]
            board = EventAccumulator("board").Reload()
            assert set(board.Tags()["scalars"]) == {"patchbay/" + key for key in lines[0] if key != "step"}
            for tag in board.Tags()["scalars"]:
                shown = [(event.step, event.value) for event in board.Scalars(tag)]
                wanted = [(line["step"], line[tag.split("/")[1]]) for line in lines]
                assert len(shown) == len(wanted) == 11
                # An event holds a float32.
                assert all(a[0] == b[0] and abs(a[1] - b[1]) <= 1e-6 * abs(b[1]) for a, b in zip(shown, wanted)), (shown, wanted)
            """)

    def test_an_open_run_of_weights_and_biases_gets_the_figures(self):
        self.need("wandb")
        self.run_file("stores", batch=8)
        self.done(self.program("-c", textwrap.dedent("""
            import wandb, patchbay
            from patchbay.torch import FeedLog
            stream = patchbay.attach("run.yaml", cpus=1)
            feed = FeedLog(stream, "wandb", every_s=0)
            run = wandb.init(mode="offline", project="test", dir=".")
            for step, batch in enumerate(stream, 1):
                feed(step)
            share = {"value": 0.75, "low": None, "high": None}
            group = {"accuracy": share, "classes": {"tumour": {"dice": share, "auroc": share | {"value": None}}}}
            feed.log_score({"outputs": {"p": {"metrics": ["dice", "auroc"], "groups": [group]}}}, step + 1)
            feed(step + 2)  # a step is in the summary once there is another
            logged = {key: value for key, value in dict(run.summary).items() if not key.startswith("_")}
            run.finish()
            scores = {key: value for key, value in logged.items() if "score/" in key}
            assert scores == {"patchbay/score/p/accuracy": 0.75, "patchbay/score/p/tumour/dice": 0.75}, scores
            stages = ("storage", "decode", "transform", "transfer", "trainer")
            wanted = {f"patchbay/{name}_{figure}" for name in stages for figure in ("fraction", "s_per_batch")}
            assert wanted <= set(logged) and all(key.startswith("patchbay/") for key in logged), logged
            assert all(isinstance(value, (int, float)) for value in logged.values()), "figures only"
            """), WANDB_SILENT="true", HOME=str(self.folder)))

    def test_a_data_module_has_two_splits_and_the_state_of_training(self):
        """The calls of a Lightning trainer, in its order, over a fake base class."""
        self.two_splits()
        self.run_program("""
            import sys, torch, types
            base = type("LightningDataModule", (), {"__init__": lambda self: None})
            sys.modules["lightning"], sys.modules["lightning.pytorch"] = types.SimpleNamespace(), None
            sys.modules["pytorch_lightning"] = types.SimpleNamespace(LightningDataModule=base)
            from patchbay.torch import data_module
            def images(loader, count=10**6):
                return [batch["image"].clone() for _, batch in zip(range(count), loader)]
            data = data_module("split.yaml", cpus=1)
            assert isinstance(data, base) and data.state_dict() == {}, "nothing is attached before a loader is asked for"
            whole, held_out = images(data.train_dataloader()), images(data.val_dataloader())
            assert len(whole) == len(data.train_dataloader()) != len(held_out) and whole[0].shape == (8, 3, 128, 128)
            data.teardown("fit")
            cut = data_module("split.yaml", cpus=1)
            first = images(cut.train_dataloader(), 2)
            cut.teardown("fit")
            again, state = data_module("split.yaml", cpus=1), cut.state_dict()
            again.load_state_dict(state)  # before the loader is asked for, as from a checkpoint
            rest = images(again.train_dataloader())
            assert len(first + rest) == len(whole) and all(map(torch.equal, first + rest, whole))
            assert all(map(torch.equal, held_out, images(again.val_dataloader())))
            again.teardown("fit")
            assert data_module("split.yaml", val=None).val_dataloader() == []
            """)


if __name__ == "__main__":
    harness.main()
