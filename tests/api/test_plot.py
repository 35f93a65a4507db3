"""Charts: their data are the answer's, Altair takes them, and without it an error says what is missing."""

from __future__ import annotations

import datetime as dt
import importlib.util
import sys
from typing import Any

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
    assert box == [{"begin": first["range_lower"], "end": first["range_upper"] + 1}]
    assert [bar["id"] for bar in bars] == ["1", *map(str, first["b"]), "4"]
    assert bars[-1]["what"] == "could come between"
    for bar in bars[:-1]:
        own = [shade for shade in shades if shade["id"] == bar["id"]]
        assert sum(shade["probability"] for shade in own) == pytest.approx(1.0)
        assert (own[0]["begin"], own[-1]["end"]) == (bar["begin"], bar["end"])
    assert len(values(chart)) == 6


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


def test_confidences() -> None:
    (bars,) = values(uc.plot.confidence(uc.match(EVENTS, QUERY).to_pandas()))
    assert sum(bar["matches"] for bar in bars) == uc.match(EVENTS, QUERY).num_rows


def test_counts() -> None:
    matches = uc.match(EVENTS, QUERY)
    total = sum(matches.column("confidence").to_pylist())
    (bars,) = values(uc.plot.counts(matches, by="host"))
    assert bars == [{"group": "h1", "expected": pytest.approx(total)}]
    (bars,) = values(uc.plot.counts(matches, every=10))
    assert sum(bar["expected"] for bar in bars) == pytest.approx(total)
    assert all(bar["begin"] % 10 == 0 for bar in bars)
    query = "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 1 minute"
    found = uc.match(timed(), query)
    (bars,) = values(uc.plot.counts(found, by="host", every="10s"))
    assert {bar["group"] for bar in bars} == {"h1"}
    assert all(bar["begin"] % 10_000 == 0 for bar in bars)
    for wrong, message in (
        ({}, "say what to count by"),
        ({"by": "node"}, "no column node"),
        ({"every": "1 min"}, "the times are ticks"),
    ):
        with pytest.raises(OptionError, match=message):
            uc.plot.counts(matches, **wrong)
    with pytest.raises(OptionError, match="so name a unit"):
        uc.plot.counts(found, every=10)
    with pytest.raises(OptionError, match="give a multiple of one"):
        uc.plot.counts(found, every="1ns")


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
