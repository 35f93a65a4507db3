"""How much this process holds in memory, and the most it held since a moment; Linux alone tells."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["address_space", "forget_peak", "is_told", "peak", "peaks_below", "resident", "seconds_below"]

_STATUS: Final = Path("/proc/self/status")
_RESET_PEAK: Final = Path("/proc/self/clear_refs")


def is_told() -> bool:
    """Return whether this system tells."""
    return _RESET_PEAK.exists()


def forget_peak() -> None:
    """Have :func:`peak` tell of what comes from now on."""
    _RESET_PEAK.write_text("5", encoding="ascii")


def resident() -> int:
    """Return the bytes held now."""
    return _told("VmRSS")


def address_space() -> int:
    """Return the bytes of address space in use now, whether memory or not."""
    return _told("VmSize")


def peak() -> int:
    """Return the most bytes held since :func:`forget_peak`, or since the process began."""
    return _told("VmHWM")


def peaks_below(name: str) -> list[int]:
    """Return the most bytes that processes of a name held, which this one or its children have started."""
    return [_told("VmHWM", status) for status in _below(name)]


def seconds_below(name: str) -> list[float]:
    """Return the processor time of the same processes, and of their children that have ended."""
    ticks = [
        sum(map(int, status.with_name("stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11:15]))
        for status in _below(name)
    ]
    return [count / os.sysconf("SC_CLK_TCK") for count in ticks]


def _below(name: str) -> list[Path]:
    """Return the files that tell of processes of a name, which this one or its children have started."""
    parents, named = dict[int, int](), dict[int, Path]()
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError, RuntimeError):
            text = status.read_text(encoding="utf-8", errors="replace")
            number = int(status.parent.name)
            parents[number] = int(text.partition("PPid:")[2].split()[0])
            if text.partition("Name:")[2].split()[0].startswith(name):
                named[number] = status

    def is_mine(number: int) -> bool:
        parent = parents.get(number, 0)
        return parent == os.getpid() or (parent != 0 and is_mine(parent))

    return [status for number, status in named.items() if is_mine(number)]


def _told(field: str, status: Path = _STATUS) -> int:
    text = status.read_text(encoding="utf-8", errors="replace")
    match = re.search(rf"^{field}:\s+(\d+) kB$", text, re.MULTILINE)
    if match is None:
        raise RuntimeError(f"{status} does not tell {field}")
    return int(match[1]) * 1024
