"""Matches apart by the bucket that their first time lies in: boxes around the times of their events.

The first time of a match is in ``[s, e)`` iff some event that nothing of the match comes before is there and
none is earlier. Taken by the first such event in the order of the pattern, that is a sum over boxes: those
before it that could be first are at ``e`` or later, it is in ``[s, e)``, the others are at ``s`` or later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.flat_lists import counting, taken
from confidence.predicates.conditions import Scratch
from eventbased.search.state import FAR, FoundMatches
from uncertain_cep.config.tuning import COUNT_BATCH
from uncertain_cep.operators.backtracking import BacktrackingSearch, kept, searched
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import ExecutionContext
from uncertain_cep.operators.series import by_component

__all__ = ["BucketedMatches", "by_bucket", "evaluate_bucketed", "summed"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_BYTES: Final = 80
"""What is held for an event of a match and a box, about."""


@dataclass(frozen=True, slots=True)
class BucketedMatches:
    """Matches, each once for every box.

    Attributes
    ----------
    matches : FoundMatches
    boxes : (2, m) int64
        First and last tick that is asked of each event.
    bucket : (k,) int64
        First tick of the bucket.
    """

    matches: FoundMatches
    boxes: Int64
    bucket: Int64


def by_bucket(
    matches: FoundMatches, first: NDArray[np.bool_], lower: Int64, upper: Int64, every: int, most: int
) -> Iterator[BucketedMatches]:
    """Yield matches once for each box that a bucket of their first time takes.

    Parameters
    ----------
    matches : FoundMatches
    first : (m,) bool
        For each event of the matches whether none of its match comes before it; one at least in each.
    lower, upper : (n,) int64
        Intervals of the candidates, ticks.
    every : int
        Length of a bucket, ticks; one starts at every multiple.
    most : int
        About how many events of matches, one of them for each box, to yield at once.
    """
    start, index, component = matches
    sizes = np.diff(start)
    candidates = np.add.reduceat(first.astype(np.int64), start[:-1])
    running = np.cumsum(first)
    rank = running - 1 - np.repeat((running - first)[start[:-1]], sizes)
    low = np.minimum.reduceat(lower[index], start[:-1])
    # No first time is later than any event of the match can be.
    high = np.minimum.reduceat(upper[index], start[:-1])
    number = low // every
    boxes = (high // every - number + 1) * candidates
    ends = np.cumsum(boxes * sizes)
    begin = 0
    while begin < len(sizes):
        end = max(begin + 1, int(np.searchsorted(ends, ends[begin] + most)))
        part = np.arange(begin, end)
        begin = end
        checkpoint(_BYTES * int(boxes[part] @ sizes[part]))
        match = np.repeat(part, boxes[part])
        turn = counting(boxes[part])
        many = candidates[match]
        bucket = (number[match] + turn // many) * every
        event, new = taken(start, match)
        begins = np.repeat(bucket, sizes[match])
        ends_at = np.full(len(event), FAR)
        chosen = np.repeat(turn % many, sizes[match])
        own = first[event] & (rank[event] == chosen)
        ends_at[own] = begins[own] + every - 1
        begins[first[event] & (rank[event] < chosen)] += every
        found = FoundMatches(new, index[event], component[event])
        yield BucketedMatches(found, np.stack((begins, ends_at)), bucket)


def summed(rows: Int64, bucket: Int64, value: Float64) -> tuple[Int64, Int64, Float64]:
    """Add values up by row and bucket: all (k,), and so are the sums but for being fewer."""
    if not len(rows):
        return rows, bucket, value
    order = np.lexsort((bucket, rows))
    rows, bucket = rows[order], bucket[order]
    first = np.flatnonzero(np.r_[True, (rows[1:] != rows[:-1]) | (bucket[1:] != bucket[:-1])])
    return rows[first], bucket[first], np.add.reduceat(value[order], first)


def evaluate_bucketed(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield P(match and first time in a bucket), summed over some of the matches with the same first event.

    Parameters
    ----------
    context : ExecutionContext
        Of a query with ``RETURN EXPECTED COUNT FARY``, without OR; it asks for rows and confidences.

    Yields
    ------
    MatchBatch
        One component, the row of the event of the first component; the bucket's first tick stands for the
        range.

    Notes
    -----
    A confidence for each match and bucket that its first time can lie in.
    """
    yield from searched(_BucketedSearch, context)


class _BucketedSearch(BacktrackingSearch):
    """Matches, shared out among buckets."""

    def _chunk(self, matches: FoundMatches, work: Scratch) -> MatchBatch:
        every = self._plan.bound.every
        assert self._context.payload is None
        assert every is not None
        if self._context.decided is not None:
            matches = self._decided(matches, work, self._context.decided)
        if len(matches.start) == 1:
            none = np.zeros(0, dtype=np.int64)
            return MatchBatch(none[None, :], none, none, none.astype(np.float64))
        lower, upper = self._placed.lower - self._placed.base, self._placed.upper - self._placed.base
        parts = []
        for piece in by_bucket(matches, self.firsts(matches), lower, upper, every, COUNT_BATCH):
            events = self._rows[piece.matches.candidate[piece.matches.start[:-1]]]
            confidence = self._described(piece.matches, True, work, piece.boxes)[2]
            if (exists := self._context.existence) is not None:
                each = exists.probability[self._rows[piece.matches.candidate]]
                confidence = confidence * np.multiply.reduceat(each, piece.matches.start[:-1])
            parts.append(summed(events, piece.bucket, confidence))
        events, bucket, value = (np.concatenate(found) for found in zip(*parts, strict=True))
        return MatchBatch(events[None, :], bucket, bucket, value).keep(value > 0.0)

    def _decided(
        self, matches: FoundMatches, work: Scratch, decided: Callable[[MatchBatch], NDArray[np.bool_]]
    ) -> FoundMatches:
        """Return the matches that are possible and decided."""
        lower, upper, _, _ = self._described(matches, False, work)
        possible = lower <= upper
        matches, lower, upper = kept(matches, possible), lower[possible], upper[possible]
        rows = self._rows[matches.candidate]
        whole = by_component(self._plan, matches.start, matches.component, rows, lower, upper, None)
        return kept(matches, decided(whole))
