"""``infer-offsets``: from raw files and a schema to a table that ``match`` reads."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Invoke

SCHEMA = """
tick = "1ms"
[[events]]
type_column = "kind"
time = "at"
unit = "ms"
uncertainty = { kind = "exact" }
[[constraints]]
causal = "SEQ(Send a, Get b) WHERE a.message = b.message"
"""
ROWS = "kind,message,host,at\nSend,1,,10\nGet,1,h,4\nSend,2,h,20\nGet,2,,31\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "calls.csv").write_text(ROWS)
    return tmp_path


def test_from_files_to_a_table_of_offsets(invoke: Invoke, folder: Path) -> None:
    arguments = (
        folder / "calls.csv",
        "--schema",
        folder / "schema.toml",
        "--source",
        "host",
        "--prior",
        "10min",
    )
    shown = invoke("infer-offsets", *arguments)
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.splitlines() == ['"host","offset_lo","offset_hi"', '"h",6,11']
    assert '1 clock: 1 of 1 row with both bounds; for clock_offset they are of unit = "ms"' in shown.stderr
    table = folder / "offsets.csv"
    assert invoke("infer-offsets", *arguments, "-o", table).exit_code == 0
    assert invoke("infer-offsets", *arguments, "-o", table).exit_code == 2
    rule = f"clock_offset:{table}:host"
    raw = folder / "gets.csv"
    raw.write_text("kind,host,at\nGet,h,4\nGet,h,14\n")
    matched = invoke(
        "match", "PATTERN SEQ(Get a, Get b) WITHIN 1 second", raw, "--type-column", "kind", "--time", "at",
        "--unit", "ms", "--tick", "1ms", "--uncertainty", rule, "-o", folder / "matches.jsonl",
    )  # fmt: skip
    assert matched.exit_code == 0, matched.stderr


def test_explain_tells_what_is_certain_by_assumption(invoke: Invoke, folder: Path) -> None:
    arguments = (folder / "calls.csv", "--schema", folder / "schema.toml")
    shown = invoke("explain", "PATTERN SEQ(Send s, Get+ g[]) WITHIN 5 s", *arguments)
    assert shown.exit_code == 0, shown.stderr
    assert "s before g is what the constraint SEQ(Send a, Get b) WHERE" in shown.stderr
    for other in ("SEQ(Get g, Send s)", "AND(Send s, Get g)", "SEQ(Send s, !Get g, Send t)"):
        assert "granted" not in invoke("explain", f"PATTERN {other} WITHIN 5 s", *arguments).stderr
    inferred = invoke("infer-offsets", *arguments, "--source", "host", "--prior", "10min")
    assert "queries for what was assumed prove nothing with these bounds: SEQ(Send a" in inferred.stderr


def test_epochs_drop_and_parquet(invoke: Invoke, folder: Path) -> None:
    (folder / "calls.csv").write_text(f"{ROWS}Send,3,,50\nGet,3,h,90\nSend,4,h,93\nGet,4,,55\n")
    arguments = (folder / "calls.csv", "--schema", folder / "schema.toml", "--source", "host")
    assert invoke("infer-offsets", *arguments).exit_code == 2
    dropped = invoke("infer-offsets", *arguments, "--drop")
    assert dropped.exit_code == 0
    assert "warning: 1 of 4 pairs" in dropped.stderr
    out = folder / "epochs.parquet"
    assert invoke("infer-offsets", *arguments, "--epochs", "-o", out).exit_code == 0
    bounds = pq.read_table(out)
    assert bounds.column_names == ["host", "from", "until", "offset_lo", "offset_hi"]
    assert bounds.num_rows == 2
    assert bounds.schema.field("offset_lo").type == pa.duration("ms")


def test_constraints_of_the_command_line(invoke: Invoke, folder: Path) -> None:
    plain = folder / "events.csv"
    plain.write_text("type,id,lower,upper,k,source\nA,1,10,10,1,g\nB,2,3,3,1,h\n")
    nothing = invoke("infer-offsets", plain)
    assert nothing.exit_code == 2
    assert "say what cannot be otherwise" in nothing.stderr
    shown = invoke("infer-offsets", plain, "--causal", "SEQ(A a, B b) WHERE a.k = b.k", "--reference", "g")
    assert shown.stdout.splitlines()[1:] == ['"g",0,0', '"h",7,']
    assert 'unit = "tick"' in shown.stderr
    assert invoke("infer-offsets", plain, "--causal", "SEQ(A a)").exit_code == 2
    assert invoke("infer-offsets", plain, "--causal", "SEQ(A a, B b)", "-o", folder / "x").exit_code == 2
