"""Every construct on Spark: slices hold what forbids a match beyond their edges; a match has one owner."""

from __future__ import annotations

from typing import Final

import pytest
from pyspark.sql import SparkSession

from tests.spark.traces import assert_same, random_trace, to_spark

QUERIES: Final = {
    "leading negation": "PATTERN SEQ(!D n, A a, B b) WHERE [key] WITHIN 9",
    "trailing negation": "PATTERN SEQ(A a, B b, !C n) WHERE n.value > a.value WITHIN 5",
    "negation between, skip till next": """
        PATTERN SEQ(A a, !D n, B b) WHERE skip_till_next_match(a, b) { n.key = a.key } WITHIN 9
    """,
    "Kleene at the start": "PATTERN SEQ(A+ a[], B b) WHERE [key] AND a[i].value > a[i-1].value WITHIN 9",
    "Kleene, skip till next": """
        PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) { [key] } WITHIN 12
        RETURN count(b[]) AS many
    """,
    "partition contiguity": "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { [key] } WITHIN 9",
    "strict contiguity": "PATTERN SEQ(A a, ANY b) WHERE strict_contiguity(a, b) { a.key = b.key } WITHIN 5",
    "set": "PATTERN AND(A a, B b) WHERE [key] WITHIN 5",
    "sequence of sets": "PATTERN SEQ(AND(A a, B b), C c) WHERE [key] WITHIN 9",
    "Kleene in a set": "PATTERN AND(A+ a[], C c) WHERE [key] AND count(a[]) <= 2 WITHIN 4",
    "branches": "PATTERN OR(SEQ(A a, B b), SEQ(!A n, C c, D d), AND(B e, D f)) WHERE [key] WITHIN 4",
    "best of the grown": """
        PATTERN SEQ(A a, !D n, B b) WHERE [key] WITHIN 9 ORDER BY CONFIDENCE DESC LIMIT 7
    """,
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
def test_any_spread(spark: SparkSession, query: str) -> None:
    table = random_trace(11, 70, keys=3, span=150)
    frame = to_spark(spark, table)
    for partitions, slice_length in ((2, 4), (5, 37)):
        assert_same(frame, table, query, 1, partitions=partitions, slice_length=slice_length)
