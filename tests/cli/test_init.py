"""``uncertain-cep init``: what it writes fits the files it was written for, and says why."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Final

import pytest

from tests.cli.conftest import Invoke
from tests.traces.files import put
from uncertain_cep.traces import load_schema, proposing

TRACES: Final = {
    "cloudwatch": ("nab_cloudwatch_2014",),
    "clusters": ("spark_eventlogs/tasks_eks.csv.gz", "spark_eventlogs/tasks_gpu_oom.csv.gz"),
    "raw event logs": ("spark_eventlogs/raw",),
    "a cluster": ("spark_eventlogs/tasks_nds_q72.csv.gz",),
    "a list of files": ("nezha_onlineboutique_2022/INDEX.csv",),
    "attempts of April": ("yahoo_hadoop_2009_skew/attempts_19jobs.csv.gz",),
    "tables of two kinds": (
        "yahoo_hadoop_2009_skew/attempts_59jobs_oct2009.csv.gz",
        "yahoo_hadoop_2009_skew/host_offsets_59jobs_oct2009.csv.gz",
    ),
    "job history": ("yahoo_hadoop_2009_skew/raw/dispatch-sample-v20-jt-log.gz",),
    "jobs of April by Rumen": ("yahoo_hadoop_2009_skew/raw/19-jobs.trace.json.gz",),
    "jobs of Rumen": ("yahoo_hadoop_2009_skew/raw/folder-input-trace.json.gz",),
    "metrics of Ganglia": ("ganglia_xml",),
    "all of a day": ("nezha_onlineboutique_2022/2022-08-22",),
    "spans": ("nezha_onlineboutique_2022/2022-08-22/trace/05_19_trace.csv.gz",),
    "metrics": ("nezha_onlineboutique_2022/2022-08-22/metric",),
}
"""In the folder of real traces: all that tell times, by themselves or with their folder."""

TIMELESS: Final = (
    "nab_cloudwatch_2014/combined_windows.json.gz",
    "nezha_onlineboutique_2022/2022-08-22/fault_list.json",
    "nezha_onlineboutique_2022/2022-08-22/metric/dependency.csv.gz",
    "yahoo_hadoop_2009_skew/host_offsets_19jobs.csv.gz",
    "yahoo_hadoop_2009_skew/host_offsets_59jobs_oct2009.csv.gz",
    "yahoo_hadoop_2009_skew/raw/19-jobs.topology.json.gz",
)
"""Files beside them."""


def written(invoke: Invoke, folder: Path, *traces: object) -> str:
    """Return the schema that is written for traces, of which the printed command finds something."""
    result = invoke("init", *traces, "-o", folder)
    assert result.exit_code == 0, result.output
    schema = folder / "schema.toml"
    program, *command = shlex.split(result.stdout)
    assert (program, command[:2]) == ("uncertain-cep", ["match", str(folder / "first.query")])
    checked = invoke("validate", *command[2:], "--query", folder / "first.query")
    assert checked.exit_code == 0, checked.output
    assert "no faults" in checked.stderr
    matched = invoke(*command)
    assert matched.exit_code == 0, matched.output
    assert len(matched.stdout.splitlines()) > 1, matched.output
    return schema.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TRACES)
def test_every_real_trace(shared_data: Path, tmp_path: Path, invoke: Invoke, name: str) -> None:
    text = written(invoke, tmp_path / "new", *(shared_data / trace for trace in TRACES[name]))
    said = [line for line in text.splitlines() if line.startswith("# ")]
    assert len(said) == len({*said})
    assert text.startswith("# ")
    document = tomllib.loads(text)
    if name == "cloudwatch":
        (events,) = document["events"]
        assert events["uncertainty"] == {"kind": "plus_minus", "by": "5min"}
        assert "# The stamps of a series are 5min apart" in text
        assert "# Left out: combined_windows.json.gz: no column of times" in text
    if name == "clusters":
        assert [events["time"] for events in document["events"]] == ["launch_ms", "finish_ms"]
        assert {events["uncertainty"]["of"] for events in document["events"]} == {"1ms"}
        assert "several clocks (host)" in text
    if name == "raw event logs":
        assert document == {"format": "spark-eventlog"}
        query = (tmp_path / "new" / "first.query").read_text()
        assert "PATTERN SEQ(TaskStart a, TaskEnd b)\nWHERE a.app = b.app AND a.task_id = b.task_id\n" in query
    if name == "metrics":
        assert {events["uncertainty"]["by"] for events in document["events"]} == {"1min"}


def test_every_file_is_looked_at(shared_data: Path) -> None:
    files = {
        str(path.relative_to(shared_data))
        for path in shared_data.rglob("*")
        if path.is_file() and path.suffix != ".txt"
    }
    listed = [trace for traces in TRACES.values() for trace in traces]
    left = {
        file for file in files if not any(file == trace or file.startswith(f"{trace}/") for trace in listed)
    }
    assert left <= {*TIMELESS}


@pytest.mark.parametrize("file", TIMELESS)
def test_files_beside_traces_tell_no_times(
    shared_data: Path, tmp_path: Path, invoke: Invoke, file: str
) -> None:
    result = invoke("init", shared_data / file, "-o", tmp_path / "new")
    assert result.exit_code == 2
    assert "no column of times" in result.output


FILES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "process.csv": (
        "case,activity,at\n1,Start,2024-05-31\n1,Check,2024-05-31 10:30\n2,End,2024-06-03 11:00\n",
        ('kind = "as_written"', "# Stamps are written to d or min", '_column = "activity"', 'tick = "1s"'),
    ),
    "days.csv": (
        "id,at,usage (%)\na,13.05.2024,1\nb,14.05.2024,2\nb,24.05.2024,3\n",
        ('time_format = ["%d.%m.%Y"]', 'of = "1d"', "# Values of id come several times"),
    ),
    "app.log": (
        "2015-10-17 15:37:56,547 INFO [m] a.b.C: x\n\tat y\n2015-10-17 15:37:57,001 WARN [m] a.b.D: z\n",
        ('line = "log4j"', 'type_column = "template"', "X = 'x'", "Z = 'z'", 'of = "1ms"'),
    ),
    "messages.log": (
        "Oct 11 22:14:15 web-1 su: x\nOct 11 22:14:16 web-2 su: y\n",
        ('line = "syslog"', "# The log tells no year. This is the latest one", 'of = "1s"', "(host)"),
    ),
    "nested.jsonl": (
        '{"ts": 1700000000.25, "host": {"name": "a"}, "kind": "A"}\n{"ts": 1700000001.5, "kind": "B"}\n',
        ('unit = "s"', 'type_column = "kind"', 'of = "1ms"'),
    ),
    "events.csv": (
        "type,id,lower,upper,tick,x\nA,1,1,2,1ms,7\nB,2,3,4,1ms,8\n",
        ("they can be read without a schema", 'tick = "1ms"', 'attributes = ["x"]'),
    ),
    "gaps.csv": (
        "start,end,lower\n1700000000,1700000010,1\n1700000005,,2\n1700000009,0,3\n",
        ('missing = "drop"', 'where = "end > 0"', '"raw_lower" = "lower"'),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_small_files(tmp_path: Path, invoke: Invoke, name: str) -> None:
    text, parts = FILES[name]
    schema = written(invoke, tmp_path / "new", put(tmp_path / name, text))
    for part in parts:
        assert part in schema, schema
    assert load_schema(tmp_path / "new" / "schema.toml").events


def test_more_than_can_be_looked_at(tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposing, "IN_PROCESS_BYTES", 16)
    result = invoke("init", put(tmp_path / "t.csv", "at\n2024-05-31\n2024-06-01\n"), "-o", tmp_path / "new")
    assert result.exit_code == 2
    assert "the files hold more than 0 MiB: name some of them" in result.output


def test_files_of_several_formats_are_told_apart(shared_data: Path, tmp_path: Path, invoke: Invoke) -> None:
    result = invoke("init", shared_data / "spark_eventlogs", "-o", tmp_path / "new")
    assert result.exit_code == 2
    assert "there are files of several formats, spark-eventlog, tables: name those of one" in result.output


def test_nothing_is_overwritten(tmp_path: Path, invoke: Invoke) -> None:
    trace = put(tmp_path / "t.csv", "at\n2024-05-31\n2024-06-01\n")
    for name in ("schema.toml", "first.query"):
        kept = put(tmp_path / name.partition(".")[0] / name, "mine")
        result = invoke("init", trace, "-o", kept.parent)
        assert result.exit_code == 2
        assert f"{kept} is there already" in result.output
        assert kept.read_text() == "mine"
        assert [path.name for path in kept.parent.iterdir()] == [name]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "a,b\n1,2\n", "no file has a column of times: t.csv: no column of times among a, b"),
        ("t.csv", "", "the file is empty"),
        ("t.log", "what\never\n", "its lines have no stamps that are known"),
        ("t.csv", "at\n", "no column of times"),
    ],
)
def test_files_of_no_use(tmp_path: Path, invoke: Invoke, name: str, text: str, message: str) -> None:
    result = invoke("init", put(tmp_path / name, text), "-o", tmp_path / "new")
    assert result.exit_code == 2
    assert message in result.output
    assert not (tmp_path / "new").exists()
    assert invoke("init", tmp_path / "none.csv").exit_code == 2


@pytest.mark.parametrize("name", ["mine.toml", "first.query", "q.sase"])
def test_a_file_is_no_folder_of_results(tmp_path: Path, invoke: Invoke, name: str) -> None:
    trace = put(tmp_path / "t.csv", "at\n2024-05-31\n2024-06-01\n")
    result = invoke("init", trace, "-o", tmp_path / name)
    assert result.exit_code == 2
    assert "names a file: give the folder that schema.toml and first.query go into" in result.output
    assert not (tmp_path / name).exists()


def test_queries_that_find_nothing_are_tried_in_silence(invoke: Invoke, tmp_path: Path) -> None:
    lines = [f"2026-03-01 08:00:{second:02d},120 ERROR [job] com.acme.Job: failed" for second in range(5)]
    rows = [f"2026-03-01T08:0{minute}:00,h{minute % 2},1.5" for minute in range(5)]
    log = put(tmp_path / "app.log", "\n".join(lines))
    metric = put(tmp_path / "cpu.csv", "\n".join(["time,host,cpu", *rows]))
    result = invoke("init", log, metric, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "warning" not in result.stderr


def test_records_of_each_day_are_no_samples(invoke: Invoke, tmp_path: Path) -> None:
    rows = [f"2020-01-{day:02d},p{day % 4},seen" for day in range(1, 29)]
    trace = put(tmp_path / "visits.csv", "\n".join(["day,patient,what", *rows]))
    assert 'uncertainty = { kind = "granularity", of = "1d" }' in written(invoke, tmp_path / "out", trace)
