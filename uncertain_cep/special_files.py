"""Named pipes, devices and sockets: they may keep their reader waiting, or never end."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

__all__ = ["special_kind"]

_KINDS: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def special_kind(path: str | Path) -> str | None:
    """Return what there is in place of a file or a folder, links followed; None if nothing is."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return None
    return next((kind for is_kind, kind in _KINDS if is_kind(mode)), None)
