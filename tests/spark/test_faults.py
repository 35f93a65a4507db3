"""Events at fault are reported as by the in-process engine, candidates or not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import uncertain_cep as uc
from tests.spark.traces import UNKEYED, random_trace
from uncertain_cep.errors import RuntimeEnvironmentError, TraceError
from uncertain_cep.spark import match, unique_ids, worker_errors


def trace_with(column: str, values: dict[int, Any]) -> pa.Table:
    table = random_trace(1, 60).append_column("pmf", pa.nulls(60, pa.list_(pa.float64())))
    place = table.schema.get_field_index(column)
    changed = table.column(column).to_pylist()
    for row, value in values.items():
        changed[row] = value
    return table.set_column(place, column, pa.array(changed, table.schema.field(place).type))


FAULTS = [
    ("type", {3: None}),
    ("id", {3: None}),
    ("lower", {3: None, 4: None}),
    ("upper", {3: None}),
    ("upper", {3: -1000}),
    ("upper", {3: 2**62}),
    ("lower", {3: -(2**63)}),
    ("pmf", {3: [0.25] * 500}),
    ("pmf", {3: []}),
]


@pytest.mark.parametrize(("column", "values"), FAULTS)
def test_the_fault_is_that_of_the_engine(spark: SparkSession, column: str, values: dict[int, Any]) -> None:
    table = trace_with(column, values)
    # Whether the event is a candidate makes no difference.
    table = table.set_column(0, "type", pa.array(
        [kind if kind is None or row != 3 else "Other" for row, kind in enumerate(table[0].to_pylist())]
    ))  # fmt: skip
    with pytest.raises(TraceError) as expected:
        uc.match(table, UNKEYED)
    with pytest.raises(TraceError) as on_spark:
        match(spark.createDataFrame(table), UNKEYED)
    expected_faults = {(fault.message, fault.column, fault.value) for fault in expected.value.faults}
    assert {(fault.message, fault.column, fault.value) for fault in on_spark.value.faults} == expected_faults
    assert all(fault.row is None for fault in on_spark.value.faults)


@pytest.mark.parametrize(
    "probabilities", [[0.5, 0.5 + 1e-6], [1.5, -0.5], [float("nan"), 1.0], [float("inf"), 0.0], [None, 1.0]]
)
def test_faulty_probabilities(spark: SparkSession, probabilities: list[float | None]) -> None:
    table = pa.table({"type": ["A"], "id": [1], "lower": [4], "upper": [5], "value": [1], "name": ["x"],
                      "pmf": pa.array([probabilities], pa.list_(pa.float64()))})  # fmt: skip
    with pytest.raises(TraceError, match="pmf"):
        match(spark.createDataFrame(table), UNKEYED)


def test_many_faults_are_counted(spark: SparkSession) -> None:
    # What is the same of two events is said once.
    table = trace_with("upper", {row: -1000 - row for row in range(50)})
    with pytest.raises(TraceError) as raised:
        match(spark.createDataFrame(table), UNKEYED)
    assert len(raised.value.faults) == 21
    assert "30 more events have such faults" in str(raised.value)


def test_uneven_times(spark: SparkSession) -> None:
    table = pa.table(
        {
            "type": ["A", "B"],
            "id": [1, 2],
            "lower": pa.array([100_000, 250_000], pa.timestamp("us", "UTC")),
            "upper": pa.array([100_000, 300_000], pa.timestamp("us", "UTC")),
        }
    )
    with pytest.raises(TraceError, match="not a whole number of ticks of 100ms"):
        match(spark.createDataFrame(table), "PATTERN SEQ(A a, B b) WITHIN 5", tick="100ms")


def test_an_id_used_twice_is_found_by_the_worker(spark: SparkSession) -> None:
    table = pa.table({"type": ["A", "B", "A"], "id": [7, 8, 7], "lower": [1, 2, 3], "upper": [1, 2, 3]})
    matches = match(spark.createDataFrame(table), "PATTERN SEQ(A a, B b) WITHIN 5")
    with pytest.raises(TraceError, match="has this id") as raised, worker_errors():
        matches.collect()
    assert "value 7" in str(raised.value)
    assert "Traceback" not in str(raised.value)
    assert "SQLSTATE" not in str(raised.value)


def _far_apart(ids: pa.Array, hosts: list[str | None]) -> pa.Table:
    """Return pairs of A and B that are too far apart for two of them to reach the same slice."""
    lower = pa.array([(n // 2) * 1000 + n % 2 for n in range(len(ids))])
    types = pa.array(["A", "B"] * (len(ids) // 2))
    return pa.table({"type": types, "id": ids, "lower": lower, "upper": lower, "host": hosts})


def _sliced(spark: SparkSession, table: pa.Table, query: str) -> DataFrame:
    return match(spark.createDataFrame(table), query, partitions=2, slice_length=10)


PLAIN: Final = "PATTERN SEQ(A a, B b) WITHIN 5"
KEYED: Final = "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 5"
SOME_IDS: Final = {
    "whole": pa.array([1, 2, 3, 4, 1, 5, -70, 6]),
    "small": pa.array([1, 2, 3, 4, 1, 5, -70, 6], pa.int32()),
    "far apart": pa.array([2**62, 2, 3, 4, 2**62, 5, -(2**62), 6]),
    "text": pa.array(list("abcdaefg")),
}


@pytest.mark.parametrize("ids", SOME_IDS.values(), ids=SOME_IDS.keys())
def test_an_id_used_twice_is_found_in_different_slices(spark: SparkSession, ids: pa.Array) -> None:
    table = _far_apart(ids, ["u"] * 8)
    with pytest.raises(TraceError, match="an earlier event has this id") as here:
        uc.match(table, PLAIN)
    with pytest.raises(TraceError, match="an earlier event has this id") as raised:
        _sliced(spark, table, PLAIN)
    assert [replace(fault, row=None) for fault in here.value.faults] == list(raised.value.faults)
    with pytest.raises(TraceError, match="an earlier event with the same host has this id"):
        _sliced(spark, table, KEYED)


@pytest.mark.parametrize("ids", SOME_IDS.values(), ids=SOME_IDS.keys())
def test_ids_may_start_again_in_each_partition(spark: SparkSession, ids: pa.Array) -> None:
    table = _far_apart(ids, ["u", "u", "u", "u", "v", "v", None, "v"])
    matches = _sliced(spark, table, KEYED)
    assert matches.count() == uc.match(table, KEYED).num_rows == 3


def test_an_id_that_no_candidate_has_twice(spark: SparkSession) -> None:
    table = _far_apart(pa.array([1, 2, 3, 4, 5, 6, 1, 2]), ["u"] * 8)
    query = "PATTERN SEQ(A a, B b) WHERE a.lower < 3000 AND b.lower < 3000 WITHIN 5"
    assert _sliced(spark, table, query).count() == uc.match(table, query).num_rows == 3


def test_each_branch_has_candidates_of_its_own(spark: SparkSession) -> None:
    table = _far_apart(pa.array([1, 2, 3, 4, 1, 5]), ["u"] * 6)
    query = "PATTERN OR(SEQ(A a, B b), SEQ(B c, A d)) WHERE {} AND {} WITHIN 5"
    apart = query.format("a.lower < 1500", "d.lower > 1500")
    assert _sliced(spark, table, apart).count() == uc.match(table, apart).num_rows
    with pytest.raises(TraceError, match="has this id"):
        _sliced(spark, table, query.format("a.lower < 1500", "d.lower >= 0"))


def test_branches_are_looked_at_one_by_one_only_where_ids_recur(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "PATTERN SEQ(A a, C? c, D? d, E? e, B b) WITHIN 5"
    suspected, jobs = unique_ids._suspected, []

    def counted(*arguments: Any) -> bool:
        jobs.append(suspected(*arguments))
        return jobs[-1]

    monkeypatch.setattr(unique_ids, "_suspected", counted)
    apart = _far_apart(pa.array([5, 2, 3, 4, 1, 6]), ["u"] * 6)
    assert _sliced(spark, apart, query).count() == uc.match(apart, query).num_rows == 3
    assert jobs == [False]
    twice = _far_apart(pa.array([5, 2, 3, 4, 5, 6]), ["u"] * 6)
    with pytest.raises(TraceError, match="has this id"):
        _sliced(spark, twice, query)


def test_many_ids_used_twice_are_counted(spark: SparkSession) -> None:
    table = _far_apart(pa.array([*range(60), *range(60)]), ["u"] * 120)
    with pytest.raises(TraceError) as raised:
        _sliced(spark, table, PLAIN)
    assert len(raised.value.faults) == 21
    assert "the same in 40 more rows" in str(raised.value)


def test_other_errors_pass(spark: SparkSession) -> None:
    with pytest.raises(PySparkException), worker_errors():
        spark.sql("select raise_error('something else')").collect()


def test_a_process_that_takes_too_long_to_start() -> None:
    with pytest.raises(RuntimeEnvironmentError, match="the machine is too busy"), worker_errors():
        raise PySparkException("terminated with exception: Python worker failed to connect back. SQLSTATE: 1")


def test_the_slices_of_an_event_are_no_duplicates(spark: SparkSession) -> None:
    table = pa.table({"type": ["A", "B", "A"], "id": [1, 2, 3], "lower": [0, 0, 90], "upper": [0, 99, 95]})
    matches = match(
        spark.createDataFrame(table), "PATTERN SEQ(A a, B b) WITHIN 100", partitions=2, slice_length=3
    )
    assert sorted(row["a"] for row in matches.collect()) == [1, 3]
