"""``RETURN DURATION(a, b) AS took``: columns of matches, as ``uc.elapsed`` has them."""

from __future__ import annotations

from datetime import timedelta

import pandas as pd
import pyarrow as pa
import pytest

import uncertain_cep as uc

EVENTS = pa.table(
    {
        "type": ["A", "A", "B", "B"],
        "id": ["w", "x", "y", "z"],
        "lower": [0, 2, 3, 9],
        "upper": [4, 2, 6, 11],
        "host": ["h", "g", "h", "g"],
    }
)
QUERY = "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 20"


def test_the_columns_stand_with_those_of_return() -> None:
    matches = uc.match(
        EVENTS, f"{QUERY} RETURN DURATION(a, b) AS took, b.host AS at ORDER BY CONFIDENCE DESC"
    )
    assert matches.to_pylist() == [
        {
            "host": "g", "a": "x", "b": "z", "at": "g", "took_lower": 7, "took_upper": 9, "took_mean": 8.0,
            "range_lower": 2, "range_upper": 11, "confidence": 1.0,
        },
        {
            "host": "h", "a": "w", "b": "y", "at": "h", "took_lower": 1, "took_upper": 6,
            "took_mean": pytest.approx(3.0), "range_lower": 0, "range_upper": 6,
            "confidence": pytest.approx(17 / 20),
        },
    ]  # fmt: skip
    alone = uc.match(EVENTS, f"{QUERY} RETURN DURATION(a, b) AS took LIMIT 2", confidence=False)
    assert "confidence" not in alone.column_names
    assert sorted(alone["took_mean"].to_pylist()) == pytest.approx([3.0, 8.0])


def test_frames_ticks_and_ends() -> None:
    span = pa.table(
        {
            "type": ["T"], "id": [1], "lower": [0], "upper": [6], "begin_lower": [0], "begin_upper": [3],
            "end_lower": [2], "end_upper": [6],
        }
    )  # fmt: skip
    query = "PATTERN SEQ(T t) WITHIN 20 RETURN DURATION(t) AS took, DURATION(t.begin, t.end) AS same"
    (row,) = uc.match(span.to_pandas(), query, tick="1s").to_dict("records")
    assert isinstance(uc.match(span.to_pandas(), query), pd.DataFrame)
    (row,) = uc.match(span, query).to_pylist()
    assert (row["took_lower"], row["took_upper"]) == (row["same_lower"], row["same_upper"]) == (0, 6)
    assert row["took_mean"] == row["same_mean"] == pytest.approx(51 / 19)
    stamped = EVENTS
    for name in ("lower", "upper"):
        place = stamped.schema.get_field_index(name)
        stamped = stamped.set_column(place, name, EVENTS[name].cast(pa.timestamp("s")))
    rows = uc.match(stamped, f"{QUERY}s RETURN DURATION(a, b) AS took", tick="1s").to_pylist()
    assert {row["took_mean"] for row in rows} == {timedelta(seconds=8), timedelta(seconds=3)}


def test_a_length_between_two_events_is_a_condition() -> None:
    assert uc.match(EVENTS, QUERY.replace("[host]", "[host] AND DURATION(a, b) >= 7"))["a"].to_pylist() == [
        "x"
    ]
    long = QUERY.replace("[host]", "[host] AND DURATION(a, b) = 8")
    assert uc.match(EVENTS, long)["confidence"].to_pylist() == [pytest.approx(1 / 3)]


def test_who_reads_no_times_takes_the_query_all_the_same() -> None:
    query = f"{QUERY} RETURN DURATION(a, b) AS took"
    matches = uc.match(EVENTS, query)
    assert uc.events_of(matches, EVENTS, query).num_rows == 4
    assert uc.posteriors(matches, EVENTS, query).num_rows == 4
    assert "window" in uc.explain(query, EVENTS)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("SEQ(A a, !N n, B b) WITHIN 9 RETURN DURATION(a, b) AS d", "does not support negations"),
        ("SEQ(A a, B+ b[]) WITHIN 9 RETURN DURATION(a, b) AS d", "does not support Kleene"),
        ("SEQ(A a, !N n, B b) WITHIN 9 RETURN DURATION(a, n) AS d", "n is negated"),
        ("SEQ(A a, B b) WITHIN 9 RETURN DURATION(a, c) AS d", "unknown variable c"),
        ("SEQ(A a, B b) WITHIN 9 RETURN DURATION(a, b) + 1 AS d", "depends on the world"),
        ("SEQ(A a, B b) WITHIN 9 RETURN DURATION(a, b, a) AS d", "DURATION takes an event, or two"),
        ("SEQ(A a, B b) WITHIN 9 RETURN DURATION(a, b) AS d, a.id AS d_mean", "would be called 'd_mean'"),
    ],
)
def test_wrong_queries(pattern: str, said: str) -> None:
    with pytest.raises(uc.UncertainCepError, match=said):
        uc.match(EVENTS, f"PATTERN {pattern}")


def test_other_ways_say_that_they_do_not_return_it() -> None:
    with pytest.raises(uc.QueryError, match="how long matches took"):
        list(uc.iter_matches(EVENTS, f"{QUERY} RETURN DURATION(a, b) AS took"))
