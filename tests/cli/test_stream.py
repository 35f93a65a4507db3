"""Refusals of the command for streams, before Spark is started or anything is written."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame

from uncertain_cep.cli import main
from uncertain_cep.errors import OptionError
from uncertain_cep.spark import stream_output
from uncertain_cep.spark.stream_output import begin_output

ARGUMENTS = {
    "--source": "folder", "--largest-interval": "10s", "--checkpoint": "state", "--out": "matches",
}  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"--largest-interval": "soon"}, "largest_interval 'soon' is not a length of time"),
        ({"--trigger": "0s"}, "--trigger 0s: a batch takes some time"),
        ({"--idle-after": "0s"}, "idle_after must be longer than 0"),
        ({"--schema": "s.toml", "--tick": "1ms"}, "--tick and --schema exclude each other"),
        ({"--master": "sc://here"}, "Spark Connect has no part in"),
        ({"--duplicates": "keep"}, "Invalid value for '--duplicates'"),
        ({"--batch": "0"}, "Invalid value for '--batch'"),
        ({"--source": "kafka://here"}, "write kafka://HOST:PORT/TOPIC"),
    ],
)
def test_wrong_options(
    wrong: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = [word for option in (ARGUMENTS | wrong).items() for word in option]
    result = CliRunner().invoke(main, ["stream", "PATTERN SEQ(A a, B b) WITHIN 5", *arguments])
    assert result.exit_code == 2
    assert said in result.output
    assert not list(tmp_path.iterdir())


def test_an_output_and_a_checkpoint_belong_together(tmp_path: Path) -> None:
    first, second, state, other = (tmp_path / name for name in ("out", "out 2", "state", "state 2"))
    print_of = {"format": 1, "query": "q"}
    begin_output(first, state, print_of, "[]")
    (first / "batch=0").mkdir()
    (state / "offsets").mkdir()
    (state / "offsets" / "0").touch()
    assert begin_output(first, state, print_of, "ignored") == "[]"
    begin_output(second, other, print_of, "[]")
    for out, checkpoint in ((first, other), (tmp_path / "new", state), (first, tmp_path / "new")):
        with pytest.raises(OptionError, match="are not of the same stream"):
            begin_output(out, checkpoint, print_of, "[]")
    with pytest.raises(OptionError, match="query was 'q' and is 'p'"):
        begin_output(first, state, {"format": 1, "query": "p"}, "[]")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    with pytest.raises(OptionError, match="holds something that is of no stream"):
        begin_output(tmp_path / "full", tmp_path / "new", print_of, "[]")


def test_a_run_that_was_killed_between_its_marks_goes_on(tmp_path: Path) -> None:
    out, state = tmp_path / "out", tmp_path / "state"
    begin_output(out, state, {"format": 1}, "[]")
    (out / "_stream.json").unlink()
    assert begin_output(out, state, {"format": 1}, "[]") == "[]"
    left = tmp_path / ".out.0123.batches" / "batch=3"
    left.mkdir(parents=True)
    begin_output(out, state, {"format": 1}, "[]")
    assert not left.exists()


@pytest.mark.parametrize("takes_too_long", [False, True])
def test_a_batch_that_is_written_while_the_stream_ends(
    takes_too_long: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is whole, or not there; and no batch counts as written that is not."""
    out, aside = tmp_path / "out", tmp_path / "aside"
    batches = stream_output._Batches(out, aside)
    begun, may_go_on, put = Event(), Event(), list[str]()

    def slowly(frame: DataFrame, number: int, *, out: Path, aside: Path) -> None:
        aside.mkdir()
        (aside / "part").touch()
        begun.set()
        may_go_on.wait()
        put.append("whole" if (aside / "part").exists() else "half")

    monkeypatch.setattr(stream_output, "_put", slowly)
    monkeypatch.setattr(stream_output, "END_SECONDS", 0.05 if takes_too_long else 600.0)
    frame: Any = None
    stream = Thread(target=batches.put, args=(frame, 0))
    stream.start()
    begun.wait()
    ends = Thread(target=batches.end)
    ends.start()
    if takes_too_long:
        ends.join()
    may_go_on.set()
    stream.join()
    ends.join()
    assert put == ["whole"]
    # The next run removes it then.
    assert aside.exists() is takes_too_long
    with pytest.raises(RuntimeError, match="the stream has ended"):
        batches.put(frame, 1)
