"""The events that some rule of a set can use, found at once for rules of the same shape."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from uncertain_cep.candidates.selection import type_mask
from uncertain_cep.errors import UncertainCepError
from uncertain_cep.expressions.vectorised import Values, evaluate_mask
from uncertain_cep.plan import EvaluationPlan, PlannedComponent
from uncertain_cep.query.typed import Apply, Column, Constant, TypedExpression

__all__ = ["Selected", "components_in", "loosest", "of_some_rule"]

_WEAKEST: Final = {"greater": min, "greater_equal": min, "less": max, "less_equal": max}


class Selected(NamedTuple):
    """A selection of events that several components share."""

    types: tuple[str, ...]
    """Those of the events; none: any."""
    predicates: tuple[TypedExpression, ...]
    """They hold of each event."""
    components: int
    """How many components take no other events."""


def of_some_rule(plans: Sequence[EvaluationPlan], table: pa.Table) -> pa.Table:
    """Return the events that a component of some plan may take, in their order; all if that is most of them.

    Components that differ in the constant of a comparison, such as ``v > 3`` and ``v > 4``, are looked for
    together by the loosest one. So it may be more events, and never fewer. O(shapes of components x events).
    """
    components = [part for plan in plans for part in components_in(plan)]
    selections = loosest(components)
    if 2 * len(selections) > len(components) or any(
        not one.types and not one.predicates for one in selections
    ):
        return table
    seen: dict[str, Any] = {}
    loaded: dict[str, Values] = {}
    kept = np.zeros(table.num_rows, dtype=np.bool_)
    try:
        for types, rules, _ in selections:
            masks = [type_mask(table, plans[0].names.type, types, seen)]
            masks += [evaluate_mask(rule, table, loaded) for rule in rules]
            there = [mask for mask in masks if mask is not None]
            kept |= reduce(np.logical_and, there, np.ones(table.num_rows, dtype=np.bool_))
    except UncertainCepError:
        # The rule that it is about says it, by its name.
        return table
    return table if 2 * int(kept.sum()) > table.num_rows else table.filter(pa.array(kept))


def loosest(components: Iterable[PlannedComponent]) -> list[Selected]:
    """Return selections that take all events that some component takes, one for all of one shape."""
    shapes: dict[Any, list[tuple[TypedExpression, ...]]] = {}
    for component in components:
        shape = component.types, tuple(map(_shape, component.local))
        shapes.setdefault(shape, []).append(component.local)
    return [
        Selected(types, tuple(_weakest(column) for column in zip(*rules, strict=True)), len(rules))
        for (types, _), rules in shapes.items()
    ]


def components_in(plan: EvaluationPlan) -> Iterator[PlannedComponent]:
    """Yield the components of a plan, negated ones included, those of each branch."""
    for branch in plan.or_free:
        yield from branch.components
        yield from (negation.component for negation in branch.negations)


def _compared(rule: TypedExpression) -> tuple[str, str, float] | None:
    """Return the operator, the column and the number of a comparison with a number; None of another one."""
    if not isinstance(rule, Apply) or rule.operator not in _WEAKEST:
        return None
    column, constant = rule.operands
    if type(column) is not Column or column.computed is not None or not isinstance(constant, Constant):
        return None
    value: Any = constant.value
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return None
    return rule.operator, column.name, value


def _shape(rule: TypedExpression) -> Any:
    """Return a key that comparisons share if only their numbers differ; other predicates are their own."""
    compared = _compared(rule)
    return rule if compared is None else compared[:2]


def _weakest(rules: Sequence[TypedExpression]) -> TypedExpression:
    """Return, of comparisons that differ in their number, one that holds wherever one of them does."""
    compared = _compared(rules[0])
    if compared is None:
        return rules[0]
    numbers = [number for _, _, number in filter(None, map(_compared, rules))]
    number = _WEAKEST[compared[0]](numbers)
    return rules[numbers.index(number)]
