"""Sorting for query order: events wait until all that can precede them are there, and runs are prefixes.

Zhang, Diao, Immerman, PVLDB 3(1), 2010, sections 4.1, 4.3 and C.3. An event e of a component behind the
first may be fed when no unseen event can be before it, ``safe >= upper_e`` (the safe output time, by arrival
order or by heartbeat), *and* when everything that waits at the component before it and can be before it
has been fed. Both are one number, the time at which e is due:

    due_0(e) = lower_e
    due_j(e) = max( upper_e, max{ due_{j-1}(x) : x waits at component j - 1, lower_x < upper_e } )

Fed in the order of (due, component), each event meets every prefix it can extend.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confidence.config import NEVER
from eventbased.incremental.candidate_pool import COMPONENT, LOWER, UPPER
from eventbased.incremental.method import IncrementalMethod, around

__all__ = ["QueryOrder"]

Int64 = NDArray[np.int64]


class QueryOrder(IncrementalMethod):
    """Runs that start at the first component only, over events sorted into query order."""

    _prefixes = True
    _holds_back = True
    _held: Int64 = np.zeros(0, dtype=np.int64)

    def _arrive(self, indices: Int64, floor: Int64) -> tuple[Int64, Int64]:
        self._held = np.concatenate((self._held, indices))
        return self._due(int(floor[-1]))

    def _release(self) -> tuple[Int64, Int64]:
        return self._due(self.safe)

    def _due(self, safe: int) -> tuple[Int64, Int64]:
        """Take out what is due, in the order of feeding, with its floors. O(n log n), n being what waits."""
        held = self._held
        pool = self.pool.candidates[:, held]
        component = pool[COMPONENT]
        lower, upper = pool[LOWER] + component, pool[UPPER] + component
        due = lower.copy()
        for j in range(1, self.length):
            here = np.flatnonzero(component == j)
            before = np.flatnonzero(component == j - 1)
            before = before[np.argsort(lower[before], kind="stable")]
            # Nothing is due earlier than NEVER: the maximum over no events.
            latest = np.maximum.accumulate(np.concatenate(([NEVER], due[before])))
            due[here] = np.maximum(upper[here], latest[np.searchsorted(lower[before], upper[here])])
        ready = (component == 0) | (due <= safe)
        chosen = np.flatnonzero(ready)
        chosen = chosen[np.lexsort((component[chosen], due[chosen]))]
        waiting = lower[~ready]
        self._held = held[~ready]
        after = min(safe, int(waiting.min())) if len(waiting) else safe
        bounds = np.append(lower[chosen], after)
        return held[chosen], around(np.minimum.accumulate(bounds[::-1])[::-1])

    def _waiting(self) -> Int64:
        return self._held

    def _follow(self, mapping: Int64) -> None:
        self._held = mapping[self._held]
