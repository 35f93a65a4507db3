"""Conditions on times: the events of a match that each speaks of, and the ticks that it allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.timed.forbidden_spans import Span
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.expressions.beyond_int64 import clipped
from uncertain_cep.expressions.vectorised import Values, column_values, evaluate
from uncertain_cep.expressions.whole_numbers import with_checks
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query.time_conditions import FAR, TimeCondition, TimeReference, bounds_in_ticks
from uncertain_cep.query.typed import Column, Element, TypedExpression

__all__ = ["OTHER", "OTHER_END", "Alike", "Instance", "TimeTemplates"]

Int64 = NDArray[np.int64]
Mention = tuple[str, Element]

OTHER: Final = -2
"""Stands for an event that is not of the match, in the place of one."""

OTHER_END: Final = -5
"""Stands for the end of such an event."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A condition on times, for certain events of a match: their numbers in it, -1 for none, or OTHER.

    OTHER_END is the end of an event that is not of the match.
    """

    condition: int
    later: int
    earlier: int
    events: tuple[tuple[Mention, int], ...]
    """For each mention of an attribute the event."""


class Alike(NamedTuple):
    """Instances of one condition that mention attributes of the same variables.

    Attributes
    ----------
    condition : int
    mentions : tuple
    place : (m,) int64
        The number of each instance among those that were grouped.
    events : (n, m) int64
        For each mention and instance the event; that of one mention is OTHER for all instances or for none.
    """

    condition: int
    mentions: tuple[Mention, ...]
    place: Int64
    events: Int64

    @classmethod
    def of(cls, instances: Iterable[tuple[int, Instance]]) -> tuple[Alike, ...]:
        """Return instances, each with a number, in groups."""
        groups: dict[Any, list[tuple[int, tuple[int, ...]]]] = {}
        for number, instance in instances:
            mentions = tuple(mention for mention, _ in instance.events)
            events = tuple(event for _, event in instance.events)
            key = instance.condition, mentions, tuple(event == OTHER for event in events)
            groups.setdefault(key, []).append((number, events))
        return tuple(
            cls(
                condition,
                mentions,
                np.array([number for number, _ in members], dtype=np.int64),
                np.array([events for _, events in members], dtype=np.int64)
                .reshape(len(members), len(mentions))
                .T,
            )
            for (condition, mentions, _), members in groups.items()
        )


class TimeTemplates:
    """The conditions of a plan on times: the instances of each in a match, and its bounds of events."""

    def __init__(
        self, plan: EvaluationPlan, table: pa.Table, lasting: tuple[int, ...] = (), longest: int = 0
    ) -> None:
        self._longest = longest
        self._lasting = {component: number for number, component in enumerate(lasting)}
        self.conditions = plan.bound.times
        self._table, self._tick = table, plan.domain.tick_nanoseconds
        self._number = {part.variable: j for j, part in enumerate(plan.components)}
        self._kleene = {part.variable for part in plan.components if part.kleene}
        self._columns: dict[str, Values] = {}
        self._instances: dict[Any, list[Instance]] = {}
        self._bounds: dict[Any, tuple[int, int] | None] = {}
        negated = {found.component.variable for found in plan.negations}
        self._own = [k for k, found in enumerate(self.conditions) if not found.variables & negated]

    def own(self, counts: tuple[int, ...]) -> list[Instance]:
        """Return the conditions on the events of a match with so many of each component."""
        return self._remembered(counts, None, self._own, OTHER, None)

    def of_negated(self, counts: tuple[int, ...], variable: str) -> list[Instance]:
        """Return the conditions that an event has to meet as that of a negated component."""
        asked = [k for k, found in enumerate(self.conditions) if variable in found.variables]
        return self._remembered(counts, variable, asked, OTHER, None)

    def of_next(self, counts: tuple[int, ...], variable: str, number: int) -> list[Instance]:
        """Return the conditions that an event has to meet as event ``number`` of a component.

        ``counts`` are the events of the components before it, and ``number + 1`` of its own; the last is it.
        """
        component = self._number[variable]
        known = {name for name, j in self._number.items() if j <= component}
        asked = []
        for k in self._own:
            found = self.conditions[k]
            if variable not in found.variables or not found.variables <= known:
                continue
            elements = found.elements(variable)
            if "last" in elements or (elements == {"first"} and number > 0):
                continue
            asked.append(k)
        return self._remembered(counts, None, asked, sum(counts[: component + 1]) - 1, variable)

    def between(self, instances: Sequence[Instance]) -> tuple[Span, list[Instance]]:
        """Return the span of an event that is to be before or behind events of a match, and other conditions.

        Like that of a gap, it ends where a sequence breaks a tie.
        """
        lowers, uppers, others = [], [], []
        for instance in instances:
            condition = self.conditions[instance.condition]
            is_later = instance.later in (OTHER, OTHER_END)
            if not condition.is_order:
                others.append(instance)
            elif is_later == (condition.comparison == ">"):
                lowers.append((instance.earlier if is_later else instance.later, 1))
            else:
                uppers.append((instance.earlier if is_later else instance.later, -1))
        return Span(tuple(lowers), tuple(uppers), {}), others

    def reach(self, instances: Sequence[Instance]) -> Span:
        """Return the span of an event that meets some conditions, as far as they name no attributes."""
        lowers, uppers = [], []
        for instance in instances:
            of_other = {OTHER, OTHER_END} & {instance.later, instance.earlier}
            event = instance.earlier if instance.later in of_other else instance.later
            if instance.events or event < 0 or not of_other:
                continue
            low, high = self.bounds(instance, ()) or (-FAR, FAR)
            if instance.later not in of_other:
                low, high = -high, -low
            if OTHER_END in of_other and low > -FAR:
                # It begins no more than the longest length before its end, and not behind it.
                low -= self._longest
            lowers += [(event, low)] if low > -FAR else []
            uppers += [(event, high)] if high < FAR else []
        return Span(tuple(lowers), tuple(uppers), {})

    def cut(self, selection: Selection) -> Selection:
        """Return candidates with those ticks alone that conditions on one time, by its own event, allow."""
        lower, upper = list(selection.lower), list(selection.upper)
        for k in self._own:
            found = self.conditions[k]
            variable = found.later.variable
            if found.earlier is not None or found.variables != {variable}:
                continue
            if not found.elements(variable) <= {"single", "current"} or found.later.part == "end":
                continue
            j = self._number[variable]
            rows = selection.rows[j]
            low, high, is_true = self._evaluated(
                found, {(column.variable, column.index): rows for column in found.columns}
            )
            lower[j] = np.where(is_true, np.maximum(lower[j], low), upper[j] + 1)
            upper[j] = np.minimum(upper[j], high)
        left = [low <= high for low, high in zip(lower, upper, strict=True)]
        return replace(selection, lower=tuple(lower), upper=tuple(upper)).take(left)

    def _remembered(
        self, counts: tuple[int, ...], negated: str | None, asked: list[int], other: int, newest: str | None
    ) -> list[Instance]:
        key = counts, negated, other, newest
        if key not in self._instances:
            start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts))).tolist()
            self._instances[key] = [
                instance for k in asked for instance in self._instances_of(k, start, counts, other, newest)
            ]
        return self._instances[key]

    def _instances_of(
        self, k: int, start: Sequence[int], counts: tuple[int, ...], other: int, newest: str | None
    ) -> list[Instance]:
        condition = self.conditions[k]
        running, ranges = [], []
        for variable in sorted(condition.variables & self._kleene):
            elements = condition.elements(variable)
            if not elements & {"current", "previous"}:
                continue
            size = counts[self._number[variable]]
            least = 1 if "previous" in elements else 0
            running.append(variable)
            ranges.append(range(max(least, size - 1) if variable == newest else least, size))

        def number(variable: str, element: Element, places: Mapping[str, int]) -> int:
            if variable not in self._number:
                return OTHER
            j = self._number[variable]
            known: dict[Element, int] = {"single": 0, "first": 0, "last": counts[j] - 1}
            place = known.get(element)
            if place is None:
                place = places[variable] - (element == "previous")
            found = start[j] + place
            return OTHER if found == other else found

        def time(reference: TimeReference, places: Mapping[str, int]) -> int:
            """Return the number of a time: that of its event, or of an end behind all events."""
            if reference.part == "end" and reference.variable not in self._number:
                return OTHER_END
            end = self._lasting.get(self._number.get(reference.variable, -1))
            if reference.part == "end" and end is not None:
                return start[-1] + end
            return number(reference.variable, reference.element, places)

        found = []
        for choice in product(*ranges):
            places = dict(zip(running, choice, strict=True))
            later = time(condition.later, places)
            earlier = -1 if condition.earlier is None else time(condition.earlier, places)
            mentions = dict.fromkeys((column.variable, column.index) for column in condition.columns)
            events = tuple((mention, number(*mention, places)) for mention in mentions)
            found.append(Instance(k, later, earlier, events))
        return found

    def bounds(self, instance: Instance, rows: Sequence[int], other: int = -1) -> tuple[int, int] | None:
        """Return the least and largest ticks that a condition allows; None if it is true of none.

        ``rows`` are those of the match's events, ``other`` that of the event that is not.
        """
        chosen = tuple(other if event == OTHER else rows[event] for _, event in instance.events)
        key = instance.condition, tuple(mention for mention, _ in instance.events), chosen
        if key not in self._bounds:
            row_of = {
                mention: np.array([row]) for (mention, _), row in zip(instance.events, chosen, strict=True)
            }
            low, high, is_true = self._evaluated(self.conditions[instance.condition], row_of)
            self._bounds[key] = (int(low[0]), int(high[0])) if is_true[0] else None
        return self._bounds[key]

    def bounds_of_all(
        self, instance: Instance, rows: Int64, other: Int64 | None = None
    ) -> tuple[Int64, Int64]:
        """Return the same for matches with (k, l) int64 rows of events; 1 and 0 where it is true of none.

        ``other``, (k,) int64, are the rows of the events that are not of them.
        """
        row_of = {
            mention: rows[:, event] if other is None or event != OTHER else other
            for mention, event in instance.events
        }
        return self.bounds_of_rows(instance.condition, row_of, len(rows))

    def bounds_of_rows(
        self, condition: int, row_of: Mapping[Mention, Int64], count: int
    ) -> tuple[Int64, Int64]:
        """Return the ticks that a condition allows, twice (count,); 1 and 0 where it is true of none.

        ``row_of`` has for each attribute that it mentions the rows of events, (count,) int64.
        """
        low, high, is_true = self._evaluated(self.conditions[condition], row_of)
        nothing = ~np.broadcast_to(is_true, count)
        low, high = np.broadcast_to(low, count), np.broadcast_to(high, count)
        return np.where(nothing, 1, low), np.where(nothing, 0, high)

    def _evaluated(
        self, condition: TimeCondition, row_of: Mapping[Mention, Int64]
    ) -> tuple[Int64, Int64, NDArray[np.bool_]]:
        """Return the ticks that a condition allows for some rows, and whether its bounds are not null."""
        is_true = np.ones(1, dtype=np.bool_)

        def load(column: Column) -> Values:
            if column.name not in self._columns:
                self._columns[column.name] = column_values(self._table.column(column.name), column.name)
            return self._columns[column.name].take(row_of[column.variable, column.index])

        def values_of(expression: TypedExpression) -> NDArray[Any]:
            nonlocal is_true
            safe = with_checks(expression, lambda column: load(column).extremes)
            found = clipped(evaluate(safe, load))
            values = np.atleast_1d(np.asarray(found.data))
            is_true = is_true if found.valid is None else is_true & found.valid
            if values.dtype.kind == "f":
                is_true = is_true & ~np.isnan(values)
                values = np.nan_to_num(values)
            return values

        numbers = None if condition.numbers is None else values_of(condition.numbers)
        moments = tuple(values_of(found).astype(np.int64) for _, found in condition.moments)
        low, high = bounds_in_ticks(condition, numbers, moments, self._tick)
        return np.atleast_1d(low), np.atleast_1d(high), is_true
