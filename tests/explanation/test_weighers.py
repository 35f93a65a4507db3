"""Explain says what weighs the matches of a query, and a run who took how many."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import uncertain_cep as uc

EVENTS = pa.table({"type": ["A", "N", "B"], "id": [1, 2, 3], "lower": [0, 3, 5], "upper": [4, 6, 2_000]})
WITH_LAW = EVENTS.append_column("pmf", pa.array([[0.2] * 5, None, None], pa.list_(pa.float64())))


@pytest.mark.parametrize(
    ("pattern", "events", "taker"),
    [
        ("SEQ(A a, !N n, B b)", EVENTS, "gap chain"),
        ("AND(A a, B b)", EVENTS, "ideals"),
        ("AND(A a, B b) WHERE TIME(b) - TIME(a) >= 2", EVENTS, "bounded chain"),
        ("SEQ(A a, !N n, B b) WHERE TIME(n) - TIME(a) <= 4", EVENTS, "two times"),
        ("SEQ(A a, !N n, B b) WHERE TIME(n) - TIME(a) <= 4", WITH_LAW, "elimination"),
    ],
)
def test_a_run_says_who_took_the_matches(pattern: str, events: pa.Table, taker: str) -> None:
    query = f"PATTERN {pattern} WITHIN 5000"
    facts = json.loads(uc.explain(query, events, analyze=True, format="json"))
    taken = {weigher["name"]: weigher["matches"] for weigher in facts["weighers"]}
    assert {name for name, matches in taken.items() if matches} == {taker}
    text = uc.explain(query, events, analyze=True)
    assert "weighed          each match by the cheapest of these that can" in text
    assert "took 1 match, " in text


def test_without_a_run_explain_says_who_could() -> None:
    text = uc.explain("PATTERN SEQ(A a, !N n, B b) WITHIN 5000", EVENTS)
    assert "gap chain: takes sequences" in text
    assert "elimination: takes any literals" in text
    assert "took" not in text
    assert "weighed" not in uc.explain("PATTERN SEQ(A a, B b) WITHIN 5000", EVENTS)
