"""What readers make of real files: how many events of each type, the columns, and a digest of all values."""

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
}
"""By file: the format, the columns, the digest, and the counts."""


def digest(table: pa.Table) -> str:
    found = hashlib.sha256()
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_timestamp(column.type):
            found.update(str(column.type).encode())
            column = column.cast(pa.int64())
        found.update(repr(column.to_pylist()).encode())
    return found.hexdigest()[:16]


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
