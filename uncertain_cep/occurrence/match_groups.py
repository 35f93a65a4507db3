"""The groups that BY makes of matches, and their values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.expressions.codes import codes_of
from uncertain_cep.occurrence.numbered_matches import GroupableMatches
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.projection import taken

__all__ = ["MatchGroups"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MatchGroups:
    """The groups of some matches, numbered in ascending order of their keys.

    Attributes
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
        The events.
    of_match : (k,) int64
        The group of each match.
    sizes : (g,) int64
        How many matches each has.
    rows : (keys, g) int64
        For each key a row that tells the value of each group; -1: null.
    """

    plan: EvaluationPlan
    table: pa.Table
    of_match: Int64
    sizes: Int64
    rows: Int64

    @classmethod
    def of(cls, plan: EvaluationPlan, matches: GroupableMatches) -> MatchGroups:
        """Return the groups of matches."""
        count, table = matches.count, matches.table
        rows, codes = [], []
        for key in plan.bound.keys:
            row = matches.first_rows(key.variable)
            code = row
            if key.attribute is not None:
                values = np.append(codes_of([table.column(key.attribute)])[0][0], -1)
                code = values[row]
            rows.append(row)
            codes.append(code)
        if not codes:
            groups = min(count, 1)
            return cls(
                plan,
                table,
                np.zeros(count, np.int64),
                np.full(groups, count),
                np.zeros((0, groups), np.int64),
            )
        group = np.zeros(count, dtype=np.int64)
        for code in codes:
            # Ranks of the keys so far, and of this one within each: nulls are first.
            group = np.unique(group * (int(code.max(initial=-1)) + 2) + code + 1, return_inverse=True)[1]
        sizes = np.bincount(group)
        first = np.zeros(len(sizes), dtype=np.int64)
        first[group[::-1]] = np.arange(count)[::-1]
        rows_of_groups = np.where(np.stack(codes) < 0, -1, np.stack(rows))[:, first]
        return cls(plan, table, group, sizes, rows_of_groups)

    def column(self, number: int, groups: Int64, kind: pa.DataType) -> pa.Array:
        """Return the values of a key of some groups, (k,) int64."""
        key = self.plan.bound.keys[number]
        name = self.plan.names.id if key.attribute is None else key.attribute
        return taken(self.table.column(name), self.rows[number][groups], kind)

    def shown(self, group: int) -> list[str]:
        """Return the keys of a group with their values, as text."""
        types = self.plan.output_schema.types
        return [
            f"{key.column} = {self.column(number, np.array([group]), types[number])[0].as_py()!r}"
            for number, key in enumerate(self.plan.bound.keys)
        ]
