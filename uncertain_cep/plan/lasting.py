"""Events that last: where their begins and ends are supported."""

from __future__ import annotations

import pyarrow as pa

from uncertain_cep.errors import OptionError
from uncertain_cep.plan.options import MatchOptions
from uncertain_cep.query.syntax import Query
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS, has_spans

__all__ = ["refuse_lasting_events", "schema_with_all_bounds", "with_all_bounds"]


def with_all_bounds(table: pa.Table, lower: str) -> pa.Table:
    """Return a table that has all columns of spans if it has two pairs of them, null where it had none."""
    if not has_spans(table.column_names) or lower not in table.column_names:
        return table
    for place, name in enumerate(SPAN_COLUMNS):
        if name not in table.column_names:
            dtype = pa.int64() if place >= 4 else table.schema.field(lower).type
            table = table.append_column(name, pa.nulls(table.num_rows, dtype))
    return table


def schema_with_all_bounds(schema: pa.Schema, lower: str) -> pa.Schema:
    """Return the schema of what :func:`with_all_bounds` makes of tables of a schema."""
    return with_all_bounds(schema.empty_table(), lower).schema


def refuse_lasting_events(schema: pa.Schema, query: Query, options: MatchOptions) -> None:
    """Raise OptionError where events that last are not supported."""
    if not has_spans(schema.names):
        return
    names, what = options.names, None
    present = ", ".join(name for name in SPAN_COLUMNS if name in schema.names)
    way_out = f"to take each event as a point, drop the columns {present}"
    if not options.takes_spans:
        what = "this function"
    elif query.strategy != "skip_till_any_match":
        what = query.strategy
    elif query.gap_strategies:
        what = "strategies of single gaps"
    elif options.compressed:
        what = 'kleene="compressed"'
    elif options.method != "query_order":
        what, way_out = f"evaluation={options.evaluation!r}", 'leave it out, or use "query_order"'
    elif options.sources and names.source in schema.names and names.sequence in schema.names:
        what = f"a column {names.sequence!r}"
    if what is not None:
        raise OptionError(f"the events last, and that does not support {what} yet: {way_out}")
