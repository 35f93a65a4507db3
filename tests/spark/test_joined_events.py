"""Matches of Spark frames together with their events."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import uncertain_cep as uc
from tests.spark.traces import random_trace, to_spark
from uncertain_cep.errors import OptionError
from uncertain_cep.spark import worker_errors

QUERIES = [
    "PATTERN SEQ(A a, B+ b[], C c) WHERE [key] AND b[i].value > 8 WITHIN 9",
    "PATTERN OR(SEQ(A a, B b), SEQ(C c, D d)) WHERE [key] AND b.weight > 2 WITHIN 4 RETURN b.*",
]


@pytest.mark.parametrize("query", QUERIES)
def test_events_are_those_of_this_process(spark: SparkSession, query: str) -> None:
    table = random_trace(5, 120, keys=3)
    # The same id once more, as an event that nothing takes.
    other = table.slice(0, 30).set_column(0, "type", pa.array(["other"] * 30))
    frame = to_spark(spark, pa.concat_tables([table, other]))
    matches = uc.match(frame, query)
    shown = matches.select("key", *[f"`{name}`" for name in matches.columns if len(name) == 1]).collect()
    assert shown
    here = uc.events_of(uc.match(table, query), table, query)
    there = uc.events_of(matches, frame, query)
    assert there.columns == here.column_names

    collected = [row.asDict(recursive=True) for row in there.collect()]
    assert by_match(collected) == by_match(here.to_pylist())


def by_match(rows: list[dict[str, Any]]) -> list[str]:
    """Return the rows of each match, whatever its number is, with probabilities rounded."""
    groups: dict[object, list[dict[str, Any]]] = {}
    for row in rows:
        if "pmf" in row and "mean" in row:
            row |= {"mean": f"{row['mean']:.9g}", "pmf": [f"{share:.9g}" for share in row["pmf"]]}
        groups.setdefault(row.pop("match"), []).append(row)
    return sorted(repr(sorted(map(repr, group))) for group in groups.values())


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A a, B+ b[], C c) WHERE [key] AND b[i].value > 8 WITHIN 9",
        "PATTERN SEQ(!D n, A a, !B m, C c) WHERE a.value > 8 WITHIN 4",
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) AND [key] WITHIN 3 RETURN a.name",
    ],
)
def test_posteriors_are_those_of_this_process(spark: SparkSession, query: str) -> None:
    table = random_trace(6, 120, keys=3)
    matches = uc.match(table, query)
    assert matches.num_rows >= 3
    frame, match_frame = to_spark(spark, table), to_spark(spark, matches)
    here = by_match(uc.posteriors(matches, table, query).to_pylist())
    for match_rows in (match_frame, match_frame.drop("range_lower")):
        there = uc.posteriors(match_rows, frame, query)
        assert by_match([row.asDict(recursive=True) for row in there.collect()]) == here


def test_what_posteriors_on_spark_cannot_do(spark: SparkSession) -> None:
    table = random_trace(6, 20, keys=3)
    query = "PATTERN SEQ(A a, B b) WITHIN 5"
    frame, matches = to_spark(spark, table), uc.match(table, query)
    with pytest.raises(OptionError, match="timeout= and memory_limit= are for frames in this process"):
        uc.posteriors(to_spark(spark, matches), frame, query, timeout=3)
    with pytest.raises(OptionError, match="must both be Spark frames"):
        uc.posteriors(matches, frame, query)
    other = matches.slice(0, 1).set_column(0, "a", pa.array([99]))
    there = uc.posteriors(to_spark(spark, other), frame, query)
    with pytest.raises(OptionError, match="no event that can be a has the id 99"), worker_errors():
        there.collect()


def test_frames_of_two_kinds_are_refused(spark: SparkSession) -> None:
    table = random_trace(5, 20, keys=3)
    with pytest.raises(OptionError, match="must both be Spark frames"):
        uc.events_of(uc.match(table, QUERIES[0]), to_spark(spark, table), QUERIES[0])


def test_what_forbids_in_the_middle_of_long_intervals_is_known(spark: SparkSession) -> None:
    """Its slice of time is far behind that in which the range of the match begins."""
    table = pa.table(
        {"type": ["A", "B", "N"], "id": [1, 2, 3], "lower": [0, 0, 500], "upper": [1000, 1000, 500]}
    )
    query = "PATTERN SEQ(A a, !N n, B b) WITHIN 10"
    matches = uc.match(table, query)
    here = uc.posteriors(matches, table, query, pmf_ticks=0).to_pylist()
    there = uc.posteriors(to_spark(spark, matches), to_spark(spark, table), query, pmf_ticks=0).collect()
    means = {row["variable"]: row["mean"] for row in there}
    assert means == pytest.approx({row["variable"]: row["mean"] for row in here}, rel=1e-12)


def test_what_strict_contiguity_forbids_may_have_another_key(spark: SparkSession) -> None:
    table = pa.table(
        {
            "type": ["A", "B", "C"], "id": [1, 2, 3], "lower": [0, 2, 3], "upper": [5, 9, 4],
            "key": [1, 1, 2],
        }
    )  # fmt: skip
    query = "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) AND [key] WITHIN 10"
    matches = uc.match(table, query)
    here = by_match(uc.posteriors(matches, table, query).to_pylist())
    there = uc.posteriors(to_spark(spark, matches), to_spark(spark, table), query).collect()
    assert by_match([row.asDict(recursive=True) for row in there]) == here
