"""The common part of incremental methods: candidates, order of feeding, runs, finality, compaction.

A method is an order in which candidates are fed to the runs (:class:`AnyState`: as they arrive;
`selectivity`: held back until every component has some, the rarest first; `query_order`: sorted). All else is
here: the pools, what is final, what is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.config import EVER, NEVER
from confidence.pools import AttributeValues, repeated
from eventbased.gaps.next_match import NextConfidences
from eventbased.gaps.next_pool import describe_next
from eventbased.incremental.candidate_pool import (
    COMPONENT,
    LOWER,
    PARTITION,
    UPPER,
    CandidatePool,
    OneEvent,
    RunBytecode,
)
from eventbased.incremental.completed import Matches, Pending, describe
from eventbased.incremental.run_pool import MOST_COMPONENTS, RunPool

__all__ = ["AnyState", "IncrementalMethod", "around"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

_LONGEST_WINDOW: Final = 2**62
"""Largest ``W - l`` that matters: times differ by less."""

PART_ROWS: Final = 1 << 16
"""Candidates fed before what became useless is dropped."""

SETTLED_ROWS: Final = 1024
"""Rows of the pools below which compacting them is not worth a pass."""


_by_time: Final = attrgetter("lower")


class IncrementalMethod:
    """Skip till any match over events that arrive in any order their bounds allow.

    Parameters
    ----------
    length : int
        Components of the pattern, 2 to ``MOST_COMPONENTS``.
    window : int
        W, ticks, at least ``length``.
    bytecode : RunBytecode, optional
        Predicates across components.
    confidence : bool
        Whether to compute confidences.
    longest : int
        Most ticks that a match with an explicit pmf may reach over.
    following : NextConfidences, optional
        For skip till next match: signatures then wait until no unseen event can lie before their last
        time, and candidates are kept as long as they may be forbidden in one.

    Notes
    -----
    State is bounded by what is in reach of the window of the unseen events (paper, C.2): a pass that lets
    go of the rest runs whenever the pools have doubled, or ``safe`` has moved on by half that reach.
    """

    def __init__(
        self,
        length: int,
        window: int,
        bytecode: RunBytecode | None = None,
        *,
        confidence: bool = True,
        longest: int = EVER,
        following: NextConfidences | None = None,
    ) -> None:
        if not 2 <= length <= MOST_COMPONENTS or window < length:
            raise ValueError(f"{length} components within {window} ticks: 2 to {MOST_COMPONENTS}, in W")
        self.length = length
        self.w = min(window - length, _LONGEST_WINDOW)
        self.pool = CandidatePool(RunBytecode.none() if bytecode is None else bytecode)
        self.runs = RunPool(length, self.w, self._prefixes)
        self.safe = NEVER
        self._confidence = confidence
        self._longest = longest
        self._following = following
        self._pending = None if following is None else Pending(length)
        self._partitions = 0
        self._reach = 0
        self._tidied_at = NEVER
        self._settled = 0

    _prefixes = False
    _holds_back = False
    """Whether :meth:`_release` may return something."""

    def _arrive(self, indices: Int64, floor: Int64) -> tuple[Int64, Int64]:
        """Take candidates by ascending lower bound; return which to feed now, with floors: at first all.

        No candidate from the i-th on, nor any unseen event, has a lower bound below ``floor[i]``; what is
        returned is for :func:`eventbased.incremental.run_pool.feed`.
        """
        return indices, around(floor)

    def _waiting(self) -> Int64:
        """Return the indices of the candidates held back, (k,) int64."""
        return np.zeros(0, dtype=np.int64)

    def _follow(self, mapping: Int64) -> None:
        """Follow candidates held back to their new indices."""

    def _admit(self, partitions: int) -> None:
        """Make room for more partitions."""

    def _release(self) -> tuple[Int64, Int64]:
        """Return the candidates held back that ``safe`` releases, as :meth:`_arrive` does."""
        return np.zeros(0, dtype=np.int64), np.zeros((0, 2), dtype=np.int64)

    def _drop_out_of_date(self, safe: int) -> None:
        """Forget candidates held back that no match can have any more, given the bound on what is to come."""

    @property
    def size(self) -> int:
        """Candidates, runs and pending signatures held now."""
        return self.pool.count + self.runs.size + (0 if self._pending is None else self._pending.size)

    def push(
        self,
        component: Int64,
        partition: Int64,
        lower: Int64,
        upper: Int64,
        event: Int64,
        pmf_offset: Int64,
        pmf: Float64,
        values: AttributeValues | None = None,
        *,
        safe: int | None = None,
    ) -> Iterator[Matches]:
        """Take events, and yield the matches that became final in parts: memory is that of the state and one.

        Parameters
        ----------
        component, partition : (k,) int64
            One row for each event and component that can take it; partitions are numbered densely.
        lower, upper : (k,) int64
            Ticks, inclusive; no lower bound is below the ``safe`` of earlier calls.
        event : (k,) int64
            Number of the event; an event's rows are pushed together.
        pmf_offset : (k,) int64, pmf : (m,) float64
            Where the probabilities of an event start; -1 for uniform.
        values : AttributeValues, optional
            What predicates read of the rows.
        safe : int, optional
            What :meth:`advance` would be told right afterwards, ticks. Told here, runs are forgotten while
            the events are fed and not only then.

        Raises
        ------
        LongChainError
            If a match with an explicit pmf reaches over too many ticks.
        """
        if safe is not None:
            self.safe = max(self.safe, safe)
        if not len(component):
            yield from self._advance()
            return
        # Any order of feeding is right; by lower bound, those fed before soon are out of reach.
        by_time = np.argsort(lower, kind="stable")
        floor = np.full(len(lower) + 1, self.safe)
        floor[:-1] = np.minimum(lower[by_time], self.safe)
        self._make_room(int((upper - lower).max()), int(partition.max()) + 1)
        shared = repeated(event)
        for start in range(0, len(by_time), PART_ROWS):
            part = by_time[start : start + PART_ROWS]
            indices = self.pool.append(
                component[part], partition[part], lower[part], upper[part], event[part], shared[part],
                pmf_offset[part], pmf, None if values is None else values.of(part),
            )  # fmt: skip
            yield from self._take(indices, floor[start : start + len(part) + 1])

    def push_few(self, events: Sequence[OneEvent], safe: int) -> Iterator[Matches]:
        """Do what :meth:`push` does for few events, without arrays of their values."""
        self.safe = max(self.safe, safe)
        floor: list[int] = []
        first = self.pool.count
        for event in sorted(events, key=_by_time):
            self._make_room(event.upper - event.lower, max(event.partitions) + 1)
            self.pool.append_event(event)
            floor += [min(event.lower, self.safe)] * len(event.components)
        floor.append(self.safe)
        return self._take(np.arange(first, self.pool.count), np.array(floor))

    def advance(self, safe: int) -> Iterator[Matches]:
        """Learn that no unseen event has ``lower < safe`` (ticks); yield the matches that became final.

        At last it is told ``EVER``.
        """
        self.safe = max(self.safe, safe)
        yield from self._advance()

    def learn(self, safe: int) -> bool:
        """Learn what :meth:`advance` is told; return whether that would do anything more."""
        self.safe = max(self.safe, safe)
        return self._holds_back or self._pending is not None or self._worth_a_pass(self.safe)

    def forget(self, partition: Int64) -> None:
        """Forget partitions that nothing is held of, so that their numbers can stand for others.

        Parameters
        ----------
        partition : (k,) int64
            Not :meth:`in_use`.
        """

    def in_use(self) -> Mask:
        """Return for each partition whether anything of it is held, (partitions,) bool."""
        used = np.zeros(self._partitions, dtype=np.bool_)
        used[self.pool.candidates[PARTITION, : self.pool.count]] = True
        return used

    def _make_room(self, longest: int, partitions: int) -> None:
        """Make room for partitions, and for events whose intervals have at most a length, ticks."""
        self._reach = max(self._reach, self.w + longest)
        if partitions > self._partitions:
            self._partitions = partitions
            self.runs.admit(partitions)
            self._admit(partitions)

    def _take(self, indices: Int64, floor: Int64) -> Iterator[Matches]:
        """Take appended candidates, see :meth:`_arrive`, and yield the matches that became final."""
        order, bounds = self._arrive(indices, floor)
        rest = int(floor[-1])
        yield from self._feed(order, bounds, rest)
        if self._pending is not None:
            yield from self._described(self._pending.release(rest))
        self._tidy(rest)

    def _advance(self) -> Iterator[Matches]:
        yield from self._feed(*self._release(), self.safe)
        if self._pending is not None:
            yield from self._described(self._pending.release(self.safe))
        self._tidy(self.safe)

    def _feed(self, order: Int64, floor: Int64, safe: int) -> Iterator[Matches]:
        """Feed candidates; nothing that comes behind them has a lower bound below ``safe``."""
        done = 0
        behind: Int64 | None = None
        while done < len(order):
            checkpoint()
            done, wants_room, completed = self.runs.feed(
                order, done, floor, self.pool.candidates, self.pool.bytecode
            )
            if self._pending is None:
                yield from self._described(completed)
            else:
                self._pending.add(completed)
            if wants_room:
                if behind is None:
                    # What waits, and what is to be fed, is the same until the end: looked at once.
                    behind, rest = self._floor(safe), self._smallest_from(order)
                if self.runs.size >= self._partitions:
                    self.runs.evict_dead(np.minimum(behind, rest[done]))
                self.runs.make_room(int(order[done]), self.pool.candidates)

    def _smallest_from(self, order: Int64) -> Int64:
        """Return the smallest lower bound from each candidate of an order on, (n,) int64, ticks."""
        pool = self.pool.candidates
        lower = pool[LOWER, order] + pool[COMPONENT, order]
        return np.minimum.accumulate(lower[::-1])[::-1]

    def _described(self, completed: Int64) -> Iterator[Matches]:
        if self._following is not None and len(completed):
            yield describe_next(completed, self.pool, self.length, self._partitions, self._following)
        elif len(completed):
            yield describe(completed, self.pool, self.w, confidence=self._confidence, longest=self._longest)

    def _floor(self, safe: int) -> Int64:
        """Return for each partition a bound on what waits there and what is still to come, ticks."""
        floor = np.full(self._partitions, safe)
        waiting = self.pool.candidates[:, self._waiting()]
        np.minimum.at(floor, waiting[PARTITION], waiting[LOWER] + waiting[COMPONENT])
        return floor

    def _tidy(self, safe: int) -> None:
        """Drop what is out of reach of what is still to come, if a pass is worth it."""
        if self._worth_a_pass(safe):
            self._evict(safe)

    def _worth_a_pass(self, safe: int) -> bool:
        size = self.size
        if safe == EVER or size > 2 * self._settled + SETTLED_ROWS:
            return True
        # So it is as well once most of what a larger state was made for is out of reach.
        if safe == NEVER or size <= SETTLED_ROWS + self._partitions:
            return False
        return self._tidied_at == NEVER or safe - self._tidied_at > self._reach // 2

    def evict(self) -> None:
        """Drop all that is out of reach now, worth a pass or not. O(size + partitions)."""
        self._evict(self.safe)

    def _evict(self, safe: int) -> None:
        self._drop_out_of_date(safe)
        self.runs.evict_dead(self._floor(safe))
        used = np.zeros(self.pool.count, dtype=np.bool_)
        self.runs.mark(used)
        used[self._waiting()] = True
        if self._pending is not None:
            self._pending.mark(used)
            pool = self.pool.candidates[:, : self.pool.count]
            upper = pool[UPPER] + pool[COMPONENT]
            used |= upper > self._horizon(safe)
        mapping = self.pool.compact(used)
        self.runs.move(mapping)
        self._follow(mapping)
        if self._pending is not None:
            self._pending.move(mapping)
        self._tidied_at = safe
        self._settled = self.size + self._partitions

    def _horizon(self, safe: int) -> int:
        """Return the earliest first time of any match not final yet, ticks."""
        assert self._pending is not None
        waiting = self._waiting()
        earliest = [safe, self.runs.earliest(), self._pending.earliest()]
        if len(waiting):
            earliest.append(int(self.pool.candidates[LOWER, waiting].min()) - self.w)
        return min(time for time in earliest if time is not None)


def around(bound: Int64) -> Int64:
    """Return for each of n events the floors before and behind it, (n, 2), from those between: (n + 1,)."""
    floors = np.empty((len(bound) - 1, 2), dtype=np.int64)
    floors[:, 0], floors[:, 1] = bound[:-1], bound[1:]
    return floors


class AnyState(IncrementalMethod):
    """Runs over events in the order of arrival: a match comes out with the event that completes it.

    A run may begin at any component and fill any next (Zhang, Diao, Immerman, PVLDB 3(1), 2010, sections 4.2
    and C.2).
    """
