"""Months in eleven languages, and zones with names: each is read, or refused, and none is another one."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cli.conftest import Invoke, invoke
from uncertain_cep.traces import exact, intervals_of
from uncertain_cep.traces.proposing import propose
from uncertain_cep.traces.stamp_zones import zone_beside, zone_of_all
from uncertain_cep.traces.time_formats import TimeFormat
from uncertain_cep.traces.written_names import _LANGUAGES, AMBIGUOUS_ZONES, MONTH_NAMES, ZONES

__all__ = ["invoke"]


def read(texts: list[str], form: str) -> list[dt.datetime]:
    made = intervals_of(
        pa.table({"t": texts}), time="t", uncertainty=exact(), tick="1s", format=TimeFormat((form,))
    )
    return [moment.replace(tzinfo=None) for moment in made["lower"].to_pylist()]


def test_no_name_is_of_two_months() -> None:
    for language in _LANGUAGES:
        names = language.split()
        assert [MONTH_NAMES[name] for name in names] == list(range(1, 13))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(MONTH_NAMES)),
            st.integers(1, 28),
            st.sampled_from([str.lower, str.capitalize, str.title]),
            st.sampled_from([None, *sorted(ZONES)]),
        ),
        min_size=1,
        max_size=9,
    )
)
def test_texts_of_months_and_zones(rows: list[tuple[str, int, object, str | None]]) -> None:
    zoned = all(zone is not None for *_, zone in rows)
    texts, expected = [], []
    for name, day, change, zone in rows:
        text = f"{day:02} {change(name)} 2024 10:30:00"  # type: ignore[operator]
        texts.append(f"{text} {zone}" if zoned else text)
        moment = dt.datetime(2024, MONTH_NAMES[name], day, 10, 30)
        expected.append(moment - dt.timedelta(minutes=ZONES[zone]) if zoned and zone else moment)
    assert read(texts, "%d %b %Y %H:%M:%S" + (" %z" if zoned else "")) == expected


@pytest.mark.parametrize("zone", AMBIGUOUS_ZONES)
def test_zones_of_several_offsets_are_refused(zone: str) -> None:
    assert zone not in ZONES
    with pytest.raises(uc.TraceError):
        read([f"05 May 2024 10:30:00 {zone}"], "%d %b %Y %H:%M:%S %z")


LOGS = {
    "05. März 2024 10:00:00 INFO Start": "2024-03-05 10:00:00",
    "05-ene-2024 10:00:00 INFO inicio": "2024-01-05 10:00:00",
    "05 août 2023 10:00:00 INFO debut": "2023-08-05 10:00:00",
    "5 de maio de 2024 10:00:00 INFO comeco": "2024-05-05 10:00:00",
    "05 października 2023 10:00:00 INFO x": "2023-10-05 10:00:00",
    "05 мая 2024 10:00:00 INFO x": "2024-05-05 10:00:00",
    "05-янв-2024 10:00:00 INFO x": "2024-01-05 10:00:00",
    "05 Марта 2024 10:00:00 INFO x": "2024-03-05 10:00:00",
    "05 Ağustos 2023 10:00:00 INFO x": "2023-08-05 10:00:00",
    "5 janv. 2024 10:00:00 INFO x": "2024-01-05 10:00:00",
    "2024年5月5日 10:00:00 INFO x": "2024-05-05 10:00:00",
    "2024년 5월 5일 10:00:00 INFO x": "2024-05-05 10:00:00",
    "05.05.2024 - 10:00:00 INFO x": "2024-05-05 10:00:00",
    "2024-05-05 10:00:00 [UTC] INFO x": "2024-05-05 10:00:00",
    "2024-05-31 12:00:00.000 CEST [12] LOG:  x": "2024-05-31 10:00:00",
    "31 мая 2024 10:00:00 INFO Запуск": "2024-05-31 10:00:00",
    "[31/May/2024 12:00:00 JST] x": "2024-05-31 03:00:00",
    "[2024.05.31-10.00.00:000][  0]LogInit: x": "2024-05-31 10:00:00",
    "10:00:00 31/05/2024 INFO x": "2024-05-31 10:00:00",
    "10:00:00,125 2024-05-31 INFO x": "2024-05-31 10:00:00",
    "[10:00:00] [2024-05-31] INFO x": "2024-05-31 10:00:00",
    "10:00:00 May 31 2024 x": "2024-05-31 10:00:00",
    "date=2024-05-31 time=10:00:00 devname=F x": "2024-05-31 10:00:00",
    "2024-05-31\t10:00:00\tx": "2024-05-31 10:00:00",
    "[2024-05-31] [10:00:00] x": "2024-05-31 10:00:00",
    "14/03/26 / 10:00:00 x": "2014-03-26 10:00:00",
    "2024-05-31 10:00:00.008 2931 INFO x": "2024-05-31 10:00:00",
    "May 31 10:00:00 2024 x": "2024-05-31 10:00:00",
    "api.log.1.2017-05-16_13:53:08 2024-05-31 10:00:00.008 25746 INFO x": "2024-05-31 10:00:00",
    "10:00:00 2024-05-31 11:00:00 x": "2024-05-31 11:00:00",
    "2024-05-31 12:00:00+02 mac softwareupdated[77]: x": "2024-05-31 10:00:00",
    "May 31 10:00:00 2019 77 4 10.1 x: hello": "2019-05-31 10:00:00",
    "May 31 10:00:00 PA-200 1,2018/05/31 10:00:00,0018,TRAFFIC": "2018-05-31 10:00:00",
}


@pytest.mark.parametrize("line", LOGS)
def test_logs_with_names_get_right_times(line: str, tmp_path: Path, invoke: Invoke) -> None:
    log = tmp_path / "app.log"
    log.write_text("".join(line.replace(":00", f":{second:02}", 1) + "\n" for second in (0, 0, 0)), "utf-8")
    changed = dt.datetime(2024, 6, 1, tzinfo=dt.UTC).timestamp()
    os.utime(log, (changed, changed))
    result = invoke("init", log, "-o", tmp_path)
    assert result.exit_code == 0, result.stderr
    assert str(uc.read_traces(log, tmp_path / "schema.toml")["lower"][0])[:19] == LOGS[line]


@pytest.mark.parametrize(
    "line",
    [
        "05 березня 2024 10:00:00 INFO x",
        "2024. 5. 31. 10:00:00 INFO x",
        "05-kesäkuu-2024 10:00:00 x",
        "2024-05-31 12:00:00.000 EST [12] LOG:  x",
        "10:00:00 UTC 2024-05-31 x",
        "2024-05-31-10.00.00.123456+060 I1234E567 LEVEL: Event",
        "10:00:00 on Friday, 31 May 2024: x",
        "10:00:00 31 May x",
        "2024.05.31 dn22 May 31 10:00:00 dn22/dn22 x",
    ],
)
def test_times_that_cannot_be_told_get_no_schema(line: str, tmp_path: Path, invoke: Invoke) -> None:
    log = tmp_path / "app.log"
    log.write_text(f"{line}\n" * 3, "utf-8")
    result = invoke("init", log, "-o", tmp_path)
    assert result.exit_code == 2
    assert ("its stamps are in EST, a zone of several places" in result.stderr) == ("EST" in line)
    assert not (tmp_path / "schema.toml").exists()


NODES = "{} node-{} unix.hw state_change.unavailable {} 1 Component State Change\n"


def numbered(numbers: list[int], tmp_path: Path) -> Path:
    """Write a log whose third number is one of these."""
    log = tmp_path / "app.log"
    log.write_text("".join(NODES.format(7 * row % 100, row % 9, at) for row, at in enumerate(numbers)))
    return log


def test_seconds_in_no_order_are_times_if_they_are_of_many_days(tmp_path: Path) -> None:
    days = [1_063_000_000 + 86_400 * (37 * row % 61) for row in range(50)]
    log, schema = numbered(days, tmp_path), tmp_path / "schema.toml"
    schema.write_text(propose([log]).text, "utf-8")
    times = uc.read_traces(log, schema)["lower"].to_pylist()
    assert [int(time.replace(tzinfo=dt.UTC).timestamp()) for time in times] == days


@pytest.mark.parametrize(
    "numbers",
    [
        [1_063_000_000 + 37 * row % 61 for row in range(50)],
        [1_063_000_000 + 86_400 * (37 * row % 61) for row in range(10)],
        [1_063_000_000 + 86_400_000 * (37 * row % 11) for row in range(50)],
    ],
    ids=["numbers of users", "few", "of days to come"],
)
def test_other_numbers_in_no_order_are_no_times(numbers: list[int], tmp_path: Path) -> None:
    with pytest.raises(uc.OptionError, match="no stamps that are known"):
        propose([numbered(numbers, tmp_path)])


def test_the_year_of_days_in_lines_is_that_of_stamps(tmp_path: Path) -> None:
    log, schema = tmp_path / "app.log", tmp_path / "schema.toml"
    days = ["2018-12-31", "2018-12-31", "2019-01-01"]
    stamps = ["Dec 31 23:59:58", "Dec 31 23:59:59", "Jan  1 00:00:02"]
    log.write_text(
        "\n".join(f"{stamp} web app: {day} opened" for stamp, day in zip(stamps, days, strict=True))
    )
    schema.write_text(propose([log]).text, "utf-8")
    assert "Other days in their lines do." in schema.read_text("utf-8")
    assert [str(time)[:10] for time in uc.read_traces(log, schema)["lower"].to_pylist()] == days


def test_seconds_go_before_a_stamp_without_its_year(tmp_path: Path) -> None:
    lines = [
        f"- {1131566461 + row} 2005.11.09 dn{row} Nov 9 12:01:{row + 1:02} dn/dn crond: closed"
        for row in range(30)
    ]
    log, schema = tmp_path / "app.log", tmp_path / "schema.toml"
    log.write_text("\n".join(lines))
    schema.write_text(propose([log]).text, "utf-8")
    assert str(uc.read_traces(log, schema)["lower"][0])[:19] == "2005-11-09 20:01:01"


NOT_READ = {
    "2024-05-31 10:00:00 CST INFO x": "CST",
    "2024-05-31 10:00:00CST INFO x": "CST",
    "2024-05-31 10:00:00cst: x": "cst",
    "2024-05-31 10:00:00EST5EDT INFO x": "EST5EDT",
    "2024-05-31 10:00:00,123 IST INFO x": "IST",
    "[31/May/2024 10:00:00] [BST] x": "BST",
    "2024-05-31 10:00:00 (CEST) INFO x": "CEST",
    "2024-05-31 10:00:00 [+0200] INFO x": r"\+0200",
    "2024-05-31 10:00:00 UTC+02:00 INFO x": r"UTC\+02:00",
    "2024-05-31 10:00:00 GMT-7 INFO x": "GMT-7",
    "[31-May-2024 10:00:00 europe/berlin] PHP Warning:  x": "europe/berlin",
}


@pytest.mark.parametrize("line", NOT_READ)
def test_zones_that_are_not_read_are_named(line: str, tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_text("".join(line.replace(":00", f":{second:02}", 1) + "\n" for second in range(4)), "utf-8")
    with pytest.raises(uc.OptionError, match=f"its stamps are in {NOT_READ[line]}, "):
        propose([log])


LAYOUTS = (
    "2024-05-31 10:00:SS {} INFO x", "2024-05-31T10:00:SS,123 {} [main] x", "[31/May/2024:10:00:SS {}] GET",
    "[31-May-2024 10:00:SS {}] PHP Warning", "2024-05-31 10:00:SS ({}) x", "2024-05-31 10:00:SS [{}] x",
    "[2024-05-31 10:00:SS] [{}] x", "2024/05/31 10:00:SS {}: x", "Fri, 31 May 2024 10:00:SS {} x",
    "05/31/2024 10:00:SS AM {} x", "31.05.2024 10:00:SS {} x", "2024-05-31 10:00:SS\t{}\tx",
    "2024-05-31 10:00:SS, {}, x", "2024-05-31 10:00:SS|{}|x", "May 31 2024 10:00:SS {} x",
    "Fri May 31 10:00:SS 2024 {} x", "2024-05-31 10:00:SS   {} x", "2024-05-31 10:00:SS {}",
    "20240531 10:00:SS {} x", "{} 2024-05-31 10:00:SS x", "2024-05-31 10:00:SS_{} x",
    '2024-05-31 10:00:SS "{}" x',
    "2024-05-31 10:00:SS {{{}}} x", "2024-05-31 10:00:SS <{}> x", "2024-05-31 10:00:SS tz={} x",
    "2024-05-31 10:00:SS-{} x", "Fri May 31 10:00:SS {} 2024 x", "2024-05-31 {} 10:00:SS x",
    "2024-05-31 10:00:SS{} x", "2024-05-31T10:00:SS.123{}: x",
)  # fmt: skip
MAY_BE_REFUSED = 4
"""Layouts at the end of those above in which UTC, too, may have no schema."""
OFFSETS: dict[str, int | None] = {
    "UTC": 0, "utc": 0, "Etc/UTC": 0, "CEST": 120, "cest": 120, "Cest": 120, "jst": 540, "CST": None,
    "cst": None, "Cst": None, "est": None, "IST": None, "msk": None, "CT": None, "EST5EDT": None,
    "WAT": 60, "met": 120, "Europe/Berlin": 120, "europe/berlin": 120, "America/New_York": -240,
    "Etc/GMT+5": -300, "US/Pacific": -420, "America/Argentina/Buenos_Aires": -180,
    "Chile/Continental": -240, "UTC+2": 120, "GMT+0200": 120, "utc+02:00": 120, "gmt-7": -420,
    "+02": 120, "+0200": 120, "+02:00": 120, "-0330": -210, "-09:30": -570, "China Standard Time": 480,
    "W. Europe Daylight Time": 120, "YEKT": None, "Mars/Olympus": None,
}  # fmt: skip
"""Zones as they are written, and minutes east of UTC on the day; None: several, or none."""


def zoned_lines(layout: str, zone: str) -> list[str]:
    return [layout.format(zone).replace("SS", f"{second:02}") for second in range(4)]


@pytest.mark.parametrize("place", range(len(LAYOUTS)))
def test_a_zone_beside_a_stamp_is_read_or_refused(place: int, tmp_path: Path) -> None:
    log, schema = tmp_path / "app.log", tmp_path / "schema.toml"
    # Each layout with a few zones, and each zone with a few layouts.
    for number, (zone, east) in enumerate(OFFSETS.items()):
        if (number - place) % 12 or zone == "Mars/Olympus":
            continue
        log.write_text("\n".join(zoned_lines(LAYOUTS[place], zone)), "utf-8")
        try:
            schema.write_text(propose([log]).text, "utf-8")
        except uc.OptionError:
            assert east != 0 or place >= len(LAYOUTS) - MAY_BE_REFUSED, zone
            continue
        assert east is not None
        moment = dt.datetime(2024, 5, 31, 10) - dt.timedelta(minutes=east)
        assert str(uc.read_traces(log, schema)["lower"][0])[:19] == str(moment), zone


@pytest.mark.parametrize("layout", LAYOUTS[:-MAY_BE_REFUSED])
def test_every_zone_beside_a_stamp_is_seen(layout: str) -> None:
    in_front = layout.startswith("{}")
    for zone, east in OFFSETS.items():
        if zone in ("CT", "Mars/Olympus") or (in_front and " " in zone):
            continue
        line = zoned_lines(layout, zone)[0]
        stamp = line.replace(zone, "\0" * len(zone))
        begin = re.search("[0-9A-Z]", stamp)
        assert begin is not None
        end = max(match.end() for match in re.finditer("[0-9](?: AM)?", stamp))
        zone_seen = zone_beside(line, begin.start(), end)
        assert zone_seen == zone, line
        assert zone_of_all([zone_seen] * 9) == (east == 0 or zone in PLACES, zone if zone in PLACES else None)


PLACES = (
    "+02:00", "-09:30", "Europe/Berlin", "America/New_York", "Etc/GMT+5", "US/Pacific",
    "America/Argentina/Buenos_Aires", "Chile/Continental",
)  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "2024-05-31 10:00:00 INFO est 3", "2024-05-31 10:00:00 host sshd[3]: x", "2024-05-31 10:00:00 - - x",
        "2024-05-31 10:00:00 -1 rows", "2024-05-31 10:00:00,123 Aborted", "2024-05-31 10:00:00 east gate",
        "2024-05-31 10:00:00+02:00 [CEST] x", "2024-05-31 10:00:00 getting x", "2024-05-31 10:00:00 [main] x",
    ],
)  # fmt: skip
def test_what_is_no_zone(line: str) -> None:
    stamp = re.match(r"[-0-9]+ [0-9:,]+(?:\+02:00)?", line)
    assert stamp is not None
    zone_seen = zone_beside(line, *stamp.span())
    assert zone_seen in (None, "-1")


@pytest.mark.parametrize("column", ["timezone", "event_tz"])
@pytest.mark.parametrize(
    ("zones", "hour"),
    [
        (["UTC"], 10), (["Europe/Berlin"], 8), (["+02:00"], 8), (["CST"], None), (["cest"], None),
        (["Europe/Berlin", "UTC"], None), (["Prague 1"], 10), ([str(number) for number in range(9)], 10),
    ],
)  # fmt: skip
def test_a_column_of_zones_beside_that_of_stamps(
    column: str, zones: list[str], hour: int | None, tmp_path: Path
) -> None:
    path, schema = tmp_path / "t.csv", tmp_path / "schema.toml"
    rows = [f"2024-05-31 10:{minute:02}:00.5,{zones[minute % len(zones)]}" for minute in range(12)]
    path.write_text("\n".join([f"time,{column}", *rows]), "utf-8")
    if hour is None:
        with pytest.raises(uc.OptionError, match=f"{column} holds the zones of its stamps, .*Continent/City"):
            propose([path])
        return
    schema.write_text(propose([path]).text, "utf-8")
    assert dt.datetime.fromisoformat(str(uc.read_traces(path, schema)["upper"][0])[:19]).hour == hour


def test_few_lines_with_a_word_like_a_zone_have_none() -> None:
    assert zone_of_all(["EST", *[None] * 9]) == (True, None)
    assert zone_of_all(["CST", "CDT", "UTC", None]) == (False, None)


def test_a_place_behind_stamps_without_a_year(tmp_path: Path) -> None:
    log, schema = tmp_path / "app.log", tmp_path / "schema.toml"
    log.write_text("\n".join(zoned_lines("May 31 10:00:SS America/New_York host prog: x", "")), "utf-8")
    changed = dt.datetime(2024, 6, 1, tzinfo=dt.UTC).timestamp()
    os.utime(log, (changed, changed))
    schema.write_text(propose([log]).text, "utf-8")
    assert str(uc.read_traces(log, schema)["lower"][0])[:19] == "2024-05-31 14:00:00"


@pytest.mark.parametrize("zone", AMBIGUOUS_ZONES)
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_zones_that_are_not_read_are_named_in_columns(zone: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{kind}"
    stamps = [f"2024-05-31 10:00:{second:02} {zone}" for second in range(4)]
    rows = [json.dumps({"at": stamp, "x": 1}) for stamp in stamps]
    path.write_text(
        "\n".join(rows if kind == "jsonl" else ["at,x", *(f"{stamp},1" for stamp in stamps)]), "utf-8"
    )
    with pytest.raises(uc.OptionError, match=f"at is in {zone}") as raised:
        propose([path])
    # The cure works.
    form = f"%Y-%m-%d %H:%M:%S {zone}"
    assert form in str(raised.value)
    schema = tmp_path / "schema.toml"
    schema.write_text(
        f'[[events]]\ntype = "A"\ntime = "at"\ntime_format = "{form}"\ntime_zone = "Asia/Shanghai"\n'
        'uncertainty = { kind = "exact" }\nattributes = ["x"]\n',
        "utf-8",
    )
    assert str(uc.read_traces(path, schema)["lower"][0])[:19] == "2024-05-31 02:00:00"
