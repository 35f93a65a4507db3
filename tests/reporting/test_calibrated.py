"""Calibration: which answers happened, against the oracle's world, and the sums of bins."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.clocks import by_clocks
from tests.cases.existence import doubtful
from tests.cases.grouped import Grouping, groupings
from tests.cases.language import language_cases
from tests.cases.options import option_cases
from tests.cases.sampling import FEWER
from uncertain_cep.errors import OptionError

KINDS: dict[str, st.SearchStrategy[Any]] = {
    "language": language_cases(most=4),
    "skip till next": language_cases("skip_till_next_match", most=4),
    "options": option_cases(most=4),
    "doubtful clocks": doubtful(by_clocks(language_cases(most=4))),
}
EVENTS = pa.table(
    {
        "type": ["A", "B", "A", "B"],
        "id": [1, 2, 3, 4],
        "task": ["x", "x", "y", "y"],
        "lower": [0, 4, 20, 20],
        "upper": [9, 4, 29, 27],
        "true_time": [2, 4, 27, 26],
    }
)
QUERY = "PATTERN SEQ(A a, B b) WHERE [task] WITHIN 20"


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data())
def test_groups_that_happened_are_those_of_the_world(kind: str, data: st.DataObject) -> None:
    case = data.draw(KINDS[kind])
    grouping: Grouping = data.draw(groupings(case.query()))
    events, times = case.trace.events, []
    for event in events:
        happened = event.probability == 1 or (event.probability > 0 and data.draw(st.booleans()))
        times.append(data.draw(st.integers(event.lower, event.upper)) if happened else None)
    table = case.trace.table().append_column("true_time", pa.array(times, pa.int64()))
    text = case.text(grouping.clause)
    note(f"{text}\n{table.to_pydict()}")
    rows = uc.match(table.drop_columns("true_time"), text)
    result = uc.calibration(rows, "true_time", events=table, query=text)
    certain = tuple(
        replace(event, lower=time, upper=time, pmf=None, clock=None, sequence=None, probability=Fraction(1))
        for event, time in zip(events, times, strict=True)
        if time is not None
    )
    there = grouping.answer(replace(case, trace=replace(case.trace, events=certain)))
    assert all(probability == 1 for probability in there.values())
    keys = [(tuple(row[name] for name in grouping.by), row.get("bucket")) for row in rows.to_pylist()]
    assert result.happened == sum(key in there for key in keys)
    assert result.missing == len(there) - result.happened
    assert result.said == pytest.approx(sum(rows["probability"].to_pylist()))
    assert result.outside == 0


def test_all_forms_of_truth_say_the_same() -> None:
    matches = uc.match(EVENTS.drop_columns("true_time"), QUERY)
    certain = EVENTS.set_column(3, "lower", EVENTS["true_time"]).set_column(4, "upper", EVENTS["true_time"])
    happened = [True, False]
    forms: list[Any] = [
        uc.match(certain, QUERY), uc.match(certain.to_pandas(), QUERY), happened, tuple(happened),
        np.array(happened), pd.Series(happened), pl.Series(happened), pa.array(happened),
    ]  # fmt: skip
    expected = uc.calibration(matches, "true_time", events=EVENTS, query=QUERY)
    assert (expected.happened, expected.missing, expected.outside) == (1, 0, 0)
    for truth in forms:
        result = uc.calibration(matches, truth)
        assert result.bins.equals(expected.bins)
        assert (result.sentence, result.missing) == (expected.sentence, 0)
    with_column = matches.append_column("came", pa.array(happened))
    assert uc.calibration(with_column, "came").bins.equals(expected.bins)


@pytest.mark.parametrize("frame", [pa.Table.to_pandas, pl.from_arrow])
def test_bins_are_of_the_library_of_the_matches(frame: Any) -> None:
    result = uc.calibration(frame(uc.match(EVENTS, QUERY)), [True, False])
    assert type(result.bins) is type(frame(EVENTS))


def test_bins() -> None:
    confidence = [0.0, 0.25, 0.25, 0.35, 1.0, None]
    rows = pa.table({"confidence": confidence, "host": ["u", "u", "u", "v", None, "v"]})
    happened = [False, True, True, False, True, True]
    result = uc.calibration(rows, happened, bins=4)
    assert result.count == 5
    assert result.said == pytest.approx(1.85)
    assert result.happened == 3
    assert result.brier == pytest.approx((2 * 0.75**2 + 0.35**2) / 5)
    low, middle, high = result.bins.to_pylist()
    assert low == {"lower": 0, "upper": 0.25, "answers": 1, "said": 0, "happened": 0, "std_error": 0}
    assert middle["happened"] == pytest.approx(2 / 3)
    assert middle["std_error"] == pytest.approx(math.sqrt(2 * 0.75**2 + 0.35**2) / 3)
    assert (high["lower"], high["upper"], high["happened"]) == (0.75, 1.0, 1.0)
    by_host = uc.calibration(rows, happened, bins=4, by="host").bins.to_pylist()[1]
    assert by_host["std_error"] == pytest.approx(math.sqrt(1.5**2 + 0.35**2) / 3)


def test_answers_that_happened_and_are_not_there_are_counted_and_so_are_times_outside() -> None:
    events = EVENTS.set_column(5, "true_time", pa.array([2, 4, 21, 40]))
    first = f"{QUERY} LIMIT 1"
    result = uc.calibration(uc.match(EVENTS, first), "true_time", events=events, query=first)
    assert (result.count, result.missing, result.outside) == (1, 1, 1)


def test_without_answers() -> None:
    result = uc.calibration(uc.match(EVENTS.slice(0, 1), QUERY), [])
    assert (result.count, result.happened, repr(result)) == (0, 0, "There is no answer to judge.")
    assert math.isnan(result.brier)


def test_a_probability_of_another_name() -> None:
    query = f"{QUERY} RETURN PROBABILITY AS p BY a"
    result = uc.calibration(uc.match(EVENTS, query), "true_time", events=EVENTS, query=query)
    assert (result.count, result.happened) == (2, 1)


MATCHES = uc.match(EVENTS, QUERY)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"truth": [True]}, "truth has 1 values, and there are 2 matches"),
        ({"truth": [True, None]}, "true or false for each row"),
        ({"truth": "came"}, "the matches have no column came"),
        ({"truth": pa.table({"z": [1]})}, "share no column that names events"),
        ({"truth": pa.concat_tables([MATCHES, MATCHES])}, "two rows are the same by"),
        ({"truth": [True, False], "bins": 0}, "bins=0"),
        ({"truth": [True, False], "by": "host"}, "no column host"),
        ({"truth": "true_time", "events": EVENTS}, "events and the query"),
        ({"truth": "at", "events": EVENTS, "query": QUERY}, "the events have no column at"),
        ({"truth": [True, False], "events": EVENTS, "query": QUERY}, "the name of their column"),
        (
            {"truth": "true_time", "events": EVENTS, "query": f"{QUERY} RETURN EXPECTED COUNT"},
            "expected counts",
        ),
    ],
)
def test_errors(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        uc.calibration(MATCHES, **arguments)
