"""Constructs of other languages are recognised, and the message shows how each is written here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from uncertain_cep.errors import OptionError, QueryError, QuerySyntaxError
from uncertain_cep.query import parse
from uncertain_cep.query.foreign import FOREIGN, as_written_here
from uncertain_cep.query.spelling import nearest, slips
from uncertain_cep.timeline.durations import parse_duration

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
    f"{A}.greedy()": "!C n",
    f"{A}.consecutive()": "a strategy in WHERE",
    f"{A} throttle 5": "RETURN PROBABILITY",
    f"{A} WITHIN 5 THROTTLE 9 seconds": "RETURN PROBABILITY",
    f"{A} WITHIN 9 SUPPRESS 10": "RETURN PROBABILITY",
    f"{A} SUPPRESS 10 WITHIN 9": "RETURN PROBABILITY",
    f"{A} WITHIN 5 OUTPUT FIRST PER k": "RETURN PROBABILITY",
    f"{A} WITHIN 5 RETURN FIRST(a) BY k": "RETURN PROBABILITY",
    f"{A} WHERE first_per_key(a, k) WITHIN 5": "RETURN PROBABILITY",
    f"{A} WITHIN 5 LIMIT 1 PER k": "RETURN PROBABILITY",
    f"{A} WHERE skip_past_last_event(a, b) WITHIN 5": "for sessions",
    f"{A} WHERE past_last(a, b) WITHIN 5": "for sessions",
    f"{A} WHERE MATCH_NUMBER() = 1 WITHIN 5": "differs by world",
    "PATTERN SEQ(A a, B++ b[]) WITHIN 5": "!C n",
    "PATTERN SEQ(A a, B+ b[]) WHERE greedy(b[]) WITHIN 5": "!C n",
    "PATTERN SEQ(A a, SEQ(B b[])+?, C c) WITHIN 5": "not greedy",
    "PATTERN SEQ(A a, B*? b[], C c) WITHIN 5": "not greedy",
    "PATTERN SEQ(maximal(B+ b[])) WITHIN 5": "!C n",
    f"{A}.until(x)": "c[i].x",
    f"{A}.where(x)": "WHERE a.x > 3",
    f"{A}.within(Time.seconds(10))": "WITHIN 10 seconds",
    f"{A} AFTER MATCH SKIP PAST LAST ROW": "for sessions",
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
    f"{A} WITHIN 5 RETURN MATCH_NUMBER()": "differs by world",
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
    f"{A} WITHIN 5 RETURN COUNT BY a.k": "RETURN EXPECTED COUNT BY",
    f"{A} WITHIN 5 RETURN EXPECTED COUNT BY a.k": "BY host",
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


CLAUSES = {
    f"{A} {{}} a.x = 1 WITHIN 5": "WHERE",
    f"{A} {{}} 5 seconds": "WITHIN",
    f"{A} WITHIN 5 {{}} CONFIDENCE > 0.5": "HAVING",
    f"{A} WITHIN 5 {{}} a": "RETURN",
    f"{A} WITHIN 5 {{}} NON OVERLAPPING": "OUTPUT",
    f"{A} WITHIN 5 OUTPUT NON {{}}": "OVERLAPPING",
    f"{A} WITHIN 5 {{}} BY CONFIDENCE DESC": "ORDER",
    f"{A} WITHIN 5 {{}} 3": "LIMIT",
    f"{A} WHERE a.x {{}} 1 AND 2 WITHIN 5": "BETWEEN",
    f"{A} WHERE a.s {{}} 'x%' WITHIN 5": "LIKE",
    f"{A} WHERE a.s {{}} '^x' WITHIN 5": "REGEXP",
    "{} SEQ(A a, B b) WITHIN 5": "PATTERN",
}
"""A query with a word missing, and the word."""

UNLIKE = (
    "BANANA",
    "FOO",
    "XYZ",
    "OF",
    "A",
    "EVENTS",
    "DURATION",
    "TOGETHER",
    "NEAR",
    "CLOCK",
    "ANDROID",
    "OBERON",
    "ISLAND",
)


def slips_of(word: str) -> Iterator[str]:
    """Yield a word with each letter left out, doubled, and swapped with the next."""
    for place in range(len(word)):
        yield word[:place] + word[place + 1 :]
        yield word[: place + 1] + word[place:]
        yield word[:place] + word[place : place + 2][::-1] + word[place + 2 :]


@pytest.mark.parametrize("text", CLAUSES)
def test_one_slip_names_the_keyword(text: str) -> None:
    word = CLAUSES[text]
    for wrong in {*slips_of(word), *map(str.lower, slips_of(word))} - {word, word.lower()}:
        with pytest.raises(QuerySyntaxError) as caught:
            parse(text.format(wrong))
        # Two letters may be meant for another short word.
        assert f"did you mean {word}?" in str(caught.value) or len(wrong) < 4, wrong


@pytest.mark.parametrize("text", CLAUSES)
def test_words_that_are_like_no_keyword_name_none(text: str) -> None:
    for word in (*UNLIKE, CLAUSES[text][:1]):
        with pytest.raises(QuerySyntaxError) as caught:
            parse(text.format(word))
        assert "did you mean" not in str(caught.value), word
        assert "write REGEXP" not in str(caught.value), word


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("node_id", ["host", "nodeId"], "nodeId"),
        ("NODEID", ["nodeId"], "nodeId"),
        ("host", ["hostname"], "hostname"),
        ("hsot", ["cost", "host"], "host"),
        ("tiem", ["time"], "time"),
        ("node", ["node"], None),
        ("x", ["y"], None),
        ("value", ["volume"], None),
        ("starting", ["ending"], None),
        ("id", ["ids"], None),
        ("overlaping", ["overlapping"], "overlapping"),
        ("", ["abc"], None),
        ("__", ["--"], None),
    ],
)
def test_a_quarter_of_the_letters_may_be_wrong(word: str, known: list[str], meant: str | None) -> None:
    assert nearest(word, known) == meant


@given(st.text("abc", max_size=7), st.text("abc", max_size=7))
def test_slips_are_counted(one: str, other: str) -> None:
    distance = slips(one, other, 9)
    assert distance == slips(other, one, 9)
    assert (distance == 0) == (one == other)
    assert abs(len(one) - len(other)) <= distance <= max(len(one), len(other))
    assert slips(one, other, 2) == distance or (distance > 2 and slips(one, other, 2) > 2)


@pytest.mark.parametrize(
    ("length", "said"),
    [
        ("1 mnute", "unknown unit of time 'mnute': did you mean minute?"),
        ("2 hous", "did you mean hours?"),
        ("1 month", "a month has no fixed length, so count in days"),
        ("3 fortnights", "unknown unit of time"),
        ("1:30", "a length is a number and a unit, or several, such as 1 min 30 s"),
        ("PT1M", "such as 1 min 30 s"),
        ("30 s 1 min", "from the longest to the shortest"),
        ("1 min 30", "the query ends too early"),
        ("1 min 1 min", "each once"),
        ("1 h 5 ticks", "from the longest to the shortest"),
    ],
)
def test_a_length_that_is_none_names_the_cure(length: str, said: str) -> None:
    for text in (f"{A} WITHIN {length}", f"{A} WITHIN 5 RETURN EXPECTED COUNT EVERY {length}"):
        with pytest.raises(QuerySyntaxError) as caught:
            parse(text)
        assert said in str(caught.value).splitlines()[0]


@pytest.mark.parametrize(
    "length", ["1 min 30 s", "1min30s", "1 MIN 30 seconds", "90 s", "1.5 min", "1 min 29 s 1000 ms"]
)
def test_a_length_may_have_several_units(length: str) -> None:
    window = parse(f"{A} WHERE TIME(b) - TIME(a) < {length} WITHIN {length}").window
    assert window is not None
    assert window.nanoseconds == parse_duration(length) == 90 * 10**9
    assert parse_duration("1h 0.5 min") == 3_630 * 10**9
    with pytest.raises(OptionError, match="such as 500ms, 15s or 1min 30s"):
        parse_duration("30 s 1 min")


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("a.host = web-1", "web-1"),
        ("a.host = web1", "web1"),
        ("a.host == web-1.example.com", "web-1.example.com"),
        ("a.host IN (web1, 'web2')", "web1"),
        ("a.host IN ('x', web-2)", "web-2"),
        ("a.path = /var/log", "/var/log"),
        ("a.ip = 10.0.0.1", "10.0.0.1"),
        ("a.host LIKE web%", "web%"),
        ("a.at > 2026-01-05T08:00", "2026-01-05T08:00"),
        ("a.at > 2026-01-05 08:00:00", "2026-01-05 08:00:00"),
        ("b.x = 1 AND LOWER(a.host) != web-1-x", "web-1-x"),
    ],
)
def test_text_without_quotes_names_quotes(condition: str, text: str) -> None:
    with pytest.raises((QuerySyntaxError, QueryError)) as caught:
        parse(f"{A} WHERE {condition} WITHIN 5")
    first, *further_lines = [line for line in str(caught.value).splitlines() if line.startswith("line ")]
    assert f"quotes, '{text}'" in first
    assert not further_lines


@pytest.mark.parametrize("condition", ["host = 'x'", "a.x > WITHIN", "a.x < 5q", "a.x = 1.2.", "a.x > 3 b.x"])
def test_what_is_no_text_names_no_quotes(condition: str) -> None:
    with pytest.raises((QuerySyntaxError, QueryError)) as caught:
        parse(f"{A} WHERE {condition} WITHIN 5")
    assert "quotes" not in str(caught.value)


def test_a_query_may_end_in_a_semicolon() -> None:
    assert parse(f"{A} WITHIN 5;") == replace(parse(f"{A} WITHIN 5"), text=f"{A} WITHIN 5;")
    assert parse(f"{A} WITHIN 5 LIMIT 3 ;\n -- done").limit == 3


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SEQ(A a, Memory m) WHERE avg(m.used) > 2", "write Memory+ m[] in the pattern, or m.used alone"),
        ("SEQ(A a, Memory m) WHERE avg(m[].used) > 2", "write Memory+ m[] in the pattern, or m.used alone"),
        ("SEQ(A a, (B|`C d`) m) WHERE count(m[]) > 2", "write (B | `C d`)+ m[] in the pattern"),
        ("SEQ(A a, ANY m) WHERE max(m.x) > 2", "write ANY+ m[] in the pattern, or m.x alone"),
        ("SEQ(A a, B b) WHERE b - a < 5 s", "when it happened is TIME(b)"),
    ],
)
def test_single_events_where_several_or_times_are_meant(query: str, said: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(f"PATTERN {query} WITHIN 5")
    assert said in str(caught.value)
    assert str(caught.value).count("in the pattern") <= 1


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("b.time - a.time < 5 s", "for the time between the events write TIME(b) - TIME(a)"),
        ("5 s > b.time - a.time", "for the time between the events write TIME(b) - TIME(a)"),
        ("b.ts - a.ts < 5 s", "when the event happened is TIME(b)"),
        ("b.time_stamp < a.lower", "when the event happened is TIME(b)"),
    ],
)
def test_attributes_for_times_name_time(condition: str, said: str) -> None:
    events = pa.table({"type": ["A"], "id": [1], "lower": [1], "upper": [1], "time": [1]})
    with pytest.raises(QueryError) as caught:
        uc.match(events, f"{A} WHERE {condition} WITHIN 5", tick="1s")
    assert said in str(caught.value)
