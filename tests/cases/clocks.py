"""Random cases whose events share clocks."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

from hypothesis import strategies as st

from tests.cases.cases import Trace
from tests.cases.sampling import sampled_from
from uncertain_cep.testing.model import Clock

__all__ = ["by_clocks", "in_order", "in_sequence"]

CaseT = TypeVar("CaseT", bound=Any)


@st.composite
def by_clocks(draw: st.DrawFn, cases: st.SearchStrategy[CaseT]) -> CaseT:
    """Draw a case of a strategy, with events of few clocks: one for all, or several, or none for some."""
    case = draw(cases)
    clocks: list[Clock] = [draw(_clocks()) for _ in range(draw(sampled_from([1, 1, 2, 2, 3])))]
    choices: list[Clock | None] = [*clocks, *([None] if draw(st.booleans()) else [])]
    # Without jitter much more is certain.
    jitter = draw(st.booleans())
    events = []
    for event in case.trace.events:
        clock = draw(st.sampled_from(choices))
        upper, pmf = (event.upper, event.pmf) if jitter or clock is None else (event.lower, None)
        first, last = (0, 0) if clock is None else (clock.lower, clock.upper)
        events.append(replace(event, lower=event.lower + first, upper=upper + last, pmf=pmf, clock=clock))
    changed: CaseT = replace(case, trace=Trace(tuple(events), case.trace.types))
    return changed


@st.composite
def in_sequence(draw: st.DrawFn, cases: st.SearchStrategy[CaseT]) -> CaseT:
    """Draw a case of a strategy, with events of few clocks whose sequences break ties; null for some."""
    case = draw(by_clocks(cases))
    events = [
        replace(event, sequence=None if event.clock is None else draw(sampled_from([0, 1, 1, 2, 3, None])))
        for event in case.trace.events
    ]
    changed: CaseT = replace(case, trace=Trace(tuple(events), case.trace.types))
    return changed


@st.composite
def in_order(draw: st.DrawFn, cases: st.SearchStrategy[CaseT]) -> CaseT:
    """Draw a case of a strategy, with events of one clock in a certain order, some at one tick."""
    case, clock = draw(cases), draw(_clocks())
    places = draw(st.permutations(range(len(case.trace.events))))
    events = [
        replace(
            event, lower=event.lower + clock.lower, upper=event.lower + clock.upper, pmf=None, clock=clock,
            sequence=place,
        )
        for event, place in zip(case.trace.events, places, strict=True)
    ]  # fmt: skip
    changed: CaseT = replace(case, trace=Trace(tuple(events), case.trace.types))
    return changed


@st.composite
def _clocks(draw: st.DrawFn) -> Clock:
    lower, width = draw(st.integers(-2, 1)), draw(sampled_from([0, 1, 2, 2, 3]))
    if draw(st.booleans()):
        return Clock(lower, lower + width)
    shares = draw(st.lists(st.integers(0, 2), min_size=width + 1, max_size=width + 1).filter(any))
    return Clock(lower, lower + width, tuple(Fraction(share, sum(shares)) for share in shares))
