"""Images of a run, or bands of them, one after another: this process is one of any number of consumers."""
from . import _client, _cuda, _request, _ring, errors
from .stream import Images

_ABORTED, _OUT_OF_RANGE = 10, 11  # absl::StatusCode


class UnitLost(errors.PatchbayError):
    """The unit went to another consumer, as this one was silent for too long, or it failed while its patches were made.

    Drop what was computed of it and go on with the next unit.
    """


class Units:
    """The units that fall to this consumer: images, and bands of those with many patches. `for unit in units` ends once every
    one of the run is finished by somebody.

    Consumers of one `name` (of one user, in one cluster) are one run. Without `cluster` they share an embedded one, which
    ends with the last of them. Batches come as fast as they are made, of one unit after another; the next one's are made
    while this one's are used. One thread at a time takes batches; units may be finished from any.
    """

    def __init__(self, config, *, device=None, cluster=None, overrides=None, split=None, name=None, cpus=None):
        arguments = {"config": config, "device": device, "cluster": cluster, "overrides": overrides, "split": split, "name": name,
                     "cpus": cpus, "rank": 0, "world_size": 1, "augment": None, "data_policy": None, "data_listen": None}
        self._request = dict(_request.of(arguments), map=True)
        if cluster is None and name is not None:
            self._request["share"] = f"map:{name}"
        self._ordinal = self._request.pop("ordinal", None)
        self._ring, self._first, self._starts_over = None, None, False
        self._client = _client.Client()
        try:
            self._open()
        except BaseException:
            self._client.kill()
            raise
        self.images = Images(self._client, self._description["images"])

    def _open(self):
        self._description, self._ring = _ring.open_run(self._client, self._request, self._ordinal)
        self._starts_over = False
        # Later it is the same run that this consumer comes back to, whether it has ended or not.
        self._request.pop("name", None)
        self._request["job"] = self._description["job"]

    @property
    def description(self):
        """A dict of counts, arrays and digests, as Stream.description; plan (its digest), units, mapped_images (those with patches),
        outputs, weights."""
        return {key: value for key, value in self._description.items() if key not in ("ok", "resume_token", "device")}

    def progress(self):
        """Units of the whole run that are finished, by anybody, and a dict of those of them that failed: {unit: reason}."""
        answer, _ = self._client.ask(op="progress")
        return answer["finished"], dict(answer["failed"])

    def skip(self, done, failed):
        """Units that ended before this run are finished, without their batches. failed: {unit: reason}."""
        for number in done:
            self._finish(number)
        for number, reason in failed.items():
            self._finish(number, reason=reason)
        self._starts_over = self._starts_over or bool(done or failed)  # some may have been assigned here

    def __iter__(self):
        while True:
            batch = self._take()
            if batch is None:
                return
            unit = Unit(self, batch)
            del batch
            yield unit
            self._starts_over = self._starts_over or not unit._is_whole()

    def _take(self):
        """The next unit's first batch; None at the end. A consumer whose units were lost comes back as another one."""
        while True:
            if self._starts_over:
                self._open()
            try:
                return self._ring.next()
            except errors.PatchbayError as error:
                if error.code == _OUT_OF_RANGE:
                    return None
                if error.code != _ABORTED:
                    raise
                self._starts_over = True

    def _take_of(self, unit):
        try:
            batch = self._ring.next()
        except errors.PatchbayError as error:
            if error.code not in (_ABORTED, _OUT_OF_RANGE):
                raise
            self._starts_over = error.code == _ABORTED
            raise UnitLost(f"unit {unit}: {error}") from error
        if batch.unit != unit:
            raise errors.InternalError(f"unit {unit}: a batch of unit {batch.unit} came")
        return batch

    def _finish(self, unit, **outcome):
        self._client.ask(op="finish", unit=unit, **outcome)

    def close(self):
        """Leaves the run; units that are not finished go to others. May be called again."""
        if self._ring is not None:
            self._ring.close()
            self._ring = None
        self._client.close(outlived=self._ordinal is not None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Unit:
    """Band `band` of the `bands` of an image, mostly the one: `for batch in unit` are its batches in order, once. finish() or
    fail() ends it for everybody.

    One that is left before its last batch, and neither finished nor failed, goes back to the run.
    """

    def __init__(self, units, first):
        self.number, self.patches = first.unit, first.unit_patches
        self.image = int(first["image_index"].tolist()[0])
        first_of_image, self.bands = units.images[self.image]["units"]
        self.band = self.number - first_of_image
        self._units, self._first, self._left = units, first, first.unit_patches

    def _is_whole(self):
        return self._left == 0

    def _next(self):
        batch, self._first = self._first, None
        if batch is None:
            batch = self._units._take_of(self.number)
        self._left -= batch.count
        return batch

    def __iter__(self):
        while self._left > 0:
            yield self._next()

    def finish(self):
        """The unit is done: recorded when this returns, and nobody gets it again."""
        self._units._finish(self.number)

    def fail(self, reason):
        """The unit failed alone; the run goes on."""
        self._units._finish(self.number, reason=str(reason))
