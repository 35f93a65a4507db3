"""A file is matched alike on the command line and in Python, whatever columns of the model it has."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.model_files import (
    COMPRESSIONS,
    FORMATS,
    IMPOSSIBLE,
    NOT_IN_SCHEMAS,
    PARTS,
    QUERY,
    rows_of,
    schema_for,
    trace,
    written,
)
from tests.cases.sampling import sampled_from
from tests.reporting.pages import data_of, values
from uncertain_cep.cli import main

FIRST = "PATTERN SEQ(A a, A c) WITHIN 3"
NO_LISTS = ("pmf", "offset_pmf")


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.stderr
    return result


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def check(folder: Path, seed: int, part: str, format_name: str, compression: str, *, by_schema: bool) -> int:
    columns = [name for name in PARTS[part] if format_name != "csv" or name not in NO_LISTS]
    schema: Path | None = None
    if by_schema:
        columns = [name for name in columns if name not in NOT_IN_SCHEMAS]
        schema = folder / "schema.toml"
        schema.write_text(schema_for(columns))
    by = () if schema is None else ("--schema", schema)
    table = trace(seed, columns)
    expected = rows_of(uc.match(table, QUERY).to_pylist())
    file = written(table, folder, format_name, compression)
    read = uc.read_traces(file, schema)
    if not by_schema:
        assert set(read.column_names) == set(table.column_names)
    assert rows_of(uc.match(read, QUERY).to_pylist()) == expected
    assert uc.validate(file, schema, query=QUERY) == []
    matched = run("match", QUERY, file, *by, "--format", "json")
    assert rows_of(lines(matched.stdout)) == expected
    second = run("match", FIRST, QUERY, file, *by, "--as", "Z", "--format", "json")
    assert rows_of(lines(second.stdout)) == expected
    run("report", QUERY, file, *by, "-o", folder / "page.html", "--overwrite")
    shown = data_of((folder / "page.html").read_text(encoding="utf-8"))["columns"]
    confidences = sorted(confidence for *_, confidence in expected.values())
    assert sorted(values(shown, "confidence")) == pytest.approx(confidences, abs=2e-9)
    explained = run("explain", QUERY, file, *by).stdout
    assert ("the order of sequence" in explained) == ("sequence" in columns)
    return len(expected)


@pytest.mark.parametrize("part", PARTS)
def test_every_column_of_the_model_by_every_way(tmp_path: Path, part: str) -> None:
    for number, format_name in enumerate(FORMATS):
        compression = list(COMPRESSIONS)[(number + len(part)) % len(COMPRESSIONS)]
        assert check(tmp_path, 3, part, format_name, compression, by_schema=number == 0)


@given(
    seed=st.integers(0, 2**32),
    part=sampled_from(list(PARTS)),
    format_name=sampled_from(FORMATS),
    compression=sampled_from(list(COMPRESSIONS)),
    by_schema=st.booleans(),
)
def test_any_trace_by_every_way(
    seed: int, part: str, format_name: str, compression: str, *, by_schema: bool
) -> None:
    with TemporaryDirectory() as folder:
        check(Path(folder), seed, part, format_name, compression, by_schema=by_schema)


@pytest.mark.parametrize("format_name", FORMATS)
def test_what_python_refuses_the_commands_refuse(tmp_path: Path, format_name: str) -> None:
    file = written(IMPOSSIBLE, tmp_path, format_name, "")
    said = "row 2, column 'sequence': by the order of the source row 3 comes later"
    with pytest.raises(uc.TraceError, match=said):
        uc.match(IMPOSSIBLE, QUERY)
    for command in (
        ("match", QUERY),
        ("explain", QUERY),
        ("validate",),
        ("report", QUERY, "-o", tmp_path / "p.html"),
    ):
        result = CliRunner().invoke(main, [*map(str, command), str(file)])
        assert result.exit_code == 2
        assert f"{file}, {said}" in result.output


def test_a_place_in_no_source_is_warned_of(tmp_path: Path) -> None:
    table = trace(1, ["sequence"])
    file = written(table, tmp_path, "csv", "")
    said = "column sequence says nothing without the column source"
    for command in (("match", QUERY), ("explain", QUERY), ("validate",)):
        result = run(*command, file)
        assert result.output.count(said) == 1, command
    assert said not in run("match", QUERY, file, "--no-sources").output
    query = "PATTERN SEQ(A a, B b) WHERE a.sequence < b.sequence WITHIN 6"
    assert said not in run("match", query, file).output
