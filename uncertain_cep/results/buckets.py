"""Matches apart by the bucket that their first time lies in: boxes around the times of their events.

The first time of a match is in ``[s, e)`` iff some event that nothing of the match comes before is there and
none is earlier. Taken by the first such event in the order of the pattern, that is a sum over boxes: those
before it that could be first are at ``e`` or later, it is in ``[s, e)``, the others are at ``s`` or later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.predicates.conditions import Scratch
from uncertain_cep.config import COUNT_BATCH
from uncertain_cep.operators.backtracking import Growth
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import ExecutionContext
from uncertain_cep.operators.partial_orders import Choosing
from uncertain_cep.operators.search import Matches, Search, grown_chunks

__all__ = ["BucketedMatches", "Counts", "by_bucket", "evaluate_bucketed"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

EVER: Final = 2**62


class Counts(NamedTuple):
    """Counts by partition, row or another part, and first tick of a bucket, all (k,)."""

    part: Int64
    bucket: Int64
    value: Float64

    def keep(self, mask: NDArray[np.bool_]) -> Counts:
        """Return those where a mask is true."""
        return Counts(self.part[mask], self.bucket[mask], self.value[mask])

    def summed(self) -> Counts:
        """Return each part and bucket once, with the sum of its values."""
        if not len(self.part):
            return self
        order = np.lexsort((self.bucket, self.part))
        part, bucket = self.part[order], self.bucket[order]
        first = np.flatnonzero(np.r_[True, (part[1:] != part[:-1]) | (bucket[1:] != bucket[:-1])])
        return Counts(part[first], bucket[first], np.add.reduceat(self.value[order], first))

    @classmethod
    def joined(cls, parts: Iterable[Counts]) -> Counts:
        """Return several counts as one."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))


class BucketedMatches(NamedTuple):
    """Matches, each once for every box."""

    matches: Matches
    boxes: Int64
    """(2, m) int64. First and last tick that is asked of each event."""
    bucket: Int64
    """(k,) int64. First tick of the bucket."""


def by_bucket(
    matches: Matches, first: NDArray[np.bool_], lower: Int64, upper: Int64, every: int, most: int
) -> Iterator[BucketedMatches]:
    """Yield matches once for each box that a bucket of their first time takes.

    Parameters
    ----------
    first : (m,) bool
        For each event of the matches whether none of its match comes before it; one at least in each.
    lower, upper : (n,) int64
        Intervals by place, ticks.
    every : int
        Length of a bucket, ticks; one starts at every multiple.
    most : int
        About how many boxes to yield at once.
    """
    start, place, component = matches
    sizes = np.diff(start)
    candidates = np.add.reduceat(first.astype(np.int64), start[:-1])
    running = np.cumsum(first)
    rank = running - 1 - np.repeat((running - first)[start[:-1]], sizes)
    low = np.minimum.reduceat(lower[place], start[:-1])
    # No first time is later than any event of the match can be.
    high = np.minimum.reduceat(upper[place], start[:-1])
    number = low // every
    boxes = (high // every - number + 1) * candidates
    ends = np.cumsum(boxes)
    begin = 0
    while begin < len(sizes):
        end = max(begin + 1, int(np.searchsorted(ends, ends[begin] + most)))
        part = np.arange(begin, end)
        begin = end
        match = np.repeat(part, boxes[part])
        turn = np.arange(len(match)) - np.repeat(np.cumsum(boxes[part]) - boxes[part], boxes[part])
        many = candidates[match]
        bucket = (number[match] + turn // many) * every
        new = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes[match])))
        event = np.repeat(start[match] - new[:-1], sizes[match]) + np.arange(new[-1])
        begins = np.repeat(bucket, sizes[match])
        ends_at = np.full(len(event), EVER)
        chosen = np.repeat(turn % many, sizes[match])
        own = first[event] & (rank[event] == chosen)
        ends_at[own] = begins[own] + every - 1
        begins[first[event] & (rank[event] < chosen)] += every
        boxes_of = np.stack((begins, ends_at))
        yield BucketedMatches((new, place[event], component[event]), boxes_of, bucket)


def evaluate_bucketed(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield P(match and first time in a bucket), summed over some of the matches with the same first event.

    A batch has one component, the row of the event of the first component; the bucket's first tick stands for
    the range. There is a confidence for each match and bucket that its first time can lie in. The query is
    one with ``RETURN EXPECTED COUNT EVERY``, without OR; the context asks for rows and confidences.
    """
    search = _BucketedGrowth if context.plan.order is None else _BucketedChoosing
    yield from grown_chunks(search, context)


class _SharedOut(Search):
    """Matches, shared out among buckets."""

    def _chunk(self, matches: Matches, work: Scratch) -> MatchBatch:
        every = self._plan.bound.every
        assert self._context.payload is None
        assert every is not None
        lower, upper = self._lower - self._base, self._upper - self._base
        parts = []
        for piece in by_bucket(matches, self.firsts(matches), lower, upper, every, COUNT_BATCH):
            start, place, _ = piece.matches
            confidence = self._described(piece.matches, True, work, piece.boxes)[2]
            parts.append(Counts(self._rows[place[start[:-1]]], piece.bucket, confidence).summed())
        events, bucket, value = Counts.joined(parts)
        return MatchBatch(events[None, :], bucket, bucket, value).keep(value > 0.0)


class _BucketedGrowth(_SharedOut, Growth):
    """Those of a linear pattern."""


class _BucketedChoosing(_SharedOut, Choosing):
    """Those of a pattern with AND."""
