"""Every exception that Patchbay raises. Their messages read `doing: subject: cause` and say what to do next.

All derive from PatchbayError, and from the built-in class that fits, so that `except ValueError` works too.
"""

import json


class PatchbayError(Exception):
    """Base class of all errors that Patchbay raises.

    `subject`: the thing that it is about, {"kind": "image", "index": 2, "part": its path}, or None.
    """

    subject = None
    code = None  # absl::StatusCode, where a program of Patchbay gave it


class ConfigError(PatchbayError, ValueError):
    """A run config or an argument is wrong: a key, a value, a rank out of range, a split that is not there."""


class StateError(ConfigError):
    """A state that load_state_dict cannot use: of another run, forged, truncated, or of another version."""


class NotFoundError(PatchbayError, FileNotFoundError):
    """A file, store, slide or job that is not there."""


class AccessError(PatchbayError, PermissionError):
    """The key or the user may not do this."""


class DataError(PatchbayError, OSError):
    """An image is damaged or has changed. The message names it."""


class ConflictError(PatchbayError, RuntimeError):
    """Another living trainer has this rank, or a run of this name is another one."""


class ClusterError(PatchbayError, ConnectionError):
    """No cluster, or none any more: the scheduler, the client process or its machine is gone."""


class DeviceError(PatchbayError, RuntimeError):
    """A device that is not there, or that this build or cluster cannot deliver to."""


class ProcessorError(PatchbayError, RuntimeError):
    """The processor lacks instructions that the programs need. The message names them."""


class ResourceError(PatchbayError, MemoryError):
    """Too little memory or disk for what was asked for."""


class RingExhausted(ResourceError):
    """Every slot of the ring is held. The message names the batches and arrays that hold them.

    Let go of what is not needed, clone what is kept, or raise `batch.prefetch`. The stream goes on after it.
    """


class StreamClosed(PatchbayError, RuntimeError):
    """The stream was closed."""


class ForkError(PatchbayError, RuntimeError):
    """A stream was used in a child made by fork(). Attach after the fork."""


class WaitTimeout(PatchbayError, TimeoutError):
    """A wait reached its deadline."""


class InternalError(PatchbayError, RuntimeError):
    """A bug in Patchbay. Please report it with the message."""


# absl::StatusCode; negative numbers are the extension's own errors.
_CLASSES = {
    -1: RingExhausted, -2: StreamClosed, -3: ForkError, -4: WaitTimeout,
    1: StreamClosed, 3: ConfigError, 4: WaitTimeout, 5: NotFoundError, 6: ConflictError, 7: AccessError,
    8: ResourceError, 9: ConflictError, 10: ConflictError, 12: DeviceError, 13: InternalError, 14: ClusterError, 15: DataError, 16: AccessError,
}


def of(code, config, text, subject=None):
    """The exception for a status: its code, whether the cure is another config, its text and its subject."""
    is_state = "resume: " in text
    error = (StateError if is_state else ConfigError if config else _CLASSES.get(code, InternalError))(text)
    error.subject, error.code = subject, code
    return error


def of_answer(answer):
    """The exception for what the client process says of an error: "code", "config", "text", "subject"."""
    return of(answer.get("code", 13), answer.get("config", False), answer.get("text", "no reason given"), answer.get("subject"))


def of_json(text):
    """The same, as JSON."""
    return of_answer(json.loads(text))
