"""A file of several that lacks the column by which a query ties its variables is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from uncertain_cep.cli import main

HEAD = "type,id,lower,upper"
QUERIES = {
    "[host]": "WHERE [host]",
    "host": "WHERE a.host = b.host",
    "negated": "WHERE a.host = b.host AND n.host = a.host",
}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text(f"{HEAD},host\nA,1,1,1,x\nB,2,2,2,x\n")
    other.write_text(f"{HEAD},load\nB,3,3,3,7\n")
    return one, other


def said(*arguments: object) -> str:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_file_without_the_key_is_named(files: tuple[Path, Path], tmp_path: Path) -> None:
    pattern = "PATTERN SEQ(A a, B b)"
    warning = f"{files[1]}: it has no column host, by which the query ties b: its events are in no match"
    for name in ("[host]", "host"):
        query = f"{pattern} {QUERIES[name]} WITHIN 9"
        for command in (
            ("match", query, *files), ("explain", query, *files), ("validate", *files, "--query", query),
            ("report", query, *files, "-o", tmp_path / f"{name}.html"),
            ("match", "PATTERN SEQ(A a, A c) WITHIN 3", query, *files, "--as", "Z"),
        ):  # fmt: skip
            assert said(*command).count(warning) == 1, command
    negated = f"PATTERN SEQ(A a, !B n, A b) {QUERIES['negated']} WITHIN 9"
    assert "by which the query ties n: its events forbid none" in said("match", negated, *files)


def test_other_columns_and_other_events_are_no_matter(files: tuple[Path, Path]) -> None:
    for query in (
        "PATTERN SEQ(A a, B b) WITHIN 9",
        "PATTERN SEQ(A a, B b) WHERE a.host = 'x' AND b.load > 3 WITHIN 9",
        "PATTERN SEQ(A a, A b) WHERE [host] WITHIN 9",
    ):
        assert "it has no column" not in said("match", query, *files)


def test_a_key_that_all_files_lack_is_an_error(files: tuple[Path, Path]) -> None:
    query = "PATTERN SEQ(A a, B b) WHERE [rack] WITHIN 9"
    result = CliRunner().invoke(main, ["match", query, *map(str, files)])
    assert result.exit_code == 2
    assert "rack" in result.stderr
