"""From the matches of spans to their chains side by side."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.chain.side_by_side import CHAINS
from confidence.kernel import kernel
from eventbased.joins.join_state import BEGIN, CANDIDATE, PARENT, PARENT_ROW, SIZE
from eventbased.joins.pivot_join import POSITIVE

__all__ = ["PLACE", "SPAN", "WITHIN", "chains_of_spans"]

SPAN: Final = 0
WITHIN: Final = 1
PLACE: Final = 2


class SpanWork(NamedTuple):
    """Where :func:`chains_of_spans` stands, and its work arrays."""

    cursor: NDArray[np.int64]
    """(3,) int64. The span to go on with, its first match, and the place of that."""
    chosen: NDArray[np.int64]
    """(2, l) int64."""
    bounds: NDArray[np.float64]
    """(2 l,) float64."""


@kernel(packed=True)
def chains_of_spans(ordered, blocks, spans, count, work, lower, upper, longest, chains, out):
    """Write the bounds of the next matches of some spans side by side; return of how many.

    Matches whose times are all certain are not among them: the join has looked at them, and their confidence
    is written to ``out``.
    """
    cursor, chosen, own_bounds = work
    bounds, place = chains.bounds, chains.place
    last = ordered.shape[0] - 2
    running = ordered[last + 1]
    of_low, of_high = bounds[2 * running], bounds[2 * running + 1]
    # The component that completes the matches is the first or the last one.
    first_row = 2 if running == 0 else 0
    rows = chosen[1]
    for s in range(last + 1):
        rows[s] = -1
    k, begun, done = cursor[SPAN], cursor[WITHIN], cursor[PLACE]
    base = 0
    certain = False
    filled = 0
    while k < count and filled < CHAINS:
        # What neighbouring spans have in common was bound first.
        row = spans[PARENT, k]
        s = last
        while s >= 0 and rows[s] != row:
            rows[s] = row
            chosen[0, s] = blocks[s, CANDIDATE, row]
            row = blocks[s, PARENT_ROW, row]
            s -= 1
        if s < last:
            base = lower[chosen[0, 0]]
            certain = longest == 0
            for t in range(s + 1, last + 1):
                c = chosen[0, t]
                own_bounds[2 * ordered[t]] = float(lower[c] - base)
                own_bounds[2 * ordered[t] + 1] = float(upper[c] - base)
            for r in range(first_row, first_row + 2 * last + 2, 2):
                certain = certain and own_bounds[r] == own_bounds[r + 1]
        i = spans[BEGIN, k] + begun
        size = min(spans[SIZE, k] - begun, CHAINS - filled)
        begun += size
        if begun == spans[SIZE, k]:
            begun = 0
            k += 1
        if certain:
            for n in range(done, done + size):
                out[n] = 1.0
            done += size
            continue
        n = filled
        at = done
        filled += size
        done += size
        while True:
            # Four at a time and never fewer, as spans are short; and all loads before all stores.
            i &= POSITIVE
            n &= POSITIVE
            for r in range(first_row, first_row + 2 * last + 2):
                x = own_bounds[r]
                bounds[r, n], bounds[r, n + 1], bounds[r, n + 2], bounds[r, n + 3] = x, x, x, x
            for values, to in ((lower, of_low), (upper, of_high)):
                v0, v1, v2, v3 = values[i], values[i + 1], values[i + 2], values[i + 3]
                v0, v1, v2, v3 = v0 - base, v1 - base, v2 - base, v3 - base
                to[n], to[n + 1], to[n + 2], to[n + 3] = float(v0), float(v1), float(v2), float(v3)
            place[n], place[n + 1], place[n + 2], place[n + 3] = at, at + 1, at + 2, at + 3
            n += 4
            i += 4
            at += 4
            if n >= filled:
                break
    cursor[SPAN], cursor[WITHIN], cursor[PLACE] = k, begun, done
    return filled
