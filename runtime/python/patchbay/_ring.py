"""The ring of a run that the client process opened."""
import os

from . import errors
from ._extension import open_ring


def open_run(client, request, ordinal):
    """The run's description and its mapped ring; `ordinal`: the device with its slots, None = host memory."""
    description, control = client.ask(**dict(request, op="open"))
    ring = None
    try:
        _, ring = client.more()
        if "device" in description:
            description["device"]["handle"] = bytes.fromhex(description["device"]["handle"])
        description["arrays"] = [(a["name"], a["dtype"], a["shape"], a["offset"], a["on_device"]) for a in description["arrays"]]
        return description, open_ring(control, ring, client.fileno(), description, ordinal or 0)
    except (RuntimeError, ValueError) as error:
        if isinstance(error, errors.PatchbayError):
            raise
        raise errors.InternalError(f"attach: {error}") from error
    finally:
        for descriptor in (control, ring):
            if descriptor is not None:
                os.close(descriptor)
