"""What is piped into a command, as a file: traces are read several times."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from uncertain_cep.errors import TraceError, TraceFault

__all__ = ["spooled"]

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
    if sys.stdin is None or sys.stdin.isatty():
        raise TraceError(TraceFault("standard input is no file or pipe: redirect one into it", file="-"))
    folder = Path(tempfile.mkdtemp(prefix="uncertain-cep-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "stdin"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with path.open("rb") as file:
        head = file.read(16).removeprefix(b"\xef\xbb\xbf").lstrip()
    packed = next((suffix for begin, suffix in _BEGINNINGS if head.startswith(begin)), "")
    if format is not None:
        kind = f".{format}"
    elif packed:
        from uncertain_cep.traces.unpacking import unpacked

        with unpacked(path.rename(folder / f"stdin{packed}")) as stream:
            kind = _kind(stream.read(16))
        path = folder / f"stdin{packed}"
    else:
        kind = _kind(head)
    return path.rename(folder / f"stdin{kind}{packed}")


def _kind(head: bytes) -> str:
    begin = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return next((suffix for first, suffix in _FORMATS if begin.startswith(first)), ".csv")
