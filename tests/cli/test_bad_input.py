"""Bad input gets the right answer or one clear error, exit code 2, and leaves nothing half-written."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

from tests.cli.conftest import Invoke, write_trace

QUERY = "PATTERN SEQ(A a, B b, C c) WITHIN 4"


@pytest.fixture
def run(invoke: Invoke, tmp_path: Path) -> Invoke:
    """Run match with an output directory and check that it is whole or absent."""

    def checked(*arguments: object) -> Result:
        before = {entry.name for entry in tmp_path.iterdir()}
        result = invoke("match", *arguments, "-o", tmp_path / "out")
        after = {entry.name for entry in tmp_path.iterdir()}
        assert after == (before | {"out"} if result.exit_code == 0 else before)
        assert "Traceback" not in result.output
        if result.exit_code:
            assert result.stderr.count("error:") == 1
        return result

    return checked


def matches_in(folder: Path) -> int:
    return int(pq.read_table(folder / "out").num_rows)


def test_empty_trace(run: Invoke, figure1: pa.Table, tmp_path: Path) -> None:
    for name in ("empty.parquet", "empty.csv"):
        result = run(QUERY, write_trace(figure1.slice(0, 0), tmp_path / name), "--overwrite")
        assert result.exit_code == 0, result.stderr
        assert matches_in(tmp_path) == 0


def test_file_without_a_byte(run: Invoke, tmp_path: Path) -> None:
    for name in ("nothing.csv", "nothing.parquet", "nothing.jsonl"):
        (tmp_path / name).touch()
        result = run(QUERY, tmp_path / name)
        assert result.exit_code == 2
        assert name in result.stderr


def test_one_event(run: Invoke, figure1: pa.Table, tmp_path: Path) -> None:
    trace = write_trace(figure1.slice(0, 1), tmp_path / "one.parquet")
    assert run(QUERY, trace).exit_code == 0
    assert matches_in(tmp_path) == 0
    assert run("PATTERN SEQ(A a) WITHIN 4", trace, "--overwrite").exit_code == 0
    assert matches_in(tmp_path) == 1


def test_unknown_type_matches_nothing(run: Invoke, parquet: Path, tmp_path: Path) -> None:
    result = run("PATTERN SEQ(A a, Nonsense b) WITHIN 4", parquet)
    assert result.exit_code == 0, result.stderr
    assert matches_in(tmp_path) == 0


def test_unknown_attribute(run: Invoke, parquet: Path) -> None:
    result = run("PATTERN SEQ(A a, B b) WHERE a.nodde = b.node WITHIN 4", parquet)
    assert result.exit_code == 2
    assert "nodde" in result.stderr
    assert "line 1, column" in result.stderr


def test_column_of_the_wrong_type(run: Invoke, figure1: pa.Table, tmp_path: Path) -> None:
    lower = figure1.schema.get_field_index("lower")
    text = write_trace(
        figure1.set_column(lower, "lower", pa.array(["early", "3", "3", "4"])), tmp_path / "text.parquet"
    )
    result = run(QUERY, text)
    assert result.exit_code == 2
    assert "lower" in result.stderr
    result = run(
        "PATTERN SEQ(A a, B b) WHERE a.node > 3 WITHIN 4", write_trace(figure1, tmp_path / "t.parquet")
    )
    assert result.exit_code == 2
    assert "line 1, column" in result.stderr


def test_missing_column(run: Invoke, figure1: pa.Table, tmp_path: Path) -> None:
    result = run(QUERY, write_trace(figure1.drop_columns(["upper"]), tmp_path / "t.csv"))
    assert result.exit_code == 2
    assert "upper" in result.stderr


def test_truncated_parquet(run: Invoke, parquet: Path) -> None:
    parquet.write_bytes(parquet.read_bytes()[:-100])
    result = run(QUERY, parquet)
    assert result.exit_code == 2
    assert "figure1.parquet" in result.stderr


def test_not_the_format_of_its_name(run: Invoke, tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(b"type,id,lower,upper\n")
    (tmp_path / "t.jsonl").write_text('{"type": "A"\n')
    (tmp_path / "t.csv").write_bytes(b"\xff\xfe\x00\x01")
    for name in ("t.csv.gz", "t.jsonl", "t.csv"):
        result = run(QUERY, tmp_path / name)
        assert result.exit_code == 2
        assert name in result.stderr


def test_missing_files(run: Invoke, parquet: Path, tmp_path: Path) -> None:
    for arguments in (
        (QUERY, tmp_path / "gone.parquet"),
        (tmp_path / "gone.sase", parquet),
        (QUERY, parquet, "--schema", tmp_path / "gone.toml"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert "gone" in result.stderr


def test_a_folder_of_several_formats(run: Invoke, figure1: pa.Table, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    write_trace(figure1, folder / "a.parquet")
    write_trace(figure1, folder / "b.csv")
    result = run(QUERY, folder)
    assert result.exit_code == 2
    assert "mixed: the folder holds files of several formats, such as a.parquet and b.csv: " in result.stderr
    schema = tmp_path / "schema.toml"
    events = (
        '[[events]]\ntype_column = "type"\nuncertainty = {kind="columns", lower="lower", upper="upper"}\n'
    )
    schema.write_text(events)
    result = run(QUERY, folder, "--schema", schema)
    assert result.exit_code == 2
    assert "say in events[1].files which it takes" in result.stderr
    schema.write_text(f'{events}files = "*.csv"\n')
    assert run(QUERY, folder, "--schema", schema).exit_code == 0
    assert matches_in(tmp_path) == 2


@pytest.mark.parametrize("place", ["pipe.csv", "/dev/zero", "socket.csv"])
def test_what_is_no_file_never_blocks(run: Invoke, parquet: Path, tmp_path: Path, place: str) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listening, contextlib.chdir(tmp_path):
        listening.bind("socket.csv")
        kind = {"p": "a named pipe", "/": "a device", "s": "a socket"}[place[0]]
        for arguments in ((QUERY, place), (QUERY, parquet, "--schema", place), (place, parquet)):
            if arguments == (place, parquet) and place[0] == "p":
                continue
            result = run(*arguments)
            assert result.exit_code == 2
            assert f"is {kind}" in result.stderr


def test_a_query_from_a_pipe_is_waited_for_aloud(run: Invoke, parquet: Path, tmp_path: Path) -> None:
    """As the shell's <(...) is one."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_text, args=(QUERY,))
    writer.start()
    result = run(pipe, parquet)
    writer.join()
    assert result.exit_code == 0
    assert f"reading the query from the pipe {pipe} ..." in result.stderr
    assert matches_in(tmp_path) == 2


def test_spark_that_is_not_there(
    run: Invoke, parquet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(QUERY, parquet, "--master", "locl[2]")
    assert result.exit_code == 2
    assert "error: master='locl[2]' is no master of Spark: write local[4]" in result.stderr
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "gone"))
    result = run(QUERY, parquet, "--master", "local[2]")
    assert result.exit_code == 1
    assert "gone holds no Spark: name the folder of one, or unset it" in result.stderr


def test_query_file_of_something_else(run: Invoke, parquet: Path, tmp_path: Path) -> None:
    result = run(parquet, parquet)
    assert result.exit_code == 2
    assert "UTF-8" in result.stderr
    assert run(tmp_path, parquet).exit_code == 2


def test_mixed_ticks(run: Invoke, figure1: pa.Table, tmp_path: Path) -> None:
    stamped = figure1
    for name in ("lower", "upper"):
        column = figure1.column(name).cast(pa.timestamp("s"))
        stamped = stamped.set_column(stamped.schema.get_field_index(name), name, column)
    whole = write_trace(figure1, tmp_path / "ticks.parquet")
    result = run(QUERY, whole, write_trace(stamped, tmp_path / "stamps.parquet"))
    assert result.exit_code == 2
    assert "stamps.parquet" in result.stderr or "lower" in result.stderr


@pytest.mark.parametrize("within", ["0", "0 seconds", "-1", "half an hour"])
def test_window(run: Invoke, parquet: Path, within: str) -> None:
    result = run(f"PATTERN SEQ(A a, B b) WITHIN {within}", parquet)
    assert result.exit_code == 2
    assert "line 1, column" in result.stderr


def test_window_with_a_unit_needs_a_tick(run: Invoke, parquet: Path) -> None:
    result = run("PATTERN SEQ(A a, B b) WITHIN 4 seconds", parquet)
    assert result.exit_code == 2
    assert "tick" in result.stderr


def test_id_used_twice(run: Invoke, figure1: pa.Table, tmp_path: Path) -> None:
    twice = figure1.set_column(1, "id", pa.array([1, 2, 3, 2]))
    result = run(QUERY, write_trace(twice, tmp_path / "twice.parquet"))
    assert result.exit_code == 2
    assert "twice.parquet" in result.stderr
    assert "id" in result.stderr


def test_lower_above_upper(run: Invoke, figure1: pa.Table, tmp_path: Path) -> None:
    wrong = figure1.set_column(2, "lower", pa.array([1, 9, 3, 4]))
    result = run(QUERY, write_trace(wrong, tmp_path / "wrong.csv"))
    assert result.exit_code == 2
    assert "row 2" in result.stderr


@pytest.mark.parametrize(
    "pmf", [[0.5, 0.5], [0.2] * 4, [0.3, 0.3, 0.3, 0.05, 0.06], [0.5, 0.5, 0.5, -0.5, 0.0], [0.2] * 5 + [0.0]]
)
def test_pmf(run: Invoke, figure1: pa.Table, tmp_path: Path, pmf: list[float]) -> None:
    pmfs = pa.array([pmf, None, None, None], pa.list_(pa.float64()))
    result = run(QUERY, write_trace(figure1.append_column("pmf", pmfs), tmp_path / "pmf.parquet"))
    assert result.exit_code == 2
    assert "pmf" in result.stderr
    assert "row 1" in result.stderr


def test_query_of_ten_thousand_characters(run: Invoke, parquet: Path, tmp_path: Path) -> None:
    condition = " AND ".join(f"a.node != 'n{number}'" for number in range(1000, 1500))
    query = f"PATTERN SEQ(A a, B b, C c) WHERE {condition} WITHIN 4"
    assert len(query) > 10_000
    assert run(query, parquet).exit_code == 0
    assert matches_in(tmp_path) == 2
    assert run(query[: len(query) // 2], parquet).exit_code == 2
    assert run("(" * 10_000, parquet).exit_code == 2
    assert run("PATTERN " + "SEQ(" * 2_500, parquet).exit_code == 2


def test_deeply_nested_condition(run: Invoke, parquet: Path) -> None:
    nested = "(" * 4_900 + "a.node = 'n1'" + ")" * 4_900
    result = run(f"PATTERN SEQ(A a, B b) WHERE {nested} WITHIN 4", parquet)
    assert result.exit_code in (0, 2)


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("a.id" + " + 1" * 2400 + " > 0", 2),
        ("NOT " * 2400 + "a.id > 0", 2),
        ("a.id < " + "9" * 9900, 2),
        (" OR ".join(f"a.id = {number}" for number in range(800)), 0),
        (" OR ".join(f"a.id + {number} = b.id" for number in range(500)), 0),
        (f"a.node != '{'x' * 9900}'", 0),
    ],
)
def test_long_conditions(run: Invoke, parquet: Path, condition: str, code: int) -> None:
    assert run(f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 4", parquet).exit_code == code


def test_forty_components(run: Invoke, figure1: pa.Table, tmp_path: Path) -> None:
    count = 40
    events = pa.table(
        {
            "type": [f"T{number}" for number in range(count)],
            "id": list(range(count)),
            "lower": [number * 2 for number in range(count)],
            "upper": [number * 2 + 1 for number in range(count)],
        }
    )
    components = ", ".join(f"T{number} v{number}" for number in range(count))
    result = run(f"PATTERN SEQ({components}) WITHIN 100", write_trace(events, tmp_path / "forty.parquet"))
    assert result.exit_code in (0, 2)
    if result.exit_code == 0:
        (row,) = pq.read_table(tmp_path / "out").to_pylist()
        assert row["confidence"] == pytest.approx(1.0)


def test_unexpected_errors_are_one_message(
    run: Invoke, parquet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("uncertain_cep.cli.execution.load_traces", broken)
    result = run(QUERY, parquet)
    assert result.exit_code == 1
    assert "ZeroDivisionError: by zero" in result.stderr
    assert "--traceback" in result.stderr


def test_traceback_on_request(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("--traceback", "match", QUERY, tmp_path / "gone.parquet")
    assert result.exception is not None
    assert not isinstance(result.exception, SystemExit)
