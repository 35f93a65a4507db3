"""CAST, and values as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.expressions.choosing import TEXT, both_valid, is_single
from uncertain_cep.expressions.codes import Values
from uncertain_cep.expressions.masks import mask_of
from uncertain_cep.query.typed import Kind

__all__ = ["cast", "concat"]

Mask = NDArray[np.bool_]

_TRUE: Final = frozenset({"true", "t", "yes", "y", "1"})
_FALSE: Final = frozenset({"false", "f", "no", "n", "0"})


def _whole(x: Any) -> tuple[Any, Any]:
    """Return the nearest whole numbers, the even one of two, and which fit in 64 bits."""
    nearest = np.rint(x)
    fits = (nearest >= -(2.0**63)) & (nearest < 2.0**63)
    return np.where(fits, nearest, 0.0).astype(np.int64), fits


def _int_of(text: str) -> int | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or number.adjusted() > 18:
        return None
    whole = int(number.to_integral_value(ROUND_HALF_UP))
    return whole if -(2**63) <= whole < 2**63 else None


def _float_of(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _bool_of(text: str) -> bool | None:
    word = text.strip().lower()
    return True if word in _TRUE else False if word in _FALSE else None


_FROM_TEXT: Final[dict[Kind, tuple[Callable[[str], Any], pa.DataType]]] = {
    "int": (_int_of, pa.int64()), "float": (_float_of, pa.float64()), "bool": (_bool_of, pa.bool_()),
}  # fmt: skip


def _by_value(column: pa.Array, function: Callable[[Any], Any], target: pa.DataType) -> pa.Array:
    """Return a function's values, worked out once for each different value; null stays null."""
    encoded = column.dictionary_encode()
    converted = [None if value is None else function(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(converted, target).take(encoded.indices)


def cast(part: Values, kind: Kind, target: Kind, valid: Mask | None) -> Values:
    """Return values of one kind as another one; what cannot be read as that is null."""
    if kind == "string" and target != "string":
        converted = _by_value(part.data, *_FROM_TEXT[target])
        read = mask_of(converted.is_valid())
        data = np.asarray(
            converted.fill_null(False if target == "bool" else 0).to_numpy(zero_copy_only=False)
        )
        return Values(data, both_valid(valid, None if read.all() else read))
    if target == "string":
        return Values(_as_text(part, kind), valid)
    data = np.asarray(part.data)
    if target == "int" and kind == "float":
        data, fits = _whole(data)
        return Values(data, valid if fits.all() else both_valid(valid, fits))
    types: dict[Kind, Any] = {"int": np.int64, "float": np.float64, "bool": np.bool_}
    return Values(data.astype(types[target]), valid)


def _as_text(part: Values, kind: Kind) -> Any:
    """Return values as text: numbers as Python writes them, which is as DuckDB does."""
    data = part.data
    if isinstance(data, pa.Scalar):
        return data
    if is_single(data):
        return _as_text(Values(np.asarray(data).reshape(1), None), kind)[0]
    if isinstance(data, pa.Array):
        if part.valid is None:
            return data
        return pc.if_else(pa.array(np.broadcast_to(part.valid, len(data))), data, pa.scalar(None, TEXT))
    invalid = None if part.valid is None else np.broadcast_to(~np.asarray(part.valid), len(data))
    column = pa.array(data, mask=invalid)
    return _by_value(column, repr, TEXT) if kind == "float" else column.cast(TEXT)


def concat(kinds: Sequence[Kind], parts: Sequence[Values]) -> Values:
    """Return texts one behind the other; nulls are left out."""
    texts = [_as_text(part, kind) for part, kind in zip(parts, kinds, strict=True) if kind != "null"]
    if not texts:
        return Values(pa.scalar("", TEXT), None)
    # Arrow 26 loses rows in which all are null if it is told to skip these.
    nothing = pa.scalar("", TEXT)
    return Values(
        pc.binary_join_element_wise(*(pc.fill_null(text, nothing) for text in texts), nothing), None
    )
