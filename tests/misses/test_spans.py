"""Why there is no match of events that last: refused exactly if a world has one, and by the same factors."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.operators.test_span_facts import spans
from tests.operators.test_spans import KINDS
from uncertain_cep.misses.reasons import rank_of

pytestmark = pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data())
def test_it_is_refused_exactly_if_some_world_has_a_match(kind: str, data: st.DataObject) -> None:
    case = data.draw(KINDS[kind].filter(lambda drawn: len(drawn.events) > 0))
    ids = [event.id for event in case.events]
    named = {name: data.draw(st.sampled_from(ids)) for name, _ in case.variables if data.draw(st.booleans())}
    note(f"{case.text()} {named}\n{case.events}\n{case.clocks}")
    names = [name for name, _ in case.variables]
    matches = [dict(zip(names, key, strict=True)) for key in case.answer()]
    matches = [match for match in matches if named.items() <= match.items()]
    if matches:
        with pytest.raises(uc.MatchExistsError) as refused:
            uc.why_not(case.table(), case.text(), named)
        assert {name: refused.value.match[name] for name in names} in matches
        return
    answer = uc.why_not(case.table(), case.text(), named)
    assert answer.reasons
    assert all(miss.reasons for miss in answer.misses)
    ranks = [rank_of(miss) for miss in answer.misses]
    assert ranks == sorted(ranks)
    assert all(named.items() <= miss.events.items() for miss in answer.misses)


def test_a_length_without_a_chance_cuts_an_end() -> None:
    """The end is at 1: a length of 2 has no chance, and one of 3 ends behind the bounds of the end."""
    events = spans(("A", 0, (0, 0), (0, 2), (1, 3)), ("N", 1, (0, 0), None, None))
    events = events.append_column("length_pmf", pa.array([[0.5, 0.0, 0.5], None]))
    query = "PATTERN AND(!N n, A a) WHERE TIME(n.begin) - TIME(a.end) < 0 WITHIN 3"
    (reason,) = uc.why_not(events, query).misses[0].reasons
    assert (reason.kind, reason.events, reason.ticks) == ("forbidden", (1,), 1)


TRACE = spans(
    ("Request", 1, (10, 12), (20, 22), None),
    ("Gc", 2, (15, 16), None, (9, 9)),
    ("Gc", 3, (30, 31), None, (2, 4)),
    ("Peak", 4, (26, 26), None, None),
)


@pytest.mark.parametrize(
    ("query", "ids", "kind", "ticks", "text", "move"),
    [
        (
            "AND(Request r, Gc g) WHERE g DURING r",
            {"g": 2},
            "time",
            2,
            "g.end is at least 2 ticks too late after r.end (g.end from 24 on, r.end up to 22)",
            "r could end 2 ticks later",
        ),
        (
            "AND(Request r, Gc g) WHERE DURATION(g) > 12",
            {"g": 2},
            "time",
            4,
            "g is at least 4 ticks too short",
            "g could last 4 ticks longer",
        ),
        (
            "AND(Request r, Gc g) WHERE NOT (r OVERLAPS g)",
            {"g": 2},
            "time",
            5,
            "g.begin is at least 5 ticks too early",
            "r could end",
        ),
        (
            "SEQ(Request r, Peak p, Gc g)",
            {"g": 2},
            "order",
            11,
            "p before g: g.begin is at least 11 ticks too early",
            "g could begin 11 ticks later",
        ),
        (
            "SEQ(Request r, Peak p) WHERE TIME(p) - TIME(r.end) <= 3",
            {},
            "time",
            1,
            "too late after r.end",
            "p could be",
        ),
        (
            "SEQ(Request r, Peak p)",
            {},
            "window",
            5,
            "p is at least 5 ticks too late after r.begin",
            "r could begin",
        ),
        (
            "AND(Request r, !Gc g) WHERE g OVERLAPS r",
            {},
            "forbidden",
            5,
            "the event 2 is there in every world",
            "2 could begin 5 ticks later",
        ),
        (
            "SEQ(Request r, !Peak n, Gc g)",
            {"g": 3},
            "forbidden",
            4,
            "the event 4 is there in every world",
            "4 could be",
        ),
    ],
)
def test_the_first_reason(
    query: str, ids: dict[str, Any], kind: str, ticks: int | None, text: str, move: str
) -> None:
    window = 10 if kind == "window" else 100
    answer = uc.why_not(TRACE, f"PATTERN {query} WITHIN {window}", ids)
    reason = answer.reasons[0]
    assert (reason.kind, reason.ticks) == (kind, ticks)
    assert text in reason.text
    assert move in str(answer)
