"""The command writes every match of a stream once, whatever is killed, and ends in order when told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import uncertain_cep as uc
from tests.conftest import ROOT
from tests.spark.killed_streams import QUERIES, command, commits, run, started, trace, written
from tests.spark.streams import put
from tests.spark.traces import as_rows

PATIENCE = 300
"""Seconds; on an idle machine a run takes fifteen."""


def test_two_kills(tmp_path: Path) -> None:
    found = run(tmp_path, QUERIES["next"], trace(1500, 1), 4, ["worker", "driver"], 1)
    assert found["starts"] == 2
    # The batch that closes the stream comes by itself.
    assert found["batches"] == 5


def test_a_signal_ends_a_stream_in_order_and_the_command_goes_on(tmp_path: Path) -> None:
    table = trace(900, 2)
    put(tmp_path / "events", table.slice(0, 300), table.slice(300, 300))
    log = tmp_path / "log"
    process = started(command(tmp_path, QUERIES["plain"], "--trigger", "200ms"), log)
    until = time.monotonic() + PATIENCE
    while commits(tmp_path) < 2:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(PATIENCE) == 143, log.read_text()
    said = log.read_text()
    assert "batch 0: 300 events, " in said
    assert "0 late; state " in said
    assert "final up to 7 ticks behind the newest event" in said
    assert said.endswith("Ended by SIGTERM.\n")
    assert "Traceback" not in said
    put(tmp_path / "events", table.slice(600))
    assert started(command(tmp_path, QUERIES["plain"], "--close"), log).wait(PATIENCE) == 0, log.read_text()
    assert log.read_text().endswith("the stream is closed\n")
    expected = uc.match(table, QUERIES["plain"])
    found = written(tmp_path / "out")
    assert found is not None
    assert as_rows(found.select(expected.column_names)) == as_rows(expected)
    assert not list(tmp_path.glob(".out*"))
    other = started(command(tmp_path, QUERIES["next"], "--once"), log)
    assert other.wait(PATIENCE) == 2
    assert "the checkpoint is of another stream: query was " in log.read_text()


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
    found = run(
        tmp_path, QUERIES["sets"], trace(4000, 3), 8, ["executor", "executor"], 3, "local-cluster[2,1,1024]"
    )
    assert found["kills"] == ["executor", "executor"]
