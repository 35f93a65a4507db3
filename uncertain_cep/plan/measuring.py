"""Statistics of the candidates of a pattern, from counts over all and from a sample.

Each component's candidates are thinned on their own, a rare component's not at all: a pair survives with the
product of two known probabilities, so that what is counted among the survivors estimates the whole without
bias. Nothing of the order of the rows is relied on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.plan.plan import EvaluationPlan, PlannedComponent
from uncertain_cep.plan.reach import Lifted, Sample, count_pairs, densified, draw_more, draw_pairs, lift
from uncertain_cep.plan.statistics import (
    ComponentStatistics,
    KeyStatistics,
    LengthStatistics,
    PairStatistics,
    PredicateStatistics,
    Statistics,
)
from uncertain_cep.predicates import Values, column_values, evaluate, evaluate_mask, within_int64
from uncertain_cep.query.typed import Aggregated, Apply, Column, TypedExpression, columns_in, variables_of
from uncertain_cep.selection import Selection, type_mask

__all__ = ["measure"]

Int64 = NDArray[np.int64]

SAMPLED_EVENTS: Final = 4096
"""Rows of the table that types and local predicates are looked at on."""

SAMPLED_CANDIDATES: Final = 24_576
"""Candidates of all components together in the sample that is joined."""

SAMPLED_PAIRS: Final = 2048
"""Pairs in reach of each other that a predicate is tried on."""

LARGEST_PARTITIONS: Final = 16
"""Partitions whose share of each component is kept; the others are taken for equally large."""

UNKNOWN_SELECTIVITY: Final = 0.5
"""Of a predicate over several events of a Kleene component, which no pair of events can tell."""


def measure(plan: EvaluationPlan, table: pa.Table, selection: Selection, *, seed: int = 0) -> Statistics:
    """Measure what a planner has to know of the candidates of an OR-free pattern.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
        With the plan's required columns.
    selection : Selection
        The candidates in it.
    seed : int
        Of the sample; the same table and seed give the same statistics.

    Notes
    -----
    O(n) for counts of n candidates, and O(m log m) for each pair of components on a sample of bounded size.
    """
    rng = np.random.default_rng(seed)
    length = len(plan.components)
    # Positions are subtracted as the join does it, so that order and window become two inequalities.
    sizes = [len(rows) for rows in selection.rows]
    filled = [j for j, size in enumerate(sizes) if size]
    earliest = min((int(selection.lower[j].min()) for j in filled), default=0)
    latest = max((int(selection.upper[j].max()) for j in filled), default=0)
    ticks = latest - earliest + 1
    window = max(0, min(plan.window - length, ticks + length))
    most = max(512, SAMPLED_CANDIDATES // max(1, length))
    samples = [_sampled(selection, j, most, rng) for j in range(length)]
    shares = _Shares(plan, table, rng)
    components = tuple(
        ComponentStatistics(
            component.variable,
            float(size),
            size / ticks,
            *shares.of(component),
            _lengths(selection.lower[j], selection.upper[j], samples[j]),
        )
        for j, (component, size) in enumerate(zip(plan.components, sizes, strict=True))
    )
    negated = tuple(_negated(found.component, shares, table.num_rows, ticks) for found in plan.negations)
    pairs, predicates = _Joint(plan, table, samples, window, rng).measured()
    return Statistics(
        events=float(table.num_rows),
        ticks=float(ticks),
        components=components,
        negated=negated,
        pairs=pairs,
        predicates=predicates,
        keys=_keys(selection),
    )


def _sampled(selection: Selection, j: int, most: int, rng: np.random.Generator) -> Sample:
    """Return at most ``most`` candidates of a component, spread evenly over its rows."""
    size = len(selection.rows[j])
    kept = min(size, most)
    places = np.arange(kept)
    if kept < size:
        places = ((places + rng.random(kept)) * (size / kept)).astype(np.int64)
    partition = selection.partition
    return Sample(
        selection.rows[j][places],
        selection.lower[j][places] - j,
        selection.upper[j][places] - j,
        np.zeros(kept, dtype=np.int64) if partition is None else partition[j][places],
    )


def _lengths(lower: Int64, upper: Int64, sample: Sample) -> LengthStatistics:
    if not len(lower):
        return LengthStatistics(0.0, 0.0, 0.0, 0.0)
    lengths = upper - lower
    median, most = np.quantile(sample.high - sample.low, (0.5, 0.9))
    return LengthStatistics(float(lengths.mean()), float(median), float(most), float(lengths.max()))


class _Shares:
    """Shares of the events that have some type, and of these for which a predicate is true."""

    def __init__(self, plan: EvaluationPlan, table: pa.Table, rng: np.random.Generator) -> None:
        size = table.num_rows
        if size > SAMPLED_EVENTS:
            step = size / SAMPLED_EVENTS
            places = ((np.arange(SAMPLED_EVENTS) + rng.random(SAMPLED_EVENTS)) * step).astype(np.int64)
            table = table.take(pa.array(places))
        self._table, self._type = table, plan.names.type
        self._seen: dict[str, NDArray[np.bool_]] = {}

    def of(self, component: PlannedComponent) -> tuple[float, tuple[float, ...]]:
        """Return the share of a component's types, and of each of its local predicates."""
        rows = self._table.num_rows
        if not rows:
            return 0.0, tuple(0.0 for _ in component.local)
        mask = type_mask(self._table, self._type, component.types, self._seen)
        if mask is None:
            mask = np.ones(rows, dtype=np.bool_)
        found = int(mask.sum())
        local = tuple(
            int((evaluate_mask(predicate, self._table) & mask).sum()) / found if found else 0.0
            for predicate in component.local
        )
        return found / rows, local


def _negated(component: PlannedComponent, shares: _Shares, rows: int, ticks: int) -> ComponentStatistics:
    """Return the statistics of a negated component, whose candidates nobody selects before they are asked."""
    share, local = shares.of(component)
    candidates = rows * share * float(np.prod(local))
    nothing = LengthStatistics(0.0, 0.0, 0.0, 0.0)
    return ComponentStatistics(component.variable, candidates, candidates / ticks, share, local, nothing)


def _keys(selection: Selection) -> KeyStatistics:
    length, partitions = len(selection.rows), selection.partitions
    if selection.partition is None:
        return KeyStatistics(1, 1.0, 1.0, ((1.0,) * length,))
    counts = np.stack([np.bincount(part, minlength=partitions) for part in selection.partition])
    totals = counts.sum(axis=0)
    everything = float(totals.sum())
    if not everything:
        return KeyStatistics(partitions, 0.0, float(max(1, partitions)), ())
    kept = min(LARGEST_PARTITIONS, partitions)
    largest = np.argpartition(totals, partitions - kept)[partitions - kept :]
    largest = largest[np.argsort(-totals[largest], kind="stable")]
    shares = counts[:, largest] / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return KeyStatistics(
        partitions=int((totals > 0).sum()),
        largest=float(totals.max()) / everything,
        effective=everything**2 / float((totals.astype(np.float64) ** 2).sum()),
        shares=tuple(tuple(column) for column in shares.T.tolist()),
    )


class _Joint:
    """What is counted among the candidates of several components."""

    def __init__(
        self,
        plan: EvaluationPlan,
        table: pa.Table,
        samples: Sequence[Sample],
        window: int,
        rng: np.random.Generator,
    ) -> None:
        self._plan, self._table, self._window, self._rng = plan, table, window, rng
        self._number = {component.variable: j for j, component in enumerate(plan.components)}
        self._values: dict[tuple[int, str], Values] = {}
        spans = [(int(part.low.min()), int(part.high.max())) for part in samples if len(part.rows)]
        self._span = min((low for low, _ in spans), default=0), max((high for _, high in spans), default=0)
        groups, count = densified([part.group for part in samples])
        self._samples = [replace(part, group=group) for part, group in zip(samples, groups, strict=True)]
        self._lifted = [lift(part, count, self._span, window) for part in self._samples]

    def measured(self) -> tuple[tuple[PairStatistics, ...], tuple[PredicateStatistics, ...]]:
        """Return what pairs have in common, and how selective each predicate is."""
        predicates = [self._unmeasured(predicate) for predicate in self._plan.joined]
        pairs = []
        for i, j in combinations(range(len(self._samples)), 2):
            near = count_pairs(self._lifted[i], self._lifted[j], shared=self._may_share(i, j))
            everything = len(self._samples[i].rows) * len(self._samples[j].rows)
            joined = 1.0
            if everything and (mine := [k for k, part in enumerate(predicates) if part.components == (i, j)]):
                joined, each = self._pair(i, j, near, mine)
                for k, selectivity in each.items():
                    predicates[k] = PredicateStatistics((i, j), selectivity)
            # What a sample does not show may still be there, half as often as it could show once.
            pairs.append(PairStatistics(i, j, max(near, 0.5) / everything if everything else 0.0, joined))
        for k, part in enumerate(predicates):
            if len(part.components) > 2 and part.selectivity < 1.0:
                found = self._among_several(self._plan.joined[k], part.components)
                predicates[k] = replace(part, selectivity=found)
        return tuple(pairs), tuple(predicates)

    def _unmeasured(self, predicate: TypedExpression) -> PredicateStatistics:
        variables = variables_of(predicate)
        components = sorted(self._number[variable] for variable in variables if variable in self._number)
        # What speaks of a negated component says nothing of which choices of the others there are.
        unknown = UNKNOWN_SELECTIVITY if len(components) == len(variables) else 1.0
        return PredicateStatistics(tuple(components), unknown)

    def _may_share(self, i: int, j: int) -> bool:
        first, second = self._plan.components[i].types, self._plan.components[j].types
        return not first or not second or bool({*first} & {*second})

    def _pair(self, i: int, j: int, near: int, mine: list[int]) -> tuple[float, dict[int, float]]:
        """Return the share of the pairs in reach for which all of some predicates hold, and for which each.

        Equalities are counted by sorting, over all pairs of the sample, since they hold for few; the others
        are tried on pairs drawn from those for which the equalities hold.
        """
        joined = self._plan.joined
        equal = [k for k in mine if _is_equality(joined[k])]
        rest = [k for k in mine if k not in equal]
        reach, product, held = (self._lifted[i], self._lifted[j]), 1.0, float(near)
        each: dict[int, float] = dict.fromkeys(equal, 1.0)
        for number, k in enumerate(equal):
            lifted = self._lifted_by(i, j, equal[: number + 1])
            found = count_pairs(*lifted, shared=self._may_share(i, j))
            each[k] = min(1.0, max(found, 0.5) / max(held, 1.0))
            product *= each[k]
            if not found:
                break
            reach, held = lifted, found
        if not rest:
            return product, each
        left, right = draw_pairs(*reach, SAMPLED_PAIRS, self._rng)
        if not len(left):
            each |= dict.fromkeys(rest, UNKNOWN_SELECTIVITY)
            return product * UNKNOWN_SELECTIVITY ** len(rest), each
        together = np.ones(len(left), dtype=np.bool_)
        for k in rest:
            mask = self._true(joined[k], {i: left, j: right})
            each[k] = _share(mask)
            together &= mask
        return product * _share(together), each

    def _lifted_by(self, i: int, j: int, equal: list[int]) -> tuple[Lifted, Lifted]:
        """Return the candidates of two components for which some equalities can hold, apart by values."""
        samples = [self._samples[i], self._samples[j]]
        groups, count = [part.group for part in samples], 1
        valid = [np.ones(len(group), dtype=np.bool_) for group in groups]
        for k in equal:
            columns = {self._number[column.variable]: column for column in columns_in(self._plan.joined[k])}
            values = [self._loaded(component, columns[component].name) for component in (i, j)]
            codes, size = _codes(values)
            for mask, found in zip(valid, values, strict=True):
                if found.valid is not None:
                    mask &= found.valid
            groups, count = densified(
                [group * size + code for group, code in zip(groups, codes, strict=True)]
            )
        first, second = (
            lift(replace(part, group=group), count, self._span, self._window, mask)
            for part, group, mask in zip(samples, groups, valid, strict=True)
        )
        return first, second

    def _among_several(self, predicate: TypedExpression, components: tuple[int, ...]) -> float:
        """Return the share of the combinations in reach of each other for which a predicate holds."""
        first, second, *others = components
        left, right = draw_pairs(self._lifted[first], self._lifted[second], SAMPLED_PAIRS, self._rng)
        chosen = {first: left, second: right}
        for j in others:
            chosen = draw_more(chosen, self._lifted, j, self._rng)
        if not len(chosen[first]):
            return UNKNOWN_SELECTIVITY
        return _share(self._true(predicate, chosen))

    def _loaded(self, component: int, name: str) -> Values:
        key = (component, name)
        if key not in self._values:
            rows = pa.array(self._samples[component].rows)
            self._values[key] = column_values(self._table.column(name).take(rows), name)
        return self._values[key]

    def _true(self, predicate: TypedExpression, chosen: dict[int, Int64]) -> NDArray[np.bool_]:
        """Return for which combinations a predicate is true; Kleene events are taken for single ones."""

        def load(column: Column) -> Values:
            component = self._number[column.variable]
            return self._loaded(component, column.name).take(chosen[component])

        def extremes(column: Column) -> tuple[int, int]:
            data = load(column).data
            return (int(data.min()), int(data.max())) if len(data) else (0, 0)

        size = len(next(iter(chosen.values())))
        if any(isinstance(column, Aggregated) for column in columns_in(predicate)):
            return np.asarray(np.arange(size) % 2 == 0)
        found = evaluate(within_int64(predicate, extremes), load)
        truth = np.broadcast_to(np.asarray(found.data, dtype=np.bool_), size)
        return np.asarray(truth if found.valid is None else truth & found.valid)


def _codes(values: Sequence[Values]) -> tuple[list[Int64], int]:
    """Return numbers from 0 for values, equal ones alike, and how many there are."""
    if isinstance(values[0].data, pa.Array):
        distinct = pa.chunked_array([part.data for part in values]).unique().drop_null()
        found = [pc.index_in(part.data, distinct).fill_null(0) for part in values]
        codes = [np.asarray(part.to_numpy(zero_copy_only=False)).astype(np.int64) for part in found]
        return codes, max(1, len(distinct))
    numbers, size = densified([np.asarray(part.data) for part in values])
    return numbers, max(1, size)


def _is_equality(predicate: TypedExpression) -> bool:
    """Return whether a predicate says that two attributes of one kind are equal."""
    if not isinstance(predicate, Apply) or predicate.operator != "equal":
        return False
    plain = [isinstance(part, Column) and not isinstance(part, Aggregated) for part in predicate.operands]
    return all(plain) and len({part.kind for part in predicate.operands}) == 1


def _share(mask: NDArray[np.bool_]) -> float:
    """Return the share of what is true, not below half of what would show once."""
    return max(float(mask.sum()), 0.5) / len(mask)
