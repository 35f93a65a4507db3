"""Slices of keys without a component of every match are dropped before the shuffle; the answer stays."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from tests.spark.test_language import QUERIES
from tests.spark.test_match import NEXT
from tests.spark.traces import KEYED, UNKEYED, assert_same, random_trace, to_spark
from uncertain_cep.executor import Slicing
from uncertain_cep.plan import make_plan
from uncertain_cep.query import parse
from uncertain_cep.spark import match, semi_join
from uncertain_cep.spark.candidate_counts import GROUPS
from uncertain_cep.spark.filters import CandidateFilters, candidate_filters
from uncertain_cep.spark.frame_statistics import FrameStatistics, about_how_many
from uncertain_cep.spark.preparing import PreparedMatch, Spread, prepare
from uncertain_cep.spark.semi_join import KeySlices, choose_key_slices
from uncertain_cep.spark.slicing import Slices

_ALL = {"keyed": KEYED, "not keyed": UNKEYED, "next": NEXT, **QUERIES}
_PARTS = frozenset(
    {
        "trailing negation", "Kleene, skip till next", "partition contiguity", "set", "sequence of sets",
        "least distances", "negated group", "negated group, skip till next",
    }
)  # fmt: skip
"""Queries whose constructs others have as well: they are left out but with ``--thorough``."""


@pytest.fixture(scope="module")
def sparse() -> pa.Table:
    """Events of which few are near each other, some without a key."""
    table = random_trace(21, 500, keys=5, span=900)
    # Where long intervals couple gaps, one confidence takes too long.
    return table.filter(pc.less(pc.subtract(table["upper"], table["lower"]), 50))


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(query, id=name, marks=pytest.mark.thorough if name in _PARTS else ())
        for name, query in _ALL.items()
    ],
)
def test_the_answer_is_the_same(spark: SparkSession, sparse: pa.Table, query: str) -> None:
    frame = to_spark(spark, sparse)
    assert_same(frame, sparse, query, 1, partitions=3, slice_length=40, prune=True)


def _prepared(spark: SparkSession, table: pa.Table, query: str, prune: bool | None) -> PreparedMatch:
    return prepare(to_spark(spark, table), query, spread=Spread(3, 40, prune))


def test_few_events_are_shuffled(spark: SparkSession, sparse: pa.Table) -> None:
    counts = []
    for prune in (False, True):
        prepared = _prepared(spark, sparse, KEYED, prune)
        assert prepared.candidates is not None
        assert isinstance(prepared.slicing, Slicing)
        counts.append(prepared.candidates.count())
    assert counts[1] < counts[0] / 2


def test_keys_alone_and_slices_alone(spark: SparkSession, sparse: pa.Table) -> None:
    frame = to_spark(spark, sparse)
    assert_same(frame, sparse, KEYED, 1, partitions=2, slice_length=10**6, prune=True)
    assert_same(frame, sparse, KEYED, 1, partitions=1, prune=True)
    assert match(frame, UNKEYED, partitions=1, prune=True).columns[0] == "a"


def test_other_names(spark: SparkSession, sparse: pa.Table) -> None:
    names = {"type": "kept0", "id": "a.b", "lower": "KEPT", "upper": "SELECT"}
    table = sparse.rename_columns([names.get(name, name) for name in sparse.column_names])
    assert_same(
        to_spark(spark, table), table, KEYED, 1, names=names, slice_length=40, partitions=2, prune=True
    )


def test_a_rare_component_decides(spark: SparkSession, sparse: pa.Table) -> None:
    assert _prepared(spark, sparse, KEYED, None).key_slices is None  # too few to be worth a pass
    rare = KEYED.replace("a.value % 3 != 1", "a.value = 5")
    with patch.object(semi_join, "ROWS_WORTH_A_PASS", 0):
        kept = _prepared(spark, sparse, rare, None).key_slices
        assert kept is not None
        assert 0 in kept.looked_for[0]
        assert_same(to_spark(spark, sparse), sparse, rare, 1, partitions=3, slice_length=40)


def _filters(spark: SparkSession, query: str) -> CandidateFilters:
    table = random_trace(1, 5, keys=2)
    frame = spark.createDataFrame(table)
    return candidate_filters(make_plan(parse(query), table.schema), frame.schema)


_STATISTICS = FrameStatistics(
    first=1_000_000, later=1_000_000, candidates=2_000_000, earliest=0, latest=10_000, longest=9,
    mean_length=5.0, keys=1000, components=((1_000_000, 1_000_000, 500),),
)  # fmt: skip
_SLICES = Slices("slice", 0, 1000, 10, 110, 0)


def test_the_rule(spark: SparkSession) -> None:
    filters = _filters(spark, KEYED)
    assert choose_key_slices(filters, _STATISTICS, _SLICES, None) == KeySlices(((2,),))
    assert choose_key_slices(filters, _STATISTICS, _SLICES, True) == KeySlices(((0, 1, 2),))
    assert choose_key_slices(filters, _STATISTICS, _SLICES, False) is None
    assert choose_key_slices(filters, _STATISTICS, None, None) is None  # half of the keys have one
    even = replace(_STATISTICS, components=((1_000_000, 1_000_000, 500_000),))
    assert choose_key_slices(filters, even, _SLICES, None) is None
    with patch.object(semi_join, "MOST_BROADCAST", 100):
        assert choose_key_slices(filters, _STATISTICS, _SLICES, None) is None


def test_every_branch_needs_a_rare_component(spark: SparkSession) -> None:
    filters = _filters(spark, "PATTERN OR(SEQ(A a, B b), SEQ(A c, C d)) WHERE [key] WITHIN 9")
    one = replace(_STATISTICS, components=((1_000_000, 500), (1_000_000, 1_000_000)))
    assert choose_key_slices(filters, one, _SLICES, None) is None
    both = replace(_STATISTICS, components=((1_000_000, 500), (300, 400)))
    assert choose_key_slices(filters, both, _SLICES, None) == KeySlices(((1,), (0, 1)))
    nothing = _filters(spark, UNKEYED)
    assert choose_key_slices(nothing, _STATISTICS, None, True) is None


@pytest.mark.parametrize("keys", [0, 1, 2, 30, 1000, 100_000])
def test_about_how_many_keys_there_are(keys: int) -> None:
    draw, estimates = np.random.default_rng(keys), []
    for _ in range(50):
        hashes = draw.integers(0, 2**61, keys)
        group = draw.integers(0, GROUPS, keys)
        least_hashes = [min(hashes[group == number].tolist(), default=None) for number in range(GROUPS)]
        estimates.append(about_how_many(least_hashes))
    assert 0.8 * keys <= np.mean(estimates) <= 1.3 * keys
    assert all(keys / 5 <= estimate <= 5 * keys for estimate in estimates)
