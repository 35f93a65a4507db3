"""The model of a match: times with laws, literals ``t_y - t_x >= c`` and spans that events must stay out of.

Whatever a pattern asks, a match is a conjunction over the times of its events. A *literal* bounds a time or
the difference of two: order, window, conditions on times, boxes. A *forbidden span* is where an event beside
the match must not be, if it happened; its ends are times of the match and constants. Finders choose events;
:class:`MatchModel` is all that their confidence depends on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from confidence.flat_lists import taken
from eventbased.gaps.gap_events import some_of
from uncertain_cep.weighers.explicit import ExplicitMatches, written_out
from uncertain_cep.weighers.pattern import ChosenEvents

__all__ = ["MatchModel"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class MatchModel(ChosenEvents):
    """Chosen events of some matches, and all that their confidence depends on."""

    def some(self, which: Int64) -> MatchModel:
        """Return the model of some of the matches, (m,) int64, each once and in this order."""
        if len(which) == self.count and (which == np.arange(self.count)).all():
            return self
        held = self.held
        if len(held.start):
            place, start = taken(held.start, which)
            held = held._replace(start=start, clock=held.clock[place], value=held.value[place])
        lengths = None if self.lengths is None else self.lengths[which]
        beside = None if self.beside is None else self.beside.some(which)
        matches = some_of(self.matches, which)
        chosen = replace(self, matches=matches, held=held, lengths=lengths, beside=beside)
        if "explicit" in self.__dict__:
            chosen.__dict__["explicit"] = _some_explicit(self.explicit, which, self.count)
        return chosen

    @cached_property
    def explicit(self) -> tuple[ExplicitMatches, ...]:
        """The literals and forbidden spans of all matches, written out, one shape after the other."""
        return tuple(written_out(self))

    @property
    def tied(self) -> NDArray[np.bool_]:
        """Return for each match, (k,) bool, whether a sequence breaks a tie that decides on it."""
        tied = np.zeros(self.count, dtype=np.bool_)
        if self.pattern.ties is not None:
            for part in self.explicit:
                tied[part.which] = part.tied
        return tied


def _some_explicit(
    parts: tuple[ExplicitMatches, ...], which: Int64, count: int
) -> tuple[ExplicitMatches, ...]:
    """Return the written-out form of some matches, numbered anew."""
    number = np.full(count, -1)
    number[which] = np.arange(len(which))
    found = []
    for part in parts:
        places = np.flatnonzero(number[part.which] >= 0)
        if len(places):
            chosen = part.some(places)
            found.append(chosen._replace(which=number[chosen.which]))
    return tuple(found)
