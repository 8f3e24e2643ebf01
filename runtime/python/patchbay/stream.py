"""attach() and the Stream that it returns."""
from __future__ import annotations

import atexit
import collections.abc
import operator
import os
import signal
import threading
import warnings
import weakref
from typing import Any

from . import _breakdown, _client, _cuda, _position, _request, _ring, _state, errors
from ._extension import Batch, Loop, Position

collections.abc.Mapping.register(Batch)

_FIELDS = ("slide_id", "patient_id", "site", "split", "mpp", "stated_mpp", "level_sizes", "downsamples", "spacing",
           "affine", "modality", "unit", "channels", "mean", "std", "digest", "path")
_ABORTED = 10  # absl::StatusCode: the client process has left a cluster that is stopping
_open_streams = weakref.WeakSet()


def attach(config: str | os.PathLike[str] | collections.abc.Mapping[str, Any], *, split: str | None = None, device: object = None,
           rank: int | None = None, world_size: int | None = None, cluster: str | os.PathLike[str] | None = None,
           name: str | None = None, overrides: collections.abc.Mapping[str, Any] | None = None,
           state: collections.abc.Mapping[str, Any] | None = None, cpus: int | None = None, data_policy: str | None = None,
           data_listen: str | None = None, augment: bool | None = None,
           position: str | os.PathLike[str] | None = None) -> Stream:
    """Opens a run and returns its stream; waits until its images are planned.

    config: path of a run config, or the same as a dict. Relative paths of its dataset are relative to the current folder.
    split: one of the splits of the config's table, or "all": every row, not augmented. None = the whole dataset, where it has none.
    device: None or "cpu": batches lie in host memory, which is page-locked where the program uses CUDA through torch.
        "cuda", "cuda:N" or a torch.device: `image`, `mask` and `label` lie on that device, ready when the batch is; the
        metadata stays in host memory.
    rank, world_size: which part of every batch; None = torch.distributed's, else RANK and WORLD_SIZE, else 0 of 1.
    cluster: path of a key file; None = PATCHBAY_CLUSTER, else the cluster that `patchbay up` runs here, else an embedded
        one, shared by the ranks of one launch (or by the streams of this process), which ends with the last of them.
    name: ranks that use the same name form one run; None = the launch (torchrun's variables, or MASTER_ADDR and MASTER_PORT) says it.
    overrides: {"batch.prefetch": 4, ...}: values instead of the config's; recorded in the plan.
    state: what state_dict() gave: the stream begins there.
    cpus: CPU workers of an embedded cluster; None = the cores this process may use.
    data_policy: what carries batches from other nodes, "tls" or "rdma"; None = what was declared here, else "tls".
    data_listen: address of this machine for workers of other nodes; None = the one from which it reaches the cluster.
    augment: True or False, whether the config's `augment` runs; None = for a split whose role is train, and where there
        are no splits. Part of the plan.
    position: a file, as `patchbay stream --position` has it: the stream begins where it says, or, without it, at the
        beginning, and writes it at each state_dict() and when it is told to stop: by SIGTERM (unless the program
        handles that itself: call stop() then), by stop(), or by a cluster that is stopping. The loop then ends after the
        current batch, and `stopping` is true. One file serves all ranks; rank 0 writes it.

    Raises ConfigError, StateError, NotFoundError, AccessError, DataError, ConflictError, ClusterError, DeviceError,
    ResourceError (patchbay.errors), each saying what to do. Warns (UserWarning) of what `patchbay stream` notes on the
    config's tables: rows that could not be compared for leaks between splits, columns that are not read.
    """
    return Stream(_request.of(locals()), state, position)


def _check_shares(description):
    """ConfigError where ranks would get unequal parts though the tail policy promises full batches."""
    size, ranks, tail = (description[key] for key in ("global_batch", "world_size", "tail"))
    if tail != "keep" and size % ranks != 0:
        raise errors.ConfigError(f"attach: batch.global_size {size} on {ranks} ranks: with batch.tail {tail} every rank gets "
                                 f"as much as the others: choose a multiple of {ranks}, batch.per_rank, or tail: keep")


class Images(collections.abc.Sequence[dict[str, Any]]):
    """The images of a stream, as `image_index` counts them. Fetched as they are asked for.

    Each is a dict with slide_id, patient_id, site, split, path and the table's other columns, which are text, and with
    what the plan used of the image. An unknown value is None.
    mpp: um per pixel of level 0, of slides; stated_mpp: what the file says of it, another where the table corrects it.
    level_sizes: [z, y, x] of every level, the finest first; downsamples: of every level against level 0.
    spacing: mm between voxels of level 0, [z, y, x], of volumes; affine: the rows of the matrix from voxel (x, y, z, 1)
        of level 0 to millimetres in RAS.
    modality: CT, MR, PT or OT, of volumes; unit: HU, SUVbw, Bq/ml or arbitrary.
    channels: of an image whose several channels have names, those of the patch: dicts with name, modality and unit.
    mean, std: the numbers of zscore, of the values as `window` leaves them; low, high: those that percentile makes 0 and 1;
        of several channels lists.
    digest: of the store, or of the slide's file.
    images[-1], the image of a padding patch, is an empty record.
    """

    def __init__(self, client: _client.Client, count: int) -> None:
        self._client, self._count = client, count
        self._rows: dict[int, dict[str, Any]] = {}

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> dict[str, Any]:  # type: ignore[override]
        index = operator.index(index)
        if index == -1:
            return dict.fromkeys(_FIELDS)
        if not 0 <= index < self._count:
            raise IndexError(f"image {index}: the stream has {self._count}")
        if index not in self._rows:
            first = index - index % 100
            answer, _ = self._client.ask(op="images", first=first)
            for i, row in enumerate(answer["rows"]):
                self._rows[first + i] = {**dict.fromkeys(_FIELDS), **row}
            if index not in self._rows:  # long paths: fewer rows fit
                answer, _ = self._client.ask(op="images", first=index)
                self._rows[index] = {**dict.fromkeys(_FIELDS), **answer["rows"][0]}
        return self._rows[index]


class Stream:
    """Batches of one run, for one rank. `for batch in stream` is one epoch; a context manager closes it.

    One thread at a time takes batches; batches and tensors may go from any. Keeps nothing in the trainer's process but
    the mapped ring: `stats()["ring_bytes"]` bytes of memory.
    """

    def __init__(self, request, state=None, position=None):
        self._closed, self._ring, self._position, self._resumed, self._opens = True, None, Position(), False, 0
        self._file, self._stopping, self._owner = None, False, os.getpid()
        token = None if state is None else _state.unpack(state)
        if position is not None:
            if state is not None:
                raise errors.ConfigError("attach: state and position exclude each other: both say where to begin")
            self._file, request["leave"] = os.path.abspath(os.fspath(position)), True
            token = _position.read(self._file)
        self._device = request.pop("ordinal", None)
        self._request, self._client = request, _client.Client()
        self._closed = False
        try:
            self._open(token)
        except BaseException as error:
            self._closed = True
            self._client.kill()
            if isinstance(error, errors.StateError) and self._file:
                raise errors.StateError(f"go on from {self._file}: {error}") from error
            raise
        _open_streams.add(self)
        if self._file and threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _on_sigterm)

    def _open(self, token):
        try:
            self._open_at(token)
        except errors.PatchbayError:
            raise
        except BaseException:  # Ctrl-C half-way: what the client process says next would be of another question
            self._client.kill()
            raise

    def _open_at(self, token):
        request = dict(self._request, name=_request.shared_name(self._request, token))
        if token is not None:
            request["resume_token"] = token.text_at(token.epoch, token.batch)
        description, ring = _ring.open_run(self._client, request, self._device)
        _check_shares(description)
        self._ring = ring
        self._position.looks_for_device = self._device is None
        self._description = description
        self._length = description["batches_per_epoch"]
        self._token = _state.Token(description["resume_token"])
        epoch, batch = (0, 0) if token is None else (token.epoch, token.batch)
        self._position.move(self._ring, epoch, batch, self._length)
        self._resumed = batch > 0
        self._opens += 1
        self._images = Images(self._client, description["images"])
        for notice in description["notices"] if self._opens == 1 else []:
            warnings.warn(f"patchbay: {notice}", stacklevel=5)
        if batch >= self._length:
            raise errors.StateError(f"load state: batch {batch}: an epoch has {self._length}")

    def _check_open(self):
        if self._closed:
            raise errors.StreamClosed("the stream is closed: attach again")

    def __len__(self) -> int:
        """Batches of an epoch; the same for every rank."""
        return self._length

    @property
    def epoch(self) -> int:
        """The epoch that is being streamed, or comes next; from 0."""
        return self._position.epoch

    @property
    def images(self) -> Images:
        """The images that `image_index` names: see Images."""
        return self._images

    @property
    def description(self) -> dict[str, Any]:
        """The result of the run: a dict of counts, arrays and digests."""
        return {key: value for key, value in self._description.items() if key not in ("ok", "resume_token", "device")}

    def __iter__(self) -> collections.abc.Iterator[Batch]:
        self._check_open()
        if self._stopping:
            return iter(())
        if self._position.batch > 0 and not self._resumed:  # the loop before was left early
            self._open(_state.Token(self._token.text_at(self._position.epoch + 1, 0)))
        self._resumed = False
        loop = Loop(self, self._position)
        return loop if self._file is None else _UntilStopped(self, loop)

    def _look_for_device(self):
        """Once the program uses CUDA, the ring is page-locked: copies to the device run beside it, and slots wait for them.
        Called by the loop before each batch until then, where torch is imported."""
        device = _cuda.device_in_use()
        if device is None:
            return
        self._position.looks_for_device = False
        try:
            self._ring.use_device(device)
        except RuntimeError as error:
            warnings.warn(f"patchbay: {error}: copies to the device are slower", ResourceWarning, stacklevel=2)

    def _token_here(self):
        return self._token.text_at(self._position.epoch, self._position.batch)

    def state_dict(self) -> dict[str, Any]:
        """The first batch not handed out yet, and the plan it belongs to: under 1 KiB, values str and int.

        Knows nothing of ranks or workers: any rank's state serves any number of them.
        """
        self._keep()
        return _state.pack(self._token_here())

    def _keep(self):
        if self._file is not None and self._request["rank"] == 0:
            _position.write(self._file, self._token_here())

    @property
    def stopping(self) -> bool:
        """Whether the stream was told to stop: see attach's `position`. Save what you have, and end with exit code 75."""
        return self._stopping

    def stop(self) -> None:
        """Ends the loop after the current batch. From any thread, and from a handler of a signal."""
        self._stopping = True
        self._ring.close()

    def load_state_dict(self, state: collections.abc.Mapping[str, Any]) -> None:
        """Goes on where `state` was taken; the next loop finishes the interrupted epoch.

        StateError when it is of another run, naming what differs, or no state at all; the stream is as before then.
        """
        self._check_open()
        token = _state.unpack(state)
        if token.global_size == self._token.global_size or token.plan == self._token.plan:
            token.check_same_plan(self._token)
            if token.batch >= self._length:
                raise errors.StateError(f"load state: batch {token.batch}: an epoch has {self._length}")
        if (token.epoch, token.batch) != (self._position.epoch, self._position.batch):
            before = self._token_here()
            try:
                self._open(token)
            except errors.StateError:  # the client process has left the stream for it
                self._open(_state.Token(before))
                raise
            self._position.end_loops()
        self._resumed = self._position.batch > 0

    def stats(self) -> dict[str, Any]:
        """Figures since attach, the last load_state_dict or the last loop left early (`opens` counts these):

        batches, patches, bytes; wall_s, wait_s (in taking batches), stall_fraction (of the time from the second batch on
        that was spent waiting), wait_p50_s and wait_p99_s (for one batch, from the second on; at most an eighth too long),
        first_batch_s; ring_bytes of host memory, device_bytes; shards_refused, shards_corrupt, batches_moved, remote_bytes;
        stages_s, seconds of the workers in storage, decode, transform and transfer over stage_patches patches; breakdown.

        breakdown[stage], for those stages and trainer: `fraction` of the time from the second batch on (the trainer has
        what it did not wait; the wait is divided as the workers' seconds are) and `s_per_batch`, the mean for a batch of
        this rank, of all workers together. Time in queues between stages counts for none; transfer is 0 where workers
        write into the slot.
        """
        device = self._description.get("device", {"bytes": 0})
        stats = {**self._ring.stats(), "opens": self._opens, "ring_bytes": self._description["ring_bytes"],
                 "device_bytes": device["bytes"]}
        stats["breakdown"] = _breakdown.of(stats["stages_s"], stats["stage_patches"], stats["batches"], stats["patches"],
                                           stats["stall_fraction"], stats["wall_s"] - stats["wait_s"])
        return stats

    def close(self) -> None:
        """Leaves the stream; an embedded cluster ends with its last one. Tensors stay readable. May be called again."""
        if self._closed:
            return
        self._closed = True
        if self._ring is not None:
            self._ring.close()
        self._client.close(outlived=self._device is not None)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self):
        if not self._closed:
            self.close()

    def __repr__(self) -> str:
        return (f"<patchbay stream of job {self._description['job']}: rank {self._request['rank']} of "
                f"{self._request['world_size']}, epoch {self.epoch}, {self._length} batches an epoch>")


class _UntilStopped:
    """A loop that ends when its stream is told to stop, and writes the position then."""

    def __init__(self, stream, loop):
        self._stream, self._loop = stream, loop

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._loop)

    def __next__(self):
        try:
            return next(self._loop)
        except errors.PatchbayError as error:
            # After a signal the processes of the stream may have ended, too.
            if not self._stream.stopping and error.code != _ABORTED:
                raise
        self._stream._stopping = True
        self._stream._keep()
        raise StopIteration


def _on_sigterm(number, _):
    """Stops the streams with a position; the next signal ends the program. So does this one where there are none."""
    signal.signal(number, signal.SIG_DFL)
    streams = [stream for stream in _open_streams if stream._file and not stream._closed and stream._owner == os.getpid()]
    for stream in streams:
        stream.stop()
    if not streams:
        os.kill(os.getpid(), number)


def _close_all():
    for stream in list(_open_streams):
        stream.close()


atexit.register(_close_all)
