"""The common part of all matches of a search, and the events that a finder chose for some of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import Limits, Pmfs
from confidence.predicates.conditions import Conditions, Scratch
from eventbased.gaps.gap_events import (
    NO_OFFSETS,
    ForbiddenEvents,
    GapRules,
    HeldOffsets,
    MatchEvents,
    Placed,
)
from uncertain_cep.candidates.existence import Existence
from uncertain_cep.candidates.selection import coded
from uncertain_cep.candidates.span_times import SpanTimes
from uncertain_cep.candidates.tie_breaks import TieBreaks
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.weighers.beside import Beside
from uncertain_cep.weighers.pair_laws import PairLaws
from uncertain_cep.weighers.shapes import Shapes
from uncertain_cep.weighers.templates import TimeTemplates

__all__ = ["ChosenEvents", "ChosenSpans", "Columns", "MatchPattern", "Sides"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Sides = tuple[tuple[int, int], ...]


class Columns(NamedTuple):
    """Answers of k matches: the tight range, empty where a match cannot happen, and its probability.

    Attributes
    ----------
    lower, upper : (k,) int64
        Ticks, inclusive.
    confidence : (k,) float64
    std_error : (k,) float64
        0 where the confidence is exact.
    """

    lower: Int64
    upper: Int64
    confidence: Float64
    std_error: Float64

    @classmethod
    def empty(cls, count: int) -> Columns:
        """Return room for so many matches."""
        ranges, values = np.empty((2, count), dtype=np.int64), np.zeros((2, count))
        return cls(ranges[0], ranges[1], values[0], values[1])

    def put(self, which: Int64, answers: Columns) -> None:
        """Copy answers to the places of some matches, (m,) int64."""
        for column, values in zip(self, answers, strict=True):
            column[which] = values


class ChosenSpans(NamedTuple):
    """The components whose events last, and the times of all ends.

    Attributes
    ----------
    lasting : tuple of int
        The components, by number; each takes one event.
    times : SpanTimes
    ends : tuple of (n,) int64
        Lower and upper bounds of the end of each event, ticks.
    longest : int
        The longest length of an event that is negated, ticks.
    negates_open : bool
        Whether some such event has no certain length.
    pair_laws : PairLaws or None
        Of such events whose pairs are not alike likely; None: there is none.
    """

    lasting: tuple[int, ...]
    times: SpanTimes
    ends: tuple[Int64, Int64]
    longest: int = 0
    negates_open: bool = False
    pair_laws: PairLaws | None = None

    def are_pairs(self, rows: Int64) -> NDArray[np.bool_]:
        """Return a mask of the events, (n,) rows, that have two times where they are forbidden."""
        length = self.times.length
        open_length: NDArray[np.bool_] = length.lower[rows] < length.upper[rows]
        return open_length if self.pair_laws is None else open_length | (self.pair_laws.number[rows] >= 0)


class MatchPattern:
    """The common part of all matches of one search.

    Parameters
    ----------
    plan : EvaluationPlan
        Without OR.
    table : pyarrow.Table
        The events.
    rules : GapRules
        Which pools of events are forbidden in which gaps.
    conditions : Conditions or None
        Decide whether an event of a pool is forbidden; None if nothing is.
    window : int
        W, ticks, no more than the candidates need.
    existence : Existence or None
        None if all events happened.
    limits : Limits
        What one match may cost.
    ties : TieBreaks or None
        Which events are before others at the same tick; None: none.
    spans : ChosenSpans or None
        Which components take events that last; None: none.
    """

    def __init__(
        self,
        plan: EvaluationPlan,
        table: pa.Table,
        rules: GapRules,
        conditions: Conditions | None,
        window: int,
        existence: Existence | None,
        limits: Limits,
        ties: TieBreaks | None = None,
        spans: ChosenSpans | None = None,
    ) -> None:
        self.spans = spans
        self.plan, self.rules, self.conditions, self.ties = plan, rules, conditions, ties
        self.window, self.limits, self.rows = window, limits, table.num_rows
        self.length = len(plan.components)
        self.probability = None if existence is None else existence.probability
        self._table = table

    @cached_property
    def templates(self) -> TimeTemplates:
        """The conditions on times."""
        if self.spans is None:
            return TimeTemplates(self.plan, self._table)
        return TimeTemplates(self.plan, self._table, self.spans.lasting, self.spans.longest)

    @cached_property
    def apart(self) -> tuple[int, ...]:
        """The pairs of events that are not to overlap, by number."""
        numbers = (found.apart[0] for found in self.plan.bound.times if found.apart is not None)
        return tuple(dict.fromkeys(numbers))

    def sides(self) -> Iterator[Sides]:
        """Yield the choices of a side for each of these pairs: of two, one is before the other, or behind."""
        for choice in product((0, 1), repeat=len(self.apart)):
            yield tuple(zip(self.apart, choice, strict=True))

    @cached_property
    def shapes(self) -> Shapes:
        """The literals and rules of matches, by the numbers of their events."""
        lasting = () if self.spans is None else self.spans.lasting
        return Shapes(self.plan, self.templates, self.rules, self.conditions, self.window, lasting)

    @cached_property
    def member_keys(self) -> tuple[tuple[Int64, ...], ...]:
        """For each component of each negated group the key of each event, (rows,) int64; -1: it has none."""
        return tuple(map(self._member_keys, self.plan.negated_groups))

    def _member_keys(self, group: tuple[int, ...]) -> tuple[Int64, ...]:
        """Return the key of each event as each component of a negated group."""
        key_of = np.zeros((len(group), self.rows), dtype=np.int64)
        for columns in self.plan.keys_of_group(group):
            names = list(dict.fromkeys(name for of_component in columns for name in of_component))
            codes = dict(zip(names, coded(self._table, names), strict=True))
            size = max(int(code.max(initial=0)) for code in codes.values()) + 1
            for place, names_of_member in enumerate(columns):
                first = codes[names_of_member[0]]
                agree = np.logical_and.reduce([codes[name] == first for name in names_of_member])
                agree &= (first >= 0) & (key_of[place] >= 0)
                key_of[place] = np.where(agree, key_of[place] * size + first, -1)
            # Small again, so that products of several stay within int64; -1 stays the smallest.
            distinct, number = np.unique(key_of, return_inverse=True)
            key_of = number.reshape(key_of.shape) - int(distinct[0] < 0)
        return tuple(key_of)

    @cached_property
    def mark(self) -> Int64:
        """(rows,) int64, all -1: which events are of the match at hand."""
        return np.full(self.rows, -1, dtype=np.int64)

    @property
    def has_time_literals(self) -> bool:
        """Whether conditions on times add literals to order and window."""
        return bool(self.plan.bound.times) or self.spans is not None or self.plan.binds_beside

    @property
    def is_sequence(self) -> bool:
        """Whether the events of a match follow one another in the order of the components."""
        return self.plan.event_order.is_chain


@dataclass(frozen=True)
class ChosenEvents:
    """The events of some matches, and what their times depend on."""

    pattern: MatchPattern
    matches: MatchEvents
    candidates: Placed
    offsets: Int64
    """(rows,) int64. Where the probabilities of each event's time start; -1 for uniform."""
    pmfs: Pmfs
    pools: ForbiddenEvents | None
    """The events that gaps may forbid; None: none."""
    scratch: Scratch | None
    """Room for the conditions on them."""
    wanted: bool
    """Whether a confidence is needed where nothing is forbidden."""
    held: HeldOffsets = NO_OFFSETS
    """The offsets of clocks that are known; given them, times are independent."""
    lengths: Int64 | None = None
    """(k, s) int64. The lengths that are held, of the events of each match that last; -1: any."""
    beside: Beside | None = None
    """What bounds the times of each match beside the pattern; None: nothing."""
    sides: Sides = ()
    """Of pairs of events that are apart, by number, the side that is held: 0 for the first one before."""

    @property
    def count(self) -> int:
        """How many matches there are."""
        return len(self.matches.start) - 1

    def bounds(self) -> tuple[Int64, Int64]:
        """Return first and last ticks of all events of matches, (m,) int64 each, whatever is held."""
        place, candidates = self.matches.place, self.candidates
        base = candidates.base[place]
        return candidates.lower[place] - base, candidates.upper[place] - base
