"""Typed expressions on the values of one event: the same as :mod:`uncertain_cep.expressions.vectorised`.

None is null. A stream that brings events one by one would spend most of its time on arrays of one element.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from uncertain_cep.expressions.codes import Values
from uncertain_cep.expressions.function_values import applied
from uncertain_cep.query.typed import Aggregated, Apply, Column, Constant, TypedExpression

__all__ = ["INT64", "UnsureError", "scalar"]

INT64: Final = range(-(2**63), 2**63)

Row = Mapping[str, Any]
Scalar = Callable[[Row], Any]


class UnsureError(Exception):
    """A whole number leaves int64: arrays have rules for that."""


def scalar(expression: TypedExpression) -> Scalar | None:
    """Return a function that evaluates an expression on one event; None if it has times or aggregates.

    Attributes are int, float, str, bool or None, of the kinds of their columns.
    """
    if isinstance(expression, Column):
        if isinstance(expression, Aggregated) or expression.kind not in ("int", "float", "string", "bool"):
            return None
        return _column(expression.name, expression.kind == "float")
    if isinstance(expression, Constant):
        if expression.kind in ("time", "duration"):
            return None
        value = expression.value
        if expression.kind == "int" and isinstance(value, int) and value not in INT64:
            value = float(value)
        return lambda _: value
    parts = [scalar(operand) for operand in expression.operands]
    operands = [part for part in parts if part is not None]
    if len(operands) < len(parts):
        return None
    if expression.operator in _LOGIC:
        return _LOGIC[expression.operator](*operands)
    if expression.operator not in _OPERATORS and expression.operator not in _COMPARISONS:
        return _function(expression, operands)
    if any(operand.kind == "null" for operand in expression.operands):
        return lambda _: None
    if expression.operator in _COMPARISONS:
        return _compared(_COMPARISONS[expression.operator], *operands)
    return _applied(_OPERATORS[expression.operator], operands, expression.kind == "float")


_DTYPES: Final[dict[str, Any]] = {
    "int": np.int64, "float": np.float64, "bool": np.bool_, "null": np.int64,
}  # fmt: skip


def _row_of(kind: str, value: Any) -> Values:
    """Return a value as one row."""
    valid = None if value is not None else np.zeros(1, dtype=np.bool_)
    if kind == "string":
        return Values(pa.array([value], pa.large_string()), valid)
    return Values(np.array([0 if value is None else value], dtype=_DTYPES[kind]), valid)


def _constant(expression: TypedExpression) -> Values | None:
    if not isinstance(expression, Constant) or expression.value is None:
        return None
    value = expression.value
    return Values(pa.scalar(value, pa.large_string()) if isinstance(value, str) else value, None)


def _function(expression: Apply, operands: list[Scalar]) -> Scalar:
    """Return a function that applies one of the query's functions as to the rows of a table."""
    if expression.operator == "is_null":
        return lambda row: operands[0](row) is None
    kinds = [operand.kind for operand in expression.operands]
    constants = [_constant(operand) for operand in expression.operands]

    def value(row: Row) -> Any:
        arguments = [operand(row) for operand in operands]
        if expression.operator == "abs" and arguments == [INT64.start]:
            raise UnsureError
        rows = [
            constant or _row_of(kind, part)
            for constant, kind, part in zip(constants, kinds, arguments, strict=True)
        ]
        with np.errstate(all="ignore"):
            values = applied(expression, rows)
        if values.valid is not None and not np.all(values.valid):
            return None
        data = values.data
        if isinstance(data, pa.Array | pa.Scalar):
            return (data if isinstance(data, pa.Scalar) else data[0]).as_py()
        plain = np.asarray(data).reshape(-1)[0].item()
        # What stood beside a null of no kind came out as a number.
        return bool(plain) if expression.kind == "bool" else plain

    return value


def _column(name: str, is_float: bool) -> Scalar:
    def value(row: Row) -> Any:
        cell = row.get(name)
        return None if cell is not None and math.isnan(cell) else cell

    return value if is_float else lambda row: row.get(name)


def _compared(apply: Callable[..., Any], left: Scalar, right: Scalar) -> Scalar:
    def value(row: Row) -> Any:
        x, y = left(row), right(row)
        if x is None or y is None:
            return None
        if type(x) is not type(y) and (type(x) is float or type(y) is float):
            # As arrays of int64 and of float64 are compared.
            return apply(float(x), float(y))
        return apply(x, y)

    return value


def _applied(apply: Callable[..., Any], operands: list[Scalar], as_float: bool) -> Scalar:
    def value(row: Row) -> Any:
        arguments = [operand(row) for operand in operands]
        if None in arguments:
            return None
        if as_float or any(type(part) is float for part in arguments):
            arguments = [float(part) for part in arguments]
        number = apply(*arguments)
        if type(number) is int and number not in INT64:
            raise UnsureError
        return number

    return value


def _divide(x: float, y: float) -> float | None:
    return None if y == 0.0 else x / y


def _remainder(x: Any, y: Any) -> Any:
    """Return the rest with the sign of ``x``."""
    if y == 0:
        return None
    if type(x) is float:
        return math.nan if math.isinf(x) or math.isnan(x) or math.isnan(y) else math.fmod(x, y)
    remainder = abs(x) % abs(y)
    return -remainder if x < 0 else remainder


def _not(part: Scalar) -> Scalar:
    def value(row: Row) -> Any:
        truth = part(row)
        return None if truth is None else not truth

    return value


def _decided_by(decides: bool, left: Scalar, right: Scalar) -> Scalar:
    """Return AND of two parts, which false decides whatever the other is, or OR, which true does."""

    def value(row: Row) -> Any:
        x, y = left(row), right(row)
        if x is decides or y is decides:
            return decides
        return None if x is None or y is None else not decides

    return value


_LOGIC: Final[dict[str, Callable[..., Scalar]]] = {
    "not": _not, "and": partial(_decided_by, False), "or": partial(_decided_by, True),
}  # fmt: skip
_COMPARISONS: Final[dict[str, Callable[..., Any]]] = {
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip
_OPERATORS: Final[dict[str, Callable[..., Any]]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "negate": operator.neg,
    "divide": _divide, "remainder": _remainder,
}  # fmt: skip
