"""Begins and ends of one key, as rows of events, become events that last."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.errors import OptionError, TraceError, TraceFault, warn
from uncertain_cep.expressions.codes import codes_of
from uncertain_cep.plurals import counted
from uncertain_cep.timeline.domain import Names, lengths_in_ticks
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS
from uncertain_cep.traces.short_spans import by_clock

__all__ = ["FormatRows", "check_ends", "of_formats", "pairs_of", "tied"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

_MOST_SHOWN: Final = 10
"""Faults that are told one by one."""


def pairs_of(
    table: pa.Table, key: Int64, of_side: tuple[Int64, Int64], by: str, names: Names
) -> tuple[Int64, Int64]:
    """Return the rows of begins and of their ends, each (k,) int64; warn of those that stay alone.

    ``key``, (n,) int64, tells which rows may be tied, -1 for none; ``of_side`` are the rows of begins and of
    ends; ``by`` says in words what the key is. O(n log n).
    """
    count = int(key.max(initial=-1)) + 1
    single = np.ones(count, dtype=np.bool_)
    row = np.full((2, count), -1)
    for side, rows in enumerate(of_side):
        keyed = rows[key[rows] >= 0]
        single &= np.bincount(key[keyed], minlength=count) == 1
        row[side, key[keyed]] = keyed
    begins, ends = row[:, single]
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], ends[order]
    one_clock = np.ones(len(begins), dtype=np.bool_)
    for name in (one for one in names.of_clocks(table.column_names) if one != names.sequence):
        codes = codes_of([table.column(name)])[0][0] if name != names.offset_pmf else np.zeros(len(key))
        one_clock &= codes[begins] == codes[ends]
    apart = len(begins) - int(one_clock.sum())
    alone = [len(rows) - len(begins) for rows in of_side]
    if apart or any(alone):
        warn(
            f"of {counted(len(of_side[0]), 'begin')} and {counted(len(of_side[1]), 'end')}, {alone[0]:,} and "
            f"{alone[1]:,} have no partner by {by}, or several, and {apart:,} have one by another "
            "clock: they stay points"
        )
    return begins[one_clock], ends[one_clock]


def check_ends(table: pa.Table, begins: Int64, ends: Int64, names: Names) -> None:
    """Raise what speaks against spans of some pairs.

    Raises
    ------
    OptionError
        If an event of a pair has a pmf, or may not have happened.
    TraceError
        If an end is before its begin in every world; rows are numbered as in the table.
    """
    both = pa.array(np.concatenate((begins, ends)))
    for name, what in ((names.pmf, "has a pmf"), (names.probability, "may not have happened")):
        if name not in table.column_names:
            continue
        column = table.column(name).take(both)
        likely = name == names.probability
        if pc.any(pc.less(column, 1.0)).as_py() if likely else column.null_count < len(column):
            raise OptionError(f"an event that is tied {what}, which spans do not support yet")
    wrong = np.flatnonzero(_ends_first(table, begins, ends, names))
    if len(wrong):
        faults = [
            TraceFault(
                f"what begins here ends in row {int(ends[place]) + 1}, before it begins in every world",
                row=int(begins[place]) + 1,
            )
            for place in wrong[:_MOST_SHOWN].tolist()
        ]
        if len(wrong) > _MOST_SHOWN:
            faults.append(TraceFault(f"{len(wrong) - _MOST_SHOWN:,} more end before they begin"))
        raise TraceError(faults)


def _ends_first(table: pa.Table, begins: Int64, ends: Int64, names: Names) -> Mask:
    """Return a mask of the pairs that end before they begin in every world, by the clock of both."""
    sides = ((names.lower, names.offset_lower, begins), (names.upper, names.offset_upper, ends))
    first, last = (
        pc.cast(by_clock(table, name, offset), pa.int64()).take(pa.array(rows))
        for name, offset, rows in sides
    )
    return np.asarray(pc.less(last, first).to_numpy())


def tied(
    table: pa.Table, begins: Int64, ends: Int64, type_: str | pa.Array | pa.ChunkedArray, names: Names
) -> tuple[pa.Table, Int64]:
    """Return the events with the ends of some begins in their rows, and the row that each was.

    ``type_`` is the type of what is tied, or the types of all rows if they were tied.
    """
    row = np.arange(table.num_rows)
    end_of = np.full(table.num_rows, -1)
    end_of[begins] = ends
    is_tied = end_of >= 0
    begin_rows, end_rows = (pa.array(rows, mask=~is_tied) for rows in (row, end_of))
    model = {names.type, names.id, names.lower, *names.of_clocks(table.column_names)}
    with_ends = table
    for place, name in enumerate(table.column_names):
        column = table.column(name)
        if name == names.type:
            changed = pc.if_else(pa.array(is_tied), type_, column.cast(pa.string()))
        elif name in model:
            continue
        else:
            lacks = is_tied if name == names.upper else is_tied & np.asarray(column.is_null().to_numpy())
            changed = column.take(pa.array(np.where(lacks, end_of, row)))
        with_ends = with_ends.set_column(place, name, changed)
    for side, rows in (("begin", begin_rows), ("end", end_rows)):
        for bound, name in (("lower", names.lower), ("upper", names.upper)):
            with_ends = with_ends.append_column(f"{side}_{bound}", table.column(name).take(rows))
    kept = np.ones(table.num_rows, dtype=np.bool_)
    kept[ends] = False
    # In one piece, of which no query makes a copy.
    return with_ends.filter(pa.array(kept)).combine_chunks(), np.flatnonzero(kept)


class FormatRows(NamedTuple):
    """The rows of a format of n events, as it gave them."""

    ids: pa.ChunkedArray
    """(n,) text; those of a begin and its end are equal before the last colon."""
    bounds: tuple[pa.ChunkedArray, pa.ChunkedArray] | None
    """Each (n,) timestamps: the bounds of their times; None if these are uncertain in another way."""


def of_formats(
    table: pa.Table, rows: FormatRows, names: Names, tick: int | None, *, drop: bool = False
) -> tuple[pa.Table, Int64]:
    """Return the events of a format with its begins tied to their ends, and the row that each was.

    Parameters
    ----------
    table : pyarrow.Table
        n events.
    rows : FormatRows
        Of these events.
    names : Names
        Of the model's columns.
    tick : int or None
        Its length, nanoseconds.
    drop : bool
        Whether begins and ends are left out that are in that order in no world; else they are an error.

    Notes
    -----
    Where both ends have bounds equally far apart, they leave open when all of it happened, not how long it
    took: a task of Spark was on its executor for a known time, somewhere between launch and finish. All other
    formats have certain stamps, whose difference is certain, too.
    """
    parts = pc.extract_regex(rows.ids.cast(pa.string()), r"^(?P<stem>.*):(?P<end>start|end)$")
    stem, side = (pc.struct_field(parts, name) for name in ("stem", "end"))
    key = np.asarray(codes_of([stem])[0][0], np.int64)
    is_begin, is_end = (
        np.asarray(pc.equal(side, name).fill_null(False).to_numpy()) for name in ("start", "end")
    )
    begins, ends = pairs_of(
        table, key, (np.flatnonzero(is_begin), np.flatnonzero(is_end)), "their ids", names
    )
    out = np.zeros(table.num_rows, np.bool_)
    if drop:
        wrong = _ends_first(table, begins, ends, names)
        out[begins[wrong]] = out[ends[wrong]] = True
        begins, ends = begins[~wrong], ends[~wrong]
    check_ends(table, begins, ends, names)
    types = pc.replace_substring_regex(table.column(names.type).cast(pa.string()), "(.)Start$", r"\1")
    with_ends, kept = tied(table, begins, ends, types, names)
    is_tied = np.isin(kept, begins, assume_unique=True)
    if table.column(names.id).equals(rows.ids):
        named = pc.if_else(pa.array(is_tied), stem.take(pa.array(kept)), with_ends.column(names.id))
        with_ends = with_ends.set_column(with_ends.column_names.index(names.id), names.id, named)
    if rows.bounds is not None:
        places = np.flatnonzero(is_tied)
        for name, column in _lengths(rows.bounds, begins, ends, tick).items():
            row = np.full(len(kept), -1)
            row[places] = np.arange(len(places))
            with_ends = with_ends.append_column(name, column.take(pa.array(row, mask=~is_tied)))
    return with_ends.filter(pa.array(~out[kept])), kept[~out[kept]]


def _lengths(
    bounds: tuple[pa.ChunkedArray, pa.ChunkedArray], begins: Int64, ends: Int64, tick: int | None
) -> dict[str, pa.Array]:
    """Return the bounds of the lengths of k spans, null where begin and end are not equally uncertain.

    Lengths that are no whole ticks last one tick more or less, by where in a tick they begin.
    """
    lower, upper = (
        np.asarray(column.cast(pa.timestamp("ns")).cast(pa.int64()).to_numpy()) for column in bounds
    )
    length = lower[ends] - lower[begins]
    differ = pa.array(length != upper[ends] - upper[begins])
    each = (length // (tick or 1), -(-length // (tick or 1)))
    return {
        name: pc.if_else(differ, None, lengths_in_ticks(ticks, tick))
        for name, ticks in zip(SPAN_COLUMNS[4:], each, strict=True)
    }
