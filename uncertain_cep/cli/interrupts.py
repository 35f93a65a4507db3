"""Ctrl-C that is not lost where C code calls back into Python.

There, as in a compiler's callbacks or in finalizers, Python can raise a KeyboardInterrupt, but no code can
catch it: it would be shown with a traceback, and the command would go on.
"""

from __future__ import annotations

import _thread
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

__all__ = ["Interrupts", "lasting_interrupts"]

AGAIN: Final = 0.02
"""Seconds after which an interrupt that was lost comes again; callbacks take less."""


class Interrupts:
    """Whether there was one. An error after it may be of its making: some libraries turn it into one."""

    def __init__(self) -> None:
        self.seen = False


@contextmanager
def lasting_interrupts() -> Iterator[Interrupts]:
    """Let an interrupt that could not be raised come again, until one can, while the context lasts."""
    hook, handler = sys.unraisablehook, signal.getsignal(signal.SIGINT)
    interrupts = Interrupts()
    pending: list[Timer] = []

    def again(unraisable: UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            hook(unraisable)
            return
        timer = Timer(AGAIN, _thread.interrupt_main)
        timer.daemon = True
        pending.append(timer)
        timer.start()

    def noted(number: int, frame: FrameType | None) -> None:
        interrupts.seen = True
        if callable(handler):
            handler(number, frame)

    sys.unraisablehook = again
    # Only the main thread may ask for signals, and who ignores them goes on to.
    notes = callable(handler) and current_thread() is main_thread()
    if notes:
        signal.signal(signal.SIGINT, noted)
    try:
        yield interrupts
    finally:
        sys.unraisablehook = hook
        for timer in pending:
            timer.cancel()
        if notes and signal.getsignal(signal.SIGINT) is noted:
            signal.signal(signal.SIGINT, handler)
