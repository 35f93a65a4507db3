"""Parts of charts: axes of time, and bars that count matches."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.errors import OptionError
from uncertain_cep.running.installation import needed
from uncertain_cep.timeline.domain import TimeDomain, as_int64
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS, Duration, duration_text, parse_duration

__all__ = [
    "GREY",
    "ORANGE",
    "PALE",
    "PEACH",
    "TEAL",
    "WIDTH",
    "altair_module",
    "bars_of_groups",
    "bars_of_time",
    "inline",
    "length_in_ticks",
    "length_in_unit",
    "points_of_shares",
    "span_of",
    "steps_of_factors",
]

TEAL: Final = "#0f6f78"
PALE: Final = "#d7ebec"
ORANGE: Final = "#c96a10"
PEACH: Final = "#fbe6cf"
GREY: Final = "#5b6572"
"""Colours of pages: in page.css ``--accent``, ``--wash``, ``--spoil``, ``--spoil-wash`` and ``--soft``."""

WIDTH: Final = 560

_FORMATS: Final = (
    (5_000, "%H:%M:%S.%L"),
    (600_000, "%H:%M:%S"),
    (86_400_000, "%H:%M"),
    (30 * 86_400_000, "%m-%d %H:%M"),
)
"""Longest spans of an axis, in milliseconds, and how its labels are written."""


def bars_of_groups(altair: Any, matches: pa.Table, by: str) -> Any:
    """Return a bar for each value of the column ``group``, the longest first."""
    rows = matches.group_by("group").aggregate([("expected", "sum")]).rename_columns(["group", "expected"])
    return (
        altair.Chart(inline(rows.to_pylist()))
        .mark_bar(color=TEAL)
        .encode(
            x=altair.X("expected:Q", title="expected matches"), y=altair.Y("group:N", title=by, sort="-x")
        )
        .properties(width=WIDTH)
    )


def bars_of_time(
    altair: Any, matches: pa.Table, times: Any, length: int, by: str | None, quantity: str
) -> Any:
    """Return upright bars, those of one bucket on top of each other; lengths are in units of the times."""
    kind, scale = (
        ("T", UNIT_NANOSECONDS[times.type.unit] / 1e6) if pa.types.is_timestamp(times.type) else ("Q", 1)
    )
    matches = matches.append_column("begin", pa.array(as_int64(times) // length * length))
    keys = ["begin", *([] if by is None else ["group"])]
    summed = matches.group_by(keys).aggregate([("expected", "sum")])
    summed = summed.sort_by([(key, "ascending") for key in keys])
    rows, tops = [], Counter[int]()
    for row in summed.to_pylist():
        begin, expected = row["begin"], row.pop("expected_sum")
        bottom = tops[begin]
        tops[begin] += expected
        ends = {"begin": begin * scale, "end": (begin + length) * scale}
        rows.append({**row, **ends, "bottom": bottom, "top": tops[begin], "expected": expected})
    begin, end = span_of(
        altair, kind, rows, None if quantity == "expected" else "earliest possible beginning"
    )
    colour = {} if by is None else {"color": altair.Color("group:N", title=by)}
    return (
        altair.Chart(inline(rows))
        .mark_rect(color=TEAL, stroke="white", strokeWidth=1)
        .encode(
            x=begin, x2=end, y=altair.Y("bottom:Q", title="expected matches", scale=altair.Scale(zero=True)),
            y2="top", tooltip=["expected:Q", *([] if by is None else ["group:N"])], **colour,
        )
        .properties(width=WIDTH)
    )  # fmt: skip


def points_of_shares(altair: Any, bins: pa.Table) -> Any:
    """Return the shares of answers that happened, by what was said of them."""
    rows = [
        {**row, "low": row["happened"] - row["std_error"], "high": row["happened"] + row["std_error"]}
        for row in bins.to_pylist()
    ]
    axis, whole = altair.Axis(format="%"), altair.Scale(domain=[0, 1], clamp=True)
    x = altair.X("said:Q", title="probability that was said", axis=axis, scale=whole)
    happened = altair.Y("happened:Q", title="share that happened", axis=axis, scale=whole)
    tips = ["lower:Q", "upper:Q", "answers:Q", "said:Q", "happened:Q", "std_error:Q"]
    agreed = altair.Chart(inline([{"said": end, "happened": end} for end in (0, 1)]))
    base = altair.Chart(inline(rows))
    size = altair.Size("answers:Q", title="answers", scale=altair.Scale(range=[30, 400]))
    points = altair.layer(
        agreed.mark_line(color=GREY, strokeDash=[4, 4]).encode(x=x, y=happened),
        base.mark_rule(color=TEAL).encode(x=x, y=altair.Y("low:Q", scale=whole), y2="high:Q"),
        base.mark_circle(color=TEAL, opacity=1).encode(x=x, y=happened, size=size, tooltip=tips),
    )
    return points.properties(width=WIDTH * 3 // 4, height=WIDTH * 3 // 4)


def steps_of_factors(altair: Any, factors: Sequence[Any]) -> Any:
    """Return a bar for each factor, from the probability before it to that with it."""
    rows, before = [], 1.0
    for factor in factors:
        rows.append(
            {
                "what": factor.what,
                "before": before,
                "product": factor.product,
                "probability": factor.probability,
            }
        )
        before = factor.product
    order = [row["what"] for row in rows]
    y = altair.Y("what:N", title=None, sort=order, axis=altair.Axis(labelLimit=WIDTH // 2))
    axis, whole = altair.Axis(format="%"), altair.Scale(domain=[0, 1])
    tips = [
        "what:N",
        altair.Tooltip("probability:Q", format=".1%"),
        altair.Tooltip("product:Q", format=".1%"),
    ]
    base = altair.Chart(inline(rows))
    x = altair.X("product:Q", title="probability that all up to here holds", axis=axis, scale=whole)
    kept = base.mark_bar(color=TEAL).encode(x=x, y=y, tooltip=tips)
    lost = base.mark_bar(color=TEAL, opacity=0.3).encode(
        x=altair.X("product:Q", scale=whole), x2="before:Q", y=y, tooltip=tips
    )
    return altair.layer(kept, lost).properties(width=WIDTH)


def length_in_unit(kind: pa.DataType, every: Duration | int) -> int:
    """Return a length in the unit of times of some type."""
    if not pa.types.is_timestamp(kind):
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise OptionError(f"every={every!r}: the times are ticks, so give a number of them, such as 100")
        return every
    if isinstance(every, int):
        raise OptionError(f'every={every!r}: the times are timestamps, so name a unit, such as "5min"')
    text = duration_text(every, what="every")
    length, unit = parse_duration(str(text), what="every"), UNIT_NANOSECONDS[kind.unit]
    if length % unit or not length:
        raise OptionError(f"every={every!r}: the times are kept in {kind.unit}; give a multiple of one")
    return length // unit


def length_in_ticks(domain: TimeDomain, length: int, every: Duration | int) -> int:
    """Return a length, which is in the unit of results, in ticks."""
    if not pa.types.is_timestamp(domain.arrow_type):
        return length
    nanoseconds, tick = length * UNIT_NANOSECONDS[domain.arrow_type.unit], domain.tick_nanoseconds or 1
    if nanoseconds % tick:
        raise OptionError(f"every={every!r} is no multiple of the tick, {domain.describe()}")
    return nanoseconds // tick


def span_of(altair: Any, kind: str, drawn: list[dict[str, Any]], title: str | None = None) -> tuple[Any, Any]:
    """Return the channels of what begins and ends, with an axis that tells those drawn apart.

    Timestamps are shown as they are, not in the reader's time zone.
    """
    low = min((row["begin"] for row in drawn), default=0)
    high = max((row["end"] for row in drawn), default=0)
    if kind == "Q":
        scale, axis = altair.Scale(zero=False, domain=[low, high]), altair.Axis(labelOverlap="greedy")
    else:
        form = next((form for length, form in _FORMATS if high - low <= length), "%Y-%m-%d")
        scale = altair.Scale(type="utc", domain=[low, high])
        axis = altair.Axis(format=form, labelOverlap="greedy", tickCount=6)
        day = dt.datetime.fromtimestamp(low / 1000, dt.UTC).date().isoformat()
        title = ", ".join(filter(None, [title, f"from {day}" if "%d" in form else f"{day}"]))
    return altair.X(f"begin:{kind}", title=title, scale=scale, axis=axis), altair.X2("end")


def altair_module() -> Any:
    """Return Altair; a RuntimeEnvironmentError says what to install."""
    needed("plot")
    import altair as alt

    return alt


def inline(rows: list[dict[str, Any]]) -> Any:
    """Return rows as data of a chart, which need no other library and no limit on their number."""
    return altair_module().Data(values=rows)
