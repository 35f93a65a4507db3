"""The exact words of every refusal that needs no trace."""

from __future__ import annotations

from typing import get_args

import pytest

from tests.query.golden import Case, cases, compare
from uncertain_cep.errors import QueryError, QuerySyntaxError
from uncertain_cep.query import parse, parse_row_condition
from uncertain_cep.query.expression_text import RESERVED
from uncertain_cep.query.parser import WORDS, _grammar
from uncertain_cep.query.syntax import SelectionStrategy


@pytest.mark.parametrize("case", cases("syntax_errors.txt"), ids=lambda case: case.name)
def test_syntax_error(case: Case) -> None:
    def refusal(text: str) -> str:
        with pytest.raises(QuerySyntaxError) as caught:
            parse(text)
        return str(caught.value)

    compare("syntax_errors.txt", case, refusal)


@pytest.mark.parametrize("case", cases("query_errors.txt"), ids=lambda case: case.name)
def test_query_error(case: Case) -> None:
    def refusal(text: str) -> str:
        with pytest.raises(QueryError) as caught:
            parse(text)
        return str(caught.value)

    compare("query_errors.txt", case, refusal)


@pytest.mark.parametrize("case", cases("row_condition_errors.txt"), ids=lambda case: case.name)
def test_row_condition_error(case: Case) -> None:
    def refusal(text: str) -> str:
        with pytest.raises((QuerySyntaxError, QueryError)) as caught:
            parse_row_condition(text)
        return str(caught.value)

    compare("row_condition_errors.txt", case, refusal)


def test_a_syntax_error_knows_its_place() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse("PATTERN SEQ(A a,\n  B b\nWITHIN 5")
    error = caught.value
    assert (error.line, error.column) == (3, 1)
    assert error.expected == ("a comma", ")")


def test_a_query_error_lists_its_faults_in_the_order_of_the_text() -> None:
    with pytest.raises(QueryError) as caught:
        parse("PATTERN SEQ(A a, B b) WHERE c.x = 1 AND d.x = 2 WITHIN 0")
    places = [(fault.line, fault.column) for fault in caught.value.faults]
    assert places == [(1, 29), (1, 41), (1, 56)]


def test_every_terminal_has_words() -> None:
    ignored = {"COMMENT", "SPACE"}
    assert {terminal.name for terminal in _grammar().terminals} - ignored == set(WORDS) - {"$END"}


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_words_name_types_and_attributes_but_no_variables(word: str) -> None:
    compounds = {"seq", "and", "or", "any"}
    type_ = f"`{word}`" if word in compounds else word
    query = parse(
        f"PATTERN SEQ({type_} a) WHERE a.{word} = 1 AND [{word}] WITHIN 1 RETURN a.{word} AS {word}"
    )
    assert query.returns[0].name == word
    with pytest.raises(QuerySyntaxError, match="reserved word and cannot name a variable"):
        parse(f"PATTERN SEQ(A {word}) WITHIN 1")
    parse_row_condition(f"`{word}` = 1")


@pytest.mark.parametrize(
    "word", sorted(RESERVED - {"true", "false", "null", "not", *get_args(SelectionStrategy)})
)
def test_reserved_words_need_backticks_to_be_columns(word: str) -> None:
    with pytest.raises(QuerySyntaxError, match=f"unexpected '{word}'"):
        parse_row_condition(f"{word} = 1 AND x")
