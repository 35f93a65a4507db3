"""The reach of negations beside a set: literal conditions on times say how far one can be from its match."""

from __future__ import annotations

from typing import NamedTuple

from uncertain_cep.errors import OptionError
from uncertain_cep.plan.derived import once_a_plan
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.query.time_conditions import FAR, TimeCondition, bounds_in_ticks

__all__ = ["NegatedReach", "negated_reach"]


class NegatedReach(NamedTuple):
    """The ticks before the window of a match, and behind it, at which a negated event can be."""

    before: int = 0
    behind: int = 0


@once_a_plan
def negated_reach(plan: EvaluationPlan) -> NegatedReach:
    """Return the reach of all negations beside a set; 0 of those that stand in gaps.

    All positive times of a match are within its window. So ``TIME(n) - TIME(a) <= E`` for any of them puts n
    no more than E behind the window. A bound on the begin of an event that lasts bounds its end from below,
    and one on its end its begin from above.

    Raises
    ------
    OptionError
        If a negated event can be any time before its match, or behind it.
    """
    reach = NegatedReach()
    for branch in plan.or_free:
        for number, negation in enumerate(branch.negations):
            if branch.event_order.is_beside(number):
                one = _reach(branch, negation.component.variable)
                reach = NegatedReach(max(reach.before, one.before), max(reach.behind, one.behind))
    return reach


def _reach(branch: EvaluationPlan, negated: str) -> NegatedReach:
    """Return the reach of a negation beside a set."""
    before = behind = FAR
    other = branch.components[0].variable
    for condition in branch.bound.times:
        if _bounds_distance(condition, negated):
            assert condition.earlier is not None
            low, high = map(int, bounds_in_ticks(condition, None, (), branch.domain.tick_nanoseconds))
            is_later = condition.later.variable == negated
            other = (condition.earlier if is_later else condition.later).variable
            low, high = (low, high) if is_later else (-high, -low)
            before, behind = min(before, -low), min(behind, high)
    sides = (("before", before, (other, negated)), ("behind", behind, (negated, other)))
    for side, bound, (later, earlier) in sides:
        if bound >= FAR:
            raise OptionError(
                f"{negated} is negated beside a set, and may be any time {side} its match: streams need a "
                f"bound, such as TIME({later}) - TIME({earlier}) <= 1000; or match a table in this process"
            )
    return NegatedReach(max(before, 0), max(behind, 0))


def _bounds_distance(condition: TimeCondition, negated: str) -> bool:
    """Return whether a condition bounds how far any negated event is from one of the match."""
    if condition.earlier is None or condition.beside or condition.apart is not None:
        return False
    named = condition.later.variable, condition.earlier.variable
    return condition.is_literal and named.count(negated) == 1
