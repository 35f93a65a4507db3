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
from eventbased.span_chains import SPAN, chains_of_spans
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
def confidences_of_2(
    ordered, blocks, spans, count, cursor, lower, upper, longest, chosen, own, chains, w, out
):
    """Fill the confidences of matches of 2 events; return how many are NaN.

    See :mod:`eventbased.span_chains`.
    """
    lost = 0
    while cursor[SPAN] < count:
        filled = chains_of_spans(
            ordered, blocks, spans, count, cursor, lower, upper, longest, chosen, own, chains, out
        )
        if filled:
            lost += chains_of_2(chains.bounds, w, filled, chains.place, chains.values, out)
    return lost


@kernel
def confidences_of_3(
    ordered, blocks, spans, count, cursor, lower, upper, longest, chosen, own, chains, w, out
):
    """Fill the confidences of matches of 3 events; return how many are NaN.

    See :mod:`eventbased.span_chains`.
    """
    lost = 0
    while cursor[SPAN] < count:
        filled = chains_of_spans(
            ordered, blocks, spans, count, cursor, lower, upper, longest, chosen, own, chains, out
        )
        if filled:
            lost += chains_of_3(chains.bounds, w, filled, chains.place, chains.values, out)
    return lost


@kernel
def confidences_of_4(
    ordered, blocks, spans, count, cursor, lower, upper, longest, chosen, own, chains, w, out
):
    """Fill the confidences of matches of 4 events; return how many are NaN.

    See :mod:`eventbased.span_chains`.
    """
    lost = 0
    while cursor[SPAN] < count:
        filled = chains_of_spans(
            ordered, blocks, spans, count, cursor, lower, upper, longest, chosen, own, chains, out
        )
        if filled:
            lost += chains_of_4(chains.bounds, w, filled, chains.place, chains.values, out)
    return lost


@kernel
def confidences_of_5(
    ordered, blocks, spans, count, cursor, lower, upper, longest, chosen, own, chains, w, out
):
    """Fill the confidences of matches of 5 events; return how many are NaN.

    See :mod:`eventbased.span_chains`.
    """
    lost = 0
    while cursor[SPAN] < count:
        filled = chains_of_spans(
            ordered, blocks, spans, count, cursor, lower, upper, longest, chosen, own, chains, out
        )
        if filled:
            lost += chains_of_5(chains.bounds, w, filled, chains.place, chains.values, out)
    return lost


@kernel
def confidences_of_6(
    ordered, blocks, spans, count, cursor, lower, upper, longest, chosen, own, chains, w, out
):
    """Fill the confidences of matches of 6 events; return how many are NaN.

    See :mod:`eventbased.span_chains`.
    """
    lost = 0
    while cursor[SPAN] < count:
        filled = chains_of_spans(
            ordered, blocks, spans, count, cursor, lower, upper, longest, chosen, own, chains, out
        )
        if filled:
            lost += chains_of_6(chains.bounds, w, filled, chains.place, chains.values, out)
    return lost


@kernel
def confidences_of_7(
    ordered, blocks, spans, count, cursor, lower, upper, longest, chosen, own, chains, w, out
):
    """Fill the confidences of matches of 7 events; return how many are NaN.

    See :mod:`eventbased.span_chains`.
    """
    lost = 0
    while cursor[SPAN] < count:
        filled = chains_of_spans(
            ordered, blocks, spans, count, cursor, lower, upper, longest, chosen, own, chains, out
        )
        if filled:
            lost += chains_of_7(chains.bounds, w, filled, chains.place, chains.values, out)
    return lost


@kernel
def confidences_of_8(
    ordered, blocks, spans, count, cursor, lower, upper, longest, chosen, own, chains, w, out
):
    """Fill the confidences of matches of 8 events; return how many are NaN.

    See :mod:`eventbased.span_chains`.
    """
    lost = 0
    while cursor[SPAN] < count:
        filled = chains_of_spans(
            ordered, blocks, spans, count, cursor, lower, upper, longest, chosen, own, chains, out
        )
        if filled:
            lost += chains_of_8(chains.bounds, w, filled, chains.place, chains.values, out)
    return lost


@kernel(allocates=True)
def matches_of_2(
    w, candidates, shared, limit, most, order, bytecode, search, most_steps, spans, payload, longest, chains,
    columns, filled,
):  # fmt: skip
    """Find matches of 2 events and fill their columns.

    Return what :meth:`eventbased.describe.MatchFinder.fill` does.
    """
    cursor, chosen, own = np.empty(3, np.int64), np.empty((2, 2), np.int64), np.empty(4)
    left = most_steps
    places = columns.lower.shape[0] - SPARE
    while True:
        begun = filled
        room = places - filled
        if columns.least > 0.0:
            room = min(room, FILTERED_AT_ONCE)
        count, found = next_matches(
            w, candidates, shared, limit, most, order, bytecode, search, left, room, spans, payload, columns,
            filled,
        )  # fmt: skip
        if found == 0:
            return begun, filled, count, 0
        filled += found
        left = search.state[LEFT]
        ordered = order[search.state[PASS]]
        cursor[:] = 0
        lost = confidences_of_2(
            ordered, search.blocks, spans, count, cursor, candidates.lower, candidates.upper,
            longest[ordered[1]], chosen, own, chains, float(w), columns.confidence[begun:filled],
        )  # fmt: skip
        if lost == 0 and columns.least > 0.0:
            filled = keep_likely(columns, begun, filled)
        if lost or filled == places or left <= 0:
            return begun, filled, count, lost


@kernel(allocates=True)
def matches_of_3(
    w, candidates, shared, limit, most, order, bytecode, search, most_steps, spans, payload, longest, chains,
    columns, filled,
):  # fmt: skip
    """Find matches of 3 events and fill their columns.

    Return what :meth:`eventbased.describe.MatchFinder.fill` does.
    """
    cursor, chosen, own = np.empty(3, np.int64), np.empty((2, 3), np.int64), np.empty(6)
    left = most_steps
    places = columns.lower.shape[0] - SPARE
    while True:
        begun = filled
        room = places - filled
        if columns.least > 0.0:
            room = min(room, FILTERED_AT_ONCE)
        count, found = next_matches(
            w, candidates, shared, limit, most, order, bytecode, search, left, room, spans, payload, columns,
            filled,
        )  # fmt: skip
        if found == 0:
            return begun, filled, count, 0
        filled += found
        left = search.state[LEFT]
        ordered = order[search.state[PASS]]
        cursor[:] = 0
        lost = confidences_of_3(
            ordered, search.blocks, spans, count, cursor, candidates.lower, candidates.upper,
            longest[ordered[2]], chosen, own, chains, float(w), columns.confidence[begun:filled],
        )  # fmt: skip
        if lost == 0 and columns.least > 0.0:
            filled = keep_likely(columns, begun, filled)
        if lost or filled == places or left <= 0:
            return begun, filled, count, lost


@kernel(allocates=True)
def matches_of_4(
    w, candidates, shared, limit, most, order, bytecode, search, most_steps, spans, payload, longest, chains,
    columns, filled,
):  # fmt: skip
    """Find matches of 4 events and fill their columns.

    Return what :meth:`eventbased.describe.MatchFinder.fill` does.
    """
    cursor, chosen, own = np.empty(3, np.int64), np.empty((2, 4), np.int64), np.empty(8)
    left = most_steps
    places = columns.lower.shape[0] - SPARE
    while True:
        begun = filled
        room = places - filled
        if columns.least > 0.0:
            room = min(room, FILTERED_AT_ONCE)
        count, found = next_matches(
            w, candidates, shared, limit, most, order, bytecode, search, left, room, spans, payload, columns,
            filled,
        )  # fmt: skip
        if found == 0:
            return begun, filled, count, 0
        filled += found
        left = search.state[LEFT]
        ordered = order[search.state[PASS]]
        cursor[:] = 0
        lost = confidences_of_4(
            ordered, search.blocks, spans, count, cursor, candidates.lower, candidates.upper,
            longest[ordered[3]], chosen, own, chains, float(w), columns.confidence[begun:filled],
        )  # fmt: skip
        if lost == 0 and columns.least > 0.0:
            filled = keep_likely(columns, begun, filled)
        if lost or filled == places or left <= 0:
            return begun, filled, count, lost
