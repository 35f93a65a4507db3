"""The right sides of joins, and chains of joins carried out depth first, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, steps_per_call
from confidence.kernel import kernel
from eventbased.config import BLOCK_PLACES, BLOCK_ROWS, DENSE_KEYS
from eventbased.joins.tree_join import FRESH, ROW, Programs, RightSide, append, extend, reach
from eventbased.layout import Candidates

__all__ = ["Events", "JoinStep", "joined", "right_of_candidates", "right_of_matches"]

Int64 = NDArray[np.int64]


class Events(NamedTuple):
    """The candidates as all joins of a tree see them.

    Attributes
    ----------
    lower, upper : (n,) int64
        A and B of every candidate.
    event : (n,) int64, twin : (s, l) int64
        See :func:`eventbased.joins.pivot_join.join`.
    limit : (n,) int64, or (0,)
        Likewise.
    codes : (c,) int64
        See :func:`eventbased.joins.tree_join.reach`.
    programs : Programs
    """

    lower: Int64
    upper: Int64
    event: Int64
    twin: Int64
    limit: Int64
    codes: Int64
    programs: Programs


@dataclass(frozen=True, slots=True)
class JoinStep:
    """One join of a chain; see ``reach`` and ``extend``.

    Attributes
    ----------
    left : (s,) int64
    slack : (s, 2) int64
    right : RightSide
    least, most : int
    equated : (e, 3) int64
    pairs : (q, 4) int64
    shared : bool
    rows : tuple of int
        First and last row of its programs, the last one exclusive.
    """

    left: Int64
    slack: Int64
    right: RightSide
    least: int
    most: int
    equated: Int64
    pairs: Int64
    shared: bool
    rows: tuple[int, int]


@kernel
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


@kernel
def _extremes(places, lower, upper, first, last):
    """Set max A and min B of rows of candidates. O(t n)."""
    first[:] = lower[places[0]]
    last[:] = upper[places[0]]
    for t in range(1, places.shape[0]):
        place = places[t]
        for i in range(place.shape[0]):
            first[i] = max(first[i], lower[place[i]])
            last[i] = min(last[i], upper[place[i]])


def _groups(key: Int64, size: int) -> tuple[Int64, int, Int64, Int64]:
    """Return the group of each key below ``size``, -1 for key -1; how many; and how keys are looked up."""
    none = np.empty(0, dtype=np.int64)
    if size <= DENSE_KEYS * len(key) + 1024:
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
    """Return the candidates of a component as a right side.

    Parameters
    ----------
    candidates : Candidates
    component : int
    key : (n_j,) int64 or None
        What a left row has to have the same of, -1 for what nothing equals; None if nothing is equated.
    size : int
        Above all keys.

    Notes
    -----
    O(n_j), and O(n_j log n_j) if keys are sparse.
    """
    begin, stop = int(candidates.first[component]), int(candidates.first[component + 1])
    own = slice(int(candidates.first_class[component]), int(candidates.first_class[component + 1]))
    start = np.append(candidates.class_start[own], stop) - begin
    places = np.arange(begin, stop, dtype=np.int64)
    number = keys = np.empty(0, dtype=np.int64)
    classes = len(start) - 1
    if key is not None:
        group, groups, number, keys = _groups(key, size)
        kind = np.repeat(np.arange(classes), np.diff(start))
        bucket = np.where(group >= 0, group * classes + kind, -1)
        order, start = _sorted_by_bucket(bucket, groups * classes)
        places = places[order]
    return RightSide(
        components=np.array([component], dtype=np.int64),
        places=places[None, :],
        first=candidates.lower[places],
        last=candidates.upper[places],
        start=start,
        longest=candidates.class_longest[own].copy(),
        even=candidates.class_shortest[own] == candidates.class_longest[own],
        hint=start[:-1].copy(),
        number=number,
        keys=keys,
    )


def right_of_matches(
    events: Events, components: Int64, places: Int64, key: Int64 | None = None, size: int = 0
) -> RightSide:
    """Return partial matches as a right side.

    Parameters
    ----------
    events : Events
    components : (t,) int64
    places : (t, n) int64
        The candidates of each partial match.
    key, size
        As for :func:`right_of_candidates`.
    """
    first, last = np.empty((2, places.shape[1]), dtype=np.int64)
    _extremes(places, events.lower, events.upper, first, last)
    order = np.argsort(first, kind="stable")
    start = np.array([0, len(order)], dtype=np.int64)
    number = keys = np.empty(0, dtype=np.int64)
    if key is not None:
        group, groups, number, keys = _groups(key[order], size)
        by_group, start = _sorted_by_bucket(group, groups)
        order = order[by_group]
    return RightSide(
        components=components,
        places=np.ascontiguousarray(places[:, order]),
        first=first[order],
        last=last[order],
        start=start,
        longest=np.array([(last - first).max(initial=0)], dtype=np.int64),
        even=np.zeros(1, dtype=np.bool_),
        hint=start[:-1].copy(),
        number=number,
        keys=keys,
    )


class _Level:
    """The block of partial matches that a step of a chain goes on from, and how far it has got."""

    def __init__(self, length: int, rows: int, step: JoinStep, events: Events) -> None:
        self.block = np.empty((length, rows), dtype=np.int64)
        self.count = 0
        self.full = False
        self._step, self._events = step, events
        self._cursor = np.array([0, 0, FRESH], dtype=np.int64)
        self._asked = np.empty((3, rows), dtype=np.int64)
        self._begun = False

    def extend(self, out: Int64, filled: int, runs: Int64) -> int:
        """Join as many rows as there is room for in the next block; return how many rows it then has."""
        step, events = self._step, self._events
        lo, hi, group = self._asked
        # Numba types a kernel at its calls.
        ask: Any = reach
        join: Any = extend
        write: Any = append
        if not self._begun:
            ask(
                self.count, self.block, step.left, step.slack, step.right, step.least, step.most,
                events.lower, events.upper, events.limit, step.equated, events.codes, lo, hi, group,
            )  # fmt: skip
            self._begun = True
        count, found = join(
            self.count, self.block, step.left, lo, hi, group, step.right, step.pairs, step.shared,
            events.event, events.twin, events.lower, events.upper, events.limit, *step.rows, events.programs,
            self._cursor, steps_per_call(), out.shape[1] - filled, runs,
        )  # fmt: skip
        write(self.block, step.left, step.right.places, step.right.components, runs, count, out, filled)
        if self._cursor[ROW] == self.count:
            self._cursor[:] = 0, 0, FRESH
            self._begun = self.full = False
            self.count = 0
        return filled + int(found)


def joined(
    length: int,
    first: int,
    places: Int64,
    steps: Sequence[JoinStep],
    events: Events,
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
    places : (n,) int64
        Its candidates, as places in the layout.
    steps : sequence of JoinStep
        At least one.
    events : Events
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
    rows = max(min(block_rows, BLOCK_PLACES // length**2), 1)
    levels = [_Level(length, rows, step, events) for step in steps]
    runs = np.empty((3, max(rows, last_rows)), dtype=np.int64)
    out, filled = np.empty((length, last_rows), dtype=np.int64), 0
    given = 0
    while True:
        full = [k for k, level in enumerate(levels) if level.full]
        if not full and not levels[0].count and given < len(places):
            part = places[given : given + rows]
            levels[0].block[first, : len(part)] = part
            levels[0].count = len(part)
            given += len(part)
        waiting = [k for k, level in enumerate(levels) if level.count]
        if not waiting:
            break
        k = full[-1] if full else waiting[0]
        if k < len(steps) - 1:
            following = levels[k + 1]
            before = following.count
            following.count = levels[k].extend(following.block, before, runs)
            following.full = following.count == rows
            found = following.block[first, before : following.count]
        else:
            before = filled
            filled = levels[k].extend(out, filled, runs)
            found = out[first, before:filled]
        if counted is not None:
            counted(k, found)
        checkpoint()
        if filled == last_rows:
            yield out
            out, filled = np.empty((length, last_rows), dtype=np.int64), 0
    if filled:
        yield np.ascontiguousarray(out[:, :filled])
