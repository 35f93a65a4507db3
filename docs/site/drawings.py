"""The pictures of the semantics, drawn by the build with numbers of the oracle."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa

import uncertain_cep as uc
from uncertain_cep.testing import Event, Query, answer, no, one, seq

__all__ = ["DRAWINGS"]

CELL: Final = 34
LINE: Final = "#8a9399"
TEXT: Final = "#3d464b"
TEAL: Final = "#0f6f78"
PALE: Final = "#cfe6e8"
AMBER: Final = "#e8a860"


def _svg(width: float, height: float, parts: list[str]) -> str:
    style = f"text {{ font: 14px sans-serif; fill: {TEXT} }} .small {{ font-size: 12px }}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}">'
    ground = f'<rect width="{width:g}" height="{height:g}" fill="#ffffff" rx="6"/>'
    return "\n".join([head, f"<style>{style}</style>", ground, *parts, "</svg>"])


def _text(x: float, y: float, said: str, anchor: str = "start", kind: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{kind}">{said}</text>'


def _box(x: float, y: float, width: float, height: float, fill: str) -> str:
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return f'<rect {place} fill="{fill}" stroke="{LINE}"/>'


def _confidence(query: Query, events: list[Event]) -> str:
    (match,) = answer(query, events)
    return f"{match.confidence} = {float(match.confidence):.1%}"


def worlds() -> str:
    """Draw the worlds of two events as cells, those in which one is before the other filled."""
    one_event, other = Event("A", "a", 0, 3), Event("B", "b", 2, 5)
    left, top = 70.0, 50.0
    parts = [_text(left + 2 * CELL, 24, "tick of a", "middle")]
    parts.append(_text(18, top + 2 * CELL + 5, "of b"))
    for column, (tick, _) in enumerate(one_event.ticks()):
        x = left + column * CELL
        parts.append(_text(x + CELL / 2, top - 8, str(tick), "middle"))
        for row, (later, _) in enumerate(other.ticks()):
            parts.append(_box(x, top + row * CELL, CELL, CELL, TEAL if tick < later else "#ffffff"))
    for row, (later, _) in enumerate(other.ticks()):
        parts.append(_text(left - 10, top + row * CELL + 22, str(later), "end"))
    query = Query(seq(one("A", "a"), one("B", "b")), 9)
    said = f"a is before b in {_confidence(query, [one_event, other])} of the worlds"
    parts.append(_text(left + 5 * CELL, top + 2 * CELL, said))
    parts.append(_text(left + 5 * CELL, top + 2 * CELL + 24, "equal ticks are in no order", kind="small"))
    return _svg(560, 200, parts)


def _lines(events: list[tuple[str, Event, str]], said: list[str]) -> str:
    left, last = 130.0, max(event.upper for _, event, _ in events)
    parts = [_text(left + (tick + 0.5) * CELL, 24, str(tick), "middle", "small") for tick in range(last + 1)]
    for row, (name, event, fill) in enumerate(events):
        y = 40 + row * 32
        parts.append(_text(left - 12, y + 16, name, "end"))
        for tick, _ in event.ticks():
            parts.append(_box(left + tick * CELL, y, CELL, 22, fill))
    y = 62 + len(events) * 32
    parts += [_text(left, y + 22 * number, line) for number, line in enumerate(said)]
    return _svg(left + (last + 1) * CELL + 20, y + 22 * len(said), parts)


def intervals() -> str:
    """Draw three events on a time line, with the range and the confidence of their match."""
    events = [Event("A", "a", 0, 3), Event("B", "b", 2, 5), Event("C", "c", 4, 9)]
    query = Query(seq(one("A", "a"), one("B", "b"), one("C", "c")), 8)
    (match,) = answer(query, events)
    shown = [("start", events[0], PALE), ("load", events[1], AMBER), ("stop", events[2], PALE)]
    said = [
        f"in order, within 8 ticks: {match.confidence} = {float(match.confidence):.1%}",
        f"time range: {match.range_lower} to {match.range_upper}",
    ]
    return _lines(shown, said)


def negation() -> str:
    """Draw a match with an event that must not lie between."""
    events = [Event("A", "a", 0, 1), Event("N", "n", 1, 6), Event("B", "b", 4, 5)]
    query = Query(seq(one("A", "a"), no("N", "n"), one("B", "b")), 9)
    shown = [("start", events[0], PALE), ("alarm", events[1], AMBER), ("stop", events[2], PALE)]
    return _lines(shown, [f"no alarm between start and stop: {_confidence(query, events)}"])


def metrics() -> str:
    """Draw the time that values of a metric speak of, stamped 6 at the end of six ticks, and an error."""
    error, peak = Event("X", "x", 4, 4), Event("P", "p", 1, 6)
    begin, end = Event("B", "b", 0, 0), Event("E", "e", 7, 7)
    shown = [
        ("average", Event("M", "m", 1, 6), TEAL),
        ("maximum", peak, PALE),
        ("counter", Event("C", "c", 1, 6), PALE),
        ("sample", Event("S", "s", 6, 6), PALE),
        ("an error", error, AMBER),
    ]
    within = Query(seq(one("B", "b"), one("X", "x"), one("E", "e")), 9)
    before = Query(seq(one("P", "p"), one("X", "x")), 9)
    said = [
        f"the error lies in the time of the average: {_confidence(within, [begin, error, end])}",
        f"the maximum was before the error: {_confidence(before, [peak, error])}",
    ]
    return _lines(shown, said)


def first_match() -> str:
    """Draw the match of the first page: when its events can have happened, and how likely they did when."""
    start = dt.datetime(2026, 1, 5, 8, tzinfo=dt.UTC)

    def at(seconds: float) -> dt.datetime:
        return start + dt.timedelta(seconds=seconds)

    tasks = pa.table(
        {"type": ["Start", "Finish"], "id": ["task starts", "task finishes"], "at": [at(2.1), at(11.4)]}
    )
    cpu = pa.table({"type": ["Cpu"], "id": ["CPU at 97%"], "at": [at(15)]})
    events = pa.concat_tables(
        [
            uc.to_intervals(tasks, time="at", uncertainty=uc.plus_minus("500ms"), tick="100ms"),
            uc.to_intervals(cpu, time="at", uncertainty=uc.window("15s"), tick="100ms"),
        ]
    )
    query = "PATTERN SEQ(Start a, Cpu b, Finish c) WITHIN 1 min"
    matches = uc.match(events, query, tick="100ms")
    (match,) = matches.to_pylist()
    left, per_second, row_height, tall = 118.0, 29.0, 46, 34.0

    def x(time: dt.datetime) -> float:
        return left + (time - start).total_seconds() * per_second

    tick = dt.timedelta(milliseconds=100)
    rows = {row["id"]: row for row in events.to_pylist()}
    low, high = x(match["range_lower"]), x(match["range_upper"] + tick)
    span = f'x="{low:g}" y="34" width="{high - low:g}" height="{3 * row_height + 4}"'
    parts = [f'<rect {span} fill="{PALE}" fill-opacity=".55"/>']
    for place, law in enumerate(uc.posteriors(matches, events, query, tick="100ms").to_pylist()):
        row, y = rows[law["id"]], 38.0 + place * row_height
        parts.append(_text(left - 10, y + 24, row["id"], "end"))
        width = x(row["upper"] + tick) - x(row["lower"])
        parts.append(_box(x(row["lower"]), y, width, tall, "none"))
        wide = width / len(law["pmf"])
        path = "".join(f"V{y + tall * (1 - p / max(law['pmf'])):.2f}h{wide:.3f}" for p in law["pmf"])
        parts.append(f'<path d="M{x(row["lower"]):g} {y + tall:g}{path}V{y + tall:g}Z" fill="{TEAL}"/>')
    base = 38 + 3 * row_height + 14
    parts += [
        _text(x(at(second)), base, f"08:00:{second:02}", "middle", "small") for second in (0, 5, 10, 15)
    ]
    ends = " and ".join(f"{match[name]:%H:%M:%S.%f}"[:-5] for name in ("range_lower", "range_upper"))
    said = f"The CPU peaked while the task ran: probability {match['confidence']:.2f},"
    parts += [_text(10, base + 30, said), _text(10, base + 52, f"between {ends}.")]
    parts.append(_text(low + 4, 26, "the match can only have happened here", kind="small"))
    return _svg(left + 15.6 * per_second + 24, base + 66, parts)


DRAWINGS: Final[Mapping[str, Callable[[], str]]] = {
    "first-match": first_match,
    "worlds": worlds,
    "intervals": intervals,
    "negation": negation,
    "metrics": metrics,
}
