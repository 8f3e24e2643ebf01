"""The client process of one stream: `patchbay serve-ring`, and the socket to it."""
import array
import json
import os
import select
import socket
import subprocess
import threading

from . import _programs, errors

_MESSAGE_BYTES = 64 << 10
_CLOSE_S = 10


class Client:
    """Owns the process. In a forked child it is inert."""

    def __init__(self):
        self._owner = os.getpid()
        self._lock = threading.Lock()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._link = ours
        with theirs:
            command = [_programs.program(), "serve-ring", "--link", str(theirs.fileno()), "--owner", str(self._owner)]
            try:
                # A session of its own: Ctrl-C on the terminal is for the trainer alone.
                self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                                 pass_fds=[theirs.fileno()], start_new_session=True)
            except OSError as error:
                ours.close()
                raise errors.ClusterError(f"start client process: {command[0]}: {error.strerror}") from error

    def fileno(self):
        return self._link.fileno()

    def ask(self, **command):
        """The answer to a command, and the descriptor that came with it or None."""
        if os.getpid() != self._owner:
            raise errors.ForkError("the stream belongs to the process that attached, not to its fork")
        return self._whole(command)

    def more(self):
        """The next part of an answer."""
        return self._whole(None)

    def _whole(self, command):
        """An answer left half-way (Ctrl-C) would be taken for that of the next command: then the process ends."""
        with self._lock:
            try:
                if command is not None:
                    self._send(command)
                return self._receive()
            except errors.PatchbayError:
                raise
            except BaseException:
                self.kill()
                raise

    def _send(self, command):
        message = json.dumps(command).encode()
        if len(message) > _MESSAGE_BYTES:
            raise errors.ConfigError(f"ask client process: the config and the arguments take {len(message)} bytes, more than "
                                     f"{_MESSAGE_BYTES}: write the config to a file, and long lists to tables")
        try:
            self._link.send(message)
        except OSError as error:
            raise self._gone() from error

    def _receive(self):
        descriptors = array.array("i")
        # poll, not recvmsg: Python handles signals between looks, and a big fork table does no harm.
        poll = select.poll()
        poll.register(self._link, select.POLLIN)
        while not poll.poll(200):
            pass
        try:
            text, control, _, _ = self._link.recvmsg(_MESSAGE_BYTES, socket.CMSG_SPACE(4 * 4))
        except OSError as error:
            raise self._gone() from error
        for level, kind, content in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(content[:len(content) - len(content) % descriptors.itemsize])
        for extra in descriptors[1:]:
            os.close(extra)
        if not text:
            raise self._gone()
        answer = json.loads(text.decode("utf-8", errors="replace"))
        descriptor = descriptors[0] if descriptors else None
        if answer.get("ok"):
            return answer, descriptor
        if descriptor is not None:
            os.close(descriptor)
        raise errors.of_answer(answer)

    def _gone(self):
        try:
            code = self._process.wait(1)
            ended = f"signal {-code}" if code < 0 else f"exit code {code}"
        except subprocess.TimeoutExpired:
            ended = "no exit code yet"
        return errors.ClusterError(f"ask client process: it has ended ({ended}): it was killed, or memory ran out; attach again "
                                   "with the last state")

    def close(self, *, outlived=False):
        """Leaves the stream and ends the process; what is left of it after a while is killed.

        outlived: tensors may stand on memory of the process: it ends by itself once they are gone.
        """
        if self._link.fileno() < 0:
            return
        if os.getpid() != self._owner:
            self._link.close()
            return
        try:
            self._link.send(b'{"op":"close"}')
            if outlived:
                self._await_answer()
            else:
                self._process.wait(_CLOSE_S)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
        finally:
            self._link.close()
            self._reap(0 if outlived else _CLOSE_S)

    def _await_answer(self):
        """Until the process says that it has left, or has ended."""
        poll = select.poll()
        poll.register(self._link, select.POLLIN)
        if not poll.poll(_CLOSE_S * 1000):
            raise TimeoutError("no answer")

    def _reap(self, seconds):
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass

    def kill(self):
        """Ends it at once, as the end of this process would."""
        if os.getpid() == self._owner:
            self._link.close()
            self._process.kill()
            self._process.wait()
