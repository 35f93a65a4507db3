"""Events that can spoil matches of events that last: those that take worlds from it, by exact fractions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.operators.test_spans import KINDS
from uncertain_cep.plan import MatchOptions, make_plan
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.results.pictures import pictures_of

pytestmark = pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "nega" in kind])
@FEWER
@given(data=st.data())
def test_an_event_can_spoil_a_match_if_it_takes_worlds_from_it(kind: str, data: st.DataObject) -> None:
    case = data.draw(KINDS[kind])
    note(f"{case.text()}\n{case.events}\n{case.clocks}")
    matches = uc.match(case.table(), case.text())
    table = with_all_bounds(case.table(), "lower")
    plan = make_plan(uc.parse(case.text()), table.schema, MatchOptions(takes_spans=True))
    pictures = pictures_of(plan, table, matches, 24)
    ids = table.column("id").to_pylist()
    for number, row in enumerate(matches.to_pylist()):
        key = tuple(row[name] for name, _ in case.variables)
        members = tuple(one for one in case.events if one.id in key)
        full = replace(case, events=members).answer()[key][2]
        expected = {
            one.id
            for one in case.events
            if one.id not in key
            and replace(case, events=(*members, one)).answer().get(key, (0, 0, 0))[2] < full
        }
        spoiling = {ids[event] for event in pictures.spoiling[pictures.spoiled == number].tolist()}
        assert spoiling == expected
