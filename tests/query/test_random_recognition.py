"""Random MATCH_RECOGNIZE queries against the literal reference, on certain times and over all worlds."""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any, Final

import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.query.test_match_recognize import (
    ANY_LOOSE,
    ANY_MORE,
    ONCE,
    Case,
    Define,
    Of,
    One,
    Row,
    Taken,
    Times,
    answer,
    drawn,
    iso,
    last,
    signatures,
)

TIMES: Final[dict[str, Times]] = {
    "": ONCE, "?": (0, 1, False), "+": (1, None, False), "{1,2}": (1, 2, False), "*": ANY_MORE,
    "+?": (1, None, True), "{2}": (2, 2, False),
}  # fmt: skip


def condition(rng: Random, before: list[str]) -> tuple[str, Define]:
    """Return a condition of DEFINE: a type, and perhaps a value, or one of a variable before."""
    name, kind, bottom = rng.choice("ABCD"), rng.random(), rng.randint(0, 3)
    other = rng.choice(before) if before and kind < 0.15 else None
    text = f"type = '{name}'"
    if other is not None:
        text += f" AND v > {other}.v"
    elif kind < 0.4:
        text += f" AND v >= {bottom}"

    def holds(row: Row, taken: Taken) -> bool | None:
        if row["type"] != name or (other is None and kind >= 0.4):
            return bool(row["type"] == name)
        bound = bottom if other is None else last(taken, other)
        if None in (row["v"], bound):
            return None
        return bool(row["v"] > bound if other is not None else row["v"] >= bound)

    return text, holds


def query(rng: Random) -> Case:
    """Return a query of two to four parts, some of them groups or alternatives, with gaps between some."""
    names, singles, shown = [*"ABCEFGHI"], list[str](), ""
    texts, parts = list[str](), list[Any]()
    define, conditions = dict[str, Define](), list[str]()
    for place in range(rng.randint(2, 4)):
        if place and rng.random() < 0.45:
            sign, times = rng.choice([("*?", ANY_LOOSE)] * 4 + [("*", ANY_MORE)])
            texts.append(f"X{place}{sign}")
            parts.append(One(f"X{place}", times))
        sign = rng.choice([*TIMES]) if place and rng.random() < 0.45 else ""
        taken = [names.pop(0) for _ in range(1 + (rng.random() < 0.12))]
        for name in taken:
            text, define[name] = condition(rng, singles)
            conditions.append(f"{name} AS {text}")
        shown += "".join(taken).lower()
        if len(taken) > 1:
            is_choice = rng.random() < 0.5
            sign = "" if is_choice else sign
            texts.append(f"({(' | ' if is_choice else ' ').join(taken)}){sign}")
            parts.append(Of(tuple(map(One, taken)), TIMES[sign], is_choice))
            continue
        texts.append(taken[0] + sign)
        parts.append(One(taken[0], TIMES[sign]))
        singles += taken if not sign else []
    text = f"{' '.join(texts)} DEFINE {', '.join(conditions)}"
    return Case(text, tuple(parts), define, shown, rng.choice([1000, 1000, 6]))


def table_of(rows: list[dict[str, Any]], ticks: list[list[int]]) -> pa.Table:
    """Return events, each at one of its ticks, all as probable."""
    pmfs = [[(tick in each) / len(each) for tick in range(each[0], each[-1] + 1)] for each in ticks]
    columns = {name: [row[name] for row in rows] for name in ("type", "id", "k", "v")}
    bounds = {"lower": [each[0] for each in ticks], "upper": [each[-1] for each in ticks]}
    return pa.table({**columns, **bounds, "pmf": pmfs})


def check(case: Case, rows: list[dict[str, Any]], ticks: list[list[int]]) -> None:
    """Assert that the answer is what ISO prefers, summed over the worlds of each partition."""
    ours, lists = answer(case, table_of(rows, ticks))
    expected: dict[tuple[Any, ...], float] = defaultdict(float)
    for k in {row["k"] for row in rows}:
        partition = [(row, each) for row, each in zip(rows, ticks, strict=True) if row["k"] == k]
        share = 1 / math.prod(len(each) for _, each in partition)
        for world in product(*(each for _, each in partition)):
            timed = [{**row, "t": tick} for (row, _), tick in zip(partition, world, strict=True)]
            for signature in signatures(case, sorted(timed, key=lambda row: row["t"]), lists):
                expected[signature] += share
    assert ours == pytest.approx(expected, rel=1e-9), case.text


def test_random_queries() -> None:
    rng, compared = Random(1), 0
    for number in range(150):
        case = query(rng)
        try:
            uc.sql(case.text)
        except (uc.QueryError, uc.QuerySyntaxError):
            continue
        compared += 1
        certain = drawn(1000 + number, 6, 7)
        check(case, certain, [[row["t"]] for row in certain])
        rows = drawn(number, 1, 5)
        # No two events have a tick in common: SQL leaves the order of ties to chance.
        first = [place + 5 * rng.randint(0, 2) for place, _ in enumerate(rows)]
        check(case, rows, [[tick + 5 * step for step in range(rng.randint(1, 3))] for tick in first])
    assert compared > 20


BOUNDS: Final = ("PREV({})", "1", "1.5", "2")
COMPARED: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": operator.lt, "<=": operator.le, "=": operator.eq, "<>": operator.ne, ">=": operator.ge,
    ">": operator.gt,
}  # fmt: skip


def comparison(rng: Random, name: str) -> tuple[str, Define]:
    """Return a comparison of v with that of the row before, or with a number, in one of its spellings."""
    sign, bound = rng.choice([*COMPARED]), rng.choice(BOUNDS)
    column = rng.choice(["v", f"{name}.v"])
    other = bound.format(rng.choice(["v", f"{name}.v"]))
    flipped = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(sign, sign)
    text = (
        f"{name} AS {other} {flipped} {column}"
        if rng.random() < 0.4
        else f"{name} AS {column} {sign} {other}"
    )

    def holds(row: Row, taken: Taken) -> bool | None:
        before = taken[-1][1]["v"] if "PREV" in bound else float(bound)
        return None if None in (row["v"], before) else COMPARED[sign](row["v"], before)

    return text, holds


def test_runs_that_end_where_another_comparison_holds() -> None:
    """Runs are answered where no row meets both conditions, and then as SQL does; else they are refused."""
    rng, compared = Random(7), 0
    for number in range(120):
        conditions = [comparison(rng, name) for name in "BC"]
        define = dict(zip("BC", (holds for _, holds in conditions), strict=True))
        times = rng.choice(["+", "*", "{1,2}", "?"])
        text = f"A B{times} C DEFINE {', '.join(text for text, _ in conditions)}"
        case = Case(text, (One("A"), One("B", TIMES[times]), One("C")), define, "abc", 1000)
        try:
            uc.sql(case.text)
        except uc.QueryError:
            continue
        compared += 1
        certain = drawn(5000 + number, 6, 7)
        check(case, certain, [[row["t"]] for row in certain])
    assert compared > 15


def test_runs_of_all_rows_are_the_sessions_of_each_world() -> None:
    """(S U*) without a skip to the next row, where neighbours decide, over all worlds."""
    text = "MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts PATTERN (S U*) DEFINE U AS ts - PREV(ts) <= 3)"
    define: dict[str, Define] = {"U": lambda row, taken: row["t"] - taken[-1][1]["t"] <= 3}
    case, rng = Case("S U*", (One("S"), One("U", ANY_MORE)), define, "su"), Random(5)
    for number in range(25):
        rows = drawn(number, 1, 6)
        first = [place + 6 * rng.randint(0, 2) for place, _ in enumerate(rows)]
        steps = [rng.randint(1, 3 if number else 1) for _ in rows]
        ticks = [[tick + 6 * step for step in range(size)] for tick, size in zip(first, steps, strict=True)]
        expected: dict[tuple[int, ...], float] = defaultdict(float)
        for world in product(*ticks):
            timed = [{**row, "t": tick} for row, tick in zip(rows, world, strict=True)]
            for taken in iso(case, sorted(timed, key=lambda row: row["t"]), skip_past_last=True):
                expected[tuple(row["id"] for _, row in taken)] += 1 / math.prod(map(len, ticks))
        matches = uc.match(table_of(rows, ticks), uc.sql(text)).to_pylist()
        assert {tuple(row["c"]): row["confidence"] for row in matches} == pytest.approx(expected, rel=1e-9)
