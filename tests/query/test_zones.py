"""Hours, days and buckets of a time zone, against the standard library's clocks, and possible worlds."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import uncertain_cep as uc
from uncertain_cep.timeline.local_days import LocalDays

ZONES = (
    "Europe/Prague",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "America/Havana",
    "+05:45",
)
PRAGUE = ZoneInfo("Europe/Prague")
UTC = dt.UTC


def zone_of(name: str) -> dt.tzinfo:
    if name.startswith("+"):
        return dt.timezone(dt.timedelta(hours=int(name[1:3]), minutes=int(name[4:])))
    return ZoneInfo(name)


def at(*moments: dt.datetime, **columns: Any) -> pa.Table:
    times = pa.array(moments, pa.timestamp("us", "UTC"))
    numbers = list(range(len(moments)))
    events: dict[str, Any] = {
        "type": ["A"] * len(moments),
        "id": numbers,
        "lower": times,
        "upper": times,
        "ts": times,
    }
    return pa.table(events | columns)


@given(
    st.lists(st.datetimes(dt.datetime(1999, 1, 1), dt.datetime(2030, 1, 1)), min_size=1, max_size=6),
    st.sampled_from(ZONES),
)
@example(
    [dt.datetime(2024, 3, 31, 0, 59, 59), dt.datetime(2024, 3, 31, 1), dt.datetime(2024, 10, 27, 1)], ZONES[0]
)
@example([dt.datetime(2015, 11, 1, 4, 30), dt.datetime(2015, 11, 2)], "America/Havana")
def test_functions_of_times_count_in_the_zone(moments: list[dt.datetime], name: str) -> None:
    moments = [moment.replace(tzinfo=UTC) for moment in moments]
    local = [moment.astimezone(zone_of(name)) for moment in moments]
    query = (
        "PATTERN SEQ(A a) WITHIN 1 s RETURN a, HOUR(a.ts) AS hour, DAYOFWEEK(a.ts) AS day, "
        "DATE_TRUNC('month', a.ts) AS month, HOUR(a.ts, 'UTC') AS in_utc"
    )
    rows = uc.match(at(*moments), uc.parse(query, zone=name)).sort_by("a").to_pylist()
    written = query.replace("(a.ts)", f"(a.ts, '{name}')").replace(
        "'month', a.ts", f"'month', a.ts, '{name}'"
    )
    assert uc.match(at(*moments), written).sort_by("a").to_pylist() == rows
    for row, moment, clock in zip(rows, moments, local, strict=True):
        assert (row["hour"], row["in_utc"]) == (clock.hour, moment.hour)
        assert row["day"] == clock.isoweekday() % 7
        begin = dt.datetime(clock.year, clock.month, 1, tzinfo=zone_of(name))
        assert row["month"].replace(tzinfo=UTC) == begin.astimezone(UTC)


CHANGES = (
    ("Europe/Prague", dt.datetime(2024, 3, 31, 1)),
    ("Europe/Prague", dt.datetime(2024, 10, 27, 1)),
    ("Australia/Lord_Howe", dt.datetime(2024, 4, 6, 15)),
    ("Australia/Lord_Howe", dt.datetime(2024, 10, 5, 15, 30)),
    ("America/Havana", dt.datetime(2001, 4, 1, 5)),
    ("America/Havana", dt.datetime(2015, 11, 1, 5)),
    ("America/Sao_Paulo", dt.datetime(2018, 2, 18, 2)),
    ("America/Sao_Paulo", dt.datetime(2018, 11, 4, 3)),
    ("America/St_Johns", dt.datetime(2006, 10, 29, 2, 31)),
)
"""Moments in UTC at which clocks are changed: at night, by half an hour, at midnight and just behind it."""
MINUTE = dt.timedelta(minutes=1)


def truncated(zone: str, part: str, moment: dt.datetime) -> dt.datetime:
    """Return DATE_TRUNC of a moment in a zone."""
    query = f"PATTERN SEQ(A a) WITHIN 1 s RETURN DATE_TRUNC('{part}', a.ts) AS begin"
    begin: dt.datetime = uc.match(at(moment), uc.parse(query, zone=zone))["begin"][0].as_py()
    return begin.replace(tzinfo=UTC)


@given(st.sampled_from(CHANGES), st.integers(-1_500, 1_500))
@example(CHANGES[5], 30)
@example(CHANGES[8], 90)
def test_days_begin_when_clocks_first_show_their_date(change: tuple[str, dt.datetime], minutes: int) -> None:
    zone, moment = change
    moment = moment.replace(tzinfo=UTC) + minutes * MINUTE
    day = moment.astimezone(ZoneInfo(zone)).date()
    before = (moment - number * MINUTE for number in range(28 * 60, -1, -1))
    first = next(time for time in before if time.astimezone(ZoneInfo(zone)).date() == day)
    assert truncated(zone, "day", moment) == first
    for part in ("week", "month", "quarter", "year"):
        begin = truncated(zone, part, moment)
        assert begin == truncated(zone, "day", begin)
        assert begin <= first


@given(st.sampled_from(CHANGES), st.integers(-200, 200))
@example(CHANGES[1], 30)
@example(CHANGES[2], 15)
@example(CHANGES[8], 14)
def test_hours_begin_anew_where_clocks_are_set_back(change: tuple[str, dt.datetime], minutes: int) -> None:
    zone, moment = change
    moment = moment.replace(tzinfo=UTC) + minutes * MINUTE

    def shown(time: dt.datetime) -> dt.datetime:
        return time.astimezone(ZoneInfo(zone)).replace(tzinfo=None)

    begin = moment
    while shown(begin).replace(minute=0) <= shown(begin - MINUTE) < shown(begin):
        begin -= MINUTE
    assert truncated(zone, "hour", moment) == begin
    assert truncated(zone, "minute", moment) == moment


@given(
    # When clocks are set is known up to 2037.
    st.integers(-3_000, 24_800),
    st.sampled_from(ZONES),
    st.integers(1, 8),
    st.integers(-(10**6), 10**6),
)
def test_days_begin_when_clocks_show_midnight(day: int, name: str, count: int, behind: int) -> None:
    days = LocalDays(name, count, 10**9)
    (start, following) = (
        int(days.start(pa.array([k]).to_numpy())[0]) for k in (day // count, day // count + 1)
    )
    first = dt.date(1970, 1, 1) + dt.timedelta(day // count * count)
    zone = zone_of(name)
    shown = dt.datetime.fromtimestamp(start, UTC).astimezone(zone)
    before = dt.datetime.fromtimestamp(start - 1, UTC).astimezone(zone)
    assert shown.date() == first
    assert before.date() < first
    assert following - start in range((24 * count - 1) * 3600, (24 * count + 1) * 3600 + 1)
    tick = start + behind
    (number,) = days.number(pa.array([tick]).to_numpy()).tolist()
    begin, end = days.start(pa.array([number, number + 1]).to_numpy()).tolist()
    assert begin <= tick < end
    assert (start - days.common_length * (start // days.common_length)) == 0


NIGHT = dt.datetime(2024, 10, 26, 22, tzinfo=UTC)
"""Midnight in Prague; the day that begins has 25 hours."""


def of_hours(*spans: tuple[int, int]) -> pa.Table:
    """Return events of types A and B in turn, uniform over hours behind NIGHT, both ends included."""
    lower, upper = (
        pa.array([NIGHT + dt.timedelta(hours=span[end]) for span in spans], pa.timestamp("us", "UTC"))
        for end in (0, 1)
    )
    kinds = ["AB"[place % 2] for place in range(len(spans))]
    return pa.table({"type": kinds, "id": list(range(len(spans))), "lower": lower, "upper": upper})


SPANS = st.tuples(st.integers(-30, 60), st.integers(0, 30)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def day_of(hour: int) -> dt.datetime:
    """Return when the day of Prague begins in which an hour behind NIGHT is."""
    local = (NIGHT + dt.timedelta(hours=hour)).astimezone(PRAGUE)
    return dt.datetime(local.year, local.month, local.day, tzinfo=PRAGUE).astimezone(UTC)


@given(st.lists(SPANS, min_size=2, max_size=4))
def test_buckets_are_days_of_the_zone(spans: list[tuple[int, int]]) -> None:
    """Expected counts and probabilities of days of 24 and 25 hours, by all worlds."""
    events = of_hours(*spans)
    worlds: dict[dt.datetime, list[float]] = {}
    total = 1
    for low, high in spans:
        total *= high - low + 1

    def visit(place: int, hours: list[int]) -> None:
        if place < len(spans):
            for hour in range(spans[place][0], spans[place][1] + 1):
                visit(place + 1, [*hours, hour])
            return
        counts: dict[dt.datetime, int] = {}
        for a in range(0, len(hours), 2):
            for b in range(1, len(hours), 2):
                if 0 < hours[b] - hours[a] < 6:
                    day = day_of(hours[a])
                    counts[day] = counts.get(day, 0) + 1
        for day, number in counts.items():
            entry = worlds.setdefault(day, [0.0, 0.0])
            entry[0] += number / total
            entry[1] += 1 / total

    if total > 30_000:
        return
    visit(0, [])
    text = "PATTERN SEQ(A a, B b) WITHIN 6 hours "
    for clause, column, place in (
        ("RETURN EXPECTED COUNT EVERY 1 day", "expected_count", 0),
        ("RETURN PROBABILITY EVERY 1 day", "probability", 1),
    ):
        rows = uc.match(events, uc.parse(text + clause, zone="Europe/Prague"), tick="1h").to_pylist()
        made = {row["bucket"]: row[column] for row in rows}
        expected = {day: entry[place] for day, entry in worlds.items()}
        assert made.keys() == expected.keys()
        assert made == {day: pytest.approx(value) for day, value in expected.items()}


def test_other_lengths_stay_what_they_are() -> None:
    events = of_hours((0, 5), (3, 9))
    for every in ("1 hour", "36 hours"):
        text = f"PATTERN SEQ(A a, B b) WITHIN 9 hours RETURN EXPECTED COUNT EVERY {every}"
        in_zone = uc.match(events, uc.parse(text, zone="Europe/Prague"), tick="1h")
        assert in_zone.equals(uc.match(events, text, tick="1h"))


def test_days_need_ticks_that_divide_them() -> None:
    text = "PATTERN SEQ(A a, B b) WITHIN 2 days RETURN EXPECTED COUNT EVERY 1 day"
    with pytest.raises(
        uc.QueryError, match=r"days of Europe/Prague begin at multiples of 1h.*give a shorter tick"
    ):
        uc.match(of_hours((0, 0), (24, 24)), uc.parse(text, zone="Europe/Prague"), tick="1d")
    utc = uc.match(of_hours((2, 2), (26, 26)), uc.parse(text, zone="UTC"), tick="1d")
    assert utc["expected_count"].to_pylist() == [1.0]


def test_times_without_an_offset_are_of_the_zone() -> None:
    events = at(dt.datetime(2024, 7, 1, 10, tzinfo=UTC), dt.datetime(2024, 7, 1, 11, tzinfo=UTC))
    for condition, ids in (
        ("a.ts >= TIMESTAMP '2024-07-01 13:00'", [1]),
        ("a.ts >= '2024-07-01 13:00'", [1]),
        ("a.ts >= '2024-07-01 13:00Z'", []),
        ("a.ts >= TIMESTAMP '2024-07-01T13:00+02:00'", [1]),
        ("a.ts < DATE '2024-07-02' AND a.ts IN ('2024-07-01 12:00', '2024-07-01 14:00')", [0]),
        ("TIME(a) >= TIMESTAMP '2024-07-01 13:00'", [1]),
    ):
        query = uc.parse(f"PATTERN SEQ(A a) WHERE {condition} WITHIN 1 s", zone="Europe/Prague")
        assert uc.match(events, query)["a"].to_pylist() == ids
    for time, how_often in (("2024-10-27 02:30", "twice"), ("2024-03-31 02:30", "never")):
        query = uc.parse(f"PATTERN SEQ(A a) WHERE a.ts > '{time}' WITHIN 1 s", zone="Europe/Prague")
        with pytest.raises(
            uc.QueryError, match=f"clocks of Europe/Prague show .* {how_often}: write an offset"
        ):
            uc.match(events, query)
    with pytest.raises(uc.QueryError, match="there is no time zone 'Mars'"):
        uc.match(events, "PATTERN SEQ(A a) WHERE HOUR(a.ts, 'Mars') = 1 WITHIN 1 s")
    with pytest.raises(uc.OptionError, match="is no time zone"):
        uc.parse("PATTERN SEQ(A a) WITHIN 1 s", zone="Mars/Olympus")


def test_a_zone_of_a_schema_is_that_of_stamps(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("at,n\n2024-07-01 12:30:00,1\n2024-07-02 00:10:00,2\n")
    schema = tmp_path / "schema.toml"
    text = '[[events]]\ntype = "A"\ntime = "at"\nuncertainty = { kind = "exact" }\n'
    schema.write_text('zone = "Europe/Prague"\n' + text)
    loaded = uc.load_schema(schema)
    assert loaded.zone == "Europe/Prague"
    events = uc.read_traces(tmp_path / "log.csv", loaded)
    assert [str(time)[:16] for time in events["lower"]] == ["2024-07-01 10:30", "2024-07-01 22:10"]
    schema.write_text('zone = "Europe/Prague"\n' + text + 'time_zone = "UTC"\n')
    events = uc.read_traces(tmp_path / "log.csv", schema)
    assert str(events["lower"][0])[:16] == "2024-07-01 12:30"
    schema.write_text('zone = "Europa/Prag"\n' + text)
    with pytest.raises(uc.TraceError, match="zone: there is no time zone 'Europa/Prag'"):
        uc.load_schema(schema)


def test_events_bring_the_zone_of_their_schema(tmp_path: Path) -> None:
    """As on the command line: hours and days are those of the schema's zone, unless the query has one."""
    (tmp_path / "t.csv").write_text("kind,at\nA,2026-03-28 23:30:00\nB,2026-03-29 00:10:00\n")
    (tmp_path / "s.toml").write_text(
        'zone = "Europe/Prague"\n[[events]]\ntype_column = "kind"\ntime = "at"\n'
        'uncertainty = { kind = "exact" }\n'
    )
    events = uc.read_traces(tmp_path / "t.csv", tmp_path / "s.toml")
    query = "PATTERN SEQ(A a, B b) WITHIN 1 hour RETURN EXPECTED COUNT EVERY 1 day"
    (row,) = uc.match(events, query).to_pylist()
    assert row["bucket"].astimezone(ZoneInfo("Europe/Prague")).isoformat() == "2026-03-28T00:00:00+01:00"
    (again,) = uc.match(events, uc.parse(query, zone="Europe/Prague")).to_pylist()
    assert again == row
    (in_utc,) = uc.match(events, uc.parse(query, zone="UTC")).to_pylist()
    assert in_utc["bucket"].astimezone(UTC).isoformat() == "2026-03-28T00:00:00+00:00"
    matcher = uc.IncrementalMatcher("PATTERN SEQ(A a, B b) WITHIN 1 hour", events.schema)
    assert matcher.plan.query.zone == "Europe/Prague"


def test_times_behind_the_last_known_change_of_clocks_are_told() -> None:
    query = uc.parse("PATTERN SEQ(A a) WITHIN 1 hour RETURN HOUR(a.ts) AS h", zone="Europe/Prague")
    later = dt.datetime(2060, 7, 1, 12, tzinfo=UTC)
    with pytest.warns(uc.UncertainCepWarning, match="known up to 2037"):
        assert uc.match(at(later), query)["h"].to_pylist() == [13]
    assert uc.match(at(later.replace(year=2036)), query)["h"].to_pylist() == [14]
