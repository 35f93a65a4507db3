"""The events that several components can take: found by a table of rows, not by sorting."""

from __future__ import annotations

from confidence.kernel import kernel
from eventbased.joins.join_state import COMPONENT_BITS

__all__ = ["number_events"]


@kernel
def number_events(rows, low, first, table, event, fills, twin):
    """Give numbers to the events of rows that occur several times, and return how many these are. O(n + k).

    Parameters
    ----------
    rows : (n,) int64
        The row of each candidate; those of a component differ.
    low : int64
        The smallest of them.
    first : (l + 1,) int64
        Where the candidates of each component start.
    table : (k,) int32
        For each row from ``low`` on; overwritten.
    event, fills, twin
        See :class:`eventbased.layout.SharedEvents`; overwritten, ``twin`` for as many events as there are. It
        has room for n // 2.
    """
    count = 0
    table[:] = 0
    fills[:] = 0
    for j in range(first.shape[0] - 1):
        for i in range(first[j], first[j + 1]):
            x = rows[i] - low
            number = -1
            if table[x] == 0:
                table[x] = i + 1
            else:
                if table[x] > 0:
                    # Until now a candidate of one component alone.
                    twin[count, :] = -1
                    before = table[x] - 1
                    component = 0
                    while first[component + 1] <= before:
                        component += 1
                    twin[count, component] = before
                    event[before] = count
                    count += 1
                    table[x] = -count
                number = -table[x] - 1
                twin[number, j] = i
            event[i] = number
    # The components of an event, as bits, wherever it is a candidate.
    for number in range(count):
        components = 0
        for j in range(twin.shape[1]):
            if twin[number, j] >= 0:
                components |= 1 << j % COMPONENT_BITS
        for j in range(twin.shape[1]):
            if twin[number, j] >= 0:
                fills[twin[number, j]] = components
    return count
