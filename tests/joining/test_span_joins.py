"""Joins of events that last, against all worlds of the events by exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.lasting_trace import trace as trace_of_spans
from tests.cases.sampling import FEWER
from tests.cases.spans import RELATIONS, Lasting, Pair, _events, events_table
from tests.cli.conftest import Invoke
from tests.cli.conftest import invoke as invoke
from tests.joining.sides import traces
from tests.joining.test_join_asof import partners


def near(ticks: int) -> Callable[[Pair, Pair], bool]:
    """Return whether at most so many ticks are between the end of one and the begin of the other."""
    return lambda x, y: x[0] - y[1] <= ticks and y[0] - x[1] <= ticks


WHENS = {**{name.lower(): holds for name, holds in RELATIONS.items()}, "within 2": near(2)}


@st.composite
def sides(draw: st.DrawFn) -> tuple[list[Lasting], list[Lasting], dict[str, Pair]]:
    """Draw the events of both sides, and the clocks of their events."""
    clocks: dict[str, Pair] = {"g": (0, 1), "h": (-1, 1)} if draw(st.booleans()) else {}
    names = [None, *clocks]
    parts = []
    for largest in (2, 3):
        count = draw(st.integers(1, largest))
        kinds = [draw(st.sampled_from("SSP")) for _ in range(count)]
        parts.append([draw(_events(kind, k, names, with_laws=not clocks)) for k, kind in enumerate(kinds)])
    return parts[0], parts[1], clocks


def pair_weights(events: list[Lasting], clocks: dict[str, Pair]) -> list[tuple[Fraction, tuple[Pair, ...]]]:
    """Return the begins and ends that events can have together, and how likely these are if all happened."""
    worlds = []
    names = sorted({event.clock for event in events if event.clock})
    for offsets in product(*(range(clocks[name][0], clocks[name][1] + 1) for name in names)):
        moved = dict(zip(names, offsets, strict=True))
        share = Fraction(1, math.prod(clocks[name][1] - clocks[name][0] + 1 for name in names))
        for choice in product(*(event.law().items() for event in events)):
            weight, ticks = share, []
            for event, (pair, likely) in zip(events, choice, strict=True):
                by = moved[event.clock] if event.clock else 0
                weight *= likely
                ticks.append((pair[0] + by, pair[1] + by))
            worlds.append((weight, tuple(ticks)))
    return worlds


@FEWER
@given(sides(), st.sampled_from([*WHENS]), st.booleans())
def test_pairs_are_those_of_all_worlds(
    trace: tuple[list[Lasting], list[Lasting], dict[str, Pair]], when: str, with_none: bool
) -> None:
    left, right, clocks = trace
    expected: dict[tuple[int, int | None], Fraction] = {}
    for row, event in enumerate(left):
        for r, other in enumerate(right):
            for weight, ticks in pair_weights([event, other], clocks):
                if WHENS[when](*ticks):
                    pair = weight * event.probability * other.probability
                    expected[row, r] = expected.get((row, r), Fraction()) + pair
        if with_none:
            alone = Fraction()
            for share, (first, *spans) in pair_weights([event, *right], clocks):
                for other, span in zip(right, spans, strict=True):
                    share *= 1 - other.probability if WHENS[when](first, span) else 1
                alone += share * event.probability
            if alone:
                expected[row, None] = alone
    how = "left" if with_none else "inner"
    joined = uc.join(
        events_table(tuple(left), clocks), events_table(tuple(right), clocks), when=when, how=how
    )
    answers = {(row["left_id"], row["right_id"]): row["probability"] for row in joined.to_pylist()}
    assert answers.keys() == expected.keys()
    for ids, exact in expected.items():
        assert math.isclose(answers[ids], exact, rel_tol=1e-9), ids


@given(traces(), st.sampled_from([*WHENS]))
def test_moments_are_spans_of_no_length(trace: Any, when: str) -> None:
    """A side of moments gives the same rows if the other one could last."""
    left, right, _ = trace
    bounds = [[event.begin, event.begin + len(event.weights) - 1] for event in (*left, *right)]
    tables = []
    for side in (bounds[: len(left)], bounds[len(left) :]):
        lower, upper = zip(*side, strict=True)
        columns = {"type": ["E"] * len(side), "id": range(len(side)), "lower": lower, "upper": upper}
        tables.append(pa.table({name: pa.array(values) for name, values in columns.items()}))
    nulls = {name: pa.nulls(len(left), pa.int64()) for name in ("begin_lower", "begin_upper")}
    nulls |= {name: pa.nulls(len(left), pa.int64()) for name in ("end_lower", "end_upper")}
    could_last = tables[0]
    for name, column in nulls.items():
        could_last = could_last.append_column(name, column)
    joined = [
        uc.join(table, tables[1], when=when, how="left").to_pylist() for table in (tables[0], could_last)
    ]
    assert [{**row, "probability": 0} for row in joined[0]] == [
        {**row, "probability": 0} for row in joined[1]
    ]
    for row, other in zip(*joined, strict=True):
        assert row["probability"] == pytest.approx(other["probability"], rel=1e-9)


@FEWER
@given(
    sides(),
    st.sampled_from(["backward", "forward", "nearest"]),
    st.tuples(st.sampled_from([0, 1]), st.sampled_from([None, 0, 1, 3]), st.sampled_from(["one", "all"])),
    st.tuples(st.sampled_from(["begin", "end"]), st.sampled_from(["begin", "end"])),
)
def test_partners_at_ends_are_those_of_all_worlds(
    trace: tuple[list[Lasting], list[Lasting], dict[str, Pair]],
    direction: str,
    rules: tuple[int, int | None, str],
    at: tuple[str, str],
) -> None:
    left, right, clocks = trace
    ends = [end == "end" for end in at]
    expected: dict[tuple[int, int | None], Fraction] = {}
    for row, event in enumerate(left):
        for weight, (pair, *pairs) in pair_weights([event, *right], clocks):
            for happened in product((True, False), repeat=len(right)):
                share = weight * event.probability
                for other, did in zip(right, happened, strict=True):
                    share *= other.probability if did else 1 - other.probability
                there = {r: ticks[ends[1]] for r, ticks in enumerate(pairs) if happened[r]}
                for partner in partners(pair[ends[0]], there, direction, *rules) if share else ():
                    expected[row, partner] = expected.get((row, partner), Fraction()) + share
    tables = events_table(tuple(left), clocks), events_table(tuple(right), clocks)
    gap, tolerance, ties = rules
    options: dict[str, Any] = {"tolerance": tolerance, "ties": ties, "left_at": at[0], "right_at": at[1]}
    try:
        joined = uc.join_asof(*tables, direction=direction, allow_exact_matches=not gap, **options)
    except uc.OptionError:
        assert direction == "nearest"
        return
    answers = {(row["left_id"], row["right_id"]): row["probability"] for row in joined.to_pylist()}
    assert answers.keys() == expected.keys()
    for ids, exact in expected.items():
        assert math.isclose(answers[ids], exact, rel_tol=1e-9), ids


@FEWER
@given(sides(), st.sampled_from(["overlaps", "contains", "within 2"]), st.integers(0, 9))
def test_drawn_worlds_have_pairs_and_times_that_are_possible(
    trace: tuple[list[Lasting], list[Lasting], dict[str, Pair]], when: str, seed: int
) -> None:
    """Pairs are those of the join, certain ones in each world; elapsed times are within their bounds."""
    left, right, clocks = trace
    events = [replace(event, type="L", id=n) for n, event in enumerate(left)]
    events += [replace(event, type="R", id=10 + n) for n, event in enumerate(right)]
    both = events_table(tuple(events), clocks)

    def side(table: pa.Table, name: str) -> pa.Table:
        return table.filter(pc.equal(table["type"], name))

    pairs = {
        (row["left_id"], row["right_id"]): row["probability"]
        for row in uc.join(side(both, "L"), side(both, "R"), when=when).to_pylist()
    }
    query, ends = "PATTERN AND(L l, R r) WITHIN 1000", ("l.begin", "r.end")
    took = {(row["l"], row["r"]): row for row in uc.elapsed(both, query, ends, quantiles=()).to_pylist()}
    for world in uc.draw_worlds(both, 3, seed):
        rows = uc.join(side(world, "L"), side(world, "R"), when=when).to_pylist()
        there = {(row["left_id"], row["right_id"]) for row in rows}
        assert {ids for ids, p in pairs.items() if p >= 1 - 1e-9} <= there <= pairs.keys()
        for row in uc.elapsed(world, query, ends, quantiles=()).to_pylist():
            bounds = took[row["l"], row["r"]]
            assert bounds["duration_lower"] <= row["mean"] <= bounds["duration_upper"]
            assert row["duration_lower"] == row["duration_upper"] == row["mean"]


@pytest.mark.parametrize("arguments", [["--when", "overlaps", "--how", "left"], ["--asof", "backward"]])
def test_the_command_joins_spans_as_python_does(invoke: Invoke, tmp_path: Path, arguments: list[str]) -> None:
    options = {"how": "left"} if "--how" in arguments else {"direction": "backward"}
    function: Any = uc.join if "--how" in arguments else uc.join_asof
    places = []
    for seed in (1, 2):
        places.append(str(tmp_path / f"{seed}.parquet"))
        pq.write_table(trace_of_spans(30, seed=seed, clocks=True), places[-1])
    out = tmp_path / "rows.parquet"
    done = invoke("join", *places, "--on", "key", *arguments, "-o", out)
    assert done.exit_code == 0, done.stderr
    on = {"on": "key"} if "--how" in arguments else {"by": "key"}
    assert pq.read_table(out).equals(function(*map(pq.read_table, places), **on, **options))


def test_no_rows_join_with_no_rows() -> None:
    """Of spans, too, at either end."""
    spans = trace_of_spans(4, seed=1)
    for left, right in ((spans.slice(0, 0), spans.slice(0, 0)), (spans, spans.slice(0, 0))):
        assert uc.join_asof(left, right).num_rows == left.num_rows
        assert uc.join_asof(right, left).num_rows == 0


def test_the_last_average_before_a_task() -> None:
    """Averages of a minute end with their stamp; a task of 10 s begins within 20 s."""
    minutes = [60 * n for n in range(4)]
    load = pa.table(
        {"type": ["Cpu"] * 4, "id": [0, 1, 2, 3], "lower": [n - 59 for n in minutes], "upper": minutes}
    )
    for name, values in (("begin", [n - 59 for n in minutes]), ("end", minutes)):
        load = load.append_column(f"{name}_lower", pa.array(values))
        load = load.append_column(f"{name}_upper", pa.array(values))
    task = pa.table({"type": ["Task"], "id": ["t"], "lower": [110], "upper": [139]})
    for name, bounds in (("begin", (110, 129)), ("length", (10, 10))):
        for side, value in zip(("lower", "upper"), bounds, strict=True):
            task = task.append_column(f"{name}_{side}", pa.array([value]))
    rows = uc.join_asof(task, load, direction="nearest").to_pylist()
    assert [(row["right_id"], row["probability"]) for row in rows] == [(2, pytest.approx(1.0))]
    rows = uc.join_asof(task, load).to_pylist()
    assert [(row["right_id"], row["probability"]) for row in rows] == [(1, 0.5), (2, 0.5)]
    rows = uc.join_asof(task, load, left_at="end").to_pylist()
    assert [(row["right_id"], row["probability"]) for row in rows] == [(2, pytest.approx(1.0))]


def test_worked_facts() -> None:
    columns = {"length_lower": [3], "length_upper": [3]}
    left = pa.table(
        {
            "type": ["L"],
            "id": [1],
            "lower": [0],
            "upper": [7],
            "begin_lower": [0],
            "begin_upper": [4],
            **columns,
        }
    )
    right = pa.table(
        {
            "type": ["R"] * 2, "id": [2, 3], "lower": [5] * 2, "upper": [10] * 2, "begin_lower": [5] * 2,
            "begin_upper": [9] * 2, "length_lower": [1] * 2, "length_upper": [1] * 2, "load": [0.5, 0.7],
        }
    )  # fmt: skip
    rows = uc.join(left, right).to_pylist()
    assert [row["probability"] for row in rows] == pytest.approx([6 / 25] * 2)
    assert rows[0].keys() == {"left_id", "right_id", "load", "probability"}
    alone = uc.join(left, right, how="left").to_pylist()[-1]
    assert (alone["right_id"], alone["probability"]) == (None, pytest.approx(79 / 125))
    sample = pa.table({"type": ["P"] * 2, "id": [8, 9], "lower": [4, 6], "upper": [5, 6]})
    contained = uc.join(left, sample, when="contains", how="left").to_pylist()
    assert [row["right_id"] for row in contained] == [8, 9, None]
    # Of begins 0..4 and a sample at 4 or 5: 7 of 10; the one at 6 from begin 3 on.
    assert [row["probability"] for row in contained] == pytest.approx([7 / 10, 2 / 5, 3 / 10])


def test_stamps_lengths_and_clocks_of_one_side() -> None:
    """A task of 2 s that began from :00 to :04, and a sample from :03 to :05, by seconds."""
    start = datetime(2026, 3, 1)

    def at(*seconds: int) -> list[datetime]:
        return [start + timedelta(seconds=second) for second in seconds]

    took = timedelta(seconds=2)
    task = pa.table(
        {
            "type": ["T"], "id": ["t"], "lower": at(0), "upper": at(6), "begin_lower": at(0),
            "begin_upper": at(4), "length_lower": [took], "length_upper": [took],
        }
    )  # fmt: skip
    sample = pa.table({"type": ["P"], "id": [1], "lower": at(3), "upper": at(5)})
    (row,) = uc.join(task, sample, when="contains", tick="1s").to_pylist()
    worlds = [b <= p <= b + 2 for b in range(5) for p in (3, 4, 5)]
    assert row["probability"] == pytest.approx(sum(worlds) / len(worlds))
    (row,) = uc.join(task, sample, when="within 1s", tick="1s").to_pylist()
    worlds = [b - p <= 1 and p - b - 2 <= 1 for b in range(5) for p in (3, 4, 5)]
    assert row["probability"] == pytest.approx(sum(worlds) / len(worlds))
    wrong = task.set_column(4, "begin_lower", pa.array(at(5)))
    with pytest.raises(uc.TraceError, match="the left table, row 1, column 'begin_lower'"):
        uc.join(wrong, sample, tick="1s")
    with pytest.raises(uc.TraceError, match="the right table, row 1, column 'begin_lower'"):
        uc.join(sample, wrong, tick="1s")
