"""Rows in which a whole number leaves 64 bits, worked out one by one.

Arrays of int64 wrap around there. That is rare, so an expression is worked out in int64 first, and once more
for the rows in which a checked operation left it (:mod:`uncertain_cep.expressions.whole_numbers`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.expressions.codes import Values
from uncertain_cep.expressions.scalar import scalar
from uncertain_cep.query.typed import Column, TypedExpression, columns_in

__all__ = [
    "as_int64_or_float64",
    "clipped",
    "corrected",
    "cut",
    "is_beyond_int64",
    "left_int64",
    "null_beyond_int64",
]

_LEAST: Final = -(2**63)
_SURE: Final = 2.0**62
"""A product whose float64 is below it has 64 bits."""

Mask = NDArray[np.bool_]


def left_int64(operator: str, x: Any, y: Any, result: Any) -> Mask:
    """Return where an operation on int64 may have left it; ``y`` is ``x`` if there is one operand.

    Nowhere else is the result wrong. O(n).
    """
    if operator == "add":
        return np.asarray(((x ^ result) & (y ^ result)) < 0)
    if operator == "subtract":
        return np.asarray(((x ^ y) & (x ^ result)) < 0)
    if operator == "multiply":
        return np.asarray(~(np.abs(np.multiply(x, y, dtype=np.float64)) < _SURE))
    # Only the smallest number has no negative one.
    return np.asarray(x == _LEAST)


def corrected(
    expression: TypedExpression, load: Callable[[Column], Values], values: Values, wrong: Sequence[Mask]
) -> Values:
    """Return values, those of some rows worked out anew.

    Whole numbers come out as int64, and as Python's numbers (dtype object) if a row has a float.

    Parameters
    ----------
    expression : TypedExpression
    load : callable
        Returns the values of a column, of all rows.
    values : Values
        Those of all rows, as int64 arithmetic has them.
    wrong : sequence of (n,) bool
        The rows that are worked out anew: those of any.

    Notes
    -----
    Some microseconds for each of these rows.
    """
    size = max(np.size(mask) for mask in wrong)
    is_wrong = np.broadcast_to(reduce(np.logical_or, wrong), size)
    rows = np.flatnonzero(is_wrong)
    compute = scalar(expression, lambda column: lambda row: row[column])
    assert compute is not None
    columns = dict.fromkeys(columns_in(expression))
    cells = [_plain(load(column).take(rows)) for column in columns]
    results = [compute(dict(zip(columns, row, strict=True))) for row in zip(*cells, strict=True)]
    valid = np.array(np.broadcast_to(True if values.valid is None else values.valid, size))
    valid[rows] = [result is not None for result in results]
    if expression.kind == "string":
        texts = values.data if isinstance(values.data, pa.Array) else pa.repeat(values.data, size)
        return Values(pc.replace_with_mask(texts, pa.array(is_wrong), pa.array(results, texts.type)), valid)
    kinds = {"bool": np.bool_, "float": np.float64}
    data: NDArray[Any] = np.array(
        np.broadcast_to(values.data, size), dtype=kinds.get(expression.kind, np.object_)
    )
    for row, result in zip(rows.tolist(), results, strict=True):
        data[row] = 0 if result is None else result
    if data.dtype == np.object_ and not any(type(result) is float for result in results):
        data = data.astype(np.int64)
    return Values(data, valid)


def _plain(values: Values) -> list[Any]:
    """Return values as Python's, None for null."""
    data = values.data.to_pylist() if isinstance(values.data, pa.Array) else values.data.tolist()
    if values.valid is None:
        return list(data)
    return [one if there else None for one, there in zip(data, values.valid.tolist(), strict=True)]


def is_beyond_int64(values: Values) -> bool:
    """Return whether one of the whole numbers has left int64, so that all are Python's."""
    return isinstance(values.data, np.ndarray) and values.data.dtype == np.object_


def cut(values: Values) -> tuple[Values, Mask]:
    """Return Python's numbers as int64, some number in place of a float, and where that is so."""
    left = np.array([type(number) is float for number in values.data.tolist()], dtype=np.bool_)
    return Values(np.where(left, 0, values.data).astype(np.int64), values.valid), left


def as_int64_or_float64(values: Values) -> Values:
    """Return whole numbers as int64, or all as float64 if one of them left it."""
    return Values(values.data.astype(np.float64), values.valid) if is_beyond_int64(values) else values


def null_beyond_int64(values: Values) -> Values:
    """Return whole numbers as int64, null where one left it."""
    data = np.asarray(values.data)
    if data.dtype.kind == "f":
        fits = np.abs(data) < -float(_LEAST)
        whole = np.where(fits, np.rint(data), 0.0).astype(np.int64)
    elif is_beyond_int64(values):
        fits = np.array([_LEAST <= number < -_LEAST for number in data.tolist()])
        whole = np.array([round(n) if there else 0 for n, there in zip(data.tolist(), fits, strict=True)])
    else:
        return values
    return Values(whole, fits if values.valid is None else values.valid & fits)


def clipped(values: Values) -> Values:
    """Return whole numbers as int64: the nearest one of what left it."""
    if not is_beyond_int64(values):
        return values
    within = [min(max(int(number), _LEAST), -_LEAST - 1) for number in values.data.tolist()]
    return Values(np.array(within, dtype=np.int64), values.valid)
