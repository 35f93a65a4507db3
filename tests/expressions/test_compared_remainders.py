"""Remainders by a constant, told by a multiplication."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.predicates import remainders as kernels
from confidence.predicates.remainders import divisions_of
from uncertain_cep.expressions import compared_remainders, kernel_calls, vectorised
from uncertain_cep.expressions.compared_remainders import ComparedRemainder, by_kernel
from uncertain_cep.expressions.vectorised import evaluate_mask, evaluate_masks
from uncertain_cep.plan import make_plan
from uncertain_cep.query.parameters import values_of, with_values
from uncertain_cep.query.typed import Column

_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
_PLAIN = getattr(kernels.leave_remainders, "py_func", kernels.leave_remainders)
_DIVISORS = st.one_of(
    st.integers(1, 12),
    st.integers(0, 62).map(lambda bits: 2**bits),
    st.tuples(st.integers(0, 61), st.sampled_from([3, 5, 7, 11])).map(lambda part: part[1] << part[0]),
    st.sampled_from([_MOST, _MOST - 1, 2**62 + 1, 2**62 + 2]),
    st.integers(1, _MOST),
).map(lambda divisor: min(divisor, _MOST))


@st.composite
def _near_multiples(draw: st.DrawFn, divisor: int) -> int:
    largest_multiple = _MOST // divisor
    multiple = draw(
        st.one_of(
            st.integers(-3, 3),
            st.sampled_from([largest_multiple, -largest_multiple]),
            st.integers(-largest_multiple, largest_multiple),
        )
    )
    return max(_LEAST, min(_MOST, multiple * divisor + draw(st.integers(-3, 3))))


def _remainder(value: int, divisor: int) -> int:
    """Return a remainder with the sign of the dividend, by whole numbers of any size."""
    remainder = abs(value) % abs(divisor)
    return -remainder if value < 0 else remainder


@st.composite
def _wanted(draw: st.DrawFn, values: list[int], divisors: list[int]) -> list[tuple[int, int]]:
    """Return a remainder for each divisor, most of them such that some number leaves it, or just does not."""
    pairs = []
    for divisor in divisors:
        near = st.sampled_from([0, 1, -1, divisor - 1, 1 - divisor, divisor // 2, divisor, -divisor])
        left = st.sampled_from([_remainder(value, divisor) for value in values] or [0])
        pairs.append((divisor, draw(st.one_of(near, left))))
    return pairs


@given(
    st.data(),
    st.lists(_DIVISORS, max_size=4),
    st.sampled_from([_PLAIN, kernels.leave_remainders]),
    st.integers(1, 5),
)
def test_remainders_are_told_without_a_division(
    data: st.DataObject, divisors: list[int], kernel: Any, block: int
) -> None:
    edges = st.sampled_from([_LEAST, _LEAST + 1, -1, 0, 1, _MOST - 1, _MOST])
    near = [_near_multiples(divisor) for divisor in divisors]
    values = data.draw(st.lists(st.one_of(edges, *near), max_size=12))
    pairs = data.draw(_wanted(values, divisors))
    masks = np.ones((len(pairs), len(values)), dtype=np.bool_)
    with np.errstate(over="ignore"), mock.patch.object(kernels, "_BLOCK", block):
        kernel(np.array(values, dtype=np.int64), divisions_of(pairs), masks)
    assert masks.tolist() == [
        [_remainder(value, divisor) == remainder for value in values] for divisor, remainder in pairs
    ]


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
    query, parameters = f"PATTERN SEQ(A a, A b) WHERE {where} WITHIN 2", {"c": divisor, "r": remainder}
    events = _events(rows)
    expected = uc.match(events, query, parameters=parameters)
    with _told_by(_PLAIN if is_plain else kernels.leave_remainders):
        assert uc.match(events, query, parameters=parameters).equals(expected)


def _events(rows: list[tuple[int | None, int | None]]) -> pa.Table:
    first, second = zip(*rows, strict=True)
    return pa.table(
        {"type": ["A"] * len(rows), "id": range(len(rows)), "lower": [0] * len(rows),
         "upper": [1] * len(rows), "x": pa.array(first, pa.int64()), "y": pa.array(second, pa.int64())}
    )  # fmt: skip


@contextmanager
def _told_by(kernel: Any) -> Iterator[Any]:
    """Have a kernel tell remainders of however few numbers."""
    with (
        mock.patch.object(kernel_calls, "compiles_now", return_value=True),
        mock.patch.object(kernel_calls, "WORTH_A_KERNEL", 0),
        mock.patch.object(compared_remainders, "leave_remainders", wraps=kernel) as kernel_spy,
        np.errstate(over="ignore"),
    ):
        yield kernel_spy


@given(
    st.lists(st.tuples(_NUMBERS, _NUMBERS), min_size=1, max_size=9),
    st.lists(_CONDITIONS, max_size=5),
    st.integers(1, 9),
    st.data(),
)
def test_conditions_that_are_looked_at_together(
    rows: list[tuple[int | None, int | None]],
    conditions: list[tuple[str, str, int, str, float]],
    at_once: int,
    data: st.DataObject,
) -> None:
    """Each holds where it holds by itself, of all rows and of some, in one piece and in several."""
    events = _events(rows)
    parts, parameters = ["a.x = a.x"], dict[str, float]()
    for number, (pattern, x, divisor, sign, remainder) in enumerate(conditions):
        parts.append(pattern.format(x=x, c=f"$c{number}", sign=sign, r=f"$r{number}"))
        parameters |= {f"c{number}": divisor, f"r{number}": remainder}
    query = with_values(
        uc.parse(f"PATTERN SEQ(A a, A b) WHERE {' AND '.join(parts)} WITHIN 2"), values_of(parameters)
    )
    local = make_plan(query, events.schema).components[0].local
    begin = data.draw(st.integers(0, len(rows)))
    among = slice(begin, data.draw(st.integers(begin, len(rows))))
    expected = [evaluate_mask(condition, events)[among].tolist() for condition in local]
    with _told_by(_PLAIN), mock.patch.object(vectorised, "EXPRESSION_ROWS", at_once):
        masks = evaluate_masks(local, events, among=among)
    assert [mask.tolist() for mask in masks] == expected


def test_remainders_of_a_column_are_found_together() -> None:
    events = _events([(value, value + 1) for value in range(60)])
    plan = make_plan(
        uc.parse("PATTERN SEQ(A a, A b) WHERE a.x % 3 = 1 AND b.x % 5 != 0 AND b.y % 7 = 2 WITHIN 2"),
        events.schema,
    )
    with _told_by(_PLAIN) as kernel_spy:
        masks = evaluate_masks([rule for part in plan.components for rule in part.local], events)
    value = np.arange(60)
    expected = [value % 3 == 1, value % 5 != 0, (value + 1) % 7 == 2]
    assert [mask.tolist() for mask in masks] == [mask.tolist() for mask in expected]
    assert [call.args[2].shape for call in kernel_spy.call_args_list] == [(2, 60), (1, 60)]


@pytest.mark.parametrize(("rows", "loaded", "called"), [(8, True, 1), (7, True, 0), (8, False, 0)])
def test_of_many_rows_the_kernel_tells(rows: int, loaded: bool, called: int) -> None:
    compared = ComparedRemainder(Column("a", "x", "int"), 3, 1)
    values = np.arange(rows)
    with (
        mock.patch.object(kernel_calls, "compiles_now", return_value=loaded),
        mock.patch.object(kernel_calls, "WORTH_A_KERNEL", 8),
        mock.patch.object(compared_remainders, "leave_remainders", wraps=_PLAIN) as kernel,
        np.errstate(over="ignore"),
    ):
        masks = by_kernel(values, [compared])
        assert by_kernel(np.int64(4), [compared]) is None
    assert kernel.call_count == called
    assert (None if masks is None else masks.tolist()) == ([(values % 3 == 1).tolist()] if called else None)
