"""Backtracking search: Kleene and negated components, contiguity, and AND, whose components are sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import CostlyMatchError, Limits, Pmfs
from confidence.budget import checkpoint, steps_per_call
from confidence.chain.distribution import DOUBTFUL
from confidence.config import EVER
from confidence.flat_lists import taken
from confidence.gaps.unions import Term, Union
from confidence.predicates.conditions import Conditions, Scratch, scratch
from eventbased import Candidates
from eventbased.config import BLOCK_ROWS
from eventbased.gaps.fewer_offsets import Clocks
from eventbased.gaps.gap_events import NO_BOXES, ForbiddenEvents, MatchEvents, Placed
from eventbased.gaps.held_clocks import TooManyOffsetsError
from eventbased.search.backtracking import DEEPER, EXHAUSTED, FULL, TOO_LONG, promising, search
from eventbased.search.negation_pruning import NegationPruning, soonest_ends
from eventbased.search.partial_orders import MOST_EVENTS
from eventbased.search.sequences import completions
from eventbased.search.state import (
    FoundMatches,
    SearchCandidates,
    SearchPattern,
    SequenceLimits,
    Wanted,
    start_search,
)
from uncertain_cep.candidates.forbidden import GapConstraints, forbidden_events, terms_of
from uncertain_cep.candidates.layout import laid_out
from uncertain_cep.config.limits import MOST_BITS, MOST_CONFIDENCE_STEPS
from uncertain_cep.errors import ConfidenceCostError
from uncertain_cep.expressions.conditions import compile_conditions
from uncertain_cep.expressions.vectorised import Values, loaded_from
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import ExecutionContext, Threshold
from uncertain_cep.operators.costly_matches import ids_by_component, too_dear
from uncertain_cep.operators.counters import Counters
from uncertain_cep.operators.join_prefix import choice_of_singles, choices_of_singles
from uncertain_cep.operators.lasting_events import chosen_spans
from uncertain_cep.operators.partial_orders import sorted_by_id
from uncertain_cep.operators.series import by_component, event_by_event
from uncertain_cep.operators.shared_clocks import LikelyMatches, too_many_offsets
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.time_bounds import literal_bounds
from uncertain_cep.query.typed import Column, variables_of
from uncertain_cep.weighers.beside import Beside
from uncertain_cep.weighers.cheapest import Weighing
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns, MatchPattern

__all__ = ["BacktrackingSearch", "backtracking_search", "searched"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_FIRST_EVENTS: Final = 8
"""Events of a match that a search has room for at first."""

FIRST_MATCHES: Final = 256
"""Matches found before they first raise a threshold; then twice as many each time."""


def backtracking_search(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield the matches of an OR-free pattern with single, Kleene and negated components under any strategy.

    Partial matches are counted by nodes where there is a join prefix, else by the components that have taken
    an event.

    Raises
    ------
    ConfidenceCostError
        If the confidence of a match takes too many steps.

    Notes
    -----
    Memory is O(events + batch_rows * events of a match), whatever the number of matches.
    """
    yield from searched(BacktrackingSearch, context)


def searched(kind: type[BacktrackingSearch], context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield the matches as a kind of search finds and describes them, on each part of the candidates."""
    window = context.span
    for part, candidates, rows in laid_out(context.candidates, window + 2, step=0):
        tree = choice_of_singles(context.plan, context.table, part).tree
        inner = replace(context, candidates=part, tree=tree)
        yield from kind(inner, candidates, rows, window).chunks()


def _laws(context: ExecutionContext, times: tuple[Int64, Int64]) -> tuple[Int64, Pmfs, Int64]:
    """Return where each event has its law, (n,) int64, the laws, and where forbidden events have theirs."""
    pmfs, clocks = context.pmfs, context.clocks
    offset = np.full(context.table.num_rows, -1) if pmfs is None else pmfs.offset
    laws = Pmfs.of(np.zeros(0) if pmfs is None else pmfs.values, *times, offset)
    if clocks is not None:
        offset, laws = clocks.laws(*times)
    if context.existence is None:
        return offset, laws, offset
    by_clock = None if clocks is None else clocks.own.offset
    laws, forbidding = context.existence.forbidding(laws, offset, slice(None), by_clock)
    return offset, laws, forbidding


class BacktrackingSearch:
    """The candidates of one layout, what is forbidden among them, and the conditions.

    If the context has a tree, its components are the join prefix, and the others are taken between or beside
    their events. Of the candidates no positions are taken off; ``rows`` are those of the table, ``window`` is
    in ticks and no more than they ask for.
    """

    def __init__(self, context: ExecutionContext, laid: Candidates, rows: Int64, window: int) -> None:
        plan, table, selection = context.plan, context.table, context.candidates
        clocks, ties = context.clocks, context.ties
        times = context.ticks if ties is None else ties.events.times
        self._context, self._plan, self._table = context, plan, table
        self._laid, self._rows, self._window = laid, rows, window
        count = len(rows)
        self._base = laid.base[:count]
        self._offset, self._pmfs, forbidding = _laws(context, times)
        forbidden_at = partial(
            forbidden_events, plan, table, selection, first=laid.first, rows=rows, index=laid.source[:count],
            offset=forbidding,
        )  # fmt: skip
        self._forbidden = forbidden_at(ticks=times)
        self._surely = self._forbidden if ties is None else forbidden_at(ticks=ties.wide(context.ticks))
        self._conditions = _compiled(plan, table, rows, laid.first, self._forbidden)
        self._terms = [(term, _spared(self._forbidden, term)) for term in terms_of(plan)]
        self._kleene = np.array([component.kleene for component in plan.components], dtype=np.bool_)
        is_set = np.array(plan.takes_set, dtype=np.bool_)
        before = plan.event_order.search_before
        self._before: Int64 | None = None if before is None else np.array(before, dtype=np.int64)
        sequences = context.order or ties
        self._asked = plan if sequences is None else sequences.plan
        timed = bool(self._asked.bound.times)
        self._in_order: OrderedGaps | None = None
        if context.order is not None:
            from uncertain_cep.operators.ordered_gaps import OrderedGaps

            self._in_order = OrderedGaps(context.order, table)
        self._spans = chosen_spans(context)
        self._weighing = self._weighers()
        self._by_clocks = None if self._weighing.offsets is None else self._weighing.offsets.held
        # What bounds confidences while searching takes times as independent.
        self._threshold = context.threshold
        self._likely: Callable[[Int64, Int64], NDArray[np.bool_]] | None = None
        if sequences is not None or clocks is not None or self._spans is not None:
            self._threshold = None
        if ties is None and clocks is not None and before is None and context.threshold is not None:
            self._likely = partial(LikelyMatches(clocks, window).among, context.threshold)
        # What is taken next in every world is so only if it happened, and no condition on times can fail it.
        skips_to_next = plan.query.strategy == "skip_till_next_match" and not timed
        skips_to_next = skips_to_next and context.existence is None
        self._pattern = SearchPattern(self._kleene, is_set, self._apart(), window, skips_to_next)
        lower, upper = laid.lower[:count], laid.upper[:count]
        end = upper if self._spans is None else np.maximum(self._spans.ends[1][rows] + self._base, upper)
        self._candidates = SearchCandidates(
            laid.first_class, laid.class_start, laid.class_stop, laid.class_longest, lower, upper, rows,
            self._offset[rows], end, np.maximum.reduceat(end - lower, laid.class_start),
        )  # fmt: skip
        if ties is None:
            self._placed = Placed(self._candidates.lower, self._candidates.upper, self._base, rows)
        else:
            self._placed = Placed(times[0][rows], times[1][rows], np.zeros_like(rows), rows)
        self._chain = self._sequence_limits() if before is None else None
        self._pruning = self._negation_pruning()

    def _apart(self) -> Int64:
        """Return by how many ticks an event can end behind another one begins at least, (l, l) or (0, 0).

        As conditions on times say, if ticks are those of the plan.
        """
        plan, window = self._plan, self._window
        variables = [None if part.kleene else part.variable for part in plan.components]
        apart = np.full((len(variables), len(variables)), -window)
        for _, (i, j, low, high) in literal_bounds(plan.bound.times, variables, plan.domain):
            apart[i, j] = max(apart[i, j], min(low, window))
            apart[j, i] = max(apart[j, i], min(-high, window))
        says_something = self._context.ties is None and (apart > -window).any()
        return apart if says_something else np.zeros((0, 0), dtype=np.int64)

    def _sequence_limits(self) -> SequenceLimits:
        """Return limits of candidates by those of later components of a sequence, and by what forbids."""
        limit, base, rows = self._surely.limit, self._base, self._rows
        if len(limit):
            limit = np.where(limit == EVER, EVER, limit + base)
        begin, over = self._candidates.lower, self._candidates.upper
        if self._context.ties is not None:
            begin, over = (bound[rows] + base for bound in self._context.ties.wide(self._context.ticks))
        latest, reach = np.empty((2, len(rows)), dtype=np.int64)
        limits = SequenceLimits(latest, reach, limit, begin, over)
        completions(self._candidates, limits, self._window)
        return limits

    def _weighers(self) -> Weighing:
        """Return the weighing of the matches."""
        context, clocks = self._context, self._context.clocks
        limits = Limits(float(MOST_CONFIDENCE_STEPS), *self._plan.estimates)
        ties = context.ties
        self._pattern_of = MatchPattern(
            self._asked, self._table, self._forbidden.rules, self._conditions,
            self._window if ties is None else ties.span, context.existence, limits,
            None if ties is None else ties.events.ties, self._spans,
        )  # fmt: skip
        return Weighing(
            self._pattern_of,
            None if clocks is None else Clocks(clocks.own, clocks.offsets, clocks.values),
            None if context.counters is None else context.counters.weighed,
        )

    def firsts(self, matches: FoundMatches) -> NDArray[np.bool_]:
        """Return for each event of some matches, (s,) bool, whether none of its match comes before it."""
        component = matches.component
        # Nothing is before the first event of a chain, or before any of a set, that no component is before.
        begins = np.r_[True, component[1:] != component[:-1]]
        begins[matches.start[:-1]] = True
        before = np.arange(len(self._kleene)) if self._before is None else self._before
        first: NDArray[np.bool_] = (before == 0)[component] & (begins | self._pattern.is_set[component])
        return first

    def chunks(self) -> Iterator[MatchBatch]:
        """Yield the matches, in chunks of at most ``batch_rows``."""
        context, many = self._context, bool(self._kleene.any())
        if context.tree is None:
            yield from self._search(np.full((len(self._kleene), 1), -1), context.counters)
            return
        work = scratch(self._conditions, len(self._kleene))
        last_rows = BLOCK_ROWS if many or self._threshold is not None else context.batch_rows
        for chosen in choices_of_singles(
            self._plan, context.tree, self._table, self._laid, self._rows, self._window, last_rows,
            context.counters,
        ):  # fmt: skip
            if many:
                yield from self._search(chosen, None)
                continue
            if self._threshold is not None:
                chosen = chosen[:, self._promising(chosen, self._threshold)]
            chunk = self._chunk(event_by_event(chosen), work)
            if len(chunk.lower):
                yield chunk

    def _promising(self, chosen: Int64, threshold: Threshold) -> NDArray[np.bool_]:
        """Return a mask of the matches of single events, (l, m) int64 candidates, that can be wanted."""
        found = np.empty(chosen.shape[1], dtype=np.bool_)
        length = len(chosen)
        promising(
            self._candidates, self._pattern, self._chain, self._before, self._wanted(threshold),
            start_search(length, 0, length), scratch(self._conditions, length), chosen, found,
        )  # fmt: skip
        return found

    def _search(self, choices: Int64, counters: Counters | None) -> Iterator[MatchBatch]:
        """Yield the matches with one of some choices made beforehand, (l, m) int64, -1 for any candidate."""
        length, batch_rows = len(choices), self._context.batch_rows
        depth = length + _FIRST_EVENTS if self._before is None else MOST_EVENTS
        state = start_search(depth, self._table.num_rows, length)
        work, asked = scratch(self._conditions, depth), scratch(self._conditions, depth)
        start = np.empty(batch_rows + 1, dtype=np.int64)
        out = FoundMatches(start, *np.empty((2, batch_rows * (length + 1) + depth), dtype=np.int64))
        # Numba types a kernel at its calls.
        kernel: Any = search
        sizes = self._sizes()
        size = next(sizes)
        status = FULL
        while status != EXHAUSTED:
            status, found = kernel(
                self._candidates, self._pattern, self._chain, self._before, self._conditions, self._pruning,
                self._wanted(self._threshold), state, work, choices, steps_per_call(), size, out,
            )  # fmt: skip
            checkpoint()
            if found:
                events = slice(out.start[found])
                matches = FoundMatches(start[: found + 1], out.candidate[events], out.component[events])
                chunk = self._chunk(matches, asked)
                if len(chunk.lower):
                    yield chunk
            if status == FULL:
                size = next(sizes)
            elif status == TOO_LONG:
                checkpoint(32 * len(out.candidate))
                out = FoundMatches(start, *np.empty((2, 2 * len(out.candidate)), dtype=np.int64))
            elif status == DEEPER:
                if self._before is not None:
                    raise _too_many_events()
                depth *= 2
                state, work = state.deeper(depth), work.deeper(self._conditions, depth)
                asked = scratch(self._conditions, depth)
        if counters is not None:
            for j, number in enumerate(state.taken.tolist()):
                counters.add(tuple(range(j + 1)), number)

    def _sizes(self) -> Iterator[int]:
        """Yield how many matches to find, one time after the other: few, if they raise a threshold."""
        batch_rows, threshold = self._context.batch_rows, self._context.threshold
        rises = threshold is not None and threshold.ranks is not None
        size = min(FIRST_MATCHES, batch_rows) if rises else batch_rows
        while True:
            yield size
            size = min(2 * size, batch_rows)

    def _wanted(self, threshold: Threshold | None) -> Wanted:
        """Return a threshold as the kernels take it."""
        least, ranks, last_rank = 0.0, None, None
        if threshold is not None:
            least, ranks, last_rank = threshold.least, threshold.ranks, threshold.last_rank
        # The smallest id of a set is not that of the event taken first.
        if ranks is None or last_rank is None or self._pattern.is_set[0]:
            return Wanted(least, np.zeros(0, dtype=np.int64), np.iinfo(np.int64).max, *self._pmfs[:2])
        return Wanted(least, ranks[self._rows[: self._laid.first[1]]], last_rank, *self._pmfs[:2])

    def _chunk(self, matches: FoundMatches, work: Scratch) -> MatchBatch:
        """Return the matches that are possible, with their ranges and confidences."""
        wanted, payload = self._context.with_confidence, self._context.payload
        if self._likely is not None:
            matches = kept(matches, self._likely(matches.start, self._rows[matches.candidate]))
        lower, upper, confidence, std_error = self._described(matches, wanted, work)
        rows = self._rows[matches.candidate]
        events = rows if payload is None else payload[rows]
        found = by_component(
            self._plan, matches.start, matches.component, events, lower, upper, confidence if wanted else None
        )
        chunk = replace(found, std_error=std_error).keep(lower <= upper)
        return sorted_by_id(chunk, self._pattern.is_set, self._plan, self._table, payload is not None)

    def _described(
        self,
        matches: FoundMatches,
        wanted: bool,
        work: Scratch,
        boxes: Int64 = NO_BOXES,
        beside: Beside | None = None,
    ) -> tuple[Int64, Int64, Float64, Float64 | None]:
        """Return ranges, confidences and their standard errors; an impossible match has an empty range.

        With ``boxes``, see :class:`eventbased.gaps.gap_events.MatchEvents`, of the worlds where the events
        are in theirs; ``beside`` bounds their times besides.
        """
        bounds = boxes, beside
        if not self._terms:
            return self._weighed(matches, self._forbidden.events, wanted, work, bounds)
        union = Union(len(matches.start) - 1)
        for term, events in self._terms:
            if wanted or term.is_reading:
                lower, upper, confidence, error = self._weighed(matches, events, wanted, work, bounds)
                union.add(term, (lower, upper), confidence if wanted else None, error)
        return union.result()

    def _weighed(
        self,
        matches: FoundMatches,
        events: ForbiddenEvents,
        wanted: bool,
        work: Scratch,
        bounds: tuple[Int64, Beside | None],
    ) -> tuple[Int64, Int64, Float64, Float64 | None]:
        """Return ranges, confidences and errors as :meth:`_described` does, if ``events`` are forbidden."""
        answers = Columns.empty(len(matches.start) - 1)
        boxes, beside = bounds
        model = MatchModel(
            self._pattern_of, MatchEvents(*matches, boxes), self._placed, self._offset, self._pmfs, events,
            work, wanted, beside=beside,
        )  # fmt: skip
        with self._priced(matches):
            (self._weighing if self._in_order is None else self._in_order).weigh(model, answers)
        return answers

    @contextmanager
    def _priced(self, matches: FoundMatches) -> Iterator[None]:
        """Name the match whose confidence takes too many steps by its events."""
        try:
            yield
        except CostlyMatchError as error:
            own = slice(int(matches.start[error.match]), int(matches.start[error.match + 1]))
            rows = pa.array(self._rows[matches.candidate[own]])
            ids = self._table.column(self._plan.names.id).take(rows).to_pylist()
            found = ids_by_component(self._plan, matches.component[own].tolist(), ids)
            raise too_dear(self._plan, found, error.steps, error.limit) from None
        except TooManyOffsetsError as error:
            assert self._context.clocks is not None
            raise too_many_offsets(self._context.clocks, error.clocks) from None

    def _sides(self) -> list[tuple[int, int]]:
        """Return for each negation the bits of the components on both sides of its gap.

        Those whose events all come before it, and those whose events, or first one, are behind it; 0 and 0 if
        the gap is to be looked at only when the match is complete.
        """
        plan, length = self._plan, len(self._kleene)
        if length > MOST_BITS:
            return [(0, 0)] * len(plan.negations)
        return list(map(plan.event_order.sides_of_gap, range(len(plan.negations))))

    def _negation_pruning(self) -> NegationPruning:
        """Return the pruning by negations in gaps between components, and the stage of each."""
        plan, events = self._plan, self._surely.events
        # What is asked of a Kleene component is known with the first event of the next one.
        bound = {part.variable: j + part.kleene for j, part in enumerate(plan.components)}
        asked = [variables_of(predicate) for predicate in plan.joined]
        stages, sides = [], []
        for number, (behind, ahead) in enumerate(self._sides()):
            # A partial match ends at a negation only if all its readings do.
            if not all(number in term.negations for term, _ in self._terms):
                behind = ahead = 0
            own = plan.negations[number].component.variable
            if self._spans is not None or any(own in found.variables for found in self._asked.bound.times):
                behind = ahead = 0
            if plan.negations[number].joint:
                behind = ahead = 0
            needed = {name for found in asked if own in found for name in found if name != own}
            last_side = (behind | ahead).bit_length() - 1
            stage = max([last_side, *(bound[name] for name in needed)])
            stages.append(len(bound) if last_side < 0 else stage)
            sides.append((behind, ahead))
        # Only what happened is in a gap for certain.
        events = events._replace(upper=np.where(events.offset > DOUBTFUL, events.upper, EVER))
        soonest = np.empty_like(events.upper)
        soonest_ends(events.upper, events.group_start, soonest)
        behind_of, ahead_of = np.array(sides, dtype=np.int64).reshape(-1, 2).T.copy()
        return NegationPruning(
            events, soonest, self._surely.rules.negated, np.array(stages, dtype=np.int64), behind_of,
            ahead_of, self._base,
        )  # fmt: skip


def kept(matches: FoundMatches, mask: NDArray[np.bool_]) -> FoundMatches:
    """Return the matches where ``mask``, (m,), is true."""
    places, start = taken(matches.start, mask)
    return FoundMatches(start, matches.candidate[places], matches.component[places])


def _too_many_events() -> ConfidenceCostError:
    return ConfidenceCostError(
        f"a match of this pattern with AND takes more than {MOST_EVENTS} events, and at most so many are "
        "followed in any order: ask more of its Kleene components, or choose a shorter WITHIN",
        MOST_EVENTS + 1,
        MOST_EVENTS,
    )


def _spared(forbidden: GapConstraints, term: Term) -> ForbiddenEvents:
    """Return the forbidden events without the negations that a term does not speak of."""
    group_of = forbidden.events.group_of.copy()
    for number, pool in enumerate(forbidden.rules.negated.tolist()):
        if number not in term.negations:
            group_of[pool] = -1
    return forbidden.events._replace(group_of=group_of)


def _compiled(
    plan: EvaluationPlan, table: pa.Table, rows: Int64, first: Int64, forbidden: GapConstraints
) -> Conditions:
    """Return the conditions of a plan for a layout of candidates.

    ``rows`` are those of the candidates, ``first`` says where those of each component start.
    """
    variables = [component.variable for component in plan.components]
    negated = [negation.component.variable for negation in plan.negations]
    rows_of = dict(zip(negated, forbidden.negated_rows, strict=True))
    rows_of |= {variable: rows[first[j] : first[j + 1]] for j, variable in enumerate(variables)}
    full = loaded_from(table.column)

    def load(column: Column) -> Values:
        return full(column).take(rows_of[column.variable])

    return compile_conditions(
        plan.joined,
        variables,
        [component.kleene for component in plan.components],
        negated,
        np.append(first[:-1], np.zeros(len(negated), dtype=np.int64)),
        load,
    )
