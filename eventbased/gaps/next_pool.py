"""Skip till next match over the pools of an incremental method: signatures nothing can spoil any more."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confidence import Pmfs
from confidence.flat_lists import starts_of
from eventbased.gaps.next_match import Bytecode, EventArrays, NextConfidences
from eventbased.gaps.survival_tables import Classes
from eventbased.incremental.candidate_pool import (
    COMPONENT,
    EVENT,
    LOWER,
    PARTITION,
    PMF,
    SHARED,
    UPPER,
    BytecodeArrays,
    CandidatePool,
)
from eventbased.incremental.completed import Matches

__all__ = ["describe_next"]

Int64 = NDArray[np.int64]


def _by_component(bytecode: BytecodeArrays, length: int) -> Bytecode:
    """Return the arrays of bytecode with the rows ordered by the last component that they mention."""
    last = np.array([int(mask).bit_length() - 1 for mask in bytecode.mask], dtype=np.int64)
    order = np.argsort(last, kind="stable")
    parts = [bytecode.code[bytecode.start[p] : bytecode.start[p + 1]] for p in order]
    sizes = np.array([len(part) for part in parts], dtype=np.int64)
    ends = starts_of(sizes)
    start = ends[np.searchsorted(last[order], np.arange(length + 1))]
    code = np.concatenate([np.zeros((0, 2), dtype=np.int64), *parts])
    return Bytecode(start, code, bytecode.ints, bytecode.floats, bytecode.nulls, bytecode.slots)


def _events(candidates: Int64, place: Int64) -> EventArrays:
    """Return candidates, see :class:`CandidatePool`, as events that stand at places in bytecode."""
    lower, upper, event = candidates[LOWER], candidates[UPPER], candidates[EVENT]
    return EventArrays(lower, upper, event, candidates[SHARED] != 0, candidates[PMF], place)


def describe_next(
    completed: Int64, pool: CandidatePool, length: int, partitions: int, confidences: NextConfidences
) -> Matches:
    """Return completed signatures, to which no event can be added in between, as matches of skip till next.

    Parameters
    ----------
    completed : (m, l + 2) int64
        Indices of the candidates, and the range by order and window, ticks.
    pool : CandidatePool
        With every candidate that may lie in a gap of them.
    length, partitions : int
    confidences : NextConfidences

    Raises
    ------
    CostlyMatchError
        If the confidence of a match takes too many steps.

    Notes
    -----
    O(c log c) for the c candidates of the pool, and what the confidences take.
    """
    candidates = pool.candidates[:, : pool.count]
    order = np.lexsort((candidates[LOWER], candidates[COMPONENT], candidates[PARTITION]))
    groups = candidates[PARTITION, order] * length + candidates[COMPONENT, order]
    # One class for each partition and component; those without a candidate are empty.
    every = np.arange(partitions * length + 1)
    first = np.searchsorted(groups, every)
    longest = np.zeros(len(every), dtype=np.int64)
    own = _events(candidates, candidates[EVENT])
    others = _events(candidates.take(order, axis=1), order)
    np.maximum.at(longest, groups, others.upper - others.lower)
    signatures = np.ascontiguousarray(completed[:, :length].T)
    size = len(completed)
    out = (
        np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64), np.empty(size), np.empty(size)
    )  # fmt: skip
    # An event that has come since the last step may lie in a gap whose table was made before.
    confidences.forget()
    confidences.describe(
        signatures, candidates[PARTITION, signatures[0]], own, others,
        Classes(every, first[:-1], first[1:], longest), Pmfs(pool.pmfs.pmf, pool.pmfs.head, pool.pmfs.tail),
        _by_component(pool.bytecode, length), out,
    )  # fmt: skip
    possible = out[0] <= out[1]
    matches = Matches(candidates[EVENT, signatures], *out)
    return Matches._make(column[..., possible] for column in matches)
