"""Rings that a client process of Patchbay handed over."""

from collections.abc import Iterator, Sequence
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


class Array:
    """
    One array of a batch: the slot's own memory, C order, patches first.

    Take it with torch.from_dlpack(array), numpy.asarray(array) or memoryview(array): none of them copies.
    It keeps its slot until it and everything made from it are gone.
    """

    @property
    def name(self) -> str: ...

    @property
    def dtype(self) -> str:
        """Element type by NumPy's name; "bfloat16" has no NumPy type."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(patches, ...), as in user documentation: (N, C, H, W)."""

    @property
    def ndim(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def data_ptr(self) -> int:
        """Address of the first element."""

    def numpy(self) -> object:
        """A NumPy view of the slot, no copy. BufferError for bfloat16."""

    def tolist(self) -> object:
        """Nested lists of Python numbers: a copy."""

    def __len__(self) -> int: ...

    def __iter__(self) -> object: ...

    def __getitem__(self, arg: object, /) -> object: ...

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's (type, id): (1, 0) host memory, (2, n) CUDA device n."""

    def __dlpack__(self, *, stream: object | None = None, max_version: object | None = None, dl_device: object | None = None, copy: object | None = None) -> object:
        """
        A capsule of the slot itself. It does not wait, since the bytes of a batch are complete. The slot is kept until work queued on `stream` (a CUDA stream, None = the default one, -1 = none) has ended.
        """

    def __repr__(self) -> str: ...

class Batch:
    """
    One rank's part of one batch: a mapping from names to arrays.

    Its slot goes back to the ring when the batch and every tensor made from it are gone.
    """

    @property
    def epoch(self) -> int:
        """From 0."""

    @property
    def index(self) -> int:
        """Global batch within the epoch, from 0."""

    @property
    def count(self) -> int:
        """Patches of this rank."""

    @property
    def real_count(self) -> int:
        """
        Patches before the padding of a last batch (tail: pad), which comes at the end.
        """

    @property
    def unit(self) -> int:
        """
        The image of the batch, in a run of `patchbay map`: numbered among those with patches.
        """

    @property
    def unit_patches(self) -> int:
        """All patches of that image."""

    def release(self) -> None:
        """
        Like `del`: empties the batch. Arrays and tensors made before keep the slot.
        """

    def keys(self) -> list[str]: ...

    def values(self) -> list[Array]: ...

    def items(self) -> list[tuple[str, Array]]: ...

    def get(self, name: str, default: object | None = None) -> object: ...

    def __getitem__(self, arg: str, /) -> Array: ...

    def __contains__(self, arg: object, /) -> bool: ...

    def __iter__(self) -> Iterator[str]: ...

    def __len__(self) -> int: ...

    def __repr__(self) -> str: ...

class Ring:
    def next(self, timeout_ms: int = -1) -> Batch: ...

    def close(self) -> None: ...

    def use_device(self, device: int) -> None:
        """
        Page-locks a host ring; from now on slots go back behind the work queued on that device.
        """

    def stats(self) -> dict: ...

def open_ring(control_fd: int, ring_fd: int, link_fd: int, description: dict, device: int = 0) -> Ring: ...

def device_uuid(device: int) -> str:
    """
    "GPU-..." of a CUDA device of this process. RuntimeError without a driver or device.
    """

class Position:
    def __init__(self) -> None: ...

    def move(self, ring: Ring, epoch: int, batch: int, length: int) -> None:
        """From now on batches come from `ring`, the first one as (epoch, batch)."""

    def end_loops(self) -> None: ...

    @property
    def epoch(self) -> int: ...

    @property
    def batch(self) -> int: ...

    @property
    def looks_for_device(self) -> bool: ...

    @looks_for_device.setter
    def looks_for_device(self, arg: bool, /) -> None: ...

class Loop:
    """One loop over one epoch of a stream."""

    def __init__(self, stream: object, position: Position) -> None: ...

    def __iter__(self) -> Loop: ...

    def __next__(self) -> Batch: ...

    def __len__(self) -> int: ...

BLEND_WHOLE: int = 8191

BLEND_MOST_WEIGHT: int = 524352

def blend_add(sums: Annotated[NDArray[numpy.uint32], dict(shape=(None, None, None, None), order='C', device='cpu')], patches: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.uint32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], numbers: Sequence[int], places: Sequence[Sequence[Sequence[int]]]) -> bool:
    """
    Adds patches of a batch to a tile. A place is (origin in the tile, first, end): these pixels of the patch count. Probabilities are rounded to multiples of 1 / BLEND_WHOLE. False where one is not within 0 and 1.
    """

def blend_weigh(sums: Annotated[NDArray[numpy.uint32], dict(shape=(None, None, None, None), order='C', device='cpu')], weights: Annotated[NDArray[numpy.uint32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], places: Sequence[Sequence[Sequence[int]]]) -> bool:
    """
    Adds the weights of patches at such places. False where those of a pixel exceed BLEND_MOST_WEIGHT.
    """

@overload
def blend_finish(sums: Annotated[NDArray[numpy.uint32], dict(shape=(None, None, None, None), order='C', device='cpu')], weights: Annotated[NDArray[numpy.uint32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.uint8], dict(shape=(None, None, None, None), order='C', device='cpu')]) -> None:
    """
    Weighted means, 0 to 254, and 255 where the weight is 0; as uint16 the bits of float16, and NaN there. The sums become 0.
    """

@overload
def blend_finish(sums: Annotated[NDArray[numpy.uint32], dict(shape=(None, None, None, None), order='C', device='cpu')], weights: Annotated[NDArray[numpy.uint32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.uint16], dict(shape=(None, None, None, None), order='C', device='cpu')]) -> None: ...

@overload
def blend_halve(values: Annotated[NDArray[numpy.uint8], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.uint8], dict(shape=(None, None, None, None), order='C', device='cpu')]) -> None:
    """Means of 2 x 2 x 2 such values, of those that are covered."""

@overload
def blend_halve(values: Annotated[NDArray[numpy.uint16], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.uint16], dict(shape=(None, None, None, None), order='C', device='cpu')]) -> None: ...

def deflate(content: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> bytes:
    """A stream of deflate, without a header."""

def crc32c(content: bytes) -> int:
    """Castagnoli's checksum, which closes an index of a shard."""
