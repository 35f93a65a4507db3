"""A result never takes the place of what it is made of, by whatever name or link it is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.cli.conftest import Invoke, write_trace
from uncertain_cep.cli.outputs import ABOUT_FILE
from uncertain_cep.results.output_place import local_path

QUERY = "PATTERN SEQ(A a, B b, C c) WITHIN 4"
SCHEMA = """
[[events]]
type_column = "type"
time = "lower"
uncertainty = { kind = "clock_offset", table = "offsets.csv", key = "node", host = "node", unit = "tick" }
"""


@pytest.fixture
def inputs(figure1: pa.Table, tmp_path: Path) -> Path:
    """A folder with everything that a run can read; as a result of ours it could be replaced."""
    folder = tmp_path / "in"
    folder.mkdir()
    write_trace(figure1, folder / "trace.csv")
    write_trace(figure1, folder / "trace.parquet")
    (folder / "query.csv").write_text(QUERY)
    (folder / "schema.csv").write_text(SCHEMA)
    (folder / "offsets.csv").write_text("node,lower,upper\nn1,0,1\n")
    (folder / ABOUT_FILE).write_text("{}")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def same(path: Path, elsewhere: Path) -> Path:
    return path


def relative(path: Path, elsewhere: Path) -> Path:
    return Path(os.path.relpath(path.parent / ".." / path.parent.name / path.name))


def symlink(path: Path, elsewhere: Path) -> Path:
    link = elsewhere / f"link{path.suffix}"
    link.symlink_to(path)
    return link


def hard_link(path: Path, elsewhere: Path) -> Path:
    link = elsewhere / f"link{path.suffix}"
    link.hardlink_to(path)
    return link


def through_a_linked_folder(path: Path, elsewhere: Path) -> Path:
    (elsewhere / "folder").symlink_to(path.parent, target_is_directory=True)
    return elsewhere / "folder" / path.name


NAMES = pytest.mark.parametrize("name", [same, relative, symlink, hard_link, through_a_linked_folder])
Name = Callable[[Path, Path], Path]


@NAMES
@pytest.mark.parametrize("engine", ["local", "spark"])
@pytest.mark.parametrize("read", ["trace.csv", "trace.parquet", "query.csv", "schema.csv", "offsets.csv"])
def test_a_file(invoke: Invoke, inputs: Path, tmp_path: Path, read: str, engine: str, name: Name) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    before = contents(inputs)
    trace = read if read.startswith("trace") else "trace.csv"
    arguments: list[object] = [inputs / "query.csv", inputs / trace]
    if read in ("schema.csv", "offsets.csv"):
        arguments += ["--schema", inputs / "schema.csv"]
    out = name(inputs / read, elsewhere)
    result = invoke("match", *arguments, "-o", out, "--overwrite", "--engine", engine)
    assert result.exit_code == 2
    assert f"{out} is the" in result.stderr
    assert "name another place" in result.stderr
    # Before any work.
    assert "engine:" not in result.stderr
    assert contents(inputs) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "in"]


@NAMES
def test_a_file_that_is_given_by_a_link(invoke: Invoke, inputs: Path, tmp_path: Path, name: Name) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    before = contents(inputs)
    trace = name(inputs / "trace.parquet", elsewhere)
    result = invoke("match", QUERY, trace, "-o", inputs / "trace.parquet", "--overwrite")
    assert result.exit_code == 2
    assert contents(inputs) == before


@pytest.mark.parametrize("engine", ["local", "spark"])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_folder_that_holds_an_input(invoke: Invoke, inputs: Path, depth: int, engine: str) -> None:
    before = contents(inputs)
    deep = inputs / "deep" / "er"
    deep.mkdir(parents=True)
    trace = (inputs / "trace.parquet").rename(deep / "trace.parquet")
    folder = [deep, deep.parent, inputs][depth]
    (folder / ABOUT_FILE).write_text("{}")
    result = invoke("match", QUERY, trace, "-o", folder, "--overwrite", "--engine", engine)
    assert result.exit_code == 2
    assert f"{folder} holds the trace {trace}" in result.stderr
    assert trace.read_bytes() == before[str(inputs / "trace.parquet")]


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_the_input_folder_and_places_in_it(invoke: Invoke, inputs: Path, tmp_path: Path, engine: str) -> None:
    before = contents(inputs)
    (tmp_path / "link").symlink_to(inputs, target_is_directory=True)
    for out in (inputs, inputs / "new", inputs / "a" / "new.csv", tmp_path / "link" / "new.parquet"):
        result = invoke("match", QUERY, inputs, "-o", out, "--overwrite", "--engine", engine)
        assert result.exit_code == 2
        assert f"{out} {'is' if out == inputs else 'lies in'} the input folder {inputs}" in result.stderr
        assert contents(inputs) == before


def test_a_file_that_an_input_folder_links_to(invoke: Invoke, inputs: Path, tmp_path: Path) -> None:
    outside = (inputs / "trace.csv").rename(tmp_path / "outside.csv")
    before = outside.read_bytes()
    (inputs / "trace.csv").symlink_to(outside)
    result = invoke("match", QUERY, inputs, "-o", outside, "--overwrite")
    assert result.exit_code == 2
    assert f"{outside} is or holds {inputs / 'trace.csv'}" in result.stderr
    assert outside.read_bytes() == before


def test_queries_of_the_case_study(invoke: Invoke, tmp_path: Path) -> None:
    queries = tmp_path / "queries"
    queries.mkdir()
    for name in ("schema.toml", "a.query", ABOUT_FILE):
        (queries / name).write_text("kept")
    before = contents(queries)
    result = invoke("casestudy", "-o", queries, "--overwrite", "--queries", queries)
    assert result.exit_code == 2
    assert "holds the query file" in result.stderr
    assert contents(queries) == before


def test_neighbours_are_no_inputs(invoke: Invoke, inputs: Path, parquet: Path) -> None:
    for out in (inputs / "result.csv", inputs.parent / "in.parquet"):
        for _ in range(2):
            result = invoke("match", QUERY, parquet, "-o", out, "--overwrite")
            assert result.exit_code == 0, result.stderr


def test_uris_are_told_apart(invoke: Invoke) -> None:
    for trace, out, relation in [
        ("s3a://bucket/events", "s3a://bucket/events/", "is"),
        ("s3a://bucket/events/a.parquet", "s3a://bucket/events", "holds"),
        ("s3a://bucket/events", "s3a://bucket/events/matches", "lies in"),
    ]:
        result = invoke("match", QUERY, trace, "-o", out, "--overwrite", "--master", "spark://nowhere:7077")
        assert result.exit_code == 2
        assert f"{out} {relation} the trace {trace}" in result.stderr


def test_a_scheme_of_one_letter_is_no_drive() -> None:
    assert local_path("x://bucket/matches") is None
    assert local_path("C:/matches") == Path("C:/matches").absolute()
    assert local_path("file:///tmp/a%20b") == Path("/tmp/a b")
    assert local_path("matches") == Path("matches").absolute()
