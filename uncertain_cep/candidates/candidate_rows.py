"""The rows that components can take, with their times, and how these lie."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.large_arrays import empty
from eventbased import Concatenated
from eventbased.bits import words_for
from eventbased.rows_of_masks import pack_masks, take_rows
from eventbased.times_of_rows import EARLIEST, IN_ORDER, LATEST, NOTHING, times_of_rows
from uncertain_cep.expressions.kernel_calls import is_worth_a_kernel, read_only

__all__ = ["CandidateRows", "Spread"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

_NONE: Final = np.empty(0, dtype=np.int64)


class Spread(NamedTuple):
    """How the times of the candidates of a component lie."""

    earliest: int
    latest: int
    """The extremes of the bounds, ticks; beyond all others if there are no candidates. No bound is later, but
    of a stretch of candidates all may be earlier."""
    longest: int
    """The largest ``upper - lower``; 0 if there are no candidates. Of a stretch all may be shorter."""
    ascends: bool
    """Whether ``lower`` does."""

    @classmethod
    def of(cls, lower: Int64, upper: Int64) -> Spread:
        """Return that of some intervals. O(n)."""
        if not len(lower):
            return cls(*NOTHING[:IN_ORDER], ascends=True)
        ascends = bool((lower[1:] >= lower[:-1]).all())
        earliest = int(lower[0]) if ascends else int(lower.min())
        return cls(earliest, int(upper.max()), int((upper - lower).max()), ascends)

    def of_stretch(self, lower: Int64) -> Spread:
        """Return the spread of these candidates, which ascend and are neighbours, at least one. O(1)."""
        latest = min(self.latest, int(lower[-1]) + self.longest)
        return Spread(int(lower[0]), latest, self.longest, True)

    def before(self, following: Spread, last: int, first: int) -> Spread:
        """Return that of these candidates and of more, between which ``lower`` goes from last to first."""
        return Spread(
            min(self.earliest, following.earliest),
            max(self.latest, following.latest),
            max(self.longest, following.longest),
            self.ascends and following.ascends and last <= first,
        )


class CandidateRows(NamedTuple):
    """The rows that each component can take, and their times."""

    rows: list[Int64]
    lower: list[Int64]
    upper: list[Int64]
    """Each list of (n_j,) int64, of component j; times in ticks."""
    spreads: list[Spread]
    extremes: tuple[int, int] | None = None
    """The earliest lower and the latest upper bound of all rows among which these are, ticks, if it is known
    that no upper bound is below its lower one."""
    concatenated: Concatenated | None = None
    """The same, where those of one component lie behind those of another."""

    @classmethod
    def of(
        cls, rows: Sequence[Int64], lower: Int64, upper: Int64, among: slice | None = None
    ) -> CandidateRows:
        """Gather the times of rows, ``among`` some, ascending in each component. O(n + m)."""
        begin, end = (0, len(lower)) if among is None else (among.start, among.stop)
        if not is_worth_a_kernel(end - begin):
            times_of_components = [(lower[part], upper[part]) for part in rows]
            spreads = [Spread.of(*times) for times in times_of_components]
            return cls(
                list(rows),
                [low for low, _ in times_of_components],
                [high for _, high in times_of_components],
                spreads,
            )
        concatenated, start = _concatenated(rows), _starts(map(len, rows))
        low, high, facts = _room(len(concatenated), len(rows))
        following = start[:-1].copy()
        times_of_rows(
            begin, end, read_only(lower), read_only(upper), concatenated, start, following, low, high, facts
        )  # fmt: skip
        return cls._told((concatenated, low, high), start, facts)

    @classmethod
    def where(
        cls,
        masks: Sequence[Sequence[Mask]],
        among: slice,
        bounds: tuple[Int64, Int64] | None,
        ids: Int64 | None,
    ) -> tuple[CandidateRows, bool]:
        """Find the rows that components can take, and their times if ``bounds`` are given.

        Parameters
        ----------
        masks : sequence of sequence of (k,) bool
            For each component at least one; it can take the rows where all are true.
        among : slice
            Those k rows of all.
        bounds : tuple of (n,) int64, or None
            The times of all rows, ticks.
        ids : (n,) int64, or None
            The ids of all rows; None if nothing is asked of them.

        Returns
        -------
        CandidateRows
            Without times if they are not asked for.
        bool
            Whether ids ascend up to the first row behind these.

        Notes
        -----
        O(k) for each mask, and for times and ids. Of all that, kernels do as much as they can in a call:
        whenever one begins or ends, a thread may have to wait for the interpreter.
        """
        begin, end = among.start, among.stop
        ids = _NONE if ids is None else ids
        if not is_worth_a_kernel(end - begin):
            rows = [
                np.flatnonzero(reduce(np.logical_and, masks_of_component)) + begin
                for masks_of_component in masks
            ]
            these = ids[begin : end + 1]
            ascend = bool((these[1:] > these[:-1]).all())
            return cls(rows, [], [], []) if bounds is None else cls.of(rows, *bounds, among), ascend
        bits = np.empty((len(masks), words_for(end - begin)), dtype=np.uint64)
        start = _starts(
            _packed(masks_of_component, out) for masks_of_component, out in zip(masks, bits, strict=True)
        )
        concatenated: Int64 = empty(int(start[-1]))
        low, high, facts = _room(0 if bounds is None else len(concatenated), len(masks))
        lower, upper = (_NONE, _NONE) if bounds is None else bounds
        ascend = bool(
            take_rows(
                begin, end, bits, read_only(ids), read_only(lower), read_only(upper), concatenated, start,
                start[:-1].copy(), low, high, facts,
            )
        )  # fmt: skip
        if bounds is None:
            return cls(_apart(concatenated, start), [], [], []), ascend
        return cls._told((concatenated, low, high), start, facts), ascend

    def of_components(self, places: Sequence[int]) -> CandidateRows:
        """Return the candidates of some of the components."""
        rows, lower, upper = ([column[j] for j in places] for column in (self.rows, self.lower, self.upper))
        concatenated = self.concatenated
        if concatenated is not None:
            concatenated = concatenated._replace(
                begin=concatenated.begin[places], end=concatenated.end[places]
            )
        return CandidateRows(rows, lower, upper, [self.spreads[j] for j in places], concatenated=concatenated)

    @classmethod
    def joined(cls, ranges: Sequence[CandidateRows]) -> CandidateRows:
        """Return the candidates among all rows, joined from ranges of rows, one behind the other."""
        if len(ranges) == 1:
            return ranges[0]
        # Without times nothing is known of them.
        spreads = [_joined(j, ranges) for j in range(len(ranges[0].lower))]
        if not spreads:
            return cls(_apart(*_each_concatenated([part.rows for part in ranges])), [], [], spreads)
        (rows, start), (lower, _), (upper, _) = (
            _each_concatenated(parts)
            for parts in zip(*((part.rows, part.lower, part.upper) for part in ranges), strict=True)
        )
        return cls._of_columns((rows, lower, upper), start, spreads)

    @classmethod
    def _told(cls, columns: tuple[Int64, Int64, Int64], start: Int64, facts: Int64) -> CandidateRows:
        """Return rows and their times with what a kernel tells of them."""
        *parts, whole = facts.tolist()
        spreads = [Spread(first, last, longest, bool(ascends)) for first, last, longest, ascends in parts]
        extremes = (whole[EARLIEST], whole[LATEST]) if whole[IN_ORDER] else None
        return cls._of_columns(columns, start, spreads, extremes)

    @classmethod
    def _of_columns(
        cls,
        columns: tuple[Int64, Int64, Int64],
        start: Int64,
        spreads: list[Spread],
        extremes: tuple[int, int] | None = None,
    ) -> CandidateRows:
        """Return rows and their times, given for all components, one behind the other."""
        concatenated = Concatenated(*columns, _NONE, start[:-1], start[1:])
        rows, lower, upper = (_apart(column, start) for column in columns)
        return cls(rows, lower, upper, spreads, extremes, concatenated)


def _packed(masks: Sequence[Mask], out: NDArray[np.uint64]) -> int:
    """Write as bits where all of some masks are true; return in how many rows."""
    one, *more = masks
    other = reduce(np.logical_and, more) if more else one
    first, second = (read_only(np.ascontiguousarray(mask).view(np.uint8)) for mask in (one, other))
    return int(pack_masks(first, second, out))


def _room(count: int, components: int) -> tuple[Int64, Int64, Int64]:
    """Return room for the times of so many rows, and for what is told of them."""
    facts = np.empty((components + 1, len(NOTHING)), dtype=np.int64)
    facts[:] = NOTHING
    return empty(count), empty(count), facts


def _each_concatenated(ranges: Sequence[list[Int64]]) -> tuple[Int64, Int64]:
    """Return each component's parts of ranges of rows, one behind the other, and where each begins."""
    parts = list(zip(*ranges, strict=True))
    start = _starts(sum(map(len, pieces)) for pieces in parts)
    return _concatenated([piece for pieces in parts for piece in pieces]), start


def _starts(sizes: Iterable[int]) -> Int64:
    return np.cumsum([0, *sizes], dtype=np.int64)


def _joined(component: int, ranges: Sequence[CandidateRows]) -> Spread:
    there = [part for part in ranges if len(part.rows[component])] or ranges[:1]
    spread = there[0].spreads[component]
    for one, other in pairwise(there):
        last, first = int(one.lower[component][-1]), int(other.lower[component][0])
        spread = spread.before(other.spreads[component], last, first)
    return spread


def _concatenated(parts: Sequence[Int64]) -> Int64:
    room: Int64 = empty(sum(map(len, parts)))
    return np.concatenate(parts, out=room) if parts else room


def _apart(whole: Int64, start: Int64) -> list[Int64]:
    return [whole[begin:end] for begin, end in pairwise(start.tolist())]
