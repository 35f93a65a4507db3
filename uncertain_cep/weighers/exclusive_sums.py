"""Sums over what excludes each other: lengths with probabilities, and sides of events that are apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence import CostlyMatchError
from confidence.budget import checkpoint
from confidence.timed.bounds import UNBOUND
from eventbased.gaps.gap_events import some_of
from uncertain_cep.config.limits import MOST_OFFSETS
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import ChosenSpans, Columns

__all__ = ["add_weighted", "weigh_by_lengths", "weigh_by_sides"]

Int64 = NDArray[np.int64]

_MOST_SIDES: Final = 256
"""Choices of sides that a match is summed over."""

_AT_ONCE: Final = 1 << 14
"""Matches, each with a choice of lengths, that are weighed at once."""


def weigh_by_lengths(model: MatchModel, out: Columns, weigh: Callable[[MatchModel, Columns], None]) -> None:
    """Fill sums over the lengths of what ``weigh`` fills where lengths are certain.

    A world has one length of each event, so that the sum is over worlds that exclude each other. A match
    costs what it costs for certain lengths, times the number of lengths that are possible.

    Raises
    ------
    CostlyMatchError
        If the lengths of a match are too many.
    """
    spans = model.pattern.spans
    assert spans is not None
    assert spans.times.length_laws is not None
    rows = _lasting_rows(model, spans)
    laws, bounds = spans.times.length_laws, spans.times.length
    has_law = laws.start[rows] >= 0
    sizes = np.where(has_law, bounds.upper[rows] - bounds.lower[rows] + 1, 1)
    total = np.prod(sizes.astype(np.float64), axis=1)
    if (total > MOST_OFFSETS).any():
        n = int(np.argmax(total > MOST_OFFSETS))
        raise CostlyMatchError(n, int(min(total[n], 2.0**62)), limit=float(MOST_OFFSETS))
    _begin(out)
    start = np.concatenate(([0], np.cumsum(total.astype(np.int64))))
    for begin in range(0, int(start[-1]), _AT_ONCE):
        checkpoint()
        number = np.arange(begin, min(begin + _AT_ONCE, int(start[-1])))
        which = np.searchsorted(start, number, side="right") - 1
        left, place = number - start[which], np.zeros((len(which), rows.shape[1]), dtype=np.int64)
        for column in range(rows.shape[1]):
            left, place[:, column] = np.divmod(left, sizes[which, column])
        at = np.where(has_law[which], laws.start[rows[which]] + place, 0)
        weight = np.where(has_law[which], laws.values[at], 1.0).prod(axis=1)
        possible = np.flatnonzero(weight > 0.0)
        which, place, weight = which[possible], place[possible], weight[possible]
        if not len(which):
            continue
        lengths = np.where(has_law[which], bounds.lower[rows[which]] + place, -1)
        answers = Columns.empty(len(which))
        try:
            beside = None if model.beside is None else model.beside.some(which)
            matches = some_of(model.matches, which)
            held = replace(model, matches=matches, lengths=lengths, beside=beside, wanted=True)
            weigh(held, answers)
        except CostlyMatchError as error:
            match = int(which[error.match])
            raise CostlyMatchError(match, error.steps, error.events, error.limit) from None
        add_weighted(out, which, answers, weight)
    _finish(out)


def weigh_by_sides(model: MatchModel, out: Columns, weigh: Callable[[MatchModel, Columns], None]) -> None:
    """Fill sums of what ``weigh`` fills where each pair of events that are apart has a side held.

    Of two events that do not overlap one is before the other, and not the other before it: the sides exclude
    each other.

    Raises
    ------
    CostlyMatchError
        If pairs are too many.
    """
    numbers = model.pattern.apart
    if 1 << len(numbers) > _MOST_SIDES:
        raise CostlyMatchError(0, 1 << len(numbers), limit=float(_MOST_SIDES))
    _begin(out)
    every = np.arange(model.count)
    for sides in model.pattern.sides():
        checkpoint()
        answers = Columns.empty(model.count)
        weigh(replace(model, sides=sides, wanted=True), answers)
        add_weighted(out, every, answers, np.ones(model.count))
    _finish(out)


def _lasting_rows(model: MatchModel, spans: ChosenSpans) -> Int64:
    """Return the rows of the events of each match that last, (k, s) int64."""
    matches = model.matches
    lasting = np.isin(matches.component, spans.lasting)
    return np.asarray(model.candidates.row[matches.place[lasting]].reshape(model.count, len(spans.lasting)))


def _begin(out: Columns) -> None:
    """Fill sums of nothing."""
    out.lower[:], out.upper[:], out.confidence[:], out.std_error[:] = UNBOUND, -UNBOUND, 0.0, 0.0


def _finish(out: Columns) -> None:
    """Empty the ranges of matches that nothing was added to."""
    nothing = out.lower > out.upper
    out.lower[nothing], out.upper[nothing] = 0, -1


def add_weighted(out: Columns, which: Int64, answers: Columns, weight: NDArray[np.float64]) -> None:
    """Add answers of matches, (m,) numbers, each with its weight, to those of other lengths."""
    happens = (answers.lower <= answers.upper) & (answers.confidence > 0.0)
    which, weight = which[happens], weight[happens]
    lower, upper, confidence, std_error = (column[happens] for column in answers)
    np.minimum.at(out.lower, which, lower)
    np.maximum.at(out.upper, which, upper)
    np.add.at(out.confidence, which, weight * confidence)
    # Estimates of several lengths are apart.
    variance = out.std_error**2
    np.add.at(variance, which, (weight * std_error) ** 2)
    out.std_error[:] = np.sqrt(variance)
