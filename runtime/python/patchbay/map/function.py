"""The user's function: its file, its digest, what is recorded beside the results."""
import importlib.util
import inspect
import os
import platform
import sys

from .. import errors
from . import results


class Function:
    """load(weights, device) -> model, predict(model, batch) -> dict, finish(model, rows) -> dict; load and finish may be None."""

    def __init__(self, predict, load, finish, path):
        self.predict, self.load, self.finish, self.path = predict, load, finish, path
        self.digest = results.file_digest(path, "read function")

    @classmethod
    def of_file(cls, path):
        """A Python file's; the bytes that run are those that were hashed."""
        digest = results.file_digest(path, "read function")
        with open(path, "rb") as file:
            source = file.read()
        spec = importlib.util.spec_from_file_location("patchbay_function", os.path.abspath(path))
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))  # modules beside it
        try:
            exec(compile(source, path, "exec"), module.__dict__)
        except Exception as error:
            raise errors.ConfigError(f"read function: {path}: {type(error).__name__}: {error}") from error
        predict = getattr(module, "predict", None)
        if not callable(predict):
            raise errors.ConfigError(f"read function: {path}: it defines no function predict(model, batch)")
        found = cls(predict, getattr(module, "load", None), getattr(module, "finish", None), path)
        if found.digest != digest:
            raise errors.ConfigError(f"read function: {path}: it changed while it was read")
        return found

    @classmethod
    def of_objects(cls, predict, load, finish):
        """Functions of a program; the file that defines `predict` is the one that names the results."""
        if not callable(predict):
            raise errors.ConfigError(f"map: predict {predict!r}: expected a function predict(model, batch)")
        try:
            path = inspect.getsourcefile(inspect.unwrap(predict))
        except TypeError:
            path = None
        if path is None or not os.path.exists(path):
            raise errors.ConfigError("map: predict: it comes from no file, and its bytes name the results: define it in a file")
        return cls(predict, load, finish, path)


def versions():
    """Versions that results are recorded with."""
    import numpy

    import patchbay
    torch = sys.modules.get("torch")
    found = {"python": platform.python_version(), "patchbay": patchbay.__version__, "numpy": numpy.__version__}
    if torch is not None:
        found["torch"] = str(torch.__version__)
    return found


def device_name(device):
    """The device of this process, by its name where torch knows it."""
    torch = sys.modules.get("torch")
    if device and str(device) != "cpu" and torch is not None and torch.cuda.is_available():
        return f"{device}: {torch.cuda.get_device_name(device)}"
    return str(device or "cpu")
