"""Pruning while matches grow: bounds on confidences, and negated events that are there for certain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import isclose

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from eventbased.time_differences import in_order, near
from tests.cases.comparison import assert_same
from tests.cases.language import LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases
from uncertain_cep.config.tolerances import CONFIDENCE_TOLERANCE
from uncertain_cep.executor import execute
from uncertain_cep.operators import backtracking
from uncertain_cep.operators.counters import Counters
from uncertain_cep.plan import make_plan
from uncertain_cep.results import top_k as best

_ANY = st.one_of(language_cases(), nested_cases("AS"), nested_cases("AOS"))


@contextmanager
def in_small_steps() -> Iterator[None]:
    """Let the first matches raise the threshold, and the smallest ids be tried first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backtracking, "FIRST_MATCHES", 1)
        patch.setattr(best, "WORTH_TRYING", 2)
        patch.setattr(best, "FIRST_SHARE", 3)
        yield


@given(_ANY, st.integers(1, 5), st.sampled_from([1, 3, 1000]), st.sampled_from(["auto", "dp_bushy"]))
def test_the_best_are_the_first_of_all(
    case: LanguageCase | NestedCase, limit: int, batch_rows: int, planner: str
) -> None:
    ordered = case.text("ORDER BY CONFIDENCE DESC")
    note(ordered)
    table = case.trace.table()
    if case.strategy.endswith("contiguity"):
        planner = "auto"
    everything = uc.match(table, ordered)
    with in_small_steps():
        batches = list(
            uc.iter_matches(table, f"{ordered} LIMIT {limit}", batch_rows=batch_rows, planner=planner)
        )
    found = pa.Table.from_batches(batches, everything.schema)
    # Two partitions with the same ids: which comes first is open.
    ids = everything.select([name for name in everything.column_names if len(name) == 1 and name != "k"])
    if len({str(row) for row in ids.to_pylist()}) == everything.num_rows:
        assert found.equals(everything.slice(0, limit))
    else:
        assert found["confidence"].equals(everything["confidence"].slice(0, limit))


@given(_ANY, st.data())
def test_a_threshold_that_is_just_reached(case: LanguageCase | NestedCase, data: st.DataObject) -> None:
    """The bounds are closest where a match is as likely as asked."""
    note(case.text())
    table = case.trace.table()
    every = case.rows(uc.match(table, case.text()))
    reached = sorted({row.confidence or 0.0 for row in every.values()}) or [0.5]
    least = data.draw(st.sampled_from(reached))
    kept = case.rows(uc.match(table, f"{case.text()} HAVING CONFIDENCE >= {least!r}"))
    # Up to rounding: two ways of adding up the same confidence may differ in the last digit.
    almost = least * (1 - CONFIDENCE_TOLERANCE)
    assert_same(kept, {key: row for key, row in every.items() if (row.confidence or 0.0) >= almost})


@pytest.mark.parametrize("ticks", [10**6, 10**12])
def test_probabilities_of_long_intervals(ticks: int) -> None:
    nothing = np.zeros(0)
    # Of two times in the same interval one is before the other, but for ties; or they are next to each other.
    assert isclose(in_order(0, ticks - 1, -1, 0, ticks - 1, -1, nothing, nothing), 0.5 - 0.5 / ticks)
    assert isclose(near(0, ticks - 1, -1, 0, ticks - 1, -1, 1, nothing, nothing), 1.0 / ticks, abs_tol=1e-14)
    assert in_order(0, ticks, -1, 0, 1, -1, nothing, nothing) == pytest.approx(0.5 / ticks, rel=1e-4)


def _partial_matches(table: pa.Table, query: str) -> int:
    counters = Counters()
    plan = make_plan(uc.parse(query), table.schema)
    for _ in execute(plan, table, counters=counters):
        pass
    return sum(counters.nodes.values())


def _stream(types: str, half: int = 1) -> pa.Table:
    return pa.table(
        {
            "type": list(types),
            "id": list(range(len(types))),
            "lower": [4 * n - half for n in range(len(types))],
            "upper": [4 * n + half for n in range(len(types))],
            "value": [n % 3 for n in range(len(types))],
        }
    )


@pytest.mark.parametrize(
    "pattern",
    [
        "SEQ(A a, !N n, B b, C c)",
        "SEQ(A a, !N n, B b, C+ c[])",
        "SEQ(AND(A a, D d), !N n, B b, C c)",
        "SEQ(A a, !N n, B b, AND(C c, C d))",
    ],
)
def test_what_is_negated_for_certain_ends_a_branch(pattern: str) -> None:
    """Of A(D) N B C C C C the partial match of A and B is not made, so that no C is looked at."""
    table = _stream("ADNBCCCC" * 2)
    query = f"PATTERN {pattern} WITHIN 40"
    without = _partial_matches(table, query.replace("!N", "!M"))
    assert _partial_matches(table, query) <= 2 * (2 + 2) < without
    sometimes = query.replace(" WITHIN", " WHERE n.value >= b.value WITHIN")
    assert _partial_matches(table, query) <= _partial_matches(table, sometimes) < without


def test_a_condition_on_what_comes_later_waits_for_it() -> None:
    table = _stream("ANBCC")
    query = "PATTERN SEQ(A a, !N n, B b, C c) WHERE n.value > c.value WITHIN 40"
    assert [row["c"] for row in uc.match(table, query).to_pylist()] == [4]
    assert _partial_matches(table, query) == 3


def test_what_is_part_of_the_match_does_not_forbid() -> None:
    """c is between a and b for certain, and an N: it is in the match, and so not in its way."""
    table = _stream("ANB")
    for other in ("N c", "N+ c[]"):
        assert uc.match(table, f"PATTERN AND(SEQ(A a, !N n, B b), {other}) WITHIN 40").num_rows == 1


@pytest.mark.parametrize(
    "pattern", ["AND(A a, B b, C c)", "SEQ(AND(A a, B b), C c)", "SEQ(A a, B+ b[], C c)"]
)
@pytest.mark.parametrize("tail", ["HAVING CONFIDENCE >= 0.9", "ORDER BY CONFIDENCE DESC LIMIT 3"])
def test_partial_matches_that_are_too_unlikely_are_not_extended(pattern: str, tail: str) -> None:
    table = _stream("ABC" * 40, half=9)
    query = f"PATTERN {pattern} WITHIN 24 {tail}"
    with in_small_steps():
        pruned = _partial_matches(table, query)
    assert pruned < 0.6 * _partial_matches(table, query.replace(tail, ""))
