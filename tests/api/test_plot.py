"""Charts: their data are the answer's, Altair takes them, and without it an error says what is missing."""

from __future__ import annotations

import datetime as dt
import importlib.util
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.api.charts import values
from tests.needs import lacking
from uncertain_cep.errors import OptionError, RuntimeEnvironmentError

if importlib.util.find_spec("altair") is None:
    lacking("packages", "no altair: install the extra plot", whole_file=True)

BEGIN = dt.datetime(2026, 1, 5, 8)
EVENTS = pa.table(
    {
        "type": ["A", "B", "B", "N"],
        "id": [1, 2, 3, 4],
        "lower": [0, 2, 30, 1],
        "upper": [3, 5, 30, 4],
        "host": ["h1", "h1", "h1", "h1"],
    }
)
QUERY = "PATTERN SEQ(A a, !N n, B+ b[]) WHERE [host] WITHIN 50 ORDER BY CONFIDENCE DESC"


def timed() -> pa.Table:
    """Return the events with timestamps."""
    table = EVENTS
    for place, name in ((2, "lower"), (3, "upper")):
        times = [BEGIN + dt.timedelta(seconds=second) for second in EVENTS.column(name).to_pylist()]
        table = table.set_column(place, name, pa.array(times))
    return table


def test_a_time_line_has_the_events_their_law_and_what_could_come_between() -> None:
    matches = uc.match(EVENTS, QUERY)
    chart = uc.plot.timeline(matches, EVENTS, QUERY, most=2)
    box, bars, shades = values(chart)[:3]
    first = matches.to_pylist()[0]
    assert [(row["begin"], row["end"]) for row in box] == [(first["range_lower"], first["range_upper"] + 1)]
    assert [bar["lane"] for bar in bars] == ["a: A 1", "b: B 2", "could spoil: N 4"]
    assert [bar["id"] for bar in bars] == ["1", *map(str, first["b"]), "4"]
    assert bars[-1]["what"] == "could spoil the match"
    for bar in bars[:-1]:
        shades_of_bar = [shade for shade in shades if shade["id"] == bar["id"]]
        assert sum(shade["probability"] for shade in shades_of_bar) == pytest.approx(1.0)
        assert (shades_of_bar[0]["begin"], shades_of_bar[-1]["end"]) == (bar["begin"], bar["end"])
    # A lane of the key stands above its events, and a frame is as full as its likeliest time.
    names, heads = values(chart)[4:6]
    assert names == bars
    assert [head["text"] for head in heads] == ["host h1"]
    assert heads[0]["middle"] < min(bar["top"] for bar in bars)
    for shade in shades:
        (bar,) = (one for one in bars if one["id"] == shade["id"])
        assert shade["bottom"] == bar["bottom"]
        full = (bar["bottom"] - shade["top"]) / (bar["bottom"] - bar["top"])
        assert full == pytest.approx(shade["density"] * 22 / 26)
    assert len(values(chart)) == 12


def test_a_time_line_has_bars_of_events_that_last() -> None:
    """A bar is full from the last begin to the first end, and pointed before and behind."""
    spans = pa.table(
        {
            "type": ["T", "U", "P"], "id": [1, 2, 3], "lower": [0, 0, 3], "upper": [6, 6, 4],
            "begin_lower": [0, 0, None], "begin_upper": [2, 5, None], "end_lower": [4, 2, None],
            "end_upper": [6, 6, None],
        }
    )  # fmt: skip
    query = "PATTERN AND(T t, U u, P p) WHERE t CONTAINS p AND u OVERLAPS p WITHIN 20"
    matches = uc.match(spans, query)
    _, frames, shades, corners, bars, _ = values(uc.plot.timeline(matches, spans, query))
    assert [(bar["lane"], bar["begin"], bar["end"]) for bar in bars] == [
        ("t: T 1", 0, 7), ("u: U 2", 0, 7), ("p: P 3", 3, 5),
    ]  # fmt: skip
    assert (frames, shades) == (bars[2:], [])
    assert bars[0]["interval"] == "begins 0 to 2, ends 4 to 6"
    for bar, ends in ((bars[0], (0, 2, 4, 7)), (bars[1], (0, 5, 5, 7))):
        outline = [one for one in corners if one["lane"] == bar["lane"]]
        assert tuple(one["begin"] for one in outline) == ends
        assert [one["bottom"] - one["top"] for one in outline] == [0, 26, 26, 0]
    columns = ["match", "variable", "id", "begin_upper"]
    assert uc.events_of(matches, spans, query).select(columns).to_pylist() == [
        {"match": 0, "variable": "t", "id": 1, "begin_upper": 2},
        {"match": 0, "variable": "u", "id": 2, "begin_upper": 5},
        {"match": 0, "variable": "p", "id": 3, "begin_upper": None},
    ]


def test_a_time_line_has_lasting_events_that_could_spoil_a_match() -> None:
    spans = pa.table(
        {
            "type": ["T", "N", "N"], "id": [1, 2, 3], "lower": [0, 3, 30], "upper": [6, 12, 40],
            "begin_lower": [0, 3, 30], "begin_upper": [2, 9, 30], "end_lower": [4, 8, 40],
            "end_upper": [6, 12, 40],
        }
    )  # fmt: skip
    query = "PATTERN AND(T t, !N n) WHERE n OVERLAPS t WITHIN 60"
    _, frames, _, corners, bars, _ = values(uc.plot.timeline(uc.match(spans, query), spans, query))
    assert [bar["lane"] for bar in bars] == ["t: T 1", "could spoil: N 2"]
    assert not frames
    assert [one["begin"] for one in corners if one["what"] == "could spoil the match"] == [3, 9, 9, 13]


@pytest.mark.parametrize(("spread", "shown"), [(3, "certain"), (6, "probability >99.9%")])
def test_a_time_line_says_certain_of_what_is(spread: int, shown: str) -> None:
    pmf = [3 / 7, 2 / 7, 2 / 7] if spread == 3 else [1 / 3, 1 / 3, 1 / 6, 1 / 6 - 1e-5, 0.0, 1e-5]
    query = "PATTERN SEQ(B b) WHERE TIME(b) <= 4 WITHIN 40"
    events = pa.table({"type": ["B"], "id": [1], "lower": [0], "upper": [spread - 1], "pmf": [pmf]})
    chart = uc.plot.timeline(uc.match(events, query), events, query)
    assert f"match 0, {shown}" in str(chart.to_dict())


def test_time_lines_of_timestamps() -> None:
    table, query = timed(), "PATTERN SEQ(A a, B b) WITHIN 1 minute"
    bars = values(uc.plot.timeline(uc.match(table, query, tick="1s"), table, query, tick="1s"))[1]
    start = BEGIN.replace(tzinfo=dt.UTC).timestamp() * 1000
    assert (bars[0]["begin"], bars[0]["end"]) == (start, start + 4000)
    assert bars[0]["interval"] == "2026-01-05T08:00:00 to 2026-01-05T08:00:03"


def test_confidences() -> None:
    (bars,) = values(uc.plot.confidence(uc.match(EVENTS, QUERY).to_pandas()))
    assert sum(bar["matches"] for bar in bars) == uc.match(EVENTS, QUERY).num_rows


def test_counts() -> None:
    matches = uc.match(EVENTS, QUERY)
    total = sum(matches.column("confidence").to_pylist())
    (bars,) = values(uc.plot.counts(matches, by="host"))
    assert bars == [{"group": "h1", "expected": pytest.approx(total)}]
    (bars,) = values(uc.plot.counts(matches, every=10))
    assert bars == [
        {"begin": 0, "end": 10, "bottom": 0, "top": pytest.approx(total), "expected": pytest.approx(total)}
    ]
    wrong: dict[str, Any]
    for wrong, message in (
        ({}, "say what to count by"),
        ({"by": "node"}, "no column node"),
        ({"every": "1 min"}, "the times are ticks"),
        ({"every": 10, "events": EVENTS}, "the events and the query"),
    ):
        with pytest.raises(OptionError, match=message):
            uc.plot.counts(matches, **wrong)
    query = "PATTERN SEQ(A a, B b) WITHIN 50 s"
    timed_matches = uc.match(timed(), query)
    with pytest.raises(OptionError, match="so name a unit"):
        uc.plot.counts(timed_matches, every=10)
    with pytest.raises(OptionError, match="give a multiple of one"):
        uc.plot.counts(timed_matches, every="1ns")
    with pytest.raises(OptionError, match="no multiple of the tick, 2s"):
        uc.plot.counts(timed_matches, timed(), query, every="3s", tick="2s")


TIMED = "PATTERN SEQ(A a, !N n, B+ b[]) WHERE [host] WITHIN 50 s"


@pytest.mark.parametrize("every", [1, 2, 7, 60])
@pytest.mark.parametrize(
    "query", [TIMED, "PATTERN SEQ(A? a, B b) WHERE [host] WITHIN 50 s", TIMED.replace("!N n, ", "")]
)
@pytest.mark.parametrize("doubtful", [False, True])
def test_counts_by_time_are_those_of_every(query: str, every: int, doubtful: bool) -> None:
    """Buckets have the matches by the law of their first times, as EVERY defines it."""
    table = timed()
    if doubtful:
        shares = np.where(np.arange(table.num_rows) % 3, 0.5, 1.0)
        table = table.append_column("probability", pa.array(shares))
    length = f"{every}s"
    counted = uc.match(table, f"{query} RETURN EXPECTED COUNT BY host EVERY {every} s", tick="1s")
    counts = {
        (row["host"], row["bucket"].replace(tzinfo=dt.UTC).timestamp() * 1000): row["expected_count"]
        for row in counted.to_pylist()
    }
    matches = uc.match(table, query, tick="1s")
    for chart in (
        uc.plot.counts(matches, table, query, by="host", every=length, tick="1s"),
        uc.plot.counts(counted, by="host", every=length),
    ):
        (bars,) = values(chart)
        drawn = {(bar["group"], bar["begin"]): bar["expected"] for bar in bars}
        assert drawn == {key: pytest.approx(value, rel=1e-9) for key, value in counts.items() if value}
        assert all(bar["end"] - bar["begin"] == every * 1000 for bar in bars)
        # Bars stand on the axis, or on each other.
        assert all(bar["top"] - bar["bottom"] == pytest.approx(bar["expected"]) for bar in bars)
        assert min(bar["bottom"] for bar in bars) == 0


def test_counts_of_what_can_begin_with_several_events_name_the_way() -> None:
    query = "PATTERN SEQ(AND(A a, N n), B b) WITHIN 50"
    with pytest.raises(OptionError, match="any of several events"):
        uc.plot.counts(uc.match(EVENTS, query), EVENTS, query, every=5)
    counted = uc.match(EVENTS, f"{query} RETURN EXPECTED COUNT EVERY 5 ticks")
    (bars,) = values(uc.plot.counts(counted, every=5))
    assert sum(bar["expected"] for bar in bars) == pytest.approx(
        sum(counted.column("expected_count").to_pylist())
    )


@pytest.mark.parametrize(
    ("query", "options", "steps"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 9", {"planner": "(b a)"}, ["b", "a", "a b"]),
        ("PATTERN SEQ(A a, B b) WITHIN 9", {"planner": "trivial"}, None),
        ("PATTERN AND(A a, B b) WITHIN 9", {}, None),
        ("PATTERN OR(SEQ(A a, B b), SEQ(A c, N d)) WITHIN 9", {}, None),
    ],
)
def test_plans(query: str, options: dict[str, Any], steps: list[str] | None) -> None:
    for analyze in (False, True):
        (rows,) = [rows for rows in values(uc.plot.plan(query, EVENTS, analyze=analyze, **options)) if rows]
        assert rows
        assert steps is None or [row["step"] for row in rows] == steps
        assert steps is None or all((row["actual"] is not None) == analyze for row in rows)


def test_matches_without_what_a_chart_needs_are_refused() -> None:
    matches = uc.match(EVENTS, QUERY, confidence=False)
    with pytest.raises(OptionError, match="no column confidence"):
        uc.plot.confidence(matches)
    with pytest.raises(OptionError, match="no column range_lower"):
        uc.plot.timeline(matches.drop_columns("range_lower"), EVENTS, QUERY)


def test_without_altair_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(RuntimeEnvironmentError, match=r"uncertain-cep\[plot\]"):
        uc.plot.confidence(uc.match(EVENTS, QUERY))


def test_calibration() -> None:
    matches = pa.table({"confidence": [0.25, 0.25, 0.75]})
    result = uc.calibration(matches, [True, False, True])
    agreed, low_and_high, points = values(uc.plot.calibration(result))
    assert [(row["said"], row["happened"]) for row in agreed] == [(0, 0), (1, 1)]
    assert points == low_and_high
    assert [
        {name: row[name] for name in result.bins.column_names} for row in points
    ] == result.bins.to_pylist()
    with pytest.raises(OptionError, match=r"uc\.calibration returned"):
        uc.plot.calibration(matches)
