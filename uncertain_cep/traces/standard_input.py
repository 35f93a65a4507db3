"""Standard input as a file: traces are read several times."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Final, TextIO

from uncertain_cep.errors import TraceError, TraceFault

__all__ = ["is_spooled", "spooled"]

_PREFIX: Final = "uncertain-cep-"
_NAME: Final = "stdin"

_BEGINNINGS: Final = (
    (b"\x1f\x8b", ".gz"),
    (b"\x28\xb5\x2f\xfd", ".zst"),
    (b"BZh", ".bz2"),
    (b"\xfd7zXZ\x00", ".xz"),
    (b"\x04\x22\x4d\x18", ".lz4"),
)
_FORMATS: Final = ((b"PAR1", ".parquet"), (b"{", ".jsonl"), (b"[", ".json"))


@cache
def spooled(format: str | None = None) -> Path:
    """Return a file with what standard input holds, which lasts as long as the process.

    Its name says how it is compressed, as its first bytes tell, and its format: the one given, else Parquet
    or JSON if it begins so, else CSV.
    """
    path, packed = _held()
    if format is not None:
        kind = f".{format}"
    else:
        from uncertain_cep.traces.unpacking import unpacked

        with unpacked(path) as stream:
            kind = _kind(stream.read(16))
    named = path.with_name(f"{_NAME}{kind}{packed}")
    if not named.exists():
        # It is read once, and may be asked for in several formats.
        os.symlink(path, named)
    return named


_HELD: Final[list[tuple[TextIO, Path, str]]] = []


def _held() -> tuple[Path, str]:
    """Return a file with all that standard input holds, and what its name says of compression."""
    stdin = sys.stdin
    for held, path, packed in _HELD:
        if held is stdin:
            return path, packed
    if stdin is None or stdin.isatty():
        raise TraceError(TraceFault("standard input is no file or pipe: redirect one into it", file="-"))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "held"
    with path.open("wb") as file:
        shutil.copyfileobj(stdin.buffer, file)
    with path.open("rb") as file:
        head = file.read(16).removeprefix(b"\xef\xbb\xbf").lstrip()
    packed = next((suffix for begin, suffix in _BEGINNINGS if head.startswith(begin)), "")
    path = path.rename(folder / f"held{packed}")
    _HELD.append((stdin, path, packed))
    return path, packed


def is_spooled(path: Path) -> bool:
    """Tell whether a file is what `spooled` made."""
    return path.name.partition(".")[0] == _NAME and path.parent.name.startswith(_PREFIX)


def _kind(head: bytes) -> str:
    begin = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return next((suffix for first, suffix in _FORMATS if begin.startswith(first)), ".csv")
