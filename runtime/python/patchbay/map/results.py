"""The folder of results: its name, one folder an image that appears complete, and what is aside until then.

    results.json       names the results: digests of weights, function, outputs and plan; versions, device
    000012-SLIDE/      an image, by rename
    failed/000012-SLIDE/   reason.txt and batch.npz of one that failed
    .bands/            bands of images that are not complete
    .staging/          images that are being made, each with a lock of the process that makes it
"""
import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile

from .. import errors

FILE, STAGING, FAILED, _LOCK = "results.json", ".staging", "failed", "lock"
_NAMING = ("plan", "outputs", "weights", "function")
_FORMAT = 1


def file_digest(path, doing):
    """SHA-256 of a file's bytes; NotFoundError."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
    except OSError as error:
        raise errors.NotFoundError(f"{doing}: {path}: {error.strerror}") from error
    return digest.hexdigest()


def name_of(identity):
    """The name of results: SHA-256 over what decides them."""
    text = json.dumps({key: identity[key] for key in _NAMING}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def json_of(path):
    """The JSON of a store's file, of at most 16 MiB; None where there is no regular file. OSError, ValueError."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return json.loads(file.read(16 << 20))


def identity_of(record):
    """The members of image.json that say which image it is: `path`, `pixel_digest` of its store (None of another file), and
    `columns`, the cells of its row in the user's table."""
    try:
        digest = json_of(os.path.join(record["path"], "zarr.json"))["attributes"]["patchbay"]["pixel_digest"]
    except (OSError, ValueError, KeyError, TypeError):
        digest = None
    columns = {key: value for key, value in record.items() if isinstance(value, str) and key != "path"}  # facts are no texts
    return {"path": record["path"], "pixel_digest": digest, "columns": columns}


def refuse_stores(path):
    """AccessError where a folder above `path`, or itself, is a Zarr store."""
    folder = os.path.realpath(path)
    while True:
        if any(os.path.exists(os.path.join(folder, name)) for name in ("zarr.json", ".zgroup", ".zarray", ".zattrs")):
            raise errors.AccessError(f"open results: {path}: it lies in the store {folder}: choose a folder outside of it")
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _write(path, content):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder):
    """Every file and folder on disk, for their owner alone."""
    for path, _, files in os.walk(folder, topdown=False):
        for name in files:
            descriptor = os.open(os.path.join(path, name), os.O_RDONLY | os.O_NOFOLLOW)
            try:
                os.fchmod(descriptor, 0o600)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        os.chmod(path, 0o700)
        sync_folder(path)


class Aside:
    """A folder in `staging` that is this process's until `remove`, or its end: what is left of it then is swept by another."""

    def __init__(self, staging):
        self._owner = os.getpid()
        while True:
            self.path = tempfile.mkdtemp(dir=staging)
            try:
                self._lock = os.open(os.path.join(self.path, _LOCK), os.O_RDWR | os.O_CREAT, 0o600)
                fcntl.flock(self._lock, fcntl.LOCK_EX)
                os.mkdir(os.path.join(self.path, "image"), 0o700)
                return
            except FileNotFoundError:  # swept before it was locked
                continue

    def remove(self):
        """Nothing in a child made by fork()."""
        if os.getpid() == self._owner:
            _remove(self.path)
            os.close(self._lock)

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        self.remove()


def _remove(aside):
    """The lock last: a process that is killed meanwhile leaves a folder that can still be swept."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(aside):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif entry.name != _LOCK:
                os.unlink(entry.path)
    shutil.rmtree(aside, ignore_errors=True)


def sweep(staging):
    """Removes what killed consumers left aside."""
    for name in os.listdir(staging):
        path = os.path.join(staging, name)
        try:
            lock = os.open(os.path.join(path, _LOCK), os.O_RDWR)
        except OSError:
            lock = None
        try:
            if lock is None:
                os.rmdir(path)  # made, and not locked yet: whoever makes it makes another
            else:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path)
        except OSError:
            pass
        finally:
            if lock is not None:
                os.close(lock)


class Staged:
    """A folder aside for one image, or a band of it. `publish` gives it its name; without it nothing of it stays."""

    def __init__(self, results, name):
        self._results, self._name, self._aside = results, name, Aside(results.staging)
        self.folder = os.path.join(self._aside.path, "image")
        self.remove = self._aside.remove

    def publish(self):
        """False where another consumer was faster: its results are the same, and these are dropped."""
        sync_tree(self.folder)
        target = os.path.join(self._results.path, self._name)
        try:
            os.rename(self.folder, target)
        except OSError as error:
            # The folder of bands is removed with the last one of them.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) and os.path.isdir(os.path.dirname(target)):
                raise
            return False
        sync_folder(os.path.dirname(target))
        shutil.rmtree(os.path.join(self._results.path, FAILED, self._name), ignore_errors=True)
        return True


class Results:
    """`path`, opened for results of one identity: {"plan", "outputs", "weights", "function"}; `facts` beside it are recorded."""

    def __init__(self, path, identity, facts, new=False):
        self.identity, self.name = identity, name_of(identity)
        self.path, self.notes = os.fspath(path), []
        refuse_stores(self.path)
        if new and self._others(self.path):
            self.path = f"{self.path.rstrip('/')}-{self.name[:12]}"
            self.notes.append(f"new results beside {path}: {self.path}")
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        self.staging = os.path.join(self.path, STAGING)
        self._check_empty_or_ours()
        os.makedirs(self.staging, mode=0o700, exist_ok=True)
        self._record(facts)
        sweep(self.staging)

    @staticmethod
    def _read(path):
        try:
            with open(os.path.join(path, FILE), encoding="utf-8") as file:
                found = json.load(file)
            if found["format"] != _FORMAT or not all(key in found for key in (*_NAMING, "name")):
                raise ValueError("another format")
            return found
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise errors.DataError(f"open results: {path}/{FILE}: {error}: choose another folder") from error

    def _others(self, path):
        found = self._read(path)
        return found is not None and found["name"] != self.name

    def _check_empty_or_ours(self):
        others = [name for name in os.listdir(self.path) if name != STAGING]
        if others and FILE not in others:
            raise errors.ConflictError(f"open results: {self.path}: it holds {sorted(others)[0]} and no {FILE}: choose an empty folder")

    def _record(self, facts):
        """Writes results.json, unless it is there; of several consumers the first one does."""
        document = {"format": _FORMAT, "name": self.name, **self.identity, **facts}
        with Aside(self.staging) as aside:
            _write(os.path.join(aside, FILE), json.dumps(document, indent=1).encode())
            try:
                os.link(os.path.join(aside, FILE), os.path.join(self.path, FILE))
                sync_folder(self.path)
            except FileExistsError:
                self._compare(self._read(self.path), facts)

    def _compare(self, found, facts):
        if found["name"] != self.name:
            differs = ", ".join(key for key in _NAMING if found[key] != self.identity[key])
            raise errors.ConflictError(f"open results: {self.path}: it holds results of another {differs}: choose another --out, or "
                                       "--new to start beside them")
        for key, value in facts["versions"].items():
            if found["versions"].get(key) != value:
                self.notes.append(f"these results were begun with {key} {found['versions'].get(key)}, this is {value}")

    @staticmethod
    def folder_of(number, record):
        """The name of an image's folder, which begins with its number."""
        text = str(record.get("slide_id") or os.path.basename(record.get("path") or "") or "image")
        return f"{number:06d}-{re.sub(r'[^A-Za-z0-9._-]+', '-', text)[:100]}"

    def has(self, folder):
        return os.path.isdir(os.path.join(self.path, folder))

    def done(self):
        """Folders of images that are complete, in order."""
        return sorted(name for name in os.listdir(self.path) if re.match(r"\d{6,}-", name))

    def stage(self, folder):
        return Staged(self, folder)

    def keep_failure(self, folder, reason, batch):
        """Keeps the reason, and the arrays of the batch by name, where the user finds them; returns where."""
        import numpy
        kept = os.path.join(self.path, FAILED, folder)
        os.makedirs(kept, mode=0o700, exist_ok=True)
        _write(os.path.join(kept, "reason.txt"), (reason + "\n").encode())
        if batch:
            with open(os.open(os.path.join(kept, "batch.npz"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                numpy.savez(file, **batch)
        return kept

    def join(self, name):
        """`NAME.csv` of all images in one, in their order; replaced as a whole."""
        with Aside(self.staging) as aside:
            path = os.path.join(aside, name)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as whole:
                for number, folder in enumerate(self.done()):
                    with open(os.path.join(self.path, folder, name + ".csv"), "rb") as one:
                        header = one.readline()
                        whole.write(header if number == 0 else b"")
                        shutil.copyfileobj(one, whole)
                whole.flush()
                os.fsync(whole.fileno())
            os.rename(path, os.path.join(self.path, name + ".csv"))
        sync_folder(self.path)
