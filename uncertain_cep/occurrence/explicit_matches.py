"""Known matches with all that their times depend on: literals, and the events that may be forbidden them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import Limits, Pmfs
from confidence.budget import checkpoint
from confidence.flat_lists import taken
from confidence.predicates.conditions import scratch
from eventbased.gaps.gap_events import GapRules, MatchEvents, Placed
from uncertain_cep.candidates.layout import laid_out
from uncertain_cep.candidates.selection import select
from uncertain_cep.candidates.sequenced import SequencedEvents
from uncertain_cep.candidates.span_times import SpanTimes
from uncertain_cep.errors import ConfidenceCostError
from uncertain_cep.occurrence.row_matches import BranchMatches
from uncertain_cep.operators.backtracking import BacktrackingSearch
from uncertain_cep.operators.context import ExecutionContext, TiedEvents
from uncertain_cep.weighers.explicit import ExplicitMatches, TooManySpoilersError, written_out
from uncertain_cep.weighers.first_members import TooManyTermsError, written_by_terms
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import ChosenSpans, MatchPattern

__all__ = ["NumberedPart", "TableTicks", "explicit_matches"]

Int64 = NDArray[np.int64]
Models = Callable[[Int64], Iterator[MatchModel]]

_AT_ONCE = 1 << 12
"""Matches whose forbidden events are listed at once, if these are not too many."""


@dataclass(frozen=True, slots=True)
class TableTicks:
    """A checked table of events and the bounds of their times.

    Attributes
    ----------
    table : pyarrow.Table
    lower, upper : (n,) int64
        Ticks, without those of probability 0 at the ends.
    given_lower : (n,) int64
        With these.
    spans : SpanTimes or None
        Of events that last: the rows of their ends are behind those of all events.
    """

    table: pa.Table
    lower: Int64
    upper: Int64
    given_lower: Int64
    spans: SpanTimes | None = None

    def with_ends(self, rows: Int64) -> Int64:
        """Return the rows of some events, and behind them those of their ends, if events last."""
        return rows if self.spans is None else np.concatenate((rows, rows + self.spans.events))

    def some(self, events: Int64) -> TableTicks:
        """Return some of the events, by their rows."""
        rows = self.with_ends(events)
        return TableTicks(
            self.table.take(pa.array(rows)), self.lower[rows], self.upper[rows], self.given_lower[rows],
            None if self.spans is None else self.spans.some(events),
        )  # fmt: skip

    @property
    def nothing(self) -> tuple[Int64, Pmfs]:
        """Where the probabilities of each row's times would start, and none: laws are not looked at here."""
        offset, none = np.full(len(self.lower), -1), np.zeros(0)
        return offset, Pmfs(none, none, none)


@dataclass(frozen=True, slots=True)
class NumberedPart:
    """Matches of one shape, the pattern that they are of, and their numbers."""

    matches: ExplicitMatches
    pattern: MatchPattern
    number: Int64
    further: tuple[tuple[int, int, Int64, Int64], ...] = ()
    """Literals besides, see :class:`~uncertain_cep.weighers.first_members.WrittenTerms`."""


def explicit_matches(
    matches: BranchMatches, ticks: TableTicks, order: SequencedEvents | None
) -> Iterator[NumberedPart]:
    """Yield some matches with their literals and forbidden events; one of several readings once for each.

    What has a law of its own is taken as uniform: it is for those who know the laws of rows. By the ``order``
    of the events of the table, sequences break ties.
    """
    for models, which in _models(matches, ticks, order):
        for begin in range(0, len(which), _AT_ONCE):
            yield from _written(models, which[begin : begin + _AT_ONCE], matches.number)


def _written(models: Models, which: Int64, number: Int64) -> Iterator[NumberedPart]:
    """Yield some matches, in so many steps as memory asks for."""
    checkpoint()
    try:
        parts = [
            numbered
            for model in models(which)
            for part in written_out(model)
            for numbered in _by_terms(model.pattern, part, number[which[part.which]])
        ]
    except TooManySpoilersError:
        for half in np.array_split(which, 2):
            yield from _written(models, half, number)
        return
    yield from parts


def _by_terms(pattern: MatchPattern, part: ExplicitMatches, number: Int64) -> Iterator[NumberedPart]:
    """Yield matches of one shape; beside negated groups by terms that exclude each other.

    Raises
    ------
    ConfidenceCostError
        If a match is a sum of too many.
    """
    if not pattern.plan.has_negated_groups:
        yield NumberedPart(part, pattern, number)
        return
    try:
        for terms in written_by_terms(pattern, part):
            yield NumberedPart(terms.matches, pattern, number[terms.of_match], terms.bounds)
    except TooManyTermsError as error:
        raise ConfidenceCostError(
            f"the events of a negated group can be first in more than {error.limit:,} ways in the gap of one "
            "match: choose a shorter WITHIN, or tie the group by keys",
            2 * error.limit,
            error.limit,
        ) from None


def _models(
    matches: BranchMatches, ticks: TableTicks, order: SequencedEvents | None
) -> Iterator[tuple[Models, Int64]]:
    """Yield functions that make models of matches, each with the matches that it takes."""
    plan, table = matches.plan, ticks.table
    if not plan.forbids:
        yield _Unspoiled(matches, ticks).models, np.arange(len(matches.number))
        return
    selection = select(plan, table, ticks.lower, ticks.upper, ticks.given_lower, None)
    ties = None if order is None else TiedEvents(order, plan)
    bounds = ticks.lower, ticks.upper
    context = ExecutionContext(
        plan, table, selection, bounds, None, None, True, _AT_ONCE, ties=ties, spans=ticks.spans
    )
    window = context.span
    for part, candidates, rows in laid_out(selection, window + 2, step=0):
        places = np.full(len(matches.row), -1)
        for j in range(len(plan.components)):
            span_of_component = slice(int(candidates.first[j]), int(candidates.first[j + 1]))
            by_row = span_of_component.start + np.argsort(rows[span_of_component], kind="stable")
            taken_for = np.flatnonzero(matches.component == j)
            if span_of_component.stop > span_of_component.start:
                at = np.minimum(np.searchsorted(rows[by_row], matches.row[taken_for]), len(by_row) - 1)
                here = rows[by_row[at]] == matches.row[taken_for]
                places[taken_for[here]] = by_row[at[here]]
        which = np.flatnonzero(places[matches.start[:-1]] >= 0)
        if len(which):
            search = _ListedSearch(replace(context, candidates=part), candidates, rows, window)
            search.list(matches, places)
            yield search.models, which


def _spans_among(matches: BranchMatches, ticks: TableTicks) -> ChosenSpans | None:
    """Return the components that last in some match; None if all events are points."""
    spans = ticks.spans
    if spans is None:
        return None
    lasting = np.unique(matches.component[spans.lasts[matches.row]])
    ends = ticks.lower[spans.events :], ticks.upper[spans.events :]
    return ChosenSpans(tuple(lasting.tolist()), spans, ends) if len(lasting) else None


class _Unspoiled:
    """Matches that nothing can spoil."""

    def __init__(self, matches: BranchMatches, ticks: TableTicks) -> None:
        plan, row = matches.plan, matches.row
        none = np.empty(0, dtype=np.int64)
        rules = GapRules(np.full(len(plan.components), -1), -1, none, none)
        span = int(ticks.upper.max()) - int(ticks.lower.min()) + 1
        self._pattern = MatchPattern(
            plan, ticks.table, rules, None, min(plan.window, span), None, Limits(0.0, 0.0, 0),
            spans=_spans_among(matches, ticks),
        )  # fmt: skip
        self._placed = Placed(ticks.lower[row], ticks.upper[row], np.zeros_like(row), row)
        self._matches, self._laws = matches, ticks.nothing

    def models(self, which: Int64) -> Iterator[MatchModel]:
        """Yield the model of events matches."""
        place, start = taken(self._matches.start, which)
        events = MatchEvents(start, place, self._matches.component[place])
        yield MatchModel(self._pattern, events, self._placed, *self._laws, None, None, True)


class _ListedSearch(BacktrackingSearch):
    """Matches that a search need not find: what it would forbid them."""

    def list(self, matches: BranchMatches, places: Int64) -> None:
        """Take matches, whose events are candidates at places, (m,) int64."""
        self._listed, self._places = matches, places
        if self._spans is not None:
            # Their ends are variables: what a rule asks of both ends stays one.
            self._pattern_of.spans = self._spans._replace(negates_open=False)

    def models(self, which: Int64) -> Iterator[MatchModel]:
        """Yield the model of some matches, for each reading."""
        event, start = taken(self._listed.start, which)
        events_of_matches = MatchEvents(start, self._places[event], self._listed.component[event])
        longest = int(np.diff(start).max(initial=0)) + len(self._kleene)
        readings = [events for term, events in self._terms if term.is_reading]
        for events in readings if self._terms else [self._forbidden.events]:
            work = scratch(self._conditions, longest)
            yield MatchModel(
                self._pattern_of,
                events_of_matches,
                self._placed,
                self._offset,
                self._pmfs,
                events,
                work,
                True,
            )
