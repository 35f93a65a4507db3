"""Matches of a frame of Spark that differ in one event alone, as groups, for a page."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from uncertain_cep.config.limits import GROUPED_MATCHES
from uncertain_cep.errors import UncertainCepError
from uncertain_cep.plan import EvaluationPlan, make_plan
from uncertain_cep.query import Query
from uncertain_cep.reporting.comparison import unchosen
from uncertain_cep.reporting.gathered import ReportRequest
from uncertain_cep.reporting.occurrences import Occurrences, bounded_rows, occurrences_of
from uncertain_cep.reporting.sharing_groups import (
    SharedEvents,
    names_without_one,
    query_by_others,
    sentences_of,
    varying,
)
from uncertain_cep.spark.dataframes import column, from_arrow_schema, noted_schema
from uncertain_cep.spark.joined_events import taken_events
from uncertain_cep.spark.matching import matches_frame
from uncertain_cep.spark.undecided_counts import worker_errors
from uncertain_cep.spark.worker import unused_name

__all__ = ["shared_on_spark"]


def shared_on_spark(
    request: ReportRequest,
    plan: EvaluationPlan,
    events: DataFrame,
    matches: DataFrame,
    shown: pa.Table,
    count: int,
) -> SharedEvents | None:
    """Return the groups of the matches that a page shows, as `shared_events` does.

    Parameters
    ----------
    request : ReportRequest
    plan : EvaluationPlan
    events, matches : DataFrame
        All of them.
    shown : pyarrow.Table
        The matches that the page has.
    count : int
        How many matches there are.

    Notes
    -----
    The driver gets the groups of the matches shown. Of at most ``GROUPED_MATCHES`` matches it gets all their
    groups and events, which tell what would decide a group unless other events can spoil a match.
    """
    names = names_without_one(plan, count)
    if not names:
        return None
    distinct = [f.count_distinct(f.struct(*map(column, agreed))) for agreed in names.values()]
    counts = dict(zip(names, matches.agg(*distinct).head() or (), strict=True))
    over = varying(plan, counts, count)
    if over is None:
        return None
    query, options = query_by_others(plan, over), replace(request.options, undecided="bounds")
    agreed = names[over]
    try:
        with worker_errors():
            grouped = make_plan(query, noted_schema(events, options.names), options)
            named = [key.column for key in grouped.bound.keys]
            each = _of_shown(matches, shown, agreed, named)
            if count <= GROUPED_MATCHES:
                rows = matches_frame(events, query, replace(options, max_matches=None)).toArrow()
            else:
                rows = bounded_rows(grouped, plan, each)
        if rows is None:
            return None
        groups = occurrences_of(grouped, rows, each, shown.select(agreed).rename_columns(named))
        if groups is None:
            return None
        with worker_errors():
            sentences = _sentences(request, plan, events, matches, query, groups)
    except UncertainCepError:
        return None
    return SharedEvents(over, groups, counts[over], sentences)


def _of_shown(matches: DataFrame, shown: pa.Table, agreed: list[str], named: list[str]) -> pa.Table:
    """Return the groups of the matches that are shown, as `grouped_matches` does."""
    keys = shown.select(agreed)
    held = [unused_name(shown.schema, f"shown {k}") for k in range(len(agreed))]
    keys = keys.group_by(agreed).aggregate([]).rename_columns(held)
    here = f.broadcast(matches.sparkSession.createDataFrame(keys, from_arrow_schema(keys.schema)))
    same = (column(name).eqNullSafe(column(other)) for name, other in zip(agreed, held, strict=True))
    confidence = column("confidence")
    by = (column(name).alias(key) for name, key in zip(agreed, named, strict=True))
    groups = matches.join(here, reduce(and_, same), "left_semi").groupBy(*by)
    sums = f.sum(confidence).alias("confidence_sum"), f.max(confidence).alias("confidence_max")
    each: pa.Table = groups.agg(f.count("*").alias("count"), *sums).toArrow()
    return each


def _sentences(
    request: ReportRequest,
    plan: EvaluationPlan,
    events: DataFrame,
    matches: DataFrame,
    query: Query,
    groups: Occurrences,
) -> list[str]:
    """Return a sentence about each group, what would decide it; empty where that is not known."""
    nothing = [""] * groups.rows.num_rows
    options, plain = request.options, unchosen(plan.query)
    if plan.depends_on_others:
        return nothing
    if plain != plan.query:
        # All matches count, also those that HAVING and LIMIT leave out.
        matches = matches_frame(events, plain, replace(options, confidence=False, sources=False))
    if matches.limit(GROUPED_MATCHES + 1).count() > GROUPED_MATCHES:
        return nothing
    schema = noted_schema(events, options.names)
    taken = taken_events(matches, events, request.query, options)
    return sentences_of(query, groups, taken.toArrow().cast(schema), options)
