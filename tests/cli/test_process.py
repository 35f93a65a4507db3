"""The command as a process of its own: exit codes, streams and signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

COMMAND = (sys.executable, "-m", "uncertain_cep")
QUERY = "PATTERN SEQ(A a, B b, C c) WITHIN 4"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)


def test_results_on_stdout_and_the_rest_on_stderr(parquet: Path) -> None:
    done = run("match", QUERY, parquet)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    assert "engine: in process" in done.stderr


def test_bad_input_ends_with_2_and_one_message(tmp_path: Path) -> None:
    done = run("match", QUERY, tmp_path / "gone.parquet", "-o", tmp_path / "out")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_stops_early_is_no_error(invoke: Invoke, tmp_path: Path) -> None:
    trace = tmp_path / "stream.parquet"
    assert invoke("generate", "stream", "--events", 100_000, "-o", trace).exit_code == 0
    query = "PATTERN SEQ(E a, E b) WITHIN 10"
    with subprocess.Popen(
        [*COMMAND, "match", query, trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert "Traceback" not in said
    assert "error" not in said


@pytest.mark.usefixtures("interruptible")
def test_interrupt_leaves_nothing_half_written(invoke: Invoke, tmp_path: Path) -> None:
    trace = tmp_path / "stream.parquet"
    assert (
        invoke("generate", "stream", "--events", 300_000, "--half-interval", 50, "-o", trace).exit_code == 0
    )
    before = set(os.listdir(tmp_path))
    query = "PATTERN SEQ(E a, E b, E c) WITHIN 30"
    with subprocess.Popen(
        [*COMMAND, "match", query, trace, "-o", tmp_path / "out"], stderr=subprocess.PIPE, text=True
    ) as process:
        until = time.monotonic() + 120
        while set(os.listdir(tmp_path)) == before and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == 130, said
    assert said.endswith("Aborted!\n")
    assert "Traceback" not in said
    assert set(os.listdir(tmp_path)) == before
