"""Arrays that the user's function returned, as NumPy's, checked: errors name the output, the image and the patch."""
import numpy

from .. import errors


class ReturnedError(errors.PatchbayError, ValueError):
    """The function returned something else than the config declares."""


def array_of(value):
    """A NumPy array of anything: NumPy, tensors of torch on any device, DLPack in host memory, nested lists. bfloat16 becomes float32."""
    if isinstance(value, numpy.ndarray):
        return value
    if hasattr(value, "detach"):  # a tensor of torch; it may be on a device, need its gradient, or have no NumPy type
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
        return value.numpy()
    if hasattr(value, "__dlpack__") and value.__dlpack_device__()[0] == 1:
        return numpy.from_dlpack(value)
    return numpy.asarray(value)


class Check:
    """Checks of one output, for every batch of a consumer: its rows, its shape as on the batch before, its numbers."""

    def __init__(self, output):
        self.output, self._shape = output, None

    def fail(self, cause, place=None):
        patch = "" if place is None else f", patch {place}"
        raise ReturnedError(f"check output: {self.output.name}{patch}: {cause}")

    def numbers(self, value, rows, axes):
        """The array of a batch, float32 or as it is; `rows` patches, `axes` axes for one patch."""
        try:
            array = array_of(value)
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            self.fail(f"not an array: {error}")
        if array.dtype.kind not in "fiub":
            self.fail(f"an array of {array.dtype}: numbers are expected")
        if array.ndim not in {each + 1 for each in axes}:
            self.fail(f"shape {array.shape}: expected (patches, ...) with {' or '.join(map(str, axes))} more axes")
        if array.shape[0] != rows:
            self.fail(f"{array.shape[0]} rows for {rows} patches")
        if self._shape is not None and array.shape[1:] != self._shape:
            self.fail(f"{array.shape[1:]} for a patch: {self._shape} on the batch before")
        self._shape = array.shape[1:]
        return numpy.ascontiguousarray(array)

    def finite(self, array, ordinals):
        """Refuses NaN and infinity, naming the first patch."""
        if array.dtype.kind != "f":
            return
        bad = ~numpy.isfinite(array).reshape(array.shape[0], -1).all(axis=1)
        if bad.any():
            row = int(numpy.argmax(bad))
            values = array[row].reshape(-1)
            self.fail(f"{values[~numpy.isfinite(values)][0]}: finite numbers are expected", ordinals[row])


def rows_of(outputs, returned):
    """The function's values in the order of `outputs`; it returns a dict with one value for each."""
    names = [output.name for output in outputs]
    if not hasattr(returned, "keys"):
        raise ReturnedError(f"check outputs: the function returned {type(returned).__name__}: expected a dict of "
                            f"{', '.join(names)}")
    extra, missing = sorted(set(returned.keys()) - set(names)), [name for name in names if name not in returned.keys()]
    if extra or missing:
        what = f"{', '.join(missing)} missing" if missing else f"{', '.join(map(str, extra))} not declared in the config"
        raise ReturnedError(f"check outputs: the function returned {', '.join(map(str, returned.keys())) or 'nothing'}: {what}")
    return [returned[name] for name in names]
