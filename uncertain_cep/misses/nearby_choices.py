"""Nearest misses: choices of events whose times would do if bounds were a little later.

All upper bounds are moved by as much, and conditions that a single time is at most something with them. The
engine then finds the choices that are missing at most that, and bisection finds how much the nearest are
missing. It joins as ever and stops at a few matches, so that no choice is enumerated that is not shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.candidates.selection import coded
from uncertain_cep.config.limits import MAX_TICK
from uncertain_cep.expressions.vectorised import evaluate_mask
from uncertain_cep.misses.choice_times import ChoiceTimes, EventTimes
from uncertain_cep.misses.event_conditions import is_type_of
from uncertain_cep.misses.named_events import NamedEvents
from uncertain_cep.misses.positive_part import positive_part, with_later_ends, with_predicates
from uncertain_cep.misses.questions import ABSENT, Choice, Question
from uncertain_cep.misses.span_ends import SpanEnds
from uncertain_cep.plan import EvaluationPlan, MatchOptions
from uncertain_cep.query.binder import BoundQuery
from uncertain_cep.query.typed import TypedExpression, columns_in, speaks_of_each_event, variables_of
from uncertain_cep.timeline.domain import lengths_in_ticks
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS, SPAN_LAWS

__all__ = ["choices_nearby"]

_LOWER, _UPPER = "uncertain_cep.misses.lower", "uncertain_cep.misses.upper"
_OFFSETS = "uncertain_cep.misses.offset_lower", "uncertain_cep.misses.offset_upper"


def choices_nearby(
    question: Question, events: EventTimes, branch: EvaluationPlan, named: NamedEvents, count: int
) -> list[Choice]:
    """Return the choices of a branch with the named events that are missing least, at most so many.

    Where no choice meets all conditions, one is left out at a time; where that is not enough, all are.
    """
    search = _Search(question, events, branch, named, count)
    whole = search.bound
    nearby = search.nearest(whole)
    if not nearby:
        for fewer in search.without_one(whole):
            nearby += search.nearest(fewer)
    # Conditions on times may contradict each other, or the window, whatever the events.
    untimed = replace(whole, times=(), window=max(whole.window, len(whole.components)))
    return nearby or search.nearest(untimed) or search.nearest(with_predicates(untimed, search.pins))


@dataclass
class _Search:
    """The search for choices of one branch."""

    question: Question
    events: EventTimes
    branch: EvaluationPlan
    named: NamedEvents
    count: int
    _same_value: dict[str, NDArray[np.bool_]] = field(default_factory=dict)

    @cached_property
    def pins(self) -> tuple[TypedExpression, ...]:
        """The conditions that keep variables to the named events."""
        return tuple(self.named.pins(self.branch))

    @cached_property
    def bound(self) -> BoundQuery:
        """The positive part, kept to the named events, but for what these fail by themselves."""
        bound = positive_part(self.branch.bound, self.question.window)
        components = []
        for part in bound.components:
            named = self.named.by_variable.get(part.variable)
            rows = () if named is None else named.rows
            fits = all(is_type_of(self.question, part.types, row) for row in rows)
            components.append(part if fits else replace(part, types=()))
        query = replace(bound.query, limit=self.count)
        kept = [part for part in bound.predicates if not self._fails(part)]
        bound = replace(bound, components=tuple(components), query=query)
        return with_predicates(bound, [*kept, *self.pins], bound.equivalences)

    def _fails(self, predicate: TypedExpression) -> bool:
        """Return whether a condition on one variable is not true of its named event."""
        variables = variables_of(predicate)
        if len(variables) != 1 or not all(map(speaks_of_each_event, columns_in(predicate))):
            return False
        named = self.named.by_variable.get(next(iter(variables)))
        if named is None or not named.rows:
            return False
        return not evaluate_mask(predicate, self.question.table.take(pa.array(named.rows, pa.int64()))).all()

    def without_one(self, bound: BoundQuery) -> Iterator[BoundQuery]:
        """Yield a branch without one of its conditions each."""
        for predicate in bound.predicates:
            if predicate not in self.pins:
                kept = [part for part in bound.predicates if part is not predicate]
                yield with_predicates(bound, kept, bound.equivalences)
        for name in bound.equivalences:
            yield with_predicates(
                bound, bound.predicates, [part for part in bound.equivalences if part != name]
            )

    def nearest(self, bound: BoundQuery) -> list[Choice]:
        """Return the choices of a branch that are missing least; fewer than `count` if there are no more."""
        few, low = self._at(bound, 0), 0
        if len(few) >= self.count:
            return few
        high = max(min(self.question.window, self._span), 1)
        near = self._at(bound, min(high, self._farthest))
        while len(near) < self.count and high < self._farthest:
            few, low, high = near, high, min(8 * high, self._farthest)
            near = self._at(bound, high)
        if len(near) < self.count:
            return near
        while True:
            # No choice at hand is missing more than the farthest of them.
            high = min(high, max(map(self._distance, near)))
            if high <= low + 1:
                break
            middle = (low + high) // 2
            closer = self._at(bound, middle)
            if len(closer) >= self.count:
                near, high = closer, middle
            else:
                few, low = closer, middle
        joined = [*few, *(choice for choice in near if choice not in few)]
        return sorted(joined, key=self._distance)[: self.count]

    def _distance(self, choice: Choice) -> int:
        rows = [choice[part.variable] for part in self.branch.components]
        ticks = ChoiceTimes(self.question, self.events, self.branch, rows).distance()
        return self._farthest if ticks is None else ticks

    def _at(self, bound: BoundQuery, ticks: int) -> list[Choice]:
        """Return choices that are missing at most so many ticks, at most `count`."""
        if bound.window < self.branch.event_order.least_span:
            return []
        question = self.question
        kept = self._in_reach(bound, ticks)
        table = self._table if kept.all() else self._table.filter(pa.array(kept))
        later = question.plan.domain.times(self._times[1][kept] + ticks)
        table = table.append_column(_UPPER, later)
        if question.ends is not None:
            table = self._with_later_ends(table, self._rows[kept], question.ends, ticks)
        plan = question.plan_of(with_later_ends(bound, ticks), self._options, table)
        return [choice for choice, _ in question.choices(plan, table, self.count)]

    def _with_later_ends(
        self, table: pa.Table, rows: NDArray[np.int64], ends: SpanEnds, ticks: int
    ) -> pa.Table:
        """Return events whose begins and ends may be later, where that is bounded; lengths stay.

        All that are given have the bounds that leave their ticks of probability 0 out, and are alike likely.
        """
        domain = self.question.plan.domain
        table = table.drop_columns([name for name in SPAN_LAWS if name in table.column_names])
        for place, column in enumerate(SPAN_COLUMNS):
            lower, upper, has = ends.as_stated[column.partition("_")[0]][:, rows]
            is_length, is_upper = place >= 4, place % 2 == 1
            bound = upper + (0 if is_length else ticks) if is_upper else lower
            if is_length:
                nanoseconds = None if domain.unit == "tick" else domain.tick_nanoseconds
                values = lengths_in_ticks(bound, nanoseconds)
            else:
                values = domain.times(bound)
            values = pc.if_else(pa.array(has.astype(bool)), values, pa.scalar(None, values.type))
            table = table.set_column(table.schema.get_field_index(column), column, values)
        # A length without a chance may leave less of an end than the bounds that are given.
        for side, (column, name, wider) in enumerate(
            ((_LOWER, "begin", np.minimum), (_UPPER, "end", np.maximum))
        ):
            bound, has = ends.as_stated[name][:, rows][[side, 2]]
            whole = self.question.times[side][rows]
            whole = np.where(has, wider(whole, bound), whole) + side * ticks
            place = table.schema.get_field_index(column)
            table = table.set_column(place, column, domain.times(whole))
        return table

    def _in_reach(self, bound: BoundQuery, ticks: int) -> NDArray[np.bool_]:
        """Return the rows of events that the named ones and the window leave, (k,) bool of `_rows`.

        They have the keys of the named events, and with upper bounds later by so many ticks they can be less
        than a window away from each. All of the events of ordered sources stay: they bound each other.
        """
        question, rows = self.question, self._rows
        kept = np.ones(len(rows), dtype=np.bool_)
        if not self.named.rows or question.plan.clock_names.ordered is not None:
            return kept
        lower, upper = self._times
        reach = min(bound.window, self._span) + ticks
        for row in self.named.rows:
            first, last = (int(bounds[row]) for bounds in question.times)
            kept &= (upper >= first - reach) & (lower <= last + reach)
        for name in bound.equivalences:
            kept &= self._agreeing(name)
        return kept

    def _agreeing(self, name: str) -> NDArray[np.bool_]:
        """Return the rows, (k,) bool of `_rows`, that have the first named event's value in a column."""
        if name not in self._same_value:
            (codes,) = coded(self.question.table, [name])
            code = codes[self.named.rows[0]]
            self._same_value[name] = (codes[self._rows] == code) & (code >= 0)
        return self._same_value[name]

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """The rows of the events that may have happened, and of those that are named."""
        kept = self.question.probability > 0.0
        kept[list(self.named.rows)] = True
        return np.flatnonzero(kept)

    @cached_property
    def _times(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The bounds of the times of the events of `_rows`."""
        lower, upper = self.question.times
        return lower[self._rows], upper[self._rows]

    @cached_property
    def _table(self) -> pa.Table:
        """The events with their tight lower bounds, and offsets, in columns of their own."""
        question, rows = self.question, self._rows
        table = question.table.take(pa.array(rows)) if len(rows) < question.table.num_rows else question.table
        table = table.append_column(_LOWER, question.plan.domain.times(self._times[0]))
        offsets = question.offsets
        if offsets is None:
            return table
        clock = offsets.clock[rows]
        nanoseconds = None if question.plan.domain.unit == "tick" else question.plan.domain.tick_nanoseconds
        for name, bound in zip(_OFFSETS, (offsets.low, offsets.high), strict=True):
            lengths = lengths_in_ticks(bound[clock], nanoseconds)
            nulls = pa.scalar(None, lengths.type)
            table = table.append_column(name, pc.if_else(pa.array(clock < 0), nulls, lengths))
        return table

    @cached_property
    def _options(self) -> MatchOptions:
        """The options by which bounds of times are those of the columns made here."""
        names = replace(
            self.question.options.names, lower=_LOWER, upper=_UPPER, pmf=ABSENT, probability=ABSENT
        )
        if self.question.offsets is not None:
            names = replace(names, offset_lower=_OFFSETS[0], offset_upper=_OFFSETS[1], offset_pmf=ABSENT)
        return replace(self.question.options, names=names, confidence=False, known_until=None)

    @cached_property
    def _span(self) -> int:
        """The ticks from the earliest to the latest time of any event."""
        lower, upper = self.question.times
        return int(upper.max()) - int(lower.min()) + 1 if len(lower) else 1

    @cached_property
    def _farthest(self) -> int:
        """More ticks than any choice is missing by order, window and literal conditions."""
        tick = self.question.plan.domain.tick_nanoseconds or 1
        begin = int(self.question.times[0].min())
        literals = sum(
            abs(part.ticks) + abs(part.nanoseconds // tick - (begin if part.earlier is None else 0)) + 1
            for part in self.branch.bound.times
        )
        room = MAX_TICK - max(abs(int(bound.min())) + abs(int(bound.max())) for bound in self.question.times)
        return max(min(4 * self._span + literals + len(self.branch.components), room // 2), 1)
