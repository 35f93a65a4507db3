"""Expressions bound to a trace: every column is known and every node has a kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "Aggregated",
    "Apply",
    "Column",
    "Constant",
    "Element",
    "Function",
    "Kind",
    "Operator",
    "TypedExpression",
    "columns_in",
    "speaks_of_each_event",
    "variables_of",
]

Kind = Literal["int", "float", "string", "bool", "time", "null"]
"""``time`` is a timestamp or date column, compared as whole nanoseconds; ``null`` is that of NULL, of
columns of nothing else, and of arithmetic with either."""

Operator = Literal[
    "add", "subtract", "multiply", "divide", "remainder", "negate",
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "and", "or", "not",
]  # fmt: skip

Element = Literal["single", "first", "current", "previous", "last"]
"""Which event of a variable: its only one, or ``c[1]``, ``c[i]``, ``c[i-1]``, ``c[c.LEN]``."""

Function = Literal["avg", "sum", "min", "max", "count"]


@dataclass(frozen=True, slots=True)
class Column:
    """The attribute ``name`` (a column of the trace) of an event bound to ``variable``."""

    variable: str
    name: str
    kind: Kind
    index: Element = "single"


@dataclass(frozen=True, slots=True)
class Aggregated(Column):
    """An aggregate over the events of a Kleene variable: like a column, a value that a match provides.

    Nulls are left out, as in SQL: without any other value ``count`` is 0 and the others are null.

    Attributes
    ----------
    name : str
        The attribute; empty in ``count(c[])``.
    kind : Kind
        Of the result: ``count`` is int, ``avg`` float, the others of the attribute's kind.
    function : Function
    span : {"all", "before"}
        ``c[]``, or ``c[..i-1]``: the events before the current one.
    of : Kind
        The attribute's kind; null in ``count(c[])``.
    """

    function: Function = "count"
    span: Literal["all", "before"] = "all"
    of: Kind = "null"


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal; ``value`` is None exactly for the kind ``null``."""

    value: int | float | str | bool | None
    kind: Kind


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator applied to one operand (negate, not) or two.

    Kinds: arithmetic is null if an operand is; else ``divide`` is always float, and the rest is int if both
    operands are int, else float. ``remainder`` takes the sign of the dividend; a zero divisor gives null.
    Comparisons, ``and``, ``or`` and ``not`` are bool with SQL's three-valued logic.
    """

    operator: Operator
    operands: tuple[TypedExpression, ...]
    kind: Kind


def speaks_of_each_event(column: Column) -> bool:
    """Return whether an attribute is that of every event of its variable: ``a.x`` or ``c[i].x``."""
    return not isinstance(column, Aggregated) and column.index in ("single", "current")


TypedExpression = Column | Constant | Apply


def columns_in(expression: TypedExpression) -> tuple[Column, ...]:
    """Return the columns and aggregates of an expression, from left to right."""
    if isinstance(expression, Column):
        return (expression,)
    if isinstance(expression, Constant):
        return ()
    return tuple(column for operand in expression.operands for column in columns_in(operand))


def variables_of(expression: TypedExpression) -> frozenset[str]:
    """Return the variables that an expression mentions."""
    if isinstance(expression, Column):
        return frozenset((expression.variable,))
    if isinstance(expression, Constant):
        return frozenset()
    return frozenset().union(*(variables_of(operand) for operand in expression.operands))
