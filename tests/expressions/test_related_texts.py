"""Texts of two events that contain, begin or are like each other: in joins, negations, lists and streams."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.predicates.text_relations import is_related, text_words

TEXTS = [
    "",
    "a",
    "ab",
    "b",
    "é",
    "aé",
    "%",
    "_",
    "a%",
    "%b",
    "_b",
    "%_",
    "a_%b",
    "日本",
    "_本",
    "%" + "a" * 9,
]
letters = st.lists(st.sampled_from(TEXTS), min_size=1, max_size=8)


def like(text: str, pattern: str) -> bool:
    """Match a pattern of LIKE, character by character."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return like(text, pattern[1:]) or (bool(text) and like(text[1:], pattern))
    return bool(text) and pattern[0] in ("_", text[0]) and like(text[1:], pattern[1:])


@given(letters, letters)
def test_the_kernel_knows_characters(one: list[str], other: list[str]) -> None:
    texts = sorted({"".join(one), "".join(other)}, key=str.encode)
    encoded = [text.encode() for text in texts]
    begin = np.cumsum([0, *map(len, encoded)])
    ints = np.concatenate((np.full(3, 7), text_words(begin, np.frombuffer(b"".join(encoded), np.uint8))))
    for x, text in enumerate(texts):
        for y, part in enumerate(texts):
            expected = (part in text, text.startswith(part), like(text, part))
            assert tuple(is_related(relation, ints, 3, x, y) for relation in range(3)) == expected


EVENTS = pa.table(
    {
        "type": ["P", "F", "P", "F", "F"],
        "id": [1, 2, 3, 4, 5],
        "lower": [0, 1, 2, 3, 4],
        "upper": [0, 1, 2, 3, 4],
        "cmd": ["rm /tmp/x", None, "cat /etc/y", None, None],
        "path": [None, "/tmp/x", None, "/etc/%", "/TMP/X"],
    }
)
CONDITIONS = {
    "CONTAINS(p.cmd, f.path)": [(1, 2)],
    "CONTAINS(p.cmd, LOWER(f.path))": [(1, 2), (1, 5)],
    "p.cmd LIKE CONCAT('%', f.path)": [(1, 2), (3, 4)],
    "p.cmd ILIKE CONCAT('% ', f.path)": [(1, 2), (1, 5), (3, 4)],
    "NOT CONTAINS(p.cmd, f.path)": [(1, 4), (1, 5), (3, 4), (3, 5)],
    "STARTS_WITH('/tmp/x/y', f.path) OR p.id = 3": [(1, 2), (3, 4), (3, 5)],
}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("evaluation", ["auto", "any_state", "selectivity", "point"])
def test_of_two_events(condition: str, evaluation: str) -> None:
    matches = uc.match(EVENTS, f"PATTERN SEQ(P p, F f) WHERE {condition} WITHIN 9", evaluation=evaluation)
    assert sorted((row["p"], row["f"]) for row in matches.to_pylist()) == CONDITIONS[condition]


def test_of_what_is_negated_and_of_lists() -> None:
    free = uc.match(EVENTS, "PATTERN SEQ(P p, !F f, ANY z) WHERE CONTAINS(p.cmd, f.path) WITHIN 9")
    assert sorted((row["p"], row["z"]) for row in free.to_pylist()) == [(1, 2), (3, 4), (3, 5)]
    lists = uc.match(EVENTS, "PATTERN SEQ(P p, F+ f[]) WHERE NOT p.cmd LIKE CONCAT('%', f[i].path) WITHIN 9")
    assert sorted((row["p"], row["f"]) for row in lists.to_pylist()) == [
        (1, [4]), (1, [4, 5]), (1, [5]), (3, [5]),
    ]  # fmt: skip


def test_of_events_that_arrive() -> None:
    query = "PATTERN SEQ(P p, F f) WHERE CONTAINS(p.cmd, f.path) WITHIN 9"
    matcher = uc.IncrementalMatcher(query, EVENTS.schema)
    batches = [matcher.push(EVENTS.slice(row, 1)) for row in range(EVENTS.num_rows)] + [matcher.close()]
    assert [(row["p"], row["f"]) for batch in batches for row in batch.to_pylist()] == [(1, 2)]


def test_errors() -> None:
    for condition, message in (
        ("p.cmd LIKE f.path ESCAPE '!'", "written out"),
        ("REGEXP_EXTRACT(p.cmd, f.path) = ''", "written out"),
        ("CONCAT(p.cmd, f.path) = 'x'", re.escape("CONTAINS(a.x, b.x)")),
        ("CONTAINS(p.cmd, f.id)", "CONTAINS needs text"),
    ):
        with pytest.raises(uc.QueryError, match=message):
            uc.match(EVENTS, f"PATTERN SEQ(P p, F f) WHERE {condition} WITHIN 9")
