"""A stream's state: what state_dict() gives, checked when it comes back."""
import re

from . import errors

VERSION = 1
_MAX_TOKEN_BYTES = 1024
_MAX_EPOCH = 65535
_TOKEN = re.compile(r"(patchbay-resume-2):([0-9]{1,5}):([0-9]{1,20}):([0-9]{1,10})((?::[0-9a-f]{64}){5})")
_SECTIONS = ((4, "its versions (another build of Patchbay made it)"), (1, "its config"), (2, "its images"),
             (3, "its labels"))


class Token:
    """A resume token, taken apart."""

    def __init__(self, text):
        match = _TOKEN.fullmatch(text) if isinstance(text, str) and len(text) <= _MAX_TOKEN_BYTES else None
        if match is None or int(match[2]) > _MAX_EPOCH or int(match[4]) == 0:
            raise errors.StateError("load state: this is not a state of a stream: damaged, truncated, or of another version")
        self.mark, self.epoch, self.batch, self.global_size = match[1], int(match[2]), int(match[3]), int(match[4])
        self.digests = match[5][1:].split(":")

    def text_at(self, epoch, batch):
        return ":".join([self.mark, str(epoch), str(batch), str(self.global_size), *self.digests])

    def check_same_plan(self, other):
        """StateError naming what differs, when `other` is of another plan; or when only an altered token could be so."""
        if self.digests[0] == other.digests[0]:
            if self.global_size != other.global_size:
                raise errors.StateError(f"load state: it counts batches of {self.global_size} patches, the run's have "
                                        f"{other.global_size}: pass what state_dict() gave")
            return
        differ = [name for index, name in _SECTIONS if self.digests[index] != other.digests[index]] or ["its text"]
        raise errors.StateError(f"load state: the state is of another run: {' and '.join(differ)} "
                                f"differ{'' if len(differ) > 1 else 's'}: attach with what it was made with")


def pack(token_text):
    return {"version": VERSION, "token": token_text}


def unpack(state):
    """The token of what state_dict() gave."""
    if not isinstance(state, dict) or "token" not in state or state.get("version") != VERSION:
        raise errors.StateError("load state: this is not a state of a stream: pass what state_dict() gave")
    return Token(state["token"])
