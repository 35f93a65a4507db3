"""The components of a pattern that can share a clock, and how their matches are weighed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from uncertain_cep.candidates.own_times import offset_bounds, times_by_one_clock
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.expressions.codes import codes_of
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plurals import counted

__all__ = ["ClockFacts", "clock_facts"]


@dataclass(frozen=True, slots=True)
class ClockFacts:
    """The clocks that the candidates of a pattern share."""

    sharing: tuple[tuple[str, str, int], ...]
    """Pairs of variables, and how many clocks of uncertain offset have candidates of both."""
    certain: bool
    """Whether all these candidates are certain by their clocks."""
    is_one: bool
    """Whether all events that a match depends on are of one clock."""

    @property
    def kernel(self) -> str:
        """How matches are weighed that have several events of a clock."""
        if not self.sharing:
            return "independent"
        if self.is_one:
            return "times by the clock"
        return "rigid" if self.certain else "held"

    @property
    def text(self) -> str:
        """The facts in words."""
        if not self.sharing:
            return "no two components have a clock in common, so that times are independent"
        if self.is_one:
            return "a match has events of one clock only, so that all are matched by their times by the clock"
        pairs = ", ".join(f"{a} and {b} {counted(number, 'clock')}" for a, b, number in self.sharing)
        how = (
            "rigid, by differences of offsets: their order by one clock is certain"
            if self.certain
            else "offsets held, since times are uncertain by the clock, too"
        )
        return f"in common: {pairs}; {how}"


def clock_facts(plan: EvaluationPlan, table: pa.Table, selection: Selection) -> ClockFacts | None:
    """Return the clocks that candidates of an OR-free pattern share; a Kleene variable can with itself.

    None if events share no clocks.
    """
    names, domain, source = plan.names, plan.domain, plan.clock_names.source
    if source is None:
        return None
    (codes,), _ = codes_of([table.column(source)])
    low, high = domain.offsets(table, names)
    lower, upper = (domain.ticks(table.column(name)) for name in (names.lower, names.upper))
    shared = (codes >= 0) & (low < high)
    of = [rows[shared[rows]] for rows in selection.rows]
    sharing, tied = [], []
    for i, one in enumerate(plan.components):
        for j in range(i if one.kleene else i + 1, len(of)):
            common = np.intersect1d(codes[of[i]], codes[of[j]])
            if len(common):
                sharing.append((one.variable, plan.components[j].variable, len(common)))
                tied += [rows[np.isin(codes[rows], common)] for rows in (of[i], of[j])]
    rows = np.concatenate([np.zeros(0, np.int64), *tied])
    certain = bool((upper[rows] - lower[rows] == high[rows] - low[rows]).all())
    is_one = times_by_one_clock(plan, table, offset_bounds(plan, table), lower, upper) is not None
    return ClockFacts(tuple(sharing), certain, is_one)
