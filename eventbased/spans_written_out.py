"""Confidences of the matches of spans, written by :mod:`eventbased.write_spans`."""

from __future__ import annotations

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
from eventbased.span_chains import SPAN, chains_of_spans

__all__ = [
    "confidences_of_2",
    "confidences_of_3",
    "confidences_of_4",
    "confidences_of_5",
    "confidences_of_6",
    "confidences_of_7",
    "confidences_of_8",
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
