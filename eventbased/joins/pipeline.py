"""The right sides of joins, and chains of joins carried out depth first, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, steps_per_call
from confidence.kernel import kernel
from eventbased.config import BLOCK_ROWS
from eventbased.joins.tree_join import FRESH, ROW, JoinInputs, JoinStep, RightSide, append, extend, reach
from eventbased.layout import Candidates

__all__ = ["joined", "right_of_candidates", "right_of_matches"]

Int64 = NDArray[np.int64]

_BLOCK_PLACES: Final = 2**23
"""Blocks have fewer rows where all blocks of a chain of joins would hold more candidates than this."""

_DENSE_KEYS: Final = 4
"""Groups of equal values are found by a table while it has at most so many entries for each row."""


@kernel(allocates=True)
def _sorted_by_bucket(bucket, buckets):
    """Return the order by bucket, else as given, without those of bucket -1, and where each one starts."""
    start = np.zeros(buckets + 1, np.int64)
    for b in bucket:
        if b >= 0:
            start[b + 1] += 1
    for b in range(buckets):
        start[b + 1] += start[b]
    following = start.copy()
    order = np.empty(start[buckets], np.int64)
    for i in range(bucket.shape[0]):
        b = bucket[i]
        if b >= 0:
            order[following[b]] = i
            following[b] += 1
    return order, start


def _groups(key: Int64, size: int) -> tuple[Int64, int, Int64, Int64]:
    """Return the group of each key below ``size``, -1 for key -1; how many; and how keys are looked up."""
    none = np.empty(0, dtype=np.int64)
    if size <= _DENSE_KEYS * len(key) + 1024:
        present = np.zeros(size + 1, dtype=np.bool_)
        present[key] = True
        present[size] = False
        number = np.cumsum(present) - 1
        count = int(number[-1]) + 1
        number[~present] = -1
        # Key -1 finds the last entry, which is of none.
        return number[key], count, number, none
    group = np.full(len(key), -1)
    keys, group[key >= 0] = np.unique(key[key >= 0], return_inverse=True)
    return group, len(keys), none, keys


def right_of_candidates(
    candidates: Candidates, component: int, key: Int64 | None = None, size: int = 0
) -> RightSide:
    """Return the candidates of a component as a right side. O(n_j), and O(n_j log n_j) if keys are sparse.

    Parameters
    ----------
    candidates : Candidates
    component : int
    key : (n_j,) int64 or None
        What a left row has to have the same of, -1 for what nothing equals; None if nothing is equated.
    size : int
        Above all keys.
    """
    begin, stop = int(candidates.first[component]), int(candidates.first[component + 1])
    classes = slice(int(candidates.first_class[component]), int(candidates.first_class[component + 1]))
    start = np.append(candidates.class_start[classes], stop) - begin
    longest = candidates.class_longest[classes].copy()
    even = candidates.class_shortest[classes] == longest
    members = np.arange(begin, stop, dtype=np.int64)
    times = candidates.lower[begin:stop], candidates.upper[begin:stop]
    return _right_side(np.array([component]), members[None, :], times, (start, longest, even), key, size)


def right_of_matches(
    inputs: JoinInputs, components: Int64, candidates: Int64, key: Int64 | None = None, size: int = 0
) -> RightSide:
    """Return partial matches of some components, (t, n) int64 candidates, as a right side.

    ``key`` and ``size`` are those of :func:`right_of_candidates`.
    """
    first, last = inputs.lower[candidates].max(axis=0), inputs.upper[candidates].min(axis=0)
    order = np.argsort(first, kind="stable")
    first, last = first[order], last[order]
    start = np.array([0, len(order)], dtype=np.int64)
    longest = np.array([(last - first).max(initial=0)], dtype=np.int64)
    classes = start, longest, np.zeros(1, dtype=np.bool_)
    key = None if key is None else key[order]
    return _right_side(components, candidates[:, order], (first, last), classes, key, size)


def _right_side(
    components: Int64,
    candidates: Int64,
    times: tuple[Int64, Int64],
    classes: tuple[Int64, Int64, NDArray[np.bool_]],
    key: Int64 | None,
    size: int,
) -> RightSide:
    """Return rows that ascend within each class as a right side, sorted by group where keys are given."""
    start, longest, even = classes
    order: slice | Int64 = slice(None)
    number = keys = np.empty(0, dtype=np.int64)
    if key is not None:
        group, groups, number, keys = _groups(key, size)
        kind = np.repeat(np.arange(len(longest)), np.diff(start))
        bucket = np.where(group >= 0, group * len(longest) + kind, -1)
        order, start = _sorted_by_bucket(bucket, groups * len(longest))
    first, last = times
    chosen = np.ascontiguousarray(candidates[:, order])
    return RightSide(
        components, chosen, first[order], last[order], start, longest, even, start[:-1].copy(), number, keys
    )


class _Level:
    """The block of partial matches that a step of a chain goes on from, and how far it has got."""

    def __init__(self, length: int, rows: int, step: JoinStep, inputs: JoinInputs) -> None:
        self.block = np.empty((length, rows), dtype=np.int64)
        self.count = 0
        self.full = False
        self._step, self._inputs = step, inputs
        self._cursor = np.array([0, 0, FRESH], dtype=np.int64)
        self._probe = np.empty((3, rows), dtype=np.int64)
        self._begun = False

    def extend(self, out: Int64, filled: int, spans: Int64) -> int:
        """Join as many rows as there is room for in the next block; return how many rows it then has."""
        # Numba types a kernel at its calls.
        ask: Any = reach
        join: Any = extend
        write: Any = append
        if not self._begun:
            ask(self.count, self.block, self._step, self._inputs, self._probe)
            self._begun = True
        count, matched = join(
            self.count, self.block, self._step, self._inputs, self._probe, self._cursor, steps_per_call(),
            out.shape[1] - filled, spans,
        )  # fmt: skip
        write(self.block, self._step, spans, count, out, filled)
        if self._cursor[ROW] == self.count:
            self._cursor[:] = 0, 0, FRESH
            self._begun = self.full = False
            self.count = 0
        return filled + int(matched)

    def feed(self, following: _Level, spans: Int64) -> None:
        """Join as many rows as the block of the following step has room for."""
        following.count = self.extend(following.block, following.count, spans)
        following.full = following.count == following.block.shape[1]


def joined(
    length: int,
    first: int,
    candidates: Int64,
    steps: Sequence[JoinStep],
    inputs: JoinInputs,
    last_rows: int,
    block_rows: int = BLOCK_ROWS,
    counted: Callable[[int, Int64], None] | None = None,
) -> Iterator[Int64]:
    """Yield the results of a chain of joins.

    Parameters
    ----------
    length : int
        Components of the pattern.
    first : int
        The component that the chain begins with.
    candidates : (n,) int64
        Those of it, as indices into the layout.
    steps : sequence of JoinStep
        At least one.
    inputs : JoinInputs
    last_rows, block_rows : int
        Most rows of the last and of any other block.
    counted : callable or None
        Called with the number of a step and the candidates of ``first`` of partial matches that it found.

    Yields
    ------
    (l, m) int64
        The candidates of some results, by component; those of components that are not in the chain are not
        set. All but the last one have ``last_rows`` columns.

    Notes
    -----
    A block is gone on from when it is full, or when no more rows can come: so the cost of a call is spread
    over many rows, and memory is bounded by a block for each step.
    """
    rows = max(min(block_rows, _BLOCK_PLACES // length**2), 1)
    levels = [_Level(length, rows, step, inputs) for step in steps]
    spans = np.empty((3, max(rows, last_rows)), dtype=np.int64)
    out, filled = np.empty((length, last_rows), dtype=np.int64), 0
    fed = 0
    while True:
        full = [k for k, level in enumerate(levels) if level.full]
        if not full and not levels[0].count and fed < len(candidates):
            part = candidates[fed : fed + rows]
            levels[0].block[first, : len(part)] = part
            levels[0].count = len(part)
            fed += len(part)
        waiting = [k for k, level in enumerate(levels) if level.count]
        if not waiting:
            break
        k = full[-1] if full else waiting[0]
        if k < len(steps) - 1:
            before = levels[k + 1].count
            levels[k].feed(levels[k + 1], spans)
            extended = levels[k + 1].block[first, before : levels[k + 1].count]
        else:
            before = filled
            filled = levels[k].extend(out, filled, spans)
            extended = out[first, before:filled]
        if counted is not None:
            counted(k, extended)
        checkpoint()
        if filled == last_rows:
            yield out
            out, filled = np.empty((length, last_rows), dtype=np.int64), 0
    if filled:
        yield np.ascontiguousarray(out[:, :filled])
