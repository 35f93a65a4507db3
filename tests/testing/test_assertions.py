"""The assertions for users' tests: what passes, what fails, and what a failure shows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import uncertain_cep as uc
from uncertain_cep.testing import (
    Clock,
    Event,
    Query,
    assert_answer,
    assert_certain,
    assert_likely,
    assert_never,
    one,
    plus,
    seq,
    table,
)

EVENTS = [
    Event("A", 1, 0, 3, attributes={"k": "u"}),
    Event("B", 2, 2, 5, attributes={"k": "u"}),
    Event("B", 3, 9, 9, attributes={"k": "u"}),
    Event("A", 1, 4, 4, attributes={"k": "v"}),
    Event("B", 2, 3, 3, attributes={"k": "v"}),
]
TEXT = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 20"
QUERY = Query(seq(one("A", "a"), one("B", "b")), 20, agree=("k",))


@cache
def found() -> pa.Table:
    return uc.match(table(EVENTS), TEXT)


def failure(call: Callable[[], None]) -> str:
    with pytest.raises(AssertionError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("frame", [lambda held: held, pa.Table.to_pandas, pl.from_arrow])
def test_what_holds_passes(frame: Callable[[pa.Table], Any]) -> None:
    matches, events = frame(found()), frame(table(EVENTS))
    assert_certain(matches, events, a=1, b=3)
    assert_likely(matches, 13 / 16, events, b=2)
    assert_never(matches, events, a=2)
    assert_never(matches, events, k="v")


def test_of_several_matches_the_best_counts() -> None:
    assert_certain(found(), a=1)
    assert_likely(found(), 1)


def test_a_failure_shows_the_match_and_its_events() -> None:
    said = failure(lambda: assert_certain(found(), table(EVENTS), a=1, b=2))
    assert said.splitlines() == [
        "a = 1, b = 2 is not certain: the best match has probability 81.2%",
        "  k  a  b  range_lower  range_upper  confidence",
        "  u  1  2            0            5      0.8125",
        "when its events can have happened:",
        "  type  id  lower  upper",
        "  A      1      0      3  [===========================             ]",
        "  B      2      2      5  [             ===========================]",
    ]
    assert "does not have probability 0.9: the best match has 0.8125" in failure(
        lambda: assert_likely(found(), 0.9, b=2)
    )
    assert failure(lambda: assert_never(found(), b=3)).startswith("b = 3 is possible")


def test_without_a_match_the_events_asked_for_are_shown() -> None:
    said = failure(lambda: assert_likely(found(), 0.1, table(EVENTS), k="v", a=1, b=2))
    assert said.splitlines()[:2] == [
        "k = 'v', a = 1, b = 2: there is no such match",
        "when its events can have happened:",
    ]
    assert [line.split()[:4] for line in said.splitlines()[3:]] == [
        ["B", "2", "3", "3"],
        ["A", "1", "4", "4"],
    ]
    assert failure(lambda: assert_certain(found(), table(EVENTS), a=99)) == "a = 99: there is no such match"


def test_lists_of_ids_and_times_of_a_calendar() -> None:
    day = dt.datetime(2026, 1, 5, tzinfo=dt.UTC)
    stamps = [day + dt.timedelta(hours=hour) for hour in (0, 1, 2)]
    events = pa.table({"type": ["A", "A", "B"], "id": ["x", "y", "z"], "lower": stamps, "upper": stamps})
    matches = uc.match(events, "PATTERN SEQ(A+ a[], B b) WITHIN 1 day")
    assert_certain(matches, events, a=["x", "y"], b="z")
    assert_certain(matches, events, a=("x",))
    said = failure(lambda: assert_never(matches, events, a=["x", "y"]))
    assert "2026-01-05T01:00:00Z" in said
    days = events.set_column(2, "lower", events["lower"].cast(pa.date32()))
    days = days.set_column(3, "upper", days["lower"])
    assert failure(lambda: assert_never(matches, days, b="z")).count("=") == 1 + 3 * 40


def test_an_estimate_is_not_certain() -> None:
    estimated = found().append_column("exact", pa.array([False] * found().num_rows))
    assert "its confidence is an estimate" in failure(lambda: assert_certain(estimated, b=3))
    assert_likely(estimated, 1, b=3)


def test_more_matches_than_are_shown_are_counted() -> None:
    repeated = pa.concat_tables([found()] * 4)
    assert "... and 3 more" in failure(lambda: assert_never(repeated))


@pytest.mark.parametrize(
    ("said", "call"),
    [
        ("no column 'c': they have k, a, b", lambda: assert_never(found(), c=1)),
        ("no column confidence", lambda: assert_certain(found().drop_columns("confidence"))),
        ("at_least=0: it must be above 0", lambda: assert_likely(found(), 0)),
        ("at_least=2", lambda: assert_likely(found(), 2)),
        ("at_least=nan", lambda: assert_likely(found(), float("nan"))),
        ("a list is no frame of rows", lambda: assert_never([])),
        ("events have no column 'lower'", lambda: assert_never(found(), table(EVENTS).drop_columns("lower"))),
        ("matches have no column 'b'", lambda: assert_answer(found().drop_columns("b"), QUERY, EVENTS)),
        (
            "a variable is used twice",
            lambda: assert_answer(found(), Query(seq(one("A", "a"), one("B", "a")), 9), EVENTS[:2]),
        ),
    ],
)
def test_wrong_use_is_an_error_of_ours(said: str, call: Callable[[], None]) -> None:
    with pytest.raises(uc.OptionError, match=said):
        call()


def test_the_answer_is_that_of_the_possible_worlds() -> None:
    assert_answer(found(), QUERY, EVENTS)
    assert_answer(found().to_pandas(), QUERY, EVENTS)
    assert_answer(uc.match(table([]), TEXT.replace("WHERE [k] ", "")), Query(QUERY.pattern, 20), [])


def test_events_of_one_clock_move_together() -> None:
    host = Clock(-5, 5)
    events = [Event("A", 1, 5, 15, clock=host), Event("B", 2, 7, 17, clock=host), Event("B", 3, 4, 9)]
    matches = uc.match(table(events), TEXT.replace("WHERE [k] ", ""))
    assert_certain(matches, a=1, b=2)
    assert_answer(matches, Query(QUERY.pattern, 20), events)


def test_probabilities_to_have_happened_are_a_column() -> None:
    made = table([Event("A", 1, 0, 0, probability=Fraction(1, 2)), Event("A", 2, 0, 0)])
    assert made["probability"].to_pylist() == [0.5, 1.0]
    assert "probability" not in table(EVENTS).column_names


@pytest.mark.parametrize(
    "event",
    [
        Event("A", 1, 0, 1, clock=Clock(0, 1, (Fraction(1, 4), Fraction(3, 4)))),
        Event("A", 1, 0, 1, clock=Clock(0, 1, ordered=True)),
        Event("A", 1, 0, 1, sequence=2),
    ],
)
def test_what_only_the_oracle_knows_makes_no_table(event: Event) -> None:
    with pytest.raises(uc.OptionError, match="only the oracle knows"):
        table([event])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows[1:], "is missing: {'a': 1, 'b': "),
        (lambda rows: [*rows, rows[0]], "is none, or occurs twice"),
        (lambda rows: [rows[0], {**rows[1], "confidence": 0.5}], "should have range 0 to "),
        (lambda rows: [rows[0], {**rows[1], "range_lower": 1}], "should have range 0 to "),
    ],
)
def test_another_answer_is_told_with_the_events(change: Callable[[list[Any]], list[Any]], said: str) -> None:
    other = pa.Table.from_pylist(change(found().to_pylist()), found().schema)
    message = failure(lambda: assert_answer(other, QUERY, EVENTS))
    assert said in message
    assert message.count("[") == len(EVENTS)


def test_the_answer_with_lists_of_ids() -> None:
    events = [Event("A", 1, 0, 2), Event("A", 2, 1, 3), Event("B", 3, 4, 4)]
    matches = uc.match(table(events), "PATTERN SEQ(A+ a[], B b) WITHIN 9")
    assert_answer(matches, Query(seq(plus("A", "a"), one("B", "b")), 9), events)
