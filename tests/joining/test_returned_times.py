"""``RETURN DURATION(a, b) AS took``: columns of matches, as ``uc.elapsed`` has them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.cli.conftest import Invoke
from tests.cli.conftest import invoke as invoke
from tests.rule_sets.test_rules_together import comparable, traces

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
        ("SEQ(A a, B+ b[]) WITHIN 9 RETURN DURATION(a, b) AS d", "b takes several"),
        ("SEQ(A a, B b) WITHIN 9 RETURN DURATION(a) AS d", "a has no length: no event"),
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


QUERIES = {
    "sequence": "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 9 RETURN DURATION(a, b) AS took",
    "three": "PATTERN SEQ(A a, B b, C c) WITHIN 12 RETURN DURATION(a, c) AS took, DURATION(b, c) AS rest",
    "set": "PATTERN AND(A a, B b) WHERE TIME(b) - TIME(a) >= a.v WITHIN 9 RETURN DURATION(a, b) AS took",
    "kept": "PATTERN SEQ(A a, B b) WITHIN 9 HAVING took_mean >= 3 RETURN b.v, DURATION(a, b) AS took",
    "negation": "PATTERN SEQ(A a, !C n, B b) WITHIN 9 RETURN DURATION(a, b) AS took",
    "next": "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) WITHIN 9 RETURN DURATION(a, b) AS took",
    "list": "PATTERN SEQ(A a, B+ b[], C c) WITHIN 9 RETURN DURATION(a, c) AS took",
    "alternatives": "PATTERN OR(SEQ(A a, B b), SEQ(A c, C d)) WITHIN 9 RETURN DURATION(a, b) AS took",
    "option": "PATTERN SEQ(A a, B? b, C c) WITHIN 9 RETURN DURATION(a, b) AS took, DURATION(a, c) AS rest",
    "of a type": "PATTERN SEQ(A a, A b) WITHIN 9 HAVING CONFIDENCE >= 0.3 RETURN DURATION(b, a) AS took",
}


def streamed(query: str, table: pa.Table, **options: Any) -> pa.Table:
    """Return the matches of a stream of events, two a call."""
    matcher = uc.IncrementalMatcher(query, table.schema, largest_interval=6, **options)
    parts = [matcher.push(table.slice(begin, 2)) for begin in range(0, table.num_rows, 2)]
    return pa.Table.from_batches([*parts, matcher.close()])


@pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")
@FEWER
@given(trace=traces(), name=st.sampled_from(sorted(QUERIES)))
def test_every_way_returns_the_same(trace: pa.Table, name: str) -> None:
    query, table = QUERIES[name], trace.sort_by("lower")
    # So that clocks leave times of their own.
    table = table.set_column(3, "upper", pc.add(table["upper"], 2))
    expected = uc.match(table, query)
    answers = {
        "batches": pa.Table.from_batches(uc.iter_matches(table, query, batch_rows=2), expected.schema),
        "ordered": uc.match(table, f"{query} ORDER BY took_mean LIMIT 100"),
        "stream": streamed(query, table),
        "slices": streamed(query, table, slice_length=3),
        "rules": uc.match(table, uc.rules({"slow": query})).drop_columns("rule"),
    }
    for way, answer in answers.items():
        assert answer.column_names == expected.column_names, way
        assert comparable(answer) == comparable(expected), way
    if name in ("sequence", "set"):
        took = uc.elapsed(table, query.partition(" RETURN ")[0], ("a", "b"), quantiles=())
        means = {(row["a"], row["b"]): row["mean"] for row in took.to_pylist()}
        for row in expected.to_pylist():
            assert row["took_mean"] == pytest.approx(means[row["a"], row["b"]], rel=1e-9, abs=1e-12)


def test_the_best_are_chosen_first() -> None:
    query = f"{QUERY} RETURN DURATION(a, b) AS took"
    (best,) = uc.match(EVENTS, f"{query} ORDER BY CONFIDENCE DESC LIMIT 1").to_pylist()
    assert (best["a"], best["took_mean"]) == ("x", 8.0)
    short = query.replace("RETURN", "HAVING took_upper <= 6 RETURN")
    rows = uc.match(EVENTS, f"{short} ORDER BY took_mean DESC").to_pylist()
    assert [row["a"] for row in rows] == ["w"]
    apart = uc.match(EVENTS, f"{query} OUTPUT NON OVERLAPPING")
    assert sorted(apart["took_mean"].to_pylist()) == pytest.approx([3.0, 8.0])


def test_lengths_are_not_estimated() -> None:
    """Whether a length is possible is not drawn: of rare ones no draw would tell."""
    lower, uncertainty = np.array([0, 3, 55, 100, 203, 310]), 3_000
    table = pa.table(
        {
            "type": list("ACEBDF"),
            "id": range(6),
            "lower": lower - uncertainty,
            "upper": lower + uncertainty + 5,
            "source": list("xyzxyz"),
            "offset_lower": [-uncertainty] * 6,
            "offset_upper": [uncertainty] * 6,
        }
    )
    query = "PATTERN SEQ(A a, C c, E e, B b, D d, F f) WITHIN 20000"
    assert uc.match(table, query, approximate=0.01).num_rows == 1
    with pytest.raises(uc.ConfidenceCostError, match="clocks x, y, z"):
        uc.match(table, f"{query} RETURN a, DURATION(a, c) AS took", approximate=0.01)


def test_commands_write_it(invoke: Invoke, tmp_path: Path) -> None:
    """The columns are in files, and the page of a report has them."""
    query = f"{QUERY} RETURN DURATION(a, b) AS took"
    expected = uc.match(EVENTS, query)
    trace, out, page = (str(tmp_path / name) for name in ("trace.parquet", "rows.parquet", "page.html"))
    pq.write_table(EVENTS, trace)
    assert invoke("match", query, trace, "-o", out).exit_code == 0
    assert comparable(pq.read_table(out)) == comparable(expected)
    done = invoke("report", query, trace, "-o", page)
    assert done.exit_code == 0, done.stderr
    assert "took_mean" in Path(page).read_text()
