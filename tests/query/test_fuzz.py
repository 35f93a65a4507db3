"""Any text at all: it is read as it was meant, or refused with one of the two errors, and nothing else."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from tests.query.dump import dump, dump_typed
from tests.query.expressions import Written, expressions
from tests.query.golden import cases
from uncertain_cep.errors import QueryError, QuerySyntaxError
from uncertain_cep.query import bind, bind_row_condition, format_expression, parse, parse_row_condition
from uncertain_cep.query.parser import read_query
from uncertain_cep.timeline.domain import Names, TimeDomain

SCHEMA = pa.schema(
    {
        "type": pa.string(),
        "id": pa.int64(),
        "lower": pa.timestamp("ms"),
        "upper": pa.timestamp("ms"),
        "pmf": pa.list_(pa.float64()),
        "x": pa.float64(),
        "y": pa.bool_(),
        "limit": pa.int32(),
    }
)
DOMAIN = TimeDomain.of(SCHEMA, tick="1ms")

TOKENS = [
    *("PATTERN", "SEQ", "AND", "OR", "NOT", "ANY", "WHERE", "WITHIN", "HAVING", "CONFIDENCE", "RETURN", "AS"),
    *("EXPECTED", "COUNT", "BY", "EVERY", "OUTPUT", "NON", "OVERLAPPING", "ORDER", "DESC", "LIMIT"),
    *("TRUE", "FALSE", "NULL", "skip_till_any_match", "skip_till_next_match", "avg", "count", "max"),
    *("A", "B", "a", "b", "c", "x", "limit", "i", "LEN", "a.x", "b.y", "a.type", "a.lower", "a[i].x", "[x]"),
    *("(", ")", "{", "}", "[", "]", "[]", ",", ".", "..", "|", "!", "+", "-", "*", "/", "%", "--", "\n"),
    *("=", "==", "!=", "<>", "<", "<=", ">", ">=", ";", "&", "~", "'", '"', "`", "\x00", "é", "\u00b2"),
    *("1", "0", "95%", "0.5", "1e400", "1_000", "99999999999999999999", "seconds", "ms", "fortnights"),
    *("'it''s'", '"x"', "`odd (%)`"),
]

_valid = st.sampled_from([case.given for case in cases("parse.txt") + cases("query_errors.txt")])


def swallow(text: str) -> None:
    """Read and bind a text both ways; any error but the two fails the test."""
    with suppress(QuerySyntaxError, QueryError):
        bind(parse(text), SCHEMA, Names(), DOMAIN)
    with suppress(QuerySyntaxError, QueryError):
        bind_row_condition(parse_row_condition(text), SCHEMA, text=text)


@given(st.lists(st.sampled_from(TOKENS), max_size=40), st.sampled_from([" ", "", "\n"]))
def test_token_soup(tokens: list[str], gap: str) -> None:
    swallow(gap.join(tokens))


@given(st.lists(st.sampled_from(TOKENS), max_size=30))
def test_token_soup_inside_a_query(tokens: list[str]) -> None:
    swallow(f"PATTERN SEQ(A a, B b) WHERE {' '.join(tokens)} WITHIN 10 s RETURN {' '.join(tokens[::-1])}")


@given(st.text())
@example("\ufeffPATTERN SEQ(A a) WITHIN 1")
@example("\r\n\u2028\x0b\x0c\x85PATTERN\u00a0SEQ(A\u3000a)\x1c WITHIN\ud800 1")
def test_any_text(text: str) -> None:
    swallow(text)


@given(st.binary())
def test_binary_junk(junk: bytes) -> None:
    swallow(junk.decode("latin-1"))


@given(_valid, st.data())
def test_valid_queries_with_a_fault(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 8)))
    swallow(text[:start] + data.draw(st.sampled_from(["", *TOKENS])) + text[end:])


@given(_valid, st.integers(0, 300))
def test_queries_that_break_off(text: str, length: int) -> None:
    swallow(text[:length])


@given(expressions)
def test_expressions_mean_what_they_say(written: Written) -> None:
    query = read_query(f"PATTERN SEQ(A a) RETURN {written.text} AS it")
    assert dump(query.returns[0].expression) == written.meaning


@given(expressions, st.data())
def test_conditions_fall_apart_at_every_and(written: Written, data: st.DataObject) -> None:
    other = data.draw(expressions)
    query = read_query(f"PATTERN SEQ(A a) WHERE ({written.text}) AND ({other.text})")
    whole = read_query(f"PATTERN SEQ(A a) RETURN ({written.text}) AND ({other.text})").returns[0].expression
    assert dump(whole) == f"(and {' '.join(dump(condition) for condition in query.where)})"


_COMPARISONS = ["=", "!=", "<", "<=", ">", ">="]

_row_conditions = st.recursive(
    st.sampled_from(
        ["x", "`limit`", "y", "type", "lower", "pmf", "z", "1", "-2", "0.5", "'2024-05-01'", "NULL"]
    ),
    lambda parts: (
        st.builds("({} {} {})".format, parts, st.sampled_from([*"+-*/%", *_COMPARISONS, "AND", "OR"]), parts)
        | st.builds("({} {})".format, st.sampled_from(["NOT", "-"]), parts)
    ),
    max_leaves=10,
)
_numbers = st.recursive(
    st.sampled_from(["x", "`limit`", "id", "1", "-2", "0.5", "95%"]),
    lambda parts: st.builds("({} {} {})".format, parts, st.sampled_from("+-*/%"), parts),
    max_leaves=6,
)
_comparisons = st.builds("({} {} {})".format, _numbers, st.sampled_from(_COMPARISONS), _numbers)
_conditions = st.recursive(
    _comparisons
    | st.sampled_from(["y", "NULL", "TRUE", "(type = 'a''b')", "(lower >= '2024-05-01T10:00:00.123')"]),
    lambda parts: (
        st.builds("({} {} {})".format, parts, st.sampled_from(["AND", "OR", "="]), parts)
        | parts.map("(NOT {})".format)
    ),
    max_leaves=8,
)


@given(_row_conditions)
def test_any_row_condition_binds_or_is_refused(text: str) -> None:
    swallow(text)


@given(_conditions)
def test_typed_expressions_are_written_as_they_are_read(text: str) -> None:
    typed = bind_row_condition(parse_row_condition(text), SCHEMA, text=text)
    written = format_expression(typed)
    again = bind_row_condition(parse_row_condition(written), SCHEMA, text=written)
    assert dump_typed(again) == dump_typed(typed)
    assert format_expression(again) == written
