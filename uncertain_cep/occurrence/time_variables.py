"""The times of a table's events as variables: independent ones, and offsets of clocks that events share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.flat_lists import end_to_end, starts_of
from uncertain_cep.candidates.existence import existence
from uncertain_cep.candidates.own_times import OffsetBounds, shared_clocks
from uncertain_cep.candidates.pmfs import ExplicitPmfs, flat_pmfs
from uncertain_cep.plan import EvaluationPlan

__all__ = ["TimeVariables"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TimeVariables:
    """The variables that the time and the existence of each event depend on.

    Variables are numbered: the own time of each row, the offset of each clock, whether each row happened.

    Attributes
    ----------
    variable : (n,) int64
        That of the time of each row; -1 if it is certain.
    constant : (n,) int64
        What is added to it, ticks.
    happened : (n,) int64
        The variable that is 1 if the event of a row happened; -1 if it did for certain, -2 if it did not.
    lower, upper : (v,) int64
        Bounds of each variable.
    clock : (v,) int64
        The variable that is added to it; -1: none.
    law : (v,) int64
        Where its probabilities start in ``values``; -1: uniform.
    values : (p,) float64
    """

    variable: Int64
    constant: Int64
    happened: Int64
    lower: Int64
    upper: Int64
    clock: Int64
    law: Int64
    values: Float64

    NAMES: ClassVar[tuple[str, ...]] = (
        *("variable", "constant", "happened", "lower", "upper", "clock", "law", "values"),
    )

    @property
    def clocks(self) -> int:
        """How many clocks are variables."""
        return len(self.lower) - 2 * len(self.variable)

    @classmethod
    def of(
        cls,
        plan: EvaluationPlan,
        table: pa.Table,
        offsets: OffsetBounds | None,
        pmfs: ExplicitPmfs | None,
        lower: Int64,
        upper: Int64,
        *,
        every_clock: bool = False,
    ) -> TimeVariables:
        """Return the variables of checked events.

        Parameters
        ----------
        plan : EvaluationPlan
        table : pyarrow.Table
        offsets : OffsetBounds or None
            Of their clocks; None: times are independent.
        pmfs : ExplicitPmfs or None
            Of own times where events name clocks.
        lower, upper : (n,) int64
            Bounds of their times, ticks, without those of probability 0 at the ends.
        every_clock : bool
            Whether clocks that one event names are variables: other events may be elsewhere.
        """
        rows = np.arange(len(lower))
        clocks = None
        if offsets is not None:
            # The law of an own time of one tick is not that of the clock's time.
            clocks, pmfs = shared_clocks(plan, table, offsets, pmfs, lower, upper, every=every_clock)
        if clocks is None:
            own_lower, own_upper, clock = lower, upper, np.full(len(lower), -1)
            law, values = flat_pmfs(pmfs, rows)
            offset_lower, offset_upper, offset_law = np.zeros((3, 0), dtype=np.int64)
        else:
            own_lower, own_upper, clock = clocks.own.lower, clocks.own.upper, clocks.own.clock
            law, values = clocks.own.offset, clocks.values
            offset_lower, offset_upper, offset_law = clocks.offsets
        number, chances = _existence_laws(table, plan.names.probability, len(values))
        first = len(rows) + len(offset_lower)
        is_wide = own_lower < own_upper
        of_clock = np.where(clock >= 0, len(rows) + clock, -1)
        return cls(
            np.where(is_wide, rows, of_clock),
            np.where(is_wide, 0, own_lower),
            np.where(number >= 0, first + rows, number),
            np.concatenate((own_lower, offset_lower, np.zeros_like(rows))),
            np.concatenate((own_upper, offset_upper, np.ones_like(rows))),
            np.concatenate((np.where(is_wide, of_clock, -1), np.full(len(offset_lower) + len(rows), -1))),
            np.concatenate((law, offset_law, number)),
            np.concatenate((values, chances)),
        )

    def rows_of(self, variables: Int64) -> Int64:
        """Return the rows of some variables, one for each clock that these depend on; -1 for tick 0."""
        rows, clocks = len(self.variable), self.clocks
        variables = variables[variables >= 0]
        row = np.where(variables < rows, variables, variables - rows - clocks)
        is_clock = (variables >= rows) & (variables < rows + clocks)
        of_clock = np.full(clocks, -1)
        for column in (self.clock[:rows], self.variable):
            named = np.flatnonzero(column >= rows)
            of_clock[column[named] - rows] = named
        row[is_clock] = of_clock[variables[is_clock] - rows]
        return row

    def of_rows(self, chosen: Int64) -> tuple[TimeVariables, Int64]:
        """Return the variables of some rows, and the number of each variable among these.

        The numbers are (v + 1,) int64, -1 for those that are left out and in the last place.
        """
        rows, clocks = len(self.variable), self.clocks
        sides = np.unique(np.concatenate((self.variable[chosen], self.clock[chosen])))
        kept = np.concatenate(
            (chosen, sides[(sides >= rows) & (sides < rows + clocks)], chosen + rows + clocks)
        )
        number = np.full(len(self.lower) + 1, -1)
        number[kept] = np.arange(len(kept))
        happened = self.happened[chosen]
        law, values = _laws_of(self.law[kept], (self.upper - self.lower + 1)[kept], self.values)
        times = TimeVariables(
            number[self.variable[chosen]],
            self.constant[chosen],
            np.where(happened < 0, happened, number[happened]),
            self.lower[kept],
            self.upper[kept],
            number[self.clock[kept]],
            law,
            values,
        )
        return times, number

    def clock_codes(self, source: Int64) -> Int64:
        """Return the code of each clock, (c,) int64, from those of the clocks of rows, (n,) int64."""
        rows, codes = len(self.variable), np.full(self.clocks, -1)
        for column in (self.clock[:rows], self.variable):
            named = np.flatnonzero(column >= rows)
            codes[column[named] - rows] = source[named]
        return codes

    @classmethod
    def joined(
        cls,
        parts: Sequence[TimeVariables],
        rows: Sequence[Int64],
        clocks: Sequence[Int64],
        count: int,
    ) -> tuple[TimeVariables, list[Int64]]:
        """Return the variables of several parts, which may share events and clocks.

        Parameters
        ----------
        parts : sequence of TimeVariables
        rows, clocks : sequence of (n,) int64
            For each part the number of the event of each row, and of each clock.
        count : int
            How many events there are.

        Returns
        -------
        times : TimeVariables
        numbers : list of (v + 1,) int64
            For each part the number of each variable, and -1 in the last place.
        """
        used, clock = np.unique(np.concatenate(clocks), return_inverse=True)
        ends = starts_of(np.array([len(part) for part in clocks]))
        first = count + len(used)
        variable, constant = np.full(count, -1), np.zeros(count, dtype=np.int64)
        happened = np.full(count, -1)
        lower, upper, clock_of, law = np.zeros((4, first + count), dtype=np.int64)
        numbers, begin = [], 0
        for part, row, start, end in zip(parts, rows, ends[:-1], ends[1:], strict=True):
            number = np.concatenate((row, count + clock.reshape(-1)[start:end], first + row, [-1]))
            variable[row], constant[row] = number[part.variable], part.constant
            happened[row] = np.where(part.happened < 0, part.happened, number[part.happened])
            lower[number[:-1]], upper[number[:-1]] = part.lower, part.upper
            clock_of[number[:-1]] = number[part.clock]
            law[number[:-1]] = np.where(part.law < 0, -1, part.law + begin)
            begin += len(part.values)
            numbers.append(number)
        values = np.concatenate([part.values for part in parts])
        return cls(variable, constant, happened, lower, upper, clock_of, law, values), numbers


def _laws_of(law: Int64, sizes: Int64, values: Float64) -> tuple[Int64, Float64]:
    """Return where the probabilities of some laws start among those that they need, and these."""
    has_law = np.flatnonzero(law >= 0)
    begins, which = np.unique(law[has_law], return_inverse=True)
    longest = np.zeros(len(begins), dtype=np.int64)
    np.maximum.at(longest, which.reshape(-1), sizes[has_law])
    places, starts = end_to_end(begins, longest)
    law = np.full(len(law), -1)
    law[has_law] = starts[:-1][which.reshape(-1)]
    return law, values[places]


def _existence_laws(table: pa.Table, name: str, start: int) -> tuple[Int64, Float64]:
    """Return where the probabilities that each event did not happen, and did, start, and these.

    -1 and -2 for events that did, and did not, for certain.
    """
    exists = existence(table, name)
    if exists is None:
        return np.full(table.num_rows, -1), np.zeros(0)
    distinct, which = np.unique(exists.probability, return_inverse=True)
    chances = np.stack((1.0 - distinct, distinct), axis=1).ravel()
    number = start + 2 * which.reshape(-1)
    number = np.where(exists.probability >= 1.0, -1, number)
    return np.where(exists.probability <= 0.0, -2, number), chances
