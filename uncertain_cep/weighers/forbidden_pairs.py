"""Forbidden events that last, of lengths that are not certain: rules of their begins and of their ends."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence import Pmfs
from confidence.chain.distribution import DOUBTFUL
from confidence.flat_lists import counting, starts_of
from confidence.timed.bounds import UNBOUND
from confidence.timed.counted_pairs import LASTING, MOST_LASTING_TICKS, RECORD
from confidence.timed.forbidden_tables import OTHER, Others
from uncertain_cep.weighers.pair_laws import pair_bounds
from uncertain_cep.weighers.pattern import ChosenSpans

__all__ = ["with_pairs"]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


class _Lengths(NamedTuple):
    """Bounds of lengths that rules forbid, each (r,) int64."""

    shortest: Int64
    longest: Int64


def with_pairs(
    events: Others, row: Int64, spans: ChosenSpans, pmfs: Pmfs, of_end: Int64
) -> tuple[Others, Pmfs]:
    """Return forbidden events with their laws, of which those of open lengths have rules of both ends.

    Parameters
    ----------
    events : Others
        Bounds of ends are as given.
    row : (n,) int64
    spans : ChosenSpans
    pmfs : Pmfs
    of_end : (k, c) int64
        See :attr:`uncertain_cep.weighers.shapes.Shape.of_end`.
    """
    is_open = spans.are_pairs(row)
    if not is_open.any():
        return events, pmfs
    each = np.diff(events.rule_start)
    event = np.repeat(np.arange(len(row)), each)
    is_pair = is_open[event]
    copies = 1 + is_pair
    place = np.repeat(np.arange(len(event)), copies)
    low, high = events.low[place], events.high[place]
    rule = events.rule[place]
    sides = events.sides[rule]
    count = np.arange(low.shape[1]) < events.constraints[rule][:, None]
    is_other = (sides == OTHER) & count[:, :, None]
    about_end, is_length = of_end[rule] != 0, is_other.all(axis=2)
    lengths = _forbidden_lengths(events, of_end)
    # Begins come first; of what ends are asked they are free, and ends of what begins are.
    is_begin = is_pair[place] & (counting(copies) == 0)
    is_end = is_pair[place] & (counting(copies) == 1)
    one = is_other.any(axis=2)
    free = one & (
        (is_begin[:, None] & (about_end | is_length)) | (is_end[:, None] & (~about_end | is_length))
    )
    low[free], high[free] = -UNBOUND, UNBOUND
    start = starts_of(each * (1 + is_open))
    laws, offset = _records(events, row, spans, pmfs, is_open, lengths)
    return events._replace(offset=offset, rule_start=start, rule=rule, low=low, high=high), laws


def _forbidden_lengths(events: Others, of_end: Int64) -> _Lengths:
    """Return between which lengths each rule forbids an event."""
    shortest, longest = np.full(len(events.rule), -UNBOUND), np.full(len(events.rule), UNBOUND)
    for c in range(events.low.shape[1]):
        sides, sign = events.sides[events.rule, c], of_end[events.rule, c]
        low, high = events.low[:, c], events.high[:, c]
        low, high = np.where(sign < 0, -high, low), np.where(sign < 0, -low, high)
        is_about = (sides == OTHER).all(axis=1) & (c < events.constraints[events.rule])
        # Of one end twice: what holds at no distance holds of no length.
        holds = (sign != 0) | ((low <= 0) & (high >= 0))
        low, high = np.where(holds, np.where(sign == 0, -UNBOUND, low), 1), np.where(holds, high, 0)
        high = np.where(holds & (sign == 0), UNBOUND, high)
        shortest = np.where(is_about, np.maximum(shortest, low), shortest)
        longest = np.where(is_about, np.minimum(longest, high), longest)
    return _Lengths(shortest, longest)


def _records(
    events: Others, row: Int64, spans: ChosenSpans, pmfs: Pmfs, is_open: Mask, lengths: _Lengths
) -> tuple[Pmfs, Int64]:
    """Return laws with those of the pairs of open events behind them, and the offset of each event."""
    which = np.flatnonzero(is_open)
    chosen = row[which]
    fields = pair_bounds(spans.times, chosen)
    law = np.full(len(which), -1)
    if spans.pair_laws is not None:
        fields, law = spans.pair_laws.put(chosen, fields, len(pmfs.values))
        pmfs = Pmfs(*map(np.concatenate, zip(pmfs, spans.pair_laws.laws_at(len(pmfs.values)), strict=True)))
    rules = np.diff(events.rule_start)[which]
    # Whether it happened, its record, and the lengths that each of its rules forbids.
    sizes = 2 + RECORD + 2 * rules
    base = len(pmfs.values) + starts_of(sizes)[:-1]
    values = np.empty(int(sizes.sum()))
    at = base - len(pmfs.values)
    coded = events.offset[which]
    happened = np.ones(len(which))
    doubtful = np.flatnonzero(coded <= DOUBTFUL)
    happened[doubtful] = pmfs.values[DOUBTFUL - coded[doubtful]]
    for number, field in enumerate((happened, LASTING - (base + 2.0), *fields, law)):
        values[at + number] = field
    turn = counting(rules)
    place = np.repeat(at, rules) + 2 + RECORD + 2 * turn
    of_rule = np.repeat(events.rule_start[:-1][which], rules) + turn
    values[place] = np.clip(lengths.shortest[of_rule], -MOST_LASTING_TICKS, 2 * MOST_LASTING_TICKS)
    values[place + 1] = np.clip(lengths.longest[of_rule], -1, 2 * MOST_LASTING_TICKS)
    offset = events.offset.copy()
    offset[which] = DOUBTFUL - base
    return Pmfs(*(np.concatenate((array, values)) for array in pmfs)), offset
