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
from uncertain_cep.plan.options import is_whole
from uncertain_cep.timeline.domain import MODEL_COLUMNS, Names, TimeDomain
from uncertain_cep.timeline.durations import Duration, parse_duration
from uncertain_cep.traces.frames import event_table, library_of

__all__ = ["columns_of", "joined_rows", "ticks_in", "two_tables"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


def columns_of(names: str | Sequence[str] | None) -> list[str]:
    """Return the columns that rows have to agree on."""
    return [names] if isinstance(names, str) else list(names or ())


def two_tables(left: Any, right: Any, options: MatchOptions) -> tuple[pa.Table, pa.Table]:
    """Return two frames of events as tables; an OptionError says that one is of Spark."""
    if "pyspark" in {library_of(left), library_of(right)}:
        raise OptionError("joins read frames in this process: collect the events, with toArrow()")
    return event_table(left, options.names), event_table(right, options.names)


def ticks_in(length: Duration | int, domain: TimeDomain, what: str) -> int:
    """Return how many whole ticks a length has.

    An OptionError says that it is none, or that ticks have no length.
    """
    if is_whole(length):
        ticks = int(length)  # type: ignore[arg-type]
        if ticks < 0:
            raise OptionError(f"{what}={length!r}: it must be at least 0")
        return ticks
    nanoseconds = parse_duration(length, what=what)  # type: ignore[arg-type]
    if domain.tick_nanoseconds is None:
        raise OptionError(
            f"{what}={length!r}: the times are plain ticks of unknown length: give the tick, such as "
            "tick='1ms', or the length in ticks"
        )
    return nanoseconds // domain.tick_nanoseconds


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
    model = {getattr(names, part) for part in MODEL_COLUMNS} - {*on}
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
