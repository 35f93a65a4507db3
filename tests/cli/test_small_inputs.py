"""Small inputs that went wrong once, as a user gives them to the command, each with the right answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.conftest import Invoke, invoke

__all__ = ["invoke"]


def at(*events: tuple[str, int, int], **columns: list[Any]) -> list[dict[str, Any]]:
    """Return events by type, id and certain time, with more columns."""
    return [
        {
            "type": kind,
            "id": id,
            "lower": time,
            "upper": time,
            **{name: values[row] for name, values in columns.items()},
        }
        for row, (kind, id, time) in enumerate(events)
    ]


FAILURES: Final = [
    {"type": "Fail", "id": 1, "lower": 0, "upper": 1, "user": "u"},
    {"type": "Fail", "id": 2, "lower": 0, "upper": 1, "user": "u"},
    {"type": "Fail", "id": 3, "lower": 0, "upper": 3, "user": "u"},
    {"type": "Ok", "id": 9, "lower": 2, "upper": 2, "user": "u"},
]
"""The third failure is before tick 2 with probability 1/2, the others are for certain."""

CASES: Final[dict[str, tuple[list[dict[str, Any]], str, list[str], str]]] = {
    "an absence at the end of a log": (
        at(("Down", 1, 0), ("Down", 2, 180), k=["i1", "i2"]),
        "PATTERN SEQ(Down d, !Up u) WHERE [k] WITHIN 600",
        ['"i1",1,0,0,1', '"i2",2,180,180,1'],
        "2 matches with a negation whose gap can end behind the last event of the trace, 180",
    ),
    "at least three in any order": (
        FAILURES,
        "PATTERN SEQ(AND(Fail{3,} f[]), Ok s) WHERE [user] WITHIN 10 RETURN PROBABILITY BY s",
        ["9,0.5"],
        "1 group",
    ),
    "the same by a count": (
        FAILURES,
        "PATTERN SEQ(AND(Fail+ f[]), Ok s) WHERE [user] AND count(f[]) >= 3 WITHIN 10 "
        "RETURN PROBABILITY BY s",
        ["9,0.5"],
        "1 group",
    ),
    "the latest at or before": (
        at(("Q", 1, 5), ("Q", 2, 9), ("T", 3, 9)),
        "PATTERN AND(Q q, T t, !Q n) WHERE TIME(t) - TIME(q) >= 0 AND TIME(n) - TIME(q) > 0 "
        "AND TIME(t) - TIME(n) >= 0 WITHIN 100",
        ["2,3,9,9,1"],
        "1 match",
    ),
    "sequences without a source": (
        at(("Err", 5, 101), ("Stat", 6, 101), k=["x", "x"], sequence=[1, 2]),
        "PATTERN SEQ(Err b, Stat c) WHERE [k] WITHIN 10",
        [],
        "the column sequence says nothing without the column source",
    ),
    # With a source alone the sequences count, as the offset is 0.
    "sequences of a source without offsets": (
        at(("Err", 5, 101), ("Stat", 6, 101), source=["h", "h"], sequence=[1, 2]),
        "PATTERN SEQ(Err b, Stat c) WITHIN 10",
        ["5,6,101,101,1"],
        "1 match",
    ),
    "matches that do not overlap, of equal confidence": (
        at(("A", 9, 1), ("B", 8, 5), ("A", 3, 4), ("B", 2, 8)),
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) WITHIN 100 OUTPUT NON OVERLAPPING",
        # Ids decide among equal confidences.
        ["3,8,4,5,1"],
        "1 match",
    ),
}
"""Events, a query, the rows without the line of names, and what is said."""


@pytest.mark.parametrize("name", CASES)
def test_small_inputs(invoke: Invoke, tmp_path: Path, name: str) -> None:
    events, query, rows, said = CASES[name]
    file = tmp_path / "data.json"
    file.write_text(json.dumps(events))
    result = invoke("match", query, file)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1:] == rows
    assert said in result.stderr


@pytest.mark.parametrize("ordered", ["", "ordered = true\n"])
def test_rows_in_order_tell_the_second_of_two_hours(invoke: Invoke, tmp_path: Path, ordered: str) -> None:
    trace, schema = tmp_path / "t.csv", tmp_path / "t.toml"
    trace.write_text(
        "what,at\nA,2026-10-25 02:15:00\nB,2026-10-25 02:45:00\n"
        "C,2026-10-25 02:10:00\nD,2026-10-25 03:05:00\n"
    )
    schema.write_text(
        'tick = "1s"\n[[events]]\ntype_column = "what"\ntime = "at"\ntime_zone = "Europe/Prague"\n'
        f'uncertainty = {{ kind = "exact" }}\n{ordered}'
    )
    query = "PATTERN SEQ(ANY a, ANY b) WITHIN 3 hours RETURN a.type AS x, b.type AS y"
    result = invoke("match", query, trace, "--schema", schema)
    assert result.exit_code == 0, result.output
    rows = [line.split(",") for line in result.stdout.splitlines()[1:]]
    pairs = {row[2].strip('"') + row[3].strip('"'): row[-1] for row in rows}
    assert pairs == dict.fromkeys(("AB", "AC", "AD", "BC", "BD", "CD"), "1")
    assert "3 stamps of at stand for two times" in result.stderr
