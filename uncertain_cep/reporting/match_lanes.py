"""The chart of one match: its events on a time line, when they can have happened, and what could spoil it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.reporting.charts import AMBER, FAINT, PALE, TEAL, WIDTH, inline, span_of
from uncertain_cep.reporting.nearby import bounds_of_spans
from uncertain_cep.results.display import percent
from uncertain_cep.results.pictures import Pictures

__all__ = ["PARTS", "lanes_of_match"]

Row = dict[str, Any]

EVENT: Final = "when an event can have happened"
LIKELY_TIME: Final = "the fuller, the likelier, given the match"
LASTING: Final = "when an event lasts in every world"
RANGE: Final = "the match can only have happened here"
SPOILER: Final = "could come between and spoil the match"

LABELS: Final = 220
"""Most pixels of the name of a lane."""

PARTS: Final = 32
"""Parts of an interval that are shaded by when the event happened."""


def lanes_of_match(
    altair: Any, bound: EvaluationPlan, table: pa.Table, matches: pa.Table, pictures: Pictures, n: int
) -> Any:
    """Return the chart of match n of several: a lane for each event, over the range of the match."""
    domain, names = bound.domain, bound.names
    kind = "Q" if domain.unit == "tick" else "T"

    def shown(ticks: Any) -> Any:
        # Charts take milliseconds since 1970.
        return ticks if kind == "Q" else ticks * ((domain.tick_nanoseconds or 0) / 1e6)

    def event(row: int, lane: str, what: str) -> dict[str, Any]:
        part = table.slice(row, 1)
        begin, end = (int(domain.ticks(part.column(name))[0]) for name in (names.lower, names.upper))
        values = {name: str(part.column(name)[0].as_py()) for name in (names.type, names.id)}
        interval = " to ".join(str(part.column(name)[0].as_py()) for name in (names.lower, names.upper))
        return {
            "lane": f"{lane}: {values[names.type]} {values[names.id]}", "what": what,
            "type": values[names.type], "id": values[names.id],
            "interval": interval, "begin": shown(begin), "end": shown(end + 1),
        }  # fmt: skip

    bars, shades = [], []
    for k in np.flatnonzero(pictures.match == n).tolist():
        row, variable = int(pictures.row[k]), pictures.variable[k]
        several = int(((pictures.match == n) & (np.array(pictures.variable) == variable)).sum()) > 1
        bar = event(row, f"{variable}[{pictures.position[k]}]" if several else variable, EVENT)
        bars.append(bar)
        edges = [shown(edge) for edge in pictures.edges(k).tolist()]
        density, share = pictures.density(k).tolist(), pictures.shares(k).tolist()
        shades += [
            {**bar, "begin": begin, "end": end, "probability": value, "density": depth}
            for (begin, end), value, depth in zip(pairwise(edges), share, density, strict=True)
        ]
        shades += [
            {**bar, "begin": shown(begin), "end": shown(end + 1), "probability": 1.0, "density": 1.0}
            for begin, end in _certain_ticks(bound, table.slice(row, 1))
        ]
    spoiling = pictures.spoiling[pictures.spoiled == n].tolist()
    bars += [event(row, "in between", SPOILER) for row in spoiling]
    low, high = (domain.ticks(matches.column(f"range_{side}"))[n] for side in ("lower", "upper"))
    box = [{"begin": shown(int(low)), "end": shown(int(high) + 1), "what": RANGE}]
    title = f"match {n}"
    if "confidence" in matches.column_names:
        sure = percent(matches.column("confidence")[n].as_py())
        title += f", {sure}" if sure == "certain" else f", probability {sure}"
    meanings = [EVENT, LASTING if bound.lasting else LIKELY_TIME, RANGE]
    meanings += [SPOILER] if len(pictures.spoiling) else []
    layers = _layers(altair, kind, bars, shades, box, meanings)
    return layers.properties(width=WIDTH, title=title)


def _certain_ticks(bound: EvaluationPlan, event: pa.Table) -> list[tuple[int, int]]:
    """Return the ticks from the last begin to the first end of an event, if it lasts and has such."""
    ends = [ends for ends in bounds_of_spans(bound, event) if ends is not None]
    return [(begin, end) for _, begin, end, _ in ends if begin <= end]


def _layers(
    altair: Any, kind: str, bars: list[Row], shades: list[Row], box: list[Row], meanings: list[str]
) -> Any:
    """Return the box of a match, above it the bars of events, and above these their shades."""
    begin, end = span_of(altair, kind, [*bars, *box])
    order = list(dict.fromkeys(bar["lane"] for bar in bars))
    lanes = altair.Y("lane:N", title=None, sort=order, axis=altair.Axis(labelLimit=LABELS))
    colours = altair.Scale(domain=meanings, range=[FAINT, TEAL, PALE, AMBER][: len(meanings)])
    legend = altair.Legend(
        orient="bottom", columns=2, labelLimit=WIDTH // 2, symbolStrokeColor=TEAL, symbolOpacity=1
    )
    colour = altair.Color("what:N", title=None, legend=legend, scale=colours)
    tips = ["lane:N", "type:N", "id:N", "interval:N"]
    depth = altair.Opacity("density:Q", legend=None, scale=altair.Scale(domain=[0, 1], range=[0, 0.95]))
    return altair.layer(
        altair.Chart(inline(box)).mark_rect(opacity=0.4).encode(x=begin, x2=end, color=colour),
        altair.Chart(inline(bars))
        .mark_bar(stroke=TEAL, strokeWidth=1)
        .encode(x=begin, x2=end, y=lanes, color=colour, tooltip=tips),
        altair.Chart(inline(shades))
        .mark_bar(color=TEAL)
        .encode(x=begin, x2=end, y=lanes, opacity=depth, tooltip=["lane:N", "probability:Q"]),
    )
