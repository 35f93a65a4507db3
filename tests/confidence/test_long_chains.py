"""Exact confidences of long patterns and long intervals, where cancellation and overflow would show."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence import exact_chain_confidence
from tests.cases.comparison import RELATIVE_ERROR
from tests.cases.naive import chain_mass, uniform_chain_mass
from uncertain_cep.testing.model import Event

_SEEDS = st.integers(0, 2**32 - 1)


def _confidence(events: list[Event], window: int) -> float | None:
    """Return the engine's confidence of the one match that is possible, None if there is none."""
    columns = {
        "type": [event.type for event in events],
        "id": [event.id for event in events],
        "lower": [event.lower for event in events],
        "upper": [event.upper for event in events],
    }
    table = pa.table(columns)
    if any(event.pmf is not None for event in events):
        pmfs = [None if event.pmf is None else [float(p) for p in event.pmf] for event in events]
        table = table.append_column("pmf", pa.array(pmfs, pa.list_(pa.float64())))
    pattern = ", ".join(f"{event.type} v{event.id}" for event in events)
    found = uc.match(table, f"PATTERN SEQ({pattern}) WITHIN {window}").column("confidence").to_pylist()
    assert len(found) <= 1
    return found[0] if found else None


def _chain(chance: random.Random, scale: int, most: int) -> list[Event]:
    """Return one event for each component, intervals of mixed length that overlap a lot."""
    events = []
    time = 0
    longest = chance.choice([5, 20, 100]) * scale
    for number in range(chance.randint(2, most)):
        time += chance.randint(0, max(1, longest // chance.choice([1, 3, 10])))
        length = chance.choice([1, chance.randint(1, longest), longest, longest])
        lower = time - chance.randint(0, length - 1)
        events.append(Event(f"T{number}", number, lower, lower + length - 1))
    return events


@given(_SEEDS)
def test_the_polynomial_sum_is_the_dynamic_program(seed: int) -> None:
    chance = random.Random(seed)
    events = _chain(chance, 1, 6)
    window = chance.randint(1, 150)
    row = chain_mass(events, window)
    exact = uniform_chain_mass([(event.lower, event.upper) for event in events], window)
    assert exact == (Fraction(0) if row is None else row.confidence)


@given(_SEEDS, st.sampled_from([1, 10**3, 10**6, 10**9]))
def test_uniform_intervals_of_any_length(seed: int, scale: int) -> None:
    chance = random.Random(seed)
    events = _chain(chance, scale, 10)
    window = chance.choice([len(events), 30, 100, 200, 10**4]) * chance.choice([1, scale])
    note(f"intervals={[(event.lower, event.upper) for event in events]}, window={window}")
    exact = uniform_chain_mass([(event.lower, event.upper) for event in events], window)
    found = _confidence(events, window)
    note(f"exact={float(exact)}, found={found}")
    # Below that a float64 has fewer digits.
    assume(exact == 0 or exact > Fraction(1, 10**290))
    assert (found is None) == (exact == 0)
    assert found is None or math.isclose(found, exact, rel_tol=RELATIVE_ERROR)


@given(_SEEDS)
def test_explicit_pmfs_under_any_window(seed: int) -> None:
    chance = random.Random(seed)
    events = []
    for event in _chain(chance, 1, 8):
        length = event.upper - event.lower + 1
        weights = [chance.choice([0, 0, 1, 2, 1000]) for _ in range(length)]
        pmf = tuple(Fraction(weight, sum(weights)) for weight in weights) if sum(weights) else None
        chosen = chance.choice([pmf, pmf, None])
        events.append(Event(event.type, event.id, event.lower, event.upper, chosen))
    window = chance.randint(len(events), 300)
    note(
        f"events={[(e.lower, e.upper, e.pmf and [float(p) for p in e.pmf]) for e in events]}, window={window}"
    )
    row = chain_mass(events, window)
    found = _confidence(events, window)
    assert (found is None) == (row is None)
    assert found is None or (row is not None and math.isclose(found, row.confidence, rel_tol=RELATIVE_ERROR))


@pytest.mark.parametrize(
    "intervals",
    [
        [(0, 10**7), (0, 10**7)],
        [(0, 10**7), (0, 10**7), (0, 10**7)],
        [(0, 10**7), (5, 10**7 - 9), (3, 10**7)],
    ],
)
def test_a_short_window_over_long_intervals_leaves_little_of_a_written_out_sum(
    intervals: list[tuple[int, int]],
) -> None:
    lower, upper = map(list, zip(*intervals, strict=True))
    types = "ABC"[: len(intervals)]
    table = pa.table({"type": list(types), "id": range(len(types)), "lower": lower, "upper": upper})
    pattern = ", ".join(f"{name} {name.lower()}" for name in types)
    found = uc.match(table, f"PATTERN SEQ({pattern}) WITHIN 10")["confidence"].to_pylist()
    assert found == pytest.approx([float(exact_chain_confidence(lower, upper, 10))], rel=1e-12)
