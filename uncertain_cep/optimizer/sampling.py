"""How candidates of several components go together, counted on a sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.reach import (
    Lifted,
    Sample,
    count_pairs,
    count_third,
    draw_more,
    draw_pairs,
    lift,
    met_by_any,
)
from uncertain_cep.config.tuning import UNKNOWN_SELECTIVITY
from uncertain_cep.expressions.beyond_int64 import as_int64_or_float64
from uncertain_cep.expressions.codes import codes_of_values, dense
from uncertain_cep.expressions.vectorised import Values, evaluate, loaded_from
from uncertain_cep.expressions.whole_numbers import with_checks
from uncertain_cep.optimizer.statistics import (
    EqualityStatistics,
    PairStatistics,
    PredicateStatistics,
    TripleStatistics,
)
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.query.typed import Aggregated, Apply, Column, TypedExpression, columns_in, variables_of

__all__ = ["JointSample"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

_SAMPLED_PAIRS: Final = 1536
"""Pairs that a predicate is tried on, if they are in reach of each other."""


class JointSample:
    """Some candidates of each component, and how often the plan's conditions hold among them.

    ``samples`` and ``sizes`` are each component's sample and number of candidates; ``window`` is the ticks w
    of ``max A <= min B + w``.
    """

    def __init__(
        self,
        plan: EvaluationPlan,
        table: pa.Table,
        samples: Sequence[Sample],
        sizes: Sequence[int],
        window: int,
        rng: np.random.Generator,
    ) -> None:
        self._plan, self._table, self._window, self._rng = plan, table, window, rng
        self._before = plan.event_order.before
        self._number = {component.variable: j for j, component in enumerate(plan.components)}
        self._values: dict[int, Callable[[Column], Values]] = {}
        self._values_equated = _values_equated(plan.joined, self._number)
        spans = [(int(part.low.min()), int(part.high.max())) for part in samples if len(part.rows)]
        self._span = min((low for low, _ in spans), default=0), max((high for _, high in spans), default=0)
        self._sizes = sizes
        self._latest: dict[int, Int64] = {}
        groups, count = dense([part.group for part in samples])
        self._samples = [replace(part, group=group) for part, group in zip(samples, groups, strict=True)]
        self._lifted = [lift(part, count, self._span, window) for part in self._samples]
        # For each set of equated values: the groups of the samples, and which events have these values.
        everybody = {
            j: (part.group, np.ones(len(part.rows), dtype=np.bool_)) for j, part in enumerate(self._samples)
        }
        self._apart: dict[tuple[int, ...], dict[int, tuple[Int64, Mask]]] = {(): everybody}
        self._equal_lifted: dict[tuple[int, tuple[int, ...]], Lifted] = {}

    def triples(self, pairs: Sequence[PairStatistics]) -> tuple[TripleStatistics, ...]:
        """Return how often neighbours meet a third component, where all are in order and share no events."""
        length = len(self._samples)
        chosen = {(j, j + 1, k) for j in range(length - 2) for k in (j + 2, length - 1)}
        sizes = [len(part.rows) for part in self._samples]
        near = {(part.first, part.second): part.in_time for part in pairs}
        drawn_pairs: dict[tuple[int, int], tuple[Int64, Int64]] = {}
        triples = []
        for i, j, k in sorted(chosen):
            tried = float(sizes[i]) * sizes[j] * sizes[k]
            pairs_of = list(combinations((i, j, k), 2))
            if not tried or any(self._may_share(*pair) or not self._ordered(*pair) for pair in pairs_of):
                continue
            parts = self._lifted[i], self._lifted[j], self._lifted[k]
            if (i, j) not in drawn_pairs:
                drawn_pairs[i, j] = draw_pairs(parts[0], parts[1], _SAMPLED_PAIRS, self._rng)
            drawn = drawn_pairs[i, j]
            if len(drawn[0]):
                each = count_third(drawn, parts) / len(drawn[0])
                triples.append(TripleStatistics((i, j, k), near[i, j] * each / sizes[k], tried))
        return tuple(triples)

    def measured(
        self,
    ) -> tuple[tuple[PairStatistics, ...], tuple[EqualityStatistics, ...], tuple[PredicateStatistics, ...]]:
        """Return the statistics of pairs, and the selectivity of each predicate."""
        predicates = [self._unmeasured(predicate) for predicate in self._plan.joined]
        pairs, equalities = [], []
        for i, j in combinations(range(len(self._samples)), 2):
            near = self._counted(i, j, self._lifted[i], self._lifted[j])
            everything = len(self._samples[i].rows) * len(self._samples[j].rows)
            # What the sample does not show may still occur: it counts as half an occurrence.
            in_time = max(near, 0.5) / everything if everything else 0.0
            equal, reach = self._equal(i, j, near)
            equalities += equal
            joined = self._rest(i, j, reach, predicates) if everything else 1.0
            pairs.append(PairStatistics(i, j, in_time, joined, self._met(i, j), self._met(j, i)))
            for part in equal:
                for k in self._values_equated[part.value].stated.get((i, j), ()):
                    predicates[k] = PredicateStatistics((i, j), part.share, True)
        for k, statistics in enumerate(predicates):
            if len(statistics.components) > 2 and statistics.selectivity < 1.0:
                share = self._among_several(self._plan.joined[k], statistics.components)
                predicates[k] = replace(statistics, selectivity=share)
        return tuple(pairs), tuple(equalities), tuple(predicates)

    def _unmeasured(self, predicate: TypedExpression) -> PredicateStatistics:
        variables = variables_of(predicate)
        components = sorted(self._number[variable] for variable in variables if variable in self._number)
        # A predicate that mentions a negated component leaves out no choice of the others.
        unknown = UNKNOWN_SELECTIVITY if len(components) == len(variables) else 1.0
        return PredicateStatistics(tuple(components), unknown)

    def _met(self, i: int, j: int) -> float:
        """Return the share of the candidates of a component that are in reach of some of another."""
        part, other = self._lifted[i], self._lifted[j]
        if not len(part.rows) or not len(other.rows):
            return 0.0
        if j not in self._latest:
            self._latest[j] = np.maximum.accumulate(other.high[other.by_low])
        apart = -part.window
        ahead, behind = (apart, 0) if i < j else (0, apart)
        if not self._ordered(min(i, j), max(i, j)):
            ahead = behind = apart
        met = met_by_any(other.sorted_low, self._latest[j], part.low, part.high, ahead, behind)
        missed = 1.0 - max(int(met.sum()), 0.5) / len(part.rows)
        # As many more candidates of the other component would miss the same share of the rest.
        return float(1.0 - missed ** (self._sizes[j] / len(other.rows)))

    def _counted(self, i: int, j: int, first: Lifted, second: Lifted) -> int:
        """Return how many pairs of candidates of two components are in reach of each other."""
        return count_pairs(first, second, shared=self._may_share(i, j), anyhow=not self._ordered(i, j))

    def _ordered(self, i: int, j: int) -> bool:
        """Return whether the events of a component come before those of a later one."""
        return bool(self._before[j] >> i & 1)

    def _may_share(self, i: int, j: int) -> bool:
        first, second = self._plan.components[i].types, self._plan.components[j].types
        return not first or not second or bool({*first} & {*second})

    def _equal(self, i: int, j: int, near: int) -> tuple[list[EqualityStatistics], tuple[Lifted, Lifted]]:
        """Return the share of the pairs in reach that are equal, by value, and the samples of those equal.

        All pairs of the sample are counted, by sorting, since few are equal.
        """
        reach, held = (self._lifted[i], self._lifted[j]), float(near)
        everything = all(len(self._samples[component].rows) for component in (i, j))
        values: tuple[int, ...] = ()
        equalities = []
        for number, equated in enumerate(self._values_equated):
            if i not in equated.nodes or j not in equated.nodes:
                continue
            stated = (i, j) in equated.stated
            if not held or not everything:
                equalities.append(EqualityStatistics(i, j, number, 1.0, stated))
                continue
            values = (*values, number)
            first, second = self._by_values(i, values), self._by_values(j, values)
            equal = self._counted(i, j, first, second)
            equalities.append(EqualityStatistics(i, j, number, min(1.0, max(equal, 0.5) / held), stated))
            held = float(equal)
            if equal:
                reach = first, second
        return equalities, reach

    def _by_values(self, component: int, values: tuple[int, ...]) -> Lifted:
        """Return a component's sample, in groups of events that are equal in the equated values."""
        if (component, values) not in self._equal_lifted:
            *before, last = values
            nodes = self._values_equated[last].nodes
            among = [k for k in nodes if all(k in self._values_equated[number].nodes for number in before)]
            codes, size = _codes([self._evaluated(nodes[k], {k: None}) for k in among])
            apart = self._apart[tuple(before)]
            groups, count = dense(
                [apart[k][0] * size + code for k, (code, _) in zip(among, codes, strict=True)]
            )
            self._apart[values] = {
                k: (group, apart[k][1] & valid)
                for k, group, (_, valid) in zip(among, groups, codes, strict=True)
            }
            for k, (group, valid) in self._apart[values].items():
                part = replace(self._samples[k], group=group)
                self._equal_lifted[k, values] = lift(part, count, self._span, self._window, valid)
        return self._equal_lifted[component, values]

    def _rest(
        self, i: int, j: int, reach: tuple[Lifted, Lifted], predicates: list[PredicateStatistics]
    ) -> float:
        """Return the share of pairs for which all predicates but equalities hold, and set that of each."""
        stated = {k for equated in self._values_equated for k in equated.stated.get((i, j), ())}
        further = [k for k, part in enumerate(predicates) if part.components == (i, j) and k not in stated]
        further = [k for k in further if predicates[k].selectivity < 1.0]
        if not further:
            return 1.0
        left, right = draw_pairs(*reach, _SAMPLED_PAIRS, self._rng)
        if not len(left):
            return UNKNOWN_SELECTIVITY ** len(further)
        together = np.ones(len(left), dtype=np.bool_)
        for k in further:
            mask = self._true(self._plan.joined[k], {i: left, j: right})
            predicates[k] = PredicateStatistics((i, j), _share(mask))
            together &= mask
        return _share(together)

    def _among_several(self, predicate: TypedExpression, components: tuple[int, ...]) -> float:
        """Return the share of the combinations in reach of each other for which a predicate holds."""
        first, second, *further = components
        left, right = draw_pairs(self._lifted[first], self._lifted[second], _SAMPLED_PAIRS, self._rng)
        chosen = {first: left, second: right}
        for j in further:
            chosen = draw_more(chosen, self._lifted, j, self._rng)
        if not len(chosen[first]):
            return UNKNOWN_SELECTIVITY
        return _share(self._true(predicate, chosen))

    def _true(self, predicate: TypedExpression, chosen: Mapping[int, Int64]) -> Mask:
        """Return for which combinations a predicate is true; Kleene events are taken for single ones."""
        size = len(next(iter(chosen.values())))
        if any(isinstance(column, Aggregated) for column in columns_in(predicate)):
            return np.asarray(np.arange(size) % 2 == 0)
        values = self._evaluated(predicate, chosen)
        truth = np.broadcast_to(np.asarray(values.data, dtype=np.bool_), size)
        return np.asarray(truth if values.valid is None else truth & values.valid)

    def _evaluated(self, expression: TypedExpression, chosen: Mapping[int, Int64 | None]) -> Values:
        """Return an expression's values for choices of candidates; None for all of the sample's."""

        def load(column: Column) -> Values:
            component = self._number[column.variable]
            if component not in self._values:
                rows = pa.array(self._samples[component].rows)
                self._values[component] = loaded_from(lambda name: self._table.column(name).take(rows))
            places = chosen[component]
            values: Values = self._values[component](column)
            return values if places is None else values.take(places)

        def extremes(column: Column) -> tuple[int, int]:
            data = load(column).data
            return (int(data.min()), int(data.max())) if len(data) else (0, 0)

        return as_int64_or_float64(evaluate(with_checks(expression, extremes), load))


@dataclass(slots=True)
class _Equated:
    """A value that equalities equate: its expression in each component, and the predicates."""

    nodes: dict[int, TypedExpression]
    """The expression of each component."""
    stated: dict[tuple[int, int], list[int]]
    """For each pair of components the numbers of the predicates that state it."""


def _values_equated(predicates: Sequence[TypedExpression], number: Mapping[str, int]) -> list[_Equated]:
    """Return the values that predicates make equal, chains of equalities followed.

    They are followed where both sides are of one kind: not from int over float to int.
    """
    equated: list[_Equated] = []
    for k, predicate in enumerate(predicates):
        nodes = _sides(predicate, number)
        if nodes is None:
            continue
        (i, one), (j, other) = sorted(nodes.items())
        alike = one.kind == other.kind
        held = [
            part for part in equated if alike and (part.nodes.get(i) == one or part.nodes.get(j) == other)
        ]
        merged = _Equated(dict(nodes), {(i, j): [k]})
        for part in held:
            # A second expression of one component is equal within that component: no matter for pairs.
            merged.nodes = {**merged.nodes, **part.nodes}
            for pair, numbers in part.stated.items():
                merged.stated[pair] = [*merged.stated.get(pair, []), *numbers]
            equated.remove(part)
        equated.append(merged)
    return equated


def _sides(predicate: TypedExpression, number: Mapping[str, int]) -> dict[int, TypedExpression] | None:
    """Return the expressions of two components that a predicate equates; else None."""
    if not isinstance(predicate, Apply) or predicate.operator != "equal":
        return None
    if any(isinstance(column, Aggregated) for column in columns_in(predicate)):
        return None
    sides: dict[int, TypedExpression] = {}
    for operand in predicate.operands:
        owners = variables_of(operand)
        if len(owners) != 1 or not owners <= number.keys():
            return None
        sides[number[next(iter(owners))]] = operand
    return sides if len(sides) == 2 else None


def _codes(values: Sequence[Values]) -> tuple[list[tuple[Int64, Mask]], int]:
    """Return numbers from 0 for values, the same for equal ones, which are not null, and how many."""
    # A constant expression has one value for all.
    several = [
        Values(
            part.data if isinstance(part.data, pa.Array) else np.atleast_1d(np.asarray(part.data)),
            None if part.valid is None else np.atleast_1d(np.asarray(part.valid)),
        )
        for part in values
    ]
    codes, size = codes_of_values(several)
    return [(np.maximum(code, 0), code >= 0) for code in codes], max(1, size)


def _share(mask: NDArray[np.bool_]) -> float:
    """Return the share of the entries that are true, at least that of half an entry."""
    return max(float(mask.sum()), 0.5) / len(mask)
