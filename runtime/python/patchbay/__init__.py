"""Patchbay: training batches that are already in the trainer's memory.

    stream = patchbay.attach("run.yaml")
    for batch in stream:                       # one epoch
        x = torch.from_dlpack(batch["image"])  # the slot itself, no copy: (N, C, H, W), batch.dtype

`batch` maps names to arrays, patches first: `image` (N, C, H, W) or (N, C, D, H, W), and with `batch: {meta: true}`
`ordinal` (N) int64, `image_index` (N) int32, `level` (N) int32, `box` (N, 6) int64: z, y, x, depth, height, width in
pixels of the level.
"""
from ._extension import Array, Batch
from .errors import (AccessError, ClusterError, ConfigError, ConflictError, DataError, DeviceError, ForkError,
                     InternalError, NotFoundError, PatchbayError, ProcessorError, ResourceError, RingExhausted, StateError,
                     StreamClosed, WaitTimeout)
from .jobs import open_store, status, submit, wait
from .map import map  # not in __all__: a star import would hide the built-in
from .score import score
from .stream import Images, Stream, attach

__all__ = ["AccessError", "Array", "Batch", "ClusterError", "ConfigError", "ConflictError", "DataError", "DeviceError",
           "ForkError", "Images", "InternalError", "NotFoundError", "PatchbayError", "ProcessorError", "ResourceError",
           "RingExhausted", "StateError", "Stream", "StreamClosed", "WaitTimeout", "attach", "open_store", "score", "status", "submit", "wait"]
__version__ = "0.1.0"
