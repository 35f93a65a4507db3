"""Frames that hold the events of files are matched by workers that read the files; others by a shuffle."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import uncertain_cep as uc
from tests.spark.traces import KEYED, as_rows, random_trace
from uncertain_cep.errors import TraceError, UncertainCepWarning
from uncertain_cep.plan import MatchOptions
from uncertain_cep.running.meter import Meter
from uncertain_cep.spark import file_worker, match_to_parquet, read_traces
from uncertain_cep.spark.jobs import tasks_told
from uncertain_cep.spark.preparing import Spread, prepare


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two Parquet files in the order of time, small as they are in tasks and parts of their own."""
    monkeypatch.setattr("uncertain_cep.spark.file_reading.ROWS_PER_PART", 40)
    monkeypatch.setattr("uncertain_cep.spark.file_tasks.ROWS_WORTH_A_TASK", 100)
    return write(tmp_path / "events", events(1))


def events(seed: int) -> pa.Table:
    table = random_trace(seed, 200, keys=3, span=300).drop_columns("not used").sort_by("lower")
    upper = np.minimum(np.asarray(table.column("upper")), np.asarray(table.column("lower")) + 5)
    table = table.set_column(table.schema.get_field_index("upper"), "upper", pa.array(upper))
    return table.set_column(1, "id", pa.array(np.arange(200)))


def write(folder: Path, table: pa.Table) -> Path:
    folder.mkdir()
    for number in range(2):
        part = table.slice(number * 100, 100)
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=20)
    return folder


def tasks(frame: DataFrame, spread: Spread = Spread()) -> int:  # noqa: B008
    """Return in how many tasks workers read files; 0 if Spark reads the events, as it then is about to."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("uncertain_cep.spark.preparing.collect_statistics", about_to_read)
        try:
            work = prepare(frame, KEYED, MatchOptions(), spread).work
        except AboutToReadError:
            return 0
    assert work is not None
    return len(work.tasks)


class AboutToReadError(Exception):
    """Spark itself is about to read the events."""


def about_to_read(*_: object, **__: object) -> None:
    raise AboutToReadError


def test_which_frames_are_those_of_files(spark: SparkSession, folder: Path) -> None:
    paths = [str(path) for path in sorted(folder.iterdir())]
    whole = [
        read_traces(spark, folder),
        read_traces(spark, paths),
        spark.read.parquet(str(folder)),
        spark.read.parquet(folder.as_uri()),
        spark.read.parquet(*paths),
    ]
    assert [tasks(frame) for frame in whole] == [2] * len(whole)
    explanation = "workers read the files: 6 parts in 2 tasks"
    assert explanation in uc.explain(KEYED, whole[0])
    assert explanation in uc.explain(KEYED, whole[0], format="json")
    first = whole[0]
    assert tasks(spark.read.parquet(paths[0])) == 1
    other_frames = [
        first.filter("value > 0"),
        first.limit(10),
        first.withColumn("value", f.col("value") + 1),
        first.union(first),
        spark.read.option("mergeSchema", True).parquet(str(folder)),
        spark.createDataFrame(events(1)),
    ]
    assert not any(tasks(frame) for frame in other_frames)
    assert "Spark reads and shuffles the events" in uc.explain(KEYED, other_frames[0])
    assert not tasks(first, Spread(slice_length=5))
    assert not tasks(first, Spread(prune=True))
    first.cache()
    try:
        assert not tasks(first)
    finally:
        first.unpersist()


@pytest.mark.parametrize("clause", ["", "OUTPUT NON OVERLAPPING", "ORDER BY CONFIDENCE DESC LIMIT 4"])
def test_the_same_matches(spark: SparkSession, folder: Path, tmp_path: Path, clause: str) -> None:
    query = f"{KEYED} {clause}"
    expected = uc.match(events(1), query)
    assert expected.num_rows >= 3
    assert match_to_parquet(read_traces(spark, folder), query, tmp_path / "out") == expected.num_rows
    assert as_rows(pq.read_table(tmp_path / "out")) == as_rows(expected)


def test_text_files(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    table = events(2)
    pyarrow.csv.write_csv(table.slice(0, 110), tmp_path / "one.csv")
    pyarrow.csv.write_csv(table.slice(110), tmp_path / "two.csv")
    frame = read_traces(spark, [tmp_path / "one.csv", tmp_path / "two.csv"])
    assert tasks(frame) == 2
    expected = uc.match(table, KEYED)
    assert match_to_parquet(frame, KEYED, tmp_path / "out") == expected.num_rows
    assert as_rows(pq.read_table(tmp_path / "out")) == as_rows(expected)
    assert not tasks(frame.filter("value > 0"))


def test_times_with_a_tick(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    table = events(1)
    for name in ("lower", "upper"):
        times = table.column(name).cast(pa.timestamp("ms", "UTC"))
        table = table.set_column(table.schema.get_field_index(name), name, times)
    query = KEYED.replace("WITHIN 12", "WITHIN 12 milliseconds")
    frame = read_traces(spark, write(tmp_path / "timed", table))
    expected = uc.match(table, query, tick="1ms")
    assert match_to_parquet(frame, query, tmp_path / "out", tick="1ms") == expected.num_rows > 0
    matches = pq.read_table(tmp_path / "out")
    places = [place for place, name in enumerate(matches.schema.names) if name.startswith("range")]
    cast = [matches.column(place).cast(expected.schema.field(place).type) for place in places]
    for place, column in zip(places, cast, strict=True):
        matches = matches.set_column(place, matches.schema.names[place], column)
    assert as_rows(matches) == as_rows(expected)


def changed(table: pa.Table, column: str, values: dict[int, Any]) -> pa.Table:
    column_values = table.column(column).to_pylist()
    for row, value in values.items():
        column_values[row] = value
    place = table.schema.get_field_index(column)
    return table.set_column(place, column, pa.array(column_values, table.schema.field(place).type))


def test_all_faults_of_all_files(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    table = changed(events(1), "upper", {5: -10_000, 150: -10_000})
    where = write(tmp_path / "faulty", changed(table, "type", {80: None}))
    with pytest.raises(TraceError) as raised:
        match_to_parquet(read_traces(spark, where), KEYED, tmp_path / "out")
    faults = [(Path(fault.file or "").name, fault.row, fault.column) for fault in raised.value.faults]
    assert faults == [("0.parquet", 6, "lower"), ("0.parquet", 81, "type"), ("1.parquet", 51, "lower")]
    faulty_file = write(
        tmp_path / "many", changed(events(1), "upper", dict.fromkeys(range(50, 150), -10_000))
    )
    with pytest.raises(TraceError, match="80 more events have such faults") as raised:
        match_to_parquet(read_traces(spark, faulty_file), KEYED, tmp_path / "out")
    assert len(raised.value.faults) == 21
    with pytest.raises(TraceError, match=r"0\.parquet, row 6, column 'lower'"):
        match_to_parquet(read_traces(spark, where), f"{KEYED} LIMIT 3", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_ids_used_twice_in_different_files(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    table = changed(events(1), "type", {3: "A", 190: "A"})
    table = changed(changed(table, "value", {3: 0, 190: 0}), "key", {3: 1, 190: 1})
    where = write(tmp_path / "twice", changed(table, "id", {190: 3}))
    for clause in ("", "LIMIT 3"):
        with pytest.raises(TraceError, match="value 3: an earlier event with the same key has this id"):
            match_to_parquet(read_traces(spark, where), f"{KEYED} {clause}", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events", "twice"]


def test_what_no_event_can_be(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    query = "PATTERN SEQ(A a, B b) WHERE a.value > 1000 WITHIN 9"
    for clause in ("", " LIMIT 3"):
        with pytest.warns(UncertainCepWarning, match=r"no event can be a: none of type A meets"):
            match_to_parquet(read_traces(spark, folder), query + clause, tmp_path / "out", overwrite=True)
    assert pq.read_table(tmp_path / "out").num_rows == 0


def dying(batches: Any, *, write: Callable[..., Iterator[pa.RecordBatch]], deaths: str) -> Any:
    """Write matches; the first worker that has done so is killed before it can say so."""
    done = list(write(batches))
    try:
        Path(deaths).touch(exist_ok=False)
    except FileExistsError:
        yield from done
        return
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_is_replaced(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*, work: Any, folder: str) -> Any:
        once = partial(file_worker.write_files, work=work, folder=folder)
        return partial(dying, write=once, deaths=str(tmp_path / "died"))

    monkeypatch.setattr("uncertain_cep.spark.writing.partial", lambda _, **options: write(**options))
    expected = uc.match(events(1), KEYED)
    assert match_to_parquet(read_traces(spark, folder), KEYED, tmp_path / "out") == expected.num_rows
    assert (tmp_path / "died").exists()
    assert as_rows(pq.read_table(tmp_path / "out")) == as_rows(expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["died", "events", "out"]


def test_how_many_tasks_are_done(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("uncertain_cep.spark.jobs.BETWEEN_LINES", 0.02)
    note_file = tmp_path / "told"
    done: list[tuple[int, int]] = []

    def tell(some: int, parts: int) -> None:
        done.append((some, parts))
        note_file.touch()

    wait = partial(waiting, told=str(note_file))
    with tasks_told(spark, tell):
        spark.range(0, 4, 1, 4).mapInArrow(wait, "id long").collect()
    assert done
    assert all(0 <= done_tasks <= parts == 4 for done_tasks, parts in done)
    note_file.unlink()
    tasks = Meter.tasks

    def look(meter: Meter, some: int, parts: int) -> None:
        tasks(meter, some, parts)
        note_file.touch()

    monkeypatch.setattr(Meter, "tasks", look)
    original = spark.createDataFrame(events(1))
    frame = original.mapInArrow(wait, original.schema)
    capsys.readouterr()
    assert match_to_parquet(frame, KEYED, tmp_path / "out", progress=True)
    assert " done" in (said := capsys.readouterr().err)
    assert said.endswith("\r\x1b[K")
    with pytest.raises(uc.OptionError, match="progress='yes'"):
        match_to_parquet(frame, KEYED, tmp_path / "other", progress="yes")  # type: ignore[arg-type]


def waiting(batches: Any, *, told: str) -> Any:
    """Pass batches on once a file says that somebody has been told of the task."""
    for batch in batches:
        while not os.path.exists(told):
            time.sleep(0.01)
        yield batch
