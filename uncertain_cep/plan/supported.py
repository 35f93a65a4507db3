"""What of a query only some evaluations and options answer."""

from __future__ import annotations

from collections.abc import Iterable

from uncertain_cep.errors import OptionError
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.query import Query
from uncertain_cep.query.bound import BoundComponent
from uncertain_cep.query.branches import is_linear
from uncertain_cep.query.syntax import Component, Conjunction, Disjunction
from uncertain_cep.query.traversal import components_of, patterns_in
from uncertain_cep.query.typed import Aggregated, columns_in

__all__ = ["beyond_plain", "check_compressed", "components_beyond_plain"]


def beyond_plain(query: Query) -> str | None:
    """Return what of a query only the default evaluation answers, in process; None if nothing."""
    if any(isinstance(found, Conjunction) for found in patterns_in(query.pattern)):
        return "event sets, AND(...)"
    if any(isinstance(found, Disjunction) for found in patterns_in(query.pattern)):
        return "alternative patterns, OR(...)"
    return components_beyond_plain(components_of(query.pattern), query)


def components_beyond_plain(components: Iterable[Component | BoundComponent], query: Query) -> str | None:
    """Return the same of a sequence of components under the query's strategy."""
    found = list(components)
    if any(component.kleene for component in found):
        return "Kleene components"
    if any(component.negated for component in found):
        return "negation"
    return query.strategy if query.strategy.endswith("contiguity") else None


def check_compressed(plan: EvaluationPlan) -> None:
    """Refuse a query whose Kleene events are more than a set of candidates, each for itself.

    Raises
    ------
    OptionError
    """
    kleene = [component.variable for component in plan.components if component.kleene]
    mentioned = [
        column
        for expression in (*plan.joined, *(item.expression for item in plan.bound.returns))
        if expression is not None
        for column in columns_in(expression)
        if column.variable in kleene
    ]
    fault = None
    if not is_linear(plan.bound.pattern):
        fault = "a sequence, without AND and OR"
    elif len(kleene) != 1:
        fault = f"a query with one Kleene component, not {len(kleene)}"
    elif len(plan.components) == 1:
        fault = "a component besides the Kleene one"
    elif plan.order is not None:
        fault = "a pattern without AND(...)"
    elif plan.negations:
        fault = "a query without negated components"
    elif plan.query.strategy != "skip_till_any_match":
        fault = f"skip_till_any_match, not {plan.query.strategy}"
    elif any(isinstance(column, Aggregated) or column.index != "current" for column in mentioned):
        fault = f"conditions on {kleene[0]}[i] alone: a set has no first, last or aggregate"
    elif plan.approximate is not None:
        fault = "exact confidences: leave approximate= out"
    if fault is not None:
        raise OptionError(f'kleene="compressed" needs {fault}')
