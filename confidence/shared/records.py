"""Laws of records that happened in a known order, though the ticks of each are known coarsely only.

The records of one source are a Markov chain: given the tick of one, those ahead of it and those behind it
are independent. Where all have the same uniform interval, what is ahead of a tick and what is behind it can
be chosen in as many ways as a binomial coefficient says. Else sums over the ticks run forward and backward.
Everything is computed by logarithms, since the ways of a thousand records are beyond float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Records"]

Float64 = NDArray[np.float64]

_MOST_REMEMBERED: Final = 1 << 22
"""Probabilities of one kind that are kept for other matches."""

KeyT = TypeVar("KeyT")


@dataclass(eq=False, slots=True)
class Records:
    """Records in the order in which they happened, at ticks ``0 .. size - 1``; equal ticks are allowed."""

    count: int
    size: int
    laws: Sequence[tuple[int, Float64]] | None = None
    """Of each record alone the first tick, and the probabilities from there on; None: uniform over all."""
    _times: dict[int, Float64] = field(default_factory=dict)
    _steps: dict[tuple[int, int], Float64] = field(default_factory=dict)
    _sums: tuple[Float64, Float64] | None = None

    @property
    def possible(self) -> bool:
        """Whether the records can have happened in their order."""
        return self.laws is None or bool(np.isfinite(self._ahead(self.count - 1)).any())

    def time(self, place: int) -> Float64:
        """Return the law of the tick of a record, (size,) float64."""
        law = self._times.get(place)
        if law is None:
            law = _normal(self._ahead(place) + self._behind(place))
            _remember(self._times, place, law)
        return law

    def step(self, place: int, later: int) -> Float64:
        """Return the law of the tick of a later record given that of an earlier one, (size, size) float64.

        The rows are the ticks of the earlier one. O(size^2), for records that are not alike times the
        records between.
        """
        key = place, later
        remembered = self._steps.get(key)
        if remembered is None:
            ticks = np.arange(self.size)
            ahead = ticks - ticks[:, None]
            if self.laws is None:
                ways = np.append(_log_choices(self.size, later - place - 1), -np.inf)
                logarithms = ways[np.where(ahead >= 0, ahead, self.size)]
            else:
                logarithms = np.where(ahead >= 0, self._alone(place + 1), -np.inf)
                for between in range(place + 2, later + 1):
                    logarithms = np.logaddexp.accumulate(logarithms, axis=1) + self._alone(between)
            remembered = _normal(logarithms + self._behind(later))
            _remember(self._steps, key, remembered)
        return remembered

    def draw(self, generator: np.random.Generator) -> NDArray[np.int64]:
        """Return ticks of all records, as likely as they are, (count,) int64. O(count log size)."""
        if self.laws is None:
            # Rising ticks are as many as choices of different ones among so many more.
            chosen = generator.choice(self.size + self.count - 1, self.count, replace=False, shuffle=False)
            return np.sort(chosen) - np.arange(self.count)
        ticks = np.zeros(self.count, np.int64)
        last = self.size - 1
        for place in range(self.count - 1, -1, -1):
            # Given the tick of the record behind, only those ahead of it matter.
            shares = np.cumsum(_normal(self._ahead(place)[: last + 1]))
            aim = generator.random() * shares[-1]
            # Rounded up to the total, it would be behind all of them.
            last = int(min(np.searchsorted(shares, aim, "right"), np.searchsorted(shares, shares[-1])))
            ticks[place] = last
        return ticks

    def _ahead(self, place: int) -> Float64:
        """Return the logarithm of the ways of all records up to one, by its tick."""
        if self.laws is None:
            return _log_choices(self.size, place)
        ahead: Float64 = self._both()[0][place]
        return ahead

    def _behind(self, place: int) -> Float64:
        """Return the logarithm of the ways of all records behind one, by its tick."""
        if self.laws is None:
            return _log_choices(self.size, self.count - 1 - place)[::-1]
        behind: Float64 = self._both()[1][place]
        return behind

    def _both(self) -> tuple[Float64, Float64]:
        if self._sums is None:
            ahead, behind = np.zeros((2, self.count, self.size))
            ahead[0] = self._alone(0)
            for place in range(1, self.count):
                ahead[place] = np.logaddexp.accumulate(ahead[place - 1]) + self._alone(place)
            for place in range(self.count - 2, -1, -1):
                after = behind[place + 1] + self._alone(place + 1)
                behind[place] = np.logaddexp.accumulate(after[::-1])[::-1]
            self._sums = ahead, behind
        return self._sums

    def _alone(self, place: int) -> Float64:
        assert self.laws is not None
        first, law = self.laws[place]
        alone = np.full(self.size, -np.inf)
        alone[first : first + len(law)] = np.log(law, out=np.full(len(law), -np.inf), where=law > 0.0)
        return alone


def _remember(laws: dict[KeyT, Float64], key: KeyT, law: Float64) -> None:
    """Keep an array; threads may do so at once, so that nothing is taken out by itself."""
    if (len(laws) + 1) * law.size > _MOST_REMEMBERED:
        laws.clear()
    laws[key] = law


def _log_choices(size: int, among: int) -> Float64:
    """Return the logarithms of ``C(n + among, among)`` for n below a size."""
    return np.concatenate((np.zeros(1), np.cumsum(np.log1p(among / np.arange(1.0, size)))))


def _normal(logarithms: Float64) -> Float64:
    """Return probabilities by logarithms, each row in proportion; a row of nothing stays so."""
    largest = logarithms.max(axis=-1, keepdims=True)
    shares = np.exp(logarithms - np.where(np.isfinite(largest), largest, 0.0))
    total = shares.sum(axis=-1, keepdims=True)
    normal: Float64 = shares / np.where(total > 0.0, total, 1.0)
    return normal
