"""For PyTorch: an IterableDataset, a Lightning DataModule, and a callback that logs how well training is fed.

Nothing here is imported by `import patchbay`; torch, lightning, wandb and TensorBoard are imported when they are used.
"""
from __future__ import annotations

import collections.abc
import json
import os
import time
import warnings
from typing import Any

import torch
from torch.utils import data

from . import _breakdown, errors
from ._extension import Batch
from .stream import Stream, attach


def tensors(batch: Batch) -> dict[str, torch.Tensor]:
    """{name: tensor} of a batch: the slot itself, no copy."""
    return {name: torch.from_dlpack(array) for name, array in batch.items()}


class IterableDataset(data.IterableDataset):
    """A stream as a dataset of ready batches, for DataLoader(dataset, batch_size=None, num_workers=0).

    Yields {name: tensor}. It is sharded by rank already: a wrapper that shards again (accelerate's prepare, Lightning's
    samplers) gives every rank a part of its part. `state_dict` counts what was handed out, as torchdata's stateful
    loader wants it. Arguments as patchbay.attach; or one Stream.
    """

    def __init__(self, config: Stream | str | os.PathLike[str] | collections.abc.Mapping[str, Any], **arguments: Any) -> None:
        super().__init__()
        self.stream = config if isinstance(config, Stream) else attach(config, **arguments)

    def __iter__(self) -> collections.abc.Iterator[dict[str, torch.Tensor]]:
        worker = data.get_worker_info()
        if worker is not None:
            raise errors.ForkError("iterate dataset: a stream cannot be used in a DataLoader's worker: use "
                                   "num_workers=0; patches are made in other processes anyway")
        return map(tensors, self.stream)

    def __len__(self) -> int:
        return len(self.stream)

    def state_dict(self) -> dict[str, Any]:
        return self.stream.state_dict()

    def load_state_dict(self, state: collections.abc.Mapping[str, Any]) -> None:
        self.stream.load_state_dict(state)

    def close(self) -> None:
        self.stream.close()


def loader(dataset: IterableDataset) -> data.DataLoader:
    """The DataLoader that an IterableDataset is meant for."""
    return data.DataLoader(dataset, batch_size=None, num_workers=0)


def data_module(config: str | os.PathLike[str] | collections.abc.Mapping[str, Any], *, train: str | None = "train",
                val: str | None = "val", **arguments: Any) -> Any:
    """A LightningDataModule over two splits of a config; None for a split that is not wanted.

    Its state, in Lightning's checkpoints, is that of the training stream. Train with
    Trainer(use_distributed_sampler=False): the streams are sharded by rank already.
    """
    try:
        from lightning.pytorch import LightningDataModule
    except ImportError:
        from pytorch_lightning import LightningDataModule

    class PatchbayDataModule(LightningDataModule):
        def __init__(self):
            super().__init__()
            self.sets, self.state = {}, None

        def _set(self, split):
            if split not in self.sets:
                state = self.state if split == train else None
                self.sets[split] = IterableDataset(config, split=split or None, state=state, **arguments)
            return self.sets[split]

        def train_dataloader(self):
            return loader(self._set(train))

        def val_dataloader(self):
            return [] if val is None else loader(self._set(val))

        def state_dict(self):
            return self.sets[train].state_dict() if train in self.sets else self.state or {}

        def load_state_dict(self, state):
            self.state = state or None
            if train in self.sets and state:
                self.sets[train].load_state_dict(state)

        def teardown(self, stage):
            self.state = self.state_dict() or None  # a checkpoint may be written after training
            for each in self.sets.values():
                each.close()
            self.sets = {}

    return PatchbayDataModule()


class FeedLog:
    """Logs how well a stream feeds its trainer: patches/s, bytes/s, the part of the time spent waiting, and on what.

    sinks: any of "wandb" (the run that is open; `init` is never called, without an open run nothing is logged), a
    TensorBoard SummaryWriter, a path to which JSON lines are appended. Figures only: no paths, no ids.
    Call it once a step; it logs every `every_s` seconds.
    """

    def __init__(self, stream: Stream, *sinks: Any, every_s: float = 10.0, prefix: str = "patchbay/") -> None:
        self._stream, self._sinks, self._every_s, self._prefix = stream, sinks, every_s, prefix
        self._seen, self._time, self._warned = stream.stats(), time.monotonic(), False

    def __call__(self, step: int) -> None:
        if time.monotonic() - self._time >= self._every_s:
            self.log(step)

    def figures(self) -> dict[str, float]:
        """Since the last look: rates; shares of the time: wait (for batches), by stage of the workers, and trainer
        (everything else); and what each took a batch. Stream.stats says what the stages are."""
        now, stats = time.monotonic(), self._stream.stats()
        if stats["opens"] != self._seen["opens"]:  # the stream went on elsewhere
            self._seen = dict.fromkeys(stats, 0) | {"stages_s": dict.fromkeys(stats["stages_s"], 0.0)}
        seconds = max(now - self._time, 1e-9)
        seen, self._seen, self._time = self._seen, stats, now
        gained = {key: stats[key] - seen[key] for key in ("batches", "patches", "bytes", "wait_s", "stage_patches")}
        stages_s = {name: spent - seen["stages_s"][name] for name, spent in stats["stages_s"].items()}
        wait = min(gained["wait_s"] / seconds, 1.0)
        shares = _breakdown.of(stages_s, gained["stage_patches"], gained["batches"], gained["patches"], wait,
                               seconds * (1.0 - wait))
        return {"batches": stats["batches"], "patches_per_s": gained["patches"] / seconds,
                "bytes_per_s": gained["bytes"] / seconds, "wait_fraction": wait,
                "stall_fraction": stats["stall_fraction"],
                **{f"{name}_{figure}": value for name, share in shares.items() for figure, value in share.items()}}

    def log(self, step: int) -> dict[str, float]:
        """Logs now; returns the figures."""
        return self._send(self.figures(), step)

    def log_score(self, score: dict[str, Any], step: int) -> dict[str, float]:
        """Logs figures of all images of a patchbay.score, as `score/OUTPUT/CLASS/dice`; returns them."""
        figures = {}
        for name, output in score["outputs"].items():
            whole = output["groups"][0]
            found = {"accuracy": whole["accuracy"], **{f"{label}/{metric}": each[metric] for label, each in whole["classes"].items()
                                                       for metric in output["metrics"]}}
            figures.update({f"score/{name}/{key}": each["value"] for key, each in found.items() if each["value"] is not None})
        return self._send(figures, step)

    def _send(self, figures, step):
        for sink in self._sinks:
            if sink == "wandb":
                self._to_wandb(figures, step)
            elif hasattr(sink, "add_scalar"):
                for key, value in figures.items():
                    sink.add_scalar(self._prefix + key, value, step)
            else:
                with open(sink, "a", encoding="utf-8") as file:
                    file.write(json.dumps({"step": step, **figures}) + "\n")
        return figures

    def _to_wandb(self, figures, step):
        import wandb
        if wandb.run is not None:
            wandb.run.log({self._prefix + key: value for key, value in figures.items()}, step=step)
        elif not self._warned:
            self._warned = True
            warnings.warn("patchbay: no Weights & Biases run is open: nothing is logged to it", stacklevel=4)
