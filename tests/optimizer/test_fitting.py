"""The fit of the cost model's prices finds prices that costs were made with, and none below zero."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.fitting import fitted

PRICES = st.lists(st.floats(0.5, 500.0), min_size=2, max_size=7)


@given(PRICES, st.integers(0, 2**32 - 1))
def test_prices_are_found_again(prices: list[float], seed: int) -> None:
    steps = np.random.default_rng(seed).uniform(0.0, 1e6, (40, len(prices))) + 1.0
    assert np.allclose(fitted(steps, steps @ prices), prices, rtol=1e-6)


def test_a_kind_that_no_run_takes_has_no_price() -> None:
    steps = np.array([[1.0, 0.0], [3.0, 0.0], [5.0, 0.0]])
    assert fitted(steps, steps[:, 0] * 7.0).tolist() == [7.0, 0.0]


@given(st.integers(0, 2**32 - 1))
def test_no_price_is_negative(seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps = rng.uniform(0.0, 1e6, (12, 5)) + 1.0
    assert (fitted(steps, rng.uniform(1e3, 1e9, 12)) >= 0.0).all()
