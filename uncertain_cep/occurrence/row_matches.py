"""The matches of a query, their events as rows, held compactly until all of a group are there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.flat_lists import starts_of, taken
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.branch_taking import branch_taking
from uncertain_cep.plan.grouping import row_column
from uncertain_cep.query.repeated_groups import copy_of, lists_by_iteration

__all__ = ["BranchMatches", "RowMatches"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BranchMatches:
    """Matches of one OR-free pattern, one behind the other.

    Attributes
    ----------
    plan : EvaluationPlan
    number : (k,) int64
        Which matches of all they are.
    start : (k + 1,) int64
        Where the events of each begin.
    row, component : (m,) int64
        The row of each event, and the component that it is taken for.
    """

    plan: EvaluationPlan
    number: Int64
    start: Int64
    row: Int64
    component: Int64


class _Taken(NamedTuple):
    """The rows that a variable takes in some matches.

    Attributes
    ----------
    start : (k + 1,) int64 or None
        Where the list of each match begins; None: there is one row a match, -1 where there is none.
    rows : (m,) int64
    is_null : (k,) bool
        Whether the variable is null: what is left out, and lists of other branches, but no empty lists.
    """

    start: Int64 | None
    rows: Int64
    is_null: NDArray[np.bool_]

    @property
    def is_there(self) -> NDArray[np.bool_]:
        """In which matches the variable takes an event, (k,) bool."""
        return ~self.is_null if self.start is None else np.diff(self.start) > 0

    @property
    def first(self) -> Int64:
        """The first row of each match, (k,) int64, -1 where there is none."""
        if self.start is None:
            return self.rows
        return np.where(self.is_there, np.append(self.rows, -1)[self.start[:-1]], -1)

    @property
    def sizes(self) -> Int64:
        """How many rows each match has, (k,) int64."""
        return self.is_there.astype(np.int64) if self.start is None else np.diff(self.start)

    def some(self, which: Int64) -> _Taken:
        """Return the rows that it takes in some matches."""
        if self.start is None:
            return _Taken(None, self.rows[which], self.is_null[which])
        places, start = taken(self.start, which)
        return _Taken(start, self.rows[places], self.is_null[which])


@dataclass(slots=True)
class RowMatches:
    """All matches of a plan whose ids are rows.

    Attributes
    ----------
    plan : EvaluationPlan
    rows : list of dict
        For each batch, by variable.
    confidence : list of (k,) float64
        NaN where it is an estimate.
    """

    plan: EvaluationPlan
    rows: list[dict[str, _Taken]] = field(default_factory=list)
    confidence: list[Float64] = field(default_factory=list)

    @classmethod
    def of(cls, plan: EvaluationPlan, batches: Iterable[pa.RecordBatch]) -> RowMatches:
        """Return the matches of batches."""
        matches = cls(plan)
        for batch in batches:
            checkpoint(batch.nbytes)
            matches.add(batch)
        return matches

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the matches of a batch."""
        if not batch.num_rows:
            return
        columns: dict[str, _Taken] = {}
        by_iteration = lists_by_iteration(self.plan.query.pattern)
        for component in self.plan.components:
            column = batch.column(row_column(component.variable))
            is_null = np.asarray(column.is_null())
            if component.variable in by_iteration:
                columns |= _in_places(component.variable, column)
            elif component.kleene:
                sizes = np.asarray(pc.fill_null(pc.list_value_length(column), 0)).astype(np.int64)
                rows = np.asarray(pc.list_flatten(column)).astype(np.int64)
                columns[component.variable] = _Taken(starts_of(sizes), rows, is_null)
            else:
                rows = np.asarray(pc.fill_null(column, -1)).astype(np.int64)
                columns[component.variable] = _Taken(None, rows, is_null)
        self.rows.append(columns)
        if "confidence" in batch.schema.names:
            confidence = np.asarray(batch.column("confidence")).astype(np.float64)
            if "exact" in batch.schema.names:
                is_exact = np.asarray(batch.column("exact").to_numpy(zero_copy_only=False), dtype=np.bool_)
                confidence = np.where(is_exact, confidence, np.nan)
            self.confidence.append(confidence)

    def among_own_rows(self) -> tuple[RowMatches, Int64]:
        """Return the same matches with rows numbered among those of their events, and the latter.

        The latter are (m,) int64, ascending.
        """
        rows_of_all = [taken_rows.rows for columns in self.rows for taken_rows in columns.values()]
        used = np.unique(np.concatenate(rows_of_all))
        used = used[used >= 0]

        def numbered(taken_rows: _Taken) -> _Taken:
            rows = np.where(taken_rows.rows < 0, -1, np.searchsorted(used, taken_rows.rows))
            return taken_rows._replace(rows=rows)

        renumbered = [
            {name: numbered(taken_rows) for name, taken_rows in columns.items()} for columns in self.rows
        ]
        return RowMatches(self.plan, renumbered, self.confidence), used

    @property
    def count(self) -> int:
        """How many matches there are."""
        first = self.plan.components[0].variable
        return sum(len(columns[first].is_null) for columns in self.rows)

    def first_rows(self, variable: str | None) -> Int64:
        """Return the row of a variable of each match, (k,) int64, -1 where there is none.

        None: that of any event of the match.
        """
        parts = [np.zeros(0, dtype=np.int64)]
        for columns in self.rows:
            rows = [columns[name].first for name in (columns if variable is None else [variable])]
            parts.append(reduce(lambda one, other: np.where(one < 0, other, one), rows))
        return np.concatenate(parts)

    def by_branch(self, is_wanted: NDArray[np.bool_]) -> Iterator[BranchMatches]:
        """Yield the matches where a mask, (k,) bool, is true, those of each OR-free pattern apart."""
        parts: dict[tuple[tuple[str, int], ...], list[tuple[Int64, dict[str, _Taken]]]] = {}
        begin = 0
        for columns in self.rows:
            names = [*columns]
            kinds = np.stack([columns[name].is_there + 2 * columns[name].is_null for name in names])
            numbers = begin + np.arange(kinds.shape[1])
            begin += len(numbers)
            distinct, which = kinds[:, :1], np.zeros(kinds.shape[1], dtype=np.int64)
            if (kinds != distinct).any():
                distinct, which = np.unique(kinds, axis=1, return_inverse=True)
            for number, kind in enumerate(distinct.T.tolist()):
                chosen = np.flatnonzero((which.reshape(-1) == number) & is_wanted[numbers])
                if len(chosen):
                    taken_rows = {name: columns[name].some(chosen) for name in names}
                    part = tuple((name, one) for name, one in zip(names, kind, strict=True) if one < _NULL)
                    parts.setdefault(part, []).append((numbers[chosen], taken_rows))
        for kind_of_part, parts_of_kind in parts.items():
            kept = [name for name, one in kind_of_part if one == _THERE]
            empty = frozenset(name for name, one in kind_of_part if one == _EMPTY)
            branch = branch_taking(self.plan, kept, empty)
            assert branch is not None
            yield _joined(branch, parts_of_kind)


_EMPTY: Final = 0
_THERE: Final = 1
_NULL: Final = 2
"""Kinds of variables in a match: an empty list, one that takes events, and one that is left out."""


def _in_places(variable: str, lists: pa.Array) -> dict[str, _Taken]:
    """Return the rows of each place of a list by iteration, and the variable itself where that is empty."""
    sizes = np.asarray(pc.fill_null(pc.list_value_length(lists), -1)).astype(np.int64)
    start = starts_of(np.maximum(sizes, 0))
    rows = np.append(np.asarray(pc.fill_null(pc.list_flatten(lists), -1)).astype(np.int64), -1)
    places = {variable: _Taken(np.zeros(len(sizes) + 1, dtype=np.int64), rows[:0], sizes != 0)}
    for number in range(1, int(sizes.max(initial=0)) + 1):
        taken_rows = np.where(sizes >= number, rows[np.minimum(start[:-1] + number - 1, len(rows) - 1)], -1)
        places[copy_of(variable, number)] = _Taken(None, taken_rows, taken_rows < 0)
    return places


def _joined(plan: EvaluationPlan, parts: list[tuple[Int64, dict[str, _Taken]]]) -> BranchMatches:
    """Return the matches of one branch, one behind the other."""
    number = np.concatenate([numbers for numbers, _ in parts])
    counts, rows = [], []
    for component in plan.components:
        columns = [columns[component.variable] for _, columns in parts]
        rows.append(np.concatenate([taken_rows.rows for taken_rows in columns]))
        counts.append(np.concatenate([taken_rows.sizes for taken_rows in columns]))
    match = np.concatenate([np.repeat(np.arange(len(number)), sizes) for sizes in counts])
    taken_for = np.repeat(np.arange(len(counts)), [len(rows_of_component) for rows_of_component in rows])
    order = np.argsort(match, kind="stable")
    start = starts_of(np.stack(counts).sum(axis=0))
    return BranchMatches(plan, number, start, np.concatenate(rows)[order], taken_for[order])
