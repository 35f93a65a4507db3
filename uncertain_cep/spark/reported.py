"""Gathers a report on Spark, which adds up the whole answer and hands over the best matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import and_
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from confidence.flat_lists import starts_of
from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.config.limits import COMPARED_MATCHES, SHOWN_MATCHES, WEIGHED_GROUPS
from uncertain_cep.config.tolerances import CERTAIN
from uncertain_cep.errors import OptionError, QueryError
from uncertain_cep.explanation.facts import plan_facts
from uncertain_cep.explanation.text import explain_plan
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query import Query
from uncertain_cep.reporting.comparison import LIKELY, at_stamps, stamps_of, unchosen
from uncertain_cep.reporting.gathered import (
    BINS,
    INVENTED_SHOWN,
    PARTS,
    TOP,
    Answer,
    Counted,
    Group,
    Kind,
    Moments,
    ReportRequest,
    TraceFacts,
    groups_by_key,
    report_plan,
    totals_of,
)
from uncertain_cep.reporting.in_words import nothing_in_words
from uncertain_cep.reporting.match_factors import steps_of_matches
from uncertain_cep.reporting.nearby import SPOILING_SHOWN
from uncertain_cep.reporting.occurrences import Bounds, bounds_of_values, query_by
from uncertain_cep.reporting.round_lengths import bars_of_time
from uncertain_cep.results.matched_events import OWN_COLUMNS
from uncertain_cep.results.pictures import Pictures, pictures_of
from uncertain_cep.results.ranking import least_passing
from uncertain_cep.spark.beside_events import beside_events
from uncertain_cep.spark.dataframes import (
    arrow_schema,
    column,
    from_arrow_schema,
    in_ticks,
    in_workers,
    noted_schema,
    plainly_named,
    quotient,
    whole_numbers,
)
from uncertain_cep.spark.file_jobs import describe_reading
from uncertain_cep.spark.filters import candidate_filters
from uncertain_cep.spark.jobs import stopped_in_time
from uncertain_cep.spark.joined_events import joined_events, taken_events
from uncertain_cep.spark.matching import matches_frame
from uncertain_cep.spark.no_match import why_no_match
from uncertain_cep.spark.sharing_matches import shared_on_spark
from uncertain_cep.spark.surroundings import events_around
from uncertain_cep.spark.undecided_counts import worker_errors
from uncertain_cep.spark.worker import unused_name

__all__ = ["gathered_on_spark"]

Int64 = NDArray[np.int64]

_DRAWN: Final = pa.schema(
    [
        ("match", pa.int64()),
        ("variable", pa.string()),
        ("position", pa.int64()),
        ("first", pa.int64()),
        ("last", pa.int64()),
        ("share", pa.list_(pa.float64())),
    ]
)
"""The columns in front of those of an event; all but the first are null if it could spoil the match."""


@dataclass(frozen=True, slots=True)
class _Reported:
    """The request, and the frame of events."""

    request: ReportRequest
    events: DataFrame
    plan: EvaluationPlan
    schema: pa.Schema
    """Of the events."""

    @property
    def needed(self) -> DataFrame:
        """The events with the columns that matching needs."""
        names = [*self.plan.required_columns, *({self.plan.names.tick} & {*self.events.columns})]
        return self.events.select(*map(column, names))

    @property
    def keys(self) -> list[str]:
        """The columns that tell matches apart."""
        return [*self.plan.partition_attributes, *(part.variable for part in self.plan.components)]

    @property
    def beside(self) -> list[str]:
        """The names of the columns in front of those of the events of matches."""
        return [unused_name(self.schema, name) for name in OWN_COLUMNS]

    @property
    def number(self) -> str:
        """The name of the column for numbers of matches or events, which no other column has."""
        fields = (*self.plan.output_schema, *self.schema)
        return unused_name(pa.schema(pa.field(field.name, pa.int64()) for field in fields), "number")


def gathered_on_spark(request: ReportRequest, frame: DataFrame) -> Answer:
    """Match the events of a frame, and return what a report shows of the answer.

    The driver holds as many matches as a page does, and the events that are drawn with them.
    """
    spark, options = frame.sparkSession, request.options
    if frame.isStreaming:
        raise OptionError("a streaming frame has no end: report on a table of its events")
    if request.query.probability is not None:
        raise OptionError("a report of RETURN PROBABILITY reads frames in this process: collect the events")
    with ExitStack() as held:
        held.enter_context(stopped_in_time(spark, options.limit))
        held.enter_context(worker_errors())
        events = _for_python(whole_numbers(frame, options.names))
        schema = noted_schema(events, options.names)
        plan = report_plan(request, schema)
        # This raises errors before anything is computed.
        stamps_of(plan, schema.empty_table(), request.stamp)
        reported = _Reported(request, events, plan, schema)
        diagnostics = Diagnostics()
        matches = matches_frame(frame, request.query, options, diagnostics=diagnostics)
        matches = _kept(held, matches.withColumn(reported.number, f.monotonically_increasing_id()))
        totals, histogram, moments = _summed(plan, matches)
        order = () if plan.query.is_ordered else (column("confidence").desc(),)
        shown = _here(plan, matches.orderBy(*order, column(reported.number)).limit(SHOWN_MATCHES))
        in_raw, raw, tables = _compared(held, reported, matches, shown)
        table, pictures = _drawn(held, reported, {"found": shown, **tables})
        surrounded = {name: part for name, part in pictures.items() if name != "invented"}
        every, nearby = events_around(plan, events, table, surrounded)
        return Answer(
            plan=plan,
            explained=explain_plan(
                plan_facts(plan, None, Diagnostics()), describe_reading(frame, request.query, options)
            ),
            totals=totals,
            histogram=histogram,
            moments=moments,
            groups=_groups(held, reported, matches, int(totals["matches"]), moments),
            trace=_trace_facts(reported),
            table=every,
            parts=[(name, rows, pictures[name]) for name, rows in {"found": shown, **tables}.items()],
            in_raw=in_raw,
            raw=raw,
            nothing=""
            if totals["matches"]
            else nothing_in_words(diagnostics.summary(), why_no_match(events, plan.query, options)),
            factors={
                name: [*steps_of_matches(plan, table, rows, options)]
                for name, rows in {"found": shown, **tables}.items()
                if name != "invented"
            },
            shared=shared_on_spark(request, plan, reported.needed, matches, shown, int(totals["matches"])),
            nearby=nearby,
        )


def _for_python(events: DataFrame) -> DataFrame:
    """Return events with columns of types that Python does not get as text."""
    kinds = arrow_schema(events)
    if not any(isinstance(field.type, pa.BaseExtensionType) for field in kinds):
        return events
    return events.select(
        *(
            column(field.name).cast("string").alias(field.name)
            if isinstance(field.type, pa.BaseExtensionType)
            else column(field.name)
            for field in kinds
        )
    )


def _kept(held: ExitStack, frame: DataFrame) -> DataFrame:
    """Return a frame that Spark keeps, on disk where memory is short, until the report is done."""
    frame = frame.persist()
    held.callback(frame.unpersist)
    return frame


def _here(plan: EvaluationPlan, matches: DataFrame) -> pa.Table:
    """Return matches in this process, with the columns of the result."""
    schema = pa.schema([field for field in plan.output_schema if field.name in matches.columns])
    table: pa.Table = matches.select(*map(column, schema.names)).toArrow()
    return table.cast(schema)


def _summed(plan: EvaluationPlan, frame: DataFrame) -> tuple[dict[str, float], list[int], Moments | None]:
    """Return the totals, the histogram of confidences, and the times of matches."""
    confidence = column("confidence")
    middle = _middle(plan, frame)
    bar = f.least(f.greatest(f.floor(confidence * BINS), f.lit(0)), f.lit(BINS - 1))
    (counts,) = frame.agg(
        f.count("*"),
        f.coalesce(f.sum(confidence), f.lit(0.0)),
        f.count_if(confidence >= CERTAIN),
        f.count_if(confidence >= LIKELY),
        f.min(middle),
        f.max(middle),
        *(f.count_if(bar == k) for k in range(BINS)),
    ).collect()
    matches, expected, certain, likely, low, high, *histogram = counts
    totals = totals_of(matches, expected, certain, likely)
    if not matches:
        return totals, histogram, None
    begin, width, count = bars_of_time(low, high, plan.domain.tick_nanoseconds)
    place = quotient(middle - begin, width)
    moments = Moments(begin, width, np.zeros(count, np.int64), np.zeros(count))
    for row in frame.groupBy(place).agg(f.count("*"), f.sum(confidence)).collect():
        moments.matches[row[0]], moments.expected[row[0]] = row[1], row[2]
    return totals, histogram, moments


def _middle(plan: EvaluationPlan, matches: DataFrame) -> Column:
    """Return the middle of the range of a match, in ticks."""
    first, last = (in_ticks(plan, matches.schema, f"range_{side}") for side in ("lower", "upper"))
    return first + quotient(last - first, 2)


def _groups(
    held: ExitStack, reported: _Reported, rows: DataFrame, matches: int, moments: Moments | None
) -> list[tuple[str, int, Sequence[Group]]]:
    """Return the values of columns with the most matches, and how likely each has a match at all."""

    def count_by(name: str) -> Counted:
        confidence = column("confidence")
        each = rows.groupBy(column(name).alias("value")).agg(
            f.count("*").alias("count"),
            f.sum(confidence).alias("confidence_sum"),
            f.max(confidence).alias("confidence_max"),
        )
        ((distinct, values),) = each.agg(f.count("*"), f.count("value")).collect()
        order = (f.col("count").desc(), f.col("value").asc_nulls_last())

        def by_time(bars: Moments) -> pa.Table:
            bar = quotient(_middle(reported.plan, rows) - bars.begin, bars.width)
            keys = (column(name).alias("value"), bar.alias("bar"))
            return rows.groupBy(*keys).agg(f.sum(confidence).alias("confidence_sum")).toArrow()

        return Counted(distinct, values, lambda: each.orderBy(*order).limit(TOP).toArrow(), by_time)

    def bounds(name: str, distinct: int, values: pa.Array) -> list[Bounds] | None:
        few = distinct <= WEIGHED_GROUPS and matches <= COMPARED_MATCHES
        return _bounds_by(held, reported, name, values) if few else None

    return groups_by_key(reported.plan, matches, moments, count_by, bounds)


def _bounds_by(held: ExitStack, reported: _Reported, name: str, values: pa.Array) -> list[Bounds] | None:
    """Return how likely matches with values of a column are there at all; None where that is not known."""
    plan, options = reported.plan, replace(reported.request.options, undecided="bounds", max_matches=None)
    query, without = query_by(plan, name), unchosen(plan.query)
    if query is None:
        return None
    if without != plan.query:
        # All matches count, also those that HAVING and LIMIT leave out.
        unweighed = replace(options, undecided="error", confidence=False, sources=False)
        if _few(held, matches_frame(reported.events, without, unweighed)) is None:
            return None
    try:
        rows = matches_frame(reported.events, query, options).toArrow()
    except (OptionError, QueryError):
        # What groups do not support, such as lists.
        return None
    return bounds_of_values(rows, values)


def _trace_facts(reported: _Reported) -> TraceFacts:
    events, plan, names = reported.events, reported.plan, reported.plan.names
    lower, upper = (in_ticks(plan, events.schema, name) for name in (names.lower, names.upper))
    length = upper - lower

    def given(name: str | None) -> Column:
        return f.lit(None) if name is None or name not in events.columns else column(name)

    source = given(plan.clock_names.source)
    (counts,) = events.agg(
        f.count("*"),
        f.count_if(length == 0),
        f.coalesce(f.min(lower), f.lit(0)),
        f.count(given(names.pmf)),
        f.count_if(given(names.probability).cast("double") < 1),
        f.count(source),
        f.count_distinct(source),
        f.count(given(reported.request.stamp)),
    ).collect()
    number, certain, first, listed, doubtful, named, clocks, stamped = counts
    each = events.groupBy(column(names.type).cast("string").alias("type")).agg(
        f.count("*").alias("count"), f.min(length), f.median(length), f.max(length)
    )
    kinds = each.orderBy(f.col("count").desc(), "type").limit(TOP).collect()
    return TraceFacts(
        number, certain, first, [Kind(*kind) for kind in kinds], listed, doubtful, named, clocks, stamped
    )


def _compared(
    held: ExitStack, reported: _Reported, matches: DataFrame, shown: pa.Table
) -> tuple[list[bool] | None, dict[str, int | None], dict[str, pa.Table]]:
    """Return whether each match shown is one on raw stamps, the counts, and missed and invented matches."""
    plan, options = reported.plan, reported.request.options
    query = unchosen(plan.query)
    raw_events = _at_stamps(reported)
    without = replace(options, confidence=False, sources=False)
    raw = _few(held, matches_frame(raw_events, query, without))
    if raw is None:
        return None, {"matches": None}, {}
    likely, possible = matches.filter(column("confidence") >= least_passing(LIKELY)), matches
    if query != plan.query:
        better = replace(query, min_confidence=LIKELY)
        likely = matches_frame(reported.events, better, options)
        possible = _among(reported, raw, query)
    if _few(held, likely) is None:
        return None, {"matches": None}, {}
    other_names = {
        name: unused_name(plan.output_schema, f"other {k}") for k, name in enumerate(reported.keys)
    }
    equal = reduce(and_, (column(name).eqNullSafe(column(other)) for name, other in other_names.items()))

    def same(one: DataFrame, other: DataFrame, how: str) -> DataFrame:
        keys = other.select(*(column(name).alias(other) for name, other in other_names.items()))
        return one.join(keys, equal, how)

    missed, invented = same(likely, raw, "left_anti"), same(raw, possible, "left_anti")
    both = same(_numbered(reported, shown), raw, "left_semi").select(column(reported.number)).toArrow()
    in_raw = np.zeros(shown.num_rows, np.bool_)
    in_raw[np.asarray(both.column(0).to_numpy())] = True
    best = missed.orderBy(column("confidence").desc()).limit(1)
    counts: dict[str, int | None] = {
        "matches": raw.count(),
        "missed": missed.count(),
        "invented": invented.count(),
    }
    tables = {"missed": _here(plan, best), "invented": _here(plan, invented.limit(INVENTED_SHOWN))}
    return in_raw.tolist(), counts, tables


def _few(held: ExitStack, matches: DataFrame) -> DataFrame | None:
    """Return matches, kept by Spark, or None if there are too many to be compared."""
    kept = _kept(held, matches.limit(COMPARED_MATCHES + 1))
    return None if kept.count() > COMPARED_MATCHES else kept


def _among(reported: _Reported, raw: DataFrame, query: Query) -> DataFrame:
    """Return the possible matches, all of those that raw stamps give among them."""
    plan, options = reported.plan, replace(reported.request.options, confidence=False)
    events = reported.needed
    if not plan.depends_on_others:
        # Other events do not change the answer.
        events = taken_events(raw, events, query, reported.request.options)
    return matches_frame(events, query, options)


def _at_stamps(reported: _Reported) -> DataFrame:
    """Return the events with their stamps as certain times."""
    plan, stamp = reported.plan, reported.request.stamp
    names = dict.fromkeys((*plan.required_columns, *([] if stamp is None else [stamp])))
    schema = pa.schema([reported.schema.field(name) for name in names], reported.schema.metadata)
    nothing = schema.empty_table()
    made = at_stamps(plan, nothing, *stamps_of(plan, nothing, stamp)).schema
    rows = plainly_named(reported.events.select(*map(column, names)))
    move = partial(_moved, plan=plan, stamp=stamp, schema=schema)
    return in_workers(rows, move, from_arrow_schema(made, plan.names))


def _moved(
    batches: Iterable[pa.RecordBatch], *, plan: EvaluationPlan, stamp: str | None, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        table = pa.Table.from_batches([batch]).rename_columns(schema.names).cast(schema)
        yield from at_stamps(plan, table, *stamps_of(plan, table, stamp)).to_batches()


def _numbered(reported: _Reported, matches: pa.Table) -> DataFrame:
    """Return matches of this process as a frame, with the numbers of their rows."""
    numbers = pa.array(np.arange(matches.num_rows))
    table = matches.append_column(reported.number, numbers)
    # By default Spark takes times without a zone as those of the session's zone.
    return reported.events.sparkSession.createDataFrame(table, from_arrow_schema(table.schema))


def _drawn(
    held: ExitStack, reported: _Reported, tables: dict[str, pa.Table]
) -> tuple[pa.Table, dict[str, Pictures]]:
    """Return the events that are drawn with matches, and their pictures."""
    plan, number = reported.plan, reported.number
    events = reported.events
    every = pa.concat_tables(
        [rows.select([*reported.keys, "range_lower", "range_upper"]) for rows in tables.values()]
    )
    matches = _numbered(reported, every)
    if "invented" in tables and tables["invented"].num_rows:
        # Their ranges are those of stamps, which may be far from the intervals.
        beside = reported.beside
        joined = joined_events(
            matches, reported.needed, reported.request.query, reported.request.options, column(number), beside
        )
        lower, upper = column(plan.names.lower), column(plan.names.upper)
        ranges = joined.groupBy(column(beside[0]).alias(number)).agg(
            f.min(lower).alias("range_lower"), f.max(upper).alias("range_upper")
        )
        matches = matches.drop("range_lower", "range_upper")
        matches = matches.join(ranges, number)
    matches = _kept(held, matches)
    candidates = events if plan.orders else events.filter(candidate_filters(plan, events.schema).anywhere)
    schema = reported.schema.append(pa.field(number, pa.int64()))
    numbered = candidates.withColumn(number, f.monotonically_increasing_id())
    drawn = beside_events(
        matches, numbered, schema, plan, partial(_pictures, plan=plan), column(number)
    ).toArrow()
    event = np.asarray(drawn.column(drawn.num_columns - 1).to_numpy())
    _, first, row = np.unique(event, return_index=True, return_inverse=True)
    table = drawn.select(range(len(_DRAWN), drawn.num_columns - 1)).take(pa.array(first))
    table = table.rename_columns(reported.schema.names).cast(reported.schema)
    begins = np.cumsum([0, *(rows.num_rows for rows in tables.values())]).tolist()
    match = np.asarray(drawn.column("match").to_numpy())
    pictures = {}
    for k, name in enumerate(tables):
        chosen = np.flatnonzero((match >= begins[k]) & (match < begins[k + 1]))
        pictures[name] = _of_rows(plan, drawn.take(pa.array(chosen)), match[chosen] - begins[k], row[chosen])
    return table, pictures


def _pictures(events: pa.Table, matches: pa.Table, *, plan: EvaluationPlan) -> pa.Table:
    """Return the events that are drawn with matches, match by match."""
    drawn = pictures_of(plan, events, matches, PARTS)
    place = np.arange(len(drawn.spoiled)) - np.searchsorted(drawn.spoiled, drawn.spoiled)
    few = place < SPOILING_SHOWN
    events_of_matches = pa.table(
        [drawn.match, drawn.variable, drawn.position, drawn.first, drawn.last,
         pa.ListArray.from_arrays(pa.array(drawn.start, pa.int32()), drawn.share)],
        schema=_DRAWN,
    )  # fmt: skip
    spoiling_events = pa.table({"match": drawn.spoiled[few]})
    taken = events.take(pa.array(np.concatenate((drawn.row, drawn.spoiling[few]))))
    drawn_events = pa.concat_tables([events_of_matches, spoiling_events], promote_options="default")
    for k, values in enumerate(taken.columns):
        drawn_events = drawn_events.append_column(f"event {k}", values)
    return drawn_events


def _of_rows(plan: EvaluationPlan, rows: pa.Table, match: Int64, row: Int64) -> Pictures:
    """Return pictures of matches, whose events are in any order, by match and row of the events."""
    places = {component.variable: j for j, component in enumerate(plan.components)}
    is_of_match = np.asarray(rows.column("variable").is_valid())
    of_match, spoiling = np.flatnonzero(is_of_match), np.flatnonzero(~is_of_match)
    names = rows.column("variable").take(pa.array(of_match)).to_pylist()
    position, first, last = (
        np.asarray(rows.column(name).take(pa.array(of_match)).to_numpy())
        for name in ("position", "first", "last")
    )
    order = np.lexsort((position, np.array([places[name] for name in names]), match[of_match]))
    of_match, spoiling = of_match[order], spoiling[np.lexsort((row[spoiling], match[spoiling]))]
    shares = rows.column("share").take(pa.array(of_match))
    sizes = np.asarray(pc.list_value_length(shares).to_numpy())
    return Pictures(
        match[of_match], [names[k] for k in order.tolist()], position[order], row[of_match], first[order],
        last[order], starts_of(sizes), np.asarray(pc.list_flatten(shares).to_numpy()),
        match[spoiling], row[spoiling],
    )  # fmt: skip
