"""Work on items by several threads, whose results come in the order of the items."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from contextvars import copy_context
from typing import Final, TypeVar

from confidence.budget import checkpoint

__all__ = ["in_order"]

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

_WAIT_SECONDS: Final = 0.05
"""For so long the caller waits for a result before it looks at its limits."""


def in_order(
    threads: int, items: Iterable[ItemT], work: Callable[[ItemT], ResultT]
) -> Generator[ResultT, None, None]:
    """Yield the result of some work on each item, in their order.

    The caller's thread makes the items. Meanwhile others work on those before, at most one more than there
    are threads: so many are in memory. With one thread the caller works itself.

    Raises
    ------
    Exception
        What the work, or the next item, raises, when its turn comes: behind the results of the items before.
        No thread works on then, nor when the caller has closed the iterator.
    """
    if threads < 2:
        yield from map(work, items)
        return
    waiting: deque[Future[ResultT]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            more, failure = iter(items), None
            while True:
                try:
                    item = next(more)
                except StopIteration:
                    break
                except Exception as error:
                    failure = error
                    break
                waiting.append(pool.submit(copy_context().run, work, item))
                if len(waiting) > threads:
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())
            if failure is not None:
                raise failure
        finally:
            for future in waiting:
                future.cancel()


def _result(future: Future[ResultT]) -> ResultT:
    while True:
        try:
            return future.result(_WAIT_SECONDS)
        except NotYetError:
            if future.done():
                # The work itself has raised it.
                raise
            checkpoint()
