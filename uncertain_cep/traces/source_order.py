"""Checks of the order of a source's events: what cannot be used, and what contradicts their stamps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import TraceFault, warn
from uncertain_cep.expressions.codes import codes_of
from uncertain_cep.timeline.domain import Names, TimeDomain, advice_on_floats
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray, row_faults

__all__ = [
    "ORDERED_IN_PART",
    "SEQUENCE_AGAIN",
    "check_order_columns",
    "check_orders",
    "check_sequences",
    "no_time_left",
    "no_time_left_by",
    "warn_of_clocks_set_back",
]

ORDERED_IN_PART: Final = "the source is ordered by some of its rows and not by others: it is for all events"

SEQUENCE_AGAIN: Final = "another event of the ordered source has this sequence: give each its own, or none"

_TOLD: Final = 5
"""Sources whose clocks were set back that are told of one by one."""


def check_order_columns(columns: list[str], names: Names) -> list[TraceFault]:
    """Return a fault if events name clocks, and their order without a place in it."""
    if not names.name_clocks(columns) or names.ordered not in columns or names.sequence in columns:
        return []
    message = (
        f"it says that events of a source are in the order of their sequences, and there is no column "
        f"{names.sequence}: add it, or leave out the column {names.ordered}"
    )
    return [TraceFault(message, column=names.ordered)]


def check_sequences(table: pa.Table, names: Names, codes: IntArray, limit: int) -> list[TraceFault]:
    """Return a fault for sequences of events, and what is said of their order, that cannot be used.

    ``codes``, (n,) int64, stand for sources, -1 for none.
    """
    if names.sequence not in table.column_names:
        return []
    sequence = table.column(names.sequence)
    faults: list[TraceFault] = []
    if not (pa.types.is_integer(sequence.type) or pa.types.is_null(sequence.type)):
        message = (
            f"its type is {sequence.type}: a sequence is a whole number. Rename the column, or map "
            'names={"sequence": "..."}, to use an attribute of that name'
        ) + advice_on_floats(sequence.type, names.sequence)
        faults.append(TraceFault(message, column=names.sequence))
    elif pa.types.is_uint64(sequence.type):
        beyond = pc.fill_null(pc.greater(sequence, pa.scalar(2**63 - 1, pa.uint64())), False)
        message = "a sequence is a whole number of 64 bits with a sign: number the events anew"
        faults += row_faults(np.asarray(beyond), message, column=names.sequence, values=sequence, limit=limit)
    if names.ordered not in table.column_names:
        return faults
    ordered = table.column(names.ordered)
    if not (pa.types.is_boolean(ordered.type) or pa.types.is_null(ordered.type)):
        faults.append(TraceFault(f"its type is {ordered.type}: it is true or false", column=names.ordered))
    if faults:
        return faults
    is_ordered = _is_ordered(table, names)
    size = int(codes.max(initial=0)) + 2
    any_, all_ = np.zeros(size, np.bool_), np.ones(size, np.bool_)
    np.logical_or.at(any_, codes, is_ordered)
    np.logical_and.at(all_, codes, is_ordered)
    faults = row_faults(
        (any_ & ~all_)[codes] & is_ordered & (codes >= 0),
        ORDERED_IN_PART,
        column=names.ordered,
        values=table.column(names.source),
        limit=1,
    )
    rows = np.flatnonzero(is_ordered & (codes >= 0) & _has_place(sequence))
    value = _places(sequence)
    rows = rows[np.lexsort((value[rows], codes[rows]))]
    again = np.zeros(len(codes), np.bool_)
    again[rows[1:]] = (np.diff(value[rows]) == 0) & (np.diff(codes[rows]) == 0)
    return faults + row_faults(again, SEQUENCE_AGAIN, column=names.sequence, values=sequence, limit=limit)


def check_orders(
    table: pa.Table,
    names: Names,
    codes: IntArray,
    times: tuple[IntArray, IntArray],
    offsets: tuple[IntArray, IntArray],
    limit: int,
) -> list[TraceFault]:
    """Return a fault for each ordered source whose events have no times in the order of their sequences.

    Bounds of times and of offsets, (n,) int64 ticks each, have been checked.
    """
    if not {names.sequence, names.ordered} <= set(table.column_names):
        return []
    sequence = table.column(names.sequence)
    rows = np.flatnonzero(_is_ordered(table, names) & (codes >= 0) & _has_place(sequence))
    rows = rows[np.lexsort((_places(sequence)[rows], codes[rows]))]
    faults: list[TraceFault] = []
    lower, upper = (bounds - offset for bounds, offset in zip(times, offsets, strict=True))
    for rows_of_source in _of_sources(rows, codes):
        if len(faults) == limit:
            break
        if (pair := out_of_order(lower[rows_of_source], upper[rows_of_source])) is not None:
            one, other = (int(rows_of_source[place]) for place in pair)
            faults.append(no_time_left(one, other, names.sequence))
    return faults


def out_of_order(lower: IntArray, upper: IntArray) -> tuple[int, int] | None:
    """Return the places of two of some events in order, of which the later one is over too soon, if any."""
    first = np.maximum.accumulate(lower)
    late = np.flatnonzero(first > upper)
    if not len(late):
        return None
    at = int(late[0])
    return int(np.argmax(lower[: at + 1])), at


def no_time_left(one: int, other: int, column: str) -> TraceFault:
    """Return the fault of two rows, counted from 0, that cannot be in the order of their source."""
    return TraceFault(no_time_left_by(f"row {other + 1}"), row=one + 1, column=column)


def no_time_left_by(later: str) -> str:
    """Return the message for an event that cannot be before a later one of its source."""
    return f"by the order of the source {later} comes later, and its time leaves none for that"


class _SetBack(NamedTuple):
    """A source whose clock was set back, the rows before and behind that, and how often it happened."""

    source: str
    before: int
    behind: int
    times: int


def warn_of_clocks_set_back(table: pa.Table, names: Names, domain: TimeDomain) -> None:
    """Warn of sources whose stamps contradict their sequences, in a table without faults.

    The stamps decide then. O(n log n).
    """
    columns = table.column_names
    if not names.name_clocks(columns) or names.sequence not in columns:
        return
    sources = list(_set_back(table, names, domain))
    for each in sources[:_TOLD]:
        before, behind = (_stamped(table, names, row) for row in (each.before, each.behind))
        more = "" if each.times == 1 else f", and {each.times - 1:,} times more"
        warn(
            f"the clock of {each.source} was set back between {before} and {behind}{more}, as the column "
            f"{names.sequence} says; the stamps decide, so name an epoch: a source of its own from there on"
        )
    if len(sources) > _TOLD:
        warn(f"the clocks of {len(sources) - _TOLD:,} more sources were set back: name epochs of them, too")


def _set_back(table: pa.Table, names: Names, domain: TimeDomain) -> Iterator[_SetBack]:
    """Yield the sources of which an event with a later sequence was over before another one began."""
    source, sequence = table.column(names.source), table.column(names.sequence)
    (codes,), _ = codes_of([source])
    low, high = domain.offsets(table, names)
    lower = domain.ticks(table.column(names.lower)) - low
    upper = domain.ticks(table.column(names.upper)) - high
    places = _places(sequence)
    rows = np.flatnonzero((codes >= 0) & _has_place(sequence))
    # Those of one place are in the order of their stamps, which contradicts nothing.
    rows = rows[np.lexsort((lower[rows], places[rows], codes[rows]))]
    for rows_of_source in _of_sources(rows, codes):
        steps = int((lower[rows_of_source[:-1]] > upper[rows_of_source[1:]]).sum())
        if (pair := out_of_order(lower[rows_of_source], upper[rows_of_source])) is not None:
            one, other = int(rows_of_source[pair[0]]), int(rows_of_source[pair[1]])
            yield _SetBack(str(source[one]), one, other, max(steps, 1))


def _stamped(table: pa.Table, names: Names, row: int) -> str:
    """Return an event as a message names it."""
    lower = table.column(names.lower)[row]
    time = lower.cast(pa.string()) if pa.types.is_timestamp(lower.type) else lower
    return f"the event {table.column(names.id)[row]} ({names.lower} {time})"


def _of_sources(rows: IntArray, codes: IntArray) -> list[IntArray]:
    """Return rows, which are by source, apart for each source."""
    return [part for part in np.split(rows, np.flatnonzero(np.diff(codes[rows])) + 1) if len(part)]


def _is_ordered(table: pa.Table, names: Names) -> BoolArray:
    return np.asarray(pc.fill_null(table.column(names.ordered).cast(pa.bool_()), False).to_numpy())


def _has_place(sequence: pa.ChunkedArray) -> BoolArray:
    return np.asarray(sequence.is_valid().to_numpy())


def _places(sequence: pa.ChunkedArray) -> IntArray:
    return np.asarray(pc.fill_null(sequence.cast(pa.int64()), 0).to_numpy())
