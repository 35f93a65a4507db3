"""Text logs: records cut out of lines, lines that go on with the one before, and the forms of usual logs."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.traces.files import put, schema_of
from uncertain_cep.errors import TraceError, UncertainCepWarning
from uncertain_cep.traces import text_lines
from uncertain_cep.traces.extracting import with_extracted
from uncertain_cep.traces.log_presets import RESTS
from uncertain_cep.traces.program_presets import PRESETS
from uncertain_cep.traces.text_lines import CONTINUATION, record_blocks

SYSLOG = """\
<34>Oct 11 22:14:15 web-1 su[123]: 'su root' failed on /dev/pts/8
Dec 31 23:59:59 web-2 kernel: [12.5] panic
Jan  1 00:00:00 web-2 last message repeated 2 times
"""
"""RFC 3164, sections 4.1 and 5.4 (example 1); the second line as a daemon writes it to a file, without the
priority, and the third as of syslogd, which names no program."""
SYSLOG5424 = """\
<34>1 2003-10-11T22:14:15.003Z web-1 su - ID47 - 'su root' failed
<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 app 8710 - [a@1 k="v\\]"][b@2] message
<13>1 2003-08-24T05:14:15Z - - - - -
"""
"""RFC 5424, sections 6 and 6.5 (examples 1 and 2, and structured data as in example 4)."""
LOG4J = """\
2015-10-17 15:37:56,547 INFO [main] org.apache.hadoop.MRAppMaster: Created
2015-10-17 15:37:57,001 WARN [IPC-1] org.apache.ipc.Client: Failed
java.net.ConnectException: refused
\tat sun.nio.Net(Unknown)
Caused by: java.io.IOException: x
\t... 12 more
17/06/09 20:10:40 ERROR executor.Backend: Lost
2015-07-29 17:41:44,747 - INFO  [QuorumPeer:Fast@774] - Notification
2015-07-29 17:41:45.5 [main] DEBUG a.b.C - of logback
"""
"""PatternLayout of Apache Log4j 1.2 with the patterns that come with Hadoop, Spark and ZooKeeper, which
are ``%d{ISO8601} %p [%t] %c: %m``, ``%d{yy/MM/dd HH:mm:ss} %p %c{1}: %m`` and
``%d{ISO8601} - %-5p [%t:%C{1}@%L] - %m``; the last line is of Logback,
``%d [%thread] %-5level %logger - %msg``. Stack traces are those of Throwable.printStackTrace."""
ACCESS = """\
1.2.3.4 - frank [17/Oct/2015:10:05:03 +0200] "GET /a.gif HTTP/1.0" 200 2326
1.2.3.5 - - [17/Oct/2015:10:05:04 +0000] "POST /b HTTP/1.1" 404 - "http://x/" "curl 7"
1.2.3.5 - - [17/Oct/2015:10:05:05 +0000] "-" 408 0
"""
"""Common and combined log format of https://httpd.apache.org/docs/2.4/logs.html; the third line is what is
written of a connection without a request."""
CRI = """\
2016-10-06T00:17:09.669794202Z stdout P one
2016-10-06T00:17:09.669794203Z stderr F other
2016-10-06T00:17:09.669794204Z stdout P  and
2016-10-06T00:17:10Z stdout F  two
2016-10-06T00:17:11+02:00 stdout F
"""
"""https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md: P marks a
part of a line, and F its end."""


def schema(preset: str, keys: str = "", top: str = "") -> str:
    return f"""
    tick = "1ns"
    {top}
    [extract]
    line = "{preset}"
    [[events]]
    type = "Line"
    time = "time"
    {keys}
    uncertainty = {{ kind = "as_written" }}
    """


def read(folder: Path, text: str, schema_text: str) -> pa.Table:
    return uc.read_traces(put(folder / "t.log", text), schema_of(folder, schema_text))


def shown(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    times = table.column("lower").cast(pa.string()).to_pylist()
    columns = [[time.removesuffix("000000000").removesuffix(".") for time in times]]
    columns += [table.column(name).to_pylist() for name in names]
    return list(zip(*columns, strict=True))


def test_syslog(tmp_path: Path) -> None:
    table = read(tmp_path, SYSLOG, schema("syslog", "year = 2015"))
    assert shown(table, "priority", "host", "program", "pid", "message") == [
        ("2015-10-11 22:14:15", 34, "web-1", "su", "123", "'su root' failed on /dev/pts/8"),
        ("2015-12-31 23:59:59", None, "web-2", "kernel", None, "[12.5] panic"),
        ("2016-01-01 00:00:00", None, "web-2", None, None, "last message repeated 2 times"),
    ]
    with pytest.raises(TraceError, match="tells no year: add year = 2015"):
        schema_of(tmp_path, schema("syslog"))


def test_syslog_of_rfc5424(tmp_path: Path) -> None:
    table = read(tmp_path, SYSLOG5424, schema("syslog5424"))
    assert shown(table, "priority", "host", "program", "pid", "message_id", "data", "message") == [
        ("2003-10-11 22:14:15.003000000", 34, "web-1", "su", None, "ID47", None, "'su root' failed"),
        (
            "2003-08-24 12:14:15.000003000",
            165,
            "192.0.2.1",
            "app",
            "8710",
            None,
            '[a@1 k="v\\]"][b@2]',
            "message",
        ),
        ("2003-08-24 05:14:15", 13, None, None, None, None, None, None),
    ]


def test_log4j_and_stack_traces(tmp_path: Path) -> None:
    table = read(tmp_path, LOG4J, schema("log4j"))
    records = shown(table, "level", "thread", "logger")
    assert records == [
        ("2015-10-17 15:37:56.547000000", "INFO", "main", "org.apache.hadoop.MRAppMaster"),
        ("2015-10-17 15:37:57.001000000", "WARN", "IPC-1", "org.apache.ipc.Client"),
        ("2017-06-09 20:10:40", "ERROR", None, "executor.Backend"),
        ("2015-07-29 17:41:44.747000000", "INFO", "QuorumPeer", "Fast"),
        ("2015-07-29 17:41:45.500000000", "DEBUG", "main", "a.b.C"),
    ]
    joined = table.column("message").to_pylist()[1]
    assert joined.splitlines()[0] == "Failed"
    assert joined.splitlines()[-1] == "\t... 12 more"
    lengths = [
        int(upper) - int(lower) + 1
        for lower, upper in zip(
            *(table.column(n).cast(pa.int64()).to_pylist() for n in ("lower", "upper")), strict=True
        )
    ]
    assert lengths == [10**6, 10**6, 10**9, 10**6, 10**8]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- INFO  [Peer[myid=1]/0:0:2181:Fast@7] - a:B@1] - b", ("Peer[myid=1]/0:0:2181", "Fast")),
        ("- WARN  [/10.0.0.1:38:Cnx$Listener@493] - a", ("/10.0.0.1:38", "Cnx$Listener")),
        ("[myid:1] - INFO  [main:Config@10] - a", ("main", "Config")),
        ("INFO [http[1] x] a.b.C: d", ("http[1] x", "a.b.C")),
        ("INFO  [job[7]] a.b.C: d", ("job[7]", "a.b.C")),
        ("[pool[2]-1] INFO a.b.C - d", ("pool[2]-1", "a.b.C")),
    ],
)  # fmt: skip
def test_names_of_threads_with_brackets_in_them(tmp_path: Path, line: str, expected: tuple[str, str]) -> None:
    table = read(tmp_path, f"2015-07-29 17:41:44,747 {line}", schema("log4j"))
    assert shown(table, "level", "thread", "logger") == [
        ("2015-07-29 17:41:44.747000000", "WARN" if "WARN" in line else "INFO", *expected)
    ]


def test_logs_of_two_forms(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    put(folder / "auth.log", SYSLOG)
    put(folder / "access.log", ACCESS)
    put(folder / "app.log", LOG4J)
    table = [
        f'[[events]]\nfiles = "{name}.log"\ntype = "{name}"\ntime = "time"\n{keys}\n'
        f'uncertainty = {{ kind = "as_written" }}'
        for name, keys in (("access", ""), ("auth", "year = 2015"), ("app", ""))
    ]
    text = 'tick = "1ns"\n[extract]\nline = ["syslog", "access", "log4j"]\n' + "\n".join(table)
    with pytest.warns(
        UncertainCepWarning, match=r"no time zone in the times of .*app.log, .*auth.log, and UTC"
    ):
        events = uc.read_traces(folder, schema_of(tmp_path, text))
    alone = [
        read(tmp_path / preset, part, schema(preset, "year = 2015" if preset == "syslog" else ""))
        for preset, part in (("access", ACCESS), ("log4j", LOG4J), ("syslog", SYSLOG))
    ]
    for bound in ("lower", "upper"):
        expected = [time for each in alone for time in each[bound].cast(pa.string()).to_pylist()]
        assert events[bound].cast(pa.string()).to_pylist() == expected


def test_log4j_of_one_day(tmp_path: Path) -> None:
    text = "23:59:59,999 INFO a.B: x\n00:00:00,001 INFO a.B: y\n"
    with pytest.warns(UncertainCepWarning, match="the day changes 1 time .* from 2015-10-17 to 2015-10-18"):
        table = read(tmp_path, text, schema("log4j", "date = 2015-10-17"))
    assert shown(table) == [("2015-10-17 23:59:59.999000000",), ("2015-10-18 00:00:00.001000000",)]
    with pytest.raises(TraceError, match=r"t\.log, row 1, column 'time', value '23:59:59,999': no time as"):
        read(tmp_path, text, schema("log4j"))


def test_access_logs(tmp_path: Path) -> None:
    table = read(tmp_path, ACCESS, schema("access"))
    assert shown(table, "client", "user", "method", "url", "status", "bytes", "agent") == [
        ("2015-10-17 08:05:03", "1.2.3.4", "frank", "GET", "/a.gif", 200, 2326, None),
        ("2015-10-17 10:05:04", "1.2.3.5", "-", "POST", "/b", 404, None, "curl 7"),
        ("2015-10-17 10:05:05", "1.2.3.5", "-", None, None, 408, 0, None),
    ]


@pytest.mark.parametrize("block", [1, 30, 2**20])
def test_kubernetes_logs_in_parts(tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_lines, "_BLOCK", block)
    table = read(tmp_path, CRI, schema("cri"))
    assert shown(table, "stream", "message") == [
        ("2016-10-06 00:17:09.669794202", "stdout", "one and two"),
        ("2016-10-06 00:17:09.669794203", "stderr", "other"),
        ("2016-10-05 22:17:11", "stdout", None),
    ]


def test_lines_that_nothing_fits_are_counted(tmp_path: Path) -> None:
    schema_text = """
    [extract]
    line = ['^(?P<at>[0-9]+) (?P<kind>[A-Z]+)', '^at=(?P<at>[0-9]+)(?: to=(?P<to>[0-9]+))?']
    [[events]]
    type = "A"
    time = "at"
    unit = "s"
    types = { at = "int" }
    attributes = ["kind", "to"]
    uncertainty = { kind = "exact" }
    """
    text = "header\n1 UP\nat=2 to=3\n\tindented\nnoise\nat=4\n"
    with pytest.warns(UncertainCepWarning, match="fits 2 of 5 records of text"):
        table = read(tmp_path, text, schema_text)
    assert shown(table, "kind", "to") == [
        ("1970-01-01 00:00:01.000000", "UP", None),
        ("1970-01-01 00:00:02.000000", None, "3"),
        ("1970-01-01 00:00:04.000000", None, None),
    ]
    with pytest.warns(UncertainCepWarning, match="fits 3 of 6 records"):
        read(tmp_path, text, f"continuation = false\n{schema_text}")
    # Rows are lines of the file.
    with pytest.raises(TraceError, match=r"t\.log, row 5, column 'at'"), pytest.warns(UncertainCepWarning):
        read(tmp_path, "noise\n1 UP\n\tx\nnoise\n99999999999999999999 UP\n", schema_text)


@pytest.mark.parametrize("reverse", [False, True])
def test_columns_cut_out_of_columns_that_were_cut_out(tmp_path: Path, reverse: bool) -> None:
    rules = [
        'line = "log4j"',
        """message = '^(?P<what>\\w+) (?P<job>\\S+)'""",
        """job = '-(?P<number>[0-9]+)$'""",
    ]
    schema_text = "\n".join(["[extract]", *(reversed(rules) if reverse else rules)])
    schema_text += """
    [[events]]
    type_column = "what"
    time = "time"
    attributes = ["number"]
    uncertainty = { kind = "exact" }
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = read(tmp_path, "2015-10-17 15:37:56,547 INFO [main] a.b.C: done job-7\n", schema_text)
    assert shown(table, "type", "number") == [("2015-10-17 15:37:56.547000", "done", "7")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"ok\n" * 5 + b"\xff\n", "t.log, row 6: its text is not UTF-8"),
        (b"x" * 40, "t.log, row 1: the line is longer than 32 characters"),
        (b"1 ok\n" + b"\tat\n" * 20, "t.log, row 1: more than 16 lines belong to one record"),
    ],
)
def test_hostile_text(tmp_path: Path, content: bytes, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_lines, "LONGEST_LINE", 32)
    monkeypatch.setattr(text_lines, "_MOST_JOINED", 16)
    (tmp_path / "t.log").write_bytes(content)
    with pytest.raises(TraceError) as caught:
        uc.read_traces(tmp_path / "t.log", schema_of(tmp_path, schema("cri")))
    assert message in str(caught.value)


def test_a_log_needs_a_schema(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="there is no such column"):
        uc.read_traces(put(tmp_path / "t.log", LOG4J))
    put(tmp_path / "t.csv", "type,id,lower,upper\nA,1,1,2\n")
    assert uc.read_traces(tmp_path).num_rows == 1


_lines = st.lists(st.sampled_from(["a 1", "b", "\tat", "", " x", "Caused by: y", "é", "c\r"]), max_size=12)


@given(_lines, st.integers(1, 12), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans())
def test_records_whatever_the_blocks(
    lines: list[str], block: int, end: str, closed: bool, joined: bool
) -> None:
    text = end.join(lines) + (end if closed and lines else "")
    expected: list[tuple[int, list[str]]] = []
    whole_lines = text.replace("\r\n", "\n").split("\n")
    whole_lines = whole_lines[:-1] if whole_lines[-1] == "" else whole_lines
    begins = ("\t", " ", "Caused by: ")
    for number, line in enumerate(whole_lines):
        if joined and expected and (line.startswith(begins) or line in ("", "\r")):
            expected[-1][1].append(line)
        else:
            expected.append((number, [line]))
    before, text_lines._BLOCK = text_lines._BLOCK, block  # type: ignore[misc]
    try:
        blocks = list(record_blocks(io.BytesIO(text.encode()), CONTINUATION if joined else None))
    finally:
        text_lines._BLOCK = before  # type: ignore[misc]
    rows = [
        (number, record.rstrip("\r"))
        for records, numbers in (block.records() for block in blocks)
        for record, number in zip(records.to_pylist(), numbers.tolist(), strict=True)
    ]
    assert rows == [(number, "\n".join(each).rstrip("\r")) for number, each in expected]


_pieces = st.sampled_from(
    [
        *("2015-10-17 15:37:56,547 INFO [main] a.B: x", "2015-10-17 15:37:56 WARN  [m n] a.B: y: z"),
        *("15:37:56 INFO [main] a.B: x", "2015-10-17 15:37:56,5 INFO [m] - x", "a b c [d", "x y INFO [m] b"),
        *('1.2.3.4 - - [17/Oct/2015:10:05:03 +0200] "GET /a HTTP/1.0" 200 23', "2015 10 INFO [m] a.B: x"),
        *('1.2.3.4 - - [t] "GET /a HTTP/1.0" 200 23 "r" "a g"', '1 - - [t] "GET /a" 404 - "r" ""'),
        *(
            '1 - - [t] "GET /a b HTTP/1.0" 200 1',
            '1 - - [t] "-" 408 0',
            '1 - - [t] "GET /a HTTP/1.0" 200 23 x',
        ),
        *('1 - - [t] "GET /\u00e9 H" 200 23 "r\nr" "a"', ""),
        *("<34>1 2003-10-11T22:14:15Z h su - ID47 - a b", "<1>1 2003 - - - - -", "<1>1 2003 -x p 1\n2 - m"),
        *(r'<1>1 2003 h p 1 2 [a@1 k="v \]"][b] m', "<1>1 2003 h p 1 2 x m", "<1>1 2003 h p - - - \nm"),
        *("<1>1 2003 h p 1 2", "<1>1 2003 h p 1 2 -m", "<1>01 2003 h p 1 2 -", "<1>1 2003 h - - - [a] "),
    ]
)


@given(st.lists(_pieces, min_size=1, max_size=8), st.sampled_from(["log4j", "access", "syslog5424"]))
def test_expressions_in_stages_find_what_whole_ones_do(records: list[str], name: str) -> None:
    table = pa.table({"line": records})
    staged, *whole = PRESETS[name].patterns
    assert staged in RESTS
    assert not RESTS.keys() & {*whole}
    by_stages, all_at_once = (
        with_extracted(table, [("line", pattern) for pattern in patterns], "f").to_pylist()
        for patterns in ((staged, *whole), whole)
    )
    assert by_stages == [{key: row[key] for key in by_stages[0]} for row in all_at_once]


def test_every_preset_names_its_time() -> None:
    for preset in PRESETS.values():
        assert all("(?P<time>" in pattern for pattern in preset.patterns if pattern not in RESTS)


FTRACE = """\
          <idle>-0     [001] d..2  12.567001: sched_switch: next_pid=42
            bash-42    [001] d..2  12.567105: sched_wakeup: pid=43
            bash-42    [001] d..2  12.567230: sched_switch: next_pid=0
\tat the.end(of it)
"""


@pytest.mark.parametrize("block", [2**23, 16])
@pytest.mark.parametrize(
    "keys", ["", "continuation = false", "continuation = '^\\t'", "continuation = '^\\s'"]
)
def test_lines_that_fit_are_not_joined_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: str, block: int
) -> None:
    monkeypatch.setattr(text_lines, "_BLOCK", block)
    schema_path = schema_of(
        tmp_path,
        f'tick = "1us"\n{keys}\n[extract]\n'
        "line = '^ *(?P<task>\\S+)-[0-9]+ +\\[[0-9]+\\] \\S+ +(?P<time>[0-9.]+): (?P<what>\\w+)'\n"
        '[[events]]\ntype_column = "what"\ntime = "time"\ntime_format = "epoch_s"\nattributes = []\n'
        'uncertainty = { kind = "exact" }\n',
    )
    path = put(tmp_path / "t.log", FTRACE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        events = uc.read_traces(path, schema_path)
    said = [str(one.message) for one in caught]
    apart = keys in ("continuation = false", "continuation = '^\\t'")
    assert events.num_rows == (3 if apart else 1)
    assert ["2 lines that fit an expression of [extract] went on" in each for each in said] == (
        [True] if not keys else [False] if keys == "continuation = false" else []
    )
