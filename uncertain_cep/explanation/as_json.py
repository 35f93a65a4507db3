"""What a query means and how it is evaluated, as plain data for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from uncertain_cep.operators.table import operator_of
from uncertain_cep.plan.evaluation_plan import EvaluationPlan, PlannedComponent
from uncertain_cep.query import Query, format_expression
from uncertain_cep.query.traversal import components_of

if TYPE_CHECKING:
    from uncertain_cep.candidates.doubts import Doubts

__all__ = ["plan_dict", "query_dict"]


def query_dict(query: Query) -> dict[str, Any]:
    """Return the facts of a query that is not bound to a trace."""
    window = query.window
    components = [
        {
            "variable": component.variable,
            "types": list(component.types),
            "kleene": component.kleene,
            "negated": component.negated,
        }
        for component in components_of(query.pattern)
    ]
    within = None if window is None else {"amount": window.amount, "unit": window.unit or "ticks"}
    return {"strategy": query.strategy, "components": components, "window": within}


def plan_dict(
    plan: EvaluationPlan, table: pa.Table | None, *, analyze: bool = False, doubts: Doubts | None = None
) -> dict[str, Any]:
    """Return the facts of a plan; with a table, the candidates and how they are joined.

    Parameters
    ----------
    analyze : bool
        Whether to run the plan on the table, and say how many partial matches each node had.
    doubts : Doubts or None
        Warns of what is sound but may not be what was meant.

    Returns
    -------
    dict
        ``strategy``, ``components``, ``negations``, ``partition_by``, ``predicates``, ``window_ticks``,
        ``tick`` (its length, or null), ``evaluation``, ``operator``, ``result``, ``readings`` (the variables
        of the negations of each, if OR leaves a choice of them) and, with a table, ``partitions`` and
        ``choice``; for a pattern with OR ``branches``, a list of such dicts. A choice has ``planner``,
        ``join`` (``pivot`` or ``tree``), ``tree`` (nodes with ``components``, ``estimated``, with ``analyze``
        ``actual``, and ``children``), ``passes`` (of the pivot join, for each pivot: the ``order`` in which
        components are bound, and for one, two and so on of them such ``nodes``), ``matches`` (estimated),
        ``why``, ``expected_ns``, ``latency`` (its ``weight``, and the partial matches expected to be
        ``waiting`` for the last component), ``statistics`` and, with ``analyze``, ``run``.

    Raises
    ------
    TraceError
        If the table is not one of events.
    """
    if doubts is not None:
        doubts.about(plan)
    if plan.branches:
        parts = [plan_dict(branch, table, analyze=analyze, doubts=doubts) for branch in plan.branches]
        return {"branches": parts}
    found: dict[str, Any] = {
        "strategy": plan.query.strategy,
        "components": [_component(component) for component in plan.components],
        "negations": [{**_component(part.component), "after": part.after} for part in plan.negations],
        "readings": [sorted(term.negated) for term in plan.terms if term.is_reading],
        "partition_by": [list(key.columns) for key in plan.keys],
        "predicates": [format_expression(part) for part in (*plan.joined, *plan.constant)],
        "window_ticks": plan.window,
        "tick": None if plan.domain.tick_nanoseconds is None else plan.domain.describe(),
        "evaluation": plan.evaluation,
        "operator": operator_of(plan).name,
        "result": {field.name: str(field.type) for field in plan.output_schema},
    }
    if table is not None:
        from uncertain_cep.candidates.match_windows import feasible
        from uncertain_cep.executor import candidates
        from uncertain_cep.explanation.join_tree import chosen_plan

        selection = candidates(plan, table, doubts)
        kept = feasible(plan, selection)
        for component, rows, left in zip(found["components"], selection.rows, kept.rows, strict=True):
            component |= {"candidates": len(rows), "in_match_windows": len(left)}
        found["partitions"] = selection.partitions
        found["choice"] = chosen_plan(plan, table, kept, analyze=analyze).to_dict()
    return found


def _component(component: PlannedComponent) -> dict[str, Any]:
    return {
        "variable": component.variable,
        "types": list(component.types),
        "predicates": [format_expression(part) for part in component.local],
        "kleene": component.kleene,
    }
