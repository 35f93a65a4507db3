"""``ORDER BY CONFIDENCE DESC LIMIT k``: the k best matches, without computing every confidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.candidates.parts import parts_of
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.operators.batch import MatchBatch, Series
from uncertain_cep.operators.context import Threshold
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.ranking import least_passing, least_ranked_as, ranked
from uncertain_cep.running.threads import side_by_side

__all__ = ["RisingThreshold", "best_chunk"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

FIRST_SHARE: Final = 128
"""One of so many first events, those of the smallest ids, is tried before the others."""

WORTH_TRYING: Final = 4096
"""First events from which it is worth while."""


def best_chunk(
    plan: EvaluationPlan,
    table: pa.Table,
    selection: Selection,
    chunks: Callable[[Selection, Threshold], Iterator[MatchBatch]],
    threads: int = 1,
) -> MatchBatch | None:
    """Return the best matches among some candidates for ORDER BY CONFIDENCE and LIMIT, best first.

    ``chunks`` enumerates the matches among candidates that can pass a threshold (it may yield others as
    well), with rows of the table as events. All ``threads`` raise one threshold.

    Notes
    -----
    The k-th best confidence so far, as rankings round it, is a threshold for all to come: what is worse has k
    better ones already. It prunes with slack, see :func:`eventbased.thresholds.needed`, as a match that ties
    with the k-th one and comes before it by its ids is wanted. Matches with the smallest first ids are tried
    first: if k of them are certain, no other one is better or comes before them. What a gap forbids among
    candidates lies between the first and the last event, and so in reach of the first one.
    """
    assert plan.query.limit is not None
    least = least_passing(plan.least_confidence)
    best = _Best(plan.query.limit, least, _ranks(plan, table, selection))
    one_at_a_time = Lock()

    def offered(part: Callable[[], Selection]) -> Iterator[None]:
        some = part()
        for chunk in () if some.empty else chunks(some, best.threshold):
            with one_at_a_time:
                best.offer(chunk)
        yield

    for first in _smallest_first(plan, selection, best.ranks):
        if first.empty:
            continue
        tasks = [partial(offered, part) for part in parts_of(plan, first, threads)]
        for _ in side_by_side(threads, tasks):
            pass
        if best.settled:
            break
    return best.chunk


@dataclass(slots=True)
class RisingThreshold:
    """The threshold that the k best confidences so far set, where all that tie with the k-th are wanted."""

    limit: int
    threshold: Threshold
    _ranks: Float64 = field(default_factory=lambda: np.zeros(0))
    _lock: Lock = field(default_factory=Lock)

    def offer(self, confidence: Float64) -> None:
        """Take the confidences of some matches into account, (n,) float64."""
        with self._lock:
            ranks = np.concatenate((self._ranks, ranked(confidence)))
            if len(ranks) >= self.limit:
                ranks = np.partition(ranks, len(ranks) - self.limit)[len(ranks) - self.limit :]
                self.threshold.least = max(least_ranked_as(float(ranks[0])), self.threshold.least)
            self._ranks = ranks


@dataclass(slots=True)
class _Best:
    """The k best matches seen."""

    limit: int
    least: float
    ranks: Int64
    threshold: Threshold = field(init=False)
    chunk: MatchBatch | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.threshold = Threshold(self.least, self.ranks)

    @property
    def settled(self) -> bool:
        """Whether no match of a larger first id can be among the best."""
        return self.threshold.last_rank is not None

    def offer(self, chunk: MatchBatch) -> None:
        """Take those of some matches that are among the best."""
        assert chunk.confidence is not None
        chunk = chunk.keep(chunk.confidence >= self.threshold.least)
        if self.chunk is not None:
            chunk = _joined(self.chunk, chunk)
        assert chunk.confidence is not None
        if len(chunk.lower) > self.limit:
            chunk = chunk.keep(self._not_beaten(chunk))
        assert chunk.confidence is not None
        order = np.lexsort([*_signatures(chunk, self.ranks)[::-1], -ranked(chunk.confidence)])
        self.chunk = chunk.take(order[: self.limit])
        if len(self.chunk.lower) == self.limit:
            assert self.chunk.confidence is not None
            last = float(ranked(self.chunk.confidence[-1:])[0])
            self.threshold.least = max(least_ranked_as(last), self.least)
            if last >= 1.0:
                self.threshold.last_rank = int(self.ranks[self.chunk.events[0, -1]])

    def _not_beaten(self, chunk: MatchBatch) -> Mask:
        """Return the matches that can be among the best by confidence and first id: few more than k."""
        assert chunk.confidence is not None
        confidence = ranked(chunk.confidence)
        least = np.partition(confidence, len(confidence) - self.limit)[len(confidence) - self.limit]
        tied = confidence == least
        wanted = self.limit - int((confidence > least).sum())
        first = self.ranks[chunk.events[0]]
        cut = np.partition(first[tied], wanted - 1)[wanted - 1]
        kept: Mask = (confidence > least) | (tied & (first <= cut))
        return kept


def _signatures(chunk: MatchBatch, ranks: Int64) -> list[Int64]:
    """Return numbers by which the signatures of matches are in order, the first ones above all others."""
    keys = []
    for events, found in chunk.of_components:
        if found is None:
            keys.append(ranks[events])
            continue
        sizes = np.diff(found.start)
        for k in range(int(sizes.max(initial=1))):
            # A series comes before those that it begins.
            places = np.minimum(found.start[:-1] + k, found.start[1:] - 1)
            keys.append(np.where(k < sizes, ranks[found.events[places]], np.iinfo(np.int64).min))
    return keys


def _joined(one: MatchBatch, other: MatchBatch) -> MatchBatch:
    assert one.confidence is not None
    assert other.confidence is not None
    error = None
    if one.std_error is not None and other.std_error is not None:
        error = np.concatenate((one.std_error, other.std_error))
    series = zip(one.series, other.series, strict=True)
    return MatchBatch(
        np.concatenate((one.events, other.events), axis=1),
        np.concatenate((one.lower, other.lower)),
        np.concatenate((one.upper, other.upper)),
        np.concatenate((one.confidence, other.confidence)),
        error,
        tuple(_both(*pair) for pair in series),
    )


def _both(one: Series | None, other: Series | None) -> Series | None:
    return None if one is None or other is None else one.followed_by(other)


def _ranks(plan: EvaluationPlan, table: pa.Table, selection: Selection) -> Int64:
    """Return for each row of the table a number that is in order as the ids of candidates are."""
    ids = table.column(plan.names.id)
    if pa.types.is_int64(ids.type) and not ids.null_count:
        return np.asarray(ids.to_numpy())
    rows = np.unique(np.concatenate(selection.rows))
    found = ids.take(pa.array(rows)).combine_chunks()
    plain = found.cast(found.type.value_type) if pa.types.is_dictionary(found.type) else found
    ranks = np.zeros(table.num_rows, dtype=np.int64)
    ranks[rows] = np.asarray(pc.rank(plain, tiebreaker="dense")).astype(np.int64)
    return ranks


def _smallest_first(plan: EvaluationPlan, selection: Selection, ranks: Int64) -> Iterator[Selection]:
    """Yield the candidates with a few first events, those of the smallest ids, then with the others."""
    rank = ranks[selection.rows[0]]
    size = len(rank) // FIRST_SHARE
    # The events of a Kleene component are each other's neighbours.
    if len(rank) < WORTH_TRYING or plan.components[0].kleene:
        yield selection
        return
    early = rank <= np.partition(rank, size)[size]
    back = plan.event_order.ticks_before_first(plan.window)
    yield _in_reach(selection, early, plan.window, back)
    if not early.all():
        yield selection.with_first(~early)


def _in_reach(selection: Selection, kept: Mask, window: int, back: int) -> Selection:
    """Return the candidates with some of the first events, and of the others those in reach of them."""
    earliest = int(selection.lower[0][kept].min()) - back
    latest = int(selection.upper[0][kept].max()) + window - 1
    reached = [
        (upper >= earliest) & (lower <= latest)
        for lower, upper in zip(selection.lower[1:], selection.upper[1:], strict=True)
    ]
    return selection.take([kept, *reached])
