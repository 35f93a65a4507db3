"""Matches that share events, as groups: their numbers against the answer and RETURN PROBABILITY."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, note, settings

import uncertain_cep as uc
from tests.cases.nested import NestedCase, nested_cases
from tests.operators.test_span_facts import spans
from tests.reporting.pages import data_of, values
from uncertain_cep.reporting import sharing_groups

EVENTS = pa.table(
    {
        "type": ["A", "A", "A", "A", "B", "C"],
        "id": [1, 2, 3, 4, 5, 6],
        "lower": [0, 1, 2, 30, 5, 6],
        "upper": [5, 7, 8, 36, 12, 14],
        "host": ["h", "h", "h", "h", "h", "h"],
    }
)
QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [host] WITHIN 20"


def shared_of(table: Any, query: str) -> tuple[dict[str, Any], Any]:
    facts = data_of(uc.report(table, query))
    return facts, facts["shared"]


def test_matches_that_differ_in_one_event_are_one_group() -> None:
    facts, shared = shared_of(EVENTS, QUERY)
    assert (shared["over"], shared["total"], shared["matches"]) == ("a", 1, [3])
    assert set(shared["of_match"]) == {0}
    by_events = uc.match(EVENTS, f"{QUERY} RETURN PROBABILITY BY b, c")
    assert shared["probability"] == by_events["probability"].to_pylist()
    assert shared["expected"][0] == pytest.approx(sum(values(facts["columns"], "confidence")), abs=1e-4)
    assert shared["best"] == pytest.approx([max(values(facts["columns"], "confidence"))])


def test_a_sentence_says_what_would_decide_a_group() -> None:
    _, shared = shared_of(EVENTS, QUERY)
    row = uc.deciding(EVENTS, f"{QUERY} RETURN PROBABILITY BY b, c", by="event").answers.to_pylist()[0]
    assert row["made_certain"] < 0.0005
    assert shared["decides"] == [
        f"Most depends on when event {row['name']} happened. Once that is known, this still stays open."
    ]
    for upper, end in ((5, r"\."), (6, r" with probability [0-9.]+%\.")):
        two = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [0, 5], "upper": [9, upper]})
        by_b = "PATTERN SEQ(A a, B b) WITHIN 20 RETURN PROBABILITY BY b"
        (sentence,) = data_of(uc.report(two, by_b))["occurrences"]["decides"]
        assert re.fullmatch(
            f"Most depends on when event 1 happened: once that is known, this is certain or ruled out{end}",
            sentence,
        )
    groups = data_of(uc.report(EVENTS, f"{QUERY} RETURN PROBABILITY BY host"))["occurrences"]
    assert re.match(r"Most depends on when event \d happened", groups["decides"][0])


def test_groups_of_many_matches_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = data_of(uc.report(EVENTS, QUERY))["shared"]
    monkeypatch.setattr(sharing_groups, "GROUPED_MATCHES", 2)
    facts = data_of(uc.report(EVENTS, QUERY))
    shown = facts["shared"]
    confidence = values(facts["columns"], "confidence")
    assert shown["lower"] == [pytest.approx(max(confidence))]
    assert shown["upper"] == [pytest.approx(min(sum(confidence), 1.0))]
    assert shown["lower"][0] < exact["lower"][0] < shown["upper"][0]
    assert shown["decides"] == [""]
    different = ("lower", "upper", "probability", "decides")
    assert {name: value for name, value in shown.items() if name not in different} == {
        name: value for name, value in exact.items() if name not in different
    }
    assert data_of(uc.report(EVENTS, f"{QUERY} HAVING CONFIDENCE >= 0.1"))["shared"] is None


def test_events_that_last_are_in_groups() -> None:
    """One request, and eight pauses each of which may overlap it."""
    pauses = [("Gc", number, (number, number + 9), None, (2, 2)) for number in range(2, 10)]
    table = spans(("Request", 1, (0, 4), (10, 20), None), *pauses)
    query = "PATTERN AND(Request r, Gc g) WHERE g OVERLAPS r WITHIN 100"
    for frame in (table, table.to_pandas(), pl.from_arrow(table)):
        facts, shared = shared_of(frame, query)
        assert (shared["over"], shared["total"], shared["matches"]) == ("g", 1, [8])
        assert (
            shared["probability"] == uc.match(table, f"{query} RETURN PROBABILITY")["probability"].to_pylist()
        )
        assert shared["expected"][0] == pytest.approx(sum(values(facts["columns"], "confidence")), abs=1e-4)
        assert shared["decides"][0].startswith("Most depends on when event 1 happened")


def test_nothing_is_shared_where_matches_have_little_in_common() -> None:
    lonely = pa.table(
        {"type": ["A", "B"] * 2, "id": [1, 2, 3, 4], "lower": [0, 2, 50, 52], "upper": [3, 4, 53, 54]}
    )
    assert shared_of(lonely, "PATTERN SEQ(A a, B b) WITHIN 9")[1] is None
    assert shared_of(EVENTS, "PATTERN SEQ(A a) WITHIN 9")[1] is None


@settings(max_examples=25)
@given(nested_cases("SA"))
def test_groups_are_those_of_all_variables_but_one(case: NestedCase) -> None:
    note(case.text())
    table = case.trace.table()
    facts, shared = shared_of(table, case.text())
    if shared is None:
        return
    names = [one["name"] for one in facts["variables"] if one["name"] != shared["over"]]
    keys = [
        str([values(facts["columns"], name)[n] for name in names]) for n in range(facts["totals"]["matches"])
    ]
    confidence = np.array(values(facts["columns"], "confidence"))
    for number in range(len(shared["matches"])):
        members = np.flatnonzero(np.array(shared["of_match"]) == number)
        assert len({keys[n] for n in members}) == 1
        assert shared["matches"][number] == len(members)
        assert shared["best"][number] == pytest.approx(confidence[members].max())
        assert shared["expected"][number] == pytest.approx(confidence[members].sum(), abs=1e-4)
        # At least as likely as the best one, at most as all together.
        low, high = shared["lower"][number], shared["upper"][number]
        assert high >= confidence[members].max() - 1e-9
        assert low <= min(confidence[members].sum(), 1.0) + 1e-9
    assert len({keys[n] for n in range(len(keys))}) == shared["total"] == len(shared["matches"])
