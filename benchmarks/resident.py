"""How much this process holds in memory, and the most it held since a moment; Linux alone tells."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

__all__ = ["forget_peak", "is_told", "peak", "resident"]

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


def peak() -> int:
    """Return the most bytes held since :func:`forget_peak`, or since the process began."""
    return _told("VmHWM")


def _told(field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB$", _STATUS.read_text(encoding="ascii"), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{_STATUS} does not tell {field}")
    return int(found[1]) * 1024
