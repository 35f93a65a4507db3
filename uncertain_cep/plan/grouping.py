"""RETURN PROBABILITY: the plan of groups, over that of their matches with the rows of the events."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pyarrow as pa

from uncertain_cep.errors import Fault, QueryError
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.plan.options import MatchOptions
from uncertain_cep.plan.result_columns import bound_having, bound_order
from uncertain_cep.query import Query
from uncertain_cep.query.binder import BoundQuery, BoundReturn
from uncertain_cep.query.syntax import Expression, Having, Variable
from uncertain_cep.query.walks import with_leaves

__all__ = ["BOUND_COLUMNS", "ROW_FIELD", "grouped_plan", "of_matches", "row_column", "with_rows"]

ROW_FIELD: Final = pa.field("uncertain_cep.event", pa.int64())
"""The column with the numbers of the rows of a table."""

BOUND_COLUMNS: Final = ("probability_lower", "probability_upper")
"""Columns with bounds of the probability of a group that are certain."""


def row_column(variable: str) -> str:
    """Return the column of ``EvaluationPlan.by_row`` with the rows of a variable's events."""
    return f"{ROW_FIELD.name} of {variable}"


def of_matches(query: Query) -> Query:
    """Return the query for the matches of a query for groups, without what it asks of these."""
    return replace(
        query, probability=None, returns=(), having=None, min_confidence=None, order_by=(),
        order_by_confidence=False, limit=None, non_overlapping=False,
    )  # fmt: skip


def with_rows(bound: BoundQuery) -> BoundQuery:
    """Return a query for matches that returns the rows of their events."""
    returns = [
        BoundReturn(row_column(part.variable), None, part.variable, ROW_FIELD.name)
        for part in bound.components
        if not part.negated
    ]
    return replace(bound, returns=tuple(dict.fromkeys(returns)))


def grouped_plan(
    matches: EvaluationPlan,
    by_row: EvaluationPlan,
    bound: BoundQuery,
    schema: pa.Schema,
    options: MatchOptions,
) -> EvaluationPlan:
    """Return the plan of a query for groups, over those of its matches.

    Raises
    ------
    QueryError
        If a match need not have one value of an attribute, or HAVING or ORDER BY name no column.
    """
    query, clause = bound.query, bound.query.probability
    assert clause is not None
    faults = [
        Fault(
            f"BY {name.text}: the events of a match need not agree on {name.text}, so it has no one group; "
            f"equate it across all components, by [{name.text}] in WHERE, or name an event, such as BY "
            f"{matches.components[0].variable}.{name.text}",
            name.position.line,
            name.position.column,
        )
        for name, key in zip(clause.by, bound.keys, strict=True)
        if key.variable is None and key.attribute not in matches.partition_attributes
    ]
    if faults:
        raise QueryError(faults, text=query.text)
    names = {matches.names.id if key.attribute is None else key.attribute for key in bound.keys}
    fields = [
        pa.field(
            key.column, _plain_type(schema, matches.names.id if key.attribute is None else key.attribute)
        )
        for key in bound.keys
    ]
    if bound.every is not None:
        fields.append(pa.field("bucket", matches.domain.arrow_type))
    bounding: list[pa.Field] = []
    if options.approximate is not None or options.undecided == "bounds":
        bounding.append(pa.field("exact", pa.bool_()))
        if options.approximate is not None:
            bounding.append(pa.field("std_error", pa.float64()))
        bounding += [pa.field(name, pa.float64()) for name in BOUND_COLUMNS]
    # HAVING and rankings compare probabilities as they compare confidences.
    columns = pa.schema([*fields, pa.field("confidence", pa.float64()), *bounding])
    renamed = _with_probability(query, clause.name)
    return replace(
        matches,
        bound=replace(matches.bound, query=query, keys=bound.keys, every=bound.every, days=bound.days),
        output_schema=pa.schema([*fields, pa.field(clause.name, pa.float64()), *bounding]),
        approximate=options.approximate,
        keeps_undecided=options.undecided == "bounds",
        required_columns=tuple(dict.fromkeys((*matches.required_columns, *sorted(names)))),
        having=bound_having(renamed, columns),
        sort_keys=bound_order(renamed, columns),
        by_row=by_row,
    )


def _plain_type(schema: pa.Schema, name: str) -> pa.DataType:
    kind = schema.field(name).type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _with_probability(query: Query, name: str) -> Query:
    """Return a query whose HAVING and ORDER BY call the probability what matches call theirs."""

    def changed(leaf: Expression) -> Expression:
        if isinstance(leaf, Variable) and (leaf.name == name or leaf.name.lower() == "probability"):
            return replace(leaf, name="confidence")
        return leaf

    having = query.having
    if having is not None:
        conditions = tuple(with_leaves(condition, changed) for condition in having.conditions)
        having = Having(conditions, having.text, having.position)
    order = tuple(replace(item, expression=with_leaves(item.expression, changed)) for item in query.order_by)
    return replace(query, having=having, order_by=order, returns=())
