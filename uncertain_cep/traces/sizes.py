"""How many bytes files hold once they are unpacked, without unpacking all of them."""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa

from uncertain_cep.files.special_files import special_kind
from uncertain_cep.traces.folders import files_of_folder
from uncertain_cep.traces.unpacking import compression_of

__all__ = ["unpacked_bytes"]

_PIECE: Final = 4096
"""Packed bytes read at a time: how many were needed is known to within so many."""

_LEAST: Final = 2**20
"""Bytes that are unpacked of each file, where it has them."""

_LEAST_PACKED: Final = 4 * _PIECE
"""Packed bytes to go by, so that what was read ahead counts for little."""

_MOST: Final = 2**24
"""Bytes after which a file is unpacked no further, though few packed ones were needed."""

_MOST_OF_ALL: Final = 2**30
"""Bytes after which a file that has been read to its end, but goes on to unpack, is large enough."""

_SAMPLED: Final = 16
"""Files that are looked into; of more of them the rest counts as packed like these."""


def unpacked_bytes(paths: Iterable[str]) -> int:
    """Return about how many bytes files, and all files of folders, hold unpacked.

    Text counts as it is; compressed text by the ratio at which its first bytes unpack, exactly if these are
    all; Parquet by what its footer says. What cannot be read counts nothing: reading will complain of it.
    """
    total = 0.0
    packed = unpacked = 0
    sampled = 0
    for path in _files(paths):
        try:
            size = path.stat().st_size
            if path.suffix.lower() in (".parquet", ".pq"):
                total += max(size, _parquet_bytes(path))
            elif compression_of(path) is None:
                total += size
            elif sampled < _SAMPLED:
                read, made = _beginning(path)
                sampled, packed, unpacked = sampled + 1, packed + read, unpacked + made
                total += made if read >= size else made * (size / max(read, 1))
            else:
                total += size * max(1.0, unpacked / max(packed, 1))
        except MemoryError:
            raise
        except (OSError, ValueError, EOFError, lzma.LZMAError, pa.ArrowException):
            continue
    return int(total)


def _files(paths: Iterable[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        if special_kind(path) is None:
            with suppress(OSError):
                yield from files_of_folder(path) if path.is_dir() else [path]


def _parquet_bytes(path: Path) -> int:
    import pyarrow.parquet as pq

    # Arrow itself takes no name that is not UTF-8.
    with path.open("rb") as file:
        metadata = pq.read_metadata(file)
    return sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))


class _Pieces:
    """A file that hands out a few bytes at a time, and counts them."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.count = 0
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(_PIECE if size < 0 else min(size, _PIECE))
        self.count += len(data)
        return data

    def close(self) -> None:
        self.closed = True


def _stream(pieces: _Pieces, compression: str | None) -> Any:
    if compression == "xz":
        return lzma.LZMAFile(pieces)  # type: ignore[arg-type]
    return pa.CompressedInputStream(pa.PythonFile(pieces, "r"), compression)


def _beginning(path: Path) -> tuple[int, int]:
    """Return how many bytes of a compressed file were read, and what they unpack to."""
    with path.open("rb", buffering=0) as file:
        pieces = _Pieces(file)
        size, made = path.stat().st_size, 0
        with _stream(pieces, compression_of(path)) as stream:
            while (
                made < _LEAST
                or (made < _MOST and pieces.count < _LEAST_PACKED)
                or (made < _MOST_OF_ALL and pieces.count >= size)
            ):
                data = stream.read(2**18)
                if not data:
                    break
                made += len(data)
        return pieces.count, made
