"""Begins and ends of events that last: the bounds that are given, and those that are left of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.timed.bounds import UNBOUND
from uncertain_cep.candidates.event_times import EventTimes, event_times
from uncertain_cep.candidates.own_times import OffsetBounds
from uncertain_cep.candidates.span_times import spans_in_ticks, with_ends
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS, SPAN_LAWS

__all__ = ["Side", "SpanEnds"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]
Side = Literal["", "begin", "end"]
"""Which time of an event: that of a point, or one of both of an event that lasts."""


@dataclass(frozen=True, slots=True)
class SpanEnds:
    """The begins and ends of n events, ticks; of points they are the same.

    Attributes
    ----------
    lasts : (n,) bool
    begin, end : (2, n) int64
        Bounds that some pair of begin and end meets.
    length : (2, n) int64
        Bounds of the length.
    as_stated : dict of str to (3, n) int64
        Of ``begin``, ``end`` and ``length``: lower and upper bounds as they are stated, without ticks of
        probability 0 at either end, and 1 where there are such bounds.
    """

    lasts: Mask
    begin: Int64
    end: Int64
    length: Int64
    as_stated: dict[str, Int64]

    @classmethod
    def of(
        cls, plan: EvaluationPlan, table: pa.Table, offsets: OffsetBounds | None
    ) -> tuple[SpanEnds, EventTimes]:
        """Return the ends of checked events, of those of `with_marginals`, and the times of the events.

        ``offsets`` are those of their clocks.
        """
        plan_with_ends, extended, spans = with_ends(plan, table)
        times = event_times(plan_with_ends, extended)
        count = table.num_rows
        begin, end = (
            np.stack((times.lower[part], times.upper[part])) for part in (slice(count), slice(count, None))
        )
        begin, end = np.where(spans.lasts, (begin, end), begin)
        in_ticks = spans_in_ticks(plan, table)
        as_stated = {}
        for place, law in enumerate(SPAN_LAWS):
            name = law.removesuffix("_pmf")
            columns = [in_ticks[column] for column in SPAN_COLUMNS[2 * place : 2 * place + 2]]
            bounds = [np.asarray(column.cast(pa.int64()).fill_null(0)) for column in columns]
            cut = _without_chance(in_ticks[law]) if law in in_ticks else np.zeros((2, count), np.int64)
            if offsets is not None and name != "length":
                cut = cut + np.stack((offsets.cut_low[offsets.clock], offsets.cut_high[offsets.clock]))
            has = np.asarray(columns[0].is_valid())
            as_stated[name] = np.stack((bounds[0] + cut[0], bounds[1] - cut[1], has))
        whole = times._replace(offsets=offsets, lower=begin[0], upper=end[1])
        return cls(spans.lasts, begin, end, np.stack(spans.length), as_stated), whole

    def bounds(self, side: Side, row: int) -> tuple[int, int]:
        """Return the first and the last tick of a time of an event."""
        lower, upper = (self.end if side == "end" else self.begin)[:, row].tolist()
        return lower, upper

    def stated(self, name: str, row: int) -> tuple[int, int] | None:
        """Return the bounds of a begin, an end or a length as given; None if they are not."""
        lower, upper, has = self.as_stated[name][:, row].tolist()
        return (lower, upper) if has else None

    def least_apart(self, row: int, early: Side) -> int:
        """Return the least ticks from one time of an event that lasts to the other, by its length."""
        shortest, longest = self.length[:, row].tolist()
        return int(shortest) if early == "begin" else max(-int(longest), -UNBOUND)


def _without_chance(laws: pa.ChunkedArray) -> Int64:
    """Return how many ticks of probability 0 there are at both ends of each list, (2, n); 0 without one."""
    cut = np.zeros((2, len(laws)), np.int64)
    for row, law in enumerate(laws.to_pylist()):
        places = [place for place, chance in enumerate(law or ()) if chance]
        if places:
            cut[:, row] = places[0], len(law) - 1 - places[-1]
    return cut
