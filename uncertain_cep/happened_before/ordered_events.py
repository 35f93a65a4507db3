"""The events of a table as their order needs them: bounds, clocks, sequences and laws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.event_times import EventTimes, event_times
from uncertain_cep.candidates.marginals import with_marginals
from uncertain_cep.candidates.own_times import with_coded_clocks
from uncertain_cep.candidates.sequenced import sequenced
from uncertain_cep.errors import OptionError
from uncertain_cep.executor import check_table
from uncertain_cep.expressions.codes import codes_of, paired
from uncertain_cep.happened_before.certain_order import CertainOrder
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.query import parse
from uncertain_cep.timeline.domain import TimeDomain

__all__ = ["OrderedEvents"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

_ANY_TWO = "PATTERN SEQ(ANY x, ANY y) WITHIN {}"
"""A query within one tick that depends on everything that the model says of any event."""


@dataclass(frozen=True)
class OrderedEvents:
    """The events of a table, checked.

    Attributes
    ----------
    table : pyarrow.Table
    plan : EvaluationPlan
        Says how the table is read.
    order : CertainOrder
    in_table : (n,) int64, (n,) int64
        The bounds in the table, ticks.
    has_own_law, has_law : (n,) bool
        Whether the time of an event by its clock, and its time, are not uniform.
    laws : dict of name to column
        The columns of the model that say more of times than bounds, by the names of the model, in ticks.
    """

    table: pa.Table
    plan: EvaluationPlan
    order: CertainOrder
    in_table: tuple[Int64, Int64]
    has_own_law: Mask
    has_law: Mask
    laws: dict[str, pa.ChunkedArray]

    @classmethod
    def of(cls, table: pa.Table, by: Sequence[str], options: MatchOptions) -> OrderedEvents:
        """Return the events of a table, in groups of equal values of some columns.

        Raises
        ------
        TraceError
            With every fault, if they are not those of the model.
        OptionError
            If records of an ordered source overlap.
        """
        tick = TimeDomain.of(table.schema, options.names, options.tick).tick_nanoseconds
        query = parse(_ANY_TWO.format(1 if tick is None else f"{tick}ns"))
        plan = make_plan(query, table.schema, options)
        check_table(plan, table)
        table = with_coded_clocks(plan, with_marginals(plan, table)).combine_chunks()
        times = event_times(plan, table)
        count = table.num_rows
        clock, rank = np.full((2, count), -1)
        own_lower, own_upper = times.lower, times.upper
        own_law = np.zeros(count, dtype=np.bool_) if times.pmfs is None else times.pmfs.offset >= 0
        law = own_law.copy()
        if (offsets := times.offsets) is not None:
            clock, low, high = offsets.clock, offsets.low[offsets.clock], offsets.high[offsets.clock]
            own_lower, own_upper = times.lower - low, times.upper - high
            # The sum of two uniform parts, none of which is certain, is not uniform.
            law |= (offsets.law[clock] >= 0) | ((low < high) & (own_lower < own_upper))
            rank = _ranks(plan, table, times)
        group = _groups(table, by)
        order = CertainOrder(group, times.lower, times.upper, clock, own_lower, own_upper, rank)
        return cls(table, plan, order, times.in_table, own_law, law, _laws(plan, table))


def _ranks(plan: EvaluationPlan, table: pa.Table, times: EventTimes) -> Int64:
    """Return the ranks of the events of a clock by their sequences, (n,) int64; -1: none."""
    in_order = sequenced(plan, table, times.pmfs, times.lower, times.upper)
    if in_order is None:
        return np.full(table.num_rows, -1)
    if in_order.clusters:
        name = in_order.name_of(0)
        raise OptionError(
            f"records of the ordered source {name} overlap, so that the time of each depends on all of them, "
            f"which order does not compute: leave out the column {plan.names.ordered!r} to have sequences "
            "break ties alone, or use sources=False"
        )
    return in_order.rank


def _groups(table: pa.Table, by: Sequence[str]) -> Int64:
    """Return the group of each event, (n,) int64; -1 where a value is null, which is equal to none."""
    group = np.zeros(table.num_rows, np.int64)
    for name in by:
        (codes,), _ = codes_of([table.column(name)])
        group = paired(group, codes)
    return group


def _laws(plan: EvaluationPlan, table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the columns that say more of times than bounds, with offsets in ticks."""
    names = plan.names
    kept = {"pmf": names.pmf}
    if (source := plan.clock_names.source) is not None:
        kept |= {"source": source, "offset_pmf": names.offset_pmf, "sequence": names.sequence}
    columns = {name: table.column(column) for name, column in kept.items() if column in table.column_names}
    if source is not None:
        for name, ticks in zip(
            ("offset_lower", "offset_upper"), plan.domain.offsets(table, names), strict=True
        ):
            columns[name] = pa.chunked_array([pa.array(ticks)])
    return columns
