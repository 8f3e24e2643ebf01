"""A stream's state, as state_dict() returns it, and its checks in load_state_dict()."""
import re

from . import errors

VERSION = 1
_MAX_TOKEN_BYTES = 1024
_MAX_EPOCH = 65535
_PLACE = r":([0-9]{1,5}):([0-9]{1,20}):([0-9]{1,10}):([0-9a-f]{64})"
_TOKEN = re.compile(r"(patchbay-resume-3)" + _PLACE + r"((?::[0-9a-f]{16}){14})")
_MARK = re.compile(r"patchbay-resume-([0-9]{1,5}):")
_EARLIER = re.compile(r"(patchbay-resume-2)" + _PLACE + r"((?::[0-9a-f]{64}){4})")  # the tokens of version 0.1.0
# The inputs whose digests follow the plan's, and whether there is one for each image.
_SECTIONS = (("its versions (another build of Patchbay made it)", False), ("its config", False),
             ("its numerics (of the config, or what the cluster has)", False),
             ("its stain reference (the picture, or the slides of the cohort)", False),
             ("its numbers of ct_normalize (of the config, or the lock)", False),
             ("its images", False), ("its labels", False), ("its places of tissue and classes", True),
             ("its columns of sampling.weight_by", True), ("its table of positions", True),
             ("its stain fits of the images", True), ("its colour profiles of the images", True),
             ("its spacing or statistics of the volumes", True), ("its resolutions of the images", True))
_IMAGES = 5


class OtherVersion(errors.StateError):
    def __init__(self, found, known):
        self.cause = f"version {found}, this program knows {known}; use the release of Patchbay that wrote it, or a later one"
        super().__init__(f"load state: {self.cause}")


class Token:
    """A resume token, taken apart."""

    def __init__(self, text):
        is_text = isinstance(text, str) and len(text) <= _MAX_TOKEN_BYTES
        match = (_TOKEN.fullmatch(text) or _EARLIER.fullmatch(text)) if is_text else None
        mark = _MARK.match(text) if is_text and match is None else None
        if mark and mark[1] not in "23":
            raise OtherVersion(mark[1], "2 and 3")
        if match is None or int(match[2]) > _MAX_EPOCH or int(match[4]) == 0:
            raise errors.StateError("load state: this is not a state of a stream: damaged, or truncated")
        self.mark, self.epoch, self.batch, self.global_size = match[1], int(match[2]), int(match[3]), int(match[4])
        self.plan, self.sections = match[5], match[6][1:].split(":")

    def text_at(self, epoch, batch):
        return ":".join([self.mark, str(epoch), str(batch), str(self.global_size), self.plan, *self.sections])

    def check_same_plan(self, other):
        """StateError naming what differs, when `other` is of another plan; or when only an altered token could be so."""
        if self.plan == other.plan:
            if self.global_size != other.global_size:
                raise errors.StateError(f"load state: it counts batches of {self.global_size} patches, the run's have "
                                        f"{other.global_size}: pass what state_dict() gave")
            return
        differ = self._differing(other) if self.mark == other.mark else []
        differ = differ or ["its text"]
        raise errors.StateError(f"load state: the state is of another run: {' and '.join(differ)} "
                                f"differ{'' if len(differ) > 1 else 's'}: attach with what it was made with")

    def _differing(self, other):
        """Names of the inputs that differ. Where the images do, what is known of each of them does too, and is not named."""
        rows = list(zip(_SECTIONS, self.sections, other.sections))
        same_images = self.sections[_IMAGES] == other.sections[_IMAGES]
        return [name for (name, is_per_image), then, now in rows if then != now and (same_images or not is_per_image)]


def pack(token_text):
    return {"version": VERSION, "token": token_text}


def unpack(state):
    """The token of what state_dict() gave."""
    version = state.get("version") if isinstance(state, dict) and "token" in state else None
    if type(version) is not int:
        raise errors.StateError("load state: this is not a state of a stream: pass what state_dict() gave")
    if version != VERSION:
        raise OtherVersion(version, VERSION)
    return Token(state["token"])
