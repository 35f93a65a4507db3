"""Vectorised evaluation of typed expressions on the columns of an Arrow table.

Values come with a validity mask (None: no nulls) and follow SQL's three-valued logic; NaN counts as
null. Integers stay int64; where the extremes of the columns show that a sum, difference or product
could leave int64, that operation is done in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.large_arrays import empty
from uncertain_cep.config import EXPRESSION_ROWS
from uncertain_cep.errors import TraceError, TraceFault, warn
from uncertain_cep.expressions.choosing import NULL, both_valid, compared
from uncertain_cep.expressions.codes import Values, decoded
from uncertain_cep.expressions.compared_remainders import ComparedRemainder, by_kernel, compared_remainder
from uncertain_cep.expressions.function_values import applied
from uncertain_cep.expressions.masks import mask_of
from uncertain_cep.query.expression_text import OPERATOR_SIGNS
from uncertain_cep.query.typed import (
    Apply,
    Column,
    Computed,
    Constant,
    Kind,
    TypedExpression,
    columns_in,
    kind_of,
)

__all__ = [
    "Values",
    "attribute_values",
    "column_values",
    "evaluate",
    "evaluate_mask",
    "evaluate_masks",
    "loaded_from",
    "within_int64",
]

_INT64: Final = (-(2**63), 2**63 - 1)

Mask = NDArray[np.bool_]


def column_values(column: pa.ChunkedArray | pa.Array, name: str) -> Values:
    """Return a trace's column as :class:`Values`: times in nanoseconds, dictionaries and decimals decoded.

    A TraceError says that an integer is beyond int64, or a time beyond the years that int64 nanoseconds
    reach.
    """
    column = decoded(column)
    kind = kind_of(column.type)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    valid = None
    if column.null_count:
        valid = mask_of(column.is_valid())
    if kind == "string":
        return Values(column.cast(pa.large_string()), valid)
    if kind == "null":
        return Values(np.zeros(len(column), dtype=np.int64), np.zeros(len(column), dtype=np.bool_))
    if kind == "bool":
        return Values(mask_of(column), valid)
    try:
        if kind == "float":
            if pa.types.is_decimal(column.type):
                _warn_of_rounded(column, name)
            data = np.asarray(
                column.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy(zero_copy_only=False)
            )
            nan = np.isnan(data)
            if nan.any():
                valid = ~nan if valid is None else valid & ~nan
                data = np.where(nan, 0.0, data)
            return Values(data, valid)
        if kind == "time":
            column = column.cast(pa.timestamp("ns", getattr(column.type, "tz", None)))
        if kind == "duration":
            column = column.cast(pa.duration("ns"))
        whole = column if pa.types.is_int64(column.type) else column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        what = "a time beyond the years 1678 to 2261" if kind == "time" else "an integer beyond int64"
        advice = "" if kind == "time" else ": make the column text"
        raise TraceError(
            TraceFault(f"holds {what}, which cannot be compared{advice} ({error})", column=name)
        ) from None
    if valid is not None:
        whole = whole.fill_null(0)
    return Values(np.asarray(whole.to_numpy(zero_copy_only=False)), valid)


def _warn_of_rounded(column: pa.Array, name: str) -> None:
    """Warn of a column of decimal numbers so large that several of them are one float."""
    extremes = pc.min_max(column).as_py().values()
    if any(extreme is not None and abs(extreme) > 2**53 for extreme in extremes):
        warn(
            f"column {name} holds decimal numbers beyond 2^53, which comparisons round: make "
            "it a column of whole numbers (int64) or text"
        )


Extremes = Callable[[Column], tuple[int, int]]


def within_int64(expression: TypedExpression, extremes: Extremes) -> TypedExpression:
    """Return the expression with every integer operation that could leave int64 turned into float64."""
    safe = _whatever_the_columns(expression)
    return _bounded(expression, extremes)[0] if safe is None else safe


@lru_cache(maxsize=256)
def _whatever_the_columns(expression: TypedExpression) -> TypedExpression | None:
    """Return the safe form of an expression for any columns; None if it depends on them."""
    return None if _can_leave_int64(expression) else _bounded(expression, _unbounded)[0]


_WHOLE: Final = frozenset[Kind]({"int", "time", "duration"})
"""Kinds of what is worked out in int64."""

_FIXED: Final[dict[str, tuple[int, int]]] = {
    "sign": (-1, 1), "length": (0, 2**31), "hour": (0, 23), "dayofweek": (0, 6), "cast": _INT64,
}  # fmt: skip
"""Functions whose whole numbers stay in some bounds, whatever their operands are."""

_GROWING: Final = frozenset({"add", "subtract", "multiply", "negate", "abs"})
_YEAR: Final = 366 * 86_400 * 10**9


def _can_leave_int64(expression: TypedExpression) -> bool:
    if not isinstance(expression, Apply):
        return False
    grows = expression.kind in _WHOLE and expression.operator in _GROWING
    return grows or any(_can_leave_int64(operand) for operand in expression.operands)


def _unbounded(_: Column) -> tuple[int, int]:
    """Stand in for the extremes of a column where nothing depends on them."""
    return _INT64


def _bounded(expression: TypedExpression, extremes: Extremes) -> tuple[TypedExpression, tuple[int, int]]:
    nothing = (0, 0)
    if isinstance(expression, Column):
        return expression, extremes(expression) if expression.kind in _WHOLE else nothing
    if isinstance(expression, Constant):
        if expression.kind in _WHOLE and isinstance(expression.value, int):
            value = int(expression.value)
            if not _INT64[0] <= value <= _INT64[1]:
                return Constant(float(value), "float"), nothing
            return expression, (value, value)
        return expression, nothing
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
    if any(operand.kind == "float" for operand, _ in results):
        return replace(expression, operands=operands, kind="float"), nothing
    lows, highs = zip(*(bounds for _, bounds in results), strict=True)
    low, high, low2, high2 = lows[0], highs[0], lows[-1], highs[-1]
    corners = {
        "add": (low + low2, high + high2),
        "subtract": (low - high2, high - low2),
        "multiply": (low * low2, low * high2, high * low2, high * high2),
        "negate": (-high, -low),
        "remainder": (min(low, 0), max(high, 0)),
        "abs": (0, -low, high),
        "date_trunc": (max(low2 - _YEAR, _INT64[0]), high2),
    }.get(operator, (*lows, *highs))
    smallest, largest = min(corners), max(corners)
    if smallest < _INT64[0] or largest > _INT64[1]:
        return replace(expression, operands=operands, kind="float"), nothing
    return replace(expression, operands=operands), (smallest, largest)


def _remainder(left: Any, right: Any, valid: Mask | None) -> tuple[Any, Mask | None]:
    if isinstance(right, (int, np.integer)) and right > 0:
        # numpy divides by one constant at several times the speed of its remainder, and at twice that without
        # signs.
        whole = np.asarray(left, dtype=np.int64)
        if not whole.size or whole.min() >= 0:
            remainder = np.asarray(whole.view(np.uint64) // np.uint64(right)).view(np.int64)
            np.multiply(remainder, right, out=remainder)
            return np.subtract(whole, remainder, out=remainder), valid
        remainder = whole // right
        remainder = whole - remainder * right
        return np.where((whole < 0) & (remainder != 0), remainder - right, remainder), valid
    zero = np.asarray(right == 0)
    if zero.any():
        valid = both_valid(valid, np.broadcast_to(~zero, np.broadcast_shapes(np.shape(left), zero.shape)))
        right = np.where(zero, 1, right)
    return np.fmod(left, right), valid


def _where_remainder(operator: str, mask: Mask, valid: Mask | None) -> Values:
    """Return where a remainder is some number, or another one, from where it is that number."""
    return Values(np.logical_not(mask, out=mask) if operator == "not_equal" else mask, valid)


def _has_remainder(operator: str, dividend: Values, division: ComparedRemainder) -> Values:
    """Return where a remainder is some number, or another one."""
    masks = by_kernel(dividend.data, [division])
    if masks is not None:
        return _where_remainder(operator, masks[0], dividend.valid)
    remainder, valid = _remainder(dividend.data, division.divisor, dividend.valid)
    return Values(compared(operator, remainder, division.remainder), valid)


def evaluate(expression: TypedExpression, load: Callable[[Column], Values]) -> Values:
    """Evaluate an expression whose columns ``load`` provides; constants come out as scalars.

    Integer operations must have been made safe by :func:`within_int64`.
    """
    # An infinity less itself is NaN, which compares as unequal to everything: nothing to warn of.
    with np.errstate(all="ignore"):
        return _evaluate(expression, load)


def _evaluate(expression: TypedExpression, load: Callable[[Column], Values]) -> Values:
    if isinstance(expression, Column):
        return load(expression)
    if isinstance(expression, Constant):
        if expression.value is None:
            return NULL
        if isinstance(expression.value, str):
            return Values(pa.scalar(expression.value, pa.large_string()), None)
        return Values(expression.value, None)
    operator = expression.operator
    if (division := compared_remainder(expression)) is not None:
        return _has_remainder(operator, _evaluate(division.dividend, load), division)
    parts = [_evaluate(operand, load) for operand in expression.operands]
    if operator not in OPERATOR_SIGNS:
        return applied(expression, parts)
    left = parts[0]
    if operator == "not":
        return Values(~np.asarray(left.data, dtype=np.bool_), left.valid)
    if operator == "negate":
        # The smallest int64 has no negative one.
        is_real = expression.kind == "float"
        return Values(-np.asarray(left.data, dtype=np.float64) if is_real else -left.data, left.valid)
    right = parts[1]
    if operator in ("and", "or"):
        return _logic(operator, left, right)
    if "null" in (expression.operands[0].kind, expression.operands[1].kind):
        return NULL
    valid = both_valid(left.valid, right.valid)
    if operator in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        return Values(compared(operator, left.data, right.data), valid)
    x, y = left.data, right.data
    if expression.kind == "float":
        x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if operator == "remainder":
        return Values(*_remainder(x, y, valid))
    if operator == "divide":
        zero = y == 0.0
        if zero.any():
            valid = both_valid(valid, np.broadcast_to(~zero, np.broadcast_shapes(np.shape(x), np.shape(y))))
            y = np.where(zero, 1.0, y)
        return Values(x / y, valid)
    return Values(getattr(np, operator)(x, y), valid)


def _logic(operator: str, left: Values, right: Values) -> Values:
    x, y = np.asarray(left.data, dtype=np.bool_), np.asarray(right.data, dtype=np.bool_)
    if left.valid is None and right.valid is None:
        return Values(x & y if operator == "and" else x | y, None)
    p = np.ones_like(x) if left.valid is None else left.valid
    q = np.ones_like(y) if right.valid is None else right.valid
    if operator == "and":
        return Values(x & y, (p & ~x) | (q & ~y) | (p & q))
    true = (p & x) | (q & y)
    return Values(true, true | (p & q))


def _for_rows(values: Values, rows: int) -> Values:
    """Return a value for each row."""
    data, valid = values.data, values.valid
    if isinstance(data, pa.Scalar):
        data = pa.repeat(data, rows)
    elif not isinstance(data, pa.Array):
        data = np.broadcast_to(data, rows)
    return Values(data, None if valid is None else np.broadcast_to(valid, rows))


def loaded_from(get: Callable[[str], pa.ChunkedArray]) -> Callable[[Column], Values]:
    """Return a loader of attributes, and of values computed from attributes of one event, each once.

    ``get`` returns a column of the rows by its name.
    """
    loaded: dict[object, Values] = {}

    def load(column: Column) -> Values:
        source = column.source
        if source not in loaded:
            if isinstance(source, str):
                loaded[source] = column_values(get(source), source)
            else:
                safe = within_int64(source, lambda part: load(part).extremes)
                if isinstance(column, Computed) or safe.kind == source.kind:
                    computed = evaluate(safe, load)
                else:
                    message = "may be beyond int64: write a number of it with a decimal point"
                    raise TraceError(TraceFault(message, column=column.name))
                loaded[source] = _for_rows(computed, len(load(columns_in(source)[0]).data))
        return loaded[source]

    return load


def attribute_values(table: pa.Table, column: Column, rows: NDArray[np.int64]) -> Values:
    """Return the values of an attribute, or of what is computed of attributes, in some rows of a table."""
    return loaded_from(lambda name: table.column(name).take(pa.array(rows)))(column)


def evaluate_mask(
    expression: TypedExpression, table: pa.Table, loaded: dict[str, Values] | None = None
) -> Mask:
    """Return for each row of a table whether a boolean expression of its columns is true, (n,) bool.

    See :func:`evaluate_masks`.
    """
    return evaluate_masks([expression], table, loaded)[0]


def evaluate_masks(
    expressions: Sequence[TypedExpression],
    table: pa.Table,
    loaded: dict[str, Values] | None = None,
    among: slice = slice(None),
) -> list[Mask]:
    """Return for each row of a table, or ``among`` some, whether boolean expressions of its columns are true.

    The variables of the expressions are ignored: every column is one of the table.

    Parameters
    ----------
    expressions : sequence of TypedExpression
    table : pyarrow.Table
    loaded : dict or None
        By name, the values of columns; gets those that it lacks.
    among : slice
        The rows that are looked at; all k of them.

    Returns
    -------
    list of (k,) bool
        For each expression; it may be one of the values.

    Notes
    -----
    O(k) for each operation; a column whose remainders several expressions compare is read once for these.
    """
    loaded = {} if loaded is None else loaded

    def column(attribute: Column) -> Values:
        if attribute.name not in loaded:
            loaded[attribute.name] = column_values(table.column(attribute.name), attribute.name)
        return loaded[attribute.name]

    safe = [
        within_int64(expression, lambda attribute: column(attribute).extremes) for expression in expressions
    ]
    remainders = _compared_remainders(safe)
    begin, end, _ = among.indices(table.num_rows)

    def parts(start: int, stop: int) -> list[Mask]:
        values_at: dict[int, Values] = {}
        for dividend, comparisons in remainders:
            values = column(dividend).part(start, stop)
            masks = by_kernel(values.data, [remainder for _, _, remainder in comparisons])
            if masks is not None:
                for mask, (place, operator, _) in zip(masks, comparisons, strict=True):
                    values_at[place] = _where_remainder(operator, mask, values.valid)
        for place, expression in enumerate(safe):
            if place not in values_at:
                values_at[place] = evaluate(expression, lambda attribute: column(attribute).part(start, stop))
        return [_truth(values_at[place]) for place in range(len(safe))]

    if end - begin <= EXPRESSION_ROWS:
        return [mask if mask.ndim else np.broadcast_to(mask, end - begin) for mask in parts(begin, end)]
    masks = [empty(end - begin, np.bool_) for _ in safe]
    for start in range(begin, end, EXPRESSION_ROWS):
        stop = min(start + EXPRESSION_ROWS, end)
        for mask, part in zip(masks, parts(start, stop), strict=True):
            mask[start - begin : stop - begin] = part
    return masks


def _truth(values: Values) -> Mask:
    """Return where what was found is true, and not null."""
    truth = np.asarray(values.data, dtype=np.bool_)
    return truth if values.valid is None else truth & values.valid


def _compared_remainders(
    expressions: Sequence[TypedExpression],
) -> list[tuple[Column, list[tuple[int, str, ComparedRemainder]]]]:
    """Return each column of which several expressions compare remainders, and for each its place and how."""
    by_name: dict[str, list[tuple[int, str, ComparedRemainder]]] = {}
    columns: dict[str, Column] = {}
    for place, expression in enumerate(expressions):
        compared = compared_remainder(expression) if isinstance(expression, Apply) else None
        if isinstance(expression, Apply) and compared is not None and isinstance(compared.dividend, Column):
            column = compared.dividend
            columns[column.name] = column
            by_name.setdefault(column.name, []).append((place, expression.operator, compared))
    return [(columns[name], comparisons) for name, comparisons in by_name.items() if len(comparisons) > 1]
