"""The blocks that lz4-java writes, as in event logs of Spark called ``.lz4``: no frames of LZ4 itself."""

from __future__ import annotations

import struct
from typing import BinaryIO, Final

import pyarrow as pa

__all__ = ["MAGIC", "Lz4Blocks"]

MAGIC: Final = b"LZ4Block"

_HEADER: Final = struct.Struct("<8sBiii")
_STORED: Final = 0x10
_PACKED: Final = 0x20
_LONGEST: Final = 1 << 25
"""Bytes of the largest block that lz4-java can write."""


class Lz4Blocks:
    """A stream of what the blocks hold; OSError if they are damaged or cut off.

    A block has a header of its kind, its packed and unpacked lengths, and a checksum, which is not looked at.
    One of no bytes ends a stream, behind which another may begin (net.jpountz.lz4.LZ4BlockOutputStream).
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._codec = pa.Codec("lz4_raw")
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Return the next bytes, none at the end."""
        while not self._rest:
            header = self._file.read(_HEADER.size)
            if not header:
                return b""
            if len(header) < _HEADER.size:
                raise OSError("a block of LZ4 is cut off")
            magic, kind, packed, length, _ = _HEADER.unpack(header)
            kind &= 0xF0
            known = magic == MAGIC and kind in (_STORED, _PACKED)
            if not known or not 0 <= packed <= _LONGEST or not 0 <= length <= _LONGEST:
                raise OSError("a block of LZ4 is damaged")
            data = self._file.read(packed)
            if len(data) < packed:
                raise OSError("a block of LZ4 is cut off")
            if kind == _PACKED:
                data = self._codec.decompress(data, length, asbytes=True)
            self._rest = data
        found, self._rest = self._rest[:size], self._rest[size:]
        return found

    def close(self) -> None:
        """Close the file."""
        self._file.close()
