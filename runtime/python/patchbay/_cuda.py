"""CUDA devices by the names of PyTorch, which is looked at where the program has imported it and never imported here."""
import re
import sys

from . import errors
from ._extension import device_uuid

_DEVICE = re.compile(r"cuda(?::(\d{1,4}))?")


def _torch():
    """torch.cuda where this process has made a context with it, else None."""
    module = getattr(sys.modules.get("torch"), "cuda", None)
    return module if module is not None and module.is_initialized() else None


def device_in_use():
    """The ordinal of torch's current device, or None where this process does not use CUDA."""
    cuda = _torch()
    return None if cuda is None else cuda.current_device()


def current_stream(device):
    """Handle of torch's current stream on a device; 0, the default stream, without torch. Called by the extension when a
    slot goes back, on whichever thread that is."""
    cuda = _torch()
    return 0 if cuda is None else cuda.current_stream(device).cuda_stream


def find(device):
    """(ordinal, UUID) of "cuda", "cuda:1" or a torch.device; None for the host. ConfigError, DeviceError."""
    text = str(device or "cpu")
    if text == "cpu":
        return None
    match = _DEVICE.fullmatch(text)
    if match is None:
        raise errors.ConfigError(f"attach: device {text!r}: expected 'cpu', 'cuda' or 'cuda:N'")
    ordinal = int(match[1]) if match[1] else device_in_use() or 0
    try:
        return ordinal, device_uuid(ordinal)
    except RuntimeError as error:
        raise errors.DeviceError(f"attach: {error}") from error
