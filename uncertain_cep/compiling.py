"""A word to the user when kernels have to be compiled, which happens once on a machine and takes a while."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from numba.core import event

from confidence.kernel import PACKAGES, why_not_kept

__all__ = ["MESSAGE", "NOT_KEPT", "announce_compilation"]

MESSAGE: Final = "uncertain-cep: compiling kernels (first use on this machine, up to half a minute) ..."
NOT_KEPT: Final = (
    "uncertain-cep: every process compiles anew, as compiled kernels cannot be kept: {}; "
    "set NUMBA_CACHE_DIR to a folder that can be written"
)


def _to_stderr(message: str) -> None:
    # Without a console there is none.
    if sys.stderr is not None:
        print(message, file=sys.stderr, flush=True)


class _Announcer(event.Listener):
    """Says so when the first of our kernels is compiled; of those found in the cache Numba tells nothing."""

    def __init__(self) -> None:
        self.say: Callable[[str], None] = _to_stderr
        self.said = False
        self.listening = False

    def on_start(self, event: Any) -> None:
        # A function that a user compiles may have no module.
        module: str = getattr(event.data["dispatcher"].py_func, "__module__", None) or ""
        if self.said or module.partition(".")[0] not in PACKAGES:
            return
        self.said = True
        self.say(MESSAGE)
        if reason := why_not_kept():
            self.say(NOT_KEPT.format(reason))

    def on_end(self, event: Any) -> None:
        """Nothing is said at the end."""


_announcer: Final = _Announcer()


def announce_compilation(say: Callable[[str], None] | None = None) -> None:
    """Tell the user, once in this process, if kernels are compiled from now on.

    By default that is a line on stderr, or what an earlier call gave to ``say`` it with.
    """
    if say is not None:
        _announcer.say = say
    if not _announcer.listening:
        _announcer.listening = True
        register: Any = event.register
        register("numba:compile", _announcer)
