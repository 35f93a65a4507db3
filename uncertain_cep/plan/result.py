"""What the result of a query looks like."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from uncertain_cep.errors import Fault, QueryError
from uncertain_cep.plan.equivalence import PartitionKey
from uncertain_cep.query.bound import BoundQuery
from uncertain_cep.query.typed import Aggregated, Column, TypedExpression
from uncertain_cep.timedomain import Names, TimeDomain

__all__ = ["COMPRESSED_COLUMNS", "output_schema"]

COMPRESSED_COLUMNS: Final = ("p_nonempty", "expected_subsets", "expected_elements")
"""Columns of a result with ``kleene="compressed"``, behind the confidence."""


def _arrow_type(expression: TypedExpression, schema: pa.Schema) -> pa.DataType:
    if isinstance(expression, Column) and (
        not isinstance(expression, Aggregated) or expression.function in ("min", "max")
    ):
        found = schema.field(expression.name).type
        return found.value_type if pa.types.is_dictionary(found) else found
    types: dict[str, pa.DataType] = {
        "int": pa.int64(), "float": pa.float64(), "string": pa.string(), "bool": pa.bool_(),
        "time": pa.timestamp("ns"), "null": pa.null(),
    }  # fmt: skip
    return types[expression.kind]


def plain_type(schema: pa.Schema, name: str) -> pa.DataType:
    """Return the type of a column, of its values if it is dictionary-encoded."""
    found = schema.field(name).type
    return found.value_type if pa.types.is_dictionary(found) else found


def output_schema(
    bound: BoundQuery, keys: tuple[PartitionKey, ...], schema: pa.Schema, names: Names, domain: TimeDomain,
    confidence: bool, approximate: bool, compressed: bool,
) -> pa.Schema:  # fmt: skip
    """Return the columns of a query's result, in order.

    Parameters
    ----------
    keys : tuple of PartitionKey
        Those with one name lead the result.
    schema : pyarrow.Schema
        Of the trace.
    confidence, approximate, compressed : bool
        Whether there are confidences, standard errors, and what stands for the sets of a Kleene component.

    Raises
    ------
    QueryError
        If two columns would have one name.
    """
    id_type = plain_type(schema, names.id)
    ids = {
        component.variable: pa.list_(id_type) if component.kleene else id_type
        for component in bound.components
        if not component.negated
    }
    fields = [(key.name, plain_type(schema, key.name)) for key in keys if key.name is not None]
    fields += list(ids.items())
    for item in bound.returns:
        if item.expression is not None:
            fields.append((item.name, _arrow_type(item.expression, schema)))
        elif item.variable is not None and item.name != item.variable:
            fields.append((item.name, ids[item.variable]))
    fields += [("range_lower", domain.arrow_type), ("range_upper", domain.arrow_type)]
    if confidence:
        fields.append(("confidence", pa.float64()))
    if confidence and compressed:
        fields += [(name, pa.float64()) for name in COMPRESSED_COLUMNS]
    if approximate:
        fields += [("exact", pa.bool_()), ("std_error", pa.float64())]
    seen: set[str] = set()
    faults = []
    for name, _ in fields:
        if name in seen:
            message = f"two columns of the result would be called {name!r}: rename the variable or use AS"
            position = next((item.position for item in bound.query.returns if item.name == name), None)
            faults.append(
                Fault(message, position.line if position else 1, position.column if position else 1)
            )
        seen.add(name)
    if faults:
        raise QueryError(faults, text=bound.query.text)
    return pa.schema(fields)
