"""``uc.spans``: two events of one key, a begin and an end, as one event that lasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.boundary import public
from uncertain_cep.candidates.selection import coded
from uncertain_cep.errors import OptionError, TraceError, TraceFault, absent_columns, warn
from uncertain_cep.expressions.codes import codes_of, paired
from uncertain_cep.plurals import counted
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS
from uncertain_cep.traces.checks import check_columns
from uncertain_cep.traces.frames import event_table, library_of, like

__all__ = ["spans"]

FrameT = TypeVar("FrameT")
Int64 = NDArray[np.int64]

_MOST_SHOWN: Final = 10
"""Faults that are told one by one."""


@public
def spans(
    events: FrameT,
    begin: str,
    end: str,
    *,
    by: str | Sequence[str],
    type: str | None = None,
    names: Names | Mapping[str, str] | None = None,
) -> FrameT:
    """Tie begins to ends: two events of one key become one event that lasts.

    Parameters
    ----------
    events : pyarrow.Table or RecordBatchReader, pandas or Polars DataFrame
        As for :func:`uncertain_cep.match`.
    begin, end : str
        The types of the events that begin and end what lasts, such as ``"TaskStart"`` and ``"TaskFinish"``.
    by : str or sequence of str
        The columns whose values tell one from another, such as ``"taskId"``.
    type : str, optional
        The type of the events that last. Default: ``begin``.
    names : Names or mapping, optional
        Other names of the model's columns.

    Returns
    -------
    the same kind of frame (a Table for a reader)
        The events in their order. A begin that is tied has the bounds of both in ``begin_lower``,
        ``begin_upper``, ``end_lower`` and ``end_upper``, and the attributes of its end where it has none; its
        end is left out. In all other rows these columns are null: they are points.

    Raises
    ------
    TraceError
        If a column is missing or of the wrong type, or an end is before its begin in every world.
    OptionError
        If ``begin`` and ``end`` are the same, if an event that is tied has a pmf or may not have happened,
        or if the events last already.

    Warns
    -----
    UncertainCepWarning
        If begins or ends stay points: without a value of ``by``, without a partner, with several, or with one
        by another clock. Their numbers are told.

    Notes
    -----
    O(n log n). Of the times of a span all pairs in which the end is not before the begin are alike likely.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({
    ...     "type": ["Start", "Peak", "End"], "id": [1, 2, 3], "lower": [0, 5, 9], "upper": [2, 6, 9],
    ...     "task": ["x", None, "x"],
    ... })
    >>> tasks = uc.spans(events, "Start", "End", by="task", type="Task")
    >>> uc.match(tasks, "PATTERN AND(Task t, Peak p) WHERE t CONTAINS p WITHIN 20").to_pylist()
    [{'t': 1, 'p': 2, 'range_lower': 0, 'range_upper': 9, 'confidence': 1.0}]
    """
    frame: Any = events
    if library_of(frame) == "pyspark":
        raise OptionError("spans reads frames in this process: collect the events")
    if begin == end:
        raise OptionError(f"begin and end are both {begin!r}: two types of events are tied")
    columns: Any = [by] if isinstance(by, str) else by
    if not isinstance(columns, Sequence) or not columns or not all(isinstance(one, str) for one in columns):
        raise OptionError(f'by={by!r}: it names columns, such as by="taskId"')
    model = Names.of(names)
    table = event_table(frame, model)
    if faults := check_columns(table.schema, model):
        raise TraceError(faults)
    if faults := absent_columns(
        [name for name in columns if name not in table.column_names], table.column_names
    ):
        raise TraceError(faults)
    if there := [name for name in SPAN_COLUMNS if name in table.column_names]:
        raise OptionError(f"the events last already: they have a column {there[0]}")
    begins, ends = _pairs(table, (begin, end), columns, model)
    _check(table, begins, ends, model)
    return like(_tied(table, begins, ends, begin if type is None else type, model), frame)  # type: ignore[no-any-return]


def _pairs(table: pa.Table, types: tuple[str, str], by: Sequence[str], names: Names) -> tuple[Int64, Int64]:
    """Return the rows of begins and of their ends, each (k,) int64; warn of those that stay alone."""
    key = np.zeros(table.num_rows, dtype=np.int64)
    for name in by:
        key = paired(key, coded(table, [name])[0])
    kinds = table.column(names.type).cast(pa.string())
    of_type = [np.flatnonzero(np.asarray(pc.equal(kinds, name).to_numpy())) for name in types]
    count = int(key.max(initial=-1)) + 1
    single = np.ones(count, dtype=np.bool_)
    row = np.full((2, count), -1)
    for side, rows in enumerate(of_type):
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
    alone = [len(rows) - len(begins) for rows in of_type]
    if apart or any(alone):
        warn(
            f"of {counted(len(of_type[0]), 'begin')} and {counted(len(of_type[1]), 'end')}, {alone[0]:,} and "
            f"{alone[1]:,} have no partner by {', '.join(by)}, or several, and {apart:,} have one by another "
            "clock: they stay points"
        )
    return begins[one_clock], ends[one_clock]


def _check(table: pa.Table, begins: Int64, ends: Int64, names: Names) -> None:
    """Raise what speaks against spans of some pairs."""
    both = pa.array(np.concatenate((begins, ends)))
    for name, what in ((names.pmf, "has a pmf"), (names.probability, "may not have happened")):
        if name not in table.column_names:
            continue
        column = table.column(name).take(both)
        likely = name == names.probability
        if pc.any(pc.less(column, 1.0)).as_py() if likely else column.null_count < len(column):
            raise OptionError(f"an event that is tied {what}, which spans do not support yet")
    last = np.asarray(table.column(names.upper).cast(pa.int64()).to_numpy())[ends]
    first = np.asarray(table.column(names.lower).cast(pa.int64()).to_numpy())[begins]
    wrong = np.flatnonzero(last < first)
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


def _tied(table: pa.Table, begins: Int64, ends: Int64, type_: str, names: Names) -> pa.Table:
    """Return the events with the ends of some begins in their rows."""
    row = np.arange(table.num_rows)
    end_of = np.full(table.num_rows, -1)
    end_of[begins] = ends
    is_tied = end_of >= 0
    begin_rows, end_rows = (pa.array(rows, mask=~is_tied) for rows in (row, end_of))
    model = {names.type, names.id, names.lower, *names.of_clocks(table.column_names)}
    tied = table
    for place, name in enumerate(table.column_names):
        column = table.column(name)
        if name == names.type:
            changed = pc.if_else(pa.array(is_tied), type_, column.cast(pa.string()))
        elif name in model:
            continue
        else:
            lacks = is_tied if name == names.upper else is_tied & np.asarray(column.is_null().to_numpy())
            changed = column.take(pa.array(np.where(lacks, end_of, row)))
        tied = tied.set_column(place, name, changed)
    for side, rows in (("begin", begin_rows), ("end", end_rows)):
        for bound, name in (("lower", names.lower), ("upper", names.upper)):
            tied = tied.append_column(f"{side}_{bound}", table.column(name).take(rows))
    kept = np.ones(table.num_rows, dtype=np.bool_)
    kept[ends] = False
    return tied.filter(pa.array(kept))
