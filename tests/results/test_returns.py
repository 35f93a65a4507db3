"""RETURN of Kleene variables: lists, single elements, aggregates."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.language import LanguageCase, language_cases

Element = dict[str, Any]
RETURNED: dict[str, Callable[[list[Element]], Any]] = {
    "{c}[1].x": lambda found: found[0]["x"],
    "{c}[{c}.LEN].s": lambda found: found[-1]["s"],
    "{c}[{c}.LEN].x - {c}[1].x": lambda found: _less(found[-1]["x"], found[0]["x"]),
    "count({c}[])": len,
    "count({c}[].x)": lambda found: len(_present(found, "x")),
    "sum({c}[].x)": lambda found: sum(_present(found, "x")) if _present(found, "x") else None,
    "sum({c}[].y)": lambda found: sum(_present(found, "y")) if _present(found, "y") else None,
    "avg({c}[].x)": lambda found: _mean(_present(found, "x")),
    "avg({c}[].y) + count({c}[])": lambda found: _plus(_mean(_present(found, "y")), len(found)),
    "min({c}[].x)": lambda found: min(_present(found, "x"), default=None),
    "max({c}[].y)": lambda found: max(_present(found, "y"), default=None),
    "min({c}[].s)": lambda found: min(_present(found, "s"), default=None),
    "max({c}[].s)": lambda found: max(_present(found, "s"), default=None),
    "max({c}[].x) * 2": lambda found: _times_two(max(_present(found, "x"), default=None)),
}


def _present(found: list[Element], name: str) -> list[Any]:
    return [element[name] for element in found if element[name] is not None]


def _less(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one - other


def _plus(one: Any, other: Any) -> Any:
    return None if one is None else one + other


def _times_two(value: Any) -> Any:
    return None if value is None else 2 * value


def _mean(values: list[Any]) -> Any:
    return sum(values) / len(values) if values else None


@given(
    language_cases(),
    st.lists(st.sampled_from(sorted(RETURNED)), min_size=1, max_size=4, unique=True),
    st.data(),
)
def test_returned_values_are_those_of_the_elements(
    case: LanguageCase, chosen: list[str], data: st.DataObject
) -> None:
    kleene = [component.variable for component in case.components if component.kleene]
    if not kleene:
        return
    variable = data.draw(st.sampled_from(kleene))
    table = case.trace.table()
    size = table.num_rows
    texts = data.draw(st.lists(st.sampled_from(["u", "v", "it's", "", None]), min_size=size, max_size=size))
    reals = data.draw(st.lists(st.sampled_from([0.5, -1.25, 3.0, None]), min_size=size, max_size=size))
    table = table.append_column("s", pa.array(texts, pa.string()))
    table = table.append_column("y", pa.array(reals, pa.float32()))
    returns = ", ".join(f"{text.format(c=variable)} AS r{n}" for n, text in enumerate(chosen))
    text = case.text(f"RETURN {variable}, {variable} AS again, {returns}")
    note(text)
    by_id = {
        (record["k"] if case.query().partition else None, record["id"]): record
        for record in table.to_pylist()
    }
    for row in uc.match(table, text).to_pylist():
        partition = row["k"] if case.query().partition else None
        elements = [by_id[partition, id] for id in row[variable]]
        assert row["again"] == row[variable]
        for n, written in enumerate(chosen):
            expected = RETURNED[written](elements)
            got = row[f"r{n}"]
            assert got == expected or math.isclose(got, expected, rel_tol=1e-12), written


def test_types_of_what_is_returned() -> None:
    table = pa.table(
        {
            "type": ["A", "A"],
            "id": pa.array(["p", "q"]),
            "lower": pa.array([1, 3], pa.timestamp("s", "UTC")),
            "upper": pa.array([2, 4], pa.timestamp("s", "UTC")),
            "x": pa.array([2**62, 2**62], pa.int64()),
            "small": pa.array([1, 2], pa.int8()),
            "day": pa.array([10, 20], pa.date32()),
        }
    )
    query = (
        "PATTERN SEQ(A+ a[]) WHERE count(a[]) = 2 WITHIN 10 seconds RETURN max(a[].small) AS small, "
        "min(a[].day) AS day, min(a[].lower) AS lower, sum(a[].small) AS total, avg(a[].small) AS mean"
    )
    result = uc.match(table, query)
    assert result.schema.field("a").type == pa.list_(pa.string())
    assert result.schema.field("small").type == pa.int8()
    assert result.schema.field("day").type == pa.date32()
    assert result.schema.field("lower").type == pa.timestamp("s", "UTC")
    (row,) = result.to_pylist()
    assert row["a"] == ["p", "q"]
    assert (row["small"], row["total"], row["mean"]) == (2, 3, 1.5)
    beyond = uc.match(table, "PATTERN SEQ(A+ a[]) WITHIN 10 seconds RETURN sum(a[].x) AS total")
    assert sorted(beyond["total"].to_pylist()) == [2.0**62, 2.0**62, 2.0**63]


# The sum as an int64 wraps around on purpose; the one in float64 stands for it.
@pytest.mark.filterwarnings("ignore:overflow encountered in scalar add:RuntimeWarning")
def test_a_sum_beyond_int64_is_compared_as_a_float() -> None:
    table = pa.table(
        {"type": ["A", "A"], "id": [1, 2], "lower": [1, 3], "upper": [1, 3], "x": pa.array([2**62, 2**62])}
    )
    result = uc.match(table, "PATTERN SEQ(A+ a[]) WHERE sum(a[].x) > 9e18 WITHIN 10")
    assert [row["a"] for row in result.to_pylist()] == [[1, 2]]


@pytest.mark.parametrize(
    ("percent", "decimal"), [("95%", "0.95"), ("15%", "0.15"), ("7%", "0.07"), ("0.5%", "0.005")]
)
def test_a_percentage_is_the_decimal_number(percent: str, decimal: str) -> None:
    """ROUND goes away from 0 where two numbers are as near: of 0.95, to one digit, to 1."""
    events = pa.table({"type": ["A"], "id": [1], "lower": [0], "upper": [0]})
    returned = f"{percent} AS p, ROUND({percent}, 1) AS r, ROUND({decimal}, 1) AS s"
    query = f"PATTERN SEQ(A a) WITHIN 9 RETURN {returned}"
    (row,) = uc.match(events, query).to_pylist()
    assert row["p"] == float(decimal)
    assert row["r"] == row["s"]
    expected = Decimal(decimal).quantize(Decimal("0.1"), ROUND_HALF_UP)
    assert row["r"] == float(expected)


@pytest.mark.parametrize("upper", [2, 4])
def test_a_confidence_that_is_not_shown_takes_no_column(upper: int) -> None:
    """It was returned in place of an id of another name, where HAVING asks for it."""
    events = pa.table({"type": ["A", "B"], "id": [17, 18], "lower": [0, 3], "upper": [upper, 9]})
    query = "PATTERN SEQ(A a, B b) WITHIN 20 HAVING CONFIDENCE >= 0.1 RETURN a AS first"
    (row,) = uc.match(events, query, confidence=False).to_pylist()
    assert row == {"a": 17, "b": 18, "first": 17, "range_lower": 0, "range_upper": 9}
