"""Rates and expected counts against sums written out tick by tick, and buckets of single chains."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence import (
    Covered,
    Intervals,
    confidences_by_bucket,
    event_rates,
    exact_chain_confidence,
    expected_by_bucket,
    merged_intervals,
)
from tests.cases.budgets import budget

Interval = tuple[int, int]

_INTERVALS = st.tuples(st.integers(-8, 8), st.integers(0, 5)).map(lambda part: (part[0], part[0] + part[1]))


def _count(components: list[list[Interval]], window: int, every: int) -> dict[int, Fraction]:
    """Return the expected numbers of matches by bucket, match by match and time by time."""
    counts: dict[int, Fraction] = {}
    for match in product(*components):
        for times in product(*(range(low, high + 1) for low, high in match)):
            in_order = all(a < b for a, b in pairwise(times))
            if in_order and times[-1] - times[0] <= window - 1:
                weight = Fraction(1)
                for low, high in match:
                    weight /= high - low + 1
                bucket = times[0] // every * every
                counts[bucket] = counts.get(bucket, Fraction(0)) + weight
    return counts


def _layout(
    components: list[list[Interval]],
) -> tuple[Covered, list[np.ndarray], list[np.ndarray]]:
    lower = [np.array([low for low, _ in part], dtype=np.int64) for part in components]
    upper = [np.array([high for _, high in part], dtype=np.int64) for part in components]
    low, high = np.concatenate(lower), np.concatenate(upper)
    starts, stops = np.empty_like(low), np.empty_like(low)
    count = merged_intervals(np.argsort(low, kind="stable"), low, high, starts, stops)
    places = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(stops[:count] - starts[:count])))
    return Covered(starts[:count].copy(), places), lower, upper


def _rates(components: list[list[Interval]]) -> tuple[Covered, np.ndarray]:
    covered, lower, upper = _layout(components)
    ticks = int(covered.places[-1])
    rates = np.empty((len(components), ticks))
    for j, (low, high) in enumerate(zip(lower, upper, strict=True)):
        event_rates(Intervals(low, high, np.full(len(low), -1)), np.empty(0), covered, rates[j])
    return covered, rates


@given(
    st.lists(st.lists(_INTERVALS, min_size=1, max_size=3), min_size=1, max_size=3),
    st.integers(1, 12),
    st.integers(1, 6),
    st.sampled_from([None, 1, 20]),
)
def test_expected_counts(
    components: list[list[Interval]], window: int, every: int, steps: int | None
) -> None:
    covered, rates = _rates(components)
    shift = np.zeros(len(covered.starts), dtype=np.int64)
    with budget(steps):
        found = expected_by_bucket(rates, covered, shift, window, every)
    counts: dict[int, float] = {}
    for bucket, value in zip(found[1].tolist(), found[2].tolist(), strict=True):
        counts[bucket] = counts.get(bucket, 0.0) + value
    assert counts == pytest.approx(
        {k: float(v) for k, v in _count(components, window, every).items()}, rel=1e-12
    )
    with budget(steps):
        found = expected_by_bucket(rates, covered, shift, window, 0)
    assert found[2].sum() == pytest.approx(sum(counts.values()), rel=1e-12)


def test_a_long_interval_leaves_no_residue() -> None:
    """Rates behind thousands of short intervals are exactly those of what is left."""
    rng = np.random.default_rng(1)
    low = np.sort(rng.integers(0, 500, 2_000))
    components = [[(int(a), int(a) + int(n)) for a, n in zip(low, rng.integers(0, 50, 2_000), strict=True)]]
    components[0].append((0, 30_000))
    covered, rates = _rates(components)
    assert covered.places[-1] == 30_001
    assert rates[0, -1] == pytest.approx(1 / 30_001, rel=1e-13)
    assert rates[0].sum() == pytest.approx(2_001, rel=1e-12)


@given(st.lists(_INTERVALS, min_size=2, max_size=3), st.integers(2, 12), st.integers(1, 6), st.booleans())
def test_shares_of_a_confidence(match: list[Interval], window: int, every: int, explicit: bool) -> None:
    window = max(window, len(match))
    wanted = _count([[part] for part in match], window, every)
    if not wanted:
        return
    lower = np.array([low for low, _ in match], dtype=np.int64)
    upper = np.array([high for _, high in match], dtype=np.int64)
    offset = np.full(len(match), -1)
    pmf = np.empty(0)
    if explicit:
        offset[0] = 0
        pmf = np.full(int(upper[0] - lower[0] + 1), 1.0 / float(upper[0] - lower[0] + 1))
    events = np.arange(len(match))[:, None]
    whole = float(exact_chain_confidence(lower.tolist(), upper.tolist(), window))
    out = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64)
    done, written, _ = confidences_by_bucket(
        events, np.array([whole]), lower[:1], Intervals(lower, upper, offset), pmf, window, every, 0, *out
    )
    assert done == 1
    shares = dict(zip(out[1][:written].tolist(), out[2][:written].tolist(), strict=True))
    assert shares == pytest.approx({k: float(v) for k, v in wanted.items()}, rel=1e-9)
