"""Choices that must not matter to the probabilities of groups: absorption, the variable held first."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence.groups import counting, holding, weigh_groups
from confidence.kernel import _plain_names, plain_for
from tests.cases.groups import Matches, arrays_of, groups
from tests.cases.kernels import running
from tests.cases.sampling import FEWER

MOST_STEPS = 10**7


@FEWER
@given(groups(), st.integers(1, 2), st.integers(0, 2**32))
def test_neither_absorption_nor_the_order_of_holding_matters(
    group: Matches, at_least: int, seed: int
) -> None:
    arrays = arrays_of([group])
    draw = random.Random(seed)
    usual = weigh_groups(arrays, at_least, MOST_STEPS)
    with running("plain"), plain_for(1e9), pytest.MonkeyPatch.context() as patch:
        patch.setitem(_plain_names(counting.__name__), "absorb", lambda *_: None)
        all_kept = weigh_groups(arrays, at_least, MOST_STEPS)
        patch.setitem(_plain_names(holding.__name__), "_is_better", lambda *_: draw.random() < 0.5)
        in_any_order = weigh_groups(arrays, at_least, MOST_STEPS)
    for weighed in (all_kept, in_any_order):
        assert weighed.is_exact.all()
        np.testing.assert_allclose(weighed.probability, usual.probability, rtol=1e-10, atol=1e-300)
