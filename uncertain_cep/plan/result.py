"""What the result of a query looks like."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pyarrow as pa

from uncertain_cep.errors import Fault, QueryError
from uncertain_cep.plan.equivalence import PartitionKey
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.plan.options import MatchOptions
from uncertain_cep.query.bound import BoundQuery
from uncertain_cep.query.syntax import ExpectedCount
from uncertain_cep.query.typed import Aggregated, Column, TypedExpression
from uncertain_cep.timedomain import TimeDomain

__all__ = ["COMPRESSED_COLUMNS", "counting_plan", "output_schema", "plain_type"]

COMPRESSED_COLUMNS: Final = ("p_nonempty", "expected_subsets", "expected_elements")
"""Columns of a result with ``kleene="compressed"``, behind the confidence."""

_TYPES: Final[dict[str, pa.DataType]] = {
    "int": pa.int64(), "float": pa.float64(), "string": pa.string(), "bool": pa.bool_(),
    "time": pa.timestamp("ns"), "null": pa.null(),
}  # fmt: skip


def plain_type(schema: pa.Schema, name: str) -> pa.DataType:
    """Return the type of a column, of its values if it is dictionary-encoded."""
    found = schema.field(name).type
    return found.value_type if pa.types.is_dictionary(found) else found


def _arrow_type(expression: TypedExpression, schema: pa.Schema) -> pa.DataType:
    is_computed = isinstance(expression, Aggregated) and expression.function not in ("min", "max")
    if isinstance(expression, Column) and not is_computed:
        return plain_type(schema, expression.name)
    return _TYPES[expression.kind]


def output_schema(
    bound: BoundQuery,
    keys: tuple[PartitionKey, ...],
    schema: pa.Schema,
    domain: TimeDomain,
    options: MatchOptions,
) -> pa.Schema:
    """Return the columns of a query's result on a trace with a schema, in order; keys with one name lead.

    Raises
    ------
    QueryError
        If two columns would have one name.
    """
    id_type = plain_type(schema, options.names.id)
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
    if options.confidence:
        fields.append(("confidence", pa.float64()))
        if options.compressed:
            fields += [(name, pa.float64()) for name in COMPRESSED_COLUMNS]
        if options.approximate is not None:
            fields += [("exact", pa.bool_()), ("std_error", pa.float64())]
    names = [name for name, _ in fields]
    places = {item.name: item.position for item in reversed(bound.query.returns)}
    faults = []
    for number, name in enumerate(names):
        if name in names[:number]:
            message = f"two columns of the result would be called {name!r}: rename the variable or use AS"
            place = places.get(name)
            faults.append(Fault(message, place.line if place else 1, place.column if place else 1))
    if faults:
        raise QueryError(faults, text=bound.query.text)
    return pa.schema(fields)


def counting_plan(
    matches: EvaluationPlan, bound: BoundQuery, wanted: ExpectedCount, schema: pa.Schema
) -> EvaluationPlan:
    """Return the plan that counts the matches of another.

    Raises
    ------
    QueryError
        If a match need not have one value of an attribute that counts are grouped by.
    """
    place = wanted.position
    faults = [
        Fault(
            f"BY {name}: the events of a match need not agree on {name}, so it has no one group; equate it "
            f"across all components, by [{name}] in WHERE",
            place.line,
            place.column,
        )
        for name in bound.by
        if name not in matches.partition_attributes
    ]
    if faults:
        raise QueryError(faults, text=bound.query.text)
    fields = [(name, plain_type(schema, name)) for name in bound.by]
    if bound.every is not None:
        fields.append(("bucket", matches.domain.arrow_type))
    return replace(
        matches,
        bound=replace(matches.bound, query=bound.query, by=bound.by, every=bound.every),
        output_schema=pa.schema([*fields, ("expected_count", pa.float64())]),
        counted=matches,
    )
