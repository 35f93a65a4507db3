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
from uncertain_cep.errors import OptionError
from uncertain_cep.plan import MatchOptions, make_plan
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.query import Query, query_of, values_of
from uncertain_cep.reporting.charts import (
    ORANGE,
    TEAL,
    WIDTH,
    altair_module,
    bars_of_groups,
    bars_of_time,
    inline,
    length_in_ticks,
    length_in_unit,
    points_of_shares,
    steps_of_factors,
)
from uncertain_cep.reporting.gathered import PARTS
from uncertain_cep.reporting.match_lanes import lanes_of_match
from uncertain_cep.results.match_times import first_times_by_bucket
from uncertain_cep.results.pictures import pictures_of
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.durations import Duration
from uncertain_cep.traces.frames import as_arrow, event_table, library_of

if TYPE_CHECKING:
    import altair as alt

    from uncertain_cep.reporting.calibrated import Calibration
    from uncertain_cep.reporting.why import Why

__all__ = ["calibration", "confidence", "counts", "plan", "timeline", "why"]

BINS: Final = 20
"""Bars of the histogram of confidences."""


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
        For each match its lanes as the page of :func:`uncertain_cep.report` draws them, in the same colours:
        by host or key a row for each event, with its variable, type and id, and its interval as a frame. It
        is filled as high as a time is likely, given that the match happened; the box behind is the tight time
        range. Events that could spoil the match, for what a negation or the strategy
        forbids, are orange. A legend says so. An event that lasts is a bar with slopes, on which it begins
        and ends; frames of moments are empty where others last.

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
    altair = altair_module()
    if "pyspark" in (library_of(matches), library_of(events)):
        raise OptionError("timeline draws frames in this process: collect some matches and their events")
    model = Names.of(names)
    table = with_all_bounds(event_table(events, model), model.lower)
    parsed = query_of(query, values_of(parameters))
    options = MatchOptions(names=model, tick=tick, sources=sources, takes_spans=True)
    bound = make_plan(parsed, table.schema, options)
    chosen = as_arrow(matches).slice(0, most)
    _check_columns(chosen, "range_lower", "range_upper")
    pictures = pictures_of(bound, table, chosen, PARTS)
    drawn = [lanes_of_match(altair, bound, table, chosen, pictures, n) for n in range(chosen.num_rows)]
    return altair.vconcat(*drawn)  # type: ignore[no-any-return]


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
    altair = altair_module()
    table = as_arrow(matches)
    _check_columns(table, "confidence")
    values = np.clip(np.asarray(table.column("confidence").to_numpy()), 0.0, 1.0)
    counted = np.histogram(values, bins=BINS, range=(0.0, 1.0))[0]
    bars = [{"from": k / BINS, "to": (k + 1) / BINS, "matches": n} for k, n in enumerate(counted.tolist())]
    return (  # type: ignore[no-any-return]
        altair.Chart(inline(bars))
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
    altair = altair_module()
    if by is None and every is None:
        raise OptionError('say what to count by: by="a column", every="5min", or both')
    if (events is None) != (query is None):
        raise OptionError("give the events and the query that they were matched with, or none of both")
    if "pyspark" in (library_of(matches), library_of(events)):
        raise OptionError("counts draws frames in this process: let Spark return the expected counts")
    table = as_arrow(matches)
    value = "expected_count" if "expected_count" in table.column_names else "confidence"
    _check_columns(table, value, *([] if by is None else [by]))
    rows = pa.table({"expected": table.column(value)})
    if by is not None:
        rows = rows.append_column("group", table.column(by).cast(pa.string()))
    if every is None:
        return bars_of_groups(altair, rows, str(by))  # type: ignore[no-any-return]
    quantity = "expected"
    if value == "expected_count":
        _check_columns(table, "bucket")
        times, length = table.column("bucket"), length_in_unit(table.column("bucket").type, every)
    elif query is None:
        _check_columns(table, "range_lower")
        quantity = "earliest"
        times, length = table.column("range_lower"), length_in_unit(table.column("range_lower").type, every)
    else:
        parsed, model = query_of(query, values_of(parameters)), Names.of(names)
        events_read = with_all_bounds(event_table(events, model), model.lower)
        options = MatchOptions(names=model, tick=tick, sources=sources, takes_spans=True)
        bound = make_plan(parsed, events_read.schema, options)
        length = length_in_unit(bound.domain.arrow_type, every)
        shares = first_times_by_bucket(
            bound, events_read, table, length_in_ticks(bound.domain, length, every)
        )
        rows = rows.take(pa.array(shares.match)).set_column(0, "expected", pa.array(shares.expected))
        times = bound.domain.times(shares.bucket)
    return bars_of_time(altair, rows, times, length, by, quantity)  # type: ignore[no-any-return]


@public
def calibration(result: Calibration) -> alt.LayerChart:
    """Return how often answers happened, by the probability that was said of them.

    Parameters
    ----------
    result : Calibration
        That of :func:`uncertain_cep.calibration`.

    Returns
    -------
    altair.LayerChart
        A point for each bin, as large as it has many answers, with one standard error up and down. On the
        dashed line as many happened as was said.

    Raises
    ------
    OptionError
        If it is something else.
    RuntimeEnvironmentError
        If Altair is not installed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> result = uc.calibration(pa.table({"confidence": [0.25, 0.75]}), [False, True])
    >>> chart = uc.plot.calibration(result)
    """
    altair = altair_module()
    bins = getattr(result, "bins", None)
    if bins is None or not hasattr(result, "brier"):
        raise OptionError("calibration draws what uc.calibration returned")
    return points_of_shares(altair, as_arrow(bins))  # type: ignore[no-any-return]


@public
def why(result: Why) -> alt.LayerChart:
    """Return the factors of a confidence as a waterfall.

    Parameters
    ----------
    result : Why
        That of :func:`uncertain_cep.why`.

    Returns
    -------
    altair.LayerChart
        A bar for each factor, as long as all up to it is likely; the pale part is what it takes off.

    Raises
    ------
    OptionError
        If it is something else.
    RuntimeEnvironmentError
        If Altair is not installed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 6]})
    >>> query = "PATTERN SEQ(A a, B b) WITHIN 4"
    >>> chart = uc.plot.why(uc.why(uc.match(events, query), events, query))
    """
    altair = altair_module()
    factors = getattr(result, "factors", None)
    if not isinstance(factors, tuple):
        raise OptionError("why draws what uc.why returned")
    return steps_of_factors(altair, factors)  # type: ignore[no-any-return]


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
    altair = altair_module()
    facts = json.loads(explain(query, events, analyze=analyze, format="json", **options))
    rows = [
        row for number, part in enumerate(facts.get("branches", [facts]), 1) for row in _steps(part, number)
    ]
    size = altair.Scale(type="symlog")
    step = altair.Y("step:N", title=None, sort=None)
    base = altair.Chart(inline(rows))
    tips = ["step:N", "expected:Q", "actual:Q"]
    expected = base.mark_bar(color=TEAL, opacity=0.75).encode(
        x=altair.X("expected:Q", title="partial matches", scale=size), y=step, tooltip=tips
    )
    actual = (
        base.transform_filter("datum.actual != null")
        .mark_tick(color=ORANGE, thickness=4)
        .encode(x="actual:Q", y=step, tooltip=tips)
    )
    return altair.layer(expected, actual).properties(width=WIDTH)  # type: ignore[no-any-return]


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


def _check_columns(table: pa.Table, *names: str) -> None:
    for name in names:
        if name not in table.column_names:
            raise OptionError(f"the matches have no column {name}: they have {', '.join(table.column_names)}")
