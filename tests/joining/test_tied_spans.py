"""Begins and ends that are tied are the spans that they make, against all pairs of their times."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc

BOUNDS = st.tuples(st.integers(0, 8), st.integers(0, 4)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def trace(*rows: tuple[str, int, int, Any], **more: Any) -> pa.Table:
    kinds, lower, upper, task = zip(*rows, strict=True)
    columns = {"type": kinds, "id": range(len(rows)), "lower": lower, "upper": upper, "task": task}
    return pa.table({name: pa.array(values) for name, values in (columns | more).items()})


def ticks(bounds: tuple[int, int]) -> range:
    return range(bounds[0], bounds[1] + 1)


@given(BOUNDS, BOUNDS, BOUNDS)
def test_a_point_in_a_span(begin: tuple[int, int], end: tuple[int, int], point: tuple[int, int]) -> None:
    """All pairs of times of which the end is not before the begin are alike likely."""
    events = trace(("Start", *begin, "x"), ("P", *point, None), ("End", *end, "x"))
    pairs = [(b, e) for b, e in product(ticks(begin), ticks(end)) if b <= e]
    if not pairs:
        with pytest.raises(uc.TraceError, match="row 1: what begins here ends in row 3, before it begins"):
            uc.spans(events, "Start", "End", by="task")
        return
    tasks = uc.spans(events, "Start", "End", by="task", type="Task")
    worlds = [b <= p <= e for (b, e), p in product(pairs, ticks(point))]
    expected = Fraction(sum(worlds), len(worlds))
    rows = uc.match(tasks, "PATTERN AND(Task t, P p) WHERE t CONTAINS p WITHIN 40").to_pylist()
    assert [row["confidence"] for row in rows] == ([pytest.approx(float(expected))] if expected else [])


def test_what_is_tied_and_what_stays() -> None:
    events = trace(
        ("Start", 0, 2, "x"), ("Start", 1, 2, "y"), ("End", 9, 9, "x"), ("Start", 3, 4, None),
        ("End", 8, 9, "z"), ("Start", 2, 2, "w"), ("Start", 5, 5, "w"), ("End", 7, 7, "w"), ("P", 4, 4, "x"),
        code=[None, 1, 7, 2, 3, 4, 5, 6, 8], mark=["a", "b", "c", *"defghi"],
    )  # fmt: skip
    said = (
        "of 5 begins and 3 ends, 4 and 2 have no partner by task, or several, and 0 have one by another clock"
    )
    with pytest.warns(uc.UncertainCepWarning, match=said):
        tied = uc.spans(events, "Start", "End", by="task")
    assert tied.column("id").to_pylist() == [0, 1, 3, 4, 5, 6, 7, 8]
    first, *points = tied.to_pylist()
    assert first == {
        "type": "Start", "id": 0, "lower": 0, "upper": 9, "task": "x", "code": 7, "mark": "a",
        "begin_lower": 0, "begin_upper": 2, "end_lower": 9, "end_upper": 9,
    }  # fmt: skip
    assert all(row["begin_lower"] is None and row["end_upper"] is None for row in points)
    assert [row["type"] for row in points] == ["Start", "Start", "End", "Start", "Start", "End", "P"]


def test_several_types_of_ends() -> None:
    events = trace(("S", 0, 2, 1), ("Map", 9, 11, 1), ("S", 0, 2, 2), ("Reduce", 9, 11, 2), ("T", 0, 2, 3))
    with pytest.warns(uc.UncertainCepWarning, match="of 3 begins and 2 ends, 1 and 0 have no partner"):
        tied = uc.spans(events, ("S", "T"), ("Map", "Reduce"), by="task")
    assert tied["type"].to_pylist() == ["S", "S", "T"]
    assert tied["end_lower"].to_pylist() == [9, 9, None]


def test_ends_by_another_clock_stay_points() -> None:
    clocks = {"source": ["a", "a", "a", "b"], "offset_lower": [-1] * 4, "offset_upper": [1] * 4}
    events = trace(("S", 0, 2, 1), ("E", 9, 11, 1), ("S", 0, 2, 2), ("E", 9, 11, 2), **clocks)
    with pytest.warns(uc.UncertainCepWarning, match="and 1 have one by another clock"):
        tied = uc.spans(events, "S", "E", by="task")
    assert tied.column("id").to_pylist() == [0, 2, 3]
    assert tied.column("end_lower").to_pylist() == [9, None, None]


@pytest.mark.parametrize("make", [lambda table: table.to_pandas(), pl.from_arrow, lambda table: table])
def test_frames_are_those_that_were_given(make: Any) -> None:
    frame = make(trace(("S", 0, 2, "x"), ("E", 9, 11, "x")))
    tied = uc.spans(frame, "S", "E", by=["task"])
    assert type(tied) is type(frame)
    assert isinstance(tied, pd.DataFrame | pl.DataFrame | pa.Table)
    assert len(tied) == 1
    assert uc.match(tied, "PATTERN SEQ(S s) WHERE DURATION(s) >= 8 WITHIN 20").shape[0] == 1


def test_keys_that_may_be_rounded() -> None:
    events = trace(("S", 0, 2, 2.0**53), ("E", 9, 11, 2.0**53))
    with pytest.warns(uc.UncertainCepWarning, match="column task is a key of floats beyond 2\\^53"):
        assert uc.spans(events, "S", "E", by="task").num_rows == 1
    wide = events.set_column(4, "task", pa.array([2**64 - 1] * 2, pa.uint64()))
    with pytest.raises(uc.TraceError, match="task"):
        uc.spans(wide, "S", "E", by="task")


def test_stamps_and_dictionaries() -> None:
    stamps = pa.array([0, 1_000_000, 9_000_000], pa.timestamp("us"))
    events = pa.table(
        {
            "type": pa.array(["S", "P", "E"]).dictionary_encode(), "id": [1, 2, 3], "lower": stamps,
            "upper": stamps, "task": pa.array(["x", None, "x"]).dictionary_encode(),
        }
    )  # fmt: skip
    tied = uc.spans(events, "S", "E", by="task", type="Task")
    query = "PATTERN AND(Task t, P p) WHERE t CONTAINS p WITHIN 1 min"
    assert uc.match(tied, query).column("confidence").to_pylist() == [1.0]


def test_keys_that_are_rounded_or_too_large() -> None:
    events = trace(("S", 0, 1, 2.0**54), ("E", 9, 9, 2.0**54))
    with pytest.warns(uc.UncertainCepWarning, match="column task is a key of floats beyond"):
        assert uc.spans(events, "S", "E", by="task").num_rows == 1
    large = trace(("S", 0, 1, 1), ("E", 9, 9, 1), code=pa.array([2**63, 2**63], pa.uint64()))
    with pytest.raises(uc.TraceError, match="column 'code'"):
        uc.spans(large, "S", "E", by="code")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"end": "S"}, "begin and end are both 'S'"),
        ({"end": ["E", "S"]}, "begin and end are both 'S'"),
        ({"end": []}, r"end=\[\]: it names types of events"),
        ({"end": 3}, "end=3: it names types of events"),
        ({"by": []}, "it names columns"),
        ({"by": 3}, "it names columns"),
        ({"by": "nosuch"}, "column 'nosuch': there is no such column"),
        ({"more": {"pmf": [[0.5, 0.5], None]}}, "has a pmf, which spans do not support yet"),
        ({"more": {"probability": [0.5, 1.0]}}, "may not have happened, which spans do not support yet"),
        ({"more": {"begin_lower": [1, 1]}}, "the events last already: they have a column begin_lower"),
    ],
)
def test_what_cannot_be_tied_is_refused(options: dict[str, Any], said: str) -> None:
    events = trace(("S", 0, 1, "x"), ("E", 9, 9, "x"), **options.get("more", {}))
    with pytest.raises((uc.OptionError, uc.TraceError), match=said):
        uc.spans(events, "S", options.get("end", "E"), by=options.get("by", "task"))
