"""When the events of a match happened, given that it did: exact, from the confidences of boxes.

``P(t_j <= x and match)`` is the confidence with the interval of event j cut at x, times the share of its
probability that is kept. So every quantile comes by bisection, whatever the length of a tick, and the law
itself by putting t_j at each tick.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.flat_lists import end_to_end, starts_of
from uncertain_cep.config.tolerances import CONFIDENCE_TOLERANCE
from uncertain_cep.errors import OptionError
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.box_parts import Boxes, Confidences, Events, pieces_of
from uncertain_cep.results.boxes import weighed_matches
from uncertain_cep.results.matched_events import MatchedEvents
from uncertain_cep.results.projection import taken

__all__ = ["QUANTILES", "posterior_table"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

QUANTILES: Final = {"q025": 0.025, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q975": 0.975}
"""Columns of quantiles."""


@dataclass(frozen=True, slots=True)
class Laws:
    """Facts about one time of each of the events of some matches; all by event, (m,)."""

    chosen: NDArray[np.bool_]
    """(m,) bool. Which events have such a time; nothing is said of others."""
    at_end: bool
    """Whether it is the end of events that last, not the begin, or the time of moments."""
    mean: Float64
    """Ticks behind the first tick of the event."""
    quantiles: Int64
    """(5, m) int64, ticks."""
    sizes: Int64
    """How many ticks are listed; 0 for none."""
    pmf: Float64
    """(sum of sizes,) float64."""

    @classmethod
    def room(cls, events: Events, chosen: NDArray[np.bool_], pmf_ticks: int, *, at_end: bool) -> Laws:
        """Return room for the laws of events; at most so many ticks are listed of each."""
        sizes = np.where(chosen, events.upper - events.lower + 1, 0)
        sizes[sizes > pmf_ticks] = 0
        checkpoint(8 * int(sizes.sum()))
        mean, quantiles = np.zeros(len(sizes)), np.zeros((len(QUANTILES), len(sizes)), np.int64)
        return cls(chosen, at_end, mean, quantiles, sizes, np.empty(int(sizes.sum())))


Part = tuple[MatchedEvents, Events, Laws]
"""Events of matches with their bounds, and the laws of one time of each."""


def posterior_table(plan: EvaluationPlan, table: pa.Table, matches: pa.Table, pmf_ticks: int) -> pa.Table:
    """Return the law of the time of every event of some matches, given its match.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
        The events that were matched, of the model.
    matches : pyarrow.Table
    pmf_ticks : int
        Most ticks of an interval whose probabilities are listed one by one.

    Raises
    ------
    OptionError
        See `matched_events`; also if a row is no match.
    ConfidenceCostError, TraceError
        If a confidence takes too many steps.
    """
    parts: list[Part] = []
    for found, events, groups in weighed_matches(plan, table, matches):
        sides = [
            (found, side, Laws.room(side, chosen, pmf_ticks, at_end=at_end))
            for side, chosen, at_end in events.sides
        ]
        for some, confidences in groups:
            for _, side, laws in sides:
                _fill(laws, side, some, confidences.at_ends() if laws.at_end else confidences, found)
        parts += sides
    return _as_table(plan, table, parts)


def _as_table(plan: EvaluationPlan, table: pa.Table, parts: list[Part]) -> pa.Table:
    """Return laws as the columns of the result, ordered by match, component and position, begins first."""
    found, events, laws = zip(*parts, strict=True)
    listed = [np.flatnonzero(law.chosen) for law in laws]
    variables = pa.concat_arrays(
        [
            pa.array(part.columns, pa.string()).take(pa.array(part.component[rows]))
            for part, rows in zip(found, listed, strict=True)
        ]
    )
    match, component, position, row = (
        np.concatenate([getattr(part, name)[rows] for part, rows in zip(found, listed, strict=True)])
        for name in ("match", "component", "position", "row")
    )
    at_end = np.repeat([law.at_end for law in laws], list(map(len, listed)))
    order = np.lexsort((at_end, position, component, match))
    domain = plan.domain

    def of_events(columns: Iterable[NDArray[Any]]) -> NDArray[Any]:
        """Return a column of all parts, in the order of the result."""
        flat = np.concatenate(
            [column[..., rows] for column, rows in zip(columns, listed, strict=True)], axis=-1
        )
        return flat[..., order]

    lower, upper = (of_events(getattr(part, name) for part in events) for name in ("lower", "upper"))
    columns = {
        "match": pa.array(match[order]),
        "variable": variables.take(pa.array(order)),
        "position": pa.array(position[order]),
        "id": taken(table.column(plan.names.id), row[order], plan_id_type(plan, table)),
    }
    if plan.lasting:
        lasts = of_events(np.zeros(0) if part.ends is None else part.ends.lasts for part in events)
        columns["time"] = pa.array(np.where(at_end[order], "end", "begin"), mask=~lasts)
        # Where an end is known by a length, no column has its bounds.
        columns |= {"lower": domain.times(lower), "upper": domain.times(upper)}
        begin, end = lower, upper
    else:
        begin, end = (
            domain.ticks(table.column(name))[row[order]] for name in (plan.names.lower, plan.names.upper)
        )
    columns["mean"] = domain.moments(lower, of_events(law.mean for law in laws))
    quantiles = of_events(law.quantiles for law in laws)
    columns |= {name: domain.times(values) for name, values in zip(QUANTILES, quantiles, strict=True)}
    columns["pmf"] = _listed(laws, listed, order, (lower, begin, end))
    return pa.table(columns)


def _listed(
    laws: Sequence[Laws], rows: Sequence[Int64], order: Int64, bounds: tuple[Int64, Int64, Int64]
) -> pa.Array:
    """Return the probabilities of an event's whole interval: what was left out at its ends has none.

    ``bounds``, (n,) each and in the order of the result, are the first tick of a law, and those of the whole.
    """
    lower, begin, end = bounds
    sizes = np.concatenate([law.sizes[which] for law, which in zip(laws, rows, strict=True)])
    flat = np.concatenate([law.pmf for law in laws])
    there = sizes[order] > 0
    begins = starts_of(np.where(there, end - begin + 1, 0))
    checkpoint(8 * int(begins[-1]))
    into = np.empty(len(order), dtype=np.int64)
    into[order] = begins[:-1] + lower - begin
    values = np.zeros(int(begins[-1]))
    values[end_to_end(into, sizes)[0]] = flat
    lists = pa.LargeListArray.from_arrays(pa.array(begins), pa.array(values), mask=pa.array(~there))
    return lists.cast(pa.list_(pa.float64())) if begins[-1] < 2**31 else lists


def plan_id_type(plan: EvaluationPlan, table: pa.Table) -> pa.DataType:
    """Return the type of ids, that of their values if they are dictionary-encoded."""
    found = table.schema.field(plan.names.id).type
    return found.value_type if pa.types.is_dictionary(found) else found


def _fill(laws: Laws, events: Events, some: Int64, confidences: Confidences, found: MatchedEvents) -> None:
    """Fill the laws of the events of some matches."""
    match, event = events.of(some)
    match, event = match[laws.chosen[event]], event[laws.chosen[event]]
    of_pmf = starts_of(laws.sizes)
    listed = laws.sizes[event] > 0
    for part in pieces_of(laws.sizes[event[listed]]):
        chosen, own = event[listed][part], match[listed][part]
        ticks = laws.sizes[chosen]
        at = end_to_end(events.lower[chosen], ticks)[0]
        law = confidences.of(Boxes(np.repeat(own, ticks), np.repeat(chosen, ticks), at, at))
        ends = np.cumsum(ticks)
        total = np.add.reduceat(law, ends - ticks)
        _check_possible(total, own, found)
        law /= np.repeat(total, ticks)
        laws.pmf[end_to_end(of_pmf[chosen], ticks)[0]] = law
        laws.mean[chosen] = np.add.reduceat(law * (at - np.repeat(events.lower[chosen], ticks)), ends - ticks)
        summed = np.concatenate(([0.0], np.cumsum(law)))
        for k, share in enumerate(QUANTILES.values()):
            sought = summed[ends - ticks] + share * (1.0 - CONFIDENCE_TOLERANCE)
            place = np.clip(np.searchsorted(summed[1:], sought), ends - ticks, ends - 1)
            laws.quantiles[k, chosen] = at[place]
    certain = event[events.lower[event] == events.upper[event]]
    laws.mean[certain], laws.quantiles[:, certain] = 0.0, events.lower[certain]
    long = ~listed & (events.lower[event] < events.upper[event])
    for part in pieces_of(np.ones(int(long.sum()), dtype=np.int64)):
        chosen, own = event[long][part], match[long][part]
        first, last = events.lower[chosen], events.upper[chosen]
        total = confidences.of(Boxes(own, chosen, first, last))
        _check_possible(total, own, found)
        laws.mean[chosen] = confidences.centres(own, chosen) / total
        laws.quantiles[:, chosen] = _bisected(confidences, own, chosen, first, last, total)


def _check_possible(total: Float64, match: Int64, found: MatchedEvents) -> None:
    if not (total > 0.0).all():
        number = int(found.match[found.begins[match[int(np.argmin(total > 0.0))]]])
        raise OptionError(f"row {number} of the matches is no match of the query in any world")


def _bisected(
    confidences: Confidences, match: Int64, event: Int64, first: Int64, last: Int64, total: Float64
) -> Int64:
    """Return the quantiles of events, (5, n) int64: the first tick up to which there is such a share."""
    count = len(QUANTILES)
    shares = np.repeat(np.array(list(QUANTILES.values())), len(match))
    match, event, begin = np.tile(match, count), np.tile(event, count), np.tile(first, count)
    sought = shares * np.tile(total, count) * (1.0 - CONFIDENCE_TOLERANCE)
    low, high = begin.copy(), np.tile(last, count)
    while True:
        open_ = np.flatnonzero(low < high)
        if not len(open_):
            return low.reshape(count, -1)
        middle = low[open_] + (high[open_] - low[open_]) // 2
        reached = confidences.of(Boxes(match[open_], event[open_], begin[open_], middle)) >= sought[open_]
        high[open_] = np.where(reached, middle, high[open_])
        low[open_] = np.where(reached, low[open_], middle + 1)
