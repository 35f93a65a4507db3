"""Gaps whose survival matches share by tables: the answers are the oracle's, and those of match by match."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from eventbased.gaps import gap_confidences, pool_tables
from eventbased.gaps.pool_tables import PoolTables, new_pool_tables
from tests.cases.language import LanguageCase, language_cases

Rows = Literal["short", "few", "unused", "as they are"]
_ROWS: tuple[Rows, ...] = ("short", "few", "unused", "as they are")


@contextmanager
def tabled(rows: Rows = "as they are") -> Iterator[list[PoolTables]]:
    """Have gaps use tables however few matches there are; yield a list that gets the tables."""
    made: list[PoolTables] = []

    def new(window: int) -> PoolTables:
        made.append(new_pool_tables(window))
        if rows == "unused":
            made[-1].uses[:] = 10**6
        return made[-1]

    with ExitStack() as stack:
        stack.enter_context(patch.multiple(gap_confidences, LEAST_TABLED=1, new_pool_tables=new))
        if rows == "short":
            stack.enter_context(patch.object(pool_tables, "MOST_SPREAD", 8))
        if rows != "as they are":
            stack.enter_context(patch.object(pool_tables, "TABLE_CELLS", 1))
        yield made


@given(language_cases("skip_till_any_match"), st.sampled_from(_ROWS))
def test_answers_are_those_of_the_oracle(case: LanguageCase, rows: Rows) -> None:
    note(case.text())
    with tabled(rows):
        case.check()


_PATTERNS = (
    "A a, !N n, B b",
    "A a, !(A|N) n, B b, C c",
    "A a, B b, !N n, C c",
    "A a, !N n, B b, !B m, C c",
    "A a, !N n, B b, !N m, C c",
    "A a, !N n, B b, C c, !A m, A d",
    "A+ a[], !N n, B b",
    "A a, B+ b[], !(N|C) n, C c",
    "A a, B? b, !N n, C c",
)


def _stream(chance: random.Random, keys: int, most: int = 70) -> pa.Table:
    count = chance.randint(most // 2, most)
    spacing = chance.choice([0.5, 1, 3])
    lower, upper, pmf = [], [], []
    for number in range(count):
        length = chance.choice([1, 2, 5, 11, chance.randint(1, 30)])
        lower.append(int(number * spacing) - chance.randint(0, length - 1))
        upper.append(lower[-1] + length - 1)
        weights = [chance.randint(0, 3) for _ in range(length - 1)] + [1]
        explicit = chance.random() < 0.15
        pmf.append([weight / sum(weights) for weight in weights] if explicit else None)
    columns: dict[str, Any] = {
        "type": chance.choices("ABCN", [3, 3, 2, 4], k=count),
        "id": range(count),
        "lower": lower,
        "upper": upper,
        "k": [chance.choice([*range(keys), None]) for _ in range(count)],
    }
    if chance.random() < 0.5:
        columns["pmf"] = pmf
    return pa.table(columns)


def _rows(table: pa.Table, text: str) -> dict[str, dict[str, Any]]:
    with warnings.catch_warnings():
        # Of types and keys that no event has.
        warnings.simplefilter("ignore", uc.UncertainCepWarning)
        rows = uc.match(table, text, threads=1).to_pylist()
    shown = ("range_lower", "range_upper", "confidence")
    return {str([value for name, value in row.items() if name not in shown]): row for row in rows}


@given(st.integers(0, 10**9), st.sampled_from(_PATTERNS), st.sampled_from(_ROWS))
def test_answers_are_those_of_match_by_match(seed: int, pattern: str, rows: Rows) -> None:
    chance = random.Random(seed)
    keys = chance.choice([1, 1, 3])
    # Sets of events of a Kleene component are many.
    table = _stream(chance, keys, 18 if "+" in pattern else 60)
    window = chance.choice([3, 8, 12, 20])
    tied = " WHERE [k]" if keys > 1 else ""
    text = f"PATTERN SEQ({pattern}){tied} WITHIN {window}"
    with patch.object(gap_confidences, "LEAST_TABLED", 10**9):
        expected = _rows(table, text)
    with tabled(rows):
        found = _rows(table, text)
    assert found.keys() == expected.keys()
    for key, row in found.items():
        wanted = expected[key]
        assert (row["range_lower"], row["range_upper"]) == (wanted["range_lower"], wanted["range_upper"])
        assert math.isclose(row["confidence"], wanted["confidence"], rel_tol=1e-9)


@pytest.mark.parametrize(("rows", "used"), [("as they are", True), ("few", True), ("unused", False)])
def test_rows_are_used_by_several_matches(rows: Rows, used: bool) -> None:
    table = _stream(random.Random(0), 1)
    with tabled(rows) as made:
        uc.match(table, "PATTERN SEQ(A a, !N n, B b, C c) WITHIN 20", threads=1)
    (tables,) = made
    asked, begun = tables.uses.tolist()
    if used:
        assert asked > 2 * begun > 0
    else:
        assert asked == begun == 10**6
    assert bool(np.any(tables.key >= 0)) == used


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, !N n, B b) WHERE n.id > a.id WITHIN 20",
        "PATTERN SEQ(A a, !N n, !C m, B b) WITHIN 20",
        "PATTERN SEQ(!N n, A a, B b) WITHIN 20",
        "PATTERN SEQ(A a, B b, !N n) WITHIN 20",
        "PATTERN SEQ(A a, !N n, B b) WHERE skip_till_next_match(a, b) WITHIN 20",
        "PATTERN SEQ(A a, !N n, B b) WHERE partition_contiguity(a, b) { [k] } WITHIN 20",
    ],
)
def test_what_depends_on_the_match_has_no_tables(text: str) -> None:
    with tabled() as made:
        uc.match(_stream(random.Random(2), 1), text, threads=1)
    assert not made


@pytest.mark.parametrize("least", [1, 10**9])
@pytest.mark.parametrize("shift", [2**59, -(2**60)])
def test_times_far_from_zero(least: int, shift: int) -> None:
    table = _stream(random.Random(3), 1)
    moved = table
    for place, name in enumerate(table.column_names):
        if name in ("lower", "upper"):
            moved = moved.set_column(place, name, pc.add(table.column(name), shift))
    for pattern in ("A a, !N n, B b, C c", "A a, B b, !N n, C c"):
        text = f"PATTERN SEQ({pattern}) WITHIN 9"
        with patch.object(gap_confidences, "LEAST_TABLED", least):
            expected, found = _rows(table, text), _rows(moved, text)
        assert found.keys() == expected.keys() != set()
        for key, row in found.items():
            assert row["range_lower"] - shift == expected[key]["range_lower"]
            assert row["range_upper"] - shift == expected[key]["range_upper"]
            assert math.isclose(row["confidence"], expected[key]["confidence"], rel_tol=1e-12)
