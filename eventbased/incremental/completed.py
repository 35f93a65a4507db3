"""From completed signatures to final matches: events, tight range, exact confidence; and the wait before."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.budget import pieces
from confidence.chain.exact import redo_exactly
from confidence.chain.pmf import chain_confidence_pmf, support_range
from confidence.chain.uniform import chain_confidence, confidence_of_three, confidence_of_two
from confidence.kernel import kernel
from confidence.pools import grown
from eventbased.incremental.candidate_pool import EVENT, LOWER, PMF, UPPER, CandidatePool

__all__ = ["LongChainError", "Matches", "Pending", "describe"]

Int64 = NDArray[np.int64]


class LongChainError(ValueError):
    """A match with an explicit pmf reaches over more ticks than are worth a pass."""


class Matches(NamedTuple):
    """Final matches.

    Attributes
    ----------
    events : (l, m) int64
        Numbers of the events.
    lower, upper : (m,) int64
        Tight time range, ticks, inclusive.
    confidence : (m,) float64
        NaN if it was not asked for.
    std_error : (m,) float64
        Its standard error; 0 where it is exact.
    """

    events: Int64
    lower: Int64
    upper: Int64
    confidence: NDArray[np.float64]
    std_error: NDArray[np.float64]

    @classmethod
    def joined(cls, parts: list[Matches], length: int) -> Matches:
        """Return several batches of matches of ``length`` components as one."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            empty = np.zeros(0, dtype=np.int64)
            return cls(np.zeros((length, 0), dtype=np.int64), empty, empty, np.zeros(0), np.zeros(0))
        return cls._make(np.concatenate(columns, axis=-1) for columns in zip(*parts, strict=True))


@kernel(allocates=True)
def _describe(completed, begin, end, w, candidates, pmf, longest, wanted, matches):
    """Fill the matches ``begin..end-1``; return the first match whose chain is too long to sum over, or -1.

    A match that explicit probabilities exclude gets an empty range; a confidence of NaN asks for exact
    arithmetic, or was not wanted.
    """
    length = completed.shape[1] - 2
    low = np.empty(length, np.int64)
    high = np.empty(length, np.int64)
    offset = np.empty(length, np.int64)
    a = np.empty(length, np.int64)
    b = np.empty(length, np.int64)
    bounds = np.empty((4, length), np.int64)
    floats = np.empty((4, 2 * length + 1), np.float64)
    for n in range(begin, end):
        explicit = False
        sizes = 1.0
        for k in range(length):
            i = completed[n, k]
            matches.events[k, n] = candidates[EVENT, i]
            low[k] = candidates[LOWER, i]
            high[k] = candidates[UPPER, i]
            sizes *= float(high[k] - low[k] + 1)
            offset[k] = candidates[PMF, i]
            explicit = explicit or offset[k] >= 0
        matches.lower[n] = completed[n, length]
        matches.upper[n] = completed[n, length + 1]
        matches.confidence[n] = np.nan
        matches.std_error[n] = 0.0
        if explicit:
            for k in range(length):
                low[k] += k
                high[k] += k
            first, last = support_range(low, high, offset, pmf, w + length)
            matches.lower[n] = first
            matches.upper[n] = last
            if wanted and first <= last:
                if last - first > longest:
                    return n
                matches.confidence[n] = chain_confidence_pmf(low, high, offset, pmf, w + length, first, last)
        elif wanted:
            if length == 3:
                matches.confidence[n] = confidence_of_three(
                    low[0], high[0], low[1], high[1], low[2], high[2], w, sizes
                )
            elif length == 2:
                matches.confidence[n] = confidence_of_two(low[0], high[0], low[1], high[1], w, sizes)
            else:
                matches.confidence[n] = chain_confidence(low, high, w, a, b, bounds, floats)
    return -1


def describe(completed: Int64, pool: CandidatePool, w: int, *, confidence: bool, longest: int) -> Matches:
    """Return completed signatures as matches of skip till any match.

    Parameters
    ----------
    completed : (m, l + 2) int64
        Indices of the candidates, and the range by order and window, ticks.
    pool : CandidatePool
    w : int
        ``W - l``.
    confidence : bool
        Whether to compute confidences, exact to about 11 digits (`confidence.chain.uniform`,
        `confidence.chain.pmf`).
    longest : int
        Most ticks from the first to the last time of a match with an explicit pmf.

    Raises
    ------
    LongChainError
        If a match reaches over more.
    """
    count, length = len(completed), completed.shape[1] - 2
    whole, real = np.empty((length + 2, count), dtype=np.int64), np.empty((2, count))
    matches = Matches(whole[:length], whole[length], whole[length + 1], real[0], real[1])
    # Of uniform intervals, whatever they are long.
    costs = np.full(count, float(length) ** 3)
    is_explicit = len(pool.pmfs.pmf) > 0
    if confidence and is_explicit:
        ticks = (completed[:, length + 1] - completed[:, length] + 1).astype(np.float64)
        costs += ticks * np.where(ticks > w + length, length**2, length)
    for part in pieces(costs):
        arguments = completed, part.start, part.stop, w, pool.candidates, pool.pmfs.pmf, longest, confidence
        if _describe(*arguments, matches) >= 0:
            raise LongChainError
    if is_explicit and not (possible := matches.lower <= matches.upper).all():
        completed, matches = completed[possible], Matches._make(part[..., possible] for part in matches)
    if confidence:

        def intervals(row: int) -> tuple[Int64, Int64, None]:
            chosen, position = pool.candidates[:, completed[row, :length]], np.arange(length)
            return chosen[LOWER] + position, chosen[UPPER] + position, None

        redo_exactly(matches.confidence, w + length, intervals)
    return matches


class Pending:
    """Completed signatures that an event still to come could spoil.

    Without forbidden events a signature is final as soon as it is complete. Under a strategy that
    forbids events in the gaps it is final once no unseen event can lie before its last time (the paper's
    B.3: a match is buffered until nothing can prune it any more).

    Parameters
    ----------
    length : int
        Number of components.
    """

    def __init__(self, length: int) -> None:
        self._rows: Int64 = np.zeros((length + 2, 0), dtype=np.int64)
        self._length = length
        self.size = 0

    def add(self, completed: Int64) -> None:
        """Hold completed signatures: (m, l + 2) int64, see :func:`describe`."""
        first, self.size = self.size, self.size + len(completed)
        self._rows = grown(self._rows, self.size)
        self._rows[:, first : self.size] = completed.T

    def release(self, safe: int) -> Int64:
        """Return the signatures that no event with ``lower >= safe`` can spoil, and hold them no longer."""
        rows = self._rows[:, : self.size]
        final = rows[-1] <= safe
        released = np.ascontiguousarray(rows[:, final].T)
        self.size -= len(released)
        self._rows[:, : self.size] = rows[:, ~final]
        return released

    def mark(self, used: NDArray[np.bool_]) -> None:
        """Mark the candidates that are held."""
        used[self._rows[: self._length, : self.size]] = True

    def move(self, mapping: Int64) -> None:
        """Follow candidates to their new indices."""
        held = self._rows[: self._length, : self.size]
        held[:] = mapping[held]

    def earliest(self) -> int | None:
        """Return the earliest first time of a signature held, ticks; None without any."""
        return int(self._rows[-2, : self.size].min()) if self.size else None
