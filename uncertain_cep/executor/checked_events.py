"""The events of a table whatever is asked of them: checked, with their bounds, clocks, sequences and laws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.event_times import EventTimes, event_times
from uncertain_cep.candidates.existence import existence
from uncertain_cep.candidates.marginals import with_marginals
from uncertain_cep.candidates.own_times import with_coded_clocks
from uncertain_cep.candidates.selection import check_keys
from uncertain_cep.candidates.sequenced import SequencedEvents, sequenced
from uncertain_cep.candidates.span_times import spans_in_ticks, with_ends
from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.executor.sound_tables import check_table
from uncertain_cep.expressions.codes import codes_of, paired
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.query import parse
from uncertain_cep.query.binder import MAX_WINDOW
from uncertain_cep.timeline.domain import Names, TimeDomain
from uncertain_cep.timeline.lasting_columns import END_BOUNDS, has_spans

__all__ = ["CheckedEvents", "Ends", "equal_values", "names_of", "refuse_overlapping_records", "window_of"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_ANY_TWO = "PATTERN SEQ(ANY x, ANY y) WITHIN {}"
"""A query within one tick that depends on everything that the model says of any event."""


@dataclass(frozen=True)
class CheckedEvents:
    """The events of a table, checked.

    Attributes
    ----------
    plan : EvaluationPlan
        Says how the table is read.
    table : pyarrow.Table
        In one chunk.
    times : EventTimes
    """

    plan: EvaluationPlan
    table: pa.Table
    times: EventTimes

    @classmethod
    def of(cls, table: pa.Table, options: MatchOptions) -> CheckedEvents:
        """Return the events of a table.

        Raises
        ------
        TraceError
            With every fault, if they are not those of the model.
        """
        tick = TimeDomain.of(table.schema, options.names, options.tick).tick_nanoseconds
        query = parse(_ANY_TWO.format(1 if tick is None else f"{tick}ns"))
        plan = make_plan(query, table.schema, options)
        check_table(plan, table)
        table = with_coded_clocks(plan, with_marginals(plan, table)).combine_chunks()
        return cls(plan, table, event_times(plan, table))

    def ranks(self, asker: str) -> Int64:
        """Return the ranks of the events of a clock by their sequences, (n,) int64; -1: none.

        An OptionError says that records of an ordered source overlap, which ``asker`` does not take.
        """
        in_order = sequenced(self.plan, self.table, self.times.pmfs, self.times.lower, self.times.upper)
        if in_order is None:
            return np.full(self.table.num_rows, -1)
        refuse_overlapping_records(in_order, self.plan.names, asker)
        return in_order.rank

    @cached_property
    def probability(self) -> Float64:
        """How likely each event happened, (n,) float64."""
        happened = existence(self.table, self.plan.names.probability)
        return np.ones(self.table.num_rows) if happened is None else happened.probability

    def window(self, rows: Int64) -> int:
        """Return a window, ticks, that holds the events of some rows, see `window_of`."""
        return window_of(self.times.lower[rows], self.times.upper[rows])

    @cached_property
    def in_ticks(self) -> dict[str, pa.ChunkedArray]:
        """Return the columns of the model that say when events happen, in ticks, but for ``ordered``.

        They have the model's own names, and do not name any unit of time.
        """
        names, table = self.plan.names, self.table
        kept = {"pmf": names.pmf}
        if (source := self.plan.clock_names.source) is not None:
            kept |= {"source": source, "offset_pmf": names.offset_pmf, "sequence": names.sequence}
        columns = {
            name: table.column(column) for name, column in kept.items() if column in table.column_names
        }
        ticks = dict(zip(("lower", "upper"), self.times.in_table, strict=True))
        if source is not None:
            offsets = self.plan.domain.offsets(table, names)
            ticks |= zip(("offset_lower", "offset_upper"), offsets, strict=True)
        return columns | {name: pa.chunked_array([pa.array(values)]) for name, values in ticks.items()}


@dataclass(frozen=True)
class Ends:
    """The begins and ends of n events, in ticks; they are the same where the event is a moment.

    Attributes
    ----------
    begin, end : (2, n) int64
        Lower and upper bounds.
    columns : dict of Arrow arrays
        Those of events that last, with bounds in ticks, null for moments; none if all are moments.
    lasts : (n,) bool
    """

    begin: Int64
    end: Int64
    lasts: NDArray[np.bool_]
    columns: dict[str, pa.ChunkedArray]

    @classmethod
    def of(cls, events: CheckedEvents) -> Ends:
        """Return the begins and ends of events; a TraceError tells the faults of their columns."""
        plan, table = events.plan, events.table
        if not has_spans(table.column_names):
            times = np.stack((events.times.lower, events.times.upper))
            return cls(times, times, np.zeros(times.shape[1], np.bool_), {})
        _, both, spans = with_ends(plan, table)
        names = (plan.names.lower, plan.names.upper, *END_BOUNDS)
        ticks = [plan.domain.ticks(both.column(name).slice(0, table.num_rows)) for name in names]
        return cls(np.stack(ticks[:2]), np.stack(ticks[2:]), spans.lasts, spans_in_ticks(plan, table))


def refuse_overlapping_records(in_order: SequencedEvents | None, names: Names, asker: str) -> None:
    """Raise OptionError if records of an ordered source overlap, which ``asker`` does not take."""
    if in_order is not None and in_order.clusters:
        raise OptionError(
            f"records of the ordered source {in_order.name_of(0)} overlap, so that the time of each "
            f"depends on all of them, which {asker} does not compute: leave out the column "
            f"{names.ordered!r} to have sequences break ties alone, or use sources=False"
        )


def names_of(columns: str | Sequence[str] | None) -> list[str]:
    """Return the names of one column, several or none, as callers give them."""
    return [columns] if isinstance(columns, str) else list(columns or ())


def equal_values(tables: Sequence[pa.Table], names: Sequence[str]) -> list[Int64]:
    """Return numbers for the rows of tables, alike where all of these columns are; -1: one is null.

    Raises
    ------
    TraceError
        If an integer is beyond int64, or the values of two tables have no common type.
    """
    group = np.zeros(sum(table.num_rows for table in tables), np.int64)
    for table in tables:
        check_keys(table, names)
    for name in names:
        codes, _ = codes_of([table.column(name) for table in tables])
        group = paired(group, np.concatenate(codes))
    return np.split(group, np.cumsum([table.num_rows for table in tables])[:-1])


def window_of(lower: Int64, upper: Int64) -> int:
    """Return a window, ticks, that holds events of some bounds.

    A TraceError says that they are further apart than a window can be.
    """
    if not len(lower):
        return 1
    ticks = int(upper.max()) - int(lower.min()) + 1
    if ticks > MAX_WINDOW:
        raise TraceError(f"the events are more than {MAX_WINDOW - 1:.1e} ticks apart: choose a longer tick")
    return ticks
