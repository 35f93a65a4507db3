"""Suppression counts alerts that come soon behind one of their group that was told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from uncertain_cep.rule_sets.named_rules import Rules, suppression_of

QUERY = "PATTERN SEQ(A a) WITHIN 5 RETURN a.k AS k, a.n AS n"


def told_of(alerts: list[tuple[int, int, str | None]], length: int, by_key: bool) -> list[tuple[int, int]]:
    """Return the ids of the alerts (id, time, key) that are told, each with how many were not before it."""
    last: dict[Any, int] = {}
    left_out: dict[Any, int] = {}
    kept = []
    for number, time, key in sorted(alerts, key=lambda alert: (alert[1], alert[0])):
        group = key if by_key else None
        if group in last and time - last[group] < length:
            left_out[group] += 1
        else:
            kept.append((number, left_out.get(group, 0)))
            last[group], left_out[group] = time, 0
    return sorted(kept)


def suppressing(query: str, text: str) -> Rules:
    (rule,) = uc.rules({"r": query})
    return Rules([replace(rule, suppress=suppression_of(text))])


@given(
    times=st.lists(st.tuples(st.integers(-20, 20), st.sampled_from(["x", "y", None])), max_size=15),
    length=st.integers(0, 12),
    by_key=st.booleans(),
    data=st.data(),
)
def test_it_goes_by_the_end_of_ranges(
    times: list[tuple[int, str | None]], length: int, by_key: bool, data: st.DataObject
) -> None:
    ids = data.draw(st.permutations(range(len(times))))
    alerts = [(number, time, key) for number, (time, key) in zip(ids, times, strict=True)]
    trace = pa.table(
        {
            "type": pa.array(["A"] * len(times), pa.string()),
            "id": pa.array([alert[0] for alert in alerts], pa.int64()),
            # What counts is when a range ends.
            "lower": pa.array([alert[1] - alert[0] % 3 for alert in alerts], pa.int64()),
            "upper": pa.array([alert[1] for alert in alerts], pa.int64()),
            "k": pa.array([alert[2] for alert in alerts], pa.string()),
            "n": pa.array([1] * len(times), pa.int64()),
        }
    )
    rules = suppressing(QUERY, f"{length} ticks{' BY k, n' if by_key else ''}")
    if not alerts:
        return
    answer = uc.match(trace, rules)
    assert answer.column_names == [
        "rule",
        "a",
        "k",
        "n",
        "range_lower",
        "range_upper",
        "confidence",
        "suppressed",
    ]
    rows = sorted(zip(answer.column("a").to_pylist(), answer.column("suppressed").to_pylist(), strict=True))
    assert rows == told_of(alerts, length, by_key)
    assert len(rows) + sum(count for _, count in rows) <= len(alerts)


def test_lengths_of_time_are_those_of_the_events() -> None:
    stamps = pa.array([0, 500, 1000, 1500], pa.timestamp("ms"))
    trace = pa.table(
        {"type": ["A"] * 4, "id": range(4), "lower": stamps, "upper": stamps, "k": ["x"] * 4, "n": [0] * 4}
    )
    stamped = QUERY.replace("WITHIN 5", "WITHIN 5 s")
    answer = uc.match(trace, suppressing(stamped, "1 s"))
    assert answer.select(["a", "suppressed"]).to_pylist() == [
        {"a": 0, "suppressed": 0},
        {"a": 2, "suppressed": 1},
    ]
    plain = trace.set_column(2, "lower", pa.array(range(4))).set_column(3, "upper", pa.array(range(4)))
    with pytest.raises(uc.OptionError, match="rule 'r': suppress='1 s': the times are plain ticks"):
        uc.match(plain, suppressing(QUERY, "1 s"))


@pytest.mark.parametrize(
    ("query", "text", "said"),
    [
        (QUERY.replace("a.n AS n", "a.n AS suppressed"), "5", "has a column suppressed of its own"),
        ("PATTERN SEQ(A+ a[]) WITHIN 5", "5 BY a", "BY a: its values are lists"),
        (QUERY, "5 BY host", "suppress ... BY host: the result has no such column, but a, k, n, "),
        ("PATTERN SEQ(A a, B b) WITHIN 5 RETURN EXPECTED COUNT", "5", "only matches have"),
        ("PATTERN SEQ(A a, B b) WITHIN 5 RETURN PROBABILITY AS p EVERY 4 ticks", "5", "only matches have"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_apart_is_refused(query: str, text: str, said: str) -> None:
    trace = pa.table({"type": ["A"], "id": [1], "lower": [1], "upper": [1], "k": ["x"], "n": [1]})
    with pytest.raises(uc.OptionError, match=said):
        uc.match(trace, suppressing(query, text))


def test_names_of_columns_may_be_quoted() -> None:
    for text, names in (
        ("5 s by `a, b`,c", ("a, b", "c")),
        ("5 s BY `x BY y` , user name", ("x BY y", "user name")),
    ):
        assert suppression_of(text).by == names


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "5 s BY",
        "5 s BY a,",
        "5 s BY `a",
        "5 s BY `a` b",
        "5 s BY a,, b",
        "5 s BY a BY b",
        5,
        None,
        "-3 ticks",
    ],
)
def test_texts_that_say_nothing_are_refused(text: Any) -> None:
    with pytest.raises(uc.OptionError):
        suppression_of(text)
