"""Matches to the result's columns: partition attributes, ids, RETURN expressions, ranges, confidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.predicates import Values, column_values, evaluate, within_int64
from uncertain_cep.query.typed import Column, TypedExpression
from uncertain_cep.sequence import Chunk

__all__ = ["id_payload", "to_batch"]


def id_payload(plan: EvaluationPlan, table: pa.Table) -> NDArray[np.int64] | None:
    """Return the ids if they alone are needed of the events and are int64; else None: rows are needed."""
    column = table.column(plan.names.id)
    if plan.partition_attributes or any(item.expression is not None for item in plan.bound.returns):
        return None
    if not pa.types.is_int64(column.type):
        return None
    return np.asarray(column.to_numpy())


def _taken(column: pa.ChunkedArray, rows: NDArray[np.int64], wanted: pa.DataType) -> pa.Array:
    """Return the values of some rows, as the type of the result."""
    if pa.types.is_int64(column.type) and column.null_count == 0:
        return pa.array(np.asarray(column.to_numpy())[rows])
    found = column.take(pa.array(rows))
    return (found.combine_chunks() if found.num_chunks != 1 else found.chunk(0)).cast(wanted)


def _returned(
    expression: TypedExpression, table: pa.Table, rows: dict[str, NDArray[np.int64]], wanted: pa.DataType
) -> pa.Array:
    if isinstance(expression, Column):
        return _taken(table.column(expression.name), rows[expression.variable], wanted)
    size = len(next(iter(rows.values())))
    loaded: dict[Column, Values] = {}

    def load(column: Column) -> Values:
        if column not in loaded:
            found = table.column(column.name).take(pa.array(rows[column.variable]))
            loaded[column] = column_values(found, column.name)
        return loaded[column]

    def extremes(column: Column) -> tuple[int, int]:
        # Over the whole column, so that every batch of a result decides alike.
        low, high = pc.min_max(table.column(column.name)).values()
        return (int(low.as_py() or 0), int(high.as_py() or 0))

    found = evaluate(within_int64(expression, extremes), load)
    data: Any = found.data
    if isinstance(data, (pa.Scalar, pa.Array)):
        return pa.array([data.as_py()] * size, wanted) if isinstance(data, pa.Scalar) else data.cast(wanted)
    if pa.types.is_null(wanted):
        return pa.nulls(size)
    values = np.broadcast_to(np.asarray(data), (size,))
    invalid = None if found.valid is None else ~np.broadcast_to(found.valid, (size,))
    return pa.array(values, mask=invalid).cast(wanted)


def to_batch(plan: EvaluationPlan, table: pa.Table, chunk: Chunk, direct: bool) -> pa.RecordBatch:
    """Return matches as a batch of the plan's batch schema.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
        The events.
    chunk : Chunk
    direct : bool
        Whether ``chunk.events`` holds ids (:func:`id_payload`) and not rows.
    """
    schema = plan.batch_schema
    variables = [component.variable for component in plan.components]
    columns: list[pa.Array] = []

    def add(column: pa.Array) -> None:
        columns.append(column)

    def wanted() -> pa.DataType:
        return schema.field(len(columns)).type

    rows = dict(zip(variables, chunk.events, strict=True))
    for name in plan.partition_attributes:
        add(_taken(table.column(name), rows[variables[0]], wanted()))
    ids: dict[str, pa.Array] = {}
    for variable in variables:
        found = rows[variable]
        ids[variable] = pa.array(found) if direct else _taken(table.column(plan.names.id), found, wanted())
        add(ids[variable])
    for item in plan.bound.returns:
        if item.expression is not None:
            add(_returned(item.expression, table, rows, wanted()))
        elif item.name != item.variable and item.variable is not None:
            add(ids[item.variable])
    for times in (chunk.lower, chunk.upper):
        ticks = times if plan.domain.tick == 1 else times * plan.domain.tick
        add(pa.array(ticks) if plan.domain.unit == "tick" else pa.array(ticks).cast(wanted()))
    if plan.approximate is not None and "exact" in schema.names:
        error = np.zeros(len(chunk.lower)) if chunk.std_error is None else chunk.std_error
        by_name = {"confidence": pa.array(chunk.confidence), "exact": pa.array(error == 0.0)}
        by_name["std_error"] = pa.array(error)
        for name in schema.names[len(columns) :]:
            add(by_name[name])
    elif "confidence" in schema.names:
        add(pa.array(chunk.confidence))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
