"""Charts of matches and plans, for notebooks; they need the extra ``plot``, which is Altair.

Every function returns an Altair chart: a notebook shows it, and ``properties``, ``configure`` and the like
restyle it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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
from uncertain_cep.results.pictures import Pictures, pictures_of
from uncertain_cep.results.shown import percent
from uncertain_cep.timedomain import Names
from uncertain_cep.traces.frames import as_arrow, event_table, library_of

if TYPE_CHECKING:
    import altair as alt

__all__ = ["confidence", "counts", "plan", "timeline"]

TEAL: Final = "#0f6f78"
PALE: Final = "#d7ebec"
AMBER: Final = "#e8a860"

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
        For each match a lane for each event, with its interval as a bar. The shade says when it happened,
        given that the match did; the box behind the bars is the tight time range. Events that could come
        between and would spoil the match, for what a negation or the strategy forbids, are in another
        colour.

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
            "lane": lane, "what": what, "type": values[names.type], "id": values[names.id],
            "interval": interval, "begin": shown(begin), "end": shown(end + 1),
        }  # fmt: skip

    bars, shades = [], []
    for k in np.flatnonzero(pictures.match == n).tolist():
        row, variable = int(pictures.row[k]), pictures.variable[k]
        several = int(((pictures.match == n) & (np.array(pictures.variable) == variable)).sum()) > 1
        lane = f"{variable}[{pictures.position[k]}]" if several else variable
        bar = event(row, lane, "event")
        bars.append(bar)
        share = pictures.share[pictures.start[k] : pictures.start[k + 1]]
        edges = np.linspace(bar["begin"], bar["end"], len(share) + 1)
        shades += [
            {
                **bar,
                "begin": edges[part],
                "end": edges[part + 1],
                "probability": value,
                "density": value / top,
            }
            for top in [share.max(initial=0.0) or 1.0]
            for part, value in enumerate(share.tolist())
        ]
    spoiling = pictures.spoiling[pictures.spoiled == n].tolist()
    bars += [event(row, "in between", "could come between") for row in spoiling]
    low, high = (domain.ticks(matches.column(f"range_{side}"))[n] for side in ("lower", "upper"))
    box = [{"begin": shown(int(low)), "end": shown(int(high) + 1)}]
    title = f"match {n}"
    if "confidence" in matches.column_names:
        sure = percent(matches.column("confidence")[n].as_py())
        title += f", {sure}" if sure == "certain" else f", probability {sure}"
    begin, end = altair.X(f"begin:{kind}", title=None, scale=_axis(altair, kind)), altair.X2("end")
    lanes = altair.Y("lane:N", title=None, sort=list(dict.fromkeys(bar["lane"] for bar in bars)))
    colours = altair.Scale(domain=["event", "could come between"], range=[PALE, AMBER])
    legend = altair.Legend(orient="bottom") if len(pictures.spoiling) else None
    colour = altair.Color("what:N", title=None, legend=legend, scale=colours)
    depth = altair.Opacity("density:Q", legend=None, scale=altair.Scale(domain=[0, 1], range=[0, 0.95]))
    return altair.layer(
        altair.Chart(_inline(box)).mark_rect(color=PALE, opacity=0.4).encode(x=begin, x2=end),
        altair.Chart(_inline(bars))
        .mark_bar(stroke=TEAL, strokeWidth=1)
        .encode(x=begin, x2=end, y=lanes, color=colour, tooltip=["lane:N", "type:N", "id:N", "interval:N"]),
        altair.Chart(_inline(shades))
        .mark_bar(color=TEAL)
        .encode(x=begin, x2=end, y=lanes, opacity=depth, tooltip=["lane:N", "probability:Q"]),
    ).properties(width=WIDTH, title=title)


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
def counts(matches: Any, *, by: str | None = None, every: Duration | int | None = None) -> alt.Chart:
    """Return how many matches there are, by a column or by time, or both.

    Parameters
    ----------
    matches : frame
        What :func:`uncertain_cep.match` returned.
    by : str, optional
        A column, such as a partition attribute.
    every : str or timedelta, optional
        Length of a bucket of time, such as ``"5min"``; for times in ticks a number of them, such as ``100``.
        A match counts where the middle of its time range is.

    Returns
    -------
    altair.Chart
        The expected numbers, which are sums of confidences.

    Raises
    ------
    OptionError
        If there is no such column, or neither a column nor a length is given.
    RuntimeEnvironmentError
        If Altair is not installed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 4]})
    >>> chart = uc.plot.counts(uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 4"), by="a")
    """
    altair = _altair()
    table = as_arrow(matches)
    if by is None and every is None:
        raise OptionError('say what to count by: by="a column", every="5min", or both')
    _check_columns(table, "confidence", *([] if by is None else [by]))
    found = table.select(["confidence"])
    value = altair.Y("expected:Q", title="expected matches")
    if by is not None:
        found = found.append_column("group", table.column(by).cast(pa.string()))
    kind = "Q"
    if every is not None:
        _check_columns(table, "range_lower", "range_upper")
        buckets, length, kind = _buckets(table, every)
        found = found.append_column("begin", pa.array(buckets))
        found = found.append_column("end", pa.array([begin + length for begin in buckets]))
    keys = [name for name in ("group", "begin", "end") if name in found.column_names]
    summed = found.group_by(keys).aggregate([("confidence", "sum")])
    rows = summed.rename_columns([name.replace("confidence_sum", "expected") for name in summed.column_names])
    chart = altair.Chart(_inline(rows.to_pylist())).properties(width=WIDTH)
    colour = {} if by is None else {"color": altair.Color("group:N", title=by)}
    if every is None:
        group = altair.Y("group:N", title=by, sort="-x")
        return chart.mark_bar(color=TEAL).encode(x=altair.X("expected:Q", title="expected matches"), y=group)  # type: ignore[no-any-return]
    x = altair.X(f"begin:{kind}", title=None, scale=_axis(altair, kind))
    return chart.mark_bar(color=TEAL).encode(x=x, x2="end", y=value, **colour)  # type: ignore[no-any-return]


def _buckets(table: pa.Table, every: Duration | int) -> tuple[list[Any], float, str]:
    """Return where the bucket of each match begins and how long one is, ticks or ms, and the kind of axis."""
    times = [table.column(f"range_{side}") for side in ("lower", "upper")]
    lower, upper = (np.asarray(column.cast(pa.int64()).to_numpy()) for column in times)
    middle = lower + (upper - lower) // 2
    if not pa.types.is_timestamp(times[0].type):
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise OptionError(f"every={every!r}: the times are ticks, so give a number of them, such as 100")
        return (middle // every * every).tolist(), every, "Q"
    if isinstance(every, int):
        raise OptionError(f'every={every!r}: the times are timestamps, so name a unit, such as "5min"')
    text = duration_text(every, what="every")
    length, unit = parse_duration(str(text), what="every"), UNIT_NANOSECONDS[times[0].type.unit]
    if length % unit or not length:
        raise OptionError(
            f"every={every!r}: the times are kept in {times[0].type.unit}; give a multiple of one"
        )
    step = length // unit
    return (middle // step * step * (unit / 1e6)).tolist(), step * (unit / 1e6), "T"


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


def _axis(altair: Any, kind: str) -> Any:
    """Return the scale of an axis of time: of timestamps as they are, not in the reader's time zone."""
    return altair.Scale(type="utc") if kind == "T" else altair.Scale(zero=False)


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
