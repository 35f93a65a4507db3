"""Queries of any size are answered or refused with one of the two errors, and planned without overflow."""

from __future__ import annotations

import pyarrow as pa
import pytest

import uncertain_cep as uc
from uncertain_cep.errors import OptionError, QueryError, QuerySyntaxError
from uncertain_cep.query import parse
from uncertain_cep.query.checker import MOST_COMPONENTS, MOST_TYPES
from uncertain_cep.query.parser import MOST_CHARACTERS

EVENTS = pa.table(
    {
        "type": ["A"] * 3 + ["B"],
        "id": [1, 2, 3, 4],
        "lower": [1, 2, 3, 4],
        "upper": [4, 5, 6, 7],
        "x": [1, 1, 2, 1],
    }
)


def of_components(count: int, written: str = "A v{}") -> str:
    return ", ".join(written.format(number) for number in range(count))


@pytest.mark.parametrize("written", ["A v{}", "A+ v{}[]", "!A v{}", "OR(A v{0}, B w{0})"])
@pytest.mark.parametrize("outer", ["SEQ", "AND", "OR"])
def test_too_many_components(written: str, outer: str) -> None:
    with pytest.raises(QueryError, match=f"components, and at most {MOST_COMPONENTS} are answered") as caught:
        parse(f"PATTERN {outer}({of_components(1000, written)}) WITHIN 5000")
    assert len(caught.value.faults) == 1


@pytest.mark.parametrize("count", [62, 63, 64, 65, 100, MOST_COMPONENTS])
@pytest.mark.parametrize("pattern", ["SEQ({})", "AND({})", "SEQ(A+ k[], {})", "SEQ({}, !B n)"])
def test_explain_of_long_patterns(pattern: str, count: int) -> None:
    named_count = pattern.count(" k") + pattern.count(" n")
    text = f"PATTERN {pattern.format(of_components(count - named_count))} WHERE v0.x <= v1.x WITHIN 5000"
    assert uc.explain(text)
    assert uc.explain(text, EVENTS)
    assert uc.match(EVENTS, text).num_rows == 0


def test_long_patterns_have_no_named_planner() -> None:
    text = f"PATTERN SEQ({of_components(63)}) WHERE v0.x <= v1.x WITHIN 5000"
    with pytest.raises(OptionError, match="takes patterns of up to 62 components, and this one has 63"):
        uc.match(EVENTS, text, planner="greedy")


def test_type_names() -> None:
    def query(count: int) -> str:
        # Half of them in each of two components, so that all count.
        halves = [
            "|".join(f"T{number}" for number in range(part)) for part in (count // 2, count - count // 2)
        ]
        return f"PATTERN SEQ(({halves[0]}|A) a, ({halves[1]}|B) b) WITHIN 5"

    assert uc.match(EVENTS, query(MOST_TYPES - 2)).num_rows == 3
    assert uc.explain(query(MOST_TYPES - 2), EVENTS)
    with pytest.raises(QueryError, match=f"names types more than {MOST_TYPES:,} times"):
        parse(query(MOST_TYPES - 1))


@pytest.mark.parametrize("count", [7, 8])
def test_as_many_branches_as_there_may_be(count: int) -> None:
    text = f"PATTERN SEQ({of_components(count, 'OR(A v{0}, B w{0})')}) WITHIN 50"
    assert uc.explain(text, EVENTS)


@pytest.mark.parametrize("count", [9, 30, MOST_COMPONENTS // 2])
def test_too_many_branches(count: int) -> None:
    with pytest.raises(
        QueryError, match=f"OR and options make {2**count:,} patterns of this one, and at most 256"
    ):
        parse(f"PATTERN SEQ({of_components(count, 'OR(A v{0}, B w{0})')}) WITHIN 50")


def test_too_long_a_text() -> None:
    text = "PATTERN SEQ(A a) WITHIN 5"
    assert parse(text.ljust(MOST_CHARACTERS)).window is not None
    with pytest.raises(QuerySyntaxError, match=f"has {MOST_CHARACTERS + 1:,} characters, and at most"):
        parse(text.ljust(MOST_CHARACTERS + 1))


def hostile(deep: int) -> list[str]:
    """Return texts that nest so deep, and others with numbers beyond reason."""
    return [
        f"PATTERN SEQ(A a) WHERE {'(' * deep} WITHIN 5",
        f"PATTERN SEQ(A a) WHERE {'NOT ' * deep} a.x = 1 WITHIN 5",
        f"PATTERN SEQ(A a) WHERE {'- ' * deep} a.x = 1 WITHIN 5",
        f"PATTERN SEQ(A a) WHERE a.x {'+ 1 ' * deep} = 1 WITHIN 5",
        f"PATTERN {'SEQ(' * deep}A a{')' * deep} WITHIN 5",
        f"PATTERN {'AND(' * deep}A a{')' * deep} WITHIN 5",
        f"PATTERN {'SEQ(OR(' * (deep // 2)}A a{'))' * (deep // 2)} WITHIN 5",
        f"PATTERN {'SEQ(' * deep}",
        f"PATTERN {'OR(A a, ' * deep}",
        f"PATTERN SEQ(A a) WITHIN {'1' * 5_000}",
        f"PATTERN SEQ(A a) WITHIN {'1' * 5_000} s",
        f"PATTERN SEQ(A a) WITHIN 5 LIMIT {'9' * 5_000}",
        f"PATTERN SEQ(A a) WHERE a.x = {'9' * 5_000} WITHIN 5",
        "PATTERN SEQ(A a) WHERE a.x > 1e999 WITHIN 5",
        "PATTERN SEQ(A a) WHERE a.x > 1e99999999999999999999 WITHIN 5",
        "PATTERN SEQ(A a) WHERE a.x > 1e400% WITHIN 5",
        "PATTERN SEQ(A a) WITHIN 1e308 s",
        "PATTERN SEQ(A a) WITHIN 1e30",
        f"PATTERN SEQ(A a) WITHIN {2**62 + 1}",
        f"PATTERN SEQ(A a) WITHIN 5 RETURN EXPECTED COUNT EVERY {10**100}",
        f"PATTERN SEQ(A a) WITHIN 5 HAVING CONFIDENCE >= {'9' * 300}",
    ]


@pytest.mark.parametrize("text", hostile(20_000))
def test_hostile_text(text: str) -> None:
    with pytest.raises((QuerySyntaxError, QueryError)) as caught:
        uc.match(EVENTS, text)
    assert "line 1, column" in str(caught.value)


# Reading is the same. This depth is far beyond that of Python's stack.
@pytest.mark.parametrize("text", hostile(5_000))
def test_hostile_text_to_explain(text: str) -> None:
    with pytest.raises((QuerySyntaxError, QueryError)):
        uc.explain(text, EVENTS)


@pytest.mark.parametrize("deep", [100, 30_000])
def test_parentheses_alone_are_no_nesting(deep: int) -> None:
    text = f"PATTERN SEQ(A a) WHERE {'(' * deep}a.x{')' * deep} = 1 WITHIN 5"
    assert uc.match(EVENTS, text).num_rows == 2


@pytest.mark.parametrize("tree", ["(" * 50_000, f"{'(' * 50_000}a{')' * 50_000}", f"{'(a ' * 50_000}b"])
def test_deep_trees_of_joins(tree: str) -> None:
    with pytest.raises(OptionError):
        uc.match(EVENTS, "PATTERN SEQ(A a, B b) WITHIN 5", planner=tree)
