"""Expressions bound to a trace: every column is known and every node has a kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Apply", "Column", "Constant", "Kind", "Operator", "TypedExpression", "variables_of"]

Kind = Literal["int", "float", "string", "bool", "time", "null"]
"""``time`` is a timestamp or date column, compared as whole nanoseconds; ``null`` is the literal NULL."""

Operator = Literal[
    "add", "subtract", "multiply", "divide", "remainder", "negate",
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "and", "or", "not",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """The attribute ``name`` (a column of the trace) of the event bound to ``variable``."""

    variable: str
    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal; ``value`` is None exactly for the kind ``null``."""

    value: int | float | str | bool | None
    kind: Kind


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator applied to one operand (negate, not) or two.

    Kinds: ``divide`` is always float; the other arithmetic is int if both operands are int, else
    float; ``remainder`` takes the sign of the dividend; a zero divisor gives null. Comparisons,
    ``and``, ``or`` and ``not`` are bool with SQL's three-valued logic.
    """

    operator: Operator
    operands: tuple[TypedExpression, ...]
    kind: Kind


TypedExpression = Column | Constant | Apply


def variables_of(expression: TypedExpression) -> frozenset[str]:
    """Return the variables that an expression mentions."""
    if isinstance(expression, Column):
        return frozenset((expression.variable,))
    if isinstance(expression, Constant):
        return frozenset()
    return frozenset().union(*(variables_of(operand) for operand in expression.operands))
