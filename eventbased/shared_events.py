"""The events that several components can take: found by a table of rows, not by sorting."""

from __future__ import annotations

from confidence.kernel import kernel
from eventbased.joins.join_state import COMPONENT_BITS

__all__ = ["count_rows", "number_events"]


@kernel
def count_rows(rows, low, table):
    """Count how often each row occurs; return how many occur several times.

    Parameters
    ----------
    rows : (n,) int64
    low : int64
        The smallest of them.
    table : (k,) int32
        All 0; overwritten by how often each row from ``low`` on occurs.
    """
    several = 0
    for i in range(rows.shape[0]):
        x = rows[i] - low
        table[x] += 1
        several += table[x] == 2
    return several


@kernel
def number_events(rows, low, first, table, shared):
    """Give numbers to the events of rows that occur several times, in the order in which they come.

    Parameters
    ----------
    rows : (n,) int64
        The row of each candidate; those of a component differ.
    low : int64
    first : (l + 1,) int64
        Where the candidates of each component start.
    table : (k,) int32
        As :func:`count_rows` leaves it; overwritten.
    shared : eventbased.layout.SharedEvents
        ``event`` is overwritten; ``fills`` is to be 0 and ``twin`` -1.
    """
    event, fills, twin = shared.event, shared.fills, shared.twin
    count = 0
    for j in range(first.shape[0] - 1):
        for i in range(first[j], first[j + 1]):
            x = rows[i] - low
            number = -1
            if table[x] > 1:
                count += 1
                table[x] = -count
            if table[x] < 0:
                number = -table[x] - 1
                twin[number, j] = i
            event[i] = number
    # The components of an event, as bits, wherever it is a candidate.
    for k in range(count):
        components = 0
        for j in range(twin.shape[1]):
            if twin[k, j] >= 0:
                components |= 1 << j % COMPONENT_BITS
        for j in range(twin.shape[1]):
            if twin[k, j] >= 0:
                fills[twin[k, j]] = components
