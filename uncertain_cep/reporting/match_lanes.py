"""The chart of one match, as a page draws it: its events in lanes, and when they can have happened.

Places upwards are pixels: `ROW`, `HEAD` and `TALL` are those of the lanes of a page.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.reporting.charts import GREY, ORANGE, PALE, PEACH, TEAL, WIDTH, inline, span_of
from uncertain_cep.reporting.nearby import bounds_of_spans, lane_of
from uncertain_cep.results.display import percent, shown_times
from uncertain_cep.results.pictures import Pictures
from uncertain_cep.timeline.domain import TimeDomain

__all__ = ["lanes_of_match"]

Row = dict[str, Any]

EVENT: Final = "when an event can have happened"
LIKELY_TIME: Final = "the higher, the likelier then, if this is a match"
LASTING: Final = "an event that lasts: it begins and ends on its slopes"
RANGE: Final = "the match can only have happened here"
SPOILER: Final = "could spoil the match"

PAINTS: Final = {EVENT: ("white", TEAL), LIKELY_TIME: (TEAL, TEAL), LASTING: (TEAL, TEAL)} | {
    RANGE: (PALE, PALE), SPOILER: (PEACH, ORANGE)
}  # fmt: skip
"""The ground and the edge of each meaning."""

ROW: Final = 40
HEAD: Final = 22
TALL: Final = 26


def lanes_of_match(
    altair: Any, bound: EvaluationPlan, table: pa.Table, matches: pa.Table, pictures: Pictures, n: int
) -> Any:
    """Return the chart of match n of several: a lane for each event, over the range of the match."""
    domain = bound.domain
    bars = _bars(bound, table, pictures, n)
    heads, height = _laid_out(bars)
    outlines = [point for number, bar in enumerate(bars) for point in _outline(bar, number)]
    shades = [
        {**bar, "begin": begin, "end": end, "probability": value, "density": depth}
        for bar in bars
        for begin, end, value, depth in bar.pop("parts")
    ]
    for shade in shades:
        shade["top"] = shade["bottom"] - (TALL - 4) * shade["density"]
    low, high = (domain.ticks(matches.column(f"range_{side}"))[n] for side in ("lower", "upper"))
    begin, end = _shown(domain, int(low)), _shown(domain, int(high) + 1)
    box = [{"begin": begin, "end": end, "what": RANGE, "top": 0, "bottom": height}]
    title = f"match {n}"
    if "confidence" in matches.column_names:
        sure = percent(matches.column("confidence")[n].as_py())
        title += f", {sure}" if sure == "certain" else f", probability {sure}"
    meanings = [EVENT, LASTING if bound.lasting else LIKELY_TIME, RANGE]
    meanings += [SPOILER] if len(pictures.spoiling) else []
    layers = _layers(altair, domain, [box, bars, shades, heads, outlines], meanings, height)
    return layers.properties(width=WIDTH, height=height, title=title)


def _shown(domain: TimeDomain, tick: int) -> float:
    """Return a tick as charts take it, else in milliseconds since 1970."""
    return tick if domain.unit == "tick" else tick * ((domain.tick_nanoseconds or 0) / 1e6)


def _bars(bound: EvaluationPlan, table: pa.Table, pictures: Pictures, n: int) -> list[Row]:
    """Return the events of a match and those that could spoil it, with the parts that are filled.

    One that lasts has ``ends`` instead: where it first and last begins, and where it first and last ends.
    """
    domain, names, where = bound.domain, bound.names, lane_of(bound, table.schema)
    chosen = np.flatnonzero(pictures.match == n).tolist()
    variables = [pictures.variable[k] for k in chosen]

    def event(row: int, label: str, what: str) -> Row:
        part = table.slice(row, 1)
        begin, end = (int(domain.ticks(part.column(name))[0]) for name in (names.lower, names.upper))
        ends = next(iter(bounds_of_spans(bound, part)), None)
        intervals = [[begin, end]] if ends is None else [ends[:2], ends[2:]]
        shown = [" to ".join(shown_times(domain.times(np.array(interval)))) for interval in intervals]
        values = {name: str(part.column(name)[0].as_py()) for name in (names.type, names.id)}
        return {
            "lane": f"{label}: {values[names.type]} {values[names.id]}",
            "what": LASTING if ends and what == EVENT else what,
            "type": values[names.type], "id": values[names.id],
            "interval": shown[0] if ends is None else f"begins {shown[0]}, ends {shown[1]}",
            "begin": _shown(domain, begin), "end": _shown(domain, end + 1), "parts": [],
            "ends": ends and [_shown(domain, tick) for tick in (*ends[:3], ends[3] + 1)],
            "head": f"{where} {part.column(where)[0].as_py()}" if where else "",
        }  # fmt: skip

    bars = []
    for k, variable in zip(chosen, variables, strict=True):
        row = int(pictures.row[k])
        several = variables.count(variable) > 1
        bar = event(row, f"{variable}[{pictures.position[k]}]" if several else variable, EVENT)
        edges = pairwise(_shown(domain, edge) for edge in pictures.edges(k).tolist())
        laws = zip(edges, pictures.shares(k).tolist(), pictures.density(k).tolist(), strict=True)
        bar["parts"] += [(*ends, value, depth) for ends, value, depth in laws]
        bars.append(bar)
    spoiling = pictures.spoiling[pictures.spoiled == n].tolist()
    return [*bars, *(event(row, "could spoil", SPOILER) for row in spoiling)]


def _laid_out(bars: list[Row]) -> tuple[list[Row], int]:
    """Put bars below each other, by host or key, and return the heads of these and the height of all."""
    bars.sort(key=lambda bar, heads=[bar["head"] for bar in bars]: heads.index(bar["head"]))  # type: ignore[misc]
    heads: list[Row] = []
    height = 0
    for bar in bars:
        if (head := bar.pop("head")) and (not heads or heads[-1]["text"] != head):
            heads.append({"text": head, "middle": height + HEAD / 2})
            height += HEAD
        bar["top"] = height + (ROW - TALL) / 2
        bar["bottom"], bar["middle"] = bar["top"] + TALL, bar["top"] + TALL / 2
        height += ROW
    return heads, height


def _outline(bar: Row, number: int) -> list[Row]:
    """Return the corners of a bar that lasts, from its first begin to its last end; none of a moment."""
    if (ends := bar.pop("ends")) is None:
        return []
    first, begun, stops, last = ends
    middle = {"top": bar["middle"], "bottom": bar["middle"]}
    corners = [(first, middle), (begun, {}), (max(begun, stops), {}), (last, middle)]
    return [{**bar, "bar": number, "begin": at, "end": at, **sides} for at, sides in corners]


def _layers(altair: Any, domain: TimeDomain, rows: list[list[Row]], meanings: list[str], height: int) -> Any:
    """Return the box of a match, above it the bars of events, what fills them, and the names of lanes."""
    box, bars, shades, heads, outlines = rows
    lasting = {one["bar"] for one in outlines}
    frames = [bar for number, bar in enumerate(bars) if number not in lasting]
    kind, zone = ("Q", None) if domain.unit == "tick" else ("T", "UTC" if domain.timezone else "no zone")
    begin, end = span_of(altair, kind, [*bars, *box], zone)

    def places(name: str) -> Any:
        return altair.Y(f"{name}:Q", title=None, axis=None, scale=altair.Scale(domain=[height, 0]))

    legend = altair.Legend(
        orient="bottom", columns=2, labelLimit=WIDTH // 2, symbolStrokeColor=TEAL, symbolOpacity=1
    )
    ground, edge = zip(*(PAINTS[one] for one in meanings), strict=True)
    colour = altair.Color(
        "what:N", title=None, legend=legend, scale=altair.Scale(domain=meanings, range=[*ground])
    )
    stroke = altair.Stroke("what:N", legend=None, scale=altair.Scale(domain=meanings, range=[*edge]))
    span = {"x": begin, "x2": end, "y": places("top"), "y2": "bottom"}
    chance = altair.Tooltip("probability:Q", format=".1%")
    beside = altair.value(-8)
    return altair.layer(
        altair.Chart(inline(box)).mark_rect(opacity=0.55).encode(**span, color=colour),
        altair.Chart(inline(frames))
        .mark_rect(strokeWidth=1, cornerRadius=3)
        .encode(**span, color=colour, stroke=stroke, tooltip=["lane:N", "type:N", "id:N", "interval:N"]),
        altair.Chart(inline(shades)).mark_rect(color=TEAL).encode(**span, tooltip=["lane:N", chance]),
        altair.Chart(inline(outlines))
        .mark_area(strokeWidth=1, fillOpacity=0.6)
        .encode(
            x=begin,
            y=places("top"),
            y2="bottom",
            color=colour,
            stroke=stroke,
            detail="bar:N",
            tooltip=["lane:N", "type:N", "id:N", "interval:N"],
        ),
        altair.Chart(inline(bars))
        .mark_text(align="right", baseline="middle")
        .encode(x=beside, y=places("middle"), text="lane:N"),
        altair.Chart(inline(heads))
        .mark_text(align="right", baseline="middle", fontWeight="bold", color=GREY)
        .encode(x=beside, y=places("middle"), text="text:N"),
    )
