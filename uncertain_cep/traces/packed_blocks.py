"""The blocks that lz4-java and snappy-java write, as in event logs of Spark: no frames of LZ4 or Snappy."""

from __future__ import annotations

import struct
from typing import BinaryIO, Final

import pyarrow as pa

__all__ = ["LZ4_MAGIC", "Blocks", "Lz4Blocks", "SnappyBlocks"]

LZ4_MAGIC: Final = b"LZ4Block"
SNAPPY_MAGIC: Final = b"\x82SNAPPY\x00"

_LZ4_HEADER: Final = struct.Struct("<8sBiii")
_SNAPPY_VERSIONS: Final = 8
"""Bytes behind the magic ones."""

_STORED: Final = 0x10
_PACKED: Final = 0x20
_LONGEST: Final = 1 << 25
"""Bytes of the largest block that lz4-java can write."""


class Blocks:
    """A stream of what the blocks of a file hold; OSError if they are damaged or cut off."""

    codec: str

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._codec = pa.Codec(self.codec)
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Return the next bytes, none at the end."""
        while not self._rest:
            block = self._block()
            if block is None:
                return b""
            self._rest = block
        data, self._rest = self._rest[:size], self._rest[size:]
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _block(self) -> bytes | None:
        """Return the unpacked bytes of the next block, None at the end."""
        raise NotImplementedError

    def _unpacked(self, data: bytes, length: int) -> bytes:
        unpacked: bytes = self._codec.decompress(data, length, asbytes=True)
        return unpacked

    def _bytes(self, size: int) -> bytes:
        if not 0 <= size <= _LONGEST:
            raise OSError(f"a block of {self.codec} is damaged")
        data = self._file.read(size)
        if len(data) < size:
            raise OSError(f"a block of {self.codec} is cut off")
        return data


class Lz4Blocks(Blocks):
    """Blocks of net.jpountz.lz4.LZ4BlockOutputStream.

    A block has a header of its kind, its packed and unpacked lengths, and a checksum, which is not looked at.
    One of no bytes ends a stream, behind which another may begin.
    """

    codec = "lz4_raw"

    def _block(self) -> bytes | None:
        header = self._file.read(_LZ4_HEADER.size)
        if not header:
            return None
        if len(header) < _LZ4_HEADER.size:
            raise OSError("a block of LZ4 is cut off")
        magic, kind, packed, length, _ = _LZ4_HEADER.unpack(header)
        kind &= 0xF0
        if magic != LZ4_MAGIC or kind not in (_STORED, _PACKED) or not 0 <= length <= _LONGEST:
            raise OSError("a block of LZ4 is damaged")
        data = self._bytes(packed)
        return self._unpacked(data, length) if kind == _PACKED else data


class SnappyBlocks(Blocks):
    """Blocks of org.xerial.snappy.SnappyOutputStream.

    A stream begins with magic bytes and two versions, and another may begin behind it. A block has its packed
    length before it, and within it, at first, its own.
    """

    codec = "snappy"

    def _block(self) -> bytes | None:
        head = self._file.read(4)
        if not head:
            return None
        if head == SNAPPY_MAGIC[:4]:
            if self._bytes(4) != SNAPPY_MAGIC[4:]:
                raise OSError("a block of snappy is damaged")
            self._bytes(_SNAPPY_VERSIONS)
            return b""
        if len(head) < 4:
            raise OSError("a block of snappy is cut off")
        data = self._bytes(int.from_bytes(head, "big", signed=True))
        length = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(_varint(data)))
        if length > _LONGEST:
            raise OSError("a block of snappy is damaged")
        return self._unpacked(data, length)


def _varint(data: bytes) -> bytes:
    """Return the bytes of the number that data begin with."""
    size = next((place for place, byte in enumerate(data[:5], 1) if byte < 0x80), 0)
    if not size:
        raise OSError("a block of snappy is damaged")
    return data[:size]
