"""Did it happen? The groups of a query with RETURN PROBABILITY beside their matches, for a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.config.limits import COMPARED_MATCHES
from uncertain_cep.errors import OptionError, QueryError
from uncertain_cep.executor import execute_within
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.plan.grouping import BOUND_COLUMNS, of_matches
from uncertain_cep.query import Query
from uncertain_cep.query.syntax import Attribute, GroupName, Position, Probability
from uncertain_cep.reporting.comparison import all_matches, unchosen
from uncertain_cep.reporting.true_answers import codes_of_keys
from uncertain_cep.results.matched_events import matched_events
from uncertain_cep.results.order import finished
from uncertain_cep.results.projection import taken

__all__ = [
    "Bounds",
    "Occurrences",
    "bounded_rows",
    "bounds_by",
    "bounds_of_matches",
    "bounds_of_values",
    "grouped_matches",
    "groups_of",
    "keys_of_matches",
    "occurrences",
    "occurrences_of",
    "plan_of_matches",
    "query_by",
]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_HERE = Position(1, 1)


class Bounds(NamedTuple):
    """The probability that there is a match lies between these; where it is exact they are equal."""

    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The groups of a query, and which matches each has.

    Attributes
    ----------
    plan : EvaluationPlan
        With RETURN PROBABILITY.
    rows : pyarrow.Table
        The answer: the columns of BY, ``bucket`` with EVERY, the probability, null where it is undecided,
        and its bounds.
    key : (r,) int64
        The number of the values of BY of each row, by their first row.
    of_match : (m,) int64
        That number for each match, -1 for those of groups that are no rows.
    matches, expected, best : (keys,) int64, float64, float64
        How many matches each has, the sum of their confidences and the largest one.
    """

    plan: EvaluationPlan
    rows: pa.Table
    key: Int64
    of_match: Int64
    matches: Int64
    expected: Float64
    best: Float64


def plan_of_matches(query: Query, schema: pa.Schema, options: MatchOptions) -> EvaluationPlan:
    """Return the plan of the matches of a query for groups.

    Raises
    ------
    OptionError
        If it has none to look at, as its events are only counted.
    """
    counted = make_plan(query, schema, options).counted_events
    if counted is not None:
        raise OptionError("a report shows matches, and events that are only counted, {n,} in AND, make none")
    return make_plan(of_matches(query), schema, options)


def occurrences(
    query: Query, plan: EvaluationPlan, table: pa.Table, matches: pa.Table, options: MatchOptions
) -> Occurrences:
    """Return the groups of a query with RETURN PROBABILITY.

    Parameters
    ----------
    query : Query
    plan : EvaluationPlan
        That of its matches.
    table : pyarrow.Table
        The events.
    matches : pyarrow.Table
        All of them.
    options : MatchOptions
        A group that takes too long has certain bounds.
    """
    grouped = make_plan(query, table.schema, replace(options, undecided="bounds"))
    rows = groups_of(grouped, table, options)
    return _with_matches(grouped, rows, keys_of_matches(grouped, plan, table, matches), matches)


def grouped_matches(keys: pa.Table, confidence: pa.ChunkedArray) -> pa.Table:
    """Return the values of BY of matches, with ``count``, ``confidence_sum`` and ``confidence_max``."""
    rows = keys.append_column("confidence", confidence).group_by(keys.column_names, use_threads=False)
    each = rows.aggregate([([], "count_all"), ("confidence", "sum"), ("confidence", "max")])
    return each.rename_columns({"count_all": "count"})


def bounded_rows(grouped: EvaluationPlan, plan: EvaluationPlan, each: pa.Table) -> pa.Table | None:
    """Return groups with bounds by the confidences of their matches alone.

    None where HAVING or LIMIT leave matches out.

    Parameters
    ----------
    grouped : EvaluationPlan
        With RETURN PROBABILITY.
    plan : EvaluationPlan
        That of its matches.
    each : pyarrow.Table
        All groups, as `grouped_matches` returns them.
    """
    bounds = bounds_of_matches(plan, each.select(["confidence_sum", "confidence_max"]).to_pylist())
    clause = grouped.query.probability
    assert clause is not None
    if None in bounds:
        return None
    columns = dict(zip(BOUND_COLUMNS, np.array(bounds).reshape(-1, 2).T, strict=True))
    named = {key.column: each.column(key.column) for key in grouped.bound.keys}
    return pa.table(named | {clause.name: pa.nulls(each.num_rows, pa.float64())} | columns)


def occurrences_of(
    grouped: EvaluationPlan, rows: pa.Table, each: pa.Table, keys: pa.Table
) -> Occurrences | None:
    """Return the groups of some matches, the likeliest first; None if one is missing.

    Parameters
    ----------
    grouped : EvaluationPlan
        With RETURN PROBABILITY, without EVERY.
    rows : pyarrow.Table
        Its answer, at least the groups of these matches.
    each : pyarrow.Table
        At least the same groups, as `grouped_matches` returns them.
    keys : pyarrow.Table
        The values of BY of the matches.
    """
    names = [key.column for key in grouped.bound.keys]
    codes = codes_of_keys((rows.select(names), each.select(names), keys.select(names)), names)
    of_rows, of_each, of_keys = np.split(codes, np.cumsum((rows.num_rows, each.num_rows)))
    used = np.flatnonzero(np.isin(of_rows, of_keys))
    lower = np.asarray(rows.column(BOUND_COLUMNS[0]).to_numpy())[used]
    used = used[np.argsort(-lower, kind="stable")]
    number, place = np.full((2, int(codes.max(initial=-1)) + 1), -1)
    number[of_rows[used]] = np.arange(len(used))
    place[of_each] = np.arange(each.num_rows)
    of_match, here = number[of_keys], place[of_rows[used]]
    if (of_match < 0).any():
        return None
    matches, expected, best = (
        np.asarray(each.column(name).to_numpy())[here]
        for name in ("count", "confidence_sum", "confidence_max")
    )
    shown = rows.take(pa.array(used))
    return Occurrences(grouped, shown, np.arange(len(used)), of_match, matches, expected, best)


def _with_matches(grouped: EvaluationPlan, rows: pa.Table, keys: pa.Table, matches: pa.Table) -> Occurrences:
    """Return groups beside the matches that they have, by the values of BY of each match."""
    names = [key.column for key in grouped.bound.keys]
    codes = codes_of_keys((rows, keys), names)
    first, key = np.unique(codes[: rows.num_rows], return_index=True, return_inverse=True)[1:]
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    key = rank[key.reshape(-1)] if len(rank) else np.zeros(0, np.int64)
    number = np.full(int(codes.max(initial=-1)) + 1, -1)
    number[codes[: rows.num_rows]] = key
    of_match = number[codes[rows.num_rows :]]
    confidence = np.asarray(matches.column("confidence").to_numpy())
    there = of_match >= 0
    best = np.zeros(len(order))
    np.maximum.at(best, of_match[there], confidence[there])
    return Occurrences(
        grouped,
        rows,
        key,
        of_match,
        np.bincount(of_match[there], minlength=len(order)),
        np.bincount(of_match[there], confidence[there], len(order)).astype(np.float64),
        best,
    )


def groups_of(grouped: EvaluationPlan, table: pa.Table, options: MatchOptions) -> pa.Table:
    """Return the answer of a plan for groups, of however many matches."""
    return finished(grouped, execute_within(grouped, table, replace(options, max_matches=None), None))


def keys_of_matches(
    grouped: EvaluationPlan, plan: EvaluationPlan, table: pa.Table, matches: pa.Table
) -> pa.Table:
    """Return the values of BY for each match."""
    keys = grouped.bound.keys
    rows = {key.variable: np.full(matches.num_rows, -1) for key in keys if key.variable is not None}
    for batch in matched_events(plan, table, matches) if rows else ():
        for variable, row in rows.items():
            if variable in batch.variables:
                chosen = (batch.component == batch.variables.index(variable)) & (batch.position == 1)
                row[batch.match[chosen]] = batch.row[chosen]
    columns = {}
    for number, key in enumerate(keys):
        if key.variable is None:
            columns[key.column] = matches.column(str(key.attribute))
        else:
            name = grouped.names.id if key.attribute is None else key.attribute
            kind = grouped.output_schema.types[number]
            columns[key.column] = taken(table.column(name), rows[key.variable], kind)
    return pa.table(columns) if columns else matches.select(["confidence"])


def bounds_by(
    plan: EvaluationPlan,
    table: pa.Table,
    matches: pa.Table,
    options: MatchOptions,
    name: str,
    values: pa.Array,
) -> list[Bounds] | None:
    """Return how likely matches with values of a column are there at all; None where that is not known.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
        The events.
    matches : pyarrow.Table
        The answer.
    options : MatchOptions
    name : str
        A partition attribute, or what RETURN calls an attribute of a variable.
    values : pyarrow.Array

    Notes
    -----
    All matches count, also those that HAVING and LIMIT leave out: many unlikely ones may be a certain alarm.
    """
    query = query_by(plan, name)
    if query is None or _too_many(plan, table, matches, options):
        return None
    try:
        grouped = make_plan(query, table.schema, replace(options, undecided="bounds"))
        rows = groups_of(grouped, table, options)
    except (OptionError, QueryError):
        # What groups do not support, such as lists.
        return None
    return bounds_of_values(rows, values)


def query_by(plan: EvaluationPlan, name: str) -> Query | None:
    """Return the query that says how likely matches with each value of a column are there; None of lists."""
    by = _group_name(plan, name)
    if by is None:
        return None
    return replace(of_matches(plan.query), probability=Probability(1, "probability", (by,), None, _HERE))


def bounds_of_values(rows: pa.Table, values: pa.Array) -> list[Bounds] | None:
    """Return the bounds of some values among the answer of :func:`query_by`; None if it lacks one."""
    column = rows.column_names[0]
    codes = codes_of_keys((rows.select([column]), pa.table({column: values})), [column])
    place = np.full(int(codes.max(initial=-1)) + 1, -1)
    place[codes[: rows.num_rows]] = np.arange(rows.num_rows)
    there = place[codes[rows.num_rows :]]
    if (there < 0).any():
        return None
    ends = (
        np.asarray(rows.column(end).to_numpy())[there] for end in ("probability_lower", "probability_upper")
    )
    return [Bounds(float(low), float(high)) for low, high in zip(*ends, strict=True)]


def bounds_of_matches(plan: EvaluationPlan, groups: Sequence[Mapping[str, Any]]) -> list[Bounds | None]:
    """Return bounds of how likely groups have a match by confidences alone; None where some are left out.

    There is a match at least as likely as the best one, and at most as likely as all together.

    Parameters
    ----------
    plan : EvaluationPlan
    groups : sequence of mappings
        ``confidence_max`` and ``confidence_sum`` of the matches of each.
    """
    if unchosen(plan.query) != plan.query:
        return [None] * len(groups)
    return [Bounds(group["confidence_max"], min(group["confidence_sum"], 1.0)) for group in groups]


def _group_name(plan: EvaluationPlan, name: str) -> GroupName | None:
    """Return the name of BY that groups matches as a column of them does."""
    if name in plan.partition_attributes:
        return GroupName(None, name, _HERE)
    for item in plan.query.returns:
        if item.name == name and isinstance(item.expression, Attribute) and item.expression.index is None:
            return GroupName(item.expression.variable, item.expression.name, _HERE)
    return None


def _too_many(plan: EvaluationPlan, table: pa.Table, matches: pa.Table, options: MatchOptions) -> bool:
    """Return whether there are so many matches that groups would take long."""
    if matches.num_rows > COMPARED_MATCHES:
        return True
    query = unchosen(plan.query)
    if query == plan.query:
        return False
    unweighed = make_plan(query, table.schema, options, confidence=False, sources=False)
    return all_matches(unweighed, table, options) is None
