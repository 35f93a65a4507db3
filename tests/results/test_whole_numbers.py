"""Whole numbers at the edges of 64 bits: exact where they fit, float64 where one does not, row by row."""

from __future__ import annotations

import functools
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note, settings
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
    sign = draw(sampled_from(["+", "-", "*", "%", *_CALLS]))
    count = 1 if sign in ("negate", "ABS") else 3 if sign == "CASE" else 2
    texts, parts = zip(*(draw(_expressions(depth - 1)) for _ in range(count)), strict=True)
    text = _CALLS.get(sign, "({}) " + sign + " ({})").format(*texts)
    return text, lambda a, b: _worked_out(sign, [part(a, b) for part in parts])


_CALLS = {
    "negate": "-({})", "ABS": "ABS({})", "CASE": "CASE WHEN {} > 0 THEN {} ELSE {} END",
    "COALESCE": "COALESCE(NULLIF({}, 1), {})", "LEAST": "LEAST({}, {})",
}  # fmt: skip


def _worked_out(sign: str, parts: list[Any]) -> Any:
    """Return an operation on whole numbers: with floats if one is, or if the result has more than 64 bits."""
    if sign == "CASE":
        return parts[1] if parts[0] is not None and parts[0] > 0 else parts[2]
    if sign == "COALESCE":
        return parts[0] if parts[0] not in (None, 1) else parts[1]
    if sign == "LEAST":
        return min((part for part in parts if part is not None), key=_order, default=None)
    if None in parts:
        return None
    if not any(isinstance(part, float) for part in parts):
        result = _operation(sign, parts)
        if result is None or -(2**63) <= result < 2**63:
            return result
    result = _operation(sign, list(map(float, parts)))
    return None if result is None or result != result else result


def _operation(sign: str, parts: list[Any]) -> Any:
    x, y = parts[0], parts[-1]
    if sign == "%":
        if y == 0:
            return None
        if isinstance(x, float):
            return math.fmod(x, y) if math.isfinite(x) else math.nan
        return (abs(x) % abs(y)) * (-1 if x < 0 else 1)
    if sign in ("negate", "ABS"):
        return -x if sign == "negate" else abs(x)
    return x + y if sign == "+" else x - y if sign == "-" else x * y


@functools.cmp_to_key
def _order(x: Any, y: Any) -> int:
    """Compare as the language does: whole numbers exactly, others as float64."""
    return _holds("<", y, x) - _holds("<", x, y)


def _holds(relation: str, x: Any, y: Any) -> bool:
    if x is None or y is None:
        return False
    if isinstance(x, float) or isinstance(y, float):
        x, y = float(x), float(y)
    return bool({"<": x < y, "<=": x <= y, "=": x == y, "<>": x != y}[relation])


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
def test_returned_whole_numbers_are_exact_where_they_fit(
    drawn: tuple[str, Any], pairs: list[tuple[int, int]], order: str, evaluation: str
) -> None:
    text, value_of = drawn
    note(text)
    query = f"PATTERN SEQ(A a, B b) WITHIN 11 RETURN {text} AS r{order}"
    found = uc.match(_events(pairs), query, evaluation=evaluation)
    expected = {2 * place: value_of(*pair) for place, pair in enumerate(pairs)}
    have = dict(zip(found["a"].to_pylist(), found["r"].to_pylist(), strict=True))
    if not any(isinstance(value, float) for value in expected.values()):
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


_RELATIONS = ["<", "<=", "=", "<>"]
_PAIRS = st.lists(st.tuples(st.sampled_from(_EDGES), st.sampled_from(_EDGES)), min_size=1, max_size=3)


@given(_expressions(), _expressions(), sampled_from(_RELATIONS), _PAIRS, st.booleans())
@settings(max_examples=60)
def test_conditions_depend_on_their_own_row_alone(
    left: tuple[str, Any],
    right: tuple[str, Any],
    relation: str,
    pairs: list[tuple[int, int]],
    is_negated: bool,
) -> None:
    """Every method, streams of one event at a time, and HAVING keep the matches that Python's numbers do."""
    condition = f"{left[0]} {relation} {right[0]}"
    if is_negated:
        condition = f"NOT ({condition})"
    note(condition)
    events = _events(pairs)
    expected = []
    for place, pair in enumerate(pairs):
        x, y = left[1](*pair), right[1](*pair)
        if None not in (x, y) and _holds(relation, x, y) != is_negated:
            expected.append(2 * place)
    query = f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 11"
    for evaluation in ("auto", "any_state", "selectivity", "point"):
        assert sorted(uc.match(events, query, evaluation=evaluation)["a"].to_pylist()) == expected, evaluation
    kleene = f"PATTERN SEQ(A a, B+ b[]) WHERE {condition.replace('b.g', 'b[i].g')} WITHIN 11"
    for evaluation in ("auto", "point"):
        starts = uc.match(events, kleene, evaluation=evaluation)["a"].to_pylist()
        assert sorted(starts) == expected, evaluation
    matcher = uc.IncrementalMatcher(query, events.schema)
    parts = [matcher.push(events.slice(n, 1)) for n in range(events.num_rows)]
    assert [a for part in (*parts, matcher.close()) for a in part["a"].to_pylist()] == expected
    sign = "NOT " if is_negated else ""
    returned = f"RETURN {left[0]} AS x, {right[0]} AS y"
    having = f"PATTERN SEQ(A a, B b) WITHIN 11 HAVING {sign}x {relation} y {returned}"
    assert sorted(uc.match(events, having)["a"].to_pylist()) == expected
    assert sorted(uc.match(events, having, evaluation="point")["a"].to_pylist()) == expected
    alone = (uc.match(events.slice(2 * n, 2), having)["a"].to_pylist() for n in range(len(pairs)))
    assert [a for ids in alone for a in ids] == expected


@given(_expressions(), _expressions(), sampled_from(_RELATIONS), _PAIRS)
def test_conditions_on_one_event(
    left: tuple[str, Any], right: tuple[str, Any], relation: str, pairs: list[tuple[int, int]]
) -> None:
    condition = f"{left[0]} {relation} {right[0]}".replace("b.g", "a.h")
    note(condition)
    events = _events(pairs)
    events = events.append_column("h", pa.array([pair[1] for pair in pairs for _ in pair], pa.int64()))
    expected = [
        2 * place for place, pair in enumerate(pairs) if _holds(relation, left[1](*pair), right[1](*pair))
    ]
    query = f"PATTERN SEQ(A a) WHERE {condition} WITHIN 11"
    assert uc.match(events, query)["a"].to_pylist() == expected
    matcher = uc.IncrementalMatcher(query, events.schema)
    parts = [matcher.push(event) for event in events.to_pylist()]
    assert [a for part in (*parts, matcher.close()) for a in part["a"].to_pylist()] == expected


@given(
    st.lists(st.sampled_from(_EDGES), min_size=1, max_size=5),
    st.sampled_from(_EDGES),
    sampled_from(_RELATIONS),
)
def test_sums_are_exact_where_they_fit(values: list[int], other: int, relation: str) -> None:
    size = len(values) + 1
    events = pa.table(
        {"type": ["A"] + ["B"] * len(values), "id": list(range(size)), "lower": list(range(size)),
         "upper": list(range(size)), "g": pa.array([other, *values], pa.int64())}
    )  # fmt: skip
    total: Any = sum(values)
    if not -(2**63) <= total < 2**63:
        total = float(total)
    all_of_them = f"COUNT(b[]) = {len(values)}"
    text = f"PATTERN SEQ(A a, B+ b[]) WHERE {all_of_them} AND SUM(b[].g) {relation} a.g WITHIN 99"
    for evaluation in ("auto", "point"):
        count = uc.match(events, text, evaluation=evaluation).num_rows
        assert count == _holds(relation, total, other), evaluation
    returned = "RETURN SUM(b[].g) AS s, SUM(b[].g) - a.g AS d"
    text = f"PATTERN SEQ(A a, B+ b[]) WHERE {all_of_them} WITHIN 99 {returned}"
    (row,) = uc.match(events, text).to_pylist()
    assert (row["s"], type(row["s"])) == (total, type(total))
    difference = _worked_out("-", [total, other])
    assert (row["d"], type(row["d"])) == (difference, type(difference))


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
