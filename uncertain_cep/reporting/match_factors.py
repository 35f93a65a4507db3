"""Factors of the confidences of many matches at once.

Matches of one shape are one question: their events stand behind each other in one table, each of a type of
its own, and a column keeps the matches apart as a partition does. So a step takes one run for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.existence import existence
from uncertain_cep.config.tolerances import CONFIDENCE_TOLERANCE
from uncertain_cep.errors import OptionError, UncertainCepError
from uncertain_cep.executor import execute_within
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.query import Query, parse
from uncertain_cep.query.repeated_groups import list_of
from uncertain_cep.query.span_relations import comparison_of, relation_at
from uncertain_cep.query.syntax import (
    Component,
    Duration,
    Equivalence,
    Expression,
    Pattern,
    Position,
    Time,
    expressions_in,
)
from uncertain_cep.query.syntax import Sequence as Ordered
from uncertain_cep.query.time_conditions import texts_of
from uncertain_cep.query.walks import components_of, part_of
from uncertain_cep.reporting.in_words import length_of
from uncertain_cep.reporting.pattern_of_match import before, shown_variable, with_events
from uncertain_cep.results.matched_events import MatchedEvents, matched_events
from uncertain_cep.results.order import finished

__all__ = ["Steps", "steps_of_matches"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_IN_BETWEEN: Final = "nothing forbidden happened in between"
_OTHERWISE: Final = "the conditions on times of lists"
_HERE: Final = Position(1, 1)


class Steps(NamedTuple):
    """The factors of k matches of one shape."""

    match: Int64
    """(k,) int64. Their numbers."""
    what: list[str]
    """What has to hold, one step after the other."""
    product: Float64
    """(steps, k) float64. How likely all up to a step holds; of the last step that is the confidence."""


def steps_of_matches(
    plan: EvaluationPlan,
    table: pa.Table,
    matches: pa.Table,
    options: MatchOptions,
    *,
    strict: bool = False,
) -> Iterator[Steps]:
    """Yield the factors of matches, those of one shape together; matches that have none are left out.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
        The events that were matched.
    matches : pyarrow.Table
        With their confidences.
    options : MatchOptions
    strict : bool
        Raise the error of a match that has no factors instead.

    Notes
    -----
    A step takes as long as matching the events of all matches, each in a partition of its own.
    """
    confidence = np.asarray(matches.column("confidence").to_numpy())
    for batch in matched_events(plan, table, matches):
        for match, rows, components in _shapes(batch):
            try:
                question = _Question.of(plan, table, batch.variables, components, rows, options)
                steps = _checked(question, confidence[match])
            except UncertainCepError:
                if strict:
                    raise
                # Several readings of a pattern may give one match; records may not stand in two places.
                continue
            yield steps._replace(match=match)


def _checked(question: _Question, confidence: Float64) -> Steps:
    """Return the factors of a question, whose last product is the confidence.

    Raises
    ------
    OptionError
        If they are not matches of the query, or not with these confidences.
    """
    what: list[str] = []
    products: list[Float64] = []
    for name, product in question.steps():
        what.append(name)
        products.append(product)
    last = products[-1] if products else np.ones_like(confidence)
    is_close = np.abs(last - confidence) <= 1e3 * CONFIDENCE_TOLERANCE * confidence
    if ((last < confidence) & ~is_close).any() or not (question.leaves_open or is_close.all()):
        raise OptionError("this is no match of the query in these events, or not with this confidence")
    if question.leaves_open:
        what.append(question.leaves_open)
        products.append(confidence)
    else:
        # The same but for rounding.
        products[-1] = confidence
    return Steps(np.arange(len(confidence)), what, np.stack(products))


def _shapes(batch: MatchedEvents) -> Iterator[tuple[Int64, Int64, tuple[int, ...]]]:
    """Yield the matches that have equally many events for each component.

    Yields their numbers, (k,) int64, the rows of their events, (k, m) int64, and the m components.
    """
    begins = np.append(batch.begins, len(batch.match))
    shapes: dict[tuple[int, ...], list[int]] = {}
    for n in range(len(begins) - 1):
        shapes.setdefault(tuple(batch.component[begins[n] : begins[n + 1]].tolist()), []).append(n)
    for components, numbers in shapes.items():
        first = begins[:-1][numbers]
        yield batch.match[first], batch.row[first[:, None] + np.arange(len(components))], components


@dataclass(frozen=True, slots=True)
class _Question:
    """The pattern of matches of one shape, with an event for each component, and their events."""

    query: Query
    plan: EvaluationPlan
    table: pa.Table
    """The events of k matches one behind the other, each of a type of its own; their numbers are the ids."""
    of_match: str
    """The column of the numbers of matches."""
    count: int
    """k."""
    options: MatchOptions
    pattern: Pattern
    leaves: tuple[Component, ...]
    conditions: tuple[Expression, ...]
    """Those on times of single events; a relation of two that last may be two."""
    leaves_open: str
    """What the steps do not ask for; empty if nothing is left."""

    @classmethod
    def of(
        cls,
        plan: EvaluationPlan,
        table: pa.Table,
        variables: tuple[str, ...],
        components: tuple[int, ...],
        rows: Int64,
        options: MatchOptions,
    ) -> _Question:
        members: dict[str, list[int]] = {}
        for number, component in enumerate(components):
            members.setdefault(variables[component], []).append(number)
        pattern = with_events(plan.query.pattern, members)
        assert pattern is not None
        present = {*map(list_of, members)}
        single = {part.variable for part in plan.components if not part.kleene} & present
        on_times = [
            (condition, {*map(_mentioned, expressions_in(condition))} - {""})
            for condition in plan.query.where
            if any(isinstance(part, Time) for part in expressions_in(condition))
        ]
        # One that mentions what is left out or negated is not asked of the events of the match.
        conditions = tuple(condition for condition, of in on_times if of <= single)
        several = any(of <= present and not of <= single for _, of in on_times)
        forbids = any(part.forbids for part in plan.or_free)
        left_open = _IN_BETWEEN if forbids else _OTHERWISE if several else ""
        column = "match_number"
        while column in table.column_names:
            column += "_"
        events = _labelled(plan, table, rows, column)
        leaves = tuple(components_of(pattern))
        return cls(
            plan.query, plan, events, column, len(rows), options, pattern, leaves, conditions, left_open
        )

    def steps(self) -> Iterator[tuple[str, Float64]]:
        """Yield the conditions of a match one after the other, and how likely all up to each hold, (k,)."""
        exists = existence(self.table, self.plan.names.probability)
        product = np.ones(self.count)
        for count, leaf in enumerate(self.leaves, 1):
            if exists is not None:
                chance = exists.probability[int(leaf.types[0][1:]) :: self._size]
                if (chance < 1.0).any():
                    product = product * chance
                    yield f"{shown_variable(leaf.variable)} happened", product
            earlier = before(self.pattern, leaf.variable)
            if earlier:
                product = self._probability(count, (), None)
                names = " and ".join(map(shown_variable, earlier))
                yield f"{names} before {shown_variable(leaf.variable)}", product
        window = self.query.window
        if len(self.leaves) > 1 and window is not None:
            yield f"all within {length_of(window)}", self._probability(len(self.leaves), (), window)
        ends = [*map(comparison_of, self.conditions)]
        count = 0
        while count < len(self.conditions):
            text, together = relation_at(ends, count) or (self._text(self.conditions[count]), 1)
            count += together
            yield text, self._probability(len(self.leaves), self.conditions[:count], window)
        if len(self.leaves) == 1 and (product == 1.0).all() and not self.conditions:
            yield f"{shown_variable(self.leaves[0].variable)} happened", product

    @property
    def _size(self) -> int:
        """The number of events of each match."""
        return int(self.table.num_rows // self.count)

    def _probability(self, count: int, conditions: tuple[Any, ...], window: Duration | None) -> Float64:
        """Return how likely the first events are in order, within a window, and meet conditions, (k,)."""
        names = {leaf.variable for leaf in self.leaves[:count]}
        pattern = part_of(self.pattern, lambda part: part.variable in names)
        assert pattern is not None
        apart = (Equivalence(self.of_match, _HERE),) if count > 1 and self.count > 1 else ()
        plan = self._plan(pattern, (*apart, *conditions), self._longest() if window is None else window)
        rows = finished(plan, execute_within(plan, self.table, self.options, None))
        chances = np.zeros(self.count)
        match = np.asarray(rows.column(self.leaves[0].variable).to_numpy()) // self._size
        chances[match] = rows.column("confidence").to_numpy()
        return chances

    def _plan(self, pattern: Pattern, conditions: tuple[Any, ...], window: Duration) -> EvaluationPlan:
        if isinstance(pattern, Component):
            pattern = Ordered((pattern,), pattern.position)
        query = replace(parse("PATTERN SEQ(A a) WITHIN 1"), pattern=pattern, where=conditions, window=window)
        return make_plan(query, self.table.schema, self.options)

    def _text(self, condition: Expression) -> str:
        """Return a condition on times as a query writes it."""
        plan = self._plan(self.pattern, (condition,), self._longest())
        return " and ".join(texts_of(plan.bound.times, plan.domain))

    def _longest(self) -> Duration:
        """Return a window that never binds."""
        names, domain, window = self.plan.names, self.plan.domain, self.query.window
        assert window is not None
        low, high = (
            domain.ticks(self.table.column(name)).reshape(self.count, self._size)
            for name in (names.lower, names.upper)
        )
        ticks = int((high.max(axis=1) - low.min(axis=1)).max()) + 2
        if window.nanoseconds is None:
            return Duration(ticks, None, None, window.position)
        seconds = ticks * (domain.tick_nanoseconds or 1) // 10**9 + 1
        # A whole number of ticks, whatever their length.
        seconds *= max(1, (domain.tick_nanoseconds or 1) // 10**9)
        return Duration(seconds, "seconds", seconds * 10**9, window.position)


def _labelled(plan: EvaluationPlan, table: pa.Table, rows: Int64, column: str) -> pa.Table:
    """Return the events of matches, (k, m) int64 rows, each place of a type of its own, numbered."""
    count, size = rows.shape
    labels = pa.array([f"e{number}" for number in range(size)])
    taken = table.take(pa.array(rows.reshape(-1)))
    columns: Mapping[str, Any] = {
        plan.names.type: labels.take(pa.array(np.tile(np.arange(size), count))),
        plan.names.id: pa.array(np.arange(count * size)),
    }
    for name, values in columns.items():
        taken = taken.set_column(taken.schema.get_field_index(name), name, values)
    return taken.append_column(column, pa.array(np.repeat(np.arange(count), size)))


def _mentioned(part: Expression) -> str:
    """Return the variable that a part of an expression mentions, or nothing."""
    return str(getattr(part, "variable", ""))
