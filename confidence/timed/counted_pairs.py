"""Events that last and must not stand in a relation to a match: pairs of a begin and an end, counted.

All pairs that bounds of begin, end and length leave are alike likely. A rule forbids those of a rectangle:
begins and ends within spans that the times of the match decide, and lengths between two bounds. What several
rules forbid is counted by inclusion and exclusion. So nothing depends on how many pairs there are, and whole
numbers tell what is impossible from what is not likely.

Where a rule bounds the begin from above and the end from below, as an overlap does, or one of both alone, the
pairs that it leaves are those of the one end and those of the other: their marginals are enough.

The ``offset`` of such an event is that of one that may not have happened, and the place that stands for the
offset of its law is ``LASTING - k``: at k of the probabilities stand bounds, counted from the first begin.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confidence.chain.distribution import DOUBTFUL
from confidence.kernel import kernel

__all__ = [
    "LASTING",
    "LAW",
    "MOST_LASTING_TICKS",
    "RECORD",
    "counted_pairs",
    "free_of_rules",
    "lasts",
    "law_of_pairs",
    "record_of",
]

LASTING: Final = -2
"""Places of laws from here down are those of events that last."""

MOST_LASTING_TICKS: Final = 2**30
"""Begins or ends that an event can have: the number of pairs is within 64 bits."""

RECORD: Final = 5
"""What a record has: the first and the last end, the least and the largest length, and where its law stands.

Behind these stand for each rule the least and the largest length that it forbids.
"""

LAW: Final = 4
"""The place of the law in a record: -1 if all pairs are alike, see :mod:`confidence.timed.weighed_pairs`."""

Int64 = NDArray[np.int64]


@kernel
def lasts(offset, values):
    """Return whether an offset is that of an event that lasts."""
    return offset <= DOUBTFUL and values[DOUBTFUL - offset + 1] <= float(LASTING)


@kernel
def record_of(offset, values):
    """Return where the record of an event that lasts begins."""
    return LASTING - int(values[DOUBTFUL - offset + 1])


@kernel
def law_of_pairs(offset, values):
    """Return where the record of the law of an event that lasts begins; -1 if all of its pairs are alike."""
    return int(values[record_of(offset, values) + LAW])


@kernel
def _up_to(last, width, height):
    """Count those of width * height pairs of numbers from 0 on that sum to ``last`` at most."""
    count = 0
    if last >= 0:
        count += (last + 1) * (last + 2) // 2
    if last >= width:
        count -= (last - width + 1) * (last - width + 2) // 2
    if last >= height:
        count -= (last - height + 1) * (last - height + 2) // 2
    return count


@kernel
def _pairs(first_begin, last_begin, first_end, last_end, low_length, high_length):
    """Return how many pairs of a begin and an end have a length from ``low_length`` to ``high_length``."""
    width, height = last_begin - first_begin + 1, last_end - first_end + 1
    if width <= 0 or height <= 0 or low_length > high_length:
        return 0
    # Ends less begins, from the shortest on.
    shortest = first_end - last_begin
    longest = width + height - 2
    below = min(max(low_length - 1 - shortest, -1), longest)
    within = min(max(high_length - shortest, -1), longest)
    return _up_to(within, width, height) - _up_to(below, width, height)


@kernel
def free_of_rules(low, high, offset, values, ends, rules, inner):
    """Return P(an event did not happen, or is in none of the rectangles of some rules).

    Parameters
    ----------
    low, high : int64
        Its first and last begin.
    offset : int64
    values : (m,) float64
    ends : (r, 10) int64
        Of :class:`confidence.timed.forbidden_tables.Spans`: a row for the begin that each rule forbids, and
        one for the end.
    rules : int64
        How many rules there are.
    inner : int64
        The tick of the time that changes along a row.
    """
    happened = values[DOUBTFUL - offset]
    place = record_of(offset, values)
    first_end, last_end = low + int(values[place]), low + int(values[place + 1])
    shortest, longest = int(values[place + 2]), int(values[place + 3])
    total = _pairs(low, high, first_end, last_end, shortest, longest)
    forbidden = 0
    for chosen in range(1, 1 << rules):
        begin, last_begin, end, stop = low, high, first_end, last_end
        low_length, high_length = shortest, longest
        sign = -1
        for r in range(rules):
            if not chosen >> r & 1:
                continue
            sign = -sign
            for row in range(2 * r, 2 * r + 2):
                if not ends[row, 6] <= inner <= ends[row, 7]:
                    high_length = low_length - 1
            begin = max(begin, ends[2 * r, 2], inner + ends[2 * r, 4])
            last_begin = min(last_begin, ends[2 * r, 3], inner + ends[2 * r, 5])
            end = max(end, ends[2 * r + 1, 2], inner + ends[2 * r + 1, 4])
            stop = min(stop, ends[2 * r + 1, 3], inner + ends[2 * r + 1, 5])
            low_length = max(low_length, ends[2 * r, 8])
            high_length = min(high_length, ends[2 * r, 9])
        forbidden += sign * _pairs(begin, last_begin, end, stop, low_length, high_length)
    return 1.0 - happened + happened * (float(total - forbidden) / float(total))


def counted_pairs(begin: tuple[Any, Any], end: tuple[Any, Any], length: tuple[Any, Any]) -> Any:
    """Return how many pairs of a begin and an end have a length within bounds; each is an array, inclusive.

    Whole numbers of Python, in arrays of objects, are taken as well.
    """
    width, height = (np.maximum(last - first + 1, 0) for first, last in (begin, end))
    shortest = end[0] - begin[1]

    def pairs_up_to(difference: Any) -> Any:
        last = np.clip(difference - shortest, -1, width + height - 2)
        corners = [last, last - width, last - height, last - width - height]
        ways = [np.where(corner >= 0, (corner + 1) * (corner + 2) // 2, 0) for corner in corners]
        return ways[0] - ways[1] - ways[2] + ways[3]

    count = pairs_up_to(length[1]) - pairs_up_to(np.minimum(length[0], length[1] + 1) - 1)
    return np.where((width > 0) & (height > 0), count, 0)
