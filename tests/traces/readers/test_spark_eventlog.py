"""Event logs of Spark: intervals of tasks, rolled and unfinished logs, and fields by their names."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner

import uncertain_cep as uc
from tests.integration.raw import rows
from tests.traces.files import put
from tests.traces.readers.samples import SAMPLES
from uncertain_cep.cli import main

LOG = SAMPLES["spark-eventlog"]


def brief(table: pa.Table) -> list[tuple[str, str, int, int]]:
    stamps = [table.column(name).cast(pa.int64()).to_pylist() for name in ("lower", "upper")]
    return list(zip(table.column("type").to_pylist(), table.column("id").to_pylist(), *stamps, strict=True))


def test_a_log_tells_starts_and_ends(tmp_path: Path) -> None:
    table = uc.read_traces(put(tmp_path / "app-1", LOG), format="spark-eventlog")
    assert brief(table) == [
        ("ApplicationStart", "app-1:start", 1000, 1000),
        ("ExecutorStart", "app-1:executor:1:start", 1500, 1500),
        ("JobStart", "app-1:job:0:start", 2000, 2000),
        ("StageStart", "app-1:stage:3.0:start", 2100, 2100),
        ("TaskStart", "app-1:task:7:start", 2200, 2250),
        ("TaskEnd", "app-1:task:7:end", 2950, 3000),
        ("ExecutorEnd", "app-1:executor:1:end", 3500, 3500),
        ("StageEnd", "app-1:stage:3.0:end", 3600, 3600),
        ("JobEnd", "app-1:job:0:end", 3700, 3700),
        ("ApplicationEnd", "app-1:end", 4000, 4000),
        ("TaskStart", "app-1:task:8:start", 2300, 4000),
    ]
    task = table.slice(5, 1).to_pylist()[0]
    names = ("app", "job_id", "stage_id", "task_id", "executor", "host", "failed", "end_reason", "tick")
    assert [task[name] for name in names] == ["app-1", 0, 3, 7, "1", "n1", False, "Success", "1ms"]
    assert table.column("host").to_pylist()[6] == "n1"


def test_any_field_can_be_named(tmp_path: Path) -> None:
    schema = put(
        tmp_path / "schema.toml",
        """
        format = "spark-eventlog"

        [[events]]
        type = "Launch"
        id = "{task_id}"
        time = "Task Info.Launch Time"
        unit = "ms"
        where = "type = 'TaskEnd'"
        attributes = { where = "Task Info.Locality", run = "Task Metrics.Executor Run Time" }
        uncertainty = { kind = "exact" }
        """,
    )
    (event,) = uc.read_traces(put(tmp_path / "log", LOG), schema).to_pylist()
    assert (event["id"], event["where"], event["run"], event["tick"]) == ("7", "ANY", 600, "1ms")
    assert event["lower"] == event["upper"]
    wrong = put(tmp_path / "wrong.toml", schema.read_text().replace("Launch Time", "Lunch Time"))
    with pytest.raises(uc.TraceError, match=r"'Task Info.Lunch Time'.*named in events\[1\]\.time|Lunch Time"):
        uc.read_traces(tmp_path / "log", wrong)


def test_a_schema_may_name_only_the_format_and_the_tick(tmp_path: Path) -> None:
    log = put(tmp_path / "log.json", LOG)
    schema = put(tmp_path / "schema.toml", 'format = "spark-eventlog"\n')
    assert uc.read_traces(log, schema).equals(uc.read_traces(log, format="spark-eventlog"))
    put(schema, 'format = "spark-eventlog"\ntick = "100ms"\n')
    assert set(uc.read_traces(log, schema).column("tick").to_pylist()) == {"100ms"}
    put(schema, 'format = "sparkly"\n')
    with pytest.raises(uc.TraceError, match=r"format: must be one of .*spark-eventlog"):
        uc.load_schema(schema)
    with pytest.raises(uc.OptionError, match=r"'sparkly' is unknown: use one of .*spark-eventlog"):
        uc.read_traces(log, format="sparkly")


@pytest.mark.parametrize("named", [True, False])
def test_a_rolled_log_is_a_folder(tmp_path: Path, named: bool) -> None:
    head, tail = LOG.splitlines(keepends=True)[:8], LOG.splitlines(keepends=True)[8:]
    folder = tmp_path / "eventlog_v2_app-1"
    put(folder / "appstatus_app-1", "")
    put(folder / "events_1_app-1", "".join(head))
    put(folder / "events_2_app-1", "".join(tail))
    if named:
        table = uc.read_traces(folder, format="spark-eventlog")
    else:
        with pytest.warns(uc.UncertainCepWarning, match="events_1_app-1 and 1 more: read as spark-eventlog"):
            table = uc.read_traces(folder)
    whole = uc.read_traces(put(tmp_path / "log", LOG), format="spark-eventlog")
    assert table.equals(whole)
    # The last one by itself knows of the jobs and the tasks of the first.
    last = uc.read_traces(folder / "events_2_app-1", format="spark-eventlog")
    assert brief(last) == brief(whole)[len(whole) - last.num_rows :]
    assert last.column("job_id").to_pylist() == whole.column("job_id").to_pylist()[-last.num_rows :]


def test_a_compacted_file_stands_for_those_up_to_its_number(tmp_path: Path) -> None:
    head, middle, tail = (LOG.splitlines(keepends=True)[begin : begin + 4] for begin in (0, 4, 8))
    tail += LOG.splitlines(keepends=True)[12:]
    folder = tmp_path / "eventlog_v2_app-1"
    put(folder / "appstatus_app-1", "")
    put(folder / "events_1_app-1", LOG)
    compacted = folder / "events_2_app-1.zstd.compact"
    with pa.output_stream(compacted, compression="zstd") as stream:
        stream.write("".join(head + middle).encode())
    put(folder / "events_3_app-1", "".join(tail))
    whole = uc.read_traces(put(tmp_path / "log", LOG), format="spark-eventlog")
    assert uc.read_traces(folder, format="spark-eventlog").equals(whole)
    with pytest.warns(uc.UncertainCepWarning, match="compact and 1 more: read as spark-eventlog"):
        assert uc.read_traces(sorted(folder.glob("events_*"))).equals(whole)
    # What it stands for can still be there beside it, with the same number.
    put(folder / "events_2_app-1.zstd", "what the history server did not come to delete")
    assert uc.read_traces(folder, format="spark-eventlog").equals(whole)
    last = uc.read_traces(folder / "events_3_app-1", format="spark-eventlog")
    assert last.column("job_id").to_pylist() == whole.column("job_id").to_pylist()[-last.num_rows :]
    # A file that is named by itself is read.
    assert uc.read_traces(folder / "events_1_app-1", format="spark-eventlog").num_rows >= whole.num_rows - 1


def test_a_log_in_progress_may_end_within_a_line(tmp_path: Path) -> None:
    begun = LOG[: LOG.index("Task Metrics") + 20]
    whole = uc.read_traces(put(tmp_path / "log", begun.rpartition("\n")[0]), format="spark-eventlog")
    assert whole.num_rows == 6
    unfinished = put(tmp_path / "app-1.inprogress", begun)
    assert uc.read_traces(unfinished, format="spark-eventlog").equals(whole)
    with pytest.raises(uc.TraceError, match="row 9"):
        uc.read_traces(put(unfinished, begun + LOG[len(begun) + 90 :]), format="spark-eventlog")


def test_tasks_are_as_uncertain_as_their_metrics_leave_them(shared_data: Path) -> None:
    folder = shared_data / "spark_eventlogs"
    table = uc.read_traces(folder / "raw" / "gpu_oom_eventlog.zstd", format="spark-eventlog")
    ends = table.filter(pc.equal(table.column("type"), "TaskEnd"))
    intervals = zip(ends.column("task_id").to_pylist(), brief(ends), strict=True)
    expected = {
        int(row["task_id"]): (int(row["finish_ms"]) - int(row["slack_ms"]), int(row["finish_ms"]))
        for row in rows(folder / "tasks_gpu_oom.csv.gz")
    }
    assert {task: (lower, upper) for task, (_, _, lower, upper) in intervals} == expected


FAULTS = {
    "cut": (LOG[: LOG.index("Task Metrics") + 20], r"row 9, value .*cut off"),
    "no JSON": (LOG.replace('"Launch Time":2300', '"Launch Time":2300x'), r"row 8, .*no JSON, or cut off"),
    "text for a time": (LOG.replace('"Launch Time":2300', '"Launch Time":"x"'), r"row 8, .*Expected `int`"),
    "no time": (LOG.replace('"Launch Time":2300,', ""), r"row 8, .*missing required field `Launch Time`"),
    "huge": (LOG.replace("2300", "9" * 30), r"row 8, .*Expected `int` <="),
    "nested": (LOG.replace('"Host":"n1","Total', '"Host":' + "[" * 9999 + ',"Total'), r"row 3, .*"),
    "other": (LOG + '{"Evento":1}\n', r"row 14, .*missing required field `Event`"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_line_is_told_with_its_row(tmp_path: Path, fault: str) -> None:
    text, message = FAULTS[fault]
    file = put(tmp_path / "log", text)
    with pytest.raises(uc.TraceError, match=f"log, {message}") as caught:
        uc.read_traces(file, format="spark-eventlog")
    assert len(caught.value.faults) == 1


def lz4_blocks(data: bytes) -> bytes:
    """Return bytes as lz4-java writes them: packed blocks, one as it is, and the end of the stream."""
    codec = pa.Codec("lz4_raw")
    packed_data = b""
    for begin in range(0, len(data), 500):
        piece = data[begin : begin + 500]
        packed = codec.compress(piece, asbytes=True) if begin else piece
        kind = 0x20 if begin else 0x10
        packed_data += struct.pack("<8sBiii", b"LZ4Block", kind, len(packed), len(piece), 0) + packed
    return packed_data + struct.pack("<8sBiii", b"LZ4Block", 0x10, 0, 0, 0)


def test_logs_are_compressed_as_spark_does_it(tmp_path: Path) -> None:
    table = uc.read_traces(put(tmp_path / "log", LOG), format="spark-eventlog")
    blocks = lz4_blocks(LOG.encode())
    file = tmp_path / "app-1.lz4"
    # Blocks of two streams, as of a log that was opened again.
    file.write_bytes(blocks + lz4_blocks(b""))
    assert uc.read_traces(file, format="spark-eventlog").equals(table)
    file.write_bytes(pa.compress(LOG.encode(), "lz4", asbytes=True))
    assert uc.read_traces(file, format="spark-eventlog").equals(table)
    for damaged in (blocks[:600], blocks[:700] + b"x" * 50 + blocks[750:], blocks[:10]):
        file.write_bytes(damaged)
        with pytest.raises(uc.TraceError, match=r"app-1\.lz4.*(damaged or cut off|no JSON|cut off)"):
            uc.read_traces(file, format="spark-eventlog")


def snappy_blocks(data: bytes) -> bytes:
    """Return bytes as snappy-java writes them: magic bytes, two versions, and blocks behind their lengths."""
    packed_data = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    for begin in range(0, len(data), 500):
        packed = pa.compress(data[begin : begin + 500], "snappy", asbytes=True)
        packed_data += struct.pack(">i", len(packed)) + packed
    return packed_data


def test_logs_packed_by_snappy_are_read_and_by_lzf_refused(tmp_path: Path) -> None:
    table = uc.read_traces(put(tmp_path / "log", LOG), format="spark-eventlog")
    blocks = snappy_blocks(LOG.encode())
    file = tmp_path / "app-1.snappy"
    # A second stream, as of a log that was opened again.
    file.write_bytes(blocks + snappy_blocks(b""))
    assert uc.read_traces(file, format="spark-eventlog").equals(table)
    broken = blocks[:24] + b"\xff" * 50 + blocks[74:]
    for damaged in (blocks[:600], broken, blocks[:10], b"\x82SNAPPYx" + blocks[8:]):
        file.write_bytes(damaged)
        with pytest.raises(uc.TraceError, match=r"app-1\.snappy.*(damaged or cut off|no JSON|cut off)"):
            uc.read_traces(file, format="spark-eventlog")
    file = tmp_path / "app-1.lzf"
    file.write_bytes(b"ZV\x00\x00\x05hello")
    with pytest.raises(uc.TraceError, match=r"app-1\.lzf: it is packed by LZF.*codec=zstd"):
        uc.read_traces(file, format="spark-eventlog")


def test_commands_take_the_format(tmp_path: Path) -> None:
    log = str(put(tmp_path / "app-1", LOG))
    query = "PATTERN SEQ(TaskStart a, TaskEnd b) WHERE a.task_id = b.task_id WITHIN 1 minute"
    runner = CliRunner()
    for command in (["match", query, log, "--format", "json"], ["explain", query, log], ["validate", log]):
        result = runner.invoke(main, [*command, "--input-format", "spark-eventlog"])
        assert result.exit_code == 0, result.output
        assert "read as" not in result.stderr
        result = runner.invoke(main, command)
        assert result.exit_code == 0, result.output
    (match,) = runner.invoke(
        main, ["match", query, log, "--input-format", "spark-eventlog", "--format", "json"]
    ).stdout.splitlines()
    assert json.loads(match)["a"] == "app-1:task:7:start"
    result = runner.invoke(main, ["validate", log, "--input-format", "ganglia"])
    assert result.exit_code == 2
    assert "it is no XML" in result.output
