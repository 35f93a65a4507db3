"""Remains of a killed process go with the next run, and two runs to one place leave one result."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Invoke
from uncertain_cep.cli.outputs import result_written_aside
from uncertain_cep.errors import OptionError
from uncertain_cep.files.atomic_output import written_aside

QUERY = "PATTERN SEQ(A a, B b, C c) WITHIN 4"
KILLED = """
import os, signal, sys
from pathlib import Path
from uncertain_cep.files.atomic_output import written_aside
with written_aside(Path(sys.argv[1]), lambda place: True) as made:
    made.mkdir()
    (made / "half").write_text("half")
    {}
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_while_writing(out: Path, at_last: str = "pass") -> None:
    done = subprocess.run([sys.executable, "-c", KILLED.format(at_last), str(out)], check=False)
    assert done.returncode == -signal.SIGKILL


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.mark.parametrize("name", ["out", "out.csv"])
def test_what_was_killed_is_removed_by_the_next_run(
    invoke: Invoke, parquet: Path, tmp_path: Path, name: str
) -> None:
    before = names(tmp_path)
    kill_while_writing(tmp_path / name)
    assert len(names(tmp_path)) == len(before) + 1
    # Not of this place, or not of this program.
    unrelated = [".other.0123456789ab.partial", f".{name}.mine.partial"]
    for other in unrelated:
        (tmp_path / other).mkdir()
    assert invoke("match", QUERY, parquet, "-o", tmp_path / name).exit_code == 0
    assert names(tmp_path) == sorted([*before, *unrelated, name])


def test_what_another_process_is_at_stays(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with result_written_aside(out, overwrite=True) as slow:
        slow.write_text("slow")
        with result_written_aside(out, overwrite=True) as fast:
            assert len(names(tmp_path)) == 2
            fast.write_text("fast")
        assert out.read_text() == "fast"
        assert slow.read_text() == "slow"
    assert out.read_text() == "slow"
    assert names(tmp_path) == ["out"]


def test_without_locks_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kill_while_writing(tmp_path / "out")
    (left,) = names(tmp_path)

    def unlockable(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", unlockable)
    with result_written_aside(tmp_path / "out", overwrite=False) as made:
        made.write_text("whole")
    assert names(tmp_path) == [left, "out"]


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    """The system does not say where there is no space."""
    with pytest.raises(OSError, match="No space") as caught, written_aside(tmp_path / "out", lambda _: True):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(tmp_path / "out")
    assert names(tmp_path) == []


def test_a_former_folder_comes_back_if_its_successor_never_took_its_place(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "part").write_text("former")
    kill_while_writing(out, at_last=f"Path({str(out)!r}).rename(made.parent / 'former')")
    assert not out.exists()
    with pytest.raises(OptionError, match="is there already"), written_aside(out, refused):
        pytest.fail("it is refused before any work")
    assert (out / "part").read_text() == "former"
    assert names(tmp_path) == ["out"]


def refused(place: Path) -> bool:
    if os.path.lexists(place):
        raise OptionError(f"{place} is there already")
    return False


def as_file(made: Path, text: str) -> None:
    made.write_text(text)


def as_folder(made: Path, text: str) -> None:
    made.mkdir()
    for part in range(3):
        (made / f"part{part}").write_text(text)


Write = Callable[[Path, str], None]


def contents(out: Path) -> str:
    if out.is_file():
        return out.read_text()
    parts = {path.read_text() for path in out.iterdir()}
    assert len(names(out)) == 3
    assert len(parts) == 1
    return parts.pop()


@pytest.mark.parametrize("write", [as_file, as_folder])
def test_the_first_of_two_runs_stays(tmp_path: Path, write: Write) -> None:
    out = tmp_path / "out"
    late = written_aside(out, refused)
    write(late.__enter__(), "late")
    with written_aside(out, refused) as early:
        write(early, "early")
    with pytest.raises(OptionError, match="is there already"):
        late.__exit__(None, None, None)
    assert contents(out) == "early"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("write", [as_file, as_folder])
def test_a_result_that_appears_at_the_last_moment_stays(tmp_path: Path, write: Write) -> None:
    """After what is there has been looked at for the last time."""
    out = tmp_path / "out"
    checks = 0

    def check(place: Path) -> bool:
        nonlocal checks
        checks += 1
        is_refused = refused(place)
        if checks == 2:
            write(place, "early")
        return is_refused

    with pytest.raises(OptionError, match="is there already"), written_aside(out, check) as late:
        write(late, "late")
    assert contents(out) == "early"
    assert names(tmp_path) == ["out"]


def replace_often(out: Path, write: Write, text: str) -> None:
    for _ in range(50):
        with written_aside(out, lambda _: True) as made:
            write(made, text)


@pytest.mark.parametrize("write", [as_file, as_folder])
def test_runs_that_replace_each_other_leave_a_whole_result(tmp_path: Path, write: Write) -> None:
    out = tmp_path / "out"
    start = multiprocessing.get_context("fork")
    processes = [start.Process(target=replace_often, args=(out, write, text)) for text in "xyz"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert contents(out) in "xyz"
    assert names(tmp_path) == ["out"]


def test_a_folder_that_another_run_takes_for_left_behind_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between being made and being locked it looks like one that nobody owns."""
    lock = fcntl.flock
    taken: list[Path] = []

    def flock(folder: int, how: int) -> None:
        if not taken:
            (made,) = tmp_path.iterdir()
            taken.append(made)
            raise BlockingIOError(errno.EWOULDBLOCK, "Resource temporarily unavailable")
        lock(folder, how)

    monkeypatch.setattr("fcntl.flock", flock)
    with written_aside(tmp_path / "out", refused) as made:
        shutil.rmtree(taken[0])
        made.write_text("whole")
    assert (tmp_path / "out").read_text() == "whole"
    assert names(tmp_path) == ["out"]


def test_places_that_are_no_file_are_refused(invoke: Invoke, parquet: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    # As /dev/stdout is one.
    (tmp_path / "link.csv").symlink_to("/proc/self/fd/1")
    for out in (tmp_path / "pipe.csv", tmp_path / "link.csv", "/dev/fd/1", "/dev/null"):
        result = invoke("match", QUERY, parquet, "-o", out, "--overwrite")
        assert result.exit_code == 2
        assert "which nothing can replace" in result.stderr
    assert names(tmp_path) == ["figure1.parquet", "link.csv", "pipe.csv"]


def test_file_systems_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unlinkable(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.link", unlinkable)
    with written_aside(tmp_path / "out", refused) as made:
        made.write_text("whole")
    assert (tmp_path / "out").read_text() == "whole"


def test_a_result_read_by_others_is_whole(invoke: Invoke, parquet: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    for _ in range(2):
        assert invoke("match", QUERY, parquet, "-o", out, "--overwrite").exit_code == 0
        assert pq.read_table(out).num_rows == 2
