"""Rank and world size of this process, and the name that the ranks of one launch share."""
import operator
import os
import sys

from . import errors

_RENDEZVOUS = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")


def _distributed():
    """torch.distributed where the program has initialised it; never imports torch."""
    module = sys.modules.get("torch.distributed")
    if module is not None and module.is_available() and module.is_initialized():
        return module.get_rank(), module.get_world_size()
    return None


def _environment():
    given = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if None in given:
        return None
    try:
        return int(given[0]), int(given[1])
    except ValueError as error:
        raise errors.ConfigError(f"find rank: RANK={given[0]!r} WORLD_SIZE={given[1]!r}: whole numbers are "
                                 "expected") from error


def find(rank, world_size):
    """(rank, world_size): the arguments, or torch.distributed, or RANK and WORLD_SIZE, or (0, 1)."""
    if (rank is None) != (world_size is None):
        raise errors.ConfigError("find rank: rank and world_size go together: give both, or neither")
    found = (rank, world_size) if rank is not None else _distributed() or _environment() or (0, 1)
    try:
        rank, world_size = map(operator.index, found)
    except TypeError as error:
        raise errors.ConfigError(f"find rank: rank {found[0]!r} of {found[1]!r} ranks: whole numbers are expected") from error
    if not 0 <= rank < world_size:
        raise errors.ConfigError(f"find rank: rank {rank} of {world_size} ranks: ranks count from 0 to world_size - 1")
    return rank, world_size


def rendezvous(world_size):
    """The name that the ranks of one launch share: torchrun's three variables, or for several ranks the address and port at
    which they meet (a launch by Lightning or torch.multiprocessing has no more). "" where these are not set."""
    values = [os.environ.get(name, "") for name in _RENDEZVOUS]
    missing = "" in values[1:] or (values[0] == "" and world_size == 1)
    return "" if missing else "".join(f"{len(value)}:{value};" for value in values)


def this_process():
    """A text that no other process of this machine has."""
    with open("/proc/self/stat", encoding="utf-8") as file:
        started = file.read().rpartition(")")[2].split()[19]
    return f"process:{os.getpid()}:{started}"
