"""Vectorised evaluation of typed expressions on the columns of an Arrow table.

Values come with a validity mask (None: no nulls) and follow SQL's three-valued logic; NaN counts as
null. Integers are int64. Rows in which one leaves 64 bits are worked out anew, one by one, see
:mod:`uncertain_cep.expressions.whole_numbers`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.large_arrays import empty
from uncertain_cep.config.tuning import EXPRESSION_ROWS
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.expressions.beyond_int64 import corrected, cut, is_beyond_int64, left_int64
from uncertain_cep.expressions.choosing import NULL, both_valid, compared
from uncertain_cep.expressions.codes import Values, decoded
from uncertain_cep.expressions.compared_remainders import ComparedRemainder, by_kernel, compared_remainder
from uncertain_cep.expressions.function_values import applied
from uncertain_cep.expressions.masks import mask_of
from uncertain_cep.expressions.rounded_numbers import warn_of_decimals
from uncertain_cep.expressions.whole_numbers import with_checks
from uncertain_cep.query.expression_text import OPERATOR_SIGNS
from uncertain_cep.query.typed import (
    Apply,
    Column,
    Constant,
    TypedExpression,
    columns_in,
    kind_of,
)

__all__ = [
    "Values",
    "attribute_values",
    "column_values",
    "constant_value",
    "evaluate",
    "evaluate_mask",
    "evaluate_masks",
    "loaded_from",
]

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
    if kind is None:
        # A list, whose elements are asked for.
        return Values(column, valid)
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
    warn_of_decimals(name, max((abs(extreme) for extreme in extremes if extreme is not None), default=None))


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

    Integer operations that may leave int64 must have been marked by
    :func:`~uncertain_cep.expressions.whole_numbers.with_checks`. Where a value of a kind of whole numbers
    did, the values are Python's numbers (dtype object), int or float.
    """
    wrong: list[Mask] = []
    # An infinity less itself is NaN, which compares as unequal to everything: nothing to warn of.
    with np.errstate(all="ignore"):
        values = _evaluate(expression, load, wrong)
    return corrected(expression, load, values, wrong) if wrong else values


def constant_value(expression: TypedExpression) -> Values:
    """Return the one value of an expression without columns."""
    return evaluate(with_checks(expression, _no_column), _no_column)


def _no_column(column: Column) -> NoReturn:
    raise AssertionError(column)


def _evaluate(expression: TypedExpression, load: Callable[[Column], Values], wrong: list[Mask]) -> Values:
    """Evaluate in int64; the rows where that was too narrow are added to ``wrong``."""
    if isinstance(expression, Column):
        column = load(expression)
        if is_beyond_int64(column):
            column, left_out = cut(column)
            wrong.append(left_out)
        return column
    if isinstance(expression, Constant):
        if expression.value is None:
            return NULL
        if isinstance(expression.value, str):
            return Values(pa.scalar(expression.value, pa.large_string()), None)
        return Values(expression.value, None)
    operator = expression.operator
    if (division := compared_remainder(expression)) is not None:
        return _has_remainder(operator, _evaluate(division.dividend, load, wrong), division)
    parts = [_evaluate(operand, load, wrong) for operand in expression.operands]
    if operator not in OPERATOR_SIGNS:
        result = applied(expression, parts)
        if expression.checked and operator == "abs":
            _note(operator, parts, result, wrong)
        elif expression.checked and result.data.dtype.kind == "f":
            # Beside a whole number stands what is float64 in every row.
            wrong.append(np.ones(np.shape(result.data), dtype=np.bool_))
        return result
    left = parts[0]
    if operator == "not":
        return Values(~np.asarray(left.data, dtype=np.bool_), left.valid)
    if operator == "negate":
        is_real = expression.kind == "float"
        result = Values(-np.asarray(left.data, dtype=np.float64) if is_real else -left.data, left.valid)
        if expression.checked:
            _note(operator, parts, result, wrong)
        return result
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
    result = Values(getattr(np, operator)(x, y), valid)
    if expression.checked:
        _note(operator, parts, result, wrong)
    return result


def _note(operator: str, parts: Sequence[Values], result: Values, wrong: list[Mask]) -> None:
    """Add the rows in which an operation may have left int64."""
    left = left_int64(operator, parts[0].data, parts[-1].data, result.data)
    if result.valid is not None:
        left = left & result.valid
    if left.any():
        wrong.append(left)


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
                computed = evaluate(with_checks(source, lambda part: load(part).extremes), load)
                if is_beyond_int64(computed):
                    message = "is beyond int64 in some rows: write a number of it with a decimal point"
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
        with_checks(expression, lambda attribute: column(attribute).extremes) for expression in expressions
    ]
    remainders = _compared_remainders(safe)
    begin, end, _ = among.indices(table.num_rows)

    def parts(start: int, stop: int) -> list[Mask]:
        values_at: dict[int, Values] = {}
        for dividend, comparisons in remainders:
            values_at |= _of_remainders(column(dividend).part(start, stop), comparisons)
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


def _of_remainders(values: Values, comparisons: Sequence[tuple[int, Any, Any]]) -> dict[int, Values]:
    """Return comparisons of remainders of a column, by their places; none if they do not fit the kernel."""
    if is_beyond_int64(values):
        return {}
    masks = by_kernel(values.data, [remainder for _, _, remainder in comparisons])
    if masks is None:
        return {}
    return {
        place: _where_remainder(operator, mask, values.valid)
        for mask, (place, operator, _) in zip(masks, comparisons, strict=True)
    }


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
