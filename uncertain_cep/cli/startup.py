"""Imports and work that a command leaves out, so that it starts sooner."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

__all__ = ["uncollected", "without_pandas"]


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no garbage meanwhile: imports make hardly any, and it is a twentieth of what they take."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class _Absent(MetaPathFinder):
    """Finds that there is no pandas."""

    def find_spec(self, fullname: str, *_: Any) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not loaded by this command", name=fullname)
        return None


def without_pandas() -> None:
    """Have pyarrow do without pandas in this process from now on, unless it is loaded.

    pyarrow loads it, which takes a third of a second, as soon as it is handed an array or makes one, in case
    that is of pandas. It looks for it only once in each direction.
    """
    if "pandas" in sys.modules:
        return
    import numpy as np
    import pyarrow as pa

    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        pa.chunked_array([pa.array(np.zeros(1))]).to_numpy()
    finally:
        sys.meta_path.remove(absent)
