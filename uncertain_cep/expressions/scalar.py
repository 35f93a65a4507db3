"""Typed expressions on the values of one event or match: as :mod:`uncertain_cep.expressions.vectorised`.

None is null. A stream that brings events one by one would spend most of its time on arrays of one element.
Whole numbers are exact where they fit in 64 bits, and floats where an operation leaves them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from uncertain_cep.expressions.codes import Values
from uncertain_cep.expressions.function_values import applied
from uncertain_cep.query.typed import Aggregated, Apply, Column, Constant, TypedExpression

__all__ = ["INT64", "plain_attribute", "scalar"]

INT64: Final = range(-(2**63), 2**63)

Row = Mapping[Any, Any]
Scalar = Callable[[Row], Any]


def plain_attribute(column: Column) -> Scalar | None:
    """Return a function that reads an attribute of an event by its name; None for a time or an aggregate.

    Attributes are int, float, str, bool or None, of the kinds of their columns.
    """
    if isinstance(column, Aggregated) or column.kind not in ("int", "float", "string", "bool"):
        return None
    return _column(column.name, column.kind == "float")


def scalar(expression: TypedExpression, read: Callable[[Column], Scalar | None]) -> Scalar | None:
    """Return a function that evaluates an expression on one row; None if ``read`` returns None of a column.

    ``read`` returns what reads a column of a row.
    """
    if isinstance(expression, Column):
        return read(expression)
    if isinstance(expression, Constant):
        value = expression.value
        if type(value) is int and value not in INT64:
            value = float(value)
        return lambda _: value
    parts = [scalar(operand, read) for operand in expression.operands]
    operands = [part for part in parts if part is not None]
    if len(operands) < len(parts):
        return None
    name, kinds = expression.operator, [operand.kind for operand in expression.operands]
    if name in _LOGIC:
        return _LOGIC[name](*operands)
    if name in _CHOOSING:
        as_float = expression.kind == "float" if name in _RESULTS else "float" in kinds
        return _CHOOSING[name](as_float, *operands)
    if name not in _OPERATORS and name not in _COMPARISONS:
        return _function(expression, operands)
    if "null" in kinds:
        return lambda _: None
    if name in _COMPARISONS:
        return _compared(_COMPARISONS[name], *operands)
    return _applied(_OPERATORS[name], operands, expression.kind == "float")


_DTYPES: Final[dict[str, Any]] = {
    "int": np.int64, "time": np.int64, "duration": np.int64, "null": np.int64, "float": np.float64,
    "bool": np.bool_,
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
    constants = [_constant(operand) for operand in expression.operands]

    def value(row: Row) -> Any:
        arguments, called = [], []
        for operand, constant, read in zip(expression.operands, constants, operands, strict=True):
            part = read(row)
            if type(part) is float and operand.kind == "int":
                operand = replace(operand, kind="float")
            elif type(part) is float and operand.kind in ("time", "duration"):
                # No time of the calendar.
                part = None
            arguments.append(constant or _row_of(operand.kind, part))
            called.append(operand)
        with np.errstate(all="ignore"):
            values = applied(replace(expression, operands=tuple(called)), arguments)
        if values.valid is not None and not np.all(values.valid):
            return None
        data = values.data
        if isinstance(data, pa.Array | pa.Scalar):
            return (data if isinstance(data, pa.Scalar) else data[0]).as_py()
        plain = np.asarray(data).reshape(-1)[0].item()
        # What stood beside a null of no kind came out as a number.
        return bool(plain) if expression.kind == "bool" else plain

    return value


def _column(name: Any, is_float: bool) -> Scalar:
    def value(row: Row) -> Any:
        cell = row.get(name)
        return None if cell is not None and math.isnan(cell) else cell

    return value if is_float else lambda row: row.get(name)


def _as_float(part: Any) -> Any:
    return None if part is None else float(part)


def _comparison(apply: Callable[..., Any], x: Any, y: Any) -> Any:
    """Return how two values compare, null if one of them is."""
    if x is None or y is None:
        return None
    if type(x) is not type(y) and (type(x) is float or type(y) is float):
        # As arrays of int64 and of float64 are compared.
        return apply(float(x), float(y))
    return apply(x, y)


def _compared(apply: Callable[..., Any], left: Scalar, right: Scalar) -> Scalar:
    return lambda row: _comparison(apply, left(row), right(row))


def _applied(apply: Callable[..., Any], operands: list[Scalar], as_float: bool) -> Scalar:
    def value(row: Row) -> Any:
        arguments = [operand(row) for operand in operands]
        if None in arguments:
            return None
        if as_float:
            return apply(*map(float, arguments))
        if not any(type(part) is float for part in arguments):
            number = apply(*arguments)
            if type(number) is not int or number in INT64:
                return number
        number = apply(*map(float, arguments))
        # Infinity less itself, or times 0, is no number.
        return None if number is None or math.isnan(number) else number

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


def _abs(x: Any) -> Any:
    return None if x != x else abs(x)


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


def _case(as_float: bool, *parts: Scalar) -> Scalar:
    def value(row: Row) -> Any:
        place = next((at for at in range(0, len(parts) - 1, 2) if parts[at](row) is True), len(parts) - 2)
        result = parts[place + 1](row)
        return _as_float(result) if as_float else result

    return value


def _coalesce(as_float: bool, *parts: Scalar) -> Scalar:
    def value(row: Row) -> Any:
        result = next((one for part in parts if (one := part(row)) is not None), None)
        return _as_float(result) if as_float else result

    return value


def _nullif(_: bool, part: Scalar, other: Scalar) -> Scalar:
    def value(row: Row) -> Any:
        result = part(row)
        return None if _comparison(operator.eq, result, other(row)) else result

    return value


def _extreme(better: Callable[..., Any], as_float: bool, *parts: Scalar) -> Scalar:
    def value(row: Row) -> Any:
        best = None
        for part in parts:
            other = _as_float(part(row)) if as_float else part(row)
            if best is None or _comparison(better, other, best):
                best = other
        return best

    return value


def _is_null(_: bool, part: Scalar) -> Scalar:
    return lambda row: part(row) is None


def _in(as_float: bool, part: Scalar, *options: Scalar) -> Scalar:
    def value(row: Row) -> Any:
        parts = [each(row) for each in (part, *options)]
        one, *candidates = map(_as_float, parts) if as_float else parts
        same = [_comparison(operator.eq, one, other) for other in candidates]
        return True if True in same else None if None in same else False

    return value


def _between(as_float: bool, part: Scalar, low: Scalar, high: Scalar) -> Scalar:
    def value(row: Row) -> Any:
        parts = [each(row) for each in (part, low, high)]
        x, lowest, highest = map(_as_float, parts) if as_float else parts
        sides = _comparison(operator.ge, x, lowest), _comparison(operator.le, x, highest)
        return False if False in sides else None if None in sides else True

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
    "divide": _divide, "remainder": _remainder, "abs": _abs,
    "sign": lambda x: (x > 0) - (x < 0),
}  # fmt: skip
_RESULTS: Final = frozenset({"case", "coalesce", "least", "greatest"})
"""Those of the next whose result is of a kind of its own."""
_CHOOSING: Final[dict[str, Callable[..., Scalar]]] = {
    "case": _case, "coalesce": _coalesce, "nullif": _nullif, "least": partial(_extreme, operator.lt),
    "greatest": partial(_extreme, operator.gt), "is_null": _is_null, "in": _in, "between": _between,
}  # fmt: skip
