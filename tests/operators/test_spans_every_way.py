"""Events that last, by every way that takes them: the answer is the same, or an error says what is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.cases.spans import SpanCase, span_cases
from uncertain_cep.plan import PLANNERS

pytestmark = pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")

QUERIES: Final = {
    "sequence": "SEQ(A a, B b) WHERE DURATION(a) <= 5",
    "keys": "SEQ(A a, B b) WHERE [key]",
    "relation": "AND(A a, B b) WHERE a OVERLAPS b AND TIME(b.end) >= 10",
    "negation": "SEQ(A a, !N n, B b)",
    "beside a set": "AND(A a, !N n) WHERE n OVERLAPS a",
    "alternatives": "SEQ(A a, OR(B b, N n))",
}  # fmt: skip


def tasks(count: int = 40) -> pa.Table:
    """Return events by begin and length, some of them moments, without the columns of ends."""
    draw = np.random.default_rng(3)
    begin, length = draw.integers(0, 90, count), draw.integers(0, 6, count)
    last, longest = begin + draw.integers(1, 4, count), length + draw.integers(0, 3, count)
    is_moment = draw.random(count) < 0.3
    bounds = {"begin_lower": begin, "begin_upper": last, "length_lower": length, "length_upper": longest}
    return pa.table(
        {
            "type": draw.choice(["A", "B", "N"], count).tolist(),
            "id": list(range(count)),
            "key": draw.integers(0, 3, count),
            "lower": begin,
            "upper": last + longest,
            **{name: pa.array(values, mask=is_moment) for name, values in bounds.items()},
        }
    )


def rows(table: Any) -> list[tuple[Any, ...]]:
    """Return matches in one order, with confidences rounded."""
    frame = pa.table(table) if isinstance(table, pa.Table) else pa.Table.from_pandas(pd.DataFrame(table))
    kept = [
        (*(None if value != value else value for value in row.values()),)
        for row in frame.select([name for name in frame.column_names if name != "confidence"]).to_pylist()
    ]
    confidences = [round(value, 9) for value in frame["confidence"].to_pylist()]
    return sorted(((*key, value) for key, value in zip(kept, confidences, strict=True)), key=repr)


@pytest.mark.parametrize("name", QUERIES)
def test_threads_batches_and_options(name: str) -> None:
    events = tasks()
    query = f"PATTERN {QUERIES[name]} WITHIN 30"
    answer = rows(uc.match(events, query))
    assert len(answer) > 5
    assert rows(uc.match(events, query, threads=3)) == answer
    batches = list(uc.iter_matches(events, query, batch_rows=3))
    assert rows(pa.Table.from_batches(batches)) == answer
    order = np.random.default_rng(0).permutation(events.num_rows)
    assert rows(uc.match(events.take(pa.array(order)), query)) == answer
    for planner in PLANNERS:
        assert rows(uc.match(events, query, planner=planner)) == answer
    early = rows(uc.match(events, query, known_until=20))
    assert early == answer if "!" not in query else {*early} <= {*answer} and early != answer
    for evaluation in ("any_state", "selectivity", "point"):
        with pytest.raises(uc.OptionError, match=f"evaluation='{evaluation}'"):
            uc.match(events, query, evaluation=evaluation)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_kinds_of_frames_and_units_of_time(unit: str) -> None:
    events = tasks()
    query = f"PATTERN {QUERIES['relation'].replace('>= 10', '- TIME(a.end) <= 4 seconds')} WITHIN 30 seconds"
    plain = rows(uc.match(events, query.replace(" seconds", "")))
    start = datetime(2026, 1, 5, tzinfo=UTC)
    stamps = events
    for name in ("lower", "upper", "begin_lower", "begin_upper"):
        values = [None if v is None else start + timedelta(seconds=v) for v in events[name].to_pylist()]
        column = pa.array(values, pa.timestamp("us", "UTC")).cast(pa.timestamp(unit, "UTC"))
        stamps = stamps.set_column(stamps.schema.get_field_index(name), name, column)
    for name in ("length_lower", "length_upper"):
        lengths = [None if v is None else timedelta(seconds=v) for v in events[name].to_pylist()]
        column = pa.array(lengths, pa.duration("us")).cast(pa.duration(unit))
        stamps = stamps.set_column(stamps.schema.get_field_index(name), name, column)
    answer = uc.match(stamps, query, tick="1s")
    of_times = answer.to_pylist()
    assert len(plain) == len(of_times) > 5
    for (a, b, low, high, confidence), row in zip(
        sorted(plain), sorted(of_times, key=lambda row: (row["a"], row["b"])), strict=True
    ):
        assert (row["a"], row["b"]) == (a, b)
        assert row["range_lower"] == start + timedelta(seconds=low)
        assert row["range_upper"] == start + timedelta(seconds=high)
        assert row["confidence"] == pytest.approx(confidence, rel=1e-8)
    if unit != "s":
        return
    frame = events.to_pandas().astype({name: "Int64" for name in events.column_names if "_" in name})
    pandas = uc.match(frame, query.replace(" seconds", ""))
    assert isinstance(pandas, pd.DataFrame)
    assert rows(pa.Table.from_pandas(pandas, preserve_index=False)) == plain
    polars = uc.match(pl.from_arrow(events), query.replace(" seconds", ""))
    assert isinstance(polars, pl.DataFrame)
    assert rows(polars.to_arrow()) == plain


@FEWER
@given(case=span_cases(spare=2), share=st.sampled_from([0.0, 0.25, 0.5, 1.0]), best=st.integers(1, 3))
def test_having_the_best_and_those_that_do_not_overlap(case: SpanCase, share: float, best: int) -> None:
    note(f"{case.text()}\n{case.events}")
    table, expected = case.table(), case.answer()
    names = [name for name, _ in case.variables]

    def key(row: dict[str, Any]) -> tuple[int, ...]:
        return tuple(row[name] for name in names)

    limit = max((p for *_, p in expected.values()), default=1) * int(share * 4) / 4
    kept = {ids for ids, (_, _, p) in expected.items() if p >= limit}
    having = uc.match(table, case.text(f"HAVING CONFIDENCE >= {float(limit)!r}")).to_pylist()
    assert {key(row) for row in having} == kept
    ranked = sorted(expected, key=lambda ids: (-round(float(expected[ids][2]), 12), ids))
    first = uc.match(table, case.text(f"ORDER BY CONFIDENCE DESC LIMIT {best}")).to_pylist()
    assert [key(row) for row in first] == ranked[:best]
    disjoint: list[tuple[int, ...]] = []
    for ids in ranked:
        low, high, _ = expected[ids]
        if all(high < expected[other][0] or expected[other][1] < low for other in disjoint):
            disjoint.append(ids)
    output = uc.match(table, case.text("OUTPUT NON OVERLAPPING")).to_pylist()
    assert {key(row) for row in output} == {*disjoint}


def test_events_of_matches_and_matches_as_events() -> None:
    events = tasks()
    query = f"PATTERN {QUERIES['relation']} WITHIN 30"
    matches = uc.match(events, query)
    long = uc.events_of(matches, events, query)
    assert long.column_names == ["match", "variable", "position", *events.column_names]
    by_match = zip(*(long[name].to_pylist() for name in ("match", "variable", "id")), strict=True)
    expected = [
        (number, name, row[name]) for number, row in enumerate(matches.to_pylist()) for name in ("a", "b")
    ]
    assert list(by_match) == expected
    whole = {row["id"]: row for row in events.to_pylist()}
    assert all(
        {name: row[name] for name in events.column_names} == whole[row["id"]] for row in long.to_pylist()
    )
    both = uc.with_matches(events, matches, "Both")
    again = uc.match(both, "PATTERN SEQ(Both o, N n) WITHIN 20")
    assert again.num_rows
    ends = {row["id"]: row["upper"] for row in both.to_pylist() if row["type"] == "Both"}
    assert all(row["o"] in ends for row in again.to_pylist())
    assert all(earlier < later for earlier, later in pairwise(sorted(ends)))
