"""An empty answer names the conditions that leave none: without one of them there are matches."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

import uncertain_cep as uc
from uncertain_cep.explanation import nothing
from uncertain_cep.explanation.nothing import conditions_that_leave_nothing
from uncertain_cep.plan import MatchOptions, make_plan

TRACE = pa.table(
    {
        "type": ["A", "B", "N", "C"], "id": [1, 2, 3, 4], "lower": [0, 5, 7, 30], "upper": [4, 9, 8, 30],
        "k": ["x", "y", "x", "x"], "v": [5, 7, 2, 9],
    }
)  # fmt: skip


def why(query: str, table: pa.Table = TRACE, **options: Any) -> str:
    assert not uc.match(table, query, **options).num_rows
    match_options = MatchOptions(**options)
    return conditions_that_leave_nothing(
        make_plan(uc.parse(query), table.schema, match_options), table, match_options
    )


@pytest.mark.parametrize(
    ("query", "without"),
    [
        ("SEQ(A a, B b) WHERE a.k = b.k WITHIN 20", "a.k = b.k"),
        ("SEQ(A a, B b) WHERE [k] AND a.v < 9 WITHIN 20", "[k]"),
        ("SEQ(A a, B b) WHERE a.v > 9 WITHIN 20", "a.v > 9"),
        ("SEQ(A a, C b) WITHIN 20", "WITHIN 20"),
        ("SEQ(A a, B b) WHERE TIME(b) - TIME(a) > 12 WITHIN 20", "TIME(b) - TIME(a) > 12"),
        ("SEQ(A a, !N n, C c) WITHIN 40", "!N n"),
        ("SEQ(A a, !N n, C c) WHERE n.k = a.k WITHIN 40", "!N n"),
        ("SEQ(A a, C c, D? d) UNTIL N n WITHIN 40", "UNTIL N n"),
        ("SEQ(A a, C c) WHERE strict_contiguity(a, c) WITHIN 40", "strict_contiguity"),
        ("SEQ(B a, N b) WITHIN 20 HAVING CONFIDENCE >= 0.99", "HAVING CONFIDENCE >= 0.99"),
        ("SEQ(B a, N b) WITHIN 20 HAVING CONFIDENCE < 0.1 AND b > 0", "HAVING CONFIDENCE < 0.1 AND b > 0"),
        ("SEQ(A a, B b) WHERE [k] WITHIN 20 RETURN a.v AS w ORDER BY w LIMIT 3", "[k]"),
        ("OR(SEQ(A a, B b), SEQ(C c, A d)) WHERE [k] WITHIN 20", "[k]"),
        ("SEQ(A a, B b) WHERE [k] WITHIN 20 RETURN EXPECTED COUNT BY k", "[k]"),
    ],
)  # fmt: skip
def test_what_leaves_no_match_is_named(query: str, without: str) -> None:
    # Here b and n are in no certain order.
    upper = pa.array([4, 9, 8, 30])
    table = TRACE.set_column(2, "lower", pa.array([0, 5, 5, 30])) if "N b" in query else TRACE
    said = why(f"PATTERN {query}", table.set_column(3, "upper", upper))
    assert said == f"without {without} there would be matches"


def test_several_that_leave_none_together() -> None:
    said = why("PATTERN SEQ(A a, B b) WHERE a.v > 9 AND b.v > 9 WITHIN 20")
    assert said == "without any one of its conditions there would be no match either"


def test_of_many_events_the_first_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nothing, "SAMPLED_FOR_NOTHING", 3)
    said = why("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 20")
    assert said == "without [k] there would be matches among the first 2 events"


def test_it_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    crowded = pa.table(
        {"type": ["A"] * 900, "id": range(900), "lower": [0] * 900, "upper": [9] * 900, "v": [1] * 900}
    )
    # 900 ** 4 choices of events, none of which is a match with the one condition or the other.
    total = "a.v + b.v + c.v + d.v"
    query = f"PATTERN SEQ(A a, A b, A c, A d) WHERE {total} > 98 AND {total} > 99 WITHIN 9"
    monkeypatch.setattr(nothing, "SECONDS_FOR_NOTHING", 0.2)
    plan = make_plan(uc.parse(query), crowded.schema)
    assert conditions_that_leave_nothing(plan, crowded, MatchOptions()) == ""
    monkeypatch.setattr(nothing, "SECONDS_FOR_NOTHING", 0.0)
    assert why("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 20") == ""


def test_explain_names_it_once_it_has_looked() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 20"
    assert "no match      " in uc.explain(query, TRACE, analyze=True)
    assert "without [k] there would be matches" in uc.explain(query, TRACE, analyze=True)
    facts = json.loads(uc.explain(query, TRACE, analyze=True, format="json"))
    assert facts["no_match"] == "without [k] there would be matches"
    assert "there would be" not in uc.explain(query, TRACE)
    assert "there would be" not in uc.explain("PATTERN SEQ(A a, B b) WITHIN 20", TRACE, analyze=True)
