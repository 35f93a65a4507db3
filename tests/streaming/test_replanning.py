"""A stream whose rates change is evaluated by another plan from then on, and gives the batch's matches."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import uncertain_cep as uc
from uncertain_cep.optimizer.measuring import measure
from uncertain_cep.streaming import reoptimisation as replanning
from uncertain_cep.streaming.matcher import IncrementalMatcher

_QUERY = "PATTERN SEQ(A a, B b, C c) WHERE a.x = b.x AND b.x = c.x + 1 WITHIN 300"


def _flipping(size: int) -> pa.Table:
    """Return events of which one in a hundred is a C, and later one in a hundred an A."""
    draw = np.random.default_rng(0)
    half = size // 2
    types = [
        draw.choice(list("ABC"), half, p=[0.60, 0.39, 0.01]),
        draw.choice(list("ABC"), size - half, p=[0.01, 0.39, 0.60]),
    ]
    times = np.sort(draw.integers(0, size, size))
    return pa.table(
        {
            "type": np.concatenate(types),
            "id": np.arange(size),
            "lower": times - 3,
            "upper": times + 3,
            "x": draw.integers(0, 30, size),
        }
    )


def _streamed(matcher: IncrementalMatcher, table: pa.Table, batch: int) -> pa.Table:
    parts = [matcher.push(table.slice(start, batch)) for start in range(0, table.num_rows, batch)]
    return pa.Table.from_batches([*parts, matcher.close()])


def _sorted(table: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    return table.take(pc.sort_indices(table, sort_keys=[(key, "ascending") for key in keys]))


def _assert_same(matches: pa.Table, expected: pa.Table, keys: tuple[str, ...]) -> None:
    assert matches.num_rows == expected.num_rows > 500
    one, other = _sorted(matches, keys), _sorted(expected, keys)
    names = [name for name in one.column_names if name != "confidence"]
    assert one.select(names).equals(other.select(names))
    np.testing.assert_allclose(one["confidence"].to_numpy(), other["confidence"].to_numpy(), rtol=1e-9)


def test_the_plan_follows_the_rates() -> None:
    table = _flipping(20_000)
    matcher = uc.IncrementalMatcher(
        _QUERY, table.schema, evaluation="sliced", largest_interval=6, slice_length=500
    )
    with patch.object(replanning, "SHARE_OF_MEASURING", 1e9):
        matches = _streamed(matcher, table, 1000)
    first, *later_plans = matcher.plans
    assert first.first_event == 0
    assert first.tree is not None
    assert first.tree.startswith("((c ")
    assert later_plans
    assert later_plans[-1].tree != first.tree
    # It was changed behind the first half, and not for every slice.
    early = pc.sum(pc.equal(table["type"][: table.num_rows // 2], "A")).as_py()
    assert all(used.first_event > 0.9 * early for used in later_plans)
    assert len(later_plans) <= 3
    _assert_same(matches, uc.match(table, _QUERY), ("a", "b", "c"))


def test_a_good_plan_is_kept() -> None:
    table = _flipping(20_000).slice(0, 10_000)
    matcher = uc.IncrementalMatcher(_QUERY, table.schema, evaluation="sliced", largest_interval=6)
    with patch.object(replanning, "SHARE_OF_MEASURING", 1e9):
        matches = _streamed(matcher, table, 500)
    assert len(matcher.plans) == 1
    _assert_same(matches, uc.match(table, _QUERY), ("a", "b", "c"))


def test_looking_takes_a_small_part_of_the_time() -> None:
    table = _flipping(20_000)
    matcher = uc.IncrementalMatcher(_QUERY, table.schema, evaluation="sliced", largest_interval=6)
    with patch.object(replanning, "measure", wraps=measure) as measured:
        with patch.object(replanning, "SHARE_OF_MEASURING", 0.0):
            _streamed(matcher, table, 500)
        assert measured.call_count == 1


def test_every_branch_has_a_plan_of_its_own() -> None:
    query = (
        "PATTERN OR(SEQ(A a, B b, C c), SEQ(C d, B e)) "
        "WHERE a.x = b.x AND b.x = c.x + 1 AND d.x = e.x WITHIN 300"
    )
    table = _flipping(8_000)
    matcher = uc.IncrementalMatcher(query, table.schema, largest_interval=6)
    matches = _streamed(matcher, table, 1000)
    assert {used.branch for used in matcher.plans} == {0, 1}
    _assert_same(matches, uc.match(table, query), ("a", "b", "c", "d", "e"))


def test_the_single_components_of_other_patterns_are_planned_anew_too() -> None:
    query = (
        "PATTERN SEQ(A a, B+ b[], C c) WHERE a.x = c.x + 1 AND b[i].x = a.x AND b[i].x >= b[i-1].x WITHIN 300"
    )
    table = _flipping(12_000)
    matcher = uc.IncrementalMatcher(query, table.schema, largest_interval=6, slice_length=500)
    with (
        patch.object(replanning, "SHARE_OF_MEASURING", 1e9),
        patch.object(replanning, "WORTH_A_CHANGE", 1.1),
    ):
        matches = _streamed(matcher, table, 1000)
    first, *later_trees = [used.tree for used in matcher.plans]
    assert first == "(c a)"
    assert later_trees[-1] == "(a c)"
    expected = uc.match(table, query)
    assert matches.num_rows == expected.num_rows > 500
    assert sorted(map(str, matches.to_pylist())) == sorted(map(str, expected.to_pylist()))


def test_what_no_data_would_plan_is_grown_without_a_look() -> None:
    table = _flipping(2_000)
    query = "PATTERN SEQ(A a, !B b, C c) WHERE b.x = a.x WITHIN 30"
    matcher = uc.IncrementalMatcher(query, table.schema, largest_interval=6)
    with patch.object(replanning, "measure", wraps=measure) as measured:
        matches = _streamed(matcher, table, 500)
    assert measured.call_count == 0
    assert matcher.plans == ()
    assert matches.num_rows == uc.match(table, query).num_rows > 0
