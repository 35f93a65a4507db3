"""Conditions that chosen events fail whatever their times are: types, existence, keys, predicates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from uncertain_cep.misses.pinned import pins_of_list, pins_of_single
from uncertain_cep.misses.positive_part import positive_part, with_predicates
from uncertain_cep.misses.questions import ABSENT, ROW, Choice, Question
from uncertain_cep.misses.reasons import Reason
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query import format_expression
from uncertain_cep.query.binder import BoundQuery
from uncertain_cep.query.expression_text import quote_name
from uncertain_cep.query.typed import Aggregated, TypedExpression, columns_in, variables_of
from uncertain_cep.results.display import plain_text
from uncertain_cep.timeline.domain import TimeDomain
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS, SPAN_LAWS

__all__ = ["event_reasons", "is_type_of", "repeated_events"]

_TICK: Final = "uncertain_cep.misses.tick"
_TICKS: Final = TimeDomain("tick", 1, None)
"""Plain ticks, whatever the times of the events are."""


def event_reasons(question: Question, branch: EvaluationPlan, choice: Choice) -> list[Reason]:
    """Return the conditions that a choice of events fails whatever its times are, one by one.

    Each predicate is asked of the engine alone, on these events at certain times.
    """
    reasons = [
        *repeated_events(question, choice),
        *_types(question, branch, choice),
        *_absent(question, choice),
    ]
    events = _Alone(question, branch.bound, choice)
    if events.holds(events.bound.predicates, events.bound.equivalences):
        return reasons
    bound = events.bound
    reasons += [_key(question, choice, name) for name in bound.equivalences if not events.holds((), (name,))]
    reasons += [_predicate(question, choice, part) for part in bound.predicates if not events.holds((part,))]
    return reasons


class _Alone:
    """The events of a choice at certain times in the order of the pattern, and nothing else."""

    def __init__(self, question: Question, branch: BoundQuery, choice: Choice) -> None:
        self._question = question
        bound = positive_part(branch, 1)
        rows = [row for part in bound.components for row in choice[part.variable]]
        # As certain events of no clock, one a tick.
        self.bound = replace(bound, times=(), window=len(rows) + 1)
        table = question.table.take(pa.array(rows, pa.int64()))
        # What lasts is a point here; only its attributes count.
        named = {column.name for part in bound.predicates for column in columns_in(part)}
        lasting = {*SPAN_COLUMNS, *SPAN_LAWS} - named
        table = table.drop_columns([name for name in table.column_names if name in lasting])
        places = pa.array(np.arange(len(rows)), pa.int64())
        for name in (ROW, _TICK):
            at = table.schema.get_field_index(name)
            table = table.append_column(name, places) if at < 0 else table.set_column(at, name, places)
        self._table = table
        names = question.options.names
        self._options = replace(
            question.options,
            names=replace(names, lower=_TICK, upper=_TICK, pmf=ABSENT, probability=ABSENT),
            sources=False, confidence=False, tick=None, known_until=None,
        )  # fmt: skip
        self._pins = [*self._pinned(choice)]

    def _pinned(self, choice: Choice) -> Iterator[TypedExpression]:
        begin = 0
        for part in self.bound.components:
            end = begin + len(choice[part.variable])
            if part.kleene:
                # Sets know no first element.
                yield from pins_of_list(part.variable, range(begin, end), is_set=True)
            else:
                yield from pins_of_single(part.variable, begin)
            begin = end

    def holds(self, predicates: Sequence[TypedExpression], equivalences: Sequence[str] = ()) -> bool:
        """Return whether some predicates and keys are met."""
        asked_of = with_predicates(self.bound, [*predicates, *self._pins], equivalences)
        asked_of = replace(
            asked_of, components=tuple(replace(part, types=()) for part in asked_of.components)
        )
        plan = self._question.plan_of(asked_of, self._options, self._table, _TICKS)
        return any(True for _ in self._question.choices(plan, self._table, 1))


def is_type_of(question: Question, types: Sequence[str], row: int) -> bool:
    """Return whether an event is of one of some types, or there are none."""
    return not types or question.type_of(row) in types


def repeated_events(question: Question, choice: Choice) -> Iterator[Reason]:
    """Yield the events that a choice, or a part of one, has several times."""
    uses: dict[int, list[str]] = {}
    for variable, rows in choice.items():
        for row in rows:
            uses.setdefault(row, []).append(variable)
    for row, variables in uses.items():
        if len(variables) > 1:
            shown = " and ".join(dict.fromkeys(variables))
            text = (
                f"{shown} have the same event, {plain_text(question.id_of(row))}: a match has an event once"
            )
            ids = (question.id_of(row),) * len(variables)
            yield Reason("repeated", "an event is used once", tuple(variables), ids, text)


def _types(question: Question, branch: EvaluationPlan, choice: Choice) -> Iterator[Reason]:
    for part in branch.components:
        for row in choice[part.variable]:
            if not is_type_of(question, part.types, row):
                type_names = " or ".join(map(quote_name, part.types))
                text = f"{part.variable} has the type {quote_name(question.type_of(row))}, not {type_names}"
                yield Reason("type", type_names, (part.variable,), (question.id_of(row),), text)


def _absent(question: Question, choice: Choice) -> Iterator[Reason]:
    for variable, rows in choice.items():
        for row in rows:
            if not question.probability[row] > 0.0:
                text = f"{variable} did not happen: its probability is 0"
                yield Reason("existence", "probability > 0", (variable,), (question.id_of(row),), text)


def _key(question: Question, choice: Choice, name: str) -> Reason:
    """Return the reason that events do not agree on an attribute."""
    column = question.table.column(name)
    values = [(variable, row, column[row].as_py()) for variable, rows in choice.items() for row in rows]
    shown = ", ".join(f"{variable}.{name} = {_value(value)}" for variable, _, value in values)
    return Reason(
        "key", f"[{name}]", tuple(variable for variable, _, _ in values),
        tuple(question.id_of(row) for _, row, _ in values), f"[{name}] is not true: {shown}",
    )  # fmt: skip


def _predicate(question: Question, choice: Choice, predicate: TypedExpression) -> Reason:
    variables = [variable for variable in choice if variable in variables_of(predicate)]
    text = format_expression(predicate)
    events = tuple(question.id_of(row) for variable in variables for row in choice[variable])
    names = tuple(variable for variable in variables for _ in choice[variable])
    is_count = any(isinstance(column, Aggregated) and not column.name for column in columns_in(predicate))
    values = ", ".join(_values(question, choice, predicate))
    shown = f"{text} is not true" + (f": {values}" if values else "")
    return Reason("count" if is_count else "predicate", text, names, events, shown)


def _values(question: Question, choice: Choice, predicate: TypedExpression) -> Iterator[str]:
    """Yield the values of the attributes that a predicate compares."""
    for column in dict.fromkeys(columns_in(predicate)):
        name = column.name
        if column.computed is None and name in question.table.column_names and column.variable in choice:
            values = [_value(question.table.column(name)[row].as_py()) for row in choice[column.variable]]
            shown = values[0] if len(values) == 1 else f"[{', '.join(values)}]"
            yield f"{column.variable}.{quote_name(name)} = {shown}"


def _value(value: Any) -> str:
    return "null" if value is None else repr(value) if isinstance(value, str) else plain_text(value)
