"""The events of a table that are forbidden in the gaps of matches: pools of them, grouped by partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.chain.distribution import DOUBTFUL
from confidence.config import EVER
from confidence.flat_lists import starts_of
from confidence.gaps.unions import Term
from eventbased.gaps.gap_events import ForbiddenEvents, GapRules, contiguity_limits
from uncertain_cep.candidates.selection import Selection, coded, rows_taken
from uncertain_cep.plan import EvaluationPlan

__all__ = ["GapConstraints", "forbidden_events", "terms_of"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GapConstraints:
    """The events that gaps of matches must stay free of."""

    events: ForbiddenEvents
    rules: GapRules
    negated_rows: tuple[Int64, ...]
    """tuple of (n_k,) int64. The rows of the events that match each negated component by themselves, in the
    order of their places."""
    limit: Int64
    """(m,) int64. For each candidate the latest start of an event that can be its neighbour, ticks; empty if
    the strategy is no contiguity."""


@dataclass(frozen=True, slots=True)
class _Pool:
    """Some events: their rows, what stands for them in conditions, their groups, and those of candidates."""

    row: Int64
    place: Int64
    group: Int64
    groups: int
    of_candidate: Int64


def _taking(selection: Selection, first: Int64, rows: Int64, index: Int64) -> Iterator[_Pool]:
    """Yield the candidates of each component: others that skip till next match could have taken."""
    first_group = _partition(selection, 0, index[: first[1]])
    for j, ends in enumerate(pairwise(first.tolist())):
        part = slice(*ends)
        group = _partition(selection, j, index[part])
        yield _Pool(rows[part], np.arange(*ends), group, selection.partitions, first_group)


def _contiguity_limits(events: ForbiddenEvents, upper: Int64, group: Int64) -> Int64:
    """Return the tick before which the next event has to happen, for each candidate: (m,) int64."""
    limit = np.empty(len(upper), dtype=np.int64)
    # Only what happened for certain is surely between two events.
    until = np.where(events.offset > DOUBTFUL, events.upper, EVER)
    starts = events.group_start[: events.pool_start[1] + 1]
    contiguity_limits(upper, group, events.lower, until, starts, limit)
    return limit


def _negated(plan: EvaluationPlan, table: pa.Table, starts: Int64) -> Iterator[tuple[Int64, _Pool]]:
    """Yield the rows that each negated component takes, and their pool; ``starts``: rows of first events."""
    gaps = plan.bound.gaps
    for number, negation in enumerate(plan.negations):
        rows = rows_taken(plan, table, negation.component)
        is_tied = gaps is None or negation.component.variable not in gaps.untied
        keys = plan.partitioning.of_negation(number) if is_tied else []
        yield rows, _grouped(table, rows, np.arange(len(rows)), starts, keys)


def forbidden_events(
    plan: EvaluationPlan,
    table: pa.Table,
    selection: Selection,
    ticks: tuple[Int64, Int64],
    first: Int64,
    rows: Int64,
    index: Int64,
    offset: Int64 | None = None,
) -> GapConstraints:
    """Return the constraints of a query's strategy and negations on the gaps of matches.

    Parameters
    ----------
    selection : Selection
        The candidates of the positive components.
    ticks : tuple of (n,) int64
        Lower and upper bounds of all rows.
    first : (l + 1,) int64
        Where the candidates of each component start in their layout.
    rows, index : (m,) int64
        Of the candidates in their layout: the row, and the place among the component's as selected.
    offset : (n,) int64 or None
        Of all rows, as of :class:`confidence.chain.distribution.Intervals`; None: confidences are not needed.
    """
    starts = rows[: first[1]]
    pools: list[_Pool] = []
    taking = np.full(len(plan.components), -1, dtype=np.int64)
    between = -1
    if plan.query.strategy == "skip_till_next_match":
        pools = list(_taking(selection, first, rows, index))
        taking = np.arange(len(pools))
    elif plan.query.strategy != "skip_till_any_match":
        # The partition is that of the reading.
        names = plan.partitioning.names if plan.bound.is_reading else plan.partition_attributes
        if plan.query.strategy == "strict_contiguity":
            names = ()
        everything = np.arange(table.num_rows)
        between = len(pools)
        pools.append(_grouped(table, everything, everything, rows, [(name, name) for name in names]))
    negated, negated_rows = [], []
    for rows_negated, pool in _negated(plan, table, starts):
        negated.append(len(pools))
        negated_rows.append(rows_negated)
        pools.append(pool)
    rules = GapRules(
        taking,
        between,
        np.array(negated, dtype=np.int64),
        np.array([negation.after for negation in plan.negations], dtype=np.int64),
    )
    offset = np.full(table.num_rows, -1) if offset is None else offset
    events = _laid_out(pools, *ticks, offset, len(starts))
    limit = np.zeros(0, dtype=np.int64)
    if between >= 0:
        limit = _contiguity_limits(events, ticks[1][rows], pools[0].of_candidate)
    return GapConstraints(events, rules, tuple(negated_rows), limit)


def terms_of(plan: EvaluationPlan) -> tuple[Term, ...]:
    """Return the terms of a plan, their negations by number."""
    negated = [negation.component.variable for negation in plan.negations]
    return tuple(
        Term(term.weight, frozenset(map(negated.index, term.negated)), term.is_reading) for term in plan.terms
    )


def _partition(selection: Selection, component: int, index: Int64) -> Int64:
    if selection.partition is None:
        return np.zeros(len(index), dtype=np.int64)
    return selection.partition[component][index]


def _grouped(
    table: pa.Table, rows: Int64, place: Int64, starts: Int64, keys: Sequence[tuple[str, str]]
) -> _Pool:
    """Return a pool of rows grouped by the values of some columns; those with a null among them are in none.

    ``keys`` are pairs of the column of a match's first event, whose row is one of ``starts``, and that of an
    event of the pool.
    """
    group = np.zeros(len(rows), dtype=np.int64)
    of_candidate = np.zeros(len(starts), dtype=np.int64)
    count = 1
    for own_column, other in keys:
        codes = coded(table, list(dict.fromkeys((own_column, other))))
        here, there = codes[-1][rows], codes[0][starts]
        size = max(int(here.max(initial=0)), int(there.max(initial=0))) + 1
        group = np.where((group >= 0) & (here >= 0), group * size + here, -1)
        of_candidate = np.where((of_candidate >= 0) & (there >= 0), of_candidate * size + there, -1)
        distinct = np.unique(group)
        distinct = distinct[distinct >= 0]
        group = np.where(group >= 0, np.searchsorted(distinct, group), -1)
        of_candidate = _numbers_of(of_candidate, distinct)
        count = max(len(distinct), 1)
    return _Pool(rows, place, group, count, of_candidate)


def _numbers_of(values: Int64, distinct: Int64) -> Int64:
    """Return the place of each value among the distinct ones; -1 where it is none of them."""
    if not len(distinct):
        return np.full(len(values), -1, dtype=np.int64)
    places = np.minimum(np.searchsorted(distinct, values), len(distinct) - 1)
    return np.where((values >= 0) & (distinct[places] == values), places, -1)


def _laid_out(
    pools: Sequence[_Pool], lower: Int64, upper: Int64, offset: Int64, starts: int
) -> ForbiddenEvents:
    parts: list[tuple[Int64, ...]] = []
    sizes: list[Int64] = []
    for pool in pools:
        order = np.lexsort((lower[pool.row], pool.group))
        order = order[np.searchsorted(pool.group[order], 0) :]
        row = pool.row[order]
        parts.append(
            (
                lower[row], upper[row], _highest(upper[row], pool.group[order]), row, pool.place[order],
                offset[row],
            )
        )  # fmt: skip
        sizes.append(np.bincount(pool.group[order], minlength=pool.groups))
    columns = [
        np.concatenate([part[k] for part in parts]) if parts else np.zeros(0, dtype=np.int64)
        for k in range(6)
    ]
    counts = np.concatenate(sizes) if sizes else np.zeros(0, dtype=np.int64)
    return ForbiddenEvents(
        lower=columns[0],
        upper=columns[1],
        highest=columns[2],
        row=columns[3],
        place=columns[4],
        offset=columns[5],
        group_start=starts_of(counts),
        pool_start=np.cumsum([0, *(pool.groups for pool in pools)]).astype(np.int64),
        group_of=np.array([pool.of_candidate[:starts] for pool in pools], dtype=np.int64).reshape(-1, starts),
    )


def _highest(upper: Int64, group: Int64) -> Int64:
    """Return the running maxima of ``upper`` within each group; groups ascend. O(n)."""
    if not len(upper):
        return upper
    low = int(upper.min())
    span = int(upper.max()) - low + 1
    if span < 2**62 // max(int(group[-1]) + 1, 1):
        return np.maximum.accumulate(upper - low + group * span) - group * span + low
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    parts = np.split(upper, starts[1:])
    return np.concatenate([np.maximum.accumulate(part) for part in parts])
