"""Statistics of the candidates of a pattern, from counts over all and from a sample.

Each component is sampled by itself, a rare one as a whole. So a pair is in the sample with the product of two
known probabilities, and counts on the sample estimate those on all candidates without bias, whatever the
order of the rows.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.pmfs import explicit_pmfs
from uncertain_cep.candidates.reach import Sample
from uncertain_cep.candidates.selection import Selection, type_mask
from uncertain_cep.config.tuning import COARSE_SAMPLE, SAMPLED_EVENTS
from uncertain_cep.expressions.vectorised import evaluate_mask
from uncertain_cep.optimizer.sampling import JointSample
from uncertain_cep.optimizer.statistics import (
    ComponentStatistics,
    KeyStatistics,
    LengthStatistics,
    Statistics,
)
from uncertain_cep.plan.components import PlannedComponent
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.query.typed import columns_in

__all__ = ["measure"]

Int64 = NDArray[np.int64]

_FEW_NEGATED: Final = 64
"""Events of a negated component in that sample below which all events of its types are looked at."""

_FEWEST_SAMPLED: Final = 512
"""Candidates of one component in that sample, however many components there are."""

_LARGEST_PARTITIONS: Final = 16
"""Partitions whose share of each component is kept; the others are taken for equally large."""


def measure(
    plan: EvaluationPlan,
    table: pa.Table,
    selection: Selection,
    *,
    sampled: int = COARSE_SAMPLE,
    seed: int = 0,
) -> Statistics:
    """Measure what a planner has to know of the candidates of an OR-free pattern.

    About ``sampled`` candidates of all components together are joined with each other; the same table and
    seed give the same statistics. O(m log m) for each pair of components on a sample of bounded size, and
    O(n) for n candidates only where there are partitions to count them by.
    """
    rng = np.random.default_rng(seed)
    length = len(plan.components)
    sizes = [len(rows) for rows in selection.rows]
    size = max(_FEWEST_SAMPLED, sampled // length)
    samples = [_sampled(selection, j, size, rng) for j in range(length)]
    filled = [(j, part) for j, part in enumerate(samples) if len(part.rows)]
    earliest = min((int(part.low.min()) + j for j, part in filled), default=0)
    latest = max((int(part.high.max()) + j for j, part in filled), default=0)
    ticks = latest - earliest + 1
    window = max(0, min(plan.window - length, ticks + length))
    shares = _Shares(plan, table, rng)
    components = tuple(
        ComponentStatistics(
            component.variable,
            float(size),
            size / ticks,
            *shares.of(component, size),
            _lengths(samples[j].high - samples[j].low),
        )
        for j, (component, size) in enumerate(zip(plan.components, sizes, strict=True))
    )
    negated = tuple(
        _negated(plan, negation.component, shares, table.num_rows, ticks) for negation in plan.negations
    )
    joint = JointSample(plan, table, samples, sizes, window, rng)
    pairs, equalities, predicates = joint.measured()
    return Statistics(
        events=float(table.num_rows),
        ticks=float(ticks),
        components=components,
        negated=negated,
        pairs=pairs,
        triples=joint.triples(pairs),
        equalities=equalities,
        predicates=predicates,
        keys=_keys(selection),
    )


def _sampled(selection: Selection, j: int, limit: int, rng: np.random.Generator) -> Sample:
    """Return at most ``limit`` candidates of a component, spread evenly over its rows.

    Positions are subtracted as the joins do it, so that order and window become two inequalities.
    """
    size = len(selection.rows[j])
    kept = min(size, limit)
    places = np.arange(kept)
    if kept < size:
        places = np.unique(((places + rng.random(kept)) * (size / kept)).astype(np.int64))
        kept = len(places)
    partition = selection.partition
    return Sample(
        selection.rows[j][places],
        selection.lower[j][places] - j,
        selection.upper[j][places] - j,
        np.zeros(kept, dtype=np.int64) if partition is None else partition[j][places],
    )


def _lengths(lengths: Int64) -> LengthStatistics:
    if not len(lengths):
        return LengthStatistics(0.0, 0.0, 0.0, 0.0)
    ascending = np.sort(lengths)
    last = len(lengths) - 1
    median, ninth_decile = np.interp((0.5 * last, 0.9 * last), np.arange(len(lengths)), ascending)
    return LengthStatistics(float(lengths.mean()), float(median), float(ninth_decile), float(ascending[-1]))


class _Shares:
    """Shares of the events that have some type, and of these for which a predicate is true."""

    def __init__(self, plan: EvaluationPlan, table: pa.Table, rng: np.random.Generator) -> None:
        size = table.num_rows
        parts = (*plan.components, *(negation.component for negation in plan.negations))
        attributes = {column.name for part in parts for one in part.local for column in columns_in(one)}
        if plan.negations:
            attributes |= {plan.names.lower, plan.names.upper, plan.names.pmf} & {*table.column_names}
        table = table.select([plan.names.type, *sorted(attributes - {plan.names.type})])
        self._whole = self._table = table
        if size > SAMPLED_EVENTS:
            step = size / SAMPLED_EVENTS
            places = ((np.arange(SAMPLED_EVENTS) + rng.random(SAMPLED_EVENTS)) * step).astype(np.int64)
            self._table = table.take(pa.array(places))
        self._type, self._rows = plan.names.type, size
        self._seen: dict[str, NDArray[np.bool_]] = {}

    def of(self, component: PlannedComponent, candidates: int = 0) -> tuple[float, tuple[float, ...]]:
        """Return the share of a component's types, and of each of its local predicates.

        Where the sample has no event of its types, there are taken to be as many as its candidates.
        """
        rows = self._table.num_rows
        if not rows:
            return 0.0, tuple(1.0 for _ in component.local)
        mask = type_mask(self._table, self._type, component.types, self._seen)
        if mask is None:
            mask = np.ones(rows, dtype=np.bool_)
        events = int(mask.sum())
        local = tuple(
            int((evaluate_mask(predicate, self._table) & mask).sum()) / events if events else 1.0
            for predicate in component.local
        )
        return max(events / rows, candidates / self._rows), local

    def events(self, component: PlannedComponent) -> tuple[float, pa.Table]:
        """Return the share of a component's types, and a sample of their events.

        If the sample of all events has few of them, they are sampled from all events of these types.
        """
        mask = type_mask(self._table, self._type, component.types, self._seen)
        if mask is None:
            return 1.0, self._table
        if mask.sum() >= _FEW_NEGATED or self._table.num_rows == self._rows:
            return float(mask.sum()) / max(1, self._table.num_rows), self._table.filter(pa.array(mask))
        whole = type_mask(self._whole, self._type, component.types, {})
        assert whole is not None
        rows = np.flatnonzero(whole)
        step = -(-len(rows) // SAMPLED_EVENTS) or 1
        return len(rows) / self._rows, self._whole.take(pa.array(rows[::step]))


def _negated(
    plan: EvaluationPlan, component: PlannedComponent, shares: _Shares, rows: int, ticks: int
) -> ComponentStatistics:
    """Return the statistics of a negated component, whose candidates are not selected yet."""
    share, events = shares.events(component)
    masks = [evaluate_mask(predicate, events) for predicate in component.local]
    local = tuple(float(mask.mean()) if len(mask) else 1.0 for mask in masks)
    taken = np.logical_and.reduce([np.ones(events.num_rows, dtype=np.bool_), *masks])
    candidates = rows * share * float(np.prod(local))
    names, tick = plan.names, plan.domain.tick
    lower, upper = (
        np.asarray(events.column(name).cast(pa.int64()).to_numpy()) // tick
        for name in (names.lower, names.upper)
    )
    _, lower, upper = explicit_pmfs(events, names.pmf, lower, upper)
    lengths = _lengths((upper - lower)[taken])
    return ComponentStatistics(component.variable, candidates, candidates / ticks, share, local, lengths)


def _keys(selection: Selection) -> KeyStatistics:
    length, partitions = len(selection.rows), selection.partitions
    if selection.partition is None:
        return KeyStatistics(1, 1.0, 1.0, ((1.0,) * length,))
    counts = np.stack([np.bincount(part, minlength=partitions) for part in selection.partition])
    totals = counts.sum(axis=0)
    everything = float(totals.sum())
    if not everything:
        return KeyStatistics(partitions, 0.0, float(max(1, partitions)), ())
    kept = min(_LARGEST_PARTITIONS, partitions)
    largest = np.argpartition(totals, partitions - kept)[partitions - kept :]
    largest = largest[np.argsort(-totals[largest], kind="stable")]
    shares = counts[:, largest] / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return KeyStatistics(
        partitions=int((totals > 0).sum()),
        largest=float(totals.max()) / everything,
        effective=everything**2 / float((totals.astype(np.float64) ** 2).sum()),
        shares=tuple(tuple(column) for column in shares.T.tolist()),
    )
