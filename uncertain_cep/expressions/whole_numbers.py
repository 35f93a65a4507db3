"""Whole numbers worked out exactly, row by row, where a column of int64 may not hold what they come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from uncertain_cep.expressions.choosing import both_valid
from uncertain_cep.expressions.codes import Values
from uncertain_cep.query.typed import Column, Constant, TypedExpression

__all__ = ["clipped", "exact_values", "fit_int64"]

_LARGEST: Final = 2**63

_OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "negate": np.negative, "abs": np.abs,
}  # fmt: skip


def exact_values(expression: TypedExpression, load: Callable[[Column], Values]) -> Values | None:
    """Return an expression's values as whole numbers of any size; None if it is more than arithmetic.

    ``load`` provides the columns. O(rows) for each operation, about ten times as slow as int64.
    """
    if isinstance(expression, Constant):
        return Values(np.array(expression.value, dtype=object), None) if expression.kind == "int" else None
    if isinstance(expression, Column):
        values = load(expression)
        data = np.asarray(values.data)
        return Values(data.astype(object), values.valid) if data.dtype.kind == "i" else None
    if expression.operator not in (*_OPERATIONS, "remainder"):
        return None
    parts = [exact_values(operand, load) for operand in expression.operands]
    operands = [part for part in parts if part is not None]
    if len(operands) < len(parts):
        return None
    valid = None
    for part in operands:
        valid = both_valid(valid, part.valid)
    numbers = [part.data for part in operands]
    if expression.operator != "remainder":
        return Values(np.asarray(_OPERATIONS[expression.operator](*numbers), dtype=object), valid)
    dividend, divisor = np.broadcast_arrays(*numbers)
    is_zero = np.asarray(divisor == 0, dtype=np.bool_)
    remainder = np.abs(dividend) % np.where(is_zero, 1, np.abs(divisor))
    return Values(np.where(dividend < 0, -remainder, remainder), both_valid(valid, ~is_zero))


def fit_int64(values: Values) -> bool:
    """Return whether all whole numbers that are not null have 64 bits."""
    data = np.atleast_1d(values.data)
    fits = np.asarray((data >= -_LARGEST) & (data < _LARGEST), dtype=np.bool_)
    return bool((fits if values.valid is None else fits | ~values.valid).all())


def clipped(values: Values) -> Values:
    """Return whole numbers as int64, the nearest one of those that have more bits."""
    return Values(np.clip(values.data, -_LARGEST, _LARGEST - 1).astype(np.int64), values.valid)
