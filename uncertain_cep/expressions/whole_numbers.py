"""Whole numbers beyond 64 bits: which operations of an expression may come to one.

Arithmetic with whole numbers is exact where the result of an operation fits in 64 bits, and float64 where it
does not, row by row. So a result depends on its own row alone, whatever the other rows hold and whoever works
it out. Operations that cannot leave 64 bits, by the extremes of the columns, are done in int64; the others
are *checked*.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Final

from uncertain_cep.expressions.scalar import INT64, scalar
from uncertain_cep.query.typed import Aggregated, Apply, Column, Constant, Kind, TypedExpression, columns_in

__all__ = ["BEYOND_INT64", "CHOOSING", "Extremes", "may_leave_int64", "with_checks"]

Extremes = Callable[[Column], tuple[int, int]]
"""The smallest and the largest value of a column of whole numbers."""

_WHOLE: Final = frozenset[Kind]({"int", "time", "duration"})
"""Kinds of what is worked out in int64."""

_INT64: Final = (INT64.start, INT64.stop - 1)
BEYOND_INT64: Final = (2 * INT64.start, 2 * INT64.stop)
"""The bounds of what may be beyond 64 bits: any operation on it may be, too."""

_FIXED: Final[dict[str, tuple[int, int]]] = {
    "sign": (-1, 1), "length": (0, 2**31), "hour": (0, 23), "dayofweek": (0, 6), "cast": _INT64,
    "date_trunc": _INT64,
}  # fmt: skip
"""Functions whose whole numbers stay in some bounds, whatever their operands are."""

CHOOSING: Final = frozenset({"case", "coalesce", "nullif", "least", "greatest"})
"""Functions that give one of their operands."""

_GROWING: Final = frozenset({"add", "subtract", "multiply", "negate", "abs"})


def with_checks(expression: TypedExpression, extremes: Extremes) -> TypedExpression:
    """Return an expression in which every operation that may come to more than 64 bits is checked.

    ``extremes`` returns those of a column among the rows that the expression will be evaluated on.
    """
    safe = _whatever_the_columns(expression)
    return _bounded(expression, extremes)[0] if safe is None else safe


@lru_cache(maxsize=256)
def _whatever_the_columns(expression: TypedExpression) -> TypedExpression | None:
    """Return the checked form of an expression for any columns; None if it depends on them."""
    return None if _grows(expression) else _bounded(expression, lambda _: _INT64)[0]


def _grows(expression: TypedExpression) -> bool:
    if isinstance(expression, Aggregated):
        return _is_whole_sum(expression)
    if not isinstance(expression, Apply):
        return False
    grows = expression.kind in _WHOLE and expression.operator in _GROWING
    return grows or any(map(_grows, expression.operands))


def _is_whole_sum(column: Column) -> bool:
    return isinstance(column, Aggregated) and column.function == "sum" and column.kind in _WHOLE


def _fits(bounds: tuple[int, int]) -> bool:
    return _INT64[0] <= bounds[0] and bounds[1] <= _INT64[1]


def _bounded(expression: TypedExpression, extremes: Extremes) -> tuple[TypedExpression, tuple[int, int]]:
    """Return an expression with checks, and the bounds of its whole numbers."""
    nothing = (0, 0)
    if isinstance(expression, Column):
        if expression.kind not in _WHOLE:
            return expression, nothing
        bounds = extremes(expression)
        if isinstance(expression, Aggregated) and not _fits(bounds):
            return replace(expression, checked=True), BEYOND_INT64
        return expression, bounds
    if isinstance(expression, Constant):
        value = expression.value
        if expression.kind not in _WHOLE or not isinstance(value, int):
            return expression, nothing
        if value not in INT64:
            return Constant(float(value), "float"), nothing
        return expression, (value, value)
    parts = [_bounded(operand, extremes) for operand in expression.operands]
    operands = tuple(part for part, _ in parts)
    operator = expression.operator
    if expression.kind not in _WHOLE:
        return replace(expression, operands=operands), nothing
    if operator in _FIXED:
        return replace(expression, operands=operands), _FIXED[operator]
    # Conditions of CASE, and what NULLIF compares with, are no results.
    results = parts
    if operator == "case":
        results = [*parts[1::2], parts[-1]]
    elif operator == "nullif":
        results = parts[:1]
    has_float = any(operand.kind == "float" for operand, _ in results)
    if has_float and operator not in CHOOSING:
        return replace(expression, operands=operands, kind="float"), nothing
    bounds = _bounds_of(operator, [bounds for _, bounds in results])
    if not has_float and _fits(bounds) and not any(map(may_leave_int64, (operand for operand, _ in results))):
        return replace(expression, operands=operands), bounds
    whole = replace(expression, operands=operands, checked=True)
    if not columns_in(whole):
        return _bounded(_folded(whole), extremes)
    return whole, BEYOND_INT64


def _bounds_of(operator: str, bounds: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the bounds of an operation on whole numbers within some bounds."""
    lows, highs = zip(*bounds, strict=True)
    low, high, low2, high2 = lows[0], highs[0], lows[-1], highs[-1]
    corners = {
        "add": (low + low2, high + high2),
        "subtract": (low - high2, high - low2),
        "multiply": (low * low2, low * high2, high * low2, high * high2),
        "negate": (-high, -low),
        "remainder": (min(low, 0), max(high, 0)),
        "abs": (0, -low, high),
    }.get(operator, (*lows, *highs))
    return min(corners), max(corners)


def _folded(expression: Apply) -> Constant:
    """Return the value of an operation on constants that may leave 64 bits."""
    evaluate = scalar(expression, lambda _: None)
    assert evaluate is not None
    value = evaluate({})
    return Constant(value, "null" if value is None else "float" if type(value) is float else expression.kind)


def may_leave_int64(expression: TypedExpression) -> bool:
    """Return whether an expression with checks may come to float64 where its kind says whole numbers."""
    return isinstance(expression, Apply | Aggregated) and expression.checked
