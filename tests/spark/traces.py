"""Random traces, and the comparison of Spark's matches with those of the in-process engine."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import uncertain_cep as uc
from uncertain_cep.spark import match

NOT_GENERATED: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Compiling takes longer than a few rows do. tests/cli has Spark generate code as ever."""

UNTRACED: Final = {"spark.python.sql.dataFrameDebugging.enabled": "false"}
"""Else each column asks the JVM several times where in Python it was made."""

FORKED: Final = {"spark.python.daemon.module": "tests.spark.daemon"}
"""Workers have imported what they need when they start."""

FEW_PROGRAMS: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}
"""Else Java, which has no library for it here, starts eight programs to rename a file of a checkpoint."""

PATIENT: Final = {"spark.python.authenticate.socketTimeout": "3600s"}
"""A busy machine may take longer than the 15 s that Spark waits for Python to fetch rows."""

KEYED = """
    PATTERN SEQ(A a, B b, (A|C) c) WHERE [key] AND a.value % 3 != 1 AND b.weight >= a.weight - 5
    AND c.value < 9 WITHIN 12
"""
UNKEYED = "PATTERN SEQ(A a, ANY b, C c) WHERE b.value > 5 AND a.name != c.name WITHIN 9"


def random_trace(seed: int, events: int, *, keys: int | None = None, span: int = 60) -> pa.Table:
    """Return events with ties, certain times, a few very long intervals, and nulls among the attributes."""
    draw = np.random.default_rng(seed)
    lower = draw.integers(-span // 3, span, events)
    lengths = np.where(draw.random(events) < 0.04, 3 * span, draw.integers(0, 7, events))
    lengths[draw.random(events) < 0.2] = 0

    def holed(values: list[Any]) -> list[Any]:
        return [None if gap else value for value, gap in zip(values, draw.random(events) < 0.1, strict=True)]

    columns = {
        "type": draw.choice(["A", "B", "C", "D"], events).tolist(),
        "id": draw.permutation(events).tolist(),
        "lower": lower.tolist(),
        "upper": (lower + lengths).tolist(),
        "value": pa.array(holed(draw.integers(-3, 12, events).tolist()), pa.int32()),
        "weight": holed(draw.normal(0, 5, events).tolist()),
        "name": holed(draw.choice(["x", "y", "é"], events).tolist()),
        "not used": [[1]] * events,
    }
    if keys is not None:
        columns["key"] = pa.array(holed(draw.integers(0, keys, events).tolist()), pa.int64())
    return pa.table(columns)


def to_spark(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return a table as a frame whose rows are dealt out to its partitions, one for each core."""
    turns = np.argsort(np.arange(table.num_rows) % 2, kind="stable")
    return spark.createDataFrame(table.take(turns))


def as_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows of a result in one order, with confidences and means rounded."""

    def rounded(value: Any) -> Any:
        return float(f"{value:.10g}") if isinstance(value, float) else value

    return sorted((tuple(map(rounded, row.values())) for row in table.to_pylist()), key=repr)


def assert_same(frame: DataFrame, table: pa.Table, query: str, minimum: int = 1, **options: Any) -> None:
    """Assert that Spark finds what the in-process engine finds, and at least so many matches."""
    local = {key: options[key] for key in ("tick", "names", "confidence") if key in options}
    expected = uc.match(table, query, **local)
    assert expected.num_rows >= minimum
    matches = match(frame, query, **options)
    assert matches.columns == expected.column_names
    assert as_rows(matches.toArrow()) == as_rows(expected)
