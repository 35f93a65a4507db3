"""The errors for matches whose confidence takes too many steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uncertain_cep.config.limits import LONGEST_PMF_CHAIN, MOST_CELLS_IN_TABLE, MOST_CONFIDENCE_STEPS
from uncertain_cep.errors import ConfidenceCostError, TraceError, TraceFault
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plurals import first_few, shortened

__all__ = ["ids_by_component", "long_chain", "too_dear"]


def long_chain(column: str) -> TraceError:
    """Return the error for a match that reaches over more ticks than explicit pmfs are summed over."""
    message = (
        f"a match with an explicit pmf reaches over more than {LONGEST_PMF_CHAIN:,} ticks, "
        'too many to sum over: give a longer tick, such as tick="1ms", or a shorter WITHIN'
    )
    return TraceError(TraceFault(message, column=column))


def ids_by_component(plan: EvaluationPlan, components: Sequence[int], ids: Sequence[Any]) -> list[Any]:
    """Return the ids of a match's events by component: one of each single one, a list of each Kleene one."""
    grouped: list[list[Any]] = [[] for _ in plan.components]
    for component, event in zip(components, ids, strict=True):
        grouped[component].append(event)
    return [
        found if planned.kleene else found[0] for found, planned in zip(grouped, plan.components, strict=True)
    ]


def too_dear(plan: EvaluationPlan, ids: Sequence[Any], steps: int, limit: float = 0.0) -> ConfidenceCostError:
    """Return the error for a match, given by the ids of its events, whose confidence takes too many steps.

    It names the first few events of each list, and the first ten variables.
    ``limit`` is the limit that it exceeds, if that is not the one on the steps of a match.
    """
    variables = [component.variable for component in plan.components]
    events = [f"{variable}={_shown(event)}" for variable, event in zip(variables, ids, strict=True)]
    signature = first_few(events, 10)
    instead = "allow an estimate, approximate=0.01"
    if plan.approximate is not None:
        instead = f"allow a standard error above {plan.approximate.std_error}"
    tied = plan.event_order.coupling
    if plan.bound.times:
        tied = "conditions on times, or events that must stay out of its gaps, tie many of its times together"
    # Kernels count in int64, and count too far where the estimate is beyond.
    many = f"about {steps:.1e}" if steps > 0 else "more than 9.2e+18"
    limit = limit or float(MOST_CONFIDENCE_STEPS)
    unit = "steps"
    if limit == MOST_CELLS_IN_TABLE:
        unit = "cells in one table over ticks"
    elif steps <= limit:
        many = "more"
    message = (
        f"the confidence of the match ({signature}) under {plan.query.strategy} takes {many} {unit}; "
        f"the limit is {limit:.1e}: its intervals have many ticks, or {tied}. "
        f"{instead[0].upper()}{instead[1:]}, or give "
        'a longer tick, such as tick="1s" where the intervals are made, a shorter WITHIN, or predicates that '
        "leave fewer events"
    )
    return ConfidenceCostError(message, steps, int(limit))


def _shown(ids: Any) -> str:
    """Return an id, or the first of a list, as text of bounded length."""
    if isinstance(ids, list):
        return f"[{first_few([shortened(repr(event), 40) for event in ids])}]"
    return shortened(repr(ids), 40)
