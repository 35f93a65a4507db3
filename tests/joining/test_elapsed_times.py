"""How long matches took, against all worlds of the events by exact fractions."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.moments import moments
from tests.cases.sampling import FEWER
from tests.cases.spans import SpanCase, span_cases

Laws = dict[tuple[int, ...], dict[int, Fraction]]

LENGTHS = [0, 1, 3]
SHARES = [0.25, 0.5, 0.9, 1.0]


def laws_of(case: SpanCase, of: tuple[str, str]) -> Laws:
    """Return for each match how likely it is with each time."""
    laws: Laws = {}
    for weight, world in case.worlds():
        for chosen in permutations(world, len(case.variables)):
            if case._span(world, chosen) is None:
                continue
            ticks = {name: world[event] for event, (name, _) in zip(chosen, case.variables, strict=True)}
            first, last = (ticks[time[0]][time.endswith("end")] for time in of)
            law = laws.setdefault(tuple(event.id for event in chosen), {})
            law[last - first] = law.get(last - first, Fraction()) + weight
    return {ids: {x: p for x, p in law.items() if p} for ids, law in laws.items() if sum(law.values())}


def at_most(law: dict[int, Fraction], length: int) -> Fraction:
    return sum((p for x, p in law.items() if x <= length), Fraction())


def mean_of(law: dict[int, Fraction]) -> float:
    return float(sum(x * p for x, p in law.items()) / sum(law.values()))


def check_quantile(law: dict[int, Fraction], share: float, answer: int) -> None:
    """Assert that a time is the first one up to which there is a share, but for rounding."""
    total = sum(law.values())
    assert at_most(law, answer) >= (Fraction(share) - Fraction(1, 10**8)) * total
    assert at_most(law, answer - 1) <= (Fraction(share) + Fraction(1, 10**8)) * total


@pytest.mark.parametrize("with_clocks", [False, True])
@pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")
@FEWER
@given(data=st.data())
def test_times_are_those_of_all_worlds(with_clocks: bool, data: st.DataObject) -> None:
    case = data.draw(span_cases(with_clocks=with_clocks))
    names = [name for name, _ in case.variables]
    ends = st.tuples(st.sampled_from(names), st.sampled_from(["begin", "end"])).map(".".join)
    of = data.draw(st.tuples(ends, ends))
    assume(of[0] != of[1])
    note(f"{case.text()}\n{case.events}\n{of}")
    laws = laws_of(case, of)
    options: dict[str, Any] = {"at_most": LENGTHS, "quantiles": SHARES}
    rows = uc.elapsed(case.table(), case.text(), of, **options).to_pylist()
    answers = {tuple(row[name] for name in names): row for row in rows}
    assert answers.keys() == laws.keys()
    for ids, row in answers.items():
        law = laws[ids]
        total = sum(law.values())
        assert math.isclose(row["confidence"], total, rel_tol=1e-9)
        assert (row["duration_lower"], row["duration_upper"]) == (min(law), max(law))
        assert row["mean"] == pytest.approx(mean_of(law), rel=1e-9, abs=1e-12)
        for length, value in zip(LENGTHS, row["at_most"], strict=True):
            assert value == pytest.approx(float(at_most(law, length) / total), rel=1e-9, abs=1e-12)
        for share, answer in zip(SHARES, row["quantiles"], strict=True):
            check_quantile(law, share, answer)
    returned = uc.match(case.table(), f"{case.text()} RETURN DURATION({of[0]}, {of[1]}) AS took").to_pylist()
    for row in returned:
        law = laws[tuple(row[name] for name in names)]
        assert (row["took_lower"], row["took_upper"]) == (min(law), max(law))
        assert row["took_mean"] == pytest.approx(mean_of(law), rel=1e-9, abs=1e-12)
    assert len(returned) == len(laws)
    check_groups(case, of, laws, uc.elapsed(case.table(), case.text(), of, by="type", **options))


def check_groups(case: SpanCase, of: tuple[str, str], laws: Laws, rows: pa.Table) -> None:
    """Assert that groups have the laws of matches that are drawn by confidence."""
    place = [name for name, _ in case.variables].index(of[0][0])
    types = {event.id: event.type for event in case.events}
    assert sorted(rows["type"].to_pylist()) == sorted({types[ids[place]] for ids in laws})
    for row in rows.to_pylist():
        group = [law for ids, law in laws.items() if types[ids[place]] == row["type"]]
        mixed: dict[int, Fraction] = {}
        for law in group:
            for x, p in law.items():
                mixed[x] = mixed.get(x, Fraction()) + p
        total = sum(mixed.values())
        assert math.isclose(row["matches"], total, rel_tol=1e-9)
        assert row["mean"] == pytest.approx(mean_of(mixed), rel=1e-9, abs=1e-12)
        for n, length in enumerate(LENGTHS):
            expected = at_most(mixed, length)
            assert row["expected"][n] == pytest.approx(float(expected), rel=1e-9, abs=1e-12)
            assert row["at_most"][n] == pytest.approx(float(expected / total), rel=1e-9, abs=1e-12)
            assert row["certain"][n] == sum(sum(law.values()) == 1 and max(law) <= length for law in group)
            assert row["possible"][n] == sum(min(law) <= length for law in group)
        for share, answer in zip(SHARES, row["quantiles"], strict=True):
            check_quantile(mixed, share, answer)


def test_worked_facts() -> None:
    events = moments([7, 8], [0, 3], [4, 6]).set_column(0, "type", pa.array(["A", "B"]))
    took = uc.elapsed(events, "PATTERN SEQ(A a, B b) WITHIN 20", ("a", "b"), at_most=[*range(1, 7)])
    (row,) = took.to_pylist()
    assert row["at_most"] == pytest.approx([n / 17 for n in (3, 7, 11, 14, 16, 17)])
    assert row["mean"] == pytest.approx(3)
    assert (row["confidence"], row["duration_lower"], row["duration_upper"]) == (pytest.approx(17 / 20), 1, 6)
    columns = {
        "begin_lower": [0, None],
        "begin_upper": [3, None],
        "end_lower": [2, None],
        "end_upper": [6, None],
    }
    spans = pa.table({"type": ["A", "P"], "id": [1, 2], "lower": [0] * 2, "upper": [6] * 2, **columns})
    laws = {"AND(A a, P p) WHERE a CONTAINS p": (70, [2, 8, 20, 36, 51, 63, 70])}
    laws["SEQ(A a)"] = (19, [2, 5, 9, 13, 16, 18, 19])
    for pattern, (ways, sums) in laws.items():
        of = ("a.begin", "a.end")
        (row,) = uc.elapsed(spans, f"PATTERN {pattern} WITHIN 20", of, at_most=[*range(7)]).to_pylist()
        assert row["at_most"] == pytest.approx([n / ways for n in sums])


def test_lengths_frames_and_what_is_kept() -> None:
    """SLO with stamps to the second: how many requests took more than 2 s?"""
    start = datetime(2026, 3, 1)
    second = timedelta(seconds=1)
    rows = [("Start", 1, 0, "h"), ("End", 2, 2, "h"), ("Start", 3, 5, "g"), ("End", 4, 9, "g")]
    types, ids, seconds, hosts = zip(*rows, strict=True)
    lower = pa.array([start + number * second for number in seconds], pa.timestamp("ms"))
    upper = pa.array(
        [start + number * second + 999 * second / 1000 for number in seconds], pa.timestamp("ms")
    )
    columns = {"type": types, "id": ids, "lower": lower, "upper": upper, "host": hosts}
    events = pa.table({name: pa.array(values) for name, values in columns.items()})
    query = "PATTERN SEQ(Start a, End b) WHERE [host] WITHIN 1 min HAVING CONFIDENCE >= 0.1"
    took = uc.elapsed(events, query, ("a", "b"), at_most=["2s", second * 4], tick="1ms")
    assert took.column_names == [
        "host", "a", "b", "confidence", "duration_lower", "duration_upper", "mean", "at_most", "quantiles",
    ]  # fmt: skip
    first, last = took.sort_by("a").to_pylist()
    assert (first["duration_lower"], first["duration_upper"]) == (
        timedelta(seconds=1.001),
        timedelta(seconds=2.999),
    )
    assert first["at_most"] == pytest.approx([0.5005, 1.0])
    assert last["at_most"] == pytest.approx([0.0, 0.5005])
    assert last["quantiles"][0] == timedelta(seconds=4)
    assert (first["mean"], last["mean"]) == (2 * second, 4 * second)
    groups = uc.elapsed(events, query, ["a", "b"], ["2s"], [], ["host"], tick="1ms")
    assert groups.column("certain").to_pylist() == [[0], [0]]
    assert sorted(groups.column("possible").to_pylist()) == [[0], [1]]
    assert isinstance(uc.elapsed(events.to_pandas(), query, ("a", "b")), pd.DataFrame)
    assert isinstance(uc.elapsed(pl.from_arrow(events), query, ("a", "b")), pl.DataFrame)
    nothing = uc.elapsed(events, query.replace("0.1", "1").replace("1 min", "1 ms"), ("a", "b"), at_most=[1])
    assert (nothing.num_rows, nothing.column_names) == (0, took.column_names)


def test_events_of_one_type_both_ways_round() -> None:
    events = moments([1, 2], [0, 2], [3, 6])
    events = events.set_column(0, "type", pa.array(["A", "A"]))
    rows = uc.elapsed(events, "PATTERN AND(A a, A b) WITHIN 20", ("a", "b"), quantiles=[0.5]).to_pylist()
    assert [(row["a"], row["duration_lower"], row["duration_upper"]) for row in rows] == [
        (1, -1, 6),
        (2, -6, 1),
    ]


@pytest.mark.parametrize(
    ("pattern", "options", "said"),
    [
        ("SEQ(A+ a[], B b)", {}, "a takes several"),
        ("SEQ(A a, !N n, B b)", {"of": ("a", "n")}, "name a variable of the pattern, a, b"),
        ("SEQ(A a, B b)", {"of": ("a.begin", "a.end")}, "a has no length: no event"),
        ("SEQ(A a, B b)", {"of": ("a", "c")}, "name a variable of the pattern, a, b"),
        ("SEQ(A a, B b)", {"of": ("a",)}, "it has two times"),
        ("SEQ(A a, B b)", {"quantiles": [0.0]}, "each is above 0 and at most 1"),
        ("SEQ(A a, B b)", {"quantiles": ["x"]}, "each is above 0 and at most 1"),
        ("SEQ(A a, B b)", {"of": "ab"}, "of='ab': it is a list"),
        ("SEQ(A a, B b)", {"of": ("a", 1)}, "it names two times"),
        ("SEQ(A a, B b)", {"of": ("a", "a")}, "it has two times"),
        ("SEQ(A a, B b)", {"at_most": ["2s"]}, "plain ticks of unknown length"),
        ("SEQ(A a, B b)", {"by": "rack"}, "rack"),
    ],
)
def test_wrong_calls(pattern: str, options: dict[str, Any], said: str) -> None:
    events = moments([1, 2], [0, 2], [3, 6]).set_column(0, "type", pa.array(["A", "B"]))
    arguments = {"of": ("a", "b"), **options}
    with pytest.raises(uc.UncertainCepError, match=said):
        uc.elapsed(events, f"PATTERN {pattern} WITHIN 20", **arguments)


def test_means_of_times_that_last_cost_no_ticks() -> None:
    """A moment at 20,000 is in the span: it begins on 0 .. 20,000 and ends on 60,000 .. 120,000, alike."""
    columns = {
        "begin_lower": [0, None], "begin_upper": [60_000, None], "end_lower": [60_000, None],
        "end_upper": [120_000, None],
    }  # fmt: skip
    bounds = {"lower": [0, 20_000], "upper": [120_000, 20_000]}
    spans = pa.table({"type": ["M", "P"], "id": [1, 2], **bounds, **columns})
    query = "PATTERN AND(M m, P p) WHERE p DURING m WITHIN 200000"
    (row,) = uc.elapsed(spans, query, ("m.begin", "m.end"), at_most=[80_000]).to_pylist()
    assert row["confidence"] == pytest.approx(20_001 / 60_001)
    assert (row["duration_lower"], row["duration_upper"]) == (40_000, 120_000)
    assert row["mean"] == pytest.approx(80_000)
    (row,) = uc.match(spans, f"{query} RETURN DURATION(m) AS took").to_pylist()
    assert row["took_mean"] == pytest.approx(80_000)


def test_laws_between_two_spans_cost_no_ticks() -> None:
    """A request lies in a span of 60,000 ticks: from the begin of the one to the end of the other."""
    columns = {
        "begin_lower": [0, 20_000], "begin_upper": [60_000, 40_000], "end_lower": [60_000, 50_000],
        "end_upper": [120_000, 70_000],
    }  # fmt: skip
    bounds = {"lower": [0, 20_000], "upper": [120_000, 70_000]}
    spans = pa.table({"type": ["M", "R"], "id": [1, 2], **bounds, **columns})
    query = "PATTERN AND(M m, R r) WHERE r DURING m WITHIN 200000"
    begin, end = np.arange(60_001), np.arange(50_000, 70_001)
    behind = np.concatenate(([0], np.cumsum(120_000 - np.maximum(end, 60_000) + 1)))
    ahead = np.maximum(40_001 - np.maximum(begin, 20_000), 0)

    def worlds(length: int) -> int:
        """Return in how many worlds the match takes no longer."""
        ends = np.clip(begin + length, 49_999, 70_000) - 49_999
        return int((ahead * behind[ends]).sum())

    total, shares = worlds(200_000), [0.1, 0.5, 0.9]
    options: dict[str, Any] = {"at_most": [30_000, 45_000], "quantiles": shares}
    (row,) = uc.elapsed(spans, query, ("m.begin", "r.end"), **options).to_pylist()
    everything = 60_001 * 20_001 * 20_001 * 60_001
    assert row["confidence"] == pytest.approx(total / everything, rel=1e-12)
    assert (row["duration_lower"], row["duration_upper"]) == (10_000, 70_000)
    assert row["at_most"] == pytest.approx([worlds(30_000) / total, worlds(45_000) / total], rel=1e-12)
    for share, length in zip(shares, row["quantiles"], strict=True):
        assert worlds(length - 1) < share * total <= worlds(length)
