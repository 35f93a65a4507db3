"""The events of a table whose times are those of clocks that they share, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import Pmfs, running_sums
from confidence.budget import checkpoint
from confidence.chain.distribution import law_of_sum
from confidence.shared.held import Offsets, OwnTimes
from confidence.shared.weighing import RigidEvents
from uncertain_cep.candidates.pmfs import ExplicitPmfs, explicit_pmfs
from uncertain_cep.expressions.codes import codes_of
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.timeline.domain import is_text

__all__ = [
    "MovedTimes",
    "OffsetBounds",
    "SharedClocks",
    "offset_bounds",
    "offsets_named",
    "shared_clocks",
    "times_by_one_clock",
    "times_of",
    "with_coded_clocks",
]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]


class OffsetBounds(NamedTuple):
    """The clock of each event, and what the offset of each clock can be.

    What is said of k clocks is (k + 1,) int64: the last place is that of events without one.
    """

    clock: Int64
    """(n,) int64, of each event. -1: none."""
    row: Int64
    """An event of each clock."""
    low: Int64
    high: Int64
    """Without the ticks of probability 0 at either end. 0 without a clock."""
    cut_low: Int64
    cut_high: Int64
    """How many these are."""
    law: Int64
    """Where the probabilities of the ticks start; -1: uniform."""
    values: Float64
    """(p,) float64. These probabilities."""

    def of_rows(self, rows: Int64) -> OffsetBounds:
        """Return the same for some events, (m,) int64; clocks that none of them names get any row."""
        clock = self.clock[rows]
        row = np.zeros_like(self.row)
        row[clock] = np.arange(len(rows))
        return self._replace(clock=clock, row=row)


@dataclass(frozen=True, slots=True)
class SharedClocks:
    """The clocks of a table's events, and their times by these."""

    own: OwnTimes
    """Of each row; the clock is -1 where nothing is shared."""
    offsets: Offsets
    """Of each clock."""
    values: Float64
    """(p,) float64. Probabilities that both refer to."""
    names: tuple[str, ...]
    """What each clock is called."""
    has_law: Mask
    """(n,) bool. Whether the law of an event's time is not uniform."""
    times: tuple[Int64, Int64]
    """Each (n,) int64. The bounds of the times of events, ticks."""

    def rigid(self) -> RigidEvents:
        """Return the events as if they were certain by their clocks."""
        return RigidEvents(self.own.clock, *self.times)

    def bounds(self) -> tuple[Int64, Int64, Int64]:
        """Return bounds of the times of events, and how much of each is not its longest uniform part."""
        own_times, alone = self.own, self.own.clock < 0
        none = np.array([[0], [0], [-1]])
        low, high, law = np.where(alone, none, np.stack(self.offsets)[:, own_times.clock])
        parts = ((own_times.upper - own_times.lower, own_times.offset), (high - low, law))
        uniform = np.maximum(*(np.where(at < 0, length, 0) for length, at in parts))
        lower, upper = self.times
        return lower, upper, upper - lower - uniform

    def laws(self, lower: Int64, upper: Int64) -> tuple[Int64, Pmfs]:
        """Return the law of each event's time alone: where its probabilities start, and these.

        Events alike share theirs. ``lower`` and ``upper``, (n,) int64, are bounds of the times. The
        probabilities of times by clocks are among them.
        """
        own_times, offset = self.own, self.own.offset.copy()
        rows = np.flatnonzero(self.has_law & (own_times.clock >= 0))
        kinds = np.stack(
            (own_times.clock[rows], (own_times.upper - own_times.lower)[rows], own_times.offset[rows])
        )
        kinds[0] = np.where(kinds[2] < 0, self._alike()[kinds[0]], kinds[0])
        distinct, first, kind = np.unique(kinds, axis=1, return_index=True, return_inverse=True)
        sizes = (upper - lower + 1)[rows[first]]
        starts = len(self.values) + np.cumsum(sizes) - sizes
        checkpoint(8 * int(sizes.sum()))
        values = np.concatenate((self.values, np.zeros(int(sizes.sum()))))
        for row, start in zip(rows[first].tolist(), starts.tolist(), strict=True):
            clock = own_times.clock[row]
            law_of_sum(
                own_times.lower[row], own_times.upper[row], own_times.offset[row], self.offsets.lower[clock],
                self.offsets.upper[clock], self.offsets.offset[clock], self.values, start, values,
            )  # fmt: skip
        offset[rows] = starts[kind.reshape(-1)] if distinct.size else starts
        pmfs = Pmfs(values, np.zeros_like(values), np.zeros_like(values))
        for low, high, start in (
            (own_times.lower, own_times.upper, own_times.offset),
            (lower, upper, offset),
        ):
            _, first = np.unique(start, return_index=True)
            running_sums(low[first], high[first], start[first], *pmfs)
        return offset, pmfs

    def _alike(self) -> Int64:
        """Return for each clock the first one with an offset of the same law, but for where it begins."""
        width = self.offsets.upper - self.offsets.lower
        kinds = np.stack((width, np.where(self.offsets.offset < 0, -1, np.arange(len(width)))))
        _, first, kind = np.unique(kinds, axis=1, return_index=True, return_inverse=True)
        return first[kind.reshape(-1)]


def with_coded_clocks(plan: EvaluationPlan, table: pa.Table) -> pa.Table:
    """Return a table whose texts that name clocks are values of a dictionary, as they are compared often."""
    if plan.names.source not in plan.clock_columns(table.column_names):
        return table
    place = table.column_names.index(plan.names.source)
    column = table.column(place)
    if pa.types.is_dictionary(column.type) or not is_text(column.type):
        return table
    return table.set_column(place, plan.names.source, column.dictionary_encode())


def offset_bounds(plan: EvaluationPlan, table: pa.Table) -> OffsetBounds:
    """Return the bounds and laws of the offsets of the clocks of checked events."""
    names = plan.names
    (codes,), _ = codes_of([table.column(names.source)])
    count = int(codes.max(initial=-1)) + 1
    row = np.zeros(count + 1, np.int64)
    row[codes] = np.arange(len(codes))
    low, high, cut_low, cut_high = np.zeros((4, count + 1), np.int64)
    law, values = np.full(count + 1, -1), np.zeros(0)
    events_of_clocks = table.take(pa.array(row[:-1]))
    low[:-1], high[:-1] = plan.domain.offsets(events_of_clocks, names)
    if names.offset_pmf in table.column_names and count:
        pmfs, lower, upper = explicit_pmfs(events_of_clocks, names.offset_pmf, low[:-1], high[:-1])
        cut_low[:-1], cut_high[:-1] = lower - low[:-1], high[:-1] - upper
        if pmfs is not None:
            law[:-1], values = pmfs.offset, pmfs.values
    return OffsetBounds(codes, row, low + cut_low, high - cut_high, cut_low, cut_high, law, values)


def offsets_named(plan: EvaluationPlan, table: pa.Table) -> OffsetBounds | None:
    """Return the bounds and laws of the offsets of clocks; None if events name none."""
    return offset_bounds(plan, table) if plan.clocks else None


def times_of(
    plan: EvaluationPlan, table: pa.Table, offsets: OffsetBounds | None, lower: Int64, upper: Int64
) -> tuple[ExplicitPmfs | None, Int64, Int64]:
    """Return the pmfs of checked events, and their times, ticks, without those of probability 0 at the ends.

    ``lower`` and ``upper``, (n,) int64, are the bounds in the table, ``offsets`` those of clocks, if any.
    """
    pmfs, lower, upper = explicit_pmfs(table, plan.names.pmf, lower, upper)
    if offsets is not None and plan.names.offset_pmf in table.column_names:
        lower, upper = lower + offsets.cut_low[offsets.clock], upper - offsets.cut_high[offsets.clock]
    return pmfs, lower, upper


def shared_clocks(
    plan: EvaluationPlan,
    table: pa.Table,
    offsets: OffsetBounds,
    pmfs: ExplicitPmfs | None,
    lower: Int64,
    upper: Int64,
    *,
    every: bool = False,
) -> tuple[SharedClocks | None, ExplicitPmfs | None]:
    """Return the clocks of checked events, None if nothing is shared, and the pmfs of the other events.

    Parameters
    ----------
    pmfs : ExplicitPmfs or None
        Of own times where events name clocks.
    lower, upper : (n,) int64
        Bounds of their times, ticks, without those of probability 0 at the ends.
    every : bool
        Whether clocks that one event names are shared, too: other events may be elsewhere.
    """
    codes, low, high = offsets.clock, offsets.low, offsets.high
    offset = np.full(len(lower), -1) if pmfs is None else pmfs.offset
    values = np.zeros(0) if pmfs is None else pmfs.values
    count = len(low) - 1
    if not count:
        return None, pmfs
    # An offset that is certain ties no events, nor does a uniform one that a single certain event has.
    is_wide = low < high
    # A place more, for those without a clock.
    size = np.bincount(codes if int(codes.min()) >= 0 else codes[codes >= 0], minlength=count + 1)
    ties = is_wide & (every | (size > 1) | (offsets.law >= 0))
    own_lower = lower - np.where(is_wide, low, 0)[codes]
    own_upper = upper - np.where(is_wide, high, 0)[codes]
    is_loose = own_lower < own_upper
    wide = is_wide[codes]
    if pmfs is not None:
        offset = np.where(is_loose, offset, -1)
        offset_of_others = np.where(wide, -1, offset)
        pmfs = replace(pmfs, offset=offset_of_others) if (offset_of_others >= 0).any() else None
    shared = ties[codes] | (wide & is_loose)
    if not shared.any():
        return None, pmfs
    clock, named = codes, size > 0
    if not (shared.all() and named[:-1].all()):
        own_lower, own_upper = np.where(shared, own_lower, lower), np.where(shared, own_upper, upper)
        named = np.bincount(codes[shared], minlength=count + 1) > 0
        clock = np.where(shared, np.where(named, np.cumsum(named) - 1, -1)[codes], -1)
    place, law = offsets.row[named], offsets.law[named]
    clocks = SharedClocks(
        OwnTimes(clock, own_lower, own_upper, offset),
        Offsets(low[named], high[named], np.where(law < 0, -1, law + len(values))),
        np.concatenate((values, offsets.values)),
        tuple(map(str, table.column(plan.names.source).take(pa.array(place)).to_pylist())),
        (offset >= 0) | (shared & (is_loose | (offsets.law >= 0)[codes])),
        (lower, upper),
    )
    return clocks, pmfs


class MovedTimes(NamedTuple):
    """Times by the clocks of events, where all that a match depends on are of one clock."""

    lower: Int64
    upper: Int64
    """Each (n,) int64. Bounds of the times by the clock, ticks."""
    low: Int64
    high: Int64
    """Each (n,) int64. Bounds of the offset of the event's clock, ticks."""


def times_by_one_clock(
    plan: EvaluationPlan, table: pa.Table, offsets: OffsetBounds | None, lower: Int64, upper: Int64
) -> MovedTimes | None:
    """Return the times of checked events by their clocks, if these say all; None otherwise.

    They do where all events that a match of an OR-free pattern depends on are of one clock, and nothing is
    asked but how far apart they are: the offset of the clock moves all of them by as much. So a match has the
    confidence that it has by the clock, and its range is as much wider as the offset is uncertain.

    Parameters
    ----------
    lower, upper : (n,) int64
        Bounds of their times, ticks, without those of probability 0 at the ends.
    """
    if offsets is None or not plan.is_of_differences:
        return None
    if (offsets.low == offsets.high).all() or not _is_one_clock_a_match(plan, table, offsets.clock):
        return None
    low, high = offsets.low[offsets.clock], offsets.high[offsets.clock]
    return MovedTimes(lower - low, upper - high, low, high)


def _is_one_clock_a_match(plan: EvaluationPlan, table: pa.Table, clock: Int64) -> bool:
    """Return whether all events that a match depends on are of one clock, each (n,) int64, -1 for none."""
    if len(clock) and clock[0] >= 0 and (clock == clock[0]).all():
        return True
    if plan.query.strategy == "strict_contiguity":
        # An event of any other key is forbidden as well.
        return False
    for names in ({*key.columns, *key.negated} for key in plan.keys):
        if names == {plan.names.source}:
            return True
        if len(names) == 1:
            (values,), _ = codes_of([table.column(*names)])
            has_value = values >= 0
            of_value = np.full(int(values.max(initial=-1)) + 1, -1)
            of_value[values[has_value]] = clock[has_value]
            if ((clock[has_value] >= 0) & (of_value[values[has_value]] == clock[has_value])).all():
                return True
    return False
