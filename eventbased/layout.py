"""Candidates of the components, laid out for joins and searches: one time line, classes of interval length.

Partitions are lifted onto one time line, each behind the one before by more than the window, so that
no order or window condition can hold across two of them and nothing needs a notion of a partition.

This is where times are converted on their way in: the shift of the partition is added and, where sequences
are joined, the position of the component taken off (:data:`eventbased.config.POSITION_STEP`). What describes
matches converts them back.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import POSITIVE, kernel
from confidence.large_arrays import empty
from eventbased.config import POSITION_STEP, SPARE

__all__ = ["Candidates", "Concatenated", "SharedEvents", "fill_follow", "lay_out", "partition_bases"]

Int64 = NDArray[np.int64]

_CLASS_RATIO_BITS: Final = 2
"""Intervals of one length class differ in length by at most a factor of 2 to this power."""

_CLASS_MERGE_EVENTS: Final = 4.0
"""Two length classes are merged while a search then passes at most about this many more events."""


class Candidates(NamedTuple):
    """The n candidates of the components, sorted by component, class and ``lower``."""

    first_class: Int64
    """(l + 1,) int64. Classes of component j: ``first_class[j] .. first_class[j + 1] - 1``."""
    class_start: Int64
    class_stop: Int64
    """(c,) int64. Where the candidates of a class are."""
    class_shortest: Int64
    class_longest: Int64
    """(c,) int64. Smallest and largest ``upper - lower`` of a class."""
    lower: Int64
    upper: Int64
    """(n + SPARE,) int64. Interval bounds on the time line, ticks, inclusive, with ``position`` taken off;
    ascending ``lower`` within a class."""
    highest: Int64
    """(n + SPARE,) int64. Running maximum of ``upper`` within the class."""
    follow_start: Int64
    follow: Int64
    """follow_start (c,) int64; follow (f,) int64. For class c of component j >= 2 and a candidate i of
    component j - 1, ``follow[follow_start[c] + i]`` is the first candidate of c with ``upper >= lower[i]``,
    were all its intervals as long as the longest."""
    source: Int64
    """(n + SPARE,) int64. Of each candidate, its index among the candidates of its component as they were
    given."""
    base: Int64
    """(n + SPARE,) int64. What was added to bring the partition onto the time line."""
    first: Int64
    """(l + 1,) int64. Where the candidates of each component start."""
    position: Int64
    """(l,) int64. What was taken off the times of each component."""

    def check(self) -> None:
        """Assert the invariants that the join relies on."""
        for c in range(self.class_start.shape[0]):
            part = slice(int(self.class_start[c]), int(self.class_stop[c]))
            assert np.all(np.diff(self.lower[part]) >= 0)
            lengths = self.upper[part] - self.lower[part]
            assert lengths.min(initial=self.class_shortest[c]) == self.class_shortest[c]
            assert lengths.max(initial=self.class_longest[c]) == self.class_longest[c]
            assert np.array_equal(self.highest[part], np.maximum.accumulate(self.upper[part]))


class SharedEvents(NamedTuple):
    """The events that several components can take."""

    event: Int64
    """(n,) int64. Of each candidate its row of ``twin``; -1 if no other component can take its event."""
    fills: Int64
    """(n + SPARE,) int64. Bit j modulo :data:`eventbased.joins.join_state.COMPONENT_BITS` for each component
    j that has such an event as a candidate, else 0."""
    twin: Int64
    """(s, l) int64. Where such an event is among the candidates of each component; -1 where it is none."""


@kernel
def _partition_bounds(partition, lower, upper, low, high):
    for i in range(partition.shape[0]):
        g = partition[i]
        low[g] = min(low[g], lower[i])
        high[g] = max(high[g], upper[i])


def partition_bases(
    lower: Sequence[Int64],
    upper: Sequence[Int64],
    partition: Sequence[Int64] | None,
    partitions: int,
    gap: int,
    extremes: tuple[int, int] | None = None,
) -> tuple[Int64, int, int]:
    """Return the shift of each partition, the length of the time line, and the ticks it covers.

    Parameters
    ----------
    lower, upper : sequence of (n_j,) int64
        Interval bounds of each component's candidates, ticks; none empty.
    partition : sequence of (n_j,) int64 or None
        Their partition numbers; None if there is one partition.
    partitions : int
    gap : int
        Ticks to leave free between two partitions.
    extremes : tuple of int or None
        The earliest and the latest time of all, if they are known.

    Returns
    -------
    shift : (partitions,) int64
        Added to the times of a partition; not usable if ``line`` is beyond int64.
    line : int
    covered : int
        Ticks between the first and the last time of each partition, summed.
    """
    if partition is None:
        if extremes is None:
            extremes = min(int(part.min()) for part in lower), max(int(part.max()) for part in upper)
        low, high = np.array(extremes, dtype=np.int64).reshape(2, 1)
    else:
        low = np.full(partitions, np.iinfo(np.int64).max)
        high = np.full(partitions, np.iinfo(np.int64).min)
        for numbers, first, last in zip(partition, lower, upper, strict=True):
            _partition_bounds(numbers, first, last, low, high)
        empty = high < low
        low[empty] = high[empty] = 0
    covered = int((high.astype(np.float64) - low + 1.0).sum())
    lengths = high - low + gap
    starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths[:-1])))
    line = covered + gap * (partitions - 1)
    return starts - line // 2 - low if line < 2**63 else starts, line, covered


class Concatenated(NamedTuple):
    """The events that each component can take: numbers of all components in one array each."""

    rows: Int64
    """(k,) int64. Any number for each event, such as its row in a table."""
    lower: Int64
    upper: Int64
    """(k,) int64. Interval bounds, ticks."""
    partition: Int64
    """(k,) int64. Partition numbers; (0,) if there is one partition."""
    begin: Int64
    end: Int64
    """(l,) int64. Those of component j are ``begin[j] .. end[j] - 1``, at least one."""

    @classmethod
    def of(
        cls,
        rows: Sequence[Int64],
        lower: Sequence[Int64],
        upper: Sequence[Int64],
        partition: Sequence[Int64] | None,
    ) -> Concatenated:
        """Put arrays of each component, (n_j,) int64, one behind the other. O(k)."""
        end = np.cumsum([len(part) for part in rows], dtype=np.int64)
        return cls(
            rows=np.concatenate(rows),
            lower=np.concatenate(lower),
            upper=np.concatenate(upper),
            partition=np.empty(0, dtype=np.int64) if partition is None else np.concatenate(partition),
            begin=np.append(0, end[:-1]),
            end=end,
        )


@kernel
def _lift(events, shift, step, out, lengths):
    """Lift all candidates in the order in which they come, and count their length classes.

    Parameters
    ----------
    events : Concatenated
    shift : (partitions,) int64
    step : int64
        What is taken off the times of a component for each component before it.
    out : (6, n + SPARE) int64
        Overwritten: ``lower``, ``upper``, ``base`` and ``source`` of :class:`Candidates`, the rows, and
        ``highest`` as of one class.
    lengths : (l, k + 1, 3) int64
        All 0; how many candidates of each component each class has, and its shortest and longest ``upper -
        lower``; behind the classes, how often a ``lower`` is below the one before.
    """
    out_lower, out_upper, out_base = out[0], out[1], out[2]
    out_source, out_rows, out_highest = out[3], out[4], out[5]
    rows, lower, upper, partition = events.rows, events.lower, events.upper, events.partition
    first = 0
    for j in range(events.begin.shape[0]):
        # From place to place in the events.
        away, stop = events.begin[j] - first, first + events.end[j] - events.begin[j]
        # Loops by themselves, as LLVM makes vectors of most of them then.
        for n in range(first, stop):
            n &= POSITIVE
            out_base[n] = shift[partition[(n + away) & POSITIVE]] if partition.shape[0] else shift[0]
        position = j * step
        for n in range(first, stop):
            n &= POSITIVE
            i = (n + away) & POSITIVE
            moved = out_base[n] - position
            out_lower[n], out_upper[n] = lower[i] + moved, upper[i] + moved
            out_source[n], out_rows[n] = n - first, rows[i]
        falling = 0
        for n in range(first + 1, stop):
            n &= POSITIVE
            falling += out_lower[n] < out_lower[n - 1]
        lengths[j, -1, 0] = falling
        highest = out_upper[first]
        for n in range(first, stop):
            highest = max(highest, out_upper[n])
            out_highest[n] = highest
        n = first
        while n < stop:
            size, begun = out_upper[n] - out_lower[n], n
            while n < stop and out_upper[n] - out_lower[n] == size:
                n += 1
            k = 0
            remainder = size
            while remainder:
                remainder >>= _CLASS_RATIO_BITS
                k += 1
            lengths[j, k, 1] = size if lengths[j, k, 0] == 0 else min(lengths[j, k, 1], size)
            lengths[j, k, 2] = max(lengths[j, k, 2], size)
            lengths[j, k, 0] += n - begun
        first = stop
    out[:, first:] = 0


def _length_classes(lengths: list[list[int]], covered: int) -> list[int]:
    """Return the largest interval length of each class, ascending, merging where a search hardly notices."""
    limits: list[int] = []
    held = 0
    for count, _, longest in lengths:
        if limits and held * (longest - limits[-1]) <= _CLASS_MERGE_EVENTS * covered:
            limits[-1] = longest
            held += count
        else:
            limits.append(longest)
            held = count
    return limits


def _sorted_by_class(lower: Int64, upper: Int64, limits: list[int]) -> tuple[Int64, list[int]]:
    """Return the order by class, then A, and the size of each class."""
    by_time = np.argsort(lower, kind="stable")
    if len(limits) == 1:
        return by_time, [lower.shape[0]]
    kind = np.searchsorted(limits, upper - lower).astype(np.uint8)
    order = by_time[np.argsort(kind[by_time], kind="stable")]
    return order, np.bincount(kind, minlength=len(limits)).tolist()


@kernel
def fill_follow(candidates):
    """Fill ``follow``; both classes ascend, so one pass over the two does it. O(n c)."""
    first_class, lower, follow = candidates.first_class, candidates.lower, candidates.follow
    class_start, class_stop = candidates.class_start, candidates.class_stop
    for j in range(2, first_class.shape[0] - 1):
        for c in range(first_class[j], first_class[j + 1]):
            longest, follows = candidates.class_longest[c], candidates.follow_start[c]
            for before in range(first_class[j - 1], first_class[j]):
                i = class_start[c]
                for k in range(class_start[before], class_stop[before]):
                    while i < class_stop[c] and lower[i] < lower[k] - longest:
                        i += 1
                    follow[follows + k] = i


def _follow_starts(first: Sequence[int], first_class: Sequence[int]) -> tuple[Int64, int]:
    """Return where the followers of each length class start, by candidates, and how many there are."""
    starts = np.zeros(first_class[-1], dtype=np.int64)
    follows = 0
    for j in range(2, len(first) - 1):
        for c in range(first_class[j], first_class[j + 1]):
            starts[c] = follows - first[j - 1]
            follows += first[j] - first[j - 1]
    return starts, follows


def lay_out(
    events: Concatenated, shift: Int64, covered: int, step: int = POSITION_STEP
) -> tuple[Candidates, Int64]:
    """Lay the candidates of all components out on one time line, and return the row of each, (n,) int64.

    Parameters
    ----------
    events : Concatenated
        In any order.
    shift : (partitions,) int64
    covered : int
        Both from :func:`partition_bases`.
    step : int
        Ticks to take off the times of a component for each component before it.

    Notes
    -----
    O(n log n) if some component's events do not come sorted by lower bound or differ much in length,
    else O(n).
    """
    length = len(events.begin)
    first = [0, *np.cumsum(events.end - events.begin).tolist()]
    total = first[-1]
    out = empty((6, total + SPARE))
    counted = np.zeros((length, 64 // _CLASS_RATIO_BITS + 2, 3), dtype=np.int64)
    _lift(events, shift, step, out, counted)
    out_lower, out_upper, base, source, rows, highest = out
    first_class = [0]
    class_start: list[int] = []
    class_shortest: list[int] = []
    class_longest: list[int] = []
    for (start, stop), (*lengths, (falling, _, _)) in zip(pairwise(first), counted.tolist(), strict=True):
        here = slice(start, stop)
        lengths = [own for own in lengths if own[0]]
        limits = _length_classes(lengths, covered)
        sizes = [stop - start]
        as_they_come = not falling and len(limits) == 1
        if not as_they_come:
            order, sizes = _sorted_by_class(out_lower[here], out_upper[here], limits)
            for array in (out_lower, out_upper, base, source, rows):
                array[here] = array[here][order]
        for size, limit in zip(sizes, limits, strict=True):
            class_start.append(start)
            class_longest.append(limit)
            own = slice(start, start + size)
            if as_they_come:
                class_shortest.append(min(shortest for _, shortest, _ in lengths))
            else:
                class_shortest.append(int((out_upper[own] - out_lower[own]).min()))
                np.maximum.accumulate(out_upper[own], out=highest[own])
            start += size
        first_class.append(len(class_start))
    follow_start, follows = _follow_starts(first, first_class)
    laid_out = Candidates(
        first_class=np.array(first_class, dtype=np.int64),
        class_start=np.array(class_start, dtype=np.int64),
        class_stop=np.array([*class_start[1:], total], dtype=np.int64),
        class_shortest=np.array(class_shortest, dtype=np.int64),
        class_longest=np.array(class_longest, dtype=np.int64),
        lower=out_lower,
        upper=out_upper,
        highest=highest,
        follow_start=follow_start,
        follow=empty(follows),
        source=source,
        base=base,
        first=np.array(first, dtype=np.int64),
        position=np.arange(length) * step,
    )
    fill_follow(laid_out)
    return laid_out, rows[:total]
