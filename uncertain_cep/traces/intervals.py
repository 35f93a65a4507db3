"""Raw stamps to interval events, on tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from uncertain_cep.durations import UNIT_NANOSECONDS
from uncertain_cep.errors import OptionError, TraceError, TraceFault
from uncertain_cep.timedomain import TICK_METADATA, Names, tick_column
from uncertain_cep.traces.faulty_rows import BoolArray, row_faults
from uncertain_cep.traces.instants import Grid, grid_of, stamp_kind
from uncertain_cep.traces.rounding import Rounding
from uncertain_cep.traces.uncertainty import Stamps, Uncertainty

__all__ = [
    "IntervalColumns",
    "MissingChoice",
    "check_overwrites",
    "default_grid",
    "interval_columns",
    "intervals_of",
    "new_columns",
    "with_intervals",
]

MissingChoice = Literal["error", "drop"]
_NAMES = Names()


@dataclass(frozen=True, slots=True)
class IntervalColumns:
    """The time columns of a table's rows.

    Attributes
    ----------
    lower, upper : array
        Times of the grid's type, for every row; of no meaning where not kept.
    pmf : list array or None
    keep : (n,) bool or None
        Which rows have an interval; None for all.
    grid : Grid
    rounding : Rounding
        What the ticks did to the kept rows.
    """

    lower: pa.Array
    upper: pa.Array
    pmf: pa.Array | None
    keep: BoolArray | None
    grid: Grid
    rounding: Rounding


def default_grid(
    schema: pa.Schema,
    *,
    time: str | None,
    uncertainty: Uncertainty,
    tick: str | None,
    unit: str | None,
    days: bool = True,
) -> Grid:
    """Return the ticks that the times of a table with these columns are floored to.

    ``days`` tells whether a tick of dates may be a day if there is no other.

    Raises
    ------
    TraceError
        If a column is missing or is no time.
    OptionError
        If the tick or the unit cannot be used.
    """
    absent = [name for name in uncertainty.reads(time) if name not in schema.names]
    if absent:
        has = ", ".join(schema.names) or "no columns"
        raise TraceError(
            [TraceFault(f"there is no such column; there is {has}", column=name) for name in absent]
        )
    kinds = [(name, stamp_kind(name, schema.field(name).type, unit)) for name in uncertainty.stamps(time)]
    return grid_of(kinds, tick, days and uncertainty.is_whole(UNIT_NANOSECONDS["d"], schema, unit))


def interval_columns(
    table: pa.Table,
    *,
    time: str | None,
    uncertainty: Uncertainty,
    tick: str | None = None,
    unit: str | None = None,
    missing: MissingChoice = "error",
    days: bool = True,
) -> IntervalColumns:
    """Return the time columns of a table, as `intervals_of` would add them.

    ``days`` tells whether a tick of dates may be a day if there is no other.

    Raises
    ------
    TraceError, OptionError
        As `intervals_of`.
    """
    if missing not in ("error", "drop"):
        raise OptionError(f'missing={missing!r} is not known: write "error" or "drop"')
    grid = default_grid(table.schema, time=time, uncertainty=uncertainty, tick=tick, unit=unit, days=days)
    found = uncertainty.intervals(Stamps(table, time, unit, grid))
    keep = None
    if any(gap.rows.any() for gap in found.missing):
        if missing == "error":
            hint = 'correct it, or leave such rows out with missing="drop"'
            raise TraceError(
                [
                    fault
                    for gap in found.missing
                    for fault in row_faults(
                        gap.rows, f"{gap.message}: {hint}", column=gap.column, values=table.column(gap.column)
                    )
                ]
            )
        keep = ~np.logical_or.reduce([gap.rows for gap in found.missing])
    lower, upper = found.lower, found.upper
    if keep is not None:
        lower, upper = np.where(keep, lower, 0), np.where(keep, upper, 0)
    rounding = Rounding.of(found.lower, found.upper, found.rests, keep, found.floored)
    return IntervalColumns(
        grid.column(lower, "lower"), grid.column(upper, "upper"), found.pmf, keep, grid, rounding
    )


def intervals_of(
    table: pa.Table,
    *,
    time: str | None,
    uncertainty: Uncertainty,
    tick: str | None = None,
    unit: str | None = None,
    missing: MissingChoice = "error",
    names: Names = _NAMES,
) -> pa.Table:
    """Return a table with its interval columns added.

    The columns and their types follow from the table's schema and the options alone, and each row from that
    row alone: the function can be applied batch by batch, and to an empty table to learn the schema.

    Parameters
    ----------
    table : pyarrow.Table
    time : str or None
        The column of stamps; None for the rules that name their columns themselves.
    uncertainty : Uncertainty
        Such as ``plus_minus("500ms")``.
    tick : str or None
        Length of a tick, such as ``"1ms"``, to which all times are rounded down; lengths of the uncertainty
        must be whole ticks, but the offsets and lengths of single rows are rounded down. Default: 1us,
        whatever the type of the stamps; for dates one day, or 1us if a length of the uncertainty is not
        whole days. Stamps between two default ticks are an error.
    unit : str or None
        Unit of numeric stamps since 1970-01-01T00:00:00Z, such as ``ms``; None or ``tick``: plain ticks.
    missing : {"error", "drop"}
        What to do with a row whose time or offset is missing.
    names : Names
        What to call the columns.

    Returns
    -------
    pyarrow.Table
        With ``lower`` and ``upper``: int64 for plain ticks, else timestamps of the coarsest Arrow unit in
        which the tick is whole; with ``pmf`` for histograms; with ``tick``, text such as ``100ms`` in every
        row, unless the times are plain ticks of no named length. Text with a zone offset is converted to
        UTC; text without one is taken as it stands.

    Raises
    ------
    TraceError
        If a column is missing or of the wrong type, a column would be overwritten, or a value is no time.
    OptionError
        If the tick, the unit or the length of an uncertainty cannot be used.
    """
    return with_intervals(
        table,
        interval_columns(table, time=time, uncertainty=uncertainty, tick=tick, unit=unit, missing=missing),
        names,
        uncertainty.reads(time),
    )


def with_intervals(table: pa.Table, added: IntervalColumns, names: Names, read: Sequence[str]) -> pa.Table:
    """Return a table with time columns added; `read` are those that they were made of."""
    new = new_columns(added, names)
    check_overwrites(table.column_names, new, read, names)
    result = table
    for name, column in new.items():
        place = result.schema.get_field_index(name)
        result = result.set_column(place, name, column) if place >= 0 else result.append_column(name, column)
    if added.keep is not None:
        result = result.filter(pa.array(added.keep))
    metadata = dict(result.schema.metadata or {})
    metadata.pop(TICK_METADATA, None)
    if added.grid.text is not None:
        metadata[TICK_METADATA] = added.grid.text.encode()
    return result.replace_schema_metadata(metadata or None)


def new_columns(added: IntervalColumns, names: Names) -> dict[str, pa.Array]:
    """Return the time columns by their names."""
    new = {names.lower: added.lower, names.upper: added.upper}
    if added.pmf is not None:
        new[names.pmf] = added.pmf
    if added.grid.text is not None:
        new[names.tick] = tick_column(added.grid.text, len(added.lower))
    return new


def check_overwrites(
    present: Sequence[str], new: dict[str, pa.Array], read: Sequence[str], names: Names
) -> None:
    """Refuse new columns that would overwrite some which they are not made of.

    Raises
    ------
    TraceError
    """
    lost = [name for name in new if name in present and (name not in read or name == names.tick)]
    if lost:
        raise TraceError(
            [
                TraceFault(
                    "there is such a column already, and it would be overwritten: rename it, or give the new "
                    "columns other names with names=",
                    column=name,
                )
                for name in lost
            ]
        )
