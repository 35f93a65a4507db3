"""Workers that read files themselves find what the in-process engine finds, in whatever order rows are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import sampled_from
from tests.spark.traces import KEYED, UNKEYED, as_rows, random_trace
from uncertain_cep.plan import MatchOptions, make_plan
from uncertain_cep.query import query_of
from uncertain_cep.results.order import finished
from uncertain_cep.spark import file_reading, file_tasks, file_worker
from uncertain_cep.spark.dataframes import as_spark_keeps
from uncertain_cep.spark.file_parts import EventFiles, described_files, parquet_parts
from uncertain_cep.spark.file_reading import Reading, describe_files
from uncertain_cep.spark.file_tasks import choose_tasks
from uncertain_cep.spark.file_worker import FileWork, match_files, write_files
from uncertain_cep.timeline.domain import Names
from uncertain_cep.traces import load_schema
from uncertain_cep.traces.formats import FileOptions, list_files
from uncertain_cep.traces.reading import load_traces
from uncertain_cep.traces.reading_steps import reading_steps

NAMES: Final = Names()
QUERIES: Final = (
    KEYED,
    UNKEYED,
    "PATTERN SEQ(A a, B b, (A|C) c) WHERE skip_till_next_match(a, b, c) { [key] } WITHIN 12",
    "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { [key] } WITHIN 12",
    "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { [key] } WITHIN 12",
    "PATTERN SEQ(A a, !D n, B b) WHERE [key] WITHIN 9",
    "PATTERN SEQ(!D n, A a, B b) WHERE [key] AND a.value > 2 WITHIN 9",
    "PATTERN SEQ(A a, B b, !D n) WHERE [key] AND a.value > 2 WITHIN 9",
    "PATTERN SEQ(A+ a[], B b) WHERE [key] AND a[i].value > 5 WITHIN 6",
    "PATTERN SEQ(B b, A+ a[]) WHERE [key] AND a[i].value > 5 WITHIN 6",
    "PATTERN AND(A a, B b) WHERE a.value > 7 WITHIN 7",
    "PATTERN SEQ(AND(A a, B b), C c) WHERE [key] WITHIN 9",
    "PATTERN OR(SEQ(A a, B b), SEQ(C c, D d)) WHERE [key] WITHIN 9",
    "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 9 HAVING CONFIDENCE >= 0.4",
    "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 9 RETURN EXPECTED COUNT BY key EVERY 10",
    "PATTERN SEQ(A a) WHERE a.value > 3 WITHIN 1",
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have few events fill a chunk, a turn and a task."""
    monkeypatch.setattr(file_tasks, "ROWS_WORTH_A_TASK", 10)


def numbers(count: int) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"number": list(range(count))})


def found_by(work: FileWork) -> pa.Table:
    """Return the result of the batches of all tasks."""
    batches = [batch for task in numbers(len(work.tasks)) for batch in match_files([task], work=work)]
    if work.plan.counts:
        table = pa.Table.from_batches(batches, work.plan.batch_schema)
        *keys, value = table.column_names
        total = table.group_by(keys).aggregate([(value, "sum")])
        return total.rename_columns([*keys, value])
    return finished(work.plan, iter(batches), None)


def rounded(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows of a result in one order, with confidences and counts rounded."""
    if "expected_count" not in table.column_names:
        return as_rows(table)
    rows = [row for row in table.to_pylist() if row["expected_count"] > 1e-12]
    return sorted(
        (
            tuple(f"{value:.9g}" if isinstance(value, float) else value for value in row.values())
            for row in rows
        ),
        key=repr,
    )


def work_of(files: EventFiles, query: str, cores: int, **options: Any) -> FileWork:
    plan = make_plan(query_of(query), files.schema, MatchOptions(**options))
    tick = (files.schema.metadata or {}).get(b"uncertain_cep.tick")
    return FileWork(plan, files, choose_tasks(plan, files, cores).tasks, tick and tick.decode())


def in_files(table: pa.Table, folder: Path, ending: str, files: int, group: int | None = None) -> list[Path]:
    """Write a table as so many files, one behind the other, with row groups of a size."""
    paths = [folder / f"{number}.{ending}" for number in range(files)]
    for number, path in enumerate(paths):
        begin, end = (place * table.num_rows // files for place in (number, number + 1))
        part = table.slice(begin, end - begin)
        if ending == "csv":
            pyarrow.csv.write_csv(part, path)
        else:
            pq.write_table(part, path, row_group_size=group)
    return paths


def scanned(paths: list[Path]) -> EventFiles:
    """Return Parquet files of the model by their footers."""
    schema = pq.read_schema(paths[0])
    parts = [
        part
        for number, path in enumerate(paths)
        for part in parquet_parts(number, pq.read_metadata(path), schema, NAMES)
    ]
    return EventFiles(tuple(map(str, paths)), tuple(parts), schema)


def described(paths: list[Path], schema: Any = None, tick: str | None = None) -> EventFiles:
    """Return files as workers describe them."""
    faults: list[uc.errors.TraceFault] = []
    files, _ = list_files(paths)
    steps = reading_steps(files, schema, faults)
    assert not faults
    options = FileOptions() if schema is None else schema.options
    work = tuple((file, tuple(parts)) for file, parts in steps.items())
    chosen = tick if schema is None else schema.tick
    reading = Reading(work, options, chosen, chosen)
    descriptions = [
        row for batch in describe_files(numbers(len(work)), reading=reading) for row in batch.to_pylist()
    ]
    loaded = load_traces(paths, schema, tick=tick)
    assert loaded.table is not None
    firsts = np.cumsum([1, *(row["rows"] * len(work[row["file"]][1]) for row in descriptions)])
    events = {row["file"]: json.loads(row["events"]) for row in descriptions}
    days = all(one["days"] for one in events.values())
    kept = as_spark_keeps(loaded.table.schema).with_metadata(loaded.table.schema.metadata)
    event_files = described_files(events, kept, reading, days, tuple(firsts.tolist()))
    assert event_files is not None
    return event_files


@given(
    seed=st.integers(0, 2**32),
    query=sampled_from(QUERIES),
    order=sampled_from(["lower", "nearly", "id"]),
    group=st.integers(1, 60),
    files=st.integers(1, 3),
    cores=st.integers(1, 4),
    chunk=st.integers(1, 100),
    turn=st.integers(5, 200),
)
def test_row_groups_of_any_size_and_order(
    seed: int, query: str, order: str, group: int, files: int, cores: int, chunk: int, turn: int
) -> None:
    table = random_trace(seed, 90, keys=4).drop_columns("not used")
    if order != "id":
        noise = np.random.default_rng(seed).integers(0, 1 if order == "lower" else 20, table.num_rows)
        table = table.take(np.argsort(np.asarray(table.column("lower")) + noise, kind="stable"))
    expected = uc.match(table, query)
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(file_reading, "ROWS_PER_PART", group)
        patch.setattr(file_tasks, "ROWS_PER_CHUNK", chunk)
        patch.setattr(file_worker, "ROWS_PER_PARTITION", turn)
        paths = in_files(table, Path(folder), "parquet", files, max(group // 2, 1))
        work = work_of(scanned(paths), query, cores)
        assert len(work.files.parts) >= 90 // group
        assert rounded(found_by(work)) == rounded(expected)


SCHEMA: Final = """
{tick}
[[events]]
files = "tasks*"
type = "A"
time = "start"
unit = "s"
attributes = ["key", "value"]
uncertainty = {{ kind = "clock_offset", table = "offsets.csv", key = "host", unit = "ms" }}
[[events]]
files = "tasks*"
type = "B"
id = "{{start}}:{{key}}:{{number}}"
where = "end > 0"
time = "end"
unit = "s"
attributes = ["key", "value"]
uncertainty = {{ kind = "plus_minus", by = "300ms" }}
[[events]]
files = "metrics*"
type_column = "kind"
time = "at"
missing = "drop"
attributes = ["key", "value"]
uncertainty = {{ kind = "window", length = "2s" }}
"""


def write_raw(folder: Path, seed: int, ending: str, group: int) -> list[Path]:
    """Write raw stamps of tasks and metrics, nearly in order, with gaps."""
    draw = np.random.default_rng(seed)

    def column(values: np.ndarray) -> list[int]:
        plain_values: list[int] = values.tolist()
        return plain_values

    start = np.sort(draw.integers(0, 200, 60)) + draw.integers(0, 4, 60)
    tasks = pa.table(
        {
            "host": draw.choice(["h1", "h2"], 60).tolist(),
            "start": column(start),
            "end": column(np.where(draw.random(60) < 0.2, 0, start + draw.integers(0, 9, 60))),
            "key": column(draw.integers(0, 3, 60)),
            "value": column(draw.integers(0, 9, 60)),
            "number": column(np.arange(60)),
        }
    )
    at = pa.array(np.sort(draw.integers(0, 200, 40)), pa.timestamp("s"))
    at = pa.array([None if draw.random() < 0.1 else value for value in at.to_pylist()], pa.timestamp("s"))
    metrics = pa.table(
        {
            "kind": draw.choice(["C", "D"], 40).tolist(),
            "at": at,
            "key": column(draw.integers(0, 3, 40)),
            "value": column(draw.integers(0, 9, 40)),
        }
    )
    (folder / "offsets.csv").write_text("host,offset_lo,offset_hi\nh1,-1500,2500\nh2,0,0\n")
    paths = []
    for name, table in (("tasks-1", tasks.slice(0, 35)), ("tasks-2", tasks.slice(35)), ("metrics", metrics)):
        path = folder / f"{name}.{ending}"
        if ending == "parquet":
            pq.write_table(table, path, row_group_size=group)
        elif ending == "csv":
            pyarrow.csv.write_csv(table, path)
        else:
            rows = [json.dumps(row, default=str) + "\n" for row in table.to_pylist()]
            path.write_text("".join(rows))
        paths.append(path)
    return paths


@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32),
    query=sampled_from([*(QUERIES[place] for place in (5, 11, 12)), "PATTERN SEQ(A a, B b) WITHIN 9"]),
    ending=sampled_from(["parquet", "csv", "jsonl"]),
    ticked=st.booleans(),
    group=st.integers(1, 40),
    cores=st.integers(1, 3),
)
def test_schema_files(seed: int, query: str, ending: str, ticked: bool, group: int, cores: int) -> None:
    query, tick = query.replace("WITHIN 9", "WITHIN 4 seconds"), 'tick = "100ms"'
    if not ticked:
        # Its ticks are microseconds.
        query, tick = "PATTERN OR(SEQ(A a, B b), SEQ(C c, D d)) WHERE [key] WITHIN 3 seconds", ""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as name:
        patch.setattr(file_reading, "ROWS_PER_PART", group)
        patch.setattr(file_tasks, "ROWS_PER_CHUNK", 30)
        folder = Path(name)
        paths = write_raw(folder, seed, ending, group)
        (folder / "schema.toml").write_text(SCHEMA.format(tick=tick))
        schema = load_schema(folder / "schema.toml")
        table = uc.read_traces(paths, schema)
        files = described(paths, schema)
        assert (len(files.parts) > 3) == (ending == "parquet" and group < 40)
        assert rounded(found_by(work_of(files, query, cores))) == rounded(uc.match(table, query))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_of_the_model_with_days(tmp_path: Path, ending: str) -> None:
    dates = pa.array([10, 11, 14, 15, 15, 17], pa.date32())
    table = pa.table({"type": list("ABABBA"), "id": [1, 2, 3, 4, 5, 6], "lower": dates, "upper": dates})
    paths = in_files(table, tmp_path, ending, 2)
    query = "PATTERN SEQ(A a, B b) WITHIN 3 days"
    expected = uc.match(uc.read_traces(paths), query)
    assert expected.num_rows == 3
    files = described(paths)
    assert rounded(found_by(work_of(files, query, 2))) == rounded(expected)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("column", "row", "value"),
    [("type", 33, None), ("upper", 47, -1000), ("id", 3, None), ("lower", 21, 2**62), ("id", 8, 5)],
)
def test_faults_say_file_and_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, column: str, row: int, value: Any
) -> None:
    monkeypatch.setattr(file_reading, "ROWS_PER_PART", 7)
    lower = list(range(60))
    table = pa.table({"type": ["A", "B"] * 30, "id": lower, "lower": lower, "upper": lower})
    values = table.column(column).to_pylist()
    values[row] = value
    place = table.schema.get_field_index(column)
    table = table.set_column(place, column, pa.array(values, table.schema.field(place).type))
    query = "PATTERN SEQ(A a, (A|B) b) WITHIN 5"
    event_files_of = scanned if ending == "parquet" else described
    work = work_of(event_files_of(in_files(table, tmp_path, ending, 3, 5)), query, 2)
    reported_faults = [
        fault
        for task in range(len(work.tasks))
        for batch in write_files([pa.record_batch({"number": [task]})], work=work, folder=str(tmp_path))
        for report in batch.to_pylist()
        for fault in json.loads(report["faults"])
    ]
    assert {(fault["file"], fault["row"], fault["column"]) for fault in reported_faults} == {
        (str(tmp_path / f"{row // 20}.{ending}"), row % 20 + 1, "lower" if column == "upper" else column)
    }
    with pytest.raises(uc.TraceError, match=f"row {row % 20 + 1}, column"):
        found_by(work)


def test_what_is_read_twice_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_reading, "ROWS_PER_PART", 10)
    table = random_trace(3, 400, span=4000).drop_columns("not used")
    upper = pa.array(np.asarray(table.column("lower")) + 3)
    table = table.set_column(table.schema.get_field_index("upper"), "upper", upper)
    for name, rows, sound in (("ordered", table.sort_by("lower"), True), ("unordered", table, False)):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(rows, path, row_group_size=10)
        files = scanned([path])
        plan = make_plan(query_of(UNKEYED), files.schema, MatchOptions())
        tasks = choose_tasks(plan, files, 4)
        assert len(tasks.tasks) == 4
        assert tasks.sound is sound
        assert (tasks.reread < 1.2) is sound
        assert choose_tasks(plan, files, 1).sound
        said = tasks.describe(len(files.parts))
        assert ("workers read the files: 40 parts in 4 tasks" in said) is sound
        assert ("the files are not ordered by time: 4 tasks would read" in said) is not sound


def test_few_parts_are_not_for_many_cores(tmp_path: Path) -> None:
    table = random_trace(3, 400).drop_columns("not used")
    pq.write_table(table, tmp_path / "events.parquet")
    files = scanned([tmp_path / "events.parquet"])
    plan = make_plan(query_of(UNKEYED), files.schema, MatchOptions())
    assert choose_tasks(plan, files, 3).sound
    assert "workers read the files: 1 part in 1 task" in choose_tasks(plan, files, 3).describe(1)
    tasks = choose_tasks(plan, files, 8)
    assert not tasks.sound
    assert "one task would read 8.0 times its share" in tasks.describe(1)


def test_ids_are_apart_by_what_footers_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_reading, "ROWS_PER_PART", 10)
    table = random_trace(3, 40).drop_columns("not used").sort_by("id")
    text = table.set_column(1, "id", table.column("id").cast(pa.string()))
    again = pa.concat_tables([table, table.slice(39)])
    for rows, apart in ((table, True), (table.sort_by("lower"), False), (text, False), (again, False)):
        pq.write_table(rows, tmp_path / "events.parquet", row_group_size=10)
        assert scanned([tmp_path / "events.parquet"]).ids_apart is apart
