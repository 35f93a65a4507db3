"""Where the program keeps what it can make again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """Return the program's folder in the user's cache directory; it need not exist."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "uncertain-cep"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "uncertain-cep"
