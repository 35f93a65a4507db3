"""The thresholds of a query on numbers of its events, which the drawing of a metric shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa

from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query.syntax import Attribute, Binary, Expression, Literal

__all__ = ["Threshold", "thresholds_of"]

_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Threshold(NamedTuple):
    """One condition such as ``b.value > 95%``."""

    variable: str
    types: tuple[str, ...]
    """Of the variable."""
    attribute: str
    operator: str
    value: float


def thresholds_of(plan: EvaluationPlan, schema: pa.Schema) -> list[Threshold]:
    """Return the conditions of a query that compare a number of one event with a constant, in its order.

    Those in OR and NOT are left out: they need not hold.
    """
    types = {part.variable: part.types for part in plan.components}
    thresholds = []
    for condition in (part for where in plan.query.where for part in _conjuncts(where)):
        if not isinstance(condition, Binary) or condition.operator not in _TURNED:
            continue
        left, right, operator = condition.left, condition.right, str(condition.operator)
        if isinstance(left, Literal):
            left, right, operator = right, left, _TURNED[operator]
        if not isinstance(left, Attribute) or not isinstance(right, Literal) or left.variable not in types:
            continue
        if isinstance(right.value, bool | str) or right.value is None or left.name not in schema.names:
            continue
        kind = schema.field(left.name).type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            thresholds.append(
                Threshold(left.variable, types[left.variable], left.name, operator, float(right.value))
            )
    return thresholds


def _conjuncts(condition: Expression) -> Iterator[Expression]:
    if isinstance(condition, Binary) and condition.operator == "and":
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    else:
        yield condition
