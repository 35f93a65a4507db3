"""Checks whole trace files and returns everything found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from uncertain_cep.errors import TraceFault, warn
from uncertain_cep.timedomain import Names
from uncertain_cep.traces.checks import (
    RowOrigin,
    check_columns,
    check_events,
    check_intervals,
    check_nulls,
    check_pmfs,
)
from uncertain_cep.traces.reading import LoadedTrace, load_traces
from uncertain_cep.traces.rounding import merged_message
from uncertain_cep.traces.schema import TraceSchema
from uncertain_cep.traces.unique_ids import check_ids

__all__ = [
    "RowOrigin",
    "ValidationReport",
    "check_columns",
    "check_events",
    "check_ids",
    "check_intervals",
    "check_nulls",
    "check_pmfs",
    "report_of",
    "validate_traces",
    "validation_report",
]

_NAMES = Names()


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """What a check of trace files found.

    Attributes
    ----------
    faults : tuple of TraceFault
        Empty for a sound trace; bounded in number.
    rows : int
        Raw rows read.
    events : int
        Events they gave.
    dropped : int
        Rows left out for want of a time or offset, as the schema allows.
    floored : int
        Events whose own offset or length is no whole number of ticks, and was rounded down.
    merged : int
        Events of a certain time that share their tick with one of another certain time.
    tick : str or None
        The tick; None if it has no length or is not known.
    """

    faults: tuple[TraceFault, ...]
    rows: int
    events: int
    dropped: int
    floored: int
    merged: int
    tick: str | None

    def warn(self) -> None:
        """Warn if ticks took the order from certain times."""
        if self.merged:
            warn(merged_message(self.merged, self.tick))


def validation_report(
    paths: Sequence[str | Path] | str | Path,
    schema: TraceSchema | None = None,
    *,
    partition: Sequence[str] = (),
    tick: str | None = None,
) -> ValidationReport:
    """Check trace files and return everything found.

    Parameters
    ----------
    paths : path or sequence of paths
        Files, or folders of files.
    schema : TraceSchema or None
        None for files whose columns are those of the model.
    partition : sequence of str
        Columns within whose values an id must be unique. Default: in the whole trace.
    tick : str or None
        As for `read_traces`.
    """
    return report_of(load_traces(paths, schema, tick=tick), partition=partition)


def report_of(loaded: LoadedTrace, *, partition: Sequence[str] | None = ()) -> ValidationReport:
    """Check events that were loaded and return everything found; see `validation_report`.

    With ``partition=None`` ids are not checked.
    """
    faults = list(loaded.faults)
    if loaded.table is not None and partition is not None:
        absent = [name for name in partition if name not in loaded.table.column_names]
        faults += [
            TraceFault(
                f"there is no such column; the trace has {', '.join(loaded.table.column_names)}", column=name
            )
            for name in absent
        ]
        if not absent:
            found = check_ids(loaded.table, _NAMES, partition=partition)
            faults += [loaded.origin.placed(fault) for fault in found]
    events = 0 if loaded.table is None else loaded.table.num_rows
    return ValidationReport(
        tuple(faults), loaded.rows, events, loaded.dropped, loaded.floored, loaded.merged, loaded.tick
    )


def validate_traces(
    paths: Sequence[str | Path] | str | Path,
    schema: TraceSchema | None = None,
    *,
    partition: Sequence[str] = (),
) -> list[TraceFault]:
    """Check trace files and return every fault, bounded in number; see `validation_report`."""
    return list(validation_report(paths, schema, partition=partition).faults)
