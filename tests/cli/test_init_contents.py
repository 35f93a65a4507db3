"""Proposals for files whose names do not tell what they are, for lists within JSON, and for odd stamps."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import re
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.cli.conftest import Invoke
from tests.cli.test_init import written
from tests.cli.test_init_choices import comments
from tests.cli.test_init_logs import CHANGED, bounds
from tests.traces.files import put, schema_of
from uncertain_cep.traces.proposing import propose

STAMPS: Final = ("2025-03-02T03:04:05Z", "2025-03-02T03:04:06Z")
SECONDS: Final = [1_740_884_645, 1_740_884_646]
SYSLOG: Final = "Mar  2 03:04:05 db1 cron[7]: a\nMar  2 03:04:06 db1 cron[7]: b\n"
TABLE: Final = f"at;kind\n{STAMPS[0]};A\n{STAMPS[1]};B\n"
LOG: Final = "2025-03-02 03:04:05 INFO a\n2025-03-02 03:04:06 INFO b\n"
JSON: Final = "".join(f'{{"time":"{stamp}","msg":"up"}}\n' for stamp in STAMPS)


def events_of(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """Return the events of a file by the schema that is proposed for it, and that schema."""
    import os

    os.utime(path, (CHANGED, CHANGED))
    text = propose([path]).text
    table = uc.read_traces(path, put(path.parent / "schema.toml", text))
    path.parent.joinpath("schema.toml").unlink()
    return table, tomllib.loads(text)


def seconds(table: pa.Table) -> list[float]:
    return [lower / 1e9 for lower, _ in bounds(table)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("messages", SYSLOG),
        ("auth.log.2", SYSLOG),
        ("auth.log.3.gz", SYSLOG),
        ("app.log.2025-03-02", LOG),
        ("app.log-20250302", LOG),
        ("t.txt", LOG),
        ("t.dat", TABLE),
        ("events.csv.old", TABLE.replace(";", ",")),
        ("pino", JSON),
        ("bunyan.txt", JSON),
        ("docker.log", JSON),
    ],
)
def test_the_content_decides(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    assert seconds(events_of(path)[0]) == SECONDS


def test_a_folder_of_logs_without_endings(tmp_path: Path, invoke: Invoke) -> None:
    put(tmp_path / "log" / "messages", LOG)
    put(tmp_path / "log" / "daemon", LOG)
    schema = written(invoke, tmp_path / "out", tmp_path / "log")
    assert tomllib.loads(schema)["format"] == "text"
    assert uc.read_traces(tmp_path / "log", tmp_path / "out" / "schema.toml").num_rows == 4


def records(key: str) -> list[dict[str, Any]]:
    return [{key: stamp, "eventName": f"E{number}"} for number, stamp in enumerate(STAMPS)]


LISTS: Final[dict[str, Any]] = {
    "Records": {"Records": records("eventTime")},
    "items": {"kind": "EventList", "items": records("lastTimestamp")},
    "log.entries": {
        "log": {"version": "1.2", "creator": {"name": "x"}, "entries": records("startedDateTime")}
    },
    "resourceLogs": {
        "resourceLogs": [
            {
                "resource": {"attributes": [{"key": "a", "value": {"stringValue": "b"}}]},
                "scopeLogs": [
                    {
                        "logRecords": [
                            {"timeUnixNano": f"{second}000000000", "eventName": "E"} for second in SECONDS
                        ]
                    }
                ],
            }
        ]
    },
}


@pytest.mark.parametrize("key", LISTS)
@pytest.mark.parametrize("indent", [None, 1])
def test_lists_in_one_object(tmp_path: Path, key: str, indent: int | None) -> None:
    table, schema = events_of(put(tmp_path / "a.json", json.dumps(LISTS[key], indent=indent)))
    exploded = schema["explode"]
    assert (exploded if isinstance(exploded, str) else exploded[0]) == key
    times = [(lower + upper) / 2e9 for lower, upper in bounds(table)]
    assert [round(time, 3) for time in times] in (SECONDS, [second + 0.5 for second in SECONDS])
    assert set(table.column("type").to_pylist()) <= {"E0", "E1", "E"}


def test_several_lists_beside_each_other(tmp_path: Path) -> None:
    lists = {"a": records("time"), "b": records("time")}
    with pytest.raises(uc.OptionError, match="no column of times"):
        propose([put(tmp_path / "a.json", json.dumps(lists))])


@pytest.mark.parametrize("wrapped", [False, True])
def test_lists_of_several_kinds(tmp_path: Path, wrapped: bool) -> None:
    """Metrics of OpenTelemetry have a schema; of others each list that the error names is read."""
    kinds = {"gauge": [1, 2], "sum": [3], "histogram": [4, 5, 6]}
    metrics = [
        {
            "name": kind,
            kind: {"dataPoints": [{"timeUnixNano": f"171714960{second}000000000"} for second in times]},
        }
        for kind, times in kinds.items()
    ]
    document = {"resourceMetrics": [{"resource": {}, "scopeMetrics": [{"metrics": metrics}]}]}
    path = put(tmp_path / "a.json", json.dumps({"items": document} if wrapped else document))
    if not wrapped:
        with pytest.warns(uc.UncertainCepWarning, match="read as otlp-metrics"):
            table, schema = events_of(path)
        assert schema == {"format": "otlp-metrics"}
        read = [str(lower)[18:19] for lower in table["lower"].to_pylist()]
        assert list(zip(table["type"].to_pylist(), read, strict=True)) == [
            (kind, str(second)) for kind, times in kinds.items() for second in times
        ]
        return
    with pytest.raises(uc.OptionError, match="several lists hold times") as raised:
        propose([path])
    cures = re.findall(r"explode = \[[^]]*\]", str(raised.value))
    assert len(cures) == len(kinds)
    for cure, (kind, seconds) in zip(cures, kinds.items(), strict=True):
        time = f"items.resourceMetrics.scopeMetrics.metrics.{kind}.dataPoints.timeUnixNano"
        text = (
            f'{cure}\n[[events]]\ntype = "M"\ntime = "{time}"\ntime_format = "epoch_ns"\nmissing = "drop"\n'
        )
        text += 'uncertainty = { kind = "exact" }\n'
        table = uc.read_traces(path, put(tmp_path / "schema.toml", text))
        assert [str(lower)[18:19] for lower in table["lower"].to_pylist()] == [str(each) for each in seconds]


@pytest.mark.parametrize("name", ["metrics.txt", "metrics.lp", "metrics", "metrics.out.gz"])
def test_line_protocol(tmp_path: Path, name: str) -> None:
    text = "".join(f"cpu,host=n1 usage={value}.5 {1717149600 + value}000000000\n" for value in range(4))
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    with pytest.warns(uc.UncertainCepWarning, match="read as influx"):
        table, schema = events_of(path)
    assert schema == {"format": "influx"}
    assert str(table["lower"].to_pylist()[0])[:19] == "2024-05-31 10:00:00"


def test_rows_with_times_keep_their_lists(tmp_path: Path) -> None:
    rows = [{"time": stamp, "tags": [{"at": stamp}, {"at": stamp}]} for stamp in STAMPS]
    table, schema = events_of(put(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows))))
    assert (table.num_rows, "explode" in schema) == (2, False)


def test_stamps_within_fields(tmp_path: Path) -> None:
    rows = [{"t": {"$date": stamp}, "s": "I", "msg": "up"} for stamp in STAMPS]
    table, schema = events_of(put(tmp_path / "mongod.log", "\n".join(map(json.dumps, rows))))
    assert schema["events"][0]["time"] == "t.$date"
    assert seconds(table) == SECONDS


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("2025-03-01 24:00:00", "2025-03-02 00:00:00"),
        ("2025-03-02 03:04:05 UTC", "2025-03-02 03:04:05"),
        ("2025-03-02 03:04:05,250", "2025-03-02 03:04:05.250"),
        ("20250302T030405Z", "2025-03-02 03:04:05"),
        ("Sun, 2 Mar 2025 03:04:05 +0100", "2025-03-02 02:04:05"),
        ("3/13/2025 3:04:05 PM", "2025-03-13 15:04:05"),
        ("28.02.25 03:04:05", "2025-02-28 03:04:05"),
        ("1740884645.250", "2025-03-02 03:04:05.250"),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_odd_stamps(tmp_path: Path, stamp: str, expected: str, kind: str) -> None:
    text = f'time,x\n"{stamp}",A\n' if kind == "csv" else json.dumps({"time": stamp, "x": "A"})
    table, _ = events_of(put(tmp_path / f"t.{kind}", text))
    (begin, end), time = bounds(table)[0], dt.datetime.fromisoformat(expected).replace(tzinfo=dt.UTC)
    # A fraction of a second is kept to a millisecond.
    assert begin <= round(time.timestamp() * 1000) * 10**6 <= end < begin + 10**9


def test_days_as_whole_numbers(tmp_path: Path) -> None:
    table, schema = events_of(put(tmp_path / "t.csv", "date,close\n20250302,1.5\n20250304,2.5\n"))
    assert schema["events"][0]["time_format"] == ["%Y%m%d"]
    assert seconds(table) == [1_740_873_600, 1_740_873_600 + 2 * 86_400]
    # Numbers that no name calls times are none.
    with pytest.raises(uc.OptionError, match="no column of times"):
        propose([put(tmp_path / "n.csv", "amount,x\n20250302,1\n20250304,2\n")])


SCHEMA: Final = '[[events]]\ntype = "A"\ntime = "at"\nuncertainty = { kind = "exact" }\n'


@pytest.mark.parametrize("form", ["", 'time_format = "iso"\n', 'time_format = "%Y-%m-%dT%H:%M:%SZ"\n'])
def test_leap_seconds_are_counted(tmp_path: Path, form: str) -> None:
    path = put(tmp_path / "t.csv", "at\n2016-12-31T23:59:60Z\n2017-01-01T00:00:01Z\n")
    with pytest.warns(uc.UncertainCepWarning, match="1 leap second, :60, read as the beginning"):
        table = uc.read_traces(path, schema_of(tmp_path, SCHEMA + form))
    assert seconds(table) == [1_483_228_800, 1_483_228_801]
    for wrong in (
        "2017-01-01T00:00:61Z",
        "2017-01-01T00:10:60Z",
        "2017-01-01T24:00:01Z",
        "2017-01-01T25:00:00Z",
    ):
        with pytest.raises(uc.TraceError, match="row 1"):
            uc.read_traces(put(tmp_path / "w.csv", f"at\n{wrong}\n"), schema_of(tmp_path, SCHEMA + form))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_numbers_in_texts(tmp_path: Path, unit: str) -> None:
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    digits = ["1740884645", "-5", "0", "1740884645.25", "7,5", "9" * 19]
    rows = "".join(f'"{text}"\n' for text in digits[:5])
    schema = schema_of(tmp_path, f'tick = "1ns"\n{SCHEMA}time_format = "epoch_{unit}"\n')
    table = uc.read_traces(put(tmp_path / "t.csv", f"at\n{rows}"), schema)
    exact = [Decimal(text.replace(",", ".")) for text in digits[:5]]
    nanoseconds = [int(number * 10**9 / scale) for number in exact]
    assert [lower for lower, _ in bounds(table)] == nanoseconds
    with pytest.raises(uc.TraceError, match="row 1"):
        uc.read_traces(put(tmp_path / "w.csv", f'at\n"{"9" * 19}"\n'), schema) if unit != "ns" else (
            uc.read_traces(put(tmp_path / "w.csv", f'at\n"{"9" * 19}9"\n'), schema)
        )


MEMORY: Final = (
    "at,host,used\n2026-01-05 08:00:00,web-1,0.41\n2026-01-05 08:00:15,web-1,0.97\n"
    "2026-01-05 08:00:30,web-1,0.93\n2026-01-05 08:01:15,web-2,0.44\n2026-01-05 08:01:30,web-2,0.96\n"
)


def test_a_short_series_is_one(tmp_path: Path) -> None:
    _, schema = events_of(put(tmp_path / "memory.csv", MEMORY))
    assert schema["events"][0]["uncertainty"] == {"kind": "plus_minus", "by": "15s"}
    uneven = MEMORY.replace("08:00:30", "08:00:37")
    _, schema = events_of(put(tmp_path / "memory.csv", uneven))
    assert schema["events"][0]["uncertainty"] == {"kind": "granularity", "of": "1s"}


@pytest.mark.parametrize("name", ["pid", "flow_id", "session_id", "userId", "trace_id", "request_id"])
def test_ids_that_events_share_are_no_ids(tmp_path: Path, name: str) -> None:
    rows = "".join(f"{stamp},{number},A\n" for number, stamp in enumerate(STAMPS))
    _, schema = events_of(put(tmp_path / "t.csv", f"at,{name},kind\n{rows}"))
    assert "id" not in schema["events"][0]
    _, schema = events_of(put(tmp_path / "t.csv", f"at,event_id,kind\n{rows}"))
    assert schema["events"][0]["id"] == "event_id"


def test_a_table_of_offsets_is_offered(tmp_path: Path) -> None:
    trace = put(tmp_path / "t.csv", f"at,host,kind\n{STAMPS[0]},h1,A\n{STAMPS[1]},h2,B\n")
    offsets = put(tmp_path / "o.csv", "host,offset_lo_ms,offset_hi_ms\nh1,-5,7\nh2,10,20\n")
    proposed = propose([trace, offsets])
    assert "o.csv looks like bounds of the offsets of clocks, by host" in comments(proposed)
    assert proposed.left_out == ()
    (line,) = (line for line in proposed.text.splitlines() if line.startswith("# uncertainty = { kind = "))
    text = "\n".join(each for each in proposed.text.splitlines() if not each.startswith("uncertainty"))
    table = uc.read_traces(trace, put(tmp_path / "s.toml", text.replace(line, line.removeprefix("# "))))
    assert seconds(table) == pytest.approx([SECONDS[0] - 0.005, SECONDS[1] + 0.01], rel=0, abs=1e-5)
    with pytest.raises(uc.OptionError, match="no column of times beside the offsets of clocks"):
        propose([offsets])


def test_what_is_said_of_the_clocks_of_a_cluster(shared_data: Path) -> None:
    path = shared_data / "yahoo_hadoop_2009_skew/raw/19-jobs.trace.json.gz"
    said = comments(propose([path], "hadoop-rumen"))
    assert "but not how right clocks are" in said
    assert "clocks may be minutes apart" in said
