"""Raw stamps to interval events, on any kind of frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.durations import Duration, duration_text
from uncertain_cep.timeline.zones import known_zone
from uncertain_cep.traces.faulty_rows import BoolArray
from uncertain_cep.traces.frames import as_arrow, library_of
from uncertain_cep.traces.instants import warn_of_naive
from uncertain_cep.traces.intervals import IntervalOptions, MissingChoice, warn_of_merged
from uncertain_cep.traces.raw_spans import rule_of_ends
from uncertain_cep.traces.schema import given_uncertainty
from uncertain_cep.traces.time_formats import TimeFormat
from uncertain_cep.traces.uncertain_stamps import Uncertainty

__all__ = ["to_intervals"]

FrameT = TypeVar("FrameT")


@public
def to_intervals(
    frame: FrameT,
    *,
    time: str | None = None,
    uncertainty: Uncertainty | str | Sequence[Uncertainty | str],
    tick: Duration | None = None,
    unit: str | None = None,
    missing: MissingChoice = "error",
    names: Names | Mapping[str, str] | None = None,
    time_zone: str | None = None,
    begin: str | None = None,
    end: str | None = None,
    duration: str | None = None,
) -> FrameT:
    """Make interval events of raw stamps.

    Parameters
    ----------
    frame : frame of rows
        As for :func:`match`: rows with a stamp each. A lazy frame comes back collected, a reader or a
        relation as a table.
    time, uncertainty, tick, unit, missing, names
        See `uncertain_cep.traces.intervals.IntervalOptions`. An uncertainty may be text, such as
        ``"plus_minus:500ms"``, or a list of several, whose intervals add up; a tick a timedelta, and names a
        mapping, such as ``{"lower": "begin"}``.
    time_zone : str, optional
        Zone of the stamps that tell none, such as ``"Europe/Berlin"``. Default: UTC. Of an hour that its
        clocks showed twice an event has both times, each with half of the probability, unless the order of
        the rows tells which is meant, see docs/stamps.md; rows on Spark have no order.
    begin, end, duration : str, optional
        In place of ``time``, for events that last: at least two of the column of the stamp of the begin, that
        of the end, and one of exact lengths. ``uncertainty`` holds for both stamps. Both together with the
        length say more than any two: stamps cut to a second, and lengths by the millisecond.

    Returns
    -------
    the same kind of frame
        With the columns ``lower`` and ``upper``, ``pmf`` for histograms and events of two possible times, and
        ``tick``, by which `match` and
        others know how long a tick is, whatever happens to the frame in between. For events that last also
        with ``begin_lower``, ``begin_upper``, ``end_lower``, ``end_upper``, ``length_lower`` and
        ``length_upper``, as far as they are known.

    Warns
    -----
    UncertainCepWarning
        If certain times that differ are now in one tick, so that none is before the other, and of stamps
        that stand for two times; of a frame of Spark once its rows are read, see docs/spark.md. If ``unit``
        has no effect, as no stamp is a number.

    Raises
    ------
    TraceError
        If a column is missing or of the wrong type, or a value is no time.
    OptionError
        If an option or the kind of frame cannot be used.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> raw = pa.table({"at": [1000, 2000], "type": ["A", "B"]})
    >>> uc.to_intervals(raw, time="at", uncertainty=uc.plus_minus(5)).column("lower").to_pylist()
    [995, 1995]
    """
    rule = rule_of_ends(given_uncertainty(uncertainty), time, begin, end, duration)
    ticks = duration_text(tick, what="tick")
    if time_zone is not None and not known_zone(time_zone):
        raise OptionError(
            f"time_zone={time_zone!r} is unknown: write a name such as Europe/Berlin, or +02:00"
        )
    format = None if time_zone is None else TimeFormat(zone=time_zone)
    options = IntervalOptions(time, rule, ticks, unit, missing, Names.of(names), format=format)
    input_frame: Any = frame
    result: Any
    library = library_of(input_frame)
    if library == "pyspark":
        from uncertain_cep.spark import to_intervals as spark_to_intervals

        result = spark_to_intervals(
            input_frame,
            time=time,
            uncertainty=rule,
            tick=ticks,
            unit=unit,
            missing=missing,
            names=options.names,
            time_zone=time_zone,
        )
        return result  # type: ignore[no-any-return]
    if library == "polars" and hasattr(input_frame, "collect"):
        input_frame = input_frame.collect()
    if library in ("pandas", "polars") and hasattr(input_frame, "columns"):
        _warn_of_naive(as_arrow(input_frame.head(0), options.read), rule, time)
        result = (
            _pandas_intervals(input_frame, options)
            if library == "pandas"
            else _polars_intervals(input_frame, options)
        )
        return result  # type: ignore[no-any-return]
    table = as_arrow(input_frame)
    _warn_of_naive(table, rule, time)
    result = _table_intervals(table, options)
    if isinstance(input_frame, pa.RecordBatch):
        batches = result.combine_chunks().to_batches()
        result = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=result.schema)
    return result  # type: ignore[no-any-return]


def _warn_of_naive(table: pa.Table, rule: Uncertainty, time: str | None) -> None:
    columns = [name for name in rule.stamps(time) if name in table.column_names]
    warn_of_naive([(name, table.schema.field(name).type) for name in columns])


def _pandas_intervals(frame: Any, options: IntervalOptions) -> Any:
    table, keep = _on_needed_columns(frame, list(frame.columns), options)
    # Types as pandas makes them by itself: timestamps keep their unit, whole numbers have no gaps.
    result = frame.copy(deep=False) if keep is None else frame.loc[keep].copy()
    for name in table.column_names:
        result[name] = table.column(name).to_pandas().array
    return result


def _table_intervals(table: pa.Table, options: IntervalOptions) -> pa.Table:
    result, added = options.applied(table)
    options.warn_of_idle_unit(table.schema)
    warn_of_merged([added.rounding], added.grid.text)
    return result


def _polars_intervals(frame: Any, options: IntervalOptions) -> Any:
    import polars as pl

    table, keep = _on_needed_columns(frame, list(frame.columns), options)
    result = frame if keep is None else frame.filter(pl.Series(keep))
    return result.with_columns(**{name: pl.from_arrow(table.column(name)) for name in table.column_names})


def _on_needed_columns(
    frame: Any, present: Sequence[str], options: IntervalOptions
) -> tuple[pa.Table, BoolArray | None]:
    """Return the new columns alone, and which rows of the frame they belong to (None for all)."""
    options.check(present)
    rows = as_arrow(frame, options.read)
    added = options.columns(rows)
    options.warn_of_idle_unit(rows.schema)
    table = pa.table(options.new_columns(added, present))
    if added.keep is not None:
        table = table.filter(pa.array(added.keep))
    warn_of_merged([added.rounding], added.grid.text)
    return table, added.keep
