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
from typing import Final, Generic, TypeVar

__all__ = ["Abandoned", "Failure", "ending_when", "may_end_here", "uninterrupted"]

ResultT = TypeVar("ResultT")

_WAIT_SECONDS: Final = 0.05
"""On Windows an interrupt is seen between two waits only."""


class Abandoned(BaseException):
    """Ends work that nobody waits for; no Exception, so that nothing within takes it for a fault."""


class Failure:
    """What a call raised."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class _Work(Generic[ResultT]):
    """A call in a thread of its own, and what has become of it."""

    def __init__(self, call: Callable[[], ResultT]) -> None:
        self.abandoned = False
        self._call = call
        # Not the thread's join: to interrupt that makes Python take the thread for one that has ended.
        self._results: SimpleQueue[ResultT | Failure] = SimpleQueue()

    def start(self) -> None:
        """Begin the call."""
        Thread(target=copy_context().run, args=(self._run,)).start()

    def _run(self) -> None:
        try:
            with ending_when(lambda: self.abandoned):
                self._results.put(self._call())
        except BaseException as error:
            self._results.put(Failure(error))

    def result(self) -> ResultT:
        """Wait for what the call returns, or raise what it raised."""
        while True:
            with suppress(Empty):
                result = self._results.get(timeout=_WAIT_SECONDS)
                break
        if isinstance(result, Failure):
            raise result.error
        return result


_ends: Final[ContextVar[Callable[[], bool] | None]] = ContextVar("ends", default=None)


@contextmanager
def ending_when(ends: Callable[[], bool]) -> Iterator[None]:
    """Have :func:`may_end_here` end the work of this thread in this context when ``ends`` returns True."""
    token = _ends.set(ends)
    try:
        yield
    finally:
        _ends.reset(token)


def uninterrupted(call: Callable[[], ResultT]) -> ResultT:
    """Return what a call returns, made where no interrupt is raised.

    Parameters
    ----------
    call : callable
        If an interrupt ends the caller, it goes on for nobody until it is over or :func:`may_end_here` ends
        it. A process does not end before that, as native code would go on without its data.
    """
    if current_thread() is not main_thread():
        return call()
    work = _Work(call)
    try:
        work.start()
        return work.result()
    except BaseException:
        work.abandoned = True
        raise


def may_end_here() -> None:
    """End the work of this thread if nobody waits for it any more, by raising :class:`Abandoned`."""
    ends = _ends.get()
    if ends is not None and ends():
        raise Abandoned
