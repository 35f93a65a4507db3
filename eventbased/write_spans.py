"""Writes ``spans_written_out.py``: ``python -m eventbased.write_spans``.

Kernels for each length call those of its chains (:mod:`confidence.chain.written_out`). So only the kernels of
one length are compiled. For short matches Python calls one kernel for a whole batch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from confidence.chain.side_by_side import LENGTHS
from eventbased.config import WHOLE_BATCHES

__all__ = ["PLACE", "written_out"]

PLACE: Final = Path(__file__).with_name("spans_written_out.py")

_HEAD: Final = '''"""Matches of the join with their confidences, written by :mod:`eventbased.write_spans`."""

from __future__ import annotations

import numpy as np

from confidence.chain.written_out import (
{chains}
)
from confidence.kernel import kernel
from eventbased.config import FILTERED_AT_ONCE, SPARE
from eventbased.joins.join_state import LEFT, PASS
from eventbased.span_chains import SPAN, SpanWork, chains_of_spans
from eventbased.span_columns import keep_likely, next_matches

__all__ = [
{names}
]
'''

_KERNEL: Final = '''

@kernel
def confidences_of_{length}(ordered, blocks, spans, count, work, lower, upper, longest, chains, w, out):
    """Fill the confidences of matches of {length} events; return how many are NaN.

    See :mod:`eventbased.span_chains`.
    """
    lost = 0
    while work.cursor[SPAN] < count:
        filled = chains_of_spans(ordered, blocks, spans, count, work, lower, upper, longest, chains, out)
        if filled:
            lost += chains_of_{length}(chains.bounds, w, filled, chains.place, chains.values, out)
    return lost
'''

_BATCH: Final = '''

@kernel(allocates=True)
def matches_of_{length}(inputs, search, most_steps, spans, payload, longest, chains, columns, filled):
    """Find matches of {length} events and fill their columns.

    Return what :meth:`eventbased.describe.MatchFinder.fill` does.
    """
    candidates = inputs.candidates
    work = SpanWork(np.empty(3, np.int64), np.empty((2, {length}), np.int64), np.empty({twice}))
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
        lost = confidences_of_{length}(
            ordered, search.blocks, spans, count, work, candidates.lower, candidates.upper,
            longest[ordered[{last}]], chains, float(inputs.w), columns.confidence[begun:filled],
        )  # fmt: skip
        if lost == 0 and columns.least > 0.0:
            filled = keep_likely(columns, begun, filled)
        if lost or filled == places or steps_left <= 0:
            return begun, filled, count, lost
'''


def written_out() -> str:
    """Return the text of ``spans_written_out.py``."""
    chains = "\n".join(f"    chains_of_{length}," for length in LENGTHS)
    kinds = (("confidences", LENGTHS), ("matches", WHOLE_BATCHES))
    names = "\n".join(f'    "{kind}_of_{length}",' for kind, lengths in kinds for length in lengths)
    text = _HEAD.format(chains=chains, names=names)
    for length in LENGTHS:
        text += _KERNEL.format(length=length)
    for length in WHOLE_BATCHES:
        text += _BATCH.format(length=length, twice=2 * length, last=length - 1)
    return text


if __name__ == "__main__":
    PLACE.write_text(written_out())
