"""The parts of an answer that a report shows: facts about all matches, and everything about the best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.candidates.existence import existence
from uncertain_cep.config.limits import SHOWN_MATCHES, WEIGHED_GROUPS
from uncertain_cep.config.tolerances import CERTAIN
from uncertain_cep.errors import OptionError
from uncertain_cep.executor import execute_within
from uncertain_cep.explanation.facts import plan_facts
from uncertain_cep.explanation.nothing import conditions_that_leave_nothing
from uncertain_cep.explanation.text import explain_plan
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.query import Query
from uncertain_cep.reporting.calibrated import Calibration, calibration_of
from uncertain_cep.reporting.comparison import LIKELY, Comparison, compared, keys_of, stamps_of
from uncertain_cep.reporting.in_words import nothing_in_words
from uncertain_cep.reporting.lines_of_events import LinesOfEvents
from uncertain_cep.reporting.match_factors import Steps, steps_of_matches
from uncertain_cep.reporting.nearby import Nearby, nearby_events
from uncertain_cep.reporting.occurrences import (
    Bounds,
    Occurrences,
    bounds_by,
    bounds_of_matches,
    occurrences,
    plan_of_matches,
)
from uncertain_cep.reporting.round_lengths import bars_of_time
from uncertain_cep.reporting.sharing_groups import SharedEvents, sentences_of, shared_events
from uncertain_cep.reporting.true_answers import Truth, codes_of_keys
from uncertain_cep.results.order import finished
from uncertain_cep.results.pictures import Pictures, pictures_of

__all__ = [
    "BINS",
    "INVENTED_SHOWN",
    "PARTS",
    "TOP",
    "Answer",
    "Counted",
    "Group",
    "Kind",
    "Moments",
    "ReportRequest",
    "TraceFacts",
    "gathered",
    "groups_by_key",
    "report_plan",
    "totals_of",
]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

PARTS: Final = 24
"""Parts of an interval that are shaded by when the event happened."""

BINS: Final = 20
"""Bars of the histogram of confidences."""

TOP: Final = 12
"""Values of an attribute that are shown with their matches, and types of events."""

INVENTED_SHOWN: Final = 500
"""Most invented matches in the table."""


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """The request for a report."""

    query: Query
    options: MatchOptions
    stamp: str | None
    """The column of raw stamps, of the type of the times; null where there is none."""
    notes: Sequence[str] = ()
    """What else is assumed, such as how stamps became intervals."""
    title: str | None = None
    warnings: Sequence[str] = ()
    calibration: Calibration | None = None
    """How often the answers happened by true times, where these are known."""
    truth: Truth | None = None
    """The column of true times, or those of true begins and ends, by which to compute that."""


class Group(NamedTuple):
    """The matches with one value."""

    value: Any
    matches: int
    expected: float
    happened: Bounds | None = None
    """How likely there is a match with this value; None where that was not weighed."""
    by_time: Sequence[float] = ()
    """The expected matches in each bar of time; empty where there is one bar alone, or are many values."""


class Kind(NamedTuple):
    """The events of one type, and how many ticks are between the first and last possible one."""

    type: str
    events: int
    shortest: int
    middle: float
    longest: int


class Moments(NamedTuple):
    """The beginnings of matches, by equal parts of the time that they cover; times are ticks."""

    begin: int
    width: int
    matches: Int64
    expected: Float64


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """Facts about all events."""

    events: int
    certain: int
    """Those whose interval is one tick."""
    first: int
    """The first possible tick of any event; 0 without events."""
    kinds: Sequence[Kind]
    """The most frequent types."""
    listed: int
    """Events with probabilities of their own."""
    doubtful: int
    """Events that may not have happened."""
    named: int
    """Events that name a clock."""
    clocks: int
    stamped: int
    """Events that have a raw stamp; the others stand in the middle of their intervals beside these."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as a report shows it."""

    plan: EvaluationPlan
    explained: str
    totals: dict[str, float]
    histogram: list[int]
    moments: Moments | None
    groups: Sequence[tuple[str, int, Sequence[Group]]]
    """Names, how many values there are, and those with the most matches."""
    trace: TraceFacts
    table: pa.Table
    """Events, at least those that are drawn."""
    parts: Sequence[tuple[str, pa.Table, Pictures]]
    """``found``, the best matches, and if both answers were compared ``missed`` and ``invented``."""
    in_raw: list[bool] | None
    """Whether raw stamps give the matches shown, if both answers were compared."""
    raw: dict[str, int | None]
    """How many matches there are on raw stamps, and how many missed and invented ones."""
    nothing: str
    """Why there are no matches."""
    factors: Mapping[str, Sequence[Steps]] = field(default_factory=dict)
    """The factors of the confidences of the matches of parts."""
    occurrences: Occurrences | None = None
    """The groups of RETURN PROBABILITY; ``of_match`` is that of the matches shown."""
    sentences: Sequence[str] = ()
    """Of each of these, what would decide it."""
    shared: SharedEvents | None = None
    """The matches of another query in groups that share events."""
    nearby: Mapping[str, Sequence[Nearby]] = field(default_factory=dict)
    """The events around the first matches of parts."""
    calibration: Calibration | None = None
    """How often the answers happened by the column of true times."""
    lines: LinesOfEvents | None = None
    """The raw lines of the events of the first matches, where the files are there."""


def report_plan(request: ReportRequest, schema: pa.Schema) -> EvaluationPlan:
    """Return the plan of the matches of a query on events; OptionError if it returns expected counts."""
    if request.query.probability is not None:
        return plan_of_matches(request.query, schema, request.options)
    plan = make_plan(request.query, schema, request.options)
    if not plan.returns_matches:
        raise OptionError(
            f"a report shows matches, and the query returns {plan.rows_are}: ask for the matches"
        )
    return plan


def gathered(request: ReportRequest, table: pa.Table) -> Answer:
    """Match the events of a table, and return what a report shows of the answer."""
    options = replace(request.options, takes_spans=True)
    table = with_all_bounds(table, options.names.lower)
    plan = report_plan(replace(request, options=options), table.schema)
    names, domain = plan.names, plan.domain
    diagnostics = Diagnostics()
    matches = finished(plan, execute_within(plan, table, options, diagnostics))
    groups = None
    if request.query.probability is not None:
        groups = occurrences(request.query, plan, table, matches, options)
        is_kept = groups.of_match >= 0
        matches = matches.filter(pa.array(is_kept))
        groups = replace(groups, of_match=groups.of_match[is_kept])
    calibration = None
    if request.truth is not None:
        judged, answers = (plan, matches) if groups is None else (groups.plan, groups.rows)
        calibration = calibration_of(judged, table, answers, options, request.truth)
    begin, end = domain.ticks(table.column(names.lower)), domain.ticks(table.column(names.upper))
    stamps, has = stamps_of(plan, table, request.stamp)
    nothing = Comparison(None, frozenset())
    comparison = nothing if plan.lasting else compared(plan, table, options, stamps, has)
    confidence = np.asarray(matches.column("confidence").to_numpy())
    best = np.arange(len(confidence)) if plan.query.is_ordered else np.argsort(-confidence, kind="stable")
    best = best[:SHOWN_MATCHES]
    shown = matches.take(pa.array(best))
    if groups is not None:
        groups = replace(groups, of_match=groups.of_match[best])
    moments = _moments(plan, matches, confidence)
    parts = [("found", shown)]
    for name, rows in (("missed", comparison.missed), ("invented", comparison.invented)):
        if rows is not None:
            parts.append((name, rows.slice(0, 1 if name == "missed" else INVENTED_SHOWN)))
    drawn = [(name, rows, pictures_of(plan, table, rows, PARTS)) for name, rows in parts]
    return Answer(
        plan=plan,
        explained=explain_plan(plan_facts(plan, table, diagnostics)),
        totals=totals_of(
            len(confidence),
            float(confidence.sum()),
            int((confidence >= CERTAIN).sum()),
            int((confidence >= LIKELY).sum()),
        ),
        histogram=np.bincount(
            np.clip(np.floor(confidence * BINS), 0, BINS - 1).astype(np.int64), minlength=BINS
        ).tolist(),
        moments=moments,
        groups=_groups(plan, table, matches, options, moments, weighed=groups is None),
        trace=_trace_facts(plan, table, begin, end, int(has.sum())),
        table=table,
        parts=drawn,
        in_raw=None
        if comparison.raw is None
        else [key in comparison.keys for key in keys_of(plan, table, shown)],
        raw=_raw(comparison),
        nothing="" if matches.num_rows else _nothing(plan, table, options, diagnostics),
        factors={
            name: [*steps_of_matches(plan, table, rows, options)]
            for name, rows, _ in drawn
            if name != "invented"
        },
        occurrences=groups,
        sentences=() if groups is None else sentences_of(request.query, groups, table, options),
        shared=shared_events(plan, table, matches, best, options) if groups is None else None,
        nearby={
            name: nearby_events(plan, table, pictures, rows.num_rows)
            for name, rows, pictures in drawn
            if name != "invented"
        },
        calibration=calibration,
    )


def _nothing(plan: EvaluationPlan, table: pa.Table, options: MatchOptions, diagnostics: Diagnostics) -> str:
    return nothing_in_words(diagnostics.summary(), conditions_that_leave_nothing(plan, table, options))


def totals_of(matches: int, expected: float, certain: int, likely: int) -> dict[str, float]:
    """Return the numbers for the first line; certain matches are among the likely ones."""
    return {
        "matches": matches,
        "expected": expected,
        "certain": certain,
        "likely": likely - certain,
        "possible": matches - likely,
    }


def _moments(plan: EvaluationPlan, rows: pa.Table, confidence: Float64) -> Moments | None:
    if not rows.num_rows:
        return None
    middle = _middles(plan, rows)
    begin, width, count = bars_of_time(int(middle.min()), int(middle.max()), plan.domain.tick_nanoseconds)
    place = (middle - begin) // width
    matches = np.bincount(place, minlength=count)
    return Moments(begin, width, matches, np.bincount(place, confidence, minlength=count).astype(np.float64))


def _middles(plan: EvaluationPlan, rows: pa.Table) -> Int64:
    """Return the middles of the ranges of matches, (m,) ticks."""
    first, last = (plan.domain.ticks(rows.column(f"range_{side}")) for side in ("lower", "upper"))
    return first + (last - first) // 2


def grouped_by(plan: EvaluationPlan) -> list[str]:
    """Return the columns by which matches are counted: partition attributes, and texts that RETURN gives."""
    schema = plan.output_schema
    returned = [item.name for item in plan.bound.returns if item.name in schema.names]
    texts = [name for name in returned if pa.types.is_string(schema.field(name).type)]
    return list(dict.fromkeys((*plan.partition_attributes, *texts)))


class Counted(NamedTuple):
    """The matches of an answer by the values of a column."""

    distinct: int
    """How many values there are, null included."""
    not_null: int
    best: Callable[[], pa.Table]
    """Returns the ``TOP`` values with the most matches: ``value``, ``count``, ``confidence_sum`` and
    ``confidence_max``."""
    by_time: Callable[[Moments], pa.Table]
    """Returns the sums of confidences by value and bar of time: ``value``, ``bar`` and ``confidence_sum``."""


def groups_by_key(
    plan: EvaluationPlan,
    matches: int,
    moments: Moments | None,
    count_by: Callable[[str], Counted],
    bounds_by: Callable[[str, int, pa.Array], Sequence[Bounds] | None] | None,
) -> list[tuple[str, int, Sequence[Group]]]:
    """Return the values of columns with the most matches, and how likely each has a match at all.

    Parameters
    ----------
    plan : EvaluationPlan
    matches : int
        How many there are.
    moments : Moments, optional
        The bars of time.
    count_by : function of a column
    bounds_by : function of a column, the number of its values and some of these, optional
        Returns how likely these have a match, None where that is not known. Without it nothing is said.
    """
    groups: list[tuple[str, int, Sequence[Group]]] = []
    for name in grouped_by(plan) if matches else ():
        counted = count_by(name)
        # As many values as matches tell nothing.
        if not 1 < counted.not_null <= max(matches // 2, 1):
            continue
        best = counted.best()
        rows = best.to_pylist()
        happened: Sequence[Bounds | None] = [None] * len(rows)
        if bounds_by is not None:
            values = best.column("value").combine_chunks()
            happened = bounds_by(name, counted.distinct, values) or bounds_of_matches(plan, rows)
        by_time: Sequence[Sequence[float]] = [()] * len(rows)
        if moments is not None and len(moments.matches) > 1 and counted.distinct <= WEIGHED_GROUPS:
            by_time = _cells(best.column("value"), counted.by_time(moments), len(moments.matches))
        groups.append(
            (
                name,
                counted.distinct,
                [
                    Group(row["value"], row["count"], row["confidence_sum"], one, bars)
                    for row, one, bars in zip(rows, happened, by_time, strict=True)
                ],
            )
        )
    return groups


def _cells(values: pa.ChunkedArray, sums: pa.Table, bars: int) -> list[list[float]]:
    """Return the expected matches of each value in each bar of time."""
    codes = codes_of_keys((pa.table({"value": values}), sums.select(["value"])), ["value"])
    row = np.full(int(codes.max(initial=-1)) + 1, -1)
    row[codes[: len(values)]] = np.arange(len(values))
    row = row[codes[len(values) :]]
    bar, expected = (np.asarray(sums.column(name).to_numpy()) for name in ("bar", "confidence_sum"))
    cells = np.zeros((len(values), bars))
    cells[row[row >= 0], bar[row >= 0]] = expected[row >= 0]
    lists: list[list[float]] = cells.tolist()
    return lists


def _groups(
    plan: EvaluationPlan,
    table: pa.Table,
    matches: pa.Table,
    options: MatchOptions,
    moments: Moments | None,
    *,
    weighed: bool,
) -> list[tuple[str, int, Sequence[Group]]]:
    """Return the values of columns with the most matches; if weighed, how likely each has a match at all."""

    def count_by(name: str) -> Counted:
        column = matches.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        values = pa.table({"value": column, "confidence": matches.column("confidence")})
        each = values.group_by("value").aggregate(
            [([], "count_all"), ("confidence", "sum"), ("confidence", "max")]
        )
        each = each.rename_columns({"count_all": "count"})
        order = [("count", "descending"), ("value", "ascending")]
        null = each.column("value").null_count

        def by_time(bars: Moments) -> pa.Table:
            bar = (_middles(plan, matches) - bars.begin) // bars.width
            cells = values.append_column("bar", pa.array(bar)).group_by(["value", "bar"])
            return cells.aggregate([("confidence", "sum")])

        return Counted(
            each.num_rows, each.num_rows - null, lambda: each.sort_by(order).slice(0, TOP), by_time
        )

    def bounds(name: str, distinct: int, values: pa.Array) -> Sequence[Bounds] | None:
        return bounds_by(plan, table, matches, options, name, values) if distinct <= WEIGHED_GROUPS else None

    return groups_by_key(plan, matches.num_rows, moments, count_by, bounds if weighed else None)


def _trace_facts(plan: EvaluationPlan, table: pa.Table, begin: Int64, end: Int64, stamped: int) -> TraceFacts:
    names, lengths = plan.names, end - begin
    types = table.column(names.type).cast(pa.string())
    kinds = []
    counts = Counter(types.to_pylist())
    for kind, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:TOP]:
        lengths_of_kind = lengths[np.asarray(pc.equal(types, kind))]
        kinds.append(
            Kind(
                kind,
                count,
                int(lengths_of_kind.min()),
                float(np.median(lengths_of_kind)),
                int(lengths_of_kind.max()),
            )
        )
    name = plan.clock_names.source
    source = pa.nulls(0) if name is None else table.column(name)
    exists = existence(table, names.probability)
    return TraceFacts(
        events=table.num_rows,
        certain=int((lengths == 0).sum()),
        first=int(begin.min()) if len(begin) else 0,
        kinds=kinds,
        listed=table.num_rows - table.column(names.pmf).null_count if names.pmf in table.column_names else 0,
        doubtful=0 if exists is None else int((~exists.is_certain).sum()),
        named=len(source) - source.null_count,
        clocks=len(source.drop_null().unique()),
        stamped=stamped,
    )


def _raw(comparison: Comparison) -> dict[str, int | None]:
    if comparison.raw is None or comparison.missed is None or comparison.invented is None:
        return {"matches": None}
    return {
        "matches": comparison.raw.num_rows,
        "missed": comparison.missed.num_rows,
        "invented": comparison.invented.num_rows,
    }
