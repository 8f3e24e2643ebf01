"""The outputs that a config declares: `outputs: {NAME: {kind: ...}}`, checked before the first patch."""
import dataclasses
import importlib.util
import re

from .. import errors

_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")
MOST_CLASSES = 254  # 255 is a pixel that no patch covered


@dataclasses.dataclass(frozen=True)
class Output:
    """One output. Keys that its kind does not have are at their defaults.

    classes: names of the channels. columns: of a table, in their order. blend: gaussian, uniform or center. dtype: of the stored
    values. class_map: None, "argmax" or one threshold a class. parquet: of a table, whether Parquet is written beside CSV.
    file: of an embedding, "hdf5" or "zarr". grid: of a map, "patch", or "stored" for the voxels of the store.
    """
    name: str
    kind: str
    classes: tuple = ()
    columns: tuple = ()
    blend: str = "gaussian"
    dtype: str = ""
    class_map: object = None
    parquet: bool = False
    file: str = ""
    grid: str = ""


def _names(value):
    if not isinstance(value, (list, tuple)) or not value or not all(isinstance(each, str) and each for each in value):
        raise ValueError("expected a list of names")
    if len(set(value)) != len(value):
        raise ValueError("a name is there twice")
    return tuple(value)


def _classes(value):
    names = _names(value)
    if len(names) > MOST_CLASSES:
        raise ValueError(f"{len(names)} classes, more than {MOST_CLASSES}")
    return names


def _one_of(*choices):
    def parse(value):
        if value not in choices:
            raise ValueError(f"expected {' or '.join(map(repr, choices))}")
        return value
    return parse


def _class_map(value):
    if value == "argmax":
        return value
    if isinstance(value, (list, tuple)) and value and all(
            isinstance(each, (int, float)) and not isinstance(each, bool) and 0 < each <= 1 for each in value):
        return tuple(map(float, value))
    raise ValueError("expected 'argmax', or a list of one threshold a class, above 0 and up to 1")


# kind -> key -> (its check, whether it is required)
_KEYS = {
    "map": {"classes": (_classes, True), "blend": (_one_of("gaussian", "uniform", "center"), False),
            "dtype": (_one_of("uint8", "float16"), False), "class_map": (_class_map, False),
            "grid": (_one_of("patch", "stored"), False)},
    "score": {"classes": (_classes, True)},
    "embedding": {"dtype": (_one_of("float32", "float16"), False), "file": (_one_of("hdf5", "zarr"), False)},
    "table": {"columns": (_names, True), "parquet": (_one_of(True, False), False)},
    "image": {"columns": (_names, False)},
}
_DEFAULTS = {"map": {"dtype": "uint8", "grid": "patch"}, "embedding": {"dtype": "float32", "file": "hdf5"}}


def _parse_one(name, value):
    where = f"outputs.{name}"
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise errors.ConfigError(f"read config: outputs: {name!r}: expected a name of letters, digits and underscores")
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind not in _KEYS:
        raise errors.ConfigError(f"read config: {where}.kind: {kind!r}: expected one of {', '.join(_KEYS)}")
    keys, found = _KEYS[kind], dict(_DEFAULTS.get(kind, {}))
    for key, text in value.items():
        if key == "kind":
            continue
        if key not in keys:
            raise errors.ConfigError(f"read config: {where}.{key}: a {kind} has no such key: expected {', '.join(keys)}")
        try:
            found[key] = keys[key][0](text)
        except ValueError as error:
            raise errors.ConfigError(f"read config: {where}.{key}: {text!r}: {error}") from error
    for key, (_, required) in keys.items():
        if required and key not in found:
            raise errors.ConfigError(f"read config: {where}.{key}: a {kind} needs it")
    output = Output(name, kind, **found)
    if isinstance(output.class_map, tuple) and len(output.class_map) != len(output.classes):
        raise errors.ConfigError(f"read config: {where}.class_map: {len(output.class_map)} thresholds for "
                                 f"{len(output.classes)} classes")
    return output


def parse(outputs):
    """The Outputs of a config, in its order. ConfigError for a wrong key, and for a package that is not there."""
    if not isinstance(outputs, dict) or not outputs:
        raise errors.ConfigError("read config: outputs: it declares none: expected outputs: {NAME: {kind: map, classes: [...]}}")
    found = [_parse_one(name, value) for name, value in outputs.items()]
    for output in found:
        package = "pyarrow" if output.parquet else "h5py" if output.file == "hdf5" else None
        if package and importlib.util.find_spec(package) is None:
            raise errors.ConfigError(f"read config: outputs.{output.name}: it needs the package {package} in this Python: "
                                     f"pip install {package}")
    return found
