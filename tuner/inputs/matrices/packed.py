"""Files packed by gzip, as zlib's gzread takes them, by which swpbench reads.

Python's own reader skips NULs between members, refuses what follows the last one, and checks no
headers.
"""

from __future__ import annotations

import io
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PIECE_BYTES = 1 << 17

_MAGIC = b"\x1f\x8b"


def unpacked(file: io.BufferedReader) -> io.BufferedReader:
    """Return the content of a file just opened, which is the file itself if it is not packed.

    Reading raises EOFError where a member is cut off, and zlib.error where it is broken.
    """
    packed = file.peek(len(_MAGIC)).startswith(_MAGIC)
    return io.BufferedReader(_Members(file), PIECE_BYTES) if packed else file


class _Members(io.RawIOBase):
    """The contents of the members, one after the other, up to what does not begin as one."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file
        self._packed = b""
        self._member = zlib.decompressobj(wbits=31)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Unpack at least one byte; return 0 at the end."""
        content, room = b"", memoryview(buffer)
        while not content:
            if self._member.eof:
                if len(self._packed) < len(_MAGIC):
                    self._packed += self._file.read(PIECE_BYTES)
                if not self._packed.startswith(_MAGIC):
                    return 0
                self._member = zlib.decompressobj(wbits=31)
            self._packed = self._packed or self._file.read(PIECE_BYTES)
            if not self._packed:
                raise EOFError("the file ends too early")
            content = self._member.decompress(self._packed, len(room))
            self._packed = self._member.unconsumed_tail or self._member.unused_data
        room[: len(content)] = content
        return len(content)
