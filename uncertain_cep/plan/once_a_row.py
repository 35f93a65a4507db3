"""Predicates across events split: the part on one event alone is computed once a row, not per match."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from uncertain_cep.expressions.vectorised import Values, constant_value
from uncertain_cep.query import format_expression
from uncertain_cep.query.functions import is_of_one_event
from uncertain_cep.query.typed import Apply, Column, Computed, Constant, TypedExpression, columns_in

__all__ = ["once_a_row"]


def once_a_row(expression: TypedExpression) -> TypedExpression:
    """Return an expression with columns in place of functions of one event's attributes.

    What kernels cannot work out is among them: functions of text and of the calendar.
    """
    if not isinstance(expression, Apply):
        return expression
    if not is_of_one_event(expression):
        return replace(expression, operands=tuple(map(once_a_row, expression.operands)))
    columns = columns_in(expression)
    if not columns:
        return _constant(constant_value(expression), expression)
    event, of = columns[0], _of_a_row(expression)
    return Computed(event.variable, format_expression(of), expression.kind, event.index, of)


def _of_a_row(expression: TypedExpression) -> TypedExpression:
    if isinstance(expression, Apply):
        return replace(expression, operands=tuple(map(_of_a_row, expression.operands)))
    return replace(expression, variable="", index="single") if isinstance(expression, Column) else expression


def _constant(values: Values, expression: Apply) -> Constant:
    if values.valid is not None and not values.valid:
        return Constant(None, "null")
    value: Any = values.data
    return Constant(value.as_py() if isinstance(value, pa.Scalar) else value.item(), expression.kind)
