"""States and rings of another version are refused with both versions and what to do."""
import os
import pathlib
import tempfile
import unittest

from patchbay import _extension, _position, _state, errors

TOKEN = "patchbay-resume-3:1:2:16:" + "a" * 64 + ":0123456789abcdef" * 14
RELEASE = "use the release of Patchbay that wrote it, or a later one"


class Versions(unittest.TestCase):
    def refused(self, call, text, kind=errors.StateError):
        with self.assertRaises(kind) as caught:
            call()
        self.assertEqual(str(caught.exception), text)

    def test_states(self):
        self.assertEqual(_state.unpack({"version": 1, "token": TOKEN}).batch, 2)
        self.refused(lambda: _state.unpack({"version": 2, "token": TOKEN}),
                     f"load state: version 2, this program knows 1; {RELEASE}")
        self.refused(lambda: _state.unpack({"version": 1, "token": TOKEN.replace("-3", "-4")}),
                     f"load state: version 4, this program knows 2 and 3; {RELEASE}")
        for none in ({"version": True, "token": TOKEN}, {"version": 1, "token": TOKEN.replace("-3", "-3" * 9)}):
            with self.assertRaisesRegex(errors.StateError, "this is not a state of a stream"):
                _state.unpack(none)

    def test_positions(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "position")
            _position.write(path, TOKEN.replace("-3", "-4"))
            whole = pathlib.Path(path).read_bytes()
            self.refused(lambda: _position.read(path), f"read position: {path}: version 4, this program knows 2 and 3; {RELEASE}")
            self.assertEqual(pathlib.Path(path).read_bytes(), whole)

    def test_rings(self):
        control = os.memfd_create("control")
        os.write(control, (6).to_bytes(4, "little"))  # another version has another size too
        description = {"ring_bytes": 4096, "slot_bytes": 4096, "slots": 1, "arrays": [("image", "uint8", [4], 0, False)], "capacity": 1}
        self.refused(lambda: _extension.open_ring(control, control, control, description),
                     "map ring: version 6, this program knows 5; use the programs of this module's release (PATCHBAY_BIN)",
                     RuntimeError)
        os.close(control)


if __name__ == "__main__":
    unittest.main()
