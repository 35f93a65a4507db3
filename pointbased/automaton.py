"""The compiled pattern: an NFA^b (SIGMOD 2008, section 4), immutable and apart from the runs on it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.gaps.unions import Term
from confidence.pools import AttributePool
from confidence.predicates.conditions import CONSTANT_CELL, NO_VALUES, Conditions

__all__ = ["LARGEST_WINDOW", "Action", "Automaton", "Edge", "Formulas", "Rules", "compile_sequence"]

LARGEST_WINDOW: Final = 2**61
"""A longer window is cut to this, so that the end of a window stays within int64."""

Int64 = NDArray[np.int64]


class Action(enum.IntEnum):
    """The action of an edge on the event that is read.

    BEGIN and TAKE consume it into the match, as the (first) event of a component or as a further one of
    the same component, which is a Kleene one. IGNORE leaves the run where it is. PROCEED consumes nothing: it
    leaves a Kleene component.
    """

    BEGIN = 0
    TAKE = 1
    IGNORE = 2
    PROCEED = 3


@dataclass(frozen=True, slots=True)
class Edge:
    """A move of the automaton.

    Attributes
    ----------
    action : Action
    source, target : int
        States.
    component : int
        Whose events it consumes; -1 if it consumes none.
    formula : range
        The conditions that have to hold for the events taken so far and the one consumed; the type and the
        conditions on that event alone were checked before it came here.
    """

    action: Action
    source: int
    target: int
    component: int
    formula: range


@dataclass(frozen=True, slots=True, eq=False)
class Formulas:
    """Predicates across components, or across the events of a Kleene one, apart from any candidate's values.

    Attributes
    ----------
    conditions : Conditions
        Constants and aggregates are addressed within its arrays; where the values of candidates and their
        nulls would start, slots and accumulators have the number of the attribute instead.
    real : (a,) bool
        Whether each attribute is a float64; else it is an int64.
    """

    conditions: Conditions
    real: NDArray[np.bool_]

    @classmethod
    def none(cls, length: int, negations: int = 0) -> Formulas:
        """Return the formulas of a pattern without such predicates."""
        nothing = np.zeros(1, dtype=np.int64)
        return cls(
            Conditions(
                code=np.zeros((0, 2), dtype=np.int64),
                ints=np.zeros(0, dtype=np.int64),
                floats=np.zeros(0, dtype=np.float64),
                nulls=np.zeros(0, dtype=np.bool_),
                slots=np.zeros((0, 3), dtype=np.int64),
                rows=nothing,
                mention_start=nothing,
                mentions=np.zeros((0, 3), dtype=np.int64),
                running_start=nothing,
                running=np.zeros((0, 2), dtype=np.int64),
                aggregate_start=nothing,
                aggregates=np.zeros((0, 6), dtype=np.int64),
                accumulator_start=np.zeros(length + negations + 1, dtype=np.int64),
                accumulators=np.zeros((0, 4), dtype=np.int64),
                stages=np.zeros((length, 4), dtype=np.int64),
                negated=np.zeros(negations + 1, dtype=np.int64),
            ),
            np.zeros(0, dtype=np.bool_),
        )

    def conditions_for(self, pool: AttributePool) -> Conditions:
        """Return the conditions on the values that a pool laid out behind their constants."""
        slots, accumulators = self.conditions.slots.copy(), self.conditions.accumulators.copy()
        loaded = slots[:, 0] != CONSTANT_CELL
        counted = accumulators[:, 3] != NO_VALUES
        for rows, chosen in ((slots, loaded), (accumulators, counted)):
            number = rows[chosen, 1]
            rows[chosen, 1], rows[chosen, 2] = pool.start[number], pool.null_start[number]
        ints, floats, nulls = pool.flat
        return self.conditions._replace(
            ints=ints, floats=floats, nulls=nulls, slots=slots, accumulators=accumulators
        )


class Rules(NamedTuple):
    """The arrays of an automaton for kernels.

    Attributes
    ----------
    first_move : (components + 1,) int64, moves : (k, 12) int64
        See :meth:`Automaton.moves`.
    states : int
        How many there are.
    window : int
        WITHIN, ticks.
    negations : (n,) int64
    next_match, contiguous, weighs_runs, weighs_signatures : bool
        As in :class:`Automaton`.
    merging : bool
        Whether runs with the same computation state are merged.
    nelt : bool
        Whether prefixes are left alone behind their NELT.
    """

    first_move: Int64
    moves: Int64
    states: int
    window: int
    negations: Int64
    next_match: bool
    contiguous: bool
    weighs_runs: bool
    weighs_signatures: bool
    merging: bool
    nelt: bool


@dataclass(frozen=True, slots=True, eq=False)
class Automaton:
    """A pattern ready to run; several evaluations may share one.

    Attributes
    ----------
    components : int
        Number of positive components.
    accepting : int
        The last state; the states are 0 (start) to ``accepting``.
    edges : tuple of Edge
    window : int
        WITHIN, in ticks.
    next_match : bool
        Skip till next match; else skip till any match, or contiguity.
    kleene : tuple of bool
        For each component whether it takes one or more events.
    negations : tuple of int
        For each negated component how many components stand before it. Its witnesses are those of the pool
        of its number.
    contiguous : bool
        Whether witnesses of one more pool, the last, are forbidden between any two neighbours.
    formulas : Formulas
    terms : tuple of Term
        Of the sum that the confidence of a signature is; empty if all negations are those of one pattern.
    """

    components: int
    accepting: int
    edges: tuple[Edge, ...]
    window: int
    next_match: bool
    kleene: tuple[bool, ...]
    negations: tuple[int, ...]
    contiguous: bool
    formulas: Formulas
    terms: tuple[Term, ...] = ()

    @property
    def pools(self) -> int:
        """Number of pools of witnesses."""
        return len(self.negations) + self.contiguous

    @property
    def weighs_runs(self) -> bool:
        """Whether what is forbidden is weighed as runs take events.

        That is so where an event is forbidden in one gap at most, as a rule: under skip till next match of
        single events. Elsewhere a signature is weighed as a whole.
        """
        return self.next_match and not self.pools and not any(self.kleene)

    @property
    def weighs_signatures(self) -> bool:
        """Whether every signature is weighed as a whole."""
        return bool(self.pools) or (self.next_match and any(self.kleene))

    def rules(self, *, merging: bool = True, nelt: bool = True) -> Rules:
        """Return the arrays for kernels; see :class:`Rules` for the options."""
        return Rules(
            *self.moves(),
            states=self.accepting + 1,
            window=self.window,
            negations=np.array(self.negations, dtype=np.int64),
            next_match=self.next_match,
            contiguous=self.contiguous,
            weighs_runs=self.weighs_runs,
            weighs_signatures=self.weighs_signatures,
            merging=merging,
            nelt=nelt,
        )

    def moves(self) -> tuple[Int64, Int64]:
        """Return the edges that consume an event, as the run loop reads them.

        A run stays at a Kleene component's state and proceeds when it takes the next component's event: the
        two edges are one move, and so are the last BEGIN or TAKE and the PROCEED to the accepting state.

        Returns
        -------
        first : (components + 1,) int64
            The first move of each component.
        moves : (k, 12) int64
            By :mod:`pointbased.columns`. The later sources of a component come first: an event taken at a
            tick must not be met by another of that tick.
        """
        proceeds = {edge.source: edge for edge in self.edges if edge.action == Action.PROCEED}
        entered = {edge.target: edge for edge in proceeds.values()}
        consuming = [edge for edge in self.edges if edge.action in (Action.BEGIN, Action.TAKE)]
        begins = {edge.source for edge in consuming if edge.action == Action.BEGIN}
        takes = {edge.source for edge in consuming if edge.action == Action.TAKE}
        consuming.sort(key=lambda edge: (edge.component, -edge.source))
        rows = []
        for edge in consuming:
            before, behind = entered.get(edge.source), proceeds.get(edge.target)
            source = edge.source if before is None else before.source
            end = edge.target if behind is None else behind.target
            leave = range(0) if before is None else before.formula
            finish = range(0) if behind is None else behind.formula
            rows.append(
                (
                    source, edge.target, edge.action == Action.TAKE, edge.formula.start, edge.formula.stop,
                    leave.start, leave.stop, end == self.accepting, finish.start, finish.stop,
                    edge.target in takes, end in begins,
                )
            )  # fmt: skip
        counts = np.bincount([edge.component for edge in consuming], minlength=self.components)
        return np.concatenate(([0], np.cumsum(counts))).astype(np.int64), np.array(rows, dtype=np.int64)


def _check(
    length: int, window: int, kleene: Sequence[bool], negations: Sequence[int], formulas: Formulas
) -> None:
    """Raise ValueError for a sequence of other components than its parts."""
    if length < 1 or window < 1:
        raise ValueError(f"a pattern has at least one component and one tick: {length=}, {window=}")
    if len(kleene) != length or not all(0 <= after <= length for after in negations):
        raise ValueError(f"{kleene=} and {negations=} are not those of {length} components")
    stages = formulas.conditions.stages
    if len(stages) != length or len(formulas.conditions.negated) != len(negations) + 1:
        raise ValueError(f"the formulas are those of {len(stages)} components, not of {length}")


def _edges(repeated: Sequence[bool], stages: NDArray[np.int64]) -> tuple[list[Edge], int]:
    """Return the edges of a sequence, and the accepting state."""
    edges: list[Edge] = []
    state = 0
    for component, several in enumerate(repeated):
        first, further, done, end = map(int, stages[component])
        edges.append(Edge(Action.BEGIN, state, state + 1, component, range(first, done)))
        if state and not repeated[component - 1]:
            edges.append(Edge(Action.IGNORE, state, state, -1, range(0)))
        state += 1
        if several:
            edges.append(Edge(Action.TAKE, state, state, component, range(further, done)))
            edges.append(Edge(Action.IGNORE, state, state, -1, range(0)))
            edges.append(Edge(Action.PROCEED, state, state + 1, -1, range(done, end)))
            state += 1
    return edges, state


def compile_sequence(
    length: int,
    window: int,
    *,
    next_match: bool = False,
    kleene: Sequence[bool] | None = None,
    negations: Sequence[int] = (),
    contiguous: bool = False,
    formulas: Formulas | None = None,
    terms: Sequence[Term] = (),
) -> Automaton:
    """Return the automaton of ``SEQ`` of single, Kleene and negated components.

    A state between start and end has taken an event of the component before it and has an IGNORE edge. Over
    points that edge is open whatever the strategy: skip till any is what the automaton runs (Zhang et al.,
    section 3, step 2), the strategy weighs and prunes its runs. From the state of a Kleene component a TAKE
    edge leads back to it and a PROCEED edge on.

    Parameters
    ----------
    length : int
        Number of positive components, at least 1.
    window : int
        WITHIN, in ticks, at least 1.
    next_match : bool
    kleene : sequence of bool or None
        For each component whether it takes one or more events; None: none does.
    negations : sequence of int
        For each negated component how many positive ones stand before it, ascending.
    contiguous : bool
        Whether the strategy is contiguity, of a partition or strict.
    formulas : Formulas or None
        The predicates across components.
    terms : sequence of Term
        If the pattern is the union of several readings, which differ in their negations alone.

    Raises
    ------
    ValueError
        If a number is out of range, or the formulas are those of another pattern.
    """
    repeated = (False,) * length if kleene is None else tuple(kleene)
    formulas = Formulas.none(length, len(negations)) if formulas is None else formulas
    _check(length, window, repeated, negations, formulas)
    edges, accepting = _edges(repeated, formulas.conditions.stages)
    return Automaton(
        components=length,
        accepting=accepting,
        edges=tuple(edges),
        window=min(window, LARGEST_WINDOW),
        next_match=next_match,
        kleene=repeated,
        negations=tuple(negations),
        contiguous=contiguous,
        formulas=formulas,
        terms=tuple(terms),
    )
