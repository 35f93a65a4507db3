"""Plans that count matches instead of returning them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from uncertain_cep.errors import Fault, QueryError
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.query.bound import BoundQuery
from uncertain_cep.query.syntax import ExpectedCount

__all__ = ["counting_plan"]


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
    fields = []
    for name in bound.by:
        found = schema.field(name).type
        fields.append((name, found.value_type if pa.types.is_dictionary(found) else found))
    if bound.every is not None:
        fields.append(("bucket", matches.domain.arrow_type))
    return replace(
        matches,
        bound=replace(matches.bound, query=bound.query, by=bound.by, every=bound.every),
        output_schema=pa.schema([*fields, ("expected_count", pa.float64())]),
        counted=matches,
    )
