"""Schemas for logs of any form: the stamp is found in every line, and its time is the one that is written."""

from __future__ import annotations

import os
import re
import tomllib
import warnings
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.cli.conftest import Invoke
from tests.cli.test_init import written
from tests.cli.test_init_choices import run
from tests.traces.files import put
from uncertain_cep.traces import log_forms
from uncertain_cep.traces.log_presets import PRESETS as GENERAL
from uncertain_cep.traces.program_presets import PRESETS
from uncertain_cep.traces.proposing import propose

CHANGED: Final = 1_741_000_000
"""The last change of the files: 2025-03-03."""

Form = tuple[str, tuple[str, ...]]
FORMS: Final[dict[str, Form]] = {
    "syslog": ("Mar  2 03:04:05 db1 cron[7]: a\nMar  2 03:04:06 db1 sshd[8]: b\n", ("03:04:05", "03:04:06")),
    "syslog_iso": (
        "2025-03-02T03:04:05.25+01:00 db1 cron[7]: a\n2025-03-02T03:04:06.25+01:00 db1 su: b\n",
        ("02:04:05.25", "02:04:06.25"),
    ),
    "journalctl": ("Mar 02 03:04:05.000250 db1 systemd[1]: a\n", ("03:04:05.00025",)),
    "kafka": (
        "[2025-03-02 03:04:05,250] INFO [Broker id=1] up (kafka.server.Broker)\n"
        "[2025-03-02 03:04:06,250] ERROR [Broker id=1] x (kafka.server.B)\njava.lang.Error: x\n\tat y\n",
        ("03:04:05.25", "03:04:06.25"),
    ),
    "elasticsearch": (
        "[2025-03-02T03:04:05,250][WARN ][o.e.c.Coordinator] [es-1] slow\n", ("03:04:05.25",)
    ),
    "cassandra": (
        "INFO  [main] 2025-03-02 03:04:05,250 Daemon.java:12 - up\n"
        "WARN  [GC:1] 2025-03-02 03:04:06,250 Gc.java:7 - slow\n",
        ("03:04:05.25", "03:04:06.25"),
    ),
    "spring": (
        "2025-03-02T03:04:05.250Z  INFO 12 --- [app] [   main] c.e.App    : up\n", ("03:04:05.25",)
    ),
    "flink": ("2025-03-02 03:04:05,250 INFO  org.a.b.Runner      [] - up\n", ("03:04:05.25",)),
    "tomcat": ("02-Mar-2025 03:04:05.250 INFO [main] org.a.B.c up\n", ("03:04:05.25",)),
    "python": ("2025-03-02 03:04:05,250 - a.b - INFO - up\n", ("03:04:05.25",)),
    "airflow": (
        "[2025-03-02, 03:04:05 UTC] {local.py:12} INFO - up\n"
        "[2025-03-02, 03:04:06 UTC] {local.py:13} ERROR - down\n",
        ("03:04:05", "03:04:06"),
    ),
    "celery": ("[2025-03-02 03:04:05,250: INFO/MainProcess] up\n", ("03:04:05.25",)),
    "postgresql": (
        "2025-03-02 03:04:05.250 UTC [7] me@x LOG:  up\n\tb\n2025-03-02 03:04:06.250 UTC [7] FATAL:  x\n",
        ("03:04:05.25", "03:04:06.25"),
    ),
    "mysql": ("2025-03-02T03:04:05.250000Z 0 [Note] [MY-1] [Server] up\n", ("03:04:05.25",)),
    "mysql_slow": (
        "# Time: 2025-03-02T03:04:05.250000Z\n# User@Host: me[me] @ web []  Id:     7\n"
        "# Query_time: 1.5  Lock_time: 0.0 Rows_sent: 1  Rows_examined: 9\nSELECT 1;\nSELECT 2;\n"
        "# Time: 2025-03-02T03:04:06.250000Z\n# User@Host: me[me] @ web []  Id:     7\n"
        "# Query_time: 2.5  Lock_time: 0.0 Rows_sent: 2  Rows_examined: 8\nSELECT 3;\n",
        ("03:04:05.25", "03:04:06.25"),
    ),
    "redis": ("7:M 02 Mar 2025 03:04:05.250 * Ready\n", ("03:04:05.25",)),
    "rabbitmq": (
        "2025-03-02 03:04:05.250 [info] <0.9.0> a\n2025-03-02 03:04:06.250000+00:00 [error] <0.9.0> b\n",
        ("03:04:05.25", "03:04:06.25"),
    ),
    "nginx_error": (
        "2025/03/02 03:04:05 [error] 7#7: *9 open() failed, client: 1.2.3.4, server: x\n", ("03:04:05",)
    ),
    "apache_error": (
        "[Sun Mar 02 03:04:05.250000 2025] [core:error] [pid 7] [client 1.2.3.4:5] x\n", ("03:04:05.25",)
    ),
    "access_vhost": (
        'x.org:80 1.2.3.4 - - [02/Mar/2025:03:04:05 +0100] "GET / HTTP/1.1" 200 2 "-" "c"\n', ("02:04:05",)
    ),
    "access": ('1.2.3.4 - - [02/Mar/2025:03:04:05 +0100] "GET / HTTP/1.1" 200 2\n', ("02:04:05",)),
    "haproxy": (
        "Mar  2 03:04:06 lb haproxy[7]: 1.2.3.4:5 [02/Mar/2025:03:04:05.250] f b/s 0/0/1/2/3 200 4 - -\n",
        ("03:04:05.25",),
    ),
    "elb": (
        "https 2025-03-02T03:04:05.250000Z app/x/1 1.2.3.4:5 1.2.3.5:80 .0 .1 .0 200 200 1 2 "
        '"GET http://x/ HTTP/1.1" "c" - -\n',
        ("03:04:05.25",),
    ),
    "vpc_flow": (
        "2 123456789010 eni-1a 1.2.3.4 1.2.3.5 20641 22 6 20 4249 1740884645 1740884700 ACCEPT OK\n",
        ("03:04:05",),
    ),
    "cef": ("Mar  2 03:04:05 fw CEF:0|V|P|1|18|port scan|low|src=1.2.3.4\n", ("03:04:05",)),
    "suricata": (
        "03/02/2025-03:04:05.250000  [**] [1:2:3] SCAN x [**] [Priority: 1] {TCP} 1.2.3.4:5 -> 1.2.3.5:6\n",
        ("03:04:05.25",),
    ),
    "auditd": ("type=SYSCALL msg=audit(1740884645.250:9): arch=c0 syscall=59\n", ("03:04:05.25",)),
    "logcat": ("03-02 03:04:05.250  1702  2395 D Window: shown\n", ("03:04:05.25",)),
    "cockroachdb": (
        "I250302 03:04:05.250000 1 1@server/node.go:12 ⋮ [n1] 1  up\n"
        "W250302 03:04:06.250000 77 gossip/gossip.go:7 ⋮ [n1] 2  x\n",
        ("03:04:05.25", "03:04:06.25"),
    ),
    "klog": ("I0302 03:04:05.250000    1234 server.go:12] up\n", ("03:04:05.25",)),
    "gc": ("[2025-03-02T03:04:05.250+0100][1.5s][info][gc] GC(0) Pause 1ms\n", ("02:04:05.25",)),
    "strace": ('7 1740884645.250000 open("/x") = 3 <0.00001>\n', ("03:04:05.25",)),
    "candump": ("(1740884645.250000) can0 123#AABB\n", ("03:04:05.25",)),
    "dmesg_dates": ("[Sun Mar  2 03:04:05 2025] usb 1-1: new device\n", ("03:04:05",)),
    "compose": ("web-1  | 2025-03-02T03:04:05.25Z up\ndb-1   | 2025-03-02T03:04:06Z up\n", (
        "03:04:05.25", "03:04:06")),
    "vmware": ("2025-03-02T03:04:05.250Z info vpxd[7] [Originator@6876 sub=x] up\n", ("03:04:05.25",)),
    "monolog": ("[2025-03-02 03:04:05] local.ERROR: down\n", ("03:04:05",)),
    "env_logger": ("[2025-03-02T03:04:05Z INFO  my_app::x] up\n", ("03:04:05",)),
    "log4j": ("2025-03-02 03:04:05,250 INFO [main] a.b.C: up\n", ("03:04:05.25",)),
    "cri": ("2025-03-02T03:04:05.25Z stdout F up\n", ("03:04:05.25",)),
    "syslog5424": ("<34>1 2025-03-02T03:04:05.25Z db1 su - ID47 - up\n", ("03:04:05.25",)),
    # Of no usual form.
    "logfmt": ('time="2025-03-02T03:04:05Z" level=info msg="a b"\n' * 2, ("03:04:05",) * 2),
    "date(1)": ("[Sun Mar  2 03:04:05 2025]\nrule a:\n    input: x\n[Sun Mar  2 03:04:06 2025]\nrule b:\n", (
        "03:04:05", "03:04:06")),
    "HDFS": ("250302 030405 7 INFO dfs.A: x\n250302 030406 8 INFO dfs.B: y\n", ("03:04:05", "03:04:06")),
    "supercomputer": (
        "- 1740884645 2025.03.02 R1-M0 2025-03-02-03.04.05.250000 R1-M0 RAS KERNEL INFO x\n", ("03:04:05.25",)
    ),
    "health": ("20250302-03:04:05:250|Step|3|on\n", ("03:04:05.25",)),
    "windows": ("2025-03-02 03:04:05, Info                  CBS    x\n", ("03:04:05",)),
    "openstack": (
        "nova.log.1.2025-03-02_13:53:08 2025-03-02 03:04:05.250 7 INFO nova.a [r-1] up\n", ("03:04:05.25",)
    ),
    "am and pm": ("3/2/2025 3:04:05 AM: a\n3/13/2025 3:04:06 PM: b\n", ("03:04:05", "13T15:04:06")),
    "util.logging": ("Mar 2, 2025 3:04:05 AM a.B c\n", ("03:04:05",)),
    "mail": ("Date: Sun, 2 Mar 2025 03:04:05 +0100 x\n", ("02:04:05",)),
    "basic": ("20250302T030405Z up\n", ("03:04:05",)),
    "before": ("web1 main 2025-03-02 03:04:05 up\nweb2 main 2025-03-02 03:04:06 up\n", (
        "03:04:05", "03:04:06")),
    "milliseconds": ("1740884645250 up\n1740884646250 down\n", ("03:04:05.25", "03:04:06.25")),
}  # fmt: skip
"""Logs of 2025-03-02, and the times of their records in UTC."""

SINCE_START: Final[dict[str, Form]] = {
    "dmesg": ("[    5.250000] usb 1-1: new device\n[   65.250000] usb 1-1: gone\n", ("05.25", "65.25")),
    "ftrace": (
        "          <idle>-0     [001] d..2  12.567001: sched_switch: next=4\n"
        "            bash-42    [001] d..2  12.567105: sched_wakeup: pid=3\n",
        ("12.567001", "12.567105"),
    ),
}


def times_of(folder: Path, text: str, name: str = "app.log") -> tuple[pa.Table, str]:
    """Return the events of a log by the schema that is proposed for it, and that schema."""
    path = put(folder / name, text)
    os.utime(path, (CHANGED, CHANGED))
    schema = propose([path]).text
    return uc.read_traces(path, put(folder / "schema.toml", schema)), schema


def expected_times(times: tuple[str, ...]) -> list[int]:
    """Return times of day, or of a day of the month, as nanoseconds."""
    full = [time if "T" in time else f"02T{time}" for time in times]
    stamps = pa.array([f"2025-03-{time}" for time in full]).cast(pa.timestamp("ns"))
    return list(stamps.cast(pa.int64()).to_pylist())


def bounds(table: pa.Table) -> list[tuple[int, int]]:
    columns = [
        table.column(name).cast(pa.timestamp("ns")).cast(pa.int64()).to_pylist()
        for name in ("lower", "upper")
    ]
    return list(zip(*columns, strict=True))


_BY_LETTER: Final = {("klog", True), ("cockroachdb", True)}
"""In logs of Go a letter stands before the stamp: its shape alone is none."""


@pytest.mark.parametrize(
    ("name", "by_shape"),
    [(name, by_shape) for name in FORMS for by_shape in (False, True) if (name, by_shape) not in _BY_LETTER],
)
def test_the_stamp_of_any_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, by_shape: bool
) -> None:
    text, times = FORMS[name]
    if by_shape:
        monkeypatch.setattr(log_forms, "_usual_form", lambda *_: None)
    table, schema = times_of(tmp_path, text)
    assert table.num_rows == len(times)
    for (lower, upper), expected in zip(bounds(table), expected_times(times), strict=True):
        if by_shape and name in ("haproxy", "vpc_flow"):
            # The first stamp of a line is not the one that its documentation means.
            continue
        assert lower <= expected <= upper < lower + 10**9, schema
    if name in PRESETS and not by_shape:
        assert tomllib.loads(schema)["extract"]["line"] == name


@pytest.mark.parametrize("by_shape", [False, True])
@pytest.mark.parametrize("name", SINCE_START)
def test_seconds_since_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, by_shape: bool
) -> None:
    text, times = SINCE_START[name]
    if by_shape:
        monkeypatch.setattr(log_forms, "_usual_form", lambda *_: None)
    table, schema = times_of(tmp_path, text)
    assert [lower / 1e9 for lower, _ in bounds(table)] == [float(time) for time in times]
    assert "# Times are seconds since a start" in schema


def test_every_preset_has_its_line() -> None:
    assert {*PRESETS} <= {*FORMS, *SINCE_START}
    page = (Path(__file__).resolve().parents[2] / "docs" / "text-logs.md").read_text(encoding="utf-8")
    assert {name for name in PRESETS if f"`{name}`" not in page} == set()
    assert all(PRESETS[name] is preset for name, preset in GENERAL.items())


@pytest.mark.parametrize("name", ["kafka", "mysql_slow", "logfmt", "date(1)", "rabbitmq", "before"])
def test_what_is_written_for_logs_runs(tmp_path: Path, invoke: Invoke, name: str) -> None:
    written(invoke, tmp_path / "new", put(tmp_path / "app.log", FORMS[name][0]))


def test_what_follows_a_record_stays_with_it(tmp_path: Path) -> None:
    table, _ = times_of(tmp_path, FORMS["mysql_slow"][0])
    assert table.column("query_time").to_pylist() == [1.5, 2.5]
    assert table.column("message").to_pylist() == ["SELECT 1;\nSELECT 2;", "SELECT 3;"]
    table, schema = times_of(tmp_path, FORMS["date(1)"][0])
    said = [text.strip() for text in table.column("message").to_pylist()]
    assert said == [
        "rule a:\n    input: x",
        "rule b:",
    ]
    assert tomllib.loads(schema)["record_begin"].startswith("^\\[")


def test_lines_of_several_layouts(tmp_path: Path) -> None:
    lines = [
        *(f"2025-03-02 03:04:{second:02d} INFO [t{second}] a.b: up" for second in range(30)),
        *(f"2025-03-02 03:04:{second:02d} odd {second}" for second in range(30, 35)),
    ]
    table, _ = times_of(tmp_path, "\n".join(lines))
    assert table.num_rows == 35
    assert table.column("message").to_pylist()[-1] == "odd 34"


SEVERAL: Final[dict[str, tuple[tuple[str, ...], int]]] = {
    "zones": (("2024-05-31T10:00:0#Z INFO up", "[31/May/2024:12:00:0# +0200] GET /"), 2),
    "no zones": (("2024-05-31 10:00:0#,000 INFO [main] a.b.C: up", "31.05.2024 10:00:0# b"), 2),
    "one with a zone": (
        ("2024-05-31 10:00:0#,000 INFO [main] a.b.C: up", "[31/May/2024:12:00:0# +0200] GET /"), 1
    ),
    "a stamp within a record": (
        ("2024-05-31 10:00:0#,000 INFO [main] a.b.C: up\n\tat x\nCaused by: y 30.05.2024 10:00:00",), 1
    ),
}  # fmt: skip
"""Lines of several forms in one file, one each second, and how many of them are read."""


@pytest.mark.parametrize("name", SEVERAL)
def test_several_forms_in_a_file(tmp_path: Path, name: str) -> None:
    forms, count = SEVERAL[name]
    lines = [form.replace("#", str(second)) for form in forms for second in range(4)]
    path = put(tmp_path / "app.log", "\n".join(lines) + "\n")
    schema = put(tmp_path / "schema.toml", propose([path]).text)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        table = uc.read_traces(path, schema)
    begins = [str(lower)[:19] for lower in table["lower"].to_pylist()]
    assert begins == [f"2024-05-31 10:00:0{second}" for _ in range(count) for second in range(4)]
    # What is left out is counted, and goes on with no record.
    assert any("4" in str(warning.message) for warning in warned) == (count < len(forms))
    assert not any("GET" in message for message in table["message"].to_pylist()) or count == len(forms)


def test_prose_with_a_date_in_it_is_no_log(tmp_path: Path) -> None:
    lines = ["some words of prose"] * 60
    lines[20] = "it began on 2025-03-02 at 03:04:05 or so"
    lines[40] = "and ended, after a while, on 2025-03-03 03:04:05"
    with pytest.raises(uc.OptionError, match="no stamps that are known"):
        propose([put(tmp_path / "a.log", "\n".join(lines))])


SHAPES: Final = (
    "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S,%f",
    "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S.%f UTC", "%Y-%m-%d, %H:%M:%S", "%Y/%m/%d %H:%M:%S",
    "%Y.%m.%d %H:%M:%S", "%d/%b/%Y:%H:%M:%S +0000", "%d-%b-%Y %H:%M:%S.%f", "%a %b %d %H:%M:%S %Y",
    "%a %b %d %H:%M:%S.%f %Y", "%a, %d %b %Y %H:%M:%S +0000", "%b %d %H:%M:%S %Y", "%b %d, %Y %I:%M:%S %p",
    "%Y%m%dT%H%M%SZ", "%Y%m%d-%H:%M:%S:%f", "%Y-%m-%d-%H.%M.%S.%f", "%b %d %H:%M:%S",
)  # fmt: skip
_FIELDS: Final = ("INFO", "[INFO]", "[main]", "<0.9.0>", "{a.py:7}", "a.b.C:", "[7]", "web[7]:", "- INFO -")


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[str], list[int]]:
    """Draw the lines of a log, and their times in nanoseconds."""
    form = draw(st.sampled_from(SHAPES))
    opening, closing = draw(
        st.sampled_from((("", ""), ("[", "]"), ("(", ")"), ("ts=", ""), ("web | ", " |")))
    )
    fields = draw(st.lists(st.sampled_from(_FIELDS), max_size=3))
    # In the year before the last change of the file.
    instant = draw(st.integers(1_709_800_000, 1_740_000_000)) * 10**6
    lines, times = [], []
    for number in range(draw(st.integers(1, 12))):
        instant += draw(st.integers(0, 5 * 86_400 * 10**6))
        instant = min(instant, (CHANGED - 86_400) * 10**6)
        text, begin = formatted(form, instant)
        message = draw(st.sampled_from(("up", f"took {number} ms", "a=1 b=2", "x: y", "")))
        lines.append(" ".join([f"{opening}{text}{closing}", *fields, message]).rstrip())
        times.append(begin)
    return lines, times


def formatted(form: str, microseconds: int) -> tuple[str, int]:
    """Return a time in a format, and what the text tells of it, in nanoseconds."""
    import datetime as dt

    time = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=microseconds)
    kept = microseconds if "%f" in form else microseconds // 10**6 * 10**6
    return time.strftime(form), kept * 1000


@FEWER
@given(logs())
def test_times_are_those_that_are_written(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[list[str], list[int]]
) -> None:
    lines, times = drawn
    folder = tmp_path_factory.mktemp("logs")
    path = put(folder / "app.log", "\n".join(lines) + "\n")
    os.utime(path, (CHANGED, CHANGED))
    done = run("init", path, "-o", folder / "out")
    assert done.exit_code == 0, done.output
    checked = run("validate", path, "--schema", folder / "out" / "schema.toml")
    assert "no faults" in checked.stderr, checked.output
    table = uc.read_traces(path, folder / "out" / "schema.toml")
    assert table.num_rows == len(lines)
    for (lower, upper), time in zip(bounds(table), times, strict=True):
        assert lower <= time <= upper < lower + 10**9


def test_expressions_are_those_of_re2(tmp_path: Path) -> None:
    _, schema = times_of(tmp_path, FORMS["before"][0])
    expression = tomllib.loads(schema)["extract"]["line"]
    assert re.compile(expression).groupindex.keys() >= {"name", "time", "message"}


@pytest.mark.parametrize(
    "day",
    [
        "14th March 2026 ",
        "14 March2026 ",
        "March 14th, 2026 ",
        "Mar.14.2026 ",
        "X260314 ",
        "2026-03-14 pc7 ",
        "14.03. ",
        "2026/03/14 T",
    ],
)
def test_a_day_that_is_not_read_is_no_day_to_guess(tmp_path: Path, day: str) -> None:
    lines = [f"[{day}10:{row:02}:00] door {row} opened\n" for row in range(20)]
    with pytest.raises(uc.OptionError, match="no stamps that are known"):
        propose([put(tmp_path / "a.log", "".join(lines))])
