"""The components of a search whose events last."""

from __future__ import annotations

from uncertain_cep.candidates.selection import rows_taken
from uncertain_cep.errors import Fault, OptionError, QueryError
from uncertain_cep.operators.context import ExecutionContext
from uncertain_cep.query.syntax import Time, expressions_in
from uncertain_cep.weighers.pattern import ChosenSpans

__all__ = ["chosen_spans"]


def chosen_spans(context: ExecutionContext) -> ChosenSpans | None:
    """Return the components whose events last, with the times of all ends; None if all events are points.

    Raises
    ------
    QueryError
        If a condition speaks of TIME(v) of an event that lasts.
    OptionError
        If events that last are negated, or elements of a Kleene component.
    """
    spans, plan = context.spans, context.plan
    if spans is None:
        return None
    lasting = tuple(j for j, rows in enumerate(context.candidates.rows) if bool(spans.lasts[rows].any()))
    for negation in plan.negations:
        if spans.lasts[rows_taken(plan, context.table, negation.component)].any():
            raise OptionError(
                f"{negation.component.variable} is negated, and its events last: that is not supported yet; "
                "negate events that are points"
            )
    variables = {plan.components[j].variable for j in lasting}
    for j in lasting:
        if plan.components[j].kleene:
            raise OptionError(
                f"{plan.components[j].variable} takes several events, and they last: that is not supported "
                "yet; take single ones"
            )
    faults = [
        Fault(
            f"the events of {time.variable} last, so which end? write TIME({time.variable}.begin) or "
            f"TIME({time.variable}.end)",
            time.position.line,
            time.position.column,
        )
        for condition in plan.query.where
        for time in expressions_in(condition)
        if isinstance(time, Time) and time.part is None and time.variable in variables
    ]
    if faults:
        raise QueryError(faults, text=plan.query.text)
    if not lasting:
        return None
    lower, upper = context.ticks
    ends = (lower[spans.events :], upper[spans.events :])
    return ChosenSpans(lasting, spans, ends)
