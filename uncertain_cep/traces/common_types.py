"""Types that take the values of several columns."""

from __future__ import annotations

import pyarrow as pa

from uncertain_cep.timeline.domain import is_text
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS

__all__ = ["common_type", "is_number"]


def common_type(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """Return the type that takes the values of both, or None if there is none."""
    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    if pa.types.is_integer(first) and pa.types.is_integer(second):
        return pa.int64()
    if is_number(first) and is_number(second):
        return pa.float64()
    if is_text(first) and is_text(second):
        return pa.string()
    if _is_day_or_time(first) and _is_day_or_time(second):
        units = [dtype.unit if pa.types.is_timestamp(dtype) else "s" for dtype in (first, second)]
        zones = {dtype.tz for dtype in (first, second) if pa.types.is_timestamp(dtype)} - {None}
        zone = None if not zones else zones.pop() if len(zones) == 1 else "UTC"
        return pa.timestamp(min(units, key=lambda unit: UNIT_NANOSECONDS[unit]), zone)
    if pa.types.is_nested(first) and pa.types.is_nested(second):
        values = [getattr(dtype, "value_type", None) for dtype in (first, second)]
        if all(value is not None and is_number(value) for value in values):
            return pa.list_(pa.float64())
    return None


def is_number(dtype: pa.DataType) -> bool:
    """Return whether a column of this type holds whole or decimal numbers."""
    return bool(pa.types.is_integer(dtype) or pa.types.is_floating(dtype))


def _is_day_or_time(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(dtype) or pa.types.is_date(dtype))
