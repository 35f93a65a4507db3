"""Plans that leave out what keeps events from the join, one by one, to measure what each is worth.

The three are those of the match windows of Cadonna, Gamper and Böhlen (EDBT, sections 4.2 to 4.4 and 6):
events that satisfy no component's own conditions are filtered out, the others are partitioned by what all
components equate, and those without the necessary company are dropped.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Final

import pyarrow as pa

from uncertain_cep.plan.equivalence import PartitionKey
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.plan.once_a_row import once_a_row
from uncertain_cep.query.typed import Apply, Column, Constant, TypedExpression, kind_of

__all__ = ["pruned"]

_COMPARISONS: Final = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def pruned(
    plan: EvaluationPlan, schema: pa.Schema, *, filter: bool, partition: bool, conditions: bool
) -> EvaluationPlan:
    """Return a plan of the same answer with only some of the ways to prune before the join.

    Parameters
    ----------
    plan : EvaluationPlan
        Of a sequence of at least two single events under one of the skip strategies.
    schema : pyarrow.Schema
        What it was made for.
    filter : bool
        Whether types and conditions on one event choose the candidates; else the join looks at them.
    partition : bool
        Whether candidates are split by keys; else the join compares these.
    conditions : bool
        Whether candidates without the others of a match in reach are dropped.

    Raises
    ------
    ValueError
        If the pattern is another one.
    """
    if not plan.is_plain or len(plan.components) < 2:
        raise ValueError("only plans that join single events can do without filters and partitions")
    if not filter:
        plan = _without_filters(plan)
    if not partition:
        plan = _without_partitions(plan, schema)
    return replace(plan, match_windows=plan.match_windows and conditions)


def _without_filters(plan: EvaluationPlan) -> EvaluationPlan:
    conditions: list[TypedExpression] = []
    for component in plan.components:
        column = Column(component.variable, plan.names.type, "string")
        tests = [Apply("equal", (column, Constant(name, "string")), "bool") for name in component.types]
        if tests:
            conditions.append(reduce(lambda left, right: Apply("or", (left, right), "bool"), tests))
        # What kernels cannot work out of one event is worked out for its row.
        conditions += map(_by_row, component.local)
    components = tuple(replace(component, types=(), local=()) for component in plan.components)
    return replace(plan, components=components, joined=(*plan.joined, *conditions))


def _by_row(test: TypedExpression) -> TypedExpression:
    if not isinstance(test, Apply) or test.operator not in ("and", "or", "not", *_COMPARISONS):
        return once_a_row(test)
    return replace(test, operands=tuple(map(_by_row, test.operands)))


def _without_partitions(plan: EvaluationPlan, schema: pa.Schema) -> EvaluationPlan:
    equal = [test for key in plan.split_keys for test in _equalities(plan, key, schema)]
    return replace(plan, split_keys=(), joined=(*plan.joined, *equal))


def _equalities(plan: EvaluationPlan, key: PartitionKey, schema: pa.Schema) -> list[TypedExpression]:
    """Return the conditions that tie the key of every component to that of the first."""
    columns = []
    for component, name in zip(plan.components, key.columns, strict=True):
        kind = kind_of(schema.field(name).type)
        assert kind is not None
        columns.append(Column(component.variable, name, kind))
    return [Apply("equal", (columns[0], column), "bool") for column in columns[1:]]
