"""Charts of matches and plans, for notebooks; they need the extra ``plot``, which is Altair.

Every function returns an Altair chart: a notebook shows it, and ``properties``, ``configure`` and the like
restyle it.
"""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from uncertain_cep.api import explain
from uncertain_cep.boundary import public
from uncertain_cep.durations import UNIT_NANOSECONDS, Duration, duration_text, parse_duration
from uncertain_cep.errors import OptionError
from uncertain_cep.installed import needed
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.query import Query, query_of, values_of
from uncertain_cep.results.match_times import first_times_by_bucket
from uncertain_cep.results.pictures import Pictures, pictures_of
from uncertain_cep.results.shown import percent
from uncertain_cep.timedomain import Names, TimeDomain, as_int64
from uncertain_cep.traces.frames import as_arrow, event_table, library_of

if TYPE_CHECKING:
    import altair as alt

__all__ = ["confidence", "counts", "plan", "timeline"]

Row = dict[str, Any]

TEAL: Final = "#0f6f78"
PALE: Final = "#d7ebec"
AMBER: Final = "#e8a860"

FAINT: Final = "#eef5f5"

EVENT: Final = "when an event can have happened"
LIKELY_TIME: Final = "the fuller, the likelier, given the match"
RANGE: Final = "the match can only have happened here"
SPOILER: Final = "could come between and spoil the match"

_FORMATS: Final = (
    (5_000, "%H:%M:%S.%L"),
    (600_000, "%H:%M:%S"),
    (86_400_000, "%H:%M"),
    (30 * 86_400_000, "%m-%d %H:%M"),
)
"""Longest spans of an axis, in milliseconds, and how its labels are written."""

LABELS: Final = 220
"""Most pixels of the name of a lane."""

PARTS: Final = 32
"""Parts of an interval that are shaded by when the event happened."""

BINS: Final = 20
"""Bars of the histogram of confidences."""

WIDTH: Final = 560


@public
def timeline(
    matches: Any,
    events: Any,
    query: Query | str,
    *,
    most: int = 5,
    names: Names | Mapping[str, str] | None = None,
    tick: Duration | None = None,
    parameters: Mapping[str, Any] | None = None,
    sources: bool = True,
) -> alt.VConcatChart:
    """Return the events of some matches, on a time line each.

    Parameters
    ----------
    matches, events, query, names, tick, parameters, sources
        As for :func:`uncertain_cep.posteriors`.
    most : int
        How many matches to draw: the first ones.

    Returns
    -------
    altair.VConcatChart
        For each match a lane for each event, with its variable, type and id, and its interval as a bar. The
        shade says when it happened, given that the match did; the box behind the bars is the tight time
        range. Events that could come between and would spoil the match, for what a negation or the strategy
        forbids, are in another colour. A legend says so.

    Raises
    ------
    OptionError
        If the frames are not those of matches of the query and of its events.
    RuntimeEnvironmentError
        If Altair is not installed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 4]})
    >>> query = "PATTERN SEQ(A a, B b) WITHIN 4"
    >>> chart = uc.plot.timeline(uc.match(events, query), events, query)
    """
    altair = _altair()
    if "pyspark" in (library_of(matches), library_of(events)):
        raise OptionError("timeline draws frames in this process: collect some matches and their events")
    model = Names.of(names)
    table = event_table(events, model)
    parsed = query_of(query, values_of(parameters))
    bound = make_plan(parsed, table.schema, MatchOptions(names=model, tick=tick, sources=sources))
    chosen = as_arrow(matches).slice(0, most)
    _check_columns(chosen, "range_lower", "range_upper")
    pictures = pictures_of(bound, table, chosen, PARTS)
    kind = "Q" if bound.domain.unit == "tick" else "T"
    drawn = [_drawn(altair, bound, table, chosen, pictures, n, kind) for n in range(chosen.num_rows)]
    return altair.vconcat(*drawn)  # type: ignore[no-any-return]


def _drawn(
    altair: Any,
    bound: EvaluationPlan,
    table: pa.Table,
    matches: pa.Table,
    pictures: Pictures,
    n: int,
    kind: str,
) -> Any:
    """Return the chart of one match."""
    domain, names = bound.domain, bound.names

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
    spoiling = pictures.spoiling[pictures.spoiled == n].tolist()
    bars += [event(row, "in between", SPOILER) for row in spoiling]
    low, high = (domain.ticks(matches.column(f"range_{side}"))[n] for side in ("lower", "upper"))
    box = [{"begin": shown(int(low)), "end": shown(int(high) + 1), "what": RANGE}]
    title = f"match {n}"
    if "confidence" in matches.column_names:
        sure = percent(matches.column("confidence")[n].as_py())
        title += f", {sure}" if sure == "certain" else f", probability {sure}"
    layers = _layers(altair, kind, bars, shades, box, spoils=len(pictures.spoiling) > 0)
    return layers.properties(width=WIDTH, title=title)


def _layers(
    altair: Any, kind: str, bars: list[Row], shades: list[Row], box: list[Row], *, spoils: bool
) -> Any:
    """Return the box of a match, above it the bars of events, and above these their shades."""
    begin, end = _span(altair, kind, [*bars, *box])
    order = list(dict.fromkeys(bar["lane"] for bar in bars))
    lanes = altair.Y("lane:N", title=None, sort=order, axis=altair.Axis(labelLimit=LABELS))
    meanings = [EVENT, LIKELY_TIME, RANGE, *([SPOILER] if spoils else [])]
    colours = altair.Scale(domain=meanings, range=[FAINT, TEAL, PALE, AMBER][: len(meanings)])
    legend = altair.Legend(
        orient="bottom", columns=2, labelLimit=WIDTH // 2, symbolStrokeColor=TEAL, symbolOpacity=1
    )
    colour = altair.Color("what:N", title=None, legend=legend, scale=colours)
    tips = ["lane:N", "type:N", "id:N", "interval:N"]
    depth = altair.Opacity("density:Q", legend=None, scale=altair.Scale(domain=[0, 1], range=[0, 0.95]))
    return altair.layer(
        altair.Chart(_inline(box)).mark_rect(opacity=0.4).encode(x=begin, x2=end, color=colour),
        altair.Chart(_inline(bars))
        .mark_bar(stroke=TEAL, strokeWidth=1)
        .encode(x=begin, x2=end, y=lanes, color=colour, tooltip=tips),
        altair.Chart(_inline(shades))
        .mark_bar(color=TEAL)
        .encode(x=begin, x2=end, y=lanes, opacity=depth, tooltip=["lane:N", "probability:Q"]),
    )


@public
def confidence(matches: Any) -> alt.Chart:
    """Return how sure matches are: a histogram of their confidences.

    Parameters
    ----------
    matches : frame
        What :func:`uncertain_cep.match` returned.

    Raises
    ------
    OptionError
        If there is no column ``confidence``.
    RuntimeEnvironmentError
        If Altair is not installed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 4]})
    >>> chart = uc.plot.confidence(uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 4"))
    """
    altair = _altair()
    table = as_arrow(matches)
    _check_columns(table, "confidence")
    values = np.clip(np.asarray(table.column("confidence").to_numpy()), 0.0, 1.0)
    counted = np.histogram(values, bins=BINS, range=(0.0, 1.0))[0]
    bars = [{"from": k / BINS, "to": (k + 1) / BINS, "matches": n} for k, n in enumerate(counted.tolist())]
    return (  # type: ignore[no-any-return]
        altair.Chart(_inline(bars))
        .mark_bar(color=TEAL, binSpacing=1)
        .encode(
            x=altair.X("from:Q", title="probability", bin="binned", axis=altair.Axis(format="%")),
            x2="to",
            y=altair.Y("matches:Q"),
            tooltip=["matches:Q"],
        )
        .properties(width=WIDTH)
    )


@public
def counts(
    matches: Any,
    events: Any = None,
    query: Query | str | None = None,
    *,
    by: str | None = None,
    every: Duration | int | None = None,
    names: Names | Mapping[str, str] | None = None,
    tick: Duration | None = None,
    parameters: Mapping[str, Any] | None = None,
    sources: bool = True,
) -> alt.Chart:
    """Return how many matches are expected, by a column or by time, or both.

    Parameters
    ----------
    matches : frame
        What :func:`uncertain_cep.match` returned: matches, or expected counts with their buckets.
    events, query, names, tick, parameters, sources
        As for :func:`uncertain_cep.posteriors`. With them a match counts in each bucket by the probability
        that it began there, as in ``RETURN EXPECTED COUNT EVERY``. Without them it counts where it can have
        begun at the earliest, and the axis says so.
    by : str, optional
        A column, such as a partition attribute.
    every : str or timedelta or int, optional
        Length of a bucket of time, such as ``"5min"``; for times in ticks a number of them, such as ``100``.

    Returns
    -------
    altair.Chart
        The expected numbers, which are sums of confidences.

    Raises
    ------
    OptionError
        If there is no such column, neither a column nor a length is given, only one of events and query is,
        or any of several events of an AND can be the first one: then draw the expected counts.
    RuntimeEnvironmentError
        If Altair is not installed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 4]})
    >>> query = "PATTERN SEQ(A a, B b) WITHIN 4"
    >>> chart = uc.plot.counts(uc.match(events, query), events, query, every=2)
    """
    altair = _altair()
    if by is None and every is None:
        raise OptionError('say what to count by: by="a column", every="5min", or both')
    if (events is None) != (query is None):
        raise OptionError("give the events and the query that they were matched with, or none of both")
    if "pyspark" in (library_of(matches), library_of(events)):
        raise OptionError("counts draws frames in this process: let Spark return the expected counts")
    table = as_arrow(matches)
    value = "expected_count" if "expected_count" in table.column_names else "confidence"
    _check_columns(table, value, *([] if by is None else [by]))
    found = pa.table({"expected": table.column(value)})
    if by is not None:
        found = found.append_column("group", table.column(by).cast(pa.string()))
    if every is None:
        return _bars_of_groups(altair, found, str(by))  # type: ignore[no-any-return]
    asked = "expected"
    if value == "expected_count":
        _check_columns(table, "bucket")
        times, length = table.column("bucket"), _length(table.column("bucket").type, every)
    elif query is None:
        _check_columns(table, "range_lower")
        asked = "earliest"
        times, length = table.column("range_lower"), _length(table.column("range_lower").type, every)
    else:
        parsed, model = query_of(query, values_of(parameters)), Names.of(names)
        given = event_table(events, model)
        bound = make_plan(parsed, given.schema, MatchOptions(names=model, tick=tick, sources=sources))
        length = _length(bound.domain.arrow_type, every)
        shares = first_times_by_bucket(bound, given, table, _in_ticks(bound.domain, length, every))
        found = found.take(pa.array(shares.match)).set_column(0, "expected", pa.array(shares.expected))
        times = bound.domain.times(shares.bucket)
    return _bars_of_time(altair, found, times, length, by, asked)  # type: ignore[no-any-return]


def _bars_of_groups(altair: Any, found: pa.Table, by: str) -> Any:
    rows = found.group_by("group").aggregate([("expected", "sum")]).rename_columns(["group", "expected"])
    return (
        altair.Chart(_inline(rows.to_pylist()))
        .mark_bar(color=TEAL)
        .encode(
            x=altair.X("expected:Q", title="expected matches"), y=altair.Y("group:N", title=by, sort="-x")
        )
        .properties(width=WIDTH)
    )


def _bars_of_time(altair: Any, found: pa.Table, times: Any, length: int, by: str | None, asked: str) -> Any:
    """Return upright bars, those of one bucket on top of each other; lengths are in units of the times."""
    kind, scale = (
        ("T", UNIT_NANOSECONDS[times.type.unit] / 1e6) if pa.types.is_timestamp(times.type) else ("Q", 1)
    )
    found = found.append_column("begin", pa.array(as_int64(times) // length * length))
    keys = ["begin", *([] if by is None else ["group"])]
    summed = found.group_by(keys).aggregate([("expected", "sum")])
    summed = summed.sort_by([(key, "ascending") for key in keys])
    rows, tops = [], Counter[int]()
    for row in summed.to_pylist():
        begin, expected = row["begin"], row.pop("expected_sum")
        bottom = tops[begin]
        tops[begin] += expected
        ends = {"begin": begin * scale, "end": (begin + length) * scale}
        rows.append({**row, **ends, "bottom": bottom, "top": tops[begin], "expected": expected})
    begin, end = _span(altair, kind, rows, None if asked == "expected" else "earliest possible beginning")
    colour = {} if by is None else {"color": altair.Color("group:N", title=by)}
    return (
        altair.Chart(_inline(rows))
        .mark_rect(color=TEAL, stroke="white", strokeWidth=1)
        .encode(
            x=begin, x2=end, y=altair.Y("bottom:Q", title="expected matches", scale=altair.Scale(zero=True)),
            y2="top", tooltip=["expected:Q", *([] if by is None else ["group:N"])], **colour,
        )
        .properties(width=WIDTH)
    )  # fmt: skip


def _length(kind: pa.DataType, every: Duration | int) -> int:
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


def _in_ticks(domain: TimeDomain, length: int, every: Duration | int) -> int:
    """Return a length, which is in the unit of results, in ticks."""
    if not pa.types.is_timestamp(domain.arrow_type):
        return length
    nanoseconds, tick = length * UNIT_NANOSECONDS[domain.arrow_type.unit], domain.tick_nanoseconds or 1
    if nanoseconds % tick:
        raise OptionError(f"every={every!r} is no multiple of the tick, {domain.describe()}")
    return nanoseconds // tick


@public
def plan(query: Query | str, events: Any, *, analyze: bool = False, **options: Any) -> alt.Chart:
    """Return how the events of a query are put together: the partial matches of each step.

    Parameters
    ----------
    query, events
        As for :func:`uncertain_cep.explain`.
    analyze : bool
        Whether to find the matches, and show actual numbers beside the expected ones.
    options
        Further ones of :func:`uncertain_cep.explain`.

    Returns
    -------
    altair.Chart
        A bar for each step, as long as the number of partial matches that it is expected to have; with
        ``analyze`` a mark at the number that it had. Where no steps are planned, the candidates of each
        variable.

    Raises
    ------
    RuntimeEnvironmentError
        If Altair is not installed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 4]})
    >>> chart = uc.plot.plan("PATTERN SEQ(A a, B b) WITHIN 4", events)
    """
    altair = _altair()
    facts = json.loads(explain(query, events, analyze=analyze, format="json", **options))
    rows = [
        row for number, part in enumerate(facts.get("branches", [facts]), 1) for row in _steps(part, number)
    ]
    size = altair.Scale(type="symlog")
    step = altair.Y("step:N", title=None, sort=None)
    base = altair.Chart(_inline(rows))
    tips = ["step:N", "expected:Q", "actual:Q"]
    expected = base.mark_bar(color=TEAL, opacity=0.75).encode(
        x=altair.X("expected:Q", title="partial matches", scale=size), y=step, tooltip=tips
    )
    actual = (
        base.transform_filter("datum.actual != null")
        .mark_tick(color=AMBER, thickness=4)
        .encode(x="actual:Q", y=step, tooltip=tips)
    )
    return altair.layer(expected, actual).properties(width=WIDTH)  # type: ignore[no-any-return]


def _span(altair: Any, kind: str, drawn: list[dict[str, Any]], title: str | None = None) -> tuple[Any, Any]:
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


def _steps(part: dict[str, Any], branch: int) -> Iterator[dict[str, Any]]:
    """Yield the steps of an OR-free plan, those that come first in front."""
    choice = part.get("choice") or {}

    def row(name: str, node: Mapping[str, Any]) -> dict[str, Any]:
        return {"branch": branch, "step": name, "expected": node["estimated"], "actual": node.get("actual")}

    def tree(node: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        for child in node.get("children", ()):
            yield from tree(child)
        yield row(" ".join(node["components"]), node)

    if choice.get("tree"):
        yield from tree(choice["tree"])
    elif choice.get("passes"):
        for each in choice["passes"]:
            for size, node in enumerate(each["nodes"], 1):
                yield row(f"from {each['order'][0]}: {' '.join(each['order'][:size])}", node)
    else:
        for component in part["components"]:
            yield row(component["variable"], {"estimated": component.get("candidates")})


def _altair() -> Any:
    needed("plot")
    import altair as alt

    return alt


def _check_columns(table: pa.Table, *names: str) -> None:
    for name in names:
        if name not in table.column_names:
            raise OptionError(f"the matches have no column {name}: they have {', '.join(table.column_names)}")


def _inline(rows: list[dict[str, Any]]) -> Any:
    """Return rows as data of a chart, which need no other library and no limit on their number."""
    return _altair().Data(values=rows)
