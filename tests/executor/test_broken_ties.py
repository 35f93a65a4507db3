"""Sequences that break ties of sources, beside events of others: every construct, against all worlds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.cases.clocks import in_sequence
from tests.cases.existence import doubtful
from tests.cases.language import PatternCase, language_cases
from tests.cases.nested import nested_cases
from tests.cases.sampling import FEWER
from tests.cases.times import timed_cases, timed_nested_cases
from tests.weighers.forcing import CountedWorlds, forced
from uncertain_cep.weighers.bounded_chains import BoundedChains
from uncertain_cep.weighers.elimination import Elimination
from uncertain_cep.weighers.gap_chains import GapChains
from uncertain_cep.weighers.order_ideals import Ideals

CASES: dict[str, st.SearchStrategy[Any]] = {
    "sequences": language_cases(),
    "sets": nested_cases("SAO"),
    "sequences_in_time": timed_cases(),
    "sets_in_time": timed_nested_cases(),
}

WEIGHERS: dict[str, Any] = {
    "gap chain": GapChains.of,
    "ideals": Ideals.of,
    "bounded chain": BoundedChains.of,
    "elimination": Elimination.of,
    "counted worlds": CountedWorlds.of,
}


@st.composite
def cases(draw: st.DrawFn, kind: str) -> PatternCase:
    """Draw a case some of whose ties sequences break, with events that may not have happened, too."""
    chosen = CASES[kind]
    case: PatternCase = draw(in_sequence(doubtful(chosen) if draw(st.integers(0, 3)) == 0 else chosen))
    return case


@pytest.mark.parametrize("kind", CASES)
@given(data=st.data())
def test_every_construct(kind: str, data: st.DataObject) -> None:
    case = data.draw(cases(kind))
    note(case.text())
    note(str(case.trace.table().to_pylist()))
    case.check()


@pytest.mark.parametrize("name", WEIGHERS)
@FEWER
@given(data=st.data())
def test_every_weigher(name: str, data: st.DataObject) -> None:
    case = data.draw(cases(data.draw(st.sampled_from(sorted(CASES)))))
    note(case.text())
    note(str(case.trace.table().to_pylist()))
    with forced(WEIGHERS[name]):
        case.check()
