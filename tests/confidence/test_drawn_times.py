"""Confidences estimated from times drawn one after the other, against all worlds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from confidence.timed.bounds import UNBOUND, Bounds, tightened
from confidence.timed.drawn_times import Drawn, sampled
from confidence.timed.factors import Cells, TooManyCellsError
from confidence.timed.forbidden_spans import Span
from confidence.timed.forbidden_tables import NO_TIME, OTHER
from tests.cases.sampling import FEWER
from tests.confidence.test_summed_matches import Case, Constraint, Event, cases, enumerated

STD_ERROR = 0.02
UNLIKELY = 7.0
"""Standard errors: a mean of so many draws within bounds is farther off once in 10^10 times (Hoeffding)."""


def bounds_of(constraints: Sequence[Constraint]) -> Bounds:
    """Return constraints as the bounds of each pair."""
    found: Bounds = {}
    for i, j, low, high in constraints:
        if (j, i) in found:
            i, j, low, high = j, i, -high, -low
        least, most = found.get((i, j), (-UNBOUND, UNBOUND))
        found[i, j] = max(least, low), min(most, high)
    return found


def span_of(rule: Sequence[Constraint]) -> Span | None:
    """Return the ticks at which a rule forbids an event; None if there are none."""
    lowers, uppers, guards = list[tuple[int, int]](), list[tuple[int, int]](), list[Constraint]()
    for i, j, low, high in rule:
        if i == j:
            if not low <= 0 <= high:
                return None
        elif OTHER not in (i, j):
            guards.append((i, j, low, high))
        else:
            time, least, most = (j, low, high) if i == OTHER else (i, -high, -low)
            place = -1 if time == NO_TIME else time
            lowers += [(place, least)] if least > -UNBOUND else []
            uppers += [(place, most)] if most < UNBOUND else []
    return Span(tuple(lowers), tuple(uppers), bounds_of(guards))


def whole(event: Event) -> Drawn:
    """Return an event that something forbids, with the probability that it is there."""
    size, happened = len(event.pmf), event.probability
    pmf = None if event.is_uniform else happened * np.array(event.pmf)
    return Drawn(event.lower, event.lower + size - 1, size / happened, pmf)


def estimated(case: Case, cells: float = 1e9, seed: int = 1) -> tuple[float, float]:
    """Return the estimate and its standard error; 0 and 0 where bounds leave nothing to draw."""
    bounds = bounds_of(case.bounds)
    lower = np.array([event.lower for event in case.own])
    upper = lower + [len(event.pmf) - 1 for event in case.own]
    tight = tightened(lower, upper, bounds)
    if tight is None:
        return 0.0, 0.0
    own = [
        Drawn(
            first, last, len(event.pmf),
            None if event.is_uniform else np.array(event.pmf[first - event.lower : last + 1 - event.lower]),
        )
        for event, first, last in zip(case.own, *(ends.tolist() for ends in tight), strict=True)
    ]  # fmt: skip
    forbidden = [
        (whole(event), [span for rule in rules if (span := span_of(rule)) is not None])
        for event, rules in case.others
        if event.probability
    ]
    return sampled(own, bounds, forbidden, STD_ERROR, seed, Cells(cells, cells))


@given(cases())
def test_an_estimate_is_near_the_sum_over_all_worlds(case: Case) -> None:
    found, error = estimated(case)
    assert abs(found - enumerated(case)[0]) < UNLIKELY * STD_ERROR
    # The draws that are added at either end of the sample.
    assert error < 1.01 * STD_ERROR


@FEWER
@given(cases(), st.integers(0, 2**31))
def test_a_seed_decides_what_is_drawn(case: Case, seed: int) -> None:
    assert estimated(case, seed=seed) == estimated(case, seed=seed)


@FEWER
@given(cases())
def test_too_many_draws_are_refused(case: Case) -> None:
    assume(enumerated(case)[0])
    with pytest.raises(TooManyCellsError):
        estimated(case, cells=1000)
