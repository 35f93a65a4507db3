"""The work on one match of many events, or of many that forbid it, is bounded and can be ended.

What is counted are terms, steps and looks at the caller's limits, so that no test depends on the machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import islice
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pyarrow as pa
import pytest

import uncertain_cep as uc
from confidence import exact_chain_confidence, kernel
from confidence.budget import looking_at, pieces
from confidence.chain.pmf import pmf_steps
from confidence.gaps import coupled
from eventbased.gaps import held_clocks
from tests.cases.budgets import budget
from tests.cases.kernels import running
from tests.weighers.forcing import leave_out
from uncertain_cep.errors import TimeLimitError
from uncertain_cep.results import buckets, expected_counts
from uncertain_cep.weighers.held_ends import HeldChains


def events(count: int, *, width: int, step: int = 1, types: str = "A", **more: Any) -> pa.Table:
    """Return events ``step`` ticks apart, with so many ticks beside the first, of types in turn."""
    lower = step * np.arange(count)
    columns = {
        "type": [types[n % len(types)] for n in range(count)],
        "id": np.arange(count),
        "lower": lower,
        "upper": lower + width,
    }
    return pa.table(columns | more)


def needs(match: Callable[[], object]) -> list[int]:
    """Return how many bytes each look at the limits was told of."""
    found: list[int] = []
    with looking_at(found.append):
        match()
    return found


@contextmanager
def ending_after(looks: int) -> Iterator[None]:
    """Have the evaluation end at one look at its limits."""
    left = looks

    def look(needed: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise TimeLimitError(1.0)

    with looking_at(look):
        yield


@pytest.mark.parametrize(("step", "confidence"), [(10, 1.0), (6, 1.0), (1, 0.0)])
def test_exact_terms_of_a_long_chain_are_linear(step: int, confidence: float) -> None:
    lower = range(0, 3000 * step, step)
    with patch.object(math, "comb", Mock(wraps=math.comb)) as comb:
        found = exact_chain_confidence(lower, [first + 5 for first in lower], 10**6)
    assert found > 0
    assert float(found) == confidence
    assert comb.call_count <= 3000 * 6


def test_exact_chain_that_the_window_binds() -> None:
    """No inequality of the cycle holds in any case: only t, t + 1, t + 2 lie within 3 ticks."""
    assert exact_chain_confidence([0, 1, 2], [4, 5, 6], 3) == Fraction(5, 125)


def test_a_long_exact_sum_can_be_ended() -> None:
    lower = range(400)
    looks = len(needs(lambda: exact_chain_confidence(lower, [first + 50 for first in lower], 10**6)))
    assert looks >= 400
    with pytest.raises(TimeLimitError), ending_after(looks // 2):
        exact_chain_confidence(lower, [first + 50 for first in lower], 10**6)


@pytest.mark.parametrize(
    ("lower", "width", "window", "dear"),
    [
        (range(2000), 600, 1900, True),
        # The window does not bind; the chain falls apart; order leaves each event one tick.
        (range(2000), 600, 10_000, False),
        (range(0, 14_000, 7), 5, 13_000, False),
        ([0] * 2000, 1999, 1999, False),
    ],
)
def test_sums_over_probabilities_that_the_window_binds_are_counted(
    lower: Sequence[int], width: int, window: int, dear: bool
) -> None:
    """A sum over all pairs of events at each tick takes minutes for thousands of events."""
    first = np.array(lower)
    steps: Any = pmf_steps
    found = steps(first, first + width, window, int(first[0]), int(first[-1]) + width)
    assert (found > 2e8) == dear


@pytest.mark.parametrize(
    ("pattern", "counted"),
    [
        ("SEQ(A+ b[]) WHERE skip_till_next_match(b[])", 30),
        ("SEQ(A a, A+ b[], A c) WHERE skip_till_next_match(a, b[], c)", 10),
    ],
)
def test_certain_chains_are_found_at_any_length(pattern: str, counted: int) -> None:
    """Matches of up to 100 events, each of which is certain: no event lies between two of them."""
    found = uc.match(events(100, width=5, step=10), f"PATTERN {pattern} WITHIN 100000 LIMIT {counted}")
    assert found.num_rows == counted
    assert set(found.column("confidence").to_pylist()) == {1.0}


def test_only_times_next_to_what_forbids_are_tried() -> None:
    """Nearly all of 150 events are in each match; the one or two left out may lie in a few of its gaps."""
    tried, weighed = 0, 0
    names = kernel._plain_names("confidence.gaps.coupled")

    def steps(*given: Any) -> Any:
        nonlocal tried
        tried += 1
        return coupled._steps.plain(*given)

    def chosen(*given: Any) -> Any:
        nonlocal weighed
        weighed += 1
        return coupled._choose.plain(*given)

    query = "PATTERN SEQ(A a, A+ b[], A c) WHERE skip_till_next_match(a, b[], c) WITHIN 1000"
    with patch.dict(names, _steps=steps, _choose=chosen), running("plain"):
        batches = uc.iter_matches(events(150, width=5, step=3), query, batch_rows=20, threads=1)
        assert len(list(islice(batches, 5))) == 5
        del batches
    assert weighed >= 5
    assert tried < 40 * weighed


def one_match(**more: Any) -> pa.Table:
    """Return an A and a B, and what may be between them."""
    return events(12, width=60, types="ANNNNNNNNNNB", **more)


@pytest.mark.parametrize(
    "pattern", ["SEQ(A a, !N n, B b, C c) WHERE TIME(b) - TIME(a) >= 3", "SEQ(A a, !N n, B b)"]
)
@pytest.mark.parametrize("probability", [None, 0.5])
def test_one_match_that_many_events_forbid_can_be_ended(
    monkeypatch: pytest.MonkeyPatch, pattern: str, probability: float | None
) -> None:
    """Between two events that are forbidden, and between two rows of the table of one."""
    leave_out(HeldChains, monkeypatch)
    more: dict[str, Any] = {} if probability is None else {"probability": np.full(13, probability)}
    table = events(13, width=60, types="ANNNNNNNNNNBC", **more)
    query = f"PATTERN {pattern} WITHIN 100"

    def match() -> None:
        assert uc.match(table, query).num_rows == 1

    with running("plain"):
        plainly = len(needs(match))
    with budget(100):
        often = len(needs(match))
    assert plainly > 300
    if "WHERE" in pattern:
        assert often > 300


def test_plain_kernels_end_within_a_match() -> None:
    """The error comes from within a kernel, which Python alone cannot end."""
    query = "PATTERN SEQ(A a, !N n, B b) WITHIN 100"
    with running("plain"), pytest.raises(TimeLimitError) as ended, ending_after(200):
        uc.match(one_match(), query)
    assert "gap_confidences" in {entry.name for entry in ended.traceback}


CLOCKED = "PATTERN SEQ(A a, !N n, B b) WITHIN 40"


def clocked() -> pa.Table:
    count = 120
    return events(
        count, width=10, types="ANBN", source=[f"clock {n % 3}" for n in range(count)],
        offset_lower=np.full(count, -2), offset_upper=np.full(count, 2),
    )  # fmt: skip


def answer(table: pa.Table) -> list[tuple[Any, ...]]:
    found = uc.match(table, CLOCKED)
    columns = [column.to_pylist() for column in found.columns]
    return sorted(zip(*columns, strict=True), key=repr)


@pytest.mark.parametrize("most", [1, 50])
def test_what_is_in_reach_is_listed_in_parts(most: int) -> None:
    """With shared clocks, the events that may spoil matches are held for some of the matches at a time."""
    whole = answer(clocked())
    with patch.object(held_clocks, "MOST_IN_REACH", most):
        parts = answer(clocked())
    assert len(whole) > 100
    for one, other in zip(whole, parts, strict=True):
        assert one == pytest.approx(other, rel=1e-12)


def test_what_is_in_reach_is_counted_before_it_is_held() -> None:
    with budget(7):
        found = needs(lambda: uc.match(clocked(), CLOCKED))
    assert max(found) > 8 * 1000
    assert len(found) > 100


def test_matches_are_shared_out_among_buckets_in_parts() -> None:
    """However many buckets matches have, so many of their events are held at a time, and counted before."""
    table = events(60, width=20, types="ANB")
    query = "PATTERN SEQ(A a, !N n, B b) WITHIN 30 RETURN EXPECTED COUNT EVERY 3"

    def counts() -> list[tuple[Any, ...]]:
        found = uc.match(table, query)
        return sorted(zip(*(found.column(name).to_pylist() for name in found.column_names), strict=True))

    whole = counts()
    with patch.object(buckets, "COUNT_BATCH", 8):
        parts = counts()
        needed = needs(counts)
    assert len(whole) > 20
    for one, other in zip(whole, parts, strict=True):
        assert one == pytest.approx(other, rel=1e-12)
    # Of one match there are some buckets.
    assert sum(0 < need <= 80 * 2 * 40 for need in needed) > 20


def test_limits_are_looked_at_between_matches_that_have_many_buckets() -> None:
    """A match of 200 buckets counted as one step: a command went on for 3 s beyond its limit."""
    table = events(5, width=200)
    pattern = "PATTERN SEQ(A a, A b, A c) WITHIN 500"
    matches = uc.match(table, pattern).num_rows
    parts: list[int] = []

    def pieces_seen(costs: np.ndarray[Any, Any]) -> Iterator[slice]:
        for part in pieces(costs):
            parts.append(part.stop - part.start)
            yield part

    with (
        budget(500),
        patch.object(expected_counts, "MOST_COVERED_TICKS", 0),
        patch.object(expected_counts, "pieces", pieces_seen),
    ):
        uc.match(table, f"{pattern} RETURN EXPECTED COUNT EVERY 1")
    # Each has more buckets than a call has steps.
    assert parts == [1] * matches
