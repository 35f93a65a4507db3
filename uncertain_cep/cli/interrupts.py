"""Ctrl-C that is not lost where C code calls back into Python.

There, as in a compiler's callbacks or in finalizers, Python can raise a KeyboardInterrupt but nobody can
catch it: it would be shown with a traceback, and the command would go on.
"""

from __future__ import annotations

import _thread
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

__all__ = ["lasting_interrupts"]

AGAIN: Final = 0.02
"""Seconds after which an interrupt that was lost comes again; callbacks take less."""


@contextmanager
def lasting_interrupts() -> Iterator[None]:
    """Let an interrupt that could not be raised come again, until one can, while the context lasts."""
    before = sys.unraisablehook
    pending: list[Timer] = []

    def again(unraisable: UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            before(unraisable)
            return
        timer = Timer(AGAIN, _thread.interrupt_main)
        timer.daemon = True
        pending.append(timer)
        timer.start()

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in pending:
            timer.cancel()
