"""Kinds of values: which Arrow types the language can use, and ISO 8601 text as a time.

Decisions
---------
- Every integer type is ``int``. Evaluation is in int64, so a uint64 value of 2**63 or more is a fault of
  the trace (as a float it would silently equal its neighbours, which is wrong for ids and hashes).
- Decimals are ``float``: exact decimal arithmetic is not offered.
- A timestamp without time zone, and a time literal without offset, are read as UTC.
- Times of day, durations, binary, nested and extension types have no kind.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import pyarrow as pa

from uncertain_cep.query.typed import Kind

__all__ = ["KIND_NAMES", "format_time", "kind_of", "parse_time"]

KIND_NAMES: Final[dict[Kind, str]] = {
    "int": "a whole number",
    "float": "a number",
    "string": "a string",
    "bool": "true or false",
    "time": "a time",
    "null": "NULL",
}

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIME: Final = re.compile(
    r"\s*([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.([0-9]{1,9}))?)?)(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?\s*",
    re.IGNORECASE,
)


def kind_of(type_: pa.DataType) -> Kind | None:
    """Return the kind of a column's values, or None if expressions cannot use them."""
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return kind_of(type_.value_type)
    if pa.types.is_integer(type_):
        return "int"
    if pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return "float"
    if pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return "string"
    if pa.types.is_boolean(type_):
        return "bool"
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return "time"
    return "null" if pa.types.is_null(type_) else None


def parse_time(text: str) -> int | None:
    """Return the nanoseconds since 1970 of an ISO 8601 date or time; None if it is none or out of range.

    Without an offset the time is UTC. Representable are the years 1678 to 2261.
    """
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    day, clock, fraction, offset = found.groups()
    whole = (clock or "00:00").partition(".")[0]
    try:
        moment = datetime.fromisoformat(f"{day}T{whole}{offset.upper() if offset else 'Z'}")
        seconds = (moment - _EPOCH) // timedelta(seconds=1)
    except (ValueError, OverflowError):
        return None
    nanoseconds = seconds * 1_000_000_000 + int((fraction or "").ljust(9, "0"))
    return nanoseconds if -(2**63) <= nanoseconds < 2**63 else None


def format_time(nanoseconds: int) -> str:
    """Return nanoseconds since 1970 as ISO 8601 text without offset, as short as is exact."""
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{fraction:09}".rstrip("0") if fraction else text
