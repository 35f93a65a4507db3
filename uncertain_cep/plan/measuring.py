"""Statistics of the candidates of a pattern, from counts over all and from a sample.

Each component's candidates are thinned on their own, a rare component's not at all: a pair survives with the
product of two known probabilities, so that what is counted among the survivors estimates the whole without
bias. Nothing of the order of the rows is relied on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.plan.plan import EvaluationPlan, PlannedComponent
from uncertain_cep.plan.statistics import (
    ComponentStatistics,
    KeyStatistics,
    LengthStatistics,
    PairStatistics,
    PredicateStatistics,
    Statistics,
)
from uncertain_cep.predicates import Values, column_values, evaluate, evaluate_mask, within_int64
from uncertain_cep.query.typed import Aggregated, Column, TypedExpression, columns_in, variables_of
from uncertain_cep.selection import Selection, codes_of, type_mask

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

_LINE: Final = 2**60
"""Longest line of ticks that partitions are laid out on."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """Some candidates of one component.

    Attributes
    ----------
    rows : (m,) int64
        Rows of the table.
    low, high : (m,) int64
        The intervals, ticks, the component's position subtracted.
    partition : (m,) int64
    share : float
        Of the candidates that are in the sample.
    """

    rows: Int64
    low: Int64
    high: Int64
    partition: Int64
    share: float


@dataclass(frozen=True, slots=True)
class _Lifted:
    """Some candidates on one line, on which those of different groups are out of each other's reach.

    Attributes
    ----------
    low, high : (m,) int64
        Of every candidate of the sample.
    by_low : (k,) int64
        The places of those that take part, by their low.
    sorted_low, sorted_high : (k,) int64
    longest : int
        Largest ``high - low``.
    window : int
        How far behind a high a low may be.
    """

    low: Int64
    high: Int64
    by_low: Int64
    sorted_low: Int64
    sorted_high: Int64
    longest: int
    window: int


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


def _sampled(selection: Selection, j: int, most: int, rng: np.random.Generator) -> _Sample:
    """Return at most ``most`` candidates of a component, spread evenly over its rows."""
    size = len(selection.rows[j])
    kept = min(size, most)
    places = np.arange(kept)
    if kept < size:
        places = ((places + rng.random(kept)) * (size / kept)).astype(np.int64)
    partition = selection.partition
    return _Sample(
        selection.rows[j][places],
        selection.lower[j][places] - j,
        selection.upper[j][places] - j,
        np.zeros(kept, dtype=np.int64) if partition is None else partition[j][places],
        kept / size if size else 1.0,
    )


def _lengths(lower: Int64, upper: Int64, sample: _Sample) -> LengthStatistics:
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
        samples: Sequence[_Sample],
        window: int,
        rng: np.random.Generator,
    ) -> None:
        self._plan, self._table, self._samples, self._rng = plan, table, samples, rng
        self._number = {component.variable: j for j, component in enumerate(plan.components)}
        self._values: dict[tuple[int, str], Values] = {}
        spans = [(int(part.low.min()), int(part.high.max())) for part in samples if len(part.rows)]
        first = min((low for low, _ in spans), default=0)
        self._span = max((high for _, high in spans), default=0) - first + window + 2
        self._first, self._window = first, window
        self._groups, count = _densified([part.partition for part in samples])
        self._lifted = [self._lift(j, group, count) for j, group in enumerate(self._groups)]

    def _lift(self, j: int, group: Int64, groups: int, among: NDArray[np.bool_] | None = None) -> _Lifted:
        """Return the candidates of a component on one line, and those that take part in order."""
        sample, scale = self._samples[j], 1
        # What does not fit on one line is looked at through a coarser clock.
        while (self._span // scale + 2) * groups > _LINE:
            scale *= 2
        base = group * (self._span // scale + 2)
        low = (sample.low - self._first) // scale + base
        high = (sample.high - self._first) // scale + base
        places = np.argsort(low, kind="stable")
        if among is not None:
            places = places[among[places]]
        longest = int((high - low).max()) if len(low) else 0
        return _Lifted(low, high, places, low[places], np.sort(high[places]), longest, self._window // scale)

    def measured(self) -> tuple[tuple[PairStatistics, ...], tuple[PredicateStatistics, ...]]:
        """Return what pairs have in common, and how selective each predicate is."""
        joined = self._plan.joined
        spoken = [self._components(predicate) for predicate in joined]
        selectivity = [UNKNOWN_SELECTIVITY if len(found) < 2 else -1.0 for found in spoken]
        pairs = []
        for i in range(len(self._samples)):
            for j in range(i + 1, len(self._samples)):
                near = _count(self._lifted[i], self._lifted[j])
                mine = [k for k, found in enumerate(spoken) if found == (i, j)]
                product = self._pair(i, j, near, mine, selectivity) if mine else 1.0
                everything = len(self._samples[i].rows) * len(self._samples[j].rows)
                pairs.append(PairStatistics(i, j, near / everything if everything else 0.0, product))
        for k, found in enumerate(spoken):
            if len(found) > 2:
                selectivity[k] = self._among_several(joined[k], found)
        predicates = map(PredicateStatistics, spoken, selectivity)
        return tuple(pairs), tuple(predicates)

    def _components(self, predicate: TypedExpression) -> tuple[int, ...]:
        return tuple(sorted(self._number[variable] for variable in variables_of(predicate)))

    def _pair(self, i: int, j: int, near: float, mine: list[int], selectivity: list[float]) -> float:
        """Return the share of the pairs in reach for which all predicates hold, and set that of each.

        Equalities are counted by sorting, over all pairs of the sample, since they hold for few; the others
        are tried on pairs drawn from those for which the equalities hold.
        """
        joined = self._plan.joined
        equal = [k for k in mine if _is_equality(joined[k])]
        reach, product, held = (self._lifted[i], self._lifted[j]), 1.0, near
        for number, k in enumerate(equal):
            lifted = self._lifted_by(i, j, equal[: number + 1])
            found = _count(*lifted)
            # What a sample does not show may still be there, about half as often as it could show once.
            selectivity[k] = min(1.0, max(found, 0.5) / max(held, 1.0))
            product *= selectivity[k]
            if not found:
                break
            reach, held = lifted, found
        rest = [k for k in mine if k not in equal]
        for k in equal:
            selectivity[k] = 1.0 if selectivity[k] < 0 else selectivity[k]
        if not rest:
            return product
        left, right = self._drawn(reach, SAMPLED_PAIRS)
        if not len(left):
            for k in rest:
                selectivity[k] = UNKNOWN_SELECTIVITY
            return product * UNKNOWN_SELECTIVITY ** len(rest)
        together = np.ones(len(left), dtype=np.bool_)
        for k in rest:
            mask = self._true(joined[k], {i: left, j: right})
            selectivity[k] = _share(mask)
            together &= mask
        return product * _share(together)

    def _among_several(self, predicate: TypedExpression, components: tuple[int, ...]) -> float:
        """Return the share of the combinations in reach of each other for which a predicate holds."""
        first, *others = components
        reach = (self._lifted[first], self._lifted[others[0]])
        chosen = dict(zip(components, self._drawn(reach, SAMPLED_PAIRS), strict=False))
        for j in others[1:]:
            if not len(chosen[first]):
                return UNKNOWN_SELECTIVITY
            start, stop = _range(self._lifted[first], self._lifted[j])
            start, stop = start[chosen[first]], stop[chosen[first]]
            place = start + (self._rng.random(len(start)) * (stop - start)).astype(np.int64)
            some = stop > start
            chosen = {component: found[some] for component, found in chosen.items()}
            chosen[j] = self._lifted[j].by_low[place[some]]
            fits = np.ones(len(chosen[j]), dtype=np.bool_)
            for i in components[: components.index(j)]:
                a, b = self._lifted[i], self._lifted[j]
                fits &= a.low[chosen[i]] <= b.high[chosen[j]]
                fits &= b.low[chosen[j]] <= a.high[chosen[i]] + a.window
            chosen = {component: found[fits] for component, found in chosen.items()}
        if not len(chosen[first]):
            return UNKNOWN_SELECTIVITY
        return _share(self._true(predicate, chosen))

    def _lifted_by(self, i: int, j: int, equal: list[int]) -> tuple[_Lifted, _Lifted]:
        """Return the candidates of two components for which some equalities can hold, apart by values."""
        groups = [self._groups[i], self._groups[j]]
        valid = [np.ones(len(group), dtype=np.bool_) for group in groups]
        count = 1
        for k in equal:
            columns = {self._number[column.variable]: column for column in columns_in(self._plan.joined[k])}
            taken = [
                self._table.column(columns[component].name).take(pa.array(self._samples[component].rows))
                for component in (i, j)
            ]
            codes = codes_of(taken, columns[i].name)
            valid = [mask & (code >= 0) for mask, code in zip(valid, codes, strict=True)]
            size = max((int(code.max()) for code in codes if len(code)), default=0) + 1
            groups, count = _densified(
                [group * size + np.maximum(code, 0) for group, code in zip(groups, codes, strict=True)]
            )
        return self._lift(i, groups[0], count, valid[0]), self._lift(j, groups[1], count, valid[1])

    def _drawn(self, reach: tuple[_Lifted, _Lifted], most: int) -> tuple[Int64, Int64]:
        """Return pairs in reach of each other, as places in the samples, drawn with equal probability."""
        first, second = reach
        kept = first.by_low
        start, stop = (bound[kept] for bound in _range(first, second))
        ends = np.cumsum(stop - start)
        total = int(ends[-1]) if len(ends) else 0
        if not total:
            return kept[:0], kept[:0]
        drawn = np.arange(total) if total <= 2 * most else self._rng.integers(0, total, 2 * most)
        owner = np.searchsorted(ends, drawn, side="right")
        place = drawn - (ends[owner] - (stop - start)[owner]) + start[owner]
        left, right = kept[owner], second.by_low[place]
        fits = second.high[right] >= first.low[left]
        return left[fits][:most], right[fits][:most]

    def _true(self, predicate: TypedExpression, chosen: dict[int, Int64]) -> NDArray[np.bool_]:
        """Return for which combinations a predicate is true; Kleene events are taken for single ones."""

        def load(column: Column) -> Values:
            component = self._number[column.variable]
            key = (component, column.name)
            if key not in self._values:
                rows = pa.array(self._samples[component].rows)
                self._values[key] = column_values(self._table.column(column.name).take(rows), column.name)
            return self._values[key].take(chosen[component])

        size = len(next(iter(chosen.values())))
        if any(isinstance(column, Aggregated) for column in columns_in(predicate)):
            return np.asarray(np.arange(size) % 2 == 0)

        def extremes(column: Column) -> tuple[int, int]:
            data = load(column).data
            return (int(data.min()), int(data.max())) if len(data) else (0, 0)

        found = evaluate(within_int64(predicate, extremes), load)
        truth = np.broadcast_to(np.asarray(found.data, dtype=np.bool_), size)
        return np.asarray(truth if found.valid is None else truth & found.valid)


def _densified(parts: Sequence[Int64]) -> tuple[list[Int64], int]:
    """Return the numbers of some arrays replaced by 0..k-1, equal ones alike across them, and k."""
    distinct, numbers = np.unique(np.concatenate(parts), return_inverse=True)
    ends = np.cumsum([len(part) for part in parts])[:-1]
    return list(np.split(numbers.astype(np.int64).reshape(-1), ends)), len(distinct)


def _is_equality(predicate: TypedExpression) -> bool:
    operands: Sequence[TypedExpression] = getattr(predicate, "operands", ())
    plain: Callable[[TypedExpression], bool] = lambda part: (  # noqa: E731
        isinstance(part, Column) and not isinstance(part, Aggregated)
    )
    kinds = {part.kind for part in operands}
    return getattr(predicate, "operator", None) == "equal" and all(map(plain, operands)) and len(kinds) == 1


def _count(first: _Lifted, second: _Lifted) -> float:
    """Return how many pairs can be in this order within the window. O(m log m).

    With positions subtracted an event can be before another within the window iff it begins before the other
    ends, and the other begins within the window of its end; what ends before it begins does so anyway.
    """
    begins = np.searchsorted(second.sorted_low, first.sorted_high + first.window, side="right").sum()
    ends = np.searchsorted(second.sorted_high, first.sorted_low, side="left").sum()
    return float(begins - ends)


def _range(first: _Lifted, second: _Lifted) -> tuple[Int64, Int64]:
    """Return between which places of ``second.by_low`` each of ``first`` finds those in its reach."""
    start = np.searchsorted(second.sorted_low, first.low - second.longest, side="left")
    stop = np.searchsorted(second.sorted_low, first.high + first.window, side="right")
    return start, np.maximum(start, stop)


def _share(mask: NDArray[np.bool_]) -> float:
    """Return the share of what is true, not below half of what would show once."""
    return max(float(mask.sum()), 0.5) / len(mask)
