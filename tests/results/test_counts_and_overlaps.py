"""OUTPUT NON OVERLAPPING and RETURN EXPECTED COUNT against the oracle."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, cases
from tests.cases.comparison import RELATIVE_ERROR, assert_answer, rows_of
from tests.cases.cut import REPEATED, cut
from tests.cases.sampling import FEWER
from tests.cases.strategies import STRATEGIES, answer_of, text_of
from tests.oracle.outputs import expected_counts, having, is_clear, non_overlapping
from uncertain_cep.executor import execute
from uncertain_cep.plan import make_plan
from uncertain_cep.results import expected_counts as expected
from uncertain_cep.results import repeated_uses
from uncertain_cep.results.order import finished
from uncertain_cep.testing.model import Component, Match, Value

Counts = dict[tuple[tuple[Value, ...], int | None], Any]

_EVERY = st.sampled_from([None, 1, 2, 3, 7, 1000])
_THREADS = st.sampled_from([1, 2, 5])


@st.composite
def disjoint_cases(draw: st.DrawFn) -> Case:
    """Draw a case whose components take different types, mostly without predicates across them."""
    case = draw(cases(max_components=3))
    types = draw(st.permutations(["A", "B", "C"]))
    components = tuple(
        Component(found.variable, (type_,)) for found, type_ in zip(case.components, types, strict=False)
    )
    # Without the chain that makes partitions, ids would repeat.
    kept = case.conditions if case.chained or draw(st.integers(0, 3)) == 0 else ()
    return replace(case, components=components, conditions=kept)


@st.composite
def groups(draw: st.DrawFn, case: Case) -> tuple[str, ...]:
    """Draw attributes to group by: only those that a match has one value of."""
    names = draw(st.permutations(case.query().partition))
    return tuple(names[: draw(st.integers(0, len(names)))])


def clause_of(by: tuple[str, ...], every: int | None) -> str:
    """Return the RETURN clause."""
    grouped = f" BY {', '.join(by)}" if by else ""
    return f"RETURN EXPECTED COUNT{grouped}{'' if every is None else f' EVERY {every}'}"


def counts_of(table: pa.Table, by: tuple[str, ...]) -> Counts:
    """Return the engine's counts by group and bucket."""
    found: Counts = {}
    for record in table.to_pylist():
        key = tuple(record[name] for name in by), record.get("bucket")
        assert key not in found, f"{key} has two rows"
        found[key] = record["expected_count"]
    return found


def assert_counts(
    table: pa.Table, matches: Iterable[Match], case: Case, by: tuple[str, ...], every: int | None
) -> None:
    """Assert that the engine's counts are the oracle's."""
    wanted: Counts = dict(expected_counts(list(matches), case.query().partition, by, every))
    if not by and every is None and not wanted:
        wanted = {((), None): 0}
    found = counts_of(table, by)
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        assert math.isclose(found[key], value, rel_tol=RELATIVE_ERROR), (
            f"{key}: {found[key]} instead of {value}"
        )


@given(st.data(), st.one_of(cases(), disjoint_cases()), _EVERY, _THREADS, REPEATED)
def test_expected_counts(
    data: st.DataObject, case: Case, every: int | None, threads: int, repeated: float
) -> None:
    by = data.draw(groups(case))
    clause = clause_of(by, every)
    note(case.script("", clause))
    with cut(repeated):
        found = uc.match(case.trace.table(), case.text("", clause), threads=threads)
    assert_counts(found, case.answer(), case, by, every)


@given(st.data(), cases(), _EVERY, _THREADS, REPEATED)
def test_expected_counts_where_components_share_events(
    data: st.DataObject, case: Case, every: int | None, threads: int, repeated: float
) -> None:
    """The pairs of an event with itself are taken off, unless hardly anything is left."""
    types = data.draw(st.sampled_from([("A",), ("A", "B"), ()]))
    others = data.draw(st.sampled_from([types, ("B",), ("B", "D")]))
    components = tuple(
        Component(found.variable, data.draw(st.sampled_from([types, types, others])))
        for found in case.components
    )
    case = replace(case, components=components, conditions=case.conditions if case.chained else ())
    by = data.draw(groups(case))
    clause = clause_of(by, every)
    note(case.script("", clause))
    with pytest.MonkeyPatch.context() as patch, cut(repeated):
        patch.setattr(repeated_uses, "LEAST_LEFT", data.draw(st.sampled_from([1e-5, 1.0])))
        patch.setattr(repeated_uses, "STEPS_PER_MATCH", data.draw(st.sampled_from([25.0, math.inf])))
        found = uc.match(case.trace.table(), case.text("", clause), threads=threads)
    assert_counts(found, case.answer(), case, by, every)


def test_short_and_long_events_count_nothing_with_themselves() -> None:
    """How far an event's own ticks are gone through does not depend on the events before it."""
    events = pa.table({"type": ["A"] * 4, "id": range(4), "lower": [0] * 4, "upper": [0, 0, 0, 4]})
    (found,) = uc.match(events, "PATTERN SEQ(A a, A b, A c) WITHIN 9 RETURN EXPECTED COUNT").to_pylist()
    assert found == {"expected_count": 0.0}
    (found,) = uc.match(events, "PATTERN SEQ(A a, A b) WITHIN 9 RETURN EXPECTED COUNT").to_pylist()
    assert found["expected_count"] == pytest.approx(3 * 4 / 5)


@pytest.mark.parametrize("components", [2, 3, 4, 5])
@pytest.mark.parametrize("every", ["", "EVERY 7", "BY k EVERY 20"])
def test_shared_events_are_counted_without_their_matches(
    components: int, every: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    lower = rng.integers(0, 150, 200)
    table = pa.table(
        {
            "type": ["A"] * 200,
            "id": np.arange(200),
            "lower": lower,
            "upper": lower + rng.integers(0, 15, 200),
            "k": rng.integers(0, 2, 200),
            "v": rng.integers(0, 30, 200),
        }
    )
    names = "abcde"[:components]
    tests = " AND ".join(
        f"{name}.v % {number} = 0" for name, number in zip(names, (2, 3, 5, 2, 3), strict=False)
    )
    pattern = ", ".join(f"A {name}" for name in names)
    query = f"PATTERN SEQ({pattern}) WHERE [k] AND {tests} WITHIN 12"
    whole = sum(uc.match(table, query)["confidence"].to_pylist())

    def refuse(*_: object) -> None:
        raise AssertionError("matches were enumerated")

    monkeypatch.setattr(expected._Counting, "added_up", refuse)
    monkeypatch.setattr(repeated_uses, "STEPS_PER_MATCH", math.inf)
    found = uc.match(table, f"{query} RETURN EXPECTED COUNT {every}")
    assert sum(found["expected_count"].to_pylist()) == pytest.approx(whole, rel=1e-12)
    assert found.num_rows > 1 or not every


def test_an_event_may_be_of_another_partition_for_another_component() -> None:
    table = pa.table(
        {"type": ["A", "A"], "id": [0, 6], "lower": [-3, -3], "upper": [-2, -3], "x": [0, 2], "k": [2, 2]}
    )
    query = "PATTERN SEQ(A a, A b) WHERE a.x = b.k WITHIN 2"
    whole = sum(uc.match(table, query)["confidence"].to_pylist())
    assert whole == 0.5
    assert uc.match(table, f"{query} RETURN EXPECTED COUNT")["expected_count"].to_pylist() == [whole]


@given(st.data(), disjoint_cases(), _EVERY, st.sampled_from([1, 5]))
def test_expected_counts_by_either_way(
    data: st.DataObject, case: Case, every: int | None, most_ticks: int
) -> None:
    """Too many covered ticks: partitions are halved, then matches enumerated."""
    by = data.draw(groups(case))
    clause = clause_of(by, every)
    note(case.script("", clause))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expected, "MOST_COVERED_TICKS", most_ticks)
        patch.setattr(expected, "COUNT_BATCH", 2)
        found = uc.match(case.trace.table(), case.text("", clause))
    assert_counts(found, case.answer(), case, by, every)


@STRATEGIES
@FEWER
@given(st.data(), cases(max_components=3), _EVERY)
def test_expected_counts_of_each_strategy(
    strategy: Any, data: st.DataObject, case: Case, every: int | None
) -> None:
    by = data.draw(groups(case))
    text = f"{text_of(case, strategy)} {clause_of(by, every)}"
    note(text)
    assert_counts(uc.match(case.trace.table(), text), answer_of(case, strategy), case, by, every)


@given(
    cases(),
    st.sampled_from(["", "HAVING CONFIDENCE >= 0.3"]),
    st.sampled_from(["", "ORDER BY CONFIDENCE DESC LIMIT 2"]),
)
def test_non_overlapping(case: Case, threshold: str, order: str) -> None:
    clause = f"OUTPUT NON OVERLAPPING {order}"
    note(case.script(threshold, clause))
    matches = case.answer()
    assume(all(is_clear(match.confidence) for match in matches))
    keys = [(match.partition, match.signature) for match in matches]
    kept = non_overlapping(having(matches, Fraction(3, 10)) if threshold else matches)
    kept = kept[:2] if order else kept
    if order:
        # Two partitions with the same ids: which comes first is open.
        assume(len({signature for _, signature in keys}) == len(keys))
    found = uc.match(case.trace.table(), case.text(threshold, clause))
    assert_answer(rows_of(found, case), kept)


@given(cases(), st.sampled_from([1, 2, 7]))
def test_non_overlapping_in_batches_and_without_confidence(case: Case, batch_rows: int) -> None:
    text = case.text("", "OUTPUT NON OVERLAPPING")
    note(case.script("", "OUTPUT NON OVERLAPPING"))
    table = case.trace.table()
    whole = uc.match(table, text)
    batches = list(uc.iter_matches(table, text, batch_rows=batch_rows))
    assert rows_of(pa.Table.from_batches(batches, whole.schema), case) == rows_of(whole, case)
    found = uc.match(table, text, confidence=False)
    assert "confidence" not in found.column_names
    assert rows_of(found, case).keys() == rows_of(whole, case).keys()


@given(disjoint_cases(), _EVERY)
def test_counts_of_parts_add_up(case: Case, every: int | None) -> None:
    """As on Spark: batches of counts from several tables make one result."""
    text = case.text("", clause_of((), every))
    note(text)
    table = case.trace.table()
    plan = make_plan(uc.parse(text), table.schema)
    once, twice = (
        finished(plan, execute(plan, table)),
        finished(plan, [*execute(plan, table), *execute(plan, table)]),
    )
    assert once.num_rows == twice.num_rows
    for one, two in zip(once["expected_count"].to_pylist(), twice["expected_count"].to_pylist(), strict=True):
        assert math.isclose(2 * one, two, rel_tol=RELATIVE_ERROR)


def test_what_many_events_count_with_themselves_is_taken_off() -> None:
    """Of several events, the first ones too short to be used twice."""
    table = pa.table(
        {
            "type": ["A"] * 3,
            "id": [1, 2, 3],
            "lower": [-3, -3, -3],
            "upper": [-3, -3, 1],
            "k": [2, 2, 2],
        }
    )
    query = "PATTERN SEQ(A a, A b, A c) WHERE a.k = b.k AND b.k = c.k WITHIN 3 RETURN EXPECTED COUNT"
    assert uc.match(table, query)["expected_count"].to_pylist() == [0.0]
