"""The any-state method: events are fed as they arrive; a run may begin at any component and fill any next.

Zhang, Diao, Immerman, PVLDB 3(1), 2010, sections 4.2 and C.2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eventbased.incremental.method import IncrementalMethod, around

__all__ = ["AnyState"]

Int64 = NDArray[np.int64]


class AnyState(IncrementalMethod):
    """Runs over events in the order of arrival: a match comes out with the event that completes it."""

    def _arrive(self, places: Int64, floor: Int64) -> tuple[Int64, Int64]:
        return places, around(floor)

    def _waiting(self) -> Int64:
        return np.zeros(0, dtype=np.int64)

    def _follow(self, mapping: Int64) -> None:
        pass
