"""A process ends, however that comes about, while iterators with threads of their own are alive."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confidence.uninterrupted
from confidence.uninterrupted import in_a_thread
from uncertain_cep.running.threads import side_by_side

ROOT = Path(__file__).parents[2]
PATIENCE = 600.0
"""Seconds after which a process counts as one that hangs."""

ALIVE = """
import atexit, gc, os, signal, sys, threading, time
from confidence.budget import checkpoint
{before}
from uncertain_cep.running.threads import side_by_side

def endless():
    while True:
        checkpoint()
        time.sleep(0.001)
        yield 1

def begun():
    found = side_by_side(2, [endless, endless])
    assert next(found) + next(found) == 2
    return found

{after}
"""

CYCLE = """
class Holder:
    pass

def fails():
    holder = Holder()
    holder.itself, holder.found = holder, begun()
    raise ValueError("of the program")

"""

DAEMON = """
def consumes():
    for _ in side_by_side(2, [endless, endless]):
        consumed.set()

consumed = threading.Event()
threading.Thread(target=consumes, daemon=True).start()
consumed.wait()
"""

KEPT_BY_A_THREAD = """
def runs():
    local.found = begun()
    made.set()
    threading.Event().wait()

local, made = threading.local(), threading.Event()
threading.Thread(target=runs, daemon=True).start()
made.wait()
"""

FORKED = """
found = begun()
if child := os.fork():
    _, status = os.waitpid(child, 0)
    assert next(found) == 1
    sys.exit(os.waitstatus_to_exitcode(status))
try:
    next(found)
except RuntimeError as error:
    assert "threads=1" in str(error), error
    assert next(begun()) == 1
    sys.exit(7)
"""

LATER = """
def later():
    print(sum(next(found) for found in (begun(), begun())))

atexit.register(later)
"""

GOES_ON = """
def goes_on():
    try:
        next(found)
    except SystemExit as error:
        print(error)

atexit.register(goes_on)
"""

CAUGHT = """
gc.disable()
try:
    fails()
except ValueError:
    pass
"""

BY_SIGNAL = """
found = begun()
os.kill(os.getpid(), signal.{})
time.sleep(60)
"""

HANDLED = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))
found = begun()
os.kill(os.getpid(), signal.SIGTERM)
"""

THREAD_OVER = """
found = []
thread = threading.Thread(target=lambda: found.append(begun()))
thread.start()
thread.join()
"""

ENDS = {
    "the end of the script": ("", "found = begun()", 0),
    "sys.exit": ("", "found = begun()\nsys.exit(3)", 3),
    "an error": ("", "found = begun()\nraise ValueError('of the program')", 1),
    "an error, and a cycle": ("", CYCLE + "fails()", 1),
    "a cycle that nobody collects": ("", CYCLE + CAUGHT, 0),
    "an interrupt": ("", BY_SIGNAL.format("SIGINT"), -signal.SIGINT),
    "a signal": ("", BY_SIGNAL.format("SIGTERM"), -signal.SIGTERM),
    "a signal with a handler": ("", HANDLED, 4),
    "a thread that is over": ("", THREAD_OVER, 0),
    "a daemon thread that goes on": ("", DAEMON, 0),
    "a daemon thread that waits": ("", KEPT_BY_A_THREAD, 0),
    "os._exit": ("", "found = begun()\nos._exit(5)", 5),
    "a fork": ("", FORKED, 7),
    "begun at the end": ("", LATER, 0),
    "begun after the end": (LATER, "", 0),
    "gone on with after the end": (GOES_ON, "found = begun()", 0),
}


def ended(*command: str | Path, most_bytes: int | None = None) -> subprocess.CompletedProcess[str]:
    """Return how a Python ended that may write files of so many bytes."""

    def limit() -> None:
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        preexec_fn=limit,
    )


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("way", ENDS)
def test_a_process_ends(way: str) -> None:
    before, after, code = ENDS[way]
    done = ended("-c", ALIVE.format(before=before, after=after))
    assert done.returncode == code, done.stderr
    assert ("Traceback" in done.stderr) is (code in (1, -signal.SIGINT)), done.stderr
    if "after" in way or "at the end" in way:
        assert done.stdout == ("no more matches are found: the process ends\n" if "gone on" in way else "2\n")


EVENTS = 20_000
QUERY = "PATTERN SEQ(A a, B b) WITHIN 400"
MATCHING = """
import sys
import pyarrow.parquet as pq
import uncertain_cep as uc
found = uc.iter_matches(pq.read_table(sys.argv[1]), {query!r}, threads=2)
assert next(found).num_rows
"""


@pytest.fixture
def many(tmp_path: Path) -> Path:
    number = np.arange(EVENTS)
    place = tmp_path / "many.parquet"
    kinds = np.where(number % 2, "A", "B")
    pq.write_table(
        pa.table({"type": kinds, "id": number, "lower": 3 * number, "upper": 3 * number + 5}), place
    )
    return place


def test_a_program_ends_with_matches_that_nobody_took(many: Path) -> None:
    done = ended("-c", MATCHING.format(query=QUERY), many)
    assert done.returncode == 0, done.stderr


def test_a_command_ends_when_the_disk_is_full(many: Path, tmp_path: Path) -> None:
    command = ("-m", "uncertain_cep", "match", QUERY, many, "-o", tmp_path / "x.parquet", "--threads", "2")
    done = ended(*command, most_bytes=100_000)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: "), done.stderr
    assert os.listdir(tmp_path) == ["many.parquet"]


class _NoThread:
    def __init__(self, *_: object, **__: object) -> None:
        pass

    def start(self) -> None:
        raise RuntimeError("can't start new thread")


def test_without_more_threads_the_caller_does_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncertain_cep.running.threads.Thread", _NoThread)
    monkeypatch.setattr("uncertain_cep.running.threads._Worker._idle", [])
    monkeypatch.setattr("uncertain_cep.running.threads.WORTH_A_THREAD", -1.0)
    monkeypatch.setattr(confidence.uninterrupted, "Thread", _NoThread)
    assert list(side_by_side(2, [lambda: iter("ab"), lambda: iter("cd")])) == ["a", "c", "b", "d"]
    assert in_a_thread(lambda: 3, daemon=True) == 3
