"""The query as a join, for engines that know tables and not patterns.

Order and window are conditions on pairs. With 0-based components of l, events
fill them iff for all i < j ``lower_i + (j - i) <= upper_j`` and ``lower_j <= upper_i + (W - l) + (j - i)``,
and no event fills two. A chain of joins need not carry all bounds on: going forward, two numbers of a partial
match say everything about the next event c, namely ``c.upper >= earliest`` and ``c.lower <= latest``; going
backward ``c.lower <= latest`` and ``c.upper >= earliest``. So each join has exactly the two inequalities
that a range join takes, and only distinctness is left as a filter.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PeerQuery"]


@dataclass(frozen=True, slots=True)
class PeerQuery:
    """The parts of a query that a peer's formulations need.

    Attributes
    ----------
    divisors : tuple of int
        Component j selects the values that ``divisors[j]`` divides.
    window : int
        W, in ticks.
    interval_lengths : tuple of int
        The values of ``upper - lower`` in the stream, ascending.
    """

    divisors: tuple[int, ...]
    window: int
    interval_lengths: tuple[int, ...]

    @property
    def length(self) -> int:
        """Number of components."""
        return len(self.divisors)

    @property
    def slack(self) -> int:
        """Ticks of the window that the order leaves free, ``W - l``."""
        return self.window - self.length
