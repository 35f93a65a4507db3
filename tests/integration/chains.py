"""Confidences by counting: how many ways there are to choose one tick of each interval in a row.

Nothing here is shared with the engine: the tests of real traces compare the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

Interval = tuple[int, int]
Signature = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The expected form of a match: its confidence and its tightest range of times (ticks)."""

    confidence: Fraction
    lower: int
    upper: int


def _ways_to_reach(intervals: Sequence[Interval], latest: int) -> npt.NDArray[np.int64]:
    """Count, for each tick of the last interval up to `latest`, the ways in which the others lead to it."""
    first, last = intervals[0]
    ways = np.ones(max(0, min(last, latest) - first + 1), np.int64)
    for following in intervals[1:]:
        total = np.concatenate([[0], np.cumsum(ways)])
        ticks = np.arange(following[0], min(following[1], latest) + 1)
        ways = total[np.clip(ticks - first, 0, len(total) - 1)]
        first = following[0]
    return ways


def chain(intervals: Sequence[Interval], window: int) -> Answer | None:
    """Choose one tick of each interval, rising, the last less than `window` after the first; count all ways.

    Returns None if there is no way. Best begun with a short interval.
    """
    worlds = 1
    for lower, upper in intervals:
        worlds *= upper - lower + 1
    ways_found, begins, ends = 0, [], []
    for start in range(intervals[0][0], intervals[0][1] + 1):
        ways = _ways_to_reach([(start, start), *intervals[1:]], start + window - 1)
        if ways.any():
            ways_found += int(ways.sum())
            begins.append(start)
            ends.append(intervals[-1][0] + int(np.flatnonzero(ways)[-1]))
    if not ways_found:
        return None
    return Answer(Fraction(ways_found, worlds), min(begins), max(ends))


def mirrored(intervals: Sequence[Interval], window: int) -> Answer | None:
    """Do the same as `chain`, backwards in time: for a long first and a short last interval."""
    answer = chain([(-upper, -lower) for lower, upper in reversed(intervals)], window)
    return answer and Answer(answer.confidence, -answer.upper, -answer.lower)


def tight(intervals: Sequence[Interval], window: int) -> list[Interval] | None:
    """Narrow each interval to the ticks that can be part of a choice; None if there is no choice."""
    lower = [interval[0] for interval in intervals]
    upper = [interval[1] for interval in intervals]
    before: list[int] = []
    while before != lower + upper:
        before = lower + upper
        lower[0] = max(lower[0], lower[-1] - window + 1)
        upper[-1] = min(upper[-1], upper[0] + window - 1)
        for place in range(1, len(lower)):
            lower[place] = max(lower[place], lower[place - 1] + 1)
            upper[-place - 1] = min(upper[-place - 1], upper[-place] - 1)
        if any(low > high for low, high in zip(lower, upper, strict=True)):
            return None
    return list(zip(lower, upper, strict=True))


def _sum_to(n: int) -> int:
    return n * (n + 1) // 2 if n > 0 else 0


def _at_most(first: Interval, second: Interval, distance: int) -> int:
    """Count the choices of a tick of each interval with second - first <= distance, however negative."""
    choices = second[1] - second[0] + 1
    highest = first[1] + distance - second[0] + 1
    lowest = first[0] + distance - second[0]
    return _sum_to(highest) - _sum_to(lowest) - _sum_to(highest - choices) + _sum_to(lowest - choices)


def pair(first: Interval, second: Interval, window: int) -> Answer | None:
    """Do the same as `chain` for two intervals, however long."""
    ways = _at_most(first, second, window - 1) - _at_most(first, second, 0)
    if not ways:
        return None
    worlds = (first[1] - first[0] + 1) * (second[1] - second[0] + 1)
    return Answer(
        Fraction(ways, worlds),
        max(first[0], second[0] - window + 1),
        min(second[1], first[1] + window - 1),
    )


def epoch_milliseconds(column: pa.ChunkedArray) -> list[int]:
    times: list[int] = column.cast(pa.timestamp("ms", column.type.tz)).cast(pa.int64()).to_pylist()
    return times


def assert_matches(matches: pa.Table, variables: Iterable[str], expected: dict[Signature, Answer]) -> None:
    """Compare signatures, confidences (relative error at most 1e-9) and ranges, all of them."""
    signatures = list(zip(*(matches[variable].to_pylist() for variable in variables), strict=True))
    assert len(signatures) == len(expected)
    assert set(signatures) == expected.keys()
    answers = [expected[signature] for signature in signatures]
    assert matches["confidence"].to_pylist() == pytest.approx(
        [float(answer.confidence) for answer in answers], rel=1e-9, abs=0
    )
    assert epoch_milliseconds(matches["range_lower"]) == [answer.lower for answer in answers]
    assert epoch_milliseconds(matches["range_upper"]) == [answer.upper for answer in answers]


def dataset(name: str, file: str) -> Path:
    """Return a committed file under datasets/."""
    return Path(__file__).resolve().parents[2] / "datasets" / name / file
