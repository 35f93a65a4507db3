"""Every upper bound by which matches are left out, itself, beside the exact value by enumeration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from math import prod
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from confidence import running_sums
from confidence.predicates.conditions import scratch
from confidence.shared.held import Offsets, OwnTimes
from eventbased import filter_matches
from eventbased.search.backtracking import promising
from eventbased.search.partial_orders import MOST_EVENTS, order_can_reach
from eventbased.search.sequences import chain_can_reach
from eventbased.search.state import (
    COMPONENT,
    LEAST,
    PRODUCT,
    SearchCandidates,
    SearchPattern,
    SequenceLimits,
    Wanted,
    start_search,
)
from eventbased.thresholds import needed
from eventbased.time_differences import in_order, in_window, near
from eventbased.upper_bounds import _in_order as _of_shifted
from eventbased.upper_bounds import bounds_by_clocks
from uncertain_cep.candidates.own_times import SharedClocks
from uncertain_cep.expressions.conditions import compile_conditions

Int64 = NDArray[np.int64]
_NOTHING = np.zeros(0)
_NO_RANKS = np.zeros(0, dtype=np.int64)
_NO_LIMITS = SequenceLimits(*(_NO_RANKS,) * 5)
_LITTLE = Fraction(1, 10**13)
_TIED = 1.0 + 2e-9
"""A match may be kept in the end where its confidence is so much smaller than what is asked."""


@dataclass(frozen=True)
class Time:
    """A time: uniform from ``low`` to ``high``, or with the weights of its ticks, some of them 0."""

    low: int
    high: int
    weights: tuple[int, ...] | None = None

    @property
    def pmf(self) -> list[float]:
        """The probabilities as an engine has them; none if uniform."""
        weights = self.weights or ()
        return [weight / sum(weights) for weight in weights]

    def ticks(self) -> list[tuple[int, Fraction]]:
        """Return the ticks it can be at, each with its probability."""
        weights = self.weights or (1,) * (self.high - self.low + 1)
        return [(self.low + k, Fraction(w, sum(weights))) for k, w in enumerate(weights) if w]


@st.composite
def _times(draw: st.DrawFn, uniform: bool = False) -> Time:
    low = draw(st.integers(0, 6))
    size = draw(st.integers(1, 6))
    if uniform or draw(st.booleans()):
        return Time(low, low + size - 1)
    # The trace's intervals are trimmed to where something is; in between there may be holes.
    inner = draw(st.lists(st.sampled_from([0, 0, 1, 3]), min_size=size, max_size=size))
    return Time(low, low + size + 1, (draw(st.integers(1, 4)), *inner, draw(st.integers(1, 4))))


def _exact(times: Sequence[Time], holds: Callable[[tuple[int, ...]], bool]) -> Fraction:
    total = Fraction(0)
    for world in product(*(time.ticks() for time in times)):
        if holds(tuple(tick for tick, _ in world)):
            total += prod((chance for _, chance in world), start=Fraction(1))
    return total


@dataclass(frozen=True)
class Arrays:
    """Some times as kernels take them."""

    lower: Int64
    upper: Int64
    offset: Int64
    pmf: NDArray[np.float64]
    head: NDArray[np.float64]

    @classmethod
    def of(cls, times: Sequence[Time]) -> Arrays:
        """Lay times out."""
        lower = np.array([time.low for time in times], dtype=np.int64)
        upper = np.array([time.high for time in times], dtype=np.int64)
        sizes = [len(time.pmf) for time in times]
        starts = np.cumsum([0, *sizes])[:-1]
        offset = np.where(np.array(sizes) > 0, starts, -1).astype(np.int64)
        pmf = np.array([chance for time in times for chance in time.pmf], dtype=np.float64)
        head, tail = np.zeros_like(pmf), np.zeros_like(pmf)
        running_sums(lower, upper, offset, pmf, head, tail)
        return cls(lower, upper, offset, pmf, head)

    def wanted(self, least: float) -> Wanted:
        """Return a threshold."""
        return Wanted(least, _NO_RANKS, 2**63 - 1, self.pmf, self.head)

    def candidates(self) -> SearchCandidates:
        """Return the times as candidates of a search."""
        none = _NO_RANKS
        lower, upper = self.lower, self.upper
        return SearchCandidates(none, none, none, none, lower, upper, none, self.offset, upper, none)


def _in_a_row(window: int) -> Callable[[tuple[int, ...]], bool]:
    return lambda t: all(s < u for s, u in pairwise(t)) and t[-1] - t[0] < window


@given(_times(), _times(), st.integers(1, 12))
def test_two_times(one: Time, other: Time, window: int) -> None:
    arrays = Arrays.of([one, other])
    pair: list[Any] = [
        value for k in range(2) for value in (arrays.lower[k], arrays.upper[k], arrays.offset[k])
    ]
    inside, both = in_window(*pair, window, arrays.pmf, arrays.head)
    found = {
        in_order(*pair, arrays.pmf, arrays.head): lambda t: t[0] < t[1],
        near(*pair, window, arrays.pmf, arrays.head): lambda t: abs(t[1] - t[0]) < window,
        inside: lambda t: t[1] - t[0] < window,
        both: lambda t: 0 < t[1] - t[0] < window,
    }
    for bound, holds in found.items():
        exact = _exact([one, other], holds)
        assert exact <= Fraction(bound) <= exact + _LITTLE


def _pairs(low: int, high: int, low_after: int, high_after: int, most: int) -> int:
    """Return for how many pairs of ticks ``t - s <= most``, by cutting corners off a triangle."""

    def triangle(side: int) -> int:
        return side * (side + 1) // 2 if side > 0 else 0

    side = high + most - low_after + 1
    cuts = (side - (high - low + 1), side - (high_after - low_after + 1))
    both = side - (high - low + 1) - (high_after - low_after + 1)
    return triangle(side) - sum(map(triangle, cuts)) + triangle(both)


_FAR = st.integers(-(2**61), 2**61) | st.integers(-5, 5).map(lambda near_zero: 2**60 + near_zero)


@given(_FAR, _FAR, _FAR, _FAR, st.integers(1, 2**62) | st.integers(1, 20))
def test_two_times_far_apart(one: int, other: int, third: int, fourth: int, window: int) -> None:
    (low, high), (low_after, high_after) = sorted((one, other)), sorted((third, fourth))
    size = (high - low + 1) * (high_after - low_after + 1)
    pair = low, high, -1, low_after, high_after, -1
    inside, both = in_window(*pair, window, _NOTHING, _NOTHING)

    def chance(least: int | None, most: int) -> Fraction:
        below = 0 if least is None else _pairs(low, high, low_after, high_after, least - 1)
        return Fraction(_pairs(low, high, low_after, high_after, most) - below, size)

    expected = [
        (in_order(*pair, _NOTHING, _NOTHING), 1 - chance(None, 0)),
        (near(*pair, window, _NOTHING, _NOTHING), chance(1 - window, window - 1)),
        (inside, chance(None, window - 1)),
        (both, chance(1, window - 1)),
    ]
    for bound, exact in expected:
        assert exact <= Fraction(bound) <= exact + _LITTLE
    # That of the join is not as close there.
    lower, upper = np.array([low, low_after]), np.array([high, high_after])
    for x, y, exact in ((0, 1, chance(0, 2**63)), (1, 0, chance(None, 0))):
        assert exact <= Fraction(_of_shifted(x, y, 0, lower, upper, np.zeros(0, dtype=np.int64)))


@given(_times(), _times(), st.integers(-3, 12))
def test_two_times_of_the_join(one: Time, other: Time, shift: int) -> None:
    arrays = Arrays.of([one, other])
    offset = arrays.offset if len(arrays.pmf) else np.zeros(0, dtype=np.int64)
    found = _of_shifted(0, 1, shift, arrays.lower, arrays.upper, offset)
    exact = _exact([one, other], lambda t: t[0] <= t[1] + shift)
    assert exact <= Fraction(found)
    if not len(arrays.pmf):
        assert Fraction(found) <= exact + _LITTLE


@given(st.lists(_times(), min_size=2, max_size=4), st.integers(1, 12))
@example([Time(3, 7), Time(4, 4)], 3)
def test_the_confidence_of_a_chain_and_of_all_that_it_begins(times: list[Time], window: int) -> None:
    arrays = Arrays.of(times)
    given_, pattern = arrays.candidates(), _sequence(len(times), window)
    state, work = _search(len(times))

    def bounded(d: int, least: float) -> bool:
        work.element[d] = d
        return bool(chain_can_reach(given_, pattern, arrays.wanted(0.0), state, work, d, d, least))

    bounded(0, 0.0)
    for last in range(1, len(times)):
        begun = _exact(times[: last + 1], _in_a_row(window))
        assert bounded(last, float(begun))
        if last == 1:
            assert not bounded(last, float(begun + _LITTLE) + 1e-15)
    exact = float(begun)
    chosen, kept = np.arange(len(times))[:, None], np.empty(1, dtype=np.bool_)
    low, high = 0.0, 1.0 + 1e-6
    while high - low > 1e-13:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if bounded(last, middle) else (low, middle)
    for least, kept_then in ((exact * _TIED, True), (high * (1.0 + 1e-7) + 1e-12, False)):
        promising(given_, pattern, _NO_LIMITS, None, arrays.wanted(least), state, work, chosen, kept)
        assert kept[0] == kept_then


@given(st.lists(_times(), min_size=2, max_size=4), st.integers(0, 8))
def test_the_confidence_of_a_match_of_the_join(times: list[Time], spare: int) -> None:
    arrays = Arrays.of(times)
    position = np.arange(len(times))
    offset = arrays.offset if len(arrays.pmf) else np.zeros(0, dtype=np.int64)
    lower, upper = arrays.lower - position, arrays.upper - position
    bound = _of_shifted(len(times) - 1, 0, spare, lower, upper, offset)
    for j in range(len(times) - 1):
        bound *= _of_shifted(j, j + 1, 0, lower, upper, offset)
    exact = _exact(times, _in_a_row(len(times) + spare))
    assert exact <= Fraction(bound)
    kept = np.empty(1, dtype=np.bool_)
    for least, wanted in ((float(exact) * _TIED, True), (bound * (1.0 + 1e-7) + 1e-12, False)):
        filter_matches(position[:, None], spare, lower, upper, offset, least, _NO_RANKS, 0, kept)
        assert kept[0] == wanted


@dataclass(frozen=True)
class Order:
    """Components and the order that a pattern asks of them, and how many events each has taken."""

    before: tuple[int, ...]
    kleene: tuple[bool, ...]
    is_set: tuple[bool, ...]
    taken: tuple[int, ...]

    @property
    def components(self) -> list[int]:
        """The component of each event."""
        return [c for c, count in enumerate(self.taken) for _ in range(count)]

    def pattern(self, window: int) -> SearchPattern:
        """Return it as the search takes it."""
        nothing = np.zeros((0, 0), dtype=np.int64)
        return SearchPattern(np.array(self.kleene), np.array(self.is_set), nothing, window, False)

    def holds(self, window: int) -> Callable[[tuple[int, ...]], bool]:
        """Return whether times are in order and within a window."""
        components = self.components
        pairs = [
            (i, k)
            for k, later in enumerate(components)
            for i, earlier in enumerate(components[:k])
            if (self.before[later] >> earlier & 1)
            or (earlier == later and self.kleene[later] and not self.is_set[later])
        ]
        return lambda t: max(t) - min(t) < window and all(t[i] < t[k] for i, k in pairs)


def before_each(draw: st.DrawFn, length: int) -> tuple[int, ...]:
    """Draw an order of components: for each the bits of those before it."""
    before = [0] * length
    for j in range(length):
        for i in range(j):
            if draw(st.booleans()):
                before[j] |= 1 << i | before[i]
    return tuple(before)


@st.composite
def _orders(draw: st.DrawFn) -> Order:
    length = draw(st.integers(1, 4))
    before = before_each(draw, length)
    kleene = [draw(st.booleans()) for _ in range(length)]
    taken = [draw(st.integers(1, 2)) if many else 1 for many in kleene]
    while sum(taken) > 4:
        taken[taken.index(2)] = 1
    is_set = [draw(st.booleans()) for _ in range(length)]
    return Order(before, tuple(kleene), tuple(is_set), tuple(taken))


@given(_orders(), st.data(), st.integers(1, 10))
def test_the_confidence_of_a_set_and_of_all_that_it_begins(
    order: Order, data: st.DataObject, window: int
) -> None:
    components = order.components
    times = data.draw(st.lists(_times(), min_size=len(components), max_size=len(components)))
    arrays = Arrays.of(times)
    pattern, wanted, exact = order.pattern(window), arrays.wanted(0.0), _exact(times, order.holds(window))
    before, given_ = np.array(order.before, dtype=np.int64), arrays.candidates()
    state, work = _search(len(order.before))
    for d, c in enumerate(components):
        state.frames[COMPONENT, d + 1] = c
        assert order_can_reach(given_, pattern, before, wanted, state, work, c, d, d, 0.0)
        work.element[d] = d
        # A bound that is met by less and less: that of the events so far holds for all that they begin.
        assert exact <= Fraction(state.chance[PRODUCT, d + 1])
        assert exact <= Fraction(state.chance[LEAST, d + 1])
    if any(count > 1 for count in order.taken):
        return
    bound = min(state.chance[PRODUCT, d + 1], state.chance[LEAST, d + 1])
    kept = np.empty(1, dtype=np.bool_)
    for least, kept_then in ((float(exact) * _TIED, True), (bound * (1.0 + 1e-7) + 1e-12, False)):
        chosen = np.arange(len(times))[:, None]
        promising(given_, pattern, None, before, arrays.wanted(least), state, work, chosen, kept)
        assert kept[0] == kept_then


def _sequence(length: int, window: int) -> SearchPattern:
    no = np.zeros(length, dtype=np.bool_)
    return SearchPattern(no, no, np.zeros((0, 0), dtype=np.int64), window, False)


def _search(length: int) -> tuple[Any, Any]:
    variables = [f"v{j}" for j in range(length)]
    starts = np.zeros(length, dtype=np.int64)
    conditions = compile_conditions([], variables, [False] * length, [], starts, lambda column: column)  # type: ignore[arg-type,return-value]
    return start_search(MOST_EVENTS, 0, length), scratch(conditions, MOST_EVENTS)


def test_the_window_of_a_chain_has_its_sign() -> None:
    """c from 3 to 7 and b at 4 are in order, and then within 3 ticks, with 1/5; near each other with 4/5."""
    times = [Time(3, 7), Time(4, 4)]
    arrays = Arrays.of(times)
    given_, pattern = arrays.candidates(), _sequence(2, 3)
    state, work = _search(2)
    for least, reached in ((0.1999, True), (0.2001, False)):
        assert chain_can_reach(given_, pattern, arrays.wanted(0.0), state, work, 0, 0, least)
        work.element[0] = 0
        assert chain_can_reach(given_, pattern, arrays.wanted(0.0), state, work, 1, 1, least) == reached
    assert state.chance[PRODUCT, 2] * near(3, 7, -1, 4, 4, -1, 3, _NOTHING, _NOTHING) < 0.18


@given(st.floats(1e-12, 1.0), st.floats(-1.0, 1.0))
def test_what_is_kept_in_the_end_reaches_what_is_needed(least: float, share: float) -> None:
    # HAVING passes what is within a relative 1e-9, of confidences that may be off by another 1e-9.
    assert least * (1.0 - 1e-9) / (1.0 + 1e-9) > needed(least)
    # A ranking takes for equal what agrees in 12 significant digits.
    other = least * (1.0 + 1e-11 * share)
    if f"{other:.11e}" == f"{least:.11e}":
        assert needed(least) < other
        assert needed(other) < least


@st.composite
def _by_clocks(draw: st.DrawFn) -> tuple[list[tuple[int, Time]], list[Time]]:
    """Draw the clock and the time by it of each event of a match, and the offsets of the clocks."""
    clocks = [draw(_times()) for _ in range(draw(st.integers(1, 3)))]
    events = []
    for _ in range(draw(st.integers(2, 4))):
        low, size = draw(st.integers(0, 9)), draw(st.sampled_from([1, 1, 2, 3]))
        weights = tuple(draw(st.lists(st.integers(1, 3), min_size=size, max_size=size)))
        own = Time(low, low + size - 1, weights if draw(st.integers(0, 3)) == 0 else None)
        events.append((draw(st.integers(-1, len(clocks) - 1)), own))
    return events, clocks


@given(_by_clocks(), st.integers(1, 12))
def test_events_of_distinct_clocks_bound_matches(
    case: tuple[list[tuple[int, Time]], list[Time]], window: int
) -> None:
    events, clocks = case

    def is_match(ticks: tuple[int, ...]) -> bool:
        offsets = ticks[len(events) :]
        times = [
            tick + (offsets[clock] if clock >= 0 else 0)
            for (clock, _), tick in zip(events, ticks, strict=False)
        ]
        return all(s < t for s, t in pairwise(times)) and times[-1] - times[0] < window

    every = [time for _, time in events] + clocks
    exact = _exact(every, is_match)
    laws = [time.pmf for time in every]
    begins = np.cumsum([0, *map(len, laws)])
    low, high, offset = np.array(
        [(time.low, time.high, begins[k] if laws[k] else -1) for k, time in enumerate(every)]
    ).T
    own, of_clocks = slice(len(events)), slice(len(events), None)
    clock = np.array([clock for clock, _ in events])
    times = tuple(bound[own] + np.where(clock < 0, 0, bound[of_clocks][clock]) for bound in (low, high))
    shared = SharedClocks(
        OwnTimes(clock, low[own], high[own], offset[own]),
        Offsets(low[of_clocks], high[of_clocks], offset[of_clocks]),
        np.concatenate(laws),
        (),
        offset[own] >= 0,
        (times[0], times[1]),
    )
    bound = np.empty(1)
    row = np.arange(len(events))
    bounds_by_clocks(np.array([0, len(events)]), row, shared.own.clock, *shared.bounds(), window, bound)
    assert bound[0] >= exact


def test_the_bound_of_two_events_of_distinct_clocks_is_the_confidence() -> None:
    """Both are certain by their clocks, and the window is long."""
    bound, column = np.empty(1), np.array
    bounds_by_clocks(
        column([0, 2]), column([0, 1]), column([0, 1]), column([0, 2]), column([9, 6]), column([0, 0]), 50,
        bound,
    )  # fmt: skip
    pairs = sum(s < t for s in range(10) for t in range(2, 7))
    assert pairs / 50 <= bound[0] <= pairs / 50 + 1e-9
