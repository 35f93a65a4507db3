"""Diagnostics of commands on stderr: queries that may not be meant so."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.cli.conftest import Invoke, write_trace

TYPO = "PATTERN SEQ(A a, BB b, !D n) WITHIN 4"
SAID = ["warning: no event of type BB; did you mean B?", "warning: no event of type D; the types are A, B, C"]


def warned(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("warning: ")]


@pytest.mark.parametrize(
    "arguments", [["match"], ["explain"], ["explain", "--analyze"], ["explain", "--json"]]
)
def test_each_is_one_line(invoke: Invoke, parquet: Path, arguments: list[str]) -> None:
    command, *options = arguments
    result = invoke(command, TYPO, parquet, *options)
    assert result.exit_code == 0, result.stderr
    assert warned(result.stderr) == SAID


def test_without_matches_the_candidates_are_counted(invoke: Invoke, parquet: Path, tmp_path: Path) -> None:
    result = invoke("match", TYPO, parquet)
    assert "candidates: a 1, b 0\n" in result.stderr
    assert "0 matches in " in result.stderr
    folder = invoke("match", TYPO, parquet, "-o", tmp_path / "out")
    assert "candidates: a 1, b 0\n" in folder.stderr
    matched = invoke("match", "PATTERN SEQ(A a, B b) WITHIN 4", parquet)
    assert "candidates" not in matched.stderr
    assert "1 match in " in matched.stderr


def test_a_query_before_the_last_one_is_spoken_of_too(invoke: Invoke, parquet: Path) -> None:
    second = "PATTERN SEQ(Pair p, C c) WITHIN 9"
    result = invoke("match", "PATTERN SEQ(B a, BB b) WITHIN 4", second, parquet, "--as", "Pair")
    assert warned(result.stderr) == [
        "warning: no event of type BB; did you mean B?",
        "warning: no event of type Pair; the types are A, B, C",
    ]
    assert "Pair: candidates: a 1, b 0\n" in result.stderr
    assert "\ncandidates: p 0, c 2\n" in result.stderr


def test_validate_with_a_query(invoke: Invoke, parquet: Path) -> None:
    plain = invoke("validate", parquet)
    assert warned(plain.stderr) == []
    result = invoke("validate", parquet, "--query", TYPO)
    assert result.exit_code == 0, result.stderr
    assert warned(result.stderr) == SAID
    assert "candidates: a 1, b 0\n" in result.stderr
    assert invoke("validate", parquet, "--query", "PATTERN SEQ(A a, B b) WITHIN 4").stderr == (
        "4 rows, 4 events, no faults\ncandidates: a 1, b 1\n"
    )


def test_validate_refuses_a_query_that_the_trace_cannot_answer(invoke: Invoke, parquet: Path) -> None:
    result = invoke("validate", parquet, "--query", "PATTERN SEQ(A a) WHERE a.nothing = 1 WITHIN 4")
    assert result.exit_code == 2
    assert "nothing" in result.stderr


def test_validate_looks_for_ids_in_the_partitions_of_the_query(
    invoke: Invoke, figure1: pa.Table, tmp_path: Path
) -> None:
    table = figure1.set_column(1, "id", pa.array([1, 1, 2, 3]))
    table = table.set_column(4, "node", pa.array(["n1", "n2", "n1", "n1"]))
    file = write_trace(table, tmp_path / "keyed.parquet")
    assert invoke("validate", file).exit_code == 2
    keyed = invoke("validate", file, "--query", "PATTERN SEQ(A a, B b) WHERE [node] WITHIN 4")
    assert keyed.exit_code == 0, keyed.stdout
    late = table.set_column(2, "lower", pa.array([1, 3, 3, 9]))
    file = write_trace(late, tmp_path / "late.parquet")
    keyed = invoke("validate", file, "--query", "PATTERN SEQ(A a, B b) WHERE [node] WITHIN 4")
    assert keyed.exit_code == 2
    line = keyed.stdout.splitlines()[0]
    assert "row 4, column 'lower', value 9: the interval ends before it begins" in line


@pytest.mark.parametrize("command", ["match", "explain", "validate"])
def test_an_empty_trace(invoke: Invoke, figure1: pa.Table, tmp_path: Path, command: str) -> None:
    file = write_trace(figure1.slice(0, 0), tmp_path / "empty.parquet")
    query = "PATTERN SEQ(A a, B b) WITHIN 4"
    arguments = [file] if command == "validate" else [query, file]
    result = invoke(command, *arguments)
    assert result.exit_code == 0, result.stderr
    assert len(warned(result.stderr)) == 1
    assert "the trace has no events" in result.stderr
    if command == "validate":
        assert warned(invoke("validate", file, "--query", query).stderr) == warned(result.stderr)


def test_no_match_names_the_condition_that_left_none(invoke: Invoke, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("type,id,lower,upper,k\nA,1,0,0,x\nB,2,1,1,y\n")
    result = invoke("match", "PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 5", trace)
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    at = lines.index("candidates: a 1, b 1")
    assert lines[at + 1] == "without a.k = b.k there would be matches"
    assert lines[at + 2].startswith("0 matches in ")
