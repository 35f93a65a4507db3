"""The command as a process of its own: exit codes, streams and signals."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

COMMAND = (sys.executable, "-m", "uncertain_cep")
QUERY = "PATTERN SEQ(A a, B b, C c) WITHIN 4"
ENDLESS = "WHERE a.value + b.value + c.value < -1 WITHIN 30000"
"""It takes hours to find that no events of a stream are like that."""


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
    assert process.returncode == 141
    assert "Traceback" not in said
    assert "error" not in said


@pytest.mark.parametrize(
    ("streams", "out", "code", "said"),
    [
        (">&-", False, 1, "error: stdout is closed: redirect it, or name a place for the result with -o"),
        (">&-", True, 0, "2 matches"),
        (">&- 2>&- <&-", True, 0, ""),
        (">/dev/full", False, 1, "error: No space left on device"),
    ],
    ids=["closed", "closed and not needed", "all closed", "full"],
)
def test_streams_that_take_nothing(
    parquet: Path, tmp_path: Path, streams: str, out: bool, code: int, said: str
) -> None:
    arguments = ["match", QUERY, str(parquet), *(["-o", str(tmp_path / "out.csv")] if out else [])]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {streams}', "sh", *COMMAND, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert done.stderr.count("error") == (code > 0)
    assert sorted(os.listdir(tmp_path)) == ["figure1.parquet", *(["out.csv"] if out else [])]
    if out:
        assert len((tmp_path / "out.csv").read_text().splitlines()) == 3


def test_rows_and_what_moves_never_share_a_line_of_the_terminal(invoke: Invoke, tmp_path: Path) -> None:
    trace = tmp_path / "stream.parquet"
    assert invoke("generate", "stream", "--events", 5_000, "-o", trace).exit_code == 0
    query = "PATTERN SEQ(E a, E b) WITHIN 4"
    assert invoke("match", query, trace, "-o", tmp_path / "rows.csv").exit_code == 0
    ours, theirs = pty.openpty()
    with subprocess.Popen([*COMMAND, "match", query, trace], stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        blocks = []
        # Once the other end is closed, Linux says EIO.
        with contextlib.suppress(OSError):
            while block := os.read(ours, 2**16):
                blocks.append(block)
    os.close(ours)
    assert process.returncode == 0
    lines = b"".join(blocks).decode().replace("\r\n", "\n").split("\n")
    rows = (tmp_path / "rows.csv").read_text().splitlines()
    first = lines.index(rows[0])
    assert lines[first : first + len(rows)] == rows
    assert not any(char in "".join(lines[first:]) for char in "\r\x1b")


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("number", "code", "last"),
    [(signal.SIGINT, 130, "Aborted!\n"), (signal.SIGTERM, 143, "Ended by SIGTERM.\n")],
)
def test_signals_leave_nothing_half_written(
    invoke: Invoke, tmp_path: Path, number: signal.Signals, code: int, last: str
) -> None:
    trace = tmp_path / "stream.parquet"
    assert (
        invoke("generate", "stream", "--events", 300_000, "--half-interval", 50, "-o", trace).exit_code == 0
    )
    before = set(os.listdir(tmp_path))
    query = f"PATTERN SEQ(E a, E b, E c) {ENDLESS}"
    with subprocess.Popen(
        [*COMMAND, "match", query, trace, "-o", tmp_path / "out"], stderr=subprocess.PIPE, text=True
    ) as process:
        while set(os.listdir(tmp_path)) == before:
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(number)
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == code, said
    assert said.endswith(last)
    assert "Traceback" not in said
    assert set(os.listdir(tmp_path)) == before


def descendants(process: int) -> list[int]:
    """Return the processes that a process has started, directly or not."""
    children = Path(f"/proc/{process}/task/{process}/children")
    children_of_process = [int(child) for child in children.read_text().split()] if children.exists() else []
    return children_of_process + [below for child in children_of_process for below in descendants(child)]


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


JAVA_GONE = "error: Spark's Java process has ended. "


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("number", "code", "last"),
    [
        (signal.SIGTERM, 143, "Ended by SIGTERM.\n"),
        pytest.param(signal.SIGINT, 130, "Aborted!\n", marks=pytest.mark.thorough),
        # Java is killed, as the system does when memory runs out.
        pytest.param(signal.SIGKILL, 1, JAVA_GONE, marks=pytest.mark.thorough),
    ],
)
def test_a_command_that_is_ended_takes_spark_with_it(
    invoke: Invoke, tmp_path: Path, number: signal.Signals, code: int, last: str
) -> None:
    trace, temporary = tmp_path / "stream.parquet", tmp_path / "temporary"
    temporary.mkdir()
    assert invoke("generate", "stream", "--events", 200_000, "-o", trace).exit_code == 0
    before = sorted(os.listdir(tmp_path))
    query = f"PATTERN SEQ(E a, E b, E c) {ENDLESS}"
    command = [*COMMAND, "match", query, str(trace), "-o", str(tmp_path / "out"), "--master", "local[1]"]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if line.startswith("matching on Spark"):
                break
        time.sleep(3)
        started = descendants(process.pid)
        if number == signal.SIGKILL:
            os.kill(java_of(started), number)
        else:
            # As a terminal, a system that shuts down or timeout does: all that share the group get it.
            os.killpg(process.pid, number)
        ends = process.stderr.read()
    assert process.returncode == code, ends
    assert ends.startswith(last)
    # Nothing of Java, nor of what else noticed.
    assert ends.count("\n") == 1
    until = time.monotonic() + 1800
    while any(map(is_alive, started)) and time.monotonic() < until:
        time.sleep(0.2)
    assert not [one for one in started if is_alive(one)]
    assert sorted(os.listdir(tmp_path)) == before
    assert number == signal.SIGKILL or os.listdir(temporary) == []


def java_of(processes: Sequence[int]) -> int:
    """Return the process of Spark's driver."""
    commands = {one: Path(f"/proc/{one}/cmdline").read_text() for one in processes if is_alive(one)}
    (driver,) = (one for one, command in commands.items() if "org.apache.spark.deploy.SparkSubmit" in command)
    return driver


ENDS = """
import atexit, os, sys

class Last:
    def __del__(self):
        os.write(2, b"taken down")

last = Last()
from uncertain_cep.cli import command_process

def main(prog_name):
    atexit.register(os.write, 1, b"at exit")
    sys.stdout.write("flushed")
    {end}

command_process.main = main
command_process.run()
"""


@pytest.mark.parametrize(
    ("end", "code", "taken_down"),
    [
        ("sys.exit(3)", 3, False),
        ("sys.exit()", 0, False),
        ("sys.exit('in words')", 1, True),
        ("raise ValueError('a fault')", 1, True),
    ],
)
def test_the_interpreter_is_not_taken_down_while_threads_run(end: str, code: int, taken_down: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDS.format(end=end)], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert done.stderr.endswith("taken down") == taken_down
    assert done.stdout == "flushedat exit"
