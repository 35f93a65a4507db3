"""Where a pivot join stands, and the blocks of partial matches behind the matches that it found last."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import kernel
from confidence.large_arrays import empty, zeros
from eventbased.config import BLOCK_ROWS, SPARE
from eventbased.layout import Candidates, SharedEvents

__all__ = [
    "BEGIN",
    "BEGUN",
    "CANDIDATE",
    "CLASS",
    "COMPONENT_BITS",
    "COUNT",
    "END",
    "FIRST",
    "FRESH",
    "INDEX",
    "LATEST",
    "LEFT",
    "NEXT",
    "NEXT_PASS",
    "PARENT",
    "PARENT_ROW",
    "PASS",
    "PIVOT",
    "REACH",
    "ROW",
    "SIZE",
    "TOP",
    "WITHIN",
    "JoinBytecode",
    "JoinState",
    "PivotInputs",
    "start_join",
    "trace_back",
]

PASS: Final = 0
CLASS: Final = 1
INDEX: Final = 2
NEXT_PASS: Final = 3
LEFT: Final = 4

COUNT: Final = 0
ROW: Final = 1
WITHIN: Final = 2
NEXT: Final = 3

END: Final = 0
BEGUN: Final = 1

CANDIDATE: Final = 0
PARENT_ROW: Final = 1
PIVOT: Final = 2
REACH: Final = 3
TOP: Final = 4
FIRST: Final = 5
LATEST: Final = 6

PARENT: Final = 0
BEGIN: Final = 1
SIZE: Final = 2

FRESH: Final = -1

COMPONENT_BITS: Final = 62
"""Bits for sets of components; two components of a longer pattern share one."""


class JoinBytecode(NamedTuple):
    """Predicates across components, and when to run which of them."""

    start: NDArray[np.int64]
    """(k, l + 1) int64. For each order of binding and each of its steps the first row of its predicates; of
    the pivot join there is an order for each pivot component."""
    code: NDArray[np.int64]
    ints: NDArray[np.int64]
    floats: NDArray[np.float64]
    nulls: NDArray[np.bool_]
    slots: NDArray[np.int64]
    """See :func:`confidence.predicates.bytecode.holds`."""


class PivotInputs(NamedTuple):
    """All that a pivot join of a pattern of l >= 2 components reads."""

    w: int
    """``W - l``, ticks, at least 0."""
    candidates: Candidates
    """With positions taken off: A and B."""
    shared: SharedEvents
    limit: NDArray[np.int64]
    """(n,) int64, or (0,). For each candidate of component j the largest A that one of component j + 1 may
    have to follow it, see :func:`eventbased.gaps.next_match.next_limits`; empty: any."""
    most_apart: NDArray[np.int64]
    """(l,) int64, or (0,). Largest difference of a time from the one before, at least 0, positions taken off;
    the first is not looked at. :data:`UNBOUND_GAP` or empty: any."""
    order: NDArray[np.int64]
    """(l, l) int64. For each pivot component, the components in the order in which they are bound."""
    bytecode: JoinBytecode


class JoinState(NamedTuple):
    """Where a join stands, and the blocks of partial matches behind the matches it found last."""

    state: NDArray[np.int64]
    """(5,) int64. ``state[PASS]`` is the pivot component of the blocks, ``state[LEFT]`` how many steps of the
    last call are left."""
    cursor: NDArray[np.int64]
    """(4, l - 1) int64. For each block its rows, the row to go on with, and the class and candidate to go on
    with."""
    hints: NDArray[np.int64]
    """(2, c) int64. For each class where the last searches ended."""
    minimum: NDArray[np.int64]
    """(k,) int64. m = min B of each pivot of the first block."""
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    """(c, k) int64. For each class and pivot of the first block where the candidates begin and end that go
    with it."""
    blocks: NDArray[np.int64]
    """(l - 1, 7, k + SPARE) int64. Block, then CANDIDATE bound last, PARENT_ROW in the block before, PIVOT in
    the first block, REACH = E = max A from the pivot on, TOP = max A, FIRST = A of component 0 once bound,
    LATEST = L; then row."""
    shares: NDArray[np.int64]
    """(l - 1, k + SPARE) int64. Which components the chosen events could fill, each its own included if there
    are others: bit j for component j, modulo COMPONENT_BITS."""
    inner: NDArray[np.int64]
    """(3, k + 1) int64. Spans between two blocks."""
    found: NDArray[np.int64]
    """(l, l) int64. Partial matches found with each component for their pivot, of one component, two and so
    on."""


def start_join(length: int, classes: int, block_rows: int = BLOCK_ROWS) -> JoinState:
    """Return a join of ``length`` >= 2 components that stands before the first match."""
    cursor = np.zeros((4, length - 1), dtype=np.int64)
    cursor[NEXT] = FRESH
    return JoinState(
        state=np.zeros(5, dtype=np.int64),
        cursor=cursor,
        hints=np.zeros((2, classes), dtype=np.int64),
        minimum=empty(block_rows),
        begins=empty((classes, block_rows)),
        ends=empty((classes, block_rows)),
        blocks=zeros((length - 1, 7, block_rows + SPARE)),
        shares=empty((length - 1, block_rows + SPARE)),
        inner=empty((3, block_rows + 1)),
        found=np.zeros((length, length), dtype=np.int64),
    )


@kernel
def trace_back(ordered, blocks, level, row, chosen):
    """Write the candidates of a partial match, a row of block ``level``, to ``chosen``, (l,) int64. O(l)."""
    for s in range(level, -1, -1):
        chosen[ordered[s]] = blocks[s, CANDIDATE, row]
        row = blocks[s, PARENT_ROW, row]
