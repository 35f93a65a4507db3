"""The components of a search whose events last."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confidence.timed.counted_pairs import MOST_LASTING_TICKS
from uncertain_cep.candidates.selection import rows_taken
from uncertain_cep.candidates.span_laws import FlatLaws
from uncertain_cep.candidates.span_times import SpanTimes
from uncertain_cep.errors import Fault, OptionError, QueryError
from uncertain_cep.operators.context import ExecutionContext
from uncertain_cep.plan import PlannedComponent
from uncertain_cep.query.syntax import Time, expressions_in
from uncertain_cep.weighers.pair_laws import MOST_WEIGHED_PAIRS, PairLaws, TooManyPairsError
from uncertain_cep.weighers.pattern import ChosenSpans

__all__ = ["chosen_spans"]

Int64 = NDArray[np.int64]


def chosen_spans(context: ExecutionContext) -> ChosenSpans | None:
    """Return the components whose events last, with the times of all ends; None if all events are points.

    Raises
    ------
    QueryError
        If a condition speaks of TIME(v) of an event that lasts.
    OptionError
        If elements of a Kleene component last, or if a negated event has too many pairs of begin and end.
    """
    spans, plan = context.spans, context.plan
    if spans is None:
        return None
    lasting = tuple(j for j, rows in enumerate(context.candidates.rows) if bool(spans.lasts[rows].any()))
    longest, forbidden = 0, [np.zeros(0, np.int64)]
    for negation in plan.negations:
        rows, length = _longest(context, spans, negation.component)
        longest = max(longest, length)
        forbidden.append(rows)
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
    rows = np.concatenate(forbidden)
    chosen = ChosenSpans(lasting, spans, ends, longest, pair_laws=_pair_laws(context, spans, rows))
    return chosen._replace(negates_open=bool(chosen.are_pairs(rows).any()))


def _pair_laws(context: ExecutionContext, spans: SpanTimes, rows: Int64) -> PairLaws | None:
    """Return the laws of the begins and ends of negated events that last, by their clocks."""
    clocks, pmfs = context.clocks, context.pmfs
    (lower, upper), laws = context.ticks, FlatLaws(np.full(2 * spans.events, -1), np.zeros(0))
    if clocks is not None:
        lower, upper, laws = clocks.own.lower, clocks.own.upper, FlatLaws(clocks.own.offset, clocks.values)
    elif pmfs is not None:
        laws = FlatLaws(pmfs.offset, pmfs.values)
    try:
        return PairLaws.of(spans, rows, laws, lower, upper)
    except TooManyPairsError as error:
        raise OptionError(
            "an event is negated that has probabilities of its begin, end or length, and "
            f"{error.pairs:,} pairs of a begin and an end, more than {MOST_WEIGHED_PAIRS:,}: choose a longer "
            "tick"
        ) from None


def _longest(context: ExecutionContext, spans: SpanTimes, negated: PlannedComponent) -> tuple[Int64, int]:
    """Return the events of a negated component that last, and the longest length of them."""
    rows = rows_taken(context.plan, context.table, negated)
    rows = rows[spans.lasts[rows]]
    lower, upper = spans.length.lower[rows], spans.length.upper[rows]
    is_open = lower < upper
    ends = [bounds.upper[rows] - bounds.lower[rows] for bounds in (spans.own_begin, spans.own_end)]
    ticks = int(np.maximum(*ends)[is_open].max(initial=0)) + 1
    if ticks > MOST_LASTING_TICKS:
        raise OptionError(
            f"{negated.variable} is negated, and an end of one of its events can be at {ticks:,} ticks, more "
            f"than {MOST_LASTING_TICKS:,}: choose a longer tick"
        )
    whole = spans.own_end.upper[rows] - spans.own_begin.lower[rows]
    return rows, int(np.minimum(upper, whole).max(initial=0))
