"""Numbers of partial matches counted one by one, by the definition."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.selection import Selection
from uncertain_cep.expressions.vectorised import Values, column_values, evaluate
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query.typed import Apply, Column, columns_in, variables_of

Int64 = NDArray[np.int64]


class Partial:
    """Partial matches of sets of components, those of each set computed from a smaller one."""

    def __init__(self, plan: EvaluationPlan, table: pa.Table, selection: Selection) -> None:
        self._plan, self._table, self._selection = plan, table, selection
        self._variables = [component.variable for component in plan.components]
        self._known: dict[tuple[int, ...], Int64] = {}

    def count(self, components: Sequence[int]) -> int:
        return len(self.places(tuple(sorted(components)))[0])

    def near(self, node: Sequence[int], first: int, *, each: bool) -> int:
        """Count those whose candidate of the node's first component is in time with one of another's.

        With ``each`` the candidates of all its components have to be.
        """
        components = tuple(sorted(node))
        places = self.places(components)
        met = np.ones(places.shape[1], dtype=np.bool_)
        for component in node if each else node[:1]:
            rows = range(len(self._selection.rows[component]))
            is_met = np.array([self._meets(place, component, first) for place in rows], dtype=np.bool_)
            met &= is_met[places[components.index(component)]]
        return int(met.sum())

    def _meets(self, place: int, component: int, other: int) -> bool:
        selection = self._selection
        window = self._plan.window - len(self._variables)
        low, high = (int(part[component][place]) - component for part in (selection.lower, selection.upper))
        lows, highs = selection.lower[other] - other, selection.upper[other] - other
        met = np.ones(len(lows), dtype=np.bool_)
        if selection.partition is not None:
            met = selection.partition[other] == selection.partition[component][place]
        first, second = (low <= highs, lows <= high + window)
        if component > other:
            first, second = (lows <= high, low <= highs + window)
        return bool((met & first & second).any())

    def places(self, components: tuple[int, ...]) -> Int64:
        """Return the candidates of the partial matches, (k, m)."""
        if components not in self._known:
            self._known[components] = self._found(components)
        return self._known[components]

    def _found(self, components: tuple[int, ...]) -> Int64:
        *before, last = components
        size = len(self._selection.rows[last])
        if not before:
            return np.arange(size)[None, :]
        left = self.places(tuple(before))
        parts = []
        # A piece at a time, so that all choices of many fit in memory.
        for piece in np.array_split(left, max(1, left.shape[1] * size // 2_000_000), axis=1):
            both = np.vstack((np.repeat(piece, size, axis=1), np.tile(np.arange(size), piece.shape[1])))
            parts.append(both[:, self._holds(components, both)])
        return np.concatenate(parts, axis=1)

    def _equated(self) -> list[list[Column]]:
        """Return the attributes that chains of equalities make the same."""
        equated: list[list[Column]] = []
        for predicate in self._plan.joined:
            columns = columns_in(predicate)
            if (
                isinstance(predicate, Apply)
                and predicate.operator == "equal"
                and predicate.operands == columns
            ):
                together = [part for part in equated if {*part} & {*columns}]
                equated = [part for part in equated if part not in together]
                equated.append(
                    list(dict.fromkeys(column for part in (*together, columns) for column in part))
                )
        return equated

    def _holds(self, components: tuple[int, ...], places: Int64) -> NDArray[np.bool_]:
        selection = self._selection
        window = self._plan.window - len(self._variables)
        low = [selection.lower[j][p] - j for j, p in zip(components, places, strict=True)]
        high = [selection.upper[j][p] - j for j, p in zip(components, places, strict=True)]
        rows = [selection.rows[j][p] for j, p in zip(components, places, strict=True)]
        holds = np.max(low, axis=0) <= np.min(high, axis=0) + window
        for i in range(len(components)):
            for j in range(i + 1, len(components)):
                holds &= (low[i] <= high[j]) & (rows[i] != rows[j])
        if selection.partition is not None:
            numbers = [selection.partition[j][p] for j, p in zip(components, places, strict=True)]
            for number, following in pairwise(numbers):
                holds &= number == following
        bound = {self._variables[j]: rows[k] for k, j in enumerate(components)}

        def load(column: Column) -> Values:
            taken = self._table.column(column.name).take(pa.array(bound[column.variable]))
            return column_values(taken, column.name)

        for nodes in self._equated():
            here = [column for column in nodes if column.variable in bound]
            for one, other in pairwise(here):
                left, right = load(one), load(other)
                equal = np.asarray(left.data) == np.asarray(right.data)
                for part in (left, right):
                    equal &= True if part.valid is None else part.valid
                holds &= equal

        for predicate in self._plan.joined:
            if variables_of(predicate) <= set(bound):
                values = evaluate(predicate, load)
                truth = np.asarray(values.data, dtype=np.bool_)
                holds &= truth if values.valid is None else truth & values.valid
        return np.asarray(holds)
