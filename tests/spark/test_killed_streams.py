"""The command writes every match of a stream once, whatever is killed, and ends in order when told to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from tests.conftest import ROOT
from tests.spark.killed_streams import QUERIES, command, run, trace, written
from tests.spark.streams import TOO_BUSY, put
from uncertain_cep.cli import main


@pytest.mark.parametrize(
    "kills",
    [["driver", "end"], pytest.param(["worker", "driver", "end"], marks=pytest.mark.thorough)],
    ids=["some", "all"],
)
def test_whatever_dies_every_match_is_there_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: list[str]
) -> None:
    """Processes are killed, then the command is ended; it goes on in this process."""
    monkeypatch.setattr(spark, "stop", lambda: None)
    runner = CliRunner()

    def close(arguments: Sequence[str], _: Path) -> None:
        result = runner.invoke(main, list(arguments))
        while TOO_BUSY in result.output:
            result = runner.invoke(main, list(arguments))
        assert result.exit_code == 0, result.output
        assert result.output.endswith("the stream is closed\n")

    pieces = len(kills) + 1
    outcome = run(tmp_path, QUERIES["next"], trace(300 * pieces, 1), pieces, kills, 1, "local[1]", close)
    assert outcome["starts"] >= 3
    # The batch that closes the stream comes by itself.
    assert outcome["batches"] == pieces + 1
    said = (tmp_path / "log").read_text()
    assert "batch 0: 300 events, " in said
    assert "0 late; state " in said
    assert "final up to 7 ticks behind the newest event" in said
    assert not list(tmp_path.glob(".out*"))
    other = runner.invoke(main, command(tmp_path, QUERIES["plain"], "--once"))
    assert other.exit_code == 2
    assert "the checkpoint is of another stream: query was " in other.output


def test_a_run_that_ends_tells_what_nothing_to_come_can_change(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No event before 17 is to come: one between 15 and 18 can spoil what ends at 18."""
    monkeypatch.setattr(spark, "stop", lambda: None)
    rows = zip("ABABC", (1, 5, 15, 18, 20), strict=True)
    table = pa.Table.from_pylist(
        [{"type": of_type, "id": tick, "lower": tick, "upper": tick} for of_type, tick in rows]
    )
    put(tmp_path / "events", table)

    def told(option: str) -> tuple[list[int], str]:
        arguments = command(tmp_path, "PATTERN SEQ(A a, !N n, B b) WITHIN 100", option)
        arguments[arguments.index("--largest-interval") + 1] = "3"
        result = CliRunner().invoke(main, arguments)
        while TOO_BUSY in result.output:
            result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
        out = written(tmp_path / "out")
        return ([] if out is None else sorted(out.column("a").to_pylist())), result.output

    matches, said = told("--once")
    assert matches == [1]
    assert "2 matches are undecided, as an event from 17 on can spoil them" in said
    assert told("--close")[0] == [1, 1, 15]


@pytest.mark.thorough
def test_thirty_kills(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.killed_streams", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * 3600,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]
    assert len(done.stdout.splitlines()) == len(QUERIES)


@pytest.mark.thorough
def test_killed_executors_of_a_cluster(tmp_path: Path) -> None:
    outcome = run(
        tmp_path, QUERIES["sets"], trace(4000, 3), 8, ["executor", "executor"], 3, "local-cluster[2,1,1024]"
    )
    assert outcome["kills"] == ["executor", "executor"]
