"""The plan that evaluates the slices of a stream: chosen on the first slice, changed with the data."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.executor import candidates, execute
from uncertain_cep.operators.join_prefix import (
    plan_of_singles,
    search_cost_of,
    selection_of_singles,
    why_not_joined,
)
from uncertain_cep.optimizer.choice import planned, regret
from uncertain_cep.optimizer.measuring import measure
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.trees import Tree, format_tree
from uncertain_cep.traces.held_rows import naming_no_rows

__all__ = ["Replanning", "UsedPlan"]

WORTH_A_CHANGE: Final = 1.5
"""A plan is given up when it is expected to cost so many times what the best one does."""

SHARE_OF_MEASURING: Final = 0.05
"""At most so much of the time spent on evaluating goes into looking whether the data have changed."""

_MOST_REPLANNED: Final = 12
"""Components of the longest patterns that are planned anew: planning takes longer than a slice beyond."""

_PLANS_LISTED: Final = 1000
"""Plans that are listed, the last ones."""


@dataclass(frozen=True, slots=True)
class UsedPlan:
    """A plan that a stream has used.

    Attributes
    ----------
    first_event : int
        How many first events of matches were evaluated before it.
    branch : int
        The OR-free pattern that it is for, counted from 0.
    tree : str or None
        In brackets over the variables; None for the join in pattern order, or for a backtracking search.
    why : str
    """

    first_event: int
    branch: int
    tree: str | None
    why: str


@dataclass(slots=True)
class _State:
    """The plan of one branch, the seconds spent on slices since it was checked, and those on checking."""

    known: bool = False
    tree: Tree | None = None
    spent: float = 0.0
    measuring: float = 0.0


class Replanning:
    """Evaluates slices of a stream, each by a plan that suits the current data.

    A plan is chosen on the first slice with candidates, for each OR-free pattern: how its events are joined
    and, where it is no sequence of single events, whether its single components are joined first. Statistics
    are measured again whenever evaluation has taken 20 times as long as measuring them, so that a plan that
    has become slow is soon checked. The plan is changed if, by the new statistics, it costs at least 1.5
    times as much as the best one. Whatever the plan, a slice has the same matches.

    Parameters
    ----------
    plan : EvaluationPlan

    Attributes
    ----------
    used : deque of UsedPlan
        In the order of their use.
    """

    def __init__(self, plan: EvaluationPlan) -> None:
        self._plan = plan
        self._states = [_State() for _ in plan.or_free]
        self._first_events = 0
        self.used: deque[UsedPlan] = deque(maxlen=_PLANS_LISTED)

    def execute(self, table: pa.Table, owned: NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
        """Yield the matches of a slice: a table of events, ``owned`` those that matches may begin with."""
        with naming_no_rows(self._plan.names, self._plan.partition_attributes):
            yield from self._executed(table, owned)

    def _executed(self, table: pa.Table, owned: NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
        plan = self._plan
        if plan.by_row is not None or plan.lasting:
            # Its matches are those of another plan, or its events get other bounds first.
            yield from execute(plan, table, owned=owned)
            return
        # The slice tells which readings there are; each is planned on it.
        if plan.open_readings is None:
            plan = plan.with_branches(
                [self._with_tree(number, branch, table) for number, branch in enumerate(self._branches)]
            )
        self._first_events += int(owned.sum())
        began = perf_counter()
        for batch in execute(plan, table, owned=owned):
            self._spend(perf_counter() - began)
            yield batch
            began = perf_counter()
        self._spend(perf_counter() - began)

    @property
    def _branches(self) -> tuple[EvaluationPlan, ...]:
        return self._plan.or_free

    def _spend(self, seconds: float) -> None:
        for state in self._states:
            state.spent += seconds

    def _with_tree(self, number: int, branch: EvaluationPlan, table: pa.Table) -> EvaluationPlan:
        """Return the plan of a branch, with or without a tree, chosen anew if it is time."""
        if branch.planner == "none":
            return branch
        if not 1 < len(branch.singles) <= _MOST_REPLANNED or (not branch.is_plain and why_not_joined(branch)):
            return replace(branch, planner="none")
        state = self._states[number]
        if not state.known or state.spent * SHARE_OF_MEASURING >= state.measuring:
            began = perf_counter()
            self._look(number, branch, table)
            state.measuring, state.spent = perf_counter() - began, 0.0
        return replace(branch, planner="none" if state.tree is None else "given", tree=state.tree)

    def _look(self, number: int, branch: EvaluationPlan, table: pa.Table) -> None:
        state = self._states[number]
        selection = candidates(branch, table)
        if selection.empty:
            return
        search_cost = None
        if not branch.is_plain:
            search_cost = search_cost_of(branch, selection)
            branch, selection = plan_of_singles(branch), selection_of_singles(branch, selection)
        statistics = measure(branch, table, selection)
        if state.known and regret(branch, state.tree, statistics, search_cost) < WORTH_A_CHANGE:
            return
        choice = planned(branch, statistics, search_cost)
        if state.known and choice.tree == state.tree:
            return
        state.known, state.tree = True, choice.tree
        variables = [component.variable for component in branch.components]
        shown = None if choice.tree is None else format_tree(choice.tree, variables)
        self.used.append(UsedPlan(self._first_events, number, shown, choice.why))
