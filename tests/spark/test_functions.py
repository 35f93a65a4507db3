"""Conditions and functions of SQL on Spark are those in process, in WHERE and in RETURN."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import SparkSession

import uncertain_cep as uc
from uncertain_cep.spark import match

QUERY = """PATTERN SEQ(A a, B b)
WHERE LOWER(a.s) = LOWER(TRIM(b.s)) AND b.ts - a.ts <= 90 minutes AND COALESCE(a.x, b.x) IN (1, 2, 3)
  AND 'eu' IN a.tags AND SHARES(a.tags, b.tags)
  AND (b.y IS NULL OR SQRT(a.x + b.y) BETWEEN 1 AND 3) AND a.s NOT LIKE '%z' AND HOUR(a.ts) < 20
WITHIN 9
RETURN b.ts - a.ts AS took, DATE_TRUNC('hour', a.ts) AS hour, CONCAT(a.s, '-', b.x) AS both,
  CASE WHEN b.y IS NULL THEN 'none' ELSE 'some' END AS y, GREATEST(a.x, b.x) AS most"""


def test_as_in_process(spark: SparkSession) -> None:
    rows = 24
    start = datetime(2024, 5, 1, 18, tzinfo=UTC)
    table = pa.table(
        {
            "type": ["A", "B"] * (rows // 2),
            "id": range(rows),
            "lower": range(rows),
            "upper": [n + n % 3 for n in range(rows)],
            "x": pa.array([n % 4 or None for n in range(rows)], pa.int64()),
            "y": pa.array([None if n % 5 == 0 else n / 4 for n in range(rows)], pa.float64()),
            "tags": [["eu", "new"], ["new"], ["eu", "new", None]] * (rows // 3),
            "s": ["ab", " AB", "Ab", "ab ", None, "z"] * (rows // 6),
            "ts": pa.array(
                [start + timedelta(minutes=7 * n) for n in range(rows)], pa.timestamp("us", "UTC")
            ),
        }
    )
    expected = uc.match(table, QUERY).to_pylist()
    rows_there = match(spark.createDataFrame(table), QUERY, slice_length=5).toArrow().to_pylist()
    assert len(expected) > 5
    by_ids = {(row["a"], row["b"]): row for row in expected}
    assert {(row["a"], row["b"]): row for row in rows_there} == by_ids
