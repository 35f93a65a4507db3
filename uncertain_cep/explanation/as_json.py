"""The meaning of a query and its evaluation, as plain data for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from uncertain_cep.explanation.facts import ChosenPlan, PlanFacts
from uncertain_cep.explanation.weigher_facts import weigher_facts
from uncertain_cep.operators.table import operator_of
from uncertain_cep.plan.components import PlannedComponent
from uncertain_cep.plan.known_until import shown_tick
from uncertain_cep.query import Query, format_expression
from uncertain_cep.query.time_conditions import texts_of
from uncertain_cep.query.walks import components_of

__all__ = ["plan_dict", "query_dict"]


def query_dict(query: Query) -> dict[str, Any]:
    """Return the facts of a query that is not bound to a trace."""
    window = query.window
    components = [
        {
            "variable": component.variable,
            "types": list(component.types),
            "kleene": component.kleene,
            "least": component.least,
            "most": component.most,
            "negated": component.negated,
        }
        for component in components_of(query.pattern)
    ]
    within = None if window is None else {"amount": window.amount, "unit": window.unit or "ticks"}
    return {"strategy": query.strategy, "components": components, "window": within}


def plan_dict(facts: Sequence[PlanFacts]) -> dict[str, Any]:
    """Return the facts of a plan.

    Returns
    -------
    dict
        ``strategy``, ``components``, ``negations``, ``partition_by``, ``predicates``, ``time_conditions``,
        ``window_ticks``,
        ``tick`` (its length, or null), ``known_until`` (a time as text, or null),
        ``evaluation``, ``operator``, ``weighers`` (``name`` and ``why`` of what can weigh its matches; with
        ``analyze`` the ``matches`` that each took, their estimated ``ns``, and the least of ``others``),
        ``result``, ``readings`` (the variables
        of the negations of each, if OR leaves a choice of them), ``of_readings`` (how many, where options
        leave so many that they are not planned beforehand, null where groups are repeated; the dict is of
        the longest that is looked at), where events share
        clocks ``clocks`` (their
        column ``source``, and ``sequence`` if there is one; with a table which pairs of variables have how
        many ``in_common``, and the ``kernel`` that weighs matches with several events of one) and, with a
        table, ``partitions`` and
        ``choice``; for a pattern with OR ``branches``, a list of such dicts. A choice has ``planner``,
        ``join`` (``pivot`` or ``tree``), ``tree`` (nodes with ``components``, ``estimated``, with ``analyze``
        ``actual``, and ``children``), ``passes`` (of the pivot join, for each pivot: the ``order`` in which
        components are bound, and for one, two and so on of them such ``nodes``), ``matches`` (estimated),
        ``why``, ``expected_ns``, ``latency`` (its ``weight``, and the partial matches expected to be
        ``waiting`` for the last component), ``statistics`` and, with ``analyze``, ``run``. With RETURN
        PROBABILITY and ``analyze`` the last dict has ``groups``: their ``count`` in all buckets, how many
        were ``single``, ``certain``, ``exact``, ``estimated`` and ``undecided``, their ``matches``, those of
        the ``largest``, and its keys, ``named``.
    """
    return _part(facts[0]) if len(facts) == 1 else {"branches": [_part(part) for part in facts]}


def _part(facts: PlanFacts) -> dict[str, Any]:
    plan = facts.plan
    described: dict[str, Any] = {
        "strategy": plan.query.strategy,
        "components": [_component(component) for component in plan.components],
        "negations": [
            {
                **_component(part.component),
                "after": part.after,
                **({"group": part.joint} if part.joint else {}),
            }
            for part in plan.negations
        ],
        "readings": [sorted(term.negated) for term in plan.terms if term.is_reading],
        "partition_by": [list(key.columns) for key in plan.keys],
        "predicates": [format_expression(part) for part in (*plan.joined, *plan.constant)],
        "time_conditions": texts_of(plan.bound.times, plan.domain),
        "window_ticks": plan.window,
        "tick": None if plan.domain.tick_nanoseconds is None else plan.domain.describe(),
        "known_until": None if plan.known_until is None else shown_tick(plan.known_until, plan.domain),
        "evaluation": plan.evaluation,
        "operator": operator_of(plan).name,
        "weighers": weigher_facts(plan, None if facts.chosen is None else facts.chosen.weighed),
        "result": {field.name: str(field.type) for field in plan.output_schema},
    }
    if facts.readings != 1:
        described["of_readings"] = facts.readings
    clocks = {"source": plan.clock_names.source, "sequence": plan.clock_names.sequence}
    if named := {part: name for part, name in clocks.items() if name is not None}:
        described["clocks"] = named
    if facts.clocks is not None:
        pairs = [{"variables": [a, b], "clocks": number} for a, b, number in facts.clocks.sharing]
        described["clocks"] |= {"in_common": pairs, "kernel": facts.clocks.kernel}
    if facts.selection is not None and facts.kept is not None and facts.chosen is not None:
        sizes = zip(described["components"], facts.selection.sizes, facts.kept.sizes, strict=True)
        for component, size, in_windows in sizes:
            component |= {"candidates": size, "in_match_windows": in_windows}
        described["partitions"] = facts.selection.partitions
        described["choice"] = _choice(facts.chosen)
    if facts.groups is not None:
        described["groups"] = {"count": facts.groups.count, **asdict(facts.groups)}
    return described


def _component(component: PlannedComponent) -> dict[str, Any]:
    return {
        "variable": component.variable,
        "types": list(component.types),
        "predicates": [format_expression(part) for part in component.local],
        "kleene": component.kleene,
    }


def _choice(chosen: ChosenPlan) -> dict[str, Any]:
    choice, plan = chosen.choice, chosen.plan
    described: dict[str, Any] = {
        "planner": plan.planner,
        "join": "pivot" if choice.tree is None else "tree",
        "tree": None if choice.tree is None else chosen.node(choice.tree),
        "passes": chosen.passes() or None,
        "matches": chosen.estimated_matches,
        "why": choice.why,
        "expected_ns": dict(choice.costs),
        "latency": {"weight": plan.latency_weight, "waiting": chosen.waiting},
        "statistics": None if choice.statistics is None else choice.statistics.to_dict(),
    }
    if chosen.seconds is not None:
        described["run"] = {"matches": chosen.matches, "seconds": chosen.seconds}
    return described
