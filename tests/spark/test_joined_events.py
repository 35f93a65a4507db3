"""Matches of Spark frames together with their events."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import uncertain_cep as uc
from tests.spark.traces import random_trace, to_spark
from uncertain_cep.errors import OptionError

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

    def by_match(rows: list[dict[str, object]]) -> list[str]:
        groups: dict[object, list[dict[str, object]]] = {}
        for row in rows:
            groups.setdefault(row.pop("match"), []).append(row)
        return sorted(repr(sorted(map(repr, group))) for group in groups.values())

    collected = [row.asDict(recursive=True) for row in there.collect()]
    assert by_match(collected) == by_match(here.to_pylist())


def test_frames_of_two_kinds_are_refused(spark: SparkSession) -> None:
    table = random_trace(5, 20, keys=3)
    with pytest.raises(OptionError, match="must both be Spark frames"):
        uc.events_of(uc.match(table, QUERIES[0]), to_spark(spark, table), QUERIES[0])
