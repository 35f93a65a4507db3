"""The surplus of expected counts where components share events, and how it is taken off again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import Covered, Intervals, merged_intervals, repeated_choices, repeated_uses, running_totals
from confidence.budget import checkpoint, multiplications_per_call, pieces
from confidence.flat_lists import starts_of
from uncertain_cep.candidates.pmfs import ExplicitPmfs, flat_pmfs
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.config.limits import MOST_REPEATED_STEPS
from uncertain_cep.config.tuning import COUNT_BATCH
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.buckets import summed

__all__ = ["Counts", "Segments", "repeated_counts", "shared_rows", "without_repeated"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_MOST_CLOSED: Final = 3
"""Components up to which that is a sum over pairs of ticks of each event."""

STEPS_PER_MATCH: Final = 25.0
"""Steps around events that take as long as looking at a match: measured on one machine."""

LEAST_LEFT: Final = 1e-5
"""Share of a count below which what is left is counted match by match: it may be rounding alone."""


class Counts(NamedTuple):
    """Counts by partition, row or another part, and first tick of a bucket, all (k,)."""

    part: Int64
    bucket: Int64
    value: Float64

    def keep(self, mask: NDArray[np.bool_]) -> Counts:
        """Return the uses where a mask is true."""
        return Counts(self.part[mask], self.bucket[mask], self.value[mask])

    def summed(self) -> Counts:
        """Return each part and bucket once, with the sum of its values."""
        return Counts(*summed(*self))


class Segments:
    """The ticks that candidates cover, partitions one behind the other on one time line."""

    def __init__(self, selection: Selection, shift: Int64) -> None:
        self.lifted: list[tuple[Int64, Int64]] = []
        """The intervals of each component's candidates on that line, each (n_j,) int64."""
        for j, (lower, upper) in enumerate(zip(selection.lower, selection.upper, strict=True)):
            moved = shift[0] if selection.partition is None else shift[selection.partition[j]]
            self.lifted.append((lower + moved, upper + moved))
        lower, upper = map(np.concatenate, zip(*self.lifted, strict=True))
        order = np.argsort(lower, kind="stable")
        starts, stops = np.empty_like(lower), np.empty_like(lower)
        count = merged_intervals(order, lower, upper, starts, stops)
        lengths = stops[:count] - starts[:count]
        places = starts_of(lengths)
        self.covered = Covered(starts[:count].copy(), places)
        self.ticks = int(places[-1]) if lengths.astype(np.float64).sum() < 2**62 else 2**62
        """All covered ticks."""
        self.partition = np.zeros(count, dtype=np.int64)
        """(c,) int64."""
        if selection.partition is not None:
            first = order[np.searchsorted(lower[order], self.covered.starts)]
            self.partition = np.concatenate(selection.partition)[first]


def shared_rows(table: pa.Table, selection: Selection) -> Int64:
    """Return the rows of the events that are candidates of several components, ascending."""
    uses = np.zeros(table.num_rows, dtype=np.int32)
    for part in selection.rows:
        uses[part] += 1
    return np.flatnonzero(uses > 1)


class _Shared(NamedTuple):
    """Shared events by ascending lower bound: which components use them, intervals, partitions, pmfs."""

    uses: NDArray[np.bool_]
    lower: Int64
    upper: Int64
    partition: Int64
    offset: Int64

    @classmethod
    def of(cls, selection: Selection, rows: Int64, segments: Segments, pmfs: ExplicitPmfs | None) -> _Shared:
        uses = np.zeros((len(rows), len(selection.rows)), dtype=np.bool_)
        lower, upper, partition = np.zeros((3, len(rows)), dtype=np.int64)
        for j, candidates in enumerate(selection.rows):
            place = np.minimum(np.searchsorted(rows, candidates), len(rows) - 1)
            own = rows[place] == candidates
            place = place[own]
            uses[place, j] = True
            lower[place], upper[place] = segments.lifted[j][0][own], segments.lifted[j][1][own]
            if selection.partition is not None:
                partition[place] = selection.partition[j][own]
        offset, _ = flat_pmfs(pmfs, rows)
        order = np.argsort(lower, kind="stable")
        return cls(uses[order], lower[order], upper[order], partition[order], offset[order])

    @property
    def apart(self) -> bool:
        """Whether two events may each be used by two components of their own."""
        together = self.uses.T.astype(np.float64) @ self.uses
        pairs = [set(pair) for pair in combinations(range(len(together)), 2) if together[pair]]
        return any(not one & other for one, other in combinations(pairs, 2))

    def steps(self, window: int, every: int, ticks: int) -> Float64:
        """Return about how many steps it takes to count the repeated uses of each, (k,) float64."""
        length = self.uses.shape[1]
        own = (self.upper - self.lower + 1).astype(np.float64)
        if length <= _MOST_CLOSED:
            buckets = window // every + 2 if every else 1
            closed: Float64 = own * np.minimum(own, window) * buckets
            return closed
        used = self.uses.sum(axis=1)
        blocks = np.left_shift(1, used) - used - 1.0
        before = np.append(0.0, np.cumsum(blocks))
        around: Float64 = np.minimum(own + 2.0 * window, ticks) * length * length * blocks
        if not self.apart:
            return around
        # No window is longer than the line, so that these stay within int64.
        longest = int((self.upper - self.lower).max())
        last = np.searchsorted(self.lower, self.upper + window, side="right")
        first = np.searchsorted(self.lower, self.lower - window - longest)
        with_others: Float64 = around * (1.0 + before[last] - before[first])
        return with_others


def repeated_counts(
    plan: EvaluationPlan,
    selection: Selection,
    shared: Int64,
    segments: Segments,
    rates: Float64,
    shift: Int64,
    window: int,
    pmfs: ExplicitPmfs | None,
    whole: float,
) -> Counts | None:
    """Return the count of the uses of one event in several places, by partition and bucket.

    None if that takes too many steps, or longer than looking at the matches.

    Parameters
    ----------
    shared : (k,) int64
        From :func:`shared_rows`, of at most ``MOST_SHARING`` components.
    rates : (l, T) float64
        From :func:`confidence.event_rates`.
    shift : (p,) int64
        By how much each partition is moved on the time line.
    whole : float
        The expected number of matches with repeated uses.
    """
    events = _Shared.of(selection, shared, segments, pmfs)
    every = plan.bound.every or 0
    ticks = (events.upper - events.lower + 1).astype(np.float64)
    boxes = np.ones(len(shared)) if not every else (ticks + window) // every + 3
    most = float(MOST_REPEATED_STEPS)
    if len(rates) > _MOST_CLOSED:
        most = min(most, STEPS_PER_MATCH * whole)
    steps = events.steps(window, every, segments.ticks)
    if steps.sum() > most or boxes.sum() > COUNT_BATCH:
        return None
    pmf = flat_pmfs(pmfs, shared)[1]
    of_events = Intervals(events.lower, events.upper, events.offset), pmf, shift[events.partition]
    closed = len(rates) <= _MOST_CLOSED
    totals = _running_totals(rates) if closed else np.empty((2, 0, 0))
    bits = events.uses @ np.left_shift(1, np.arange(len(rates)))
    sizes = ticks if closed else np.full(len(steps), float(1 << len(rates)))
    none = np.empty(0, dtype=np.int64)
    found = Counts(none, none, np.empty(0))
    for part, begin, end in _parts(steps, sizes):
        room = int(boxes[part].sum())
        out = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
        if closed:
            count = repeated_uses(
                events.uses, *of_events, segments.covered, totals[0], totals[1], window, every, part.start,
                part.stop, begin, end, out,
            )  # fmt: skip
        else:
            count = repeated_choices(
                bits, *of_events, rates, segments.covered, window, every, events.apart, part.start,
                part.stop, begin, end, out,
            )  # fmt: skip
        own = events.partition[out[0][:count]], out[1][:count], out[2][:count]
        found = Counts._make(np.concatenate(pair) for pair in zip(found, own, strict=True)).summed()
    return found


def _running_totals(rates: Float64) -> Float64:
    """Return the sums of rates, (l, T) float64, and of these sums, up to each tick: (2, l, T + 1) float64."""
    length, ticks = rates.shape
    checkpoint(16 * length * (ticks + 1))
    totals = np.empty((2, length, ticks + 1))
    running_totals(rates, totals[0], totals[1])
    return totals


def _parts(steps: Float64, sizes: Float64) -> Iterator[tuple[slice, int, int]]:
    """Yield events, and from where to where to look at each: ranges of an event that takes many steps."""
    for part in pieces(steps):
        size = int(sizes[part].max())
        many = 1 if part.stop - part.start > 1 else math.ceil(steps[part.start] / multiplications_per_call())
        for begin, end in pairwise(size * k // many for k in range(many + 1)):
            checkpoint()
            yield part, begin, end


def without_repeated(
    plan: EvaluationPlan,
    selection: Selection,
    whole: Counts,
    less: Counts,
    counted: Callable[[Selection], Iterator[Counts]],
) -> Counts:
    """Take counts off others; count match by match where hardly anything but rounding is left."""
    every = max(plan.bound.every or 0, 1)
    low = int(min(whole.bucket.min(initial=0), less.bucket.min(initial=0)))
    high = int(max(whole.bucket.max(initial=0), less.bucket.max(initial=0)))
    span = (high - low) // every + 1

    def keys(counts: Counts) -> Int64:
        """Return one number for each partition and bucket, and -1 for buckets that are not asked about."""
        number = (counts.bucket - low) // every
        return np.where((number >= 0) & (number < span), counts.part * span + number, -1)

    given = keys(whole)
    value = whole.value - _sums(keys(less), less.value, given)
    doubtful = value < LEAST_LEFT * whole.value
    kept = [Counts(whole.part, whole.bucket, value).keep(~doubtful)]
    if doubtful.any():
        recounted = counted(_around(plan, selection, whole.keep(doubtful)))
        kept += [found.keep(np.isin(keys(found), given[doubtful])) for found in recounted]
    return Counts(*map(np.concatenate, zip(*kept, strict=True))).summed()


def _sums(keys: Int64, values: Float64, wanted: Int64) -> Float64:
    """Return for each wanted key the sum of the values of that key."""
    distinct, number = np.unique(keys, return_inverse=True)
    sums = np.append(np.bincount(number, values, len(distinct)), 0.0)
    place = np.minimum(np.searchsorted(distinct, wanted), max(len(distinct) - 1, 0))
    known = distinct[place] == wanted if len(distinct) else np.zeros(len(wanted), dtype=np.bool_)
    return sums[np.where(known, place, len(distinct))]


def _around(plan: EvaluationPlan, selection: Selection, counts: Counts) -> Selection:
    """Return the candidates with those first events that some counts may be about."""
    partition = np.zeros(1, dtype=np.int64) if selection.partition is None else selection.partition[0]
    first = np.isin(np.broadcast_to(partition, len(selection.rows[0])), counts.part)
    if plan.bound.every is not None:
        begin, end = counts.bucket.min(), counts.bucket.max() + plan.bound.every
        first &= (selection.upper[0] >= begin) & (selection.lower[0] < end)
    return selection.with_first(first)
