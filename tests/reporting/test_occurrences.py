"""Did it happen? Pages of RETURN PROBABILITY, and how likely there is a match by key on pages of matches."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.grouped import Grouping, groupings
from tests.cases.language import language_cases
from tests.cases.options import option_cases
from tests.cases.sampling import FEWER
from tests.reporting.pages import data_of, values
from uncertain_cep.config import limits
from uncertain_cep.errors import OptionError
from uncertain_cep.plan.grouping import of_matches
from uncertain_cep.reporting import gathered

KINDS: dict[str, st.SearchStrategy[Any]] = {
    "language": language_cases(most=5),
    "skip till next": language_cases("skip_till_next_match", most=5),
    "options": option_cases(most=4),
}


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data())
def test_pages_of_groups_say_what_match_says(kind: str, data: st.DataObject) -> None:
    case = data.draw(KINDS[kind])
    grouping: Grouping = data.draw(groupings(case.query()))
    having = data.draw(st.sampled_from(["", "HAVING PROBABILITY >= 0.5 "]))
    table, text = case.trace.table(), case.text(f"{having}{grouping.clause}")
    note(f"{text}\n{table.to_pydict()}")
    rows = uc.match(table, text, undecided="bounds")
    shown = data_of(uc.report(table, text))["occurrences"]
    assert shown["probability"] == rows["probability"].to_pylist()
    assert shown["lower"] == rows["probability_lower"].to_pylist()
    assert [key["name"] for key in shown["keys"]] == rows.column_names[: len(grouping.by)]
    assert all(len(key["values"]) == rows.num_rows for key in shown["keys"])
    assert (shown["bucket"] is None) == (grouping.every is None)
    keys = list(zip(*(rows[name].to_pylist() for name in grouping.by), strict=True)) or [()] * rows.num_rows
    numbers: dict[Any, int] = {}
    assert shown["key"] == [numbers.setdefault(key, len(numbers)) for key in keys]
    assert sum(shown["matches"]) == len(shown["of_match"])
    if grouping.every is None and grouping.at_least == 1:
        for row, number in enumerate(shown["key"]):
            assert shown["best"][number] <= shown["probability"][row] * (1 + 1e-9)
            assert shown["probability"][row] <= shown["expected"][number] + 1e-4
            if shown["matches"][number] == 1:
                assert shown["probability"][row] == pytest.approx(shown["best"][number])
    if not having and grouping.at_least == 1:
        matches = uc.match(table, of_matches(uc.parse(text)))
        assert len(shown["of_match"]) == matches.num_rows
        assert -1 not in shown["of_match"]


EVENTS = pa.table(
    {
        "type": ["A", "B", "B", "A", "B", "A", "B"],
        "id": [1, 2, 3, 4, 5, 6, 7],
        "lower": [0, 0, 0, 30, 30, 60, 61],
        "upper": [9, 9, 9, 39, 39, 60, 61],
        "host": ["u", "u", "u", "v", "v", "v", "v"],
        "name": ["x", "x", "x", "y", "y", "y", "y"],
    }
)
QUERY = "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 20"


@pytest.mark.parametrize(
    "tail", ["", " HAVING CONFIDENCE >= 0.4 RETURN a.name AS called ORDER BY CONFIDENCE DESC"]
)
def test_by_key_a_page_says_how_likely_there_is_a_match(tail: str) -> None:
    facts = data_of(uc.report(EVENTS, QUERY + tail))
    exact = {
        row["host"]: row["probability"]
        for row in uc.match(EVENTS, f"{QUERY} RETURN PROBABILITY BY host").to_pylist()
    }
    assert math.isclose(exact["u"], 123 / 200)
    (host, *further) = facts["groups"]
    assert {one["value"]: one["happened"] for one in host["values"]} == {
        name: [pytest.approx(probability)] * 2 for name, probability in exact.items()
    }
    if tail:
        assert [one["value"] for one in further[0]["values"]] == ["x", "y"]
        assert [one["happened"][0] for one in further[0]["values"]] == [
            pytest.approx(exact[name]) for name in "uv"
        ]


def test_of_more_values_bounds_by_confidences_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered, "WEIGHED_GROUPS", 1)
    (host,) = data_of(uc.report(EVENTS, QUERY))["groups"]
    assert {one["value"]: one["happened"] for one in host["values"]} == {
        "u": [pytest.approx(0.45), pytest.approx(0.9)],
        "v": [1.0, 1.0],
    }
    (host,) = data_of(uc.report(EVENTS, f"{QUERY} HAVING CONFIDENCE >= 0.1"))["groups"]
    assert [one["happened"] for one in host["values"]] == [None, None]
    assert limits.WEIGHED_GROUPS > 1


def test_groups_that_having_drops_have_no_matches_on_the_page() -> None:
    facts = data_of(uc.report(EVENTS, f"{QUERY} HAVING PROBABILITY >= 0.9 RETURN PROBABILITY BY host"))
    shown = facts["occurrences"]
    assert shown["keys"] == [{"name": "host", "values": ["v"]}]
    assert set(values(facts["columns"], "host")) == {"v"}
    assert facts["totals"]["matches"] == 2
    assert shown["of_match"] == [0, 0]
    nothing = data_of(uc.report(EVENTS.slice(0, 1), f"{QUERY} RETURN PROBABILITY BY host EVERY 5"))
    assert nothing["occurrences"]["key"] == []


def test_groups_too_dear_have_bounds_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncertain_cep.occurrence.answers.MOST_GROUP_STEPS", 1)
    shown = data_of(uc.report(EVENTS, f"{QUERY} RETURN PROBABILITY BY host"))["occurrences"]
    place = shown["keys"][0]["values"].index("u")
    assert shown["probability"][place] is None
    assert shown["lower"][place] <= 123 / 200 <= shown["upper"][place]


def test_the_question_of_groups_in_words() -> None:
    page = str(
        uc.report(
            EVENTS,
            f"{QUERY} HAVING PROBABILITY >= 50% "
            "RETURN PROBABILITY OF AT LEAST 2 MATCHES BY host EVERY 5 LIMIT 3",
        )
    )
    assert "how likely there are at least 2 matches, by host, in each 5 ticks." in page
    assert "Only where PROBABILITY &gt;= 50%. At most 3 groups." in page


def test_events_that_are_only_counted_make_no_matches() -> None:
    query = "PATTERN SEQ(AND(A{2,} a[]), B b) WITHIN 100 RETURN PROBABILITY BY b"
    assert uc.match(EVENTS, query).num_rows
    with pytest.raises(OptionError, match="a report shows matches"):
        uc.report(EVENTS, query)
