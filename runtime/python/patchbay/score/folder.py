"""A folder of results as it is read: nothing in it is trusted, and no link is followed."""
import dataclasses
import json
import os
import stat

from .. import errors
from ..map import declared, results

KINDS = ("map", "score", "image")  # outputs that can be scored
_MOST_BYTES = 16 << 20  # a JSON document's


def damaged(path, cause):
    return errors.DataError(f"read results: {path}: {cause}")


@dataclasses.dataclass(frozen=True)
class Image:
    """An image that was mapped. folder: its name below the results. columns: cells of its row of the cohort."""
    folder: str
    path: str
    digest: object
    columns: dict

    def cell(self, column):
        return self.columns.get(column) or ""


class Folder:
    def __init__(self, path):
        self.path = os.path.realpath(path)
        found = self.json(results.FILE)
        try:
            self.name, self.config, self._outputs = found["name"], found["config"], dict(found["outputs"])
            self.size = tuple(map(int, self.config["patch"]["size"]))
            if len(self.size) not in (2, 3) or min(self.size) < 1:
                raise ValueError(f"patch.size {self.size}")
            self.volume = len(self.size) == 3
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(f"{self.path}/{results.FILE}", f"{error}: it is not of this version's map: run map again") from error
        self.images = [self._image(name) for name in results.Results.done(self)]

    def path_of(self, *names):
        """A path below the folder; DataError where a link stands on its way."""
        path = os.path.join(self.path, *names)
        if os.path.realpath(path) != path:
            raise damaged(path, "it is a link: results have none")
        return path

    def open(self, *names):
        """A file to read; None where there is none."""
        path = self.path_of(*names)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise damaged(path, error.strerror) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise damaged(path, "it is no file")
        return open(descriptor, "rb")

    def text(self, *names):
        """A small file's bytes; NotFoundError."""
        file, path = self.open(*names), os.path.join(self.path, *names)
        if file is None:
            raise errors.NotFoundError(f"read results: {path}: there is no such file")
        with file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise damaged(path, f"more than {_MOST_BYTES} bytes")
        return content

    def json(self, *names):
        """A JSON object."""
        try:
            found = json.loads(self.text(*names))
            json.dumps(found, allow_nan=False, ensure_ascii=False).encode()  # infinities and half characters are refused here
        except (ValueError, RecursionError) as error:
            raise damaged(os.path.join(self.path, *names), f"no JSON: {error}") from error
        if not isinstance(found, dict):
            raise damaged(os.path.join(self.path, *names), "expected a JSON object")
        return found

    def outputs(self):
        """The declared outputs that can be scored."""
        kept = {name: each for name, each in self._outputs.items() if isinstance(each, dict) and each.get("kind") in KINDS}
        return declared.parse(kept) if kept else []

    def _image(self, name):
        found = self.json(name, "image.json")
        path, columns, digest = (found.get(key) for key in ("path", "columns", "pixel_digest"))
        is_text = isinstance(path, str) and isinstance(digest, (str, type(None)))
        if not is_text or not isinstance(columns, dict) or not all(isinstance(cell, str) for cell in columns.values()):
            raise damaged(f"{self.path}/{name}/image.json", "it has no path and columns")
        return Image(name, path, digest, columns)
