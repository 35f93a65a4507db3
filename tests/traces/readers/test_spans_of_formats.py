"""Begins and ends of formats as events that last: `spans = true`."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uncertain_cep as uc
from tests.cli.conftest import Invoke
from tests.cli.conftest import invoke as invoke
from tests.traces.files import put, schema_of
from tests.traces.readers.samples import SAMPLES
from uncertain_cep.errors import UncertainCepWarning
from uncertain_cep.spark.file_reading import Reading, describe_files, events_of_files
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS
from uncertain_cep.traces.formats import list_files
from uncertain_cep.traces.readers import READERS
from uncertain_cep.traces.reading_steps import reading_steps

DOCS: Final = Path(__file__).parents[3] / "docs"
EXPECTED: Final[dict[str, list[tuple[Any, ...]]]] = {
    "spark-eventlog": [
        ("Executor", "app-1:executor:1", 1500, 1500, 3500, 3500, 2000),
        ("Job", "app-1:job:0", 2000, 2000, 3700, 3700, 1700),
        ("Stage", "app-1:stage:3.0", 2100, 2100, 3600, 3600, 1500),
        ("Task", "app-1:task:7", 2200, 2250, 2950, 3000, 750),
        ("Application", "app-1", 1000, 1000, 4000, 4000, 3000),
    ],
    "hadoop-jhist": [
        ("Job", "job_5_0001", 1100, 1100, 1700, 1700, 600),
        ("Task", "task_5_0001_r_000000", 1200, 1200, 1600, 1600, 400),
        ("Attempt", "attempt_5_0001_r_000000_1", 1300, 1300, 1500, 1500, 200),
    ],
    "hadoop-rumen": [
        ("Job", "job_5_0001", 1100, 1100, 1700, 1700, 600),
        ("Task", "task_5_0001_m_000000", 1200, 1200, 1600, 1600, 400),
        ("Attempt", "attempt_5_0001_m_000000_0", 1300, 1300, 1500, 1500, 200),
    ],
    "hadoop-history": [
        ("Job", "job_5_0001", 1100, 1100, 1700, 1700, 600),
        ("Attempt", "attempt_5_0001_m_000000_0", 1300, 1300, 1500, 1500, 200),
    ],
    "otlp": [("Span", "5b8e:eee1", *[1544712660000] * 2, *[1544712661000] * 2, 1000)],
    "jaeger": [
        ("Span", "5b8e:eee1", *[1544712660000] * 2, *[1544712661000] * 2, 1000),
        ("Span", "5b8e:eee2", *[1544712660100] * 4, 0),
    ],
    "zipkin": [
        ("Span", "5b8e:eee1", *[1544712660000] * 2, *[1544712661000] * 2, 1000),
        ("Span", "5b8e:eee2", *[1544712660100] * 4, 0),
    ],
}
"""Of each format the type, the id, the bounds of begin and end, and the length of each span, ms."""


def read(folder: Path, name: str, keys: str = "", text: str = "") -> pa.Table:
    schema = schema_of(folder, f'format = "{name}"\n[[events]]\nspans = true\n{keys}')
    return uc.read_traces(put(folder / "trace", text or SAMPLES[name]), schema)


EXACT: Final = 'uncertainty = { kind = "exact" }\nmissing = "drop"\n'


def lasting(events: pa.Table) -> list[dict[str, Any]]:
    return [row for row in events.to_pylist() if row["begin_lower"] is not None]


@pytest.mark.filterwarnings("ignore:of .* begins? and:uncertain_cep.UncertainCepWarning")
@pytest.mark.parametrize("name", EXPECTED)
def test_spans_of_a_format(tmp_path: Path, name: str) -> None:
    events = read(tmp_path, name)
    whole = pa.timestamp("ms")
    bounds = {each: events.column(each).cast(whole, safe=False).cast(pa.int64()) for each in SPAN_COLUMNS[:4]}
    length = events.column("length_lower").cast(pa.duration("ms"), safe=False).cast(pa.int64()).to_pylist()
    rows = list(
        zip(
            events["type"].to_pylist(),
            events["id"].to_pylist(),
            *(column.to_pylist() for column in bounds.values()),
            length,
            strict=True,
        )
    )
    assert sorted(row for row in rows if row[2] is not None) == sorted(EXPECTED[name])
    assert events["length_lower"].equals(events["length_upper"])
    lower, upper = events["lower"].to_pylist(), events["upper"].to_pylist()
    for place, row in enumerate(events.to_pylist()):
        if row["begin_lower"] is not None:
            assert (lower[place], upper[place]) == (row["begin_lower"], row["end_upper"])
    assert uc.read_traces(tmp_path / "trace", format=name, spans=True).equals(events)
    # What is tied is gone, and nothing else.
    points = uc.read_traces(tmp_path / "trace", format=name)
    assert points.num_rows - events.num_rows == len(EXPECTED[name])


def test_all_formats_with_ends_are_listed() -> None:
    assert {name for name, reader in READERS.items() if reader.spans} == EXPECTED.keys()


@pytest.mark.filterwarnings("ignore:of .* begins? and:uncertain_cep.UncertainCepWarning")
def test_attributes_are_those_of_both_ends(tmp_path: Path) -> None:
    (task,) = [row for row in lasting(read(tmp_path, "spark-eventlog")) if row["type"] == "Task"]
    assert (task["host"], task["job_id"], task["failed"], task["end_reason"]) == ("n1", 0, False, "Success")
    (executor,) = [row for row in lasting(read(tmp_path, "spark-eventlog")) if row["type"] == "Executor"]
    assert (executor["host"], executor["end_reason"]) == ("n1", "lost")
    attempts = [row for row in lasting(read(tmp_path, "hadoop-jhist")) if row["type"] == "Attempt"]
    assert [(row["host"], row["task_type"], row["status"]) for row in attempts] == [
        ("n1", "REDUCE", "SUCCEEDED")
    ]


def test_what_has_no_end_stays_and_is_counted(tmp_path: Path) -> None:
    with pytest.warns(UncertainCepWarning, match="of 2 begins and 1 end, 1 and 0 have no partner"):
        events = read(tmp_path, "otlp")
    assert events["type"].to_pylist() == ["Span", "SpanEvent", "SpanStart"]
    assert events["id"].to_pylist() == ["5b8e:eee1", "5b8e:eee1:event:0", "5b8e:eee2:start"]


@pytest.mark.filterwarnings("ignore:of .* begins? and:uncertain_cep.UncertainCepWarning")
def test_a_task_of_spark_moves_as_one(tmp_path: Path) -> None:
    """It worked for 750 of 800 ms: 2200 is in it if it began then, in 1 of 51 worlds."""
    tasks = read(tmp_path, "spark-eventlog", "where = \"type = 'TaskStart' OR type = 'TaskEnd'\"")
    stamp = pa.array([2200], pa.timestamp("ms"))
    point = pa.table({"type": ["P"], "id": ["p"], "lower": stamp, "upper": stamp})
    events = pa.concat_tables([tasks, point], promote_options="permissive")
    events = events.drop_columns(["tick"])
    query = "PATTERN AND(Task t, P p) WHERE t CONTAINS p WITHIN 1 min"
    assert uc.match(events, query, tick="1ms")["confidence"].to_pylist() == [pytest.approx(1 / 51)]


@pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")
def test_a_longer_tick_leaves_the_length_open(tmp_path: Path) -> None:
    """750 ms are no tick of a second or one, by where in a second the task begins."""
    rows = lasting(read(tmp_path, "spark-eventlog"))
    assert {row["length_upper"].total_seconds() for row in rows if row["type"] == "Task"} == {0.75}
    schema = schema_of(tmp_path, 'format = "spark-eventlog"\ntick = "1s"\n[[events]]\nspans = true\n')
    (task,) = [row for row in lasting(uc.read_traces(tmp_path / "trace", schema)) if row["type"] == "Task"]
    assert (task["length_lower"].total_seconds(), task["length_upper"].total_seconds()) == (0, 1)


@pytest.mark.filterwarnings("ignore:of .* begins? and:uncertain_cep.UncertainCepWarning")
def test_rules_hold_for_both_ends(tmp_path: Path) -> None:
    """Of a stamp that is right to 50 ms, twice, the length is not certain; of one clock it is."""
    (span, *_) = lasting(read(tmp_path, "otlp", 'uncertainty = { kind = "plus_minus", by = "50ms" }\n'))
    assert "length_lower" not in span
    assert (span["begin_upper"] - span["begin_lower"]).total_seconds() == 0.1
    assert (span["end_upper"] - span["end_lower"]).total_seconds() == 0.1
    put(tmp_path / "offsets.csv", "service,lower,upper\nshop,-2,3\n")
    clock = (
        'uncertainty = { kind = "clock_offset", table = "offsets.csv", key = "service", host = "service", '
        'lower = "lower", upper = "upper", unit = "s", shared = true }\nmissing = "drop"\n'
    )
    (span, *_) = lasting(read(tmp_path, "otlp", clock))
    assert (span["end_lower"] - span["begin_lower"]).total_seconds() == 1
    assert span["source"] == "shop"
    backward = SAMPLES["otlp"].replace('"1544712661000000000"', '"1544712659000000000"')
    # Each end may be 5 s later than that by itself, but both move together.
    with pytest.raises(uc.TraceError, match="before it begins in every world"):
        read(
            tmp_path, "otlp", clock.replace('missing = "drop"\n', "where = \"span_id = 'eee1'\"\n"), backward
        )


def test_ids_and_types_may_be_other_ones(tmp_path: Path) -> None:
    (span, *_) = lasting(
        read(tmp_path, "jaeger", 'type = "Call"\nid = "{trace_id}/{span_id}"\nattributes = []\n')
    )
    assert (span["type"], span["id"]) == ("Call", "5b8e/eee1")


def test_the_command_has_an_option(tmp_path: Path, invoke: Invoke) -> None:
    """It is that of a schema, beside rules and filters of events."""
    trace = put(tmp_path / "trace", SAMPLES["jaeger"])
    query = "PATTERN SEQ(Span a) WITHIN 1 h RETURN DURATION(a) AS took"
    for flags, keys in (([], ""), (["--uncertainty", "exact", "--missing", "drop"], EXACT)):
        expected = uc.match(read(tmp_path, "jaeger", keys), query)
        out = tmp_path / "rows.parquet"
        done = invoke(
            "match", query, trace, "--input-format", "jaeger", "--spans", *flags, "-o", out, "--overwrite"
        )
        assert done.exit_code == 0, done.stderr
        assert pq.read_table(out).equals(expected)
        assert expected.num_rows
    for flags in ([], ["--input-format", "csv"]):
        done = invoke("match", query, trace, "--spans", *flags)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "--spans needs an --input-format that tells begins and ends: spark-eventlog" in done.stderr


@pytest.mark.parametrize("name", sorted(READERS.keys() - EXPECTED.keys()))
def test_formats_without_ends_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(uc.TraceError, match=r"events\[1\].spans: .* has no begins and ends that ids tie"):
        read(tmp_path, name)


def test_tables_without_ends_are_refused(tmp_path: Path) -> None:
    table = put(tmp_path / "t.csv", "type,at\nA,2026-01-05\n")
    with pytest.raises(uc.TraceError, match=r"spans=True: t\.csv, a table, has no begins and ends"):
        uc.read_traces(table, spans=True)
    text = '[[events]]\ntype_column = "type"\ntime = "at"\nspans = true\nuncertainty = { kind = "exact" }\n'
    with pytest.raises(uc.TraceError, match=r"events\[1\].spans: t.csv, a table, has no begins"):
        uc.read_traces(table, schema_of(tmp_path, text))


UNFINISHED: Final = ("spark-eventlog", "hadoop-history", "otlp", "zipkin")
"""Formats whose sample has a begin without an end."""
SACCT: Final = """\
JobID|NodeList|Start|End
101|n1|2026-01-05T08:00:00|2026-01-05T08:00:40
102|n1|2026-01-05T08:00:40|2026-01-05T08:01:00
103|n1|2026-01-05T08:00:50|Unknown
"""


def test_jobs_of_slurm_are_spans(tmp_path: Path) -> None:
    """Stamps are cut to a second, in which the one ends and the other begins."""
    (text,) = re.findall(
        r"```toml\n(format = \"csv\".*?)```", (DOCS / "spans.md").read_text("utf-8"), re.DOTALL
    )
    schema = schema_of(tmp_path, f'tick = "100ms"\n{text}')
    events = uc.read_traces(put(tmp_path / "jobs.csv", SACCT), schema)
    assert events["id"].to_pylist() == [101, 102]
    query = "PATTERN AND(Job a, Job b) WHERE [NodeList] AND a.id < b.id AND a OVERLAPS b WITHIN 1 h"
    # Of 10 x 10 pairs of an end and a begin those with the begin not behind the end.
    assert uc.match(events, query)["confidence"].to_pylist() == [pytest.approx(55 / 100)]


REAL: Final = {
    "spark_eventlogs/raw/gpu_oom_eventlog.zstd": (
        "spark-eventlog", {"Application": 1, "Job": 37, "Stage": 37, "Task": 12416},
    ),
    "spark_eventlogs/raw/nds_q72_dataproc_2_2.zstd": (
        "spark-eventlog", {"Application": 1, "Job": 49, "Stage": 49, "Task": 13504},
    ),
    "yahoo_hadoop_2009_skew/raw/19-jobs.trace.json.gz": (
        "hadoop-rumen", {"Job": 19, "Task": 8447, "Attempt": 13032},
    ),
    "yahoo_hadoop_2009_skew/raw/dispatch-sample-v20-jt-log.gz": (
        "hadoop-history", {"Job": 4, "Task": 210, "Attempt": 283},
    ),
}  # fmt: skip
"""Of real files the format, and how many events of each type last."""


@pytest.mark.filterwarnings("ignore:of .* begins? and:uncertain_cep.UncertainCepWarning")
@pytest.mark.parametrize("file", REAL)
def test_spans_of_real_files(shared_data: Path, tmp_path: Path, file: str) -> None:
    name, counts = REAL[file]
    schema = schema_of(tmp_path, f'format = "{name}"\n[[events]]\nspans = true\nmissing = "drop"\n')
    events = uc.read_traces(shared_data / file, schema)
    spans = events.filter(events["begin_lower"].is_valid())
    assert dict(Counter(spans["type"].to_pylist())) == counts
    assert spans["length_lower"].null_count == 0
    assert len(set(events["id"].to_pylist())) == events.num_rows
    (row,) = uc.match(events, "PATTERN SEQ(Task t) WITHIN 40 d RETURN EXPECTED COUNT").to_pylist()
    assert row["expected_count"] == pytest.approx(counts["Task"])


@pytest.mark.filterwarnings("ignore:of .* begins? and:uncertain_cep.UncertainCepWarning")
def test_an_end_before_its_begin_is_refused(tmp_path: Path) -> None:
    text = SAMPLES["hadoop-history"].replace('FINISH_TIME="1500"', 'FINISH_TIME="1200"')
    with pytest.raises(uc.TraceError, match="row 4: what begins here ends in row 5, before it begins"):
        read(tmp_path, "hadoop-history", text=text)
    types = read(tmp_path, "hadoop-history", 'missing = "drop"', text)["type"].to_pylist()
    assert sorted(types) == ["Job", "JobSubmit", "TaskStart"]


@pytest.mark.filterwarnings("ignore:of .* begins? and:uncertain_cep.UncertainCepWarning")
@pytest.mark.parametrize("name", EXPECTED)
def test_workers_of_spark_make_the_same_spans(tmp_path: Path, name: str) -> None:
    """A worker reads a file whole, as its begins and ends may stand far apart."""
    put(tmp_path / "trace", SAMPLES[name])
    schema = schema_of(tmp_path, f'format = "{name}"\n[[events]]\nspans = true\n')
    files, faults = list_files([tmp_path / "trace"], name, with_schema=True)
    plan = reading_steps(files, schema, faults)
    assert not faults
    work = tuple((file, tuple(steps)) for file, steps in plan.items())
    reading = Reading(
        work, schema.options, None, "1ms" if name not in ("otlp", "jaeger", "zipkin") else "1us"
    )
    batches = [pa.record_batch({"number": [0]})]
    (described,) = [
        row for batch in describe_files(iter(batches), reading=reading) for row in batch.to_pylist()
    ]
    assert described["events"] is None
    assert any("have no partner" in said for said in described["said"]) == (name in UNFINISHED)
    expected = uc.read_traces(tmp_path / "trace", schema)
    made = events_of_files(iter(batches), reading=reading, days=False, firsts=(1,), schema=expected.schema)
    assert pa.Table.from_batches(list(made), expected.schema).equals(expected)
