"""Greedy choice of alerts that are far enough behind the last one told."""

from __future__ import annotations

from confidence.kernel import kernel

__all__ = ["tell_alerts"]


@kernel
def tell_alerts(group, time, length, carried, told, left_out):
    """Tell the first alert of each group, and each that is ``length`` or more behind the last one told.

    Parameters
    ----------
    group : (n,) int64
        Equal groups stand together.
    time : (n,) int64
        Ticks, ascending within a group.
    length : int64
        Ticks, at least 0.
    carried : (n,) int64
        Of an alert that is told, how many others count as left out since then already: 0 but for alerts that
        an earlier call told.
    told : (n,) bool
        Overwritten: which alerts are told.
    left_out : (n,) int64
        Overwritten: of an alert that is told, how many of its group were not since the one told before.

    Notes
    -----
    O(n).
    """
    last = 0
    count = 0
    for i in range(group.shape[0]):
        is_first = i == 0 or group[i] != group[i - 1]
        if is_first:
            count = 0
        left_out[i] = 0
        told[i] = is_first or time[i] - last >= length
        if told[i]:
            left_out[i] = count
            last = time[i]
            count = carried[i]
        else:
            count += 1
