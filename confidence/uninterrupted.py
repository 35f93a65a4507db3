"""Work that an interrupt must not cut in two: loading Numba, and what Numba compiles.

What a signal raises, such as ``KeyboardInterrupt``, is raised in the main thread, wherever that is. In the
middle of Numba's imports, or of its tables for the first kernel, it leaves half of them behind: no kernel of
this process could be compiled from then on. So such work is done in a thread of its own. An interrupt ends
the wait for it, and the work goes on until it is done, or until it comes to where it may end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from queue import Empty, SimpleQueue
from threading import Thread, current_thread, main_thread
from typing import Final, TypeVar

from confidence.checkpoints import checkpoint, is_looked_at, looking_at

__all__ = ["Abandoned", "Failure", "ending_when", "in_a_thread", "may_end_here", "uninterrupted"]

ResultT = TypeVar("ResultT")

_WAIT_SECONDS: Final = 0.05
"""On Windows an interrupt is seen between two waits only."""


class Abandoned(BaseException):
    """Ends work that nobody waits for; no Exception, so that nothing within takes it for a fault."""


class Failure:
    """The error of a call."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


_ends: Final[ContextVar[Callable[[], bool] | None]] = ContextVar("ends", default=None)


@contextmanager
def ending_when(ends: Callable[[], bool]) -> Iterator[None]:
    """Have :func:`may_end_here` end the work of this thread in this context when ``ends`` returns True."""
    token = _ends.set(ends)
    try:
        yield
    finally:
        _ends.reset(token)


def in_a_thread(
    call: Callable[[], ResultT], *, daemon: bool, meanwhile: Callable[[], object] = lambda: None
) -> ResultT:
    """Return the result of a call, made in a thread of its own and in this context.

    Parameters
    ----------
    call : callable
        If an exception ends the wait for it, it goes on for nobody until it is over or :func:`may_end_here`
        ends it.
    daemon : bool
        Whether the process may end before that.
    meanwhile : callable
        Called some twenty times a second; what it raises ends the wait.
    """
    # Not the thread's join: to interrupt that makes Python take the thread for one that has ended.
    results: SimpleQueue[ResultT | Failure] = SimpleQueue()
    is_abandoned = False

    def run() -> None:
        try:
            with ending_when(lambda: is_abandoned):
                results.put(call())
        except BaseException as error:
            results.put(Failure(error))

    try:
        try:
            Thread(target=copy_context().run, args=(run,), daemon=daemon).start()
        except RuntimeError:
            # The system allows no more threads, or Python none as the process ends.
            return call()
        while True:
            meanwhile()
            with suppress(Empty):
                result = results.get(timeout=_WAIT_SECONDS)
                break
    except BaseException:
        is_abandoned = True
        raise
    if isinstance(result, Failure):
        raise result.error
    return result


def uninterrupted(call: Callable[[], ResultT]) -> ResultT:
    """Make a call where no interrupt is raised, while the caller's limits hold; return its result.

    Parameters
    ----------
    call : callable
        If an interrupt or a limit ends the caller, it goes on, see :func:`in_a_thread`. A process does not
        end before that, as native code would go on without its data.
    """
    if current_thread() is not main_thread() and not is_looked_at():
        return call()

    def alone() -> ResultT:
        # What it calls is to stay in this thread, which holds the compiler's locks.
        with looking_at(None):
            return call()

    return in_a_thread(alone, daemon=False, meanwhile=checkpoint)


def may_end_here() -> None:
    """End the work of this thread if nobody waits for it any more, by raising :class:`Abandoned`."""
    ends = _ends.get()
    if ends is not None and ends():
        raise Abandoned
