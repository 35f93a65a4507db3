"""The compiled pattern: an NFA^b (SIGMOD 2008, section 4), immutable and apart from the runs on it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST_WINDOW", "Action", "Automaton", "Edge", "Formulas", "compile_sequence"]

LARGEST_WINDOW: Final = 2**61
"""A longer window is cut to this, so that the end of a window stays within int64."""

Int64 = NDArray[np.int64]


class Action(enum.IntEnum):
    """What an edge does with the event that is read.

    BEGIN and TAKE consume it into the match, as the (first) event of a component or as a further one of
    the same component. IGNORE leaves the run where it is. PROCEED consumes nothing: it leaves a component
    that may take further events.
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
        The rows of programs that have to hold for the events taken so far and the one consumed; the type
        and the conditions on that event alone were checked before it came here.
    """

    action: Action
    source: int
    target: int
    component: int
    formula: range


@dataclass(frozen=True, slots=True, eq=False)
class Formulas:
    """Predicates across components as stack programs, see :func:`confidence.programs.holds`.

    Attributes
    ----------
    start : (l + 1,) int64
        First row of the programs that can be asked once component j is bound, all before it being so.
    code : (r, 2) int64
        Constants are addressed within the arrays of constants.
    int_constants : (n,) int64
    float_constants : (m,) float64
    component : (s,) int64
        Of each attribute that the programs load: the component it belongs to.
    real : (s,) bool
        Whether it is a float64; else it is an int64.
    """

    start: Int64
    code: Int64
    int_constants: Int64
    float_constants: NDArray[np.float64]
    component: Int64
    real: NDArray[np.bool_]

    @classmethod
    def none(cls, length: int) -> Formulas:
        """Return the formulas of a pattern without predicates across its components."""
        return cls(
            np.zeros(length + 1, dtype=np.int64),
            np.zeros((0, 2), dtype=np.int64),
            np.zeros(0, dtype=np.int64),
            np.zeros(0, dtype=np.float64),
            np.zeros(0, dtype=np.int64),
            np.zeros(0, dtype=np.bool_),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Automaton:
    """A pattern ready to run; several evaluations may share one.

    Attributes
    ----------
    components : int
        Number of components; the states are 0 (start) to ``accepting``.
    accepting : int
    edges : tuple of Edge
    window : int
        WITHIN, in ticks.
    next_match : bool
        Skip till next match; else skip till any match.
    formulas : Formulas
    """

    components: int
    accepting: int
    edges: tuple[Edge, ...]
    window: int
    next_match: bool
    formulas: Formulas

    def consuming(self) -> tuple[Int64, Int64]:
        """Return the edges that consume an event, as the run loop reads them.

        Returns
        -------
        first : (components + 1,) int64
            The first edge of each component.
        edges : (k, 4) int64
            Source, target, first and last (exclusive) row of the formula. The later sources of a component
            come first: an event taken at a tick must not be met by another of that tick.
        """
        moves = [edge for edge in self.edges if edge.action in (Action.BEGIN, Action.TAKE)]
        moves.sort(key=lambda edge: (edge.component, -edge.source))
        counts = np.bincount([edge.component for edge in moves], minlength=self.components)
        rows = [(edge.source, edge.target, edge.formula.start, edge.formula.stop) for edge in moves]
        return np.concatenate(([0], np.cumsum(counts))).astype(np.int64), np.array(rows, dtype=np.int64)


def compile_sequence(
    length: int, window: int, *, next_match: bool = False, formulas: Formulas | None = None
) -> Automaton:
    """Return the automaton of ``SEQ`` of single components.

    State j has taken the first j events; its BEGIN edge takes the next one, and every state between start
    and end has an IGNORE edge. Over points that edge is open whatever the strategy: skip till any is what
    the automaton runs (Zhang et al., section 3, step 2), skip till next weighs and prunes its runs.

    Parameters
    ----------
    length : int
        Number of components, at least 1.
    window : int
        WITHIN, in ticks, at least 1.
    next_match : bool
    formulas : Formulas or None
        The predicates across components.

    Raises
    ------
    ValueError
        If a number is out of range, or the formulas are those of another length.
    """
    if length < 1 or window < 1:
        raise ValueError(f"a pattern has at least one component and one tick: {length=}, {window=}")
    formulas = Formulas.none(length) if formulas is None else formulas
    if len(formulas.start) != length + 1:
        raise ValueError(f"the formulas are those of {len(formulas.start) - 1} components, not of {length}")
    edges = []
    for state in range(length):
        rows = range(int(formulas.start[state]), int(formulas.start[state + 1]))
        edges.append(Edge(Action.BEGIN, state, state + 1, state, rows))
        if state:
            edges.append(Edge(Action.IGNORE, state, state, -1, range(0)))
    return Automaton(length, length, tuple(edges), min(window, LARGEST_WINDOW), next_match, formulas)
