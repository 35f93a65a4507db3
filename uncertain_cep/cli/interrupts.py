"""Signals that end a command in order, and are not lost where C code calls back into Python.

SIGTERM and SIGHUP end a command as Ctrl-C does. What a signal raises can be raised in callbacks of C code or
in finalizers, too, but there no code can catch it: it would be shown with a traceback, and the command would
go on.
"""

from __future__ import annotations

import _thread
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

__all__ = ["Interrupts", "ending_with", "lasting_interrupts"]

AGAIN: Final = 0.02
"""Seconds after which an interrupt that was lost comes again; callbacks take less."""


ENDING: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""The signals that end a command; Windows has no SIGHUP."""


class Interrupts:
    """The signal that came. An error after it may be of its making: some libraries turn it into one."""

    def __init__(self) -> None:
        self.seen: int | None = None


_handlers: Final[dict[int, Any]] = {}
"""The handlers of the signals that end the command, while one runs."""

_ends: Final[list[Callable[[], None]]] = []
"""What to end with the command."""


@contextmanager
def ending_with(end: Callable[[], None]) -> Iterator[None]:
    """Call a function as soon as a signal ends the command, while the context lasts.

    A library that has taken one of the signals in the meantime loses it again.

    Parameters
    ----------
    end : callable
        Runs in a handler of signals, between any two steps of the main thread: it must not wait for a lock.
    """
    for number, handler in _handlers.items():
        signal.signal(number, handler)
    _ends.append(end)
    try:
        yield
    finally:
        _ends.remove(end)


@contextmanager
def lasting_interrupts() -> Iterator[Interrupts]:
    """Have signals raise a KeyboardInterrupt, again where it could not be caught, while the context lasts."""
    hook = sys.unraisablehook
    interrupts = Interrupts()
    handlers: dict[int, Any] = {}
    pending: list[Timer] = []

    def again(unraisable: UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            hook(unraisable)
            return
        timer = Timer(AGAIN, _send, (interrupts.seen or signal.SIGINT,))
        timer.daemon = True
        pending.append(timer)
        timer.start()

    def noted(number: int, frame: FrameType | None) -> None:
        interrupts.seen = interrupts.seen or number
        for end in _ends:
            end()
        handler = handlers.get(number)
        if not callable(handler):
            raise KeyboardInterrupt
        handler(number, frame)

    sys.unraisablehook = again
    # Only the main thread may ask for signals, and who ignores them goes on to.
    if current_thread() is main_thread():
        for number in ENDING:
            before = signal.getsignal(number)
            if before not in (signal.SIG_IGN, None):
                handlers[number] = before
                _handlers[number] = noted
                signal.signal(number, noted)
    try:
        yield interrupts
    finally:
        sys.unraisablehook = hook
        for timer in pending:
            timer.cancel()
        _handlers.clear()
        for number, before in handlers.items():
            if signal.getsignal(number) is noted:
                signal.signal(number, before)


def _send(number: int) -> None:
    """Send a signal to the main thread, and wake it should it wait for something."""
    if sys.platform == "win32":
        _thread.interrupt_main(number)
    else:
        signal.pthread_kill(main_thread().ident or 0, number)
