"""The events around matches of a frame of Spark, for a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.reporting.nearby import (
    MATCHES,
    OF_A_MATCH,
    Nearby,
    drawn_rows,
    lane_keys,
    types_first,
    within_page,
)
from uncertain_cep.reporting.true_answers import codes_of_keys
from uncertain_cep.results.pictures import Pictures
from uncertain_cep.spark.dataframes import column, from_arrow_schema, in_ticks, quotient
from uncertain_cep.spark.worker import unused_name

__all__ = ["events_around"]

Int64 = NDArray[np.int64]

_BESIDE = ("match", "total", "number", "rank", "low", "high")
"""Columns beside those of events."""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The matches that are drawn, and their events.

    Attributes
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
        The events that are drawn with matches.
    rows : mapping of (str, int) to two (k,) int64
        For each match its name and number, the rows of its events, and those of all that are drawn with it.
    """

    plan: EvaluationPlan
    table: pa.Table
    rows: Mapping[tuple[str, int], tuple[Int64, Int64]]

    @property
    def identity(self) -> pa.Table:
        """The columns that tell the drawn events apart: type, id, ticks and lane, by names of their own."""
        names, table = self.plan.names, self.table
        ticks = [pa.array(self.plan.domain.ticks(table.column(name))) for name in (names.lower, names.upper)]
        keys = [table.column(name) for name in lane_keys(self.plan, table.schema)]
        columns = [table.column(names.type).cast(pa.string()), table.column(names.id), *ticks, *keys]
        return pa.table(columns, [self.beside(f"own {k}") for k in range(len(columns))])

    def beside(self, name: str) -> str:
        """Return the name of a column that no event has."""
        return unused_name(self.table.schema, name)

    def lanes(self) -> pa.Table:
        """Return the lanes of each match, and the ticks between which its events can happen."""
        events = self.identity
        keys = events.select(events.column_names[4:])
        code = codes_of_keys((keys,), keys.column_names)
        lower, upper = (np.asarray(events.column(k).to_numpy()) for k in (2, 3))
        numbers, rows, bounds = [], [], []
        for number, (members, _) in enumerate(self.rows.values()):
            one_a_lane = members[np.unique(code[members], return_index=True)[1]]
            numbers.append(np.full(len(one_a_lane), number))
            rows.append(one_a_lane)
            ends = [int(lower[members].min()), int(upper[members].max())]
            bounds.append(np.repeat([ends], len(one_a_lane), axis=0))
        # Without keys all is one lane, and a table of no columns has no rows.
        chosen = pa.array(np.concatenate(rows))
        lanes = dict(zip(keys.column_names, (key.take(chosen) for key in keys.columns), strict=True))
        beside = (np.concatenate(numbers), *np.concatenate(bounds).T)
        names = (self.beside(name) for name in ("match", "low", "high"))
        return pa.table({**lanes, **dict(zip(names, map(pa.array, beside), strict=True))})

    def drawn_events(self) -> pa.Table:
        """Return the events that are drawn with each match."""
        numbers = [np.full(len(drawn), number) for number, (_, drawn) in enumerate(self.rows.values())]
        rows = np.concatenate([drawn for _, drawn in self.rows.values()])
        events = self.identity.take(pa.array(rows))
        return events.append_column(self.beside("match"), pa.array(np.concatenate(numbers)))


def events_around(
    plan: EvaluationPlan, events: DataFrame, table: pa.Table, pictures: Mapping[str, Pictures]
) -> tuple[pa.Table, dict[str, list[Nearby]]]:
    """Return the events around the first matches of some pictures, as `nearby_events` does.

    Parameters
    ----------
    plan : EvaluationPlan
    events : DataFrame
        All events. They are read once, and at most 40 a match come back.
    table : pyarrow.Table
        The events that are drawn with matches.
    pictures : mapping
        Those of matches, by a name.

    Returns
    -------
    table : pyarrow.Table
        The events that are drawn, and behind them those around matches.
    nearby : dict
        The events around matches, by the same names.
    """
    rows = {
        (name, n): pair
        for name, part in pictures.items()
        for n, pair in enumerate(drawn_rows(part, min(int(part.match.max(initial=-1)) + 1, MATCHES)))
    }
    if not rows:
        return table, {name: [] for name in pictures}
    drawn = _Drawn(plan, table, rows)
    around = _few_of_each(_overlapping(drawn, events), plan, table.schema, [*map(drawn.beside, _BESIDE)])
    names = [*map(drawn.beside, _BESIDE[:3]), *table.column_names]
    here: pa.Table = around.select(*map(column, names)).toArrow()
    match, total, number = (np.asarray(here.column(k).to_numpy()) for k in range(3))
    rows_here = here.select(table.column_names).cast(table.schema)
    # An event may be drawn with one match, and be around another one; or be around several.
    _, first, event = np.unique(number, return_index=True, return_inverse=True)
    further = rows_here.take(pa.array(first))
    identities = [_Drawn(plan, part, {}).identity for part in (table, further)]
    codes = codes_of_keys(identities, identities[0].column_names)
    place = np.full(int(codes.max(initial=-1)) + 1, -1)
    place[codes[: table.num_rows]] = np.arange(table.num_rows)
    row_of = place[codes[table.num_rows :]]
    is_new = row_of < 0
    row_of[is_new] = table.num_rows + np.arange(is_new.sum())
    nearby: dict[str, list[Nearby]] = {name: [] for name in pictures}
    order = np.argsort(match, kind="stable")
    begins = np.searchsorted(match[order], np.arange(len(rows) + 1))
    for n, (name, _) in enumerate(rows):
        chosen = order[begins[n] : begins[n + 1]]
        count = int(total[chosen[0]]) if len(chosen) else 0
        nearby[name].append(Nearby(count, np.sort(row_of[event[chosen]])))
    every = pa.concat_tables([table, further.filter(pa.array(is_new))])
    return every, {name: within_page(part) for name, part in nearby.items()}


def _overlapping(drawn: _Drawn, events: DataFrame) -> DataFrame:
    """Return a row for each event and each match that it is around, but is not drawn with."""
    plan, names, spark = drawn.plan, drawn.plan.names, events.sparkSession
    lanes, drawn_events = (
        f.broadcast(spark.createDataFrame(part, from_arrow_schema(part.schema)))
        for part in (drawn.lanes(), drawn.drawn_events())
    )
    lower, upper = (in_ticks(plan, events.schema, name) for name in (names.lower, names.upper))
    keys = [column(name) for name in lane_keys(plan, drawn.table.schema)]
    identity = [column(names.type).cast("string"), column(names.id), lower, upper, *keys]
    match, _, number, _, low, high = map(drawn.beside, _BESIDE)
    overlap = (lower <= column(high)) & (upper >= column(low))
    held = drawn.identity.column_names
    in_lane = (lanes[name].eqNullSafe(key) for name, key in zip(held[4:], keys, strict=True))
    rows = events.withColumn(number, f.monotonically_increasing_id())
    around = rows.join(lanes, reduce(and_, in_lane, overlap)).drop(*held[4:])
    is_own = (drawn_events[name].eqNullSafe(part) for name, part in zip(held, identity, strict=True))
    return around.join(drawn_events, reduce(and_, is_own, around[match] == drawn_events[match]), "left_anti")


def _few_of_each(
    around: DataFrame, plan: EvaluationPlan, schema: pa.Schema, beside: Sequence[str]
) -> DataFrame:
    """Return at most 40 of the events around each match, and how many there are, as `nearby_events` does."""
    match, total, number, rank, _, _ = beside
    measured, of_pattern = types_first(plan, schema)
    kind = column(plan.names.type).cast("string")
    in_pattern = f.lit(True) if of_pattern is None else kind.isin(*of_pattern)
    level = f.when(kind.isin(*measured), 0).when(in_pattern, 1).otherwise(2)
    ranked = around.withColumn(rank, level)
    of_match = Window.partitionBy(column(match))
    of_level = Window.partitionBy(column(match), column(rank))
    lower = in_ticks(plan, around.schema, plan.names.lower)
    before = f.count("*").over(of_match.orderBy(column(rank)).rangeBetween(Window.unboundedPreceding, -1))
    names = [unused_name(schema, name) for name in ("room", "level", "place")]
    counted = ranked.withColumns(
        {
            total: f.count("*").over(of_match),
            names[0]: f.greatest(f.lit(OF_A_MATCH) - before, f.lit(0)),
            names[1]: f.count("*").over(of_level),
            names[2]: f.row_number().over(of_level.orderBy(lower, column(number))) - 1,
        }
    )
    return counted.filter(_is_kept(*map(column, names)))


def _is_kept(room: Column, count: Column, place: Column) -> Column:
    """Return whether an event is one of so many at equal distances, the k-th of which is k count // room."""
    step = quotient(place * room + count - 1, count)
    divided = quotient(step * count, f.greatest(room, f.lit(1)))
    return (count <= room) | ((step < room) & (divided == place))
