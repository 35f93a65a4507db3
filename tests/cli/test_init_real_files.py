"""Real files: what ``init`` writes reads the times that stand in them, by another reading of each file."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.cli.test_init import written
from tests.cli.test_init_choices import run

Times = list[int]
"""Nanoseconds since 1970 in UTC."""


def rows_of(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def numbers(unit: int, *names: str) -> Callable[[Path], Times]:
    """Return a reading of columns of numbers, of which those of 0 and less are no times."""
    return lambda path: [
        int(row[name]) * unit for row in rows_of(path) for name in names if int(row[name] or 0) > 0
    ]


def texts(name: str, form: str) -> Callable[[Path], Times]:
    def read(path: Path) -> Times:
        stamps = [dt.datetime.strptime(row[name], form).replace(tzinfo=dt.UTC) for row in rows_of(path)]
        return [int(stamp.timestamp()) * 10**9 for stamp in stamps]

    return read


def milliseconds(expression: str) -> Callable[[Path], Times]:
    """Return a reading of whatever an expression fits anywhere in a text."""

    def read(path: Path) -> Times:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return [int(match) * 10**6 for match in re.findall(expression, file.read()) if int(match) > 0]

    return read


def of_rumen(path: Path) -> Times:
    """Return the starts of attempts, wherever they stand in documents of JSON."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        text = file.read()
    times: Times = []
    decoder, place = json.JSONDecoder(), 0
    while place < len(text):
        document, place = decoder.raw_decode(text, place)
        for kind in ("mapTasks", "reduceTasks", "otherTasks"):
            attempts = [attempt for task in document[kind] or () for attempt in task["attempts"] or ()]
            times += [attempt["startTime"] * 10**6 for attempt in attempts if attempt["startTime"] > 0]
        place += len(text[place:]) - len(text[place:].lstrip())
    return times


_SECONDS: Final = "%Y-%m-%d %H:%M:%S"
_EKS: Final = r'"Event":"SparkListenerTaskStart".*?"Launch Time":([0-9]+)'
_JT: Final = r'(?:Map|Reduce)Attempt [^\n]*?TASK_ATTEMPT_ID="[^\n]*?START_TIME="([0-9]+)"'

_ATTEMPTS: Final = ("jt_start", "jt_finish", "tt_start", "tt_shuffle", "tt_sort", "tt_finish")

FILES: Final[dict[str, tuple[Callable[[Path], Times], int, str | None]]] = {
    "nab_cloudwatch_2014/ec2_cpu_utilization_24ae8d.csv.gz": (texts("timestamp", _SECONDS), 600, None),
    "nab_cloudwatch_2014/elb_request_count_8c0756.csv.gz": (texts("timestamp", _SECONDS), 600, None),
    "nab_cloudwatch_2014/grok_asg_anomaly.csv.gz": (texts("timestamp", _SECONDS), 600, None),
    "spark_eventlogs/tasks_eks.csv.gz": (numbers(10**6, "launch_ms", "finish_ms"), 1, None),
    "spark_eventlogs/tasks_gpu_oom.csv.gz": (numbers(10**6, "launch_ms", "finish_ms"), 1, None),
    "yahoo_hadoop_2009_skew/attempts_59jobs_oct2009.csv.gz": (
        numbers(10**6, *(f"{name}_ms" for name in _ATTEMPTS)), 1, None
    ),
    "nezha_onlineboutique_2022/2022-08-22/trace/05_19_trace.csv.gz": (
        numbers(1, "StartTimeUnixNano", "EndTimeUnixNano"), 1, None
    ),
    "nezha_onlineboutique_2022/2022-08-22/metric/front_service.csv.gz": (
        numbers(10**9, "TimeStamp"), 120, None
    ),
    "spark_eventlogs/raw/eks_spark-cc4d115f011443d787f03a71a476a745.jsonl.gz": (
        milliseconds(_EKS), 1, "TaskStart"
    ),
    "yahoo_hadoop_2009_skew/raw/dispatch-sample-v20-jt-log.gz": (milliseconds(_JT), 1, "AttemptStart"),
    "yahoo_hadoop_2009_skew/raw/folder-input-trace.json.gz": (of_rumen, 1, "AttemptStart"),
}  # fmt: skip
"""For each file another reading, the longest that an event lasts in seconds, and the type it is of."""


def nanoseconds(column: Any) -> Times:
    return list(column.cast(pa.timestamp("ns")).cast(pa.int64()).to_pylist())


@pytest.mark.parametrize("name", FILES)
def test_times_of_real_files(shared_data: Path, tmp_path: Path, name: str) -> None:
    read, seconds, of_type = FILES[name]
    path = shared_data / name
    written(run, tmp_path / "new", path)
    table = uc.read_traces(path, tmp_path / "new" / "schema.toml")
    if of_type is not None:
        table = table.filter(pa.compute.equal(table["type"], of_type))
    expected = sorted(read(path))
    assert expected
    assert table.num_rows == len(expected)
    bounds = sorted(zip(nanoseconds(table["lower"]), nanoseconds(table["upper"]), strict=True))
    for (lower, upper), moment in zip(bounds, expected, strict=True):
        assert lower <= moment <= upper + 1000
        assert upper - lower <= seconds * 10**9
