"""HAVING and ORDER BY over any column of the result choose among the oracle's matches, and order them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cmp_to_key
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.language import LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases
from tests.oracle.outputs import is_clear, non_overlapping, significant
from uncertain_cep.plan import make_plan
from uncertain_cep.plan.result_columns import least_confidence
from uncertain_cep.testing.model import Match

_CASES = st.one_of(language_cases(), nested_cases("AAS"), nested_cases("OAS"))
_AnyCase = LanguageCase | NestedCase
_Columns: TypeAlias = dict[str, Any]
_Test = Callable[[_Columns], bool | None]

_TOLERANCE = Fraction(1, 10**9)
_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda x, y: x == y, "!=": lambda x, y: x != y, "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y, ">": lambda x, y: x > y, ">=": lambda x, y: x >= y,
}  # fmt: skip


def _columns(match: Match, schema: pa.Schema) -> _Columns:
    found: _Columns = {"range_lower": match.range_lower, "range_upper": match.range_upper}
    found["confidence"] = match.confidence
    for name in schema.names:
        entry = dict(match.signature).get(name)
        if name not in found:
            found[name] = list(entry) if isinstance(entry, tuple) else entry
    return found


def _compared(name: str, sign: str, bound: Any) -> _Test:
    def test(row: _Columns) -> bool | None:
        value = row[name]
        if value is None:
            return None
        if name != "confidence":
            return _SIGNS[sign](value, bound)
        # What equals the bound up to rounding is equal to it.
        equal = abs(value - Fraction(bound)) <= Fraction(bound) * _TOLERANCE
        return sign in ("=", "<=", ">=") if equal else _SIGNS[sign](value, Fraction(bound))

    return test


@st.composite
def _conditions(
    draw: st.DrawFn, schema: pa.Schema, matches: list[Match], depth: int = 2
) -> tuple[str, _Test]:
    kind = draw(st.sampled_from(["and", "or", "not", "atom"] if depth else ["atom"]))
    if kind == "atom":
        numbers = [name for name in schema.names if pa.types.is_integer(schema.field(name).type)]
        name = draw(st.sampled_from(["confidence", "confidence", *numbers]))
        sign = draw(st.sampled_from(sorted(_SIGNS)))
        values = [_columns(match, schema)[name] for match in matches]
        bound = draw(st.sampled_from([value for value in values if value is not None] or [1]))
        if name == "confidence":
            bound = draw(st.sampled_from([float(bound), 0.5, 1]))
        return f"{name} {sign} {bound!r}", _compared(name, sign, bound)
    one, first = draw(_conditions(schema, matches, depth - 1))
    if kind == "not":
        return f"NOT ({one})", lambda row: None if (found := first(row)) is None else not found
    other, second = draw(_conditions(schema, matches, depth - 1))
    decided = kind == "or"

    def both(row: _Columns) -> bool | None:
        found = first(row), second(row)
        return decided if decided in found else None if None in found else not decided

    return f"({one}) {kind.upper()} ({other})", both


def _ordered(rows: list[_Columns], keys: list[tuple[str, bool]], ids: list[str]) -> list[_Columns]:
    everything = [*keys, ("confidence", True), *((name, False) for name in ids)]

    def compare(one: _Columns, other: _Columns) -> int:
        for name, descending in everything:
            x, y = one[name], other[name]
            if x == y:
                continue
            if x is None or y is None:
                return 1 if x is None else -1
            if name == "confidence":
                x, y = significant(x), significant(y)
            sign = int(x > y) - int(x < y)
            if sign:
                return -sign if descending else sign
        return 0

    return sorted(rows, key=cmp_to_key(compare))


@given(_CASES, st.data())
def test_having_order_and_limit(case: _AnyCase, data: st.DataObject) -> None:
    matches = case.answer()
    assume(len({match.signature for match in matches}) == len(matches))
    assume(all(is_clear(match.confidence) for match in matches))
    table = case.trace.table()
    plan = make_plan(uc.parse(case.text("")), table.schema)
    schema = plan.output_schema
    ids = [component.variable for component in plan.components]
    clauses = []
    rows = [(match, _columns(match, schema)) for match in matches]
    if data.draw(st.booleans()):
        text, test = data.draw(_conditions(schema, matches))
        clauses.append(f"HAVING {text}")
        rows = [(match, row) for match, row in rows if test(row)]
    if not plan.partition_columns and data.draw(st.integers(0, 4)) == 0:
        clauses.append("OUTPUT NON OVERLAPPING")
        kept = {match.signature for match in non_overlapping([match for match, _ in rows])}
        rows = [(match, row) for match, row in rows if match.signature in kept]
    names = ["confidence", "range_lower", "range_upper", *ids]
    keys = data.draw(st.lists(st.tuples(st.sampled_from(names), st.booleans()), max_size=3))
    expected = [row for _, row in rows]
    if keys:
        asked = ", ".join(f"{name}{' DESC' if falling else ''}" for name, falling in keys)
        clauses.append(f"ORDER BY {asked}")
        expected = _ordered(expected, keys, ids)
    limit = data.draw(st.sampled_from([None, 1, 2, 5])) if keys else None
    if limit is not None:
        clauses.append(f"LIMIT {limit}")
        expected = expected[:limit]
    text = case.text("\n".join(clauses))
    note(text)
    found = uc.match(table, text, threads=data.draw(st.sampled_from([1, 3]))).to_pylist()
    shown = (*ids, "range_lower", "range_upper")
    got = [[row[name] for name in shown] for row in found]
    wanted = [[row[name] for name in shown] for row in expected]
    if not keys:
        got, wanted = sorted(got, key=repr), sorted(wanted, key=repr)
    assert got == wanted
    hidden = uc.match(table, text, confidence=False, threads=1)
    assert "confidence" not in hidden.column_names
    assert hidden.num_rows == len(expected)


EVENTS = pa.table(
    {
        "type": ["A", "A", "A", "B", "B"], "id": [1, 2, 3, 4, 5],
        "lower": [0, 1, 2, 3, 3], "upper": [4, 3, 2, 6, 3],
        "x": [1.0, None, 3.0, 2.0, float("nan")], "s": ["u", "v", None, "w", "u"], "k": [1, 1, 1, 1, 1],
    }
)  # fmt: skip
PAIRS = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 9"


def _found(clauses: str, returned: str = "", **options: Any) -> list[tuple[int, int]]:
    having, _, rest = clauses.partition("|")
    rows = uc.match(EVENTS, f"{PAIRS} {having} {returned} {rest}", **options).to_pylist()
    return [(row["a"], row["b"]) for row in rows]


@pytest.mark.parametrize(
    ("clauses", "rows"),
    [
        ("HAVING rise > 0 | ORDER BY rise", [(1, 4)]),
        ("HAVING b.x - a.x > 0", [(1, 4)]),
        ("HAVING NOT rise > 0", [(3, 4)]),
        ("HAVING confidence = 1 AND k = 1 | ORDER BY a", [(3, 4), (3, 5)]),
        (
            "HAVING confidence > 0.9 OR name = 'u' | ORDER BY name, a, b",
            [(1, 4), (1, 5), (2, 4), (3, 4), (3, 5)],
        ),
        ("HAVING a.s >= 'v' AND b = 4", [(2, 4)]),
        ("| ORDER BY rise DESC LIMIT 2", [(1, 4), (3, 4)]),
        ("| ORDER BY b.x - a.x LIMIT 1", [(3, 4)]),
        ("| ORDER BY name DESC, b DESC LIMIT 3", [(2, 5), (2, 4), (1, 5)]),
        ("| ORDER BY confidence DESC, b DESC LIMIT 2", [(3, 5), (3, 4)]),
    ],
)
def test_columns_of_the_result(clauses: str, rows: list[tuple[int, int]]) -> None:
    returned = "RETURN b.x - a.x AS rise, a.s AS name"
    found = _found(clauses, returned)
    assert found == rows
    assert _found(clauses, returned, confidence=False) == rows


@pytest.mark.parametrize(
    ("clauses", "said"),
    [
        (
            "HAVING rise > 0",
            "rise is no column of the result: it has k, a, b, range_lower, range_upper, conf",
        ),
        ("HAVING a.x > 0", r"a\.x is no column of the result: .*, or add it to RETURN"),
        ("HAVING range_loer > 0", "did you mean range_lower"),
        ("HAVING confidence > 'x'", "confidence is a number and 'x' a string: they cannot be compared"),
        ("HAVING confidence", "not a condition: compare it"),
        ("HAVING [k]", "it belongs in WHERE"),
        ("ORDER BY b.x", r"b\.x is no column of the result"),
        ("ORDER BY [k]", "it belongs in WHERE"),
        ("HAVING CONFIDENCE >= 2", "a confidence lies between 0 and 1"),
        ("HAVING k > 1 RETURN EXPECTED COUNT", "HAVING chooses among matches"),
        ("RETURN EXPECTED COUNT ORDER BY k", "ORDER BY chooses among matches"),
    ],
)
def test_what_is_refused(clauses: str, said: str) -> None:
    with pytest.raises(uc.QueryError, match=said):
        uc.match(EVENTS, f"{PAIRS} {clauses}")


@pytest.mark.parametrize(
    ("condition", "least"),
    [
        ("confidence > 0.5 AND a = 1", 0.5),
        ("confidence >= 0.2 AND (confidence > 0.5 OR confidence = 0.7)", 0.5),
        ("NOT (confidence < 0.5 OR a = 1)", 0.5),
        ("NOT (confidence < 0.5 AND a = 1)", 0.0),
        ("0.25 <= confidence AND confidence < 0.75", 0.25),
        ("confidence != 0.5 AND NOT confidence > 0.9", 0.0),
    ],
)
def test_what_conditions_imply_of_confidences(condition: str, least: float) -> None:
    plan = make_plan(uc.parse(f"{PAIRS} HAVING {condition}"), EVENTS.schema)
    assert plan.least_confidence == least
    assert least_confidence(None) == 0.0


def test_streams_take_having() -> None:
    query = f"{PAIRS} HAVING rise > 0 OR confidence < 0.5 RETURN b.x - a.x AS rise"
    whole = sorted(_found("HAVING rise > 0 OR confidence < 0.5", "RETURN b.x - a.x AS rise"))
    for evaluation in ("selectivity", "sliced", "point"):
        matcher = uc.IncrementalMatcher(query, EVENTS.schema, evaluation=evaluation)
        parts = [matcher.push(EVENTS.slice(row, 1)) for row in range(EVENTS.num_rows)] + [matcher.close()]
        rows = pa.Table.from_batches(parts).to_pylist()
        assert sorted((row["a"], row["b"]) for row in rows) == whole
    with pytest.raises(uc.OptionError, match="ORDER BY and LIMIT choose among all matches"):
        uc.IncrementalMatcher(f"{PAIRS} ORDER BY range_lower", EVENTS.schema)


def test_reports_keep_the_order_that_is_asked_for() -> None:
    page = str(uc.report(EVENTS, f"{PAIRS} HAVING confidence > 0.2 AND a < 3 ORDER BY a DESC, b LIMIT 2"))
    assert "Only matches with confidence &gt; 0.2" in page or "Only matches with confidence > 0.2" in page
    assert "At most 2 first matches" in page


def test_parameters_stand_in_having() -> None:
    clauses = "HAVING confidence > $c AND k = $k RETURN a.s AS name ORDER BY name DESC LIMIT $n"
    for least in (0.2, 0.9):
        written = clauses.replace("$c", str(least)).replace("$k", "1").replace("$n", "3")
        found = uc.match(EVENTS, f"{PAIRS} {clauses}", parameters={"c": least, "k": 1, "n": 3})
        assert found.equals(uc.match(EVENTS, f"{PAIRS} {written}"))
