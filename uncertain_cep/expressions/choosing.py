"""Functions that give one of their operands, and what nulls make of conditions and comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.expressions.codes import Values
from uncertain_cep.expressions.masks import mask_of
from uncertain_cep.expressions.text_equality import equal_to
from uncertain_cep.query.typed import Apply, Kind

__all__ = ["CHOOSING", "NULL", "TEXT", "both_valid", "compared", "is_single"]

Mask = NDArray[np.bool_]

NULL: Final = Values(np.int64(0), np.zeros((), dtype=np.bool_))
"""One null of any kind, for all rows."""

TEXT: Final = pa.large_string()


def both_valid(left: Mask | None, right: Mask | None) -> Mask | None:
    """Return where two values are both not null; None: everywhere."""
    if left is None:
        return right
    return left if right is None else left & right


def is_single(data: Any) -> bool:
    """Return whether there is one value for all rows."""
    return isinstance(data, pa.Scalar) or (not isinstance(data, pa.Array) and np.ndim(data) == 0)


def _where(mask: Any, one: Values, other: Values) -> Values:
    """Return one value where a mask is true, and another one elsewhere."""
    valid = None
    if one.valid is not None or other.valid is not None:
        valid = np.where(mask, *(True if part.valid is None else part.valid for part in (one, other)))
    texts = [part.data for part in (one, other) if isinstance(part.data, pa.Array | pa.Scalar)]
    if not texts:
        return Values(np.where(mask, one.data, other.data), valid)
    # What is null of no kind stands beside text as any text.
    x, y = (
        part.data if isinstance(part.data, pa.Array | pa.Scalar) else pa.scalar("", TEXT)
        for part in (one, other)
    )
    if np.ndim(mask) == 0:
        return Values(x if mask else y, valid)
    return Values(pc.if_else(pa.array(np.asarray(mask, dtype=np.bool_)), x, y), valid)


def _as_kind(part: Values, kind: Kind) -> Values:
    return Values(np.asarray(part.data, dtype=np.float64), part.valid) if kind == "float" else part


def _true(part: Values) -> Any:
    """Return where a condition is true."""
    truth = np.asarray(part.data, dtype=np.bool_)
    return truth if part.valid is None else truth & part.valid


def _case(expression: Apply, parts: Sequence[Values]) -> Values:
    *pairs, result = [
        _as_kind(part, expression.kind) if place % 2 or place == len(parts) - 1 else part
        for place, part in enumerate(parts)
    ]
    for place in range(len(pairs) - 2, -1, -2):
        result = _where(_true(pairs[place]), pairs[place + 1], result)
    return result


def _coalesce(expression: Apply, parts: Sequence[Values]) -> Values:
    *operands, result = [_as_kind(part, expression.kind) for part in parts]
    for part in reversed(operands):
        result = part if part.valid is None else _where(part.valid, part, result)
    return result


def _equal(one: Values, other: Values) -> Values:
    return Values(compared("equal", one.data, other.data), both_valid(one.valid, other.valid))


def compared(operator: str, left: Any, right: Any) -> Any:
    """Return the result of a comparison of values, null or not."""
    if not isinstance(left, pa.Array | pa.Scalar) or not isinstance(right, pa.Array | pa.Scalar):
        texts = isinstance(left, pa.Array | pa.Scalar) or isinstance(right, pa.Array | pa.Scalar)
        # Beside text there can only be a null of no kind.
        return np.zeros((), dtype=np.bool_) if texts else getattr(np, operator)(left, right)
    if operator == "equal" and isinstance(left, pa.Scalar):
        left, right = right, left
    if operator == "equal" and isinstance(left, pa.Array) and isinstance(right, pa.Scalar) and right.is_valid:
        return equal_to(left, right.as_py())
    truth = getattr(pc, operator)(left, right)
    if isinstance(truth, pa.Scalar):
        return np.bool_(bool(truth.as_py()))
    return mask_of(truth)


def _nullif(_: Apply, parts: Sequence[Values]) -> Values:
    return _where(_true(_equal(*parts)), NULL, parts[0])


def _extreme(expression: Apply, parts: Sequence[Values]) -> Values:
    """Return the least or the greatest of the operands that are not null."""
    operator = "less" if expression.operator == "least" else "greater"
    best, *operands = [_as_kind(part, expression.kind) for part in parts]
    for part in operands:
        better = np.asarray(compared(operator, part.data, best.data), dtype=np.bool_)
        if part.valid is not None:
            better = better & part.valid
        if best.valid is not None:
            better = better | ~best.valid
        best = _where(better, part, best)
    return best


def _is_null(_: Apply, parts: Sequence[Values]) -> Values:
    part = parts[0]
    size = None if is_single(part.data) else len(part.data)
    if part.valid is None:
        return Values(np.bool_(False) if size is None else np.zeros(size, dtype=np.bool_), None)
    absent = ~np.asarray(part.valid)
    return Values(absent if size is None else np.broadcast_to(absent, size), None)


def _or(one: Values, other: Values) -> Values:
    true = _true(one) | _true(other)
    valid = both_valid(one.valid, other.valid)
    return Values(true, None if valid is None else true | valid)


def _in(expression: Apply, parts: Sequence[Values]) -> Values:
    value, *options = [_as_kind(part, _widest(expression)) for part in parts]
    is_in = _equal(value, options[0])
    for part in options[1:]:
        is_in = _or(is_in, _equal(value, part))
    return is_in


def _between(expression: Apply, parts: Sequence[Values]) -> Values:
    value, low, high = (_as_kind(part, _widest(expression)) for part in parts)
    above = Values(~compared("greater_equal", value.data, low.data), both_valid(value.valid, low.valid))
    below = Values(~compared("less_equal", value.data, high.data), both_valid(value.valid, high.valid))
    outside = _or(above, below)
    return Values(~outside.data, outside.valid)


def _widest(expression: Apply) -> Kind:
    kinds = [operand.kind for operand in expression.operands]
    return "float" if "float" in kinds else "null"


CHOOSING: Final[dict[str, Callable[[Apply, Sequence[Values]], Values]]] = {
    "case": _case, "coalesce": _coalesce, "nullif": _nullif, "least": _extreme, "greatest": _extreme,
    "is_null": _is_null, "in": _in, "between": _between,
}  # fmt: skip
