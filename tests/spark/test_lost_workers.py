"""Python workers that are killed: their tasks are tried again, and nothing is found or written twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import uncertain_cep as uc
from tests.spark.traces import KEYED, as_rows, random_trace
from uncertain_cep.errors import RuntimeEnvironmentError
from uncertain_cep.spark import match, match_to_parquet
from uncertain_cep.spark import worker as workers
from uncertain_cep.spark.session import TASK_TRIES

Batches = Iterable[pa.RecordBatch]


def dying(
    batches: Batches, *, work: Callable[[Batches], Batches], folder: str, kills: int
) -> Iterator[pa.RecordBatch]:
    """Do some work; the first workers that have done theirs are killed before they can say so."""
    done = list(work(batches))
    for number in range(kills):
        try:
            Path(folder, str(number)).touch(exist_ok=False)
        except FileExistsError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)
    yield from done


def passed(batches: Batches) -> Batches:
    return batches


def writing_and_dying(batches: Batches, *, deaths: str, **options: Any) -> Iterator[pa.RecordBatch]:
    """Write a partition of matches; the first worker that has done so is killed."""
    write = partial(workers.write_partition, **options)
    return dying(batches, work=write, folder=deaths, kills=1)


def test_a_killed_worker_is_replaced_and_what_it_wrote_is_not_kept(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths, out = tmp_path / "deaths", tmp_path / "deep" / "out"
    deaths.mkdir()
    write = partial(writing_and_dying, deaths=str(deaths))
    monkeypatch.setattr("uncertain_cep.spark.writing.write_partition", write)
    table = random_trace(2, 300, keys=5)
    expected = uc.match(table, KEYED)
    assert match_to_parquet(spark.createDataFrame(table), KEYED, out, partitions=2) == expected.num_rows
    assert len(list(deaths.iterdir())) == 1
    assert as_rows(pq.read_table(out)) == as_rows(expected)
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_a_worker_that_is_lost_at_each_try(spark: SparkSession, tmp_path: Path) -> None:
    source = spark.createDataFrame(random_trace(3, 30, keys=5)).coalesce(1)
    die = partial(dying, work=passed, folder=str(tmp_path), kills=TASK_TRIES)
    frame = source.mapInArrow(die, source.schema)
    with pytest.raises(RuntimeEnvironmentError, match="Spark lost a process") as raised:
        match(frame, KEYED)
    assert len(str(raised.value).splitlines()) == 1
    assert len(list(tmp_path.iterdir())) == TASK_TRIES
