"""Conditions pushed into the scan keep every row that the engine would use, and few others."""

from __future__ import annotations

import math
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f

from uncertain_cep.expressions.vectorised import evaluate_mask
from uncertain_cep.plan import EvaluationPlan, make_plan
from uncertain_cep.query import parse
from uncertain_cep.query.typed import Apply, TypedExpression
from uncertain_cep.spark import arrow_schema
from uncertain_cep.spark.filters import candidate_filters, condition

WHOLE = [None, 0, 1, -1, 7, -7, 20, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 5]
SMALL = [None, 0, 3, -3, 2**31 - 1, -(2**31), 6, 1, 2, -2, 4, 9]
REAL = [None, 0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -1.5, 1e300, -1e300, 2.0, 5.0]
TEXT = [None, "", "a", "A", "é", "z", "ab", " a", "a ", "日", "😀", "it's"]
TRUTH = [None, True, False] * 4

SAME = [
    "x.whole % 20 = 0", "x.whole % 4 = -3", "x.small % x.whole = 0", "x.whole % 0 = 0",
    "x.whole / x.small > 1",
    "x.small / 0 = 1", "x.whole = 7", "x.whole != 7", "x.small <= 3", "x.small > -3", "NOT x.small > 0",
    "x.text = 'a'", "x.text != 'a'", "x.text < 'b'", "x.text >= 'z'", "x.text = 'it''s'", "x.text < x.text",
    "x.truth", "NOT x.truth", "x.truth = TRUE OR x.small = 6", "x.truth AND x.small > 0",
    "x.truth OR x.text = ''",
    "NOT (x.truth AND x.small > 0)", "NOT (x.truth OR x.text = 'a')", "x.small < 2.5", "x.whole > 0.5",
    "x.small % 2.5 = 0.5", "x.truth != (x.small > 0)", "x.lower + 1 > x.upper", "x.id = 3", "x.type = 'E'",
    "x.small = 2 OR x.small = 4 AND x.truth", "x.small > 95%", "x.whole = x.small", "x.small = -3",
    "x.whole IS NULL", "x.text IS NOT NULL AND x.small > 0", "x.real IS NULL", "NOT x.real IS NULL",
    "x.small IN (1, 3, x.whole)", "x.text NOT IN ('a', 'z')", "x.small BETWEEN 2 AND 5.5",
    "x.text NOT BETWEEN 'a' AND 'z'",
]  # fmt: skip
"""Predicates on which Spark and the engine agree row for row."""

WIDER = [
    "x.whole + 1 > 0", "x.whole - x.small < 5", "x.whole * 2 = 14", "-x.whole > 0", "x.whole * x.whole > 10",
    "NOT x.whole + 1 > 0", "x.real > 1", "x.real < 1", "NOT x.real > 1", "NOT x.real <= 1",
    "x.real != x.real",
    "x.real = x.real", "x.real - x.real = 0", "NOT x.real - x.real > 5", "x.real - x.real != x.real * 0",
    "x.real / x.real = 1", "x.real % 1 = 0.5", "x.real + x.whole > 0", "x.real / 0 > 1", "x.real = 0",
    "(x.real > 1) = (x.whole > 1)", "NOT (x.real - x.real < 5 AND x.small > 0)", "x.whole + x.whole = 14",
    "x.real > 1 OR x.whole * 3 > 9", "-x.real > 1", "x.real % x.real = 0", "x.whole % x.real = 1",
    "x.real IN (0, 1.5)", "x.real NOT IN (2, 5)", "x.real NOT BETWEEN 1 AND 3", "x.whole + 1 IN (1, 8)",
]  # fmt: skip
"""Predicates for which Spark may keep more rows than the engine."""

LEFT_TO_THE_ENGINE = ["x.exact > 1", "x.day < '2021-01-01'", "x.small = 1 OR x.whole = NULL",
                      "x.text LIKE 'a%'", "ABS(x.small) = 3", "CASE WHEN x.real > 1 THEN x.truth END",
                      "COALESCE(x.small, 1) = 1", "x.small + 1 IS NULL", "x.whole IN (1, NULL)",
                      " OR ".join(f"x.small = {number}" for number in range(100))]  # fmt: skip


def whole(plan: EvaluationPlan) -> TypedExpression:
    """Return all predicates of the one component as one."""
    return reduce(lambda left, right: Apply("and", (left, right), "bool"), plan.components[0].local)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rows = len(WHOLE)
    return pa.table(
        {
            "type": ["E", "F", None] * (rows // 3),
            "id": range(rows),
            "lower": [0, 5] * (rows // 2),
            "upper": [0, 9] * (rows // 2),
            "whole": pa.array(WHOLE, pa.int64()),
            "small": pa.array(SMALL, pa.int32()),
            "real": pa.array(REAL, pa.float64()),
            "text": TEXT,
            "truth": TRUTH,
            "exact": pa.array([1] * rows, pa.decimal128(5, 2)),
            "day": pa.array([0] * rows, pa.date32()),
        }
    )


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_no_row_is_lost(spark: SparkSession, table: pa.Table, ansi: str) -> None:
    frame = spark.createDataFrame(table).coalesce(1)
    types = {field.name: field.dataType for field in frame.schema.fields}
    expected: dict[str, list[bool]] = {}
    conditions: list[Column] = []
    for text in SAME + WIDER:
        plan = make_plan(parse(f"PATTERN SEQ(ANY x) WHERE {text} WITHIN 1"), table.schema)
        predicate = whole(plan)
        with np.errstate(all="ignore"):
            expected[text] = evaluate_mask(predicate, table).tolist()
        translated = condition(predicate, types)
        assert translated is not None, text
        conditions.append(f.coalesce(translated, f.lit(False)).alias(str(len(conditions))))
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        rows = frame.select("id", *conditions).orderBy("id").toArrow().to_pydict()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))
    for place, (text, mask) in enumerate(expected.items()):
        kept = rows[str(place)]
        lost = [
            row for row, (is_true, here) in enumerate(zip(mask, kept, strict=True)) if is_true and not here
        ]
        assert not lost, f"{text} loses rows {lost}"
        if text in SAME:
            assert kept == mask, text


@pytest.mark.parametrize("text", LEFT_TO_THE_ENGINE)
def test_what_has_no_counterpart_is_left_to_the_engine(
    table: pa.Table, text: str, spark: SparkSession
) -> None:
    plan = make_plan(parse(f"PATTERN SEQ(ANY x) WHERE {text} WITHIN 1"), table.schema)
    types = {field.name: field.dataType for field in spark.createDataFrame(table).schema.fields}
    assert condition(whole(plan), types) is None


def test_a_scan_of_parquet_gets_types_and_comparisons(
    spark: SparkSession, table: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = (tmp_path / "events").as_uri()
    spark.createDataFrame(table).write.parquet(folder)
    frame = spark.read.parquet(folder)
    query = "PATTERN SEQ(E a, F b) WHERE [small] AND a.real > 1.5 AND b.real < 1 WITHIN 5"
    plan = make_plan(parse(query), arrow_schema(frame))
    capsys.readouterr()
    frame.filter(candidate_filters(plan, frame.schema).anywhere).explain("formatted")
    pushed = next(line for line in capsys.readouterr().out.splitlines() if "PushedFilters" in line)
    for part in ("In(type, [E,F])", "IsNotNull(small)", "GreaterThan(real,1.5)", "LessThan(real,1.0)"):
        assert part in pushed


def test_components_that_take_the_same_events_share_a_condition(spark: SparkSession, table: pa.Table) -> None:
    frame = spark.createDataFrame(table)
    options = ", ".join(f"(E|F)? e{number}" for number in range(6))
    plan = make_plan(
        parse(f"PATTERN SEQ(E a, {options}, F b) WHERE a.real > 1 WITHIN 5"), arrow_schema(frame)
    )
    filters = candidate_filters(plan, frame.schema)
    assert sum(map(len, filters.components)) > 12
    assert len(filters.distinct) == 3
