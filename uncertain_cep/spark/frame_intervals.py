"""Frames of raw stamps to frames of interval events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from uncertain_cep.boundary import public
from uncertain_cep.spark.dataframes import (
    arrow_schema,
    as_spark_keeps,
    from_arrow_schema,
    in_workers,
    plainly_named,
)
from uncertain_cep.spark.file_reading import add_intervals
from uncertain_cep.spark.jobs import is_connect
from uncertain_cep.spark.remark_counts import teller
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.durations import Duration, duration_text
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS
from uncertain_cep.traces import intervals_of
from uncertain_cep.traces.instants import warn_of_naive
from uncertain_cep.traces.intervals import IntervalOptions, MissingChoice
from uncertain_cep.traces.local_times import repeats_hours
from uncertain_cep.traces.raw_spans import rule_of_ends
from uncertain_cep.traces.schema import given_uncertainty
from uncertain_cep.traces.time_formats import TimeFormat
from uncertain_cep.traces.uncertain_stamps import Uncertainty

__all__ = ["to_intervals"]


@public
def to_intervals(
    frame: DataFrame,
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
) -> DataFrame:
    """Make interval events of raw stamps, as `uncertain_cep.to_intervals` does, with its options.

    Returns
    -------
    pyspark.sql.DataFrame
        With the columns ``lower`` and ``upper``, ``pmf`` for histograms, or a zone whose clocks show hours
        twice, and ``tick``. Spark keeps times to the microsecond.

    Warns
    -----
    UncertainCepWarning
        As `uncertain_cep.to_intervals`. Of what is in the rows, such as certain times that share a tick, once
        they are read: by the call that reads them, such as `match`, or at the end of `worker_errors`. An
        action of Spark alone, such as ``collect()``, says nothing; the next such call does. With Spark
        Connect nothing is said of the rows.

    Raises
    ------
    TraceError
        If a column is missing or of the wrong type. If a value is no time, a worker raises it when the frame
        is used: see `worker_errors`.
    OptionError
        If an option cannot be used, or the tick is shorter than a microsecond.
    """
    rule = rule_of_ends(given_uncertainty(uncertainty), time, begin, end, duration)
    names = Names.of(names)
    options: dict[str, Any] = {
        "time": time,
        "uncertainty": rule,
        "tick": duration_text(tick, what="tick"),
        "unit": unit,
        "missing": missing,
        "names": names,
        # The rows of a frame of Spark have no order.
        "format": None if time_zone is None else TimeFormat(zone=time_zone, in_order=None),
    }
    schema = arrow_schema(frame, names)
    warn_of_naive((name, schema.field(name).type) for name in rule.stamps(time) if name in schema.names)
    made = intervals_of(schema.empty_table(), **options).schema
    IntervalOptions(time, rule, unit=unit).warn_of_idle_unit(schema)
    if repeats_hours(time_zone) and names.pmf not in made.names:
        made = made.append(pa.field(names.pmf, pa.list_(pa.float64())))
    model = (names.lower, names.upper, names.pmf, names.tick, *names.clocks, *SPAN_COLUMNS)
    added = [name for name in model if name in made.names]
    new = pa.schema([made.field(name) for name in added], made.metadata)
    fields = {field.name: field for field in frame.schema.fields}
    fields |= {field.name: field for field in from_arrow_schema(new, names).fields}
    rows = plainly_named(frame)
    add = partial(
        add_intervals,
        columns=tuple(frame.columns),
        result=tuple(fields),
        added=as_spark_keeps(new),
        options=options,
        tell=None if is_connect(frame.sparkSession) else teller(frame.sparkSession, options["tick"]),
    )
    return in_workers(rows, add, t.StructType(list(fields.values())))
