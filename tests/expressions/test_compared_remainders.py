"""Remainders by a constant, told by a multiplication."""

from __future__ import annotations

from typing import Final
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.predicates import remainders as kernels
from confidence.predicates.remainders import division_of
from uncertain_cep import kernel_calls
from uncertain_cep.expressions import compared_remainders
from uncertain_cep.expressions.compared_remainders import ComparedRemainder, by_kernel
from uncertain_cep.query.typed import Column

_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
_PLAIN = getattr(kernels.leave_remainder, "py_func", kernels.leave_remainder)
_DIVISORS = st.one_of(
    st.integers(1, 12),
    st.integers(0, 62).map(lambda bits: 2**bits),
    st.tuples(st.integers(0, 61), st.sampled_from([3, 5, 7, 11])).map(lambda part: part[1] << part[0]),
    st.sampled_from([_MOST, _MOST - 1, 2**62 + 1, 2**62 + 2]),
    st.integers(1, _MOST),
).map(lambda divisor: min(divisor, _MOST))


@st.composite
def _near_multiples(draw: st.DrawFn, divisor: int) -> int:
    most = _MOST // divisor
    multiple = draw(st.one_of(st.integers(-3, 3), st.sampled_from([most, -most]), st.integers(-most, most)))
    return max(_LEAST, min(_MOST, multiple * divisor + draw(st.integers(-3, 3))))


def _remainder(value: int, divisor: int) -> int:
    """Return a remainder with the sign of the dividend, by whole numbers of any size."""
    rest = abs(value) % abs(divisor)
    return -rest if value < 0 else rest


@given(st.data(), _DIVISORS, st.sampled_from([_PLAIN, kernels.leave_remainder]))
def test_remainders_are_told_without_a_division(data: st.DataObject, divisor: int, kernel: object) -> None:
    edges = st.sampled_from([_LEAST, _LEAST + 1, -1, 0, 1, _MOST - 1, _MOST])
    values = data.draw(st.lists(st.one_of(_near_multiples(divisor), edges), max_size=12))
    near = st.sampled_from([0, 1, -1, divisor - 1, 1 - divisor, divisor // 2])
    remainder = data.draw(
        st.one_of(near, st.sampled_from([_remainder(value, divisor) for value in values] or [0]))
    )
    division = division_of(divisor, remainder)
    assert (division is None) == (abs(remainder) >= divisor)
    if division is not None:
        found = np.ones(len(values), dtype=np.bool_)
        with np.errstate(over="ignore"):
            kernel(np.array(values, dtype=np.int64), division, found)  # type: ignore[operator]
        assert found.tolist() == [_remainder(value, divisor) == remainder for value in values]


@given(st.integers(), st.integers(1, _MOST))
def test_no_number_leaves_as_much_as_it_is_divided_by(remainder: int, divisor: int) -> None:
    found = division_of(divisor, remainder)
    assert (found is None) == (remainder not in range(1 - divisor, divisor))


_NUMBERS = st.none() | st.sampled_from([_LEAST, _LEAST + 1, _MOST]) | st.integers(-9, 9)
_CONDITIONS = st.tuples(
    st.sampled_from(["{x} % {c} {sign} {r}", "{r} {sign} {x} % {c}", "NOT {x} % {c} {sign} {r}"]),
    st.sampled_from(["a.x", "(a.x - a.y)", "a.y"]),
    st.sampled_from([1, 2, 3, 4, 6, -1, -2, -3, 0, 2**63 - 1, -(2**63)]),
    st.sampled_from(["=", "!="]),
    st.sampled_from([0, 1, -1, 2, -2, 3, 7, 2**63 - 1, 1.0, 0.5]),
)  # fmt: skip


@given(st.lists(st.tuples(_NUMBERS, _NUMBERS), min_size=1, max_size=9), _CONDITIONS, st.booleans())
def test_matches_are_the_same_by_the_kernel(
    rows: list[tuple[int | None, int | None]],
    condition: tuple[str, str, int, str, float],
    is_plain: bool,
) -> None:
    pattern, x, divisor, sign, remainder = condition
    where = pattern.format(x=x, c="$c", sign=sign, r="$r")
    first, second = zip(*rows, strict=True)
    events = pa.table(
        {"type": ["A"] * len(rows), "id": range(len(rows)), "lower": [0] * len(rows),
         "upper": [1] * len(rows), "x": pa.array(first, pa.int64()), "y": pa.array(second, pa.int64())}
    )  # fmt: skip
    query, parameters = f"PATTERN SEQ(A a, A b) WHERE {where} WITHIN 2", {"c": divisor, "r": remainder}
    expected = uc.match(events, query, parameters=parameters)
    kernel = _PLAIN if is_plain else kernels.leave_remainder
    with (
        mock.patch.object(kernel_calls, "compiles_now", return_value=True),
        mock.patch.object(kernel_calls, "WORTH_A_KERNEL", 0),
        mock.patch.object(compared_remainders, "leave_remainder", kernel),
        np.errstate(over="ignore"),
    ):
        assert uc.match(events, query, parameters=parameters).equals(expected)


@pytest.mark.parametrize(("rows", "loaded", "called"), [(8, True, 1), (7, True, 0), (8, False, 0)])
def test_of_many_rows_the_kernel_tells(rows: int, loaded: bool, called: int) -> None:
    compared = ComparedRemainder(Column("a", "x", "int"), 3, 1)
    values = np.arange(rows)
    with (
        mock.patch.object(kernel_calls, "compiles_now", return_value=loaded),
        mock.patch.object(kernel_calls, "WORTH_A_KERNEL", 8),
        mock.patch.object(compared_remainders, "leave_remainder", wraps=_PLAIN) as kernel,
        np.errstate(over="ignore"),
    ):
        found = by_kernel(values, compared)
        assert by_kernel(np.int64(4), compared) is None
    assert kernel.call_count == called
    assert (None if found is None else found.tolist()) == ((values % 3 == 1).tolist() if called else None)
