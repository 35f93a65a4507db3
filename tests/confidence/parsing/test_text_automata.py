"""Automata find what RE2 finds: the same groups in the same texts."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confidence.parsing import text_automata
from confidence.parsing.text_automata import Automaton
from confidence.parsing.text_programs import UnreadError

_ATOMS = st.sampled_from(
    [
        "a",
        "b",
        "[ab]",
        "[^a]",
        "[a-c1]",
        ".",
        r"\d",
        r"\S",
        r"\s",
        r"\w",
        "1",
        " ",
        "é",
        '[^"]',
        "-",
        "$",
        "^",
        "(?:)",
    ]
)
_REPEATED = st.sampled_from(["", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{0,2}?", "{1,}"])


def _larger(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(parts, min_size=1, max_size=4).map("".join),
        st.lists(parts, min_size=2, max_size=3).map(lambda each: f"(?:{'|'.join(each)})"),
        st.tuples(parts, _REPEATED).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        parts.map(lambda part: f"(?P<_>{part})"),
    )


def _named(pattern: str) -> str:
    """Return an expression whose groups have names of their own."""
    numbers = iter(range(100))
    named = re.sub(r"\(\?P<_>", lambda _: f"(?P<g{next(numbers)}>", pattern)
    return named if "(?P<" in named else f"(?P<g0>{named})"


_PATTERNS = st.builds(
    lambda begin, pattern: begin + _named(pattern),
    st.sampled_from(["", "^", "(?s)", "(?s)^"]),
    st.recursive(_ATOMS, _larger, max_leaves=9),
)
_TEXTS = st.lists(st.one_of(st.none(), st.text('ab1 é"-\n𝄞', max_size=7)), min_size=1, max_size=5)


def _found(pattern: str, texts: list[str | None]) -> list[dict[str, str] | None]:
    """Return the groups that an automaton finds, in the form of Arrow."""
    names = list(re.compile(pattern).groupindex)
    data = "".join(text or "" for text in texts).encode()
    lengths = [len((text or "").encode()) for text in texts]
    ends = np.cumsum(lengths)
    begins = np.where([text is None for text in texts], -1, ends - lengths)
    letters = np.frombuffer(data, np.uint8)
    spans, fits = Automaton(pattern, names).find(letters, begins, ends)
    return [
        {
            name: data[row[2 * number] : row[2 * number + 1]].decode() if row[2 * number] >= 0 else ""
            for number, name in enumerate(names)
        }
        if fit
        else None
        for row, fit in zip(spans.T.tolist(), fits.tolist(), strict=True)
    ]


@given(_PATTERNS, _TEXTS)
def test_groups_are_those_of_re2(pattern: str, texts: list[str | None]) -> None:
    try:
        expected = pc.extract_regex(pa.array(texts, pa.string()), pattern).to_pylist()
        groups_of_texts = _found(pattern, texts)
    except (UnreadError, pa.ArrowInvalid):
        return
    assert groups_of_texts == expected


@pytest.mark.parametrize(
    ("pattern", "text", "groups"),
    [
        # The first choice that fits is preferred, not the longest one.
        ("^(?P<x>a|ab)(?P<y>c|bcd)(?P<z>d*)", "abcd", ("a", "bcd", "")),
        ("^(?P<x>a*?)(?P<y>a*)$", "aaa", ("", "aaa")),
        # What matched before is taken where what was preferred fails.
        ("(?P<x>ab(?:cde)?)", "xabcdx", ("ab",)),
        ("^(?P<x>WARN|WARNING) (?P<y>.*)", "WARNING a b", ("WARNING", "a b")),
        ("(?:(?P<x>a)|(?P<y>b))+", "ab", ("a", "b")),
        (r"(?P<x>[^\]\\]+)", "]é\\", ("é",)),
        ("(?P<x>$)", "", ("",)),
    ],
)
def test_what_is_preferred(pattern: str, text: str, groups: tuple[str, ...]) -> None:
    (row,) = _found(pattern, [text])
    assert row is not None
    assert tuple(row.values()) == groups
    assert [row] == pc.extract_regex(pa.array([text]), pattern).to_pylist()


@pytest.mark.parametrize(
    "pattern",
    [r"(?P<x>a\b)", "(?i)(?P<x>a)", "(?P<x>[é])", "(?P<x>(?:a*)*)", "(?P<x>[[:alpha:]])", "(?P<x>a{,2})"],
)
def test_other_kinds_are_left_to_re2(pattern: str) -> None:
    with pytest.raises(UnreadError):
        Automaton(pattern, ["x"])


def test_an_automaton_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_automata, "MOST_STATES", 20)
    with pytest.raises(UnreadError):
        _found("(?P<x>a[ab]{12}c)", ["".join("ab"[number * number % 7 % 2] for number in range(200))])
