"""``uc.spans``: two events of one key, a begin and an end, as one event that lasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError, TraceError, absent_columns
from uncertain_cep.executor.checked_events import equal_values
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS
from uncertain_cep.traces.checks import check_columns
from uncertain_cep.traces.frames import event_table, library_of, like
from uncertain_cep.traces.tied_ends import check_ends, pairs_of, tied

__all__ = ["spans"]

FrameT = TypeVar("FrameT")
Int64 = NDArray[np.int64]


@public
def spans(
    events: FrameT,
    begin: str | Sequence[str],
    end: str | Sequence[str],
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
    begin, end : str or sequence of str
        The types of the events that begin and end what lasts, such as ``"TaskStart"`` and ``"TaskFinish"``,
        or several, ``("MapFinish", "ReduceFinish")``.
    by : str or sequence of str
        The columns whose values tell one from another, such as ``"taskId"``.
    type : str, optional
        The type of the events that last. Default: that of their begin.
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
        If ``begin`` and ``end`` have a type in common, or none, if an event that is tied has a pmf or may not
        have happened, or if the events last already.

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
    kinds = _types_of(begin, "begin"), _types_of(end, "end")
    if both := sorted({*kinds[0]} & {*kinds[1]}):
        raise OptionError(f"begin and end are both {both[0]!r}: different types of events are tied")
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
    begins, ends = _pairs(table, kinds, columns, model)
    check_ends(table, begins, ends, model)
    types = table.column(model.type).cast(pa.string()) if type is None else type
    with_ends, _ = tied(table, begins, ends, types, model)
    return like(with_ends, frame)  # type: ignore[no-any-return]


def _types_of(types: object, option: str) -> Sequence[str]:
    """Return one or several types of events as a list."""
    several: Any = [types] if isinstance(types, str) else types
    if not isinstance(several, Sequence) or not several or not all(isinstance(one, str) for one in several):
        raise OptionError(f'{option}={types!r}: it names types of events, such as "TaskStart"')
    return several


def _pairs(
    table: pa.Table, types: tuple[Sequence[str], Sequence[str]], by: Sequence[str], names: Names
) -> tuple[Int64, Int64]:
    """Return the rows of begins and of their ends, each (k,) int64; warn of those that stay alone."""
    (key,) = equal_values((table,), by)
    kinds = table.column(names.type).cast(pa.string())
    begins, ends = (
        np.flatnonzero(np.asarray(pc.is_in(kinds, pa.array(each, pa.string())).to_numpy())) for each in types
    )
    return pairs_of(table, key, (begins, ends), ", ".join(by), names)
