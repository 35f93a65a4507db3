"""Negations beside a set, which conditions on times alone bound: the engine gives the oracle's answer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.beside import beside_cases
from tests.cases.clocks import by_clocks, in_order, in_sequence
from tests.cases.existence import doubtful
from tests.cases.sampling import FEWER
from tests.oracle import answer_literally
from uncertain_cep.testing.worlds import answer

KINDS: dict[str, st.SearchStrategy[Any]] = {
    "times": beside_cases(),
    "existence": doubtful(beside_cases()),
    "clocks": by_clocks(beside_cases(4)),
    "sequences": in_sequence(beside_cases(4)) | in_order(beside_cases(4)),
    "doubtful clocks": doubtful(by_clocks(beside_cases(4))),
}


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data())
def test_engine_is_the_oracle(kind: str, data: st.DataObject) -> None:
    case = data.draw(KINDS[kind])
    note(f"{case.text()}\n{case.trace.events}")
    case.check()


@FEWER
@given(beside_cases(4))
def test_worlds_of_the_events_that_matter_suffice(case: Any) -> None:
    note(case.text())
    assert answer(case.query(), case.trace.events) == answer_literally(case.query(), case.trace.events)


_CURRENT = "AND(L l, R r, !R n) WHERE TIME(r) <= TIME(l) AND TIME(n) > TIME(r) AND TIME(n) <= TIME(l)"


def _stamps() -> pa.Table:
    """Return a moment at 5, and three others, of which the last one at or before it is the current one."""
    return pa.table(
        {"type": ["L", "R", "R", "R"], "id": [1, 2, 3, 4], "lower": [5, 3, 4, 0], "upper": [5, 6, 5, 2]}
    )


def test_the_current_row_of_another_table() -> None:
    """2 is current at 3 if 3 is not at 4 or 5, at 4 if it is not at 5, at 5 anyway: 1/4 (0 + 1/2 + 1).

    3 is current at 4 unless 2 is at 5, and at 5: (3/4 + 1) / 2.
    """
    found = uc.match(_stamps(), f"PATTERN {_CURRENT} WITHIN 100")
    assert found.select(["l", "r"]).to_pylist() == [{"l": 1, "r": 2}, {"l": 1, "r": 3}]
    assert found["confidence"].to_pylist() == pytest.approx([3 / 8, 7 / 8])


def test_no_window_bounds_a_negation_beside_a_set() -> None:
    events = pa.table({"type": ["L", "N"], "id": [1, 2], "lower": [1000, 0], "upper": [1000, 0]})
    query = "PATTERN AND(L l, !N n) WHERE TIME(n) {} TIME(l) WITHIN 5"
    assert uc.match(events, query.format("<=")).num_rows == 0
    assert uc.match(events, query.format(">")).num_rows == 1


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("AND(A a, !N n)", "n is negated beside a set, which has no gap"),
        ("AND(A a, !N n) WHERE n.x = a.x", "such as TIME(n) <= TIME(a)"),
        ("AND(A+ a[], !N n) WHERE TIME(n) <= 5", r"such as TIME(n) <= TIME(a[i])"),
        ("SEQ(A a, AND(!N n))", "every component of this AND(...) is negated"),
        ("AND(A a, SEQ(B b, !N n)) WHERE TIME(n) < TIME(a)", "at an end of a SEQ(...) inside AND(...)"),
        (
            "OR(AND(A a, !N n), AND(B b, !M m)) WHERE TIME(n) < TIME(b) AND TIME(m) < TIME(b)",
            "n is negated beside a set",
        ),
    ],
)
def test_what_bounds_nothing_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(uc.QueryError) as refused:
        uc.parse(f"PATTERN {pattern} WITHIN 5")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("TIME(n) <= TIME(l)", r"any time before its match: .* TIME\(l\) - TIME\(n\) <= 1000"),
        ("TIME(n) > TIME(l)", r"any time behind its match: .* TIME\(n\) - TIME\(l\) <= 1000"),
        ("TIME(n) > TIME(l) AND TIME(n) - TIME(l) <= n.x", "any time behind its match"),
    ],
)
def test_streams_need_bounds(condition: str, message: str) -> None:
    query = f"PATTERN AND(L l, !R n) WHERE {condition} WITHIN 100"
    with pytest.raises(uc.OptionError, match=message):
        uc.IncrementalMatcher(query, _stamps().schema.append(pa.field("x", pa.int64())), largest_interval=5)


def test_streams_tell_rows_as_soon_as_nothing_can_spoil_them() -> None:
    """Of moments at 0 and 100, one is alone for 20 ticks, and is told at 21: what comes then is too late."""
    query = "PATTERN AND(L l, !R n) WHERE TIME(n) - TIME(l) BETWEEN -30 AND 20 WITHIN 5"
    matcher = uc.IncrementalMatcher(query, _stamps().schema, largest_interval=0, when="certain")
    event = {"type": "L", "lower": 0, "upper": 0, "id": 1}
    rows = [matcher.push(event).num_rows, *(matcher.heartbeat(tick).num_rows for tick in (15, 21))]
    for kind, tick in (("R", 70), ("L", 100), ("L", 101)):
        event = {"type": kind, "lower": tick, "upper": tick, "id": tick}
        rows.append(matcher.push(event).num_rows)
    assert rows == [0, 0, 1, 0, 0, 0]
    assert matcher.close().column("l").to_pylist() == [101]
    assert matcher.state_size == 0


def test_explain_names_it() -> None:
    assert "n: R" in str(uc.explain(f"PATTERN {_CURRENT} WITHIN 100", _stamps()))
