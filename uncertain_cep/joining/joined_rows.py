"""The frames that joins take, and the frame of pairs that they give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.errors import OptionError
from uncertain_cep.joining.two_sides import TwoSides
from uncertain_cep.plan import MatchOptions
from uncertain_cep.timeline.domain import MODEL_COLUMNS, Names
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS, SPAN_LAWS
from uncertain_cep.traces.frames import event_table, library_of

__all__ = ["are_on_spark", "joined_rows", "two_tables"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


def are_on_spark(left: Any, right: Any, options: MatchOptions) -> bool:
    """Return whether two frames of events are Spark's; an OptionError says that one of them is."""
    libraries = [library_of(left), library_of(right)]
    if "pyspark" not in libraries:
        return False
    if libraries[0] != libraries[1]:
        raise OptionError(
            "one side is a frame of Spark, and one is not: make a frame of both, with "
            "spark.createDataFrame(...), or collect the events, with toArrow()"
        )
    if options.threads is not None or options.limit is not None:
        raise OptionError(
            "threads=, timeout= and memory_limit= are for frames in this process: leave them out"
        )
    return True


def two_tables(left: Any, right: Any, options: MatchOptions) -> tuple[pa.Table, pa.Table]:
    """Return two frames of events as tables."""
    return event_table(left, options.names), event_table(right, options.names)


def joined_rows(
    sides: TwoSides, names: Names, on: Sequence[str], left: Int64, right: Int64, probability: Float64
) -> pa.Table:
    """Return the rows of pairs, by their left and right rows; -1 on the right stands for none.

    Columns: ``left_id``, ``right_id``, those of the left table that are not of the model, those of the right
    table but for ``on``, with ``_right`` behind names that the left one has, and ``probability``.
    """
    # No partner comes last.
    order = np.lexsort((np.where(right < 0, sides.right.num_rows, right), left))
    rows, partners = pa.array(left[order]), pa.array(right[order], mask=right[order] < 0)
    model = {*SPAN_COLUMNS, *SPAN_LAWS, *(getattr(names, part) for part in MODEL_COLUMNS)} - {*on}
    columns: dict[str, Any] = {
        "left_id": sides.left.column(names.id).take(rows),
        "right_id": sides.right.column(names.id).take(partners),
    }
    for table, places, left_out in ((sides.left, rows, model), (sides.right, partners, model | {*on})):
        for name in table.column_names:
            if name in left_out:
                continue
            shown = f"{name}_right" if name in columns and table is sides.right else name
            if shown in columns or shown == "probability":
                raise OptionError(f"two columns of the result would be called {shown!r}: rename one")
            columns[shown] = table.column(name).take(places)
    return pa.table({**columns, "probability": pa.array(probability[order])})
