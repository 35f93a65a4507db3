"""``memory_limit=``: what it takes, when it is looked at, and that no answer depends on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import uncertain_cep as uc
from confidence.budget import checkpoint, looking_at
from uncertain_cep.cli import main
from uncertain_cep.running import resource_limits
from uncertain_cep.running.resource_limits import Limits, held_memory, parse_size, within

QUERY = "PATTERN SEQ(A a, B b) WITHIN 50"


def events(count: int = 40) -> pa.Table:
    lower = list(range(count))
    return pa.table(
        {"type": ["A", "B"] * (count // 2), "id": lower, "lower": lower, "upper": [low + 3 for low in lower]}
    )


@pytest.mark.parametrize(
    ("size", "number"),
    [("4GB", 4 * 10**9), ("512 MiB", 2**29), ("1.5k", 1500), ("7", 7), (10**6, 10**6), ("1TiB", 2**40)],
)
def test_sizes(size: str | int, number: int) -> None:
    assert parse_size(size, what="size") == number


@pytest.mark.parametrize("size", ["much", "-1GB", "0", 0, -5, True, 1.5, "GB", "1 parsec"])
def test_no_sizes(size: Any) -> None:
    with pytest.raises(uc.OptionError, match="memory_limit="):
        uc.match(events(), QUERY, memory_limit=size)


def test_what_a_process_holds_grows() -> None:
    before = held_memory()
    held = bytearray(2**26)
    held[::4096] = b"x" * len(held[::4096])
    assert held_memory() - before > 2**25


def test_enough_memory_changes_nothing() -> None:
    assert uc.match(events(), QUERY, memory_limit="100GB") == uc.match(events(), QUERY)
    assert uc.explain(QUERY, events(), memory_limit="100GB") == uc.explain(QUERY, events())


def test_too_little_is_an_error() -> None:
    for call in (uc.match, lambda *arguments, **options: list(uc.iter_matches(*arguments, **options))):
        with pytest.raises(
            uc.MemoryLimitError, match=r"stopped at the memory limit, with 0 matches found"
        ) as raised:
            call(events(), QUERY, memory_limit="1MB")
        assert raised.value.limit == 10**6 < raised.value.held
    matcher = uc.IncrementalMatcher(QUERY, events().schema, memory_limit=1)
    with pytest.raises(uc.MemoryLimitError):
        matcher.push(events())


def test_it_is_looked_at_before_a_batch_and_before_what_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    held = 100
    monkeypatch.setattr(resource_limits, "held_memory", lambda: held)
    batch = pa.record_batch({"x": [1, 2]})
    batches = within(Limits(memory=150), iter([batch, batch]))
    assert next(batches).num_rows == 2
    held = 200
    with pytest.raises(uc.MemoryLimitError, match="with 2 matches found so far"):
        next(batches)
    held = 100
    with Limits(memory=150).looked_at():
        checkpoint(50)
        with pytest.raises(uc.MemoryLimitError) as raised:
            checkpoint(51)
    assert (raised.value.held, raised.value.needed) == (100, 51)


def test_large_arrays_are_announced() -> None:
    """Work arrays whose size is known beforehand: those of expected counts, and of what grows."""
    sizes: list[int] = []
    with looking_at(sizes.append):
        uc.match(events(400), f"{QUERY} RETURN EXPECTED COUNT EVERY 10")
        matcher = uc.IncrementalMatcher(QUERY, events().schema)
        matcher.push(events(4000))
    assert max(sizes) > 8 * 400


def test_the_command(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("type,id,lower,upper\nA,1,1,2\nB,2,3,4\n")
    runner = CliRunner()
    done = runner.invoke(main, ["match", QUERY, str(trace), "--memory-limit", "1MB"])
    assert done.exit_code == 1
    assert "stopped at the memory limit" in done.stderr
    done = runner.invoke(main, ["match", QUERY, str(trace), "--memory-limit", "100GB"])
    assert (done.exit_code, done.stdout.splitlines()[1:]) == (0, ["1,2,1,4,1"])
    done = runner.invoke(main, ["match", QUERY, str(trace), "--memory-limit", "much"])
    assert done.exit_code == 2
    done = runner.invoke(main, ["match", QUERY, str(trace), "--memory-limit", "1GB", "--engine", "spark"])
    assert done.exit_code == 2
    assert "--memory-limit is for --engine local" in done.stderr
