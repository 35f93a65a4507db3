"""Groups of matches as arrays, and room to work on one of them."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["FIELDS", "Arena", "Groups", "Scratch", "Sizes", "Workspace", "workspace_for"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

MATCHES: Final = 0
TERMS: Final = 1
LITERALS: Final = 2
LISTED: Final = 3
NODES: Final = 4
PARTS: Final = 5
FRAMES: Final = 6
STEPS: Final = 7
STAMP: Final = 8
MOST_STEPS: Final = 9
MOST_TIED: Final = 10
"""Places in :attr:`Arena.top`; the last one says how many matches may be tied by a variable that is held at
all pieces, and not at one drawn tick."""

FIELDS: Final = 16
"""Numbers of a frame."""

LOW: Final = 0
HIGH: Final = 1
OWN_LOW: Final = 2
OWN_HIGH: Final = 3
CLOCK: Final = 4
LAW: Final = 5
CHILD: Final = 6
SIBLING: Final = 7
NEAR_LOW: Final = 8
NEAR_HIGH: Final = 9
"""Rows of :attr:`Workspace.variables`: bounds, one tick where it is held; those less the offset of its clock;
the variable of that, or 0; where its law starts, or -1; the first time by it as a clock, and the next one by
the
same clock, or 0; bounds within the match that is looked at, outside it those of the variable."""

EARLIER: Final = 0
LATER: Final = 1
LEAST: Final = 2
"""Rows of :attr:`Arena.literals`."""

NUMBER: Final = 0
SIZE: Final = 1
MARK: Final = 2
EDGE: Final = 3
"""Rows of :attr:`Scratch.by_variable`: two counts, a stamp, and the first edge of a variable, or -1."""


class Groups(NamedTuple):
    """Groups of matches, one behind the other.

    Attributes
    ----------
    variable_start : (g + 1,) int64
        Where the variables of each group begin. Within a group they are numbered from 1; 0 stands for tick 0.
    lower, upper : (v,) int64
        Ticks, inclusive; of a time by a clock that is a variable, less its offset.
    parent : (v,) int64
        The variable of that clock; 0: none.
    law : (v,) int64
        Where the probabilities of the ticks start in ``values``; -1: all have the same.
    values : (p,) float64
    match_start : (g + 1,) int64
        Where the matches of each group begin.
    signature : (m,) int64
        Matches of a group with one signature, numbered from 0, count once.
    term_start : (m + 1,) int64
        Where the terms of each match begin: first the literals that hold, then a term for each box.
    literal_start : (t + 1,) int64
    earlier, later, distance : (l,) int64
        The literals ``t_later - t_earlier >= distance``, of variables numbered as in their group.
    """

    variable_start: Int64
    lower: Int64
    upper: Int64
    parent: Int64
    law: Int64
    values: Float64
    match_start: Int64
    signature: Int64
    term_start: Int64
    literal_start: Int64
    earlier: Int64
    later: Int64
    distance: Int64


class Arena(NamedTuple):
    """Stacks of matches, lists of matches, ticks to hold variables at, independent parts, and frames."""

    term: Int64
    """(matches + 1,) int64. Where the terms of a match begin; likewise ``literal`` of a term."""
    signature: Int64
    literal: Int64
    literals: Int64
    """(3, n) int64."""
    listed: Int64
    """(n,) int64. Numbers of matches."""
    tick: Int64
    weight: Float64
    """(n,) each. How often a tick of a held variable counts."""
    part: Int64
    """(n, 2) int64. Begin and end of a list, of one match where it is negative: see ``counting``."""
    chance: Float64
    """(n, 2) float64. P(what is known of a single match does not hold), and that it does."""
    frame: Int64
    """(n, FIELDS) int64."""
    total: Float64
    """(n, k + 1) float64. P(n matches) for n < k, and P(k or more)."""
    top: Int64
    """(11,) int64. How much of each stack is taken, and what was spent."""


class Scratch(NamedTuple):
    """Work arrays, by variable where nothing else is said."""

    values: Float64
    """The values of :class:`Groups`."""
    label: Int64
    """A variable that it depends on, or itself."""
    by_variable: Int64
    """(4, v + 1) int64."""
    touched: Int64
    saved: Int64
    """(2 v + 2,) and (2 v + 2, 2) int64. Variables, and bounds of theirs."""
    of_signature: Int64
    stamp: Int64
    """(signatures,) int64 each."""
    edges: Int64
    """(e, 4) int64. The next edge, the variable at its end, the distance, and whether that is the most."""
    path: Int64
    """(v + 2, 6) int64."""
    start: Int64
    """(n,) int64. Where pieces begin."""
    row: Float64
    result: Float64
    """(k + 1,) float64 each."""
    weights: Float64
    """(7,) float64. Of few ticks; ``points`` and ``matrix``, (d,) and (d, d + 1), are for those of more."""
    points: Int64
    matrix: Float64
    share: Float64
    """(v + 1,) float64. The share of the law of each variable that is below the tick drawn for it."""


class Workspace(NamedTuple):
    """Room for any group of so much; see :func:`workspace_for`."""

    variables: Int64
    """(10, v + 1) int64. Those of one group."""
    arena: Arena
    scratch: Scratch


_LEVELS: Final = 8
"""How often there is room for a whole group on the stacks; mostly a few times suffice."""

_MOST_STARTS: Final = 3_000
"""Most pieces of one variable."""

_HIGHEST_DEGREE: Final = 255
"""Of polynomials whose sums few ticks tell; beyond, each tick counts."""


class Sizes(NamedTuple):
    """The largest numbers of variables, matches, terms and literals of some groups."""

    variables: int
    matches: int
    terms: int
    literals: int


def workspace_for(sizes: Sizes, factor: int, at_least: int, values: Float64) -> Workspace:
    """Return room for groups of such sizes, and for ``factor`` times as much that becomes of them.

    ``at_least`` is how many matches are counted, ``values`` are those of the groups. A group that needs more
    room says so.
    """
    v, levels = sizes.variables + 1, _LEVELS * factor
    matches, terms, literals = (levels * size for size in sizes[1:])

    def whole(*shape: int) -> Int64:
        return np.zeros(shape, dtype=np.int64)

    ticks, depth = levels * 64 + _MOST_STARTS, 3 * v + 4
    arena = Arena(
        whole(matches + 2), whole(matches + 1), whole(terms + 2), whole(3, literals + 1),
        whole(2 * matches + 2), whole(ticks), np.zeros(ticks), whole(matches + 2, 2),
        np.zeros((matches + 2, 2)), whole(depth, FIELDS), np.zeros((depth, at_least + 1)), whole(11),
    )  # fmt: skip
    # A match narrows variables, and each of its boxes does besides.
    scratch = Scratch(
        values, whole(v), whole(4, v), whole(2 * v), whole(2 * v, 2), whole(max(sizes.matches, 1)),
        whole(max(sizes.matches, 1)), whole(4 * sizes.literals + 4 * v + 2, 4), whole(v + 1, 6),
        whole(_MOST_STARTS + 2), np.zeros(at_least + 1), np.zeros(at_least + 1), np.zeros(7),
        whole(_HIGHEST_DEGREE + 1), np.zeros((_HIGHEST_DEGREE + 1, _HIGHEST_DEGREE + 2)), np.zeros(v),
    )  # fmt: skip
    return Workspace(whole(10, v), arena, scratch)
