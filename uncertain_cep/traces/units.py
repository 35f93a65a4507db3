"""The unit of numbers, and the warning where a trace has no numbers for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from uncertain_cep.errors import warn
from uncertain_cep.plurals import first_few
from uncertain_cep.timeline.domain import is_text
from uncertain_cep.timeline.durations import number_unit

__all__ = ["any_numbers", "warn_of_idle_unit"]


def any_numbers(types: Iterable[pa.DataType]) -> bool:
    """Return whether a column of these types can hold numbers; one of no type can."""
    return not all(map(_tells_unit, types))


def _tells_unit(dtype: pa.DataType) -> bool:
    is_time = pa.types.is_timestamp(dtype) or pa.types.is_date(dtype) or pa.types.is_duration(dtype)
    return is_time or is_text(dtype)


def warn_of_idle_unit(option: str, unit: str, stamps: Sequence[tuple[str, pa.DataType]]) -> None:
    """Warn that a unit has no effect on stamps, given by their columns and types, none of them numbers.

    ``option`` is what the caller has to leave out, such as ``unit``.
    """
    columns = first_few([f"{name!r} ({'text' if is_text(dtype) else dtype})" for name, dtype in stamps])
    advice = "leave it out"
    if number_unit(unit) is not None:
        advice += f', or say tick="1{unit}" if it is to be the length of a tick'
    warn(f"{option} {unit!r} has no effect on stamps that are no numbers, {columns}: {advice}")
