"""The functions of the language on values side by side, with DuckDB's meaning.

Numbers are worked out by NumPy and text by Arrow, whose regular expressions are RE2's. Where a function of
numbers has no value, as the root of a negative number, it is null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.expressions.casts import cast, concat
from uncertain_cep.expressions.choosing import CHOOSING, NULL, TEXT, both_valid, is_single
from uncertain_cep.expressions.codes import Values
from uncertain_cep.expressions.masks import mask_of
from uncertain_cep.expressions.text_functions import TEXTS, constant_of
from uncertain_cep.query.typed import Apply
from uncertain_cep.timeline.zones import part_begins, shown_by_clocks

__all__ = ["applied"]

Mask = NDArray[np.bool_]


def applied(expression: Apply, parts: Sequence[Values]) -> Values:
    """Return the values of a function of some operands; constants alone give one value."""
    function = CHOOSING.get(expression.operator)
    if function is not None:
        return function(expression, parts)
    kinds = [operand.kind for operand in expression.operands]
    if expression.operator == "concat":
        return concat(kinds, parts)
    if "null" in kinds:
        return NULL
    valid = None
    for part in parts:
        valid = both_valid(valid, part.valid)
    if all(is_single(part.data) for part in parts):
        values = _known(expression, [_as_array(part) for part in parts], None)
        single = None if values.valid is None else np.asarray(values.valid[0])
        return Values(values.data[0], both_valid(valid, single))
    return _known(expression, parts, valid)


def _known(expression: Apply, parts: Sequence[Values], valid: Mask | None) -> Values:
    if expression.operator in _NUMERIC:
        return _number(expression, [np.asarray(part.data) for part in parts], valid)
    if expression.operator == "cast":
        return cast(parts[0], expression.operands[0].kind, expression.kind, valid)
    if expression.operator in _TIMES:
        return Values(_TIMES[expression.operator](*(part.data for part in parts)), valid)
    return Values(_plain(TEXTS[expression.operator](*(part.data for part in parts))), valid)


def _as_array(part: Values) -> Values:
    """Return one value as one row."""
    data = part.data
    if isinstance(data, pa.Scalar):
        return Values(pa.array([data.as_py()], TEXT), None)
    return Values(np.asarray(data).reshape(1), None)


def _plain(result: Any) -> Any:
    """Return an Arrow result as text or as numbers; its nulls have any value."""
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    if pa.types.is_large_string(result.type):
        return result
    if pa.types.is_boolean(result.type):
        return mask_of(result)
    return np.asarray(result.fill_null(0).cast(pa.int64()).to_numpy())


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
    rounded = _round(x * factor) / factor if places >= 0 else _round(x / factor) * factor
    return np.where(rounded - rounded == 0.0, rounded, x)


_NUMERIC: Final[dict[str, Callable[..., Any]]] = {
    "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "sqrt": np.sqrt, "ln": np.log, "exp": np.exp,
    "power": np.power, "round": _rounded, "sign": lambda x: (x > 0).astype(np.int64) - (x < 0),
}  # fmt: skip


def _number(expression: Apply, data: list[Any], valid: Mask | None) -> Values:
    if expression.kind == "float":
        data = [np.asarray(part, dtype=np.float64) for part in data]
    numbers = _NUMERIC[expression.operator](*data)
    if expression.kind != "float":
        return Values(numbers, valid)
    absent = np.isnan(numbers)
    if not absent.any():
        return Values(numbers, valid)
    return Values(np.where(absent, 0.0, numbers), both_valid(valid, ~absent))


# Times, which are nanoseconds


def _stamps(nanoseconds: Any, zone: Any = None) -> Any:
    """Return times as timestamps, of what clocks of a zone show if there is one."""
    if zone is not None:
        return shown_by_clocks(np.asarray(nanoseconds), str(constant_of(zone)))
    return pa.array(np.asarray(nanoseconds)).cast(pa.timestamp("ns"))


def _truncated(part: Any, times: Any, zone: Any = None) -> Any:
    unit = str(constant_of(part)).lower().removesuffix("s")
    if zone is not None:
        return part_begins(np.asarray(times), unit, str(constant_of(zone)))
    return np.asarray(pc.floor_temporal(_stamps(times), unit=unit).cast(pa.int64()))


def _hour(times: Any, zone: Any = None) -> Any:
    return np.asarray(pc.hour(_stamps(times, zone)))


def _weekday(times: Any, zone: Any = None) -> Any:
    return np.asarray(pc.day_of_week(_stamps(times, zone), week_start=7))


_TIMES: Final[dict[str, Callable[..., Any]]] = {
    "date_trunc": _truncated, "hour": _hour, "dayofweek": _weekday,
}  # fmt: skip
