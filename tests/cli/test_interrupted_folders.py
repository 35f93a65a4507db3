"""Ctrl-C while a command lists folders, looks at files or checks them: it ends at once, in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pytest

SLOWLY: Final = """
import os, sys, time
listed = os.scandir
def slowly(*place):
    if place and "events" in str(place[0]):
        print("begun", file=sys.stderr, flush=True)
        time.sleep(0.1)
    return listed(*place)
os.scandir = slowly
from uncertain_cep.cli import main
main(prog_name="uncertain-cep")
"""
"""The command where folders of events lie on a slow file system; a line for each that it lists."""

BEGUN: Final = """
import sys
from uncertain_cep.cli import main
for command in main.commands.values():
    def begun(*arguments, _callback=command.callback, **options):
        print("begun", file=sys.stderr, flush=True)
        return _callback(*arguments, **options)
    command.callback = begun
main(prog_name="uncertain-cep")
"""
"""The command, which says when it begins to work."""

QUERY: Final = "PATTERN SEQ(A a, B b) WITHIN 4"

AT_ONCE: Final = 2.0
"""Seconds after which a command has ended; the least of some tries, as other processes run."""

TRIES: Final = 4

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("interruptible")]


def interrupted(program: str, arguments: Sequence[object], after: float) -> tuple[int, str, float]:
    """Interrupt a command so long after it says that it has begun.

    Returns its exit code, what it said besides, and how many seconds it took to end.
    """
    with subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # Signals of a terminal go to a whole group.
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            if line == "begun\n":
                break
            said.append(line)
        else:
            raise AssertionError("".join(said))
        time.sleep(after)
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        said += process.stderr.readlines()
        code = process.wait()
    return code, "".join(line for line in said if line != "begun\n"), time.monotonic() - began


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 900 folders; to list them takes a minute and a half."""
    folder = tmp_path_factory.mktemp("slow") / "events"
    for outer in range(30):
        for inner in range(30):
            place = folder / f"{outer}" / f"{inner}"
            place.mkdir(parents=True)
            number = 30 * outer + inner
            (place / "t.csv").write_text(f"type,id,lower,upper\nA,{number},{number},{number}\n")
    return folder


@pytest.mark.parametrize("command", ["match", "explain", "validate", "init", "report", "stream"])
def test_while_folders_are_listed(command: str, tree: Path, tmp_path: Path) -> None:
    arguments: dict[str, list[object]] = {
        "match": [QUERY, tree, "-o", tmp_path / "out"],
        "explain": [QUERY, tree],
        "validate": [tree],
        "init": [tree, "-o", tmp_path / "out"],
        "report": [QUERY, tree, "-o", tmp_path / "out.html"],
        "stream": [
            *(QUERY, "--source", tree, "--largest-interval", "3", "--once", "--tick", "1s"),
            *("--checkpoint", tmp_path / "state", "-o", tmp_path / "out", "--master", "local[1]"),
        ],
    }
    took = []
    for attempt in range(TRIES):
        code, said, seconds = interrupted(SLOWLY, [command, *arguments[command]], 0.3 * attempt)
        assert code == 130, said
        assert said.endswith("Aborted!\n")
        assert "Traceback" not in said
        assert os.listdir(tmp_path) == []
        took.append(seconds)
        if seconds < AT_ONCE:
            break
    assert min(took) < AT_ONCE, took


@pytest.fixture(scope="module")
def long_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 60 MB whose columns nobody has described."""
    file = tmp_path_factory.mktemp("long") / "log.csv"
    stamps = np.datetime64("2026-01-05T08:00:00.000") + np.arange(1_000_000).astype("timedelta64[ms]")
    with file.open("w") as out:
        out.write("time,host,message,code\n")
        for number, stamp in enumerate(stamps.astype(str).tolist()):
            out.write(f"{stamp},host{number % 97},something of some length,{number % 7}\n")
    return file


SCHEMA: Final = """
[[events]]
time = "time"
type = "said"
uncertainty = "granularity(1s)"
attributes = ["host", "message", "code"]
"""


@pytest.mark.parametrize("after", [0.05, 0.4, 1.2, 2.5])
@pytest.mark.parametrize("command", ["init", "validate", "match"])
def test_while_a_long_file_is_looked_at(command: str, after: float, long_file: Path, tmp_path: Path) -> None:
    out, schema = tmp_path / "out", tmp_path / "schema.toml"
    schema.write_text(SCHEMA)
    arguments: dict[str, list[object]] = {
        "init": [long_file, "-o", out],
        "validate": [long_file, "--schema", schema],
        "match": ["PATTERN SEQ(said a, said b) WITHIN 1 s", long_file, "--schema", schema, "-o", out],
    }
    took = []
    for _ in range(TRIES):
        code, said, seconds = interrupted(BEGUN, [command, *arguments[command]], after)
        if code == 0 and after > 1.0:
            pytest.skip("it has ended before")
        assert code == 130, said
        assert said.endswith("Aborted!\n")
        assert "Traceback" not in said
        assert os.listdir(tmp_path) == ["schema.toml"]
        took.append(seconds)
        if seconds < AT_ONCE:
            break
    assert min(took) < AT_ONCE, took
