"""When the events of a match happened, given that it did: exact, from the confidences of boxes.

``P(t_j <= x and match)`` is the confidence with the interval of event j cut at x, times the share of its
probability that is kept. So every quantile comes by bisection, whatever the length of a tick, and the law
itself by putting t_j at each tick.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import Pmfs
from confidence.budget import checkpoint, pieces
from confidence.chain.exact import redo_exactly
from confidence.predicates.conditions import scratch
from eventbased import describe_chosen, describe_uncertain
from eventbased.gaps.gap_events import NO_BOXES
from eventbased.search.state import FoundMatches
from uncertain_cep.candidates.layout import laid_out
from uncertain_cep.candidates.pmfs import ExplicitPmfs, explicit_pmfs
from uncertain_cep.candidates.selection import select
from uncertain_cep.config import BOXES_AT_ONCE, CONFIDENCE_TOLERANCE, LONGEST_PMF_CHAIN
from uncertain_cep.errors import OptionError
from uncertain_cep.operators.backtracking import BacktrackingSearch
from uncertain_cep.operators.context import ExecutionContext
from uncertain_cep.operators.description import long_chain
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.matched_events import MatchedEvents, matched_events
from uncertain_cep.results.piecewise import centres
from uncertain_cep.results.projection import taken

__all__ = ["QUANTILES", "posterior_table"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

QUANTILES: Final = {"q025": 0.025, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q975": 0.975}
"""Columns of quantiles."""


class Events(NamedTuple):
    """The events of some matches, one match behind the other; times are ticks."""

    start: Int64
    """(k + 1,) int64. Where those of each match begin."""
    component: Int64
    row: Int64
    lower: Int64
    upper: Int64
    offset: Int64
    """Each (m,) int64. Without ticks of probability 0 at the ends; -1 for uniform."""


class Boxes(NamedTuple):
    """One event of a match each, and the ticks that are asked of it; all (n,) int64."""

    match: Int64
    event: Int64
    """Its place among :class:`Events`."""
    first: Int64
    last: Int64

    def part(self, chosen: slice) -> Boxes:
        """Return some of them."""
        return Boxes(*(column[chosen] for column in self))


class Confidences(Protocol):
    """P(match, and one of its events in a box)."""

    def of(self, boxes: Boxes) -> Float64:
        """Return it for each box, (n,) float64."""

    def centres(self, match: Int64, event: Int64) -> Float64:
        """Return P(match) times the mean of an event's time given the match, less its first tick, (n,)."""


@dataclass(frozen=True, slots=True)
class Laws:
    """What is known of the times of the events of some matches; all by event, (m,)."""

    mean: Float64
    """Ticks behind the first tick of the event."""
    quantiles: Int64
    """(5, m) int64, ticks."""
    sizes: Int64
    """How many ticks are listed; 0 for none."""
    pmf: Float64
    """(sum of sizes,) float64."""


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
    names, domain = plan.names, plan.domain
    given = domain.ticks(table.column(names.lower)), domain.ticks(table.column(names.upper))
    pmfs, lower, upper = explicit_pmfs(table, names.pmf, *given)
    offset = np.full(table.num_rows, -1) if pmfs is None else pmfs.offset
    parts: list[tuple[MatchedEvents, Laws]] = []
    for found in matched_events(plan, table, matches):
        begins = np.flatnonzero(np.diff(found.match, prepend=-1))
        events = Events(
            np.append(begins, len(found.match)), found.component, found.row, lower[found.row],
            upper[found.row], offset[found.row],
        )  # fmt: skip
        mean, quantiles = np.empty(len(events.row)), np.empty((len(QUANTILES), len(events.row)), np.int64)
        listed = upper[found.row] - lower[found.row] < pmf_ticks
        sizes = np.where(listed, upper[found.row] - lower[found.row] + 1, 0)
        checkpoint(8 * int(sizes.sum()))
        pmf = np.empty(int(sizes.sum()))
        laws = Laws(mean, quantiles, sizes, pmf)
        for some, confidences in _engines(found.plan, table, events, (lower, upper), given[0], pmfs):
            _fill(laws, events, some, confidences, found)
        parts.append((found, laws))
    return _as_table(plan, table, parts, lower, given)


def _as_table(
    plan: EvaluationPlan,
    table: pa.Table,
    parts: list[tuple[MatchedEvents, Laws]],
    lower: Int64,
    given: tuple[Int64, Int64],
) -> pa.Table:
    """Return laws as the columns of the result, ordered by match, component and position."""
    found = [part for part, _ in parts]
    laws = [law for _, law in parts]
    variables = pa.concat_arrays(
        [pa.array(part.variables, pa.string()).take(pa.array(part.component)) for part in found]
    )
    match, component, position, row = (
        np.concatenate([getattr(part, name) for part in found])
        for name in ("match", "component", "position", "row")
    )
    order = np.lexsort((position, component, match))
    domain = plan.domain
    columns = {
        "match": pa.array(match[order]),
        "variable": variables.take(pa.array(order)),
        "position": pa.array(position[order]),
        "id": taken(table.column(plan.names.id), row[order], plan_id_type(plan, table)),
        "mean": domain.moments(lower[row[order]], np.concatenate([law.mean for law in laws])[order]),
    }
    quantiles = np.concatenate([law.quantiles for law in laws], axis=1)[:, order]
    columns |= {name: domain.times(values) for name, values in zip(QUANTILES, quantiles, strict=True)}
    # The probabilities of an event's whole interval: what was left out at its ends has none.
    sizes = np.concatenate([law.sizes for law in laws])
    flat = np.concatenate([law.pmf for law in laws])
    there = sizes > 0
    whole = np.where(there, given[1][row] - given[0][row] + 1, 0)
    checkpoint(8 * int(whole.sum()))
    begins = np.concatenate(([0], np.cumsum(whole[order])))
    into = np.empty(len(order), dtype=np.int64)
    into[order] = begins[:-1]
    values = np.zeros(int(begins[-1]))
    values[np.repeat(into + lower[row] - given[0][row], sizes) + _counting(sizes)] = flat
    lists = pa.LargeListArray.from_arrays(pa.array(begins), pa.array(values), mask=pa.array(~there[order]))
    columns["pmf"] = lists.cast(pa.list_(pa.float64())) if begins[-1] < 2**31 else lists
    return pa.table(columns)


def plan_id_type(plan: EvaluationPlan, table: pa.Table) -> pa.DataType:
    """Return the type of ids, that of their values if they are dictionary-encoded."""
    found = table.schema.field(plan.names.id).type
    return found.value_type if pa.types.is_dictionary(found) else found


def _counting(sizes: Int64) -> Int64:
    """Return 0, 1, ... for each size, one behind the other."""
    return np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _fill(laws: Laws, events: Events, some: Int64, confidences: Confidences, found: MatchedEvents) -> None:
    """Fill the laws of the events of some matches."""
    sizes = np.diff(events.start)[some]
    match = np.repeat(some, sizes)
    event = np.repeat(events.start[some], sizes) + _counting(sizes)
    of_pmf = np.concatenate(([0], np.cumsum(laws.sizes)))
    listed = laws.sizes[event] > 0
    for part in pieces_of(laws.sizes[event[listed]]):
        chosen, own = event[listed][part], match[listed][part]
        ticks = laws.sizes[chosen]
        at = np.repeat(events.lower[chosen], ticks) + _counting(ticks)
        law = confidences.of(Boxes(np.repeat(own, ticks), np.repeat(chosen, ticks), at, at))
        ends = np.cumsum(ticks)
        total = np.add.reduceat(law, ends - ticks)
        _check_possible(total, own, found)
        law /= np.repeat(total, ticks)
        laws.pmf[np.repeat(of_pmf[chosen], ticks) + _counting(ticks)] = law
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


def pieces_of(sizes: Int64) -> Iterator[slice]:
    """Yield numbers of boxes in pieces that are asked for at once."""
    ends = np.cumsum(sizes)
    done = 0
    while done < len(sizes):
        checkpoint()
        before = int(ends[done - 1]) if done else 0
        stop = max(int(np.searchsorted(ends, before + BOXES_AT_ONCE, side="right")), done + 1)
        yield slice(done, stop)
        done = stop


def _check_possible(total: Float64, match: Int64, found: MatchedEvents) -> None:
    if not (total > 0.0).all():
        begins = np.flatnonzero(np.diff(found.match, prepend=-1))
        number = int(found.match[begins[match[int(np.argmin(total > 0.0))]]])
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


def _engines(
    plan: EvaluationPlan,
    table: pa.Table,
    events: Events,
    ticks: tuple[Int64, Int64],
    given_lower: Int64,
    pmfs: ExplicitPmfs | None,
) -> Iterator[tuple[Int64, Confidences]]:
    """Yield the matches of one branch in groups, each with what gives their confidences."""
    if not len(events.row):
        return
    independent = plan.order is None and not plan.negations and plan.query.strategy == "skip_till_any_match"
    if independent:
        sizes = np.diff(events.start)
        values = np.zeros(0) if pmfs is None else pmfs.values
        explicit = np.logical_or.reduceat(events.offset >= 0, events.start[:-1])
        for size in np.unique(sizes).tolist():
            yield np.flatnonzero(sizes == size), Chains(plan, events, size, values, explicit)
        return
    selection = select(plan, table, *ticks, given_lower, None)
    context = ExecutionContext(plan, table, selection, ticks, pmfs, None, True, BOXES_AT_ONCE)
    window = context.span
    for part, candidates, rows in laid_out(selection, window + 2, step=0):
        places = np.full(len(events.row), -1)
        for j in range(len(plan.components)):
            own = slice(int(candidates.first[j]), int(candidates.first[j + 1]))
            order = own.start + np.argsort(rows[own], kind="stable")
            mine = np.flatnonzero(events.component == j)
            at = np.minimum(np.searchsorted(rows[order], events.row[mine]), len(order) - 1)
            here = rows[order[at]] == events.row[mine]
            places[mine[here]] = order[at[here]]
        some = np.flatnonzero(places[events.start[:-1]] >= 0)
        if len(some):
            search = BoxedSearch(replace(context, candidates=part), candidates, rows, window)
            yield some, Searched(search, events, places)


class Chains:
    """Matches of as many events, which nothing but order and window ties together."""

    def __init__(
        self, plan: EvaluationPlan, events: Events, size: int, values: Float64, explicit: NDArray[np.bool_]
    ) -> None:
        self._plan, self._size, self._start = plan, size, events.start
        self._count = len(events.row)
        self._values, self._explicit = values, explicit
        position = np.arange(self._count) - np.repeat(events.start[:-1], np.diff(events.start))
        # Behind all events there is room for those that are cut.
        bounds = np.stack((events.lower - position, events.upper - position, events.offset))
        self._lower, self._upper, self._offset = np.pad(bounds, ((0, 0), (0, BOXES_AT_ONCE)))
        # Beyond all events a window means nothing, and sums with it have to stay within int64.
        self._w = min(plan.window - size, int(bounds[1].max()) - int(bounds[0].min()) + size)

    def of(self, boxes: Boxes) -> Float64:
        """Return P(match, and one of its events in a box) for each box, (n,) float64."""
        return np.concatenate([self._some(boxes.part(part)) for part in pieces_of(np.ones_like(boxes.match))])

    def _some(self, boxes: Boxes) -> Float64:
        event, cut = boxes.event, slice(self._count, self._count + len(boxes.event))
        j = event - self._start[boxes.match]
        lower, uniform = self._lower[event], self._offset[event] < 0
        self._lower[cut], self._upper[cut] = boxes.first - j, boxes.last - j
        self._offset[cut] = np.where(uniform, -1, self._offset[event] + boxes.first - j - lower)
        found = self._weighed(boxes.match, j, self._values)
        share = (boxes.last - boxes.first + 1) / (self._upper[event] - lower + 1)
        return np.where(uniform, found * share, found)

    def _weighed(self, match: Int64, j: Int64, values: Float64) -> Float64:
        """Return the confidences of matches, with the cut events in their places."""
        size, each = self._size, len(match)
        chosen = self._start[match] + np.arange(size)[:, None]
        chosen[j, np.arange(each)] = self._count + np.arange(each)
        base = np.zeros(self._count + each, dtype=np.int64)
        found = np.ones(each)
        first, last = self._lower[chosen[0]], self._upper[chosen[0]]
        if size > 1:
            describe_chosen(
                np.arange(size), chosen, self._w, self._lower, self._upper, base, first, last, found
            )

            def bounds(n: int) -> tuple[Int64, Int64, None]:
                own, position = chosen[:, n], np.arange(size)
                return self._lower[own] + position, self._upper[own] + position, None

            redo_exactly(found, self._w + size, bounds)
        explicit = np.flatnonzero(self._explicit[match] & (found > 0.0))
        ticks = (last - first + 1)[explicit].astype(np.float64)
        for part in pieces(ticks * np.where(ticks > self._plan.window, size**2, size)):
            own = explicit[part]
            result = first[own], last[own], found[own]
            too_long = describe_uncertain(
                np.ascontiguousarray(chosen[:, own]), self._w, self._lower, self._upper, base, self._offset,
                values, LONGEST_PMF_CHAIN, True, *result,
            )  # fmt: skip
            if too_long >= 0:
                raise long_chain(self._plan.names.pmf)
            found[own] = np.where(result[0] <= result[1], result[2], 0.0)
        return found

    def centres(self, match: Int64, event: Int64) -> Float64:
        """Return P(match) times an event's mean time given the match, less its first tick, (n,) float64."""
        found = np.empty(len(match))
        j = event - self._start[match]
        plain = np.flatnonzero(~self._explicit[match])
        for part in pieces_of(np.full(len(plain), 6 * self._size * self._size)):
            own = plain[part]
            chain = self._start[match[own]] + np.arange(self._size)[:, None]

            def law(pair: Int64, tick: Int64, own: Int64 = own) -> Float64:
                tick = tick + j[own[pair]]
                return self.of(Boxes(match[own[pair]], event[own[pair]], tick, tick))

            found[own] = centres(self._lower[chain], self._upper[chain], self._w, j[own], law)
        for n in np.flatnonzero(self._explicit[match]).tolist():
            checkpoint()
            one, cut = int(event[n]), self._count
            size = int(self._upper[one] - self._lower[one])
            tilted = _tilted(self._values, int(self._offset[one]), size)
            self._lower[cut], self._upper[cut] = self._lower[one], self._upper[one]
            self._offset[cut] = len(self._values)
            values = np.concatenate((self._values, tilted))
            found[n] = self._weighed(match[n : n + 1], j[n : n + 1], values)[0] * size
        return found


def _tilted(values: Float64, offset: int, size: int) -> Float64:
    """Return the probabilities of ticks 0 .. size times k / size: their sum is the mean over size."""
    share = np.arange(size + 1) / size
    return share * values[offset : offset + size + 1] if offset >= 0 else share / (size + 1)


class BoxedSearch(BacktrackingSearch):
    """The matches of a search, described without being searched for."""

    def confidences(self, matches: FoundMatches, boxes: Int64) -> Float64:
        """Return P(match, and its events in their boxes), (k,) float64."""
        most = int(np.diff(matches.start).max()) + len(self._kleene)
        return self._described(matches, True, scratch(self._conditions, most), boxes)[2]

    def centre(self, matches: FoundMatches, row: int, size: int) -> float:
        """Return P(match) times the mean of an event's time, in ticks behind its first one, given the match.

        ``matches`` is one, which holds the event of a row of so many ticks and one.
        """
        pmfs, offset = self._pmfs, self._offset
        tilted = _tilted(pmfs.values, int(offset[row]), size)
        self._offset = offset.copy()
        self._offset[row] = len(pmfs.values)
        # What the others add up to is not asked of a match's own events.
        nothing = np.zeros(len(tilted))
        self._pmfs = Pmfs(
            *(np.concatenate(pair) for pair in zip(pmfs, (tilted, nothing, nothing), strict=True))
        )
        try:
            return float(self.confidences(matches, NO_BOXES)[0]) * size
        finally:
            self._pmfs, self._offset = pmfs, offset


class Searched:
    """Matches whose gaps must stay free, or whose events are partially ordered."""

    def __init__(self, search: BoxedSearch, events: Events, places: Int64) -> None:
        self._search, self._events, self._places = search, events, places

    def of(self, boxes: Boxes) -> Float64:
        """Return P(match, and one of its events in a box) for each box, (n,) float64."""
        sizes = np.diff(self._events.start)[boxes.match]
        return np.concatenate([self._some(boxes.part(part)) for part in pieces_of(sizes)])

    def _matches(self, match: Int64) -> tuple[FoundMatches, Int64]:
        """Return matches as kernels take them, and the places of their events."""
        start = self._events.start
        sizes = np.diff(start)[match]
        event = np.repeat(start[match], sizes) + _counting(sizes)
        begins = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
        return FoundMatches(begins, self._places[event], self._events.component[event]), event

    def _some(self, boxes: Boxes) -> Float64:
        matches, event = self._matches(boxes.match)
        asked = np.stack((self._events.lower[event], self._events.upper[event]))
        own = matches.start[:-1] + boxes.event - self._events.start[boxes.match]
        asked[:, own] = boxes.first, boxes.last
        return self._search.confidences(matches, asked)

    def centres(self, match: Int64, event: Int64) -> Float64:
        """Return P(match) times an event's mean time given the match, less its first tick, (n,) float64."""
        found = np.empty(len(match))
        for n in range(len(match)):
            checkpoint()
            row = int(self._events.row[event[n]])
            size = int(self._events.upper[event[n]] - self._events.lower[event[n]])
            found[n] = self._search.centre(self._matches(match[n : n + 1])[0], row, size)
        return found
