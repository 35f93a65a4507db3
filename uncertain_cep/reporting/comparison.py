"""The answer if stamps were times: every interval replaced by its stamp, or by its middle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.config.limits import COMPARED_MATCHES
from uncertain_cep.errors import MatchLimitError, OptionError
from uncertain_cep.executor import execute_within
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.query import Query
from uncertain_cep.results.box_parts import Boxes
from uncertain_cep.results.boxes import weighed_matches
from uncertain_cep.results.matched_events import matched_events

__all__ = [
    "LIKELY",
    "Comparison",
    "Key",
    "all_matches",
    "at_stamps",
    "compared",
    "keys_of",
    "stamps_of",
    "unchosen",
]

LIKELY = 0.5
"""Confidence from which a match that raw stamps do not give counts as missed."""

Key = tuple[tuple[int, int], ...]
"""The events of a match: component and row of each."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer on raw stamps beside the answer on intervals."""

    raw: pa.Table | None
    """Matches on raw stamps; None if there are too many to compare."""
    keys: frozenset[Key]
    """Theirs."""
    missed: pa.Table | None = None
    """Matches of a confidence of at least ``LIKELY`` that are none on raw stamps, the best first."""
    invented: pa.Table | None = None
    """Matches on raw stamps that no possible world has."""


def keys_of(plan: EvaluationPlan, table: pa.Table, matches: pa.Table) -> list[Key]:
    """Return the keys that tell matches apart."""
    places = {component.variable: j for j, component in enumerate(plan.components)}
    keys: list[Key] = [()] * matches.num_rows
    for batch in matched_events(plan, table, matches):
        component = np.array([places[name] for name in batch.columns])[batch.component]
        pairs = list(zip(component.tolist(), batch.row.tolist(), strict=True))
        bounds = [*batch.begins.tolist(), len(pairs)]
        for begin, end in pairwise(bounds):
            keys[int(batch.match[begin])] = tuple(pairs[begin:end])
    return keys


def stamps_of(
    plan: EvaluationPlan, table: pa.Table, stamp: str | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the raw stamps of events in ticks, and which events have one; others have their first tick.

    Raises
    ------
    OptionError
        If there is no such column, or it holds no times of the kind of the events' times.
    """
    lower = table.column(plan.names.lower)
    ticks = plan.domain.ticks(lower)
    if stamp is None:
        return ticks, np.zeros(len(lower), dtype=np.bool_)
    if stamp not in table.column_names:
        raise OptionError(f"the events have no column {stamp}: they have {', '.join(table.column_names)}")
    column = table.column(stamp)
    if not (pa.types.is_timestamp(lower.type) and pa.types.is_timestamp(column.type)):
        column = _as_times(column, lower.type, stamp)
    elif (lower.type.tz is None) != (column.type.tz is None):
        with_zone, without = ("stamps", "times") if lower.type.tz is None else ("times", "stamps")
        raise OptionError(
            f"column {stamp}: the {with_zone} have a time zone, and the {without} have none: give both one"
        )
    has = np.asarray(column.is_valid())
    stamps = np.array(ticks)
    stamps[has] = plan.domain.ticks(column.drop_null())
    return stamps, has


def _as_times(column: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise OptionError(
            f"column {name} is of type {column.type}: raw stamps are of the type of the times, {kind}"
        ) from None


def at_stamps(
    plan: EvaluationPlan, table: pa.Table, stamps: NDArray[np.int64], has: NDArray[np.bool_]
) -> pa.Table:
    """Return events at their raw stamps, as if these were certain times, else in the middle of intervals."""
    names, domain = plan.names, plan.domain
    begin, end = domain.ticks(table.column(names.lower)), domain.ticks(table.column(names.upper))
    times = domain.times(np.where(has, stamps, begin + (end - begin) // 2))
    raw = table.select([name for name in table.column_names if name != names.pmf])
    for name in (names.lower, names.upper):
        raw = raw.set_column(raw.schema.get_field_index(name), name, times)
    return raw.replace_schema_metadata(table.schema.metadata)


def unchosen(query: Query) -> Query:
    """Return a query without what chooses among its matches."""
    return replace(
        query, min_confidence=None, having=None, limit=None, order_by_confidence=False, order_by=(),
        non_overlapping=False,
    )  # fmt: skip


def compared(
    plan: EvaluationPlan,
    table: pa.Table,
    options: MatchOptions,
    stamps: NDArray[np.int64],
    has: NDArray[np.bool_],
) -> Comparison:
    """Return the comparison of a query's answer with that on raw stamps.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
        The events.
    options : MatchOptions
    stamps : (n,) int64
        Ticks, where ``has``, (n,) bool, tells that an event has a stamp.

    Notes
    -----
    HAVING, ORDER BY, LIMIT and OUTPUT NON OVERLAPPING choose among matches by confidence, which raw stamps do
    not have: both answers are compared without them.
    """
    raw_table = at_stamps(plan, table, stamps, has)
    query = unchosen(plan.query)
    raw = all_matches(
        make_plan(query, raw_table.schema, options, confidence=False, sources=False), raw_table, options
    )
    likely_plan = make_plan(replace(query, min_confidence=LIKELY), table.schema, options)
    likely = all_matches(likely_plan, table, options)
    if raw is None or likely is None:
        return Comparison(None, frozenset())
    raw_keys = frozenset(keys_of(plan, table, raw))
    best = likely.take(pa.array(np.argsort(-likely.column("confidence").to_numpy(), kind="stable")))
    absent = [key not in raw_keys for key in keys_of(plan, table, best)]
    possible = np.zeros(raw.num_rows)
    for batch, events, groups in weighed_matches(plan, table, raw):
        number = batch.match[events.start[:-1]]
        for chosen, confidences in groups:
            event = events.start[chosen]
            possible[number[chosen]] = confidences.of(
                Boxes(chosen, event, events.lower[event], events.upper[event])
            )
    impossible = pa.array(possible <= 0.0, pa.bool_())
    return Comparison(raw, raw_keys, best.filter(pa.array(absent, pa.bool_())), raw.filter(impossible))


def all_matches(plan: EvaluationPlan, table: pa.Table, options: MatchOptions) -> pa.Table | None:
    """Return all matches, or None if there are too many."""
    try:
        # What there is to warn of, the answer itself has warned of.
        batches = list(execute_within(plan, table, replace(options, max_matches=COMPARED_MATCHES), None))
    except MatchLimitError:
        return None
    return pa.Table.from_batches(batches, plan.batch_schema)
