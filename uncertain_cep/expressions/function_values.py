"""The functions of the language on values side by side, with DuckDB's meaning.

Numbers are worked out by NumPy and text by Arrow, whose regular expressions are RE2's. Where a function of
numbers has no value, as the root of a negative number, it is null.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.expressions.codes import Values
from uncertain_cep.query.text_patterns import extracting, like_regex
from uncertain_cep.query.typed import Apply, Kind

__all__ = ["NULL", "applied", "both_valid", "compared"]

Mask = NDArray[np.bool_]

NULL: Final = Values(np.int64(0), np.zeros((), dtype=np.bool_))
"""One null of any kind, for all rows."""

_TEXT: Final = pa.large_string()
_TRUE: Final = frozenset({"true", "t", "yes", "y", "1"})
_FALSE: Final = frozenset({"false", "f", "no", "n", "0"})


def both_valid(left: Mask | None, right: Mask | None) -> Mask | None:
    """Return where two values are both not null; None: everywhere."""
    if left is None:
        return right
    return left if right is None else left & right


def applied(expression: Apply, parts: Sequence[Values]) -> Values:
    """Return the values of a function of some operands; constants alone give one value."""
    function = _CHOOSING.get(expression.operator)
    if function is not None:
        return function(expression, parts)
    kinds = [operand.kind for operand in expression.operands]
    if expression.operator == "concat":
        return _concat(kinds, parts)
    if "null" in kinds:
        return NULL
    valid = None
    for part in parts:
        valid = both_valid(valid, part.valid)
    if all(_is_single(part.data) for part in parts):
        found = _known(expression, [_as_array(part) for part in parts], None)
        single = None if found.valid is None else np.asarray(found.valid[0])
        return Values(found.data[0], both_valid(valid, single))
    return _known(expression, parts, valid)


def _known(expression: Apply, parts: Sequence[Values], valid: Mask | None) -> Values:
    if expression.operator in _NUMERIC:
        return _number(expression, [np.asarray(part.data) for part in parts], valid)
    if expression.operator == "cast":
        return _cast(parts[0], expression.operands[0].kind, expression.kind, valid)
    if expression.operator in _TIMES:
        return Values(_TIMES[expression.operator](*(part.data for part in parts)), valid)
    return Values(_plain(_TEXTS[expression.operator](*(part.data for part in parts))), valid)


def _is_single(data: Any) -> bool:
    """Return whether there is one value for all rows."""
    return isinstance(data, pa.Scalar) or (not isinstance(data, pa.Array) and np.ndim(data) == 0)


def _as_array(part: Values) -> Values:
    """Return one value as one row."""
    data = part.data
    if isinstance(data, pa.Scalar):
        return Values(pa.array([data.as_py()], _TEXT), None)
    return Values(np.asarray(data).reshape(1), None)


def _plain(found: Any) -> Any:
    """Return what Arrow found as text or as numbers; what is null there has any value."""
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    if pa.types.is_large_string(found.type):
        return found
    if pa.types.is_boolean(found.type):
        return np.asarray(found.fill_null(False).to_numpy(zero_copy_only=False))
    return np.asarray(found.fill_null(0).cast(pa.int64()).to_numpy())


# Functions that give one of their operands


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
        part.data if isinstance(part.data, pa.Array | pa.Scalar) else pa.scalar("", _TEXT)
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
    *pairs, found = [
        _as_kind(part, expression.kind) if place % 2 or place == len(parts) - 1 else part
        for place, part in enumerate(parts)
    ]
    for place in range(len(pairs) - 2, -1, -2):
        found = _where(_true(pairs[place]), pairs[place + 1], found)
    return found


def _coalesce(expression: Apply, parts: Sequence[Values]) -> Values:
    *others, found = [_as_kind(part, expression.kind) for part in parts]
    for part in reversed(others):
        found = part if part.valid is None else _where(part.valid, part, found)
    return found


def _equal(one: Values, other: Values) -> Values:
    return Values(compared("equal", one.data, other.data), both_valid(one.valid, other.valid))


def compared(operator: str, left: Any, right: Any) -> Any:
    """Return what a comparison says of values, null or not."""
    if not isinstance(left, pa.Array | pa.Scalar) or not isinstance(right, pa.Array | pa.Scalar):
        texts = isinstance(left, pa.Array | pa.Scalar) or isinstance(right, pa.Array | pa.Scalar)
        # Beside text there can only be a null of no kind.
        return np.zeros((), dtype=np.bool_) if texts else getattr(np, operator)(left, right)
    found = getattr(pc, operator)(left, right)
    if isinstance(found, pa.Scalar):
        return np.bool_(bool(found.as_py()))
    return np.asarray(found.fill_null(False).to_numpy(zero_copy_only=False))


def _nullif(_: Apply, parts: Sequence[Values]) -> Values:
    return _where(_true(_equal(*parts)), NULL, parts[0])


def _extreme(expression: Apply, parts: Sequence[Values]) -> Values:
    """Return the least or the greatest of the operands that are not null."""
    operator = "less" if expression.operator == "least" else "greater"
    found, *others = [_as_kind(part, expression.kind) for part in parts]
    for part in others:
        better = np.asarray(compared(operator, part.data, found.data), dtype=np.bool_)
        if part.valid is not None:
            better = better & part.valid
        if found.valid is not None:
            better = better | ~found.valid
        found = _where(better, part, found)
    return found


def _is_null(_: Apply, parts: Sequence[Values]) -> Values:
    part = parts[0]
    size = None if _is_single(part.data) else len(part.data)
    if part.valid is None:
        return Values(np.bool_(False) if size is None else np.zeros(size, dtype=np.bool_), None)
    absent = ~np.asarray(part.valid)
    return Values(absent if size is None else np.broadcast_to(absent, size), None)


def _or(one: Values, other: Values) -> Values:
    true = _true(one) | _true(other)
    valid = both_valid(one.valid, other.valid)
    return Values(true, None if valid is None else true | valid)


def _in(expression: Apply, parts: Sequence[Values]) -> Values:
    wanted, *others = [_as_kind(part, _widest(expression)) for part in parts]
    found = _equal(wanted, others[0])
    for part in others[1:]:
        found = _or(found, _equal(wanted, part))
    return found


def _between(expression: Apply, parts: Sequence[Values]) -> Values:
    value, low, high = (_as_kind(part, _widest(expression)) for part in parts)
    above = Values(~compared("greater_equal", value.data, low.data), both_valid(value.valid, low.valid))
    below = Values(~compared("less_equal", value.data, high.data), both_valid(value.valid, high.valid))
    outside = _or(above, below)
    return Values(~outside.data, outside.valid)


def _widest(expression: Apply) -> Kind:
    kinds = [operand.kind for operand in expression.operands]
    return "float" if "float" in kinds else "null"


_CHOOSING: Final[dict[str, Callable[[Apply, Sequence[Values]], Values]]] = {
    "case": _case, "coalesce": _coalesce, "nullif": _nullif, "least": _extreme, "greatest": _extreme,
    "is_null": _is_null, "in": _in, "between": _between,
}  # fmt: skip


# Functions of numbers


def _round(x: Any) -> Any:
    """Return the nearest whole numbers, those away from 0 where two are as near."""
    size = np.abs(x)
    whole = np.floor(size)
    return np.copysign(whole + (size - whole >= 0.5), x)


def _rounded(x: Any, digits: Any = None) -> Any:
    if digits is None:
        return _round(x)
    places = int(np.asarray(digits).flat[0])
    factor = 10.0 ** abs(places)
    found = _round(x * factor) / factor if places >= 0 else _round(x / factor) * factor
    return np.where(found - found == 0.0, found, x)


_NUMERIC: Final[dict[str, Callable[..., Any]]] = {
    "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "sqrt": np.sqrt, "ln": np.log, "exp": np.exp,
    "power": np.power, "round": _rounded, "sign": lambda x: (x > 0).astype(np.int64) - (x < 0),
}  # fmt: skip


def _number(expression: Apply, data: list[Any], valid: Mask | None) -> Values:
    if expression.kind == "float":
        data = [np.asarray(part, dtype=np.float64) for part in data]
    found = _NUMERIC[expression.operator](*data)
    if expression.kind != "float":
        return Values(found, valid)
    absent = np.isnan(found)
    if not absent.any():
        return Values(found, valid)
    return Values(np.where(absent, 0.0, found), both_valid(valid, ~absent))


# CAST


def _whole(x: Any) -> tuple[Any, Any]:
    """Return the nearest whole numbers, the even one of two, and which fit in 64 bits."""
    nearest = np.rint(x)
    fits = (nearest >= -(2.0**63)) & (nearest < 2.0**63)
    return np.where(fits, nearest, 0.0).astype(np.int64), fits


def _int_of(text: str) -> int | None:
    try:
        found = Decimal(text)
    except InvalidOperation:
        return None
    if not found.is_finite() or found.adjusted() > 18:
        return None
    whole = int(found.to_integral_value(ROUND_HALF_UP))
    return whole if -(2**63) <= whole < 2**63 else None


def _float_of(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return None if math.isnan(found) else found


def _bool_of(text: str) -> bool | None:
    word = text.strip().lower()
    return True if word in _TRUE else False if word in _FALSE else None


_FROM_TEXT: Final[dict[Kind, tuple[Callable[[str], Any], pa.DataType]]] = {
    "int": (_int_of, pa.int64()), "float": (_float_of, pa.float64()), "bool": (_bool_of, pa.bool_()),
}  # fmt: skip


def _by_value(column: pa.Array, function: Callable[[Any], Any], wanted: pa.DataType) -> pa.Array:
    """Return a function's values, worked out once for each different value; null stays null."""
    encoded = column.dictionary_encode()
    found = [None if value is None else function(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(found, wanted).take(encoded.indices)


def _cast(part: Values, kind: Kind, wanted: Kind, valid: Mask | None) -> Values:
    if kind == "string" and wanted != "string":
        found = _by_value(part.data, *_FROM_TEXT[wanted])
        read = np.asarray(found.is_valid().to_numpy(zero_copy_only=False))
        data = np.asarray(found.fill_null(False if wanted == "bool" else 0).to_numpy(zero_copy_only=False))
        return Values(data, both_valid(valid, None if read.all() else read))
    if wanted == "string":
        return Values(_as_text(part, kind), valid)
    data = np.asarray(part.data)
    if wanted == "int" and kind == "float":
        data, fits = _whole(data)
        return Values(data, valid if fits.all() else both_valid(valid, fits))
    types: dict[Kind, Any] = {"int": np.int64, "float": np.float64, "bool": np.bool_}
    return Values(data.astype(types[wanted]), valid)


def _as_text(part: Values, kind: Kind) -> Any:
    """Return values as text: numbers as Python writes them, which is as DuckDB does."""
    data = part.data
    if isinstance(data, pa.Scalar):
        return data
    if _is_single(data):
        return _as_text(Values(np.asarray(data).reshape(1), None), kind)[0]
    if isinstance(data, pa.Array):
        if part.valid is None:
            return data
        return pc.if_else(pa.array(np.broadcast_to(part.valid, len(data))), data, pa.scalar(None, _TEXT))
    invalid = None if part.valid is None else np.broadcast_to(~np.asarray(part.valid), len(data))
    column = pa.array(data, mask=invalid)
    return _by_value(column, repr, _TEXT) if kind == "float" else column.cast(_TEXT)


def _concat(kinds: Sequence[Kind], parts: Sequence[Values]) -> Values:
    """Return texts one behind the other; nulls are left out."""
    texts = [_as_text(part, kind) for part, kind in zip(parts, kinds, strict=True) if kind != "null"]
    if not texts:
        return Values(pa.scalar("", _TEXT), None)
    return Values(pc.binary_join_element_wise(*texts, pa.scalar("", _TEXT), null_handling="skip"), None)


# Text


def _constant(value: Any) -> Any:
    """Return the value of what stands for all rows."""
    if isinstance(value, pa.Scalar):
        return value.as_py()
    return value[0].as_py() if isinstance(value, pa.Array) else np.asarray(value).flat[0].item()


def _asked(plain: Callable[[Any, str], Any], each: Callable[[str, str], bool]) -> Callable[[Any, Any], Any]:
    """Return a test of one text by another, which Arrow does where the other is the same for all rows."""

    def test(text: Any, other: Any) -> Any:
        if isinstance(other, pa.Scalar):
            return plain(text, other.as_py())
        texts = [text.as_py()] * len(other) if isinstance(text, pa.Scalar) else text.to_pylist()
        pairs = zip(texts, other.to_pylist(), strict=True)
        return pa.array([x is not None and y is not None and each(x, y) for x, y in pairs], pa.bool_())

    return test


def _substring(text: Any, start: Any, length: Any = None) -> Any:
    first = _constant(start)
    count = None if length is None else _constant(length)
    # From the front the first character is 1, from the back -1; before the front there are none.
    begin = first - 1 if first > 0 else first
    if first == 0:
        begin, count = 0, None if count is None else max(count - 1, 0)
    stop = None if count is None else begin + count
    if stop is not None and begin < 0 <= stop:
        stop = None
    if count == 0:
        begin = stop = 0
    limits = (max(-_LONGEST, min(place, _LONGEST)) for place in (begin, _LONGEST if stop is None else stop))
    return pc.utf8_slice_codeunits(text, *limits)


_LONGEST: Final = 2**40


def _replace(text: Any, old: Any, new: Any) -> Any:
    wanted = _constant(old)
    # Arrow would look for nothing for ever.
    return pc.replace_substring(text, wanted, _constant(new)) if wanted else text


def _extract(text: Any, pattern: Any, group: Any = 0) -> Any:
    found = pc.extract_regex(text, extracting(_constant(pattern), _constant(group)))
    return pc.struct_field(found, [0]).fill_null("")


def _matches(text: Any, pattern: Any) -> Any:
    return pc.match_substring_regex(text, _constant(pattern))


def _like(text: Any, pattern: Any, escape: Any = None) -> Any:
    return pc.match_substring_regex(text, like_regex(_constant(pattern), escape and _constant(escape)))


def _ilike(text: Any, pattern: Any, escape: Any = None) -> Any:
    regex = like_regex(_constant(pattern), escape and _constant(escape), any_case=True)
    return pc.match_substring_regex(pc.utf8_lower(text), regex)


_TEXTS: Final[dict[str, Callable[..., Any]]] = {
    "lower": pc.utf8_lower, "upper": pc.utf8_upper, "trim": lambda text: pc.utf8_trim(text, " "),
    "length": pc.utf8_length, "substring": _substring, "replace": _replace, "regexp_extract": _extract,
    "starts_with": _asked(pc.starts_with, str.startswith), "regexp": _matches,
    "contains": _asked(pc.match_substring, lambda text, part: part in text), "like": _like, "ilike": _ilike,
}  # fmt: skip


# Times, which are nanoseconds


def _stamps(nanoseconds: Any) -> Any:
    return pa.array(np.asarray(nanoseconds)).cast(pa.timestamp("ns"))


def _truncated(part: Any, times: Any) -> Any:
    unit = str(_constant(part)).lower().removesuffix("s")
    return np.asarray(pc.floor_temporal(_stamps(times), unit=unit).cast(pa.int64()))


_TIMES: Final[dict[str, Callable[..., Any]]] = {
    "date_trunc": _truncated,
    "hour": lambda times: np.asarray(pc.hour(_stamps(times))),
    "dayofweek": lambda times: np.asarray(pc.day_of_week(_stamps(times), week_start=7)),
}
