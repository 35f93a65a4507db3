"""Calls of compiled kernels that do not look at types: only where these are the ones that were compiled."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence.kernel import NEVER_COMPILED, always_compiled, direct, kernel, plain_for
from confidence.predicates.remainders import divisions_of, leave_remainders

WHOLE: Final = st.integers(-(2**63), 2**63 - 1)


def arguments(values: list[int], divisor: int, rest: int) -> tuple[Any, ...]:
    found = np.zeros((1, len(values)), dtype=np.bool_)
    return np.array(values, dtype=np.int64), divisions_of([(divisor, rest)]), found


@given(st.lists(WHOLE, max_size=20), st.integers(1, 2**63 - 1), st.data())
def test_the_answer_is_the_same(values: list[int], divisor: int, data: st.DataObject) -> None:
    rest = data.draw(st.integers(1 - min(divisor, 2**62), min(divisor, 2**62) - 1))
    *handed, found = arguments(values, divisor, rest)
    with always_compiled(), np.errstate(all="ignore"):
        leave_remainders(*handed, found)
        run = direct(leave_remainders, (*handed, found))
        again = np.zeros_like(found)
        run(*handed, again)
    assert NEVER_COMPILED or run is not leave_remainders
    remainders = [abs(value) % divisor * (1 if value > 0 else -1) for value in values]
    assert again.tolist() == found.tolist() == [[remainder == rest for remainder in remainders]]


@kernel
def _total(values: Any) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


@pytest.mark.skipif(NEVER_COMPILED, reason="kernels are Python functions")
def test_other_types_are_not_taken_for_those_that_were_compiled() -> None:
    whole, real = np.arange(5), np.arange(5) / 2.0
    fixed = real.view()
    fixed.flags.writeable = False
    assert direct(_total, (whole,)) is _total
    with plain_for(60.0):
        assert _total(whole) == 10.0
        assert direct(_total, (whole,)) is _total
    with always_compiled():
        assert _total(whole) == 10.0
    run = direct(_total, (whole,))
    assert run is not _total
    assert run(whole[1:3]) == 3.0
    others: list[Any] = [real, fixed, whole.astype(np.int32), whole[::2], whole.reshape(1, 5)]
    assert all(direct(_total, (other,)) is _total for other in others)
    with always_compiled():
        assert _total(real) == 5.0
    assert direct(_total, (real,))(real) == 5.0
    assert direct(_total, (whole,)) is run
    assert direct(_total, (fixed,)) is _total
