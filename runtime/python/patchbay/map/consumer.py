"""One consumer: takes images or bands of them, calls the function on their batches, writes their results."""
import contextlib
import json
import os
import sys
import threading
import time
import traceback

import numpy

from .. import _units, errors
from . import TIMED_OUT, bands, geometry, heat, returned, writers
from .results import identity_of, sweep

_TELL_EVERY_S = 5


class FunctionError(errors.PatchbayError, RuntimeError):
    """The user's function raised. Its own exception is the cause."""


class Watch:
    """Ends this process when a call takes longer than `seconds`, after `late()` in a thread of its own. None = never."""

    def __init__(self, seconds, late):
        self._seconds, self._late = seconds, late

    def call(self, function, *words):
        if self._seconds is None:
            return function(*words)
        timer = threading.Timer(self._seconds, self._end)
        timer.daemon = True
        timer.start()
        try:
            return function(*words)
        finally:
            timer.cancel()

    def _end(self):
        try:
            self._late()
        finally:
            os._exit(TIMED_OUT)


class Progress:
    """Lines on stderr: images done, patches a second, the time left."""

    def __init__(self, results, images, show):
        self._results, self._images, self._show = results, images, show
        self._began, self._at_first, self.patches = time.monotonic(), len(results.done()), 0
        self._told = self._began

    def say(self, text):
        if self._show:
            print(f"map: {text}", file=sys.stderr, flush=True)

    def tell(self, failed):
        """Says how far the run is, unless it did a moment ago."""
        now = time.monotonic()
        if now - self._told < _TELL_EVERY_S:
            return
        self._told, seconds, done = now, now - self._began, len(self._results.done())
        made = done - self._at_first
        left = f", {seconds / made * (self._images - done - failed) / 60:.0f} min left" if made else ""
        broken = f", {failed} failed" if failed else ""
        self.say(f"{done} of {self._images} images{broken}, {self.patches / max(seconds, 1e-9):.0f} patches/s{left}")


def _host_arrays(batch):
    """Copies of a batch's arrays by name, less those that NumPy has no type for, or that torch would have to fetch and is not
    there."""
    found = {}
    for name in batch.keys() if batch is not None else ():
        try:
            found[name] = numpy.array(returned.array_of(batch[name]))
        except (TypeError, ValueError, RuntimeError, BufferError):
            pass
    return found


class _Done:
    """An image whose bands are all finished, in the place of a unit."""

    def __init__(self, image, first, count):
        self.image, self.number = image, first + count - 1

    def fail(self, _):
        pass


class Consumer:
    """Runs the units of a run. `failed`: {unit: (folder, reason)} of images that failed here."""

    def __init__(self, units, job, results, progress, on_failure):
        """units: a _units.Units. job: a run.Job. on_failure(unit, folder, reason), or None."""
        self._units, self._results, self._progress = units, results, progress
        self._outputs, self._function, self._grid = job.outputs, job.function, job.grid
        self._checks = [returned.Check(output) for output in self._outputs]
        self._draws = self._grid.has_pictures() and any(output.kind in ("map", "score") for output in self._outputs)
        self._owner, self._now = os.getpid(), (None, None, None)
        self.failed, self._on_failure = {}, on_failure

    def _add_failure(self, number, folder, reason):
        self.failed[number] = (folder, reason)
        if self._on_failure is not None:
            self._on_failure(number, folder, reason)

    def run(self, model, timeout):
        self._watch = Watch(timeout, self._late)
        self._timeout = timeout
        for unit in self._units:
            record = self._units.images[unit.image]
            folder = self._results.folder_of(unit.image, record)
            failed = self._failed_band(unit) if unit.bands > 1 else None
            if self._results.has(folder):  # its consumer ended, or was silent, before it said so
                unit.finish()
            elif failed is not None:
                self._add_failure(unit.number, folder, failed)
                unit.fail(failed)
            else:
                self._unit(unit, folder, record, model)
        self._join_rest(model)
        for output in self._outputs:
            if output.kind == "image" and self._results.done():
                self._results.join(output.name)
        sweep(self._results.staging)  # once more: a consumer that was killed may have ended only since

    def _failed_band(self, unit):
        """Why another band of the image failed, or None."""
        first, count = self._units.images[unit.image]["units"]
        known = {number: reason for number, (_, reason) in self.failed.items()} | self._units.progress()[1]
        return next((known[number] for number in range(first, first + count) if number in known), None)

    def _unit(self, unit, folder, record, model):
        """An image or a band, which fails the image alone when the function or its data are at fault."""
        self._now = (unit, folder, None)
        try:
            if unit.bands == 1:
                self._stage(folder, self._image, unit, record, model)
            else:
                self._band(unit, folder, record, model)
            unit.finish()
        except _units.UnitLost as error:
            self._lose(unit, folder, error)
        except (FunctionError, returned.ReturnedError, errors.DataError) as error:
            self._fail(unit, folder, error)

    def _stage(self, name, make, *words):
        """Makes a folder aside by make(folder, *words), and publishes it."""
        staged = self._results.stage(name)
        try:
            make(staged.folder, *words)
            staged.publish()
        finally:
            staged.remove()

    def _band(self, unit, folder, record, model):
        """Before the unit is finished the image is joined, if no other band is missing: who ends in between is replaced."""
        made = bands.Bands(self._results, folder, unit.bands)
        if unit.band not in made.done():
            self._stage(made.name_of(unit.band), self._make_band, unit, record, model)
        self._join(made, folder, unit.image, record, model)

    def _make_band(self, folder, unit, record, model):
        band = bands.Band(folder, self._name(record), unit.patches, self._grid, is_first=unit.band == 0)
        made = bands.Writers(self._outputs, band, self._checks)
        with self._abandoning(made.made):
            for batch in unit:
                made.add(self._batch(batch, band, record, made.made, model))
            made.close()

    def _join(self, made, folder, image, record, model):
        if not made.are_complete():
            return
        with made.locked():
            if not self._results.has(folder):
                self._stage(folder, self._joined, made, image, record, model)
        made.remove()

    def _joined(self, folder, made, number, record, model):
        parts = made.parts()
        for part in parts:
            with part.reading():
                part.places.ordinals  # read, and kept
        image = writers.Image(folder, self._name(record), sum(len(part.places) for part in parts), self._grid)
        self._place(image, record, parts[0].places)
        writing = []
        with self._abandoning(writing):
            bands.join(image, self._outputs, self._checks, parts, writing)
            self._close(writing, model)
            self._describe(image, number, record)

    def _join_rest(self, model):
        """Images of which every band is there: their last consumers ended, or did not see each other's bands in time."""
        failed = {folder for folder, _ in self.failed.values()}
        for number, folder in bands.images_of(self._results):
            record = self._units.images[number]
            made, unit = bands.Bands(self._results, folder, record["units"][1]), _Done(number, *record["units"])
            if self._results.has(folder):
                made.remove()
            elif folder not in failed and self._failed_band(unit) is None:
                self._now = (unit, folder, None)
                try:
                    self._join(made, folder, number, record, model)
                except (FunctionError, returned.ReturnedError, errors.DataError) as error:
                    self._fail(unit, folder, error)

    def _fail(self, unit, folder, error):
        cause = error.__cause__ if isinstance(error, FunctionError) else None
        text = str(error) if cause is None else "".join(traceback.format_exception(cause))
        kept = self._results.keep_failure(folder, text, _host_arrays(self._now[2]))
        self._add_failure(unit.number, folder, str(error))
        self._progress.say(f"{folder} failed: {error}; its batch is in {kept}")
        unit.fail(str(error))

    def _lose(self, unit, folder, error):
        """The image is another consumer's now, or its patches cannot be made."""
        reason = self._units.progress()[1].get(unit.number)
        if reason is None:
            self._progress.say(f"{folder}: {error}")
            return
        self._results.keep_failure(folder, reason, {})
        self._add_failure(unit.number, folder, reason)
        self._progress.say(f"{folder} failed: {reason}")

    def _late(self):
        """In the thread of the watch: the function has not returned."""
        unit, folder, batch = self._now
        reason = f"call function: it has not returned within {self._timeout:g} s"
        kept = self._results.keep_failure(folder, reason, _host_arrays(batch))
        self._progress.say(f"{folder} failed: {reason}; its batch is in {kept}")
        self._add_failure(unit.number, folder, reason)
        unit.fail(reason)

    @staticmethod
    def _name(record):
        return str(record.get("slide_id") or os.path.basename(record.get("path") or ""))

    @staticmethod
    @contextlib.contextmanager
    def _abandoning(made):
        """Lets go of the writers of a list on any error."""
        try:
            yield
        except BaseException:
            for writer in made:
                writer.abandon()
            raise

    def _image(self, folder, unit, record, model):
        image = writers.Image(folder, self._name(record), unit.patches, self._grid)
        made = []
        with self._abandoning(made):
            for output, check in zip(self._outputs, self._checks):
                made.append(writers.WRITERS[output.kind](output, image, check))
            for batch in unit:
                self._batch(batch, image, record, made, model)
            self._close(made, model)
            self._describe(image, unit.image, record)

    @staticmethod
    def _describe(image, number, record):
        with open(os.path.join(image.folder, "image.json"), "w", encoding="utf-8") as file:
            json.dump({"image": image.name, "index": number, "patches": image.patches, **identity_of(record)}, file)

    def _place(self, image, record, places):
        image.place = geometry.ImagePlace(self._grid, record, places.levels[0], places.boxes[0])
        image.thumbnail = heat.Thumbnail(image.place) if self._draws else None

    def _batch(self, batch, image, record, made, model):
        places = writers.Places(*(numpy.array(batch[name]) for name in ("ordinal", "level", "box")))
        if image.place is None:
            self._place(image, record, places)
        if image.thumbnail is not None:
            image.thumbnail.add(places.boxes, batch["image"])
        self._now = (*self._now[:2], batch)
        value = self._call("predict", self._function.predict, model, batch)
        for writer, one in zip(made, returned.rows_of(self._outputs, value)):
            writer.add(places, one)
        self._now = (*self._now[:2], None)
        self._progress.patches += len(places)
        self._progress.tell(len({folder for folder, _ in self.failed.values()}))
        return places

    def _close(self, made, model):
        per_image = [writer for writer in made if writer.output.kind == "image"]
        if per_image:
            value = self._call("finish", self._function.finish, model, {writer.output.name: writer.rows() for writer in per_image})
            for writer, one in zip(per_image, returned.rows_of([writer.output for writer in per_image], value)):
                writer.finish(one)
        for writer in made:
            writer.close()

    def _call(self, name, function, *words):
        try:
            value = self._watch.call(function, *words)
        except Exception as error:
            self._leave_fork()
            raise FunctionError(f"call function: {name}: {type(error).__name__}: {error}") from error
        self._leave_fork()
        return value

    def _leave_fork(self):
        """A child that the function made by fork() and let return must not go on as a consumer."""
        if os.getpid() != self._owner:
            os._exit(1)
