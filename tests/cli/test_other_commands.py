"""``explain``, ``validate``, ``generate``, and what the group says of itself."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Invoke, write_trace
from uncertain_cep.traces.streams import value_stream

COMMANDS = (
    *("match", "report", "explain", "decide", "why-not", "init", "validate"),
    *("order", "join", "infer-offsets", "generate", "casestudy", "warm-up", "doctor"),
)


def test_help_names_every_command(invoke: Invoke) -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    assert all(f"\n  {command} " in result.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", [*COMMANDS, "generate stream", "generate cluster"])
def test_help_of_a_command(invoke: Invoke, command: str) -> None:
    result = invoke(*command.split(), "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: ")


def test_version(invoke: Invoke) -> None:
    from uncertain_cep import __version__

    assert __version__ in invoke("--version").stdout


def test_explain_without_and_with_a_trace(invoke: Invoke, parquet: Path) -> None:
    query = "PATTERN SEQ(A a, B b) WHERE [node] WITHIN 4"
    plain = invoke("explain", query)
    assert plain.exit_code == 0, plain.stderr
    assert "a: A" in plain.stdout
    measured = invoke("explain", query, parquet)
    assert measured.exit_code == 0, measured.stderr
    assert "node" in measured.stdout


def test_explain_refuses_a_wrong_query(invoke: Invoke) -> None:
    result = invoke("explain", "PATTERN SEQ(A a, B b WITHIN 4")
    assert result.exit_code == 2
    assert "^" in result.stderr


def test_validate_finds_nothing(invoke: Invoke, trace: Path) -> None:
    result = invoke("validate", trace)
    assert result.exit_code == 0, result.stderr
    assert [line.split()[:2] for line in result.stdout.splitlines()] == [
        ["type", "events"],
        ["C", "2"],
        ["A", "1"],
        ["B", "1"],
        ["node:", "n1"],
    ]
    assert "no faults" in result.stderr


def test_validate_prints_every_fault(invoke: Invoke, figure1: pa.Table, tmp_path: Path) -> None:
    wrong = figure1.set_column(2, "lower", pa.array([1, 9, 3, None]))
    wrong = wrong.set_column(1, "id", pa.array([1, 2, 3, 3]))
    result = invoke("validate", write_trace(wrong, tmp_path / "wrong.csv"))
    assert result.exit_code == 2
    faults = [line for line in result.stdout.splitlines() if "wrong.csv" in line]
    assert "row 2" in result.stdout
    assert "row 4" in result.stdout
    assert f"{len(faults)} faults" in result.stderr
    # Behind them stands what the events without faults are.
    assert [line.split()[0] for line in result.stdout.splitlines()[len(faults) :]] == [
        "type",
        "A",
        "B",
        "node:",
    ]


@pytest.mark.parametrize("name", ["stream.parquet", "stream.csv", "stream.jsonl"])
def test_generate_stream(invoke: Invoke, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    result = invoke("generate", "stream", "--events", 2500, "--half-interval", 3, "--keys", 4, "-o", out)
    assert result.exit_code == 0, result.stderr
    expected = value_stream(2500, half_interval=3, keys=4)
    if name.endswith("jsonl"):
        made = pa.Table.from_pylist([json.loads(line) for line in out.read_text().splitlines()])
    else:
        made = pq.read_table(out) if name.endswith("parquet") else pyarrow.csv.read_csv(out)
    assert made.equals(expected)


def test_generate_stream_is_matched(invoke: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "stream.parquet"
    invoke("generate", "stream", "--events", 2000, "--half-interval", 0, "-o", out)
    query = "PATTERN SEQ(E a, E b) WHERE a.value % 500 = 1 AND b.value % 500 = 3 WITHIN 3"
    result = invoke("match", query, out)
    assert [line.split(",")[:2] for line in result.stdout.splitlines()[1:]] == [
        [str(first), str(first + 2)] for first in (0, 500, 1000, 1500)
    ]


def test_generate_stream_says_what_is_wrong(invoke: Invoke, tmp_path: Path) -> None:
    for arguments in (["-o", tmp_path / "stream"], ["-o", tmp_path / "s.csv", "--events", -1], []):
        result = invoke("generate", "stream", *arguments)
        assert result.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_generate_cluster(invoke: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "cluster"
    arguments = ("generate", "cluster", "--minutes", 1, "--nodes", 2, "-o", out)
    assert invoke(*arguments).exit_code == 0
    assert {entry.name for entry in out.iterdir()} == {
        "tasks.parquet", "metrics.parquet", "clock_offsets.csv", "_truth",
    }  # fmt: skip
    first = pq.read_table(out / "tasks.parquet")
    assert invoke(*arguments).exit_code == 2
    assert invoke(*arguments, "--overwrite").exit_code == 0
    assert pq.read_table(out / "tasks.parquet").equals(first)


@pytest.mark.parametrize("command", ["match", "explain", "validate"])
def test_what_a_tick_takes_from_the_times_is_said(invoke: Invoke, tmp_path: Path, command: str) -> None:
    raw = tmp_path / "raw.csv"
    raw.write_text("type,id,at\nA,1,2024-05-01 00:00:00\nB,2,2024-05-01 00:00:00.04\n", encoding="utf-8")
    query = [] if command == "validate" else ["PATTERN SEQ(A a, B b) WITHIN 1 s"]
    flags = ["--time", "at", "--id", "id", "--uncertainty", "exact"]
    result = invoke(command, *query, raw, *flags, "--tick", "100ms")
    said = "warning: 2 certain times share a tick of 100ms with different ones: none of these is before"
    assert result.stderr.count(said) == 1
    assert result.exit_code == 0
    assert "ticks of 100ms" in result.stderr or command == "explain"
    fine = invoke(command, *query, raw, *flags)
    assert "warning" not in fine.stderr
    uneven = invoke(
        command, *query, raw, "--time", "at", "--uncertainty", "plus_minus:50ms", "--tick", "100ms"
    )
    assert uneven.exit_code == 2
    assert "plus_minus 50ms must be whole ticks of 100ms" in uneven.stdout + uneven.stderr
