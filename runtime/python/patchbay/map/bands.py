"""Bands of an image with many patches: each is made by one consumer, and lies aside until the image is joined from all of them.

    .bands/000012-SLIDE/00003/   a band, by rename: places.npz, thumbnail.npz and, of each output, its rows or its tiles
    .bands/000012-SLIDE/lock     held by the consumer that joins them

A map's tile that no other band reaches is finished in its band. The sums of others lie aside, and the joining adds them up. It
gives finished tiles to the same pyramid in the order that one consumer would have given them, so that no byte differs.
"""
import collections
import concurrent.futures
import contextlib
import dataclasses
import fcntl
import functools
import gzip
import io
import json
import os
import re
import shutil
import zipfile
import zlib

import numpy

from .. import errors
from . import writers
from .blend import UNCOVERED, Blend, is_done
from .pyramid import Packed, Pyramid, above, halved, levels_of, reduced
from .returned import array_of
from .scratch import Scratch

FOLDER, UNUSED, _LOCK = ".bands", "unused", "lock"
_THREADS, _WAITING = 2, 8  # threads that pack or unpack; tiles that wait for them
_DAMAGED = (ValueError, KeyError, IndexError, TypeError, EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile)


@dataclasses.dataclass
class Band(writers.Image):
    """A band that is made. is_first: of its image."""
    is_first: bool = False


class Bands:
    """The bands of one image that are done."""

    def __init__(self, results, folder, count):
        """folder: the image's name in `results`. count: how many bands the image has."""
        self.name, self._count = os.path.join(FOLDER, folder), count
        self._path = os.path.join(results.path, self.name)

    def name_of(self, band):
        """Where a band appears, below the folder of results."""
        os.makedirs(self._path, mode=0o700, exist_ok=True)
        return os.path.join(self.name, f"{band:05d}")

    def done(self):
        """Numbers of the bands that are there."""
        try:
            return sorted(int(name) for name in os.listdir(self._path) if re.fullmatch(r"\d{5,}", name))
        except FileNotFoundError:
            return []

    def are_complete(self):
        return len(self.done()) == self._count

    def parts(self):
        """A Part of each band, in order."""
        return [Part(os.path.join(self._path, f"{band:05d}")) for band in range(self._count)]

    @contextlib.contextmanager
    def locked(self):
        """One consumer at a time; the lock of a process ends with it."""
        lock = None
        while lock is None:
            os.makedirs(self._path, mode=0o700, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # removed by who joined them
                lock = os.open(os.path.join(self._path, _LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def remove(self):
        shutil.rmtree(self._path, ignore_errors=True)
        with contextlib.suppress(OSError):  # there are others
            os.rmdir(os.path.dirname(self._path))


def images_of(results):
    """(number, name) of the images of which bands are there."""
    try:
        names = sorted(os.listdir(os.path.join(results.path, FOLDER)))
    except FileNotFoundError:
        names = []
    return [(int(name.split("-")[0]), name) for name in names if re.match(r"\d{6,}-", name)]


class _BandBlend(Blend):
    """The sums of one band. Tiles that an earlier band's patches reach go to `sink.put_sums`, and so does what is left at the end."""

    def __init__(self, is_first, *arguments):
        super().__init__(*arguments)
        self._axis, self._reached, self._is_first, self.first = int(self._flat), 0, is_first, None

    def _add_patch(self, number, origin):
        if self.first is None:
            self.first = origin
            if not self._is_first:
                begins = all(at <= 0 for at in origin[self._axis + 1:])  # with a row: earlier patches are a step above
                self._reached = origin[self._axis] + self.size[self._axis] - (self._step[self._axis] if begins else 0)
        elif origin[:2] != self._last[:2]:
            self._sink.begin_row(origin)
        super()._add_patch(number, origin)

    def _finish(self, tiles):
        for tile in sorted(tiles):
            if tile[self._axis] * self.tile[self._axis] < self._reached:
                self._put_sums(tile, "sums")
            else:
                super()._finish([tile])

    def _put_sums(self, tile, kind):
        sums = self._taken(tile)
        self._sink.put_sums(kind, tile, sums)
        sums.values[...] = 0
        self._free.append(sums.values)

    def end(self):
        for tile in sorted(self._sums):
            self._put_sums(tile, "left")
        self._sink.end({"size": self.size, "first": self.first, "last": self._last})


class _TileFile(Pyramid):
    """A sink of Blend: `NAME.tiles`, encoded tiles and sums one after another, and `NAME.tiles.json.gz` with what happened in order:
    [kind, place, facts]. Rows begin at a place and are passed. Tiles of a level, (level, z, y, x), are finished: the sizes of the
    chunks of each array, a checksum and, where the band has not all parts of a tile of the next level, the place of this one in the
    file and its checksum. Sums are of tiles that are finished there, or left: their patches' places and a checksum."""

    def __init__(self, band, output, size, tile):
        super().__init__(os.path.join(band.folder, UNUSED), output, band.place.extent_in(size), tile, band.place.scale(size))
        if output.grid == "stored":
            del self._levels[1:]  # others are made of the store's voxels
        self.shown = None
        self._path = os.path.join(band.folder, output.name + ".tiles")
        self._file, self._events, self._given = open(self._path, "wb"), [], {}

    def begin_row(self, origin):
        self._add("row", origin)

    def pass_to(self, origin, _):
        self._add("pass", origin)

    def _put(self, number, tile, values, classes):
        level = self._levels[number]
        arrays = [(level.values, values)] + ([] if classes is None else [(level.classes, classes)])
        event = self._add("tile", (number, *tile), self._pool.submit(lambda: [array.encoded(each) for array, each in arrays]))
        if number + 1 < len(self._levels):
            part = reduced(values)
            self._given.setdefault((number + 1, above(tile)), []).append((event, part))
            self._raise_to(number + 1, tile, part)

    def _finish(self, number, tile):
        del self._given[number, tile]
        super()._finish(number, tile)

    def put_sums(self, kind, tile, sums):
        content = sums.values.tobytes()
        self._add(kind, tile, content, [sums.places, zlib.crc32(content)])

    def _add(self, kind, place, content=b"", facts=None):
        event = [kind, place, facts]
        self._events.append(event)
        self._queue.append((event, content))
        while len(self._queue) > _WAITING:
            self._write_first()
        return event

    def _write_first(self):
        event, content = self._queue.popleft()
        if not isinstance(content, bytes):
            packed = content.result()
            content = b"".join(chunk for array in packed for _, chunk in array)
            event[2] = [[[[*front, len(chunk)] for front, chunk in array] for array in packed], zlib.crc32(content), None]
        self._file.write(content)

    def end(self, facts):
        while self._queue:
            self._write_first()
        self._pool.shutdown()
        for event, part in (each for parts in self._given.values() for each in parts):
            content = part.tobytes()
            event[2][2] = [self._file.tell(), len(content), zlib.crc32(content)]
            self._file.write(content)
        self._file.close()
        with gzip.open(self._path + ".json.gz", "wt", 1, encoding="utf-8") as file:
            file.write(json.dumps({**facts, "events": self._events}))  # at once: dump writes number by number

    def abandon(self):
        super().abandon()
        self._file.close()


class _BandMap(writers.MapWriter):
    def _begin(self, size):
        tile = writers.VOLUME_TILE if self.image.grid.volume else writers.FLAT_TILE
        self._scratch = Scratch(self.image.folder)
        self._sink = _TileFile(self.image, self.output, size, tile)
        self._blend = _BandBlend(self.image.is_first, self.output, self.image.place, size, self._sink, tile, self._scratch)

    def close(self):
        self._blend.end()
        self._scratch.close()


def _packed(value):
    """An array or scalar of NumPy as JSON, with its type."""
    if not isinstance(value, (numpy.ndarray, numpy.generic)):
        raise TypeError(f"{type(value).__name__}: numbers and texts are expected")
    if value.dtype.hasobject:
        return value.tolist()
    return {"dtype": value.dtype.str, "shape": value.shape, "hex": value.tobytes().hex()}


def _unpacked(found):
    if set(found) != {"dtype", "shape", "hex"}:
        return found
    return numpy.frombuffer(bytes.fromhex(found["hex"]), found["dtype"]).reshape(found["shape"])[()]


class _Rows:
    """An output of rows: a writer checks them, whose files are dropped, and they are kept as they came: `NAME.npz`, of a table a
    line of JSON for every batch in `NAME.rows.gz`."""

    def __init__(self, output, band, check):
        self.output, self._band, self._check, self._kept = output, band, check, []
        self._writer = writers.WRITERS[output.kind](output, dataclasses.replace(band, folder=os.path.join(band.folder, UNUSED)), check)

    def add(self, places, value):
        self._writer.image.place = self._band.place
        self._writer.add(places, value)
        if self.output.kind != "table":
            self._kept.append(numpy.array(array_of(value)))
            return
        columns = {name: array_of(each) if hasattr(each, "detach") or hasattr(each, "__dlpack__") else each for name, each in value.items()}
        try:
            self._kept.append(json.dumps([len(places), columns], default=_packed))
        except TypeError as error:
            self._check.fail(f"a column has a {error}")

    def close(self):
        self._writer.abandon()
        path = os.path.join(self._band.folder, self.output.name)
        if self.output.kind == "table":
            with gzip.open(path + ".rows.gz", "wt", 1, encoding="utf-8") as file:
                file.writelines(line + "\n" for line in self._kept)
        else:
            numpy.savez(path + ".npz", rows=numpy.concatenate(self._kept))

    def abandon(self):
        self._writer.abandon()


class Writers:
    """The writers of a Band, and what lies beside their files."""

    def __init__(self, outputs, band, checks):
        os.mkdir(os.path.join(band.folder, UNUSED))
        self._band, self._places, self.made = band, [], []
        for output, check in zip(outputs, checks):
            self.made.append((_BandMap if output.kind == "map" else _Rows)(output, band, check))

    def add(self, places):
        self._places.append(places)

    def close(self):
        for writer in self.made:
            writer.close()
        whole = [numpy.concatenate(each) for each in zip(*((one.ordinals, one.levels, one.boxes) for one in self._places))]
        numpy.savez(os.path.join(self._band.folder, "places.npz"), **dict(zip(("ordinals", "levels", "boxes"), whole)))
        if self._band.thumbnail is not None:
            numpy.savez(os.path.join(self._band.folder, "thumbnail.npz"), **self._band.thumbnail.shown())
        shutil.rmtree(os.path.join(self._band.folder, UNUSED))


class Part:
    """A band that is read."""

    def __init__(self, path):
        self._path = self._now = path

    @contextlib.contextmanager
    def reading(self):
        """A damaged band is removed, and DataError."""
        try:
            yield
        except (*_DAMAGED, FileNotFoundError) as error:
            if isinstance(error, errors.PatchbayError):
                raise
            shutil.rmtree(self._path, ignore_errors=True)
            raise errors.DataError(f"join bands: {self._now}: {type(error).__name__}: {error}: the band is removed: run it again") from error

    def _file(self, name):
        self._now = os.path.join(self._path, name)
        return self._now

    @functools.cached_property
    def places(self):
        with numpy.load(self._file("places.npz")) as found:
            return writers.Places(found["ordinals"], found["levels"], found["boxes"])

    def lay_on(self, thumbnail):
        with numpy.load(self._file("thumbnail.npz")) as found:
            thumbnail.lay(found)

    def rows_of(self, output):
        """(places, value) as the function returned them."""
        if output.kind != "table":
            with numpy.load(self._file(output.name + ".npz")) as found:
                yield self.places, found["rows"]
            return
        first, all_of = 0, (self.places.ordinals, self.places.levels, self.places.boxes)
        with gzip.open(self._file(output.name + ".rows.gz"), "rt", encoding="utf-8") as file:
            for line in file:
                count, columns = json.loads(line, object_hook=_unpacked)
                yield writers.Places(*(each[first:first + count] for each in all_of)), columns
                first += count

    @contextlib.contextmanager
    def tiles_of(self, output):
        """The facts of _TileFile, and its contents."""
        with gzip.open(self._file(output.name + ".tiles.json.gz"), "rt", encoding="utf-8") as file:
            facts = json.load(file)
        with open(self._file(output.name + ".tiles"), "rb") as file:
            yield facts, file


class _JoinedBlend(Blend):
    """The sums of tiles that several bands reach."""

    def join(self, tile, sums, places):
        mine = self._sums_of(tile)
        mine.values += sums
        mine.places += [tuple(map(tuple, place)) for place in places]

    def reached(self, origin, row):
        """Tiles that are done as a row of patches begins at `origin`, in order."""
        return sorted(tile for tile in self._sums if is_done(self._end(tile), origin, row, self._flat))

    def finish(self, tile):
        self._finish([tile])

    def row(self):
        """The grid's step to the next row, as the sink has it."""
        return (self._step[0], 0, 0)


class _JoinedMap(writers.MapWriter):
    """A map made of bands: `join` for each of them in order, then `close`."""
    blends = _JoinedBlend

    def open(self):
        super().open()
        self._last = None

    def join(self, part):
        with part.tiles_of(self.output) as (facts, file), concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
            if self._blend is None:
                self._begin(tuple(facts["size"]))
            if self._last is not None and facts["first"][:2] != self._last[:2]:
                self._pass(facts["first"], self._reached(facts["first"]))
            self._last, done = facts["last"], collections.deque()
            for kind, place, content in self._read(facts["events"], file, pool):
                if kind == "row":
                    done = self._reached(place)
                elif kind == "pass":
                    self._pass(place, done)
                else:
                    self._play(kind, tuple(place), content, done)

    def _read(self, events, file, pool):
        """(kind, place, content) of all events, unpacked ahead: what the sink's put takes for a tile, or sums and places."""
        waiting = collections.deque()
        for kind, place, facts in events:
            content = None
            if kind == "tile":
                sizes, checksum, part = facts
                packed = file.read(sum(size for array in sizes for *_, size in array))
                if part is not None:
                    part = os.pread(file.fileno(), part[1], part[0]), part[2]
                content = pool.submit(self._unpacked, place, (packed, checksum), sizes, part)
            elif kind in ("sums", "left"):
                shape = (len(self.output.classes), *self._blend.tile)
                content = pool.submit(_sums, file.read(4 * int(numpy.prod(shape))), shape, *facts)
            waiting.append((kind, place, content))
            if len(waiting) > _WAITING:
                yield _known(*waiting.popleft())
        for event in waiting:
            yield _known(*event)

    def _unpacked(self, place, packed, sizes, part):
        """packed, part: (content, checksum)."""
        (number, *tile), count = place, len(self.output.classes)
        inside = [min(n, whole - at * n) for at, n, whole in zip(tile, self._blend.tile, levels_of(self._blend.extent)[number])]
        rest, values, classes = io.BytesIO(_checked("a tile", *packed)), None, None
        arrays = [[(tuple(front), rest.read(size)) for *front, size in array] for array in sizes]
        if self._sink.needs_values(number):
            cut = tuple(map(slice, inside))
            values = self._decoded(arrays[0], (count,), self.output.dtype)[(slice(None), *cut)]
            classes = self._decoded(arrays[1], (), "uint8")[cut] if len(arrays) > 1 else None
        if part is not None:
            part = numpy.frombuffer(_checked("a part", *part), self.output.dtype).reshape(count, *halved(inside))
        return tuple(tile), values, classes, Packed(number, arrays, part)

    def _reached(self, origin):
        """Tiles of earlier bands that are done as a row of patches begins at `origin`."""
        return collections.deque(self._blend.reached(origin, self._blend.row()))

    def _pass(self, origin, done):
        while done:
            self._blend.finish(done.popleft())
        self._sink.pass_to(origin, self._blend.row())

    def _play(self, kind, tile, content, done):
        """A tile of the band, of level 0 after those of `done` that come before it."""
        level, tile = sum(tile[:-3]), tile[-3:]
        while level == 0 and done and done[0] <= tile:
            first = done.popleft()
            if first != tile:
                self._blend.finish(first)
        if kind == "tile":
            self._sink.put(*content)
            return
        self._blend.join(tile, *content)
        if kind == "sums":
            self._blend.finish(tile)

    def _decoded(self, chunks, front, dtype):
        whole = numpy.full((*front, *self._blend.tile), numpy.nan if dtype == "float16" else UNCOVERED, dtype)
        for place, content in chunks:
            plain = zlib.decompress(content, wbits=zlib.MAX_WBITS | 16)
            whole[place] = numpy.frombuffer(plain, whole.dtype.newbyteorder("<")).reshape(self._blend.tile)
        return whole


def _checked(name, content, checksum):
    if zlib.crc32(content) != checksum:
        raise ValueError(f"{name}: another checksum")
    return content


def _sums(content, shape, places, checksum):
    """Sums of a tile, and the places of their patches."""
    return numpy.frombuffer(_checked("sums", content, checksum), numpy.uint32).reshape(shape), places


def _known(kind, place, content):
    return kind, place, None if content is None else content.result()


def join(image, outputs, checks, parts, made):
    """Adds bands, in order, to an image's writers, which are put into `made`."""
    for output, check in zip(outputs, checks):
        made.append((_JoinedMap if output.kind == "map" else writers.WRITERS[output.kind])(output, image, check))
    for part in parts:
        with part.reading():
            if image.thumbnail is not None:
                part.lay_on(image.thumbnail)
            for writer in made:
                if writer.output.kind == "map":
                    writer.join(part)
                else:
                    for places, value in part.rows_of(writer.output):
                        writer.add(places, value)
