"""P(match, and one of its events in a box), for known matches: what tells when their events happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import Pmfs
from confidence.budget import checkpoint, pieces
from confidence.chain.exact import redo_exactly
from confidence.chain.side_by_side import new_chains
from confidence.flat_lists import taken
from confidence.predicates.conditions import scratch
from eventbased import confidences_of_matches, describe_chosen, describe_uncertain
from eventbased.gaps.gap_events import (
    NO_BOXES,
    MatchEvents,
    some_of,
)
from eventbased.search.state import FoundMatches
from uncertain_cep.candidates.event_times import event_times
from uncertain_cep.candidates.existence import Existence, existence
from uncertain_cep.candidates.layout import laid_out
from uncertain_cep.candidates.marginals import with_marginals
from uncertain_cep.candidates.own_times import offset_bounds, shared_clocks
from uncertain_cep.candidates.pmfs import flat_pmfs
from uncertain_cep.candidates.selection import Selection, select
from uncertain_cep.candidates.sequenced import SequencedEvents, sequenced
from uncertain_cep.candidates.span_times import SpanTimes, with_ends
from uncertain_cep.config.limits import LONGEST_PMF_CHAIN
from uncertain_cep.config.tuning import BOXES_AT_ONCE
from uncertain_cep.operators.backtracking import BacktrackingSearch
from uncertain_cep.operators.context import ExecutionContext, InOrder, TiedEvents
from uncertain_cep.operators.costly_matches import long_chain
from uncertain_cep.operators.sequenced_matches import SequenceWeigher
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.results.box_parts import Boxes, Confidences, EndsOfEvents, Events, pieces_of
from uncertain_cep.results.clocked_boxes import ClockedChains, shared_and_held
from uncertain_cep.results.matched_events import MatchedEvents, matched_events
from uncertain_cep.results.pieces_of_laws import PiecesOfLaw, pieces_of_laws
from uncertain_cep.results.piecewise import centres
from uncertain_cep.results.sequenced_boxes import MovedMatches, OrderedChains, SpoilersInOrder
from uncertain_cep.results.spoiling import spoilers
from uncertain_cep.weighers.beside import Beside, EarlierTick, EndOfEvent
from uncertain_cep.weighers.match_model import MatchModel

__all__ = ["Searched", "groups_in_order", "weighed_events", "weighed_matches"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_NOT_SELECTED: Final = Selection((), (), (), None, 0)
"""The candidates of a context until some matches need the search."""


def weighed_matches(
    plan: EvaluationPlan, table: pa.Table, matches: pa.Table
) -> Iterator[tuple[MatchedEvents, Events, Iterator[tuple[Int64, Confidences]]]]:
    """Yield the events of matches of each branch of OR, and the matches in groups with their confidences.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
        The events that were matched, of the model.
    matches : pyarrow.Table

    Raises
    ------
    OptionError
        See `matched_events` and `sequenced`; of any branch, before one is yielded.
    """
    yield from weighed_events(plan, table, partial(matched_events, matches=matches))


def weighed_events(
    plan: EvaluationPlan,
    table: pa.Table,
    events_of: Callable[[EvaluationPlan, pa.Table], Iterable[MatchedEvents]],
) -> Iterator[tuple[MatchedEvents, Events, Iterator[tuple[Int64, Confidences]]]]:
    """Yield the same as :func:`weighed_matches`, of events that a function finds for a plan and a table.

    Where the plans of these bind times beside the query, all confidences are :class:`Searched`.
    """
    table, spans = with_marginals(plan, table), None
    if plan.lasting:
        plan, table, spans = with_ends(plan, with_all_bounds(table, plan.names.lower))
    in_table, offsets, pmfs, lower, upper = event_times(plan, table)
    parts = [(found, sequenced(found.plan, table, pmfs, lower, upper)) for found in events_of(plan, table)]
    clocks, others = None, pmfs
    if offsets is not None:
        clocks, others = shared_clocks(plan, table, offsets, pmfs, lower, upper)
    exists = existence(table, plan.names.probability)
    for found, order in parts:
        events = Events(
            np.append(found.begins, len(found.match)), found.component, found.row, lower[found.row],
            upper[found.row], flat_pmfs(others, found.row)[0],
            None if spans is None else _ends_of(spans, found.row, lower, upper),
        )  # fmt: skip
        if order is not None:
            yield found, events, groups_in_order(found.plan, table, events, order, exists)
            continue
        selected = partial(select, found.plan, table, lower, upper, in_table[0], None)
        context = ExecutionContext(
            found.plan, table, _NOT_SELECTED, (lower, upper), others, None, True, BOXES_AT_ONCE,
            clocks=clocks, existence=exists, spans=spans,
        )  # fmt: skip
        yield found, events, _engines(context, selected, events)


def _ends_of(spans: SpanTimes, rows: Int64, lower: Int64, upper: Int64) -> EndsOfEvents:
    """Return the ends of the events of some rows; of moments they are their times."""
    ends = np.where(spans.lasts[rows], rows + spans.events, rows)
    return EndsOfEvents(spans.lasts[rows], lower[ends], upper[ends])


def groups_in_order(
    plan: EvaluationPlan,
    table: pa.Table,
    events: Events,
    sequences: SequencedEvents,
    exists: Existence | None,
) -> Iterator[tuple[Int64, Confidences]]:
    """Yield matches of an OR-free plan, of events that sequences put in order, with their confidences."""
    if not len(events.row):
        return
    if plan.binds_beside or sequences.breaks_ties(plan):
        yield from _tied(plan, table, events, sequences, exists)
        return
    between = SpoilersInOrder(partial(_tied, plan, table, events, sequences, exists))
    if sequences.is_spoiled_in_time(plan):
        for matches, confidences in _searched_in_order(plan, table, events, sequences, exists):
            yield matches, between.beside(confidences)
        return
    weigher = SequenceWeigher.of(sequences, plan, table)
    times = sequences.lower + sequences.low, sequences.upper + sequences.high
    _, others = shared_clocks(plan, table, offset_bounds(plan, table), sequences.pmfs, *times)
    events = events._replace(offset=flat_pmfs(others, events.row)[0])
    sizes = np.diff(events.start)
    summed = np.logical_or.reduceat(sequences.cluster[events.row] >= 0, events.start[:-1])
    summed |= sequences.is_total or bool(plan.bound.times)
    unspoiled = np.ones(len(sizes))
    if sequences.is_total:
        unspoiled = _unspoiled(plan, table, events, sequences, exists)
    if summed.any():
        chains = OrderedChains(plan, events, sequences, weigher, unspoiled)
        yield np.flatnonzero(summed), between.beside(chains) if sequences.is_total else chains
    for size in np.unique(sizes[~summed]).tolist():
        some = np.flatnonzero(~summed & (sizes == size))
        rises = sequences.rises(events.row[events.start[some] + np.arange(size)[:, None]]).sum(axis=0)
        for ties in np.unique(rises).tolist():
            which = some[rises == ties]
            moved = MovedMatches(events, sequences, weigher, which, size)
            own = others and replace(others, offset=others.offset[moved.rows])
            bound = replace(plan.bound, window=plan.window + ties)
            context = ExecutionContext(
                replace(plan, bound=bound), table.take(pa.array(moved.rows)), _NOT_SELECTED,
                (moved.lower, moved.upper), own, None, True, BOXES_AT_ONCE, clocks=moved.clocks,
            )  # fmt: skip
            selected = partial(moved.selection, len(plan.components))
            for here, confidences in _engines(context, selected, moved.events):
                yield which[here], moved.back(confidences)


def _tied(
    plan: EvaluationPlan,
    table: pa.Table,
    events: Events,
    sequences: SequencedEvents,
    exists: Existence | None,
) -> Iterator[tuple[Int64, Confidences]]:
    """Yield matches of an OR-free plan as those of times, of which sequences break ties."""
    lower, upper = sequences.times
    clocks, pmfs = shared_clocks(plan, table, offset_bounds(plan, table), sequences.pmfs, lower, upper)
    selected = partial(select, plan, table, lower, upper, lower, None)
    context = ExecutionContext(
        plan, table, _NOT_SELECTED, (lower, upper), pmfs, None, True, BOXES_AT_ONCE, clocks=clocks,
        existence=exists, ties=TiedEvents(sequences, plan),
    )  # fmt: skip
    yield from _engines(context, selected, events)


def _unspoiled(
    plan: EvaluationPlan,
    table: pa.Table,
    events: Events,
    sequences: SequencedEvents,
    exists: Existence | None,
) -> Float64:
    """Return P(a match is one but for its window), (k,) float64, where the order of all events is known."""
    found = np.zeros(len(events.start) - 1)
    _, lower, upper = sequences.searched(plan)
    placed = events._replace(
        lower=lower[events.row], upper=upper[events.row], offset=np.full_like(events.row, -1)
    )
    for some, confidences in _searched_in_order(plan, table, placed, sequences, exists):
        first = events.start[some]
        found[some] = confidences.of(Boxes(some, first, placed.lower[first], placed.upper[first]))
    return found


def _searched_in_order(
    plan: EvaluationPlan,
    table: pa.Table,
    events: Events,
    sequences: SequencedEvents,
    exists: Existence | None,
) -> Iterator[tuple[Int64, Confidences]]:
    """Yield matches of events whose order is known, by whose places they are searched for."""
    order = InOrder(sequences, plan) if sequences.is_spoiled_in_time(plan) else None
    plan, lower, upper = sequences.searched(plan)
    selected = partial(select, plan, table, lower, upper, lower, None)
    context = ExecutionContext(
        plan, table, _NOT_SELECTED, (lower, upper), None, None, True, BOXES_AT_ONCE, existence=exists,
        order=order,
    )  # fmt: skip
    yield from _engines(context, selected, events)


def _engines(
    context: ExecutionContext, selected: Callable[[], Selection], events: Events
) -> Iterator[tuple[Int64, Confidences]]:
    """Yield the matches of one branch in groups, each with what gives their confidences.

    Candidates are selected only if some matches need the search.
    """
    if not len(events.row):
        return
    plan, pmfs, clocks = context.plan, context.pmfs, context.clocks
    independent = context.order is None and context.spans is None and plan.asks_order_alone
    sizes = np.diff(events.start)
    searched = np.full(len(sizes), not independent)
    if independent:
        values = np.zeros(0) if pmfs is None else pmfs.values
        explicit = np.logical_or.reduceat(events.offset >= 0, events.start[:-1])
        for size in np.unique(sizes).tolist():
            some = np.flatnonzero(sizes == size)
            if clocks is not None:
                tied, held = shared_and_held(
                    clocks, events.row[events.start[some] + np.arange(size)[:, None]]
                )
                searched[some[held]] = True
                if tied.any():
                    yield some[tied], ClockedChains(plan, events, size, clocks)
                some = some[~tied & ~held]
            if len(some):
                yield some, ChainMatches(plan, events, size, values, explicit)
    if not searched.any():
        return
    window = context.span
    for part, candidates, rows in laid_out(selected(), window + 2, step=0):
        places = np.full(len(events.row), -1)
        for j in range(len(plan.components)):
            own = slice(int(candidates.first[j]), int(candidates.first[j + 1]))
            order = own.start + np.argsort(rows[own], kind="stable")
            mine = np.flatnonzero(events.component == j)
            at = np.minimum(np.searchsorted(rows[order], events.row[mine]), len(order) - 1)
            here = rows[order[at]] == events.row[mine]
            places[mine[here]] = order[at[here]]
        some = np.flatnonzero(searched & (places[events.start[:-1]] >= 0))
        if len(some):
            search = BoxedSearch(context.among(part), candidates, rows, window)
            yield some, Searched(search, events, places)


class ChainMatches(Confidences):
    """Matches of as many events, which nothing but order and window ties together.

    Beside the weighers posteriors of three events take x0.6 of the time at 10 ticks, x0.17 at 100, x0.11 at
    2,000 and x0.02 at 20,000.
    """

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
        self._chains = new_chains(size, self._w)

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
            describe_chosen(chosen, self._w, self._lower, self._upper, base, first, last)
            confidences_of_matches(chosen, self._w, self._lower, self._upper, self._chains, found)

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

    @property
    def sums_over_ticks(self) -> bool:
        """Whether times of events depend on each other, so that laws are sums over ticks."""
        context = self._context
        tied = self._by_clocks, context.order, context.ties, self._spans
        return any(one is not None for one in tied)

    @property
    def sums_pieces(self) -> bool:
        """Whether times that last may have laws that are polynomial on few pieces."""
        spans = self._spans
        return (
            spans is not None and self._by_clocks is None and spans.times.length_laws is None
            and not self._plan.forbids
        )  # fmt: skip

    def pieces_of_law(
        self, matches: FoundMatches, event: int, *, at_end: bool
    ) -> Iterator[tuple[Int64, PiecesOfLaw]]:
        """Yield the pieces on which laws of a time, given its match, are polynomial, with the matches.

        ``event`` is the place of the event in each match. Matches of explicit probabilities, and of very many
        pieces, are left out.
        """
        yield from pieces_of_laws(self.model(MatchEvents(*matches)), event, at_end=at_end)

    def confidences(self, matches: FoundMatches, boxes: Int64, beside: Beside | None = None) -> Float64:
        """Return P(match, and its events in their boxes), (k,) float64; ``beside`` bounds times besides."""
        most = int(np.diff(matches.start).max()) + len(self._kleene)
        return self._described(matches, True, scratch(self._conditions, most), boxes, beside)[2]

    def spoilers(self, matches: FoundMatches) -> list[Int64]:
        """Return for each match the rows of the events that can be in a gap of it and forbid it."""
        found: list[Int64] = [np.zeros(0, dtype=np.int64)] * (len(matches.start) - 1)
        if not len(self._forbidden.events.row):
            return found
        context = self._context
        sequences = None if context.ties is None else context.ties.events
        events = MatchEvents(*matches)
        for n in range(len(found)):
            checkpoint()
            model = self.model(some_of(events, np.array([n])))
            for _, rows in spoilers(model, context.clocks, sequences):
                found[n] = rows
        return found

    def model(self, match: MatchEvents) -> MatchModel:
        """Return the model of one match."""
        work = scratch(self._conditions, len(match.place) + len(self._kleene))
        return MatchModel(
            self._pattern_of, match, self._placed, self._offset, self._pmfs, self._forbidden.events, work,
            True,
        )  # fmt: skip

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


class Searched(Confidences):
    """Matches whose gaps must stay free, whose events are partially ordered, or last."""

    def __init__(self, search: BoxedSearch, events: Events, places: Int64, *, at_end: bool = False) -> None:
        self._search, self._events, self._places, self._at_end = search, events, places, at_end
        bounds = [events.lower, events.upper]
        if events.ends is not None:
            bounds += [events.ends.lower, events.ends.upper]
        self._bounds = np.stack(bounds)

    @property
    def _side(self) -> slice:
        """The bounds of the times that boxes are about."""
        return slice(2, 4) if self._at_end else slice(2)

    def at_ends(self) -> Searched:
        """Return the same where boxes are about the ends of events that last."""
        return Searched(self._search, self._events, self._places, at_end=True)

    def of(self, boxes: Boxes) -> Float64:
        """Return P(match, and one of its events in a box) for each box, (n,) float64."""
        sizes = np.diff(self._events.start)[boxes.match]
        return np.concatenate([np.zeros(0), *(self._some(boxes.part(part)) for part in pieces_of(sizes))])

    def _matches(self, match: Int64) -> tuple[FoundMatches, Int64]:
        """Return matches as kernels take them, and the places of their events."""
        event, start = taken(self._events.start, match)
        return FoundMatches(start, self._places[event], self._events.component[event]), event

    def _some(self, boxes: Boxes) -> Float64:
        matches, event = self._matches(boxes.match)
        asked = self._bounds[:, event]
        own = matches.start[:-1] + boxes.event - self._events.start[boxes.match]
        side = np.zeros(len(own), np.int64)
        if self._at_end and self._events.ends is not None:
            side = 2 * self._events.ends.lasts[boxes.event]
        asked[side, own], asked[side + 1, own] = boxes.first, boxes.last
        return self._search.confidences(matches, asked)

    def bound(self, match: Int64, beside: Beside) -> Float64:
        """Return P(match, and bounds of its times beside the pattern), (n,) float64, a match once or more."""
        sizes = np.diff(self._events.start)[match]
        return np.concatenate([np.zeros(0), *(self._bound(match, beside, part) for part in pieces_of(sizes))])

    def _bound(self, match: Int64, beside: Beside, part: slice) -> Float64:
        matches, event = self._matches(match[part])
        # An earlier tick is by no clock: boxes say that times count, not their differences alone.
        boxes = self._bounds[:, event] if isinstance(beside, EarlierTick) else NO_BOXES
        return self._search.confidences(matches, boxes, beside.some(np.arange(len(match))[part]))

    def cheap_centres_of(self, match: Int64, time: EndOfEvent) -> Float64:
        """Return :meth:`cheap_centres` of one time of some matches."""
        event = np.flatnonzero(self._events.component == time.component)[match]
        return (self.at_ends() if time.at_end else self).cheap_centres(match, event)

    def centres(self, match: Int64, event: Int64) -> Float64:
        """Return P(match) times an event's mean time given the match, less its first tick, (n,) float64."""
        found = self.cheap_centres(match, event)
        for n in np.flatnonzero(np.isnan(found)).tolist():
            if self._search.sums_over_ticks:
                first, last = self._bounds[self._side, event[n]].tolist()
                checkpoint(8 * (last - first))
                behind = np.arange(last - first + 1)
                one = np.full(len(behind), match[n]), np.full(len(behind), event[n])
                found[n] = (self.of(Boxes(*one, first + behind, first + behind)) * behind).sum()
                continue
            row = int(self._events.row[event[n]])
            size = int(self._events.upper[event[n]] - self._events.lower[event[n]])
            found[n] = self._search.centre(self._matches(match[n : n + 1])[0], row, size)
        return found

    def cheap_centres(self, match: Int64, event: Int64) -> Float64:
        """Return :meth:`centres` where the law, given the match, is polynomial on few pieces, else NaN."""
        means = np.full(len(match), np.nan)
        if not self._search.sums_pieces:
            return means
        place = event - self._events.start[match]

        def law(which: Int64, pair: Int64, tick: Int64) -> Float64:
            return self.of(Boxes(match[which[pair]], event[which[pair]], tick, tick))

        for number in np.unique(place).tolist():
            which = np.flatnonzero(place == number)
            matches = self._matches(match[which])[0]
            for numbers, of_law in self._search.pieces_of_law(matches, number, at_end=self._at_end):
                first = self._bounds[self._side, event[which[numbers]]][0]
                means[which[numbers]] = of_law.sums(first, partial(law, which[numbers]))
        return means

    def in_between(self, match: Int64) -> tuple[Int64, Int64]:
        """Return the events that could spoil matches: the matches, and the rows, both (k,)."""
        rows = self._search.spoilers(self._matches(match)[0])
        return np.repeat(match, list(map(len, rows))), np.concatenate([match[:0], *rows])
