"""Proposals for files that nobody has described: the right reading, and a comment on each choice."""

from __future__ import annotations

import calendar
import csv
import datetime as dt
import io
import json
import os
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.cli.conftest import Invoke
from tests.cli.test_init import written
from tests.traces.files import put
from tests.traces.readers.samples import SAMPLES
from uncertain_cep.cli import main
from uncertain_cep.traces.proposing import ProposedSchema, propose
from uncertain_cep.traces.standard_input import spooled


def table(proposed: ProposedSchema) -> dict[str, Any]:
    (events,) = tomllib.loads(proposed.text)["events"]
    return dict(events)


def comments(proposed: ProposedSchema) -> str:
    """Return the comments in one line."""
    return " ".join(line.removeprefix("# ") for line in proposed.text.splitlines() if line.startswith("#"))


def column(folder: Path, values: list[str], name: str = "at", more: str = "1") -> Path:
    return put(folder / "t.csv", "\n".join([f"{name},x", *(f"{value},{more}" for value in values)]))


DAYS: Final = {
    "%d/%m/%Y": ["10/03/2004", "11/03/2004", "13/03/2004", "1/04/2004"],
    "%m/%d/%Y": ["3/10/2004", "3/13/2004", "4/1/2004"],
    "%d.%m.%Y": ["01.02.2026", "13.02.2026"],
    "%m.%d.%Y": ["02.01.2026", "02.13.2026"],
    "%d-%m-%Y": ["01-02-2026", "13-02-2026"],
    "%m-%d-%Y": ["02-01-2026", "02-13-2026"],
    "%d/%m/%y": ["01/02/99", "13/02/99"],
    "%y/%m/%d": ["99/02/01", "99/12/31"],
    "%d/%m/%Y %H:%M": ["10/03/2004 10:15", "13/03/2004 09:05"],
    "%m/%d/%Y %I:%M %p": ["03/10/2004 10:15 AM", "03/13/2004 1:00 PM"],
    "%Y/%m/%d %H:%M:%S": ["2004/03/10 10:15:01", "2004/03/11 10:15:02"],
    "%d %b %Y": ["10 Mar 2004", "11 Mar 2004"],
    "%d/%b/%Y:%H:%M:%S %z": ["17/Oct/2015:10:05:03 +0200", "17/Oct/2015:10:05:04 +0200"],
    "%Y%m%d %H%M": ["20040310 1405", "20040311 1406"],
    "%Y%m%d_%H%M%S": ["20040310_140501", "20040311_140502"],
    "%d-%b-%y %I.%M.%S.%f %p": ["10-MAR-04 02.05.00.123456 PM", "11-MAR-04 02.05.00.123456 AM"],
    "%m/%d/%Y %I:%M:%S.%f %p": ["3/13/2004 2:05:00.123 PM", "3/14/2004 2:05:00.123 AM"],
    "%Y-%m-%d-%H.%M.%S.%f": ["2004-03-10-14.05.00.123456", "2004-03-10-14.05.01.123456"],
    "%a %b %d %H:%M:%S %Y": ["Sun Dec 04 04:47:44 2005", "Mon Dec 05 04:47:45 2005"],
    "%a %b %d %H:%M:%S %Y %z": ["Fri May 31 14:00:00 2024 +0200", "Sat Jun 01 09:00:05 2024 +0200"],
}


@pytest.mark.parametrize("form", DAYS)
def test_all_rows_decide_on_one_order_of_day_and_month(tmp_path: Path, form: str) -> None:
    proposed = propose([column(tmp_path, DAYS[form])])
    assert table(proposed)["time_format"] == [form]
    assert "cannot be told apart" not in proposed.text
    # What tells may stand far behind.
    column_values = [*DAYS[form][:1] * 2000, *DAYS[form]]
    assert table(propose([column(tmp_path, column_values)]))["time_format"] == [form]


@pytest.mark.parametrize(
    ("values", "form", "others", "in_order"),
    [
        (["01/02/2026", "02/01/2026"], "%m/%d/%Y", "%d/%m/%Y", False),
        (["01/02/2026", "01/03/2026", "02/01/2026"], "%m/%d/%Y", "%d/%m/%Y", True),
        (["02/01/2026", "03/01/2026", "01/02/2026"], "%d/%m/%Y", "%m/%d/%Y", True),
        (["05.06.2026 10:00", "05.06.2026 10:01"], "%d.%m.%Y %H:%M", "%m.%d.%Y %H:%M", False),
        (["01/02/03"], "%y/%m/%d", "%m/%d/%y or %d/%m/%y", False),
    ],
)
def test_where_day_and_month_cannot_be_told_apart(
    tmp_path: Path, values: list[str], form: str, others: str, in_order: bool
) -> None:
    proposed = propose([column(tmp_path, values)])
    assert table(proposed)["time_format"] == [form]
    said = comments(proposed)
    assert f"Day and month cannot be told apart: all stamps fit {others}, too." in said
    assert ("By this one alone the rows are in order of time" in said) == in_order
    assert ("A day beyond 12 would tell, or rows in order of time." in said) != in_order


@pytest.mark.parametrize(
    ("stamp", "changed", "expected", "tells"),
    [
        ("31/05/24", "2024-06-01", "2024-05-31", True),
        ("12/05/2024", "2024-05-12", "2024-05-12", True),
        ("04/12/2023", "2024-06-01", "2023-04-12", False),
        ("04.12.2023", "2023-05-01", "2023-04-12", True),
        # By each order it lies ahead: the usual one.
        ("04/12/2030", "2024-06-01", "2030-04-12", False),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "log"])
def test_no_stamp_lies_after_the_last_change(
    tmp_path: Path, stamp: str, changed: str, expected: str, tells: bool, kind: str
) -> None:
    rows = [f"{stamp} 10:00:0{second}" for second in range(4)]
    path = (
        column(tmp_path, rows)
        if kind == "csv"
        else put(tmp_path / "a.log", "".join(f"{row} x\n" for row in rows))
    )
    when = dt.datetime.fromisoformat(f"{changed}T12:00:00+00:00").timestamp()
    os.utime(path, (when, when))
    proposed = propose([path])
    table = uc.read_traces(path, put(tmp_path / "schema.toml", proposed.text))
    assert str(table["lower"][-1])[:10] == expected
    assert "Day and month cannot be told apart" in comments(proposed)
    assert ("By this one alone no stamp lies after" in comments(proposed)) == tells


def test_no_order_fits_all_rows(tmp_path: Path) -> None:
    with pytest.raises(uc.OptionError, match="no column of times among at, x"):
        propose([column(tmp_path, ["13/01/2026", "01/13/2026"])])


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "date column"])
@pytest.mark.parametrize("days", [1, 7])
def test_days_are_no_windows(tmp_path: Path, kind: str, days: int) -> None:
    first = dt.date(2026, 3, 2)
    dates = [first + dt.timedelta(days * number) for number in range(12)]
    path = tmp_path / f"daily.{kind.partition(' ')[0]}"
    rows = [{"date": str(day), "close": 1.5 + number} for number, day in enumerate(dates)]
    if kind == "csv":
        put(path, "\n".join(["date,close", *(f"{row['date']},{row['close']}" for row in rows)]))
    elif kind == "jsonl":
        put(path, "\n".join(map(json.dumps, rows)))
    else:
        path = tmp_path / "daily.parquet"
        shown = dates if kind == "date column" else [str(day) for day in dates]
        pq.write_table(pa.table({"date": shown, "close": [1.5] * 12}), path)
    proposed = propose([path])
    if days == 1:
        assert table(proposed)["uncertainty"] == {"kind": "granularity", "of": "1d"}
        assert "happened on that day" in comments(proposed)
        schema = put(tmp_path / "schema.toml", proposed.text)
        events = uc.read_traces(path, schema)
        bounds = [events[name].cast(pa.timestamp("s"), safe=False)[0].as_py() for name in ("lower", "upper")]
        assert bounds == [dt.datetime(2026, 3, 2), dt.datetime(2026, 3, 2, 23, 59)]
    else:
        # Of a week, nobody knows which.
        assert table(proposed)["uncertainty"] == {"kind": "plus_minus", "by": "7d"}
        assert "Does a value tell of the 7d before its stamp or after it?" in comments(proposed)


def test_the_choice_for_samples_holds_whatever_they_are(tmp_path: Path) -> None:
    stamps = [f"2026-01-05T08:{minute:02d}:00" for minute in range(12)]
    proposed = propose([column(tmp_path, stamps)])
    assert table(proposed)["uncertainty"] == {"kind": "plus_minus", "by": "1min"}
    said = comments(proposed)
    assert 'If it is before: kind = "window", length = "1min".' in said
    assert 'If it is after: kind = "granularity", of = "1min".' in said
    assert "Is a value an average, a maximum, a sample or a counter" in said
    assert 'An average, or a rate, is of all of that time: kind = "period"' in said
    path = tmp_path / "t.csv"
    text = proposed.text
    rule = 'kind = "plus_minus", by = "1min"'
    wide = uc.read_traces(path, put(tmp_path / "wide.toml", text))
    for other in ('kind = "window", length = "1min"', 'kind = "granularity", of = "1min"'):
        assert rule in text
        narrow = uc.read_traces(path, put(tmp_path / "narrow.toml", text.replace(rule, other)))
        for least_quantile, low, high, greatest_quantile in zip(
            wide["lower"], narrow["lower"], narrow["upper"], wide["upper"], strict=True
        ):
            assert least_quantile.value <= low.value <= high.value <= greatest_quantile.value


def changed(path: Path, when: str) -> Path:
    seconds = dt.datetime.fromisoformat(when).timestamp()
    os.utime(path, (seconds, seconds))
    return path


@pytest.mark.parametrize(
    ("stamps", "when", "base"),
    [
        (["Dec 31 23:59:58", "Jan  1 00:00:01"], "2026-01-01 00:00:01", 2025),
        (["Dec 31 23:59:58", "Jan  1 00:00:01"], "2025-12-31 23:59:59", 2024),
        (["Jan  1 00:00:01", "Jan  2 00:00:01"], "2026-06-01 00:00:00", 2026),
        (["Jul  1 00:00:01", "Jul  2 00:00:01"], "2026-06-01 00:00:00", 2025),
        (["Feb 28 00:00:01", "Feb 29 00:00:01"], "2026-06-01 00:00:00", 2024),
        (
            ["Aug  1 00:00:01", "Jan  2 00:00:01", "Jun  3 00:00:01", "Jul  3 00:00:01"],
            "2026-06-01 00:00:00",
            2024,
        ),
    ],
)
def test_the_year_of_a_log(tmp_path: Path, stamps: list[str], when: str, base: int) -> None:
    path = put(tmp_path / "messages.log", "\n".join(f"{stamp} web-1 sshd[12]: x" for stamp in stamps))
    proposed = propose([changed(path, when)])
    assert table(proposed)["year"] == base
    assert "no stamp lies after the last change of the file" in comments(proposed)
    assert uc.validate(path, schema=put(tmp_path / "schema.toml", proposed.text)) == []


@pytest.mark.parametrize(
    ("stamps", "when", "base"),
    [
        (["23:59:58,100", "00:00:01,100"], "2026-01-02 00:00:02", "2026-01-01"),
        (["08:00:00,100", "09:00:00,100"], "2026-01-02 10:00:00", "2026-01-02"),
        (["08:00:00,100", "09:00:00,100"], "2026-01-02 00:30:00", "2026-01-01"),
        (
            ["20:00:00,0", "03:00:00,0", "10:00:00,0", "20:00:00,0", "03:00:00,0"],
            "2026-01-09 04:00:00",
            "2026-01-07",
        ),
    ],
)
def test_the_day_of_a_log(tmp_path: Path, stamps: list[str], when: str, base: str) -> None:
    path = put(tmp_path / "app.log", "\n".join(f"{stamp} INFO [main] a.b.C: x" for stamp in stamps))
    proposed = propose([changed(path, when)])
    assert str(table(proposed)["date"]) == base
    late = "of another time zone, take that one" in comments(proposed)
    assert late == (when == "2026-01-02 00:30:00")


def test_logs_that_tell_no_year_each_have_their_own(tmp_path: Path) -> None:
    for name, year in (("a", 2020), ("b", 2024), ("c", 2024)):
        path = put(
            tmp_path / "logs" / f"{name}.log",
            "Jan  5 08:00:02 web-1 sshd[12]: x\nJan  5 08:00:03 web-1 su: y\n",
        )
        changed(path, f"{year}-03-01 00:00:00")
    proposed = propose([tmp_path / "logs"])
    events = uc.read_traces(tmp_path / "logs", put(tmp_path / "schema.toml", proposed.text))
    years = sorted(str(stamp)[:4] for stamp in events["lower"].to_pylist())
    assert years == ["2020"] * 2 + ["2024"] * 4


APART: Final = {
    "iso": ("2026-01-05", "08:00:10", "Date,Time", None),
    "minutes": ("2026-01-05", "08:00", "Date,Time", None),
    "day first": ("13/01/2026", "08.00.10", "Date,Time", ["%d/%m/%Y %H.%M.%S"]),
    "twelve hours": ("01/13/2026", "8:00:10 PM", "date,time of day", ["%m/%d/%Y %I:%M:%S %p"]),
    "by name": ("2026-01-05", "08:00:10", "start_date,start_time", None),
}


@pytest.mark.parametrize("name", APART)
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_day_and_a_time_of_day_apart(tmp_path: Path, invoke: Invoke, name: str, kind: str) -> None:
    day, time, header, form = APART[name]
    names = [*header.split(","), "what"]
    rows = [dict(zip(names, (day, time, what), strict=True)) for what in ("Start", "Stop")]
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        put(path, "\n".join([",".join(names), *(",".join(row.values()) for row in rows)]))
    elif kind == "jsonl":
        put(path, "\n".join(map(json.dumps, rows)))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    proposed = propose([path])
    assert table(proposed)["time"] == names[:2]
    assert table(proposed).get("time_format") == form
    assert table(proposed)["attributes"] == ["what"]
    assert f"{names[0]} and {names[1]} together are the stamp" in comments(proposed)
    written(invoke, tmp_path / "out", path)


def test_times_of_day_without_their_day(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "time,x\n08:00:10,1\n08:00:11,2\n")
    with pytest.raises(uc.OptionError, match="time holds times of day: say their day, date = 2015-10-17"):
        propose([path])


ZOOKEEPER: Final = (
    "2015-07-29 17:41:44,747 - INFO  [P[myid=1]/0:0:2181:Fast@774] - Notification time out: 3200\n"
)
SYSLOG: Final = (
    "Jan  5 08:00:02 web-1 sshd[12]: Failed password for ann\nJan  5 08:00:05 web-1 sshd[12]: Accepted\n"
)
ACCESS: Final = (
    '1.2.3.4 - - [05/Jan/2026:08:00:03 +0000] "GET /cart HTTP/1.1" 503 23 "-" "curl"\n'
    '1.2.3.4 - - [05/Jan/2026:08:00:04 +0000] "POST /order HTTP/1.1" 500 0 "-" "curl"\n'
)
JSON: Final = (
    '{"timestamp":"2025-10-28T19:15:10.821315Z","level":"INFO","fields":{"message":"a"}}\n'
    '{"timestamp":"2025-10-28T19:15:10.821422Z","level":"WARN","fields":{"message":"b"}}\n'
)


def test_logs_of_any_forms_in_a_folder(tmp_path: Path, invoke: Invoke) -> None:
    folder = tmp_path / "logs"
    for name, text in {
        "zk.log": ZOOKEEPER * 2,
        "auth.log": SYSLOG,
        "access.log": ACCESS,
        "app.log": JSON,
    }.items():
        put(folder / name, text)
    put(folder / "odd.log", "what\never\n")
    put(folder / "t.csv", "at,kind\n2026-01-05 08:00:00,A\n2026-01-05 08:00:01,B\n")
    schema = written(invoke, tmp_path / "out", folder)
    document = tomllib.loads(schema)
    assert [*document["extract"]["line"]] == ["access", "syslog", "log4j"]
    assert [events["files"] for events in document["events"]] == [
        "access.log", "app.log", "auth.log", "t.csv", "zk.log"]  # fmt: skip
    with pytest.warns(uc.UncertainCepWarning, match="no time zone in the times of"):
        events = uc.read_traces(folder, tmp_path / "out" / "schema.toml")
    assert events.num_rows == 10
    assert "Left out: odd.log" in schema
    assert "fields within fields: fields" in schema
    # Each file by itself gives the same events.
    for name in ("zk.log", "auth.log", "access.log", "app.log"):
        alone = uc.read_traces(folder / name, put(tmp_path / f"{name}.toml", propose([folder / name]).text))
        assert alone.num_rows == 2


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (ZOOKEEPER * 2, ()),
        (ZOOKEEPER * 2, ("--input-format", "text")),
        ("at,kind\n2026-01-05 08:00:00,A\n2026-01-05 08:00:01,B\n", ()),
        (JSON, ()),
    ],
)
def test_standard_input(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, invoke: Invoke, text: str, options: tuple[str, ...]
) -> None:
    def pipe() -> None:
        spooled.cache_clear()
        stdin = SimpleNamespace(isatty=lambda: False, buffer=io.BytesIO(text.encode()))
        monkeypatch.setattr("uncertain_cep.traces.standard_input.sys", SimpleNamespace(stdin=stdin))

    try:
        pipe()
        result = invoke("init", "-", "-o", tmp_path / "out", *options)
        assert result.exit_code == 0, result.output
        assert f"{tmp_path}/out/first.query - --schema" in result.stdout
        schema = (tmp_path / "out" / "schema.toml").read_text()
        assert "files =" not in schema
        pipe()
        result = invoke(
            "match", tmp_path / "out" / "first.query", "-", "--schema", tmp_path / "out" / "schema.toml"
        )
        assert result.exit_code == 0, result.output
        assert len(result.stdout.splitlines()) > 1
    finally:
        spooled.cache_clear()


@pytest.mark.parametrize("zone", ["UTC", "Z", "GMT", "+02:00"])
def test_a_zone_behind_a_space(tmp_path: Path, invoke: Invoke, zone: str) -> None:
    path = put(tmp_path / "a.csv", f"t,what\n2026-01-05 08:00:00 {zone},A\n2026-01-05 08:00:01 {zone},B\n")
    schema = written(invoke, tmp_path / "out", path)
    assert "tell no time zone" not in schema


def test_semicolons(tmp_path: Path, invoke: Invoke) -> None:
    path = put(tmp_path / "air.csv", "Date;Time;CO\n10/03/2004;18.00.00;2,6\n13/03/2004;19.00.00;3,1\n")
    schema = written(invoke, tmp_path / "out", path)
    assert 'delimiter = ";"' in schema
    assert 'time = ["Date", "Time"]' in schema
    assert "Numbers with a comma are text: CO." in schema
    other = put(tmp_path / "comma.csv", "at,x\n2026-01-05,1\n")
    proposed = propose([path, other])
    assert "Left out: comma.csv" in proposed.text
    assert proposed.traces == (str(path),)


def test_a_file_without_a_line_of_names(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "2026-01-05 08:00:00,A\n2026-01-05 08:00:01,B\n")
    with pytest.raises(
        uc.OptionError, match=r"its first line, 2026-01-05 08:00:00, A, holds values: name the col"
    ):
        propose([path])


@pytest.mark.parametrize("name", ["event", "step", "state", "status", "phase", "transition", "operation"])
@pytest.mark.parametrize("key", ["job", "order_no", "session"])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_the_first_query_ties_events_of_a_key(tmp_path: Path, name: str, key: str, kind: str) -> None:
    rows = []
    for number in range(3):
        for value, second in (("begun", 3), ("done", 41)):
            rows.append({key: f"k{number}", name: value, "at": f"2024-05-31 10:0{number}:{second:02}"})
    lines = [json.dumps(row) for row in rows]
    if kind == "csv":
        lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    written(run, tmp_path / "new", put(tmp_path / f"t.{kind}", "\n".join(lines)))
    query = (tmp_path / "new" / "first.query").read_text()
    assert f"PATTERN SEQ(begun a, done b)\nWHERE a.{key} = b.{key}\n" in query


def test_each_choice_has_its_comment(tmp_path: Path) -> None:
    text = (
        "id,host,kind,at,seen,lower,clock,odd\n"
        'a,h1,A,1700000000,2023-11-14 22:13:20,1,08:00,"1,5"\n'
        'a,h2,B,1700000001,2023-11-14 22:13:21,2,09:00,"2,5"\n'
        'b,h2,B,0,2023-11-14 22:13:22,3,10:00,"3,5"\n'
    )
    said = comments(propose([put(tmp_path / "t.csv", text)]))
    for part in (
        "No file tells how far clocks were off",
        "The unit of all times. It is shorter than what stamps tell",
        "Each value of kind is a type of events.",
        "Values of id come several times",
        "seen holds times, too.",
        "Numbers of this size are s since 1970.",
        "Values of 0 and less stand for no time.",
        "The stamps are whole multiples of 1s: the rest is cut off.",
        'If they are rounded instead: kind = "plus_minus", by = "500ms".',
        "Stamps may come from several clocks (host).",
        "Events have columns called id, lower themselves",
        "Numbers with a comma are text: odd.",
        "Times of day without a day are attributes: clock.",
    ):
        assert part in said, said
    said = comments(propose([put(tmp_path / "n.csv", "size,x\n1700000000,1\n1700000001,2\n")]))
    assert "Numbers of this size are s since 1970, and nothing else tells that they are times." in said
    said = comments(propose([put(tmp_path / "spark.log", "17/06/09 20:10:40 INFO a.B: x\n")]))
    assert "17/06/09 20:10:40 is read as year, month and day, as Spark and Hadoop write it" in said
    said = comments(propose([put(tmp_path / "app.log", ZOOKEEPER + "\tat x\n" + ZOOKEEPER + "odd\nodd\n")]))
    assert "A record begins where this is found; other lines, which have no stamp, go on with" in said
    assert "Of the records looked at all look like those of log4j." in said
    two = ZOOKEEPER + "\tat x\n" + ZOOKEEPER
    said = comments(propose([put(tmp_path / "two.log", two)]))
    assert "Lines that begin with white space go on with the record before" in said
    assert "The stamps tell no time zone and are read as UTC" in said


FORMS: Final = (
    "%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S UTC", "%d/%m/%Y",
    "%m/%d/%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d-%m-%y", "%d %b %Y %H:%M", "%Y/%m/%d %I:%M:%S %p", "epoch",
)  # fmt: skip
_NAMES = st.sampled_from(
    ("at", "time", "id", "type", "lower", "source", "when ü", "a.b", "x y", "host", "tick")
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]]]:
    form = draw(st.sampled_from(FORMS))
    start = dt.datetime(2026, draw(st.integers(1, 12)), draw(st.integers(1, 28)), draw(st.integers(0, 23)))
    step = draw(st.sampled_from((1, 60, 61, 86_400, 90_061)))
    count = draw(st.integers(2, 12))
    names = draw(st.lists(_NAMES, min_size=2, max_size=5, unique=True))
    rows = []
    for number in range(count):
        stamp = start + dt.timedelta(seconds=step * number)
        shown = calendar.timegm(stamp.timetuple()) if form == "epoch" else stamp.strftime(form)
        values = [draw(st.sampled_from((1, 2.5, "A", "B", None, "a,b", 'q"'))) for _ in names[1:]]
        rows.append(dict(zip(names, (shown, *values), strict=True)))
    # A column has one type.
    for name in names[1:]:
        kind: Any = type(next((row[name] for row in rows if row[name] is not None), "A"))
        for row in rows:
            row[name] = kind(1) if not isinstance(row[name], kind) else row[name]
    return draw(st.sampled_from(("csv", "jsonl", "log", "parquet"))), rows


@FEWER
@given(tables())
def test_what_is_proposed_is_read_without_faults_and_finds_something(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[str, list[dict[str, Any]]]
) -> None:
    kind, rows = drawn
    folder = tmp_path_factory.mktemp("proposed")
    path = folder / f"some file.{kind}"
    if kind == "csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, [*rows[0]])
            writer.writeheader()
            writer.writerows(rows)
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        put(path, "\n".join(map(json.dumps, rows)))
    text = written(run, folder / "out", path)
    assert uc.read_traces(path, folder / "out" / "schema.toml").num_rows == len(rows)
    lines = [line for line in text.splitlines() if line.startswith("#")]
    assert len(lines) == len({*lines})
    assert all(len(line) <= 110 for line in lines)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.parametrize(
    ("seconds", "last"),
    [((0, 40), "updated"), ((0, -40), "created"), ((0, 0), None), ((40, -40), None), ((40, None), None)],
)
def test_times_that_are_never_before_others_may_be_ends(
    tmp_path: Path, seconds: tuple[int, int | None], last: str | None
) -> None:
    """Rows may last from a time to one that is never before it, in whatever order the columns stand."""
    rows = []
    for number in range(10, 20):
        created = dt.datetime(2026, 1, 5, 8, number)
        later = seconds[number % 2]
        rows.append(f"j{number},{created},{'' if later is None else created + dt.timedelta(seconds=later)}")
    proposed = comments(propose([put(tmp_path / "jobs.csv", "\n".join(["job,created,updated", *rows]))]))
    assert ("One event that lasts instead" in proposed) == (last is not None)
    if last is not None:
        assert f"{last} is never before {'created' if last == 'updated' else 'updated'}." in proposed


def test_types_that_are_always_the_same_tell_less(tmp_path: Path) -> None:
    """A column that could tell types but has one value comes behind one that has several."""
    rows = [f"2026-01-05 08:{minute}:00,Pod,{'AB'[minute % 2]}" for minute in range(10, 20)]
    for header, expected in (("at,kind,event", "event"), ("at,kind,state", "kind")):
        proposed = propose([put(tmp_path / f"{expected}.csv", "\n".join([header, *rows]))])
        assert f'type_column = "{expected}"' in proposed.text


def test_a_row_with_both_stamps_may_be_one_event(tmp_path: Path) -> None:
    """The comment names the columns of begin and end, and what it says can be read."""
    rows = [f"{job},2026-01-05T08:{job:02d}:00,2026-01-05T08:{job:02d}:40" for job in range(10, 20)]
    path = put(tmp_path / "jobs.csv", "\n".join(["JobID,Start,End", *rows]))
    proposed = propose([path])
    assert 'One event that lasts instead: begin = "Start", end = "End", and no time.' in comments(proposed)
    (first, _) = tomllib.loads(proposed.text)["events"]
    keys = {key: value for key, value in first.items() if key != "time"} | {"begin": "Start", "end": "End"}
    lines = [
        f"{key} = {json.dumps(value)}"
        for key, value in keys.items()
        if key not in ("uncertainty", "attributes")
    ]
    text = "\n".join(["[[events]]", *lines, 'uncertainty = { kind = "granularity", of = "1s" }'])
    events = uc.read_traces(path, put(tmp_path / "spans.toml", text))
    assert events.num_rows == 10
    assert events["begin_lower"].null_count == 0


def test_formats_with_ends_propose_spans(tmp_path: Path) -> None:
    path = put(tmp_path / "trace", SAMPLES["jaeger"])
    text = propose([path], "jaeger").text
    assert "# spans = true" in text
    assert "spans" not in propose([put(tmp_path / "t.xml", SAMPLES["xes"])], "xes").text
    # It can be made the rule by leaving out the signs.
    lines = [
        line.removeprefix("# ") if line in ("# [[events]]", "# spans = true") else line
        for line in text.splitlines()
    ]
    events = uc.read_traces(path, put(tmp_path / "s.toml", "\n".join(lines)))
    assert set(events["type"].to_pylist()) == {"Span", "SpanEvent"}
