"""The events of two tables as one, and what the engine says of small parts of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.budget import checkpoint
from uncertain_cep.config.tuning import GROUPED_AT_ONCE
from uncertain_cep.errors import OptionError, TraceError, TraceFault, absent_columns
from uncertain_cep.executor import execute
from uncertain_cep.executor.checked_events import CheckedEvents, Ends, equal_values, window_of
from uncertain_cep.joining.times_of_ends import ENDS, as_moments
from uncertain_cep.plan import MatchOptions, make_plan
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.query import parse
from uncertain_cep.running.threads import threads_or_all
from uncertain_cep.timeline.domain import MODEL_COLUMNS, TimeDomain, is_text
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS, SPAN_LAWS, has_spans
from uncertain_cep.traces.checks import RowOrigin

__all__ = ["Part", "TwoSides"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_LEFT, _RIGHT = "left", "right"


@dataclass(frozen=True)
class Part:
    """Rows of both sides, in groups that are looked at apart.

    Attributes
    ----------
    left, right : (m,) int64, (k,) int64
        Rows of the left and of the right table.
    left_group, right_group : (m,) int64, (k,) int64
    """

    left: Int64
    left_group: Int64
    right: Int64
    right_group: Int64


@dataclass(frozen=True)
class TwoSides:
    """The events of two tables, checked.

    Attributes
    ----------
    left, right : pyarrow.Table
    events : CheckedEvents
        Of both, the left ones first; they have the names of the model.
    ends : Ends
    group : (n,) int64
        Alike where the columns are equal that have to be; -1 where one of these is null.
    place : (n,) int64
        The rows of each side in their order; those of one source with sequences are in that order.
    """

    left: pa.Table
    right: pa.Table
    events: CheckedEvents
    ends: Ends
    group: Int64
    place: Int64

    @classmethod
    def of(
        cls,
        left: pa.Table,
        right: pa.Table,
        on: Sequence[str],
        options: MatchOptions,
        at: tuple[str, str] | None = None,
    ) -> TwoSides:
        """Return the events of two tables; with ``at`` those of each side that last as moments, at an end.

        Raises
        ------
        TraceError
            With every fault, if they are not those of the model; the file says of which side a row is.
        OptionError
            If the tables cannot be joined: their columns, ticks or times differ, or records of an ordered
            source overlap.
        """
        for side, table in ((_LEFT, left), (_RIGHT, right)):
            if absent := [name for name in on if name not in table.column_names]:
                raise TraceError(
                    absent_columns(
                        absent, table.column_names, advice=f"on= names columns of both; {side} lacks it"
                    )
                )
        for name in on:
            kinds = [table.schema.field(name).type for table in (left, right)]
            if is_text(kinds[0]) != is_text(kinds[1]):
                raise OptionError(f"column {name!r} is {kinds[0]} on the left and {kinds[1]} on the right")
        with _by_sides(left, right):
            events = _checked(left, right, options, at)
            ends = Ends.of(events)
        group = np.concatenate(equal_values((left, right), on))
        return cls(left, right, events, ends, group, _places(events, left.num_rows))

    @property
    def of_left(self) -> slice:
        """The left events among all."""
        return slice(0, self.left.num_rows)

    @property
    def of_right(self) -> slice:
        """The right events among all."""
        return slice(self.left.num_rows, None)

    def confidences(
        self, part: Part, pattern: str, threads: int | None
    ) -> Iterator[tuple[Int64, Int64, Float64]]:
        """Yield the matches of a pattern among the events of each group, in batches.

        Parameters
        ----------
        part : Part
        pattern : str
            Without WITHIN. Types are ``left`` and ``right``, variables ``l`` and, if it has one, ``r``; the
            attribute ``part`` is that of the group, ``place`` that of the row.

        Yields
        ------
        (m,) int64, (m,) int64, (m,) float64
            Rows of the left and of the right side (-1 without r), and confidences.
        """
        for piece in _pieces(part):
            checkpoint()
            rows = np.concatenate((piece.left, piece.right + self.left.num_rows))
            groups = np.concatenate((piece.left_group, piece.right_group))
            columns = {name: column.take(pa.array(rows)) for name, column in self._in_ticks.items()}
            types = np.repeat([_LEFT, _RIGHT], [len(piece.left), len(piece.right)])
            columns |= {
                "type": pa.array(types), "id": pa.array(np.arange(len(rows))), "part": pa.array(groups),
                "place": pa.array(self.place[rows]),
            }  # fmt: skip
            table = pa.table(columns)
            window = window_of(self.ends.begin[0, rows], self.ends.end[1, rows])
            text = f"{pattern} WITHIN {window}"
            plan = make_plan(parse(text), table.schema, MatchOptions(takes_spans=True))
            for batch in execute(plan, table, threads=threads_or_all(threads)):
                left = rows[batch.column("l").to_numpy()]
                right = np.full(len(left), -1)
                if "r" in batch.schema.names:
                    right = rows[batch.column("r").to_numpy()] - self.left.num_rows
                yield left, right, batch.column("confidence").to_numpy()

    @cached_property
    def _in_ticks(self) -> dict[str, pa.ChunkedArray]:
        probability = pa.chunked_array([pa.array(self.events.probability)])
        columns = self.events.in_ticks | {"probability": probability}
        return columns | self.ends.columns


def _pieces(part: Part) -> Iterator[Part]:
    """Yield the groups of a part, so many rows at a time; no group is cut."""
    left_order = np.argsort(part.left_group, kind="stable")
    right_order = np.argsort(part.right_group, kind="stable")
    left, right = part.left_group[left_order], part.right_group[right_order]
    begin, begin_right = 0, 0
    while begin < len(left):
        last = left[min(begin + GROUPED_AT_ONCE, len(left)) - 1]
        end = int(np.searchsorted(left, last, side="right"))
        end_right = int(np.searchsorted(right, last, side="right"))
        chosen, chosen_right = left_order[begin:end], right_order[begin_right:end_right]
        yield Part(
            part.left[chosen],
            part.left_group[chosen],
            part.right[chosen_right],
            part.right_group[chosen_right],
        )
        begin, begin_right = end, end_right


def _checked(
    left: pa.Table, right: pa.Table, options: MatchOptions, at: tuple[str, str] | None
) -> CheckedEvents:
    """Return the events of both tables, with the names of the model."""
    names = options.names
    domains = [TimeDomain.of(table.schema, names, options.tick) for table in (left, right)]
    ticks = [domain.tick_nanoseconds for domain in domains]
    if ticks[0] != ticks[1]:
        raise OptionError(
            f"a tick is {domains[0].describe()} on the left and {domains[1].describe()} on the right: give "
            "both the same one by tick="
        )
    parts = []
    for side, table in ((_LEFT, left), (_RIGHT, right)):
        columns = {part: getattr(names, part) for part in MODEL_COLUMNS if part not in ("type", "id", "tick")}
        used = {part: column for part, column in columns.items() if column in table.column_names}
        if has_spans(table.column_names):
            used |= {name: name for name in (*SPAN_COLUMNS, *SPAN_LAWS) if name in table.column_names}
        model = table.select(list(used.values())).rename_columns(list(used)).replace_schema_metadata(None)
        parts.append(model.append_column("type", pa.array([side] * table.num_rows, pa.string())))
    try:
        both = pa.concat_tables(parts, promote_options="permissive")
    except MemoryError:
        raise
    except pa.ArrowException as error:
        raise TraceError(TraceFault(f"the times of the two sides do not go together: {error}")) from error
    both = with_all_bounds(both.append_column("id", pa.array(np.arange(both.num_rows))), "lower")
    tick = None if ticks[0] is None else f"{ticks[0]}ns"
    options = MatchOptions(tick=tick, sources=options.sources, takes_spans=True)
    events = CheckedEvents.of(both, options)
    if at is None or not has_spans(both.column_names):
        return events
    at_end = np.repeat([end == ENDS[1] for end in at], [left.num_rows, right.num_rows])
    return CheckedEvents.of(as_moments(events, both, at_end), options)


@contextmanager
def _by_sides(left: pa.Table, right: pa.Table) -> Iterator[None]:
    """Let the faults of both tables, one behind the other, say of which side a row is."""
    try:
        yield
    except TraceError as error:
        sides = tuple(f"the {side} table" for side in (_LEFT, _RIGHT))
        origin = RowOrigin(sides, (left.num_rows, right.num_rows), (None, None))
        raise TraceError([origin.placed(fault) for fault in error.faults]) from None


def _places(events: CheckedEvents, left: int) -> Int64:
    """Return the place of each row on its side: its number, but those of one source go by their sequences."""
    count = events.table.num_rows
    place = np.arange(count)
    rank = events.ranks("a join")
    if events.times.offsets is None or (rank < 0).all():
        return place
    rows = np.flatnonzero(rank >= 0)
    source = events.times.offsets.clock * 2 + (np.arange(count) >= left)
    by_row = rows[np.lexsort((rows, source[rows]))]
    by_rank = rows[np.lexsort((rows, rank[rows], source[rows]))]
    place[by_rank] = by_row
    return place
