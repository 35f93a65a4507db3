"""Matches to the result's columns: partition attributes, ids, RETURN expressions, ranges, confidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.budget import checkpoint
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.expressions.beyond_int64 import as_int64_or_float64, is_beyond_int64, null_beyond_int64
from uncertain_cep.expressions.codes import bytes_each
from uncertain_cep.expressions.vectorised import Values, column_values, evaluate
from uncertain_cep.expressions.whole_numbers import BEYOND_INT64, with_checks
from uncertain_cep.operators.batch import MatchBatch, Series
from uncertain_cep.operators.series import aggregated, event_rows
from uncertain_cep.plan import COMPRESSED_COLUMNS, EvaluationPlan
from uncertain_cep.query.binder import BoundQuery
from uncertain_cep.query.returned_times import TimeBetween
from uncertain_cep.query.typed import Aggregated, Column, TypedExpression
from uncertain_cep.timeline.domain import as_array

__all__ = ["TimesBetween", "id_payload", "shows_ids_alone", "taken", "to_batch", "widened"]

_INT64: Final = (-(2**63), 2**63 - 1)

TimesBetween = Callable[[MatchBatch], Mapping[TimeBetween, pa.Array]]
"""Returns the columns of times between two ends that RETURN asks for, of matches whose events are rows."""


def id_payload(plan: EvaluationPlan, table: pa.Table) -> NDArray[np.int64] | None:
    """Return the ids if they alone are needed of the events and are int64; else None: rows are needed."""
    if not shows_ids_alone(plan, table.schema):
        return None
    return np.asarray(table.column(plan.names.id).to_numpy())


def shows_ids_alone(plan: EvaluationPlan, schema: pa.Schema) -> bool:
    """Return whether the result has nothing of the events but their ids, and these are int64."""
    shown = (item.expression or item.attribute or item.between for item in plan.bound.returns)
    if plan.partition_columns or any(shown):
        return False
    return bool(pa.types.is_int64(schema.field(plan.names.id).type))


def taken(column: pa.ChunkedArray, rows: NDArray[np.int64], wanted: pa.DataType) -> pa.Array:
    """Return the values of some rows, as the type of the result; null for row -1."""
    absent = rows < 0 if len(rows) and rows.min() < 0 else None
    if absent is None and pa.types.is_int64(column.type) and column.null_count == 0:
        return as_array(np.asarray(column.to_numpy())[rows])
    indices = pa.array(rows, mask=absent)
    checkpoint(2 * len(rows) * bytes_each(column))
    found = column.take(indices)
    return (found.combine_chunks() if found.num_chunks != 1 else found.chunk(0)).cast(wanted)


@dataclass(frozen=True, slots=True)
class _Bound:
    """The rows of the events bound to a variable in each match: the first, and all if it is a Kleene one."""

    rows: NDArray[np.int64]
    series: Series | None


def _named(bound: _Bound) -> pa.Array:
    """Return the event bound to a variable, a list for a Kleene one."""
    return as_array(bound.rows) if bound.series is None else bound.series.lists(as_array(bound.series.events))


def _each(column: pa.ChunkedArray, bound: _Bound, wanted: pa.DataType) -> pa.Array:
    """Return the values of the events of a variable, a list of them for a Kleene one."""
    if bound.series is None:
        return taken(column, bound.rows, wanted)
    return bound.series.lists(taken(column, bound.series.events, wanted.value_type))


def _returned(
    expression: TypedExpression, table: pa.Table, bound: dict[str, _Bound], wanted: pa.DataType
) -> tuple[pa.Array, Values | None]:
    """Return the values of an expression, and what they are exactly where whole numbers left int64."""

    def events_of(column: Column) -> NDArray[np.int64]:
        found = bound[column.variable]
        return event_rows(column, table, found.rows, found.series)

    if isinstance(expression, Column) and not _is_computed(expression):
        return taken(table.column(expression.name), events_of(expression), wanted), None
    size = len(next(iter(bound.values())).rows)
    loaded: dict[Column, Values] = {}

    def load(column: Column) -> Values:
        if column not in loaded:
            series = bound[column.variable].series
            if isinstance(column, Aggregated) and _is_computed(column) and series is not None:
                loaded[column] = aggregated(column, table, series)
            else:
                rows = events_of(column)
                found = table.column(column.name).take(pa.array(rows, mask=rows < 0))
                loaded[column] = column_values(found, column.name)
        return loaded[column]

    def extremes(column: Column) -> tuple[int, int]:
        if _is_computed(column):
            is_sum = isinstance(column, Aggregated) and column.function == "sum"
            return BEYOND_INT64 if is_sum else _INT64
        # Over the whole column, so that every batch of a result decides alike.
        # Two rows: as for all columns, times are whole numbers then.
        ends = pa.array(pc.min_max(table.column(column.name)).values())
        return column_values(ends, column.name).extremes

    exact = evaluate(with_checks(expression, extremes), load)
    fitting = null_beyond_int64(exact) if pa.types.is_temporal(wanted) else as_int64_or_float64(exact)
    data: Any = fitting.data
    if pa.types.is_null(wanted):
        return pa.nulls(size), None
    valid = None if fitting.valid is None else np.broadcast_to(fitting.valid, (size,))
    if isinstance(data, (pa.Scalar, pa.Array)):
        texts = pa.repeat(data, size) if isinstance(data, pa.Scalar) else data
        return (texts if valid is None else pc.if_else(pa.array(valid), texts, None)).cast(wanted), None
    values = np.broadcast_to(np.asarray(data), (size,))
    column = pa.array(values, mask=None if valid is None else ~valid)
    if pa.types.is_duration(wanted) or pa.types.is_timestamp(wanted):
        nanoseconds = pa.duration("ns") if pa.types.is_duration(wanted) else pa.timestamp("ns")
        return column.cast(nanoseconds).cast(wanted, safe=False), None
    if pa.types.is_integer(wanted) and values.dtype.kind == "f":
        numbers = exact.data if is_beyond_int64(exact) else values.astype(np.object_)
        return column, Values(numbers, valid)
    return column.cast(wanted), None


def _is_computed(column: Column) -> bool:
    """Return whether a value is no event's attribute but has to be computed from several."""
    if column.computed is not None:
        return True
    return isinstance(column, Aggregated) and column.function not in ("min", "max")


def to_batch(
    plan: EvaluationPlan,
    table: pa.Table,
    chunk: MatchBatch,
    direct: bool,
    times_between: TimesBetween | None = None,
    beyond: dict[str, Values] | None = None,
) -> pa.RecordBatch:
    """Return matches as a batch of the plan's batch schema.

    ``direct`` says that ``chunk.events`` holds ids (:func:`id_payload`) and not rows. ``times_between``
    computes the times between two ends that RETURN asks for. ``beyond`` gets the exact values of the columns
    that are float64, since a whole number of them has left int64.
    """
    schema = plan.batch_schema
    confidence = chunk.confidence if schema.get_field_index("confidence") >= 0 else None
    # A copy for all would cost page faults.
    if confidence is not None and not chunk.at_most_one and confidence.max(initial=0.0) > 1.0:
        confidence = np.minimum(confidence, 1.0)
    if direct and not chunk.series and len(schema) == len(chunk.events) + 2 + (confidence is not None):
        # Nothing but ids, range and confidence: of dense data there are batches every half millisecond.
        return pa.RecordBatch.from_arrays(_bare(plan, chunk, confidence), schema=schema)
    variables = [component.variable for component in plan.components]
    columns: list[pa.Array] = []
    add = columns.append

    def wanted() -> pa.DataType:
        return schema.field(len(columns)).type

    bound = {name: _Bound(*found) for name, found in zip(variables, chunk.of_components, strict=True)}
    for name in plan.partition_attributes:
        add(taken(table.column(name), bound[variables[0]].rows, wanted()))
    ids: dict[str, pa.Array] = {}
    for variable, found in bound.items():
        ids[variable] = _named(found) if direct else _each(table.column(plan.names.id), found, wanted())
        add(ids[variable])
    between: Mapping[TimeBetween, pa.Array] = {}
    if plan.bound.returns_times and times_between is not None:
        between = times_between(chunk)
    for item in plan.bound.returns:
        checkpoint(8 * len(chunk.lower))
        if item.between is not None:
            add(between[item.between])
        elif item.expression is not None:
            found_column, exact = _returned(item.expression, table, bound, wanted())
            if exact is not None:
                schema = _widened_schema(plan, schema, len(columns))
                if beyond is not None:
                    beyond[item.name] = exact
            add(found_column)
        elif item.attribute is not None and item.variable is not None:
            add(_each(table.column(item.attribute), bound[item.variable], wanted()))
        elif item.name != item.variable and item.variable is not None:
            add(ids[item.variable])
    for times in (chunk.lower, chunk.upper):
        add(plan.domain.times(times))
    names = schema.names[len(columns) :]
    by_name: dict[str, pa.Array] = {}
    if confidence is not None and "confidence" in names:
        by_name = _of_confidence(chunk, confidence, plan.approximate is not None and "exact" in names)
    unnamed = [key.columns[0] for key in plan.keys if key.name is None]
    for field, name in zip(plan.unnamed_keys, unnamed, strict=False):
        by_name[field.name] = taken(table.column(name), bound[variables[0]].rows, field.type)
    for name in names:
        add(by_name[name])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _of_confidence(
    chunk: MatchBatch, confidence: NDArray[np.float64], with_error: bool
) -> dict[str, pa.Array]:
    """Return the columns of confidences, by name."""
    columns = {"confidence": as_array(confidence)}
    if with_error:
        error = np.zeros(len(chunk.lower)) if chunk.std_error is None else chunk.std_error
        columns |= {"exact": pa.array(error == 0.0), "std_error": pa.array(error)}
    elif chunk.expected is not None:
        columns |= dict(zip(COMPRESSED_COLUMNS, map(pa.array, chunk.expected), strict=True))
    return columns


def _widened_schema(plan: EvaluationPlan, schema: pa.Schema, place: int) -> pa.Schema:
    """Return a schema with float64 in place of whole numbers; TraceError where its types are promised."""
    field = schema.field(place)
    if not plan.widens:
        raise TraceError(
            TraceFault(
                "a match has a number beyond 64 bits here, where whole numbers were promised: write a "
                "number of the expression with a decimal point, or CAST(... AS DOUBLE)",
                column=field.name,
            )
        )
    return schema.set(place, field.with_type(pa.float64()))


def _bare(plan: EvaluationPlan, chunk: MatchBatch, confidence: NDArray[np.float64] | None) -> list[pa.Array]:
    """Return ids, ranges and confidences."""
    columns = [*map(as_array, chunk.events), *map(plan.domain.times, (chunk.lower, chunk.upper))]
    return columns if confidence is None else [*columns, as_array(confidence)]


def widened(plan: EvaluationPlan, batch: pa.RecordBatch, reading: BoundQuery) -> pa.RecordBatch:
    """Return the matches of one branch with the columns of the whole query: null where it has none.

    The lists of variables that are left out are empty; those by iteration have a place for each.
    """
    schema = plan.batch_schema
    names = batch.schema.names
    empty = reading.left_out | {item.name for item in plan.bound.returns if item.variable in reading.left_out}
    places = dict(reading.places)

    def column(field: pa.Field) -> pa.Array:
        if field.name in places:
            copies = [None if name is None else batch.column(name) for name in places[field.name]]
            return _side_by_side(copies, batch.num_rows, field.type)
        if field.name in names:
            return batch.column(field.name)
        if field.name not in empty:
            return pa.nulls(batch.num_rows, field.type)
        return _lists(
            np.zeros(batch.num_rows + 1, dtype=np.int64), pa.array([], field.type.value_type), field.type
        )

    columns = list(map(column, schema))
    if plan.widens:
        schema = pa.schema([field.with_type(one.type) for field, one in zip(schema, columns, strict=True)])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _side_by_side(copies: list[pa.Array | None], size: int, dtype: pa.DataType) -> pa.Array:
    """Return lists of one value of each of some columns; null where there is no column."""
    length = len(copies)
    values = [pa.nulls(size, dtype.value_type) if copy is None else copy for copy in copies]
    order = np.arange(size * length).reshape(length, size).T.reshape(-1)
    checkpoint(16 * len(order))
    return _lists(np.arange(size + 1) * length, pa.concat_arrays(values).take(pa.array(order)), dtype)


def _lists(starts: NDArray[np.int64], values: pa.Array, dtype: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), values, type=dtype)
