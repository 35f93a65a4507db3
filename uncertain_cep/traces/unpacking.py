"""Compressed text as a stream of bytes, up to a limit: a small file may unpack to any length."""

from __future__ import annotations

import codecs
import io
import lzma
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.errors import TraceError, ignoring
from uncertain_cep.traces.packed_blocks import LZ4_MAGIC, Lz4Blocks, SnappyBlocks

__all__ = [
    "COMPACTED",
    "COMPRESSIONS",
    "FIRST_BYTES",
    "compression_of",
    "first_bytes",
    "has_wide_letters",
    "unpacked",
]

FIRST_BYTES: Final = 1 << 14
"""Bytes at the beginning of a file that tell its format."""

_PIECE: Final = 1 << 20

COMPRESSIONS: Final = {
    ".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2", ".lz4": "lz4", ".xz": "xz",
    ".snappy": "snappy", ".lzf": "lzf",
}  # fmt: skip
"""How files are compressed, by the ends of their names."""

COMPACTED: Final = ".compact"
"""What Spark's history server writes behind the end of the name of a log that it has compacted."""

MOST_TIMES: Final = 500
"""How many times as long as the file its text may be, once it is longer than ``ALWAYS``."""

_SETTLED: Final = 10**9
"""Nanoseconds after which a change of a file is told by its stamp."""

ALWAYS: Final = 2**30
"""Bytes that any file may unpack to."""


def compression_of(path: Path) -> str | None:
    """Return how a file is compressed, as its name says; None if it is not."""
    # Spark's history server writes events_2_app.zstd.compact.
    suffixes = path.suffixes[:-1] if path.suffix == COMPACTED else path.suffixes
    return COMPRESSIONS.get(suffixes[-1].lower()) if suffixes else None


def unpacked(
    path: Path, span: tuple[int, int] | None = None, *, encoding: str | None = None, skip_rows: int = 0
) -> Any:
    """Return a stream of a file's bytes, unpacked as its name says; text of another ``encoding`` as UTF-8.

    Text that begins with the mark of UTF-16 is that. The first ``skip_rows`` lines are left out.

    ``span`` are those to read of a file that is not packed, from one up to, but without, another. A read
    beyond the limit raises TraceError, one of a damaged file OSError.
    """
    if span is not None:
        with path.open("rb") as file:
            file.seek(span[0])
            return pa.BufferReader(file.read(span[1] - span[0]))
    stream = _packed(path)
    if encoding is None and not skip_rows and not has_wide_letters(path):
        return stream
    whole = io.BufferedReader(stream if isinstance(stream, io.RawIOBase) else _Raw(stream), _PIECE)
    wide = whole.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    encoding = "utf-16" if wide else encoding
    text: Any = whole if encoding is None else io.BufferedReader(Transcoded(whole, encoding), _PIECE)
    for _ in range(skip_rows):
        text.readline()
    return text


def first_bytes(path: Path, encoding: str | None = None) -> bytes:
    """Return the first bytes of a file, unpacked; it is opened once for all that ask, until it changes."""
    state = path.stat()
    if time.time_ns() - state.st_mtime_ns < _SETTLED:
        # It may change again within a tick of the clock of the file system.
        return _read_first(path, encoding)
    return _first_bytes(path, encoding, state.st_ino, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=256)
def _first_bytes(path: Path, encoding: str | None, *_: int) -> bytes:
    return _read_first(path, encoding)


def _read_first(path: Path, encoding: str | None) -> bytes:
    with unpacked(path, encoding=encoding) as stream:
        return bytes(stream.read(FIRST_BYTES))


def has_wide_letters(path: Path) -> bool:
    """Tell whether a file begins as text of UTF-16 does; what cannot be read does not."""
    with ignoring(OSError, EOFError, ValueError, TraceError, pa.ArrowException), _packed(path) as stream:
        return bytes(stream.read(2)) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return False


def _packed(path: Path) -> Any:
    """Return a stream of a file's bytes, unpacked as its name says."""
    compression = compression_of(path)
    if compression is None:
        try:
            return pa.input_stream(str(path), compression=None)
        except UnicodeEncodeError:
            # Arrow takes no name that is not UTF-8.
            return pa.input_stream(path.open("rb"), compression=None)
    if compression == "xz":
        return _Limited(lzma.open(path), path)
    if compression == "lz4":
        file = path.open("rb")
        if file.peek(len(LZ4_MAGIC)).startswith(LZ4_MAGIC):
            return _Limited(Lz4Blocks(file), path)
        file.close()
    if compression == "snappy":
        return _Limited(SnappyBlocks(path.open("rb")), path)
    if compression == "lzf":
        raise TraceError(
            "it is packed by LZF, which is not read: unpack it with compress-lzf, or let Spark write zstd by "
            "spark.eventLog.compression.codec=zstd"
        )
    return _Limited(pa.input_stream(path.open("rb"), compression=compression), path)


class _Raw(io.RawIOBase):
    """A stream of Arrow as one of Python."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


class Transcoded(io.RawIOBase):
    """A stream of text of some encoding as UTF-8; what is no such text raises TraceError."""

    def __init__(self, stream: Any, encoding: str) -> None:
        super().__init__()
        self._stream = stream
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._head = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._head and not self._ended:
            data = self._stream.read(_PIECE)
            self._ended = not data
            try:
                self._head = self._decoder.decode(data, self._ended).encode()
            except UnicodeDecodeError:
                raise TraceError(f"its text is no {self._encoding}: name another encoding") from None
        data, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Limited(io.RawIOBase):
    """A stream of unpacked bytes that ends with an error where there are far too many."""

    def __init__(self, stream: Any, path: Path) -> None:
        super().__init__()
        self._stream = stream
        self._most = max(ALWAYS, MOST_TIMES * path.stat().st_size)
        self._made = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        try:
            data: bytes = self._stream.read(self._most if size < 0 else size)
        except (lzma.LZMAError, EOFError) as error:
            raise OSError(str(error)) from None
        self._made += len(data)
        if self._made > self._most:
            raise TraceError(
                f"it unpacks to more than {self._most:,} bytes, {MOST_TIMES} times its size: if that is "
                "meant, unpack it, and read what comes out"
            )
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()
