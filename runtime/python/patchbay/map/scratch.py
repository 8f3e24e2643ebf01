"""Memory for sums: the process's own up to a limit, and beyond it a file that the kernel may write to disk."""
import mmap
import os
import tempfile

import numpy

LIMIT_BYTES = 640 << 20
_PAGE = mmap.PAGESIZE


class Scratch:
    """Arrays of uint32 that live until `close`. The file has no name and ends with the process."""

    def __init__(self, folder, limit=LIMIT_BYTES):
        self._folder, self._limit, self._used, self._file, self._end = folder, limit, 0, None, 0

    def take(self, shape):
        """An array of zeros. OSError where the disk has no room."""
        size = int(numpy.prod(shape)) * 4
        if self._used + size <= self._limit:
            self._used += size
            return numpy.zeros(shape, numpy.uint32)
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder)
        # Without room in the file system a write to mapped memory would end the process.
        os.posix_fallocate(self._file.fileno(), self._end, size)
        mapped = mmap.mmap(self._file.fileno(), size, offset=self._end)
        self._end += -(-size // _PAGE) * _PAGE
        return numpy.frombuffer(mapped, numpy.uint32).reshape(shape)

    def close(self):
        if self._file is not None:
            self._file.close()
