"""Rows as people read them."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import uncertain_cep as uc
from tests.reporting.pages import data_of
from uncertain_cep.config.tolerances import CERTAIN
from uncertain_cep.results.display import percent, shown_rows


def test_numbers_to_the_right_text_to_the_left_times_without_trailing_zeros() -> None:
    table = pa.table(
        {
            "name": ["a", "long name", None],
            "n": [1, 100, None],
            "x": [0.5, 1 / 3, 1e-9],
            "at": pa.array(
                [
                    datetime(2026, 1, 5, 8),
                    datetime(2026, 1, 5, 8, 0, 30),
                    datetime(2026, 1, 5, 8, 0, 0, 120_000),
                ],
                pa.timestamp("us", "UTC"),
            ),
        }
    )
    assert shown_rows(table).splitlines() == [
        "  name         n         x  at",
        "  a            1       0.5  2026-01-05T08:00:00Z",
        "  long name  100  0.333333  2026-01-05T08:00:30Z",
        "                     1e-09  2026-01-05T08:00:00.12Z",
    ]


def test_no_value_steers_the_terminal() -> None:
    assert "\x1b" not in shown_rows(pa.table({"x": ["\x1b[31mred\x1b[0m"]}))


EVENTS = pa.table(
    {
        "type": ["A", "B", "B"], "id": [7, 8, 9], "lower": [1, 3, 8], "upper": [4, 4, 9],
        "host": ["x", "<img onerror=x>", None], "confidence": [1.5, 2.5, None],
    }
)  # fmt: skip
QUERY = "PATTERN SEQ(A a, B b) WITHIN 9 RETURN b.host AS server"


def test_the_best_come_first_and_what_is_returned_stands_for_ids() -> None:
    matches = uc.match(EVENTS, QUERY)
    worst_first = matches.take(pc.sort_indices(matches.column("confidence")))
    expected = [
        "2 matches, the best first",
        "  a  server           range  probability",
        "  7                   1 \N{EN DASH} 9  certain",
        "  7  <img onerror=x>  1 \N{EN DASH} 4  62.5%",
    ]
    assert str(uc.show(worst_first, QUERY)).splitlines() == expected
    assert repr(uc.show(worst_first.to_pandas(), uc.parse(QUERY))).splitlines() == expected


def test_without_a_query_ids_are_shown_and_at_most_so_many_rows() -> None:
    shown = str(uc.show(uc.match(EVENTS, QUERY), rows=1)).splitlines()
    assert shown[0] == "the best 1 of 2 matches"
    assert shown[1].split() == ["a", "b", "server", "range", "probability"]
    assert len(shown) == 3


def test_a_notebook_gets_a_table_in_which_values_are_text() -> None:
    page = uc.show(uc.match(EVENTS, QUERY), QUERY)._repr_html_()
    assert "<td>&lt;img onerror=x&gt;</td>" in page
    assert "<img" not in page
    assert page.count("<tr>") == 3


def test_lists_of_a_kleene_variable_and_times_of_one_day() -> None:
    times = pd.to_datetime(["2026-01-05 08:00", "2026-01-05 08:01", "2026-01-06 00:00"], utc=True)
    events = pd.DataFrame({"type": ["A", "B", "B"], "id": ["a", "b", "c"], "lower": times, "upper": times})
    shown = str(uc.show(uc.match(events, "PATTERN SEQ(A a, B+ b[]) WITHIN 1 day")))
    assert "2026-01-05T08:00:00Z \N{EN DASH} 08:01:00Z" in shown
    assert "b, c" in shown
    assert "2026-01-05T08:00:00Z \N{EN DASH} 2026-01-06T00:00:00Z" in shown


def test_other_results_and_none_are_shown_too() -> None:
    counts = uc.match(EVENTS, "PATTERN SEQ(A a, B b) WITHIN 9 RETURN EXPECTED COUNT")
    assert "expected_count" in str(uc.show(counts))
    none = uc.match(EVENTS.slice(0, 0), QUERY)
    assert str(uc.show(none)).startswith("0 matches")
    assert str(uc.show(pa.table({}))) == "0 matches"


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "3"])
def test_a_number_of_rows_that_is_none(rows: object) -> None:
    with pytest.raises(uc.OptionError, match="rows="):
        uc.show(uc.match(EVENTS, QUERY), rows=rows)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pmf", [[3 / 7, 2 / 7, 2 / 7], [1 / 3, 1 / 3, 1 / 6, 1 / 6], [0.1] * 10, [1 / 7, 2 / 7, 2 / 7, 2 / 7]]
)
def test_one_definition_of_certain(pmf: list[float]) -> None:
    """A sum of probabilities may end a little below 1 in float64: HAVING, show and reports take it as 1."""
    events = pa.table({"type": ["B"], "id": [1], "lower": [0], "upper": [len(pmf) - 1], "pmf": [pmf]})
    query = "PATTERN SEQ(B+ b[]) WITHIN 40"
    matches = uc.match(events, query)
    assert matches["confidence"][0].as_py() < 1.0
    assert uc.show(matches).rows["probability"].to_pylist() == ["certain"]
    assert uc.match(events, f"{query} HAVING CONFIDENCE >= 1").num_rows == 1
    uc.testing.assert_certain(matches)
    facts = data_of(str(uc.report(events, query)))
    assert facts["totals"]["certain"] == 1
    assert facts["certain_from"] == CERTAIN


def test_what_is_not_certain_is_never_called_so() -> None:
    assert [percent(p) for p in (CERTAIN, np.nextafter(CERTAIN, 0.0), 0.9996)] == [
        "certain", ">99.9%", ">99.9%",
    ]  # fmt: skip
