"""The meaning of query texts, as goldens, and how large a text may be."""

from __future__ import annotations

import pickle
import time

import pytest

from tests.query.dump import dump, dump_query
from tests.query.golden import Case, cases, compare
from uncertain_cep.errors import QuerySyntaxError
from uncertain_cep.query import Query, check, parse, parse_row_condition
from uncertain_cep.query.expression_builder import MAX_DEPTH
from uncertain_cep.query.parser import read_query
from uncertain_cep.query.syntax import Position

PAIR = "PATTERN SEQ(A a, B b)"


@pytest.mark.parametrize("case", cases("parse.txt"), ids=lambda case: case.name)
def test_parse(case: Case) -> None:
    compare("parse.txt", case, lambda text: dump_query(read_query(text)))


@pytest.mark.parametrize("case", cases("row_conditions.txt"), ids=lambda case: case.name)
def test_row_condition(case: Case) -> None:
    compare("row_conditions.txt", case, lambda text: dump(parse_row_condition(text)))


def test_a_query_keeps_its_text_and_where_things_stand() -> None:
    text = "-- first\nPATTERN SEQ(A a,\n            B bc)\nWHERE a.x < bc.x\n  WITHIN 5 LIMIT 3"
    query = parse(text)
    assert query.text == text
    assert query.clause_positions == (
        ("PATTERN", Position(2, 1)),
        ("WHERE", Position(4, 1)),
        ("WITHIN", Position(5, 3)),
        ("LIMIT", Position(5, 12)),
    )
    assert query.position_of("WITHIN") == Position(5, 3)
    assert query.position_of("HAVING") == query.pattern.position == Position(2, 9)
    assert query.where[0].position == Position(4, 11)


def test_a_query_is_a_value() -> None:
    query = parse(f"{PAIR} WHERE a.x = b.x WITHIN 5")
    assert isinstance(query, Query)
    assert query == parse(query.text)
    assert hash(query) == hash(parse(query.text))
    assert pickle.loads(pickle.dumps(query)) == query


def test_forty_components_and_ten_thousand_characters() -> None:
    components = ", ".join(f"Type{i} v{i}" for i in range(40))
    conditions = " AND ".join(f"v{i % 40}.x + {i} > 95% * v{(i + 1) % 40}.y" for i in range(400))
    text = f"PATTERN SEQ({components}) WHERE {conditions} WITHIN 15 seconds"
    assert len(text) > 10_000
    parse("PATTERN SEQ(A a) WITHIN 1")
    start = time.process_time()
    query = parse(text)
    # Linear in the text, and far from the seconds that an ambiguous grammar would take.
    assert time.process_time() - start < 3
    assert len(query.where) == 400


def test_long_chains_stay_shallow() -> None:
    text = f"{PAIR} WHERE {' OR '.join(f'a.x = {i}' for i in range(2000))} WITHIN 1"
    (condition,) = parse(text).where
    pickle.dumps(condition)
    assert dump(condition).startswith("(or (= a.x 0) (= a.x 1) ")


@pytest.mark.parametrize("depth", [1_000, 20_000])
def test_parentheses_alone_may_be_as_deep_as_they_like(depth: int) -> None:
    (condition,) = parse(f"{PAIR} WHERE {'(' * depth}a.x = 1{')' * depth} WITHIN 1").where
    assert dump(condition) == "(= a.x 1)"
    with pytest.raises(QuerySyntaxError, match="ends too early"):
        parse(f"{PAIR} WHERE {'(' * depth}")


DEEP = {
    "not": "WHERE " + "NOT " * 5_000 + "a.x = 1 WITHIN 1",
    "minus": "WHERE a.x = " + "- " * 5_000 + "a.x WITHIN 1",
    "sum": "WHERE a.x = " + "1 + " * 5_000 + "a.x WITHIN 1",
    "brackets": "WHERE " + "a.x - (" * 5_000 + "1" + ")" * 5_000 + " = 1 WITHIN 1",
    "logic": "WHERE " + "a.x = 1 OR (a.x = 2 AND (" * 3_000 + "a.y" + "))" * 3_000 + " WITHIN 1",
    "returned": "WITHIN 1 RETURN " + "1 + " * 5_000 + "a.x",
}


@pytest.mark.parametrize("name", DEEP)
def test_nesting_beyond_reason_is_an_error(name: str) -> None:
    with pytest.raises(QuerySyntaxError, match=f"nested more than {MAX_DEPTH} levels deep"):
        parse(f"{PAIR} {DEEP[name]}")


def test_a_pattern_nested_beyond_reason_is_an_error() -> None:
    with pytest.raises(QuerySyntaxError, match="the pattern is nested more than"):
        parse("PATTERN " + "SEQ(" * 5_000 + "A a" + ")" * 5_000)
    text = "PATTERN " + "SEQ(" * (MAX_DEPTH - 1) + "A a" + ")" * (MAX_DEPTH - 1) + " WITHIN 1"
    assert parse(text).pattern == parse(text).pattern


def test_expressions_as_deep_as_allowed_can_be_used() -> None:
    text = f"{PAIR} WHERE {'NOT ' * (MAX_DEPTH - 2)} a.x = 1 WITHIN 1"
    query = parse(text)
    check(query)
    assert pickle.loads(pickle.dumps(query)) == query
    assert repr(query)


def test_a_comment_after_a_percent_sign_costs_no_time() -> None:
    comments = "-- - -- -" * 2_000
    start = time.process_time()
    parse(f"{PAIR} WHERE a.x > 5% {comments}\n WITHIN 1")
    assert time.process_time() - start < 3
