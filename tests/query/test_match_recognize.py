"""MATCH_RECOGNIZE of SQL against a literal reference: in each world what ISO prefers of each start.

The reference reads no query: each pattern stands once as SQL and once as Python. It goes through the rows of
a partition, tries what it prefers first, and goes back. ``CASES`` has each construct that is answered;
what is refused stands at the end.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import uncertain_cep as uc
from uncertain_cep.cli.arguments import read_query

Row = Mapping[str, Any]
Taken = tuple[tuple[str, Row], ...]
Define = Callable[[Row, Taken], bool | None]
Times = tuple[int, int | None, bool]
"""The fewest rows, the upper, and whether as few as possible."""
ONCE: Times = (1, 1, False)


def any_row(_row: Row, _taken: Taken) -> bool:
    return True


@dataclass(frozen=True)
class One:
    """A variable of a pattern."""

    name: str
    times: Times = ONCE


@dataclass(frozen=True)
class Of:
    """Parts in a row, or the first of some that fits."""

    parts: tuple[Any, ...]
    times: Times = ONCE
    choice: bool = False


def row_matches(
    parts: tuple[Any, ...], rows: Sequence[Row], at: int, taken: Taken, define: Mapping[str, Define]
) -> Iterator[tuple[int, Taken]]:
    """Yield where parts in a row end and what they take, the preferred way first."""
    if not parts:
        yield at, taken
        return
    part, behind = parts[0], parts[1:]
    fewest, upper, reluctant = part.times

    def once(at: int, taken: Taken) -> Iterator[tuple[int, Taken]]:
        if isinstance(part, One):
            if at < len(rows) and define.get(part.name, any_row)(rows[at], taken) is True:
                yield at + 1, (*taken, (part.name, rows[at]))
        elif part.choice:
            for branch in part.parts:
                yield from row_matches((branch,), rows, at, taken, define)
        else:
            yield from row_matches(part.parts, rows, at, taken, define)

    def times(count: int, at: int, taken: Taken) -> Iterator[tuple[int, Taken]]:
        if reluctant and count >= fewest:
            yield from row_matches(behind, rows, at, taken, define)
        if upper is None or count < upper:
            for end, more in once(at, taken):
                yield from times(count + 1, end, more)
        if not reluctant and count >= fewest:
            yield from row_matches(behind, rows, at, taken, define)

    yield from times(0, at, taken)


def iso(case: Case, rows: Sequence[Row], skip_past_last: bool = False) -> Iterator[Taken]:
    """Yield the match of each start among the rows of a partition, or of each behind the match before."""
    free = 0
    for start, first in enumerate(rows):
        if start < free:
            continue
        near = [row for row in rows[start:] if row["t"] - first["t"] < case.window]
        for end, taken in row_matches(case.pattern, near, 0, (), case.define):
            yield taken
            free = start + end if skip_past_last else free
            break


@dataclass(frozen=True)
class Case:
    """A query in both forms; ``shown`` are the variables that our result has."""

    sql: str
    pattern: tuple[Any, ...]
    define: Mapping[str, Define]
    shown: str
    window: int = 1000
    measures: Mapping[str, Callable[[Taken], Any]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        pattern, _, define = self.sql.partition(" DEFINE ")
        within = "" if self.window == 1000 else f"WITHIN {self.window}"
        define = f"DEFINE {define}" if define else ""
        measures = ", ".join(f'{measure} AS "{measure}"' for measure in self.measures)
        measures = f"MEASURES {measures}" if measures else ""
        return (
            f"SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY lower {measures} "
            f"ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN ({pattern}) {within} {define}) AS m"
        )


def of_type(name: str) -> Define:
    return lambda row, _: row["type"] == name


def last(taken: Taken, name: str) -> Any:
    values = [row["v"] for variable, row in taken if variable == name]
    return values[-1] if values else None


def values(taken: Taken, name: str) -> list[Any]:
    """Return the values of the rows of a variable that have one."""
    return [row["v"] for variable, row in taken if variable == name and row["v"] is not None]


ABC = {name: of_type(name) for name in "ABCD"}
SQL_ABC = "A AS type = 'A', B AS type = 'B', C AS type = 'C'"
ANY_LOOSE, ANY_MORE = (0, None, True), (0, None, False)
CASES = {
    "a gap": Case(
        "A X*? B DEFINE A AS type = 'A', B AS B.type = 'B'",
        (One("A"), One("X", ANY_LOOSE), One("B")),
        ABC,
        "ab",
    ),
    "in a window": Case(
        "A X*? B DEFINE A AS type = 'A', B AS type = 'B'",
        (One("A"), One("X", ANY_LOOSE), One("B")),
        ABC,
        "ab",
        5,
    ),
    "neighbours": Case(f"A B C DEFINE {SQL_ABC}", (One("A"), One("B"), One("C")), ABC, "abc"),
    "two gaps": Case(
        f"A X*? B Y*? C DEFINE {SQL_ABC}",
        (One("A"), One("X", ANY_LOOSE), One("B"), One("Y", ANY_LOOSE), One("C")),
        ABC,
        "abc",
    ),
    "a run": Case(f"A B+ C DEFINE {SQL_ABC}", (One("A"), One("B", (1, None, False)), One("C")), ABC, "abc"),
    "the last one": Case(
        "A X* B DEFINE A AS type = 'A', B AS type = 'B' AND v >= 1",
        (One("A"), One("X", ANY_MORE), One("B")),
        {**ABC, "B": lambda row, _: row["type"] == "B" and row["v"] is not None and row["v"] >= 1},
        "ab",
        6,
    ),
    "what may be passed over": Case(
        "A X*? B DEFINE A AS type = 'A', X AS v < 2, B AS type = 'B'",
        (One("A"), One("X", ANY_LOOSE), One("B")),
        {**ABC, "X": lambda row, _: row["v"] is not None and row["v"] < 2},
        "ab",
    ),
    "compared with the first": Case(
        "A X*? B DEFINE A AS type = 'A', B AS type <> 'A' AND v > A.v",
        (One("A"), One("X", ANY_LOOSE), One("B")),
        {
            **ABC,
            "B": lambda row, taken: (
                row["type"] != "A"
                and None not in (row["v"], last(taken, "A"))
                and row["v"] > last(taken, "A")
            ),
        },
        "ab",
    ),
    "an option": Case(f"A B? C DEFINE {SQL_ABC}", (One("A"), One("B", (0, 1, False)), One("C")), ABC, "abc"),
    "a group": Case(
        f"A (B C)? D DEFINE {SQL_ABC}, D AS type = 'D'",
        (One("A"), Of((One("B"), One("C")), (0, 1, False)), One("D")),
        ABC,
        "abcd",
    ),
    "alternatives": Case(
        "(A | B) C DEFINE A AS type = 'A', B AS v = 2, C AS type = 'C'",
        (Of((One("A"), One("B")), choice=True), One("C")),
        {**ABC, "B": lambda row, _: row["v"] == 2},
        "abc",
    ),
    "rising": Case(
        "A B+ C DEFINE A AS type <> 'C', B AS type = 'B' AND v >= PREV(v), C AS type = 'C'",
        (One("A"), One("B", (1, None, False)), One("C")),
        {
            **ABC,
            "A": lambda row, _: row["type"] != "C",
            "B": lambda row, taken: (
                row["type"] == "B"
                and None not in (row["v"], taken[-1][1]["v"])
                and row["v"] >= taken[-1][1]["v"]
            ),
        },
        "abc",
    ),
    "counted": Case(
        f"A B{{1,2}} C DEFINE {SQL_ABC}", (One("A"), One("B", (1, 2, False)), One("C")), ABC, "abc"
    ),
    "neighbours and a gap": Case(
        f"A B X*? C DEFINE {SQL_ABC}", (One("A"), One("B"), One("X", ANY_LOOSE), One("C")), ABC, "abc"
    ),
    "any row": Case(
        "A U B DEFINE A AS type = 'A', B AS type = 'B'", (One("A"), One("U"), One("B")), ABC, "aub"
    ),
    "at least, as few as it can": Case(
        f"A B{{1,}}? C DEFINE {SQL_ABC}", (One("A"), One("B", (1, None, True)), One("C")), ABC, "abc"
    ),
    "rising within a run": Case(
        "A B+ C DEFINE A AS type <> 'C', C AS type = 'C', "
        "B AS type = 'B' AND (LAST(B.v, 1) IS NULL OR B.v > LAST(B.v, 1))",
        (One("A"), One("B", (1, None, False)), One("C")),
        {
            **ABC,
            "A": lambda row, _: row["type"] != "C",
            "B": lambda row, taken: (
                row["type"] == "B"
                and (last(taken, "B") is None or (row["v"] is not None and row["v"] > last(taken, "B")))
            ),
        },
        "abc",
    ),
    "measures": Case(
        f"A B+ C DEFINE {SQL_ABC}",
        (One("A"), One("B", (1, None, False)), One("C")),
        ABC,
        "abc",
        measures={
            "A.v": lambda taken: last(taken, "A"),
            "FIRST(B.v)": lambda taken: next(row["v"] for name, row in taken if name == "B"),
            "LAST(B.v)": lambda taken: last(taken, "B"),
            "COUNT(B.v)": lambda taken: len(values(taken, "B")),
            "SUM(B.v)": lambda taken: sum(values(taken, "B")) if values(taken, "B") else None,
            "MIN(B.v)": lambda taken: min(values(taken, "B"), default=None),
            "MAX(B.v)": lambda taken: max(values(taken, "B"), default=None),
        },
    ),
    "next and last": Case(
        f"A X*? B Y* C DEFINE {SQL_ABC}",
        (One("A"), One("X", ANY_LOOSE), One("B"), One("Y", ANY_MORE), One("C")),
        ABC,
        "abc",
    ),
}


def entry(taken: Taken, name: str, lists: set[str]) -> Any:
    ids = tuple(row["id"] for variable, row in taken if variable == name.upper())
    return ids if name in lists else ids[0] if ids else None


def signatures(case: Case, rows: Sequence[Row], lists: set[str]) -> set[tuple[Any, ...]]:
    return {
        (
            *(entry(taken, name, lists) for name in case.shown),
            *(measure(taken) for measure in case.measures.values()),
        )
        for taken in iso(case, rows)
    }


def answer(case: Case, table: pa.Table) -> tuple[dict[tuple[Any, ...], float], set[str]]:
    matches = uc.match(table, uc.sql(case.text))
    lists = {
        name
        for name in case.shown
        if pa.types.is_list(matches.schema.field(name).type)
        or pa.types.is_large_list(matches.schema.field(name).type)
    }
    rows = {}
    for row in matches.to_pylist():
        variables = (tuple(row[name]) if name in lists else row[name] for name in case.shown)
        key = (*variables, *(row[name] for name in case.measures))
        assert key not in rows
        rows[key] = row["confidence"]
    return rows, lists


def drawn(seed: int, partitions: int, size: int) -> list[dict[str, Any]]:
    draw = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for k in range(partitions):
        for tick in np.sort(draw.choice(12, size, replace=False)).tolist():
            value = int(draw.integers(0, 5))
            rows.append(
                {
                    "type": str(draw.choice(list("AABBCCD"))),
                    "id": len(rows),
                    "k": k,
                    "t": tick,
                    "v": None if value == 4 else value,
                }
            )
    return rows


@pytest.mark.parametrize("name", CASES)
def test_on_certain_times(name: str) -> None:
    case, rows = CASES[name], drawn(7, 150, 7)
    table = pa.table(
        {column: [row[column] for row in rows] for column in ("type", "id", "k", "v")}
        | {"lower": [row["t"] for row in rows], "upper": [row["t"] for row in rows]}
    )
    ours, lists = answer(case, table)
    expected = set()
    for k in range(150):
        expected |= signatures(case, [row for row in rows if row["k"] == k], lists)
    assert set(ours) == expected
    assert all(confidence == 1.0 for confidence in ours.values())
    assert len(expected) > 10


@pytest.mark.parametrize("name", CASES)
def test_on_uncertain_times_it_is_summed_over_all_worlds(name: str) -> None:
    case, compared = CASES[name], 0
    for seed in range(40):
        draw = np.random.default_rng(seed)
        rows = drawn(seed, 1, 5)
        # No two events have a tick in common: SQL leaves the order of ties to chance.
        laws = []
        for place, _ in enumerate(rows):
            first = int(draw.integers(0, 3))
            ticks = [place + 5 * (first + step) for step in range(int(draw.integers(1, 4)))]
            weights = draw.integers(1, 4, len(ticks)).tolist()
            laws.append((ticks, [weight / sum(weights) for weight in weights]))
        pmfs = []
        for ticks, weights in laws:
            pmf = [0.0] * (ticks[-1] - ticks[0] + 1)
            for tick, weight in zip(ticks, weights, strict=True):
                pmf[tick - ticks[0]] = weight
            pmfs.append(pmf)
        table = pa.table(
            {column: [row[column] for row in rows] for column in ("type", "id", "k", "v")}
            | {
                "lower": [ticks[0] for ticks, _ in laws],
                "upper": [ticks[-1] for ticks, _ in laws],
                "pmf": pmfs,
            }
        )
        ours, lists = answer(case, table)
        expected: dict[tuple[Any, ...], float] = defaultdict(float)
        for world in product(*(list(zip(*law, strict=True)) for law in laws)):
            weight = math.prod(share for _, share in world)
            timed = sorted(
                ({**row, "t": tick} for row, (tick, _) in zip(rows, world, strict=True)),
                key=lambda row: row["t"],
            )
            for signature in signatures(case, timed, lists):
                expected[signature] += weight
        assert set(ours) == set(expected)
        for signature, confidence in ours.items():
            assert math.isclose(confidence, expected[signature], rel_tol=1e-9)
        compared += len(ours)
    assert compared


EVENTS = pa.table(
    {
        "type": ["A", "B", "B"],
        "id": [1, 2, 3],
        "k": ["x"] * 3,
        "v": [1, 2, 3],
        "lower": [0, 2, 3],
        "upper": [0, 2, 5],
    }
)


def test_measures_and_times() -> None:
    query = uc.sql(
        """SELECT * FROM events MATCH_RECOGNIZE (
             PARTITION BY k ORDER BY ts
             MEASURES A.v AS first_v, FINAL LAST(B.v) AS last_v, SUM(B.v) AS "sum of v"
             AFTER MATCH SKIP TO NEXT ROW
             PATTERN (A B{2} C) WITHIN INTERVAL '10' SECOND
             DEFINE A AS type = 'A', B AS type = 'B' AND B.ts - A.ts <= INTERVAL '5' SECOND, C AS type = 'C'
           );"""
    )
    assert "TIME(b[i]) - TIME(a) <= 5 second" in query.text
    assert "RETURN a.v AS first_v, b[b.LEN].v AS last_v, sum(b[].v) AS `sum of v`" in query.text


def test_sessions() -> None:
    times = [(0, 1), (2, 5), (9, 10), (11, 12)]
    events = pa.table(
        {
            "type": ["C"] * 4,
            "id": [1, 2, 3, 4],
            "lower": [a for a, _ in times],
            "upper": [b for _, b in times],
        }
    )
    query = uc.sql("MATCH_RECOGNIZE (ORDER BY ts PATTERN (S U*) DEFINE U AS ts - PREV(ts) <= 3)")
    rows = {tuple(row["c"]): row["confidence"] for row in uc.match(events, query).to_pylist()}
    assert rows == {(1, 2): 5 / 8, (1,): 3 / 8, (2,): 3 / 8, (3, 4): 1.0}


def test_within_an_interval_of_stamps() -> None:
    """Less than the interval, as Flink: a row 5 s later is outside."""
    rows = [{**row, "t": 5 * row["t"] // 2} for row in drawn(3, 60, 6)]
    stamps = [datetime(2024, 5, 1, 0, 0, row["t"]) for row in rows]
    events = pa.table(
        {name: [row[name] for row in rows] for name in ("type", "id", "k", "v")}
        | {"lower": stamps, "upper": stamps}
    )
    within = CASES["in a window"]
    text = within.text.replace("WITHIN 5", "WITHIN INTERVAL '5' SECOND")
    ours = {(row["a"], row["b"]) for row in uc.match(events, uc.sql(text)).to_pylist()}
    expected = set()
    for k in range(60):
        expected |= signatures(within, [row for row in rows if row["k"] == k], set())
    assert ours == expected
    assert len(ours) > 10


def test_what_goes_back_is_no_next_match() -> None:
    """``A X*? B Y*? C`` where C is compared with B is refused: SQL takes the second B, and no next one."""
    rows = [
        {"id": id_, "type": type_, "v": v, "t": id_}
        for id_, type_, v in [(0, "A", 0), (1, "B", 5), (2, "B", 1), (3, "C", 2)]
    ]
    define = {**ABC, "C": lambda row, taken: row["type"] == "C" and row["v"] > last(taken, "B")}
    pattern = (One("A"), One("X", ANY_LOOSE), One("B"), One("Y", ANY_LOOSE), One("C"))
    case = Case(f"A X*? B Y*? C DEFINE {SQL_ABC} AND v > B.v", pattern, define, "abc")
    assert signatures(case, rows, set()) == {(0, 2, 3)}
    with pytest.raises(uc.QueryError, match="C is compared with B, which stands behind a gap"):
        uc.sql(case.text)


def test_the_next_one_of_each_start() -> None:
    """An A at 0 and one of 1..4, a B at 3 and one at 6: the second A is before the first B at 1 and 2."""
    events = pa.table(
        {"type": ["A", "A", "B", "B"], "id": [1, 2, 3, 4], "lower": [0, 1, 3, 6], "upper": [0, 4, 3, 6]}
    )
    define = "DEFINE A AS type = 'A', B AS type = 'B'"
    query = uc.sql(f"MATCH_RECOGNIZE (ORDER BY ts AFTER MATCH SKIP TO NEXT ROW PATTERN (A X*? B) {define})")
    rows = {(row["a"], row["b"]): row["confidence"] for row in uc.match(events, query).to_pylist()}
    assert rows == {(1, 3): 1.0, (2, 3): 0.5, (2, 4): 0.5}


def test_the_longest_list_up_to_an_event() -> None:
    """C at 2 and one of 3..6, D at 5 and 9: a list that could go on is none."""
    events = pa.table(
        {
            "type": ["A", "C", "C", "D", "D"], "id": [0, 1, 2, 3, 4], "lower": [0, 2, 3, 5, 9],
            "upper": [0, 2, 6, 5, 9],
        }
    )  # fmt: skip
    query = "PATTERN SEQ(A a, C+ c[], !C n, D d) WHERE skip_till_next_match(a, c[], d) WITHIN 20"
    rows = {(*row["c"], row["d"]): row["confidence"] for row in uc.match(events, query).to_pylist()}
    assert rows == {(1, 2, 3): 0.5, (1, 2, 4): 0.5, (1, 3): 0.5}


def test_the_longest_rising_runs() -> None:
    """Values 1 at 0, 2 at one of 1..3, 3 at 2: runs that no event could go on with, at either end."""
    events = pa.table(
        {"type": ["C"] * 3, "id": [1, 2, 3], "v": [1, 2, 3], "lower": [0, 1, 2], "upper": [0, 3, 2]}
    )
    query = (
        "PATTERN SEQ(!C m, C+ c[], !C n) WHERE skip_till_next_match(c[]) AND c[i].v > c[i-1].v "
        "AND m.v < c[1].v AND n.v > c[c.LEN].v WITHIN 20"
    )
    with pytest.warns(uc.UncertainCepWarning, match="behind the last event"):
        matches = uc.match(events, query).to_pylist()
    rows = {tuple(row["c"]): row["confidence"] for row in matches}
    assert rows == pytest.approx({(1, 2): 1 / 3, (1, 2, 3): 1 / 3, (1, 3): 2 / 3}, rel=1e-12)


def test_files_that_end_in_sql(tmp_path: Path) -> None:
    (tmp_path / "pair.sql").write_text(one("A B"))
    (tmp_path / "wrong.sql").write_text(one("A B+"))
    assert read_query(str(tmp_path / "pair.sql"), {}).text.startswith("PATTERN SEQ(A a, B b)")
    alerts = uc.match(EVENTS, uc.rules(str(tmp_path / "pair.sql")))
    assert alerts["rule"].to_pylist() == ["pair"] * alerts.num_rows
    assert alerts.num_rows == 1
    with pytest.raises(uc.OptionError, match="at the end takes as many rows"):
        uc.rules(str(tmp_path))
    with pytest.raises(uc.QueryError, match="at the end takes as many rows"):
        read_query(str(tmp_path / "wrong.sql"), {})


def test_no_window_is_the_longest_without_a_warning() -> None:
    times = [datetime(2024, 5, 1), datetime(2024, 9, 1), datetime(2024, 9, 1)]
    events = EVENTS.set_column(4, "lower", pa.array(times)).set_column(5, "upper", pa.array(times))
    assert uc.match(events, uc.sql(one("A B"))).num_rows == 2


def one(
    pattern: str,
    define: str = "A AS type = 'A', B AS type = 'B'",
    *,
    measures: str = "",
    skip: str = "AFTER MATCH SKIP TO NEXT ROW",
    order: str = "ts",
    rows: str = "",
) -> str:
    return f"SELECT * FROM e MATCH_RECOGNIZE (ORDER BY {order} {measures} {rows} {skip} " + (
        f"PATTERN ({pattern}) DEFINE {define})"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            one("A X*? B Y*? C", "A AS type = 'A', B AS type = 'B', C AS v > B.v"),
            "C is compared with B, which stands behind a gap",
        ),
        (one("A X*? B C", "C AS v > 1"), "C is the row next to one behind a gap"),
        (one("A X*? B Y*? C", "B AS type = 'B', Y AS v > 1"), "Y has a condition behind another gap"),
        (one("A B+"), r"B\+ at the end takes as many rows as it can"),
        (one("A B*?"), r"B\*\? at the end takes no row"),
        (one("A B+ C", "B AS v > 1, C AS type = 'C'"), "a row can be B as well as C"),
        (one("A (B C)+ A1"), r"a group with \+ is not answered"),
        (one("A X* B C"), r"X\* takes as many rows as it can"),
        (one("X*? B"), "a gap in front of the first event"),
        (one("^ A B"), r"\^ is no condition"),
        (one("A B $"), r"\$ is no condition"),
        (one("A {- B -} C"), "hides rows"),
        (one("PERMUTE(A, B)"), r"or AND\(A a, B b\), whose events need not be neighbours"),
        (one("A PERMUTE(B, C)"), "PERMUTE"),
        (one("A (B | ())"), "an empty match"),
        (one("A?"), "say how many|at the end"),
        (one("A B", skip="AFTER MATCH SKIP TO FIRST B"), "depends on all matches before"),
        (one("A B", skip="AFTER MATCH SKIP TO B"), "SKIP TO NEXT ROW"),
        (one("A ()"), "an empty match"),
        (one("A B A"), "A stands twice"),
        (one("A B", skip=""), "AFTER MATCH SKIP TO NEXT ROW"),
        (one("A B", skip="AFTER MATCH SKIP PAST LAST ROW"), "depends on all matches before"),
        (one("A B", skip="AFTER MATCH SKIP TO LAST B"), "uc.draw_worlds"),
        (one("A B", rows="ALL ROWS PER MATCH"), "uc.events_of"),
        (one("A B", order="ts, n"), "sequence"),
        (one("A B", order="ts DESC"), "the other way round"),
        (one("A B", measures="MEASURES MATCH_NUMBER() AS n"), "differs by world"),
        (one("A B", measures="MEASURES CLASSIFIER() AS n"), "which variable took a row"),
        (one("A B", measures="MEASURES A.ts AS n"), "range_lower"),
        (one("A B", measures="MEASURES x AS n"), "write A.x"),
        (one("A X*? B", "B AS PREV(v) < v"), "PREV speaks of a row that no variable has"),
        (one("A B", "A AS v < B.v"), "B comes behind A"),
        (one("A B", "Z AS v < 1"), "Z is no variable"),
        (one("A B", "B AS NEXT(v) < v"), "the row behind"),
        (one("A B C", "C AS v < LAST(B.v, 1)"), r"in the DEFINE of A\+ alone"),
        (one("A B+ C", "B AS type = 'B' AND v < LAST(B.v, 2), C AS type = 'C'"), "no offset but the 1"),
        (one("A B* C", "B AS type = 'B' AND v < LAST(B.v, 1), C AS type = 'C'"), r"write B\+"),
        (
            one("A B+ C", "B AS type = 'B' AND ts < LAST(B.ts, 1), C AS type = 'C'"),
            "no time that may be null",
        ),
        ("SELECT a FROM e MATCH_RECOGNIZE (ORDER BY t PATTERN (A))", "MEASURES say"),
        (one("A B", "B AS v > 1) AS m WHERE (x > 1"), "ask the frame of matches"),
        (one("A B").replace("DEFINE", "SUBSET U = (A, B) DEFINE"), "SUBSET is not answered"),
    ],
)
def test_what_is_not_answered_is_named(text: str, message: str) -> None:
    with pytest.raises(uc.QueryError, match=message):
        uc.sql(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT",
        "SELECT * FROM e",
        one("A B")[:-1],
        one("A (B"),
        one("A B") + " x y",
        "MATCH_RECOGNIZE (ORDER BY t PATTERN (A +))",
        "#",
    ],
)
def test_what_is_no_match_recognize(text: str) -> None:
    with pytest.raises((uc.QuerySyntaxError, uc.QueryError)):
        uc.sql(text)
