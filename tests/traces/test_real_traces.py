"""The real traces through schemas, against their raw rows read without the library."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pyarrow as pa

from tests.traces.files import validation_report
from uncertain_cep.timeline.domain import TimeDomain
from uncertain_cep.traces import TraceSchema, load_schema, read_traces


def raw_rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def schema_of(folder: Path, text: str) -> TraceSchema:
    path = folder / "schema.toml"
    path.write_text(text, encoding="utf-8")
    return load_schema(path)


def intervals(table: pa.Table) -> dict[object, tuple[int, int]]:
    lower, upper = (table.column(name).cast(pa.int64()).to_pylist() for name in ("lower", "upper"))
    return dict(zip(table.column("id").to_pylist(), zip(lower, upper, strict=True), strict=True))


def test_hadoop_attempts_by_the_clocks_of_their_hosts(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "yahoo_hadoop_2009_skew"
    schema = schema_of(
        tmp_path,
        """
        tick = "1ms"
        [types]
        attempt = "int"
        [extract]
        attempt_id = "_(?P<attempt>[0-9]+)$"
        [[events]]
        files = "attempts_19jobs*"
        type = "MapFinish"
        id = "{attempt_id}:finish"
        time = "tt_finish_ms"
        unit = "ms"
        where = "result = 'SUCCESS' AND task_type = 'MAP' AND tt_finish_ms > 0"
        attributes = ["job_id", "task_id", "attempt", "host"]
        missing = "drop"
        [events.uncertainty]
        kind = "clock_offset"
        table = "host_offsets_19jobs.csv.gz"
        lower = "offset_lo_ms"
        upper = "offset_hi_ms"
        """,
    )
    report = validation_report(folder, schema)
    table = read_traces(folder, schema)
    assert report.faults == ()
    offsets = {
        row["host"]: (int(row["offset_lo_ms"]), int(row["offset_hi_ms"]))
        for row in raw_rows(folder / "host_offsets_19jobs.csv.gz")
    }
    rows = [
        row
        for row in raw_rows(folder / "attempts_19jobs.csv.gz")
        if row["result"] == "SUCCESS" and row["task_type"] == "MAP" and int(row["tt_finish_ms"]) > 0
    ]
    expected = {
        f"{row['attempt_id']}:finish": tuple(
            int(row["tt_finish_ms"]) + offset for offset in offsets[row["host"]]
        )
        for row in rows
        if row["host"] in offsets
    }
    assert intervals(table) == expected
    assert (report.rows, report.events, report.dropped) == (13_041, len(expected), len(rows) - len(expected))
    assert table.column_names == [
        "type",
        "id",
        "lower",
        "upper",
        "tick",
        "job_id",
        "task_id",
        "attempt",
        "host",
    ]
    assert table.column("attempt").to_pylist() == [
        int(name.removesuffix(":finish").rpartition("_")[2]) for name in table.column("id").to_pylist()
    ]
    assert table.schema.field("lower").type == pa.timestamp("ms")


def test_spark_tasks_with_the_slack_of_their_executors(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "spark_eventlogs" / "tasks_gpu_oom.csv.gz"
    schema = schema_of(
        tmp_path,
        """
        tick = "1ms"
        [types]
        executor = "string"
        [[events]]
        type = "TaskStart"
        id = "{task_id}:start"
        unit = "ms"
        attributes = ["stage_id", "executor", "failed"]
        uncertainty = { kind = "columns", lower = "launch_ms", upper = "launch_ms + slack_ms" }
        [[events]]
        type = "TaskEnd"
        id = "{task_id}:end"
        unit = "ms"
        where = "failed = 1"
        attributes = ["stage_id", "executor", "failed"]
        uncertainty = { kind = "columns", lower = "finish_ms - slack_ms", upper = "finish_ms" }
        """,
    )
    table = read_traces(path, schema)
    expected = {}
    for row in raw_rows(path):
        launch, finish, slack = (int(row[name]) for name in ("launch_ms", "finish_ms", "slack_ms"))
        expected[f"{row['task_id']}:start"] = (launch, launch + slack)
        if row["failed"] == "1":
            expected[f"{row['task_id']}:end"] = (finish - slack, finish)
    assert intervals(table) == expected
    assert TimeDomain.of(table.schema).describe() == "1ms"
    assert table.schema.field("executor").type == pa.string()
    assert validation_report(path, schema).faults == ()


def test_metrics_cover_the_minute_before_their_stamp(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "nezha_onlineboutique_2022" / "2022-08-22"
    schema = schema_of(
        tmp_path,
        """
        tick = "1ms"
        [[events]]
        files = "metric/*_metric.csv.gz"
        type = "CPU"
        id = "{PodName}/{TimeStamp}"
        time = "TimeStamp"
        unit = "s"
        attributes = { pod = "PodName", cpu = "CpuUsageRate(%)" }
        uncertainty = { kind = "window", length = "60s" }
        [[events]]
        files = "03_5*_trace.csv.gz"
        type = "Span"
        id = "{SpanID}"
        time = "StartTimeUnixNano"
        unit = "ns"
        attributes = { pod = "PodName", microseconds = "Duration" }
        uncertainty = { kind = "plus_minus", by = "1ms" }
        """,
    )
    table = read_traces(folder, schema)
    metrics = [row for path in (folder / "metric").glob("*_metric.csv.gz") for row in raw_rows(path)]
    spans = [row for path in (folder / "trace").glob("03_5*_trace.csv.gz") for row in raw_rows(path)]
    expected = {
        f"{row['PodName']}/{row['TimeStamp']}": (
            (int(row["TimeStamp"]) - 60) * 1000 + 1,
            int(row["TimeStamp"]) * 1000,
        )
        for row in metrics
    }
    for row in spans:
        at = int(row["StartTimeUnixNano"])
        expected[row["SpanID"]] = ((at - 10**6) // 10**6, (at + 10**6) // 10**6)
    assert table.num_rows == len(metrics) + len(spans)
    assert intervals(table) == expected
    assert table.schema.field("cpu").type == pa.float64()


def test_cloudwatch_statistics_cover_the_five_minutes_after_their_stamp(shared_data: Path) -> None:
    path = shared_data / "nab_cloudwatch_2014" / "ec2_cpu_utilization_24ae8d.csv.gz"
    schema = TraceSchema.from_flags(type="CPU", time="timestamp", uncertainty="granularity:5min")
    table = read_traces(path, schema)
    assert table.slice(0, 1).to_pylist()[0]["value"] == 0.132
    first = (
        table.column("lower").cast(pa.string())[0].as_py(),
        table.column("upper").cast(pa.string())[0].as_py(),
    )
    assert first == ("2014-02-14 14:30:00.000000", "2014-02-14 14:34:59.999999")
    assert table.column("id").to_pylist() == list(range(1, 4033))
