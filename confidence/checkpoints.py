"""Where an evaluation may end: limits that its caller sets are looked at often, and end it by raising."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

__all__ = ["checkpoint", "is_looked_at", "looking_at"]

_check: Final[ContextVar[Callable[[int], None] | None]] = ContextVar("check", default=None)


def checkpoint(needed: int = 0) -> None:
    """Let the evaluation end here: raise what the caller's check raises.

    Drivers call this between two calls of kernels that may be many, and before they hold much more memory.

    Parameters
    ----------
    needed : int
        Bytes that are about to be held besides.
    """
    check = _check.get()
    if check is not None:
        check(needed)


@contextmanager
def looking_at(check: Callable[[int], None] | None) -> Iterator[None]:
    """Have ``check`` called at every checkpoint of this thread while the context lasts; it ends by raising.

    Parameters
    ----------
    check : callable or None
        Called often, so that it should take less than a microsecond, with the bytes about to be held. None:
        nothing ends here.
    """
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def is_looked_at() -> bool:
    """Return whether a checkpoint of this thread may end the evaluation."""
    return _check.get() is not None
