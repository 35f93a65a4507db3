"""Whole numbers at the edges of 64 bits: exact where they fit, float64 where one does not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import sampled_from

_EDGES = [
    value
    for edge in (0, 2**31, 2**53, 2**62, 2**63)
    for sign in (-1, 1)
    for shift in (-2, -1, 0, 1, 2)
    if -(2**63) <= (value := sign * edge + shift) < 2**63
]


@st.composite
def _expressions(draw: st.DrawFn, depth: int = 2) -> tuple[str, Any]:
    """Draw an expression of ``a.g`` and ``b.g``, and what works it out; None is null."""
    if not depth or not draw(st.integers(0, 3)):
        name = draw(sampled_from(["a", "b", "constant"]))
        if name == "constant":
            value = draw(st.sampled_from([value for value in _EDGES if value >= 0]))
            return str(value), lambda a, b: value
        return f"{name}.g", (lambda a, b: a) if name == "a" else (lambda a, b: b)
    operator = draw(sampled_from(["+", "-", "*", "%", "negate", "ABS"]))
    text, one = draw(_expressions(depth - 1))
    if operator == "negate":
        return f"-({text})", lambda a, b: None if one(a, b) is None else -one(a, b)
    if operator == "ABS":
        return f"ABS({text})", lambda a, b: None if one(a, b) is None else abs(one(a, b))
    other_text, other = draw(_expressions(depth - 1))

    def value_of(a: Any, b: Any) -> Any:
        x, y = one(a, b), other(a, b)
        if x is None or y is None:
            return None
        if operator == "%":
            rest = None if y == 0 else abs(x) % abs(y)
            return -rest if rest is not None and x < 0 else rest
        return x + y if operator == "+" else x - y if operator == "-" else x * y

    return f"({text}) {operator} ({other_text})", value_of


def _events(pairs: list[tuple[int, int]]) -> pa.Table:
    values = [value for pair in pairs for value in pair]
    times = list(range(0, 10 * len(values), 10))
    return pa.table(
        {"type": ["A", "B"] * len(pairs), "id": list(range(len(values))), "lower": times, "upper": times,
         "g": pa.array(values, pa.int64())}
    )  # fmt: skip


@given(
    _expressions(),
    st.lists(st.tuples(st.sampled_from(_EDGES), st.sampled_from(_EDGES)), min_size=1, max_size=3),
    st.sampled_from(["", " ORDER BY CONFIDENCE DESC LIMIT 9", " ORDER BY r"]),
    st.sampled_from(["auto", "point"]),
)
def test_returned_whole_numbers_are_pythons(
    drawn: tuple[str, Any], pairs: list[tuple[int, int]], order: str, evaluation: str
) -> None:
    text, value_of = drawn
    note(text)
    query = f"PATTERN SEQ(A a, B b) WITHIN 11 RETURN {text} AS r{order}"
    found = uc.match(_events(pairs), query, evaluation=evaluation)
    expected = {2 * place: value_of(*pair) for place, pair in enumerate(pairs)}
    have = dict(zip(found["a"].to_pylist(), found["r"].to_pylist(), strict=True))
    if all(value is None or -(2**63) <= value < 2**63 for value in expected.values()):
        assert found["r"].type in (pa.int64(), pa.null())
        assert have == expected
    else:
        assert have == {key: None if value is None else float(value) for key, value in expected.items()}


@pytest.mark.parametrize(
    ("g", "condition", "holds"),
    [
        (-(2**63), "-a.g > 0", True),
        (-(2**63), "ABS(a.g) > 0", True),
        (2**63 - 1, "a.g + 1 > 0", True),
        (2**63 - 1, "a.g * 2 < 0", False),
        (-(2**63), "-a.g - b.g > 0", True),
    ],
)
@pytest.mark.parametrize("evaluation", ["auto", "any_state", "point"])
def test_conditions_never_wrap_around(g: int, condition: str, holds: bool, evaluation: str) -> None:
    query = f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 11"
    assert uc.match(_events([(g, 1)]), query, evaluation=evaluation).num_rows == holds
    matcher = uc.IncrementalMatcher(query, _events([(g, 1)]).schema)
    batches = [matcher.push(_events([(g, 1)])), matcher.close()]
    assert sum(batch.num_rows for batch in batches) == holds


def test_bounds_of_times_are_exact_products() -> None:
    """Over the whole column a product could have more than 64 bits; of these events it has not."""
    events = _events([(2**53 + 1, 1)]).set_column(2, "lower", pa.array([0, 2**53 + 1]))
    events = events.set_column(3, "upper", pa.array([0, 2**53 + 1]))
    for relation, rows in (("=", 1), ("<=", 1), ("<", 0), (">", 0)):
        query = f"PATTERN SEQ(A a, B b) WHERE TIME(b) - TIME(a) {relation} a.g * b.g WITHIN {2**54}"
        assert uc.match(events, query).num_rows == rows, relation


def test_where_types_are_promised_a_number_of_more_bits_is_an_error() -> None:
    events = _events([(2**63 - 1, 1)])
    query = "PATTERN SEQ(A a, B b) WITHIN 11 RETURN a.g + 1 AS r"
    with pytest.raises(uc.TraceError, match=r"beyond 64 bits.*AS DOUBLE"):
        list(uc.iter_matches(events, query))
    (row,) = list(uc.iter_matches(events, query.replace("a.g + 1", "CAST(a.g AS DOUBLE) + 1")))
    assert row["r"].to_pylist() == [2.0**63]


def test_branches_and_null_rows() -> None:
    events = _events([(2**63 - 1, 1), (5, 1)])
    query = "PATTERN OR(SEQ(A a, B b), SEQ(B c, A d)) WITHIN 11 RETURN a.g + 1 AS r ORDER BY a"
    assert uc.match(events, query)["r"].to_pylist() == [2.0**63, 6.0, None]
