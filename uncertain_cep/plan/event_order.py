"""The order that a pattern asks of the events of a match: one sequence, or sets among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.query.branches import PartialOrder

__all__ = ["EventOrder", "InSequence", "InSets"]

Int64 = NDArray[np.int64]
Sides = tuple[list[int], list[int]]


@dataclass(frozen=True, slots=True)
class InSequence:
    """All events of a component come before those of the next one."""

    kleene: tuple[bool, ...]
    gap_after: tuple[int, ...]
    """How many components stand before each negated one."""

    is_chain = True
    """Whether the events of a match follow one another in the order of the components."""
    coupling = "several events must stay out of more than one of its gaps, which couples them"
    """The cause of a confidence that takes too many steps."""

    @property
    def before(self) -> tuple[int, ...]:
        """For each component the bits of those whose events come before all of its own."""
        return tuple((1 << j) - 1 for j in range(len(self.kleene)))

    @property
    def is_set(self) -> tuple[bool, ...]:
        """Whether each component stands in AND."""
        return (False,) * len(self.kleene)

    @property
    def search_before(self) -> tuple[int, ...] | None:
        """The bits of :attr:`before` for a search in sets; None for one that follows the pattern."""
        return None

    @property
    def least_span(self) -> int:
        """The ticks of the shortest match: no two of its events share one."""
        return len(self.kleene)

    @property
    def touches_end(self) -> bool:
        """Whether a gap that must stay free lies before the first or behind the last event."""
        return any(after in (0, len(self.kleene)) for after in self.gap_after)

    def ticks_before_first(self, window: int) -> int:
        """Return by how many ticks an event can be before that of the first component."""
        del window
        return 0

    def least_apart(self) -> Int64:
        """Return the ticks by which each component follows another at least, (l, l) int64; 0: it need not."""
        places = np.arange(len(self.kleene))
        apart: Int64 = np.maximum(places[None, :] - places[:, None], 0)
        return apart

    def precedences(self, start: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield pairs of events, the first before the second, as ``start`` numbers those of components."""
        yield from pairwise(range(start[-1]))

    def gap_ends(self, number: int, start: Sequence[int]) -> Sides:
        """Return the events that end the gap of a negation behind them, and before them; none at an end."""
        after = self.gap_after[number]
        end = start[after]
        return ([end - 1] if after else []), ([end] if after < len(self.kleene) else [])

    def is_beside(self, number: int) -> bool:
        """Return whether a negation stands beside a set, where conditions on times alone bound it."""
        del number
        return False

    def sides_of_gap(self, number: int) -> tuple[int, int]:
        """Return the bits of the components whose events all come before a gap, and those of the next ones.

        Of the latter the first event is behind it. 0 and 0 if a partial match cannot tell.
        """
        after = self.gap_after[number]
        return (1 << after - 1, 1 << after) if 0 < after < len(self.kleene) else (0, 0)


@dataclass(frozen=True, slots=True)
class InSets:
    """Components of AND are in any order."""

    kleene: tuple[bool, ...]
    order: PartialOrder

    is_chain = False
    coupling = (
        "its sets have many events, or an event is forbidden in several of its gaps or in one beside other "
        "events"
    )

    @property
    def before(self) -> tuple[int, ...]:
        """See :class:`InSequence`, as for all that follows."""
        return self.order.before

    @property
    def is_set(self) -> tuple[bool, ...]:
        """Whether each component stands in AND."""
        return self.order.is_set

    @property
    def search_before(self) -> tuple[int, ...] | None:
        """The bits of :attr:`before`."""
        return self.order.before

    @property
    def least_span(self) -> int:
        """The ticks of the shortest match: events of a set may share one."""
        return 1

    @property
    def touches_end(self) -> bool:
        """Whether a gap that must stay free lies before the first or behind the last event."""
        return any(gap.place != "between" for gap in self.order.gaps)

    def ticks_before_first(self, window: int) -> int:
        """Return how far events can be ahead: in a set any of them may come first."""
        return window - 1

    def least_apart(self) -> Int64:
        """Return the ticks by which each component follows another at least, by the longest path."""
        length = len(self.kleene)
        apart = np.zeros((length, length), dtype=np.int64)
        for j, earlier in enumerate(self.before):
            for k in range(j):
                if earlier >> k & 1:
                    path = np.where(apart[:, k] > 0, apart[:, k] + 1, 0)
                    path[k] = 1
                    apart[:, j] = np.maximum(apart[:, j], path)
        return apart

    def precedences(self, start: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield pairs of events: neighbours in a list, and all of those of components in order."""
        spans = [range(*ends) for ends in pairwise(start)]
        chained = [kleene and not free for kleene, free in zip(self.kleene, self.is_set, strict=True)]
        for j, events in enumerate(spans):
            if chained[j]:
                yield from pairwise(events)
            for i, earlier in enumerate(spans):
                if self.before[j] >> i & 1:
                    for early in earlier[-1:] if chained[i] else earlier:
                        for late in events[:1] if chained[j] else events:
                            yield early, late

    def gap_ends(self, number: int, start: Sequence[int]) -> Sides:
        """Return the events that end the gap of a negation behind them, and before them; none at an end."""
        gap = self.order.gaps[number]

        def events(components: int) -> list[int]:
            spans = enumerate(pairwise(start))
            return [event for j, ends in spans if components >> j & 1 for event in range(*ends)]

        behind = [] if gap.place == "leading" else events(gap.after)
        return behind, [] if gap.place == "trailing" else events(gap.before)

    def is_beside(self, number: int) -> bool:
        """Return whether a negation stands beside a set, where conditions on times alone bound it."""
        return self.order.gaps[number].place == "beside"

    def sides_of_gap(self, number: int) -> tuple[int, int]:
        """Return the bits of the components on both sides of a gap; 0, 0 if partial matches cannot tell."""
        gap, components = self.order.gaps[number], range(len(self.kleene))
        if gap.place != "between":
            return 0, 0
        # A set that goes on may begin earlier.
        if any(self.kleene[j] and self.is_set[j] for j in components if gap.before >> j & 1):
            return 0, 0
        earlier = gap.after
        for j in components:
            if gap.after >> j & 1:
                earlier |= self.before[j]
        # An event that may be in the gap itself could turn out to be the very event in question.
        later = [j for j in components if gap.before >> j & 1 or self.before[j] & gap.before]
        beside = [j for j in components if not earlier >> j & 1 and j not in later]
        return (0, 0) if beside else (gap.after, gap.before)


EventOrder = InSequence | InSets
