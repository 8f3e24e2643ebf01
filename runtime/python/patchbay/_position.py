"""The file of attach(position=...), from which the next attach goes on. The same form as that of `patchbay stream --position`
(runtime/cli/stream/position_file.h)."""
import json
import os
import stat

from . import _state, errors

_MOST_BYTES = 4096


def read(path):
    """The token in the file; None where there is no file yet."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        if os.path.isdir(os.path.dirname(path)):
            return None
        raise errors.NotFoundError(f"read position: {path}: its folder does not exist: make it first") from None
    except OSError as error:
        cause = "a link: name the file itself" if os.path.islink(path) else error.strerror
        raise errors.StateError(f"read position: {path}: {cause}") from error
    with open(descriptor, "rb") as file:
        _check_own(path, os.fstat(descriptor))
        text = file.read(_MOST_BYTES)
    try:
        state = json.loads(text)
        return _state.unpack({key: state[key] for key in ("version", "token")})
    except _state.OtherVersion as error:
        raise errors.StateError(f"read position: {path}: {error.cause}") from error
    except (ValueError, KeyError, TypeError, errors.StateError) as error:
        raise errors.StateError(f"read position: {path}: broken, or not the position of a stream: remove it to begin anew") from error


def _check_own(path, file):
    cause = None
    if not stat.S_ISREG(file.st_mode):
        cause = "not a file"
    elif file.st_uid != os.geteuid():
        cause = "it belongs to another user"
    elif file.st_mode & 0o077:
        cause = "others may read or write it: make it your own with `chmod 600`"
    if cause:
        raise errors.StateError(f"read position: {path}: {cause}")


def write(path, token_text):
    """Durable and atomic, mode 0600."""
    partial = f"{path}.{os.getpid()}.partial"
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, json.dumps(_state.pack(token_text)).encode() + b"\n")
            os.fsync(descriptor)
            os.replace(partial, path)
        except BaseException:
            os.unlink(partial)
            raise
        finally:
            os.close(descriptor)
    except OSError as error:
        raise errors.StateError(f"write position: {path}: {error.strerror}") from error
