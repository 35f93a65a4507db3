"""Bound conditions on times: a time, or the difference of two, between bounds in ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.query.expression_text import format_expression, format_mention
from uncertain_cep.query.span_relations import NamedComparison, relation_at
from uncertain_cep.query.time_terms import Comparison
from uncertain_cep.query.typed import (
    Column,
    Element,
    TypedExpression,
    attribute_names,
    columns_in,
    format_time,
    with_variable,
)
from uncertain_cep.timeline.domain import TimeDomain
from uncertain_cep.timeline.durations import format_duration

__all__ = ["FAR", "TimeCondition", "TimeReference", "bounds_in_ticks", "texts_of"]

Int64 = NDArray[np.int64]

FAR: Final = 2**62
"""A bound in ticks that nothing reaches: none."""

_FARTHEST: Final = 2**61
_EXACT_BELOW: Final = 2.0**62
"""Sums that float64 puts below are within int64, and far beyond ``_FARTHEST`` where they are not."""


@dataclass(frozen=True, slots=True)
class TimeReference:
    """``TIME(v)``: when an event of a variable happened; of one that lasts, its begin or its end."""

    variable: str
    element: Element
    part: Literal["begin", "end"] | None = None

    def __str__(self) -> str:
        if self.part is not None:
            return f"TIME({self.variable}.{self.part})"
        return f"TIME({format_mention(self.variable, self.element)})"


@dataclass(frozen=True, slots=True)
class TimeCondition:
    """``later - earlier``, or ``later`` alone, compared with a sum of what follows."""

    later: TimeReference
    earlier: TimeReference | None
    comparison: Comparison
    ticks: int
    nanoseconds: int
    """Of literal times, since 1970."""
    numbers: TypedExpression | None = None
    """Of attributes, in ticks; of kind int, float or null."""
    moments: tuple[tuple[int, TypedExpression], ...] = ()
    """Attributes of kind time or duration, nanoseconds, each with its sign."""
    beside: frozenset[tuple[str, Element]] = frozenset()
    """What the condition of the query mentions, and this bound does not.

    Both ends of a BETWEEN are one condition, and a time may cancel.
    """
    apart: tuple[int, Literal[0, 1]] | None = None
    """Of ``NOT (x OVERLAPS y)``, its number and side: ``later - earlier >= 1`` holds on one of the two sides.

    The bound itself says no more than the window.
    """
    is_order: bool = False
    """Whether one event is to be before the other one, as it is where a sequence breaks a tie; see UNTIL."""

    @property
    def mentions(self) -> frozenset[tuple[str, Element]]:
        """The variables that the condition mentions, each with the event of it that is meant."""
        mentioned = [(reference.variable, reference.element) for reference in self.references]
        return (
            frozenset(mentioned + [(column.variable, column.index) for column in self.columns]) | self.beside
        )

    @property
    def references(self) -> tuple[TimeReference, ...]:
        """The times that are compared."""
        return (self.later,) if self.earlier is None else (self.later, self.earlier)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The attributes that bounds are made of."""
        return tuple(column for expression in self._expressions for column in columns_in(expression))

    @property
    def attributes(self) -> frozenset[str]:
        """The columns of the trace that bounds are made of."""
        return frozenset[str]().union(*map(attribute_names, self._expressions))

    @property
    def _expressions(self) -> tuple[TypedExpression, ...]:
        numbers = () if self.numbers is None else (self.numbers,)
        return (*numbers, *(bound for _, bound in self.moments))

    @property
    def variables(self) -> frozenset[str]:
        """The variables that the condition mentions."""
        return frozenset(variable for variable, _ in self.mentions)

    def elements(self, variable: str) -> frozenset[Element]:
        """Return the events of a variable that the condition mentions."""
        return frozenset(element for mentioned, element in self.mentions if mentioned == variable)

    def of_another(self, name: str, other: str) -> TimeCondition:
        """Return the condition with another variable in place of one."""

        def changed(reference: TimeReference) -> TimeReference:
            return replace(reference, variable=other) if reference.variable == name else reference

        return replace(
            self,
            later=changed(self.later),
            earlier=None if self.earlier is None else changed(self.earlier),
            numbers=None if self.numbers is None else with_variable(self.numbers, name, other),
            moments=tuple((sign, with_variable(bound, name, other)) for sign, bound in self.moments),
            beside=frozenset(
                (other if variable == name else variable, element) for variable, element in self.beside
            ),
        )

    @property
    def is_literal(self) -> bool:
        """Whether the bound is one number of ticks, whatever the events."""
        return not self.columns and self.numbers is None

    @property
    def is_plain(self) -> bool:
        """Whether two times are compared, and nothing else."""
        nothing = self.ticks == 0 and self.nanoseconds == 0 and self.numbers is None and not self.moments
        return nothing and self.earlier is not None and not self.beside and self.apart is None

    @property
    def compared_ends(self) -> NamedComparison | None:
        """The ends of two events that are compared; None if the condition is something else."""
        later, earlier = self.later, self.earlier
        if earlier is None or not self.is_plain or later.part is None or earlier.part is None:
            return None
        return (later.variable, later.part), self.comparison, (earlier.variable, earlier.part)

    def text(self, domain: TimeDomain) -> str:
        """Return the condition as a query would write it."""
        if self.apart is not None and self.earlier is not None:
            first, second = self.earlier.variable, self.later.variable
            if self.apart[1]:
                # The other side of the same condition.
                first, second = second, first
            return f"NOT ({first} OVERLAPS {second})"
        parts = [format_expression(self.numbers)] if self.numbers is not None else []
        parts += [f"{'' if sign > 0 else '-'}{format_expression(column)}" for sign, column in self.moments]
        is_moment = self.earlier is None and not self.moments
        if is_moment and domain.unit != "tick":
            parts.append(f"TIMESTAMP '{format_time(self.nanoseconds)}'")
        elif self.nanoseconds:
            parts.append(format_duration(abs(self.nanoseconds)))
        if self.is_plain and self.earlier is not None:
            return f"{self.later} {self.comparison} {self.earlier}"
        if self.ticks or not parts:
            length = domain.tick_nanoseconds
            shown = str(self.ticks) if length is None else format_duration(abs(self.ticks) * length)
            parts.append(f"-{shown}" if length is not None and self.ticks < 0 else shown)
        references = " - ".join(map(str, self.references))
        ends = [(reference.variable, reference.part) for reference in self.references]
        if ends == [(self.later.variable, "end"), (self.later.variable, "begin")]:
            references = f"DURATION({self.later.variable})"
        condition = f"{references} {self.comparison} {' + '.join(parts)}".replace("+ -", "- ")
        if not self.beside:
            return condition
        named = sorted(format_mention(variable, element) for variable, element in self.beside)
        return f"{condition} (only with {', '.join(named)})"


def texts_of(conditions: Sequence[TimeCondition], domain: TimeDomain) -> list[str]:
    """Return conditions as a query writes them, each relation between events that last as one."""
    ends = [condition.compared_ends for condition in conditions]
    texts: dict[str, None] = {}
    place = 0
    while place < len(conditions):
        text, count = relation_at(ends, place) or (conditions[place].text(domain), 1)
        # Of events that do not overlap, each side is a condition.
        texts[text] = None
        place += count
    return [*texts]


def _wrapped(number: int) -> np.int64:
    """Return a whole number as int64, which wraps around."""
    return np.int64((number + 2**63) % 2**64 - 2**63)


def bounds_in_ticks(
    condition: TimeCondition,
    numbers: NDArray[np.generic] | None,
    moments: tuple[Int64, ...],
    tick: int | None,
) -> tuple[Int64, Int64]:
    """Return the least and the largest ticks that a condition allows, int64 arrays; FAR: no bound.

    Parameters
    ----------
    condition : TimeCondition
    numbers : array of int64 or float64, or None
        What ``condition.numbers`` comes to.
    moments : tuple of int64 arrays
        What its moments come to, nanoseconds.
    tick : int or None
        Nanoseconds; None if nothing is given in them.
    """
    length = tick or 1
    whole = condition.ticks + condition.nanoseconds // length
    # Sums in int64 wrap around: what they come to in float64 tells where they have.
    whole_part, near = np.array(_wrapped(whole)), np.array(float(whole))
    remainder = np.array(condition.nanoseconds % length, dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        for (sign, _), stamps in zip(condition.moments, moments, strict=True):
            whole_part = whole_part + sign * (stamps // length)
            near = near + sign * (stamps // length).astype(np.float64)
            remainder = remainder + sign * (stamps % length)
        whole_part, remainder = whole_part + remainder // length, remainder % length
        is_whole = remainder == 0
        if numbers is not None:
            near = near + numbers.astype(np.float64)
            if numbers.dtype.kind == "f":
                floor = np.floor(np.clip(numbers, -_EXACT_BELOW * 1.5, _EXACT_BELOW * 1.5))
                fraction = np.where(np.abs(numbers) < _EXACT_BELOW, numbers - np.floor(numbers), 0.0)
                # What both leave over may come to a tick of its own.
                ahead = fraction * length + remainder >= length
                is_whole = np.where(
                    ahead, fraction * length + remainder == length, (fraction == 0) & is_whole
                )
                whole_part = whole_part + floor.astype(np.int64) + ahead
            else:
                whole_part = whole_part + numbers.astype(np.int64)
    whole_part = np.where(np.abs(near) < _EXACT_BELOW, whole_part, np.where(near < 0, -FAR, FAR))
    floor_ticks = np.clip(whole_part, -_FARTHEST, _FARTHEST)
    none = np.full_like(floor_ticks, FAR)
    up = np.where(is_whole, floor_ticks, floor_ticks + 1)
    match condition.comparison:
        case "<=":
            return -none, floor_ticks
        case "<":
            return -none, up - 1
        case ">=":
            return up, none
        case ">":
            return floor_ticks + 1, none
    return up, floor_ticks
