"""Intervals whose bounds stand in the trace."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from uncertain_cep.durations import unit_nanoseconds
from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.traces.lengths import lengths_of
from uncertain_cep.traces.uncertainty import Intervals, Stamps, Ticks, missing_where

__all__ = ["Columns", "columns"]

_SIGN: Final = re.compile(r"\s+([+-])\s+")


@dataclass(frozen=True, slots=True)
class Columns:
    """Explicit bounds: ``[lower, upper]`` as columns of stamps have them.

    Attributes
    ----------
    lower, upper : str
        A column of stamps, or one plus or minus columns of lengths in the same unit, such as
        ``launch + slack`` (with blanks around the sign).
    """

    lower: str
    upper: str

    def stamps(self, time: str | None) -> tuple[str, ...]:  # noqa: ARG002
        """Return the columns whose values are stamps; the time column is not one of them."""
        return tuple(dict.fromkeys(_terms(bound)[0] for bound in (self.lower, self.upper)))

    def reads(self, time: str | None) -> tuple[str, ...]:
        """Return all columns that the rule reads."""
        lengths = [name for bound in (self.lower, self.upper) for _, name in _terms(bound)[1]]
        return tuple(dict.fromkeys((*self.stamps(time), *lengths)))

    def intervals(self, stamps: Stamps) -> Intervals:
        """Return the interval of each row."""
        low, high = _bound(stamps, self.lower), _bound(stamps, self.upper)
        (lower,), has_lower = low.moved, low.present
        (upper,), has_upper = high.moved, high.present
        gaps = missing_where(has_lower, _terms(self.lower)[0], f"there is no bound {self.lower!r}")
        gaps += missing_where(has_upper, _terms(self.upper)[0], f"there is no bound {self.upper!r}")
        return Intervals(lower, upper, gaps, rests=low.rests, floored=max(low.floored, high.floored))

    def is_whole(self, tick: int, schema: pa.Schema, unit: str | None) -> bool:
        """Return whether the lengths, if there are any, are whole ticks by the types of their columns."""
        lengths = [name for bound in (self.lower, self.upper) for _, name in _terms(bound)[1]]
        if not lengths:
            return True
        step = None if unit is None else unit_nanoseconds(unit)
        whole = step is not None and step % tick == 0
        return whole and all(pa.types.is_integer(schema.field(name).type) for name in lengths)


def columns(lower: str, upper: str) -> Columns:
    """Bounds that stand in two columns of the trace, both inclusive.

    Parameters
    ----------
    lower, upper : str
        Columns of stamps; or sums of such a column and columns of lengths in the same unit.

    Examples
    --------
    >>> rule = columns("launch", "launch + slack")
    """
    return Columns(lower, upper)


def _terms(bound: str) -> tuple[str, list[tuple[int, str]]]:
    first, *rest = _SIGN.split(bound.strip())
    signs = [1 if sign == "+" else -1 for sign in rest[::2]]
    return first, list(zip(signs, rest[1::2], strict=True))


def _bound(stamps: Stamps, bound: str) -> Ticks:
    base, lengths = _terms(bound)
    if not lengths:
        return stamps.ticks(base, 0)
    shift = np.zeros(stamps.table.num_rows, np.int64)
    known = np.ones(stamps.table.num_rows, np.bool_)
    unit = None if stamps.unit is None or stamps.unit.lower() in ("tick", "ticks") else stamps.unit
    most = 0
    for sign, name in lengths:
        values = stamps.table.column(name)
        if unit is None and stamps.grid.type != pa.int64() and not pa.types.is_duration(values.type):
            raise OptionError(
                f"the numbers of column {name!r} are lengths of time: say their unit, such as ms"
            )
        length, present = lengths_of(values, name, unit)
        if unit is None and not pa.types.is_duration(values.type):
            length = length * (stamps.grid.tick or 1)
        most += int(np.abs(length).max(initial=0))
        if most >= 2**63:
            raise TraceError(f"{bound!r} adds up to more than 292 years: is the unit right?")
        shift += sign * length
        known &= present
    found = stamps.ticks(base, shift)
    return replace(found, present=found.present & known)
