"""Events that last: a second row for the end of each, and the pairs of begin and end that it can have.

A world takes ticks ``b <= e`` that meet all bounds of a span, all such pairs alike likely. So begin and end
are two times, uniform on their own bounds, with a bound of their difference; among all pairs of these a
*share* is possible, by which confidences are divided. Both move with the offset of the event's clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.timed.bounds import UNBOUND
from confidence.timed.counted_pairs import counted_pairs
from uncertain_cep.candidates.own_times import OffsetBounds, offsets_named
from uncertain_cep.candidates.span_candidates import taken_types
from uncertain_cep.candidates.span_laws import FlatLaws, as_lists, begins_of_pairs, laws_of
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.plan import EvaluationPlan, PlannedComponent
from uncertain_cep.query.typed import Column
from uncertain_cep.timeline.lasting_columns import END_BOUNDS, SPAN_COLUMNS, SPAN_LAWS
from uncertain_cep.traces.faulty_rows import renumbered

__all__ = ["SpanTimes", "check_spans", "faults_of_spans", "spans_in_ticks", "with_ends"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

_IS_EVENT: Final = "uncertain_cep.is_event"
"""The column that tells events from the rows of their ends."""

_MOST_TICKS: Final = 2**30
"""Above it numbers of pairs are counted beyond 64 bits."""


class _Bounds(NamedTuple):
    lower: Int64
    upper: Int64


@dataclass(frozen=True, slots=True)
class SpanTimes:
    """Begins and ends of n events, in a table that has a row for each end behind them."""

    events: int
    """n. The end of event r is row n + r."""
    length: _Bounds
    """Each (n,) int64. What ``e - b`` is between, ticks; 0 for points."""
    share: Float64
    """(n,) float64. The part of all pairs within the bounds of begin and end that is possible."""
    lasts: Mask
    """(n,) bool. Which events are spans."""
    moved_as_one: Mask
    """(n,) bool. Which spans are certain by their clock: a world's end is its begin and the length."""
    own_begin: _Bounds
    """Each (n,) int64. Bounds of the begin by the event's clock, ticks."""
    own_end: _Bounds
    length_laws: FlatLaws | None = None
    """The weights of lengths, from the least on; None: all are alike."""

    def some(self, rows: Int64) -> SpanTimes:
        """Return the begins and ends of some events, (m,) int64 rows."""
        laws = self.length_laws
        length, begin, end = (
            _Bounds(bounds.lower[rows], bounds.upper[rows])
            for bounds in (self.length, self.own_begin, self.own_end)
        )
        return SpanTimes(
            len(rows), length, self.share[rows], self.lasts[rows], self.moved_as_one[rows], begin, end,
            None if laws is None else laws._replace(start=laws.start[rows]),
        )  # fmt: skip

    def weight(self, rows: Int64, lasting: Mask, start: Int64) -> Float64:
        """Return by what the confidences of k matches are multiplied, (k,) float64.

        ``rows``, (m,) int64, are those of their events, ``lasting`` tells which have an end of their own.
        """
        weight = np.where(lasting, 1.0 / self.share[rows], 1.0)
        return np.asarray(np.multiply.reduceat(weight, start[:-1]))


def with_ends(
    plan: EvaluationPlan,
    table: pa.Table,
    file: str | None = None,
    rows: Int64 | None = None,
) -> tuple[EvaluationPlan, pa.Table, SpanTimes]:
    """Return a plan and a table with a row for the end of each event, which no component takes.

    ``rows``, (n,) int64, number the events in errors, from 0. Of the columns those that the plan needs are
    left.

    Raises
    ------
    TraceError
        If a span has no begin and end, or fewer than two pairs of bounds.
    """
    spans = _sound_spans(plan, table, file, rows)
    table = table.select([name for name in table.column_names if name in plan.required_columns])
    begin, end, length = spans.tight
    names, domain = plan.names, plan.domain
    columns = dict(zip(table.column_names, table.columns, strict=True))
    count = table.num_rows
    missing = {names.type: pa.nulls(count, table.schema.field(names.type).type)}
    for name in (names.pmf, names.probability):
        if name in columns:
            missing[name] = pa.nulls(count, table.schema.field(name).type)
    of_ends = {name: missing.get(name, column) for name, column in columns.items()}
    laws = spans.laws_of_ends(begin, end)
    if laws is not None:
        columns[names.pmf], of_ends[names.pmf] = laws
    for side, name in enumerate((names.lower, names.upper)):
        columns[name], of_ends[name] = domain.times(begin[side]), domain.times(end[side])
        columns[END_BOUNDS[side]] = of_ends[END_BOUNDS[side]] = domain.times(end[side])
    columns[_IS_EVENT], of_ends[_IS_EVENT] = pa.array(np.ones(count, bool)), pa.array(np.zeros(count, bool))
    parts = [pa.table(part) for part in (columns, of_ends)]
    extended = pa.concat_tables([parts[0], parts[1].cast(parts[0].schema)]).combine_chunks()
    return (
        _without_ends(plan, (_IS_EVENT,) if laws is None else (_IS_EVENT, names.pmf)),
        extended,
        SpanTimes(
            count, length, spans.share, spans.lasts, spans.moved_as_one, *spans.by_clocks,
            spans.laws_of_lengths,
        ),
    )  # fmt: skip


def faults_of_spans(plan: EvaluationPlan, table: pa.Table) -> list[TraceFault]:
    """Return the faults of the spans of a table that has all of their columns."""
    return _Spans(plan, table).faults()[:100]


def check_spans(plan: EvaluationPlan, table: pa.Table) -> None:
    """Raise TraceError if a span that some component may take has no begin and end, or not those it says."""
    rows = np.flatnonzero(taken_types(plan, table))
    _sound_spans(plan, table.take(pa.array(rows)), None, rows)


def _sound_spans(plan: EvaluationPlan, table: pa.Table, file: str | None, rows: Int64 | None) -> _Spans:
    """Return the spans of a table; a TraceError has the faults of their rows, which ``rows`` number."""
    spans = _Spans(plan, table)
    faults = spans.faults()[:100]
    if faults:
        faults = faults if rows is None else renumbered(faults, rows)
        raise TraceError([fault if file is None else replace(fault, file=file) for fault in faults])
    return spans


def spans_in_ticks(plan: EvaluationPlan, table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the columns of the spans of a table that has all of them, with bounds in ticks."""
    return _Spans(plan, table).in_ticks()


class _Spans:
    """The spans of a table as they are given, in ticks."""

    def __init__(self, plan: EvaluationPlan, table: pa.Table) -> None:
        self._plan, self._table = plan, table
        self._faults: list[TraceFault] = []
        names = plan.names
        whole = _Bounds(*(plan.domain.ticks(table.column(name)) for name in (names.lower, names.upper)))
        self._whole = whole
        self._pairs = [
            self._pair(*SPAN_COLUMNS[place : place + 2], is_length=place == 4) for place in (0, 2, 4)
        ]
        (begin, has_begin), (end, has_end), (length, has_length) = self._pairs
        pairs = has_begin.astype(np.int64) + has_end + has_length
        self.lasts: Mask = pairs > 0
        self._note(pairs == 1, "a span needs two of begin, end and length, each with both bounds", None)
        if names.pmf in table.column_names:
            has_pmf = np.asarray(table.column(names.pmf).is_valid().to_numpy())
            self._note(
                has_pmf & self.lasts, "a span has no pmf: give begin_pmf, end_pmf or length_pmf", names.pmf
            )
        given_length, self._given_length = length, length.lower
        length = _Bounds(
            np.where(has_length, np.maximum(length.lower, 0), 0),
            np.where(has_length, length.upper, np.where(self.lasts, UNBOUND // 4, 0)),
        )
        self._length = length
        self._begin = _Bounds(
            np.where(has_begin, begin.lower, end.lower - length.upper),
            np.where(has_begin, begin.upper, end.upper - length.lower),
        )
        self._end = _Bounds(
            np.where(has_end, end.lower, begin.lower + length.lower),
            np.where(has_end, end.upper, begin.upper + length.upper),
        )
        self._begin, self._end = (
            _Bounds(*(np.where(self.lasts, one, point) for one, point in zip(bounds, whole, strict=True)))
            for bounds in (self._begin, self._end)
        )
        self._low, self._high = _offset_bounds(offsets_named(plan, table), table.num_rows)
        width = self._high - self._low
        pairs_of_bounds: list[tuple[_Bounds, Mask, Int64]] = [
            (self._begin, has_begin, width),
            (self._end, has_end, width),
            (given_length, has_length, np.zeros_like(width)),
        ]
        self._laws = [
            laws_of(table, name, has_bounds, bounds.upper - bounds.lower - slack + 1, self._note)
            for name, (bounds, has_bounds, slack) in zip(SPAN_LAWS, pairs_of_bounds, strict=True)
        ]
        self.moved_as_one: Mask = np.zeros(table.num_rows, np.bool_)

    def _pair(self, lower: str, upper: str, *, is_length: bool) -> tuple[_Bounds, Mask]:
        """Return the bounds of a pair in ticks, 0 where they are null, and which events have it."""
        table, domain = self._table, self._plan.domain
        bounds, valid = [], []
        for name in (lower, upper):
            column = table.column(name)
            valid.append(np.asarray(column.is_valid().to_numpy()))
            if pa.types.is_null(column.type):
                bounds.append(np.zeros(len(column), dtype=np.int64))
            elif is_length:
                # A length is at shortest its lower bound, rounded up.
                negated = name == lower and pa.types.is_duration(column.type)
                ticks = domain.lengths(pc.negate(column.cast(pa.duration("ns"))) if negated else column)
                bounds.append(-ticks if negated else ticks)
            else:
                filled = column.combine_chunks()
                zero = pa.scalar(0, pa.int64()).cast(filled.type)
                bounds.append(domain.ticks(filled.fill_null(zero)))
        self._note(valid[0] != valid[1], f"{lower} and {upper} are given together, or neither is", lower)
        both: Mask = valid[0] & valid[1]
        self._note(both & (bounds[0] > bounds[1]), f"{lower} is above {upper}", lower)
        return _Bounds(*bounds), both

    def in_ticks(self) -> dict[str, pa.ChunkedArray]:
        """Return bounds in ticks, null where they are not known, and the laws of the bounds."""
        columns = {
            SPAN_COLUMNS[2 * place + side]: pa.chunked_array([pa.array(bounds[side], mask=~is_there)])
            for place, (bounds, is_there) in enumerate(self._pairs)
            for side in range(2)
        }
        laws = (name for name in SPAN_LAWS if name in self._table.column_names)
        return columns | {name: self._table.column(name) for name in laws}

    def _note(self, wrong: Mask, message: str, column: str | None) -> None:
        rows = np.flatnonzero(wrong)[:100].tolist()
        self._faults += [TraceFault(message, row=row + 1, column=column) for row in rows]

    def faults(self) -> list[TraceFault]:
        """Return the faults of the spans, those of bounds that leave none as well."""
        if not self._faults:
            begin, end, length = self.tight
            nothing = (begin.lower > begin.upper) | (end.lower > end.upper) | (length.lower > length.upper)
            self._note(nothing, "no begin and end are within all bounds of the span", None)
            if not self._faults:
                self._note(self.share <= 0.0, "no begin and end are within all bounds", None)
                names, whole = self._plan.names, self._whole
                self._note(begin.lower < whole.lower, "the span can begin before it", names.lower)
                self._note(end.upper > whole.upper, "the span can end behind it", names.upper)
        return self._faults

    @property
    def by_clocks(self) -> tuple[_Bounds, _Bounds]:
        """Tight bounds of begin and end by the clocks of the events."""
        begin, end, _ = self.tight
        return (
            _Bounds(begin.lower - self._low, begin.upper - self._high),
            _Bounds(end.lower - self._low, end.upper - self._high),
        )

    @cached_property
    def tight(self) -> tuple[_Bounds, _Bounds, _Bounds]:
        """Bounds of begin, end and length without those that no pair meets; of true times."""
        begin, end = (
            _likely(
                _Bounds(bounds.lower - self._low, bounds.upper - self._high), bounds.lower - self._low, laws
            )
            for bounds, laws in zip((self._begin, self._end), self._laws[:2], strict=True)
        )
        length = _likely(self._length, self._given_length, self._laws[2])
        end = _Bounds(
            np.maximum(end.lower, begin.lower + length.lower),
            np.minimum(end.upper, begin.upper + length.upper),
        )
        begin = _Bounds(
            np.maximum(begin.lower, end.lower - length.upper),
            np.minimum(begin.upper, end.upper - length.lower),
        )
        is_certain = (begin.lower == begin.upper) & (end.lower == end.upper)
        self.moved_as_one = self.lasts & is_certain & (self._low < self._high)
        whole = end.lower - begin.lower
        is_met = self.lasts & is_certain & (length.lower <= whole) & (whole <= length.upper)
        length = _Bounds(*(np.where(is_met, whole, bound) for bound in length))
        begin, end = (_Bounds(bounds.lower + self._low, bounds.upper + self._high) for bounds in (begin, end))
        return begin, end, length

    @cached_property
    def share(self) -> Float64:
        """The part of all pairs of begin and end that is possible, (n,)."""
        begin, end, length = self.tight
        spread = self._high - self._low
        width, height = (bounds.upper - bounds.lower - spread + 1 for bounds in (begin, end))
        large = len(width) and int((width + height).max()) >= _MOST_TICKS
        kind: Any = object if large else np.int64
        width, height = width.astype(kind), height.astype(kind)
        last_begin, last_end = begin.upper - spread, end.upper - spread
        bounds_of_all = (begin.lower, last_begin), (end.lower, last_end), length
        pairs = counted_pairs(*((low.astype(kind), high.astype(kind)) for low, high in bounds_of_all))
        share = np.asarray(pairs / (width * height), dtype=np.float64)
        if any(laws is not None for laws in self._laws):
            self._weigh_pairs(share, begin, end, length)
        return share

    def _weigh_pairs(self, share: Float64, begin: _Bounds, end: _Bounds, length: _Bounds) -> None:
        """Replace the share of events that have explicit probabilities."""
        laws = self._tight_laws
        has_law = np.logical_or.reduce([law.start >= 0 for law in laws if law is not None])
        width = self._high - self._low
        sizes = [bounds.upper - bounds.lower - width + 1 for bounds in (begin, end)]
        # A length is at most that from the first begin to the last end.
        longest = np.minimum(length.upper, end.upper - begin.lower - width)
        for row in np.flatnonzero(has_law).tolist():
            lengths = max(int(longest[row] - length.lower[row]) + 1, 0)
            weights = None if laws[2] is None else laws[2].of(row, lengths)
            of_begin, of_end = (
                None if law is None else law.of(row, int(size[row]))
                for law, size in zip(laws[:2], sizes, strict=True)
            )
            if lengths == 0 or min(int(size[row]) for size in sizes) < 1:
                share[row] = 0.0
                continue
            begins = begins_of_pairs(
                of_begin, of_end, np.ones(lengths) if weights is None else weights,
                (int(sizes[0][row]), int(sizes[1][row])),
                int(length.lower[row] - (end.lower[row] - begin.lower[row])),
            )  # fmt: skip
            share[row] = begins.sum()

    @cached_property
    def _tight_laws(self) -> list[FlatLaws | None]:
        """The laws of begins, ends and lengths within tight bounds; None: all are alike.

        Where one end is certain by its clock, the length is known with the other one: it weighs that.
        """
        begin, end, length = self.tight
        laws: list[FlatLaws | None] = [
            None if laws is None else laws.moved(tight.lower - untightened.lower)
            for laws, tight, untightened in zip(
                self._laws[:2], (begin, end), (self._begin, self._end), strict=True
            )
        ]
        of_length = self._open_laws_of_lengths(length)
        if of_length is None:
            return [*laws, None]
        spread = self._high - self._low
        open_begin, open_end = (bounds.upper - bounds.lower > spread for bounds in (begin, end))
        has_law = of_length.start >= 0
        for place, bounds, fixed, is_known in (
            (0, begin, end, has_law & ~open_end),
            (1, end, begin, has_law & ~open_begin & open_end),
        ):
            apart = np.abs(bounds.lower - fixed.lower), np.abs(bounds.upper - fixed.upper)
            laws[place] = _weighed_by(laws[place], of_length, np.flatnonzero(is_known), apart, length.lower)
        return [*laws, of_length._replace(start=np.where(open_begin & open_end, of_length.start, -1))]

    def laws_of_ends(self, begin: _Bounds, end: _Bounds) -> tuple[pa.Array, pa.Array] | None:
        """Return the pmfs of begins, or of points, and of ends, by their clocks; None if all are alike."""
        laws = self._tight_laws[:2]
        if all(law is None for law in laws):
            return None
        name = self._plan.names.pmf
        of_points = self._table.column(name) if name in self._table.column_names else None
        nothing = FlatLaws(np.full(self._table.num_rows, -1), np.zeros(0))
        width = self._high - self._low
        of_begin, of_end = (
            as_lists(nothing if law is None else law, bounds.upper - bounds.lower - width + 1, otherwise)
            for law, bounds, otherwise in zip(laws, (begin, end), (of_points, None), strict=True)
        )
        return of_begin, of_end

    @property
    def laws_of_lengths(self) -> FlatLaws | None:
        """The weights of lengths from tight bounds on, of events of which both ends are open; None: none."""
        return self._tight_laws[2]

    def _open_laws_of_lengths(self, length: _Bounds) -> FlatLaws | None:
        """Return the weights of lengths that are not certain, from tight bounds on; None if all are alike."""
        laws = self._laws[2]
        if laws is None:
            return None
        moved = laws.moved(length.lower - self._given_length)
        is_open = ~self.moved_as_one & (length.lower < length.upper)
        return moved._replace(start=np.where(is_open, moved.start, -1))


def _likely(bounds: _Bounds, first: Int64, laws: FlatLaws | None) -> _Bounds:
    """Return bounds without the ticks of probability 0 at both ends; laws begin at the ``first`` ones."""
    if laws is None:
        return bounds
    lower, upper = bounds.lower.copy(), bounds.upper.copy()
    for row in np.flatnonzero(laws.start >= 0).tolist():
        skipped = int(lower[row] - first[row])
        law = laws.values[laws.start[row] + skipped : laws.start[row] + int(upper[row] - first[row]) + 1]
        positive = np.flatnonzero(law)
        if len(positive):
            lower[row], upper[row] = lower[row] + positive[0], lower[row] + positive[-1]
    return _Bounds(lower, upper)


def _weighed_by(
    laws: FlatLaws | None, of_length: FlatLaws, rows: Int64, apart: tuple[Int64, Int64], shortest: Int64
) -> FlatLaws | None:
    """Return laws of ends, those of some rows multiplied by the weights of lengths.

    ``apart`` are the lengths at the first and the last tick of each event's end, (n,) int64 each.
    """
    if not len(rows):
        return laws
    count = len(shortest)
    laws = FlatLaws(np.full(count, -1), np.zeros(0)) if laws is None else laws
    start, parts, stop = laws.start.copy(), [laws.values], len(laws.values)
    for row in rows.tolist():
        first, last = int(apart[0][row]), int(apart[1][row])
        step = 1 if last >= first else -1
        lengths = np.arange(first, last + step, step) - int(shortest[row])
        weights = of_length.values[of_length.start[row] + lengths]
        law = laws.of(row, len(weights))
        parts.append(weights if law is None else weights * law)
        start[row], stop = stop, stop + len(weights)
    return FlatLaws(start, np.concatenate(parts))


def _offset_bounds(offsets: OffsetBounds | None, count: int) -> tuple[Int64, Int64]:
    """Return the bounds of the offset of each event's clock, (n,) ticks; 0 without one."""
    if offsets is None:
        return np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    low, high = offsets.low - offsets.cut_low, offsets.high + offsets.cut_high
    return low[offsets.clock], high[offsets.clock]


def _without_ends(plan: EvaluationPlan, columns: tuple[str, ...]) -> EvaluationPlan:
    """Return a plan whose components of any type take no rows of ends; it needs some more columns."""

    def taking_events(part: PlannedComponent) -> PlannedComponent:
        if part.types:
            return part
        return replace(part, local=(*part.local, Column(part.variable, _IS_EVENT, "bool")))

    def without_ends(part: EvaluationPlan | None) -> EvaluationPlan | None:
        return None if part is None else _without_ends(part, columns)

    return replace(
        plan,
        components=tuple(map(taking_events, plan.components)),
        negations=tuple(
            replace(negation, component=taking_events(negation.component)) for negation in plan.negations
        ),
        branches=tuple(_without_ends(branch, columns) for branch in plan.branches),
        counted=without_ends(plan.counted),
        by_row=without_ends(plan.by_row),
        required_columns=tuple(dict.fromkeys((*plan.required_columns, *columns))),
    )
