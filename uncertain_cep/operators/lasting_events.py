"""The components of a search whose events last."""

from __future__ import annotations

import numpy as np

from confidence.timed.counted_pairs import MOST_LASTING_TICKS
from uncertain_cep.candidates.selection import rows_taken
from uncertain_cep.candidates.span_times import SpanTimes
from uncertain_cep.errors import Fault, OptionError, QueryError
from uncertain_cep.operators.context import ExecutionContext
from uncertain_cep.plan import PlannedComponent
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
        If events with pmfs of their ends or lengths are negated, or if elements of a Kleene component last.
    """
    spans, plan = context.spans, context.plan
    if spans is None:
        return None
    lasting = tuple(j for j, rows in enumerate(context.candidates.rows) if bool(spans.lasts[rows].any()))
    longest, negates_open = 0, False
    for negation in plan.negations:
        length, is_open = _longest(context, spans, negation.component)
        longest, negates_open = max(longest, length), negates_open or is_open
    variables = {plan.components[j].variable for j in lasting}
    if longest:
        variables |= {negation.component.variable for negation in plan.negations}
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
    if not lasting and not longest:
        return None
    lower, upper = context.ticks
    ends = (lower[spans.events :], upper[spans.events :])
    return ChosenSpans(lasting, spans, ends, longest, negates_open)


def _longest(context: ExecutionContext, spans: SpanTimes, negated: PlannedComponent) -> tuple[int, bool]:
    """Return the longest length of the events of a negated component, and whether one is not certain."""
    rows = rows_taken(context.plan, context.table, negated)
    rows = rows[spans.lasts[rows]]
    has_law = np.zeros(len(rows), np.bool_)
    if context.pmfs is not None:
        has_law = context.pmfs.offset[rows + spans.events] >= 0
    lower, upper = spans.length.lower[rows], spans.length.upper[rows]
    is_open = lower < upper
    if context.pmfs is not None:
        has_law |= is_open & (context.pmfs.offset[rows] >= 0)
    if spans.length_laws is not None:
        has_law |= spans.length_laws.start[rows] >= 0
    if has_law.any():
        raise OptionError(
            f"{negated.variable} is negated, and its events have pmfs of their ends or lengths: that is not "
            "supported yet; leave end_pmf and length_pmf out, or negate points"
        )
    ends = [bounds.upper[rows] - bounds.lower[rows] for bounds in (spans.own_begin, spans.own_end)]
    ticks = int(np.maximum(*ends)[is_open].max(initial=0)) + 1
    if ticks > MOST_LASTING_TICKS:
        raise OptionError(
            f"{negated.variable} is negated, and an end of one of its events can be at {ticks:,} ticks, more "
            f"than {MOST_LASTING_TICKS:,}: choose a longer tick"
        )
    whole = spans.own_end.upper[rows] - spans.own_begin.lower[rows]
    return int(np.minimum(upper, whole).max(initial=0)), bool(is_open.any())
