"""Matches of the join with their confidences, written by :mod:`eventbased.write_spans`."""

from __future__ import annotations

import numpy as np

from confidence.chain.written_out import (
    chains_of_2,
    chains_of_3,
    chains_of_4,
    chains_of_5,
    chains_of_6,
    chains_of_7,
    chains_of_8,
)
from confidence.kernel import kernel
from eventbased.config import FILTERED_AT_ONCE, SPARE
from eventbased.joins.join_state import LEFT, PASS
from eventbased.span_chains import SPAN, SpanWork, chains_of_spans
from eventbased.span_columns import keep_likely, next_matches

__all__ = [
    "confidences_of_2",
    "confidences_of_3",
    "confidences_of_4",
    "confidences_of_5",
    "confidences_of_6",
    "confidences_of_7",
    "confidences_of_8",
    "matches_of_2",
    "matches_of_3",
    "matches_of_4",
]


@kernel
def confidences_of_2(ordered, blocks, spans, count, work, lower, upper, longest, chains, w, out):
    """Fill the confidences of matches of 2 events; return how many are NaN.

    See :mod:`eventbased.span_chains`.
    """
    lost = 0
    while work.cursor[SPAN] < count:
        filled = chains_of_spans(ordered, blocks, spans, count, work, lower, upper, longest, chains, out)
        if filled:
            lost += chains_of_2(chains.bounds, w, filled, chains.place, chains.values, out)
    return lost


@kernel
def confidences_of_3(ordered, blocks, spans, count, work, lower, upper, longest, chains, w, out):
    """Fill the confidences of matches of 3 events; return how many are NaN.

    See :mod:`eventbased.span_chains`.
    """
    lost = 0
    while work.cursor[SPAN] < count:
        filled = chains_of_spans(ordered, blocks, spans, count, work, lower, upper, longest, chains, out)
        if filled:
            lost += chains_of_3(chains.bounds, w, filled, chains.place, chains.values, out)
    return lost


@kernel
def confidences_of_4(ordered, blocks, spans, count, work, lower, upper, longest, chains, w, out):
    """Fill the confidences of matches of 4 events; return how many are NaN.

    See :mod:`eventbased.span_chains`.
    """
    lost = 0
    while work.cursor[SPAN] < count:
        filled = chains_of_spans(ordered, blocks, spans, count, work, lower, upper, longest, chains, out)
        if filled:
            lost += chains_of_4(chains.bounds, w, filled, chains.place, chains.values, out)
    return lost


@kernel
def confidences_of_5(ordered, blocks, spans, count, work, lower, upper, longest, chains, w, out):
    """Fill the confidences of matches of 5 events; return how many are NaN.

    See :mod:`eventbased.span_chains`.
    """
    lost = 0
    while work.cursor[SPAN] < count:
        filled = chains_of_spans(ordered, blocks, spans, count, work, lower, upper, longest, chains, out)
        if filled:
            lost += chains_of_5(chains.bounds, w, filled, chains.place, chains.values, out)
    return lost


@kernel
def confidences_of_6(ordered, blocks, spans, count, work, lower, upper, longest, chains, w, out):
    """Fill the confidences of matches of 6 events; return how many are NaN.

    See :mod:`eventbased.span_chains`.
    """
    lost = 0
    while work.cursor[SPAN] < count:
        filled = chains_of_spans(ordered, blocks, spans, count, work, lower, upper, longest, chains, out)
        if filled:
            lost += chains_of_6(chains.bounds, w, filled, chains.place, chains.values, out)
    return lost


@kernel
def confidences_of_7(ordered, blocks, spans, count, work, lower, upper, longest, chains, w, out):
    """Fill the confidences of matches of 7 events; return how many are NaN.

    See :mod:`eventbased.span_chains`.
    """
    lost = 0
    while work.cursor[SPAN] < count:
        filled = chains_of_spans(ordered, blocks, spans, count, work, lower, upper, longest, chains, out)
        if filled:
            lost += chains_of_7(chains.bounds, w, filled, chains.place, chains.values, out)
    return lost


@kernel
def confidences_of_8(ordered, blocks, spans, count, work, lower, upper, longest, chains, w, out):
    """Fill the confidences of matches of 8 events; return how many are NaN.

    See :mod:`eventbased.span_chains`.
    """
    lost = 0
    while work.cursor[SPAN] < count:
        filled = chains_of_spans(ordered, blocks, spans, count, work, lower, upper, longest, chains, out)
        if filled:
            lost += chains_of_8(chains.bounds, w, filled, chains.place, chains.values, out)
    return lost


@kernel(allocates=True)
def matches_of_2(inputs, search, most_steps, spans, payload, longest, chains, columns, filled):
    """Find matches of 2 events and fill their columns.

    Return what :meth:`eventbased.describe.MatchFinder.fill` does.
    """
    candidates = inputs.candidates
    work = SpanWork(np.empty(3, np.int64), np.empty((2, 2), np.int64), np.empty(4))
    steps_left = most_steps
    places = columns.lower.shape[0] - SPARE
    while True:
        begun = filled
        room = places - filled
        if columns.least > 0.0:
            room = min(room, FILTERED_AT_ONCE)
        count, matched = next_matches(inputs, search, steps_left, room, spans, payload, columns, filled)
        if matched == 0:
            return begun, filled, count, 0
        filled += matched
        steps_left = search.state[LEFT]
        ordered = inputs.order[search.state[PASS]]
        work.cursor[:] = 0
        lost = confidences_of_2(
            ordered, search.blocks, spans, count, work, candidates.lower, candidates.upper,
            longest[ordered[1]], chains, float(inputs.w), columns.confidence[begun:filled],
        )  # fmt: skip
        if lost == 0 and columns.least > 0.0:
            filled = keep_likely(columns, begun, filled)
        if lost or filled == places or steps_left <= 0:
            return begun, filled, count, lost


@kernel(allocates=True)
def matches_of_3(inputs, search, most_steps, spans, payload, longest, chains, columns, filled):
    """Find matches of 3 events and fill their columns.

    Return what :meth:`eventbased.describe.MatchFinder.fill` does.
    """
    candidates = inputs.candidates
    work = SpanWork(np.empty(3, np.int64), np.empty((2, 3), np.int64), np.empty(6))
    steps_left = most_steps
    places = columns.lower.shape[0] - SPARE
    while True:
        begun = filled
        room = places - filled
        if columns.least > 0.0:
            room = min(room, FILTERED_AT_ONCE)
        count, matched = next_matches(inputs, search, steps_left, room, spans, payload, columns, filled)
        if matched == 0:
            return begun, filled, count, 0
        filled += matched
        steps_left = search.state[LEFT]
        ordered = inputs.order[search.state[PASS]]
        work.cursor[:] = 0
        lost = confidences_of_3(
            ordered, search.blocks, spans, count, work, candidates.lower, candidates.upper,
            longest[ordered[2]], chains, float(inputs.w), columns.confidence[begun:filled],
        )  # fmt: skip
        if lost == 0 and columns.least > 0.0:
            filled = keep_likely(columns, begun, filled)
        if lost or filled == places or steps_left <= 0:
            return begun, filled, count, lost


@kernel(allocates=True)
def matches_of_4(inputs, search, most_steps, spans, payload, longest, chains, columns, filled):
    """Find matches of 4 events and fill their columns.

    Return what :meth:`eventbased.describe.MatchFinder.fill` does.
    """
    candidates = inputs.candidates
    work = SpanWork(np.empty(3, np.int64), np.empty((2, 4), np.int64), np.empty(8))
    steps_left = most_steps
    places = columns.lower.shape[0] - SPARE
    while True:
        begun = filled
        room = places - filled
        if columns.least > 0.0:
            room = min(room, FILTERED_AT_ONCE)
        count, matched = next_matches(inputs, search, steps_left, room, spans, payload, columns, filled)
        if matched == 0:
            return begun, filled, count, 0
        filled += matched
        steps_left = search.state[LEFT]
        ordered = inputs.order[search.state[PASS]]
        work.cursor[:] = 0
        lost = confidences_of_4(
            ordered, search.blocks, spans, count, work, candidates.lower, candidates.upper,
            longest[ordered[3]], chains, float(inputs.w), columns.confidence[begun:filled],
        )  # fmt: skip
        if lost == 0 and columns.least > 0.0:
            filled = keep_likely(columns, begun, filled)
        if lost or filled == places or steps_left <= 0:
            return begun, filled, count, lost
