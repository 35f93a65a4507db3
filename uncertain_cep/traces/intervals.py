"""Raw stamps to interval events, on tables."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import OptionError, TraceError, TraceFault, absent_columns, warn
from uncertain_cep.running.in_order import in_order
from uncertain_cep.timeline.domain import TICK_METADATA, Names, lengths_in_ticks, tick_column
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS
from uncertain_cep.traces.both_readings import of_both_readings
from uncertain_cep.traces.cells import reading_threads
from uncertain_cep.traces.chained_rows import chained, form_of
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray, row_faults
from uncertain_cep.traces.frames import whole_numbers
from uncertain_cep.traces.instants import Grid, grid_of, stamp_kind
from uncertain_cep.traces.stamp_remarks import collected_remarks
from uncertain_cep.traces.time_formats import TimeFormat
from uncertain_cep.traces.time_sums import parse_sum
from uncertain_cep.traces.uncertain_stamps import (
    Clocks,
    Intervals,
    SpanBounds,
    Stamps,
    Uncertainty,
    Zones,
)
from uncertain_cep.traces.units import warn_of_idle_unit

__all__ = [
    "IntervalColumns",
    "IntervalOptions",
    "MissingChoice",
    "Rounding",
    "intervals_of",
    "merged_message",
    "merged_times",
    "warn_of_merged",
]

_BLOCK: Final = 1 << 16
"""Rows whose intervals one core makes at once."""


@dataclass(frozen=True, slots=True)
class Rounding:
    """The effect of the ticks on the times of some rows.

    ``ticks``, (k,) int64, are those of certain times; ``rests``, likewise, the nanoseconds rounded off each
    (None: nothing). ``floored`` counts rows whose own offset or length is no whole number of ticks.
    """

    ticks: IntArray
    rests: IntArray | None
    floored: int

    @classmethod
    def of(
        cls, lower: IntArray, upper: IntArray, rests: IntArray | None, keep: BoolArray | None, floored: int
    ) -> Rounding:
        """Return the rounding of intervals, (n,) each, of those to keep (None: all)."""
        certain = lower == upper if keep is None else (lower == upper) & keep
        return cls(lower[certain], None if rests is None else rests[certain], floored)

    @classmethod
    def joined(cls, parts: Sequence[Rounding]) -> Rounding:
        """Return the rounding of all of these rows."""
        rests = None
        if any(part.rests is not None for part in parts):
            rests = np.concatenate(
                [np.zeros(len(part.ticks), np.int64) if part.rests is None else part.rests for part in parts]
            )
        return cls(np.concatenate([part.ticks for part in parts]), rests, sum(part.floored for part in parts))


def merged_times(parts: Sequence[Rounding]) -> int:
    """Return how many certain times share their tick with another, different one. O(k log k)."""
    if all(part.rests is None for part in parts):
        return 0
    whole = Rounding.joined(parts)
    ticks, rests = whole.ticks, whole.rests
    if rests is None or not len(ticks):
        return 0
    order = np.argsort(ticks, kind="stable")
    ticks, rests = ticks[order], rests[order]
    starts = np.flatnonzero(np.diff(ticks, prepend=ticks[0] - 1))
    several = np.minimum.reduceat(rests, starts) != np.maximum.reduceat(rests, starts)
    return int(np.diff(starts, append=len(ticks))[several].sum())


def warn_of_merged(parts: Sequence[Rounding], tick: str | None) -> None:
    """Warn if certain times that differ are in one tick."""
    merged = merged_times(parts)
    if merged:
        warn(merged_message(merged, tick))


def merged_message(merged: int, tick: str | None, *, at_least: bool = False) -> str:
    """Return the message for so many certain times that share their tick with different ones."""
    number = f"at least {merged:,}" if at_least else f"{merged:,}"
    return (
        f"{number} certain times share a tick of {tick} with different ones: none of these is before the "
        "other, so that they never follow each other in a match; give a shorter tick, or say how uncertain "
        "the times are"
    )


MissingChoice = Literal["error", "drop"]
_NAMES = Names()


@dataclass(frozen=True, slots=True)
class IntervalColumns:
    """The time columns of a table's rows.

    Every row has a ``lower`` and ``upper`` of the grid's type, of no meaning where it is not in ``keep``,
    (n,) bool (None: all are). ``rounding`` is what the ticks did to the kept rows; ``zones`` tells which
    stamps have a time zone (None: the type does).
    """

    lower: pa.Array
    upper: pa.Array
    pmf: pa.Array | None
    clocks: Clocks | None
    keep: BoolArray | None
    grid: Grid
    rounding: Rounding
    zones: Zones | None = None
    spans: SpanBounds | None = None

    @property
    def form(self) -> Any:
        """The parts that differ between tables of one schema."""
        return self.zones, form_of((self.clocks, self.spans))

    @classmethod
    def joined(cls, parts: Sequence[IntervalColumns]) -> IntervalColumns:
        """Return the columns of all rows of parts of one form, of which none has probabilities."""
        keeps = [part.keep for part in parts]
        masks = [np.ones(len(part.lower), np.bool_) if part.keep is None else part.keep for part in parts]
        lower, upper, clocks, spans, mask = chained(
            [
                (part.lower, part.upper, part.clocks, part.spans, mask)
                for part, mask in zip(parts, masks, strict=True)
            ]
        )
        return replace(
            parts[0],
            lower=lower,
            upper=upper,
            clocks=clocks,
            keep=None if all(keep is None for keep in keeps) else mask,
            rounding=Rounding.joined([part.rounding for part in parts]),
            spans=spans,
        )

    def of_spans(self) -> dict[str, pa.Array]:
        """Return the columns of events that last, if there are any; null for points."""
        if self.spans is None:
            return {}
        used = self.spans.lasting if self.keep is None else self.spans.lasting & self.keep
        unused = pa.array(~self.spans.lasting)
        columns = {}
        for name, bound in self.spans.by_name().items():
            ticks = np.where(used, bound, 0)
            is_length = name.startswith("length")
            column = lengths_in_ticks(ticks, self.grid.tick) if is_length else self.grid.column(ticks, name)
            columns[name] = pc.if_else(unused, None, column)
        return columns

    def of_clocks(self, names: Names) -> dict[str, pa.Array]:
        """Return the columns of shared clocks, if there are any."""
        if self.clocks is None:
            return {}
        absent = pa.array(~np.asarray(self.clocks.source.is_valid()))
        offsets = [
            pc.if_else(absent, None, lengths_in_ticks(ticks, self.grid.tick))
            for ticks in (self.clocks.lower, self.clocks.upper)
        ]
        return dict(zip(names.clocks, (self.clocks.source, *offsets), strict=True))


@dataclass(frozen=True, slots=True)
class IntervalOptions:
    """How intervals are made of raw stamps.

    Attributes
    ----------
    time : str or None
        The column of stamps, or the sum of one, of lengths, and of columns of lengths in the same unit, such
        as ``start + took`` or ``at - 60 s``; None for the rules that name their columns themselves.
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
    days : bool
        Whether a tick of dates may be a day if there is no other.
    format : TimeFormat or None
        How text is read as times. Default: as ISO 8601.
    """

    time: str | None
    uncertainty: Uncertainty
    tick: str | None = None
    unit: str | None = None
    missing: MissingChoice = "error"
    names: Names = _NAMES
    days: bool = True
    format: TimeFormat | None = None

    def __post_init__(self) -> None:
        if self.missing not in ("error", "drop"):
            raise OptionError(f'missing={self.missing!r} is not known: write "error" or "drop"')

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that intervals are made of."""
        return tuple(dict.fromkeys(self.uncertainty.reads(self.time)))

    def check(self, present: Sequence[str]) -> None:
        """Raise a TraceError if a column that is read is not there."""
        absent = [name for name in self.read if name not in present]
        if absent:
            raise TraceError(absent_columns(absent, present))

    def grid(self, schema: pa.Schema) -> Grid:
        """Return the ticks that the times of a table with these columns are floored to."""
        self.check(schema.names)
        stamps = self.uncertainty.stamps(self.time)
        kinds = [(name, stamp_kind(name, schema.field(name).type, self.unit)) for name in stamps]
        day = UNIT_NANOSECONDS["d"]
        whole = self.time is None or parse_sum(self.time).nanoseconds % day == 0
        days = self.days and whole and self.uncertainty.is_whole(day, schema, self.unit)
        return grid_of(kinds, self.tick, days)

    def takes_unit(self, schema: pa.Schema) -> bool:
        """Return whether rows with these columns can have numbers of the unit, or no unit is given."""
        return self.unit is None or self.uncertainty.takes_unit(self.time, schema)

    def warn_of_idle_unit(self, schema: pa.Schema, option: str = "unit") -> None:
        """Warn if a unit is given, as ``option``, and rows with these columns have no numbers."""
        if self.unit is not None and not self.takes_unit(schema):
            stamps = self.uncertainty.stamps(self.time)
            warn_of_idle_unit(option, self.unit, [(name, schema.field(name).type) for name in stamps])

    def columns(self, table: pa.Table) -> IntervalColumns:
        """Return the time columns of a table, as `intervals_of` would add them. All cores make them."""
        grid = self.grid(table.schema)
        table = whole_numbers(table, self.uncertainty.stamps(self.time))
        of_blocks = self._of_blocks(table, grid)
        return self._of_rows(table, grid) if of_blocks is None else of_blocks

    def _of_blocks(self, table: pa.Table, grid: Grid) -> IntervalColumns | None:
        """Return the columns of blocks of rows, side by side.

        None if that is of no use, or if rows may depend on each other, as what is said of them does: of
        faults, leap seconds, probabilities, whose number is limited, and lengths of no whole ticks.
        """
        threads = reading_threads()
        if threads < 2 or table.num_rows <= _BLOCK or (self.format is not None and self.format.by_rows):
            return None

        def made(start: int) -> IntervalColumns | None:
            with collected_remarks() as remarks, suppress(TraceError, OptionError):
                columns = self._of_rows(table.slice(start, _BLOCK), grid)
                is_plain = not remarks and columns.pmf is None and not columns.rounding.floored
                return columns if is_plain else None
            return None

        parts: list[IntervalColumns] = []
        with closing(in_order(threads, range(0, table.num_rows, _BLOCK), made)) as blocks:
            for part in blocks:
                if part is None or (parts and part.form != parts[0].form):
                    return None
                parts.append(part)
        return IntervalColumns.joined(parts)

    def _of_rows(self, table: pa.Table, grid: Grid) -> IntervalColumns:
        stamps = Stamps(table, self.time, self.unit, grid, self.format)
        intervals = self.uncertainty.intervals(stamps)
        if stamps.seen.twice:
            later = self.uncertainty.intervals(replace(stamps, later=True))
            _check_once(intervals, later)
            intervals = of_both_readings(intervals, later, grid)
        lower, upper, keep = intervals.lower, intervals.upper, None
        if any(gap.rows.any() for gap in intervals.missing):
            if self.missing == "error":
                hint = 'correct it, or leave such rows out with missing="drop"'
                faults = [
                    row_faults(
                        gap.rows, f"{gap.message}: {hint}", column=gap.column, values=table.column(gap.column)
                    )
                    for gap in intervals.missing
                ]
                raise TraceError([fault for part in faults for fault in part])
            keep = ~np.logical_or.reduce([gap.rows for gap in intervals.missing])
            lower, upper = np.where(keep, lower, 0), np.where(keep, upper, 0)
        rounding = Rounding.of(intervals.lower, intervals.upper, intervals.rests, keep, intervals.floored)
        return IntervalColumns(
            grid.column(lower, "lower"),
            grid.column(upper, "upper"),
            intervals.pmf,
            intervals.clocks,
            keep,
            grid,
            rounding,
            stamps.seen.zones,
            intervals.spans,
        )

    def new_columns(self, added: IntervalColumns, present: Sequence[str]) -> dict[str, pa.Array]:
        """Return time columns by their names, unless they overwrite a column which they are not made of."""
        names = self.names
        new = {names.lower: added.lower, names.upper: added.upper}
        if added.pmf is not None:
            new[names.pmf] = added.pmf
        new |= added.of_clocks(names) | added.of_spans()
        if added.grid.text is not None:
            new[names.tick] = tick_column(added.grid.text, len(added.lower))
        message = (
            "there is such a column already, and it would be overwritten: rename it, or give the new columns "
            "other names with names="
        )
        lost = [name for name in new if name in present and (name not in self.read or name == names.tick)]
        if lost:
            raise TraceError([TraceFault(message, column=name) for name in lost])
        return new

    def applied(self, table: pa.Table) -> tuple[pa.Table, IntervalColumns]:
        """Return a table with its time columns added, and these."""
        added = self.columns(table)
        result = table
        for name, column in self.new_columns(added, table.column_names).items():
            place = result.schema.get_field_index(name)
            result = (
                result.set_column(place, name, column) if place >= 0 else result.append_column(name, column)
            )
        if added.keep is not None:
            result = result.filter(pa.array(added.keep))
        metadata = dict(result.schema.metadata or {})
        metadata.pop(TICK_METADATA, None)
        if added.grid.text is not None:
            metadata[TICK_METADATA] = added.grid.text.encode()
        return result.replace_schema_metadata(metadata or None), added


def _check_once(first: Intervals, second: Intervals) -> None:
    """Refuse, by a TraceError, events that last and whose stamps stand for two times."""
    if first.spans is None:
        return
    twice = first.spans.lasting & ((first.lower != second.lower) | (first.upper != second.upper))
    for gap in first.missing:
        twice &= ~gap.rows
    if twice.any():
        message = (
            "it lasts, and clocks showed the hour of its stamp twice: give its stamps an offset, such as "
            "+01:00"
        )
        raise TraceError(row_faults(twice, message))


def intervals_of(table: pa.Table, **options: Any) -> pa.Table:
    """Return a table with its interval columns added; the options are the fields of `IntervalOptions`.

    The columns and their types follow from the table's schema and the options alone, and each row from that
    row alone: the function can be applied batch by batch, and to an empty table to learn the schema.

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
    return IntervalOptions(**options).applied(table)[0]
