"""Warnings of numbers that float64 rounds, by the largest ones of all events; no pyspark here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.expressions.rounded_numbers import warn_of_decimals, warn_of_float_key
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query.typed import Column, TypedExpression, attribute_names, columns_in

__all__ = ["Largest", "largest_in", "merged", "roundable_columns", "warn_of_rounded"]

Largest = Mapping[str, str]
"""By column, the largest amount of its numbers as text, which loses no digit."""


def roundable_columns(plan: EvaluationPlan, schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns whose largest amount decides about a warning: keys of floats, decimals compared."""
    keys = [
        name
        for branch in plan.or_free
        for name in branch.partitioning.columns
        if pa.types.is_floating(schema.field(name).type)
    ]
    return tuple(dict.fromkeys((*keys, *_compared(plan, schema), *_names_in_having(plan, schema))))


def _compared(plan: EvaluationPlan, schema: pa.Schema) -> list[str]:
    """Return the columns of decimal numbers in conditions and in expressions that are returned."""
    # A column that is returned as it is is compared by HAVING alone.
    predicates: list[TypedExpression] = [
        item.expression
        for item in plan.bound.returns
        if item.expression is not None and not isinstance(item.expression, Column)
    ]
    for branch in plan.or_free:
        parts = (*branch.components, *(negation.component for negation in branch.negations))
        predicates += [*branch.joined, *(predicate for part in parts for predicate in part.local)]
    return [
        name
        for predicate in predicates
        for name in sorted(attribute_names(predicate))
        if name in schema.names and pa.types.is_decimal(schema.field(name).type)
    ]


def _names_in_having(plan: EvaluationPlan, schema: pa.Schema) -> dict[str, list[str]]:
    """Return columns of decimal numbers that are returned as they are, and their names in HAVING."""
    in_having = set[str]() if plan.having is None else {column.name for column in columns_in(plan.having)}
    names: dict[str, list[str]] = {}
    for item in plan.bound.returns:
        source = item.expression
        if item.name not in in_having or not isinstance(source, Column) or source.name not in schema.names:
            continue
        if pa.types.is_decimal(schema.field(source.name).type):
            names.setdefault(source.name, []).append(item.name)
    return names


def largest_in(table: pa.Table, names: Iterable[str]) -> Largest:
    """Return the largest amounts in some columns of a table, of which NaN is none; O(rows) for each."""
    extremes = {name: pc.max(pc.abs(table.column(name))).as_py() for name in names}
    return {name: str(extreme) for name, extreme in extremes.items() if extreme is not None and extreme >= 0}


def merged(parts: Iterable[Largest]) -> Largest:
    """Return the largest amounts of several parts of the events."""
    largest: dict[str, str] = {}
    for part in parts:
        for name, text in part.items():
            largest[name] = max(largest.get(name, "0"), text, key=Decimal)
    return largest


def warn_of_rounded(plan: EvaluationPlan, schema: pa.Schema, largest: Largest) -> None:
    """Warn of columns by the largest amounts of all events; HAVING has names for them of its own."""
    compared, by_having = _compared(plan, schema), _names_in_having(plan, schema)
    for name, text in largest.items():
        dtype = schema.field(name).type
        if pa.types.is_floating(dtype):
            warn_of_float_key(name, dtype, Decimal(text))
            continue
        for said in dict.fromkeys([*([name] if name in compared else []), *by_having.get(name, [])]):
            warn_of_decimals(said, Decimal(text))
