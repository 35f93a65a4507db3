"""Events that may be shorter than the unit of their stamps."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import warn
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS

__all__ = ["by_clock", "warn_of_short_spans"]


def warn_of_short_spans(table: pa.Table, names: Names) -> None:
    """Warn of events of unknown length whose begin and end may be one moment, in a table without faults.

    All lengths from zero to the doubt of both stamps are alike likely then, which is far off where most
    events are short. O(n).
    """
    begin_lower, begin_upper, end_lower, end_upper, *lengths = SPAN_COLUMNS
    ends = (begin_lower, begin_upper, end_lower, end_upper)
    if not all(name in table.column_names and not pa.types.is_null(table[name].type) for name in ends):
        return
    begins = (
        by_clock(table, begin_lower, names.offset_lower),
        by_clock(table, begin_upper, names.offset_upper),
    )
    last = by_clock(table, end_lower, names.offset_lower)
    short = pc.and_(pc.less(*begins), pc.less_equal(last, begins[1]))
    if all(name in table.column_names for name in lengths):
        short = pc.and_(short, pc.is_null(table[lengths[0]]))
    count = pc.sum(short).as_py() or 0
    if count:
        lasting = len(table) - max(table[name].null_count for name in ends)
        warn(
            f"{count:,} of {lasting:,} events that last may begin and end at one moment, by their stamps: "
            "where events are shorter than the unit of these, probabilities of overlaps are far off; give "
            "their lengths, too: duration=, or the columns length_lower and length_upper"
        )


def by_clock(table: pa.Table, name: str, offset: str) -> pa.ChunkedArray:
    """Return a bound by the clock of its event, of which both ends have one offset."""
    column = table[name]
    if offset not in table.column_names or pa.types.is_null(table[offset].type):
        return column
    return pc.coalesce(pc.subtract(column, table[offset]), column)
