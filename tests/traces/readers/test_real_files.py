"""Readers on real files: how many events of each type, the columns, and a digest of all values."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import uncertain_cep as uc

MODEL = "type id lower upper tick"
SPARK = (
    f"{MODEL} app job_id stage_id stage_attempt task_id index attempt executor host failed end_reason name"
)
HADOOP = f"{MODEL} job_id task_id attempt_id attempt task_type host status clock name"
GANGLIA = f"{MODEL} grid cluster host value text units"
GOLDENS: dict[str, tuple[str, str, str, dict[str, int]]] = {
    "spark_eventlogs/raw/gpu_oom_eventlog.zstd": (
        "spark-eventlog",
        SPARK,
        "b53bb2aa569a760c",
        {
            "ApplicationStart": 1,
            "JobStart": 37,
            "StageStart": 37,
            "ExecutorStart": 2,
            "TaskStart": 12447,
            "TaskEnd": 12416,
            "StageEnd": 37,
            "JobEnd": 37,
            "ApplicationEnd": 1,
        },
    ),
    "spark_eventlogs/raw/nds_q72_dataproc_2_2.zstd": (
        "spark-eventlog",
        SPARK,
        "ba008f9888f24cc2",
        {
            "ApplicationStart": 1,
            "ExecutorStart": 8,
            "JobStart": 49,
            "StageStart": 49,
            "TaskStart": 13504,
            "TaskEnd": 13504,
            "StageEnd": 49,
            "JobEnd": 49,
            "ApplicationEnd": 1,
        },
    ),
    "spark_eventlogs/raw/eks_spark-cc4d115f011443d787f03a71a476a745.jsonl.gz": (
        "spark-eventlog",
        SPARK,
        "b69477f847bb47c7",
        {
            "ApplicationStart": 1,
            "JobStart": 6,
            "StageStart": 6,
            "ExecutorStart": 4,
            "TaskStart": 73,
            "TaskEnd": 73,
            "StageEnd": 6,
            "JobEnd": 6,
            "ApplicationEnd": 1,
        },
    ),
    "yahoo_hadoop_2009_skew/raw/19-jobs.trace.json.gz": (
        "hadoop-rumen",
        HADOOP,
        "d7a83e0ff78e026e",
        {
            "JobSubmit": 19,
            "JobStart": 19,
            "JobEnd": 19,
            "TaskStart": 11869,
            "TaskEnd": 8447,
            "AttemptStart": 13035,
            "AttemptEnd": 13041,
            "ShuffleEnd": 2761,
            "SortEnd": 2761,
        },
    ),
    "yahoo_hadoop_2009_skew/raw/folder-input-trace.json.gz": (
        "hadoop-rumen",
        HADOOP,
        "3606b71d29dbebd8",
        {
            "JobSubmit": 59,
            "JobStart": 59,
            "JobEnd": 59,
            "TaskStart": 1226,
            "TaskEnd": 1226,
            "AttemptStart": 1226,
            "AttemptEnd": 1226,
            "ShuffleEnd": 367,
            "SortEnd": 367,
        },
    ),
    "yahoo_hadoop_2009_skew/raw/dispatch-sample-v20-jt-log.gz": (
        "hadoop-history",
        HADOOP,
        "8588db385ef652a3",
        {
            "JobSubmit": 4,
            "JobStart": 4,
            "TaskStart": 210,
            "AttemptStart": 283,
            "AttemptEnd": 283,
            "TaskEnd": 210,
            "JobEnd": 4,
            "ShuffleEnd": 49,
            "SortEnd": 49,
        },
    ),
    "ganglia_xml/tiramola_gmond_cassandra_2014.xml": (
        "ganglia",
        GANGLIA,
        "444a2913030b2406",
        {
            "mem_cached": 3,
            "pkts_in": 3,
            "bytes_in": 3,
            "bytes_out": 3,
            "swap_total": 2,
            "mem_free": 3,
            "load_fifteen": 3,
            "os_name": 2,
            "boottime": 2,
            "cpu_idle": 3,
            "cpu_user": 3,
            "cpu_nice": 3,
            "cpu_aidle": 3,
            "mem_buffers": 3,
            "cpu_system": 3,
            "part_max_used": 3,
            "disk_total": 1,
            "mem_shared": 3,
            "cpu_wio": 3,
            "machine_type": 2,
            "proc_total": 3,
            "cpu_num": 2,
            "cpu_speed": 2,
            "pkts_out": 3,
            "swap_free": 3,
            "load_one": 3,
            "mem_total": 2,
            "os_release": 2,
            "proc_run": 3,
            "load_five": 3,
            "gexec": 3,
            "disk_free": 3,
        },
    ),
}
"""By file: the format, the columns, the digest, and the counts."""


def digest(table: pa.Table) -> str:
    hashed = hashlib.sha256()
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_timestamp(column.type):
            hashed.update(str(column.type).encode())
            column = column.cast(pa.int64())
        hashed.update(repr(column.to_pylist()).encode())
    return hashed.hexdigest()[:16]


@pytest.mark.parametrize("file", GOLDENS)
def test_a_real_file_is_read_as_before(shared_data: Path, file: str) -> None:
    name, columns, expected, counts = GOLDENS[file]
    table = uc.read_traces(shared_data / file, format=name)
    assert table.column_names == columns.split()
    assert dict(Counter(table.column("type").to_pylist())) == counts
    assert digest(table) == expected
    assert len(set(table.column("id").to_pylist())) == table.num_rows
    with pytest.warns(uc.UncertainCepWarning, match=f"read as {name}, as what is in there says"):
        assert uc.read_traces(shared_data / file).equals(table)
