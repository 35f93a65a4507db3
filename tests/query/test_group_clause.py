"""RETURN PROBABILITY: what can be written, and what is refused."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import uncertain_cep as uc
from uncertain_cep.errors import OptionError, QueryError, QuerySyntaxError
from uncertain_cep.query import parse
from uncertain_cep.query.syntax import GroupName, Probability

PATTERN = "PATTERN SEQ(A a, !N n, B+ b[], C c) WHERE [k] WITHIN 5"
EVENTS = pa.table(
    {
        "type": ["A", "B", "C"],
        "id": [1, 2, 3],
        "lower": [0, 1, 2],
        "upper": [0, 1, 2],
        "k": [1, 1, 1],
        "x": [4, 5, 6],
    }
)


def clause_of(text: str) -> Probability:
    clause = parse(f"{PATTERN} {text}").probability
    assert clause is not None
    return clause


def names_of(clause: Probability) -> list[tuple[str | None, str]]:
    return [(name.variable, name.name) for name in clause.by]


def test_all_parts_of_the_clause() -> None:
    clause = clause_of("RETURN PROBABILITY OF AT LEAST 2 MATCHES AS p BY a, c.x, `k` EVERY 5 minutes")
    assert (clause.at_least, clause.name) == (2, "p")
    assert names_of(clause) == [(None, "a"), ("c", "x"), (None, "k")]
    assert clause.every is not None
    assert clause.every.nanoseconds == 300 * 10**9
    assert isinstance(clause.by[1], GroupName)
    assert clause.by[1].text == "c.x"


@pytest.mark.parametrize("end", ["", ";", " -- the end\n", " ORDER BY PROBABILITY DESC", " LIMIT 1"])
def test_what_may_follow_it(end: str) -> None:
    clause = clause_of(f"return probability{end}")
    assert (clause.at_least, clause.name, clause.by, clause.every) == (1, "probability", (), None)


@pytest.mark.parametrize("name", ["probability", "of", "matches", "least", "at"])
def test_its_words_are_no_keywords_elsewhere(name: str) -> None:
    query = parse(
        f"PATTERN SEQ({name} {name}) WHERE {name}.{name} > 1 WITHIN 5 RETURN {name}.{name} AS {name}s"
    )
    assert query.probability is None
    assert query.returns[0].name == f"{name}s"


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("RETURN PROBABILITY BY b", "b is several events"),
        ("RETURN PROBABILITY BY b.x", "b is several events"),
        ("RETURN PROBABILITY BY n", "n is negated"),
        ("RETURN PROBABILITY BY z.x", "unknown variable z"),
        ("RETURN PROBABILITY BY a, a", "BY names a twice"),
        ("RETURN PROBABILITY BY x", "need not agree on x"),
        ("RETURN PROBABILITY BY q", "unknown attribute q"),
        ("RETURN PROBABILITY BY a.q", "unknown attribute q"),
        ("RETURN PROBABILITY AS a", "a is another column"),
        ("RETURN PROBABILITY AS bucket", "bucket is another column"),
        ("RETURN PROBABILITY AS k BY k", "has a column k already"),
        ("RETURN PROBABILITY EVERY 0", "at least one tick"),
        ("RETURN PROBABILITY OF AT LEAST 0 MATCHES", "from 1 to 1,000"),
        ("RETURN PROBABILITY OF AT LEAST 1001 MATCHES", "from 1 to 1,000"),
        ("RETURN PROBABILITY OUTPUT NON OVERLAPPING", "chooses among matches"),
        ("HAVING CONFIDENCE >= 0.5 RETURN PROBABILITY", "HAVING PROBABILITY speaks"),
        ("HAVING CONFIDENCE < 0.5 RETURN PROBABILITY", "HAVING PROBABILITY speaks"),
        ("RETURN PROBABILITY ORDER BY CONFIDENCE DESC", "ORDER BY PROBABILITY speaks"),
        ("RETURN PROBABILITY ORDER BY c", "c is no column of the result"),
        ("HAVING PROBABILITY >= 0.5", "PROBABILITY is no column"),
    ],
)
def test_what_is_refused(clauses: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        uc.match(EVENTS, f"{PATTERN} {clauses}")


@pytest.mark.parametrize(
    "clauses", ["RETURN PROBABILITY OF 2 MATCHES", "RETURN PROBABILITY OF AT LEAST 1.5 MATCHES"]
)
def test_what_cannot_be_read(clauses: str) -> None:
    with pytest.raises(QuerySyntaxError):
        parse(f"{PATTERN} {clauses}")


@pytest.mark.parametrize(
    "options",
    [{"evaluation": "any_state"}, {"confidence": False}, {"kleene": "compressed"}],
)
def test_options_that_have_no_use(options: dict[str, object]) -> None:
    with pytest.raises(OptionError, match="RETURN PROBABILITY"):
        uc.match(EVENTS, f"{PATTERN} RETURN PROBABILITY", **options)  # type: ignore[arg-type]


def test_who_needs_matches_refuses_groups() -> None:
    query = f"{PATTERN} RETURN PROBABILITY"
    rows = uc.match(EVENTS, query)
    with pytest.raises(OptionError, match="probabilities of groups"):
        uc.posteriors(rows, EVENTS, query)
    with pytest.raises(OptionError, match="until the stream ends: add buckets"):
        uc.IncrementalMatcher(query, EVENTS.schema)


def test_explain_says_what_is_returned() -> None:
    text = uc.explain(
        f"{PATTERN} RETURN PROBABILITY OF AT LEAST 2 MATCHES BY a EVERY 3", EVENTS, analyze=True
    )
    assert "probability of at least 2 matches by a, for every 3 ticks of the first event's time" in text


def test_explain_says_how_groups_were_weighed() -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 9 RETURN PROBABILITY BY a"
    events = pa.table(
        {
            "type": ["A", "A", "A", "B", "B", "B"],
            "id": [1, 2, 3, 4, 5, 6],
            "lower": [0, 100, 200, 1, 3, 102],
            "upper": [4, 100, 204, 6, 8, 202],
        }
    )
    events = pa.concat_tables([events, pa.table({"type": ["B"], "id": [7], "lower": [101], "upper": [101]})])
    facts = json.loads(uc.explain(query, events, analyze=True, format="json"))["groups"]
    assert facts == {
        "count": 3, "matches": 5, "single": 1, "certain": 1, "exact": 1, "estimated": 0, "undecided": 0,
        "largest": 2, "named": "a = 1",
    }  # fmt: skip
    text = uc.explain(query, events, analyze=True)
    assert "3: 1 of one match, 1 certain, 1 exact; the largest has 2 matches (a = 1)" in text
    assert "groups " not in uc.explain(query, events)
    either = query.replace("A a, B b", "OR(A a, C c), B b")
    assert "of one match" in uc.explain(either.replace("BY a", "BY b"), events, analyze=True)


def test_a_match_of_one_event_has_all_its_attributes() -> None:
    query = "PATTERN SEQ(!N n, (A|B) a) WITHIN 5 RETURN PROBABILITY BY "
    short, long = (uc.match(EVENTS, f"{query}{by} EVERY 2") for by in ("x", "a.x"))
    assert short.column_names == ["x", "bucket", "probability"]
    assert short.rename_columns(long.column_names).equals(long)
    with pytest.raises(QueryError, match="unknown attribute"):
        uc.match(EVENTS, f"{query}q")
    for several in ("A+ a[]", "A? a"):
        with pytest.raises(QueryError, match="need not agree on x"):
            uc.match(EVENTS, f"PATTERN SEQ({several}) WITHIN 5 RETURN PROBABILITY BY x")
