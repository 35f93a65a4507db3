"""The command with little time or memory, over drawn queries: it ends in time and leaves nothing behind."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fuzz.bombs import Bomb
from tests.fuzz.long_matches import DRAWN, LONG

COMMAND: Final = """
import time
from types import SimpleNamespace
from uncertain_cep.cli import arguments, main
from uncertain_cep.running import resource_limits
arguments.time = resource_limits.time = SimpleNamespace(monotonic=time.process_time)
main(prog_name="uncertain-cep")
"""
"""The command on a clock that stands still while other processes run."""

SECONDS: Final = 2
"""Of processor time, for more than the shortest query takes."""

MOST_LATE: Final = 2.0
"""Seconds of processor time beyond the limit, of which a call of another library may take one."""

MEMORY: Final = 700 * 10**6

MOST_BEYOND: Final = 384 * 2**20
"""Bytes beyond a limit, as for calls: a batch of matches, and what is made between two looks."""

STOPPED: Final = (
    "error: stopped after ",
    "error: stopped at the memory limit",
    "error: there is not enough memory",
)
"""What a command says that has failed though its input may be sound, with exit code 1."""

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.compiled,
    pytest.mark.skipif(not hasattr(os, "wait4"), reason="the system does not tell what one process took"),
]


@dataclass(frozen=True)
class Ending:
    """How a command ended: exit code, stderr, seconds of processor time, and the most bytes that it held."""

    code: int
    said: str
    seconds: float
    held: int


def ending(arguments: list[str]) -> Ending:
    """Run a command to its end."""
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    held = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Ending(process.returncode, said, used.ru_utime + used.ru_stime, held)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


def trace_of(bomb: Bomb, folder: Path) -> Path:
    """Return the file of a bomb's events, written once."""
    events: pa.Table = bomb.events(bomb.count)
    options = getattr(bomb.events, "keywords", {})
    name = "-".join(f"{key}{value}" for key, value in options.items()) or "plain"
    file = folder / f"{name}-{bomb.count}.parquet"
    if not file.exists():
        pq.write_table(events, file)
    return file


@cache
def shortest_seconds(trace: Path) -> float:
    """Return the seconds of processor time of a query without matches."""
    end = ending(["match", "PATTERN SEQ(Q a) WITHIN 1", str(trace), "--threads", "1"])
    assert end.code == 0, end.said
    return end.seconds


def check(name: str, bomb: Bomb, folder: Path, place: Path, *, with_memory: bool) -> None:
    """Run one query; what is compiled for the first time, or waits for other processes, has a second try."""
    assert isinstance(bomb.query, str)
    trace = trace_of(bomb, folder)
    out = place / "out.parquet"
    limit = math.ceil(shortest_seconds(trace)) + SECONDS
    limits = ["--time-limit", f"{limit}s", "--threads", "1"]
    if with_memory:
        limits += ["--memory-limit", f"{MEMORY // 10**6}MB"]
    late: list[float] = []
    for _ in range(3):
        end = ending(["match", bomb.query, str(trace), "-o", str(out), "--overwrite", *limits])
        assert end.code in (0, 1, 2), (name, end)
        assert "Traceback" not in end.said, (name, end)
        if end.code == 0:
            assert pq.read_table(out).num_rows >= 0
        else:
            assert "error: " in end.said, (name, end)
            assert "It is a mistake of the library" not in end.said, (name, end)
            assert (end.code == 1) == any(text in end.said for text in STOPPED), (name, end)
        # Neither half of a result, nor what it was written aside to.
        assert os.listdir(place) == (["out.parquet"] if end.code == 0 else []), (name, end)
        out.unlink(missing_ok=True)
        if with_memory:
            assert end.held < MEMORY + MOST_BEYOND, (name, end)
        late.append(end.seconds - limit)
        if late[-1] < MOST_LATE:
            return
        time.sleep(1.0)
    raise AssertionError((name, late))


@pytest.mark.parametrize("part", range(8))
def test_drawn_queries(part: int, folder: Path, tmp_path: Path) -> None:
    for number, (name, bomb) in enumerate(DRAWN.items()):
        if number % 8 == part:
            check(name, bomb, folder, tmp_path, with_memory=number // 8 % 2 == 0)


@pytest.mark.parametrize("name", [name for name, bomb in LONG.items() if bomb.call != "push"])
def test_long_matches(name: str, folder: Path, tmp_path: Path) -> None:
    check(name, LONG[name], folder, tmp_path, with_memory=True)
