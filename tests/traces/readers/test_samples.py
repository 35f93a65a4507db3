"""Readers on a small file of each format, looked through against its specification."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import uncertain_cep as uc
from tests.traces.files import put
from tests.traces.readers.samples import CLOUDWATCH_STATISTICS, PROMETHEUS_EXPORT, SAMPLES
from uncertain_cep.traces.readers import READERS, read_events, recognised

FILES: Final = {
    **{name: (name, text) for name, text in SAMPLES.items()},
    "prometheus-export": ("prometheus", PROMETHEUS_EXPORT),
    "cloudwatch-statistics": ("cloudwatch", CLOUDWATCH_STATISTICS),
}
EXPECTED: Final = {
    "hadoop-jhist": [
        ("JobSubmit", "job_5_0001:submit", 1000, 1000),
        ("JobStart", "job_5_0001:start", 1100, 1100),
        ("TaskStart", "task_5_0001_r_000000:start", 1200, 1200),
        ("AttemptStart", "attempt_5_0001_r_000000_1:start", 1300, 1300),
        ("ShuffleEnd", "attempt_5_0001_r_000000_1:shuffle", 1400, 1400),
        ("SortEnd", "attempt_5_0001_r_000000_1:sort", 1450, 1450),
        ("AttemptEnd", "attempt_5_0001_r_000000_1:end", 1500, 1500),
        ("TaskEnd", "task_5_0001_r_000000:end", 1600, 1600),
        ("JobEnd", "job_5_0001:end", 1700, 1700),
    ],
    "hadoop-rumen": [
        ("JobSubmit", "job_5_0001:submit", 1000, 1000),
        ("JobStart", "job_5_0001:start", 1100, 1100),
        ("JobEnd", "job_5_0001:end", 1700, 1700),
        ("TaskStart", "task_5_0001_m_000000:start", 1200, 1200),
        ("TaskEnd", "task_5_0001_m_000000:end", 1600, 1600),
        ("AttemptStart", "attempt_5_0001_m_000000_0:start", 1300, 1300),
        ("AttemptEnd", "attempt_5_0001_m_000000_0:end", 1500, 1500),
        ("JobSubmit", "job_5_0002:submit", 2000, 2000),
    ],
    "hadoop-history": [
        ("JobSubmit", "job_5_0001:submit", 1000, 1000),
        ("JobStart", "job_5_0001:start", 1100, 1100),
        ("TaskStart", "task_5_0001_m_000000:start", 1200, 1200),
        ("AttemptStart", "attempt_5_0001_m_000000_0:start", 1300, 1300),
        ("AttemptEnd", "attempt_5_0001_m_000000_0:end", 1500, 1500),
        ("JobEnd", "job_5_0001:end", 1700, 1700),
    ],
    "ganglia": [
        ("cpu_user", "c/n1/cpu_user:990", 900, 990),
        ("os_name", "c/n1/os_name:900", -300, 900),
    ],
    "rrd": [
        ("cpu_user", "c1/cpu_user/sum:1:975", 961, 975),
        ("cpu_user", "c1/cpu_user/sum:1:1005", 991, 1005),
        ("cpu_user", "c1/cpu_user/sum:2:960", 901, 960),
    ],
    "prometheus": [
        ("up", "up{job=node,type=x}:1435781430781", 1435781415782, 1435781430781),
        ("up", "up{job=node,type=x}:1435781445781", 1435781430782, 1435781445781),
        ("up", "up{job=node,type=x}:1435781475781", 1435781460782, 1435781475781),
        ("Metric", "Metric{job=api}:1435781430781", 1435781415782, 1435781430781),
    ],
    "openmetrics": [
        (
            "http_requests_total",
            'http_requests_total{method=post,path=a "b"\n}:1395066363000',
            1395066347501,
            1395066363000,
        ),
        (
            "http_requests_total",
            'http_requests_total{method=post,path=a "b"\n}:1395066378500',
            1395066363001,
            1395066378500,
        ),
        ("up", "up:1395066363000", 1395066303001, 1395066363000),
        ("up", "up:1395066423000", 1395066363001, 1395066423000),
        ("up", "up:1395066393000", 1395066363001, 1395066393000),
        (
            "http_requests_total",
            "http_requests_total{method=get,path=}:1395066363000",
            1395066363000,
            1395066363000,
        ),
    ],
    "cloudwatch": [
        ("CPUUtilization", "m1:CPUUtilization:1392388800", 1392388800, 1392389099),
        ("CPUUtilization", "m1:CPUUtilization:1392388500", 1392388500, 1392388799),
        ("CPUUtilization", "m1:CPUUtilization:1392388200", 1392388200, 1392388499),
    ],
    "otlp": [
        ("SpanStart", "5b8e:eee1:start", 1544712660000000000, 1544712660000000000),
        ("SpanEvent", "5b8e:eee1:event:0", 1544712660500000000, 1544712660500000000),
        ("SpanEnd", "5b8e:eee1:end", 1544712661000000000, 1544712661000000000),
        ("SpanStart", "5b8e:eee2:start", 1544712660100000000, 1544712660100000000),
    ],
    "otlp-metrics": [
        (
            "cpu",
            "cpu{core=3,resource.host.name=n1}:1544712660000000000",
            1544712660000000000,
            1544712660000000000,
        ),
        (
            "requests",
            "requests{resource.host.name=n1}:1544712660000000000",
            1544712600000000001,
            1544712660000000000,
        ),
        ("took", "took{resource.host.name=n1}:1544712660000000000", 1544712660000000000, 1544712660000000000),
    ],
    "influx": [
        (
            "weather",
            "weather{location=us midwest,st=a,b}:1465839829100400200",
            1465839829100400200,
            1465839829100400200,
        ),
        ("cpu", "cpu{host=n1}:1465839830100", 1465839830100000000, 1465839830100999999),
        ("cpu", "cpu{host=n2}:1465839830", 1465839830000000000, 1465839830999999999),
    ],
    "jaeger": [
        ("SpanStart", "5b8e:eee1:start", 1544712660000000, 1544712660000000),
        ("SpanEvent", "5b8e:eee1:event:0", 1544712660500000, 1544712660500000),
        ("SpanEnd", "5b8e:eee1:end", 1544712661000000, 1544712661000000),
        ("SpanStart", "5b8e:eee2:start", 1544712660100000, 1544712660100000),
        ("SpanEnd", "5b8e:eee2:end", 1544712660100010, 1544712660100010),
    ],
    "zipkin": [
        ("SpanStart", "5b8e:eee1:start", 1544712660000000, 1544712660000000),
        ("SpanEvent", "5b8e:eee1:event:0", 1544712660500000, 1544712660500000),
        ("SpanEnd", "5b8e:eee1:end", 1544712661000000, 1544712661000000),
        ("SpanStart", "5b8e:eee2:start", 1544712660100000, 1544712660100000),
        ("SpanEnd", "5b8e:eee2:end", 1544712660100010, 1544712660100010),
        ("SpanStart", "5b8e:eee2:shared:start", 1544712660100002, 1544712660100002),
    ],
    "xes": [
        ("Create Fine", "case 1:1", 1153692000000, 1153692000000),
        ("Payment", "case 1:2", 1153821600250, 1153821600250),
    ],
    "prometheus-export": [
        ("up", "up{job=node}:1549891472010", 1549891457011, 1549891472010),
        ("up", "up{job=node}:1549891487010", 1549891472011, 1549891487010),
        ("up", "up{job=node}:1549891517010", 1549891502011, 1549891517010),
        ("up", "up{job=api}:1549891461511", 1549891461511, 1549891461511),
    ],
    "cloudwatch-statistics": [
        ("CPUUtilization", "CPUUtilization:Average:1392388200", 1392388200, 1392388499),
        ("CPUUtilization", "CPUUtilization:Maximum:1392388200", 1392388200, 1392388499),
        ("CPUUtilization", "CPUUtilization:Average:1392388500", 1392388500, 1392388799),
        ("CPUUtilization", "CPUUtilization:Maximum:1392388500", 1392388500, 1392388799),
    ],
}
"""Type, id, and bounds in the unit of the format."""

ATTRIBUTES: Final[dict[str, tuple[int, dict[str, Any]]]] = {
    "hadoop-jhist": (5, {"attempt": 1, "host": "n1", "status": "SUCCEEDED", "clock": "ApplicationMaster"}),
    "hadoop-rumen": (
        6,
        {"task_id": "task_5_0001_m_000000", "host": "n1.x", "clock": "TaskTracker", "name": "} {"},
    ),
    "hadoop-history": (0, {"name": 'so"rt.', "clock": "JobTracker", "host": None}),
    "ganglia": (0, {"grid": "g", "cluster": "c", "host": "n1", "value": 7.5, "text": None, "units": "%"}),
    "rrd": (2, {"file": "cpu_user", "folder": "c1", "function": "MAX", "step_s": 60, "value": 3.0}),
    "prometheus": (1, {"value": None, "step_ms": 15000, "job": "node", "type_": "x"}),
    "prometheus-export": (3, {"value": 1.0, "step_ms": None, "job": "api"}),
    "openmetrics": (0, {"value": 1027.0, "step_ms": 15500, "method": "post", "path": 'a "b"\n'}),
    "cloudwatch": (0, {"value": 0.5, "period_s": 300, "query": "m1"}),
    "cloudwatch-statistics": (1, {"value": 99.0, "statistic": "Maximum", "unit": "Percent"}),
    "otlp": (1, {"service": "shop", "kind": "SERVER", "event": "retry", "http.status": 500}),
    "otlp-metrics": (2, {"kind": "histogram", "unit": "s", "count": 3, "sum": None, "min": 1.0, "max": 2.5}),
    "influx": (0, {"location": "us midwest", "st": "a,b", "n": 3, "ok": True, "note": 'a, "b" = c d'}),
    "jaeger": (
        3,
        {"trace_id": "5b8e", "span_id": "eee2", "parent_id": "eee1", "service": "db", "name": "db"},
    ),
    "zipkin": (1, {"service": "shop", "kind": "SERVER", "event": "retry", "http.status": "500"}),
    "xes": (0, {"case": "case 1", "lifecycle": "complete", "resource": "561", "points": 3, "paid": False}),
}
"""Of one row of each."""


def read(file: str, columns: set[str] | None = None) -> pa.Table:
    name, text = FILES[file]
    return read_events(name, pa.BufferReader(text.encode()), "/rrds/c1/cpu_user.rrd.xml", columns)


@pytest.mark.parametrize("file", EXPECTED)
def test_a_file_is_read_as_its_specification_says(file: str) -> None:
    table = read(file)
    stamps = [table.column(name).cast(pa.int64()).to_pylist() for name in ("lower", "upper")]
    names = [table.column(name).to_pylist() for name in ("type", "id")]
    assert list(zip(*names, *stamps, strict=True)) == EXPECTED[file]
    row, attributes = ATTRIBUTES[file]
    event = table.slice(row, 1).to_pylist()[0]
    assert {name: event[name] for name in attributes} == attributes


def test_every_format_has_a_sample() -> None:
    assert SAMPLES.keys() == READERS.keys()
    assert EXPECTED.keys() == ATTRIBUTES.keys()


def test_the_page_of_formats_has_all_of_them_and_their_ticks() -> None:
    page = (Path(__file__).parents[3] / "docs" / "formats.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \|.*\| (\S+) (\S+) \|$", page, re.MULTILINE)
    assert {name: number + unit for name, number, unit in rows} == {
        name: reader.tick for name, reader in READERS.items()
    }


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("before", ["", "\n ", "\ufeff"])
def test_a_format_is_recognised_by_what_a_file_holds(file: str, before: str) -> None:
    name, text = FILES[file]
    assert recognised((before + text).encode()) == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "type,id,lower,upper\nA,1,1,3\n",
        '{"type": "A", "id": 1}\n',
        "<html>",
        "[1]",
        "PAR1",
        "\0" * 99,
        "# Notes\n",
        "a,b=c d\n",
        "# Notes\ncpu,host=n1 usage=1 12\n",
        "INFO took=3 of 1465839830\n",
    ],
)
def test_other_files_are_none_of_them(text: str) -> None:
    assert recognised(text.encode()) is None


@pytest.mark.parametrize(
    ("file", "field", "values"),
    [
        ("spark-eventlog", "Executor Info.Total Cores", [1]),
        ("hadoop-jhist", "rackname.string", ["/r"]),
        ("hadoop-rumen", "records", [7]),
        ("hadoop-rumen", "task.finishTime", [1600]),
        ("hadoop-rumen", "job.outcome", ["SUCCESS"]),
        ("hadoop-history", "HTTP_PORT", ["50060"]),
        ("ganglia", "GROUP", ["cpu"]),
        ("ganglia", "HOST.IP", ["10.0.0.1"]),
        ("prometheus", "type_", ["x"]),
        ("otlp", "resource.service.name", ["shop"]),
        ("otlp-metrics", "core", [3]),
        ("influx", "usage", [10.0, -2.0]),
        ("jaeger", "process.hostname", ["n1"]),
        ("xes", "case:amount", [7.5]),
    ],
)
def test_further_fields_are_read_by_their_names(file: str, field: str, values: list[Any]) -> None:
    plain, table = read(file, set()), read(file, {field, "nothing"})
    assert set(table.column_names) - set(plain.column_names) == {field}
    assert table.select(plain.column_names).equals(plain)
    assert set(table.column(field).to_pylist()) - {None} == set(values)


@pytest.mark.parametrize("file", FILES)
def test_a_file_is_read_by_its_name_or_by_what_it_holds(tmp_path: Path, file: str) -> None:
    name, text = FILES[file]
    path = put(tmp_path / "c1" / "cpu_user", text)
    table = uc.read_traces(path, format=name)
    assert set(table.column("tick").to_pylist()) == {READERS[name].tick}
    with pytest.warns(uc.UncertainCepWarning, match=f"cpu_user: read as {name}, as"):
        assert uc.read_traces(path).equals(table)
    assert uc.validate(path, format=name) == []


@pytest.mark.parametrize("name", sorted(set(READERS) - {"rrd"}))
def test_what_a_schema_does_not_say_stays_as_it_is(name: str, tmp_path: Path) -> None:
    file = put(tmp_path / "f", SAMPLES[name])
    plain = uc.read_traces(file, format=name)

    def read(section: str) -> pa.Table:
        schema = put(tmp_path / "s.toml", f'format = "{name}"\n[[events]]\n{section}')
        return uc.read_traces(file, schema)

    model_columns = ["type", "id", "lower", "upper"]
    assert read("").select(model_columns).equals(plain.select(model_columns))
    first = plain["type"][0].as_py()
    chosen = read(f"where = \"type = '{first}'\"").select(model_columns)
    assert chosen.equals(plain.filter(pc.equal(plain["type"], first)).select(model_columns))
    moved = read('uncertainty = { kind = "exact" }')
    assert moved["lower"].equals(plain["lower"])
    assert moved["upper"].equals(plain["lower"])
    assert set(moved.column_names) == set(plain.column_names)
