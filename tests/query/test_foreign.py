"""Constructs of other languages are recognised, and the message shows how each is written here."""

from __future__ import annotations

import re

import pytest

from uncertain_cep.errors import QuerySyntaxError
from uncertain_cep.query import parse
from uncertain_cep.query.foreign import FOREIGN, as_written_here

A = "PATTERN SEQ(A a, B b)"

# What is written, and a part of what the message says to write.
WRITTEN = {
    'Pattern.<Event>begin("a")': "PATTERN SEQ",
    f"{A}.followedByAny(C)": "skip_till_any_match",
    f"{A}.followedBy(C)": "skip_till_next_match",
    f"{A}.notFollowedBy(C)": "!B b",
    f"{A}.next(C)": "strict_contiguity",
    f"{A}.oneOrMore()": "A+ c[]",
    f"{A} WHERE a.times(3) WITHIN 5": "A{3} c[]",
    f"{A}.optional()": "B? b",
    f"{A}.greedy()": "a strategy in WHERE",
    f"{A}.until(x)": "c[i].x",
    f"{A}.where(x)": "WHERE a.x > 3",
    f"{A}.within(Time.seconds(10))": "WITHIN 10 seconds",
    f"{A} AFTER MATCH SKIP PAST LAST ROW": "NON OVERLAPPING",
    "pattern [a=A]": "PATTERN SEQ",
    "PATTERN SEQ(A a -> B b) WITHIN 5": "SEQ(A a, B b)",
    f"{A} where timer:within(10 sec)": "WITHIN 10 seconds",
    "PATTERN every SEQ(A a)": "every match is found",
    "a=A(x > 3)": "WHERE a.x > 3",
    "MATCH_RECOGNIZE": "PATTERN SEQ",
    "PATTERN (A B+)": "PATTERN SEQ",
    f"{A} DEFINE B AS x": "conditions in WHERE",
    f"MEASURES a.x {A}": "RETURN a.x",
    f"PARTITION BY k {A}": "WHERE [attr]",
    f"ONE ROW PER MATCH {A}": "events_of",
    f"{A} WHERE b.x > PREV(b.x) WITHIN 5": "c[i-1].x",
    f"{A} WHERE b.x > NEXT(b.x) WITHIN 5": "c[i].x > c[i-1].x",
    f"{A} WITHIN 5 RETURN FIRST(b.x)": "first(b[].x)",
    f"{A} WITHIN 5 RETURN LAST(b.x)": "last(b[].x)",
    f"{A} WITHIN 5 RETURN CLASSIFIER()": "RETURN a, b",
    f"SUBSET x = (a, b) {A}": "(A|B) a",
    "PATTERN PERMUTE(A, B)": "AND(A a, B b)",
    'SeqOperator(PrimitiveEventStructure("A", "a"))': "PATTERN SEQ",
    "AndOperator(x)": "PATTERN AND",
    "OrOperator(x)": "PATTERN OR",
    "NegationOperator(x)": "!B b",
    "KleeneClosureOperator(x)": "A+ c[]",
    f"{A} WHERE GreaterThanCondition(a.x, 3) WITHIN 5": "WHERE a.x > 3",
    f"{A} WITHIN timedelta(minutes=5)": "WITHIN 10 seconds",
    "SELECT a": "RETURN a.x",
    "FROM s WHERE": "beside the query",
    f"{A} WITHIN 5 GROUP BY a": "EXPECTED COUNT BY",
    f"{A} WITHIN INTERVAL '5' MINUTE": "5 minutes",
    f"{A} WHERE a.x::int = 3 WITHIN 5": "CAST(x AS BIGINT)",
    f"{A} WHERE EXTRACT(HOUR FROM a.t) = 3 WITHIN 5": "HOUR(a.ts)",
    f"{A} WHERE DATEDIFF(a.t, b.t) = 3 WITHIN 5": "b.ts - a.ts",
    f"{A} WHERE a.t < NOW() WITHIN 5": "TIMESTAMP '",
    f"{A} WHERE IF(a.x, 1, 2) = 1 WITHIN 5": "CASE WHEN",
    f"{A} WHERE NVL(a.x, 1) = 1 WITHIN 5": "COALESCE",
    f"{A} WHERE a.s RLIKE 'x' WITHIN 5": "REGEXP",
    f"{A} WHERE MOD(a.x, 2) = 1 WITHIN 5": "x % y",
    f"{A} WHERE LOG(a.x) = 1 WITHIN 5": "LN(x)",
    f"{A} WHERE a.x IS DISTINCT FROM b.x WITHIN 5": "IS NULL",
    f"{A} WHERE MAX(a.x, b.x) = 1 WITHIN 5": "GREATEST",
    f"{A} WHERE COUNT(*) = 1 WITHIN 5": "avg(c[].x)",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_it_is_recognised(text: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse(text)
    assert WRITTEN[text] in str(caught.value).splitlines()[0]


def test_every_row_of_the_table_is_met() -> None:
    texts = [re.sub(r"""(['"])[^'"]*['"]""", r"\1\1", text) for text in WRITTEN]
    unmet = [regex for regex in FOREIGN if not any(re.search(regex, text, re.IGNORECASE) for text in texts)]
    assert unmet == []


def test_what_is_quoted_is_not_foreign() -> None:
    assert as_written_here("WHERE a.s = 'SELECT -> x' -- DEFINE", 0) == ""


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (f"{A} WITHN 5", "WITHIN"), ("PATERN SEQ(A a)", "PATTERN"),
        (f"{A} WHERE a.x LIK 'a' WITHIN 5", "LIKE"),
        (f"{A} WHERE LOWR(a.s) = 'x' WITHIN 5", "LOWER"), (f"{A} WITHIN 5 LIMTI 3", "LIMIT"),
        (f"{A} WHERE skip_till_next_macth(a, b) WITHIN 5", "skip_till_next_match"),
        (f"{A} WHERE COALSCE(a.x, 3) = 1 WITHIN 5", "COALESCE"), (f"{A} WITHIN 5 RETRUN a", "RETURN"),
    ],
)  # fmt: skip
def test_the_nearest_word_is_named(text: str, meant: str) -> None:
    with pytest.raises(QuerySyntaxError, match=f"did you mean {meant}\\?"):
        parse(text)
