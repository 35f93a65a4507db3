"""How kernels that come back describe matches one by one, in work arrays that grow as matches need them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.chain.tick_pairs import enlarged
from confidence.gaps.chains import Forbidden, Workspace, room_for, workspace

__all__ = [
    "ALL",
    "COSTLY",
    "PAUSED",
    "SPACE",
    "CostlyMatchError",
    "Described",
    "Space",
    "describe_each",
    "numbered",
]

Described = tuple[int, int, Sequence[int]]
"""The matches done, ALL, COSTLY, SPACE or PAUSED, and what :meth:`Space.grow` takes or the steps."""

ALL: Final = 0
"""All matches are described."""

COSTLY: Final = 1
"""A match takes too many steps."""

SPACE: Final = 2
"""The work arrays are too small for a match."""

PAUSED: Final = 3
"""The budget of the call is spent."""


_NO_EVENTS: Final = np.zeros(0, dtype=np.int64)


class CostlyMatchError(ValueError):
    """The confidence of a match takes too many steps.

    Attributes
    ----------
    match : int
        Which of those given.
    steps : int
    events : (l,) int64
        The numbers of its events, where the caller cannot tell them by the match; else empty.
    limit : float
        The most steps, or cells of a table, for one match; 0 if it is the caller's.
    """

    def __init__(
        self, match: int, steps: int, events: NDArray[np.int64] = _NO_EVENTS, limit: float = 0.0
    ) -> None:
        self.match = match
        self.steps = steps
        self.events = events
        self.limit = limit
        super().__init__(f"match {match} takes {steps} steps")


@contextmanager
def numbered(which: NDArray[np.int64]) -> Iterator[None]:
    """Raise :class:`CostlyMatchError` with the number that a match has among all.

    ``which``, (k,), are these numbers of the matches described.
    """
    try:
        yield
    except CostlyMatchError as error:
        raise CostlyMatchError(int(which[error.match]), error.steps, error.events, error.limit) from None


class Space:
    """Work arrays that grow as matches need them.

    Attributes
    ----------
    work : Workspace
    forbidden : Forbidden
    """

    work: Workspace
    forbidden: Forbidden

    def __init__(self, length: int = 8) -> None:
        self._sizes: tuple[int, ...] = (length, 1024, 64, 64)
        self.grow(self._sizes)

    def grow(self, need: Sequence[int]) -> None:
        """Make room for the events of a match, edges, ticks and forbidden events; 0 asks for nothing."""
        self._sizes = enlarged(self._sizes, need)
        length, edges, ticks, events = self._sizes
        checkpoint(16 * edges + 24 * length * (ticks + 4 * events))
        self.work = workspace(length, edges, ticks, events)
        self.forbidden = room_for(events, length + 2)


def describe_each(
    call: Callable[[int], Described],
    grow: Callable[[Sequence[int]], None],
    declined: Callable[[int, float], None] | None = None,
) -> None:
    """Call a kernel until all matches are described.

    Parameters
    ----------
    call : callable
        Goes on with the match given.
    grow : callable
        Makes room for the match that the kernel came back with.
    declined : callable or None
        Takes a match that takes too many steps, and how many; the next one follows.

    Raises
    ------
    CostlyMatchError
        If a match takes too many steps, and ``declined`` is None.
    """
    done, reason = 0, PAUSED
    while reason != ALL:
        done, reason, need = call(done)
        if reason == PAUSED:
            checkpoint()
        elif reason == COSTLY:
            if declined is None:
                raise CostlyMatchError(done, need[0])
            declined(done, float(need[0]))
            done += 1
        elif reason == SPACE:
            grow(need)
